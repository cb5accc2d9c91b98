"""SQLite files of local state: opened with the schema of one version, and their errors as those of mdmem."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from mdmem.errors import IndexDamaged, StorageFailed

IN_MEMORY = ":memory:"
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}


class Schema(NamedTuple):
    """What a file is made of.

    Attributes:
        action: what it is for, in an error: "use the index".
        script: makes the tables of a new file.
        version: of the schema; a file of a later one is left as it is.
        pragmas: settings of a connection.
        busy_seconds: how long to wait for another process.
        is_derived: whether the file can be made again at any time: then tables without a version, and a
            statement that does not fit the file, are damage, too.
        form: settings of a new file, which stay with it.
    """

    action: str
    script: str
    version: int
    pragmas: tuple[str, ...]
    busy_seconds: float
    is_derived: bool = False
    form: tuple[str, ...] = ()


def open_connection(path: str, schema: Schema) -> sqlite3.Connection:
    """Open a file, which is made when it is missing; each statement is a transaction, unless one is begun.

    Raises:
        IndexDamaged: the file is no database, or one of an earlier version.
        StorageFailed: the system refused, or a later version of mdmem has written it.
    """
    with translated(path, schema):
        connection = sqlite3.connect(
            path, timeout=schema.busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in schema.pragmas:
                connection.execute(f"PRAGMA {pragma}")
            _set_up(connection, path, schema)
        except BaseException:
            connection.close()
            raise
        return connection


def _set_up(connection: sqlite3.Connection, path: str, schema: Schema) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == schema.version:
        return
    if version > schema.version:
        reason = f"a later version of mdmem has written it ({version}, not {schema.version})"
        raise StorageFailed(path=path, action=schema.action, reason=reason)
    is_foreign = schema.is_derived and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version or is_foreign:
        raise IndexDamaged(path=path, reason=f"its version is {version}, not {schema.version}")
    for pragma in schema.form:
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(
        f"BEGIN IMMEDIATE; {schema.script} PRAGMA user_version = {schema.version}; COMMIT;"
    )


@contextlib.contextmanager
def connected(path: str, schema: Schema) -> Iterator[sqlite3.Connection]:
    """Open a file as `open_connection`, and close it at the end."""
    connection = open_connection(path, schema)
    with contextlib.closing(connection), translated(path, schema):
        yield connection


@contextlib.contextmanager
def translated(path: str, schema: Schema) -> Iterator[None]:
    """Raise errors of SQLite as IndexDamaged where the file is, else as StorageFailed."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGE or (schema.is_derived and code == sqlite3.SQLITE_ERROR):
            raise IndexDamaged(path=path, reason=str(error)) from None
        raise StorageFailed(path=path, action=schema.action, reason=str(error)) from None
    except FileNotFoundError as error:  # deleted since SQLite has opened it
        raise StorageFailed(path=path, action=schema.action, reason=str(error)) from None
