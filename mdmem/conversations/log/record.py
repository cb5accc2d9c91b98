"""A line of a session's log: what it says, and how it is written.

The first line names the session. Every other one is a commit: it has a number, when it was written, and
one or more of the fields of `LogRecord`. It begins with its number, so that a log can be searched by halves
without reading its lines whole.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from mdmem.conversations.log.message import MOST_DEEP, Message
from mdmem.document.text.regex import regex
from mdmem.document.tree import encoded

T = TypeVar("T")

VERSION = 1
"""Of the format that this code writes. A log of a later one is read and not written."""

LAST_NUMBER = 10**15 - 1
"""No line has a larger number: every program that reads JSON has it exactly."""
_BEGINNING = regex(rb'\{"seq":([0-9]{1,15})[,}]')
BEGINS_WITHIN = 32
"""In how many bytes of a line its number stands."""
MOST_VALUES = 1_000_000
"""How many values a line may have: its lists, objects and commas, outside of texts."""
_VALUES = regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{]', re.DOTALL)
_LOG = regex(r"[0-9A-Za-z]{1,64}")  # files are named after it


class LogHeader(NamedTuple):
    """The first line of a log: its random id, the session's key, its version, the last number vacuumed."""

    log: str
    key: str
    version: int = VERSION
    vacuumed: int = 0


class RunSummary(NamedTuple):
    """A summary that stands for a run of messages.

    Attributes:
        seq: of the line that holds it.
        depth: 0 of messages, else one more than that of the summaries it condenses.
        first, last: the numbers of the first and the last message it stands for.
        messages: how many these are.
        of: the summaries that it condenses; empty at depth 0.
        tokens, source_tokens: of its text, and of the messages.
        earliest, latest: when the first and the last of them were said (ISO 8601).
        by: who made it.
        text: empty where only its place is kept.
    """

    seq: int
    depth: int
    first: int
    last: int
    messages: int
    of: tuple[int, ...] = ()
    tokens: int = 0
    source_tokens: int = 0
    earliest: str = ""
    latest: str = ""
    by: str = ""
    text: str = ""

    @property
    def place(self) -> RunSummary:
        """The summary without its text."""
        return self._replace(text="")


