"""Triples: what memories are joined to, as subject, predicate, object."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.document.markdown.citation import Citation
from mdmem.document.markdown.link import Link
from mdmem.document.tree import LINEAGE
from mdmem.index.code.citations import path_of
from mdmem.index.code.workspace import Workspace
from mdmem.index.database import tag_key
from mdmem.index.links.lineage import links_in
from mdmem.index.links.references import file_beside
from mdmem.index.links.resolve import MARKDOWN, PATH_KINDS, kept_link, resolve, resolve_link
from mdmem.kind import OBSERVATION, kind_at
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from mdmem.index.view import View

LINKS, EMBEDS, CITES, TAGGED = "links to", "embeds", "cites", "tagged"
IN_SESSION, FOLLOWS, REFLECTS = "in_session", "follows", "reflects_on"
_OF_OBSERVATIONS = {"session": IN_SESSION, "follows": FOLLOWS, "derived_from": REFLECTS}


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
    joined = chain(
        _link_triples(view, within),
        _field_triples(view, within),
        _citation_triples(view, within),
        _tag_triples(view, within),
    )
    return tuple(sorted({triple for triple in joined if triple.subject != triple.object}))


def _rows_below(
    view: View, within: str, table: str, columns: str, condition: str = ""
) -> Iterator[tuple[Any, ...]]:
    for path, *others in view.part_rows(table, f"d.path, {columns}", condition):
        inside = view.inside(path)
        if is_under(inside, within):
            yield inside, *others


def _link_triples(view: View, within: str) -> Iterator[Triple]:
    rows = _rows_below(
        view,
        within,
        "links",
        "x.kind, x.embed, x.target, x.alias",
        "AND x.kind != 'field' AND x.target != ''",
    )
    for path, kind, embed, target, alias in rows:
        goal = _resolve_target(view, path, kept_link(kind, target, "", alias))
        yield Triple(path, EMBEDS if embed else LINKS, goal)


def _field_triples(view: View, within: str) -> Iterator[Triple]:
    condition = (
        "AND (x.key IN ('superseded_by', 'derived_from', 'contradicted_by')"
        " OR instr(x.value, '[[') OR instr(x.value, '](')"
        " OR (x.key IN ('session', 'follows') AND instr(d.path, 'observations/')))"
    )
    for path, key, value in _rows_below(view, within, "fields", "x.key, x.value", condition):
        text = "" if value is None else str(value)
        if key in _OF_OBSERVATIONS and kind_at(path) is OBSERVATION:
            yield from _observation_triples(view, path, key, text)
            continue
        links = links_in(text) if path.endswith(MARKDOWN) else ()
        for link in links:
            if link.target:
                yield Triple(path, key, _resolve_target(view, path, link))
        if text and not links and key in LINEAGE:
            yield Triple(path, key, _resolve_target(view, path, kept_link("field", text.partition("#")[0])))


def _observation_triples(view: View, path: str, key: str, text: str) -> Iterator[Triple]:
    goal = f"session:{text}" if key == "session" else resolve(view.all_names, text, path).path
    if text and goal:
        yield Triple(path, _OF_OBSERVATIONS[key], goal)


def _resolve_target(view: View, path: str, link: Link) -> str:
    meant = resolve_link(view.all_names, link, path).path
    if meant is None and link.kind in PATH_KINDS:
        meant = file_beside(view, path, link.target)
    return meant or link.target


def _citation_triples(view: View, within: str) -> Iterator[Triple]:
    with Workspace.of(view.vault) as workspace:
        for path, cited, in_link in _rows_below(view, within, "citations", "x.path, x.in_link"):
            citation = Citation(cited, in_link=bool(in_link))
            yield Triple(path, CITES, path_of(workspace, view.in_workspace(path), citation) or cited)


def _tag_triples(view: View, within: str) -> Iterator[Triple]:
    names = {tag_key(name): name for name, _ in view.tags()}
    rows = _rows_below(view, within, "tags", "x.key")
    return (Triple(path, TAGGED, f"#{names[key]}") for path, key in rows)
