"""Logs: files of lines to which several processes append.

A line counts once its end is written, so a line torn by a crash does not count. The next append first closes
it with `TORN_END`, which makes it invalid: otherwise a line that lacks only its end would become valid.
Readers take no lock: they see the whole lines that stood when they opened the log. Writers exclude each other
by a lock beside the log, which is never deleted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from mdmem.errors import LimitReached
from mdmem.vault import files

CHUNK = 1 << 16
TORN_END = b"~\n"
"""Appended to a torn last line: no JSON ends with it."""
MOST_BACK = 256 * 1024 * 1024
"""How many bytes from its end a log is searched for a line end, without holes."""
_BLOCK, _BLOCK_LINES = 1 << 20, 256  # bytes that are copied, and lines that are read, at once
_LEAST_HOLE, _MOST_HOLES = 1 << 20, 1_000  # bytes of a hole that is worth knowing, and how many are known
_WRITE = os.O_RDWR | os.O_APPEND


class LogLine(NamedTuple):
    """A line of a log: where it begins (bytes), where the next one does, and its bytes without the end.

    `data` is None where the line is longer than the reader takes, or has a hole.
    """

    start: int
    end: int
    data: bytes | None


class Log(Protocol):
    """An open log.

    Attributes:
        path: of the log in its vault.
        size: bytes, those of a line without its end included; 0 where there is no log yet.
        identity: tells one file of this path from another that took its place.
        holes: (start, end) of each large stretch never written, in order; it reads as NULs.
    """

    path: str
    size: int
    identity: tuple[int, ...]
    holes: Sequence[tuple[int, int]]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end`."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines, given without their ends; return when they are on disk. Create a missing log.

        Only inside of `Store.appending`. If this raises, none of them remains, unless a program that
        takes no lock wrote behind them.
        """

    def put_aside(self, path: str, lines: Iterable[bytes] | None = None) -> None:
        """Move the log to another path, and write `lines` in its place; without them, leave no log.

        Only inside of `Store.appending`. Where there is no log, `lines` become it. What a program that takes
        no lock writes meanwhile is in either one.
        """

    def bring_back(self, path: str) -> None:
        """Move what was put aside at `path` back; the log must be missing or empty. Needs `appending`."""

    def purge(self, path: str) -> None:
        """Remove what was put aside under `path` for good. Needs `appending`."""


def lines(log: Log, start: int = 0, end: int | None = None, most: int | None = None) -> Iterator[LogLine]:
    """Read the lines of `line_blocks` one by one."""
    return chain.from_iterable(line_blocks(log, start, end, most))


def line_blocks(
    log: Log, start: int = 0, end: int | None = None, most: int | None = None
) -> Iterator[list[LogLine]]:
    """Read the whole lines of a log in order, in lists (some are empty).

    Args:
        start: where a line begins, in bytes.
        end: where to stop, in bytes; at the end of the log without it.
        most: bytes; a longer line has no `data`.
    """
    end = log.size if end is None else min(end, log.size)
    position, parts, is_whole = start, list[bytes](), True
    while position < end:
        hole = _find_hole(log, position)
        if hole[0] <= position < hole[1]:
            position, is_whole = hole[1], False
            continue
        chunk = log.read(position, min(position + CHUNK, end, hole[0]))
        if not chunk:
            return  # it became shorter
        at, block = 0, list[LogLine]()
        while (behind := chunk.find(b"\n", at)) >= 0:
            position += behind + 1 - at
            parts.append(chunk[at:behind])
            at = behind + 1
            fits = is_whole and (most is None or position - start - 1 <= most)
            block.append(LogLine(start, position, b"".join(parts) if fits else None))
            start, parts, is_whole = position, [], True
            if len(block) == _BLOCK_LINES:
                yield block
                block = []
        yield block
        position += len(chunk) - at
        if is_whole and (most is None or position - start <= most):
            parts.append(chunk[at:])


