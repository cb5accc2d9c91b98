"""What agents changed since the last commit, row by row, and the edit plan that rejects rows.

Nothing keeps that a row is accepted: a commit takes the memories with every row accepted.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mdmem.document.document import Document, UnreadableDocument, digest, parse_text
from mdmem.document.edit import between, splice
from mdmem.document.merging.comparison import FactChange, FieldChange, compare
from mdmem.document.merging.facts import Fact, facts
from mdmem.document.merging.merge import merge
from mdmem.document.merging.reverting import TakenBack, take_back
from mdmem.document.text.lines import with_newline
from mdmem.errors import DocumentRefused, RevertRefused
from mdmem.index.links.move import move_names
from mdmem.index.links.outside import move_files
from mdmem.index.links.resolve import resolve_link, turn_links
from mdmem.kind import PROPOSAL, kind_at
from mdmem.memory.verbs import Build
from mdmem.review.authors import Maker, Steps, follow_all, read_log
from mdmem.review.review import (
    ComparedMemory,
    MemoryChange,
    MemoryPair,
    Review,
    describe_layout,
    is_same,
    list_rows,
)
from mdmem.review.tracked import Tracked
from mdmem.vault.plan import AttachmentChange, Change, EditPlan
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.index.view import View

ReviewedKind = Literal["changed", "new", "removed", "renamed", "conflict"]
_Changed = FactChange | FieldChange | None
_Rows = dict[str, tuple[MemoryChange, _Changed]]
_LENGTH = 16  # hexadecimal digits that name a row
_MOST_IN_TURN = 100  # rows that are taken back one by one where that cannot be done at once
_LOOK_AGAIN = "see what differs now with `mdmem git review`"
_CONFLICT = "it is amid a merge: resolve that first"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedRow(MemoryChange):
    """A row to be accepted or rejected.

    A new or removed memory is one row, with its text in `after` or `before`; a new one can be split into
    its facts and fields.

    Attributes:
        row: names it until its words, its headings or the last commit of its memory change; also rows that
            are equal to it must stay as many. Written beside it and a new name of the memory change nothing.
        by: who made the change since which the row says this. Empty for a direct edit, for a change that is
            not kept any more, and for one without a name.
        change_id, date: that change in the history of the vault, and when it was made, in ISO 8601.
    """

    row: str
    by: str = ""
    change_id: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A memory that differs from the last commit.

    Attributes:
        path: the memory; of one that is removed, where it was.
        old_path: of one that was renamed, its path in the last commit; else empty.
        kind: what became of it. Of a conflict that a merge left, no row can be decided.
        rows: what differs in it.
    """

    path: str
    old_path: str
    kind: ReviewedKind
    rows: tuple[ReviewedRow, ...]


class ReviewedMemories(list[Reviewed]):
    """The memories that differ; `settings` says which settings of the vault do, and how to see that."""

    settings = ""


class _Memory(NamedTuple):
    """A memory that differs, and its rows by name, with the change of a fact or field if there is one."""

    compared: ComparedMemory
    rows: _Rows

    @property
    def kind(self) -> ReviewedKind:
        pair = self.compared.pair
        if any(note.change == "conflict" for note in self.compared.notes):
            return "conflict"
        if pair.old and pair.new:
            return "renamed" if pair.old != pair.new else "changed"
        return "new" if pair.new else "removed"


