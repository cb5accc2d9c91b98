"""The store of a vault that is in PostgreSQL: a folder that follows the database.

What reads, reads the files of the copy, which stands in the user's cache. What writes, and what says how the
vault has changed, asks the database: one row, the head of the vault, is its lock and its clock. A change adds
1 to its `seq` and leaves the id of its entry beside it; a copy notes which `seq` and id it has taken in.

A log has a row of its own, so that who appends and who changes memories do not wait for each other. It holds
the number of the transaction that wrote it last: a copy looks at the logs written since the oldest
transaction that was under way when it looked before.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import psycopg
from platformdirs import user_cache_dir

from mdmem.diagnostic import as_json
from mdmem.document.document import digest as digest_of
from mdmem.errors import (
    ConfigInvalid,
    DatabaseFailed,
    LimitReached,
    LockTimeout,
    MdmemError,
    PathRefused,
    VaultNotFound,
)
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH, Config
from mdmem.vault.connection import Connection, Connections, read_address
from mdmem.vault.files import Content, Raced
from mdmem.vault.local_store import LOCAL, LOCK_SECONDS, LocalStore
from mdmem.vault.log import LogFile
from mdmem.vault.paths import Namespace, above, check_folder, nfc
from mdmem.vault.postgres_log import PostgresLog, fetch_chunks, lock_log
from mdmem.vault.postgres_vectors import PostgresVectors
from mdmem.vault.store import MOST_ATTACHED_BYTES, Entry, Step, entry_from, hashed
from mdmem.vault.uses import PostgresUses
from mdmem.vault.walk import OWN_FOLDERS

_MOST_FILES = 200_000
_MOST_FETCHED = 16 * 1024 * 1024  # bytes of files that are in memory at once
_MOST_ENTRIES = 200  # that are read at once
_NOTES, _INCOMING = f"{LOCAL}/copy.sqlite", f"{LOCAL}/incoming"
# The folders of the copy's local state that hold no text, such as those of locks.
_STAYS = ("incoming", "logs", "observers", "importing", "compacting")
_NOTED = ("state (one PRIMARY KEY, seq, id, boot, started, xmin, epoch)", "log (path PRIMARY KEY, id)")
_BOOT = "/proc/sys/kernel/random/boot_id"
_OWN = (".mdmem/schemas/", ".mdmem/templates/")
_HIDDEN = re.compile(r"(?:(?<=/)|^)\.(?=[^./])")

_LOOK = """
SELECT h.seq, h.id, concat(pg_postmaster_start_time(), ' ', pg_relation_filenode('mdmem.head')),
    pg_snapshot_xmin(pg_current_snapshot())::text,
    (SELECT xid FROM mdmem.log l WHERE l.vault = h.vault ORDER BY xid DESC LIMIT 1) >= %s::text::xid8,
    h.origin, h.erased
FROM mdmem.head h WHERE h.vault = %s
"""
# Comparing or writing a large copy takes long between two statements, and blocks nobody.
_BEGIN_PULL = """
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = '15min'
"""
LOCK_HEAD = "SELECT seq, id FROM mdmem.head WHERE vault = %s FOR UPDATE"
"""Locks a vault until the transaction of a change ends."""
_TOUCHED = "SELECT DISTINCT path FROM mdmem.touched WHERE vault = %s AND seq > %s"
_FILES = "SELECT path, spelled, hash, size, mode, mtime FROM mdmem.file WHERE vault = %s"
_CONTENTS = """
SELECT f.path, c.data FROM mdmem.file f JOIN mdmem.content c USING (vault, hash)
WHERE f.vault = %s AND f.path = ANY(%s)
"""
_PUT = """
INSERT INTO mdmem.file VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (vault, path) DO UPDATE SET
    spelled = excluded.spelled, hash = excluded.hash, size = excluded.size, mode = excluded.mode,
    mtime = excluded.mtime
