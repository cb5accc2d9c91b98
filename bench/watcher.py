"""A watcher beside a measurement: it tells when what was indexed, and spares questions a look at the rest."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from mdmem.index.watch.events import CHANGED, CREATED, DELETED, MOVED, READY

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType

    from mdmem.facade.memory import Memory

_OF_MEMORIES = {CREATED, CHANGED, MOVED, DELETED}


class Watching:
    """Watches the vault of `memory`, inside a `with`; what the watcher tells of memories is kept."""

    def __init__(self, memory: Memory) -> None:
        self._events = memory.watch()
        self._told = threading.Condition()
        self._paths: set[str] = set()
        self._ready = threading.Event()
        self._taker = threading.Thread(target=self._take, daemon=True)

    def __enter__(self) -> Self:
        self._taker.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.close()
        self._taker.join()

    def forget(self) -> None:
        """Forget what was told so far."""
        with self._told:
            self._paths.clear()

    def wait(self, paths: Collection[str], longest: float) -> bool:
        """Wait until something was told of each of these memories; whether it was, in so many seconds."""
        with self._told:
            return self._told.wait_for(lambda: self._paths.issuperset(paths), longest)

    def _take(self) -> None:
        try:
            for event in self._events:
                if event.kind == READY:
                    self._ready.set()
                elif event.kind in _OF_MEMORIES:
                    with self._told:
                        self._paths.add(event.path)
                        self._told.notify_all()
        finally:
            self._ready.set()  # an error, which is printed, must not leave the other thread waiting
