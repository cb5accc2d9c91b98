"""The counts of use of a vault: in its local state, which no clone gets, or in its database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mdmem.errors import IndexDamaged, StorageFailed
from mdmem.vault.sqlite import Schema, connected

if TYPE_CHECKING:
    from mdmem.vault.connection import Connections

_NAME = "uses.sqlite"
_BUSY_SECONDS = 10.0
_SCRIPT = """
CREATE TABLE IF NOT EXISTS uses (
    namespace TEXT NOT NULL, path TEXT NOT NULL, count INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (namespace, path)
) WITHOUT ROWID;
"""
# A count that is lost with the power is no loss.
_SCHEMA = Schema("count uses", _SCRIPT, 1, ("synchronous = OFF",), _BUSY_SECONDS)
_ADD = """
INSERT INTO uses VALUES (?, ?, 1, ?) ON CONFLICT (namespace, path)
DO UPDATE SET count = count + 1, last = max(last, excluded.last)
"""
_PUT = """
INSERT INTO uses VALUES (?, ?, ?, ?) ON CONFLICT (namespace, path)
DO UPDATE SET count = max(count, excluded.count), last = max(last, excluded.last)
"""

_LIST = """
SELECT namespace, path, count, last FROM uses WHERE path = ifnull(?, path) ORDER BY path, namespace
"""

_COUNT_USE = """
INSERT INTO mdmem.use AS u VALUES (%s, %s, %s, 1, %s) ON CONFLICT (vault, path, namespace)
DO UPDATE SET count = u.count + 1, last = greatest(u.last, excluded.last)
"""
_PUT_USE = """
INSERT INTO mdmem.use AS u VALUES (%s, %s, %s, %s, %s) ON CONFLICT (vault, path, namespace)
DO UPDATE SET count = greatest(u.count, excluded.count), last = greatest(u.last, excluded.last)
"""
_LIST_USES = """
SELECT namespace, path, count, last FROM mdmem.use WHERE vault = %s AND path = coalesce(%s, path)
ORDER BY path, namespace
"""


class UseCount(NamedTuple):
    """How often a namespace used a memory, both paths of the vault; `last` is in ms since the epoch."""

    namespace: str
    path: str
    times: int
    last: int


class UseTable(Protocol):
    """Counts of use, by the namespace that asked and the path of the vault. Raises Unavailable."""

    def add(self, namespace: str, paths: Iterable[str], moment: int) -> None:
        """Count one more use of each path, at a moment in milliseconds since the epoch."""

    def list_counts(self, path: str | None = None) -> Sequence[UseCount]:
        """List the counts of a path, or of all, by path and namespace."""

    def forget(self, path: str) -> None:
        """Drop the counts of a path."""

    def put(self, rows: Iterable[UseCount]) -> None:
        """Take over the counts of another vault; where a path has more uses, it keeps them."""


class FolderUses:
    """See `UseTable`; `find_folder` makes the folder of the table, where nobody else can have put one."""

    def __init__(self, find_folder: Callable[[], str]) -> None:
        self._find_folder = find_folder

    def add(self, namespace: str, paths: Iterable[str], moment: int) -> None:
        """See `UseTable.add`."""
        with self._opened() as database:
            database.executemany(_ADD, [(namespace, path, moment) for path in paths])

    def list_counts(self, path: str | None = None) -> Sequence[UseCount]:
        """See `UseTable.list_counts`."""
        with self._opened() as database:
            return [UseCount(*row) for row in database.execute(_LIST, [path])]

    def forget(self, path: str) -> None:
        """See `UseTable.forget`."""
        with self._opened() as database:
            database.execute("DELETE FROM uses WHERE path = ?", [path])

    def put(self, rows: Iterable[UseCount]) -> None:
        """See `UseTable.put`."""
        with self._opened() as database:
            database.executemany(_PUT, rows)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the table, and keep what is done in one transaction."""
        file = os.path.join(self._find_folder(), _NAME)
        try:
            with connected(file, _SCHEMA) as database:
                database.execute("BEGIN")
                yield database
                database.execute("COMMIT")
        except IndexDamaged as error:
            raise StorageFailed(path=file, action=_SCHEMA.action, reason=error.reason) from None


class PostgresUses:
    """The counts of use of a vault; see `UseTable`."""

    def __init__(self, database: Connections) -> None:
        self._database, self._vault = database, database.address.vault

    def add(self, namespace: str, paths: Iterable[str], moment: int) -> None:
        """See `UseTable.add`."""
        # Always in the same order, so that two servers cannot block each other for ever.
        rows = [(self._vault, path, namespace, moment) for path in sorted(paths)]
        with self._database.translated("count uses"), self._database.begun() as connection:
            connection.execute("SET LOCAL synchronous_commit = off")  # a count that is lost is no loss
            connection.cursor().executemany(_COUNT_USE, rows)
            connection.execute("COMMIT")

    def list_counts(self, path: str | None = None) -> Sequence[UseCount]:
        """See `UseTable.list_counts`."""
        with self._database.translated("read its uses"):
            return [UseCount(*row) for row in self._database.ask(_LIST_USES, [self._vault, path])]

    def forget(self, path: str) -> None:
        """See `UseTable.forget`."""
        with self._database.translated("forget uses"), self._database.begun() as connection:
            connection.execute("DELETE FROM mdmem.use WHERE vault = %s AND path = %s", [self._vault, path])
            connection.execute("COMMIT")

    def put(self, rows: Iterable[UseCount]) -> None:
        """See `UseTable.put`."""
        values = [(self._vault, row.path, row.namespace, row.times, row.last) for row in rows]
        with self._database.translated("count uses"), self._database.begun() as connection:
            connection.cursor().executemany(_PUT_USE, values)
            connection.execute("COMMIT")
