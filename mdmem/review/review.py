"""What differs between two states of the memories of a namespace, a row for each fact, field and memory.

A state is a commit, or what the files hold now. What cannot be read as a memory in one of them is said to be
so, and compared no further.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from mdmem.document.document import Document
from mdmem.document.merging.comparison import Comparison, FactChange, FieldChange, compare, moved_across
from mdmem.document.text.diff import Word, words
from mdmem.document.text.lines import whole_lines, with_newline
from mdmem.document.text.tokens import first_of
from mdmem.document.tree import dotted
from mdmem.errors import DocumentRefused, MdmemError, MemoryNotFound, StorageFailed, show_name
from mdmem.index.code.workspace import Source
from mdmem.kind import PROPOSAL, kind_at
from mdmem.review.tracked import SETTINGS, Tracked, is_chosen
from mdmem.vault.paths import check_folder, check_memory, is_under
from mdmem.vault.vault import Vault

MemoryChangeKind = Literal[
    "memory-added",
    "memory-removed",
    "memory-renamed",
    "field-added",
    "field-removed",
    "field-changed",
    "fact-added",
    "fact-removed",
    "fact-moved",
    "fact-reordered",
    "fact-reworded",
    "links-repointed",
    "layout",
    "conflict",
    "not-compared",
    "settings",
]

_Fingerprint = tuple[str, frozenset[str]]  # what tells a memory under another name: its id, and its lines
_SIMILAR = 0.5  # share of equal lines from which on a memory that is gone and a new one are the same
_MOST_SETTINGS = 10  # that are named
_SHORT = 12  # digits of a commit in a command
_MOST_COMPARED = 100  # memories that are gone, and new ones, among which that is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One thing that differs between two states of a memory.

    Attributes:
        path: the memory; of one that is gone, where it was. Of the settings of the vault, which are one row
            with a note, their folder.
        change: what happened, and to what kind of thing.
        old_path: where the memory, or the fact, was before, when that is elsewhere.
        key: of a field, its dotted key; empty for a JSON value that is not an object.
        kind: of a fact, what it is written as, such as "item" or "paragraph".
        id: of a fact, its block id.
        heading, line: of a fact, the titles that it stands under, and its 1-based line; of one that is gone,
            as they were, and so are
        old_heading, old_line: of a fact that is in both states.
        parent: of a fact that moved within its memory, the words of the item that it stands in now.
        last: of a conflict that a merge left, the 1-based line of its last marker; `line` is of the first.
            Both are None where git's index alone says that the memory is amid a merge.
        before, after: the value of the field, or the words of the fact; None where there is none.
        sure: False where it is a guess that both are the same fact or memory, made by their likeness.
        moved: whether the fact has come under another heading, or into another item or memory.
        note: what else is to be said about it; of a proposal in the inbox, which is one row, its reason.
    """

    path: str
    change: MemoryChangeKind
    old_path: str = ""
    key: str = ""
    kind: str = ""
    id: str = ""
    heading: tuple[str, ...] = ()
    line: int | None = None
    old_heading: tuple[str, ...] = ()
    old_line: int | None = None
    parent: str = ""
    last: int | None = None
    before: Any = None
    after: Any = None
    sure: bool = True
    moved: bool = False
    note: str = ""

    @property
    def words(self) -> list[Word]:
        """The words of a fact in both states, those that differ marked; of a field, of its value as JSON."""
        before, after = self.before, self.after
        if self.change.startswith("field"):
            before = "" if self.change == "field-added" else _format_value(before)
            after = "" if self.change == "field-removed" else _format_value(after)
        return words(before or "", after or "")


def _format_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


class MemoryChanges(list[MemoryChange]):
    """All that differs between two states of the memories; `ignored` is how many of them git ignores now."""

    ignored = 0


class MemoryPair(NamedTuple):
    """A memory in two states: its path in each, empty where it is not there, and the id of its content.

    The content of an empty id is that of the file now.
    """

    old: str
    new: str
    before: str
    after: str
    sure: bool = True

    @property
    def path(self) -> str:
        """Where the memory is, or was last."""
        return self.new or self.old


class ComparedMemory(NamedTuple):
    """A memory in two states, and what differs.

    Attributes:
        before, after: its content; None where it is not there, or cannot be read.
        notes: what is said of it before its facts: of a conflict, of a proposal, and why it is not compared.
        found: what differs in its fields and facts; None where that was not compared.
    """

    pair: MemoryPair
    before: Document | None
    after: Document | None
    notes: Sequence[MemoryChange] = ()
    found: Comparison | None = None


