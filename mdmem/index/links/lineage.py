"""Lineage: what memories were derived from, and what took their place or spoke against them.

Every question reads the index once and takes time in proportion to what is joined; circles end.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import ne
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Diagnostic, Span, about_file
from mdmem.document import properties
from mdmem.document.markdown.inline import Link
from mdmem.document.markdown.link import external
from mdmem.document.text.lines import Lines
from mdmem.document.tree import LINEAGE, Flaw, Node
from mdmem.errors import DocumentRefused, MemoryNotFound
from mdmem.index.links.references import file_named, find_unread
from mdmem.index.links.resolve import MARKDOWN, resolve, resolve_link
from mdmem.vault.paths import StrPath, check_memory, path_text

if TYPE_CHECKING:
    from mdmem.index.view import View

DERIVED, CONTRADICTED = "derived_from", "contradicted_by"
_MOST_NAMED = 4  # memories of a circle


class LineageReference(NamedTuple):
    """What a memory names in a field of lineage.

    Attributes:
        name: as written.
        goal: the memory that is meant, of a layer with the layer's name; None where there is none.
        candidates: all that may be meant, the likeliest first.
    """

    path: str
    name: str
    goal: str | None
    candidates: tuple[str, ...] = ()

    @property
    def is_ambiguous(self) -> bool:
        """Whether several memories may be meant."""
        return len(self.candidates) > 1


def find_references(view: View, key: str) -> Iterator[LineageReference]:
    """Find what memories name in the field `key` of lineage, in the order of their paths."""
    for path, value in view.field_values(key)[key]:
        yield from references_in(view, path, "" if value is None else str(value))


def references_in(view: View, path: str, text: str) -> Iterator[LineageReference]:
    """Find what a memory names in one value of a field of lineage."""
    links = [link for link in links_in(text) if link.target] if path.endswith(MARKDOWN) else []
    for link in links:
        meant = resolve_link(view.all_names, link, path)
        yield LineageReference(path, link.target, meant.path, meant.candidates)
    name = text.partition("#")[0].strip()
    if not name or links or external(text):
        return
    if view.vault.names_layer(name):
        yield LineageReference(path, name, name if view.vault.find(name) else None)
    else:
        meant = resolve(view.all_names, name, path)
        yield LineageReference(path, name, meant.path, meant.candidates)


def links_in(text: str) -> tuple[Link, ...]:
    """Find the links in the value of a field, as the scanner finds them in a memory."""
    value = Node(value=text, span=Span(0, len(text)), kind="scalar", style="plain")
    return properties.links(text, value, Lines(text))[0]


# -- what was derived from what ------------------------------------------------------------------------------


class LineageStats(NamedTuple):
    """How much was derived: memories, joins between them, memories that derive from nothing, most steps."""

    memories: int
    joins: int
    roots: int
    depth: int


class Lineage:
    """What memories were derived from; each memory is named once, whatever ways lead to it."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def ancestors(self, path: StrPath) -> tuple[str, ...]:
        """List what a memory was derived from, and that from, nearest first."""
        return tuple(_count_steps(find_parents(self._view()), [check_memory(path_text(path))]))[1:]

    def descendants(self, path: StrPath) -> tuple[str, ...]:
        """List what was derived from a memory, and from that, nearest first."""
        children = _turn_round(find_parents(self._view()))
        return tuple(_count_steps(children, [check_memory(path_text(path))]))[1:]

    def depth(self, path: StrPath) -> int:
        """Count the fewest steps from a memory to one that derives from nothing; 0 for such a one.

        Of memories that only a circle is above, it is the steps until the circle closes.
        """
        parents = find_parents(self._view())
        steps = _count_steps(parents, [check_memory(path_text(path))])
        return min((steps[each] for each in steps if each not in parents), default=max(steps.values()))

    def by_source(self, source: str) -> tuple[str, ...]:
        """List the memories that name a source in `source.ids`; a session is named by its messages, too."""
        query = (
            "SELECT DISTINCT d.path FROM fields AS f JOIN documents AS d ON d.id = f.document"
            " WHERE {inside} AND f.key = 'source.ids' AND (f.value = ? OR f.value GLOB ?) ORDER BY d.path"
        )
        view, pattern = self._view(), "".join(f"[{c}]" if c in "*?[" else c for c in source)
        return tuple(view.inside(path) for (path,) in view.rows(query, (source, f"{pattern}#*")))

    def stats(self) -> LineageStats:
        """Count what is joined."""
        parents = find_parents(self._view())
        children = _turn_round(parents)
        memories = {*parents, *children}
        return LineageStats(
            memories=len(memories),
            joins=sum(map(len, parents.values())),
            roots=len(memories) - len(parents),
            depth=max(_count_steps(children, memories - parents.keys()).values(), default=0),
        )


