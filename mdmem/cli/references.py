"""The commands of references: refs, backlinks, tags, graph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli import options, render
from mdmem.cli.main import command
from mdmem.errors import show_name
from mdmem.facade.paths import READ_ANY, READ_OTHER

if TYPE_CHECKING:
    from mdmem import Reference
    from mdmem.facade.kinds import Kinds
    from mdmem.facade.memory import Memory


# A special character in a label of Mermaid: it might begin an entity, a directive, or HTML.
_MERMAID_SPECIAL = re.compile(r"[^\w ./:-]")


@command("refs", epilog="Example: mdmem refs --kind line_range --in notes")
@options.path_argument("target", READ_OTHER, required=False)
@options.kind_option("types", multiple=True)
@click.option("--state", "states", multiple=True, help="List only these states: dangling, moved, gone, …")
@click.option("--stale", is_flag=True, help="List only code that has moved, has changed or is gone.")
@options.in_option("paths", role=READ_ANY, metavar="PATH")
@click.option("--stats", is_flag=True, help="Print counts instead of the list.")
@click.option("--pin", is_flag=True, help="Pin every citation of code that has no pin.")
@click.option("--accept", is_flag=True, help=options.ACCEPT)
@options.fix_option
@options.dry_run_option
@options.verbose_option
@options.json_option
@options.memory_command
def refs_command(
    memory: Memory, paths: tuple[str, ...], pin: bool, accept: bool, fix: bool, **asked: Any
) -> int:
    """List links and citations of code with their state, or fix them.

    TARGET is a memory, a URL, a #tag, a file or a symbol, whole or shortened. The exit code is 1 when nothing
    points at it. With --stale it is 1 when something is stale, and 0 otherwise. KIND is note, url, line_range
    and the like. --fix updates the citations of code that has moved. --pin notes what the code is now, so
    that a later change of it shows, and --accept does so for code that has changed.
    """
    if (pin and fix) or ((pin or fix) and any(asked.values())):
        raise click.UsageError("--pin or --fix can be combined only with --in and --dry-run")
    if (accept and not pin) or (render.is_set("dry_run") and not (pin or fix)):
        raise click.UsageError("--accept goes with --pin, --dry-run with --pin or --fix")
    if asked["stats"] and asked["target"]:
        raise click.UsageError("--stats takes no TARGET")
    if not (pin or fix):
        return _print_query(memory, paths=paths or None, **asked)

    def verb(of: Kinds[Any]) -> Any:
        return of.references.fix(paths or None) if fix else of.references.pin(paths or None, accept=accept)

    options.make_change(memory, verb)
    return 0


def _print_query(memory: Memory, *, target: str | None, stats: bool, **asked: Any) -> int:
    known = memory.references
    if stats:
        render.print_found(known.stats(**asked), _print_stats)
        render.print_notes(memory)
        return 0
    found = known.lookup(target, **asked) if target else known.list(**asked)
    what = "stale citations" if asked["stale"] else "references"
    conditions = {**asked, "stale": False}  # finding nothing stale is not a miss
    is_asked = not asked["stale"] and bool(target or any(conditions.values()))
    code = render.print_found(found, _print_references, what, is_asked=is_asked)
    render.print_notes(memory)
    return int(bool(found)) if asked["stale"] else code


def _print_stats(counted: Any) -> None:
    print(f"{counted.total:,} references in {counted.places:,} places")
    for title, counts in (("by type", counted.by_type), ("by state", counted.by_state)):
        print(f"{title}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    for cited, count in counted.most_cited:
        print(show_name(f"{count:5}  {cited}"))


def _print_references(found: Iterable[Reference]) -> None:
    for reference in found:
        for place in reference.places:
            line = f"{place.path}:{place.line}  {place.state}  {reference.type} {reference.target}"
            print(show_name(f"{line}  {place.detail}".rstrip()))


@command("backlinks", epilog="Example: mdmem backlinks notes/db.md")
@options.path_argument()
@options.read_command
def backlinks_command(memory: Memory, path: str) -> int:
    """List the links to a memory; the exit code is 1 when there are none."""
    found = memory.references.backlinks(path)
    return render.print_list(found, _format_backlink, f"links to {path}", is_asked=True)


def _format_backlink(link: Any) -> str:
    anchor = f"  #{link.anchor}" if link.anchor else ""
    ambiguous = "  (ambiguous: it may mean another memory)" if link.ambiguous else ""
    return f"{link.path}:{link.line}{anchor}{f'  {link.alias}' if link.alias else ''}{ambiguous}"


@command("tags", epilog="Example: mdmem tags")
@options.read_command
def tags_command(memory: Memory) -> int:
    """List the tags, each with the number of memories that have it, the most used first."""
    tags = [{"name": name, "memories": count} for name, count in memory.references.tags()]
    return render.print_list(tags, lambda tag: f"{tag['memories']:5}  #{tag['name']}", "tags")


@command("graph", hidden=True, epilog="Example: mdmem graph --in notes --format mermaid")
@options.in_option(default="", metavar="FOLDER")
@options.format_option("dot mermaid json")
@options.read_command
def graph_command(memory: Memory, within: str, form: str) -> int:
    """Print what memories link to, embed, cite and are tagged with, as a graph."""
    triples = memory.references.graph(within)
    if form == "json":
        render.print_json(triples)
    else:
        render.print_found(
            triples,
            lambda _: print(format_dot(triples) if form == "dot" else format_mermaid(triples), end=""),
        )
    return 0 if triples else render.say_nothing("links, citations or tags", is_asked=bool(within))


def format_dot(triples: Iterable[tuple[str, str, str]]) -> str:
    """Format triples of source, relation and target in the DOT language, see https://graphviz.org/doc/info/lang.html."""
    nodes, edges = _number_nodes(triples)
    lines = ["digraph memories {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  n{number} [label={_quote_dot(name)}];" for name, number in nodes.items()]
    lines += [f"  n{start} -> n{end} [label={_quote_dot(name)}];" for start, name, end in edges]
    return "".join(f"{line}\n" for line in (*lines, "}"))


def format_mermaid(triples: Iterable[tuple[str, str, str]]) -> str:
    """Format triples of source, relation and target as a flowchart of Mermaid, see https://mermaid.js.org/syntax/flowchart.html."""
    nodes, edges = _number_nodes(triples)
    lines = ["flowchart LR"]
    lines += [f'  n{number}["{_quote_mermaid(name)}"]' for name, number in nodes.items()]
    lines += [f'  n{start} -->|"{_quote_mermaid(name)}"| n{end}' for start, name, end in edges]
    return "".join(f"{line}\n" for line in lines)


def _number_nodes(
    triples: Iterable[tuple[str, str, str]],
) -> tuple[dict[str, int], list[tuple[int, str, int]]]:
    nodes: dict[str, int] = {}

    def number(name: str) -> int:
        return nodes.setdefault(name, len(nodes))

    edges = [(number(subject), predicate, number(object_)) for subject, predicate, object_ in triples]
    return nodes, edges


def _quote_dot(text: str) -> str:
    r"""Quote a label of DOT: escape `\` and quotation marks, write `&` as an entity and line ends as `\n`."""
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"\r\n|[\r\n]", r"\\n", escaped) + '"'


def _quote_mermaid(text: str) -> str:
    """Quote a label of Mermaid: replace every special character by an entity."""
    return _MERMAID_SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)
