"""Exact search in sessions, and the hits that every search in sessions gives.

Messages and summaries are written to one ripgrep, one after the other.
The place of a match says which text it is in.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from mdmem.conversations.log.conversation import Conversation
from mdmem.conversations.log.logs import SessionLogs
from mdmem.conversations.log.record import LogRecord
from mdmem.document.moment import moment_of
from mdmem.document.text.regex import MOST_CHARACTERS, regex
from mdmem.errors import LimitReached, MdmemError, Usage
from mdmem.index import ripgrep

if TYPE_CHECKING:
    from mdmem.index.grep import Case

HitScope = Literal["both", "message", "summary"]

SUMMARY = "summary"
"""The role of a hit that is a summary."""
COUNTED = 10_000
"""Further hits that are counted at most."""
MOST_NAMED = 10
"""Logs left out that are named at most."""

_SNIPPET, _BEFORE = 240, 80  # characters of a snippet; before the match
_BLOCK = 1 << 16  # bytes that are written to ripgrep at once
_SPAN = regex(r"([0-9]{1,6})([hdwm])")
_PLACE = regex(rb"([0-9]+):([0-9]+):")  # of a match: the column, and where its line begins
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24}
_OPTIONS = (
    *("--no-config", "--color=never", "--no-heading", "--no-filename", "--no-line-number", "--byte-offset"),
    *("--column", "--max-columns=1", "--text", "--encoding=none"),
)
_LINE_END = b"\xff"  # for a line end inside a text; no UTF-8 holds this byte


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A message or a summary that matches.

    Attributes:
        key: of its session.
        seq: its number; `<key>#<seq>` names it.
        role: who speaks; `summary` of a summary.
        time: when it was said (ISO 8601); of a summary, when the last message it stands for was.
        snippet: the match, and what stands around it.
        depth: of a summary, 0 where it stands for messages; None of a message.
        score: how well it fits, where hits are ranked.
    """

    key: str
    seq: int
    role: str
    time: str
    snippet: str
    depth: int | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHits:
    """The hits of a search, how many more there are, and notes about logs and words that were left out.

    `grep` counts up to 10,000 further hits. `search` also counts those that it has not read. Some of these
    may have left the history, or be removed by a filter: its number is the most there can be.
    """

    hits: tuple[SessionHit, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()


class SessionFilter(NamedTuple):
    """What a search looks at.

    Attributes:
        role: only texts of this role: `user`, `assistant`, `tool`, …; None for all.
        since, before: only texts from the one time on, and before the other.
        dropped: also texts that left the history.
        gone: only texts that left the history.
    """

    role: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    scope: HitScope = "both"
    dropped: bool = False
    gone: bool = False

    def texts_of(self, conversation: Conversation, records: Sequence[LogRecord]) -> list[SessionHit]:
        """Return the messages and summaries of records that pass, by number, each with its whole text."""
        key, gone, texts = conversation.state.key, conversation.state.dropped, list[SessionHit]()
        for message in conversation.messages_of(records) if self.scope != "summary" else ():
            text = SessionHit(key, message.seq, message.role, message.created_at, message.searchable)
            if self._takes_text(text, is_live=not (gone and gone.holds(message.seq))):
                texts.append(text)
        for record in records if self.scope != "message" else ():
            if summary := record.summary:
                time = summary.latest or record.at
                text = SessionHit(key, summary.seq, SUMMARY, time, summary.text, summary.depth)
                if self._takes_text(text, is_live=not gone.meets(summary.first, summary.last)):
                    texts.append(text)
        return sorted(texts, key=attrgetter("seq"))

    def _takes_text(self, text: SessionHit, *, is_live: bool) -> bool:
        if is_live if self.gone else not (is_live or self.dropped):
            return False
        if self.role is not None and text.role != self.role:
            return False
        if not (self.since or self.before):
            return True
        time = moment_of(text.time)
        return bool(time and (self.since or time) <= time and not (self.before and time >= self.before))


def read_text(conversation: Conversation, seq: int, chosen: SessionFilter) -> SessionHit | None:
    """Read the message or summary of a number, whole; None where there is none, or the filter removes it."""
    record = next(conversation.records(seq), None)
    texts = chosen.texts_of(conversation, [record]) if record else ()
    return next((each for each in texts if each.seq == seq), None)


def make_filter(
    key: str | None,
    every: bool,
    role: str | None,
    last: str | None,
    since: str | None,
    before: str | None,
    scope: HitScope,
    dropped: bool,
    limit: int,
) -> SessionFilter:
    """Make the filter of a search from its arguments."""
    if (key is None) is not every:
        raise Usage(problem="search one session, or all of them", remedy="name a session, or ask for all")
    if limit < 1:
        raise Usage(problem=f"limit is {limit}", remedy="give a limit of 1 or more")
    if scope not in {"both", "message", "summary"}:
        raise Usage(problem=f"scope is both, message or summary, not {scope!r}")
    if last is not None and since is not None:
        raise Usage(problem="last and since say the same", remedy="give one of them")
    return SessionFilter(
        role=role,
        since=datetime.now(UTC) - parse_last(last) if last is not None else _parse_bound("since", since),
        before=_parse_bound("before", before),
        scope=scope,
        dropped=dropped,
    )


def parse_last(text: str) -> timedelta:
    """Read a span of hours, days, weeks or months of 30 days: `2h`, `3d`, `1w`, `1m`."""
    span = _SPAN.fullmatch(text.strip().lower())
    if not span:
        raise Usage(problem=f"a span is 2h, 3d, 1w or 1m, not {text!r}")
    return timedelta(hours=int(span[1]) * _HOURS[span[2]])


def _parse_bound(name: str, text: str | None) -> datetime | None:
    time = None if text is None else moment_of(text)
    if text is not None and time is None:
        raise Usage(problem=f"{name} is a time such as 2026-05-04 or 2026-05-04T10:00:00Z, not {text!r}")
    return time


def snippet(text: str, start: int) -> str:
    """Cut what stands around a character of a text, as one line that is never long."""
    first = max(0, start - _BEFORE)
    cut = " ".join(text[first : first + _SNIPPET].split())
    return f"{'…' if first else ''}{cut}{'…' if first + _SNIPPET < len(text) else ''}"


def explain_missed(missed: Sequence[MdmemError]) -> tuple[str, ...]:
    """Write the notes about logs that cannot be read, or are too large to be read unless they are named."""
    large = [f"left out: {each.message}; {each.hint}" for each in missed if isinstance(each, LimitReached)]
    notes = large[:MOST_NAMED]
    if len(large) > MOST_NAMED:
        notes.append(f"{len(large) - MOST_NAMED:,} more logs like this")
    if other := len(missed) - len(large):
        notes.append(f"logs that cannot be read: {other}; `mdmem sessions check` says why")
    return tuple(notes)


# -- exact search -----------------------------------------------------------------------------------------


def grep(
    logs: SessionLogs,
    key: str | None,
    pattern: str,
    chosen: SessionFilter,
    limit: int,
    *,
    regex: bool,
    case: Case,
) -> SessionHits:
    """Find what matches in a session, the newest first; without a key in all of them, by time."""
    command = _write_command(pattern, case, regex=regex)
    missed: list[MdmemError] = []
    texts = _TextStream(_open_logs(logs, key, chosen, missed), line_end=b"\n" if regex else _LINE_END)
    last: dict[int, deque[tuple[int, int]]] = defaultdict(lambda: deque(maxlen=limit))
    count, before = 0, -1
    with ripgrep.Process(command, given=texts.blocks()) as process:
        for line in process.lines():
            if place := _PLACE.match(line):
                column, offset = map(int, place.groups())
                number = bisect_right(texts.starts, offset) - 1
                if number != before:
                    start = offset + column - 1 - texts.starts[number]
                    last[bisect_right(texts.firsts, number) - 1].append((texts.seqs[number], start))
                    count, before = count + 1, number
        if process.ended() > 1:
            raise ripgrep.failure(command[0], process.errors(), pattern)
    hits = [
        hit
        for number in sorted(last)
        for hit in _read_hits(logs, *texts.logs[number], reversed(last[number]))
    ]
    if key is None:
        hits.sort(key=lambda hit: moment_of(hit.time) or _LONG_AGO, reverse=True)
    left_out = min(count - len(hits[:limit]), COUNTED)
    return SessionHits(hits=tuple(hits[:limit]), left_out=left_out, notes=explain_missed(missed))


def _write_command(pattern: str, case: Case, *, regex: bool) -> list[str]:
    how = ripgrep.case_option(case)
    if not pattern:
        raise Usage(problem="the pattern is empty", remedy="say what to look for")
    if len(pattern) > MOST_CHARACTERS:
        raise Usage(problem=f"a pattern has at most {MOST_CHARACTERS:,} characters")
    if "\0" in pattern or pattern.encode(errors="replace").decode() != pattern:
        raise Usage(problem=f"{pattern!r} is not text")
    if not regex:  # a literal may reach over several lines, so a text becomes one
        pattern = r"(?-u:\xff)".join(map(re.escape, pattern.split("\n")))
    return [ripgrep.program(), *_OPTIONS, how, f"--regexp={pattern}", "-"]


def _open_logs(
    logs: SessionLogs, key: str | None, chosen: SessionFilter, missed: list[MdmemError]
) -> Iterator[tuple[Conversation, SessionFilter]]:
    """Yield the conversations to search, each open until the next one, and which of its texts."""
    if key is None:
        yield from ((each, chosen) for each in logs.all(missed) if not each.state.alias_of)
    elif chosen.dropped:
        # A vacuumed log holds what it kept; the archive alone holds the rest.
        for number, conversation in enumerate(logs.with_archive(key)):
            yield conversation, chosen._replace(gone=number > 0)
    else:
        with logs.reading(key) as conversation:
            yield conversation, chosen


class _TextStream:
    """The texts that a search looks at, and where each begins in what ripgrep gets.

    Attributes:
        starts, seqs: the first byte and the number of each text.
        logs, firsts: the path and the filter of each log that was read, and its first text.
    """

    def __init__(self, opened: Iterable[tuple[Conversation, SessionFilter]], line_end: bytes) -> None:
        self._opened, self._line_end = opened, line_end
        self.starts, self.seqs, self.firsts = array("Q"), array("Q"), array("Q")
        self.logs: list[tuple[str, SessionFilter]] = []

    def blocks(self) -> Iterator[bytes]:
        """Yield the texts, each with a line end, some at once."""
        block: list[bytes] = []
        position = written = 0
        for conversation, chosen in self._opened:
            self.logs.append((conversation.log.path, chosen))
            self.firsts.append(len(self.starts))
            for records in conversation.record_blocks():
                for text in chosen.texts_of(conversation, records):
                    data = text.snippet.encode("utf-8", "replace").replace(b"\n", self._line_end) + b"\n"
                    self.starts.append(position)
                    self.seqs.append(text.seq)
                    block.append(data)
                    position += len(data)
                if position - written >= _BLOCK:
                    yield b"".join(block)
                    block, written = [], position
        yield b"".join(block)


def _read_hits(
    logs: SessionLogs, path: str, chosen: SessionFilter, places: Iterable[tuple[int, int]]
) -> Iterator[SessionHit]:
    """Read the texts of some numbers again; a log that was removed meanwhile has none."""
    with logs.at(path, archived=True) as conversation:
        for seq, start in places if conversation else ():
            if conversation and (text := read_text(conversation, seq, chosen)):
                at = len(text.snippet.encode("utf-8", "replace")[:start].decode("utf-8", "ignore"))
                yield replace(text, snippet=snippet(text.snippet, at))
