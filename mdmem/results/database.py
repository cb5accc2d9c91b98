"""The database of results: whole outputs by their SHA-256, and what they name, in one SQLite file.

It stands in a folder that was made here (`LocalStore.own`), so that no file that came with a vault is ever
opened. A row belongs to a namespace and a session, and every question names the namespace: what another one
has stored cannot be told from what nobody has. An output and what it names come in one transaction, which
also sweeps what is too much; the file is synced before it ends, so that a kill leaves all of it or nothing.

A rollback journal, not a write-ahead log: a large output is then written once, and a file system that cannot
be written to can still be read.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

from mdmem.errors import StorageFailed
from mdmem.vault import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mdmem.results.named import NamedReference
    from mdmem.vault.config import ResultSettings

T = TypeVar("T")

NAME = "results.sqlite"
"""The file, in the folder that was made here."""

BUSY_SECONDS = 10.0
_NEW, _ASIDE, _LOCK = f"{NAME}.new", f"{NAME}.damaged", "lock"
_JOURNAL, _LOG = "-journal", "-wal"  # what SQLite opens beside the file
_VERSION = 1  # as the schema says
_MOST_GONE = 10_000  # outputs that are remembered as swept
_DAY = 86_400
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_SCHEMA = """
PRAGMA page_size = 16384;
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN IMMEDIATE;
CREATE TABLE outputs (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL,
    used REAL NOT NULL, content BLOB NOT NULL, UNIQUE (namespace, hash)
);
CREATE INDEX outputs_by_use ON outputs (used, size);
CREATE TABLE stored (
    output INTEGER NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (output, session)
) WITHOUT ROWID;
CREATE TABLE gone (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, session TEXT NOT NULL, hash TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX gone_by_hash ON gone (namespace, hash);
CREATE TABLE named (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, type TEXT NOT NULL, value TEXT NOT NULL,
    session TEXT NOT NULL, tool TEXT NOT NULL, context TEXT NOT NULL,
    count INTEGER NOT NULL, created REAL NOT NULL, used REAL NOT NULL,
    UNIQUE (namespace, type, value, session, tool)
);
CREATE INDEX named_by_use ON named (namespace, used);
CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counts VALUES ('bytes', 0);
PRAGMA user_version = 1;
COMMIT;
"""


class Kept(NamedTuple):
    """An output that one session of a namespace has stored; bytes, and seconds since the epoch."""

    hash: str
    size: int
    tool: str
    session: str
    created: float
    used: float


class Removed(NamedTuple):
    """When an output was swept, in seconds since the epoch."""

    hash: str
    at: float


class NamedRow(NamedTuple):
    """What outputs name, once for all sessions and tools that are asked about; times as in `Kept`."""

    type: str
    value: str
    context: str
    times: int
    created: float
    used: float


class Damaged(Exception):
    """The file is no database of ours any more."""


class ResultDatabase:
    """The database in a folder that was made here; it is made when something is stored first.

    Nothing stays open: each question opens the file that stands there now. One that cannot be used is put
    aside, and `notes` is told so.
    """

    def __init__(self, folder: str, notes: list[str]) -> None:
        self.folder = folder
        self.path = os.path.join(folder, NAME)
        self.notes = notes

    def read(self, ask: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what is asked of the database; None where there is none.

        Raises:
            StorageFailed: the system refused.
        """
        try:
            return self._ask_database(ask)
        except Damaged as error:
            with self._lock_database():
                if self._is_damaged():  # else another process has made a new one
                    self._put_aside(str(error))
        return self._ask_database(ask)

    def _ask_database(self, ask: Callable[[sqlite3.Connection], T]) -> T | None:
        if not os.path.lexists(self.path):
            return None
        with self._open_connection() as connection:
            return ask(connection)

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Change the database, all or nothing of it, by one process at a time.

        Raises:
            LockTimeout, StorageFailed: it cannot be changed now.
        """
        with self._lock_database():
            try:
                return self._change_database(change)
            except Damaged as error:
                self._put_aside(str(error))
            return self._change_database(change)

    def _change_database(self, change: Callable[[sqlite3.Connection], T]) -> T:
        if not os.path.lexists(self.path):
            self._make_file()
        with self._open_connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = change(connection)
            connection.execute("COMMIT")
            return result

    def _lock_database(self) -> contextlib.AbstractContextManager[None]:
        return files.held(os.path.join(self.folder, _LOCK), BUSY_SECONDS)

    @contextlib.contextmanager
    def _open_connection(self) -> Iterator[sqlite3.Connection]:
        self._check_files()
        uri = f"file:{quote(os.fsencode(self.path))}?mode=rw"
        with self._translate_errors():
            connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = TRUNCATE")
                connection.execute("PRAGMA synchronous = FULL")
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version > _VERSION:
                    reason = f"a later version of mdmem has written it ({version}, not {_VERSION})"
                    raise StorageFailed(path=self.path, action="keep results", reason=reason)
                if version != _VERSION:
                    raise Damaged(f"its version is {version}, not {_VERSION}")
                yield connection
            except sqlite3.OperationalError as error:
                if (
                    error.sqlite_errorcode == sqlite3.SQLITE_ERROR
                    and _list_tables(connection) != _own_tables()
                ):
                    raise Damaged(f"its tables are not those of mdmem: {error}") from None
                raise
            finally:
                connection.close()  # which takes back what is not committed

    def _check_files(self) -> None:
        """Let SQLite open files alone: a FIFO beside the database would hold it up for ever.

        Raises:
            Damaged: the database is something else.
            StorageFailed: what SQLite keeps beside it is.
        """
        with files.translated(self.path, "look at it"), files.opened(self.folder) as folder:
            if not _is_file(folder, NAME):
                raise Damaged("it is not a file")
            for name in (NAME + _JOURNAL, NAME + _LOG):
                if not _is_file(folder, name):
                    path = os.path.join(self.folder, name)
                    raise StorageFailed(path=path, action="keep results", reason="it is not a file")

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate the errors of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:
                raise  # wrong use of the module, which is a bug
            if code & 0xFF in _DAMAGE:
                raise Damaged(str(error)) from None
            raise StorageFailed(path=self.path, action="keep results", reason=str(error)) from None

    def _make_file(self) -> None:
        """Make the file: whole, or not at all. The lock is held."""
        with files.translated(self.path, "make it"), files.opened(self.folder) as folder:
            for name in (_NEW, _NEW + _JOURNAL, NAME + _JOURNAL):
                files.remove(folder, name)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(_NEW, flags, 0o600, dir_fd=folder))
            with self._translate_errors():
                connection = sqlite3.connect(os.path.join(self.folder, _NEW), isolation_level=None)
                try:
                    connection.executescript(_SCHEMA)
                finally:
                    connection.close()
            os.rename(_NEW, NAME, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def _put_aside(self, reason: str) -> None:
        """Put a file that cannot be used where it is in nobody's way, and say so. The lock is held."""
        with files.translated(self.path, "put it aside"), files.opened(self.folder) as folder:
            # None in the place of another: what was put aside before may hold what nobody else has.
            aside = next(name for name in _aside_names() if not files.exists(folder, name))
            files.remove(folder, NAME + _JOURNAL)
            with contextlib.suppress(FileNotFoundError):
                os.rename(NAME, aside, src_dir_fd=folder, dst_dir_fd=folder)
        note = f"{NAME} could not be used ({reason}): it was put aside as {aside}, and a new one is made"
        if note not in self.notes:
            self.notes.append(note)

    def _is_damaged(self) -> bool:
        try:
            return self._ask_database(_is_sound) is False
        except Damaged:
            return True


def _is_sound(connection: sqlite3.Connection) -> bool:
    """Return whether a database is in order, and one of ours."""
    said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return bool(said == "ok") and _list_tables(connection) == _own_tables()


def _list_tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the tables and indexes of a database, by their names, and how they were made."""
    return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


def _own_tables() -> list[tuple[str, str]]:
    """Return the tables and indexes of a new database."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(_SCHEMA)
        return _list_tables(connection)


def _is_file(folder: int, name: str) -> bool:
    """Return whether a name in a folder is that of a file, or of nothing."""
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return True


def _aside_names() -> Iterator[str]:
    """Return the names under which a database is put aside, in the order in which they are taken."""
    return chain([_ASIDE], (f"{_ASIDE}-{number}" for number in count(2)))


# -- storing ----------------------------------------------------------------------------------------------


def store(connection: sqlite3.Connection, namespace: str, kept: Kept, content: bytes) -> None:
    """Keep an output; the same bytes again, from another session too, are kept once."""
    row = connection.execute(
        "SELECT id FROM outputs WHERE namespace = ? AND hash = ?", (namespace, kept.hash)
    ).fetchone()
    if row:
        number = row[0]
        connection.execute("UPDATE outputs SET used = ? WHERE id = ?", (kept.used, number))
    else:
        made = connection.execute(
            "INSERT INTO outputs (namespace, hash, size, used, content) VALUES (?, ?, ?, ?, ?)",
            (namespace, kept.hash, kept.size, kept.used, content),
        )
        number = made.lastrowid
        connection.execute("UPDATE counts SET value = value + ? WHERE name = 'bytes'", (kept.size,))
    connection.execute(
        "INSERT INTO stored VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET tool = excluded.tool",
        (number, kept.session, kept.tool, kept.created),
    )
    connection.execute(
        "DELETE FROM gone WHERE namespace = ? AND session = ? AND hash = ?",
        (namespace, kept.session, kept.hash),
    )


def register(
    connection: sqlite3.Connection,
    namespace: str,
    references: Sequence[NamedReference],
    session: str,
    tool: str,
    now: float,
) -> None:
    """Keep what an output names; what is known already counts once more."""
    connection.executemany(
        "INSERT INTO named (namespace, type, value, session, tool, context, count, created, used)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET count = count + 1,"
        " used = excluded.used, context = CASE context WHEN '' THEN excluded.context ELSE context END",
        [(namespace, each.type, each.value, session, tool, each.context, now, now) for each in references],
    )


def sweep(
    connection: sqlite3.Connection, namespace: str, settings: ResultSettings, now: float, keep: str = ""
) -> None:
    """Remove what is too old or too much, the oldest unused first; when, is remembered for a while.

    Args:
        connection: in a transaction.
        namespace: whose references are bounded.
        settings: the bounds.
        now: in seconds since the epoch.
        keep: the hash of an output of this namespace that was stored a moment ago, and stays.
    """
    oldest = now - settings.max_days * _DAY
    rows = connection.execute("SELECT id, size FROM outputs WHERE used < ?", (oldest,)).fetchall()
    remove(connection, rows, now)
    total = connection.execute("SELECT value FROM counts WHERE name = 'bytes'").fetchone()[0]
    over: list[tuple[int, int]] = []
    if total > settings.max_bytes:
        query = "SELECT id, size FROM outputs WHERE NOT (namespace = ? AND hash = ?) ORDER BY used, id"
        for row in connection.execute(query, (namespace, keep)):
            over.append(row)
            total -= row[1]
            if total <= settings.max_bytes:
                break
    remove(connection, over, now)
    connection.execute("DELETE FROM named WHERE used < ?", (oldest,))
    connection.execute(
        "DELETE FROM named WHERE id IN (SELECT id FROM named WHERE namespace = ?"
        " ORDER BY used DESC, id DESC LIMIT -1 OFFSET ?)",
        (namespace, settings.max_references),
    )


def remove(connection: sqlite3.Connection, rows: Sequence[tuple[int, int]], now: float) -> None:
    """Remove outputs, given by number and size, and remember when."""
    for number, size in rows:
        connection.execute(
            "INSERT INTO gone (namespace, session, hash, at) SELECT o.namespace, s.session, o.hash, ?"
            " FROM outputs AS o JOIN stored AS s ON s.output = o.id WHERE o.id = ?",
            (now, number),
        )
        connection.execute("DELETE FROM stored WHERE output = ?", (number,))
        connection.execute("DELETE FROM outputs WHERE id = ?", (number,))
        connection.execute("UPDATE counts SET value = value - ? WHERE name = 'bytes'", (size,))
    if rows:
        last = connection.execute("SELECT max(id) FROM gone").fetchone()[0]
        connection.execute("DELETE FROM gone WHERE id <= ?", ((last or 0) - _MOST_GONE,))


def use(
    connection: sqlite3.Connection, namespace: str, value: str, type_: str | None, session: str | None
) -> int:
    """Count references as used now; how many rows they are."""
    where, values = _where_clause(namespace, session, None)
    if type_ is not None:
        where, values = f"{where} AND type = ?", (*values, type_)
    statement = f"UPDATE named SET used = ?, count = count + 1 WHERE {where} AND value = ?"  # noqa: S608 - our names
    return connection.execute(statement, (time.time(), *values, value)).rowcount


def expire(connection: sqlite3.Connection, namespace: str, now: float, days: float) -> tuple[int, int]:
    """Remove what nobody has used for this many days; how many outputs and references that were."""
    query = "SELECT id, size FROM outputs WHERE namespace = ? AND used <= ?"
    rows = connection.execute(query, (namespace, now - days * _DAY)).fetchall()
    remove(connection, rows, now)
    statement = "DELETE FROM named WHERE namespace = ? AND used <= ?"
    references = connection.execute(statement, (namespace, now - days * _DAY)).rowcount
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return len(rows), references


# -- asking -----------------------------------------------------------------------------------------------


def outputs(
    connection: sqlite3.Connection, namespace: str, *, prefix: str = "", session: str | None, tool: str | None
) -> list[Kept]:
    """Return the outputs of a namespace whose hash begins so, the oldest first, one for each session."""
    where, values = _where_clause(namespace, session, tool)
    rows = connection.execute(
        "SELECT hash, size, tool, session, created, used FROM outputs JOIN stored ON output = outputs.id"  # noqa: S608 - our names
        f" WHERE {where} AND hash >= ? AND hash < ? ORDER BY created, outputs.id",
        (*values, prefix, f"{prefix}g"),
    )
    return [Kept(*row) for row in rows]


def removed(
    connection: sqlite3.Connection, namespace: str, prefix: str, session: str | None
) -> list[Removed]:
    """Return the outputs that were swept, the last one first."""
    where, values = _where_clause(namespace, session, None)
    rows = connection.execute(
        f"SELECT hash, at FROM gone WHERE {where} AND hash >= ? AND hash < ? ORDER BY at DESC, id DESC",  # noqa: S608 - as above
        (*values, prefix, f"{prefix}g"),
    )
    return [Removed(*row) for row in rows]


def content(connection: sqlite3.Connection, namespace: str, digest: str) -> bytes | None:
    """Return the bytes of an output; None where they are not kept (any more)."""
    query = "SELECT content FROM outputs WHERE namespace = ? AND hash = ?"
    row = connection.execute(query, (namespace, digest)).fetchone()
    return row[0] if row else None


def named_rows(
    connection: sqlite3.Connection,
    namespace: str,
    *,
    type_: str | None = None,
    session: str | None = None,
    tool: str | None = None,
    recent: int | None = None,
    value: str | None = None,
) -> list[NamedRow]:
    """Return what outputs name: as it was found first, or the last used ones, the newest first."""
    where, values = _where_clause(namespace, session, tool)
    if type_ is not None:
        where, values = f"{where} AND type = ?", (*values, type_)
    if value is not None:
        where += " AND (value = ? OR substr(value, -length(?) - 1) = '/' || ?)"
        values = (*values, value, value, value)
    order = "min(id)" if recent is None else "max(used) DESC, max(id) DESC"
    rows = connection.execute(
        "SELECT type, value, max(context), sum(count), min(created), max(used) FROM named"  # noqa: S608 - as above
        f" WHERE {where} GROUP BY type, value ORDER BY {order} LIMIT ?",
        (*values, -1 if recent is None else recent),
    )
    return [NamedRow(*row) for row in rows]


def _where_clause(namespace: str, session: str | None, tool: str | None) -> tuple[str, tuple[Any, ...]]:
    where = "namespace = ?"
    values: tuple[Any, ...] = (namespace,)
    for name, value in (("session", session), ("tool", tool)):
        if value is not None:
            where, values = f"{where} AND {name} = ?", (*values, value)
    return where, values
