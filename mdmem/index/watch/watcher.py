"""The watcher tells which memories, and which cited files, may have changed since it was last asked.

The keeper keeps an index current by that, for whoever asks: in this process, and in others.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Self

from mdmem.errors import MdmemError, Usage
from mdmem.index.mounts import TABLE, mounted_in, remote_kind
from mdmem.index.watch.hints import GatheredHints, Hints, Notice
from mdmem.vault.files import status_of

if TYPE_CHECKING:  # each exists on its own systems only
    from mdmem.index.index import Index
    from mdmem.index.watch.inotify import Watched
    from mdmem.index.watch.observer import Observed

# How often everything is looked at where events do not tell everything, and always the files that no event
# tells of: mounted ones, those with several names, and cited code.
POLL_SECONDS = 1.0
# Where events are reliable by all that is known, but losing one would never be noticed.
SWEEP_SECONDS = 60.0
# While the vault's folder is gone, how often its place is looked at.
GONE_SECONDS = 0.1
# Looking takes at most one part in this many of the time.
_SHARE = 20
# Waited for the thread of a keeper, which may be in the middle of a long look for somebody else.
_END_SECONDS = 1.0

# Within this time a file can change again without its times telling.
_TICK_NS = 10_000_000

# Only there it is certain that all was told.
HAS_INOTIFY = sys.platform.startswith("linux")

_LIMIT = Notice(
    "not-watched",
    "some folders cannot be watched, the system's limit is reached; the vault is looked at again and again. "
    "Raise it: sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512",
)


class Watcher:
    """Watches the vault at `root`, its mounted files, and code that its memories cite.

    `hints` is called by one thread; `cite`, `pending` and `close` by any. A constructor opens nothing: a
    watcher works between `start` and `close`, best in a `with` statement. The first hints ask for a look at
    everything, because what happened before the start is not known.

    Args:
        root: absolute path of the vault's folder, without links.
        mounts: absolute paths of files from elsewhere, by their paths in the vault.
        poll_seconds: look at everything this often beside watching; 0: never, whatever the file system is;
            None: decide by the file system.
        logs: also tell of logs of sessions.
    """

    def __init__(
        self,
        root: str,
        *,
        mounts: Mapping[str, str] | None = None,
        poll_seconds: float | None = None,
        logs: bool = False,
    ) -> None:
        self._root = root
        self._mounts = dict(mounts or {})
        self._every = poll_seconds
        self._events: Watched | Observed | None = None
        self._lock = threading.Lock()
        self._logs = logs
        self._gathered = GatheredHints(logs=logs)
        # Cited files, and mounted and linked memories, as they were when they were last looked at.
        self._cited: dict[str, tuple[int, ...]] = {}
        self._singles: dict[str, tuple[int, ...]] = {}
        self._is_limited = False
        self._next_look = self._next_code_look = math.inf
        self._next_link_look = -math.inf
        # What was handed out counts as known when `taken` says so, or the next hints are asked for.
        self._handed_at: float | None = None
        self._handed = Hints()
        self._is_taken = True
        self._is_open = self._is_waiting = False
        self._process = 0
        self._wake_read = self._wake_write = self._table = -1
        self._mounted: object = None
        self._is_remote = False

    def start(self) -> Self:
        """Begin to watch."""
        self._process = os.getpid()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._is_open = True
        self._gathered = GatheredHints(logs=self._logs)
        self._gathered.all_now()
        with contextlib.suppress(OSError):
            self._table = os.open(TABLE, os.O_RDONLY | os.O_CLOEXEC)
        kind = self._look_at_mounts()
        if kind and self._every is None:
            message = f"{kind} does not tell what others change; the vault is looked at again and again"
            self._gathered.notices.append(Notice("polling", message))
            self._every = POLL_SECONDS
        try:
            self._events = self._open_events()
        except OSError:
            self._events = None
        self._note_limit()
        self._plan_look(0)
        return self

    def close(self) -> None:
        """Stop watching. A call of `hints` that is waiting returns None."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            self._wake_thread()
            if not self._is_waiting:
                self._give_back()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Hints]:
        """Hints, as they come, until the watcher is closed."""
        while (hints := self.hints()) is not None:
            yield hints

    def cite(self, files: Collection[str]) -> None:
        """Watch these files of code (absolute paths) instead of those that were given before.

        What changes after the call began is told; so the caller reads the files after it.
        """
        with self._lock:
            before = self._cited
            self._cited = {file: before[file] if file in before else _file_state(file) for file in files}
            self._next_code_look = min(self._next_code_look, time.monotonic() + POLL_SECONDS)

    def mount(self, files: Mapping[str, str]) -> None:
        """Watch these mounted files instead of those that were given before; see `mounts`."""
        with self._lock:
            self._mounts = dict(files)

    def hints(self, timeout: float | None = None) -> Hints | None:
        """Wait until something may have changed, and then until it is quiet; return where to look.

        None says that the timeout, in seconds, is over, or that the watcher is closed. Asking for the next
        hints says that the index has taken in those before.

        Raises:
            Usage: the watcher was not started by this process.
        """
        if os.getpid() != self._process:
            remedy = "start it in the process that uses it, after any fork"
            raise Usage(problem="the watcher was not started by this process", remedy=remedy)
        until = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            if self._handed_at is not None:
                self._plan_look(time.monotonic() - self._handed_at)
            self._handed_at, self._is_taken = None, True
            self._is_waiting = True
        try:
            while True:
                with self._lock:
                    if not self._is_open:
                        return None
                    self._drain_events(SWEEP_SECONDS)
                    now = time.monotonic()
                    if self._gathered and self._gathered.ready <= now:
                        return self._hand_out(now)
                    if until <= now:
                        return None
                    due = self._next_due(now)
                self._wait_for_event(min(due, until) - now)
        finally:
            with self._lock:
                self._is_waiting = False
                if not self._is_open:
                    self._give_back()

    def taken(self) -> None:
        """Say that the index has taken in the hints before; asking for the next ones says so, too."""
        with self._lock:
            self._is_taken = True

    def pending(self, *, take: bool = False) -> Hints | None:
        """Return what has happened up to this call and was not taken in; None where that is not certain.

        It is certain where the kernel tells everything. It is known within microseconds, because the kernel's
        queue is read in this very call.

        What is written through mapped memory is told late or not at all; what is written through another name
        of the file that was made elsewhere a moment ago may be told by a later call: a name makes no event.

        Args:
            take: whether the caller takes it in; then nobody calls `hints`.
        """
        if os.getpid() != self._process or not HAS_INOTIFY:
            return None
        with self._lock:
            if not self._is_open:
                return None
            had_some = bool(self._gathered)
            self._follow_mounts()
            self._drain_events()
            if self._gathered and not had_some:
                self._wake_thread()
            if take and self._is_limited and self._next_look == math.inf:
                self._plan_look(0)
            if self._events is None or self._is_limited or self._events.gone:
                return None
            if self._every or self._is_remote:
                return None
            hints = self._gathered.hints()
            if take:
                self._gathered = GatheredHints(logs=self._logs)
            return hints if self._is_taken else hints | self._handed

    def vouches(self) -> bool:
        """Return whether everything that has happened up to this call was taken in, for certain."""
        return self.pending() == Hints()

    # -- under the lock -----------------------------------------------------------------------------------

    def _open_events(self) -> Watched | Observed:
        if HAS_INOTIFY:
            from mdmem.index.watch.inotify import Watched  # noqa: PLC0415 - cannot be imported on other systems

            return Watched(self._root)
        from mdmem.index.watch.observer import Observed  # noqa: PLC0415 - not needed on Linux

        return Observed(self._root, self._wake_thread)

    def _drain_events(self, patience: float = 0.0) -> None:
        """Take over what has happened, and look where it is time to look.

        While nobody asks, memories with names elsewhere are looked for less often, by seconds of `patience`.
        """
        if self._events:
            self._events.drain(self._gathered)
            self._note_limit()
        now = time.monotonic()
        if self._events and now >= self._next_link_look + patience:
            self._events.find_linked()
            self._next_link_look = time.monotonic() + (time.monotonic() - now) * _SHARE
        self._look_at_singles()
        now = time.monotonic()
        if now >= self._next_code_look:
            self._look_at_code()
        if now >= self._next_look and self._handed_at is None:
            self._next_look = math.inf
            if self._is_limited:
                self._retry_watches()
            self._gathered.all_now()

    def _follow_mounts(self) -> None:
        if self._table < 0:
            return
        poll = select.poll()
        poll.register(self._table, select.POLLPRI)
        if not poll.poll(0):  # the kernel says so once (proc_pid_mounts(5))
            return
        before = self._mounted
        self._look_at_mounts()
        if self._mounted != before and self._events:
            self._events.rebuild()
            self._gathered.all()

    def _look_at_mounts(self) -> str:
        """Return the kind of file system, of those in the vault, that does not tell what others change."""
        self._mounted = _, below = mounted_in(self._root)
        kinds = map(remote_kind, (self._root, *self._mounts.values(), *(mount.point for mount in below)))
        kind = next(filter(None, kinds), "")
        self._is_remote = bool(kind)
        return kind

    def _retry_watches(self) -> None:
        try:
            self._events = self._events or self._open_events()
        except OSError:
            return
        if self._events.limited:
            self._events.rebuild()
        self._note_limit()

    def _note_limit(self) -> None:
        was_limited, self._is_limited = self._is_limited, self._events is None or self._events.limited
        if self._is_limited and not was_limited:
            self._gathered.notices.append(_LIMIT)
            self._gathered.all()
            self._plan_look(0)
        elif was_limited and not self._is_limited:
            self._gathered.notices.append(Notice("watched", "every folder of the vault is watched again"))

    def _plan_look(self, took: float) -> None:
        """Plan the next look at everything; the last one took `took` seconds."""
        every = self._every
        if self._is_limited and every is None:
            every = POLL_SECONDS
        elif not HAS_INOTIFY and every is None:
            every = SWEEP_SECONDS
        self._next_look = time.monotonic() + max(every, took * _SHARE) if every else math.inf

    def _look_at_singles(self) -> None:
        """Look at the mounted files, and at those with several names: no event may tell about them."""
        linked = (
            {path: os.path.join(self._root, path) for path in self._events.linked} if self._events else {}
        )
        for path, file in {**linked, **self._mounts}.items():
            state = _file_state(file)
            if state != self._singles.get(path):
                self._gathered.file(path)
            is_recent = state and abs(time.time_ns() - state[1]) < _TICK_NS
            self._singles[path] = (-1,) if is_recent else state

    def _look_at_code(self) -> None:
        began = time.monotonic()
        for path, before in self._cited.items():
            state = _file_state(path)
            if state != before:
                self._cited[path] = state
                self._gathered.cited(path)
        now = time.monotonic()
        self._next_code_look = now + max(POLL_SECONDS, (now - began) * _SHARE) if self._cited else math.inf

    def _next_due(self, now: float) -> float:
        due = self._gathered.ready if self._gathered else math.inf
        if self._events and self._events.gone:
            due = min(due, now + GONE_SECONDS)
        elif self._mounts or (self._events and self._events.linked):
            due = min(due, now + POLL_SECONDS)
        return min(due, self._next_look, self._next_code_look)

    def _hand_out(self, now: float) -> Hints:
        self._handed = self._gathered.hints()
        self._gathered = GatheredHints(logs=self._logs)
        self._handed_at, self._is_taken = now, False
        return self._handed

    # -- waiting ------------------------------------------------------------------------------------------

    def _wait_for_event(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        if HAS_INOTIFY and self._events:
            poll.register(self._events.fileno(), select.POLLIN)  # type: ignore[union-attr]
        poll.poll(None if seconds == math.inf else max(0, math.ceil(seconds * 1000)))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)

    def _wake_thread(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"!")

    def _give_back(self) -> None:
        if self._events:
            self._events.close()
            self._events = None
        for descriptor in (self._wake_read, self._wake_write, self._table):
            if descriptor >= 0:
                os.close(descriptor)
        self._wake_read = self._wake_write = self._table = -1


