"""Triples: what memories are joined to, as subject, predicate, object."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from mdmem.diagnostic import Span
from mdmem.index.graph import Triple
from mdmem.index.locator import path_of
from mdmem.index.record import kept_citation, tag_key
from mdmem.index.references import file_beside
from mdmem.index.resolve import MARKDOWN, PATH_KINDS, is_path, resolve
from mdmem.index.view import View
from mdmem.text import properties
from mdmem.text.inline import Link
from mdmem.text.lines import Lines
from mdmem.text.tree import Node
from mdmem.vault.paths import is_under

LINKS, EMBEDS, CITES, TAGGED = "links to", "embeds", "cites", "tagged"
# Fields that name memories, as links or plainly: by a path or an id.
_LINEAGE = ("superseded_by", "derived_from")


def triples(view: View, within: str = "") -> tuple[Triple, ...]:
    """What the memories below the folder `within` are joined to, each once, in order.

    Anchors, lines and symbols are left out, and so is what joins a memory to itself.
    """
    found = chain(_links(view, within), _fields(view, within), _citations(view, within), _tags(view, within))
    return tuple(sorted({triple for triple in found if triple.subject != triple.object}))


def _rows(view: View, within: str, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, with the path first: of the memories below `within`."""
    for path, *rest in view.rows(f"{query} WHERE d.path >= ? AND d.path < ?"):
        inside = view.inside(path)
        if is_under(inside, within):
            yield inside, *rest


def _links(view: View, within: str) -> Iterator[Triple]:
    query = (
        "SELECT d.path, k.kind, k.embed, k.target FROM links AS k JOIN documents AS d"
        " ON d.id = k.document AND k.kind != 'field' AND k.target != ''"
    )
    for path, kind, embed, target in _rows(view, within, query):
        yield Triple(path, EMBEDS if embed else LINKS, _goal(view, path, target, as_path=kind in PATH_KINDS))


def _fields(view: View, within: str) -> Iterator[Triple]:
    """The links in fields, and the memories that the fields of lineage name without being links."""
    query = (
        "SELECT d.path, f.key, f.value FROM fields AS f JOIN documents AS d ON d.id = f.document"
        " AND (f.key IN ('superseded_by', 'derived_from') OR instr(f.value, '[[') OR instr(f.value, ']('))"
    )
    for path, key, value in _rows(view, within, query):
        text = "" if value is None else str(value)
        links = _links_in(text) if path.endswith(MARKDOWN) else ()
        for link in links:
            if link.target:
                yield Triple(path, key, _goal(view, path, link.target, as_path=is_path(link)))
        if text and not links and key in _LINEAGE:
            yield Triple(path, key, _goal(view, path, text.partition("#")[0]))


def _links_in(text: str) -> tuple[Link, ...]:
    """The links in the value of a field, as the scanner finds them in a memory."""
    value = Node(value=text, span=Span(0, len(text)), kind="scalar", style="plain")
    return properties.links(text, value, Lines(text))[0]


def _goal(view: View, path: str, target: str, *, as_path: bool = False) -> str:
    """What a target in the memory `path` means; a read takes the likeliest."""
    meant = resolve(view.all_names, target, path, as_path=as_path).path
    if meant is None and as_path:
        meant = file_beside(view, path, target)
    return meant or target


def _citations(view: View, within: str) -> Iterator[Triple]:
    query = "SELECT d.path, c.path, c.in_link FROM citations AS c JOIN documents AS d ON d.id = c.document"
    with view.workspace() as workspace:
        for path, cited, in_link in _rows(view, within, query):
            citation = kept_citation(cited, in_link=bool(in_link))
            yield Triple(path, CITES, path_of(workspace, view.in_workspace(path), citation) or cited)


def _tags(view: View, within: str) -> Iterator[Triple]:
    names = {tag_key(name): name for name, _ in view.tags()}
    query = "SELECT d.path, t.key FROM tags AS t JOIN documents AS d ON d.id = t.document"
    return (Triple(path, TAGGED, f"#{names[key]}") for path, key in _rows(view, within, query))