"""
_REMOVE = "DELETE FROM mdmem.file WHERE vault = %s AND path = ANY(%s)"
KEEP = "INSERT INTO mdmem.content VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
"""Adds a version: the vault's name, its hash, its bytes."""
_ADVANCE = """
UPDATE mdmem.head SET seq = seq + 1, id = %s, files = files + %s, bytes = bytes + %s WHERE vault = %s
RETURNING seq, files, bytes
"""
_RECORD = "INSERT INTO mdmem.entry VALUES (%s, %s, %s, %s)"
_READ_ENTRIES = """
SELECT seq, shape FROM mdmem.entry WHERE vault = %s AND seq < %s ORDER BY seq DESC LIMIT %s
"""
_READ_BELOW = """
SELECT seq, shape FROM mdmem.entry WHERE vault = %s AND seq < %s AND seq IN (
    SELECT seq FROM mdmem.touched WHERE vault = %s AND (path = %s OR path >= %s AND path < %s)
) ORDER BY seq DESC LIMIT %s
"""
_TOUCH = "INSERT INTO mdmem.touched VALUES (%s, %s, %s)"


class _Head(NamedTuple):
    """The head of a vault as `_LOOK` reads it; `has_logs`: whether a log has changed since a transaction."""

    seq: int
    id: str
    started: str
    xmin: str
    has_logs: bool
    origin: str
    erased: int


class CopyState(NamedTuple):
    """What a copy has taken in: the head's `seq` and id, and how far the logs.

    `boot` names the run of this machine, `started` that of the server, and the tables, which a restore makes
    again: what another run left is compared.
    `epoch` names what came of that: files that changed meanwhile are in no list.
    """

    seq: int
    id: str
    boot: str
    started: str
    xmin: str
    epoch: str


class StoredFile(NamedTuple):
    """A file as its row says."""

    path: str
    spelled: str
    hash: str
    size: int
    mode: int
    mtime: int

    @property
    def place(self) -> str:
        """Where it stands in the copy."""
        return self.spelled or self.path


def may_stand(path: str, spelled: str = "", *, is_log: bool = False) -> bool:
    """Return whether a vault in a database may have a file or a log at a path, spelled so."""
    inside = next((path.removeprefix(own) for own in _OWN if path.startswith(own)), path)
    if is_log and path.partition("/")[0] not in OWN_FOLDERS:
        inside = _HIDDEN.sub("", path)  # what was put aside is
    with contextlib.suppress(PathRefused):
        return nfc(spelled or path) == path and (path == CONFIG_PATH or check_folder(inside) == inside != "")
    return False


def list_places(root: str) -> list[str]:
    """List the files and links in the folder of a vault, as they are spelled, without its local state."""
    found = []
    for folder, below, names in os.walk(root):
        start = f"{os.path.relpath(folder, root)}/" if folder != root else ""
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]
        below[:] = [name for name in below if f"{start}{name}" != LOCAL]
        found += [f"{start}{name}" for name in (*names, *links)]
    return found


class _AtWork(threading.local):
    """What a thread is at: the transaction of its block `writing`, and whether its question has looked."""

    stack: contextlib.ExitStack
    connection: Connection | None = None
    is_steady = has_looked = False


