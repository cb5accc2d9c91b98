"""The counts of use of a vault: in its local state, which no clone gets, or in its database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
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

_COUNT_USE = """
INSERT INTO mdmem.use AS u VALUES (%s, %s, %s, 1, %s) ON CONFLICT (vault, path, namespace)
DO UPDATE SET count = u.count + 1, last = greatest(u.last, excluded.last)
"""
_PUT_USE = """
INSERT INTO mdmem.use AS u VALUES (%s, %s, %s, %s, %s) ON CONFLICT (vault, path, namespace)
DO UPDATE SET count = greatest(u.count, excluded.count), last = greatest(u.last, excluded.last)
"""
_READ_USES = "SELECT namespace, path, count, last FROM mdmem.use WHERE vault = %s ORDER BY path, namespace"
_SUM_USES = """
SELECT coalesce(sum(count), 0), coalesce(max(last), 0) FROM mdmem.use
WHERE vault = %s AND path = %s AND namespace = coalesce(%s, namespace)
"""
_SUM_ALL_USES = "SELECT path, sum(count)::bigint FROM mdmem.use WHERE vault = %s GROUP BY path"


class UseRow(NamedTuple):
    """How often a namespace asked for a path, and when last, in milliseconds since the epoch."""

    namespace: str
    path: str
    times: int
    last: int


class UseTable(Protocol):
    """Counts of use, by the namespace that asked and the path of the vault. Raises Unavailable."""

    def add(self, namespace: str, paths: Iterable[str], moment: int) -> None:
        """Count one more use of each path, at a moment in milliseconds since the epoch."""

    def total(self, path: str, namespace: str | None) -> tuple[int, int]:
        """Return how often a path was used by a namespace, or by all, and when last; 0 for never."""

    def totals(self) -> Mapping[str, int]:
        """Return how often each path was used by all, those that ever were."""

    def forget(self, path: str) -> None:
        """Drop the counts of a path."""

    def rows(self) -> list[UseRow]:
        """Return all counts, by path."""

    def put(self, rows: Iterable[UseRow]) -> None:
        """Take over the counts of another vault; where a path has more uses, it keeps them."""


class FolderUses:
    """See `UseTable`; `find_folder` makes the folder of the table, where nobody else can have put one."""

    def __init__(self, find_folder: Callable[[], str]) -> None:
        self._find_folder = find_folder

    def add(self, namespace: str, paths: Iterable[str], moment: int) -> None:
        """See `UseTable.add`."""
        with self._opened() as database:
            database.executemany(_ADD, [(namespace, path, moment) for path in paths])

    def total(self, path: str, namespace: str | None) -> tuple[int, int]:
        """See `UseTable.total`."""
        query = "SELECT sum(count), max(last) FROM uses WHERE path = ? AND namespace = ifnull(?, namespace)"
        with self._opened() as database:
            count, last = database.execute(query, (path, namespace)).fetchone()
        return count or 0, last or 0

    def totals(self) -> Mapping[str, int]:
        """See `UseTable.totals`."""
        with self._opened() as database:
            return dict(database.execute("SELECT path, sum(count) FROM uses GROUP BY path"))

    def forget(self, path: str) -> None:
        """See `UseTable.forget`."""
        with self._opened() as database:
            database.execute("DELETE FROM uses WHERE path = ?", [path])

    def rows(self) -> list[UseRow]:
        """See `UseTable.rows`."""
        query = "SELECT namespace, path, count, last FROM uses ORDER BY path, namespace"
        with self._opened() as database:
            return [UseRow(*row) for row in database.execute(query)]

    def put(self, rows: Iterable[UseRow]) -> None:
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

    def total(self, path: str, namespace: str | None) -> tuple[int, int]:
        """See `UseTable.total`."""
        with self._database.translated("read its uses"):
            ((count, last),) = self._database.ask(_SUM_USES, [self._vault, path, namespace])
        return int(count), last

    def totals(self) -> Mapping[str, int]:
        """See `UseTable.totals`."""
        with self._database.translated("read its uses"):
            return dict(self._database.ask(_SUM_ALL_USES, [self._vault]))

    def forget(self, path: str) -> None:
        """See `UseTable.forget`."""
        with self._database.translated("forget uses"), self._database.begun() as connection:
            connection.execute("DELETE FROM mdmem.use WHERE vault = %s AND path = %s", [self._vault, path])
            connection.execute("COMMIT")

    def rows(self) -> list[UseRow]:
        """See `UseTable.rows`."""
        with self._database.translated("read its uses"):
            return [UseRow(*row) for row in self._database.ask(_READ_USES, [self._vault])]

    def put(self, rows: Iterable[UseRow]) -> None:
        """See `UseTable.put`."""
        values = [(self._vault, row.path, row.namespace, row.times, row.last) for row in rows]
        with self._database.translated("count uses"), self._database.begun() as connection:
            connection.cursor().executemany(_PUT_USE, values)
            connection.execute("COMMIT")
