"""A log of a vault that is in PostgreSQL: read from the copy, written to the database.

Its row says which log has a path, and how long that is; its chunks are never changed. To put a log aside is
to give it another path. What is added in a block is committed at its end, and can be read in it before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence

from mdmem.errors import DatabaseFailed, EditRefused
from mdmem.vault.connection import Connection
from mdmem.vault.log import TORN_END, LogFile, join_blocks

_CHUNK = 1 << 20  # bytes of a row
_FETCHED = 16  # chunks that are in memory at once

_LOCK = "SELECT id, size FROM mdmem.log WHERE vault = %s AND path = %s FOR UPDATE"
_SEAT = "INSERT INTO mdmem.log VALUES (%s, %s, '', 0, '', pg_current_xact_id()) ON CONFLICT DO NOTHING"
_WRITE_ROW = """
UPDATE mdmem.log SET id = %s, size = %s, mark = %s, xid = pg_current_xact_id(), mtime = %s
WHERE vault = %s AND path = %s
"""
_ADD = "INSERT INTO mdmem.chunk VALUES (%s, %s, %s, %s, %s)"
_MARKED = """
SELECT FROM mdmem.chunk WHERE vault = %s AND log = %s AND start = %s AND mark = %s
UNION ALL SELECT FROM mdmem.log WHERE vault = %s AND path = ANY(%s) AND mark = %s
"""
_CHUNKS = """
SELECT start, data FROM mdmem.chunk WHERE vault = %s AND log = %s AND start >= %s AND start < %s
ORDER BY start LIMIT %s
"""


def lock_log(connection: Connection, vault: str, path: str) -> tuple[str, int]:
    """Lock the row of a log, which is made where it is missing; return its id (empty: none) and size."""
    while not (rows := connection.execute(_LOCK, [vault, path]).fetchall()):
        connection.execute(_SEAT, [vault, path])
    identifier, size = rows[0]
    return identifier, size


def fetch_chunks(connection: Connection, vault: str, log: str, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a log from `start` up to `end`, in the order in which they stand."""
    position = max(0, start - _CHUNK)  # what a copy holds may end amid a chunk
    while start < end:
        rows = connection.execute(_CHUNKS, [vault, log, position, end, _FETCHED], binary=True).fetchall()
        if not rows:
            reason = f"bytes {start:,} to {end:,} of a log are missing"
            remedy = "restore the database from a backup"
            raise DatabaseFailed(vault=vault, action="read it", reason=reason, remedy=remedy)
        for first, data in rows:
            if first <= start < first + len(data):
                yield data[start - first : end - first]
                start = first + len(data)
        position = rows[-1][0] + 1


class PostgresLog(LogFile):
    """A log with its row locked: `Log`, for reading and writing.

    Attributes:
        identifier: names the log; empty where there is none.
        start: the bytes that it had when it was opened.
        added: what was added since.
        others: the other paths at which another log stands since, or none.
        is_changed, is_replaced: whether anything was changed, and whether another log stands at the path.
    """

    def __init__(
        self, root: str, path: str, connection: Connection, vault: str, row: tuple[str, int]
    ) -> None:
        super().__init__(root, path)
        self._connection = connection
        self._vault = vault
        self.identifier, self.start = row
        self.added = bytearray()
        self.others: set[str] = set()
        self.is_changed = self.is_replaced = False
        self._length = self.start
        self._mark = os.urandom(8).hex()

    def read(self, start: int, end: int) -> bytes:
        """See `Log.read`."""
        if self.is_replaced:
            return b""
        added = self.added[max(0, start - self.start) : max(0, end - self.start)]
        return super().read(start, min(end, self.start)) + bytes(added)

    def append(self, lines: Sequence[bytes]) -> None:
        """See `Log.append`; it is on the disk when the block ends."""
        if any(b"\n" in line for line in lines):
            raise ValueError("a line must not contain a line end")
        if not lines:
            return
        torn = TORN_END if self.size and self.read(self.size - 1, self.size) != b"\n" else b""
        data = b"".join([torn, *(line + b"\n" for line in lines)])
        self.identifier = self.identifier or os.urandom(8).hex()
        self._length = self._add_chunks(self.identifier, self._length, [data])
        self.is_changed = True
        if not self.is_replaced:
            self.added += data
            self.size += len(data)

    def fill(self, blocks: Iterable[bytes], mtime: int) -> None:
        """Write a log that is missing, which has this time, and its row."""
        if self.identifier:
            raise EditRefused(path=self.path, reason="somebody else made this log meanwhile")
        self.identifier = os.urandom(8).hex()
        self._length = self._add_chunks(self.identifier, 0, blocks)
        self.write_row(mtime)

    def _add_chunks(self, identifier: str, position: int, blocks: Iterable[bytes]) -> int:
        """Add bytes to a log from a position on; return where they end."""
        for block in blocks:
            for at in range(0, len(block), _CHUNK):
                data = block[at : at + _CHUNK]
                self._connection.execute(_ADD, [self._vault, identifier, position, self._mark, data])
                position += len(data)
        return position

    def put_aside(self, path: str, lines: Iterable[bytes] | None = None) -> None:
        """See `Log.put_aside`."""
        fresh = "" if lines is None else os.urandom(8).hex()
        size = 0 if lines is None else self._add_chunks(fresh, 0, join_blocks(lines))
        if self.identifier:
            self._give(path, self.identifier, self._length)
        self._become(fresh, size)

    def bring_back(self, path: str) -> None:
        """See `Log.bring_back`."""
        identifier, size = lock_log(self._connection, self._vault, path)
        self._give(path, "", 0)
        self._become(identifier, size)

    def purge(self, path: str) -> None:
        """See `Log.purge`."""
        identifier, _ = lock_log(self._connection, self._vault, path)
        statement = "DELETE FROM mdmem.chunk WHERE vault = %s AND log = %s"
        self._connection.execute(statement, [self._vault, identifier])
        self._give(path, "", 0)
        self.is_changed = True

    def _give(self, path: str, identifier: str, size: int) -> None:
        """Let another path have a log; an empty id leaves none there."""
        lock_log(self._connection, self._vault, path)
        values = [identifier, size, self._mark, time.time_ns(), self._vault, path]
        self._connection.execute(_WRITE_ROW, values)
        self.others.add(path)

    def _become(self, identifier: str, size: int) -> None:
        self._close_log()
        self.identifier, self._length = identifier, size
        self.is_changed = self.is_replaced = True

    def write_row(self, mtime: int | None = None) -> None:
        """Let the row say what was done, and when: in nanoseconds since the epoch; now, without."""
        when = time.time_ns() if mtime is None else mtime
        values = [self.identifier, self._length, self._mark, when, self._vault, self.path]
        self._connection.execute(_WRITE_ROW, values)

    def has_mark(self, connection: Connection) -> bool:
        """Return whether the database has what was done; waits until whoever does it is done."""
        lock_log(connection, self._vault, self.path)
        values = [self._vault, self.identifier, self.start, self._mark]
        values += [self._vault, [self.path, *self.others], self._mark]
        return bool(connection.execute(_MARKED, values).fetchall())