class PostgresStore(LocalStore):
    """The vault that a URL names; its `root` is the folder of the copy. Constructing it opens nothing."""

    is_copy = True

    def __init__(self, url: str) -> None:
        self.address = read_address(url)
        self.database = Connections(self.address)
        name = sha256(self.address.shown.encode()).hexdigest()[:32]
        super().__init__(os.path.join(user_cache_dir("mdmem", appauthor=False), "teams", name, "memories"))
        self.name = self.address.shown
        self._state: CopyState | None = None
        self._work = _AtWork()
        self._pulls, self._pull_seconds = 0, 0.0

    @property
    def figures(self) -> Mapping[str, float]:
        """How often the copy took in changes, the seconds that this took, and the open connections."""
        taken = {"pulls_total": self._pulls, "pull_seconds_total": self._pull_seconds}
        return {**taken, "connections": self.database.count_open()}

    def again(self) -> PostgresStore:
        """Return this store: it says what has changed."""
        return self

    def close(self) -> None:
        """Close the connections; the next question opens others."""
        self.database.close()

    @property
    def workspace(self) -> str:
        """An empty folder around the copy, as files beside a cache do not belong to the vault."""
        return os.path.dirname(self.root)

    @property
    def mounts(self) -> dict[str, tuple[str, ...]]:
        """None: a vault in a database has no files beside it."""
        if self.config.mounts:
            self._add_note(
                f"{CONFIG_PATH}: [mounts] is passed over, as this vault is not in a folder: "
                "remove it with `mdmem store put`, from a folder whose config has none"
            )
        return {}

    def stands(self, path: str) -> bool:
        """See `Store.stands`."""
        return not path or super().stands(path)

    def _make_local(self) -> None:
        with files.translated(self.name, "keep a copy of it"):
            os.makedirs(self.root, mode=0o700, exist_ok=True)
        super()._make_local()

    # -- following the database ---------------------------------------------------------------------------

    def recover(self) -> int:
        """Bring the copy up to date; 0, as nothing is put right.

        Raises:
            DatabaseFailed, LockTimeout, StorageFailed: what the copy holds may be old.
        """
        work = self._work
        if work.is_steady and work.has_looked:
            return 0
        with self.database.translated("read it"):
            self.database.repeat(self._catch_up)
        work.has_looked = True
        return 0

    def _catch_up(self) -> None:
        if not self._is_current():
            began = time.monotonic()
            # First a connection, then the copy, then what is seen: others that wait for the copy hold no
            # connection that this one needs.
            with self.database.begun() as connection, self._hold_copy():
                connection.execute(_BEGIN_PULL)
                self._follow(connection)
                self._pulls += 1
                self._pull_seconds += time.monotonic() - began

    @contextlib.contextmanager
    def pinned(self, *, compares: bool = False) -> Iterator[Iterator[Entry]]:
        """See `LocalStore.pinned`; others who follow with the same copy wait.

        With `compares`, every file and log of the copy is compared first.
        """
        with self.steady(), contextlib.ExitStack() as stack:
            with self.database.translated("read it"), self.database.begun() as connection:
                stack.enter_context(self._hold_copy())
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                self._follow(connection, compares=compares)
            self._work.has_looked = True
            yield self._read_entries(self._state.seq + 1 if self._state else 0)

    @contextlib.contextmanager
    def steady(self) -> Iterator[None]:
        """See `Store.steady`."""
        work = self._work
        if work.is_steady:
            yield
            return
        work.is_steady, work.has_looked = True, False
        try:
            yield
        finally:
            work.is_steady = False

    def _is_current(self, *, but_logs: bool = False) -> bool:
        known = self._state
        if known is None or not os.path.exists(os.path.join(self.root, _NOTES)):
            return False
        rows = self.database.ask(_LOOK, [known.xmin, self.address.vault])
        if not rows:
            return False
        head = _Head(*rows[0])
        is_same = (head.seq, head.id, head.started) == (known.seq, known.id, known.started)
        return is_same and (but_logs or not head.has_logs)

    @contextlib.contextmanager
    def _hold_copy(self) -> Iterator[None]:
        try:
            with self.locked(LOCK_SECONDS):
                yield
        except LockTimeout as error:
            raise error.but(path=self.address.shown) from None
        except OSError as error:
            raise files.failure(error, self.address.shown, "keep a copy of it") from None

    def _follow(self, connection: Connection, *, compares: bool = False) -> None:
        """Take in what has changed. Needs the copy's lock, and the head's or one snapshot."""
        row = connection.execute(_LOOK, ["0", self.address.vault]).fetchone()
        if row is None:
            raise VaultNotFound(start=self.address.shown)
        head = _Head(*row)
        with self._open_notes() as notes:
            known, boot = _read_state(notes), _read_boot()
            is_whole = known is not None and known.boot == boot and not compares
            is_same = known is not None and is_whole and self._has_met(connection, known, head)
            is_erased = not is_same and head.erased > (known.seq if known else 0)
            if known is None or not is_same:
                if not is_whole:
                    notes.execute("UPDATE log SET id = ''")  # each is read again
                self._compare_copy(connection, notes, tells=known is not None and not is_erased)
            elif known.seq != head.seq:
                touched = connection.execute(_TOUCHED, [self.address.vault, known.seq]).fetchall()
                self._take_in(connection, {path for (path,) in touched})
            since = known.xmin if known and is_same and known.started == head.started else "0"
            self._take_in_logs(connection, notes, since)
            if is_erased:  # what another process makes of the files from here on holds nothing of it
                self._drop_past()
            epoch = known.epoch if known and is_same else os.urandom(8).hex()
            self._note_state(notes, CopyState(head.seq, head.id, boot, head.started, head.xmin, epoch))

    def _has_met(self, connection: Connection, known: CopyState, head: _Head) -> bool:
        """Return whether the history holds the last change of the copy, and nothing was erased since."""
        if known.seq < head.erased:
            return False
        if head.seq == known.seq:
            return head.id == known.id
        if known.seq == 0:
            return head.origin == known.id
        statement = "SELECT id FROM mdmem.entry WHERE vault = %s AND seq = %s"
        return connection.execute(statement, [self.address.vault, known.seq]).fetchone() == (known.id,)

    def _drop_past(self) -> None:
        """Remove what is made of the files, as past states and indexes: something in it was erased."""
        local = os.path.join(self.root, LOCAL)
        for name in os.listdir(local):
            path = os.path.join(local, name)
            if files.is_folder(path) and name not in _STAYS and os.listdir(path):
                gone = f"{path}.{os.urandom(4).hex()}"
                os.rename(path, gone)  # another process may be making an index there
                shutil.rmtree(gone)

    def _note_state(self, notes: sqlite3.Connection, state: CopyState) -> None:
        notes.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?, ?)", state)
        notes.commit()
        self._state = state

    @contextlib.contextmanager
    def _open_notes(self) -> Iterator[sqlite3.Connection]:
        path = os.path.join(self.root, _NOTES)
        try:
            notes = _connect_notes(path)
        except sqlite3.DatabaseError:
            os.unlink(path)  # everything is compared then
            notes = _connect_notes(path)
        with contextlib.closing(notes):
            yield notes

    def _take_in(self, connection: Connection, paths: Collection[str]) -> None:
        """Make the files at some paths what the database says."""
        rows = connection.execute(f"{_FILES} AND path = ANY(%s)", [self.address.vault, list(paths)])
        found = {row[0]: StoredFile(*row) for row in rows if self._may_stand(row[0], row[1])}
        for path in paths:
            there = found.get(path)
            if self._may_stand(path) and (there is None or self.spelled(path) not in {"", there.place}):
                self._remove_file(self.spelled(path) or path)
        self._fetch(connection, found.values())

    def _fetch(self, connection: Connection, wanted: Iterable[StoredFile]) -> None:
        """Write files with what the database holds."""
        for batch in split_batches(wanted):
            rows = connection.execute(_CONTENTS, [self.address.vault, list(batch)], binary=True)
            for path, data in rows:
                if hashed(data) == batch[path].hash:
                    self._write_file(batch[path], data)
                else:
                    self._add_note(f"{path}: what the database holds is damaged, and is not used")

    def _compare_copy(self, connection: Connection, notes: sqlite3.Connection, *, tells: bool) -> None:
        """Compare every file with the database, by hash, and take in what differs."""
        rows = connection.execute(_FILES, [self.address.vault]).fetchall()
        wanted = {row[1] or row[0]: StoredFile(*row) for row in rows if self._may_stand(row[0], row[1])}
        logs = {path for (path,) in notes.execute("SELECT path FROM log")}
        other = 0
        for path in self._list_files():
            there = wanted.get(path)
            if there and self._hash_file(path) == there.hash:
                del wanted[path]
            elif path not in logs:
                other += 1
                self._remove_file(path)
        self._fetch(connection, wanted.values())
        if other and tells:
            self._add_note(f"what this machine's copy of the vault held otherwise is gone (files: {other})")

    def _list_files(self) -> list[str]:
        return list_places(self.root)

    def _hash_file(self, path: str) -> str | None:
        try:
            content = self.read(path, MOST_ATTACHED_BYTES, exact=True)
        except MdmemError:
            return None
        return hashed(content.data) if content else None

    def _take_in_logs(self, connection: Connection, notes: sqlite3.Connection, since: str) -> None:
        statement = "SELECT path, id, size, mtime FROM mdmem.log WHERE vault = %s AND xid >= %s::text::xid8"
        rows = connection.execute(statement, [self.address.vault, since]).fetchall()
        if since == "0":
            gone = {path for (path,) in notes.execute("SELECT path FROM log")} - {row[0] for row in rows}
            rows += [(path, "", 0, 0) for path in gone]
        for path, identifier, size, mtime in rows:
            if self._may_stand(path, is_log=True):
                try:
                    self._take_in_log(connection, notes, path, identifier, size)
                except DatabaseFailed as error:
                    self._add_note(f"{path}: {error.reason}")
                if identifier and self._measure_log(path) >= 0:
                    with self._open_folder(path) as (folder, name):
                        os.utime(name, ns=(mtime, mtime), dir_fd=folder, follow_symlinks=False)

    def _take_in_log(
        self, connection: Connection, notes: sqlite3.Connection, path: str, identifier: str, size: int
    ) -> None:
        """Make a log of the copy what its row says. Needs the copy's lock."""
        if not identifier:
            self._remove_file(path)
            notes.execute("DELETE FROM log WHERE path = ?", [path])
            return
        known = notes.execute("SELECT id FROM log WHERE path = ?", [path]).fetchone()
        held = self._measure_log(path) if known == (identifier,) else -1
        if held == size:
            return
        if held > size:
            self._add_note(f"{path}: what was written to this machine's copy of a log is gone")
        start = held if 0 < held < size else 0
        chunks = fetch_chunks(connection, self.address.vault, identifier, start, size)
        self._extend_log(notes, path, identifier, start, chunks)

    def _extend_log(
        self, notes: sqlite3.Connection, path: str, identifier: str, start: int, data: Iterable[bytes]
    ) -> None:
        if start:
            with (
                self._open_folder(path) as (folder, name),
                open(files.open_regular(name, os.O_WRONLY | os.O_APPEND, folder), "ab") as file,
            ):
                file.writelines(data)
            return
        self._write_file(StoredFile(path, "", "", 0, files.NEW_FILE, time.time_ns()), data)
        notes.execute("INSERT OR REPLACE INTO log VALUES (?, ?)", [path, identifier])

    def _measure_log(self, path: str) -> int:
        status = files.status_of(os.path.join(self.root, path))
        return status.st_size if status and stat.S_ISREG(status.st_mode) else -1

    def _may_stand(self, path: str, spelled: str = "", *, is_log: bool = False) -> bool:
        """Return whether a file may stand at a path of the copy; note where it may not."""
        if may_stand(path, spelled, is_log=is_log):
            return True
        self._add_note(f"{path!r}: the database has a file there, where none may be; it is not used")
        return False

    def changed_since(self, mark: str) -> tuple[str, Collection[str] | None]:
        """See `Store.changed_since`: what the copy has taken in since."""
        state = self._state
        if state is None:
            return "", None
        now = f"{state.epoch} {state.seq}"
        epoch, _, seq = mark.partition(" ")
        if epoch != state.epoch:
            return now, None
        if int(seq) >= state.seq:
            return mark, set()  # another process has taken in more, and its index knows
        with self.database.translated("read what has changed"):
            vault = self.address.vault
            ((first,),) = self.database.ask("SELECT min(seq) FROM mdmem.entry WHERE vault = %s", [vault])
            rows = self.database.ask(f"{_TOUCHED} AND seq <= %s", [vault, int(seq), state.seq])
        is_whole = first is not None and first <= int(seq) + 1  # no change behind the mark was swept away
        return now, {path for (path,) in rows} if is_whole else None

    # -- the files of the copy ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _open_folder(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        *folders, name = path.split("/")
        with files.opened(self.root, folders, create=create, exact=True) as folder:
            yield folder, name

    def _write_file(self, file: StoredFile, data: bytes | Iterable[bytes]) -> None:
        """Put a file in its place at once; what stands in the way goes."""
        like = Content(b"", file.mode, os.getuid(), os.getgid(), (0, 0, 0, 0))
        with files.opened(self.root, _INCOMING.split("/"), create=True) as incoming:
            name = f"{threading.get_ident()}"
            files.remove(incoming, name)
            files.write_new(incoming, name, data, like, durable=False)
            os.utime(name, ns=(file.mtime, file.mtime), dir_fd=incoming)
            for is_again in (False, True):
                try:
                    with self._open_folder(file.place, create=True) as (folder, target):
                        os.rename(name, target, src_dir_fd=incoming, dst_dir_fd=folder)
                        break
                except OSError:
                    if is_again:
                        raise
                    self._clear_way(file.place)

    def _clear_way(self, path: str) -> None:
        """Remove what stands where the folders of a file, or the file itself, are to be."""
        for each in (*reversed(tuple(above(path))), path):
            full = os.path.join(self.root, each)
            if os.path.lexists(full) and (each == path or not files.is_folder(full)):
                self._add_note(f"{each}: what stood there in this machine's copy is gone")
                if files.is_folder(full):
                    shutil.rmtree(full)
                else:
                    os.unlink(full)

    def _remove_file(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            with self._open_folder(path) as (folder, name):
                os.unlink(name, dir_fd=folder)
            for each in above(path):
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(self.root, each))

    # -- changing -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """See `Store.writing`.

        A change that is committed gives the head free: before a further one of the same block, others may
        come in between, and bases are compared again.
        """
        self.recover()  # others wait for whoever holds the head, and not while a new copy is filled
        own = self._work
        with self.database.translated("change it"), contextlib.ExitStack() as own.stack:
            own.connection = self._lock_head(own.stack)
            try:
                yield
            finally:
                own.connection = None

    def _lock_head(self, stack: contextlib.ExitStack) -> Connection:
        connection = stack.enter_context(self.database.begun())
        head = connection.execute(LOCK_HEAD, [self.address.vault]).fetchone()
        if self._state is None or head != self._state[:2]:
            with self._hold_copy():
                self._follow(connection)
        return connection

    def commit(self, entry: Entry, steps: Sequence[Step]) -> None:
        """See `Store.commit`."""
        own, vault = self._work, self.address.vault
        connection = own.connection or self._lock_head(own.stack)
        self._refuse_raced(connection, steps)
        self._refuse_obstacles(steps)
        gone = [step.path for step in steps if step.after is None]
        put = [(_describe_file(step), step.after) for step in steps if step.after is not None]
        with connection.pipeline():
            connection.cursor().executemany(KEEP, [(vault, file.hash, data) for file, data in put])
            connection.execute(_REMOVE, [vault, gone])
            connection.cursor().executemany(_PUT, [(vault, *file) for file, _ in put])
            added = sum(step.before is None for step in steps) - len(gone)
            more = sum(file.size for file, _ in put) - sum(len(s.before.data) for s in steps if s.before)
            ((seq, count, size),) = connection.execute(_ADVANCE, [entry.id, added, more, vault]).fetchall()
            if not all(step.path.startswith(".mdmem/") for step in steps):  # which may raise the limit
                with contextlib.suppress(ConfigInvalid):
                    files_there, bytes_there = count if added > 0 else 0, size if more > 0 else 0
                    refuse_too_much(self.name, self.config, files_there, bytes_there)
            insert_entry(connection, vault, seq, entry, {step.path for step in steps})
        self.database.commit(connection, lambda other: self.was_made(other, entry), f"change {entry.id}")
        # The change is made. If a later step fails, the next question does it again.
        own.connection, own.has_looked = None, False
        with contextlib.suppress(MdmemError, OSError, psycopg.Error, sqlite3.Error):
            own.stack.close()
            self._take_own(seq, entry, gone, put)

    def _refuse_raced(self, connection: Connection, steps: Sequence[Step]) -> None:
        """Refuse steps with another base than the database has, and put right what a hand changed."""
        statement = "SELECT path, hash FROM mdmem.file WHERE vault = %s AND path = ANY(%s)"
        values = [self.address.vault, [step.path for step in steps]]
        hashes: dict[str, str] = dict(connection.execute(statement, values).fetchall())
        for step in steps:
            if hashes.get(step.path) != hashed(step.before.data if step.before else None):
                if self._hash_file(self.spelled(step.path) or step.path) != hashes.get(step.path):
                    self._add_note(
                        f"{step.path}: what this machine's copy of the vault held otherwise is gone"
                    )
                    with self._hold_copy(), self._open_notes() as notes:
                        self._take_in(connection, [step.path])
                        if known := _read_state(notes):
                            self._note_state(notes, known._replace(epoch=os.urandom(8).hex()))
                raise Raced(step.path)

    def _refuse_obstacles(self, steps: Sequence[Step]) -> None:
        """Refuse a file below another one, or where a folder stays: the copy is as the database is."""
        gone = {step.path for step in steps if step.after is None}
        for step in (step for step in steps if step.before is None and step.after is not None):
            blocks = (each for each in above(step.path) if each not in gone)
            if any(os.path.isfile(os.path.join(self.root, each)) for each in blocks):
                raise files.refusal(OSError(errno.ENOTDIR, ""), step.path, "write it")
            below = (found.path for found in self.walk(Namespace(step.path), ("",)))
            if self.names(step.path) and any(path not in gone for path in below):
                raise files.refusal(OSError(errno.EISDIR, ""), step.path, "write it")

    def was_made(self, connection: Connection, entry: Entry) -> bool:
        """Return whether the history has a change; waits for who makes one."""
        vault = self.address.vault
        connection.execute(LOCK_HEAD, [vault])
        statement = "SELECT FROM mdmem.entry WHERE vault = %s AND id = %s"
        return bool(connection.execute(statement, [vault, entry.id]).fetchall())

    def _take_own(
        self, seq: int, entry: Entry, gone: Iterable[str], put: Iterable[tuple[StoredFile, bytes]]
    ) -> None:
        with self._hold_copy(), self._open_notes() as notes:
            known = _read_state(notes)
            if known and known.seq == seq - 1 and known == self._state:
                for path in gone:
                    self._remove_file(self.spelled(path) or path)
                for file, data in put:
                    self._write_file(file, data)
                self._note_state(notes, known._replace(seq=seq, id=entry.id))

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """See `Store.entries`."""
        return self._read_entries(1 << 62, folder)

    def _read_entries(self, end: int, folder: str = "") -> Iterator[Entry]:
        """Yield the changes of a folder with numbers below `end`, the newest first."""
        last, vault = end, self.address.vault
        below = [vault, folder, f"{folder}/", f"{folder}0"] if folder else []  # 0 is the sign behind /
        query = _READ_BELOW if folder else _READ_ENTRIES
        while True:
            with self.database.translated("read its history"):
                rows = self.database.ask(query, [vault, last, *below, _MOST_ENTRIES])
            for last, shape in rows:  # noqa: B007 - where the next ones begin
                entry = entry_from(json.loads(shape.decode("utf-8", "surrogatepass")))
                if entry.files:  # else it is one of the vault's own files, or was erased
                    yield entry
            if len(rows) < _MOST_ENTRIES:
                return

    def kept(self, digest: str) -> Content | None:
        """See `Store.kept`."""
        statement = "SELECT data FROM mdmem.content WHERE vault = %s AND hash = %s"
        with self.database.translated("read a version"):
            rows = self.database.ask(statement, [self.address.vault, digest])
        data = rows[0][0] if rows else None
        if data is None or hashed(data) != digest:
            return None
        return Content(data, files.NEW_FILE, os.getuid(), os.getgid(), (0, 0, 0, 0))

    @property
    def uses(self) -> PostgresUses:
        """The counts of use, of all servers."""
        return PostgresUses(self.database)

    def find_vectors(self, model: str, owner: str) -> PostgresVectors:
        """See `LocalStore.find_vectors`: all servers have the same."""
        return PostgresVectors(self.database, model, owner)

    # -- logs ---------------------------------------------------------------------------------------------

    def log(self, path: str) -> contextlib.AbstractContextManager[LogFile]:
        """See `Store.log`."""
        self.recover()
        return super().log(path)

    @contextlib.contextmanager
    def appending(self, *paths: str) -> Iterator[tuple[PostgresLog, ...]]:
        """See `Store.appending`.

        The rows of the logs are locked, in sorted order, until the end of the block, which commits.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.database.translated("append to a log"))
            # The most of a log is fetched here, before it is locked, so that others wait less.
            if not all(self._measure_log(path) >= 0 for path in paths) or not self._is_current(but_logs=True):
                self.recover()
            connection = stack.enter_context(self.database.begun())
            rows = {path: lock_log(connection, self.address.vault, path) for path in sorted(set(paths))}
            with self._hold_copy(), self._open_notes() as notes:
                for path, (identifier, size) in rows.items():
                    self._take_in_log(connection, notes, path, identifier, size)
                notes.commit()
            vault = self.address.vault
            logs = {path: PostgresLog(self.root, path, connection, vault, row) for path, row in rows.items()}
            for log in logs.values():
                stack.enter_context(log.opened(writing=False))
            try:
                yield tuple(logs[path] for path in paths)
            except psycopg.Error:
                raise
            except BaseException:
                self._commit_logs(connection, logs.values())  # what was added before stays, as in a folder
                raise
            self._commit_logs(connection, logs.values())

    def _commit_logs(self, connection: Connection, logs: Collection[PostgresLog]) -> None:
        changed = [log for log in logs if log.is_changed]
        if not changed:
            return
        for log in changed:
            log.write_row()
        self.database.commit(connection, changed[0].has_mark, f"what was added to {changed[0].path}")
        # The change is made. If a later step fails, the next question does it again.
        self._work.has_looked = False
        with contextlib.suppress(MdmemError, OSError, psycopg.Error, sqlite3.Error):
            if any(log.is_replaced or log.others for log in changed):
                self.recover()
                return
            with self._hold_copy(), self._open_notes() as notes:
                for log in changed:
                    if not log.start or self._measure_log(log.path) == log.start:
                        self._extend_log(notes, log.path, log.identifier, log.start, [bytes(log.added)])
                notes.commit()


