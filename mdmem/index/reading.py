"""Reading: a file of the vault as the index takes it in. Nothing here touches a store."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import DocumentRefused, MemoryNotFound, PathRefused, TooLarge
from mdmem.index.database import Seen
from mdmem.index.record import Record, record
from mdmem.text.document import Limits, parse
from mdmem.vault import files
from mdmem.vault.walk import fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.index.passage import Indexed

# Linux stamps files with a clock that ticks every 4 to 10 ms; some file systems count whole seconds only.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_COARSE_NS = 1_000_000


MOST_TOGETHER = 100
"""How many files a folder to read from may name at once."""


class Folder(NamedTuple):
    """A folder to read from.

    Attributes:
        root, parts: where it is: the names `parts` below the absolute path `root`.
        files: of each file, the path in the vault and the name in the folder.
    """

    root: str
    parts: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


class Read(NamedTuple):
    """A file that was read.

    Attributes:
        path: in the vault.
        seen: what it was like before it was read.
        racy: whether it may be written once more and look the same.
        hash: the SHA-256 of its bytes; empty when they were not read.
        data: its bytes.
        problem: why it is no memory; empty when that is not known yet.
    """

    path: str
    seen: Seen
    racy: bool
    hash: str
    data: bytes
    problem: str = ""

    @property
    def modified(self) -> float:
        """When it was, in seconds since the epoch."""
        return self.seen.mtime_ns / 1e9


class Understood(NamedTuple):
    """What a file says, for each store that asks; with a `problem` it is no memory, and there is neither."""

    record: Record | None
    indexed: Indexed | None
    problem: str = ""


def read(folder: Folder, limits: Limits) -> list[Read | None]:
    """Read the files of a folder; None for those that are gone.

    Raises:
        StorageFailed: the folder cannot be opened.
    """
    try:
        place = "/".join(folder.parts) or folder.root
        with files.translated(place, "open it"), files.opened(folder.root, folder.parts) as descriptor:
            return [_file(descriptor, path, name, limits.max_bytes) for path, name in folder.files]
    except (MemoryNotFound, PathRefused):
        # It is gone, or something else stands there, which is never followed.
        return [None] * len(folder.files)


def understand(read: Read, limits: Limits, *, texts: bool = True) -> Understood:
    """Parse what was read, for the text index where `texts` are wanted."""
    if read.problem:
        return Understood(None, None, read.problem)
    try:
        document = parse(read.path, read.data, limits)
        found = record(document, read.modified)
        if not texts:
            return Understood(found, None)
        from mdmem.index.passage import indexed  # noqa: PLC0415 - start-up

        return Understood(found, indexed(document, read.modified))
    except DocumentRefused as error:
        return Understood(None, None, error.message)


def retold(read: Read, limits: Limits, tags: Sequence[str]) -> Indexed:
    """What the text index keeps of a memory that was understood before, and has the same `tags`."""
    from mdmem.index.passage import indexed  # noqa: PLC0415 - start-up

    return indexed(parse(read.path, read.data, limits), read.modified, tags)


def _file(folder: int, path: str, name: str, most: int) -> Read | None:
    now = time.time_ns()
    try:
        if not name.isascii() and not files.exists(folder, name):
            name = files.twin_of(folder, name) or name
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    seen = Seen(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    racy = _is_racy(seen, now)
    problem = fault(status)
    if not problem and seen.size > most:
        problem = TooLarge(path=path, size=seen.size, limit=most).message
    if problem:
        return Read(path, seen, racy, "", b"", problem)
    try:
        content = files.read(folder, name)
    except FileNotFoundError:
        return None
    except PathRefused as error:
        return Read(path, seen, racy, "", b"", error.message)
    except OSError as error:
        if error.errno in files.EXHAUSTED:
            raise  # it would stay unread until it changes
        return Read(path, seen, racy, "", b"", files.refusal(error, path, "read it").message)
    from hashlib import sha256  # noqa: PLC0415 - start-up

    racy = racy or content.stamp != files.stamp(status)
    return Read(path, seen, racy, sha256(content.data).hexdigest(), content.data)


def _is_racy(seen: Seen, now: int) -> bool:
    """Whether a file may be written once more and look the same; `now` is before it was read."""
    changed = max(seen.mtime_ns, seen.ctime_ns)
    tick = _COARSE_TICK_NS if seen.mtime_ns % _COARSE_NS == 0 else _TICK_NS
    return changed > now - tick
