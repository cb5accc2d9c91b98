"""Triples: what memories are joined to, as subject, predicate, object; and where lineage goes astray."""

from __future__ import annotations

import contextlib
from functools import partial
from itertools import chain, takewhile
from operator import ne
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.code.citations import path_of
from mdmem.code.workspace import Workspace
from mdmem.diagnostic import Diagnostic, Span, about_file
from mdmem.document import properties
from mdmem.document.tree import LINEAGE, Flaw, Node
from mdmem.errors import DocumentRefused
from mdmem.index.database import kept_citation, tag_key
from mdmem.kind import OBSERVATION, kind_at
from mdmem.links.references import file_beside, file_named
from mdmem.links.resolve import MARKDOWN, PATH_KINDS, Resolution, is_path, resolve
from mdmem.markdown.link import external
from mdmem.text.lines import Lines
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mdmem.index.view import View
    from mdmem.markdown.inline import Link

LINKS, EMBEDS, CITES, TAGGED = "links to", "embeds", "cites", "tagged"
IN_SESSION, FOLLOWS, REFLECTS = "in_session", "follows", "reflects_on"
_OF_OBSERVATIONS = {"session": IN_SESSION, "follows": FOLLOWS, "derived_from": REFLECTS}
_MOST_NAMED = 4  # memories of a circle


class Triple(NamedTuple):
    """A memory is joined to something.

    Attributes:
        subject: the memory.
        predicate: "links to", "embeds", "cites", "tagged", or the dotted name of the field that says so; of
            observations "in_session", "follows" and "reflects_on", where what they name is there.
        object: a memory, a file, `#tag`, `session:KEY`; of a link that leads nowhere, its target as written.
    """

    subject: str
    predicate: str
    object: str


def triples(view: View, within: str = "") -> tuple[Triple, ...]:
    """Return what the memories below the folder `within` are joined to, each once, in order.

    Anchors, lines and symbols are left out, and so is what joins a memory to itself.
    """
    found = chain(
        _link_triples(view, within),
        _field_triples(view, within),
        _citation_triples(view, within),
        _tag_triples(view, within),
    )
    return tuple(sorted({triple for triple in found if triple.subject != triple.object}))


def astray(view: View, paths: Collection[str] | None = None) -> Iterator[Diagnostic]:
    """Yield what is wrong with the fields that say what a memory came from, or what took its place.

    Args:
        view: which memories.
        paths: only what these say; a circle is told once, of the first of them that is in it.
    """
    for key in LINEAGE:
        graph: dict[str, dict[str, None]] = {}
        for path, name, resolution in _lineage(view, key):
            goal = resolution.path
            wanted = paths is None or path in paths
            if wanted and goal is None and file_named(view, path, name) is None:
                hint = "make it, or take it out of the field"
                yield _make_finding(view, path, key, "dangling-link", f"there is no memory {name!r}", hint)
            elif wanted and resolution.ambiguous:
                others = ", ".join(resolution.candidates[1:_MOST_NAMED])
                message = f"{name!r} may also mean {others}"
                yield _make_finding(view, path, key, "ambiguous-link", message, "name its folder, or its id")
            elif wanted and goal == path:
                hint = "name the other memory, or take the field away"
                yield _make_finding(view, path, key, "lineage-circle", "the memory names itself", hint)
            if goal is not None and goal != path:
                graph.setdefault(path, {})[goal] = None
        for circle in circles(graph):
            start = next(
                (number for number, path in enumerate(circle) if paths is None or path in paths), None
            )
            if start is not None:
                ordered = [*circle[start:], *circle[:start]]
                shown = " → ".join(ordered[:_MOST_NAMED])
                told = f"{shown} → {ordered[0]}" if len(ordered) <= _MOST_NAMED else f"{shown} → …"
                message = f"{len(ordered):,} memories go round in a circle: {told}"
                hint = "take one of the fields away"
                yield _make_finding(view, ordered[0], key, "lineage-circle", message, hint)


def _lineage(view: View, key: str) -> Iterator[tuple[str, str, Resolution]]:
    """Yield what each memory names in a field of lineage, as written, and what it means."""
    query = (
        "SELECT d.path, f.value FROM fields AS f JOIN documents AS d ON d.id = f.document"
        " WHERE {inside} AND f.key = ?"
    )
    for outside, value in view.rows(query, (key,)):
        path, text = view.inside(outside), "" if value is None else str(value)
        links = [link for link in _links_in(text) if link.target] if path.endswith(MARKDOWN) else []
        for link in links:
            yield path, link.target, resolve(view.all_names, link.target, path, as_path=is_path(link))
        name = text.partition("#")[0].strip()
        if name and not links and not external(text):
            yield path, name, resolve(view.all_names, name, path)


