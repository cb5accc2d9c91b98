"""Editing: the memories as somebody sees them in an editor, unsaved texts included.

The texts that are open stand over the index (`mdmem.editor.overlay`), and every question is answered by what
stands in them. Nothing is written: a change is an edit plan, and its `before` is the open text.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Diagnostic, Span, about_file
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import TextEdit, between
from mdmem.document.frontmatter import BOM
from mdmem.document.merging.conflict import MergeConflict
from mdmem.document.merging.merge import merge
from mdmem.document.text.diff import Versions, regions
from mdmem.document.text.lines import Lines, line_ends, whole_lines, with_newline
from mdmem.document.tree import LINEAGE
from mdmem.editor import completions, fixes, places
from mdmem.editor.completions import Completions
from mdmem.editor.fixes import Fix
from mdmem.editor.overlay import Memories, Opened, Overlay
from mdmem.editor.places import Element, Goal, Hover, NamedPlaces, OutlineItem, Spot
from mdmem.errors import DocumentRefused, EditRefused, MdmemError, PathRefused
from mdmem.facade.questions.check import check_open, describe_refusal, tell_guests
from mdmem.index.links.references import files_of
from mdmem.index.view import View, link_key
from mdmem.index.watch.watcher import Watcher
from mdmem.vault.folder import find_around
from mdmem.vault.paths import check_memory, is_under
from mdmem.vault.plan import EditPlan

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.index.database import Name

_BEGAN = time.time()
_RETRY_SECONDS = 1.0  # after the index could not be made current
_MERGES = 5  # of an open text; an editor may yet take over any of them
_LEFT = 50  # texts that were closed: whoever renames a file closes it and opens the other


def vault_around(file: str) -> str | None:
    """Return the root of the nearest vault, upward from a file; None without one."""
    return find_around(os.path.dirname(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """What an open text becomes with what is on disk taken over.

    Attributes:
        edits: of the open text; None where a person has to decide.
        lines: where that is in the open text, 1-based.
    """

    edits: tuple[TextEdit, ...] | None
    lines: tuple[int, ...] = ()


class _Buffer(NamedTuple):
    """An open text, and what it was when it was opened or saved last; None where nobody knows."""

    opened: Opened
    base: str | None


class _Merged(NamedTuple):
    """What an open text with this base becomes with what was on disk."""

    base: str | None
    text: str
    disk: str


class _Buffers(dict[str, _Buffer]):
    """What is open at one time, by path, and the overlay of it, once it is asked for; none is added."""

    around: Overlay | None = None


class _Interface(NamedTuple):
    """What others see of an open memory: its names, and what anchors can name in it."""

    names: frozenset[Name] = frozenset()
    anchors: tuple[object, ...] = ()

    @classmethod
    def of(cls, opened: Opened | None) -> _Interface:
        """Return that of an open text; nothing of one that is not a memory, or not open."""
        record = opened.record if opened else None
        if record is None:
            return cls()
        titles = ((path, slug) for _, _, _, path, slug, _ in record.sections)
        blocks = (ident for _, ident, _ in record.blocks)
        names = frozenset((str(kind), str(key)) for kind, key in record.names)
        return cls(names, (*titles, *blocks))


class Editing:
    """The memories of a scope with the texts that are open in an editor.

    One thread calls `open`, `close` and `saved`, in the order of the events; any thread asks questions.
    A text that cannot be a memory has no answers, and one finding that says why.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._vault = memory.vault
        self._buffers = _Buffers()
        # What follows is shared with what was frozen.
        self._lock = threading.Lock()
        self._known = Memories()
        self._interfaces: dict[str, _Interface] = {}
        self._merged: dict[str, deque[_Merged]] = {}
        self._left: dict[str, str | None] = {}
        self._watcher: Watcher | None = None
        self._is_stopped = threading.Event()

    def frozen(self) -> Editing:
        """Return the same with the texts of now, which later changes do not reach."""
        return copy(self)

    # -- what is open --------------------------------------------------------------------------------------

    def open(self, path: str, text: str) -> None:
        """Take a text that was opened, or has changed: all that stands in the editor now."""
        opened = Opened(check_memory(path), text, self._vault.config.limits, self._vault.is_data)
        before, merged = self._buffers.get(path), tuple(self._merged.get(path, ()))
        if before is None:
            base = self._find_base(path, text)
        else:
            known = {each.text: each.disk for each in merged if each.base is before.base}
            base = known.get(text, known.get(before.opened.text, before.base))
        self._buffers = _Buffers({**self._buffers, path: _Buffer(opened, base)})

    def close(self, path: str) -> None:
        """Let the disk count again."""
        self._merged.pop(path, None)
        if buffer := self._buffers.get(path):
            self._left = dict([*self._left.items(), (buffer.opened.text, buffer.base)][-_LEFT:])
        self._buffers = _Buffers({each: buffer for each, buffer in self._buffers.items() if each != path})

    def saved(self, path: str) -> None:
        """Note that what stands in the editor was written to the disk."""
        if buffer := self._buffers.get(path):
            self._buffers = _Buffers({**self._buffers, path: buffer._replace(base=buffer.opened.text)})

    def _find_base(self, path: str, text: str) -> str | None:
        """Return the text from which an opened text was made; None if nothing tells.

        An editor opens the text on disk, or the one that was there until a moment ago. Any other text is
        unsaved work that the editor kept from an earlier run. It was made from the text on disk, unless the
        file has changed since this run began.
        """
        with suppress(MdmemError, FileNotFoundError):
            disk = self._vault.find(path)
            if disk and _as_edited(disk.text, text) != text:
                if text in self._left:
                    return self._left[text]
                known = self._known.outlines.get(path)
                opened = parse_text(path, text, self._vault.config.limits)
                if (known and known.hash == opened.hash) or self._vault.content(opened.hash) is not None:
                    return text
                return disk.text if os.stat(self.file(path)).st_mtime < _BEGAN else None
        return text

    def is_open(self, path: str) -> bool:
        """Return whether a memory is open."""
        return path in self._buffers

    def text(self, path: str) -> str | None:
        """Return an open text as it was given; None for one that is not open."""
        buffer = self._buffers.get(path)
        return buffer.opened.text if buffer else None

    def document(self, path: str) -> Document | None:
        """Return a memory, as it is open or on disk; None where there is none, or the text cannot be one."""
        if buffer := self._buffers.get(path):
            return buffer.opened.document
        with suppress(MdmemError):
            return self._vault.find(path)
        return None

    def lines(self, path: str) -> Lines:
        """Return the line table of a memory, also of an open text that cannot be one."""
        buffer = self._buffers.get(path)
        document = self.document(path)
        return document.lines if document else Lines(buffer.opened.text if buffer else "")

    def file(self, path: str) -> str:
        """Return the absolute path of the file of a memory."""
        return View(self.memory.index, self._vault).file_of(path)

    def path(self, file: str) -> str | None:
        """Return the memory that a file is, whether it is there or not; None for any other file."""
        with suppress(PathRefused):
            path = self.memory.at(file)
            return check_memory(path) if path else None
        return None

    def around(self) -> Overlay:
        """Return the index with the open texts over it, once it is current.

        Raises:
            LockTimeout, StorageFailed: it cannot be made current.
        """
        index = self.memory.index
        self._vault.enter()
        index.sync(texts=False)
        self._known.refresh(View(index, self._vault))
        buffers = self._buffers  # of one moment: another thread may open a text meanwhile
        if buffers.around is None:
            opened = {path: buffer.opened for path, buffer in buffers.items()}
            buffers.around = Overlay(index, self._vault, self._known, opened)
        # Nobody says when a file comes or goes that is no memory.
        buffers.around.forget_names()
        return buffers.around

    # -- what others change --------------------------------------------------------------------------------

    def changed(self) -> tuple[str, ...]:
        """Return what is open and to be checked again, since this was asked last.

        That is what was changed on disk, and what links to a memory that was changed, there or here.
        """
        return self._list_concerned(everything=False, files=())

    def changes(self, progress: Callable[[int, int], None] | None = None) -> Iterator[tuple[str, ...]]:
        """Yield what is open and to be checked again each time that something changes on disk.

        It waits in between, so it is for a thread of its own; and ends when `stop` is called. At first,
        `progress` is told how many of how many files are read.
        """
        index, root = self.memory.index, self._vault.root
        watcher = self._watcher = Watcher(root, mounts=index.vault.mounted("")).start()
        keeper = self.memory.keep_current(watcher)
        try:
            for hints in watcher if not self._is_stopped.is_set() else ():
                paths = None if hints.everything or hints.settings else hints.paths
                while not self._sync_index(paths, progress):
                    paths = None
                progress = None
                watcher.taken()
                yield self._list_concerned(everything=hints.settings or hints.everything, files=hints.code)
                watcher.cite({file for files in self._list_cited().values() for file in files})
        finally:
            keeper.close()
            watcher.close()

    def stop(self) -> None:
        """End `changes`."""
        self._is_stopped.set()
        if self._watcher:
            self._watcher.close()

    def _sync_index(self, paths: Collection[str] | None, progress: Callable[[int, int], None] | None) -> bool:
        try:
            self.memory.index.sync(paths, progress, texts=False)
        except MdmemError:
            return self._is_stopped.wait(_RETRY_SECONDS)
        return True

    def _list_cited(self) -> dict[str, set[str]]:
        """Return the files that each open memory points at and that are none."""
        with suppress(MdmemError):
            return files_of(View(self.memory.index, self._vault), self._buffers.keys())
        return {}

    def _list_concerned(self, *, everything: bool, files: Collection[str]) -> tuple[str, ...]:
        with self._lock:
            opened = self.around().opened
            touched, names = self._known.take_changes()
            for path in {*self._interfaces, *opened}:
                before, now = self._interfaces.get(path, _Interface()), _Interface.of(opened.get(path))
                if before != now:
                    names |= before.names | now.names
                    touched.add(path)
                if path in opened:
                    self._interfaces[path] = now
                else:
                    self._interfaces.pop(path, None)
        cited = self._list_cited() if files else {}
        keys = {link_key(*name) for name in names}
        return tuple(
            path
            for path, each in opened.items()
            if everything
            or path in touched
            or not cited.get(path, set()).isdisjoint(files)
            or _is_concerned(each, keys, names, is_any=bool(touched))
        )

    def merge(self, path: str) -> TakenOver | None:
        """Merge the text on disk into an open one; None where the disk has nothing new.

        Both were made from the text opened or saved last.
        """
        buffer = self._buffers.get(path)
        ours = buffer.opened.document if buffer else None
        if buffer is None or ours is None:
            return None
        try:
            disk = self._vault.find(path)
            text = _as_edited(disk.text, ours.text) if disk else ours.text
            if disk and text == ours.text:
                self._note_merged(path, _Merged(buffer.base, text, text))
            base = None if buffer.base is None else _as_edited(buffer.base, ours.text)
            if text in (ours.text, base):
                return None
            if base is None:
                differ = between(ours.text, text)
                return TakenOver(edits=None, lines=tuple(ours.lines.number(edit.start) for edit in differ))
            limits = self._vault.config.limits
            before, theirs = (parse_text(path, each, limits) for each in (base, text))
        except MdmemError:  # what is there can be taken over when it is a memory again
            return None
        # Conflicts are told by the lines of the last argument.
        merged = merge(before, theirs, ours)
        if merged.text is None:
            return TakenOver(edits=None, lines=_list_contested(before, theirs, ours, merged.conflicts))
        self._note_merged(path, _Merged(buffer.base, merged.text, text))
        edits = tuple(between(ours.text, merged.text))
        return TakenOver(edits=edits) if edits else None

    def _note_merged(self, path: str, merged: _Merged) -> None:
        # Before an editor has made of a text what it was answered, the disk may change and be merged again.
        self._merged.setdefault(path, deque(maxlen=_MERGES)).append(merged)

    # -- questions -----------------------------------------------------------------------------------------

    def check(self, path: str) -> list[Diagnostic]:
        """Return everything that is wrong with a memory, as `Memory.check` would of the saved one."""
        buffer = self._buffers.get(path)
        try:
            if buffer and buffer.opened.document is None and buffer.opened.refused:
                refusal = describe_refusal(path, buffer.opened.refused, buffer.opened.text)
                return tell_guests(self._vault, [refusal])
            around = self.around()
            return check_open(around, around.read(path))
        except DocumentRefused as error:
            return tell_guests(self._vault, [describe_refusal(path, error)])
        except MdmemError as error:
            return [about_file(path, error.code, error.message, error.hint)]

    def at(self, path: str, offset: int) -> Element | None:
        """Return what stands at an offset, and where; None for mere text."""
        document = self.document(path)
        return places.find_standing(document, offset) if document else None

    def targets(self, path: str, offset: int) -> list[Goal]:
        """Return where what stands at an offset leads: the likeliest first."""
        document = self.document(path)
        return places.find_targets(self.around(), document, offset) if document else []

    def uses(
        self, path: str, offset: int, *, declaration: bool = False, is_over: Callable[[], bool] = bool
    ) -> list[Spot]:
        """Return where what stands at an offset is used; with `declaration` also where it stands itself."""
        document = self.document(path)
        if document is None:
            return []
        return places.find_uses(self.around(), document, offset, declaration=declaration, is_over=is_over)

    def hover(self, path: str, offset: int) -> Hover | None:
        """Describe what stands at an offset; None if there is nothing to say."""
        document = self.document(path)
        return places.describe(self.around(), document, offset) if document else None

    def links(self, path: str) -> list[tuple[Span, Spot]]:
        """Return the links and citations of a memory that lead somewhere: the span of each, and where to."""
        document = self.document(path)
        return places.list_links(self.around(), document) if document else []

    def completions(self, path: str, offset: int, limit: int = 50) -> Completions:
        """Return what can stand at an offset: links, anchors, tags, fields of the frontmatter."""
        document = self.document(path)
        return (
            completions.complete(self.around(), document, offset, limit) if document else Completions((), 0)
        )

    def fixes(self, path: str, span: Span, shown: Collection[Span] = ()) -> list[Fix]:
        """Return what can be done about what stands in a span or where else findings are `shown`."""
        document = self.document(path)
        if document is None:
            return []
        return list(fixes.list_fixes(self.around(), document, span, shown, self.check(path)))

    def outline(self, path: str) -> list[OutlineItem]:
        """Return the headings of a memory, each with those below it."""
        document = self.document(path)
        return places.outline(document) if document else []

    def symbols(self, query: str, limit: int) -> NamedPlaces:
        """Return the memories, headings and tags with all words of a query in their names."""
        return places.find_symbols(self.around(), query, limit)

    def rename(self, path: str, offset: int, new: str) -> EditPlan:
        """Return the plan that gives what stands at an offset another name, wherever it is named.

        Raises:
            EditRefused: nothing there has a name, or it cannot have this one.
        """
        around = self.around()
        return places.plan_rename(around, around.read(path), offset, new)

    def renamable(self, path: str, offset: int) -> Element | None:
        """Return what stands at an offset and can be renamed; of a link, its name is the file's."""
        document = self.document(path)
        return places.find_renamable(self.around(), document, offset) if document else None

    def move(self, moves: Mapping[str, str]) -> EditPlan:
        """Plan the edits of links when an editor moves files or folders.

        Args:
            moves: absolute paths, old to new: of memories, attachments, and files of the workspace.

        Raises:
            EditRefused: a memory would leave the namespace, or is one that is mounted from elsewhere.
        """
        for file in moves:
            if (path := self.path(file)) and self.file(path) == file and not is_under(file, self._vault.root):
                reason = "it is mounted, and nothing would be there any more"
                raise EditRefused(path=path, reason=reason, remedy="change [mounts] in .mdmem/config.toml")
        return places.plan_moves(self.around(), moves)


