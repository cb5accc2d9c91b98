"""Read one session from its log, and make the lines that change it.

The state is read from the end of the log, messages in either direction. Each record and message has a number.
The history is all messages that were not dropped; the context is what of it goes into prompts: summaries, and
the messages that none of them stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple

from mdmem.conversations.log.message import Message
from mdmem.conversations.log.record import (
    BEGINS_WITHIN,
    LAST_NUMBER,
    NOTHING,
    VERSION,
    LogHeader,
    LogRecord,
    Ranges,
    RunSummary,
    Snapshot,
    messages_in,
    read_header,
    read_object,
    read_record,
    read_records,
    read_seq,
    write_header,
    write_record,
)
from mdmem.conversations.log.state import SAME_WITHIN, State
from mdmem.diagnostic import Diagnostic, about_file
from mdmem.errors import SessionConflict
from mdmem.vault.log import Log, LogLine, find_start_near, line_blocks, lines, lines_back, whole_size

_TORN, _HEADER_WITHIN = 100, 16 * 1024 * 1024  # lines and bytes before a header that a crash may have left
_FAR = 1_000_000  # numbers that the last line may skip
_FIX = "`mdmem sessions check --fix` rewrites the log"
_STEP = 1 << 14  # bytes that are read at once towards the beginning
_FEW = 100  # numbers; a range of gone numbers that is no longer is read, not skipped
_TAIL = 64  # bytes before a position, which say whether a log is still the one that was read


class LogPosition(NamedTuple):
    """How far a log was read, and the bytes before that. While these stay the same, what follows is new."""

    identity: tuple[int, ...]
    size: int
    tail: str

    @classmethod
    def of(cls, log: Log, size: int) -> LogPosition:
        """Return the position behind the first `size` bytes of a log."""
        return cls(log.identity, size, log.read(max(0, size - _TAIL), size).decode("latin-1"))

    def begins(self, log: Log) -> bool:
        """Return whether a log still begins with what was read up to here: it has only grown since."""
        return self.size <= log.size and self == LogPosition.of(log, self.size)


class PlacedRecord(NamedTuple):
    """A record, the highest number in it (a message has one each), its line, and the number of that line."""

    record: LogRecord
    last: int
    line: LogLine
    place: int = 0

    @property
    def is_base(self) -> bool:
        """Return whether a snapshot in the record holds the state of all lines up to it."""
        snapshot = self.record.snapshot
        return snapshot is not None and snapshot.is_at(self.line.start, self.record.seq)


def judge(
    blocks: Iterable[Sequence[PlacedRecord]], reached: int = 0
) -> Iterator[list[tuple[PlacedRecord, bool, bool]]]:
    """Decide whether each record of a log counts, and whether that is certain.

    A record counts if its number follows the numbers before it. A record that skips numbers counts if the
    next record has a higher number than it; otherwise the record that skips is wrong. A snapshot counts at
    the place where it was written, no matter which lines are before it.

    Args:
        blocks: the records, in order.
        reached: the number that the lines before them have reached.
    """
    waiting: PlacedRecord | None = None
    for block in blocks:
        judged: list[tuple[PlacedRecord, bool, bool]] = []
        for each in block:
            seq, is_base = each.record.seq, each.is_base
            if waiting and (seq > reached or is_base):
                counts = seq > waiting.last
                judged.append((waiting, counts, True))
                reached, waiting = waiting.last if counts else reached, None
            if seq == reached + 1 or is_base:
                reached = each.last
                judged.append((each, True, True))
            elif seq <= reached:
                judged.append((each, False, True))
            else:
                waiting = each
        yield judged
    if waiting:
        yield [(waiting, waiting.record.seq <= reached + _FAR, False)]


class Conversation:
    """An open log of a session and the session's state. Without a log yet, the state is an empty session's.

    Attributes:
        log: the log, as it was when it was opened.
        state: what the lines of the log say; `state.log` is empty while there is no log.
        most: the most bytes of a line; longer lines are passed over.
        is_settled: whether it is certain which of the lines read so far count, no matter which lines follow.
    """

    def __init__(
        self,
        log: Log,
        key: str,
        most: int,
        known: tuple[State, LogPosition] | None = None,
        within: int | None = None,
    ) -> None:
        """Read the state. If the log has only grown since `known`, read only the new lines.

        Raises:
            SessionConflict: the log is of another key, or of no session.
            LimitReached: no snapshot stands in `within` bytes at the end.
        """
        self.log = log
        self.most = most
        self.is_settled = True
        if known and known[1].begins(log):
            self.state = known[0]
            self._read_on(known[1].size)
        else:
            header = find_header(log, most)
            self.state = State.of(header) if header else State(log="", key=key, version=VERSION)
            self._read_on(self._find_base(within) if header else log.size)
        if self.state.key != key:
            reason = f"it is the log of {self.state.key!r}, not of {key!r}"
            raise SessionConflict(path=log.path, reason=reason, remedy="take another key")

    @property
    def is_new(self) -> bool:
        """Return whether there is no log yet."""
        return not self.state.log

    @property
    def position(self) -> LogPosition:
        """Return the position behind the last whole line, where the next line begins."""
        return LogPosition.of(self.log, whole_size(self.log))

    def go_on(self) -> State:
        """Replace the state by a copy before lines are appended, since others may still read the old one."""
        self.state, self.is_settled = self.state.copy(), True
        return self.state

    def _read_on(self, start: int) -> None:
        if start >= self.log.size:
            return
        state = self.go_on()
        for each, counts, is_certain in chain.from_iterable(judge(self._read_blocks(start), state.seq)):
            self.is_settled = is_certain
            if counts:
                state.take(each.record, each.line.end - each.line.start)
            else:
                state.is_disordered = True

    def _find_base(self, within: int | None) -> int:
        """Find where the last valid snapshot begins; 0 without one."""
        for line in lines_back(self.log, self.most, within=within):
            if line.data and b'"snapshot"' in line.data:
                record = read_record(line.data)
                if record and PlacedRecord(record, record.last, line).is_base:
                    return line.start
        return 0

    # -- lines --------------------------------------------------------------------------------------------

    def records(self, first: int = 1) -> Iterator[LogRecord]:
        """Read the records from the number `first` on, in order."""
        return chain.from_iterable(self.record_blocks(first))

    def record_blocks(self, first: int = 1) -> Iterator[list[LogRecord]]:
        """Read the records from the number `first` on, in blocks."""
        return ([each.record for each in block] for block in self._read_from(first))

    def _read_from(self, first: int) -> Iterator[list[PlacedRecord]]:
        if first > self.state.seq:
            return
        start = 0 if self.state.is_disordered else find_start_near(self.log, first, read_seq, BEGINS_WITHIN)
        blocks = self._read_counted(start, first)
        head = next(blocks, [])
        is_found = head and head[0].record.seq <= first
        if start and first > self.state.vacuumed and not is_found:
            blocks, head = self._read_counted(0, first), []  # somebody changed a number: search the whole log
        yield head
        yield from blocks

    def blocks_back(self, gone: Ranges = NOTHING) -> Iterator[list[PlacedRecord]]:
        """Read the records that count, in blocks: the last block first, but the records of a block in order.

        Long ranges of the numbers in `gone` are skipped; records in short ones may still be among them.
        """
        end, following = whole_size(self.log), self.state.seq + 1
        while end > 0 and not self.state.is_disordered:
            if following - (first := gone.start_of(following - 1)) > _FEW:
                end, following = self._find_line(first) or (end, following)
            back = lines_back(self.log, self.most, end)
            begin = next((line.start for line in back if end - line.start >= _STEP), 0)
            block = list(chain.from_iterable(self._read_blocks(begin, end)))
            seqs = [*(each.record.seq for each in block), following]
            pairs = zip((each.last for each in block), seqs[1:], strict=True)
            if not all(last < seq <= max(last, self.state.vacuumed) + 1 for last, seq in pairs):
                break  # somebody changed a number since
            yield block
            end, following = begin, seqs[0]
        if end > 0:
            counted = [[each for each in block if each.line.start < end] for block in self._read_counted(0)]
            yield from reversed(counted)

    def _find_line(self, first: int) -> tuple[int, int] | None:
        start = find_start_near(self.log, first, read_seq, BEGINS_WITHIN)
        records = chain.from_iterable(self._read_blocks(start))
        return next(
            ((each.line.start, each.record.seq) for each in records if each.record.seq >= first), None
        )

    def _read_counted(self, start: int, first: int = 1) -> Iterator[list[PlacedRecord]]:
        """Read the records that count, in blocks, from the byte `start`, at which a line begins.

        Records before the number `first` and empty blocks are left out.
        """
        blocks: Iterator[list[PlacedRecord]] = filter(None, self._read_blocks(start))
        reached = 0
        if start and (head := next(blocks, None)):
            blocks, reached = chain([head], blocks), head[0].record.seq - 1
        for judged in judge(blocks, reached):
            if counted := [each for each, counts, _ in judged if counts and each.last >= first]:
                yield counted

    def _read_blocks(self, start: int = 0, end: int | None = None) -> Iterator[list[PlacedRecord]]:
        """Read the records between the bytes `start` and `end`, in blocks, whether they count or not."""
        for block in line_blocks(self.log, start, end, self.most):
            records = read_records([line.data for line in block])
            yield [
                PlacedRecord(self._drop_wrong_snapshot(read[0], line), read[1], line)
                for line, read in zip(block, records, strict=True)
                if read
            ]

    def _drop_wrong_snapshot(self, record: LogRecord, line: LogLine) -> LogRecord:
        """Remove the snapshot of a record, unless it was made from the lines before it."""
        snapshot = record.snapshot
        # The snapshot of a vacuum stays: it alone holds some facts.
        if not snapshot or record.seq == self.state.vacuumed + 1 or snapshot.is_at(line.start, record.seq):
            return record
        return record._replace(snapshot=None)

    # -- messages -----------------------------------------------------------------------------------------

    def messages(self, first: int = 1, last: int | None = None) -> Iterator[Message]:
        """Read the messages in the history with numbers from `first` to `last`, in order."""
        return chain.from_iterable(self._message_blocks(first, LAST_NUMBER if last is None else last))

    def _message_blocks(self, first: int, last: int) -> Iterator[list[Message]]:
        gone = self.state.dropped
        first = gone.skip(first)
        for block in self._read_from(first):
            messages = messages_in([each.record for each in block])
            yield self._amend_messages(
                gone.leave_out([each for each in messages if first <= each.seq <= last])
            )
            if block and block[-1].last >= last:
                return

    def messages_back(self) -> Iterator[Message]:
        """Read the messages in the history, the last one first."""
        return chain.from_iterable(map(self._amend_messages, self._message_blocks_back()))

    def _message_blocks_back(self, first: int = 1) -> Iterator[list[Message]]:
        gone = self.state.dropped
        first = gone.skip(first)
        for block in self.blocks_back(gone) if first <= self.state.seq else ():
            messages = messages_in([each.record for each in block])
            yield gone.leave_out([each for each in messages if each.seq >= first])[::-1]
            if block and block[0].record.seq <= first:
                return

    def messages_of(self, records: Iterable[LogRecord]) -> list[Message]:
        """Return the messages of records, with the fields that later records added to them."""
        return self._amend_messages(messages_in(records))

    def _amend_messages(self, messages: list[Message]) -> list[Message]:
        amended = self.state.amended
        return [
            each._replace(data={**each.data, **amended[each.seq]}) if each.seq in amended else each
            for each in (messages if amended else ())
        ] or messages

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Return the ranges of numbers that no summary in the context covers, in order."""
        starts = [1, *(each.last + 1 for each in self.state.context)]
        ends = [*(each.first - 1 for each in self.state.context), self.state.seq]
        return [(start, end) for start, end in zip(starts, ends, strict=True) if start <= end]

    def uncovered_back(self) -> Iterator[Message]:
        """Read the messages in the history that no summary in the context covers, the last one first."""
        return chain.from_iterable(self._uncovered_blocks_back())

    def _uncovered_blocks_back(self) -> Iterator[list[Message]]:
        gaps = self.gaps
        if gaps and gaps[-1][1] == self.state.seq:
            yield from map(self._amend_messages, self._message_blocks_back(gaps.pop()[0]))
        for start, end in reversed(gaps):
            yield list(self.messages(start, end))[::-1]

    def message(self, seq: int) -> Message | None:
        """Read a message, also one that left the history; None where none has the number."""
        messages = self.messages_of(islice(self.records(seq), 1))
        return next((each for each in messages if each.seq == seq), None)

    @property
    def recent_ids(self) -> dict[str, tuple[int, str]]:
        """Map the id of each of the last 1,000 messages that has one to its number and hash."""
        state = self.state
        if state.recent_ids is None:
            back = chain.from_iterable(self._message_blocks_back())
            newest = list(takewhile(lambda message: message.seq > state.seq - SAME_WITHIN, back))
            state.remember_ids(reversed(newest))
        return state.recent_ids or {}

    def summary(self, seq: int) -> RunSummary | None:
        """Read the summary in the line with this number, with its text; None where there is none."""
        record = next(self.records(seq), None)
        return record.summary if record and record.seq == seq else None

    def standing_for(self, summary: RunSummary) -> list[Message]:
        """Read the messages that a summary of messages stands for, even if they left the history."""
        messages: list[Message] = []
        gone: list[tuple[int, int]] = []
        for record in self.records(summary.first):
            if record.seq >= summary.seq or (record.seq > summary.last and len(messages) == summary.messages):
                break
            added = messages_in([record])
            messages += [each for each in added if summary.first <= each.seq <= summary.last]
            gone += record.drop
        return self._amend_messages(Ranges.of(gone).leave_out(messages))

    # -- what others write --------------------------------------------------------------------------------

    def adding(
        self, messages: Sequence[Mapping[str, Any] | None], *, by_id: bool
    ) -> tuple[LogRecord | None, list[int | None]]:
        """Return the record that adds messages, and the number of each; with `by_id`, add each id only once.

        Raises:
            SessionConflict: a different message in the history, or among these messages, has the same id.
        """
        state = self.state
        has_ids = by_id and any(data and data.get("id") for data in messages)
        known = dict(self.recent_ids) if has_ids else {}  # and those of these messages
        added: list[Mapping[str, Any]] = []
        numbers: list[int | None] = []
        for data in messages:
            if data is None:
                numbers.append(None)
                continue
            message = Message(state.seq + 1 + len(added), data)
            own = message.id if has_ids else ""
            seq, digest = known.get(own, (0, ""))
            if not seq:
                added.append(data)
                if own:
                    known[message.id] = (message.seq, message.hash)
            elif digest != message.hash and not any(
                each.hash == message.hash
                for each in self.messages(seq, seq)  # as it was amended
            ):
                reason = f"message {seq} has the id {message.id!r} already, and says something else"
                remedy = "give it another id, or replace the history"
                raise SessionConflict(path=self.log.path, reason=reason, remedy=remedy)
            numbers.append(seq or message.seq)
        return (LogRecord(seq=0, messages=tuple(added)) if added else None), numbers

    def dropping(self, drop: Ranges, live: int) -> LogRecord:
        """Return a record that drops messages and names the summaries that are left; `live` messages stay.

        A summary is left if none of its messages is dropped. One that lost some is replaced by the summaries
        that it condenses.
        """
        opened = self._open_summaries(lambda each: drop.meets(each.first, each.last))
        left = [each.place for each in opened if not drop.meets(each.first, each.last)]
        left.sort(key=lambda summary: summary.first)
        return LogRecord(seq=0, drop=drop, live=live, context=tuple(left))

    def _open_summaries(self, is_open: Callable[[RunSummary], bool]) -> Iterator[RunSummary]:
        """Yield the summaries in the context; if `is_open` is true of one, also those that it condenses."""
        waiting, opened = list(self.state.context), set[int]()
        while waiting:
            summary = waiting.pop()
            if summary.seq not in opened:
                opened.add(summary.seq)
                yield summary
                if is_open(summary):
                    waiting += filter(None, map(self.summary, summary.of))

    def write_vacuumed(self, at: str, **changed: Any) -> Iterator[bytes]:
        """Return the lines of the log without messages that left the history; the numbers stay the same."""
        state, kept = self.state.copy(), {each.seq for each in self._open_summaries(lambda _: True)}
        state.has_dropped = False
        state.amended = {number: fields for number, fields in state.amended.items() if state.holds(number)}
        shorter = (
            line
            for block in self._read_counted(0)
            for each in block
            for line in self._shorten_record(each.record, each.line, state.dropped, kept)
        )
        return _rewrite_lines(replace(state, **changed), shorter, at)

    def write_repaired(self, at: str) -> Iterator[bytes]:
        """Return the lines of the records that count, and behind them the messages of the others.

        A line that stands there twice is written once. `at` is the time of the snapshot at the end.
        """
        last, strays = 0, dict[bytes | None, LogRecord]()
        for each, counts, _ in chain.from_iterable(judge(self._read_blocks())):
            last = max(last, each.last) if counts else last
            if not counts and each.record.messages:
                strays[each.line.data] = each.record
        state = self.state.copy()
        state.seq = last + sum(len(record.messages) for record in strays.values())
        return _rewrite_lines(state, self._repair_records(strays, last), at)

    def _repair_records(
        self, strays: dict[bytes | None, LogRecord], last: int
    ) -> Iterator[LogRecord | bytes]:
        for each in chain.from_iterable(self._read_counted(0)):
            strays.pop(each.line.data, None)
            yield from self._shorten_record(each.record, each.line, NOTHING, None)
        for record in strays.values():
            yield LogRecord(seq=last + 1, at=record.at, messages=record.messages)
            last += len(record.messages)

    def _shorten_record(
        self, record: LogRecord, line: LogLine, gone: Ranges, kept: set[int] | None
    ) -> Iterator[LogRecord | bytes]:
        """Write the messages of a record that stay, its summary if that is kept, and nothing else."""
        plain = LogRecord(seq=record.seq, at=record.at, messages=record.messages)
        if line.data and record == plain and not gone.meets(record.seq, record.last):
            yield line.data
            return
        for message in gone.leave_out(messages_in([record])):
            yield LogRecord(seq=message.seq, at=record.at, messages=(message.written,))
        if record.summary and (kept is None or record.seq in kept):
            yield LogRecord(seq=record.seq, at=record.at, summary=record.summary)