def find_parents(view: View) -> dict[str, tuple[str, ...]]:
    """Find what each memory was derived from; a memory is not its own parent."""
    found: dict[str, dict[str, None]] = {}
    for reference in find_references(view, DERIVED):
        if reference.goal is not None and reference.goal != reference.path:
            found.setdefault(reference.path, {})[reference.goal] = None
    return {path: tuple(goals) for path, goals in found.items()}


def find_orphans(view: View, paths: Collection[str]) -> tuple[str, ...]:
    """Find what derives from nothing but these memories, and what derives from nothing but that."""
    parents = find_parents(view)
    children = _turn_round(parents)
    gone, found, waiting = set(paths), list[str](), list(paths)
    for path in waiting:
        for child in children.get(path, ()):
            if child not in gone and gone.issuperset(parents[child]):
                gone.add(child)
                found.append(child)
                waiting.append(child)
    return tuple(found)


def _turn_round(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = defaultdict(list)
    for path, goals in parents.items():
        for goal in goals:
            children[goal].append(path)
    return children


def _count_steps(graph: Mapping[str, Sequence[str]], starts: Collection[str]) -> dict[str, int]:
    """Count the fewest steps from some nodes to each that they lead to, the nearest first."""
    depths, waiting = dict.fromkeys(starts, 0), list(starts)
    for node in waiting:
        for goal in graph.get(node, ()):
            if goal not in depths:
                depths[goal] = depths[node] + 1
                waiting.append(goal)
    return depths


def find_circles(graph: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
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


# -- what is wrong with it -----------------------------------------------------------------------------------


def check_lineage(view: View, paths: Collection[str] | None = None) -> Iterator[Diagnostic]:
    """Find what is wrong with the fields of lineage: they lead nowhere, to several, to themselves or round.

    With `paths`, only what these say; a circle is reported once, for the first of them that is in it.
    """
    for key in LINEAGE:
        graph: dict[str, dict[str, None]] = {}
        for reference in find_references(view, key):
            path, goal = reference.path, reference.goal
            if goal is not None and goal != path:
                graph.setdefault(path, {})[goal] = None
            flaw = _find_flaw(view, reference) if paths is None or path in paths else None
            if flaw:
                yield _make_finding(view, path, key, *flaw)
        # Two memories may well contradict each other.
        for circle in find_circles(graph) if key != CONTRADICTED else ():
            yield from _report_circle(view, key, circle, paths)


def _find_flaw(view: View, reference: LineageReference) -> tuple[str, str, str] | None:
    path, name, goal, candidates = reference
    if goal is None and (file_named(view, path, name) or find_unread(view, path, name)) is None:
        return "dangling-link", f"there is no memory {name!r}", "make it, or remove it from the field"
    if reference.is_ambiguous:
        others = ", ".join(candidates[1:_MOST_NAMED])
        return "ambiguous-link", f"{name!r} may also mean {others}", "name its folder, or its id"
    if goal == path:
        return "lineage-circle", "the memory names itself", "name the other memory, or remove the field"
    return None


def _report_circle(
    view: View, key: str, circle: Sequence[str], paths: Collection[str] | None
) -> Iterator[Diagnostic]:
    start = next((number for number, path in enumerate(circle) if paths is None or path in paths), None)
    if start is not None:
        ordered = [*circle[start:], *circle[:start]]
        shown = " → ".join(ordered[:_MOST_NAMED])
        shown += f" → {ordered[0]}" if len(ordered) <= _MOST_NAMED else " → …"
        message = f"{len(ordered):,} memories go round in a circle: {shown}"
        yield _make_finding(view, ordered[0], key, "lineage-circle", message, "remove one of the fields")


def _make_finding(view: View, path: str, key: str, code: str, message: str, hint: str) -> Diagnostic:
    message = f"`{key}`: {message}"
    with contextlib.suppress(DocumentRefused, MemoryNotFound):
        document = view.read(path)
        span = document.tree.nearest((key,)).span if document.tree else Span(0, 0)
        return document.diagnose(Flaw(span, code, message, hint, severity="warning"))
    return about_file(path, code, message, hint, severity="warning")
