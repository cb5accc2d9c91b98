"""What a log says as a whole, folded record by record, and the snapshots that save reading it from the start.

Messages are not in it: a message is in the history unless its number is among the `dropped`. A summary is in
the context while all its messages are in the history and no other summary covers it. Who drops messages knows
which summaries that leaves, and says so in the same line, so that a state follows from lines alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mdmem.conversations.log.message import Message
from mdmem.conversations.log.record import (
    NOTHING,
    LogHeader,
    LogRecord,
    Ranges,
    RunSummary,
    Snapshot,
    messages_in,
)

SAME_WITHIN = 1_000
"""Among how many of the last numbers an id is not given to another message."""
SNAPSHOT_BYTES = 256 * 1024
_RESTORED = ("is_disordered", "live", "has_dropped", "text", "alias_of", "title", "metadata", "created")
_TIMES_THE_LAST = 16  # as many bytes as this many snapshots come between two: the log grows by a 16th


@dataclass(slots=True, kw_only=True)
class State:
    """A session up to one line of its log.

    Attributes:
        log, key, version, vacuumed: as in the log's first line.
        seq: the last number that is taken.
        live: how many messages are in the history.
        has_dropped: whether the log holds any of these, so that a vacuum finds something to do.
        context: the summaries in the context, by what they stand for, without their texts.
        amended: fields that messages lacked, by number.
        text, alias_of, cursors, title, metadata: as in `LogRecord`; empty where no line says them.
        is_disordered: whether lines were passed over for their numbers: the log is not in the order of these.
        created, updated: when the first and the last line was written (ISO 8601, UTC).
        recent_ids: number and hash of the last messages with an id, by that; None until somebody asks.
        grown: bytes since the last snapshot.
        snapshot_bytes: of the last snapshot.
    """

    log: str
    key: str
    version: int
    vacuumed: int = 0
    seq: int = 0
    live: int = 0
    has_dropped: bool = False
    context: list[RunSummary] = field(default_factory=list)
    amended: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    text: str = ""
    alias_of: str = ""
    cursors: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_disordered: bool = False
    created: str = ""
    updated: str = ""
    recent_ids: dict[str, tuple[int, str]] | None = None
    grown: int = 0
    snapshot_bytes: int = 0
    _dropped: Ranges = NOTHING
    _dropping: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, header: LogHeader) -> State:
        """Return the state behind the first line of a log."""
        return cls(log=header.log, key=header.key, version=header.version, vacuumed=header.vacuumed)

    @property
    def dropped(self) -> Ranges:
        """The numbers of messages that are not in the history, and of lines between them."""
        if self._dropping:  # joined when they are asked for: a log may drop again and again
            self._dropped = Ranges.of([*self._dropped, *self._dropping])
            self._dropping = []
        return self._dropped

    def copy(self) -> State:
        """Return the same state, which goes on by itself."""
        return replace(
            self,
            _dropped=self.dropped,
            _dropping=[],
            context=list(self.context),
            amended=dict(self.amended),
            cursors=dict(self.cursors),
        )

    def take(self, record: LogRecord, size: int) -> None:
        """Apply the next record, a line of `size` bytes."""
        if record.snapshot is not None:
            self._restore_snapshot(record.snapshot)
            self.grown, self.snapshot_bytes = 0, size
        else:
            self.grown += size
        self.seq = record.last
        self.created = self.created or record.at
        self.updated = record.at or self.updated
        if record.drop:
            self._dropping += record.drop
            self.live, self.has_dropped, self.recent_ids = record.live, True, None
            self.context = sorted(record.context, key=_first_message)
        said = range(record.seq, record.seq + len(record.messages))
        self.live += sum(not record.drop.holds(number) for number in said) if record.drop else len(said)
        if self.recent_ids is not None:
            self.remember_ids(messages_in([record]))
        if record.summary:
            self._cover_messages(record.summary)
        for number, fields in record.amend.items():
            self.amended[number] = {**self.amended.get(number, {}), **fields}
        if record.text is not None:
            self.text = record.text
        self.alias_of = self.alias_of if record.alias_of is None else record.alias_of
        self.title = self.title if record.title is None else record.title
        self.metadata = self.metadata if record.metadata is None else record.metadata
        self.cursors |= record.cursors

    def remember_ids(self, messages: Iterable[Message]) -> None:
        """Remember the ids of messages behind those that are known, and forget the oldest ones."""
        ids = dict(self.recent_ids or {})  # copies of this state keep the one before
        for message in messages:
            if message.id:
                ids.pop(message.id, None)
                ids[message.id] = (message.seq, message.hash)
        while ids and ids[oldest := next(iter(ids))][0] <= self.seq - SAME_WITHIN:
            del ids[oldest]
        self.recent_ids = ids

    def _cover_messages(self, summary: RunSummary) -> None:
        start = bisect_left(self.context, summary.first, key=_first_message)
        end = bisect_right(self.context, summary.last, lo=start, key=_first_message)
        self.context[start:end] = [summary.place]

    @property
    def wants_snapshot(self) -> bool:
        """Return whether so much was written since the last snapshot that another one is due."""
        return self.grown >= max(SNAPSHOT_BYTES, _TIMES_THE_LAST * self.snapshot_bytes)

    @property
    def snapshot(self) -> Snapshot:
        """The state as a record holds it, before it has a place."""
        names = (name for name in Snapshot._fields if name not in {"start", "seq"})
        values = {name: getattr(self, name) for name in names}
        return Snapshot(**{**values, "context": tuple(self.context)})

    def snapshot_at(self, start: int, at: str) -> LogRecord:
        """Make the record of the state for the next line, which begins at a byte."""
        seq = self.seq + 1
        return LogRecord(seq=seq, at=at, snapshot=self.snapshot._replace(start=start, seq=seq))

    def _restore_snapshot(self, snapshot: Snapshot) -> None:
        for name in _RESTORED:
            setattr(self, name, getattr(snapshot, name))
        self._dropped, self._dropping = snapshot.dropped, []
        self.context = sorted(snapshot.context, key=_first_message)
        self.amended, self.cursors = dict(snapshot.amended), dict(snapshot.cursors)

    @property
    def everything(self) -> Ranges:
        """The numbers of all messages that there may be."""
        return Ranges([(1, self.seq)]) if self.seq else NOTHING

    def cursor(self, name: str) -> int:
        """Return the number that somebody keeps here under a name; 0 where the log has not got as far."""
        kept = self.cursors.get(name)
        return kept if type(kept) is int and 0 <= kept <= self.seq else 0

    def holds(self, number: int) -> bool:
        """Return whether a message of this number is in the history."""
        return 0 < number <= self.seq and not self.dropped.holds(number)

    def is_free(self, first: int, last: int) -> bool:
        """Return whether no summary in the context stands for any number from `first` to `last`."""
        return all(each.last < first or last < each.first for each in self.context)

    def covering(self, number: int) -> RunSummary | None:
        """Return the summary in the context that stands for a message; None where there is none."""
        place = bisect_right(self.context, number, key=_first_message) - 1
        summary = self.context[place] if place >= 0 else None
        return summary if summary and number <= summary.last else None


def _first_message(summary: RunSummary) -> int:
    return summary.first