class Decisions:
    """Lists the rows that differ from the last commit; to be used from one thread at a time."""

    def __init__(self, vault: Vault, tracked: Tracked) -> None:
        self._vault, self._tracked = vault, tracked

    def list_memories(self, paths: Sequence[str] = (), split: Collection[str] = ()) -> ReviewedMemories:
        """List the memories that differ, or those of some paths; see `Git.review`."""
        log, reviewed = read_log(self._vault), ReviewedMemories()
        reviewed.settings = Review(
            self._vault, self._tracked, self._tracked.head, None, paths
        ).describe_settings()
        for memory in self._read_memories(paths):
            pair, before, after = memory.compared[:3]
            steps = Steps(self._vault, log, pair.path, after, before)
            named = (pair.path in split and _name_parts(memory.compared)) or memory
            rows = tuple(_name_maker(name, steps, *found) for name, found in named.rows.items())
            old_path = pair.old if memory.kind == "renamed" else ""
            reviewed.append(Reviewed(path=pair.path, old_path=old_path, kind=memory.kind, rows=rows))
        return reviewed

    def find_accepted(self, accepted: Mapping[str, Collection[str]]) -> tuple[list[str], list[str]]:
        """Return the paths of the memories with all rows accepted, and why others are left out.

        A renamed memory has both paths.
        """
        chosen, left_out, missing = list[str](), list[str](), {*accepted}
        for memory in self._read_memories(()) if accepted else ():
            pair = memory.compared.pair
            if pair.path not in accepted:
                continue
            missing.discard(pair.path)
            rows = _choose_rows(memory, memory.compared, accepted[pair.path])
            left = rows.keys() - set(accepted[pair.path])
            if left or memory.kind == "conflict":
                count = f"not accepted: {len(left):,} of {len(rows):,} changes"
                left_out.append(f"{pair.path}: {_CONFLICT if memory.kind == 'conflict' else count}")
            else:
                chosen += filter(None, dict.fromkeys(pair[:2]))
        left_out += [f"{path}: it has no changes any more" for path in sorted(missing)]
        return chosen, left_out

    def _read_memories(self, paths: Sequence[str]) -> Iterator[_Memory]:
        review = Review(self._vault, self._tracked, self._tracked.head, None, paths)
        pairs = [pair for pair in review.find_pairs() if kind_at(pair.path) is not PROPOSAL]
        for compared in review.compare_pairs(pairs):
            if memory := _name_rows(self._read_unreadable(compared)):
                yield memory

    def _read_unreadable(self, compared: ComparedMemory) -> ComparedMemory:
        """Return a memory with the bytes of its file, also if they cannot be read as a memory."""
        if compared.after or not compared.pair.new:
            return compared
        return compared._replace(after=self._vault.find_around(compared.pair.new, unreadable=True))

    def build(self, path: str, rows: Collection[str], view: Callable[[], View]) -> Build:
        """Return a function that plans to reject rows; git is asked before."""
        review = Review(self._vault, self._tracked, self._tracked.head, None, [path])
        pairs = [pair for pair in review.find_pairs() if path in pair[:2]]
        compared = [each for each in review.compare_pairs(pairs) if each.pair.path == path]
        if not compared:
            raise RevertRefused(what=path, reasons=("it has no changes",), remedy=_LOOK_AGAIN)
        if any(note.change == "conflict" for note in compared[0].notes):
            raise RevertRefused(what=path, reasons=(_CONFLICT,), remedy="see `git status`")
        before, pair, attached = compared[0].before, compared[0].pair, self._find_attached()
        return lambda: _Rejection(self._vault, pair, before, rows).plan(view(), attached)

    def _find_attached(self) -> dict[str, str]:
        """Return the attachments that mdmem moved since the last commit: the path now, and the one then."""
        tracked, log = self._tracked, read_log(self._vault)
        called = {path: names for path, (names, _) in follow_all(log, self._vault.other_files()).items()}
        called = {path: names[1:] for path, names in called.items() if len(names) > 1}
        tree = tracked.history.tree(tracked.head, tracked.names) if called and tracked.head else {}
        known = {tracked.attachment(name) for name in tree}
        then = {path: next(filter(known.__contains__, names), names[-1]) for path, names in called.items()}
        return {path: old for path, old in then.items() if path not in known}


