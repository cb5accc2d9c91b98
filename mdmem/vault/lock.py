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
def held(path: str, seconds: float) -> Iterator[None]:
    """Hold the lock in the file `path`, which is made when it is missing and stays.

    Raises:
        LockTimeout: somebody else held it for `seconds`.
        StorageFailed: the file cannot be made or locked.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, files.NEW_FILE)
    except OSError as error:
        raise StorageFailed(path=path, action="lock it", reason=error.strerror or str(error)) from None
    try:
        _take(descriptor, path, seconds)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockTimeout(path=path, seconds=seconds) from None
            time.sleep(_POLL)
        except OSError as error:
            raise StorageFailed(path=path, action="lock it", reason=error.strerror or str(error)) from None
        else:
            return
