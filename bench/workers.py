"""Processes that start at one moment, forked from this one, which has one thread and everything imported."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_FORK = multiprocessing.get_context("fork")


class Worker:
    """A process that does `work` once it is told to; `work` sends reports through what it is given."""

    def __init__(self, work: Callable[[Connection], None]) -> None:
        self._ours, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_run, args=(work, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._ours.recv()

    def go(self) -> None:
        self._ours.send("go")

    def kill(self) -> list[object]:
        """End it with SIGKILL, wherever it is; what it had reported."""
        self._process.kill()
        return self._reports()

    def wait(self) -> list[object]:
        """Let it end; what it reported.

        Raises:
            RuntimeError: it ended with an error, which it has printed.
        """
        reports = self._reports()
        if self._process.exitcode:
            raise RuntimeError(f"a worker ended with {self._process.exitcode}")
        return reports

    def _reports(self) -> list[object]:
        reports: list[object] = []
        # A process that was killed before it had read anything resets its pipe.
        with self._ours, contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                reports.append(self._ours.recv())
        self._process.join()
        return reports


def kill_after(work: Callable[[Connection], None], seconds: float, done: int) -> int:
    """The last number that `work` reported before it was killed after so many seconds; else `done`."""
    worker = Worker(work)
    worker.go()
    time.sleep(seconds)
    return max((each for each in worker.kill() if isinstance(each, int)), default=done)


def _run(work: Callable[[Connection], None], pipe: Connection) -> None:
    pipe.send("ready")
    pipe.recv()
    work(pipe)
