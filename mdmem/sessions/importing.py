"""Import conversations of other programs, however large: each message once, and behind what is there.

Messages of a transcript that the log holds are recognised by their hashes, in order; what follows is added.
The log also keeps how far the transcript was read, so that its start is not read again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.document import secret
from mdmem.document.document import digest
from mdmem.errors import Invalid, PathRefused, SessionConflict, Usage
from mdmem.sessions.conversation import Conversation
from mdmem.sessions.message import MOST_DEEP, Message
from mdmem.sessions.record import LogRecord, Ranges, messages_in
from mdmem.sessions.transcripts import MIGRATED, Transcript, TranscriptEntry, transcripts
from mdmem.vault import files

if TYPE_CHECKING:
    from mdmem.sessions.sessions import Sessions

_LINE = 1 << 20  # characters of entries that become one line of the log
_HOOK_SECONDS = 1.0
_ENVELOPE = 4_096  # bytes of a line without its messages
_MOST_REASONS = 100  # of one transcript that are listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """What an import brought to a session: its key, the file, and how many messages were added."""

    key: str
    path: str
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionImport:
    """What an import did: the sessions, those with nothing new included, and what was left out, and why."""

    sessions: tuple[ImportedSession, ...]
    left_out: tuple[str, ...]


def import_transcripts(
    sessions: Sessions,
    form: str,
    source: str,
    key: str | None = None,
    *,
    rename: bool = False,
    seconds: float | None = None,
) -> SessionImport:
    """Import as `Sessions.import_`; what is not read in `seconds` is left to the next import."""
    if key is not None and os.path.isdir(source):
        raise Usage(problem="a key is for one file", remedy="give the file of one conversation")
    left_out: list[str] = []
    imported: list[ImportedSession] = []
    for found in transcripts(form, source, sessions.logs.most - _ENVELOPE, left_out):
        transcript = found if key is None else replace(found, key=key)
        reasons = _Reasons(transcript.path)
        try:
            messages = _Importer(sessions, form, transcript, reasons, seconds).run()
            _set_aliases(sessions, transcript, reasons)
            if rename:
                _rename_files(transcript, reasons)
        except _NotImported as reason:
            reasons.add(str(reason))
        except (PathRefused, SessionConflict) as error:
            reasons.add(error.message)
        else:
            imported.append(ImportedSession(key=transcript.key, path=transcript.path, messages=messages))
        left_out += reasons.listed
    return SessionImport(sessions=tuple(imported), left_out=tuple(left_out))


def import_named(sessions: Sessions, form: str, path: str) -> str | None:
    """Import a file that a hook names while its host waits; of a very long one, the next call reads on.

    Returns:
        The key of its session; None where nothing was imported.
    """
    if not (os.path.isabs(path) and os.path.isfile(path)):
        return None
    done = import_transcripts(sessions, form, path, seconds=_HOOK_SECONDS)
    return next((each.key for each in done.sessions), None)


class _NotImported(Exception):
    """Why a transcript is not imported."""


class _Overtaken(Exception):
    """Another process wrote the log while the transcript was read."""


class _Reasons:
    """Why parts of one transcript are left out: the first reasons in words, the others by number."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.clear()

    def clear(self) -> None:
        self._first: list[str] = []
        self._more = 0

    def add(self, reason: str) -> None:
        if len(self._first) < _MOST_REASONS:
            self._first.append(f"{self._path}: {reason}")
        else:
            self._more += 1

    @property
    def listed(self) -> list[str]:
        return self._first + ([f"{self._path}: {self._more:,} more"] if self._more else [])


class _Position(NamedTuple):
    """How far a transcript was read, as the log keeps it.

    Attributes:
        number, start, end: of the last entry that was read, as in `TranscriptEntry`.
        sha256: of its text.
        seq, message: of its last message in the log: the number, 0 without one, and the hash.
        summary: the hash of the transcript's summary, where that was set.
    """

    number: int = 0
    start: int = 0
    end: int = 0
    sha256: str = ""
    seq: int = 0
    message: str = ""
    summary: str = ""

    @classmethod
    def read(cls, kept: Any) -> _Position | None:
        """Read a position as a log keeps it; None where it is something else."""
        try:
            position = cls(**kept)
        except TypeError:
            return None
        return (
            position if [type(value) for value in position] == [int, int, int, str, int, str, str] else None
        )

    def behind(self, entry: TranscriptEntry | None) -> _Position:
        """Return the position behind an entry."""
        if entry is None:
            return self
        sha256 = _hash_text(entry.text)
        return self._replace(number=entry.number, start=entry.start, end=entry.end, sha256=sha256)


