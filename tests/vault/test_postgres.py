"""A vault in PostgreSQL: what every store does, and the rules of its copies."""

from __future__ import annotations

import pickle
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.conninfo import conninfo_to_dict

import mdmem
from mdmem.document.document import digest
from mdmem.errors import (
    AlreadyExists,
    ConfigInvalid,
    DatabaseFailed,
    LimitReached,
    LockTimeout,
    NeedsFolder,
    NotKnown,
    StorageFailed,
    Usage,
    VaultNotFound,
)
from mdmem.facade.memory import Memory, list_grants
from mdmem.index import index
from mdmem.serve.adapters.hooks import answer
from mdmem.vault import connection as connections, postgres, postgres_log
from mdmem.vault.connection import make_tables, read_address
from mdmem.vault.files import Raced
from mdmem.vault.paths import Namespace
from mdmem.vault.postgres import PostgresStore
from mdmem.vault.postgres_upkeep import SweptVault, sweep
from mdmem.vault.store import Step, new_entry
from tests.waiting import until

from .postgres_server import Proxy, Server
from .store_conformance import (
    MOST,
    Put,
    StoreConformance,
    add_lines,
    append,
    check_lines,
    commit,
    count,
    data_of,
    held,
    together,
    write,
)

Opening = Callable[..., PostgresStore]


@pytest.fixture
def name(server: Server) -> str:
    """The name of a new vault."""
    found = uuid4().hex
    assert make_tables(read_address(server.url(found))) in {True, False}
    return found


@pytest.fixture
def opening(server: Server, name: str) -> Iterator[Opening]:
    """Opens the vault, up to date; another `application_name` is another server, with a copy of its own."""
    opened: list[PostgresStore] = []

    def open_store(**more: str) -> PostgresStore:
        opened.append(PostgresStore(server.url(name, **more)))
        opened[-1].recover()
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(opening: Opening) -> PostgresStore:
    return opening()


@pytest.fixture
def other(opening: Opening) -> PostgresStore:
    """The same vault, as another server has it."""
    return opening(application_name="other")


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory() as folder:
        found = Proxy(server, Path(folder))
        yield found
        found.close()


@pytest.fixture
def cut_off(opening: Opening, proxy: Proxy) -> PostgresStore:
    """The same vault, reached through the proxy."""
    return opening(host=str(proxy.folder))


def run(store: PostgresStore, *statements: str) -> None:
    """Change the database as only its owner could; `%s` is the name of the vault."""
    with store.database.begun() as connection:
        for statement in statements:
            connection.execute(statement, [store.address.vault] * statement.count("%s"))
        connection.execute("COMMIT")


def read(store: PostgresStore, path: str) -> bytes | None:
    store.recover()
    return data_of(store.read(path, MOST))


class TestConformance(StoreConformance):
    @pytest.fixture
    def put(self, store: PostgresStore) -> Put:
        def insert(path: str, data: bytes) -> None:
            if not path.endswith(".jsonl"):
                write(store, path, data)
                return
            hexed = data.hex()
            run(
                store,
                f"INSERT INTO mdmem.chunk VALUES (%s, 'a', 0, '', '\\x{hexed}')",
                f"INSERT INTO mdmem.log VALUES (%s, '{path}', 'a', {len(data)}, '', pg_current_xact_id())",
            )

        return insert


# -- several servers --------------------------------------------------------------------------------------


def test_what_one_server_acknowledged_is_found_on_the_other(
    store: PostgresStore, other: PostgresStore
) -> None:
    write(store, "n/a.md", b"one")
    before = other.notes
    assert read(other, "n/a.md") == b"one"
    commit(other, Step("n/a.md", other.read("n/a.md", MOST), None), Step("n.md", None, b"two"))
    assert (read(store, "n/a.md"), read(store, "n.md")) == (None, b"two")
    assert not store.stands("n"), "an empty folder is left behind"
    append(store, "s.jsonl", [b"one"])
    append(other, "s.jsonl", [b"two"])
    assert read(store, "s.jsonl") == read(other, "s.jsonl") == b"one\ntwo\n"
    found = {each.path: each.mtime_ns for each in store.walk(Namespace(""))}
    assert found == {each.path: each.mtime_ns for each in other.walk(Namespace(""))}
    assert before == other.notes == []