def _rewrite_lines(state: State, kept: Iterable[LogRecord | bytes], at: str) -> Iterator[bytes]:
    """Yield the lines of a new log: its first one, what is kept, and the state as a snapshot at the end."""
    line = write_header(LogHeader(state.log, state.key, state.version, state.seq))
    start = live = 0
    yield line
    for each in kept:
        start += len(line) + 1
        line = each if isinstance(each, bytes) else write_record(each)
        record = read_record(each) if isinstance(each, bytes) else each
        live += len(state.dropped.leave_out(messages_in([record]))) if record else 0
        yield line
    state.live, state.is_disordered = live, False
    yield write_record(state.snapshot_at(start + len(line) + 1, at))


def find_header(log: Log, most: int) -> LogHeader | None:
    """Find the header of a log, perhaps behind lines that a crash has torn; None if there is none yet."""
    for number, line in enumerate(lines(log, 0, _HEADER_WITHIN, most)):
        header = read_header(line.data) if line.data else None
        if header:
            return header
        if line.data is None or read_object(line.data) is not None or number == _TORN:
            break
    else:
        if log.size <= _HEADER_WITHIN:
            return None
    reason = "it is not the log of a session: its first line names no session"
    raise SessionConflict(path=log.path, reason=reason, remedy="move it away, or take another key")