class _Rejection:
    """Makes the plan that rejects rows of one memory, in what it says now."""

    def __init__(
        self, vault: Vault, pair: MemoryPair, before: Document | None, rows: Collection[str]
    ) -> None:
        self._path, self._pair, self._base = pair.path, pair, before
        self._now = vault.find_around(pair.path, unreadable=True)
        self._limits = vault.config.limits
        compared = _compare_now(pair, before, self._now)
        whole = _name_rows(compared)
        found = _choose_rows(whole, compared, rows)
        self._is_split = bool(whole and found is not whole.rows)
        if self._is_split and self._now:
            self._base = self._parse("{}" if self._now.is_json else "")
        gone = [name for name in dict.fromkeys(rows) if name not in found]
        if gone or not rows:
            reason = f"{len(gone):,} of its changes are gone, or are other ones by now"
            raise self._refuse(reason if gone else "no change is named")
        self._rows, self._chosen = found, {name: found[name] for name in found if name in rows}

    def _refuse(self, *reasons: str) -> RevertRefused:
        return RevertRefused(what=self._path, reasons=reasons, remedy=_LOOK_AGAIN)

    def plan(self, view: View, attached: Mapping[str, str]) -> EditPlan:
        """Plan to reject the rows; `attached` are the attachments that were moved, and where each was."""
        message = f"revert {self._path} ({len(self._chosen):,} of {len(self._rows):,} changes)"
        is_renamed = any(row.change == "memory-renamed" for row, _ in self._chosen.values())
        own = None if is_renamed and self._now else self._take_back()
        going = self._list_going(view, attached, own)
        hashes = dict(each for path in going for each in view.vault.attachments(path))
        moves = {path: attached[path] for path in hashes}
        files = {view.in_workspace(path): view.in_workspace(old) for path, old in moves.items()}
        if own is None:
            moves[self._path] = self._pair.old
        plan = move_files(view, moves, files, {}) if moves else EditPlan(changes=())
        changes = [own] if own else []
        for change in plan.changes:
            if change.path != self._path:
                changes.append(change)
            elif self._now and own is None:
                changes.append(self._move_back(self._now, change))
        return plan._replace(
            changes=tuple(changes),
            message=message,
            brings_back=True,
            attachments=tuple(AttachmentChange(path, moves[path], hashes[path]) for path in hashes),
            left_out=(*plan.left_out, *(self._list_staying(attached, moves) if own is None else ())),
        )

    def _list_staying(self, attached: Mapping[str, str], moves: Mapping[str, str]) -> Iterator[str]:
        """Say which attachments were moved from one folder to the other with the memory, and stay there."""
        folders = tuple(path.rpartition("/")[0] for path in (self._path, self._pair.old))
        for path, old in attached.items():
            if path not in moves and folders == (path.rpartition("/")[0], old.rpartition("/")[0]):
                yield f"{path} stays, which was {old}: `mdmem mv` moves it back"

    def _list_going(self, view: View, attached: Mapping[str, str], own: Change | None) -> list[str]:
        """List the attachments that go back: those that a memory which moves back links to.

        Of another memory those that it will link to where they were, and where nothing is now.
        """
        back = {path: old for path, old in attached.items() if not view.exists(old)}
        said = own.after(self._limits) if own else self._now
        if not back or said is None or isinstance(said, UnreadableDocument):
            return []
        after = move_names(view, back, view.vault.suffixes)
        found, new = set[str | None](), {old: path for path, old in back.items()}
        with suppress(DocumentRefused):  # its links cannot be read
            for link in turn_links(view, said, self._path):
                now = resolve_link(view, link, self._path).path
                then = resolve_link(after, link, self._path).path if own and now is None else None
                found.add(new.get(then or "") if own else now)
        return [path for path in back if path in found]

    def _take_back(self) -> Change:
        base, now = self._base, self._now
        if now and not (base or self._pair.old):
            return Change(path=self._path, before=now, delete=True, merge=False)
        data = self._find_data()
        if now and base and self._is_split and data == base.data:
            return Change(path=self._path, before=now, delete=True, merge=False)
        if now and now.data == data:
            raise self._refuse("it would change nothing")
        return Change(path=self._path, before=now, content=data, merge=False, as_it_was=True)

    def _move_back(self, now: Document, moved: Change) -> Change:
        """Return the change that moves the memory back, and rejects the other rows."""
        text = splice(now.text, moved.edits)
        if len(self._chosen) == len(self._rows):
            text = self._require_base().text
        elif len(self._chosen) > 1:
            versions = (self._parse(each) for each in (self._find_data().decode(), text))
            merged = merge(now, *versions)
            if merged.text is None:
                raise self._refuse("its links are in what is rejected: reject its new name alone first")
            text = merged.text
        return moved._replace(edits=tuple(between(now.text, self._settle(text).decode())), as_it_was=True)

    def _require_base(self) -> Document:
        if self._base is None:
            raise self._refuse("it is no memory in the last commit: bring that back with `git restore`")
        return self._base

    def _parse(self, text: str) -> Document:
        return parse_text(self._path, text, self._limits)

    def _settle(self, text: str) -> bytes:
        """Return a text, or the base if no fact and no field differs from that."""
        base = self._require_base()
        found = compare(base, self._parse(text))
        return text.encode() if found.fields or found.facts else base.data

    def _find_data(self) -> bytes:
        """Return the memory without the rejected rows."""
        base, now = self._require_base(), self._now
        is_whole = not now or isinstance(now, UnreadableDocument) or len(self._chosen) == len(self._rows)
        # A layout is rejected beside a new name, and no fact differs.
        if not now or is_whole or not any(change for _, change in self._chosen.values()):
            return base.data
        done = self._take_back_rows(base, now, self._rows, self._chosen)
        if done.refused and 1 < len(self._chosen) <= _MOST_IN_TURN:
            done = self._take_back_in_turn(base, now, done)
        if done.refused or done.skipped:
            raise self._refuse(*done.refused, *done.skipped)
        return self._settle(done.text)

    def _take_back_rows(self, base: Document, now: Document, rows: _Rows, names: Iterable[str]) -> TakenBack:
        every = [change for _, change in rows.values() if change]
        chosen = [change for _, change in map(rows.__getitem__, names) if change]
        done = take_back(base, now, now, _add_involved(chosen, every, facts(base), facts(now)))
        sources = [each for each in chosen if isinstance(each, FactChange) and each.fact.kind == "source"]
        if done.refused or not sources:
            return done
        front = with_newline(base.text[: base.body_span.start], now.lines.newline)
        return TakenBack(base.text if now.is_json else front + self._parse(done.text).body)

    def _take_back_in_turn(self, base: Document, now: Document, whole: TakenBack) -> TakenBack:
        """Take back one row after the other, and refused ones again; return `whole` if some are left."""
        left, tried = [*self._chosen], list[str]()
        while left and left != tried:
            left, tried = [], left
            for name in tried:
                compared = _compare_now(self._pair, None if self._is_split else base, now)
                memory = _name_parts(compared) if self._is_split else _name_rows(compared)
                if memory and name in memory.rows:  # else it went with another one
                    done = self._take_back_rows(base, now, memory.rows, [name])
                    if done.refused or done.skipped:
                        left.append(name)
                    else:
                        now = self._parse(done.text)
        return whole if left else TakenBack(now.text)