class Ranges(tuple[tuple[int, int], ...]):
    """Numbers as sorted ranges, both ends included, that do not touch."""

    __slots__ = ()

    @classmethod
    def of(cls, ranges: Iterable[Sequence[int]]) -> Ranges:
        """Sort and join ranges."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted((_read_number(first), _read_number(last)) for first, last in ranges):
            if first > last:
                raise ValueError("a range ends where it begins, or later")
            start = merged.pop() if merged and first <= merged[-1][1] + 1 else (first, last)
            merged.append((start[0], max(last, start[1])))
        return cls(merged)

    def holds(self, number: int) -> bool:
        """Return whether a number is in one of the ranges."""
        return self.meets(number, number)

    def skip(self, number: int) -> int:
        """Return the first number from `number` on that the first range does not hold."""
        return self[0][1] + 1 if self and self[0][0] <= number <= self[0][1] else number

    def start_of(self, number: int) -> int:
        """Return the first number of the range that holds a number; that number itself where none does."""
        at = bisect_right(self, (number, LAST_NUMBER)) - 1
        return self[at][0] if at >= 0 and number <= self[at][1] else number

    def leave_out(self, messages: list[Message]) -> list[Message]:
        """Return the messages that have no number in the ranges."""
        return [each for each in messages if not self.holds(each.seq)] if self else messages

    def meets(self, first: int, last: int) -> bool:
        """Return whether any number from `first` to `last` is in one of the ranges."""
        at = bisect_right(self, (last, LAST_NUMBER)) - 1
        return at >= 0 and first <= self[at][1]


NOTHING = Ranges()


class Snapshot(NamedTuple):
    """What all lines up to one say (`mdmem.conversations.log.state`), so that those need not be read.

    Attributes:
        start, seq: where its line begins, in bytes, and the number of that. It does not count where its line
            stands elsewhere, or has another number: the lines before it are others then.
        is_disordered: whether lines up to it were passed over for their numbers.
        live, dropped, has_dropped, context, amended, text, alias_of, cursors, title, metadata, created: as in
            `State`.
    """

    start: int = 0
    seq: int = 0
    is_disordered: bool = False
    live: int = 0
    dropped: Ranges = NOTHING
    has_dropped: bool = False
    context: tuple[RunSummary, ...] = ()
    amended: Mapping[int, Mapping[str, Any]] = MappingProxyType({})
    text: str = ""
    alias_of: str = ""
    cursors: Mapping[str, Any] = MappingProxyType({})
    title: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})
    created: str = ""

    def is_at(self, start: int, seq: int) -> bool:
        """Return whether it was written as the line that begins at a byte and has a number."""
        return (self.start, self.seq) == (start, seq)


class LogRecord(NamedTuple):
    """A commit of a log; what it does not say is empty.

    Attributes:
        seq: its number; where it has messages, that of the first, and each further one has the next.
        at: when it was written (ISO 8601, UTC).
        messages: added at the end.
        drop: numbers of messages that are no longer in the history; those of its own may be among them.
        live: with `drop`, how many messages of the lines before are in the history after this line.
        context: with `drop`, the summaries that are in the context after this line, without their texts.
        summary: one more, instead of the messages or summaries that it stands for.
        amend: fields that messages lacked, by number.
        text: the summary that `set_summary` set; None where it stays.
        alias_of: the key of the session that this one is another name of from here on; empty where of none.
        cursors: positions that others keep here, by name.
        title, metadata: those that `set_metadata` set; None where they stay.
        snapshot: the state up to this line.
    """

    seq: int
    at: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    drop: Ranges = NOTHING
    live: int = 0
    context: tuple[RunSummary, ...] = ()
    summary: RunSummary | None = None
    amend: Mapping[int, Mapping[str, Any]] = MappingProxyType({})
    text: str | None = None
    alias_of: str | None = None
    cursors: Mapping[str, Any] = MappingProxyType({})
    title: str | None = None
    metadata: Mapping[str, Any] | None = None
    snapshot: Snapshot | None = None

    @property
    def last(self) -> int:
        """The last number that it takes."""
        return self.seq + max(len(self.messages), 1) - 1


def read_seq(beginning: bytes) -> int | None:
    """Read the number of a line from its first bytes; None where it is no record."""
    match = _BEGINNING.match(beginning)
    return int(match[1]) if match else None


def write_header(header: LogHeader) -> bytes:
    """Write the first line of a log."""
    return encoded({"seq": 0, **header._asdict()}).encode()


def read_header(line: bytes) -> LogHeader | None:
    """Read the first line of a log; None where it is no such line."""
    shape = read_object(line.removeprefix(codecs.BOM_UTF8))
    if shape is None or shape.get("seq") != 0:
        return None
    header = LogHeader(*(shape.get(name) for name in LogHeader._fields))  # type: ignore[arg-type]
    if [type(value) for value in header] != [str, str, int, int]:
        return None
    return header if _LOG.fullmatch(header.log) and 0 <= header.vacuumed <= LAST_NUMBER else None


def write_record(record: LogRecord) -> bytes:
    """Write a record as a line, without its end."""
    shape: dict[str, Any] = {"seq": record.seq, "at": record.at}
    for name in ("messages", "amend", "cursors"):
        if value := getattr(record, name):
            shape[name] = value
    for name in ("text", "alias_of", "title", "metadata"):
        if (value := getattr(record, name)) is not None:
            shape[name] = value
    if record.drop:
        context = list(map(_summary_as_json, record.context))
        shape |= {"drop": record.drop, "live": record.live, "context": context}
    if record.summary:
        shape["summary"] = _summary_as_json(record.summary)
    if record.snapshot is not None:
        fields = record.snapshot._asdict() | {"context": list(map(_summary_as_json, record.snapshot.context))}
        shape["snapshot"] = {name: value for name, value in fields.items() if value}
    try:
        return encoded(shape).encode()
    except UnicodeEncodeError:  # half of a character that takes two in UTF-16: only an escape can hold it
        return json.dumps(shape, allow_nan=False, separators=(",", ":"), default=dict).encode()


def messages_in(records: Iterable[LogRecord]) -> list[Message]:
    """Return the messages of records, each with its number."""
    return [
        Message.of(number, data, each.at)
        for each in records
        for number, data in enumerate(each.messages, each.seq)
    ]


def read_records(lines: Iterable[bytes | None]) -> list[tuple[LogRecord, int] | None]:
    """Read lines as `read_record` does, each with its last number; None for one that is too long."""
    records = (read_record(line) if line else None for line in lines)
    return [(record, record.last) if record else None for record in records]


def read_record(line: bytes) -> LogRecord | None:
    """Read a line; None where it is no record. Unknown fields are ignored."""
    number = read_seq(line[:BEGINS_WITHIN])
    shape = read_object(line) if number else None
    if not number or shape is None:
        return None
    try:
        record = LogRecord(**_read_fields(_READERS, LogRecord._fields, shape))
    except (AttributeError, TypeError, ValueError):
        return None
    is_odd = record.last > LAST_NUMBER or (record.summary and record.summary.seq != number)
    return None if is_odd or record.seq != number else record


def _summary_as_json(summary: RunSummary) -> dict[str, Any]:
    return {name: value for name, value in summary._asdict().items() if value not in ("", ())}


def _read_summary(shape: Mapping[str, Any]) -> RunSummary:
    summary = RunSummary(**_read_fields(_OF_SUMMARY, _OF_SUMMARY, shape))
    # What condenses others stands behind them: nobody who follows `of` comes round in a circle.
    if not 0 < summary.first <= summary.last < summary.seq or any(each >= summary.seq for each in summary.of):
        raise ValueError("a summary stands before a message or summary that it stands for")
    return summary


def _read_fields(
    readers: Mapping[str, Callable[[Any], Any]], names: Container[str], shape: Mapping[str, Any]
) -> dict[str, Any]:
    return {name: readers[name](value) for name, value in shape.items() if name in names}


def _check_type(kind: type[T], value: Any) -> T:
    if type(value) is not kind:
        raise TypeError(f"this is no {kind.__name__}")
    return value


_read_text, _read_object = partial(_check_type, str), partial(_check_type, dict)
_read_list = partial(_check_type, list)


def _read_number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LAST_NUMBER:
        raise TypeError("this is neither the number of a line nor a count")
    return value


def _read_messages(value: list[Any]) -> tuple[Mapping[str, Any], ...]:
    messages = tuple(map(_read_object, _read_list(value)))
    if any(map(_is_too_deep, messages)):  # nobody could write it
        raise ValueError("values nested too deeply")
    return messages


def _is_too_deep(value: Any, depth: int = 0) -> bool:
    if depth > MOST_DEEP:
        return True
    for each in value.values() if type(value) is dict else value:  # each message that is read comes here
        kind = type(each)
        if (kind is dict or kind is list) and _is_too_deep(each, depth + 1):
            return True
    return False


def _read_amendments(value: dict[str, Any]) -> dict[int, Mapping[str, Any]]:
    return {int(number): _read_object(fields) for number, fields in value.items()}


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("seq", "live", "start"), _read_number),
    **dict.fromkeys(("at", "text", "alias_of", "title", "created"), _read_text),
    **dict.fromkeys(("cursors", "metadata"), _read_object),
    **dict.fromkeys(("is_disordered", "has_dropped"), partial(_check_type, bool)),
    **dict.fromkeys(("drop", "dropped"), Ranges.of),
    **dict.fromkeys(("amend", "amended"), _read_amendments),
    "messages": _read_messages,
    "context": lambda value: tuple(map(_read_summary, _read_list(value))),
    "summary": _read_summary,
    "snapshot": lambda value: Snapshot(**_read_fields(_READERS, Snapshot._fields, value)),
}
_OF_SUMMARY: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("seq", "depth", "first", "last", "messages", "tokens", "source_tokens"), _read_number),
    **dict.fromkeys(("earliest", "latest", "by", "text"), _read_text),
    "of": lambda value: tuple(map(_read_number, _read_list(value))),
}


def has_too_much(line: bytes) -> bool:
    """Return whether a line has more than `MOST_VALUES`: in memory they take a hundred times its bytes."""
    if len(line) <= MOST_VALUES or line.count(b",") + line.count(b"[") + line.count(b"{") <= MOST_VALUES:
        return False
    values = (match for match in _VALUES.finditer(line) if not match[0].startswith(b'"'))
    return next(islice(values, MOST_VALUES, None), None) is not None


def read_object(line: bytes) -> dict[str, Any] | None:
    """Read a JSON object; None where it is none, is too large, or has a number that JSON lacks."""
    if has_too_much(line):
        return None
    try:
        value = DECODER.decode(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"JSON has no such number: {text}")
    return number


DECODER = json.JSONDecoder(parse_float=_read_finite, parse_constant=_read_finite)
"""Reads JSON without the numbers that it lacks: NaN and the infinite ones."""