def faults(log: Log, most: int) -> Iterator[Diagnostic]:
    """Find lines that are no records, missing numbers, and snapshots that differ from the lines."""
    header = find_header(log, most)
    state = State.of(header) if header else State(log="", key="", version=VERSION)
    others: list[Diagnostic] = []
    place = 0

    def blocks() -> Iterator[list[PlacedRecord]]:
        nonlocal place
        is_behind = False
        for place, line in enumerate(lines(log, most=most), 1):
            record = read_record(line.data) if line.data and is_behind else None
            if not is_behind and line.data and read_header(line.data):
                is_behind = True
            elif not record:
                too_long = f"it has a hole, or more than {most:,} bytes"
                what = too_long if line.data is None else "it is not a record, or says too much"
                others.append(_describe_stray(log, place, what))
            yield [PlacedRecord(record, record.last, line, place)] if record else []

    for block in judge(blocks()):
        yield from others
        others.clear()
        for each, counts, _ in block:
            yield from _find_record_faults(log, state, each, counts=counts)
    if whole_size(log) < log.size:
        yield _describe_stray(log, place + 1, "it has no end, as a crash leaves it")


def _describe_stray(log: Log, place: int, what: str) -> Diagnostic:
    return about_file(
        log.path, "not-a-record", f"{what}: it is passed over", _FIX, line=place, severity="warning"
    )