def test_a_change_computed_from_an_old_copy_is_refused(store: PostgresStore, other: PostgresStore) -> None:
    base = store.read("a.md", MOST)
    write(other, "a.md", b"theirs")
    with pytest.raises(Raced):
        commit(store, Step("a.md", base, b"ours"))
    assert read(store, "a.md") == b"theirs"


def test_two_servers_lose_no_change_and_tear_no_line(store: PostgresStore, other: PostgresStore) -> None:
    def work(each: PostgresStore, name: bytes) -> None:
        count(each, 10)
        add_lines(each, name)

    together([partial(work, store, b"s0"), partial(work, other, b"s1")])
    assert read(store, "a.md") == b"20"
    check_lines(store, [b"s0", b"s1"])
    assert read(other, "a.jsonl") == read(store, "a.jsonl")


def test_a_file_may_take_the_place_of_a_folder(store: PostgresStore, other: PostgresStore) -> None:
    write(store, "n.md/a.md", b"one")
    other.recover()
    commit(store, Step("n.md/a.md", store.read("n.md/a.md", MOST), None), Step("n.md", None, b"two"))
    assert read(other, "n.md") == b"two"
    commit(store, Step("n.md", store.read("n.md", MOST), None), Step("n.md/a.md", None, b"three"))
    assert read(other, "n.md/a.md") == b"three"