def lines_back(
    log: Log, most: int | None = None, end: int | None = None, within: int | None = None
) -> Iterator[LogLine]:
    """Read the whole lines of a log, the last one first.

    Args:
        most: as in `line_blocks`.
        end: read the lines before this byte, at which a line ends; without it, before the last line end.
        within: how many bytes are read at most, holes left out.

    Raises:
        LimitReached: the lines have more than `within` bytes, or as `whole_size`.
    """
    end = whole_size(log) if end is None else end
    return chain.from_iterable(_blocks_back(log, most, end, within))


def _blocks_back(log: Log, most: int | None, end: int, within: int | None) -> Iterator[list[LogLine]]:
    position = end - 1  # a line is what stands between two line ends
    parts, is_whole, read = list[bytes](), True, 0
    while position > 0:
        if within is not None and read >= within:
            raise _scan_limit_error(log, within)
        start, chunk, was_hole = _read_before(log, position)
        is_whole = is_whole and not was_hole
        read += len(chunk)
        *pieces, piece = chunk.split(b"\n")
        behind = position
        block: list[LogLine] = []
        while True:
            behind -= len(piece)
            if most is None or end - 1 - behind <= most:
                parts.append(piece)
            if not pieces:
                break
            fits = is_whole and (most is None or end - 1 - behind <= most)
            block.append(LogLine(behind, end, b"".join(reversed(parts)) if fits else None))
            end = behind
            behind -= 1
            parts, is_whole, piece = [], True, pieces.pop()
            if len(block) == _BLOCK_LINES:
                yield block
                block = []
        yield block
        position = start
    if end > 0:
        fits = is_whole and (most is None or end - 1 <= most)
        yield [LogLine(0, end, b"".join(reversed(parts)) if fits else None)]


def whole_size(log: Log) -> int:
    """Return the bytes of a log up to its last line end, which is looked for in `MOST_BACK` bytes."""
    end = log.size
    if end and log.read(end - 1, end) == b"\n":
        return end
    read = 0
    while end > 0:
        start, chunk, _ = _read_before(log, end)
        at = chunk.rfind(b"\n")
        if at >= 0:
            return start + at + 1
        read += len(chunk)
        if read >= MOST_BACK:
            raise _scan_limit_error(log, MOST_BACK)
        end = start
    return 0


def _read_before(log: Log, end: int) -> tuple[int, bytes, bool]:
    """Read a stretch that ends before a byte: where it begins, its bytes, and whether it is a hole."""
    place = bisect_left(log.holes, (end, 0)) - 1
    hole = log.holes[place] if place >= 0 else (0, 0)
    if hole[1] >= end:
        return hole[0], b"", True
    start = max(0, end - CHUNK, hole[1])
    return start, log.read(start, end), False


def _find_hole(log: Log, position: int) -> tuple[int, int]:
    """Return the hole with a byte in it, else the next one; without any, a hole behind the end."""
    place = bisect_left(log.holes, position, key=lambda hole: hole[1] - 1)
    return log.holes[place] if place < len(log.holes) else (log.size + 1, log.size + 1)


def _scan_limit_error(log: Log, most: int) -> LimitReached:
    what = f"{log.path}: the last bytes of a log of {log.size:,} do not say what is in it"
    remedy = (
        "run `mdmem sessions check KEY --fix`, which reads it whole, or raise max_log_bytes in the config"
    )
    return LimitReached(what=what, limit=most, remedy=remedy)


def next_start(log: Log) -> int:
    """Return where the next line that is appended begins, in bytes."""
    is_whole = log.size == 0 or log.read(log.size - 1, log.size) == b"\n"
    return log.size if is_whole else log.size + len(TORN_END)


