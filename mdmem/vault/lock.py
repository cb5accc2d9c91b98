"""The vault's write lock: one per vault, across processes and threads.

flock(2) directly, which is all that a lock library does here: one costs as much to import as the rest of a
command, and more to take than a small write. The lock belongs to an open file, so two threads exclude each
other like two processes, and it ends with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from mdmem.errors import LockTimeout, StorageFailed
from mdmem.vault import files

_POLL = 0.001


@contextlib.contextmanager
def held(path: str, seconds: float, *, stopped: float | None = None) -> Iterator[None]:
    """Hold the lock in the file `path`, which is made when it is missing and stays.

    Args:
        path: of the file, in which the process that holds the lock leaves its number.
        seconds: how long to wait for it.
        stopped: how long to wait for a process that is stopped, where the system can tell.

    Raises:
        LockTimeout: somebody else held it for so long.
        StorageFailed: the file cannot be made or locked.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, files.NEW_FILE)
    except OSError as error:
        raise StorageFailed(path=path, action="lock it", reason=error.strerror or str(error)) from None
    try:
        take(descriptor, path, seconds, stopped=stopped)
        with contextlib.suppress(OSError):  # a full disk holds up nobody
            os.pwrite(descriptor, b"%-10d" % os.getpid(), 0)
        yield
    finally:
        os.close(descriptor)


def take(descriptor: int, path: str, seconds: float, *, stopped: float | None = None) -> None:
    """Lock an open file or folder; as `held`, until it is closed."""
    stopped = seconds if stopped is None else stopped
    start = time.monotonic()
    deadline = start + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if now >= deadline or (now - start >= stopped and _is_stopped(descriptor)):
                raise LockTimeout(path=path, seconds=min(seconds, now - start)) from None
            time.sleep(_POLL)
        except OSError as error:
            raise StorageFailed(path=path, action="lock it", reason=error.strerror or str(error)) from None
        else:
            return


def _is_stopped(descriptor: int) -> bool:
    """Whether the process that holds the lock is stopped, as by ^Z; False where nobody can tell."""
    try:
        number = int(os.pread(descriptor, 10, 0))
        with open(f"/proc/{number}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0] in {b"T", b"t"}
    except (OSError, ValueError, IndexError):
        return False