def _file_state(path: str) -> tuple[int, ...]:
    status = status_of(path, follows=True)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino) if status else ()


class Keeper:
    """Watches for an index, so that a question to it looks only at what has changed.

    It begins in a thread of its own, because to watch many folders takes a moment: until then, a question
    looks at everything. Nothing runs when files change.

    A `watcher` is a started one, if somebody else takes in its hints.
    """

    def __init__(self, index: Index, watcher: Watcher | None = None) -> None:
        self._index = index
        self._is_own = not watcher
        self._watcher = watcher or Watcher(index.vault.root, mounts=index.vault.mounted(""))
        self._is_closed = False
        self._thread = threading.Thread(target=self._start_watcher, name="mdmem-keeper", daemon=True)
        if watcher:
            index.follow(self._take_changed)
        elif HAS_INOTIFY:
            self._thread.start()

    def close(self) -> None:
        """Stop; an own watcher is closed."""
        self._is_closed = True
        if self._thread.ident:
            self._thread.join(_END_SECONDS)
        self._stop_following()

    def _stop_following(self) -> None:
        self._index.unfollow(self._take_changed)
        if self._is_own:
            self._watcher.close()

    def _start_watcher(self) -> None:
        with contextlib.suppress(OSError, MdmemError):  # then every question looks at everything
            self._watcher.start()
            self._index.follow(self._take_changed)
        if self._is_closed:  # while this took longer than `close` waits
            self._stop_following()

    def _take_changed(self) -> frozenset[str] | None:
        self._watcher.mount(self._index.vault.mounted(""))  # the config may have changed
        hints = self._watcher.pending(take=self._is_own)
        return None if hints is None or hints.everything else hints.paths