def circles(graph: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Find circles that share no node: one for each component that has any, from its first node.

    Without recursion, as a circle may be as long as there are memories.
    """
    done: set[str] = set()
    for start in sorted(graph):
        trail: dict[str, Iterator[str]] = {}
        if start not in done:
            trail[start] = iter(graph[start])
        while trail:
            node = next(reversed(trail))
            goal = next(trail[node], None)
            if goal is None:
                done.add(node)
                del trail[node]
            elif goal in trail:
                circle = [goal, *reversed([*takewhile(partial(ne, goal), reversed(trail))])]
                first = circle.index(min(circle))
                yield [*circle[first:], *circle[:first]]
                done.update(circle)
                for each in circle:
                    del trail[each]
            elif goal not in done:
                trail[goal] = iter(graph.get(goal, ()))


def _make_finding(view: View, path: str, key: str, code: str, message: str, hint: str) -> Diagnostic:
    document, message = view.vault.find(path), f"`{key}`: {message}"
    if document is None:
        return about_file(path, code, message, hint, severity="warning")
    span = Span(0, 0)
    with contextlib.suppress(DocumentRefused):
        span = document.tree.nearest((key,)).span if document.tree else span
    return document.diagnose(Flaw(span, code, message, hint, severity="warning"))


def _rows_below(view: View, within: str, query: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query, with the path first: of the memories below `within`."""
    for path, *rest in view.rows(query + " WHERE {inside}"):
        inside = view.inside(path)
        if is_under(inside, within):
            yield inside, *rest


def _link_triples(view: View, within: str) -> Iterator[Triple]:
    query = (
        "SELECT d.path, k.kind, k.embed, k.target FROM links AS k JOIN documents AS d"
        " ON d.id = k.document AND k.kind != 'field' AND k.target != ''"
    )
    for path, kind, embed, target in _rows_below(view, within, query):
        yield Triple(
            path, EMBEDS if embed else LINKS, _resolve_target(view, path, target, as_path=kind in PATH_KINDS)
        )


def _field_triples(view: View, within: str) -> Iterator[Triple]:
    """Yield the links in fields, and the memories that the fields of lineage name without being links."""
    query = (
        "SELECT d.path, f.key, f.value FROM fields AS f JOIN documents AS d ON d.id = f.document"
        " AND (f.key IN ('superseded_by', 'derived_from') OR instr(f.value, '[[') OR instr(f.value, '](')"
        " OR (f.key IN ('session', 'follows') AND instr(d.path, 'observations/')))"
    )
    for path, key, value in _rows_below(view, within, query):
        text = "" if value is None else str(value)
        if key in _OF_OBSERVATIONS and kind_at(path) is OBSERVATION:
            yield from _observation_triples(view, path, key, text)
            continue
        links = _links_in(text) if path.endswith(MARKDOWN) else ()
        for link in links:
            if link.target:
                yield Triple(path, key, _resolve_target(view, path, link.target, as_path=is_path(link)))
        if text and not links and key in LINEAGE:
            yield Triple(path, key, _resolve_target(view, path, text.partition("#")[0]))


def _observation_triples(view: View, path: str, key: str, text: str) -> Iterator[Triple]:
    """Yield what a field of an observation says; nothing where it names what was removed."""
    goal = f"session:{text}" if key == "session" else resolve(view.all_names, text, path).path
    if text and goal:
        yield Triple(path, _OF_OBSERVATIONS[key], goal)


def _links_in(text: str) -> tuple[Link, ...]:
    """Return the links in the value of a field, as the scanner finds them in a memory."""
    value = Node(value=text, span=Span(0, len(text)), kind="scalar", style="plain")
    return properties.links(text, value, Lines(text))[0]


def _resolve_target(view: View, path: str, target: str, *, as_path: bool = False) -> str:
    """Return what a target in the memory `path` means; a read takes the likeliest."""
    meant = resolve(view.all_names, target, path, as_path=as_path).path
    if meant is None and as_path:
        meant = file_beside(view, path, target)
    return meant or target


def _citation_triples(view: View, within: str) -> Iterator[Triple]:
    query = "SELECT d.path, c.path, c.in_link FROM citations AS c JOIN documents AS d ON d.id = c.document"
    with Workspace.of(view.vault) as workspace:
        for path, cited, in_link in _rows_below(view, within, query):
            citation = kept_citation(cited, in_link=bool(in_link))
            yield Triple(path, CITES, path_of(workspace, view.in_workspace(path), citation) or cited)


def _tag_triples(view: View, within: str) -> Iterator[Triple]:
    names = {tag_key(name): name for name, _ in view.tags()}
    query = "SELECT d.path, t.key FROM tags AS t JOIN documents AS d ON d.id = t.document"
    return (Triple(path, TAGGED, f"#{names[key]}") for path, key in _rows_below(view, within, query))