def test_a_config_that_another_server_changed_is_read_again(
    store: PostgresStore, other: PostgresStore
) -> None:
    assert other.config.limits.max_bytes != 77
    write(store, ".mdmem/config.toml", b'[limits]\nmax_bytes = 77\n[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    other.recover()
    assert other.config.limits.max_bytes == 77
    assert other.mounts == {}
    assert "[mounts] is passed over" in other.notes[0]
    assert "remove it with `mdmem store put`" in other.notes[0]
    write(store, ".mdmem/config.toml", b"[")
    other.recover()
    with pytest.raises(ConfigInvalid):
        assert other.config


def test_a_change_waits_no_longer_than_it_may(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, "a.md", b"one")
    monkeypatch.setattr(
        connections, "_BEGIN", connections._BEGIN.replace("lock_timeout = '10s'", "lock_timeout = 20")
    )
    with other.writing(), pytest.raises(LockTimeout) as refused:
        write(store, "a.md", b"two")
    assert refused.value.path == store.address.shown
    append(store, "s.jsonl", [b"nobody waits for a change of memories"])
    with other.appending("s.jsonl"), pytest.raises(LockTimeout):
        append(store, "s.jsonl", [b"two"])


# -- what a copy holds ------------------------------------------------------------------------------------


def test_another_history_is_compared_by_hash(store: PostgresStore, other: PostgresStore) -> None:
    """The database was restored, and other changes have led to the same number."""
    for path in ("a.md", "b.md"):
        write(store, path, b"before")
    append(store, "s.jsonl", [b"one"])
    write(store, "c.md", b"lost")
    assert read(other, "c.md") == b"lost"
    run(
        store,
        "DELETE FROM mdmem.file WHERE vault = %s AND path = 'c.md'",
        f"UPDATE mdmem.file SET hash = '{digest(b'lost')}' WHERE vault = %s AND path = 'b.md'",
        "UPDATE mdmem.entry SET id = 'another' WHERE vault = %s AND seq = 3",
        "UPDATE mdmem.head SET id = 'another' WHERE vault = %s",
        "DELETE FROM mdmem.log WHERE vault = %s",
    )
    assert read(other, "s.jsonl") is None
    assert held(other) == {"a.md": b"before", "b.md": b"lost"}
    write(store, "d.md", b"on")
    assert held(store) == {**held(other), "d.md": b"on"}


def test_after_a_loss_of_power_everything_is_compared(opening: Opening, store: PostgresStore) -> None:
    write(store, "a.md", b"one")
    append(store, "s.jsonl", [b"one"])
    Path(store.root, "a.md").write_bytes(b"")
    Path(store.root, "s.jsonl").write_bytes(b"\0\0\0\0")
    Path(store.root, "own.md").write_bytes(b"of nobody")
    with sqlite3.connect(Path(store.root, postgres._NOTES)) as notes:
        notes.execute("UPDATE state SET boot = 'another'")
    notes.close()
    again = opening()
    assert held(again) == {"a.md": b"one"}
    assert read(again, "s.jsonl") == b"one\n"
    assert again.notes == ["what this machine's copy of the vault held otherwise is gone (files: 2)"]


def test_notes_that_are_damaged_are_made_again(opening: Opening, store: PostgresStore) -> None:
    write(store, "a.md", b"one")
    Path(store.root, postgres._NOTES).write_bytes(b"no database" * 1000)
    assert read(opening(), "a.md") == b"one"
    Path(store.root, postgres._NOTES).unlink()
    Path(store.root, "a.md").unlink()
    assert read(store, "a.md") == b"one"


def test_what_a_hand_changed_in_a_copy_goes_with_a_note(store: PostgresStore) -> None:
    write(store, "a.md", b"one")
    Path(store.root, "a.md").write_bytes(b"by hand")
    with pytest.raises(Raced):
        write(store, "a.md", b"two")
    assert read(store, "a.md") == b"one"
    write(store, "a.md", b"two")
    append(store, "s.jsonl", [b"one"])
    with Path(store.root, "s.jsonl").open("ab") as log:
        log.write(b"by hand\n")
    append(store, "s.jsonl", [b"two"])
    assert read(store, "s.jsonl") == b"one\ntwo\n"
    assert [note.partition(":")[0] for note in store.notes] == ["a.md", "s.jsonl"]


def test_what_stands_in_the_way_in_a_copy_goes(
    store: PostgresStore, other: PostgresStore, tmp_path: Path
) -> None:
    Path(other.root, "n").symlink_to(tmp_path)
    Path(other.root, "a.md/b").mkdir(parents=True)
    write(store, "n/a.md", b"one")
    write(store, "a.md", b"two")
    assert (read(other, "n/a.md"), read(other, "a.md")) == (b"one", b"two")
    assert list(tmp_path.iterdir()) == []
    assert len(other.notes) == 2


@pytest.mark.parametrize(
    "path", ["../out.md", "/out.md", ".git/hooks/a.md", ".mdmem/local/a.md", "a/../../out.md", "n//a.md", "."]
)
def test_a_path_that_no_memory_may_have_stops_nobody(
    store: PostgresStore, other: PostgresStore, path: str
) -> None:
    write(store, "good.md", b"one")
    write(store, "better.md", b"two")
    run(
        store,
        f"UPDATE mdmem.file SET path = '{path}' WHERE vault = %s AND path = 'good.md'",
        f"UPDATE mdmem.touched SET path = '{path}' WHERE vault = %s AND path = 'good.md'",
        f"INSERT INTO mdmem.log VALUES (%s, '{path}/l', 'a', 1, '', pg_current_xact_id())",
        "INSERT INTO mdmem.chunk VALUES (%s, 'a', 0, '', 'x')",
    )
    before = {each for each in Path(other.root).parent.rglob("*") if ".mdmem" not in each.parts}
    assert read(other, "better.md") == b"two"
    after = {each for each in Path(other.root).parent.rglob("*") if ".mdmem" not in each.parts}
    assert after - before == {Path(other.root, "better.md")}
    assert any("where none may be" in note for note in other.notes)


def test_bytes_that_are_damaged_are_not_used(store: PostgresStore, other: PostgresStore) -> None:
    for path in ("a.md", "b.md"):
        write(store, path, path.encode())
    append(store, "s.jsonl", [b"one"])
    run(
        store,
        f"UPDATE mdmem.content SET data = 'other' WHERE vault = %s AND hash = '{digest(b'a.md')}'",
        "DELETE FROM mdmem.chunk WHERE vault = %s",
    )
    assert (read(other, "a.md"), read(other, "b.md")) == (None, b"b.md")
    assert store.kept(digest(b"a.md")) is None
    assert [note.partition(":")[0] for note in other.notes] == ["a.md", "s.jsonl"]


def test_a_few_files_at_a_time_are_taken_in(
    store: PostgresStore, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"n/{number}.md": b"%d" % number * number for number in range(12)}
    commit(store, *(Step(path, None, data) for path, data in files.items()))
    lines = [b"%d" % number * 1000 for number in range(40)]
    monkeypatch.setattr(postgres, "_MOST_FETCHED", 10)
    monkeypatch.setattr(postgres_log, "_CHUNK", 512)
    append(store, "s.jsonl", lines)
    fresh = opening(application_name="fresh")
    assert held(fresh) == files
    assert read(fresh, "s.jsonl") == b"".join(line + b"\n" for line in lines)


class SlowStore(PostgresStore):
    """A store on a slow disk: to look at the copy takes longer than a change may idle."""

    def _list_files(self) -> list[str]:
        begun = time.monotonic()
        until(lambda: time.monotonic() > begun + 0.2)
        return super()._list_files()


def test_to_compare_a_large_copy_may_take_long(
    server: Server, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, "a.md", b"one")
    short = connections._BEGIN.replace("session_timeout = '8s'", "session_timeout = 50")
    assert short != connections._BEGIN
    monkeypatch.setattr(connections, "_BEGIN", short)
    slow = SlowStore(server.url(store.address.vault, application_name="slow"))
    assert read(slow, "a.md") == b"one"
    slow.close()


def test_the_history_is_read_in_parts(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_MOST_ENTRIES", 2)
    ids = [write(store, "a.md", b"%d" % number) for number in range(5)]
    assert [entry.id for entry in store.entries()] == ids[::-1]


def test_what_fails_behind_a_commit_is_left_to_the_next_question(store: PostgresStore) -> None:
    write(store, "a.md", b"one")
    incoming = Path(store.root, postgres._INCOMING)
    incoming.rmdir()
    incoming.touch()
    write(store, "a.md", b"two")
    with pytest.raises(StorageFailed):
        store.recover()
    incoming.unlink()
    with store.appending("s.jsonl") as (log,):
        log.append([b"one"])
        incoming.rmdir()
        incoming.touch()
    with pytest.raises(StorageFailed):
        store.recover()
    incoming.unlink()
    assert (read(store, "a.md"), read(store, "s.jsonl")) == (b"two", b"one\n")


def test_a_vault_holds_so_many_files(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_MOST_FILES", 1)
    write(store, "a.md", b"one")
    with pytest.raises(LimitReached):
        write(store, "b.md", b"two")
    write(store, "a.md", b"two")
    assert held(store) == {"a.md": b"two"}


# -- answers that are lost --------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_asked_for(
    store: PostgresStore, cut_off: PostgresStore, proxy: Proxy
) -> None:
    proxy.cuts = "answer"
    write(cut_off, "a.md", b"one")
    proxy.cuts = "answer"
    append(cut_off, "s.jsonl", [b"one"])
    for path, lines in (("s.jsonl", [b"two"]), ("t.jsonl", None)):
        with cut_off.appending(path) as (log,):
            proxy.cuts = "answer"
            log.put_aside("n/.old/1", lines)
    assert (read(store, "a.md"), read(store, "s.jsonl")) == (b"one", b"two\n")
    assert proxy.cuts == ""


def test_a_commit_that_never_arrived_was_not_made(
    store: PostgresStore, cut_off: PostgresStore, proxy: Proxy
) -> None:
    proxy.cuts = "question"
    with pytest.raises(DatabaseFailed, match="nothing was changed"):
        write(cut_off, "a.md", b"one")
    proxy.cuts = "question"
    with pytest.raises(DatabaseFailed, match="nothing was changed"):
        append(cut_off, "s.jsonl", [b"one"])
    assert (read(store, "a.md"), read(store, "s.jsonl")) == (None, None)
    assert list(store.entries()) == []


def test_where_the_database_stays_away_nobody_knows(
    store: PostgresStore, cut_off: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.vault.connection._ASK_SECONDS", 0.1)
    cut_off.database._pool.timeout = 0.05
    with cut_off.writing():
        proxy.cuts, proxy.is_closed = "answer", True
        with pytest.raises(NotKnown):
            cut_off.commit(new_entry("ann", "change", ()), [Step("a.md", None, b"one")])
    with pytest.raises(DatabaseFailed):
        cut_off.recover()
    assert read(store, "a.md") == b"one"


def test_a_server_that_was_restarted_is_asked_again(server: Server, store: PostgresStore) -> None:
    write(store, "a.md", b"one")
    server.stop()
    server.begin()
    assert read(store, "a.md") == b"one"
    server.stop()
    server.begin()
    write(store, "a.md", b"two")
    assert read(store, "a.md") == b"two"


def test_who_waits_for_a_database_that_is_away_is_told_why(
    server: Server, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is asked again at once when it is back, however long it was away."""
    write(store, "a.md", b"one")
    store.database._pool.timeout = 0.05
    server.stop()
    for _ in range(3):
        with pytest.raises(DatabaseFailed, match="connection to server"):
            store.recover()
    server.begin()
    monkeypatch.setattr("mdmem.vault.connection._REST_SECONDS", 0)
    assert read(store, "a.md") == b"one"


def test_whether_a_change_was_made_is_asked_until_the_database_is_back(
    store: PostgresStore, cut_off: PostgresStore, proxy: Proxy
) -> None:
    cut_off.database._pool.timeout = 0.05
    with cut_off.writing():
        proxy.cuts, proxy.is_closed = "answer", True
        threading.Timer(0.5, lambda: setattr(proxy, "is_closed", False)).start()
        cut_off.commit(new_entry("ann", "change", ()), [Step("a.md", None, b"one")])
    assert read(store, "a.md") == b"one"


# -- servers and addresses --------------------------------------------------------------------------------


def test_a_server_that_may_lose_changes_is_refused(server: Server, name: str) -> None:
    store = PostgresStore(server.url(name))
    server.settle("fsync", "off")
    try:
        with pytest.raises(DatabaseFailed, match="fsync is off"):
            store.recover()
    finally:
        server.settle("fsync", "on")
    store.recover()
    store.close()


def test_tables_of_a_later_version_are_refused(server: Server, store: PostgresStore) -> None:
    run(store, "UPDATE mdmem.version SET version = 2")
    try:
        with pytest.raises(DatabaseFailed, match="update mdmem"):
            PostgresStore(server.url("any")).recover()
    finally:
        run(store, "UPDATE mdmem.version SET version = 1")


def test_tables_of_the_version_before_are_served(server: Server, store: PostgresStore) -> None:
    """So the servers of a vault are replaced one by one."""
    write(store, "a.md", b"one")
    try:
        run(store, "UPDATE mdmem.version SET version = 0")
        again = PostgresStore(server.url(store.address.vault))
        assert read(again, "a.md") == b"one"
        again.close()
        run(store, "UPDATE mdmem.version SET version = -1")
        with pytest.raises(DatabaseFailed, match="of version -1"):
            PostgresStore(server.url("any")).recover()
    finally:
        run(store, "UPDATE mdmem.version SET version = 1")


def test_a_vault_that_is_not_there_is_named_by_its_url(server: Server, store: PostgresStore) -> None:
    with pytest.raises(VaultNotFound) as refused:
        PostgresStore(server.url("nothing")).recover()
    shown = read_address(server.url("nothing")).shown
    assert refused.value.message == f"no vault found at {shown}"
    assert refused.value.hint == f"its owner makes it with `mdmem store init '{shown}'`"
    with pytest.raises(AlreadyExists):
        make_tables(store.address)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@db.example/memories?vault=team",
        "postgresql://db.example/memories?vault=team&password=secret",
        "postgresql://db.example/memories?vault=team&options=-c%20role%3Dsecret",
        "postgresql://db.example/memories",
        "postgresql://db.example/memories?vault=a&vault=b",
        "postgresql://db.example/memories?vault=../secret",
        "postgresql://[db.example/memories?vault=team",
    ],
)
def test_an_address_that_may_not_be_is_refused(url: str) -> None:
    with pytest.raises(Usage) as refused:
        read_address(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        ("db.example", "verify-full"),
        ("", ""),
        ("localhost:5433", ""),
        ("127.0.0.1,db.example", "verify-full"),
    ],
)
def test_a_server_elsewhere_proves_its_name(place: str, mode: str) -> None:
    address = read_address(f"postgresql://ann@{place}/memories?vault=team")
    assert conninfo_to_dict(address.conninfo).get("sslmode", "") == mode
    assert address.shown == f"postgresql://ann@{place}/memories?vault=team"
    chosen = read_address(f"postgresql://ann@{place}/memories?sslmode=require&vault=team")
    assert conninfo_to_dict(chosen.conninfo)["sslmode"] == "require"


# -- the memories over it ---------------------------------------------------------------------------------


def close(*memories: Memory) -> None:
    for each in memories:
        each.index.close()
        assert isinstance(each.vault.store, PostgresStore)
        each.vault.store.close()


def find(memory: Memory) -> list[str]:
    return [hit.path for hit in memory.search("heron").hits]


def test_an_index_looks_only_where_the_database_has_changed(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = [Memory(each) for each in (store, other)]
    memories[0].write("a.md", "# Heron\n\nblue\n")
    assert [find(each) for each in memories] == [["a.md"]] * 2

    def refuse(*_: object) -> None:
        raise AssertionError("every file was looked at")

    monkeypatch.setattr(index, "compare_files", refuse)
    memories.append(Memory(PostgresStore(other.name)))
    memories[1].write("b.md", "# Heron\n\ngrey\n")
    memories[0].rm("a.md")
    assert [find(each) for each in memories] == [["b.md"]] * 3
    close(*memories)


def test_an_index_takes_in_another_history(store: PostgresStore, other: PostgresStore) -> None:
    memories = [Memory(each) for each in (store, other)]
    for path in ("a.md", "b.md"):
        memories[0].write(path, f"# Heron\n\n{path}\n")
    assert len(find(memories[1])) == 2
    run(
        store,
        "DELETE FROM mdmem.file WHERE vault = %s AND path = 'b.md'",
        "UPDATE mdmem.head SET id = 'another' WHERE vault = %s",
    )
    assert [find(each) for each in memories] == [["a.md"]] * 2
    Path(store.root, "a.md").write_bytes(b"# Stork")
    memories[0].index.rebuild()
    assert find(memories[0]) == []
    with pytest.raises(Raced):
        write(store, "a.md", b"two")
    assert [find(each) for each in memories] == [["a.md"]] * 2
    close(*memories)


def test_a_vault_in_a_database_is_named_by_its_url(store: PostgresStore, server: Server) -> None:
    memory = mdmem.open(store.name, mdmem.Scope(user="ann"))
    assert (memory.name, store.name) == (store.address.shown, store.address.shown)
    assert store.name in repr(memory)
    again = pickle.loads(pickle.dumps(memory))
    again.write("a.md", "one\n")
    assert [again.of_thread("t").show("a.md").text, memory.show("a.md").text] == ["one\n"] * 2
    assert memory.status().root == store.name
    assert memory.workspace == str(Path(store.root).parent)
    assert memory.why("a.md").commit is None
    close(again, memory)
    with pytest.raises(VaultNotFound) as refused:
        mdmem.open(server.url("nothing")).show("a.md")
    assert refused.value.start == read_address(server.url("nothing")).shown


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.git,
        lambda memory: memory.watch(),
        lambda memory: memory.keep_current(),
        lambda memory: memory.editing(),
        lambda memory: memory.project.sync(),
        lambda memory: memory.results.stats(),
        lambda memory: answer(memory, "session-start", {}),
    ],
)
def test_what_needs_a_folder_of_ones_own_says_so(
    store: PostgresStore, ask: Callable[[Memory], object]
) -> None:
    with pytest.raises(NeedsFolder) as refused:
        ask(Memory(store))
    assert store.root not in str(refused.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.search("heron"),
        lambda memory: memory.context("heron"),
        lambda memory: memory.check(),
        lambda memory: memory.status(),
        lambda memory: memory.why("a.md"),
        lambda memory: memory.show("a.md"),
        lambda memory: memory.append("a.md", "more"),
        lambda memory: memory.undo(),
    ],
)
def test_a_question_looks_once_for_what_has_changed(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Memory], object]
) -> None:
    memory = Memory(store)
    for path in ("a.md", "b.md"):
        memory.write(path, "# Heron\n\nblue\n")
    find(memory)
    asked: list[str] = []
    question = store.database.ask

    def count_looks(statement: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        asked.append(statement)
        return question(statement, values)

    monkeypatch.setattr(store.database, "ask", count_looks)
    ask(memory)
    assert asked.count(postgres._LOOK) == 1
    close(memory)


def test_uses_are_counted_on_all_servers_together(store: PostgresStore, other: PostgresStore) -> None:
    memories = [Memory(store), Memory(other, mdmem.Scope(user="ann"))]
    memories[0].uses.add(["users/ann/a.md", "b.md"], at=5)
    memories[1].uses.add(["a.md", "a.md"], at=3)
    assert memories[0].uses.of("users/ann/a.md") == (2, 5)
    assert memories[1].uses.of("a.md") == memories[1].uses.of("a.md", "") == (1, 3)
    together([lambda: memories[0].uses.add(["b.md", "a.md"])] * 4)
    assert memories[0].uses.of("b.md").times == 5
    assert memories[0].uses.count_all() == {"a.md": 4, "b.md": 5, "users/ann/a.md": 2}
    memories[1].uses.forget("a.md")
    assert memories[0].uses.of("users/ann/a.md") == (0, 0)


def test_a_server_needs_no_more_rights_than_are_printed(server: Server, store: PostgresStore) -> None:
    role = f"Servers-{store.address.vault}"
    server.ask(f'CREATE ROLE "{role}" LOGIN')
    make_tables(read_address(server.url(uuid4().hex)), 3)
    for grant in list_grants(role, vectors=True):
        server.ask(grant)
    memory = Memory(PostgresStore(server.url(store.address.vault).replace("//mdmem@", f"//{role}@")))
    memory.write("a.md", "one\n")
    memory.append("a.md", "two")
    memory.undo()
    memory.mv("a.md", "b.md")
    memory.rm("b.md")
    memory.restore("b.md")
    memory.uses.add(["b.md"])
    memory.uses.forget("b.md")
    vectors = memory.vault.disk.find_vectors("m", "o")
    assert vectors
    vectors.put({"a": (1, 0, 0)})
    vectors.put({"a": (0, 1, 0)})
    assert vectors.nearest((0, 1, 0), 1, ["a"]) == [("a", 1)]
    vectors.remove(["a"])
    memory.sessions.add("s", "user", "hello")
    memory.sessions.delete("s")
    memory.sessions.restore("s")
    memory.sessions.add("s", "user", "again")
    assert len(memory.sessions.history("s")) == 2
    assert memory.show("b.md").text == "one\n"
    close(memory)
    with pytest.raises(DatabaseFailed, match="permission"):
        make_tables(read_address(server.url("more").replace("//mdmem@", f"//{role}@")))


# -- upkeep -----------------------------------------------------------------------------------------------


def test_a_sweep_removes_what_is_old_or_too_much(store: PostgresStore, other: PostgresStore) -> None:
    for number in range(5):
        write(store, "a.md", b"%d" % number * 100)
    memory = Memory(other)
    memory.search("heron")
    assert sweep(store) == SweptVault(entries=0, versions=0, bytes=0)
    older = """replace(convert_from(shape, 'UTF8'), '"time":"2', '"time":"1')"""
    where = "WHERE vault = %s AND seq IN (1, 2, 4)"
    run(store, f"UPDATE mdmem.entry SET shape = convert_to({older}, 'UTF8') {where}")
    expected = SweptVault(entries=2, versions=1, bytes=100)
    assert sweep(store, dry_run=True) == expected
    assert sweep(store) == expected
    assert [store.kept(digest(b"%d" % number * 100)) is None for number in range(5)] == [True] + [False] * 4
    assert len(list(store.entries())) == 3
    write(store, ".mdmem/config.toml", b"[trash]\nmax_bytes = 150\n")
    assert sweep(store).versions == 2
    write(store, ".mdmem/config.toml", b"[trash]\nmax_bytes = 0\n")
    assert sweep(store).versions == 2
    assert held(store) == {"a.md": b"4" * 100}
    memory.write("b.md", "# Heron\n")
    assert find(memory) == ["b.md"]
    close(memory)


def test_an_index_behind_what_was_swept_looks_at_everything(
    store: PostgresStore, other: PostgresStore
) -> None:
    memory = Memory(other)
    memory.write("a.md", "# Heron\n")
    assert find(memory) == ["a.md"]
    for path in ("b.md", "c.md"):
        write(store, path, b"# Heron\n")
    other.recover()
    run(store, *(f"DELETE FROM mdmem.{table} WHERE vault = %s AND seq < 3" for table in ("entry", "touched")))
    assert sorted(find(memory)) == ["a.md", "b.md", "c.md"]
    close(memory)


def test_an_import_and_its_undo_take_the_config_along(
    store: PostgresStore, other: PostgresStore, tmp_path: Path
) -> None:
    (tmp_path / "source/.obsidian").mkdir(parents=True)
    (tmp_path / "source/a.md").write_text("# A\n", "utf-8")
    memory, elsewhere = Memory(store), Memory(other)
    before = read(store, ".mdmem/config.toml")
    memory.import_("obsidian", tmp_path / "source")
    assert elsewhere.show("notes/a.md").text == "# A\n"
    assert elsewhere.vault.config.links.dialects == ("notes: Obsidian",)
    memory.undo()
    assert list(elsewhere.ls()) == []
    assert (read(other, ".mdmem/config.toml") or b"") == (before or b"")
