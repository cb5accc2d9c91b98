"""Watching memories: what happens to them, as events, from whoever changes the files."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from mdmem.diagnostic import Diagnostic
from mdmem.errors import MemoryNotFound
from mdmem.index.hints import Hints
from mdmem.index.reference import BROKEN, STALE, Occurrence
from mdmem.index.references import References
from mdmem.index.synced import moves
from mdmem.index.view import View
from mdmem.index.watch import Watcher
from mdmem.vault.paths import is_under, relative

CREATED, CHANGED, MOVED, DELETED = "created", "changed", "moved", "deleted"
STALE_EVENT, DANGLING_EVENT, HEALED = "stale", "dangling", "healed"
RAISED, CLEARED = "raised", "cleared"
READY, NOTICE = "ready", "notice"


class Event(NamedTuple):
    """Something that happened.

    Attributes:
        kind: to a memory: "created", "changed", "moved", "deleted"; to a reference in it: "stale" (the code
            that it cites has moved, has changed or is gone), "dangling" (or ambiguous), "healed"; to what
            `check` says of it: "raised", "cleared". "ready": from here on nothing is missed. "notice":
            watching had to give.
        path: the memory; empty for "ready" and "notice".
        old: of "moved": where it was.
        line: of a reference or a finding, 1-based; 0 otherwise.
        target: of a reference.
        code: of a reference its state, of a finding or a notice its code.
        message: in words.
    """

    kind: str
    path: str = ""
    old: str = ""
    line: int = 0
    target: str = ""
    code: str = ""
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The event as a JSON object, without what is empty."""
        return {name: value for name, value in self._asdict().items() if value}


class _Known(NamedTuple):
    """A memory as it was when it was last looked at: its id, its hash, the keys that links to it may have."""

    ident: str
    hash: str
    keys: frozenset[str]