def _as_edited(disk: str, edited: str) -> str:
    """Return the text of a file as the editor that shows `edited` would show it.

    Editors hide a byte-order mark, give all lines one end, and end the last one.
    """
    if disk.startswith(BOM) and not edited.startswith(BOM):
        disk = disk.removeprefix(BOM)
    ends = [end for end, count in line_ends(edited).items() if count]
    if len(ends) == 1:
        disk = with_newline(disk, ends[0])
        if edited.endswith(ends[0]) and disk and not disk.endswith(ends[0]):
            disk += ends[0]
    return disk


def _list_contested(
    base: Document, disk: Document, ours: Document, conflicts: Collection[MergeConflict]
) -> tuple[int, ...]:
    """Return the lines of an open text that conflicts are about, also of a conflict about the whole text."""
    if not any(each.reason for each in conflicts):
        return tuple(each.line for each in conflicts)
    texts = Versions(base, disk, ours).map(lambda document: whole_lines(document.text))
    mine: list[int] = []
    both: list[int] = []
    for place in regions(*texts):
        before, there, here = texts.paired(place, lambda side, part: side[part])
        if here != before:
            (mine if there in (before, here) else both).append(place.theirs.start + 1)
    return tuple(both or mine)


def _is_concerned(opened: Opened, keys: Collection[str], names: Collection[Name], *, is_any: bool) -> bool:
    """Return whether an open memory links to a changed name, has one, or may be in a circle."""
    record = opened.record
    if record is None:
        return False
    return (
        any(row.key in keys for row in record.links)
        or any(name in names for name in record.names)
        or (is_any and any(key in LINEAGE for _, key, _ in record.fields))
    )
