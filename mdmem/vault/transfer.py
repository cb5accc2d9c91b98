"""Copying a vault, with its past, to a folder or a database that holds nothing else.

What is there already must be what would be written: so a copy that was killed goes on, and nothing is
written over. A folder becomes a vault with its last file, the config. Hidden files are none of a vault.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from mdmem.document.document import digest as digest_of
from mdmem.document.text.tokens import first_of
from mdmem.errors import EditRefused, MemoryNotFound, StorageFailed
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH, DEFAULT_TEXT
from mdmem.vault.connection import Connection
from mdmem.vault.files import Content, Raced
from mdmem.vault.folder import add_ignores, find_missing_ignores, refuse_nested, takes_ignores
from mdmem.vault.local_store import LOCAL, LOCK_SECONDS, LocalStore
from mdmem.vault.log import LogFile
from mdmem.vault.paths import is_hidden, nfc
from mdmem.vault.postgres import (
    KEEP,
    LOCK_HEAD,
    PostgresStore,
    StoredFile,
    insert_entry,
    list_places,
    may_stand,
    refuse_too_much,
    split_batches,
)
from mdmem.vault.postgres_log import PostgresLog, lock_log
from mdmem.vault.store import MOST_ATTACHED_BYTES, Entry

_LOG = re.compile(r"(?:.*/)?sessions/(?:[^/]+\.jsonl|\.archive/[^/]+/[^/]+)")
_BLOCK, _AT_ONCE, _NAMED = 1 << 20, 200, 5  # bytes and changes that are written at once; files that are named
_INCOMING, _PART = f"{LOCAL}/incoming", "copied"
_ADD = "INSERT INTO mdmem.file VALUES (%s, %s, %s, %s, %s, %s, %s)"
_LEAVE = """
UPDATE mdmem.head SET seq = %s, id = %s, origin = %s, files = files + %s, bytes = bytes + %s WHERE vault = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedVault:
    """What was copied, without what was there already.

    Attributes:
        files, logs, versions, changes: how many; versions are what files held before.
        bytes: of the files and logs.
        left_out: the files that no vault in a database may have: links, devices, names that no path may have,
            files of more than 64 MiB, and logs with holes.
        mounted: the memories that the config mounts, which are files of the copy.
        notes: what is damaged, and is not copied.
    """

    files: int
    logs: int
    versions: int
    changes: int
    bytes: int
    left_out: tuple[str, ...]
    mounted: tuple[str, ...]
    notes: tuple[str, ...]


def copy(source: LocalStore, target: LocalStore, *, dry_run: bool = False) -> CopiedVault:
    """Copy the files of a vault with their times, its logs, history, versions that this names, and uses.

    Nobody changes memories of a folder meanwhile; a database is copied as it is at the start.

    Args:
        target: a database with an empty vault, a folder that is empty or not there, or what a copy that was
            killed has left.

    Raises:
        EditRefused: the target holds what the source does not, or is the source.
        LimitReached: it is more than a vault in a database may hold.
        ConfigInvalid: the config of the source cannot be read.
        MemoryNotFound: a program that takes no lock removed a file meanwhile.
        LockTimeout, StorageFailed, DatabaseFailed, NotKnown: the same call goes on.
    """
    to = _TargetDatabase(target) if isinstance(target, PostgresStore) else _TargetFolder(target)
    if source.root == target.root:
        raise EditRefused(path=target.name, reason="a vault cannot be copied to itself")
    with source.pinned(compares=True) as entries:
        given = _Held(source, source.mounts, entries)
        given.add_config()
        to.refuse(given)
        notes: list[str] = []
        with contextlib.nullcontext() if dry_run else to.opened():
            there = _Held(target, {}, target.entries())
            _refuse_others(given, there, to)
            lacking = [path for path in given.files if path not in there.files]
            changes = given.changes[len(there.changes) :]
            named = (h for entry in given.changes for file in entry.files for h in (file.before, file.after))
            versions = [h for h in dict.fromkeys(named) if h and not target.kept(h) and source.kept(h)]
            if not dry_run:
                to.put_files(given, lacking)
                to.put_versions(source, versions)
                to.put_changes(changes)
                notes += _copy_uses(source, target)
                to.end(given)
    logs = sum(map(_is_log, lacking))
    return CopiedVault(
        files=len(lacking) - logs,
        logs=logs,
        versions=len(versions),
        changes=len(changes),
        bytes=sum(given.files[path].size for path in lacking),
        left_out=tuple(given.left_out),
        mounted=tuple(path for path in source.config.mounts if path in given.files),
        notes=(*source.notes, *notes),
    )


def _copy_uses(source: LocalStore, target: LocalStore) -> Iterator[str]:
    """Copy the counts of use; yield a note where they cannot be read, which keeps nothing else back."""
    try:
        uses = source.uses.list_counts()
    except StorageFailed as error:
        yield f"the counts of use are not copied: {error.message}"
    else:
        target.uses.put(uses)


