"""Work that another process does meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")


class Beside(Generic[R]):
    """Work that a process of its own does, from now on.

    A hook keeps an agent waiting, and most of its time goes into imports: two processors share them. The
    work only reads, and this process has no other threads. Where an alarm is set, it is set for both.
    """

    def __init__(self, work: Callable[[], R]) -> None:
        self._work = work
        self._reader, writer = os.pipe()
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        self._process = os.fork()
        if not self._process:
            with contextlib.suppress(BaseException):
                signal.setitimer(signal.ITIMER_REAL, left)
                os.close(self._reader)
                found = work()
                import pickle  # noqa: PLC0415 - start-up

                with open(writer, "wb") as file:
                    file.write(pickle.dumps(found))
            os._exit(0)  # what is in the buffers of standard output is the parent's to write
        os.close(writer)

    def result(self) -> R:
        """What the work gives; done here when the process failed, so that its error is raised."""
        import pickle  # noqa: PLC0415 - start-up

        with open(self._reader, "rb") as file:
            written = file.read()
        os.waitpid(self._process, 0)
        try:
            given: R = pickle.loads(written)  # noqa: S301 - by the process that was started above
        except (EOFError, pickle.UnpicklingError):
            return self._work()
        return given
