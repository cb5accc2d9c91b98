"""The upkeep of a vault in PostgreSQL: its own files, whether it is sound, and what of the past goes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.document import parse
from mdmem.errors import Invalid, MdmemError, MemoryNotFound
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.connection import DIMS, Connection
from mdmem.vault.folder import find
from mdmem.vault.paths import Namespace, check_folder, decode_id, is_under
from mdmem.vault.postgres import LOCK_HEAD, PostgresStore, insert_entry, write_shape
from mdmem.vault.store import MOST_ATTACHED_BYTES, FileChange, Step, Store, changed_by, entry_from, new_entry
from mdmem.vault.vault import Vault

_AT_ONCE = 1_000  # entries that are read at once
_PAST = """
SELECT hash, octet_length(data) FROM mdmem.content c WHERE vault = %s
AND NOT EXISTS (SELECT FROM mdmem.file f WHERE f.vault = c.vault AND f.hash = c.hash)
"""
_NEWEST = "SELECT seq, shape FROM mdmem.entry WHERE vault = %s AND seq < %s ORDER BY seq DESC LIMIT %s"
_OLDEST = "SELECT seq, shape FROM mdmem.entry WHERE vault = %s AND seq > %s ORDER BY seq LIMIT %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptVault:
    """What was removed: changes of the history, versions of files that nothing holds now, and their bytes."""

    entries: int
    versions: int
    bytes: int


def sweep(store: PostgresStore, *, dry_run: bool = False) -> SweptVault:
    """Remove the oldest versions and changes, until `[trash]` in the config allows the rest.

    What the last change replaced stays, unless nothing at all is to be kept.

    Raises:
        DatabaseFailed: the database refused; to remove needs more rights than servers have.
        LockTimeout: a change does not end.
    """
    store.recover()
    with store.database.translated("sweep it"), store.database.begun() as connection:
        # With the lock, nobody can bring back a version while its bytes are deleted.
        connection.execute(LOCK_HEAD, [store.address.vault])
        swept, gone, first = _choose(store, connection)
        if not dry_run:
            vault = store.address.vault
            connection.execute("DELETE FROM mdmem.entry WHERE vault = %s AND seq < %s", [vault, first])
            connection.execute("DELETE FROM mdmem.touched WHERE vault = %s AND seq < %s", [vault, first])
            statement = "DELETE FROM mdmem.content WHERE vault = %s AND hash = ANY(%s)"
            connection.execute(statement, [vault, gone])
            connection.execute("COMMIT")
        return swept


def _choose(store: PostgresStore, connection: Connection) -> tuple[SweptVault, list[str], int]:
    """Return what goes: also the hashes of the versions, and the number of the first change that stays."""
    policy, vault = store.config.trash, store.address.vault
    oldest = (datetime.now(UTC) - timedelta(days=policy.max_days)).isoformat(timespec="milliseconds")
    past: dict[str, int] = dict(connection.execute(_PAST, [vault]).fetchall())
    ((last,),) = connection.execute("SELECT seq FROM mdmem.head WHERE vault = %s", [vault]).fetchall()
    # The oldest first, so that a clock that once went back does not delete what came before.
    gone = list(takewhile(lambda each: each.seq < last and each.time < oldest, _read(connection, vault)))
    first = gone[-1].seq + 1 if gone else 0
    kept, size = set[str](), 0
    for seq, _, hashes in _read(connection, vault, newest=True):
        if seq < first:
            break
        for hash_ in hashes & past.keys() - kept:
            size += past[hash_]
            if policy.max_bytes and (size <= policy.max_bytes or seq == last):
                kept.add(hash_)
    lost = [hash_ for hash_ in past if hash_ not in kept]
    swept = SweptVault(entries=len(gone), versions=len(lost), bytes=sum(past[hash_] for hash_ in lost))
    return swept, lost, first


class _PastChange(NamedTuple):
    seq: int
    time: str
    hashes: set[str]


def _read(connection: Connection, vault: str, *, newest: bool = False) -> Iterator[_PastChange]:
    behind, statement = (1 << 62, _NEWEST) if newest else (-1, _OLDEST)
    while rows := connection.execute(statement, [vault, behind, _AT_ONCE]).fetchall():
        for behind, shape in rows:
            entry = json.loads(shape.decode("utf-8", "surrogatepass"))
            hashes = {file[key] for file in entry["files"] for key in ("before", "after")}
            yield _PastChange(behind, entry["time"], hashes)


# -- the vault's own files ----------------------------------------------------------------------------------


def put(store: PostgresStore, folder: str, *, dry_run: bool = False) -> tuple[FileChange, ...]:
    """Give a vault the config, schemas and templates of a folder, and no others; return what changes."""
    given = Vault(find(folder))
    _ = given.config  # which may be invalid
    found = (*given.schemas.lint(), *given.templates.lint())
    if wrong := tuple(each for each in found if each.severity == "error"):
        raise Invalid(findings=wrong)
    wanted = _read_own(given.store)
    with store.writing():
        there = _read_own(store)
        changed = sorted(path for path in wanted | there if wanted.get(path) != there.get(path))
        steps = [
            Step(path, store.read(path, MOST_ATTACHED_BYTES, exact=True), wanted.get(path))
            for path in changed
        ]
        if steps and not dry_run:
            # These files are no memories: `undo` takes nothing of them back.
            store.commit(new_entry(given.actor, "put the vault's own files", ()), steps)
    return changed_by(steps)


def _read_own(store: Store) -> dict[str, bytes]:
    folders = (Namespace(".mdmem/schemas"), Namespace(".mdmem/templates"))
    found = [each.path for folder in folders for each in store.walk(folder, (".json", ".md"))]
    read = ((path, store.read(path, MOST_ATTACHED_BYTES, exact=True)) for path in (CONFIG_PATH, *found))
    return {path: content.data for path, content in read if content}


# -- whether it is sound ------------------------------------------------------------------------------------

_RESTORE = "restore the database from a backup"
_FAULTS = {
    "content-damaged": """
        SELECT coalesce(path, c.hash), 'what the database holds of it is damaged' FROM mdmem.content c
        LEFT JOIN mdmem.file f USING (vault, hash)
        WHERE c.vault = %s AND (encode(sha256(data), 'hex') <> c.hash OR size <> octet_length(data))
    """,
    "log-damaged": """
        SELECT path, 'parts of the log are missing' FROM mdmem.log l WHERE vault = %s AND id <> ''
        AND size <> (SELECT coalesce(sum(octet_length(data)), 0) FROM mdmem.chunk
            WHERE (vault, log) = (l.vault, l.id))
    """,
    "log-orphan": """
        SELECT DISTINCT log, 'it is part of a log that no path has' FROM mdmem.chunk c
        WHERE vault = %s AND NOT EXISTS (SELECT FROM mdmem.log WHERE (vault, id) = (c.vault, c.log))
    """,
    "head-wrong": """
        SELECT vault, 'its newest change is not the last one of its history' FROM mdmem.head h
        WHERE vault = %s AND seq > 0
        AND NOT EXISTS (SELECT FROM mdmem.entry WHERE (vault, seq, id) = (h.vault, h.seq, h.id))
    """,
    "count-wrong": """
        SELECT h.vault, 'it counts its files or their bytes wrong' FROM mdmem.head h
        LEFT JOIN mdmem.file f USING (vault) WHERE h.vault = %s GROUP BY h.vault, files, bytes
        HAVING (files, bytes) <> (count(path), coalesce(sum(size), 0))
    """,
}


def check(store: PostgresStore) -> list[Diagnostic]:
    """List what is wrong with the tables of a vault; this machine's copy is compared, and put right."""
    with store.pinned(compares=True), store.database.translated("check it"):
        found = [about_file(store.name, "copy-differs", note) for note in store.notes]
        for code, statement in _FAULTS.items():
            rows = store.database.ask(statement, [store.address.vault])
            found += [about_file(name, code, message, _RESTORE) for name, message in rows]
        try:
            for _ in store.entries():
                pass
        except (ValueError, KeyError, TypeError):
            found.append(about_file(store.name, "history-damaged", "a change cannot be read", _RESTORE))
    return found