def find_start_near(log: Log, number: int, number_of: Callable[[bytes], int | None], within: int) -> int:
    """Find by bisection where to start reading for a numbered line: at most `CHUNK` bytes before it.

    Args:
        log: its lines have growing numbers, or none.
        number: that is looked for. No line before the result has it, or a larger one.
        number_of: gives the number of a line from how it begins.
        within: in how many bytes a number stands.
    """
    low, high = 0, whole_size(log)
    while high - low > CHUNK:
        middle = (low + high) // 2
        found = _find_first_line(log, middle, high, number_of, within)
        if found is None or found.number > number:
            high = middle
        else:
            low = found.start
    return low


class _NumberedLine(NamedTuple):
    start: int
    number: int


def _find_first_line(
    log: Log, start: int, end: int, number_of: Callable[[bytes], int | None], within: int
) -> _NumberedLine | None:
    position = start - 1
    while position < end:
        hole = _find_hole(log, max(position, 0))
        if hole[0] <= position < hole[1] - 1:
            position = hole[1] - 1
        chunk = log.read(position, position + CHUNK + within)
        at = chunk.find(b"\n", 0, CHUNK)
        while at >= 0 and position + at + 1 < end:
            number = number_of(chunk[at + 1 : at + 1 + within])
            if number is not None:
                return _NumberedLine(position + at + 1, number)
            at = chunk.find(b"\n", at + 1, CHUNK)
        if at >= 0 or len(chunk) <= CHUNK:
            return None
        position += CHUNK
    return None