class Review:
    """Compares two states of the memories of a namespace.

    Args:
        old: the id of a commit; None before the first one.
        new: the id of a commit; None for what the files hold now.
        paths: memories and folders that are looked at; all without any.
    """

    def __init__(
        self, vault: Vault, tracked: Tracked, old: str | None, new: str | None, paths: Sequence[str] = ()
    ) -> None:
        self._vault = vault
        self._tracked = tracked
        self._old, self._new = old, new
        suffixes = vault.suffixes
        self._paths = [
            check_memory(path) if path.endswith(suffixes) else check_folder(path) for path in paths
        ]

    def changes(self) -> MemoryChanges:
        """Return all that differs, in the order of paths.

        Raises:
            MemoryNotFound: one of the paths is in neither state.
        """
        compared = [each for each in self.compare_pairs(self.find_pairs()) if each.notes or each.found]
        moved = moved_across({each.pair.path: each.found for each in compared if each.found})
        rows = MemoryChanges()
        if note := self.describe_settings():
            rows.append(MemoryChange(path=SETTINGS, change="settings", note=note))
        for each in compared:
            rows += _describe_changes(each._replace(found=moved.get(each.pair.path)))
        rows.ignored = sum(map(self._is_chosen, self._tracked.ignored))
        return rows

    def describe_settings(self) -> str:
        """Say which settings of the vault differ, and how to see that; nothing about chosen paths alone."""
        found = self._tracked.find_settings(self._old, self._new) if self._old and not self._paths else []
        if not found:
            return ""
        is_with_now = self._new is None and self._old == self._tracked.head
        commits = [] if is_with_now else [each[:_SHORT] for each in (self._old, self._new) if each]
        shown = shlex.join(["git", "diff", *commits, "--", f":/{self._tracked.settings_name}"])
        named = first_of([show_name(each) for each in found], _MOST_SETTINGS)
        return f"settings of the vault differ: {named}; see `{shown}`"

    def compare_pairs(self, pairs: Iterable[MemoryPair]) -> Iterator[ComparedMemory]:
        """Yield some of the memories that may differ, in the order of paths, each with what differs."""
        unmerged = self._tracked.unmerged() if self._new is None else set()
        for pair in sorted(pairs, key=lambda pair: pair.path.split("/")):
            yield self._compare_pair(pair, is_unmerged=pair.path in unmerged)

    def _compare_pair(self, pair: MemoryPair, *, is_unmerged: bool) -> ComparedMemory:
        before: Document | None = None
        after: Document | None = None
        try:
            before = self._read(pair.old, pair.before)
            after = self._read(pair.new, pair.after)
            read = ComparedMemory(pair, before, after)
            has_moved = pair.old != pair.new
            if is_same(before, after, is_now=self._new is None) and not (has_moved or is_unmerged):
                return read
            if proposal := _of_proposal(pair.path, before, after):
                return read._replace(notes=[proposal])
            notes = _of_conflicts(pair.path, after, is_unmerged=is_unmerged)
            found = None if any(note.line for note in notes) else compare(before, after)
            return read._replace(notes=notes, found=found)
        except (DocumentRefused, StorageFailed, MemoryNotFound) as error:
            note = MemoryChange(path=pair.path, change="not-compared", note=str(error))
            return ComparedMemory(pair, before, after, [note])

    def _read(self, path: str, blob: str) -> Document | None:
        if not path:
            return None
        return self._tracked.document(blob, path) if blob else self._vault.read(path)

    def find_pairs(self) -> list[MemoryPair]:
        """Return the chosen memories that may differ.

        One that was renamed is chosen by either of its names.
        """
        found = self._differing_pairs(self._old, self._new) if self._old and self._new else self._with_now()
        chosen = [pair for pair in found if self._is_chosen(pair.old) or self._is_chosen(pair.new)]
        known = [path for pair in chosen for path in (pair.old, pair.new)]
        for path in self._paths:
            if path and not any(is_under(each, path) for each in known) and not self._is_there(path):
                raise MemoryNotFound(path=path)
        return chosen

    def find_differing(self) -> list[MemoryPair]:
        """Return those of `find_pairs` that do differ, byte by byte, from the last commit."""
        return [pair for pair in self.find_pairs() if self._is_changed(pair)]

    def _is_changed(self, pair: MemoryPair) -> bool:
        if pair.old != pair.new or pair.after:
            return True
        # Git does not know whether the file still holds this: it was written since git looked.
        try:
            now = self._vault.find(pair.new, recovered=True)
        except MdmemError:
            return True
        return now is None or not Source(pair.new, now.data).is_blob(pair.before)

    def _differing_pairs(self, old: str, new: str) -> Iterator[MemoryPair]:
        for file in self._tracked.history.differences(old, new, self._tracked.names):
            names = self._tracked.find_paths(file)
            if any(names):
                yield MemoryPair(*names, file.before, file.after, sure=not file.old)

    def _with_now(self) -> Iterator[MemoryPair]:
        found = self._standing_in_both() or list(self._tracked.find_changed(self._old))
        gone = {path: blob for path, blob, now in found if blob is not None and now is None}
        come = {path: now for path, blob, now in found if blob is None and now is not None}
        renamed = self._pair_renamed(gone, come)
        yield from renamed
        paired = {pair.old for pair in renamed} | {pair.new for pair in renamed}
        for path, blob, now in found:
            if path not in paired:
                old, new = ("" if each is None else path for each in (blob, now))
                yield MemoryPair(old, new, blob or "", now or "")

    def _standing_in_both(self) -> list[tuple[str, str | None, str | None]]:
        """Return the chosen memories, as `Tracked.find_changed`, if all stand in both states; else nothing.

        Then no other memory has to be looked at: none of them was renamed.
        """
        are_memories = self._paths and all(path.endswith(self._vault.suffixes) for path in self._paths)
        tree = self._tracked.list_blobs(self._old, self._paths) if are_memories else {}
        if not all(path in tree and self._vault.exists(path) for path in self._paths):
            return []
        return [(path, tree[path], "") for path in self._paths]

    def _pair_renamed(self, gone: dict[str, str], new: dict[str, str]) -> list[MemoryPair]:
        """Pair removed memories with new ones that have the same id, or similar lines."""
        if not gone or not new or max(len(gone), len(new)) > _MOST_COMPARED:
            return []
        olds, news = ({path: self._fingerprint(path, each[path]) for path in each} for each in (gone, new))
        scored = sorted(
            (-share, source, path)
            for source, old in olds.items()
            for path, known in news.items()
            if (share := _measure_likeness(old, known)) >= _SIMILAR
        )
        pairs: list[MemoryPair] = []
        for share, source, path in scored:
            if source in olds and path in news:
                pairs.append(MemoryPair(source, path, gone[source], new[path], sure=share <= -1))
                del olds[source], news[path]
        return pairs

    def _fingerprint(self, path: str, blob: str) -> _Fingerprint:
        with suppress(MdmemError):
            if document := self._read(path, blob):
                lines = frozenset(line.strip() for line in whole_lines(document.text))
                return str(document.fields.get("id", "")), lines - {"", "---"}
        return "", frozenset()

    def _is_chosen(self, path: str) -> bool:
        return bool(path) and is_chosen(path, self._paths)

    def _is_there(self, path: str) -> bool:
        """Return whether a memory or folder is in the later state, or for the files in the earlier one."""
        if self._new is None:
            is_memory = path.endswith(self._vault.suffixes)
            if self._vault.exists(path) if is_memory else any(self._vault.walk(path)):
                return True
        return bool(self._tracked.list_blobs(self._new or self._old, [path]))


