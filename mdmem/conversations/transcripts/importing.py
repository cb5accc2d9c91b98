"""Import conversations of other programs, of any size; add each message once, behind those that are there.

Messages of a transcript that the log holds are recognised by their hashes, in order; what follows is added.
The log also keeps how far the transcript was read, so that its start is not read again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from mdmem.conversations.log.conversation import Conversation
from mdmem.conversations.log.logs import SessionLogs
from mdmem.conversations.log.message import MOST_DEEP, Message, is_asked
from mdmem.conversations.log.record import LogRecord, Ranges, messages_in
from mdmem.conversations.transcripts.keeping import clean_message, is_kept, refuse_secret
from mdmem.conversations.transcripts.transcripts import (
    FORMATS,
    MIGRATED,
    Transcript,
    TranscriptEntry,
    transcripts,
)
from mdmem.document import secret
from mdmem.document.document import digest
from mdmem.document.moment import moment_of
from mdmem.errors import Invalid, PathRefused, SessionConflict, Usage
from mdmem.vault import files

HOOK_SECONDS = 1.0
"""How long a hook reads while its host waits; the next hook goes on with a very long transcript."""
_WAIT_SECONDS = 60.0  # for another import of the same session; a hook waits for none
_LINE = 1 << 20  # characters of entries that become one line of the log
_ENVELOPE = 4_096  # bytes of a line without its messages
_MOST_BACK = 200  # the last messages; only these may be replaced
_MOST_REASONS = 100  # that are listed for one transcript
_OF_AGENT = "it belongs to a subagent: its answer stands in the session that asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """What an import brought to a session: its key, the file, how many messages were added, the format."""

    key: str
    path: str
    messages: int
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionImport:
    """What an import did: the sessions, also those with nothing new, and what was left out and why."""

    sessions: tuple[ImportedSession, ...]
    left_out: tuple[str, ...]


def import_transcripts(
    logs: SessionLogs,
    form: str | None,
    paths: Sequence[str],
    key: str | None = None,
    *,
    rename: bool = False,
    seconds: float | None = None,
) -> SessionImport:
    """Import transcripts for at most `seconds`; the next call goes on from there. See `Sessions.import_`."""
    if form is None and len(paths) > 1 and (paths[0] in FORMATS or not os.path.lexists(paths[0])):
        form, *paths = paths
    if key is not None and (len(paths) != 1 or os.path.isdir(paths[0])):
        raise Usage(problem="a key is for one file", remedy="give the file of one conversation")
    left_out: list[str] = []
    of_agents: list[str] = []
    imported: list[ImportedSession] = []
    most = logs.most - _ENVELOPE
    report = partial(logs.vault.report_progress, "importing")
    found_in = (transcripts(form or "", path, most, left_out, report) for path in paths)
    for found in chain.from_iterable(found_in):
        transcript = found if key is None else replace(found, key=key)
        importer = _Importer(logs, transcript, seconds)
        try:
            importer.add_new()
            importer.set_aliases()
            if rename:
                importer.rename_files()
        except _NotImported as reason:
            if str(reason) == _OF_AGENT:
                of_agents.append(transcript.path)
            else:
                importer.leave_out(str(reason))
        except (PathRefused, SessionConflict, Usage) as error:
            importer.leave_out(error.message)
        else:
            path, added = transcript.path, importer.added
            imported.append(
                ImportedSession(key=transcript.key, path=path, messages=added, format=transcript.format)
            )
        left_out += importer.list_left_out()
    if of_agents:
        count = f" ({len(of_agents):,} files)" if len(of_agents) > 1 else ""
        left_out.append(f"{os.path.commonpath(of_agents)}: {_OF_AGENT}{count}")
    return SessionImport(sessions=tuple(imported), left_out=tuple(left_out))


class _NotImported(Exception):
    """Why a transcript is not imported."""


class _Position(NamedTuple):
    """How far a transcript was read: the last entry (see `TranscriptEntry`), and the hash of its summary."""

    number: int = 0
    start: int = 0
    end: int = 0
    sha256: str = ""
    summary: str = ""

    @classmethod
    def read(cls, kept: Any) -> _Position:
        """Read a position that a log keeps; what is no position counts as the start of the transcript."""
        try:
            position = cls(**kept)
        except TypeError:
            return cls()
        is_one = [type(value) for value in position] == [int, int, int, str, str]
        return position if is_one and position.start >= 0 else cls()

    def behind(self, entry: TranscriptEntry | None) -> _Position:
        if entry is None:
            return self
        return _Position(entry.number, entry.start, entry.end, _hash_text(entry.text), self.summary)


class _Importer:
    """Imports one transcript into one session; lists the first reasons for what it leaves out."""

    def __init__(self, logs: SessionLogs, transcript: Transcript, seconds: float | None) -> None:
        self.reasons: list[str] = []
        self.more = 0
        self.added = 0
        self._logs, self._transcript = logs, transcript
        self._until = None if seconds is None else time.monotonic() + seconds
        self._name = f"{transcript.format}:{os.path.basename(transcript.path)}"
        self._most = min(_LINE, logs.most // 2)

    def leave_out(self, reason: str) -> None:
        """Note why a part is left out; count it where there are many."""
        if len(self.reasons) < _MOST_REASONS:
            self.reasons.append(reason)
        else:
            self.more += 1

    def list_left_out(self) -> list[str]:
        """List why parts were left out, each with the path of the transcript."""
        more = [f"{self.more:,} more"] if self.more else []
        return [f"{self._transcript.path}: {reason}" for reason in (*self.reasons, *more)]

    def add_new(self) -> None:
        """Add what is new, unless the session is ignored or has messages that are newer."""
        key = self._transcript.key
        if not is_kept(self._logs, key):
            raise _NotImported(f"the config keeps nothing of {key!r}")
        wait = _WAIT_SECONDS if self._until is None else 0.0
        with self._logs.alone("importing", self._logs.resolve(key), wait):
            self._add_entries()

    def _add_entries(self) -> None:
        with self._logs.reading(self._transcript.key) as conversation:
            is_empty = conversation.is_new
            known = _Position.read(conversation.state.cursors.get(self._name))
            position, entries = self._resume(known) or self._recognise_held(conversation)
        messages: list[Mapping[str, Any]] = []
        last: TranscriptEntry | None = None
        size, is_of_agent = 0, False
        for entry in entries:
            is_of_agent |= isinstance(entry.value, dict) and bool(entry.value.get("isSidechain"))
            is_other = bool(messages) and self._is_dropped(entry) is not self._is_dropped(last)
            is_back = bool(entry.takes_back or entry.replaces)
            if last and (is_other or is_back or size + len(entry.text) > self._most):
                position = self._commit_messages(messages, position, last)
                messages, size = [], 0
                if self._until is not None and time.monotonic() > self._until:
                    return
            if is_back:
                self._take_back(entry, position)
            message = self._clean_entry(entry)
            if message is not None:
                messages.append(message)
            last, size = entry, size + len(entry.text)
        summary = self._transcript.summary
        is_new = summary and position.summary != _hash_text(summary)
        if messages or is_new or (position != known and not is_empty):
            self._commit_messages(messages, position, last, summary)
        elif is_empty and not (self.added or self.reasons):
            raise _NotImported(_OF_AGENT if is_of_agent else "nobody says anything in it")

    def _is_dropped(self, entry: TranscriptEntry | None) -> bool:
        return entry is not None and entry.number <= self._transcript.dropped

    def _resume(self, known: _Position) -> tuple[_Position, Iterator[TranscriptEntry]] | None:
        """Go on where the last import ended; None if there was none, or if the transcript lost that place."""
        if not known.number:
            return None
        entries = self._transcript.read(known.start, known.number)
        first = next(entries, None)
        is_same = first and first.end == known.end and _hash_text(first.text) == known.sha256
        return (known, entries) if is_same else None

    def _recognise_held(self, conversation: Conversation) -> tuple[_Position, Iterator[TranscriptEntry]]:
        """Find the last message that the log holds already, by hashes and ids, and go on behind it."""
        held = (message for record in conversation.records() for message in messages_in([record]))
        entries = self._transcript.read(0, 1)
        position, last = _Position(), None
        changed: list[TranscriptEntry] = []  # the last message that is held, where it has grown since
        if conversation.is_new:
            return position, entries
        for entry in entries:
            data = self._clean_entry(entry)
            if data is not None:
                wanted, newest = Message.of(0, data).hash, None
                for message in held:
                    if message.hash == wanted or (entry.own and message.id == entry.own):
                        is_other = message.hash != wanted
                        changed = [entry._replace(replaces=entry.own)] if is_other else []
                        break
                    newest = message if conversation.state.holds(message.seq) else newest
                else:
                    said = moment_of(Message.of(0, data).created_at)
                    before = moment_of(newest.created_at) if newest else None
                    if newest and not (said and before and said > before):
                        reason = f"the session {self._transcript.key!r} has messages that this file lacks"
                        raise _NotImported(f"{reason}, and that are newer; import it under another key")
                    return position.behind(last), chain(changed, [entry], entries)
            last = entry
        return position.behind(last), chain(changed, entries)

    def _clean_entry(self, entry: TranscriptEntry) -> Mapping[str, Any] | None:
        fault = entry.fault
        if entry.message is not None:
            if self._is_clean(entry.text):
                return None if Message.of(0, entry.message).is_transient else entry.message
            try:
                return clean_message(self._logs, self._transcript.key, entry.message)
            except (Usage, Invalid) as error:
                fault = error.message
        if fault:
            self.leave_out(f"entry {entry.number}: {fault}")
        return None

    def _is_clean(self, text: str) -> bool:
        """Return whether an entry has no secrets to remove; most entries need not be written again."""
        if text.count("{") + text.count("[") > MOST_DEEP:
            return False
        config = self._logs.vault.config
        if config.sessions.secrets == "keep":
            return True
        return secret.ALLOW_MARK not in text and not secret.find(text, allow=config.secrets.allow)

    def _commit_messages(
        self,
        messages: Sequence[Mapping[str, Any]],
        position: _Position,
        last: TranscriptEntry | None,
        summary: str = "",
    ) -> _Position:
        """Append messages, and the position behind the last entry, in one line; return that position."""
        behind = position.behind(last)
        if summary:
            behind = behind._replace(summary=_hash_text(summary))

        def build(conversation: Conversation) -> tuple[LogRecord, None]:
            state, record = conversation.state, LogRecord(seq=0)
            if messages and self._is_dropped(last):
                own = Ranges([(state.seq + 1, state.seq + len(messages))])
                record = conversation.dropping(own, state.live)
            # A summary that somebody has set since the last import is newer, and stays.
            is_ours = not state.text or _hash_text(state.text) == position.summary
            text = summary if summary and is_ours else None
            cursors = {self._name: behind._asdict()}
            return record._replace(messages=tuple(messages), text=text, cursors=cursors), None

        self._logs.commit(self._transcript.key, build)
        self.added += len(messages)
        return behind

    def _take_back(self, entry: TranscriptEntry, position: _Position) -> None:
        def build(conversation: Conversation) -> tuple[LogRecord | None, None]:
            back, state = entry.takes_back, conversation.state
            found = _find_taken_back(entry, conversation.messages_back())
            if found is None:
                return None, None
            count, first = found
            end, gone = (state.seq, count) if back else (first, 1)
            record = conversation.dropping(Ranges([(first, end)]), state.live - gone)
            # A number of turns is taken back only once: the next import begins behind this entry.
            behind = position.behind(entry) if isinstance(back, int) else position
            return record._replace(cursors={self._name: behind._asdict()}), None

        self._logs.commit(self._transcript.key, build)

    def set_aliases(self) -> None:
        """Make the other keys of the conversation lead to it, except keys that are sessions themselves."""
        logs, key = self._logs, self._transcript.key
        for alias in self._transcript.aliases:
            try:
                own = logs.resolve(alias)
                with logs.reading(alias, logs.end) as conversation:
                    is_free = own == alias != key and not conversation.state.live
                if is_free:
                    refuse_secret(logs, alias)
                    logs.alias(alias, key)
                elif own != logs.resolve(key):
                    self.leave_out(f"{alias!r} is another session, and no alias of {key!r}")
            except (PathRefused, SessionConflict) as error:
                self.leave_out(f"the alias {alias!r}: {error.message}")

    def rename_files(self) -> None:
        for path in self._transcript.files:
            folder, name = os.path.split(path)
            try:
                with files.opened(folder or ".") as descriptor:
                    files.move((descriptor, name), (descriptor, name + MIGRATED))
            except files.Raced:
                self.leave_out(f"not renamed: there is {name}{MIGRATED} already")
            except OSError as error:
                self.leave_out(f"not renamed: {error.strerror}")


def _hash_text(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))


def _find_taken_back(entry: TranscriptEntry, messages: Iterator[Message]) -> tuple[int, int] | None:
    """Return how many messages an entry takes back, as when a user goes back, and the number of the first.

    It is None if the entry takes back none. `messages` begins with the last one; reading stops at one that
    the entry cannot take back.
    """
    back, found = entry.takes_back, None
    if not back:
        behind = enumerate(islice(messages, _MOST_BACK), 1)
        return next(((count, each.seq) for count, each in behind if each.id == entry.replaces), None)
    if isinstance(back, int):
        asked = ((count, each.seq) for count, each in enumerate(messages, 1) if is_asked(each))
        return next(reversed([*islice(asked, back)]), None)
    ids = frozenset(back)
    for count, each in enumerate(messages, 1):
        if each.id in ids:
            found = count, each.seq
        elif found and found[0] == count - 1:
            found = count - 1, each.seq + 1  # so that what is gone is one range
        if each.id and each.id not in ids:
            break
    return found
