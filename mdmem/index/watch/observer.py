"""What is watched through watchdog's observer, where the system is not Linux (FSEvents on macOS).

It says what has changed, soon, but not that it has said everything: nobody can tell what is still on its way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from watchdog.events import (
    EVENT_TYPE_CLOSED_NO_WRITE,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_OPENED,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from mdmem.index.watch.hints import GatheredHints, counts

_READS = frozenset({EVENT_TYPE_OPENED, EVENT_TYPE_CLOSED_NO_WRITE})


class Observed(FileSystemEventHandler):
    """The observer of one vault; its attributes are those of `mdmem.index.watch.inotify.Watched`.

    It calls `wake`, in its own thread, when there is something to drain. Nothing is `linked`: nothing is
    certain here anyway.

    Raises:
        OSError: the system does not let the folder be watched.
    """

    def __init__(self, root: str, wake: Callable[[], None]) -> None:
        self.limited = False
        self.gone = not os.path.isdir(root)
        self.linked: set[str] = set()
        self._root = root
        self._wake = wake
        self._lock = threading.Lock()
        self._events: dict[tuple[str, bool], None] = {}
        self._observer: BaseObserver | None = None
        self._start_observer()

    def close(self) -> None:
        """Stop the observer and wait for its threads."""
        if self._observer:
            self._observer.stop()
            self._observer.join()
            self._observer = None

    def find_linked(self) -> None:
        """Find nothing; see `linked`."""

    def rebuild(self) -> None:
        """Start again what has stopped."""
        self.close()
        try:
            self._start_observer()
        except OSError:
            self.limited = True

    def drain(self, into: GatheredHints) -> None:
        """Take over what the observer has said."""
        with self._lock:
            events, self._events = self._events, {}
        for path, is_folder in events:
            (into.folder if is_folder else into.file)(path)
        was_gone = self.gone
        self.gone = not os.path.isdir(self._root)
        into.root(self._root, was_gone=was_gone, is_gone=self.gone)
        if was_gone and not self.gone:
            self.rebuild()
        elif not self.gone and not self._is_alive():
            self.limited = True

    def _is_alive(self) -> bool:
        if self._observer is None or not self._observer.is_alive():
            return False
        return all(thread.is_alive() for thread in self._observer.emitters)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Take in an event, in the observer's thread."""
        if event.event_type in _READS or (event.is_directory and event.event_type == EVENT_TYPE_MODIFIED):
            return
        prefix = f"{self._root}/"
        for path in (os.fsdecode(path) for path in (event.src_path, event.dest_path) if path):
            inside = f"{path}/".removeprefix(prefix).rstrip("/")
            # Writes of the index must not wake anybody.
            if f"{path}/".startswith(prefix) and (not inside or counts(inside)):
                with self._lock:
                    self._events[inside, event.is_directory] = None
                self._wake()

    def _start_observer(self) -> None:
        self.limited = False
        if not self.gone:
            observer = Observer()
            try:
                observer.schedule(self, self._root, recursive=True)
                observer.start()
            except (OSError, RuntimeError) as error:  # RuntimeError: the system gives out no more threads
                observer.stop()
                raise OSError(*error.args) from None
            # One that was not started cannot be joined.
            self._observer = observer
