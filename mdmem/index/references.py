"""References: everything that memories point at, and whether it is still there and still what it was."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mdmem.index.record import kept_citation, tag_key
from mdmem.index.reference import (
    BLOCK,
    CODE,
    FILE,
    HEADING,
    LINES,
    NOTE,
    SYMBOL,
    TAG,
    TYPES,
    URL,
    Backlink,
    Occurrence,
    Place,
    shown_lines,
)
from mdmem.index.resolve import NOTHING, PATH_KINDS, Names, Resolution, place_of, resolve
from mdmem.index.state import AMBIGUOUS, DANGLING, MOVED, OK
from mdmem.text import anchor
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from mdmem.index.citations import Judgement
    from mdmem.index.view import Anchors, View
    from mdmem.index.workspace import Workspace
    from mdmem.text.inline import Citation

_FEW = 20
_REMEMBERED = 1 << 16


def backlinks(view: View, path: str) -> tuple[Backlink, ...]:
    """The links to the memory at `path`, in the order of path and line."""
    names = view.all_names
    query = (
        "SELECT d.path, k.line, k.kind, k.target, k.anchor, k.alias"
        " FROM links AS k JOIN documents AS d ON d.id = k.document"
        " WHERE {inside} AND k.key = ? ORDER BY d.path, k.line, k.n"
    )
    found = []
    for key in view.keys_of(path):
        for source, line, kind, target, anchor_, alias in view.rows(query, (key,)):
            inside = view.inside(source)
            meant = resolve(names, target, inside, as_path=kind in PATH_KINDS) if target else NOTHING
            if path in meant.candidates:
                found.append(Backlink(inside, line, kind, anchor_, alias, meant.ambiguous))
    return tuple(sorted(found))


def occurrences(
    view: View, *, types: Collection[str] = (), paths: Collection[str] | None = None
) -> Iterator[Occurrence]:
    """Every reference at every place, by kind of reference; within one, in the order of path and line."""
    wanted = frozenset(types or TYPES)
    if wanted & {NOTE, HEADING, BLOCK, FILE}:
        yield from (each for each in _links(view, paths) if each.type in wanted)
    if wanted.intersection(CODE):
        yield from (each for each in _citations(view, paths) if each.type in wanted)
    if TAG in wanted:
        names = {tag_key(name): f"#{name}" for name, _ in view.tags()}
        for path, day, line, name, key in _rows(view, "tags", "x.line, x.name, x.key", paths):
            yield Occurrence(TAG, names[key], Place(path, line, OK), day, f"#{name}")
    if URL in wanted:
        for path, day, line, url in _rows(view, "urls", "x.line, x.url", paths):
            yield Occurrence(URL, url, Place(path, line, OK), day, url)


def _rows(view: View, table: str, columns: str, paths: Collection[str] | None) -> Iterator[tuple[Any, ...]]:
    """The rows of a part of each document, with its path and day in front."""
    query = (
        f"SELECT d.path, d.day, {columns} FROM {table} AS x JOIN documents AS d ON d.id = x.document"  # noqa: S608
        " WHERE {inside}"
    )
    if paths is None:
        found = view.rows(f"{query} ORDER BY d.path, x.n")
    else:
        query += " AND d.path = ? ORDER BY x.n"
        found = [row for path in sorted(paths) for row in view.rows(query, (view.outside(path),))]
    return ((view.inside(path), *rest) for path, *rest in found)


def _links(view: View, paths: Collection[str] | None) -> Iterator[Occurrence]:
    names = view.all_names if paths is None or len(paths) > _FEW else view
    resolved = lru_cache(maxsize=_REMEMBERED)(_resolver(names))
    headings = lru_cache(maxsize=_REMEMBERED)(view.anchors)
    for path, day, line, kind, target, mark in _rows(
        view, "links", "x.line, x.kind, x.target, x.anchor", paths
    ):
        folder = path.rpartition("/")[0]
        meant = (
            resolved(target, f"{folder}/" if folder else "", kind in PATH_KINDS) if target else _self(path)
        )
        yield _link(view, path, line, day, kind, target, mark, meant, headings)


def _link(
    view: View,
    path: str,
    line: int,
    day: str,
    kind: str,
    target: str,
    mark: str,
    meant: Resolution,
    headings: Callable[[str], Anchors],
) -> Occurrence:
    written = f"{target}#{mark}" if mark else target
    type_ = _type_of(mark)
    if meant.path is None:
        file = None
        if kind in PATH_KINDS or kind == "field":
            file = (file_beside if kind in PATH_KINDS else file_named)(view, path, target)
        if file is not None:
            return Occurrence(FILE, file, Place(path, line, OK), day, written)
        place = Place(path, line, DANGLING, f"there is no memory {target!r}")
        return Occurrence(type_, written, place, day, written)
    if meant.rule == "attachment":
        return Occurrence(FILE, meant.path, Place(path, line, OK), day, written)
    goal = f"{meant.path}#{mark}" if mark else meant.path
    if mark and meant.path.endswith(".md"):
        state, detail = _anchored(headings(meant.path), mark, meant.path)
        if state != OK:
            return Occurrence(type_, goal, Place(path, line, state, detail), day, written)
    if meant.ambiguous:
        others = ", ".join(meant.candidates[1:4])
        detail = f"it may also mean {others}"
        return Occurrence(type_, goal, Place(path, line, AMBIGUOUS, detail), day, written)
    return Occurrence(type_, goal, Place(path, line, OK), day, written)


def _citations(view: View, paths: Collection[str] | None) -> Iterator[Occurrence]:
    columns = "x.line, x.path, x.first, x.last, x.symbol, x.pin, x.in_link, x.seen"
    rows = list(_rows(view, "citations", columns, paths))
    if not rows:
        return
    from mdmem.index.citations import judge  # noqa: PLC0415 - many memories cite no code
    from mdmem.index.locator import path_of  # noqa: PLC0415 - as above

    with view.workspace() as workspace:
        for path, day, line, cited, first, last, symbol, pin, in_link, seen in rows:
            citation = kept_citation(cited, first, last, symbol, line=line, pin=pin, in_link=bool(in_link))
            citing = view.in_workspace(path)
            found = judge(workspace, citing, citation, seen)
            place = Place(path, line, found.state, found.reason)
            file = path_of(workspace, citing, citation) or cited
            yield _cited(place, day, citation, found, file, workspace)


def file_beside(view: View, path: str, target: str) -> str | None:
    """The file of the workspace that a Markdown destination in a memory means, where it is no memory.

    Nothing in the vault is meant so: the namespace has its own links, and around it is a wall.
    """
    place = place_of(target, view.in_workspace(path))
    file = os.path.join(view.vault.workspace, place or "")
    if not place or not os.path.exists(file):
        return None
    return None if is_under(os.path.realpath(file), os.path.realpath(view.vault.root)) else place


def file_named(view: View, path: str, target: str) -> str | None:
    """The file of the workspace that a field of a memory names, seen from there or from the memory."""
    return file_beside(view, path, f"/{target}") or file_beside(view, path, target)


def _resolver(names: Names) -> Callable[[str, str, bool], Resolution]:
    """Resolves a target in any memory of a folder, given with a slash at its end."""
    return lambda target, folder, as_path: resolve(names, target, f"{folder}_", as_path=as_path)


def _self(path: str) -> Resolution:
    return Resolution(path, (path,), "self")


def _type_of(mark: str) -> str:
    if not mark:
        return NOTE
    return BLOCK if mark.startswith("^") else HEADING


def _anchored(anchors: Anchors, mark: str, path: str) -> tuple[str, str]:
    """Whether a memory has what an anchor names: a state, and why."""
    if mark.startswith("^"):
        if mark[1:].casefold() in anchors.blocks:
            return OK, ""
        return DANGLING, f"{path} has no block {mark}"
    found = anchor.match(anchors.headings, mark)
    if found is None:
        return DANGLING, f"{path} has no heading {mark!r}"
    if found.ambiguous:
        lines = ", ".join(str(anchors.headings[index].line) for index in found.indexes)
        return AMBIGUOUS, f"{path} has that heading in the lines {lines}"
    return OK, ""


def _cited(
    place: Place, day: str, citation: Citation, found: Judgement, path: str, workspace: Workspace
) -> Occurrence:
    """A citation of the file `path` of the workspace."""
    type_, locator, now = FILE, "", ""
    if citation.symbol:
        type_, locator = _symbol_type(workspace, found.path, citation.symbol), f"#{citation.symbol}"
        now = f"#{found.symbol or citation.symbol}"
    elif citation.first is not None:
        type_, locator = LINES, shown_lines(citation.first, citation.last)
        now = shown_lines(found.first, found.last)
    if found.state == MOVED:
        place = place._replace(detail=f"moved to {found.path}{now}")
    return Occurrence(type_, f"{path}{locator}", place, day, f"{citation.path}{locator}")


def _symbol_type(workspace: Workspace, path: str, symbol: str) -> str:
    from mdmem.index.source import Source  # noqa: PLC0415 - many memories cite no code

    current = workspace.current(path)
    defined = current.symbols.named(symbol) if isinstance(current, Source) else ()
    return defined[0].kind if defined else SYMBOL
