"""The address of a vault in PostgreSQL, its tables, and the connections to it.

Nothing here depends on the state of a session: names carry their schema, limits are set for one transaction,
no statement is prepared. So a pooler may give each transaction another connection.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors as refused
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from mdmem.errors import AlreadyExists, DatabaseFailed, LockTimeout, NotKnown, Usage, VaultNotFound
from mdmem.vault.files import attempts

T = TypeVar("T")
Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

VERSION = 1
"""Of the tables."""
_LOCK_SECONDS, _IDLE_SECONDS, _STATEMENT_SECONDS = 10, 8, 60
_SILENT_SECONDS = 10  # of a connection that was made
_WAIT_SECONDS = 5  # for a connection: a database that is started again is back by then
_ASK_SECONDS = 10.0  # to ask whether a change was made, which nobody else can say
_REST_SECONDS = 1.0  # after a wait in vain, in which nobody else waits
_MOST_CONNECTIONS = 8  # of one process to one vault
_TRIES = 3  # to begin, where the server ended the connections that were kept
_GONE = "57P"  # how the codes begin by which a server says that it ends, or has only begun
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_REFUSED = {
    "password": "a password in a URL is seen by other processes, and kept in histories of shells",
    "options": "a pooler does not pass options on",
}
_LIMITS = (
    f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'; SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'"
)
_BEGIN = f"BEGIN; {_LIMITS}; SET LOCAL synchronous_commit = on"
_TABLES = """
CREATE SCHEMA mdmem;
CREATE TABLE mdmem.version (version integer NOT NULL);
CREATE TABLE mdmem.head (
    vault text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, id text NOT NULL, files bigint NOT NULL,
    origin text NOT NULL, bytes bigint NOT NULL DEFAULT 0, erased bigint NOT NULL DEFAULT 0
);
CREATE TABLE mdmem.content (
    vault text COLLATE "C", hash text COLLATE "C", data bytea NOT NULL, PRIMARY KEY (vault, hash)
);
CREATE TABLE mdmem.file (
    vault text COLLATE "C", path text COLLATE "C", spelled text NOT NULL, hash text COLLATE "C" NOT NULL,
    size bigint NOT NULL, mode integer NOT NULL, mtime bigint NOT NULL,
    PRIMARY KEY (vault, path), FOREIGN KEY (vault, hash) REFERENCES mdmem.content
);
CREATE INDEX ON mdmem.file (vault, hash);
CREATE TABLE mdmem.entry (
    vault text COLLATE "C", seq bigint, id text COLLATE "C" NOT NULL, shape bytea NOT NULL,
    PRIMARY KEY (vault, seq), UNIQUE (vault, id)
);
CREATE TABLE mdmem.touched (
    vault text COLLATE "C", path text COLLATE "C", seq bigint, PRIMARY KEY (vault, path, seq)
);
CREATE INDEX ON mdmem.touched (vault, seq);
CREATE TABLE mdmem.log (
    vault text COLLATE "C", path text COLLATE "C", id text COLLATE "C" NOT NULL, size bigint NOT NULL,
    mark text NOT NULL, xid xid8 NOT NULL, mtime bigint NOT NULL DEFAULT 0, PRIMARY KEY (vault, path)
);
CREATE INDEX ON mdmem.log (vault, xid);
CREATE TABLE mdmem.chunk (
    vault text COLLATE "C", log text COLLATE "C", start bigint, mark text NOT NULL, data bytea NOT NULL,
    PRIMARY KEY (vault, log, start)
);
CREATE TABLE mdmem.use (
    vault text COLLATE "C", path text COLLATE "C", namespace text COLLATE "C", count bigint NOT NULL,
    last bigint NOT NULL, PRIMARY KEY (vault, path, namespace)
);
"""

_VECTORS = """
SELECT set_config('search_path', 'mdmem,' || current_setting('search_path'), true);
CREATE EXTENSION IF NOT EXISTS vector SCHEMA mdmem;
CREATE TABLE mdmem.embedding (
    vault text COLLATE "C", owner text COLLATE "C", key text COLLATE "C", model text COLLATE "C",
    numbers vector({}) NOT NULL, PRIMARY KEY (vault, owner, key, model)
);
"""
# The type and its operators are where somebody put the extension, and a pooler knows no search path.
DIMS = """
SELECT a.atttypmod, quote_ident(n.nspname) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = to_regclass('mdmem.embedding') AND a.attname = 'numbers'
"""
"""Asks how many numbers each vector has, and for the schema of its type; no row without the table."""
_GRANTS = {
    "SCHEMA mdmem": "USAGE",
    "mdmem.version": "SELECT",
    "mdmem.head": "SELECT, UPDATE",
    "mdmem.content, mdmem.entry, mdmem.touched": "SELECT, INSERT",
    "mdmem.log": "SELECT, INSERT, UPDATE",
    "mdmem.chunk": "SELECT, INSERT, DELETE",
    "mdmem.file, mdmem.use": "SELECT, INSERT, UPDATE, DELETE",
}
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class Address(NamedTuple):
    """Where a vault is: the name that messages show, libpq's words for the database, and the vault's name."""

    shown: str
    conninfo: str
    vault: str


def read_address(url: str) -> Address:
    """Read `postgresql://…?vault=NAME`.

    Hosts other than this machine must prove their name (`sslmode=verify-full`), unless the URL says
    otherwise. Passwords come from libpq's own places: `~/.pgpass`, `PGPASSWORD`, a service file.

    Raises:
        Usage: it is no such URL, names no vault, or holds a password or options.
    """
    try:
        parts = urlsplit(url)
        values = parse_qsl(parts.query, keep_blank_values=True)
        own = urlencode([pair for pair in values if pair[0] != "vault"])
        bare = urlunsplit(parts._replace(query=own))
        known = conninfo_to_dict(bare)
    except (ValueError, psycopg.Error):
        remedy = "write postgresql://USER@HOST:PORT/DATABASE?vault=NAME"
        raise Usage(problem="the URL of a vault cannot be read", remedy=remedy) from None
    names = [value for key, value in values if key == "vault"]
    for key, reason in _REFUSED.items():
        if key in known:
            remedy = f"leave the {key} out of the URL"
            if key == "password":
                remedy += "; put it into ~/.pgpass"
            raise Usage(problem=reason, remedy=remedy)
    if len(names) != 1 or not _NAME.fullmatch(names[0]):
        problem = "the URL of a vault names it once, by up to 63 of A-Z, a-z, 0-9, '.', '_' and '-'"
        raise Usage(problem=problem, remedy="add ?vault=NAME to the URL")
    hosts = str(known.get("host") or os.environ.get("PGHOST", "")).split(",")
    is_here = all(host in {"", "localhost", "127.0.0.1", "::1"} or host[0] in "/@" for host in hosts)
    usual = {} if is_here else {"sslmode": "verify-full"}
    usual |= {"tcp_user_timeout": f"{_SILENT_SECONDS}000", "connect_timeout": f"{_WAIT_SECONDS}"}
    usual |= {"keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3"}
    more = urlencode({key: value for key, value in usual.items() if key not in known}, quote_via=quote)
    begun = f"{bare}&" if own else f"{bare}?"
    return Address(f"{begun}vault={names[0]}", f"{begun}{more}", names[0])


def make_tables(address: Address, dims: int = 0) -> bool:
    """Make a vault, and the tables where the database has none; return whether it made any.

    Args:
        address: of the vault; one that is there gets a table of vectors, where that is missing.
        dims: how many numbers the vectors of programs have; without it there is no table of them.

    Raises:
        Usage: the vectors of the database have another number of numbers.
        DatabaseFailed: the database refused; for tables, the user needs a right to make them.
    """
    with Connections(address).translated("make it"), _connect(address) as connection:
        _refuse_server(address, connection)
        connection.execute(_BEGIN)
        is_new = connection.execute("SELECT to_regclass('mdmem.version') IS NULL").fetchone() == (True,)
        more = _VECTORS.format(dims) if dims else ""
        for known, _ in connection.execute(DIMS).fetchall() if dims else ():
            if known != dims:
                problem = f"the vectors of this database have {known:,} numbers, and not {dims:,}"
                raise Usage(problem=problem, remedy="give that number, or name another database")
            more = ""
        if is_new:
            connection.execute(_TABLES)
            connection.execute("INSERT INTO mdmem.version VALUES (%s)", [VERSION])
        connection.execute(more)
        origin = os.urandom(8).hex()
        statement = "INSERT INTO mdmem.head VALUES (%s, 0, %s, 0, %s) ON CONFLICT DO NOTHING"
        made = connection.execute(statement, [address.vault, origin, origin])
        if not made.rowcount and not more:
            raise AlreadyExists(path=address.shown, remedy="it is a vault already: use it")
        connection.execute("COMMIT")
        return is_new or bool(more)


def list_grants(role: str, *, vectors: bool = False) -> tuple[str, ...]:
    """Return what the owner of the tables grants to the role of the servers, and nothing more, as SQL."""
    named = role if _PLAIN.fullmatch(role) else '"{}"'.format(role.replace('"', '""'))
    grants = _GRANTS | ({"mdmem.embedding": "SELECT, INSERT, UPDATE, DELETE"} if vectors else {})
    return tuple(f"GRANT {rights} ON {what} TO {named};" for what, rights in grants.items())


def _connect(address: Address) -> Connection:
    return psycopg.connect(address.conninfo, autocommit=True, prepare_threshold=None)


def _refuse_server(address: Address, connection: Connection) -> None:
    row = connection.execute("SELECT pg_is_in_recovery(), current_setting('fsync')").fetchone()
    if row != (False, "on"):
        is_standby = bool(row and row[0])
        reason = "it is a standby, which takes no changes" if is_standby else "its setting fsync is off"
        remedy = "name the primary server" if is_standby else "turn it on: without it a crash loses changes"
        raise DatabaseFailed(vault=address.shown, action="use this server", reason=reason, remedy=remedy)


class Connections:
    """Connections to the database of one vault, opened when they are needed, for several threads."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._refusal, self._refused_at = "", 0.0

    @cached_property
    def _pool(self) -> ConnectionPool[Connection]:
        address = self.address
        with _connect(address) as connection:
            _refuse_server(address, connection)
            try:
                row = connection.execute(
                    "SELECT version, (SELECT count(*) FROM mdmem.head WHERE vault = %s) FROM mdmem.version",
                    [address.vault],
                ).fetchone()
            except (refused.UndefinedTable, refused.InvalidSchemaName):
                row = (VERSION, 0)
            version, vaults = row or (0, 0)
            # Tables of the version before are served, so that servers can be replaced one by one.
            if not VERSION - 1 <= version <= VERSION:
                reason = f"its tables are of version {version}, and this program knows {VERSION}"
                raise DatabaseFailed(
                    vault=address.shown, action="use its tables", reason=reason, remedy="update mdmem"
                )
            if not vaults:
                raise VaultNotFound(start=address.shown)
        logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it says is raised, too
        pool = ConnectionPool(
            address.conninfo,
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=0,
            max_size=_MOST_CONNECTIONS,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_WAIT_SECONDS,
            open=True,
        )
        weakref.finalize(self, pool.close)
        return pool

    def close(self) -> None:
        """Close the connections; the next question opens others."""
        if "_pool" in vars(self):
            vars(self).pop("_pool").close()

    def count_open(self) -> int:
        """Count the connections that are open."""
        return self._pool.get_stats()["pool_size"] if "_pool" in vars(self) else 0

    @contextlib.contextmanager
    def translated(self, action: str) -> Iterator[None]:
        """Turn what the database refuses inside the block into an error of ours."""
        try:
            yield
        except refused.LockNotAvailable:
            raise LockTimeout(path=self.address.shown, seconds=_LOCK_SECONDS) from None
        except (psycopg.Error, PoolTimeout) as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise DatabaseFailed(vault=self.address.shown, action=action, reason=reason) from None

    @contextlib.contextmanager
    def _lend(self) -> Iterator[Connection]:
        pool, connection = self._wait_for_connection()
        try:
            yield connection
        finally:
            with contextlib.suppress(psycopg.Error):
                connection.rollback()
            pool.putconn(connection)

    def _wait_for_connection(self) -> tuple[ConnectionPool[Connection], Connection]:
        if self._refusal and time.monotonic() - self._refused_at < _REST_SECONDS:
            raise psycopg.OperationalError(self._refusal)  # a call that asks several times waits once
        try:
            pool = self._pool
            try:
                return pool, pool.getconn()
            except (PoolTimeout, PoolClosed):
                # The pool tells nobody why, and tries less and less often.
                if vars(self).get("_pool") is pool:
                    vars(self).pop("_pool", None)
                pool.close(timeout=0)
                pool = self._pool
                return pool, pool.getconn()
        except psycopg.OperationalError as error:
            self._refusal, self._refused_at = str(error), time.monotonic()
            raise

    @contextlib.contextmanager
    def begun(self) -> Iterator[Connection]:
        """Begin a transaction with limits of time; what is not committed in the block is rolled back."""
        for left in reversed(range(_TRIES)):
            with self._lend() as connection:
                try:
                    connection.execute(_BEGIN)
                except psycopg.OperationalError:
                    if not left:
                        raise
                    continue
                yield connection
                return

    def ask(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Return the rows of one statement that changes nothing."""

        def run() -> list[Row]:
            with self._lend() as connection:
                return connection.execute(statement, values).fetchall()

        return self.repeat(run)

    def repeat(self, work: Callable[[], T]) -> T:
        """Return what some work returns that may be done twice; where the server goes away, do it again."""
        for left in reversed(range(_TRIES)):
            try:
                return work()
            except PoolTimeout:
                raise
            except psycopg.OperationalError as error:
                if not left or not (error.sqlstate or _GONE).startswith(_GONE):
                    raise
        raise AssertionError("unreachable")

    def commit(self, connection: Connection, was_made: Callable[[Connection], bool], what: str) -> None:
        """Commit; where the answer is lost, ask `was_made`, which waits for the transaction to end.

        Raises:
            DatabaseFailed: it was rolled back.
            NotKnown: the database stays away.
        """
        try:
            done = connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            if not connection.closed:
                raise
            if self._ask_again(was_made, what):
                return
            raise error from None
        if done != "COMMIT":
            raise DatabaseFailed(vault=self.address.shown, action="commit", reason="it was rolled back")

    def _ask_again(self, was_made: Callable[[Connection], bool], what: str) -> bool:
        for _ in attempts(_ASK_SECONDS):
            # Also a server that takes no changes, as a standby does, says nothing about this one.
            with contextlib.suppress(psycopg.Error, DatabaseFailed), self.begun() as other:
                return was_made(other)
        raise NotKnown(vault=self.address.shown, what=what)
