"""The upkeep of a vault in PostgreSQL, by the owner of its tables: what of the past goes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from mdmem.vault.postgres import LOCK_HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.vault.connection import Connection
    from mdmem.vault.postgres import PostgresStore

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
    """Remove versions and changes, oldest first, that are older or more than `[trash]` in the config allows.

    What the last change replaced stays, unless nothing at all is to be kept.

    Raises:
        DatabaseFailed: the database refused; to remove needs more rights than servers have.
        LockTimeout: a change does not end.
    """
    store.recover()
    with store.database.translated("sweep it"), store.database.begun() as connection:
        # Nobody brings a version back meanwhile, whose bytes would go.
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
    # From the oldest on: a clock that went back for a while takes nothing before it along.
    gone = list(takewhile(lambda entry: entry[0] < last and entry[1] < oldest, _read(connection, vault)))
    first = gone[-1][0] + 1 if gone else 0
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


def _read(connection: Connection, vault: str, *, newest: bool = False) -> Iterator[tuple[int, str, set[str]]]:
    """Yield the changes by number: that, when each was made, and the hashes that it tells of."""
    behind, statement = (1 << 62, _NEWEST) if newest else (-1, _OLDEST)
    while rows := connection.execute(statement, [vault, behind, _AT_ONCE]).fetchall():
        for behind, shape in rows:
            entry = json.loads(shape.decode("utf-8", "surrogatepass"))
            yield behind, entry["time"], {file[key] for file in entry["files"] for key in ("before", "after")}