def refuse_too_much(vault: str, config: Config, files: int, size: int) -> None:
    """Refuse more files, or more bytes in all of them, than a vault in a database may hold."""
    for there, most, of in (files, _MOST_FILES, "files"), (size, config.team.max_bytes, "bytes of the files"):
        if there > most:
            remedy = "remove some, or begin another vault"
            raise LimitReached(what=f"{vault}: the {of} of a vault", limit=most, remedy=remedy)


def write_shape(entry: Entry) -> bytes:
    """Write a change as its row holds it."""
    shape = json.dumps(as_json(entry), ensure_ascii=False, separators=(",", ":"))
    return shape.encode("utf-8", "surrogatepass")


def insert_entry(connection: Connection, vault: str, seq: int, entry: Entry, paths: Iterable[str]) -> None:
    """Add a change to the history, and the paths that it touched."""
    connection.execute(_RECORD, [vault, seq, entry.id, write_shape(entry)])
    connection.cursor().executemany(_TOUCH, [(vault, path, seq) for path in paths])


def _describe_file(step: Step) -> StoredFile:
    like, data = step.before or step.like, step.after or b""
    mode = like.mode if like else files.NEW_FILE
    return StoredFile(step.path, step.spelled, digest_of(data), len(data), mode, time.time_ns())


def _connect_notes(path: str) -> sqlite3.Connection:
    notes = sqlite3.connect(path)
    try:
        notes.execute("PRAGMA synchronous = OFF")  # the boot says whether the power was lost
        notes.execute("PRAGMA secure_delete = ON")  # the name of a log may be erased
        for table in _NOTED:
            notes.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        _read_state(notes)
    except sqlite3.DatabaseError:
        notes.close()
        raise
    return notes


def _read_state(notes: sqlite3.Connection) -> CopyState | None:
    row = notes.execute("SELECT seq, id, boot, started, xmin, epoch FROM state").fetchone()
    return CopyState(*row) if row else None


def _read_boot() -> str:
    """Return what names the run of this machine; empty where the system does not say."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def split_batches(wanted: Iterable[StoredFile]) -> Iterator[dict[str, StoredFile]]:
    """Yield files by path, as many as may be in memory at once."""
    batch: dict[str, StoredFile] = {}
    size = 0
    for file in wanted:
        if batch and size + file.size > _MOST_FETCHED:
            yield batch
            batch, size = {}, 0
        batch[file.path] = file
        size += file.size
    if batch:
        yield batch
