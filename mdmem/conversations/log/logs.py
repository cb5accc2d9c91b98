"""The logs of a namespace's sessions: their files, what was read of them, and how they are written.

The state of a log stays in memory, so that the next look reads only what came since. A log that is put aside
goes to `sessions/.archive/<name>/`. It is read for messages and summaries that the log no longer holds.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from mdmem.conversations.log.conversation import Conversation, LogPosition, faults, find_header
from mdmem.conversations.log.record import (
    LAST_NUMBER,
    MOST_VALUES,
    VERSION,
    LogHeader,
    LogRecord,
    has_too_much,
    write_header,
    write_record,
)
from mdmem.conversations.log.state import State
from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.document import SUFFIXES, digest
from mdmem.document.moment import moment_of, stamp
from mdmem.document.text.regex import Allowance, foreign, regex
from mdmem.errors import (
    LimitReached,
    MdmemError,
    NotAllowed,
    PathRefused,
    SessionConflict,
    Usage,
)
from mdmem.kind import NAMESPACES, OBSERVATION, WORKING
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.log import Log, next_start
from mdmem.vault.mark import is_allowed
from mdmem.vault.paths import Namespace, encode_id, join
from mdmem.vault.vault import Vault

T = TypeVar("T")

FOLDER, ARCHIVE, SUFFIX = "sessions", ".archive", ".jsonl"
CAPTURE = "capture"
"""What a user lets a vault do: keep what its hooks are told was said."""
NUMBERS = "`mdmem sessions history` and `assemble` show the numbers that there are"
VACUUMED, DELETED = f".vacuumed{SUFFIX}", f".deleted{SUFFIX}"
"""How the name of a log ends that was put aside."""
_MOST_NAME, _KEPT_OF_NAME = 200, 100  # bytes of a name, and of a longer one what stays before its hash
_HASHED = regex("~[0-9a-f]{64}$")  # what ends so is hashed as well: no two keys share a name
_STARS = {"**": ".*", "*": "[^:]*"}
_MOST_ALIASES = 10  # one behind the other, as older versions have left them
_MOST_KNOWN = 1_000  # sessions with a remembered state
_LEAST_END = 1 << 24  # bytes that are read from the end of a log, however small the config's limit is
_NUMBER = regex(r"(?:(?P<key>.+)#)?(?P<number>[0-9]{1,15})", re.DOTALL)
REPAIRED = {"not-a-record", "session-gap", "snapshot-differs", "more", LimitReached.code}
"""The codes of findings that `repair` ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session in a list.

    Attributes:
        key: of the session.
        messages: how many are in its history.
        summaries: how many are in its context.
        created, updated: when it was begun, and its last message said (ISO 8601, UTC).
        alias_of: the key that it is another name of; empty of most.
        bytes: of its log.
        title, metadata: as `set_metadata` set them.
        problem: why the others are not known, where the log is too large to be read unasked; else empty.
    """

    key: str
    messages: int = 0
    summaries: int = 0
    created: str = ""
    updated: str = ""
    alias_of: str = ""
    bytes: int = 0
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


class SessionLogs:
    """The logs of the sessions of one namespace. Constructing it opens nothing."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._known: dict[str, tuple[State, LogPosition]] = {}
        self._lock = threading.Lock()

    @property
    def most(self) -> int:
        """Bytes of one line, at most."""
        return self.vault.config.sessions.max_line_bytes

    @property
    def end(self) -> int:
        """The most bytes that are read from the end of a log."""
        return max(self.vault.config.sessions.max_log_bytes, _LEAST_END)

    def path(self, key: str) -> str:
        """Return the log of a key, as a path of the whole vault."""
        path = join(self.vault.namespace, f"{FOLDER}/{name_of(key)}{SUFFIX}")
        if not self.vault.wall.holds(path):
            raise PathRefused(path=key, reason="it is the session of another thread")
        return path

    def paths(self) -> list[str]:
        """Return the logs that there are."""
        self.vault.recover()
        folder = join(self.vault.namespace, FOLDER)
        names = sorted(self.vault.store.names(folder))
        paths = (f"{folder}/{name}" for name in names if name.endswith(SUFFIX) and name[0] != ".")
        return list(filter(self.vault.wall.holds, paths))

    def all(self, missed: list[MdmemError] | None = None) -> Iterator[Conversation]:
        """Yield the conversations of all logs; `missed` gets why one cannot be read, or is too large."""
        for path in self.paths():
            try:
                with self.at(path, unasked=True) as conversation:
                    if conversation:
                        yield conversation
            except MdmemError as error:
                if missed is not None:
                    missed.append(error)

    def infos(self) -> Iterator[SessionInfo]:
        """Yield the sessions of the namespace without the logs that cannot be read."""
        for path in self.paths():
            with contextlib.suppress(MdmemError), self.vault.store.log(path) as log:
                header = find_header(log, self.most)
                if header and self.path(header.key) == path:
                    try:
                        yield info_of(self._load_conversation(path, log, header.key, self.end))
                    except LimitReached as error:
                        yield SessionInfo(key=header.key, bytes=log.size, problem=str(error))

    def findings(self, path: str, *, unasked: bool) -> Iterator[Diagnostic]:
        """Yield the findings about a log; unasked, a large one is not read."""
        try:
            with self.vault.store.log(path) as log:
                if unasked and (refused := self._check_size(log)):
                    yield about_file(path, "log-too-large", refused.message, refused.hint, severity="warning")
                    return
                header = find_header(log, self.most)
                if header and self.path(header.key) != path:
                    message = f"it is the log of {header.key!r}, which has another name"
                    yield about_file(path, "session-conflict", message, "rename it, or move it away")
                yield from faults(log, self.most)
                if header and log.size > self.end:  # whoever wants its end alone has to find a snapshot there
                    Conversation(log, header.key, self.most, within=self.end)
        except MdmemError as error:
            yield about_file(path, error.code, error.message, error.hint)

    def _check_size(self, log: Log) -> LimitReached | None:
        limit = self.vault.config.sessions.max_log_bytes
        if log.size <= limit:
            return None
        what = f"{log.path}: a log of {log.size:,} bytes is not read unasked"
        remedy = "name its session, or raise max_log_bytes in .mdmem/config.toml under [sessions]"
        return LimitReached(what=what, limit=limit, remedy=remedy)

    # -- reading ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def at(
        self, path: str, *, unasked: bool = False, archived: bool = False
    ) -> Iterator[Conversation | None]:
        """Open the conversation of the log at a path of the whole vault inside the block; None without one.

        With `archived` the log may also be one that was put aside.
        """
        with self.vault.store.log(path) as log:
            if unasked and (refused := self._check_size(log)):
                raise refused
            header = find_header(log, self.most)
            if header and self.path(header.key) == path:
                yield self._load_conversation(path, log, header.key)
            else:
                yield Conversation(log, header.key, self.most) if header and archived else None

    @contextlib.contextmanager
    def opened(self, key: str, within: int | None = None) -> Iterator[Conversation]:
        """Open the conversation of just this key, which may be an alias, inside the block."""
        path = self.path(key)
        with self.vault.store.log(path) as log:
            yield self._load_conversation(path, log, key, within)

    @contextlib.contextmanager
    def reading(self, key: str, within: int | None = None) -> Iterator[Conversation]:
        """Open the conversation of a key, or of the session that it is an alias of, inside the block."""
        with self.opened(self.names(key, within)[-1], within) as conversation:
            yield conversation

    def resolve(self, key: str) -> str:
        """Return the key that a key is another name of; itself where it is none."""
        return self.names(key)[-1]

    def names(self, key: str, within: int | None = None) -> list[str]:
        """Return a key, and those that it is an alias of, one after the other."""
        keys = [key]
        while len(keys) <= _MOST_ALIASES:
            with self.opened(keys[-1], within) as conversation:
                if not conversation.state.alias_of:
                    return keys
                keys.append(conversation.state.alias_of)
        raise SessionConflict(
            path=self.path(key), reason=f"it leads through more than {_MOST_ALIASES} aliases"
        )

    def number(self, key: str, named: int | str) -> int:
        """Read the number of a message or summary, given as `61`, `"61"` or `"<key>#61"`."""
        match = _NUMBER.fullmatch(named) if isinstance(named, str) else None
        if isinstance(named, str) and not match:
            raise Usage(problem=f"{named!r} is not the number of a message", remedy=f"write 61, or {key}#61")
        if match and match["key"] not in {None, key} and self.resolve(match["key"]) != self.resolve(key):
            raise Usage(
                problem=f"{named!r} is in another session than {key!r}", remedy="give the key of that session"
            )
        return int(match["number"] if match else named)

    def _load_conversation(self, path: str, log: Log, key: str, within: int | None = None) -> Conversation:
        known = self._known.get(path)
        conversation = Conversation(log, key, self.most, known, within)
        if known is None or conversation.state is not known[0]:
            self._remember_state(conversation)
        return conversation

    def _remember_state(self, conversation: Conversation) -> None:
        """Remember the state for the next look. Others read with it, so it is copied before it changes."""
        path = conversation.log.path
        with self._lock:
            self._known.pop(path, None)
            if conversation.is_settled and not conversation.is_new:
                self._known[path] = conversation.state, conversation.position
                if len(self._known) > _MOST_KNOWN:
                    del self._known[next(iter(self._known))]

    def forget(self) -> None:
        """Forget what was read."""
        with self._lock:
            self._known.clear()

    # -- writing ------------------------------------------------------------------------------------------

    def commit(self, key: str, build: Callable[[Conversation], tuple[LogRecord | None, T]]) -> T:
        """Append what `build` makes of a conversation, seen under the log's lock, with its next number.

        Returns:
            What else `build` gives. Without a record nothing is written.

        Raises:
            SessionConflict: the log is of another key, or of a later version.
            LimitReached: the line would be longer than one may be.
        """
        while True:
            with self.writing(key) as (conversation,):
                if not conversation.state.alias_of:
                    record, result = build(conversation)
                    if record:
                        self.append(conversation, record)
                    return result
            key = self.resolve(key)

    def move_cursor(self, key: str, log: str, name: str, seq: int) -> None:
        """Keep a number in a log under a name, unless a higher one is kept, or the log is another one."""

        def build(conversation: Conversation) -> tuple[LogRecord | None, None]:
            state = conversation.state
            is_behind = state.log == log and state.cursor(name) < seq
            return (LogRecord(seq=0, cursors={name: seq}) if is_behind else None), None

        self.commit(key, build)

    @contextlib.contextmanager
    def writing(self, *keys: str) -> Iterator[tuple[Conversation, ...]]:
        """Open the conversations of just these keys with their logs locked, to `append` to in the block."""
        paths = [self.path(key) for key in keys]
        with self.vault.store.appending(*paths) as logs:
            yield tuple(map(self._load_conversation, paths, logs, keys, [self.end] * len(keys)))

    def append(self, conversation: Conversation, record: LogRecord) -> None:
        """Append a record with the next number; the caller holds the lock. `commit` takes the lock too."""
        log = conversation.log
        refuse_later(conversation)
        state = conversation.go_on()
        seq = state.seq + 1
        summary = record.summary and record.summary._replace(seq=seq)
        record = record._replace(seq=seq, at=record.at or now(), summary=summary)
        if record.last >= LAST_NUMBER:
            reason = f"it has a line of the number {state.seq:,}"
            remedy = "run `mdmem sessions check --fix`"
            raise SessionConflict(path=log.path, reason=reason, remedy=remedy)
        added = [write_record(record)]
        if len(added[0]) > self.most:
            what = f"{log.path}: a line of {len(added[0]):,} bytes"
            remedy = "say it in parts, or raise max_line_bytes in .mdmem/config.toml under [sessions]"
            raise LimitReached(what=what, limit=self.most, remedy=remedy)
        if has_too_much(added[0]):
            what = f"{log.path}: the values in a line"
            raise LimitReached(what=what, limit=MOST_VALUES, remedy="say it in parts")
        if conversation.is_new:
            header = LogHeader(os.urandom(8).hex(), state.key)
            state.log = header.log
            added.insert(0, write_header(header))
        state.take(record, len(added[-1]) + 1)
        if state.wants_snapshot:
            snapshot = state.snapshot_at(next_start(log) + sum(len(line) + 1 for line in added), record.at)
            line = write_record(snapshot)
            if len(line) <= self.most and not has_too_much(line):
                added.append(line)
                state.take(snapshot, len(line) + 1)
        log.append(added)
        self._remember_state(conversation)

    def alone(self, doing: str, key: str, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Hold the lock for doing something to a session; wait for whoever holds it."""
        name = f"{digest(self.path(key).encode())}.lock"
        return files.held(os.path.join(self.vault.disk.local(doing), name), seconds)

    # -- other names --------------------------------------------------------------------------------------

    def alias(self, alias: str, key: str) -> None:
        """Let one key be another name of a session; as `Sessions.alias`."""
        key, own = self.resolve(key), self.resolve(alias)
        if alias == key:
            raise Usage(problem=f"{alias!r} cannot be an alias of itself")
        with self.writing(alias, key) as (source, target):
            of = source.state.alias_of
            if own != (key if of else alias) or target.state.alias_of:
                reason = "it is an alias of another session already"
                raise SessionConflict(path=source.log.path, reason=reason, remedy="`unalias` it first")
            refuse_later(source)
            if source.state.live and not of:
                self._take_over(source, target)
            elif of != key:
                lacking = _host_fields(source.state, target.state)
                if lacking and not of:
                    self.append(target, LogRecord(seq=0, **lacking))
                self.append(source, LogRecord(seq=0, alias_of=key))
        leading_here = [each.state.key for each in self.all() if each.state.alias_of == alias]
        for each in leading_here:
            with self.writing(each) as (conversation,):
                if conversation.state.alias_of == alias:
                    self.append(conversation, LogRecord(seq=0, alias_of=key))

    def _take_over(self, source: Conversation, target: Conversation) -> None:
        """Move the history of one key to another, and leave an alias in its place."""
        known, state, at = target.state, source.state, now()
        # A takeover that was killed in the middle has left one log under both names.
        if known.log != state.log or known.seq < state.seq:
            if known.live:
                reason = f"it has messages, and so has {known.key!r}: they would be hidden"
                remedy = "let a key without messages be the alias, or delete one of both"
                raise SessionConflict(path=source.log.path, reason=reason, remedy=remedy)
            refuse_later(target)
            lines = source.write_vacuumed(at, key=known.key, **_host_fields(known))
            target.log.put_aside(self.archive_path(known, DELETED), lines)
        header = LogHeader(os.urandom(8).hex(), state.key)
        leading = [write_header(header), write_record(LogRecord(seq=1, at=at, alias_of=known.key))]
        source.log.put_aside(self.archive_path(state, VACUUMED), leading)

    # -- the archive --------------------------------------------------------------------------------------

    def archived(self, key: str) -> list[str]:
        """Return the logs of a key that were put aside, the oldest first, as paths of the whole vault."""
        folder = self._archive_folder(key)
        self.vault.recover()
        names = self.vault.store.names(folder)
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith((VACUUMED, DELETED))]

    def find_vacuumed(self, log: str) -> list[str]:
        """Find what vacuums put aside of a log, by its id: paths of the whole vault, the oldest first."""
        root = join(self.vault.namespace, f"{FOLDER}/{ARCHIVE}")
        paths = [
            f"{root}/{folder}/{name}"
            for folder in self.vault.store.names(root)
            for name in self.vault.store.names(f"{root}/{folder}")
            if name.endswith(VACUUMED) and f"-{log}-" in name
        ]
        return sorted(paths, key=os.path.basename)

    def with_archive(self, key: str) -> Iterator[Conversation]:
        """Yield the conversation of a key, then what vacuums put aside of the same log, the newest first."""
        key = self.resolve(key)
        with self.opened(key) as conversation:
            state = conversation.state
            yield conversation
        for path in reversed(self.find_vacuumed(state.log)) if state.vacuumed else ():
            with self.at(path, archived=True) as archived:
                if archived:
                    yield archived

    def repair(self, path: str) -> bool:
        """Rewrite a log by number, and keep the old one; return whether it is a log."""
        with self.vault.store.appending(path) as (log,):
            header = find_header(log, self.most)
            if not header or self.path(header.key) != path:
                return False
            conversation = Conversation(log, header.key, self.most)
            refuse_later(conversation)
            log.put_aside(self.archive_path(conversation.state, VACUUMED), conversation.write_repaired(now()))
            return True

    def archive_path(self, state: State, why: str) -> str:
        """Return where a log of this state is put aside; `why` is `VACUUMED` or `DELETED`."""
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{state.log}-{state.seq}{why}"
        return f"{self._archive_folder(state.key)}/{name}"

    def _archive_folder(self, key: str) -> str:
        return join(self.vault.namespace, f"{FOLDER}/{ARCHIVE}/{name_of(key)}")


def _host_fields(state: State, other: State | None = None) -> dict[str, Any]:
    fields = {name: getattr(state, name) for name in ("text", "title", "metadata")}
    return {name: value for name, value in fields.items() if value and not (other and getattr(other, name))}


def info_of(conversation: Conversation) -> SessionInfo:
    """Return a session as a list shows it."""
    state = conversation.state
    last = next(conversation.messages_back(), None) if state.live else None
    said = moment_of(last.created_at) if last else None
    updated = stamp(said, "milliseconds") if said else state.updated
    return SessionInfo(
        key=state.key,
        messages=state.live,
        summaries=len(state.context),
        created=min(state.created, updated),
        updated=updated,
        alias_of=state.alias_of,
        bytes=conversation.log.size,
        title=state.title,
        metadata=state.metadata,
    )


def capture_refused(vault: Vault) -> NotAllowed | None:
    """Return why hooks keep and observe nothing though the config asks for it; None where they do."""
    config = vault.config
    asks = {
        "[sessions] capture": config.sessions.capture == "hooks",
        "[observation] enabled": config.observation.enabled,
        "[capture] policy": config.capture.policy != "off",
    }
    asked = next((name for name, is_asked in asks.items() if is_asked), "")
    if not asked or is_allowed(CAPTURE, vault.root):
        return None
    what = f"{asked}: hooks would keep what is said to coding tools in this vault"
    return NotAllowed(
        path=CONFIG_PATH, what=what, remedy="if you want that, run `mdmem sessions allow-capture`"
    )


def fits(glob: str, key: str) -> bool:
    """Match a key with a glob of the config: `*` stands for anything but colons, `**` for anything."""
    if "*" not in glob:
        return glob == key
    parts = (_STARS.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", glob))
    return Allowance().matches(foreign(f"\\A(?s:{''.join(parts)})\\Z"), key)


def name_of(key: str) -> str:
    """Name a session's files, without suffix: as `encode_id`, cut and hashed where that is long."""
    try:
        name = encode_id(key, most=None)
    except PathRefused as error:
        raise Usage(problem=f"no session can have the key {key!r}", remedy="give a name") from error
    if len(name.encode()) <= _MOST_NAME and not _HASHED.search(name):
        return name
    return f"{name.encode()[:_KEPT_OF_NAME].decode('utf-8', 'ignore')}~{digest(key.encode())}"


def bound_to(thread: str, vault: Vault) -> Vault:
    """Return a vault that hides what conversations left behind, except what belongs to one thread.

    That is the working memory of the thread, and the summary and observations of its session, even if the
    thread is an alias of the session.
    """
    working = f"{WORKING.folder}/threads/{encode_id(thread)}"
    kept = [f"{working}{suffix}" for suffix in SUFFIXES]
    for key in SessionLogs(vault).names(thread):
        name = name_of(key)
        kept += [f"{FOLDER}/{name}{suffix}" for suffix in (*SUFFIXES, SUFFIX)]
        kept.append(f"{OBSERVATION.folder}/{name}")
    keeps = tuple(join(vault.namespace, path) for path in kept)
    own = _hide_sessions(vault.wall)._replace(keeps=keeps)
    others = (each._replace(namespace=_hide_sessions(each.namespace)) for each in vault.reads[1:])
    return Vault(vault.store, own, vault.actor, (vault.reads[0]._replace(namespace=own), *others))


def _hide_sessions(namespace: Namespace) -> Namespace:
    """Return a namespace without what conversations left behind, in it and in those below it."""
    parts, below = namespace.folder.split("/"), [*NAMESPACES]
    while parts and parts[0] in NAMESPACES:
        below = below[below.index(parts[0]) + 1 :] if parts[0] in below else []
        parts = parts[NAMESPACES[parts[0]] :]
    folders = [namespace.folder]
    for name in below:
        further = "/".join((name, *"*" * (NAMESPACES[name] - 1)))
        folders += [join(folder, further) for folder in folders]
    left = (FOLDER, OBSERVATION.folder, f"{WORKING.folder}/threads")
    return namespace._replace(
        hides=(*namespace.hides, *(join(folder, each) for folder in folders for each in left))
    )


def now() -> str:
    """Return the time as logs have it: ISO 8601, UTC, milliseconds."""
    return stamp(datetime.now(UTC), "milliseconds")


def refuse_later(conversation: Conversation) -> None:
    """Refuse to write a log in a format that this code does not know."""
    version = conversation.state.version
    if version > VERSION:
        reason = f"it has version {version} of the format, and this program writes {VERSION}"
        raise SessionConflict(path=conversation.log.path, reason=reason, remedy="update mdmem")
