"""The database of results: whole outputs by their SHA-256, and what they name, in one SQLite file.

It stands in a folder that was made here (`LocalStore.own`), so that no file that came with a vault is ever
opened. A row belongs to a namespace and a session, and every question names the namespace: what another one
has stored looks as if nobody had. An output and what it names come in one transaction, which
also sweeps what is too much; the file is synced before it ends, so that a kill leaves all of it or nothing.

A rollback journal, not a write-ahead log: a large output is then written once, and a file system that cannot
be written to can still be read.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from mdmem.conversations.results.named import NamedReference
from mdmem.errors import IndexDamaged
from mdmem.vault import files
from mdmem.vault.config import ResultSettings
from mdmem.vault.sqlite import Schema, connected

T = TypeVar("T")

NAME = "results.sqlite"
"""The file, in the folder that was made here."""

_BUSY_SECONDS = 10.0
_MOST_GONE = 10_000  # outputs that are remembered as swept
_DAY = 86_400
_SCRIPT = """
CREATE TABLE IF NOT EXISTS outputs (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL,
    used REAL NOT NULL, content BLOB NOT NULL, UNIQUE (namespace, hash)
);
CREATE INDEX IF NOT EXISTS outputs_by_use ON outputs (used, size);
CREATE TABLE IF NOT EXISTS stored (
    output INTEGER NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (output, session)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gone (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, session TEXT NOT NULL, hash TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS gone_by_hash ON gone (namespace, hash);
CREATE TABLE IF NOT EXISTS named (
    id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, type TEXT NOT NULL, value TEXT NOT NULL,
    session TEXT NOT NULL, tool TEXT NOT NULL, context TEXT NOT NULL,
    count INTEGER NOT NULL, created REAL NOT NULL, used REAL NOT NULL,
    UNIQUE (namespace, type, value, session, tool)
);
CREATE INDEX IF NOT EXISTS named_by_use ON named (namespace, used);
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO counts VALUES ('bytes', 0);
"""
_PRAGMAS = ("journal_mode = TRUNCATE", "synchronous = FULL")
_FORM = ("page_size = 16384", "auto_vacuum = INCREMENTAL")
_SCHEMA = Schema("keep results", _SCRIPT, 1, _PRAGMAS, _BUSY_SECONDS, form=_FORM)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """An output that is kept; `used` is when it was last stored or recovered (ISO 8601, UTC)."""

    hash: str
    size: int
    tool: str
    session: str
    created: str
    used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReference:
    """What outputs of tools name.

    Attributes:
        type: one of `mdmem.conversations.results.named.TYPES`.
        value: a path, a path with `#L10-L23`, a URL, or a name.
        context: a line in which it stands.
        count: how often it was found.
        created, used: when it was found first, and last found or marked (ISO 8601, UTC).
    """

    type: str
    value: str
    context: str
    count: int
    created: str
    used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptResults:
    """How many outputs and references were removed."""

    outputs: int = 0
    references: int = 0


class ResultDatabase:
    """The database in a folder that was made here; it is made when something is stored first.

    Nothing stays open: each question opens the file that stands there now. One that is damaged is put aside,
    and `notes` says so.
    """

    def __init__(self, folder: str, notes: list[str]) -> None:
        self.path = os.path.join(folder, NAME)
        self.notes = notes

    def read(self, ask: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what is asked of the database; None where there is none."""
        if not os.path.lexists(self.path):
            return None
        try:
            with connected(self.path, _SCHEMA) as connection:
                return ask(connection)
        except IndexDamaged:
            return self.write(ask)  # which puts it aside, with the lock held

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Change the database, all or nothing of it, by one process at a time."""
        with files.held(os.path.join(os.path.dirname(self.path), "lock"), _BUSY_SECONDS):
            try:
                return self._change_database(change)
            except IndexDamaged as error:
                self._put_aside(error.reason)
            return self._change_database(change)

    def _change_database(self, change: Callable[[sqlite3.Connection], T]) -> T:
        with files.translated(self.path, "make it"):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        with connected(self.path, _SCHEMA) as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = change(connection)
            connection.execute("COMMIT")
            return result

    def _put_aside(self, reason: str) -> None:
        """Rename a damaged file, and its journal is void. What was put aside before stays."""
        numbered = (f"{self.path}.damaged{f'-{number}' if number > 1 else ''}" for number in count(1))
        with files.translated(self.path, "put it aside"):
            aside = next(path for path in numbered if not os.path.lexists(path))
            with contextlib.suppress(FileNotFoundError):
                os.remove(f"{self.path}-journal")
            os.rename(self.path, aside)
        name = os.path.basename(aside)
        note = f"{NAME} could not be used ({reason}): it was put aside as {name}, and a new one is made"
        if note not in self.notes:
            self.notes.append(note)


def _time(column: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {column}, 'unixepoch')"


class NamespaceResults:
    """What one namespace has stored; what another one has looks as if nobody had."""

    def __init__(self, connection: sqlite3.Connection, namespace: str) -> None:
        self._connection, self._execute = connection, connection.execute
        self._namespace = namespace

    # -- storing ------------------------------------------------------------------------------------------

    def store(self, digest: str, content: bytes, session: str, tool: str) -> None:
        """Keep an output; the same bytes again, from another session too, are kept once."""
        now = time.time()
        query = "SELECT id FROM outputs WHERE namespace = ? AND hash = ?"
        row = self._execute(query, (self._namespace, digest)).fetchone()
        if row:
            number = row[0]
            self._execute("UPDATE outputs SET used = ? WHERE id = ?", (now, number))
        else:
            made = self._execute(
                "INSERT INTO outputs (namespace, hash, size, used, content) VALUES (?, ?, ?, ?, ?)",
                (self._namespace, digest, len(content), now, content),
            )
            number = made.lastrowid
            self._execute("UPDATE counts SET value = value + ? WHERE name = 'bytes'", (len(content),))
        self._execute(
            "INSERT INTO stored VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET tool = excluded.tool",
            (number, session, tool, now),
        )
        statement = "DELETE FROM gone WHERE namespace = ? AND session = ? AND hash = ?"
        self._execute(statement, (self._namespace, session, digest))

    def register(self, references: Sequence[NamedReference], session: str, tool: str) -> None:
        """Keep what an output names; what is known already counts once more."""
        now = time.time()
        self._connection.executemany(
            "INSERT INTO named (namespace, type, value, session, tool, context, count, created, used)"
            " VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET count = count + 1,"
            " used = excluded.used, context = CASE context WHEN '' THEN excluded.context ELSE context END",
            [
                (self._namespace, each.type, each.value, session, tool, each.context, now, now)
                for each in references
            ],
        )

    def sweep(self, settings: ResultSettings, keep: str = "") -> None:
        """Remove what is too old or too much, the oldest unused first; when, is remembered for a while.

        Args:
            keep: the hash of an output of this namespace that was stored a moment ago, and stays.
        """
        oldest = time.time() - settings.max_days * _DAY
        rows = self._execute("SELECT id, size FROM outputs WHERE used < ?", (oldest,)).fetchall()
        self._remove_outputs(rows)
        total = self._execute("SELECT value FROM counts WHERE name = 'bytes'").fetchone()[0]
        over: list[tuple[int, int]] = []
        if total > settings.max_bytes:
            query = "SELECT id, size FROM outputs WHERE NOT (namespace = ? AND hash = ?) ORDER BY used, id"
            for number, size in self._execute(query, (self._namespace, keep)):
                over.append((number, size))
                total -= size
                if total <= settings.max_bytes:
                    break
        self._remove_outputs(over)
        self._execute("DELETE FROM named WHERE used < ?", (oldest,))
        self._execute(
            "DELETE FROM named WHERE id IN (SELECT id FROM named WHERE namespace = ?"
            " ORDER BY used DESC, id DESC LIMIT -1 OFFSET ?)",
            (self._namespace, settings.max_references),
        )

    def _remove_outputs(self, rows: Sequence[tuple[int, int]]) -> None:
        for number, size in rows:
            self._execute(
                "INSERT INTO gone (namespace, session, hash, at) SELECT o.namespace, s.session, o.hash, ?"
                " FROM outputs AS o JOIN stored AS s ON s.output = o.id WHERE o.id = ?",
                (time.time(), number),
            )
            self._execute("DELETE FROM stored WHERE output = ?", (number,))
            self._execute("DELETE FROM outputs WHERE id = ?", (number,))
            self._execute("UPDATE counts SET value = value - ? WHERE name = 'bytes'", (size,))
        if rows:
            self._execute("DELETE FROM gone WHERE id <= (SELECT max(id) FROM gone) - ?", (_MOST_GONE,))

    def use_output(self, digest: str) -> None:
        """Note that an output was asked for, so that others are swept before it."""
        statement = "UPDATE outputs SET used = ? WHERE namespace = ? AND hash = ?"
        self._execute(statement, (time.time(), self._namespace, digest))

    def use_reference(self, **columns: str | None) -> int:
        """Count references as used now; how many rows they are."""
        where, values = self._where(**columns)
        statement = f"UPDATE named SET used = ?, count = count + 1 WHERE {where}"  # noqa: S608 - our names
        return self._execute(statement, (time.time(), *values)).rowcount

    def expire(self, days: float) -> SweptResults:
        """Remove what nobody has used for this many days."""
        oldest = (self._namespace, time.time() - days * _DAY)
        query = "SELECT id, size FROM outputs WHERE namespace = ? AND used <= ?"
        rows = self._execute(query, oldest).fetchall()
        self._remove_outputs(rows)
        references = self._execute("DELETE FROM named WHERE namespace = ? AND used <= ?", oldest).rowcount
        self._execute("PRAGMA incremental_vacuum").fetchall()
        return SweptResults(outputs=len(rows), references=references)

    def count_expired(self, days: float) -> SweptResults:
        """Count what `expire` would remove."""
        oldest = (self._namespace, time.time() - days * _DAY)
        query = "SELECT count(*) FROM {} WHERE namespace = ? AND used <= ?"
        outputs, references = (
            self._execute(query.format(table), oldest).fetchone()[0] for table in ("outputs", "named")
        )
        return SweptResults(outputs=outputs, references=references)

    # -- asking -------------------------------------------------------------------------------------------

    def list_outputs(self, session: str | None, tool: str | None = None) -> list[StoredResult]:
        """Return the outputs of a namespace, the oldest first, one for each session."""
        where, values = self._where(session=session, tool=tool)
        rows = self._execute(
            f"SELECT hash, size, tool, session, {_time('created')}, {_time('used')}"  # noqa: S608 - our names
            f" FROM outputs JOIN stored ON output = outputs.id WHERE {where} ORDER BY created, outputs.id",
            values,
        )
        names = ("hash", "size", "tool", "session", "created", "used")
        return [StoredResult(**dict(zip(names, row, strict=True))) for row in rows]

    def find_hashes(self, prefix: str, session: str | None) -> list[str]:
        """Return the hashes of outputs that begin so."""
        where, values = self._where(session=session)
        rows = self._execute(
            "SELECT DISTINCT hash FROM outputs JOIN stored ON output = outputs.id"  # noqa: S608 - our names
            f" WHERE {where} AND hash >= ? AND hash < ?",
            (*values, prefix, f"{prefix}g"),
        )
        return [hash_ for (hash_,) in rows]

    def find_removed(self, prefix: str, session: str | None) -> tuple[str, str] | None:
        """Return the hash of the output that begins so and was swept last, and when that was."""
        where, values = self._where(session=session)
        query = (
            f"SELECT hash, {_time('at')} FROM gone WHERE {where} AND hash >= ? AND hash < ?"  # noqa: S608 - our names
            " ORDER BY at DESC, id DESC LIMIT 1"
        )
        row: tuple[str, str] | None = self._execute(query, (*values, prefix, f"{prefix}g")).fetchone()
        return row

    def read_content(self, digest: str) -> bytes:
        """Return the bytes of an output that is there."""
        query = "SELECT content FROM outputs WHERE namespace = ? AND hash = ?"
        content: bytes = self._execute(query, (self._namespace, digest)).fetchone()[0]
        return content

    def list_references(
        self, columns: Mapping[str, str | None], *, limit: int | None = None, ending: str | None = None
    ) -> list[ResultReference]:
        """Return what outputs name: as it was found first, or the last used ones, the newest first.

        Args:
            columns: the type, session or tool that a name must have; None for any.
            limit: return at most this many, those used last.
            ending: return only this name, and paths that end with it behind a `/`.
        """
        where, values = self._where(**columns)
        if ending is not None:
            where += " AND (value = ? OR substr(value, -length(?) - 1) = '/' || ?)"
            values = (*values, ending, ending, ending)
        order = "min(id)" if limit is None else "max(used) DESC, max(id) DESC"
        rows = self._execute(
            f"SELECT type, value, max(context), sum(count), {_time('min(created)')}, {_time('max(used)')}"  # noqa: S608 - our names
            f" FROM named WHERE {where} GROUP BY type, value ORDER BY {order} LIMIT ?",
            (*values, -1 if limit is None else limit),
        )
        names = ("type", "value", "context", "count", "created", "used")
        return [ResultReference(**dict(zip(names, row, strict=True))) for row in rows]

    def _where(self, **columns: str | None) -> tuple[str, tuple[Any, ...]]:
        named = {"namespace": self._namespace, **columns}
        given = {name: value for name, value in named.items() if value is not None}
        return " AND ".join(f"{name} = ?" for name in given), tuple(given.values())
