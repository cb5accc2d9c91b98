"""The command of ranked search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli.command import command
from mdmem.cli.options import read_command
from mdmem.cli.render import print_results

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory


@command("search", epilog="Example: mdmem search which database --in notes --limit 5")
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "within", default="", metavar="NAMESPACE", help="Only below this folder.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only memories of one of these types.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only memories with all of these tags.")
@click.option("--since", default="", metavar="DATE", help="Only memories from this day, month or year on.")
@click.option("--before", default="", metavar="DATE", help="Only memories before it.")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="At most so many hits.")
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="Whole passages, of so many tokens.")
@click.option("--context", "-C", type=click.IntRange(0), help="Lines around each hit; else its passage.")
@click.option("--passages", is_flag=True, help="Rank passages, not memories: one may have several hits.")
@click.option("--explain", is_flag=True, help="Say how each score was made.")
@read_command
def search_command(
    memory: Memory,
    words: tuple[str, ...],
    within: str,
    types: tuple[str, ...],
    tags: tuple[str, ...],
    since: str,
    before: str,
    limit: int,
    budget: int | None,
    context: int | None,
    passages: bool,
    explain: bool,
    as_json: bool,
) -> int:
    """Find the memories that fit best, each with its best lines in context.

    Any of WORDS may be there; "some words" have to be, in this order. Also begin*, tag:, type:, path:,
    after:, before:, and -without: put -- before words that begin with a dash, or all in quotes.

    With a user and a project, what is wider is found as well: it is named user:…, project:… or shared:…, as
    `show` takes it.
    """
    results = memory.search(
        " ".join(words),
        within=within,
        types=types,
        tags=tags,
        since=since,
        before=before,
        limit=limit,
        budget=budget,
        each="passage" if passages else "memory",
        context=context,
        explain=explain,
    )
    print_results(results, as_json=as_json)
    return 0 if results.hits else 1