def _refuse_others(given: _Held, there: _Held, to: _TargetFolder | _TargetDatabase) -> None:
    other = [path for path in there.files if given.hash(path) != there.hash(path)] + there.left_out
    is_ended = (
        bool(there.changes) and isinstance(to, _TargetDatabase) and given.files.keys() != there.files.keys()
    )
    if is_ended or there.changes != given.changes[: len(there.changes)]:
        other.append("changes of its own")
    if other:
        reason = f"it holds what {given.store.name} does not: {first_of(other, _NAMED)}"
        remedy = "name a vault that is empty; and while a copy is made, let nobody change either one"
        raise EditRefused(path=there.store.name, reason=reason, remedy=remedy)


def _is_log(path: str) -> bool:
    return _LOG.fullmatch(path) is not None


class _Held:
    """What a vault holds.

    Attributes:
        files: those that a vault may have, and its logs, by path; their hashes are empty.
        left_out: the places of others; those that are hidden are passed over.
        changes: of the history, the oldest first.
    """

    def __init__(
        self, store: LocalStore, mounts: Mapping[str, Sequence[str]], entries: Iterable[Entry]
    ) -> None:
        self.store, self._mounts = store, mounts
        self.changes = [*entries][::-1]
        self.files: dict[str, StoredFile] = {}
        self.left_out: list[str] = []
        for path, parts in mounts.items():
            self._add(path, os.path.join(store.workspace, *parts))
        # Of two Unicode spellings, the one in normal form is read.
        for place in sorted(list_places(store.root), key=lambda place: (nfc(place) != place, place)):
            if nfc(place) not in mounts:
                self._add(place, os.path.join(store.root, place))

    def add_config(self) -> None:
        """Put the config last among the files; make one if there is none."""
        size, now = len(DEFAULT_TEXT.encode()), time.time_ns()
        default = StoredFile(CONFIG_PATH, "", "", size, files.NEW_FILE, now)
        self.files[CONFIG_PATH] = self.files.pop(CONFIG_PATH, default)

    def _add(self, place: str, full: str) -> None:
        path = nfc(place)
        if not may_stand(path, place, is_log=_is_log(path)):
            if not any(map(is_hidden, path.split("/"))):
                self.left_out.append(place)
            return
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(full)
            size, mode, mtime = status.st_size, stat.S_IMODE(status.st_mode) & 0o777, status.st_mtime_ns
            is_new = stat.S_ISREG(status.st_mode) and path not in self.files
            if is_new and self._fits(path, place, size):
                self.files[path] = StoredFile(path, place if place != path else "", "", size, mode, mtime)
            else:
                self.left_out.append(place)

    def _fits(self, path: str, place: str, size: int) -> bool:
        if not _is_log(path):
            return size <= MOST_ATTACHED_BYTES
        with LogFile(self.store.root, place).opened(writing=False) as log:
            return not log.holes  # which a stranger may have made: they are no bytes, and would become some

    def read(self, path: str) -> bytes:
        place, is_exact = self.files[path].place, path not in self._mounts
        content = self.store.read(place, MOST_ATTACHED_BYTES, exact=is_exact)
        if content is None and path != CONFIG_PATH:
            raise MemoryNotFound(path=path)
        return content.data if content else DEFAULT_TEXT.encode()

    def read_blocks(self, path: str) -> Iterator[bytes]:
        """Yield the content of a file, or of a log in blocks."""
        if not _is_log(path):
            yield self.read(path)
            return
        with LogFile(self.store.root, self.files[path].place).opened(writing=False) as log:
            for start in range(0, log.size, _BLOCK):
                yield log.read(start, min(start + _BLOCK, log.size))

    def hash(self, path: str) -> str:
        """Return the hash of a file or a log; empty if there is none."""
        found = sha256()
        for block in self.read_blocks(path) if path in self.files else ():
            found.update(block)
        return found.hexdigest() if path in self.files else ""