@dataclass(slots=True)
class _Batch:
    """What becomes one line of the log.

    Attributes:
        position: behind which its entries stand.
        kept, seq: the position and the last number that the log must have still; a number of None is any.
        messages: in order.
        is_dropped: whether they are no longer in the history.
        last: the last entry that was read.
        size: characters that were read.
    """

    position: _Position
    kept: Any
    seq: int | None = None
    messages: list[Mapping[str, Any]] = field(default_factory=list)
    is_dropped: bool = False
    last: TranscriptEntry | None = None
    size: int = 0


class _Importer:
    """The import of one transcript into one session."""

    def __init__(
        self, sessions: Sessions, form: str, transcript: Transcript, reasons: _Reasons, seconds: float | None
    ) -> None:
        self._sessions, self._transcript, self._reasons = sessions, transcript, reasons
        self._until = None if seconds is None else time.monotonic() + seconds
        self._name = f"{form}:{os.path.basename(transcript.path)}"
        config = sessions.logs.vault.config
        self._allow, self._keeps_secrets = config.secrets.allow, config.sessions.secrets == "keep"
        self._most = min(_LINE, sessions.logs.most // 2)
        self._added = 0

    def run(self) -> int:
        """Add what is new; return how many messages that was.

        Raises:
            _NotImported: the session is ignored, or has messages that are newer.
        """
        if not self._sessions.is_kept(self._transcript.key):
            raise _NotImported(f"the config has nothing kept of {self._transcript.key!r}")
        while True:
            with suppress(_Overtaken):
                self._add_new()
                return self._added

    def _add_new(self) -> None:
        self._reasons.clear()
        with self._sessions.logs.reading(self._transcript.key) as conversation:
            batch, entries = self._resume_import(conversation) or self._recognise_held(conversation)
        for entry in entries:
            is_dropped = entry.number <= self._transcript.dropped
            is_other = is_dropped != batch.is_dropped and batch.messages
            if batch.last and (is_other or batch.size + len(entry.text) > self._most):
                batch = self._commit_batch(batch)
                if self._until is not None and time.monotonic() > self._until:
                    return
            message = self._clean_entry(entry)
            batch.messages += [message] if message is not None else []
            batch.last, batch.size, batch.is_dropped = entry, batch.size + len(entry.text), is_dropped
        summary = self._transcript.summary
        is_new = summary and batch.position.summary != _hash_text(summary)
        if batch.messages or is_new or (batch.seq and batch.position.number):
            self._commit_batch(batch, summary)

    def _resume_import(self, conversation: Conversation) -> tuple[_Batch, Iterator[TranscriptEntry]] | None:
        """Go on where the last import ended; None where that place is gone from the log or the transcript."""
        kept = conversation.state.cursors.get(self._name)
        position = _Position.read(kept)
        if position is None or (position.seq and not conversation.stands(position.seq, position.message)):
            return None
        entries = self._transcript.read(position.start, position.number)
        first = next(entries, None)
        if first is None or first.end != position.end or _hash_text(first.text) != position.sha256:
            return None
        return _Batch(position, kept), entries

    def _recognise_held(self, conversation: Conversation) -> tuple[_Batch, Iterator[TranscriptEntry]]:
        """Go on behind the last message that the log holds already, by the hashes of its messages.

        Raises:
            _NotImported: what follows is not newer than the rest of the session.
        """
        state, position, last = conversation.state, _Position(), None
        kept = state.cursors.get(self._name)
        held = (message for record in conversation.records() for message in messages_in([record]))
        entries = self._transcript.read(0, 1)
        for entry in entries:
            data = self._clean_entry(entry)
            if data is not None:
                wanted, newest = Message.of(0, data).hash, None
                for message in held:
                    if message.hash == wanted:
                        position = position._replace(seq=message.seq, message=wanted)
                        break
                    newest = message if state.holds(message.seq) else newest
                else:
                    if newest and not _is_later(data, newest):
                        reason = f"the session {self._transcript.key!r} has messages that it has not"
                        raise _NotImported(f"{reason}, and that are newer; import it under another key")
                    return _Batch(position.behind(last), kept, state.seq), chain([entry], entries)
            last = entry
        return _Batch(position.behind(last), kept, state.seq), iter(())

    def _clean_entry(self, entry: TranscriptEntry) -> Mapping[str, Any] | None:
        """Remove the secrets of an entry's message; None where nothing of it is kept."""
        data = entry.message
        if entry.fault:
            self._reasons.add(f"entry {entry.number}: {entry.fault}")
        if data is None or Message.of(0, data).is_transient:
            return None
        if self._is_clean(entry.text):
            return data
        try:
            return self._sessions.cleaned(self._transcript.key, data)
        except (Usage, Invalid) as error:
            self._reasons.add(f"entry {entry.number}: {error.message}")
            return None

    def _is_clean(self, text: str) -> bool:
        """Return whether a text has nothing to remove: most messages need not be written again."""
        if text.count("{") + text.count("[") > MOST_DEEP:
            return False
        if self._keeps_secrets:
            return True
        return secret.ALLOW_MARK not in text and not secret.find(text, allow=self._allow)

    def _commit_batch(self, batch: _Batch, summary: str = "") -> _Batch:
        """Append messages and the position behind them in one line; return the next batch.

        Raises:
            _Overtaken: the log is not what it was when the transcript was read.
        """

        def build(conversation: Conversation) -> tuple[LogRecord, _Position]:
            state = conversation.state
            if state.cursors.get(self._name) != batch.kept or batch.seq not in {None, state.seq}:
                raise _Overtaken
            position, record = batch.position.behind(batch.last), LogRecord(seq=0)
            if batch.messages:
                first, last = state.seq + 1, state.seq + len(batch.messages)
                position = position._replace(seq=last, message=Message.of(last, batch.messages[-1]).hash)
                if batch.is_dropped:
                    record = conversation.dropping(Ranges([(first, last)]), state.live)
            if summary:
                # What somebody has set since the last import is newer.
                is_ours = not state.text or _hash_text(state.text) == position.summary
                record = record._replace(text=summary if is_ours else None)
                position = position._replace(summary=_hash_text(summary))
            cursors = {self._name: position._asdict()}
            return record._replace(messages=tuple(batch.messages), cursors=cursors), position

        position = self._sessions.logs.commit(self._transcript.key, build)
        self._added += len(batch.messages)
        return _Batch(position, position._asdict())


def _is_later(data: Mapping[str, Any], message: Message) -> bool:
    """Return whether `data` was said after another message; not where it does not say when."""
    try:
        times = [
            datetime.fromisoformat(text) for text in (Message.of(0, data).created_at, message.created_at)
        ]
    except ValueError:
        return False
    said, before = (each if each.tzinfo else each.replace(tzinfo=UTC) for each in times)
    return said > before


def _hash_text(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))


def _set_aliases(sessions: Sessions, transcript: Transcript, reasons: _Reasons) -> None:
    """Make the other keys of a conversation lead to it, but for those that are sessions themselves."""
    for alias in transcript.aliases:
        try:
            own = sessions.resolve(alias)
            if own == alias != transcript.key and not sessions.info(alias).messages:
                sessions.alias(alias, transcript.key)
            elif own != sessions.resolve(transcript.key):
                reasons.add(f"{alias!r} is another session, and no alias of {transcript.key!r}")
        except (PathRefused, SessionConflict) as error:
            reasons.add(f"the alias {alias!r}: {error.message}")


def _rename_files(transcript: Transcript, reasons: _Reasons) -> None:
    """Give the files of a conversation names that say that it was taken in."""
    for path in transcript.files:
        folder, name = os.path.split(path)
        try:
            with files.opened(folder or ".") as descriptor:
                files.move((descriptor, name), (descriptor, name + MIGRATED))
        except files.Raced:
            reasons.add(f"not renamed: there is {name}{MIGRATED} already")
        except OSError as error:
            reasons.add(f"not renamed: {error.strerror}")
