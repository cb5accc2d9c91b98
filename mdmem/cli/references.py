"""The commands of references: refs, backlinks, tags, graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.main import command
from mdmem.cli.options import json_option, make_change, path_argument, read_command
from mdmem.cli.render import print_backlinks, print_json, print_notes, print_references, print_stats

if TYPE_CHECKING:
    from mdmem.cli.main import Target
    from mdmem.memory.memory import Kinds, Memory


@command("refs", epilog="Example: mdmem refs --type line_range --in notes")
@click.argument("target", required=False)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only these: note, url, line_range, …")
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only these: dangling, moved, gone, …"
)
@click.option("--stale", is_flag=True, help="Only code that has moved, has changed or is gone.")
@click.option("--in", "paths", multiple=True, metavar="PATH", help="Only in this memory or folder.")
@click.option("--stats", is_flag=True, help="Print numbers instead.")
@click.option("--pin", is_flag=True, help="Put a pin behind every citation of code that has none.")
@click.option("--accept", is_flag=True, help="With --pin: also renew the pins of what has changed.")
@click.option("--fix", is_flag=True, help="Make every citation of code that has moved say where it is now.")
@click.option("--dry-run", is_flag=True, help="With --pin or --fix: print the diff and write nothing.")
@json_option
@click.pass_obj
def refs_command(
    vault: Target,
    /,
    paths: tuple[str, ...],
    pin: bool,
    accept: bool,
    fix: bool,
    dry_run: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """List what memories point at, and whether it is still there and still what it was.

    TARGET is a memory, a URL, a #tag, a file or a symbol, whole or shortened. The exit code is 1 when nothing
    points at it, and with --stale when something is stale.
    """
    if (pin and fix) or ((pin or fix) and any(asked.values())):
        raise click.UsageError("--pin and --fix each go with --in and --dry-run alone")
    if (accept and not pin) or (dry_run and not (pin or fix)):
        raise click.UsageError("--accept goes with --pin, --dry-run with --pin or --fix")
    if asked["stats"] and asked["target"]:
        raise click.UsageError("--stats counts everything that fits: leave TARGET away")
    memory = vault.open()
    if not (pin or fix):
        code = _print_asked(memory, paths=paths or None, as_json=as_json, **asked)
        print_notes(memory)
        return code

    def verb(of: Kinds[Any]) -> Any:
        return of.references.fix(paths or None) if fix else of.references.pin(paths or None, accept=accept)

    make_change(memory, verb, dry_run=dry_run, as_json=as_json)
    return 0


def _print_asked(
    memory: Memory,
    *,
    target: str | None,
    types: tuple[str, ...],
    states: tuple[str, ...],
    stale: bool,
    stats: bool,
    paths: tuple[str, ...] | None,
    as_json: bool,
) -> int:
    """Answer a question to the references; the exit code."""
    from mdmem.index.state import STALE

    filters: dict[str, Any] = {"types": types, "states": (*states, *(STALE if stale else ())), "paths": paths}
    if stats:
        print_stats(memory.references.stats(**filters), as_json=as_json)
        return 0
    found = memory.references.lookup(target, **filters) if target else memory.references.list(**filters)
    print_references(found, as_json=as_json)
    return int(bool(found) if stale else bool(target and not found))


@command("backlinks", epilog="Example: mdmem backlinks notes/db.md")
@path_argument()
@read_command
def backlinks_command(memory: Memory, path: str, as_json: bool) -> int:
    """List the links to a memory; the exit code is 1 when there are none."""
    found = memory.references.backlinks(path)
    print_backlinks(found, as_json=as_json)
    return 0 if found else 1


@command("tags", epilog="Example: mdmem tags")
@read_command
def tags_command(memory: Memory, as_json: bool) -> None:
    """List the tags, each with the number of memories that have it, the most used first."""
    found = memory.references.tags()
    if as_json:
        print_json([{"name": name, "memories": count} for name, count in found])
        return
    for name, count in found:
        print(f"{count:5}  #{name}")


@command("graph", epilog="Example: mdmem graph --in notes --format mermaid")
@click.option("--in", "within", default="", metavar="FOLDER", help="Only of the memories below this folder.")
@click.option(
    "--format", "form", type=click.Choice(["dot", "mermaid", "json"]), default="dot", show_default=True
)
@read_command
def graph_command(memory: Memory, within: str, form: str, as_json: bool) -> None:
    """Print what memories link to, embed, cite and are tagged with, as a graph."""
    from mdmem.index import graph

    triples = memory.references.graph(within)
    if as_json or form == "json":
        print_json([triple._asdict() for triple in triples])
    else:
        print(graph.dot(triples) if form == "dot" else graph.mermaid(triples), end="")
