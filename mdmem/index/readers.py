"""Readers: processes that read and parse files for a first run, on the processors that are free.

Each is a program of its own that is told what to read, so that nothing of this process is copied: neither its
threads, nor what its main module does.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
from collections import deque
from typing import IO, TYPE_CHECKING, Any, Self, TypeAlias

from mdmem.index.reading import MANY, Folder, Read, Understood, read, understand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from mdmem.text.document import Limits

_MOST_PROCESSES = 3
# What is on the way to a reader and from it, so that it never waits; what is asked fits into a pipe.
_AHEAD = 2
_LENGTH = 8  # bytes, in front of each value

Answer: TypeAlias = list[tuple[Read, Understood | None] | None]


def readings(folders: Sequence[Folder], limits: Limits) -> Iterator[tuple[Folder, Answer]]:
    """Read the files of folders and parse what is new, with the help of other processes when there are many.

    Args:
        folders: what to read.
        limits: of a memory.

    Yields:
        Each folder with an answer for each of its files: None for one that is gone. In any order.
    """
    count = sum(len(folder.files) for folder in folders)
    helpers = min((os.cpu_count() or 1) - 1, _MOST_PROCESSES) if count >= MANY else 0
    waiting = deque(folders)
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(_Reader(limits)) for _ in range(helpers)]
        while waiting or any(reader.asked for reader in readers):
            for reader in readers:
                while waiting and len(reader.asked) < _AHEAD and reader.ask(waiting[0]):
                    waiting.popleft()
            ready = next((r for r in readers if r.asked and (not waiting or r.is_ready())), None)
            folder = ready.asked.popleft() if ready else waiting.popleft()
            answer = ready.answer() if ready else None
            yield folder, _answer(folder, limits) if answer is None else answer


def _answer(folder: Folder, limits: Limits) -> Answer:
    return [
        (found, understand(found, limits) if found.hash not in folder.known else None) if found else None
        for found in read(folder, limits)
    ]


class _Reader:
    """A process that reads, as a context.

    Attributes:
        asked: what it was asked and has not been heard of, the oldest first.
    """

    def __init__(self, limits: Limits) -> None:
        self.asked: deque[Folder] = deque()
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        code = f"import sys; sys.path.insert(0, {above!r}); from mdmem.index.readers import serve; serve()"
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            self._process.kill()
            # Waits for its end, and closes both pipes.
            self._process.communicate()

    def ask(self, folder: Folder) -> bool:
        """Ask it to read a folder; False when it cannot be asked any more."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            _send(self._process.stdin, (folder, self._limits))
        except OSError:
            self._process.stdin.close()
            self._process.stdin = None
            return False
        self.asked.append(folder)
        return True

    def is_ready(self) -> bool:
        """Whether it has answered, or will never."""
        stdout = self._process.stdout if self._process else None
        return stdout is None or bool(select.select([stdout], [], [], 0)[0])

    def answer(self) -> Answer | None:
        """What it says of the oldest folder that it was asked for; None when it says nothing any more."""
        stdout = self._process.stdout if self._process else None
        answer: Answer | None = _receive(stdout) if stdout else None
        return answer


def serve() -> None:
    """What the process of a reader does: answer until nobody asks."""
    # ^C is sent to both; the one that asks ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions, answers = os.fdopen(0, "rb", 0), os.fdopen(1, "wb", 0)
    while (question := _receive(questions)) is not None:
        folder, limits = question
        _send(answers, _answer(folder, limits))


def _send(pipe: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    view = memoryview(len(data).to_bytes(_LENGTH) + data)
    while view:
        view = view[pipe.write(view) :]


def _receive(pipe: IO[bytes]) -> Any:
    """A value; None when the pipe ends."""
    length = _exactly(pipe, _LENGTH)
    data = _exactly(pipe, int.from_bytes(length)) if length else b""
    # It comes from a process that this one has started, which runs this very module.
    return pickle.loads(data) if data else None  # noqa: S301 - as said


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    """So many bytes; none when the pipe ends before."""
    parts = []
    while count:
        part = pipe.read(count)
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
