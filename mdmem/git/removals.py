"""Which commit took a file away last: for all files that a history ever lost, found in one walk."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress

from mdmem.git.history import History, Removal

_IN_MEMORY = ":memory:"
_BUSY_SECONDS = 1.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS walked (until TEXT, is_shallow INTEGER);
CREATE TABLE IF NOT EXISTS removals (name BLOB PRIMARY KEY, id TEXT, new BLOB) WITHOUT ROWID;
"""


class Removals:
    """The removals in the history of a commit; what was read is kept in a database, and gone on from.

    Its `file` can be deleted any time; without one, nothing is kept.
    """

    def __init__(self, history: History, head: str, file: str = "") -> None:
        self._history = history
        with suppress(sqlite3.Error):  # it is damaged, locked, or cannot be written
            self._database = _open_database(file or _IN_MEMORY)
            self._read_until(head)
            return
        self._database = _open_database(_IN_MEMORY)
        self._read_until(head)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def find(self, name: str) -> Removal | None:
        """Return the last removal of a file, by its path from the top of the work tree; None without one."""
        query = "SELECT id, new FROM removals WHERE name = ?"
        row = self._database.execute(query, (os.fsencode(name),)).fetchone()
        if row is None:
            return None
        commit, new = row
        return Removal(commit, os.fsdecode(new))

    def _read_until(self, head: str) -> None:
        # A shallow history may be extended at its old end.
        is_shallow = self._history.repository.shallow
        known = self._database.execute("SELECT until, is_shallow FROM walked").fetchone()
        if known == (head, is_shallow):
            return
        start = known[0] if known and known[1] == is_shallow else ""
        if start and not self._history.descends(head, start):
            start = ""
        found: dict[str, Removal] = {}
        with closing(self._history.removals(head, start)) as removals:
            for name, removal in removals:
                found.setdefault(name, removal)
        with self._database as database:
            database.execute("DELETE FROM walked")
            if not start:
                database.execute("DELETE FROM removals")
            rows = ((os.fsencode(name), each.commit, os.fsencode(each.new)) for name, each in found.items())
            database.executemany("INSERT OR REPLACE INTO removals VALUES (?, ?, ?)", rows)
            database.execute("INSERT INTO walked VALUES (?, ?)", (head, is_shallow))


def _open_database(file: str) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=_BUSY_SECONDS, check_same_thread=False)
    database.executescript(_SCHEMA)
    return database
