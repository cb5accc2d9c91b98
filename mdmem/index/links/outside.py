"""Files that are no memories, in the vault or beside it: how what points at them follows when they move."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from mdmem.document import relink
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import TextEdit
from mdmem.document.text.tokens import first_of
from mdmem.errors import CANNOT_READ, EditRefused, plural
from mdmem.index.code.citations import keep_stale, path_of, spell_path
from mdmem.index.code.cited_path import candidates
from mdmem.index.code.workspace import Workspace
from mdmem.index.links import move
from mdmem.index.links.dialect import SITE, find_site, list_roots
from mdmem.index.links.move import Known
from mdmem.index.links.references import file_beside, file_named
from mdmem.index.links.resolve import PATH_KINDS, as_written, kept_link, place_of, resolve_link
from mdmem.vault.paths import is_under, join, relative
from mdmem.vault.plan import Change, EditPlan, rewritten

if TYPE_CHECKING:
    from mdmem.document.markdown.inline import Link
    from mdmem.index.view import View

_NAMED = 4  # of what moves, for each canvas


def move_files(
    view: View, moves: Mapping[str, str], files: Mapping[str, str], folders: Mapping[str, str]
) -> EditPlan:
    """Return the plan that moves memories, and lets whatever points at them or at other files follow.

    Args:
        view: which memories; in an editor, with the texts that are open.
        moves, folders: memories, attachments and folders, as `mdmem.index.links.move.move`.
        files: files and folders that somebody moves: old path to new path, both relative to the workspace.

    Raises:
        As `mdmem.index.links.move.move`.
    """
    known, left_out = move.known(view), list[str]()
    plan = move.move(known, moves, folders) if moves else EditPlan(changes=())
    follow = _follow_files(view, known, files, moves, left_out) if files else ()
    if unread := len(view.problems()):
        left_out.append(f"the links of {plural(unread, 'file')} that cannot be read: `mdmem check` says why")
    left_out += [*_list_canvases(view, known, moves), *_list_configs(view, moves)]
    edits: dict[str, dict[int, TextEdit]] = {}
    for change in (*plan.changes, *follow):
        edits.setdefault(change.path, {}).update((edit.start, edit) for edit in change.edits)
    changes = []
    for change in {each.path: each for each in (*follow, *plan.changes)}.values():
        text = change.before.text if change.before else ""
        made = sorted(edit for edit in edits[change.path].values() if text[edit.start : edit.end] != edit.new)
        if made or change.move_to:
            changes.append(change._replace(edits=tuple(made)))
    return keep_stale(view, plan._replace(changes=tuple(changes), left_out=(*plan.left_out, *left_out)))


def _list_canvases(view: View, known: Known, moves: Mapping[str, str]) -> Iterator[str]:
    """Say which canvases of Obsidian name what moves: none of them is changed."""
    if not any("Obsidian" in find_site(view.layout, path).tools for path in moves):
        return
    after = move.move_names(view, moves, known.suffixes)
    for path in sorted(each for each in view.vault.other_files() if each.endswith(".canvas")):
        lost = dict[str, None]()
        for link in _read_canvas(view, path):
            was = resolve_link(view, link, path).path or ""
            if was in moves and resolve_link(after, link, moves.get(path, path)).path != moves[was]:
                lost[f"{was} is {moves[was]} now"] = None
        if lost:
            yield f"{path}: a canvas is not changed: {first_of([*lost], _NAMED)}: correct it in Obsidian"


def _list_configs(view: View, moves: Mapping[str, str]) -> Iterator[str]:
    """Say which tools name in their configs what moves, as a menu does: no config is changed."""
    named: dict[tuple[str, ...], list[str]] = {}
    for path in moves:
        site, file = find_site(view.layout, path), view.layout.file_of(path)
        folders = dict.fromkeys(folder for _, folder in site.roots if is_under(file, folder))
        for name in (relative(file, folder) for folder in folders):
            if name in site.config and re.search(
                rf"(?<![\w-])(?<!\w/){re.escape(name)}(?![\w-])", site.config
            ):
                named.setdefault(site.tools, []).append(name)
    for tools, names in named.items():
        named_so = first_of([*dict.fromkeys(names)], _NAMED)
        yield f"the config of {' and '.join(tools)} is not changed: it names {named_so}"


def _read_canvas(view: View, path: str) -> Iterator[Link]:
    """Yield the links of a canvas: to the files on its cards, and those in the texts on them."""
    with suppress(*CANNOT_READ, ValueError, RecursionError):
        content = view.vault.store.read(view.outside(path), view.vault.config.limits.max_bytes)
        canvas = json.loads(content.data) if content else None
        nodes = canvas.get("nodes") if isinstance(canvas, dict) else None
        for node in nodes if isinstance(nodes, list) else ():
            file, text = (node.get("file"), node.get("text")) if isinstance(node, dict) else (None, None)
            if isinstance(file, str) and file:
                yield kept_link("markdown", f"/{file}")
            if isinstance(text, str):
                yield from parse_text(f"{path}.md", text).links


def _follow_files(
    view: View, known: Known, moves: Mapping[str, str], places: Mapping[str, str], left_out: list[str]
) -> tuple[Change, ...]:
    """Return the changes of memories that point at files or folders of the workspace which are to move."""
    # An edit may leave what it stands for as it is: where the memory moves as well, no other one is needed.
    with Workspace.of(view.vault, view.unsaved) as workspace:

        def edits_of(path: str, document: Document) -> list[TextEdit]:
            here, there = view.in_workspace(path), view.in_workspace(places.get(path, path))
            edits = {edit.start: edit for edit in _follow_links(view, path, there, document, moves, left_out)}
            for citation in document.citations:
                cited = path_of(workspace, here, citation)
                new = _new_place(cited, moves) if cited else None
                ways = list(_spell_rooted(view, path, citation.path, moves)) if citation.in_link else []
                if cited and new and not ways:
                    is_name = not citation.in_link and citation.path == posixpath.basename(new)
                    ways = [citation.path if is_name else spell_path(citation, here, there, cited, new)]
                for way in ways[:1]:
                    edits.setdefault(citation.span.start, relink.repath(citation, document.text, way))
            return sorted(edits.values())

        return tuple(rewritten(known.read, _list_pointing(view, moves), edits_of, left_out))


def _spell_rooted(view: View, path: str, cited: str, moves: Mapping[str, str]) -> Iterator[str]:
    site = find_site(view.layout, path)
    for start, folder in list_roots(site, view.layout, path) if SITE in site.traits else ():
        new = _new_place(join(folder, cited[len(start) :]), moves) if cited.startswith(start) else None
        if new and is_under(new, folder):
            yield start + relative(new, folder)


def _new_place(place: str, moves: Mapping[str, str]) -> str | None:
    old = next((old for old in moves if is_under(place, old)), None)
    return moves[old] + place[len(old) :] if old is not None else None


def _list_pointing(view: View, moves: Mapping[str, str]) -> set[str]:
    names = {posixpath.basename(old) for old in moves}
    root = posixpath.relpath(posixpath.join(view.vault.root, view.base), view.vault.workspace)
    folders = [posixpath.relpath(old, root) for old in moves if is_under(old, root)]
    mounts = view.vault.config.mounts

    def may_name(path: str, text: str) -> bool:
        # To find out what a text names takes long; one that holds none of these names seldom does.
        return (
            any(name in text for name in names)
            or "%" in text
            or not text.isascii()
            or any(is_under(path, folder) for folder in folders)
            or view.outside(path) in mounts
        )

    found = {
        path
        for path, cited, in_link in view.cited_paths()
        if cited in names
        or (may_name(path, cited) and any(_spell_rooted(view, path, cited, moves)))
        or (
            may_name(path, cited)
            and any(
                is_under(place, old)
                for place in candidates(view.in_workspace(path), cited, in_link=bool(in_link))
                for old in moves
            )
        )
    }
    for path, kind, target in view.outward_links():
        if not may_name(path, target):
            continue
        starts = (target, f"/{target}") if kind == "field" else (target,)
        places = (place_of(start, view.in_workspace(path)) for start in starts)
        if any(place and is_under(place, old) for place in places for old in moves):
            found.add(path)
    return found


def _follow_links(
    view: View, path: str, there: str, document: Document, moves: Mapping[str, str], left_out: list[str]
) -> Iterator[TextEdit]:
    for link in document.links:
        if link.kind not in PATH_KINDS and link.kind != "field":
            continue
        if not link.target or resolve_link(view, link, path).path is not None:
            continue
        place = (file_beside if link.kind in PATH_KINDS else file_named)(view, path, link.target)
        new = _new_place(place, moves) if place else None
        if place and new:
            try:
                yield relink.retarget(link, document.text, _spell_place(link, there, place, new))
            except EditRefused as error:
                left_out.append(f"{path}:{link.line}: {error.reason}: it stays as it is")


def _spell_place(link: Link, there: str, old: str, new: str) -> str:
    if link.target.startswith("/"):
        return f"/{new}"
    if link.kind == "field" and place_of(f"/{link.target}", "") == old:
        return new
    return as_written(link, posixpath.relpath(new, posixpath.dirname(there) or "."))
