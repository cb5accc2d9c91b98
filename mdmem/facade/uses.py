"""Uses: how often memories were used, and when last, by the namespace that asked.

They stand in one SQLite table in the vault's local folder: no memory changes by being read, and a clone
begins without any. Nothing but what tells of use depends on them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import StorageFailed
from mdmem.memory.content import stamp_of
from mdmem.vault.paths import relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mdmem.vault.vault import Vault

_NAME = "uses.sqlite"
_BUSY_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS uses (
    namespace TEXT NOT NULL, path TEXT NOT NULL, count INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (namespace, path)
) WITHOUT ROWID
"""
_ADD = """
INSERT INTO uses VALUES (?, ?, 1, ?) ON CONFLICT (namespace, path)
DO UPDATE SET count = count + 1, last = max(last, excluded.last)
"""


class Use(NamedTuple):
    """How often a memory was used, and when last, in milliseconds since the epoch; 0 for never."""

    times: int = 0
    last: int = 0

    @property
    def time(self) -> str:
        """When it was last, as files have times; empty for never."""
        return stamp_of(self.last * 1_000_000) if self.last else ""


class Uses:
    """The counts of the memories of a scope, which is that of the `vault`."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def add(self, paths: Iterable[str], *, namespace: str | None = None, at: int | None = None) -> None:
        """Count that memories were used.

        Args:
            paths: of the memories.
            namespace: that asked, else the scope's own.
            at: in milliseconds since the epoch, else now.

        Raises:
            StorageFailed: it cannot be written down.
        """
        asking = self._vault.namespace if namespace is None else namespace
        moment = time.time_ns() // 1_000_000 if at is None else at
        with self._opened() as database:
            database.executemany(
                _ADD, [(asking, self._name_path(path), moment) for path in dict.fromkeys(paths)]
            )

    def of(self, path: str, namespace: str | None = None) -> Use:
        """Return the uses of a memory by a namespace, or by all; raises as `add`."""
        query, values = "SELECT sum(count), max(last) FROM uses WHERE path = ?", [self._name_path(path)]
        if namespace is not None:
            query, values = f"{query} AND namespace = ?", [*values, namespace]
        with self._opened() as database:
            count, last = database.execute(query, values).fetchone()
        return Use(count or 0, last or 0)

    def count_all(self) -> dict[str, int]:
        """Count the uses of each memory of the scope that was ever used; raises as `add`."""
        with self._opened() as database:
            counts = database.execute("SELECT path, sum(count) FROM uses GROUP BY path")
            wall = self._vault.wall
            return {relative(path, wall.folder): count for path, count in counts if wall.holds(path)}

    def forget(self, path: str) -> None:
        """Forget the uses of a memory that is gone; raises as `add`."""
        with self._opened() as database:
            database.execute("DELETE FROM uses WHERE path = ?", [self._name_path(path)])

    def _name_path(self, path: str) -> str:
        vault, name = self._vault.locate_layer(path)
        return vault.folder(name)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the table, in a folder that was made here, and keep what is done in one transaction."""
        file = os.path.join(self._vault.disk.own("uses"), _NAME)
        try:
            with contextlib.closing(sqlite3.connect(file, timeout=_BUSY_SECONDS)) as database, database:
                database.execute("PRAGMA synchronous = OFF")  # a count that is lost with the power is no loss
                database.execute(_SCHEMA)
                yield database
        except sqlite3.Error as error:
            raise StorageFailed(path=file, action="count uses", reason=str(error)) from None
