"""The command of what an agent is given of its memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mdmem.cli.command import command
from mdmem.cli.options import read_command
from mdmem.cli.render import print_json

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory


@command("context", epilog="Example: mdmem context which database --for src/app.py --thread t1 --budget 2000")
@click.argument("words", metavar="[QUERY]...", nargs=-1)
@click.option(
    "--for", "files", multiple=True, metavar="FILE", help="Only rules that apply to this file; repeatable."
)
@click.option("--thread", metavar="ID", help="Also the working memory of this thread.")
@click.option(
    "--budget", type=click.IntRange(1), default=4000, show_default=True, help="At most so many tokens."
)
@click.option("--estimated", is_flag=True, help="Estimate tokens, even where a tokenizer is installed.")
@read_command
def context_command(
    memory: Memory,
    words: tuple[str, ...],
    files: tuple[str, ...],
    thread: str | None,
    budget: int,
    estimated: bool,
    as_json: bool,
) -> None:
    """Print what an agent should know, as one Markdown text.

    Rules, project memory, preferences, pinned notes, the working memory of a thread, and passages that fit
    QUERY. What did not fit is listed at the end of the text, with its cost.
    """
    found = memory.context(" ".join(words), files, thread, budget, estimated=estimated)
    if as_json:
        print_json(found.as_dict())
        return
    sys.stdout.write(found.text)
    sys.stdout.flush()
    left_out = f", {len(found.left_out):,} left out: raise --budget" if found.left_out else ""
    print(f"{found.tokens:,} tokens{left_out}", file=sys.stderr)