def _compare_now(pair: MemoryPair, before: Document | None, now: Document | None) -> ComparedMemory:
    """Compare a memory in the last commit and now, as `Review.compare_pairs` does."""
    compared = ComparedMemory(pair._replace(new=pair.new if now else ""), before, now)
    if is_same(before, now, is_now=True) and pair.old == pair.new:
        return compared
    with suppress(DocumentRefused):
        if bool(before) is bool(pair.old) and not isinstance(now, UnreadableDocument):
            return compared._replace(found=compare(before, now))
    return compared._replace(notes=[MemoryChange(path=pair.path, change="not-compared")])


def _add_involved(
    chosen: Sequence[FactChange | FieldChange],
    every: Sequence[FactChange | FieldChange],
    earlier: Sequence[Fact],
    later: Sequence[Fact],
) -> list[FactChange | FieldChange]:
    """Return changes with those that go along: additions in facts that go, and parents of restored ones."""
    taken = [each for each in chosen if isinstance(each, FactChange)]
    gone = {each.after for each in taken if not each.before}
    back = [each.before for each in taken if each.before and (each.moved or not each.after)]
    over = {above for fact in back for above in _list_above(earlier, fact)}

    def goes_along(each: FactChange | FieldChange) -> bool:
        if not isinstance(each, FactChange):
            return False
        if each.after and not each.before:
            return not gone.isdisjoint(_list_above(later, each.after))
        return each.after is None and each.before in over

    return [each for each in every if each in chosen or goes_along(each)]


def _list_above(every: Sequence[Fact], fact: Fact) -> Iterator[Fact]:
    """Yield the items and headings around a fact, and of a row the first one of its table."""
    at = bisect_left(every, fact.line, key=attrgetter("line")) if fact.kind == "row" else 0
    while at and every[at - 1].kind == "row" and every[at - 1].last + 1 == every[at].line:
        at -= 1
        yield every[at]
    while fact.parent is not None:
        fact = every[fact.parent]
        yield fact