def find_names(path: str, tracked: Tracked, vault: Vault) -> tuple[str, str]:
    """Find what a memory, named as it is or was, is called now, and what the last commit calls it."""
    is_there, is_known = vault.find_around(path) is not None, path in tracked.list_blobs(tracked.head, [path])
    if is_there and is_known:
        return path, path
    if not (is_there or is_known) and tracked.head:
        name = tracked.name(path)
        with closing(tracked.history.log([name], tracked.head)) as log:
            parents = next((logged.commit.parents for logged in log), ())
        renames = tracked.repository.renames(parents[0]) if parents else ()
        path = next((tracked.path(each.new) for each in renames if each.old == name), None) or path
    pairs = Review(vault, tracked, tracked.head, None).find_pairs()
    named = ((pair.new, pair.old) for pair in pairs if path in pair[:2])
    return next((names for names in named if all(names)), (path, path))


def _measure_likeness(one: _Fingerprint, other: _Fingerprint) -> float:
    """Return the share of equal lines; 1 for the same id."""
    if one[0] or other[0]:
        return float(one[0] == other[0])
    total = len(one[1]) + len(other[1])
    return 2 * len(one[1] & other[1]) / total if total else 0.0


def is_same(before: Document | None, after: Document | None, *, is_now: bool = False) -> bool:
    """Return whether two versions do not differ; with `is_now` their line ends may, as git makes them."""
    if not before or not after:
        return before is after
    if before.data == after.data:
        return True
    return is_now and with_newline(before.text, "\n") == with_newline(after.text, "\n")


