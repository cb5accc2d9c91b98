"""Moving memories: one plan that moves them and rewrites every link that would mean something else.

A link is asked what it means before the move, and what it would mean after it, as it is written. Where the
two differ, it is written again, in its own style. One that could mean several memories goes on to mean the
one that readers took, and a warning says so. Only memories that hold a link with a key of a memory that
moves are read, so the cost does not grow with the vault.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Diagnostic
from mdmem.document import relink
from mdmem.document.document import Document, without_suffix
from mdmem.document.edit import TextEdit
from mdmem.document.markdown import citation as text_citation
from mdmem.document.text.tokens import first_of
from mdmem.document.tree import Flaw
from mdmem.errors import AlreadyExists, DocumentRefused, EditRefused
from mdmem.index.database import Name, key_of, keys_of, names_of, stem_keys
from mdmem.index.links import resolve
from mdmem.index.links.dialect import PAGES, SITE, find_site, list_page_names
from mdmem.index.links.names import ChangedNames, Names
from mdmem.index.links.resolve import (
    NOTHING,
    PATH_KINDS,
    QUIET_KINDS,
    Resolution,
    has_key,
    is_path,
    resolve_link,
    turn_links,
)
from mdmem.vault.paths import check_folder, check_memory, is_under, nfc
from mdmem.vault.plan import Change, EditPlan, rewritten

if TYPE_CHECKING:
    from mdmem.document.markdown.inline import Citation, Link
    from mdmem.index.view import View

# What a path begins with that is none: the home folder, and names that a tool gives to folders of its own.
_ALIASES = "~@$"
_NAMED = 4  # of the memories that a link could mean
Read = Callable[[str], Document]


class Known(NamedTuple):
    """What a move has to know of the memories around it; every path is relative to the base namespace.

    Attributes:
        sources: the memories that hold a link with one of these keys (`key_of` its target).
        stands: whether a file stands at a path, seen from the namespace; `../src/app.py` is beside it.
        suffixes: how the name of a memory ends.
        read_any: reads as `read` does, and also reads files that are no valid memories; see `Vault.read`.
    """

    names: Names
    sources: Callable[[Collection[str]], Iterable[str]]
    read: Read
    stands: Callable[[str], bool]
    suffixes: tuple[str, ...]
    read_any: Read | None = None


def known(view: View) -> Known:
    """Return what a move has to know, as the index says it."""
    read_any = partial(view.read, unreadable=True)
    return Known(view, view.sources, view.read, view.stands, view.vault.suffixes, read_any)


def move_names(
    names: Names,
    moves: Mapping[str, str],
    suffixes: tuple[str, ...],
    places: Iterable[str] = (),
    documents: Mapping[str, Document] | None = None,
) -> ChangedNames:
    """Return the names as if these `moves` were done, and as if each stood at these `places` as well.

    What ends in one of `suffixes` is a memory. Names that `documents` had by their old paths change.
    """
    added: dict[Name, list[str]] = {}
    stand = {*moves.values(), *places}
    for new in sorted(stand):
        for key in stem_keys(new):
            kind = "stem" if new.endswith(suffixes) else "file"
            added.setdefault((kind, key), []).append(new)
    read = documents or {}
    for old, document in read.items():
        with suppress(DocumentRefused):  # its links say so
            for kind, key in names_of(moves[old], document.fields, document.text):
                if kind != "stem":
                    added.setdefault((kind, key), []).append(moves[old])
    return ChangedNames(names, gone=read, moved=moves, added=added, places=stand)


def move(known: Known, moves: Mapping[str, str], folders: Mapping[str, str] | None = None) -> EditPlan:
    """Return the plan that moves memories, old path to new path, and keeps what every link means.

    A link that was ambiguous is written again where its winner would become another one, and `warnings` has
    it. What could not be looked into, or cannot be written, is in `left_out`.

    Args:
        moves: memories, and attachments, which somebody else moves: of these only the links follow.
        folders: folders that move whole, for links that lead to them or to a folder in them.

    Raises:
        AlreadyExists: a memory stands at a new path, or two would.
        PathRefused: a path that cannot be a memory's.
        MemoryNotFound, DocumentRefused, StorageFailed: a memory that is to move cannot be read.
    """
    checked = (_check_move(old, new, known.suffixes) for old, new in moves.items())
    moves = {old: new for old, new in checked if old != new}
    _refuse_standing(known, moves)
    documents = {old: (known.read_any or known.read)(old) for old in moves if old.endswith(known.suffixes)}
    names = ChangedNames(known.names)
    places = {**_list_folders(moves, folders or {}), **moves}
    shift = Shift(known, names, move_names(names, places, known.suffixes, (), documents), places)
    keys = {key for old, document in documents.items() for key in shift.keys(document, old)}
    keys |= {key for pair in places.items() for path in pair for key in stem_keys(path)}
    keys |= {key_of(way) for way in ("/", "./", "../")} if folders else set()  # which say no name
    changes = []
    for old, document in documents.items():
        new = moves[old]
        # Seen from the same folder, only what moves is elsewhere.
        only = keys if old.rpartition("/")[0] == new.rpartition("/")[0] else None
        edits = shift.edits(document, old, new, only)
        changes.append(Change(path=old, before=document, edits=tuple(edits), move_to=new))
    changes += shift.others(keys, moves)
    return EditPlan(
        changes=tuple(changes),
        message=_describe_moves("move", moves),
        left_out=tuple(shift.left_out),
        warnings=tuple(shift.warnings),
    )


def _list_folders(moves: Iterable[str], roots: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for path in moves:
        for old, new in roots.items():
            folder = path.rpartition("/")[0]
            while is_under(folder, old) and folder not in found:
                found[folder] = new + folder[len(old) :]
                folder = folder.rpartition("/")[0]
    return found


def repair(known: Known, moved: Mapping[str, str]) -> EditPlan:
    """Return the plan that fixes links after memories were moved by other means, old path to new path.

    Rewritten are links that lead nowhere now, or are ambiguous now, and were not before. Those that lead
    elsewhere now are reported (`left_out`): whoever moved the memory may have meant it. A move no longer
    counts when its new path is gone, or its old path is taken again.
    """
    repairs = Repairs(known, moved)
    shift = repairs.shift

    def edits(path: str, document: Document) -> list[TextEdit]:
        return sorted(repairs.find_edits(path, document)[1].values())

    changes = rewritten(known.read, repairs.came_from, edits, shift.left_out)
    changes += shift.others(repairs.keys, repairs.came_from)
    message = _describe_moves("fix links to", repairs.moved)
    left_out = tuple(dict.fromkeys(shift.left_out))
    return EditPlan(changes=tuple(changes), message=message, left_out=left_out)


class Repairs:
    """What `repair` does with each link, also for those who say it beforehand.

    Attributes:
        moved: the moves that count, old path to new path.
        came_from: the old paths of each memory that was moved.
        keys: what a link to one of them has as its key.
        shift: the change of names that the moves are.
    """

    def __init__(self, known: Known, moved: Mapping[str, str]) -> None:
        names = ChangedNames(known.names)
        self.moved = {
            old: new for old, new in moved.items() if _is_memory(names, new) and not _is_memory(names, old)
        }
        self.came_from: dict[str, list[str]] = {}
        for old, new in self.moved.items():
            self.came_from.setdefault(new, []).append(old)
        self.keys = {key for path in (*self.moved, *self.came_from) for key in stem_keys(path)}
        # One that moved several times had several names, and its own links may be from any of them.
        back = {new: olds[0] for new, olds in self.came_from.items()}
        self._before = move_names(names, back, known.suffixes, self.moved)
        self.shift = Shift(known, self._before, names, self.moved, is_done=True)

    def find_edits(self, path: str, document: Document) -> tuple[str, dict[int, TextEdit]]:
        """Return where the memory at `path` was when its links were right, and the edits that fix them.

        Each edit is named by the place where the target of its link begins.
        """
        if path not in self.came_from:
            return path, self.shift.find_edits(document, path, path, self.keys)
        for old in self.came_from[path]:
            if edits := self.shift.find_edits(document, old, path):
                return old, edits
        return path, {}

    def find_targets(self, document: Document) -> dict[int, tuple[str, bool]]:
        """Return where each link leads that is fixed, by the place of its target, and whether that moved."""
        old, edits = self.find_edits(document.path, document)
        targets = {}
        for link in turn_links(self._before, document, old) if edits else ():
            was = resolve_link(self._before, link, old).path
            if link.target_span.start in edits and was is not None:
                targets[link.target_span.start] = self.moved.get(was, was), was in self.moved
        return targets


def _describe_moves(action: str, moves: Mapping[str, str]) -> str:
    if len(moves) == 1:
        old, new = next(iter(moves.items()))
        return f"{action} {old} to {new}" if action == "move" else f"{action} {new}"
    return f"{action} {len(moves)} memories"


def _check_move(old: str, new: str, suffixes: tuple[str, ...]) -> tuple[str, str]:
    """Return the old and the new path of a memory, which stays one, or of an attachment."""
    if old.endswith(suffixes):
        usual = next(filter(old.endswith, suffixes))
        return check_memory(old, suffixes), check_memory(new, suffixes, usual=usual)
    return check_folder(old), (check_memory if new.endswith(suffixes) else check_folder)(new)


def _is_memory(names: Names, path: str) -> bool:
    return path in names.named("stem", key_of(path))


def _refuse_standing(known: Known, moves: Mapping[str, str]) -> None:
    names, taken = known.names, set[str]()
    for new in moves.values():
        is_taken = _is_memory(names, new) if new.endswith(known.suffixes) else names.exists(new)
        is_taken = is_taken and not any(old.startswith(f"{new}/") for old in moves)
        if new in taken or is_taken:
            raise AlreadyExists(path=new, remedy="give another path, or move what stands there away first")
        taken.add(new)


class Shift:
    """A change of names, and the edits that keep what links mean.

    Attributes:
        left_out: what could not be decided or looked into, in words.
        warnings: the links that could mean several memories, and are written so that they mean one.
    """

    def __init__(
        self,
        known: Known,
        before: Names,
        after: Names,
        moves: Mapping[str, str],
        *,
        ids: Mapping[str, str] | None = None,
        is_done: bool = False,
    ) -> None:
        """Compare the names `before` with those `after`.

        Args:
            ids: which memories get which new id; a link by the old one will use it.
            is_done: the change has happened already.
        """
        self.left_out: list[str] = []
        self.warnings: list[Diagnostic] = []
        self._known = known
        self._before = before
        self._after = after
        self._moves = moves
        self._ids = ids or {}
        self._is_done = is_done
        self._layout = after.layout

    def keys(self, document: Document, path: str) -> list[str]:
        """Return every key that a link to a memory may have."""
        site = find_site(self._layout, path)
        pages = list_page_names(site, path) if PAGES in site.traits else ()
        try:
            return [*keys_of(path, document.fields, document.text), *map(key_of, pages)]
        except DocumentRefused:  # its links say so
            return [*stem_keys(path)]

    def others(self, keys: Collection[str], leave: Collection[str]) -> list[Change]:
        """Change the memories that hold a link with one of these keys, except those in `leave`."""
        paths = set(self._known.sources(keys)) - set(leave)
        return rewritten(
            self._known.read,
            paths,
            lambda path, document: self.edits(document, path, path, keys),
            self.left_out,
        )

    def edits(
        self, document: Document, here: str, there: str, keys: Collection[str] | None = None
    ) -> list[TextEdit]:
        """Return the edits of one memory, which was at `here` before and is at `there` after.

        With `keys`, only of links with one of them. A link that cannot say what it has to stays as it is.
        """
        return sorted(self.find_edits(document, here, there, keys).values())

    def find_edits(
        self, document: Document, here: str, there: str, keys: Collection[str] | None = None
    ) -> dict[int, TextEdit]:
        """Return the same edits, each by the place where the target of its link begins."""
        try:
            links, citations = turn_links(self._before, document, here), document.citations
        except DocumentRefused as error:
            self.left_out.append(error.message)
            return {}
        edits: dict[int, TextEdit] = {}
        # Links that say the same have to say the same.
        told: dict[tuple[str, str, str], tuple[str, Resolution]] = {}
        for link in links:
            # References share the target of their definition.
            if link.target_span.start in edits or (keys is not None and not has_key(link, keys)):
                continue
            said = link.kind, link.target, link.anchor if link.kind != "wikilink" else link.alias
            found = told.get(said) if link.target else ("", NOTHING)
            if found is None:
                left = len(self.left_out)
                was = resolve_link(self._before, link, here)
                found = self._new_target(link, was, here, there), was
                if len(self.left_out) == left:  # else each of them is named
                    told[said] = found
            target, was = found
            if target and (edit := self._retarget_link(document, link, target, there, was)):
                edits[link.target_span.start] = edit
        if here.rpartition("/")[0] != there.rpartition("/")[0]:
            for citation in citations:
                path = self._new_cited_path(citation, here, there)
                if path:
                    edits.setdefault(citation.span.start, relink.repath(citation, document.text, path))
        return edits

    def _retarget_link(
        self, document: Document, link: Link, target: str, there: str, was: Resolution
    ) -> TextEdit | None:
        try:
            edit = relink.retarget(link, document.text, target)
        except EditRefused as error:
            self.left_out.append(f"{there}:{link.line}: {error.reason}: it stays as it is")
            return None
        if was.ambiguous:
            named = first_of(was.candidates, _NAMED)
            message = f"{link.target!r} could mean {named}: it led to {was.path}, and says {target!r} now"
            hint = "name the other one where that was meant"
            flaw = Flaw(link.target_span, "ambiguous-link", message, hint, link.target, "warning")
            self.warnings.append(document.diagnose(flaw)._replace(path=there))
        return edit

    def _new_target(self, link: Link, was: Resolution, here: str, there: str) -> str:
        now = resolve_link(self._after, link, there)
        if was.path is None:
            return self._new_astray_target(link, here, there)
        wanted = self._moves.get(was.path, was.path)
        is_relative = is_path(link) and not link.target.startswith("/")
        ends = [(self._find_start(link, here), self._find_start(link, there))]
        if link.kind in PATH_KINDS and SITE in find_site(self._layout, here).traits:
            ends.append((f"{resolve.page_of(here)}/_", f"{resolve.page_of(there)}/_"))
        is_far = is_relative and not self._is_done
        is_detour = is_far and any(resolve.is_detour(link.target, *each) for each in ends)
        # On disk, a link that leads there only by its path in the vault leads nowhere.
        is_read_alike = now.is_from_disk or not was.is_from_disk
        is_kept = now.path == wanted and (was.ambiguous or not now.ambiguous)
        # The old case would still be found here, but not on every disk, nor by other programs.
        is_recased = wanted != was.path and (
            wanted.casefold() == was.path.casefold()
            or (_has_name(link, was.path) and not _has_name(link, wanted))
        )
        is_named = was.rule in {"path", "suffix", "attachment"}
        is_lost = is_far and resolve.is_way(self._before, link, was.path, here)
        is_lost = is_lost and not resolve.is_way(self._after, link, wanted, there)
        if is_kept and is_read_alike and not (is_detour or is_lost) and not (is_recased and is_named):
            return ""
        # After the change, nobody knows which of several was meant before; and an id is given to one only.
        is_unclear = was.ambiguous and (self._is_done or bool(self._ids))
        if is_unclear or (self._is_done and now.path is not None and now.path != wanted):
            self._leave_link(link, there, was, now)
            return ""
        if was.rule == "id" and wanted in self._ids:
            return self._ids[wanted]
        # Where nothing of it was mounted, both readings were the same.
        if is_relative and (detour := self._spell_detour(link, here, there, was.path, wanted)):
            return detour
        is_from_disk = was.is_from_disk or self._layout.mounted.keys().isdisjoint((here, was.path))
        new = resolve.spell(
            self._after, link, wanted, there, was=was.path, here=here, is_from_disk=is_from_disk
        )
        if was.ambiguous and not resolve.means(
            resolve_link(self._after, link._replace(target=new), there), wanted
        ):
            self._leave_link(link, there, was, now)
            new = link.target
        return "" if new == link.target else new

    def _spell_detour(self, link: Link, here: str, there: str, old: str, new: str) -> str:
        """Return a path that goes as far up as the link, where that is further than needed; else empty."""
        bare, folder = link.target.removeprefix("./").rstrip("/"), there.split("/")[:-1]
        ups, mounted = bare.count("../"), self._layout.mounted.keys()
        is_shortest = without_suffix(resolve.route(old, here)) == without_suffix(bare)
        if without_suffix(resolve.place_from(bare, here)) != without_suffix(old):  # but by an address
            return ""
        if is_shortest or not 0 < ups <= len(folder) or not mounted.isdisjoint((here, there, old, new)):
            return ""
        top = "".join(f"{part}/" for part in folder[: len(folder) - ups])
        if not new.startswith(top):
            return ""
        way = "../" * ups + new[len(top) :]
        way = way if link.target.endswith(old[len(without_suffix(old)) :]) else without_suffix(way)
        found = resolve_link(self._after, link._replace(target=way), there)
        if not resolve.means(found, new):
            return ""
        return f"./{way}" if link.target.startswith("./") else way

    def _find_start(self, link: Link, path: str) -> str:
        return self._layout.file_of(path) if link.kind in PATH_KINDS else path

    def _leave_link(self, link: Link, there: str, was: Resolution, now: Resolution) -> None:
        what = f"{there}:{link.line}: the link to {link.target!r}"
        leads = f"it leads to {now.path} now" if now.path else "it leads nowhere now"
        if was.ambiguous:
            self.left_out.append(
                f"{what} stays as it is, as it could mean {' or '.join(was.candidates)}: {leads}"
            )
        else:
            self.left_out.append(f"{what} stays as it is: it meant {was.path}, {leads}")

    def _new_astray_target(self, link: Link, here: str, there: str) -> str:
        is_relative = is_path(link) and not link.target.startswith("/")
        here, there = self._find_start(link, here), self._find_start(link, there)
        if self._is_done or not is_relative or link.target[0] in _ALIASES:
            return ""
        before = resolve.place_from(link.target, here)
        place = self._move_along(before, on_disk=link.kind in PATH_KINDS)
        if place == resolve.place_from(link.target, there) and (
            place != before or _leads_on(link.target, here, there)
        ):
            return ""
        is_placeholder = link.kind in QUIET_KINDS or (
            "/" not in link.target and not text_citation.is_memory(link.target)
        )
        if is_placeholder and not self._stands(place):
            return ""
        return resolve.as_written(link, resolve.route(place, there))

    def _move_along(self, place: str, *, on_disk: bool) -> str:
        path = folder = (self._layout.path_of(place) if on_disk else place) or ""
        while folder and folder not in self._moves:
            folder = folder.rpartition("/")[0]
        moved = self._moves[folder] + path[len(folder) :] if folder else ""
        return (self._layout.file_of(moved) if on_disk else moved) if folder else place

    def _new_cited_path(self, citation: Citation, here: str, there: str) -> str:
        if not citation.in_link or citation.path.startswith("/"):
            return ""
        here, there = self._layout.file_of(here), self._layout.file_of(there)
        place = resolve.place_from(citation.path, here)
        if _leads_on(citation.path, here, there) or not self._stands(place):
            return ""
        if self._is_done and self._stands(resolve.place_from(citation.path, there)):
            return ""
        way = resolve.route(place, there)
        return f"./{way}" if citation.path.startswith("./") else way

    def _stands(self, file: str) -> bool:
        return self._known.stands(posixpath.relpath(file, self._layout.folder or "."))


def _has_name(link: Link, path: str) -> bool:
    name = path.rpartition("/")[2]
    return nfc(link.target).rpartition("/")[2] in {name, without_suffix(name)}


def _leads_on(path: str, here: str, there: str) -> bool:
    same = resolve.place_from(path, here) == resolve.place_from(path, there)
    return same and not resolve.is_detour(path, here, there)
