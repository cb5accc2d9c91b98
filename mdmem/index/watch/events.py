"""Watch memories: yield an event for each change, whichever program makes it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, islice
from typing import Any, NamedTuple, Self

from mdmem.diagnostic import Diagnostic
from mdmem.errors import MdmemError, MemoryNotFound
from mdmem.index.code.citations import BROKEN, STALE
from mdmem.index.links.references import TAG, TYPES, URL, Occurrence, files_of, occurrences
from mdmem.index.sync import moves
from mdmem.index.view import View
from mdmem.index.watch.hints import Hints
from mdmem.index.watch.watcher import Keeper, Watcher
from mdmem.vault.paths import is_under, relative

CREATED, CHANGED, MOVED, DELETED = "created", "changed", "moved", "deleted"
STALE_EVENT, DANGLING_EVENT, HEALED = "stale", "dangling", "healed"
RAISED, CLEARED = "raised", "cleared"
READY, NOTICE = "ready", "notice"

# How many memories are judged before new hints are taken.
_STEP = 10
_AGAIN_AFTER = 1.0  # seconds, where what has happened could not be looked at
_CAN_BREAK = frozenset(TYPES) - {TAG, URL}


class Event(NamedTuple):
    """Something that happened.

    Attributes:
        kind: to a memory: "created", "changed", "moved", "deleted"; to a reference in it: "stale" (the code
            that it cites has moved, has changed or is gone), "dangling" (or ambiguous), "healed"; to what
            `check` says of it: "raised", "cleared". "ready": from here on nothing is missed. "notice":
            something is not watched.
        path: the memory; empty for "ready" and "notice".
        old: of "moved": where it was.
        line: of a reference or a finding, 1-based; 0 otherwise.
        target: of a reference.
        code: the state of a broken reference, the type of a healed one, the code of a finding or notice.
        message: the event in words; may be empty.
    """

    kind: str
    path: str = ""
    old: str = ""
    line: int = 0
    target: str = ""
    code: str = ""
    message: str = ""

    def json_shape(self) -> dict[str, Any]:
        """Return the event as a JSON object, without what is empty."""
        return {name: value for name, value in self._asdict().items() if value}


class _Known(NamedTuple):
    """A memory as it was when it was last looked at: its id, its hash, the keys that links to it may have."""

    ident: str
    hash: str
    keys: frozenset[str]


class Watch:
    """The events of one namespace, as an iterator that ends when it is closed.

    It watches from its construction on. `check` gives the findings of a memory. Any thread may call `close`.
    """

    def __init__(
        self, view: View, check: Callable[[str], list[Diagnostic]], *, poll_seconds: float | None = None
    ) -> None:
        self._view = view
        self._check = check
        self._memories: dict[str, _Known] = {}
        self._broken: dict[str, dict[tuple[str, str], Occurrence]] = {}
        self._findings: dict[str, dict[tuple[str, str], Diagnostic]] = {}
        # The files that each memory points at, and the memories that point at each file.
        self._files: dict[str, set[str]] = {}
        self._citing: dict[str, set[str]] = {}
        self._events: deque[Event] = deque()
        # What is to be looked at again: the files that memories cite, the keys of links that may lead
        # elsewhere, the references of memories, and their findings.
        self._files_due: set[str] = set()
        self._link_keys: set[str] = set()
        self._references_due: set[str] = set()
        self._findings_due: set[str] = set()
        self._is_ready = self._is_closed = self._is_judging = False
        self._unfinished_hints: Hints | None = None
        root = view.vault.root
        self._watcher = Watcher(root, mounts=view.index.vault.mounted(""), poll_seconds=poll_seconds).start()
        self._keeper = None if view.index.is_watched else Keeper(view.index, self._watcher)
        self._caller: threading.Thread | None = None
        self._stopped = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; an iteration that waits ends, and no callback runs any more."""
        self._is_closed = True
        self._stopped.set()
        if self._keeper:
            self._keeper.close()
        self._watcher.close()
        if self._caller and self._caller is not threading.current_thread():
            self._caller.join()

    def call(self, callback: Callable[[Event], object]) -> None:
        """Call `callback` with each event, in a thread of its own, until it is closed.

        A failure to look at what has happened is an event, too: a "notice" with the code of the error. An
        exception of the callback closes the watch.
        """
        self._caller = threading.Thread(target=self._call, args=(callback,), name="mdmem watch", daemon=True)
        self._caller.start()

    def _call(self, callback: Callable[[Event], object]) -> None:
        try:
            while not self._is_closed:
                try:
                    event = self.next()
                except MdmemError as error:
                    event = Event(NOTICE, code=error.code, message=str(error))
                    self._stopped.wait(_AGAIN_AFTER)
                if event is not None and not self._is_closed:
                    callback(event)
        finally:
            self.close()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event; None when none came for `timeout` seconds, or when it is closed.

        Raises:
            LockTimeout, StorageFailed: what has happened cannot be looked at now; the next call tries again.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self._events and not self._is_closed:
            left = None if until is None else max(0.0, until - time.monotonic())
            # Alternate, so that neither new hints nor judging has to wait for the other to be done.
            if self._is_judging:
                self._judge_next()
                self._is_judging = False
            elif hints := self._unfinished_hints or self._watcher.hints(0 if self._has_to_judge else left):
                self._take_hints(hints)
                self._is_judging = self._has_to_judge
            elif self._has_to_judge:
                self._is_judging = True
            else:
                return None
            if left == 0:
                break
        return self._events.popleft() if self._events and not self._is_closed else None

    # -- from hints to events -----------------------------------------------------------------------------

    def _take_hints(self, hints: Hints) -> None:
        is_again, self._unfinished_hints = self._unfinished_hints is not None, hints
        for notice in () if is_again else hints.notices:
            self._events.append(Event(NOTICE, code=notice.code, message=notice.message))
        self._view.forget_names()
        paths = None if hints.everything or is_again else hints.paths
        if paths is None or paths:
            self._view.index.sync(paths)
        # From here on, a search finds it.
        self._watcher.taken()
        if self._is_ready:
            self._events.extend(self._memory_events(paths))
            self._references_due.update(*(self._citing.get(file, ()) for file in hints.code))
            if hints.settings:
                self._findings_due.update(self._memories)
        else:
            self._begin_watch()
            self._events.append(Event(READY))
        self._unfinished_hints = None

    @property
    def _has_to_judge(self) -> bool:
        return bool(self._files_due or self._references_due or self._findings_due)

    def _judge_next(self) -> None:
        if self._files_due:
            # Watch the files before they are read, so that no change in between is missed.
            some = set(islice(self._files_due, _STEP))
            self._watch_cited(some)
            self._references_due |= some
            if some == self._files_due:
                self._references_due.update(self._view.sources(self._link_keys))
                self._link_keys = set()
            self._files_due -= some
        elif self._references_due:
            some = set(islice(self._references_due, _STEP))
            self._events.extend(self._reference_events(some))
            self._references_due -= some
        else:
            some = set(islice(self._findings_due, _STEP))
            self._events.extend(self._finding_events(some))
            self._findings_due -= some

    def _begin_watch(self) -> None:
        self._memories = self._read_states(None)
        self._watch_cited(None)
        self._broken = self._find_broken(None)
        for path in self._memories:
            findings = self._findings_of(path)
            if findings:
                self._findings[path] = findings
        self._is_ready = True

    # -- memories -----------------------------------------------------------------------------------------

    def _read_states(self, paths: Collection[str] | None) -> dict[str, _Known]:
        return {path: _Known(i, digest, keys) for path, i, digest, keys in self._view.states(paths)}

    def _known_at(self, paths: Collection[str] | None) -> dict[str, _Known]:
        base = self._view.base
        if paths is None or any(is_under(base, path) for path in paths):
            return dict(self._memories)
        at = {relative(path, base) for path in paths if is_under(path, base)}
        # Nothing is below a memory.
        above = at - self._memories.keys()
        return {
            path: known
            for path, known in self._memories.items()
            if path in at or (above and not above.isdisjoint(accumulate(path.split("/"), "{}/{}".format)))
        }

    def _memory_events(self, paths: Collection[str] | None) -> Iterator[Event]:
        now, before = self._read_states(paths), self._known_at(paths)
        gone = {path: (k.ident, k.hash) for path, k in before.items() if path not in now}
        new = {path: (k.ident, k.hash) for path, k in now.items() if path not in before}
        changed = {path for path in now.keys() & before.keys() if now[path].hash != before[path].hash}
        self._files_due |= {*gone, *new, *changed}
        self._link_keys.update(*(before[path].keys for path in (*gone, *changed)))
        self._link_keys.update(*(now[path].keys for path in (*new, *changed)))
        self._findings_due |= {*gone, *new, *changed}
        for path in gone:
            del self._memories[path]
        self._memories |= now
        moved = moves(gone, new)
        yield from (Event(MOVED, path, old=old) for old, path in sorted(moved.items()))
        yield from (Event(CREATED, path) for path in sorted(new.keys() - moved.values()))
        yield from (Event(CHANGED, path) for path in sorted(changed))
        yield from (Event(DELETED, path) for path in sorted(gone.keys() - moved.keys()))

    # -- references ---------------------------------------------------------------------------------------

    def _find_broken(self, sources: Collection[str] | None) -> dict[str, dict[tuple[str, str], Occurrence]]:
        found: dict[str, dict[tuple[str, str], Occurrence]] = {}
        for occurrence in occurrences(self._view, types=_CAN_BREAK, paths=sources):
            if occurrence.place.state in BROKEN:
                name = occurrence.type, occurrence.written  # which does not depend on its line
                found.setdefault(occurrence.place.path, {})[name] = occurrence
        return found

    def _reference_events(self, sources: Collection[str]) -> Iterator[Event]:
        found = self._find_broken(sources)
        for path in sorted(sources):
            before, now = self._broken.pop(path, {}), found.get(path, {})
            if now:
                self._broken[path] = now
            for name, occurrence in now.items():
                if name not in before or before[name].place.state != occurrence.place.state:
                    yield _broken_event(occurrence)
            if path in self._memories:
                for name, occurrence in before.items():
                    if name not in now:
                        line = occurrence.place.line
                        yield Event(HEALED, path, line=line, target=occurrence.target, code=occurrence.type)

    def _watch_cited(self, memories: Collection[str] | None) -> None:
        found = files_of(self._view, memories)
        for path in list(self._files) if memories is None else memories:
            for file in self._files.pop(path, ()):
                self._citing[file].discard(path)
                if not self._citing[file]:
                    del self._citing[file]
        self._files |= found
        for path, files in found.items():
            for file in files:
                self._citing.setdefault(file, set()).add(path)
        self._watcher.cite(self._citing)

    # -- findings -----------------------------------------------------------------------------------------

    def _findings_of(self, path: str) -> dict[tuple[str, str], Diagnostic]:
        file = os.path.join(self._view.vault.workspace, self._view.in_workspace(path))
        if not os.path.lexists(file):
            return {}  # the error that says so would be looking for similar names
        with suppress(MemoryNotFound):
            return {(finding.code, finding.rule): finding for finding in self._check(path)}
        return {}

    def _finding_events(self, paths: Iterable[str]) -> Iterator[Event]:
        for path in sorted(paths):
            before, now = self._findings.pop(path, {}), self._findings_of(path)
            if now:
                self._findings[path] = now
            for name, finding in now.items():
                if name not in before:
                    yield _finding_event(RAISED, finding)
            if path in self._memories:
                for name, finding in before.items():
                    if name not in now:
                        yield _finding_event(CLEARED, finding)


def _broken_event(occurrence: Occurrence) -> Event:
    path, line, state, detail = occurrence.place
    kind = STALE_EVENT if state in STALE else DANGLING_EVENT
    return Event(kind, path, line=line, target=occurrence.target, code=state, message=detail)


def _finding_event(kind: str, finding: Diagnostic) -> Event:
    return Event(kind, finding.path, line=finding.position.line, code=finding.code, message=finding.message)