class LogFile:
    """A log that is a file below a folder: `Log`, over descriptors. No part of its path is a link."""

    def __init__(self, root: str, path: str) -> None:
        self.path = path
        self.size = 0
        self.identity: tuple[int, ...] = ()
        self.holes: Sequence[tuple[int, int]] = ()
        self._root = root
        *self._folders, self._name = path.split("/")
        self._new_name = (
            f".{self._name}.new"  # one for each log: whoever holds the lock may remove an old one
        )
        self._descriptor: int | None = None

    @contextlib.contextmanager
    def opened(self, *, writing: bool) -> Iterator[LogFile]:
        """Keep the file open inside the block, if there is one."""
        try:
            with files.translated(self.path, "read it"), contextlib.suppress(FileNotFoundError):
                if os.fstat(self._open_log(_WRITE if writing else os.O_RDONLY)).st_nlink > 1 and writing:
                    self._copy_to_own_file()
            yield self
        finally:
            self._close_log()

    def _open_log(self, flags: int) -> int:
        with files.opened(self._root, self._folders, create=bool(flags & os.O_CREAT)) as folder:
            descriptor = files.open_regular(self._name, flags, folder)
        status = os.fstat(descriptor)
        self._descriptor, self.size = descriptor, status.st_size
        self.identity = (status.st_dev, status.st_ino)
        has_holes = status.st_blocks * 512 + _LEAST_HOLE <= status.st_size
        self.holes = tuple(_find_holes(descriptor, status.st_size)) if has_holes else ()
        return descriptor

    def _copy_to_own_file(self) -> None:
        """Copy a log that has several names (a crash in `put_aside`, a hard link) to its own file."""
        with self._open_folder() as folder:
            files.remove(folder, self._new_name)
            starts = range(0, self.size, _BLOCK)
            blocks = (self.read(start, min(start + _BLOCK, self.size)) for start in starts)
            files.write_new(folder, self._new_name, blocks, self._read_permissions())
            os.rename(self._new_name, self._name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        self._close_log()
        self._open_log(_WRITE)

    def _read_permissions(self) -> files.Content | None:
        """Return the permissions and the owner for a file that replaces this one."""
        if self._descriptor is None:
            return None
        status = os.fstat(self._descriptor)
        mode = stat.S_IMODE(status.st_mode)
        return files.Content(b"", mode, status.st_uid, status.st_gid, files.stamp(status))

    def _close_log(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self.size, self.identity, self.holes = None, 0, (), ()

    def read(self, start: int, end: int) -> bytes:
        """See `Log.read`."""
        if self._descriptor is None or start >= end:
            return b""
        with files.translated(self.path, "read it"):
            return os.pread(self._descriptor, end - start, start)

    def append(self, lines: Sequence[bytes]) -> None:
        """See `Log.append`."""
        if any(b"\n" in line for line in lines):
            raise ValueError("a line must not contain a line end")
        if not lines:
            return
        with files.translated(self.path, "append to it"):
            descriptor = self._descriptor
            if descriptor is None:
                descriptor = self._open_log(_WRITE | os.O_CREAT)
            torn = TORN_END if next_start(self) > self.size else b""
            data = b"".join([torn, *(line + b"\n" for line in lines)])
            try:
                files.write(descriptor, data)
                os.fsync(descriptor)
                if self.size == 0:
                    with self._open_folder() as folder:
                        os.fsync(folder)
            except OSError:
                self._take_back(descriptor, data)
                raise
            # Asked of the system: a program that takes no lock may have written in between.
            self.size = os.lseek(descriptor, 0, os.SEEK_CUR)

    def _take_back(self, descriptor: int, data: bytes) -> None:
        """Take away what was written of `data`, where nobody else has written."""
        with contextlib.suppress(OSError):
            written = os.pread(descriptor, len(data) + 1, self.size)
            if data.startswith(written):
                os.ftruncate(descriptor, self.size)

    def put_aside(self, path: str, lines: Iterable[bytes] | None = None) -> None:
        """See `Log.put_aside`: the new file is hidden until it is whole and on the disk."""
        *folders, name = path.split("/")
        with (
            files.translated(self.path, "put it aside"),
            self._open_folder() as folder,
            files.opened(self._root, folders, create=True) as aside,
        ):
            files.remove(folder, self._new_name)
            try:
                if lines is not None:
                    files.write_new(folder, self._new_name, join_blocks(lines), self._read_permissions())
                if self._descriptor is not None:
                    os.link(self._name, name, src_dir_fd=folder, dst_dir_fd=aside, follow_symlinks=False)
                    os.fsync(aside)
                if lines is None:
                    os.unlink(self._name, dir_fd=folder)
                else:
                    os.rename(self._new_name, self._name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                files.remove(folder, self._new_name)
                raise
            os.fsync(folder)
        self._close_log()

    def bring_back(self, path: str) -> None:
        """See `Log.bring_back`."""
        *folders, name = path.split("/")
        with (
            files.translated(self.path, "bring it back"),
            files.opened(self._root, folders) as aside,
            self._open_folder() as folder,
        ):
            if self._descriptor is not None and self.size == 0:
                os.unlink(self._name, dir_fd=folder)
            os.link(name, self._name, src_dir_fd=aside, dst_dir_fd=folder, follow_symlinks=False)
            os.fsync(folder)
            os.unlink(name, dir_fd=aside)
            os.fsync(aside)

    def purge(self, path: str) -> None:
        """See `Log.purge`."""
        *folders, name = path.split("/")
        with files.translated(self.path, "purge it"), files.opened(self._root, folders) as aside:
            files.remove(aside, name)
            os.fsync(aside)

    def _open_folder(self) -> contextlib.AbstractContextManager[int]:
        return files.opened(self._root, self._folders, create=True)


def _find_holes(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the large holes of a file, where the system tells."""
    end = 0
    with contextlib.suppress(OSError):
        for _ in range(_MOST_HOLES):
            start = os.lseek(descriptor, end, os.SEEK_HOLE)
            if start >= size:
                return
            try:
                end = os.lseek(descriptor, start, os.SEEK_DATA)
            except OSError:  # nothing behind it
                end = size
            if end - start >= _LEAST_HOLE:
                yield start, end


def join_blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines and their ends into blocks of at least `CHUNK` bytes, but for the last."""
    block, size = [], 0
    for line in lines:
        block += [line, b"\n"]
        size += len(line) + 1
        if size >= CHUNK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)
