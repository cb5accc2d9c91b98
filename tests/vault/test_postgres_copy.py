"""A copy equals its store, whatever has happened to either: drawn at random, with two servers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.errors import PathRefused
from mdmem.facade.memory import Memory
from mdmem.vault import postgres
from mdmem.vault.connection import make_tables, read_address
from mdmem.vault.files import Raced
from mdmem.vault.postgres import PostgresStore, StoredFile
from mdmem.vault.store import Step
from tests.speed import examples

from .postgres_server import Server
from .store_conformance import MOST, append, commit, write

PATHS = ("a.md", "n/a.md", "n/b.md", "n.md/c.md", "\xe9.md")
LOGS = ("s.jsonl", "n/s.jsonl")
TABLES = ("file", "head", "entry", "touched")


class Killed(BaseException):
    """The process is killed: nothing that comes behind it happens."""


class MortalStore(PostgresStore):
    """A store whose process is killed before the file of a copy that `left` counts down to."""

    left = -1

    def _write_file(self, file: StoredFile, data: bytes | Iterable[bytes]) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed
        super()._write_file(file, data)


class Act(NamedTuple):
    what: str
    server: int
    path: str
    other: str
    log: str
    number: int


KINDS = (
    *("write", "write", "write", "several", "delete", "append", "append", "aside"),
    *("kill", "lose power", "empty", "back up", "restore", "impossible", "start again"),
)
acts = st.builds(
    Act,
    st.sampled_from(KINDS),
    st.integers(0, 1),
    st.sampled_from(PATHS),
    st.sampled_from(PATHS),
    st.sampled_from(LOGS),
    st.integers(1, 4),
)


class Team:
    """Two servers of one vault."""

    def __init__(self, server: Server) -> None:
        self.name = uuid4().hex
        self.server = server
        make_tables(read_address(server.url(self.name)))
        self.urls = [server.url(self.name), server.url(self.name, application_name="other")]
        self.stores = [MortalStore(url) for url in self.urls]
        self._count = 0

    def act(self, act: Act) -> None:
        store, data = self.stores[act.server], b"# Heron\n\n%d %s\n" % (self._count, b"x" * act.number)
        self._count += 1
        if act.what == "write":
            with suppress(Raced, PathRefused):
                write(store, act.path, data)
        elif act.what in {"several", "delete"}:
            after = data if act.what == "several" else None
            paths = dict.fromkeys((act.path, act.other))
            steps = [Step(path, store.read(path, MOST), after) for path in paths if store.stands(path)]
            with suppress(Raced):
                commit(store, *steps) if steps else None
        elif act.what == "append":
            append(store, act.log, [data[:-1].replace(b"\n", b" ")] * act.number)
        elif act.what == "aside":
            with store.appending(act.log) as (log,):
                log.put_aside(f".old/{self._count}", [b"new"] * (act.number - 1) or None)
        else:
            self._strike(act, store)

    def _strike(self, act: Act, store: MortalStore) -> None:
        if act.what == "kill":
            store.left = act.number
        elif act.what == "start again":
            store.close()
            self.stores[act.server] = MortalStore(self.urls[act.server])
        elif act.what == "lose power":
            self._change_notes(store, "UPDATE state SET boot = 'another'")
            for path in (act.path, act.log):
                self._empty(store, path)
            store.close()
            self.stores[act.server] = MortalStore(self.urls[act.server])
        elif act.what == "empty":
            self._change_notes(store, "DROP TABLE IF EXISTS state")
            self._empty(store, act.path)
            store._state = None
        else:
            self._change_database(act.what)

    def _change_database(self, what: str) -> None:
        mine = f"WHERE vault = '{self.name}'"
        if what == "impossible":
            row = f"'{self.name}', '../{self._count}.md', 'no', 3, '', pg_current_xact_id()"
            self.server.ask(f"INSERT INTO mdmem.log VALUES ({row})")
            self.server.ask(
                f"INSERT INTO mdmem.content VALUES ('{self.name}', 'no', 'x') ON CONFLICT DO NOTHING;"
                f"INSERT INTO mdmem.file VALUES ('{self.name}', '../{self._count}.md', '', 'no', 1, 420, 0);"
                f"UPDATE mdmem.head SET seq = seq + 1, id = 'i{self._count}' {mine};"
                f"INSERT INTO mdmem.entry SELECT vault, seq, id, '' FROM mdmem.head {mine};"
                f"INSERT INTO mdmem.touched SELECT vault, '../{self._count}.md', seq FROM mdmem.head {mine}"
            )
        for table in TABLES:
            kept = f"b{self.name}_{table}"
            if what == "back up":
                self.server.ask(f"DROP TABLE IF EXISTS {kept}")
                self.server.ask(f"CREATE TABLE {kept} AS SELECT * FROM mdmem.{table} {mine}")
            elif what == "restore" and self.server.ask(f"SELECT FROM pg_tables WHERE tablename = '{kept}'"):
                self.server.ask(f"DELETE FROM mdmem.{table} {mine}")
                self.server.ask(f"INSERT INTO mdmem.{table} SELECT * FROM {kept}")

    def _change_notes(self, store: PostgresStore, statement: str) -> None:
        path = Path(store.root, postgres._NOTES)
        if path.exists():
            with closing(sqlite3.connect(path)) as notes, suppress(sqlite3.OperationalError), notes:
                notes.execute(statement)

    def _empty(self, store: PostgresStore, path: str) -> None:
        if store.stands(path) and Path(store.root, path).is_file():
            Path(store.root, path).write_bytes(b"")

    def check(self) -> None:
        """Both copies hold just what the database does, as soon as they were asked."""
        files = self.server.ask(
            "SELECT f.path, c.data FROM mdmem.file f JOIN mdmem.content c USING (vault, hash)"
            f" WHERE vault = '{self.name}' AND f.hash <> 'no'"
        )
        logs = self.server.ask(
            "SELECT l.path, (SELECT string_agg(c.data, '' ORDER BY c.start) FROM mdmem.chunk c WHERE"
            " c.vault = l.vault AND c.log = l.id) FROM mdmem.log l"
            f" WHERE l.vault = '{self.name}' AND l.id NOT IN ('', 'no')"
        )
        for store in self.stores:
            try:
                store.recover()
            except Killed:
                store.recover()
            held = {path: Path(store.root, path).read_bytes() for path in store._list_files()}
            assert held == dict(files) | dict(logs)
            beside = {each.name for each in Path(store.root).parent.iterdir()}
            assert beside == {"memories"}, "something stands outside of a copy"

    def close(self) -> None:
        for table in TABLES:
            self.server.ask(f"DROP TABLE IF EXISTS b{self.name}_{table}")
        for store in self.stores:
            fresh, grown = Memory(store), Memory(store)
            told = [hit.path for hit in grown.search("heron", limit=50).hits]
            fresh.index.rebuild()
            assert sorted(told) == sorted(hit.path for hit in fresh.search("heron", limit=50).hits)
            for memory in (fresh, grown):
                memory.index.close()
            store.close()


@settings(max_examples=examples(20))
@given(st.lists(acts, min_size=2, max_size=12))
def test_a_copy_equals_its_store(server: Server, drawn: list[Act]) -> None:
    check_copy(server, drawn)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=examples(1000))
@given(st.lists(acts, min_size=2, max_size=12))
def test_a_copy_equals_its_store_in_many_ways(server: Server, drawn: list[Act]) -> None:
    check_copy(server, drawn)


def check_copy(server: Server, drawn: list[Act]) -> None:
    team = Team(server)
    for act in drawn:
        with suppress(Killed):
            team.act(act)
        team.check()
    team.close()