def _find_record_faults(log: Log, state: State, each: PlacedRecord, *, counts: bool) -> Iterator[Diagnostic]:
    record, _, line, place = each
    if not counts:
        yield _describe_stray(log, place, f"its number {record.seq} comes after {state.seq}")
        state.is_disordered = True
        return
    if record.seq > max(state.seq, state.vacuumed) + 1:
        what = f"the numbers {state.seq + 1} to {record.seq - 1} are missing, and no vacuum took them"
        yield about_file(log.path, "session-gap", what, _FIX, line=place)
    if record.snapshot and (names := _find_contradictions(state, record.seq, record.snapshot, line.start)):
        what = f"the lines before it say otherwise: {names}"
        yield about_file(log.path, "snapshot-differs", what, _FIX, line=place)
    is_all = record.seq == state.vacuumed + 1
    state.take(record if is_all else record._replace(snapshot=None), line.end - line.start)


def _find_contradictions(state: State, seq: int, snapshot: Snapshot, start: int) -> str:
    """Name the fields in which a snapshot differs from the lines before it."""
    lines_say = state.snapshot._replace(start=start)._asdict()
    if seq == state.vacuumed + 1:  # only this snapshot has the rest of the log before the rewrite
        names = ["start"] if snapshot.has_dropped else ["start", "live"]
    else:
        names = [name for name in lines_say if name not in {"seq", "is_disordered"}]
    return ", ".join(name for name in names if getattr(snapshot, name) != lines_say[name])
