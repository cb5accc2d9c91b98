"""The kernel's queue of file events on Linux (inotify(7)), read without a thread of its own.

watchdog binds the three functions of the C library; its observer is not used here, because

- it holds back a file that was moved out of the tree for half a second, and every later event behind it;
- when the queue overflowed, or a folder could not be watched, it tells its log and not its caller;
- it watches hidden folders too, where the index is written, and needs a thread for every root.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import os
import struct
import termios
from typing import NamedTuple

from watchdog.observers.inotify_c import (
    InotifyConstants as Mask,
    Mask as Bits,
    WatchDescriptor,
    inotify_add_watch,
    inotify_init,
    inotify_rm_watch,
)

__all__ = ["Event", "Mask", "Queue"]

_HEAD = struct.Struct("iIII")
_MOST_BYTES = 1 << 20


class Event(NamedTuple):
    """One event: the number of the watch (-1: the queue overflowed), its bits (`Mask`), and a name.

    The name is empty when the event is about what is watched, and not about an entry of a watched folder.
    """

    watch: int
    bits: int
    name: str


class Queue:
    """One queue. The kernel puts an event into it before the call that made the change returns.

    Raises:
        OSError: the system gives out no more queues (EMFILE).
    """

    def __init__(self) -> None:
        self._fd = inotify_init()
        if self._fd < 0:
            raise _error()
        os.set_inheritable(self._fd, False)  # noqa: FBT003 - as os has it

    def fileno(self) -> int:
        """The descriptor, readable when there are events."""
        return self._fd

    def add(self, path: str, bits: int) -> int:
        """Watch a file or folder; what has a watch already keeps it, and its bits too.

        Returns:
            The number of the watch. It belongs to the inode: the same for every name of it.

        Raises:
            OSError: it cannot be watched; ENOSPC when the system's limit of watches is reached.
        """
        watch = inotify_add_watch(self._fd, os.fsencode(path), Bits(bits | Mask.IN_MASK_ADD))
        if watch < 0:
            raise _error()
        return watch

    def remove(self, watch: int) -> None:
        """Watch it no longer; one that the kernel has removed by itself is no error."""
        inotify_rm_watch(self._fd, WatchDescriptor(watch))

    def read(self) -> list[Event]:
        """Every event that is in the queue now, and perhaps some more; never waits."""
        size = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, size)
        events: list[Event] = []
        left = size[0]
        while left > 0:
            # One read returns whole events only, so it may return a little less than was asked for.
            data = os.read(self._fd, min(max(left, 4096), _MOST_BYTES))
            left -= len(data)
            events += _parsed(data)
        return events

    def close(self) -> None:
        """Give the queue and all its watches back."""
        os.close(self._fd)


def _parsed(data: bytes) -> list[Event]:
    events = []
    at = 0
    while at < len(data):
        watch, bits, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = data[at : at + length].rstrip(b"\0")
        at += length
        events.append(Event(watch, bits, os.fsdecode(name)))
    return events


def _error() -> OSError:
    number = ctypes.get_errno() or errno.EIO
    return OSError(number, os.strerror(number))