class _TargetFolder:
    """A folder that a vault is copied to."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def refuse(self, given: _Held) -> None:  # noqa: ARG002 - there is as much room as the disk has
        refuse_nested(self._store.root)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        with files.translated(self._store.root, "make it"):
            os.makedirs(self._store.root, files.NEW_FOLDER, exist_ok=True)
        with self._store.locked(LOCK_SECONDS):
            yield

    def put_files(self, given: _Held, paths: Iterable[str]) -> None:
        """Write files, each at once; the config is left to `end`."""
        for path in paths:
            if path != CONFIG_PATH:
                self._put_file(given, path)

    def _put_file(self, given: _Held, path: str) -> None:
        file, root = given.files[path], self._store.root
        like = Content(b"", file.mode, os.getuid(), os.getgid(), (0, 0, 0, 0))
        *folders, name = file.place.split("/")
        with (
            files.translated(path, "write it"),
            files.opened(root, _INCOMING.split("/"), create=True) as incoming,
            files.opened(root, folders, create=True, exact=True) as folder,
        ):
            files.remove(incoming, _PART)
            files.write_new(incoming, _PART, given.read_blocks(path), like)
            os.utime(_PART, ns=(file.mtime, file.mtime), dir_fd=incoming)
            try:
                files.move((incoming, _PART), (folder, name))
            except Raced:
                raise EditRefused(path=path, reason="another program made it meanwhile") from None
            os.fsync(folder)

    def put_versions(self, source: LocalStore, hashes: Iterable[str]) -> None:
        with files.translated(LOCAL, "keep versions"):
            for hash_ in hashes:
                if kept := source.kept(hash_):
                    self._store.trash.keep(kept.data, hash_, kept)

    def put_changes(self, changes: Sequence[Entry]) -> None:
        self._store.trash.record(*changes)

    def end(self, given: _Held) -> None:
        """Make a vault of the folder."""
        root = self._store.root
        if takes_ignores(root) and (missing := find_missing_ignores(root)):
            add_ignores(root, missing)
        if not os.path.lexists(os.path.join(root, CONFIG_PATH)):
            self._put_file(given, CONFIG_PATH)


class _TargetDatabase:
    """A vault in a database that another one is copied to, in several transactions.

    Until the first change of the history, each that adds files makes it another vault, so that copies compare
    everything.
    """

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._vault = store.address.vault
        self._head, self._origin = (0, ""), ""

    def refuse(self, given: _Held) -> None:
        """Refuse more than a vault in a database may hold; look at what it holds."""
        self._store.recover()
        sizes = [file.size for path, file in given.files.items() if not _is_log(path)]
        refuse_too_much(self._store.name, given.store.config, len(sizes), sum(sizes))

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Note the state, which nobody else may change from here on, and look at what is held."""
        statement = "SELECT seq, id, origin FROM mdmem.head WHERE vault = %s"
        with self._store.database.translated("copy to it"):
            ((seq, id_, self._origin),) = self._store.database.ask(statement, [self._vault])
        self._head = seq, id_
        self._store.recover()
        yield

    @contextlib.contextmanager
    def _changing(self, added: int, size: int, changes: Sequence[Entry] = ()) -> Iterator[Connection]:
        database = self._store.database
        with database.translated("copy to it"), database.begun() as connection:
            if connection.execute(LOCK_HEAD, [self._vault]).fetchone() != self._head:
                raise EditRefused(path=self._store.name, reason="somebody else changed it meanwhile")
            yield connection
            self._origin = self._origin if changes else os.urandom(8).hex()
            seq, _ = self._head
            head = seq + len(changes), changes[-1].id if changes else self._origin
            connection.execute(_LEAVE, [*head, self._origin, added, size, self._vault])
            is_made = lambda other: other.execute(LOCK_HEAD, [self._vault]).fetchone() == head  # noqa: E731
            database.commit(connection, is_made, "a part of the copy")
            self._head = head

    def put_files(self, given: _Held, paths: Iterable[str]) -> None:
        lacking = {path: given.files[path] for path in paths}
        for batch in split_batches(file for path, file in lacking.items() if not _is_log(path)):
            contents = {path: given.read(path) for path in batch}
            put = [
                file._replace(hash=digest_of(contents[path]), size=len(contents[path]))
                for path, file in batch.items()
            ]
            with self._changing(len(put), sum(file.size for file in put)) as connection:
                kept = [(self._vault, file.hash, contents[file.path]) for file in put]
                connection.cursor().executemany(KEEP, kept)
                connection.cursor().executemany(_ADD, [(self._vault, *file) for file in put])
        for path in filter(_is_log, lacking):
            with self._store.database.translated("copy to it"), self._store.database.begun() as connection:
                row = lock_log(connection, self._vault, path)
                log = PostgresLog("", path, connection, self._vault, row)
                log.fill(given.read_blocks(path), lacking[path].mtime)
                connection.execute("COMMIT")

    def put_versions(self, source: LocalStore, hashes: Iterable[str]) -> None:
        with self._store.database.translated("copy to it"):
            for hash_ in hashes:
                if kept := source.kept(hash_):
                    with self._store.database.begun() as connection:
                        connection.execute(KEEP, [self._vault, hash_, kept.data])
                        connection.execute("COMMIT")

    def put_changes(self, changes: Sequence[Entry]) -> None:
        for start in range(0, len(changes), _AT_ONCE):
            some = changes[start : start + _AT_ONCE]
            with self._changing(0, 0, some) as connection:
                last, _ = self._head
                for seq, entry in enumerate(some, last + 1):
                    insert_entry(connection, self._vault, seq, entry, {file.path for file in entry.files})

    def end(self, given: _Held) -> None:
        """Do nothing more."""