def _choose_rows(whole: _Memory | None, compared: ComparedMemory, names: Collection[str]) -> _Rows:
    """Return the rows of a memory, or those of a split one where one of the names is of these."""
    rows = whole.rows if whole else {}
    parts = None if rows.keys() & names else _name_parts(compared)
    return parts.rows if parts and parts.rows.keys() & names else rows


def _name_parts(memory: ComparedMemory) -> _Memory | None:
    """Name the rows of the facts and fields of a new memory; None for another, and for one without any."""
    is_new = memory.pair.new and not memory.pair.old and not memory.notes
    return _name_listed(memory, list(list_rows(memory)) if is_new else [])


def _name_rows(memory: ComparedMemory) -> _Memory | None:
    return _name_listed(memory, list(_list_rows(memory)))


def _name_listed(memory: ComparedMemory, found: Sequence[tuple[MemoryChange, _Changed]]) -> _Memory | None:
    changes = [change for _, change in found if isinstance(change, FactChange)]
    was = {each.after.line: each.before for each in changes if each.after and each.before}
    later = facts(memory.after) if memory.after and was else ()
    told = [_tell_row(memory, row, change, was, later) for row, change in found]
    counts, seen, rows = Counter(told), Counter[str](), _Rows()
    for said, each in zip(told, found, strict=True):
        seen[said] += 1
        rows[digest(f"{said} {seen[said]}/{counts[said]}".encode())[:_LENGTH]] = each
    return _Memory(memory, rows) if rows else None


def _tell_row(
    memory: ComparedMemory,
    row: MemoryChange,
    change: _Changed,
    was: Mapping[int, Fact],
    later: Sequence[Fact],
) -> str:
    """Return all by which a row is known; what is above it is told as in the last commit."""
    pair, now = memory.pair, memory.after
    told: list[Any] = [row.change, row.key, row.kind, row.id, row.before, row.after]
    if isinstance(change, FactChange):
        told.append(change.before.path if change.before else None)
        if change.after and (change.moved or not change.before):
            told.append(_find_headings(change.after, was, later))
            told.append(was.get(change.into.line, change.into).text if change.into else None)
    elif not change:
        is_compared = row.change in {"memory-renamed", "layout"} or row.after is not None
        told += [row.path if row.old_path else None, now.hash if now and not is_compared else None]
    return json.dumps([pair.before, pair.old or pair.new, *told], default=str)


def _find_headings(fact: Fact, was: Mapping[int, Fact], later: Sequence[Fact]) -> list[str]:
    """Return the headings that a fact stands under, from where one above it stood in the last commit."""
    titles, path = list[str](), fact.path
    for above in _list_above(later, fact) if later else ():
        known = was.get(above.line, above)
        if known.kind == "heading":
            titles.insert(0, known.text.partition(" ")[2])
        path = known.path
        if above.line in was:
            break
    return [*path, *titles]


def _list_rows(memory: ComparedMemory) -> Iterator[tuple[MemoryChange, _Changed]]:
    pair, before, after, notes, found = memory
    conflicts = [note for note in notes if note.change == "conflict"]
    if conflicts:
        yield from ((note, None) for note in conflicts)
    elif bool(pair.old) is not bool(pair.new):
        old, new = (None if not each or notes else with_newline(each.text, "\n") for each in (before, after))
        said: dict[str, Any] = {"change": "memory-added" if pair.new else "memory-removed"}
        said |= {"before": old, "after": new, "note": notes[0].note if notes else ""}
        yield MemoryChange(path=pair.path, **said), None
    else:
        yield from list_rows(memory)
        if found and found.layout and not is_same(before, after, is_now=True):
            yield describe_layout(pair.path), None


def _name_maker(name: str, steps: Steps, row: MemoryChange, change: _Changed) -> ReviewedRow:
    maker = Maker((), is_direct=True)
    if row.change == "memory-renamed":
        maker = steps.find_mover()
    elif row.change != "conflict":
        maker = steps.find_row_maker(change)
    given = {each.name: getattr(row, each.name) for each in fields(MemoryChange)}
    if maker.is_direct or len({entry.actor for entry in maker.entries}) != 1:
        return ReviewedRow(**given, row=name)
    newest = max(maker.entries, key=lambda entry: entry.id)
    return ReviewedRow(**given, row=name, by=newest.actor, change_id=newest.id, date=newest.time)
