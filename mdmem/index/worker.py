"""Workers: other processes that read and parse memories for a long run, `python -m mdmem.index.worker`.

A worker gets batches of paths on standard input, and answers each on standard output. It ends when its input
does: then the run is done, or its process was killed. What a worker does not answer is read by the run
itself: one that is killed, or cannot start, only makes it take longer.

`multiprocessing` would start the main module of the host once more, and its processes outlive a killed one.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Self

from mdmem.index.sync import Parsed, read_and_parse
from mdmem.vault.vault import Vault

_IS_WORKER = "MDMEM_WORKER"
_EACH = 1_500  # files that are worth the start of a worker
_MOST = 3  # workers: more wait for this process, which writes what they read
_BATCH = 40  # files
_AHEAD = 3  # batches that a worker has been given
_MOST_DONE = 10  # batches that are done before their turn


def count_workers(files: int) -> int:
    """Return how many workers are worth it for this number of files."""
    if os.environ.get(_IS_WORKER) or getattr(sys, "frozen", False):
        return 0  # the program that would be started may be any
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, _MOST, files // _EACH)


def read_with_workers(vault: Vault, paths: Sequence[str], *, texts: bool) -> Iterator[Parsed | None]:
    """Yield `read_and_parse` of each path, in their order, with the help of workers; to be closed."""
    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    following = iter(range(len(batches)))
    given: dict[int, _Worker] = {}
    done: dict[int, list[Parsed | None]] = {}
    with ExitStack() as stack:
        setting = vault.root, repr(vault.config), texts
        workers = [_Worker(setting, stack) for _ in range(count_workers(len(paths)))]
        for worker, number in zip(workers * _AHEAD, following, strict=False):
            given[number] = worker.send(batches[number])
        for number, batch in enumerate(batches):
            asked = given.pop(number, None)
            # While it is not done, this process does the next one that nobody was given.
            while asked and len(done) < _MOST_DONE and not asked.is_ready():
                if (other := next(following, None)) is None:
                    break
                done[other] = [read_and_parse(vault, path, texts=texts) for path in batches[other]]
            answer = asked.receive() if asked else done.pop(number, None)
            if asked and answer is not None and (other := next(following, None)) is not None:
                given[other] = asked.send(batches[other])
            yield from answer or (read_and_parse(vault, path, texts=texts) for path in batch)


class _Worker:
    """A worker, from this side, which ends with a stack; if it cannot start or has ended, it answers None."""

    def __init__(self, setting: object, stack: ExitStack) -> None:
        self._process: Any = None
        stack.callback(self.end)
        with suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mdmem.index.worker"],
                cwd=os.sep,  # where no program of others stands
                env={**os.environ, _IS_WORKER: "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        self.send(setting)

    def end(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()
            process.communicate()

    def send(self, given: object) -> Self:
        with suppress(OSError):  # it has ended, as its answer will tell
            if self._process:
                pickle.dump(given, self._process.stdin)
                self._process.stdin.flush()
        return self

    def is_ready(self) -> bool:
        """Return whether it answers, or has ended."""
        poll = select.poll()
        if self._process:
            poll.register(self._process.stdout, select.POLLIN)
        return not self._process or bool(poll.poll(0))

    def receive(self) -> list[Parsed | None] | None:
        """Wait for the next answer."""
        with suppress(Exception):  # whatever it is: this process reads the batch
            answer: list[Parsed | None] = pickle.load(self._process.stdout)  # noqa: S301 - of our own program
            return answer
        self.end()
        return None


def _read_batches(batches: SimpleQueue[Any]) -> None:
    """Read batches for as long as there are any, however long one takes; then end the process."""
    with suppress(EOFError):
        while True:
            batches.put(pickle.load(sys.stdin.buffer))  # noqa: S301 - of the process that has started this one
    os._exit(0)


def main() -> None:
    """Answer batches until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that has started this one ends it
    gc.disable()  # parsed memories have no reference cycles
    batches: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_read_batches, args=(batches,), daemon=True).start()
    root, config, texts = batches.get()
    vault = Vault(root)
    if repr(vault.config) != config:
        return  # it was changed a moment ago
    while True:
        pickle.dump([read_and_parse(vault, path, texts=texts) for path in batches.get()], sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
