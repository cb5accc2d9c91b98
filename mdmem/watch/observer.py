"""What is watched through watchdog's observer, where the system is not Linux (FSEvents on macOS).

It says what has changed, soon, but not that it has said everything: nobody can tell what is still on its way.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from watchdog.events import (
    EVENT_TYPE_CLOSED_NO_WRITE,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_OPENED,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from mdmem.watch.hints import GatheredHints, counts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from watchdog.observers.api import BaseObserver, ObservedWatch

# Every folder that is watched beside the tree costs a thread.
MOST_CODE_FOLDERS = 32

_READS = frozenset({EVENT_TYPE_OPENED, EVENT_TYPE_CLOSED_NO_WRITE})


class Observed(FileSystemEventHandler):
    """The observer of one vault.

    Args:
        root: of the vault, absolute and without links.
        mounts: files from elsewhere, by their paths in the vault.
        wake: called, in the observer's thread, when there is something to drain.

    Attributes:
        limited: the observer has stopped, or does not watch everything.
        gone: the vault's folder is not there.

    Raises:
        OSError: the system does not let the folder be watched.
    """

    def __init__(self, root: str, mounts: Mapping[str, str], wake: Callable[[], None]) -> None:
        self.limited = False
        self.gone = not os.path.isdir(root)
        self._root = root
        self._mounts = {file: path for path, file in mounts.items()}
        self._wake = wake
        self._cited: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._events: dict[tuple[str, bool], None] = {}
        self._beside: dict[str, ObservedWatch] = {}
        self._observer: BaseObserver | None = None
        self._start_observer()

    def close(self) -> None:
        """Stop the observer and wait for its threads."""
        if self._observer:
            self._observer.stop()
            self._observer.join()
            self._observer = None

    def cite(self, files: Collection[str]) -> frozenset[str]:
        """Watch these files (absolute paths) instead of those that were given before.

        Returns:
            The ones that are not watched: in folders that are not there, or too many.
        """
        folders = filter(os.path.isdir, {os.path.dirname(file) for file in files})
        kept = set(sorted(folders)[:MOST_CODE_FOLDERS])
        self._cited = frozenset(file for file in files if os.path.dirname(file) in kept)
        self._place_watches()
        return frozenset(file for file in files if os.path.dirname(file) not in self._beside)

    def retry(self, *, everything: bool = False) -> None:  # noqa: ARG002 - it is always everything
        """Start again what has stopped."""
        self.close()
        try:
            self._start_observer()
        except OSError:
            self.limited = True

    def drain(self, into: GatheredHints) -> bool:
        """Take over what the observer has said.

        Returns:
            Whether the single files have to be cited again: the observer was started again.
        """
        with self._lock:
            events, self._events = self._events, {}
        for path, is_folder in events:
            self._handle_path(path, into, is_folder=is_folder)
        was_gone = self.gone
        self.gone = not os.path.isdir(self._root)
        into.root(self._root, was_gone=was_gone, is_gone=self.gone)
        is_back = was_gone and not self.gone
        if is_back:
            self.retry()
        elif not self.gone and not self._is_alive():
            self.limited = True
        return is_back

    def _is_alive(self) -> bool:
        """Return whether every thread of the observer runs."""
        if self._observer is None or not self._observer.is_alive():
            return False
        return all(thread.is_alive() for thread in self._observer.emitters)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Take in an event, in the observer's thread."""
        if event.event_type in _READS or (event.is_directory and event.event_type == EVENT_TYPE_MODIFIED):
            return
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        wanted = [(path, event.is_directory) for path in paths if self._is_wanted(path)]
        if wanted:
            with self._lock:
                self._events.update(dict.fromkeys(wanted))
            self._wake()

    def _is_wanted(self, path: str) -> bool:
        """Return whether an event counts: writes of the index must not wake anybody."""
        inside = path.removeprefix(self._root + "/")
        return path in self._cited or inside == path or counts(inside)

    def _handle_path(self, path: str, into: GatheredHints, *, is_folder: bool) -> None:
        inside = path.removeprefix(self._root + "/")
        if path in self._cited:
            into.cited(path)
        if path in self._mounts:
            into.file(self._mounts[path])
        elif path == self._root and is_folder:
            into.all()
        elif inside != path and counts(inside):
            (into.folder if is_folder else into.file)(inside)

    def _start_observer(self) -> None:
        self.limited = False
        self._beside = {}
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
            self._place_watches()

    def _place_watches(self) -> None:
        """Watch the folders that hold single files."""
        if not self._observer:
            return
        wanted = {os.path.dirname(file) for file in (*self._cited, *self._mounts)}
        for folder in self._beside.keys() - wanted:
            self._observer.unschedule(self._beside.pop(folder))
        for folder in wanted - self._beside.keys():
            with contextlib.suppress(OSError):
                self._beside[folder] = self._observer.schedule(self, folder)