def _of_proposal(path: str, before: Document | None, after: Document | None) -> MemoryChange | None:
    """Return one row for a change of a proposal, which is no memory yet; None for other memories."""
    found = after or before
    if not found or kind_at(path) is not PROPOSAL or found.fields.get("type") != PROPOSAL.name:
        return None
    if before and after:
        old, new = (each.fields.get("status") for each in (before, after))
        return MemoryChange(path=path, change="field-changed", key="status", before=old, after=new)
    note = str(found.fields.get("reason") or "")
    return MemoryChange(path=path, change="memory-added" if after else "memory-removed", note=note)


def _of_conflicts(path: str, document: Document | None, *, is_unmerged: bool) -> list[MemoryChange]:
    """Return a row for each conflict that a merge left."""
    # Where git knows of the merge, what stands in code is no example.
    spans = document.conflicts(in_code=is_unmerged) if document else []
    lines = [tuple(map(document.lines.number, span)) for span in spans] if document else []
    if is_unmerged and not lines:
        note = "amid a merge: unmerged in git's index, without markers; `git add` says that it is settled"
        return [MemoryChange(path=path, change="conflict", note=note)]
    note = "amid a merge: a conflict in lines {} to {}"
    return [
        MemoryChange(path=path, change="conflict", line=first, last=last, note=note.format(first, last))
        for first, last in lines
    ]


def _describe_changes(compared: ComparedMemory) -> Iterator[MemoryChange]:
    """Yield what became of a memory; a fact that went to another memory is a move there."""
    pair, _, _, notes, found = compared
    is_told = any(note.change.startswith("memory") for note in notes)
    if not ((pair.old and pair.new) or is_told):
        yield MemoryChange(path=pair.path, change="memory-added" if pair.new else "memory-removed")
    yield from (row for row, _ in list_rows(compared))
    if found and found.layout:
        yield describe_layout(pair.path)
    if found and found.unmatched:
        note = f"{found.unmatched:,} removed facts were not compared with all new ones: some may be reworded"
        yield MemoryChange(path=pair.path, change="not-compared", note=note)


def list_rows(compared: ComparedMemory) -> Iterator[tuple[MemoryChange, FactChange | FieldChange | None]]:
    """Yield a row for a new name, each note, field and fact, the last two with their change."""
    pair, _, _, notes, found = compared
    if pair.old and pair.new and pair.old != pair.new:
        yield MemoryChange(path=pair.new, change="memory-renamed", old_path=pair.old, sure=pair.sure), None
    yield from ((note, None) for note in notes)
    if found:
        yield from ((_describe_field(pair.path, each), each) for each in found.fields)
        yield from ((_describe_fact(pair.path, each), each) for each in found.facts)


def describe_layout(path: str) -> MemoryChange:
    """Describe that nothing but marks and blanks of a memory differs."""
    return MemoryChange(path=path, change="layout", note="only the order or the layout differs")


def _describe_field(path: str, change: FieldChange) -> MemoryChange:
    return MemoryChange(
        path=path,
        change=cast("MemoryChangeKind", f"field-{change.kind}"),
        key=dotted(change.key),
        before=change.before,
        after=change.after,
    )


def _describe_fact(path: str, change: FactChange) -> MemoryChange:
    fact, before, after = change.fact, change.before, change.after
    was = before if after else None
    became = "links-repointed" if change.kind == "repointed" else f"fact-{change.kind}"
    return MemoryChange(
        path=path,
        change=cast("MemoryChangeKind", became),
        old_path=change.source,
        kind=fact.kind,
        id=fact.id,
        heading=fact.path,
        line=fact.line,
        old_heading=was.path if was else (),
        old_line=was.line if was else None,
        parent=change.into.text if change.into and change.into.kind == "item" else "",
        before=before.said if before else None,
        after=after.said if after else None,
        sure=change.sure,
        moved=change.moved,
    )
