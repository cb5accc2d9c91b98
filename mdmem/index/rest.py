"""Rest: what is closed when it has not been used for a while."""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Rest:
    """Closes something that has not been used for some seconds.

    A thread waits for that and ends with it; the next use begins another one. So what is never used again
    costs nothing.

    Args:
        close: closes it, in that thread. A use that comes just then has to open it again.
        seconds: how long it has not been used.
    """

    def __init__(self, close: Callable[[], None], seconds: float) -> None:
        self._close = close
        self._seconds = seconds
        self._used = 0.0
        self._thread: Thread | None = None

    def used(self) -> None:
        """Say that it is used now; not by two threads at once."""
        self._used = time.monotonic()
        if self._thread is None:
            self._thread = Thread(target=self._wait, name="mdmem-rest", daemon=True)
            self._thread.start()

    def _wait(self) -> None:
        while (left := self._used + self._seconds - time.monotonic()) > 0:
            time.sleep(left)
        self._thread = None
        self._close()
