"""The sessions of one namespace: conversations by key, each kept in `sessions/<key>.jsonl`.

Every change is one line of a log, written under the log's lock, and on the disk when the verb returns. What a
verb takes out of the history stays in the log until a vacuum, and then in `sessions/.archive/`.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, wraps
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from mdmem.conversations.log.conversation import Conversation, find_header
from mdmem.conversations.log.logs import (
    CAPTURE,
    DELETED,
    NUMBERS,
    REPAIRED,
    VACUUMED,
    SessionInfo,
    SessionLogs,
    capture_refused,
    fits,
    info_of,
    now,
    refuse_later,
)
from mdmem.conversations.log.message import Message
from mdmem.conversations.log.record import LogRecord, Ranges, RunSummary
from mdmem.conversations.transcripts.keeping import clean_message, is_kept, refuse_secret, remove_secrets
from mdmem.diagnostic import Diagnostic, told
from mdmem.document.arguments import json_value, require_text
from mdmem.errors import AlreadyExists, MdmemError, NamedNotFound, Usage
from mdmem.vault import mark
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.conversations.find.find import HitScope, SessionHits
    from mdmem.conversations.models.generator import Generator
    from mdmem.conversations.prompt.compress import Compressed
    from mdmem.conversations.prompt.engine import Compacted, Expanded, SyncedHistory
    from mdmem.conversations.prompt.prompt import Assembled
    from mdmem.conversations.transcripts.importing import SessionImport
    from mdmem.index.grep import Case

_COMPACTING_SECONDS = 600.0  # of waiting; who compacts may ask a model
_LOG = logging.getLogger("mdmem.conversations")
_FEW = 3  # hits
P = ParamSpec("P")
R = TypeVar("R")


class Sessions:
    """Conversations by key. One that is not there is empty; the first message makes it.

    A key is any text that a file can be named after, in whatever way; an alias stands for what it names.
    """

    def __init__(self, vault: Vault) -> None:
        self.logs = SessionLogs(vault)

    # -- adding -------------------------------------------------------------------------------------------

    def add(self, key: str, role: str, content: Any) -> int | None:
        """Add a message with a role and a content; return its number, as `add_message`."""
        return self.add_message(key, {"role": role, "content": content})

    def add_message(self, key: str, message: Mapping[str, Any]) -> int | None:
        """Add a message with all of its fields.

        Returns:
            Its number in the log: a new one, or that of the same message (id and content) among the last
            1,000. None where it is not kept: a model's reasoning alone, or a key that is ignored.

        Raises:
            Usage: the key or the message cannot be one.
            SessionConflict: another message has its id, or the log is of another key or a later version.
            Invalid: it holds a secret, and the config refuses these.
            LimitReached: it is longer than a line may be.
        """
        return self.extend(key, [message])[0]

    def extend(
        self, key: str, messages: Sequence[Mapping[str, Any]], *, by_id: bool = True
    ) -> list[int | None]:
        """Add several messages, all of them or none; return the number of each, as `add_message`.

        Args:
            by_id: whether an id names one message; some programs give all of theirs the same.
        """
        cleaned = [clean_message(self.logs, key, message) for message in messages]
        numbers = self._commit_lines(key, lambda conversation: conversation.adding(cleaned, by_id=by_id))
        return numbers or [None] * len(cleaned)

    def set_history(self, key: str, messages: Sequence[Mapping[str, Any]]) -> list[int | None]:
        """Replace the whole history; return the number of each message, as `add_message`."""
        cleaned = [clean_message(self.logs, key, message) for message in messages]

        def build(conversation: Conversation) -> tuple[LogRecord | None, list[int | None]]:
            state = conversation.state
            record, numbers = conversation.adding(cleaned, by_id=False)
            if state.live:
                record = record or LogRecord(seq=0)
            return record and record._replace(drop=state.everything), numbers

        return self._commit_lines(key, build) or [None] * len(cleaned)

    def import_(
        self,
        *paths: str,
        format: str | None = None,  # noqa: A002 - its name on the command line
        key: str | None = None,
        rename: bool = False,
    ) -> SessionImport:
        """Import conversations of other programs, or what is new in them since the last import.

        Messages go behind those that are there, and never behind newer ones: such a file is left out, and so
        is one that is not of the format.

        Args:
            paths: files, and folders of files; a format may stand before them.
            format: `picoclaw`, `claude-code-session`, `codex-session`, `gemini-cli-session`,
                `opencode-session` or `openai-messages`; without it, each file shows which it has.
            key: of the session, for a single file; without it what the file says, or is called.
            rename: add `.migrated` to the names of the files that were imported.

        Raises:
            Usage: there is no such format, or nothing at a path.
        """
        from mdmem.conversations.transcripts.importing import import_transcripts  # noqa: PLC0415 - start-up

        return import_transcripts(self.logs, format, paths, key, rename=rename)

    def capture(self, format: str, path: str) -> str | None:  # noqa: A002 - as `import_`
        """Import a file that a tool's hook names, where the config and the user let hooks do so.

        Returns:
            The key of the session; None where nothing is imported.

        Raises:
            NotAllowed: the config asks for it, and `allow_capture` was not said.
        """
        if self.logs.vault.config.sessions.capture != "hooks":
            return None
        if refused := capture_refused(self.logs.vault):
            raise refused
        if not (os.path.isabs(path) and os.path.isfile(path)):
            return None
        from mdmem.conversations.transcripts.importing import HOOK_SECONDS, import_transcripts  # noqa: PLC0415 - start-up

        done = import_transcripts(self.logs, format, [path], seconds=HOOK_SECONDS)
        return next((each.key for each in done.sessions), None)

    def allow_capture(self, *, off: bool = False) -> None:
        """Let hooks keep conversations in this vault, for this user on this machine; or no longer.

        The config asks for it with `[sessions] capture`, and may be that of a stranger.
        """
        mark.allow(CAPTURE, self.logs.vault.root, allowed=not off)

    def set_summary(self, key: str, text: str) -> None:
        """Set the text that `summary` gives back."""
        require_text(text=text)
        record = LogRecord(seq=0, **remove_secrets(self.logs, key, {"text": text}))
        self._commit_lines(key, lambda _: (record, None))

    def set_metadata(
        self, key: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Set the title and the metadata (an object) that `info` and `list` show; what is not given stays.

        Raises:
            Usage: the metadata are no JSON object.
            Invalid: there is a secret in it, and the config refuses these.
        """
        require_text(title=title or "")
        if not isinstance(metadata, Mapping | None):
            raise Usage(problem="the metadata of a session are a JSON object")
        fields = {"title": title, "metadata": metadata and json_value(metadata)}
        given = {name: value for name, value in fields.items() if value is not None}
        if given:
            record = LogRecord(seq=0, **remove_secrets(self.logs, key, given))
            self._commit_lines(key, lambda _: (record, None))

    def sync(
        self, key: str, messages: Sequence[Mapping[str, Any]], expected: int | str | None = None
    ) -> SyncedHistory:
        """Make the history equal to a host's list, with as little change as that takes.

        What both begin with stays, and gets the reasoning, model or time that it lacks. What follows leaves
        the history, and the rest of the list is added.

        Raises:
            SessionConflict: there are messages behind `expected`, the last one that the host knows of.
        """
        from mdmem.conversations.prompt.engine import SyncedHistory, sync_history  # noqa: PLC0415 - most calls add and read

        cleaned = [
            each for message in messages if (each := clean_message(self.logs, key, message)) is not None
        ]
        last = None if expected is None else self.logs.number(key, expected)

        def build(conversation: Conversation) -> tuple[LogRecord | None, SyncedHistory]:
            return sync_history(
                conversation, cleaned, last, lambda data: remove_secrets(self.logs, key, data)
            )

        return self._commit_lines(key, build) or SyncedHistory()

    # -- taking out of the history ------------------------------------------------------------------------

    def truncate(self, key: str, keep_last: int) -> None:
        """Keep the last messages of the history; none with 0 or less. With too many nothing changes."""

        def build(conversation: Conversation) -> tuple[LogRecord | None, None]:
            state = conversation.state
            if keep_last >= state.live:
                return None, None
            if keep_last <= 0:
                return LogRecord(seq=0, drop=state.everything), None
            first = next(islice(conversation.messages_back(), keep_last - 1, None)).seq
            return conversation.dropping(Ranges([(1, first - 1)]), keep_last), None

        self._commit_lines(key, build)

    def pop(self, key: str) -> Message | None:
        """Take the last message out of the history; None where it is empty."""

        def build(conversation: Conversation) -> tuple[LogRecord | None, Message | None]:
            newest = list(islice(conversation.messages_back(), 2))
            if not newest:
                return None, None
            # With the lines before it that are no messages: what is dropped stays one range.
            first = newest[1].seq + 1 if len(newest) > 1 else 1
            drop = Ranges([(first, conversation.state.seq)])
            return conversation.dropping(drop, conversation.state.live - 1), newest[0]

        popped: Message | None = self._commit_lines(key, build)
        return popped

    def clear(self, key: str, *, dry_run: bool = False) -> int:
        """Take everything out of the history and the context; the summary of `set_summary` goes as well.

        Args:
            dry_run: change nothing.

        Returns:
            How many messages the history had.
        """

        def build(conversation: Conversation) -> tuple[LogRecord | None, int]:
            state = conversation.state
            has_anything = state.live or state.text
            return (LogRecord(seq=0, drop=state.everything, text="") if has_anything else None), state.live

        return self.info(key).messages if dry_run else self._commit_lines(key, build) or 0

    # -- asking -------------------------------------------------------------------------------------------

    def history(self, key: str, limit: int | None = None, after: int | str = 0) -> list[Message]:
        """Return the messages in the history, in order.

        Args:
            limit: the most messages, the newest ones.
            after: only those with a higher number.
        """
        seq = self.logs.number(key, after)
        with self.logs.reading(key, None if limit is None else self.logs.end) as conversation:
            if limit is None:
                return list(conversation.messages(seq + 1))
            newest = takewhile(lambda message: message.seq > seq, conversation.messages_back())
            return list(islice(newest, max(limit, 0)))[::-1]

    def message(self, key: str, seq: int | str) -> Message:
        """Return a message by its number (`61`, `"61"` or `"<key>#61"`), also one that left the history.

        Raises:
            Usage: this is no number, or that of another session.
            NamedNotFound: no message has this number.
        """
        number = self.logs.number(key, seq)
        for conversation in self.logs.with_archive(key):
            if message := conversation.message(number):
                return message
        raise NamedNotFound(kind="message", name=f"{key}#{number}", remedy=NUMBERS)

    def summary(self, key: str) -> str:
        """Return the text that `set_summary` set; empty without one."""
        with self.logs.reading(key) as conversation:
            return conversation.state.text

    def check(self, key: str | None = None, *, fix: bool = False) -> list[Diagnostic]:
        """Find damage in the log of a session; without a key in all logs up to `max_log_bytes`.

        Damage is a line that is no record, a number that is missing though no vacuum took it, a snapshot that
        differs from the lines before it, and a log that is not that of its key.

        Args:
            fix: rewrite such a log with all that is read of it; messages with a wrong number get the next
                ones at the end. The old log stays in the archive. The result is what is left to be done.
        """
        findings: list[Diagnostic] = []
        for path in self.logs.paths() if key is None else [self.logs.path(key)]:
            own = told(self.logs.findings(path, unasked=key is None))
            if fix and any(each.code in REPAIRED for each in own) and self.logs.repair(path):
                own = told(self.logs.findings(path, unasked=False))
            findings += own
        return findings

    def info(self, key: str) -> SessionInfo:
        """Return one session as `list` has it; of an alias, the session that it names."""
        with self.logs.reading(key, self.logs.end) as conversation:
            return info_of(conversation)

    def exists(self, key: str, *, archived: bool = False) -> bool:
        """Return whether there is a session, with `archived` also of one that only the archive has."""
        with self.logs.reading(key, self.logs.end) as conversation:
            is_there = not conversation.is_new
        return is_there or (archived and bool(self.logs.archived(self.resolve(key))))

    def list(self) -> list[SessionInfo]:
        """List the sessions of the namespace, by key, read from the ends of their logs.

        A log that cannot be read is passed over; where its end does not say all, `problem` says why.
        """
        return sorted(self.logs.infos(), key=lambda each: each.key)

    # -- finding ------------------------------------------------------------------------------------------

    def grep(
        self,
        pattern: str,
        key: str | None = None,
        *,
        all: bool = False,  # noqa: A002 - its name on the command line
        regex: bool = False,
        case: Case = "ignore",
        role: str | None = None,
        last: str | None = None,
        since: str | None = None,
        before: str | None = None,
        scope: HitScope = "both",
        dropped: bool = False,
        limit: int = 20,
    ) -> SessionHits:
        """Find messages and summaries of a session by a text or a pattern, the newest first.

        Args:
            pattern: the text to look for, in one line of a message or summary.
            all: look in every session of the namespace instead.
            regex: whether `pattern` is a regular expression (syntax of Rust's regex crate), not the text.
            case: `ignore`, `smart` (unless the pattern has a capital letter) or `exact`.
            role: only what these say: `user`, `assistant`, `tool`, …
            last: only what was said so long ago at most: `2h`, `3d`, `1w`, `1m`.
            since, before: only what was said from the one time on, and before the other (ISO 8601).
            scope: `message`, `summary` or both.
            dropped: also what is no longer in the history.
            limit: the most hits; how many further ones there are is counted up to 10,000.

        Raises:
            Usage: neither a session nor all of them, or an argument that cannot mean anything.
            PatternInvalid: the regular expression cannot be read.
        """
        from mdmem.conversations.find import find  # noqa: PLC0415 - start-up

        chosen = find.make_filter(key, all, role, last, since, before, scope, dropped, limit)
        return find.grep(self.logs, key, pattern, chosen, limit, regex=regex, case=case)

    def search(
        self,
        query: str,
        key: str | None = None,
        *,
        all: bool = False,  # noqa: A002 - its name on the command line
        role: str | None = None,
        last: str | None = None,
        since: str | None = None,
        before: str | None = None,
        scope: HitScope = "both",
        dropped: bool = False,
        limit: int = 20,
    ) -> SessionHits:
        """Find the messages and summaries of a session, or of all without one, that fit a query best.

        Args:
            query: words, `"phrases"`, `prefix*`, `-not`; no text is refused.
            key, all, role, last, since, before, scope, limit: as in `grep`.
            dropped: also what is no longer in the history, unless a vacuum left it out of the log.

        Raises:
            Usage: a session and all of them, or an argument that cannot mean anything.
        """
        from mdmem.conversations.find import find, search  # noqa: PLC0415 - start-up

        chosen = find.make_filter(key, all or key is None, role, last, since, before, scope, dropped, limit)
        return search.search(self.logs, query, key, chosen, limit)

    def count_fitting(self, query: str, key: str | None = None, beside: int = 0) -> int:
        """Count what fits a query in a session, or in all, at most; nothing beside many hits elsewhere."""
        is_asked = beside < _FEW and any(self.logs.paths())
        try:
            found = self.search(query, key, limit=1) if is_asked else None
        except MdmemError:  # whoever asks looks elsewhere
            return 0
        return len(found.hits) + found.left_out if found else 0

    # -- the context --------------------------------------------------------------------------------------

    def assemble(self, key: str, budget: int, tail: int = 32, *, user_first: bool = True) -> Assembled:
        """Choose the newest messages and the summaries that fit a prompt.

        Args:
            budget: tokens.
            tail: how many of the last messages come before the summaries.
            user_first: whether messages are left out until the first one is the user's.
        """
        from mdmem.conversations.prompt.prompt import assemble  # noqa: PLC0415 - most calls add and read

        with self.logs.reading(key) as conversation:
            return assemble(conversation, budget, tail, user_first=user_first)

    def compact(self, key: str, budget: int | None = None, generator: Generator | None = None) -> Compacted:
        """Let summaries stand for the oldest messages, and for the oldest summaries.

        Of two that compact one session at once, also in two processes, the second waits for the first.

        Args:
            key: of the session. One that the config calls stateless stays as it is.
            budget: tokens. A context of less than three quarters of it stays as it is. Any other one gets
                under it, or the answer names what it consists of. Without a budget, what is due is done.
            generator: asks a language model; without it a summary is made of sentences from the messages.

        Raises:
            LockTimeout: somebody else was at it for ten minutes.
        """
        from mdmem.conversations.prompt.engine import compact, measure_context  # noqa: PLC0415 - most calls add and read

        stateless = self.logs.vault.config.sessions.stateless
        resolved = self.resolve(key)
        if not is_kept(self.logs, key) or any(fits(glob, resolved) for glob in stateless):
            with self.logs.reading(key) as conversation:
                return measure_context(conversation, budget)
        with self.logs.alone("compacting", resolved, _COMPACTING_SECONDS):
            return compact(
                self.logs, key, budget, generator, lambda data: remove_secrets(self.logs, key, data)
            )

    def compress(
        self, key: str, level: str = "moderate", by: str = "turn", generator: Generator | None = None
    ) -> Compressed:
        """Make the history shorter for a prompt; the log stays as it is.

        Args:
            level: none, light, moderate or aggressive: at most 100, 70, 50 or 30 percent of the tokens stay.
            by: message, turn or session: what becomes one message. Fewer messages than 100, 20 or 50 stay.
            generator: as `compact`.

        Raises:
            Usage: there is no such level or unit.
        """
        from mdmem.conversations.prompt.compress import compress  # noqa: PLC0415 - most calls add and read

        return compress(self.history(key), level, by, generator)

    def expand(
        self, key: str, ids: Sequence[int | str], budget: int = 4_000, depth: int | None = None
    ) -> Expanded:
        """Open summaries and messages by number, also those that are in the archive alone.

        Args:
            ids: numbers of summaries and messages, as in `message`.
            budget: tokens; what goes beyond is counted.
            depth: how many levels down; to the messages without it.

        Raises:
            NamedNotFound: nothing has one of the numbers.
        """
        from mdmem.conversations.prompt.engine import expand  # noqa: PLC0415 - most calls add and read

        return expand(self.logs, key, [self.logs.number(key, each) for each in ids], budget, depth)

    def above(self, key: str, seq: int | str) -> Sequence[RunSummary]:
        """Return the summaries that stand for a message or a summary, the nearest first; empty without any.

        Raises:
            NamedNotFound: nothing has the number.
        """
        from mdmem.conversations.prompt.engine import above  # noqa: PLC0415 - most calls add and read

        return above(self.logs, key, self.logs.number(key, seq))

    # -- other names, the end, and what comes back --------------------------------------------------------

    def resolve(self, key: str) -> str:
        """Return the key that a key is another name of; itself where it is none."""
        return self.logs.resolve(key)

    def alias(self, alias: str, key: str) -> None:
        """Let one key be another name of a session.

        Where only the alias has messages, the session takes over its log, with every number and summary. What
        leads to the alias leads to the session then.

        Raises:
            Usage: both are the same session.
            SessionConflict: the alias is one of another session already, or both have messages.
        """
        refuse_secret(self.logs, alias)
        self.logs.alias(alias, key)

    def unalias(self, alias: str) -> bool:
        """Make a key a session of its own again; return whether it was an alias."""
        with self.logs.writing(alias) as (conversation,):
            was_alias = bool(conversation.state.alias_of)
            if was_alias:
                self.logs.append(conversation, LogRecord(seq=0, alias_of=""))
            return was_alias

    def delete(self, key: str, *, dry_run: bool = False) -> bool:
        """Put a session into the archive; return whether there was one. Of an alias only the name goes.

        With `dry_run` it stays where it is.
        """
        if dry_run:
            with self.logs.opened(key) as conversation:
                return not conversation.is_new
        with self.logs.writing(key) as (conversation,):
            if not conversation.is_new:
                conversation.log.put_aside(self.logs.archive_path(conversation.state, DELETED))
            return not conversation.is_new

    def restore(self, key: str, *, older: int = 0, dry_run: bool = False) -> None:
        """Bring back the session of a key that was deleted last.

        Args:
            older: how many that were deleted later to pass over.
            dry_run: only say whether that may be.

        Raises:
            NamedNotFound: none was deleted, or fewer than that.
            AlreadyExists: there is one of this key again.
        """
        path = self.logs.path(key)
        kept = [each for each in self.logs.archived(key) if each.endswith(DELETED)]
        if not 0 <= older < len(kept):
            count = f"of this key, {len(kept):,} are in the archive"
            remedy = count if kept else "nothing of this key was deleted"
            raise NamedNotFound(kind="deleted session", name=key, remedy=remedy)
        with self.logs.vault.store.appending(path) as (log,):
            if log.size:
                back = f"`mdmem sessions restore {shlex.quote(key)} --older {older + 1}`"
                raise AlreadyExists(path=path, remedy=f"keep it; or delete it, and then {back}")
            if not dry_run:
                log.bring_back(kept[-1 - older])

    def vacuum(self, key: str, *, purge: bool = False, dry_run: bool = False) -> bool:
        """Rewrite a log without what left the history; return whether there was anything to leave out.

        The old log is kept in the archive. `purge` removes all that the archive has of this key, for good.
        With `dry_run` nothing is written.
        """
        if dry_run:
            with self.logs.reading(key) as conversation:
                return conversation.state.has_dropped
        with self.logs.writing(self.resolve(key)) as (conversation,):
            state = conversation.state
            if state.has_dropped:
                refuse_later(conversation)
                path = self.logs.archive_path(state, VACUUMED)
                conversation.log.put_aside(path, conversation.write_vacuumed(now()))
        if purge:
            self._purge(self.resolve(key))
        return state.has_dropped

    def _purge(self, key: str) -> None:
        logs = self.logs
        with logs.vault.store.appending(logs.path(key)) as (log,):
            own, header = logs.archived(key), find_header(log, logs.most)
            ids = {os.path.basename(path).split("-")[1] for path in own}
            if header:
                ids.add(header.log)
            for path in {*own, *(path for each in ids if each for path in logs.find_vacuumed(each))}:
                log.purge(path)

    def save(self, key: str) -> None:
        """Check the key; nothing is left to save, as each verb returns when the disk has its change."""
        self.logs.path(key)

    def close(self) -> None:
        """Forget what was read."""
        self.logs.forget()

    @cached_property
    def quiet(self) -> QuietSessions:
        """The ten verbs of a session store for a host that handles no errors."""
        return QuietSessions(self)

    # -- what every change goes through -------------------------------------------------------------------

    def is_kept(self, key: str) -> bool:
        """Return whether the config lets anything be kept of a key."""
        return is_kept(self.logs, key)

    def _commit_lines(self, key: str, build: Callable[[Conversation], tuple[LogRecord | None, Any]]) -> Any:
        self.logs.path(key)  # an impossible key is refused, also where nothing would be kept
        if not is_kept(self.logs, key):
            return None
        refuse_secret(self.logs, key)
        return self.logs.commit(key, build)


def _quiet(
    verb: Callable[Concatenate[Sessions, P], R], otherwise: R
) -> Callable[Concatenate[QuietSessions, P], R]:
    """Make the verb of `QuietSessions` that does what a verb of `Sessions` does, or answers `otherwise`."""

    @wraps(verb)
    def quiet(own: QuietSessions, /, *given: P.args, **named: P.kwargs) -> R:
        try:
            return verb(own.sessions, *given, **named)
        except MdmemError as error:
            _LOG.error("%s: %s", verb.__name__, error)
            return copy(otherwise)

    return quiet


class QuietSessions:
    """Ten verbs of `Sessions` for a host that handles no errors: they are logged, and the answer is empty.

    Attributes:
        sessions: those that raise them.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    add = _quiet(Sessions.add, None)
    add_message = _quiet(Sessions.add_message, None)
    history = _quiet(Sessions.history, [])
    set_history = _quiet(Sessions.set_history, [])
    summary = _quiet(Sessions.summary, "")
    set_summary = _quiet(Sessions.set_summary, None)
    truncate = _quiet(Sessions.truncate, None)
    list = _quiet(Sessions.list, [])
    save = _quiet(Sessions.save, None)
    close = _quiet(Sessions.close, None)
