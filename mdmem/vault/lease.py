"""Whether some program has a file open for writing (Linux only; elsewhere nobody can tell).

A read lease (fcntl(2), F_SETLEASE) is granted only while no descriptor is open for writing. It is given back
at once, so that no other program ever waits for it.
"""

from __future__ import annotations

import errno
import fcntl
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAUSE = 0.00002
_LONGEST_PAUSE = 0.02


def attempts(seconds: float) -> Iterator[None]:
    """Come round at once, then again and again with growing pauses, for at most `seconds`."""
    pause, deadline = _PAUSE, time.monotonic() + seconds
    yield
    while time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        yield


def has_writer(descriptor: int) -> bool:
    """Whether some program has the open file open for writing; False where nobody can tell."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        # Should a program ask for the file in this very instant, the kernel tells the holder by SIGIO, which
        # ends a process. SIGURG says the same and is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        # Other errors: somebody else's file, or a file system without leases.
        return error.errno in {errno.EAGAIN, errno.EWOULDBLOCK}
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
