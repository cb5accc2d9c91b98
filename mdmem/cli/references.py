"""The commands of references: refs, backlinks, tags, graph."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.main import command
from mdmem.cli.options import (
    json_option,
    make_change,
    path_argument,
    path_option,
    read_command,
    verbose_option,
)
from mdmem.cli.paths import READ_ANY, READ_OTHER, resolved
from mdmem.cli.render import print_json, print_notes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.cli.main import Target
    from mdmem.memory.kinds import Kinds
    from mdmem.memory.memory import Memory


# What stands for itself in a label of Mermaid; anything else might begin an entity, a directive, or HTML.
_NOT_PLAIN = re.compile(r"[^\w ./:-]")


@command("refs", epilog="Example: mdmem refs --type line_range --in notes")
@path_argument("target", READ_OTHER, required=False)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only these: note, url, line_range, …")
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only these: dangling, moved, gone, …"
)
@click.option("--stale", is_flag=True, help="Only code that has moved, has changed or is gone.")
@path_option(
    "--in", "paths", role=READ_ANY, multiple=True, metavar="PATH", help="Only in this memory or folder."
)
@click.option("--stats", is_flag=True, help="Print numbers instead.")
@click.option("--pin", is_flag=True, help="Put a pin after every citation of code that has none.")
@click.option("--accept", is_flag=True, help="With --pin: also renew the pins of what has changed.")
@click.option("--fix", is_flag=True, help="Make every citation of code that has moved say where it is now.")
@click.option("--dry-run", is_flag=True, help="With --pin or --fix: print the diff and write nothing.")
@verbose_option
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
    verbose: bool,
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
    paths, asked = resolved(memory, {"paths": paths})["paths"], resolved(memory, asked)
    if not (pin or fix):
        return _print_asked(memory, paths=paths or None, as_json=as_json, **asked)

    def verb(of: Kinds[Any]) -> Any:
        return of.references.fix(paths or None) if fix else of.references.pin(paths or None, accept=accept)

    make_change(memory, verb, dry_run=dry_run, as_json=as_json, verbose=verbose)
    return 0


def _print_asked(memory: Memory, *, target: str | None, stats: bool, as_json: bool, **asked: Any) -> int:
    """Answer a question to the references; the exit code."""
    known = memory.references
    if stats:
        counted = known.stats(**asked)
        if as_json:
            print_json(counted)
        else:
            print(f"{counted.total:,} references in {counted.places:,} places")
            for title, counts in (("by type", counted.by_type), ("by state", counted.by_state)):
                print(f"{title}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
            for cited, count in counted.most_cited:
                print(f"{count:5}  {cited}")
        print_notes(memory)
        return 0
    found = known.lookup(target, **asked) if target else known.list(**asked)
    if as_json:
        print_json(found)
    else:
        for reference in found:
            for place in reference.places:
                line = f"{reference.type:10} {reference.target}  {place.state}  {place.path}:{place.line}"
                print(f"{line}  {place.detail}".rstrip())
    print_notes(memory)
    return int(bool(found) if asked["stale"] else bool(target and not found))


@command("backlinks", epilog="Example: mdmem backlinks notes/db.md")
@path_argument()
@read_command
def backlinks_command(memory: Memory, path: str, as_json: bool) -> int:
    """List the links to a memory; the exit code is 1 when there are none."""
    found = memory.references.backlinks(path)
    if as_json:
        print_json(found)
        return 0 if found else 1
    for source, line, _, anchor, alias, ambiguous in found:
        named = f"  #{anchor}" if anchor else ""
        told = "  (ambiguous: it may mean another one)" if ambiguous else ""
        print(f"{source}:{line}{named}{f'  {alias}' if alias else ''}{told}")
    if not found:
        print(f"no links to {path}", file=sys.stderr)
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
@path_option("--in", "within", default="", metavar="FOLDER", help="Only of the memories below this folder.")
@click.option(
    "--format", "form", type=click.Choice(["dot", "mermaid", "json"]), default="dot", show_default=True
)
@read_command
def graph_command(memory: Memory, within: str, form: str, as_json: bool) -> None:
    """Print what memories link to, embed, cite and are tagged with, as a graph."""
    triples = memory.references.graph(within)
    if as_json or form == "json":
        print_json(triples)
    else:
        print(dot(triples) if form == "dot" else mermaid(triples), end="")


def dot(triples: Iterable[tuple[str, str, str]]) -> str:
    """A digraph in the DOT language, see https://graphviz.org/doc/info/lang.html."""
    nodes, edges = _numbered(triples)
    lines = ["digraph memories {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  n{number} [label={_quoted(name)}];" for name, number in nodes.items()]
    lines += [f"  n{start} -> n{end} [label={_quoted(name)}];" for start, name, end in edges]
    return "".join(f"{line}\n" for line in (*lines, "}"))


def mermaid(triples: Iterable[tuple[str, str, str]]) -> str:
    """A flowchart in the language of Mermaid, see https://mermaid.js.org/syntax/flowchart.html."""
    nodes, edges = _numbered(triples)
    lines = ["flowchart LR"]
    lines += [f'  n{number}["{_coded(name)}"]' for name, number in nodes.items()]
    lines += [f'  n{start} -->|"{_coded(name)}"| n{end}' for start, name, end in edges]
    return "".join(f"{line}\n" for line in lines)


def _numbered(triples: Iterable[tuple[str, str, str]]) -> tuple[dict[str, int], list[tuple[int, str, int]]]:
    """The numbers of what subjects, predicates and objects name, in order of appearance, and the edges."""
    nodes: dict[str, int] = {}

    def number(name: str) -> int:
        return nodes.setdefault(name, len(nodes))

    edges = [(number(subject), predicate, number(object_)) for subject, predicate, object_ in triples]
    return nodes, edges


def _quoted(text: str) -> str:
    r"""A label of DOT: in it `\` begins an escape and `&` an entity, and a line ends by an escape."""
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"\r\n|[\r\n]", r"\\n", escaped) + '"'


def _coded(text: str) -> str:
    """A label of Mermaid, with entities in the place of all that means something there."""
    return _NOT_PLAIN.sub(lambda found: f"#{ord(found[0])};", text)