# -- what is to be gone -------------------------------------------------------------------------------------

_AT = "WHERE vault = %s AND (path = %s OR path >= %s AND path < %s)"
_DROP = """
DELETE FROM mdmem.content c WHERE vault = %s AND hash = ANY(%s)
AND NOT EXISTS (SELECT FROM mdmem.file f WHERE f.vault = c.vault AND f.hash = c.hash)
"""
_DELETE, _LOGS = "DELETE FROM mdmem.", "SELECT id FROM mdmem.log"
_SEQS = "SELECT DISTINCT seq FROM mdmem.touched"
_PATHS = "SELECT DISTINCT path FROM mdmem.touched"
_RETELL = "UPDATE mdmem.entry SET shape = %s WHERE vault = %s AND seq = %s"
_WITH_PATHS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'mdmem' AND column_name IN ('path', 'namespace')
"""
_ERASED = """
UPDATE mdmem.head SET seq = %s, erased = %s, id = %s, files = files - %s, bytes = bytes - %s WHERE vault = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedMemory:
    """What was erased, or would be.

    Attributes:
        files, logs, versions, changes: how many; of the changes, what they tell of it.
        named: the other paths at which the same bytes stand, or once stood.
    """

    files: int
    logs: int
    versions: int
    changes: int
    named: tuple[str, ...]