class Watch:
    """The events of one namespace, as an iterator that ends when it is closed.

    It watches from the moment at which it is made. `close` may be called by any thread.
    """

    def __init__(
        self, view: View, check: Callable[[str], list[Diagnostic]], *, poll_seconds: float | None = None
    ) -> None:
        self._view = view
        self._check = check
        self._references = References(view)
        self._memories: dict[str, _Known] = {}
        self._broken: dict[str, dict[tuple[str, str], Occurrence]] = {}
        self._findings: dict[str, dict[tuple[str, str], Diagnostic]] = {}
        self._left: dict[str, frozenset[str]] = {}
        self._citing: dict[str, set[str]] = {}
        self._events: deque[Event] = deque()
        self._is_ready = False
        self._untaken: Hints | None = None
        root = view.vault.root
        self._watcher = Watcher(root, mounts=view.index.vault.mounted(""), poll_seconds=poll_seconds).start()
        view.index.vouch(self._watcher.vouches)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop; an iteration that waits ends."""
        self._view.index.vouch(None)
        self._watcher.close()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event; None when none came for `timeout` seconds, or when it is closed.

        Raises:
            LockTimeout, StorageFailed: what has happened cannot be looked at now; the next call tries again.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self._events:
            left = None if until is None else max(0.0, until - time.monotonic())
            hints = self._untaken or self._watcher.hints(left)
            if hints is None:
                return None
            is_again, self._untaken = self._untaken is not None, hints
            self._events.extend(self._taken(hints, is_again=is_again))
            self._untaken = None
            self._watcher.taken()
        return self._events.popleft()

    # -- from hints to events -----------------------------------------------------------------------------

    def _taken(self, hints: Hints, *, is_again: bool) -> Iterator[Event]:
        for notice in () if is_again else hints.notices:
            yield Event(NOTICE, code=notice.code, message=notice.message)
        self._view.forget_names()
        paths = None if hints.everything or is_again else hints.paths
        if paths is None or paths:
            self._view.index.sync(paths)
        if not self._is_ready:
            self._begin()
            yield Event(READY)
            return
        memories = list(self._memory_events(paths))
        yield from memories
        if memories:
            # Before the files are read: what changes behind that is told.
            self._cite()
        sources = set(self._memories) if is_again else self._sources(memories)
        sources.update(*(self._citing.get(file, ()) for file in hints.code))
        yield from self._reference_events(sources)
        yield from self._finding_events(
            list(self._memories) if hints.settings or is_again else [event.path for event in memories]
        )

    def _begin(self) -> None:
        self._memories = self._look(None)
        for occurrence in self._references.occurrences(types=("note", "heading", "block")):
            if occurrence.place.state in BROKEN:
                self._broken.setdefault(occurrence.place.path, {})[_name(occurrence)] = occurrence
        for path in self._memories:
            findings = self._findings_of(path)
            if findings:
                self._findings[path] = findings
        self._cite()
        self._is_ready = True

    # -- memories -----------------------------------------------------------------------------------------

    def _look(self, paths: Collection[str] | None) -> dict[str, _Known]:
        """What the index says of memories: of all, or of those at or below `paths` of the vault."""
        return {path: _Known(i, digest, keys) for path, i, digest, keys in self._view.states(paths)}

    def _memory_events(self, paths: Collection[str] | None) -> Iterator[Event]:
        now = self._look(paths)
        if paths is None:
            before = self._memories
        else:
            base = self._view.base
            inside = [relative(path, base) for path in paths if is_under(path, base)]
            over = any(is_under(base, path) for path in paths)
            before = {
                p: k for p, k in self._memories.items() if over or any(is_under(p, at) for at in inside)
            }
        gone = {path: (k.ident, k.hash) for path, k in before.items() if path not in now}
        new = {path: (k.ident, k.hash) for path, k in now.items() if path not in before}
        moved = moves(gone, new)
        self._left = {path: before[path].keys for path in gone}
        for path in gone:
            del self._memories[path]
        self._memories |= now
        for old, path in sorted(moved.items()):
            yield Event(MOVED, path, old=old)
        for path in sorted(new.keys() - moved.values()):
            yield Event(CREATED, path)
        for path in sorted(now.keys() & before.keys()):
            if now[path].hash != before[path].hash:
                self._left[path] = before[path].keys
                yield Event(CHANGED, path)
        for path in sorted(gone.keys() - moved.keys()):
            yield Event(DELETED, path)

    # -- references ---------------------------------------------------------------------------------------

    def _sources(self, events: Iterable[Event]) -> set[str]:
        """The memories whose references may lead elsewhere after these events."""
        sources: set[str] = set()
        keys: set[str] = set()
        for event in events:
            sources |= {event.path, event.old} - {""}
            for path in filter(None, (event.path, event.old)):
                keys |= self._left.get(path, frozenset())
                if path in self._memories:
                    keys |= self._memories[path].keys
        return sources.union(self._view.sources(keys))

    def _reference_events(self, sources: Collection[str]) -> Iterator[Event]:
        found: dict[str, dict[tuple[str, str], Occurrence]] = {}
        for occurrence in self._references.occurrences(paths=sources) if sources else ():
            if occurrence.place.state in BROKEN:
                found.setdefault(occurrence.place.path, {})[_name(occurrence)] = occurrence
        for path in sorted(sources):
            before, now = self._broken.pop(path, {}), found.get(path, {})
            if now:
                self._broken[path] = now
            for name, occurrence in now.items():
                if name not in before or before[name].place.state != occurrence.place.state:
                    yield _broken(occurrence)
            if path in self._memories:
                for name, occurrence in before.items():
                    if name not in now:
                        line = occurrence.place.line
                        yield Event(HEALED, path, line=line, target=occurrence.target, code=occurrence.type)

    def _cite(self) -> None:
        """Watch the files that memories cite."""
        workspace = self._view.vault.workspace
        self._citing = {}
        for path, cited, in_link in self._view.cited_files():
            folders = [workspace]
            if in_link:
                folders.append(os.path.join(workspace, os.path.dirname(self._view.in_workspace(path))))
            for folder in folders:
                file = os.path.normpath(os.path.join(folder, cited.lstrip("/")))
                if file.startswith(workspace + os.sep):
                    self._citing.setdefault(file, set()).add(path)
        self._watcher.cite(self._citing)

    # -- findings -----------------------------------------------------------------------------------------

    def _findings_of(self, path: str) -> dict[tuple[str, str], Diagnostic]:
        with suppress(MemoryNotFound):
            return {(finding.code, finding.rule): finding for finding in self._check(path)}
        return {}

    def _finding_events(self, paths: Iterable[str]) -> Iterator[Event]:
        for path in dict.fromkeys(paths):
            before, now = self._findings.pop(path, {}), self._findings_of(path)
            if now:
                self._findings[path] = now
            for name, finding in now.items():
                if name not in before:
                    yield _found(RAISED, finding)
            if path in self._memories:
                for name, finding in before.items():
                    if name not in now:
                        yield _found(CLEARED, finding)


def _name(occurrence: Occurrence) -> tuple[str, str]:
    """What tells a reference from others of its memory, whatever line it moves to."""
    return occurrence.type, occurrence.written


def _broken(occurrence: Occurrence) -> Event:
    path, line, state, detail = occurrence.place
    kind = STALE_EVENT if state in STALE else DANGLING_EVENT
    return Event(kind, path, line=line, target=occurrence.target, code=state, message=detail)


def _found(kind: str, finding: Diagnostic) -> Event:
    return Event(kind, finding.path, line=finding.position.line, code=finding.code, message=finding.message)