def erase(store: PostgresStore, path: str, *, dry_run: bool = False) -> ErasedMemory:
    """Remove a memory, a session or a folder, and all that the vault ever held of it; nothing brings it back.

    Versions and logs go, and what the history, the counts of use and vectors say of it. Every copy drops what
    it made of memories when it follows.

    Raises:
        MemoryNotFound: the vault holds nothing of it.
        DatabaseFailed: the database refused; to remove needs more rights than servers have.
    """
    name, vault = check_folder(path), store.address.vault
    paths = [name]
    if name.endswith(".jsonl"):
        folder, _, key = name.rpartition("/")
        paths.append(f"{folder}/.archive/{key.removesuffix('.jsonl')}")
    entry = new_entry("", "erase", ())
    with store.database.translated("erase it"), store.database.begun() as connection:
        ((seq, _),) = connection.execute(LOCK_HEAD, [vault]).fetchall() or ((0, ""),)
        files, logs, changes, hashes, named = [], 0, 0, set[str](), set[str]()
        for each in paths if name else ():
            at = [vault, each, f"{each}/", f"{each}0"]  # 0 is the sign behind /
            kept = {path for (path,) in connection.execute(f"{_PATHS} {_AT}", at)}
            count, found, others = _erase_history(connection, at)
            changes, hashes, named = changes + count, hashes | found, named | others
            logs += _erase_logs(connection, at)
            files += connection.execute(f"{_DELETE}file {_AT} RETURNING hash, size", at).fetchall()
            _erase_vectors(connection, vault, kept, found | {hash_ for hash_, _ in files})
            for table, column in connection.execute(_WITH_PATHS).fetchall():
                connection.execute(f"{_DELETE}{table} {_AT.replace('path', column)}", at)
        if not (files or logs or changes):
            raise MemoryNotFound(path=path)
        hashes |= {hash_ for hash_, _ in files}
        statement = "SELECT path FROM mdmem.file WHERE vault = %s AND hash = ANY(%s)"
        named |= {other for (other,) in connection.execute(statement, [vault, [*hashes]])}
        versions = connection.execute(_DROP, [vault, [*hashes]]).rowcount
        insert_entry(connection, vault, seq + 1, entry, ())
        size = sum(size for _, size in files)
        connection.execute(_ERASED, [seq + 1, seq + 1, entry.id, len(files), size, vault])
        if not dry_run:
            store.database.commit(connection, lambda other: store.was_made(other, entry), "the erasure")
    if not dry_run:
        with contextlib.suppress(MdmemError):  # it is done: the next question drops what this copy holds
            store.recover()
    return ErasedMemory(
        files=len(files), logs=logs, versions=versions, changes=changes, named=tuple(sorted(named))
    )


def _erase_vectors(connection: Connection, vault: str, paths: set[str], hashes: set[str]) -> None:
    """Remove the vectors of memories, which programs keep by id: the field of any version, or the name."""
    if not connection.execute(DIMS).fetchall():
        return
    keys = {decode_id(path.rpartition("/")[2].rpartition(".")[0]) for path in paths}
    statement = "SELECT data FROM mdmem.content WHERE vault = %s AND hash = ANY(%s)"
    for (data,) in connection.execute(statement, [vault, [*hashes]]).fetchall():
        with contextlib.suppress(MdmemError):  # what is no memory has no field
            keys.add(str(parse("a.md", data).fields.get("id", "")))
    statement = "SELECT DISTINCT owner FROM mdmem.embedding WHERE vault = %s"
    for (owner,) in connection.execute(statement, [vault]).fetchall():
        if any(is_under(path, owner.partition(" ")[2]) for path in paths):
            statement = "DELETE FROM mdmem.embedding WHERE vault = %s AND owner = %s AND key = ANY(%s)"
            connection.execute(statement, [vault, owner, [*keys]])


def _erase_history(connection: Connection, at: list[str]) -> tuple[int, set[str], set[str]]:
    """Take a path out of the history; return of how many changes, its hashes, and who else had these."""
    seqs = [seq for (seq,) in connection.execute(f"{_SEQS} {_AT}", at)]
    statement = "SELECT seq, shape FROM mdmem.entry WHERE vault = %s AND seq = ANY(%s)"
    gone, others = set[FileChange](), set[FileChange]()
    for seq, shape in connection.execute(statement, [at[0], seqs]).fetchall():
        entry = entry_from(json.loads(shape.decode("utf-8", "surrogatepass")))
        left = tuple(file for file in entry.files if not is_under(file.path, at[1]))
        gone, others = gone | {*entry.files} - {*left}, others | {*left}
        values = [write_shape(entry._replace(files=left, message="erased")), at[0], seq]
        connection.execute(_RETELL, values)
    hashes = {hash_ for file in gone for hash_ in (file.before, file.after) if hash_}
    return len(seqs), hashes, {file.path for file in others if {file.before, file.after} & hashes}


def _erase_logs(connection: Connection, at: list[str]) -> int:
    # A writer that appends holds the row; after it, all that it added is seen.
    rows = connection.execute(f"{_LOGS} {_AT} FOR UPDATE", at).fetchall()
    logs = [id_ for (id_,) in rows if id_]
    connection.execute("DELETE FROM mdmem.chunk WHERE vault = %s AND log = ANY(%s)", [at[0], logs])
    return len(logs)
