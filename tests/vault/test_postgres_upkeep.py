"""The upkeep of a vault in PostgreSQL: its own files, whether it is sound, and what is erased."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import mdmem
from mdmem.errors import (
    ConfigInvalid,
    DatabaseFailed,
    Invalid,
    LimitReached,
    MdmemError,
    MemoryNotFound,
    NamedNotFound,
)
from mdmem.facade.memory import Memory
from mdmem.vault.connection import list_grants, make_tables, read_address
from mdmem.vault.postgres import PostgresStore
from mdmem.vault.postgres_upkeep import ErasedMemory, check, erase, put
from tests.speed import examples

from .store_conformance import MOST, append, data_of, held, together, write
from .test_postgres import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .postgres_server import Server

SHARING = "[sharing]\nenabled = true\n"


@pytest.fixture
def stores(server: Server) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """A new vault, as two servers have it."""
    name = uuid4().hex
    make_tables(read_address(server.url(name)))
    found = PostgresStore(server.url(name)), PostgresStore(server.url(name, application_name="other"))
    yield found
    for each in found:
        each.close()


@pytest.fixture
def store(stores: tuple[PostgresStore, PostgresStore]) -> PostgresStore:
    return stores[0]


@pytest.fixture
def other(stores: tuple[PostgresStore, PostgresStore]) -> PostgresStore:
    return stores[1]


# -- the vault's own files --------------------------------------------------------------------------------


def test_a_vault_is_given_its_own_files(store: PostgresStore, other: PostgresStore, tmp_path: Path) -> None:
    memory = Memory(store, actor="ann")
    memory.write("notes/a.md", "one\n")
    root = Path(mdmem.init(tmp_path / "memories").root)
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/recipe.json").write_text('{"type": "object"}')
    (root / ".mdmem/config.toml").write_text('[kinds.recipe]\nfolder = "recipes"\nschema = "recipe"\n')
    assert [file.path for file in put(store, str(root), dry_run=True)] == [
        ".mdmem/config.toml",
        ".mdmem/schemas/recipe.json",
    ]
    assert store.config.kinds[-1].name != "recipe"
    assert {file.did for file in put(store, str(root))} == {"created"}
    other.recover()
    assert other.config.kinds[-1].name == "recipe"
    assert "recipe" in [info.name for info in Memory(other).schemas.names()]
    assert put(store, str(root)) == ()
    (root / ".mdmem/schemas/recipe.json").unlink()
    (root / ".mdmem/config.toml").write_text("")
    assert {file.did for file in put(store, str(root))} == {"changed", "deleted"}
    assert held(other) == {"notes/a.md": b"one\n"}
    assert [entry.message for entry in memory.history()] == ["write notes/a.md"]
    memory.undo()
    assert held(store) == {}


def test_a_config_that_others_give_reaches_each_answer(
    server: Server, store: PostgresStore, other: PostgresStore, tmp_path: Path
) -> None:
    """Whoever gives it, on another machine or on this one, where both have one copy."""
    twin = PostgresStore(server.url(store.address.vault))
    root = Path(mdmem.init(tmp_path / "memories").root)
    ann, ben = (Memory(store, mdmem.Scope(user=user)) for user in ("ann", "ben"))
    asked: list[Callable[[], object]] = [
        lambda: ben.show("from-ann:a.md"),
        lambda: ben.ls("from-ann:"),
        ben.shared.list,
    ]

    def is_shared(ask: Callable[[], object]) -> bool:
        try:
            return bool(ask())
        except MdmemError:
            return False

    def give(by: PostgresStore, text: str) -> None:
        (root / ".mdmem/config.toml").write_text(text)
        put(by, str(root))

    give(store, SHARING)
    ann.write("a.md", "one\n")
    ann.share("a.md", "ben", "read")
    for by in (other, twin):
        for ask in asked:
            for text in ("", SHARING):
                give(by, text)
                assert is_shared(ask) == bool(text)
    twin.close()


@pytest.mark.parametrize(
    ("path", "text", "refused"),
    [
        ("config.toml", "[limits]\nmax_bytes = -1\n", ConfigInvalid),
        ("config.toml", '[kinds.recipe]\nfolder = "recipes"\nschema = "none"\n', ConfigInvalid),
        ("schemas/recipe.json", '{"type": 7}', Invalid),
        ("templates/recipe.md", "{% for %}", Invalid),
    ],
)
def test_own_files_that_could_not_be_used_are_refused(
    store: PostgresStore, tmp_path: Path, path: str, text: str, refused: type[Exception]
) -> None:
    file = Path(mdmem.init(tmp_path / "memories").root, ".mdmem", path)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    with pytest.raises(refused):
        put(store, str(tmp_path / "memories"))
    assert store.read(".mdmem/config.toml", MOST) is None


def test_a_config_that_is_broken_or_at_its_limit_can_be_replaced(
    store: PostgresStore, tmp_path: Path
) -> None:
    root = Path(mdmem.init(tmp_path / "memories").root)
    write(store, "a.md", b"x" * 100)
    write(store, ".mdmem/config.toml", b"[")
    (root / ".mdmem/config.toml").write_text("[team]\nmax_bytes = 110\n")
    put(store, str(root))
    with pytest.raises(LimitReached, match="the limit is 110"):
        write(store, "b.md", b"x" * 100)
    write(store, "a.md", b"less")
    (root / ".mdmem/config.toml").write_text("[team]\nmax_bytes = 1000\n")
    put(store, str(root))
    write(store, "b.md", b"x" * 100)
    assert check(store) == []


# -- whether it is sound ----------------------------------------------------------------------------------


def test_a_vault_that_is_sound_has_no_findings(store: PostgresStore) -> None:
    assert check(store) == []
    memory = Memory(store)
    memory.write("notes/a.md", "one\n")
    memory.append("notes/a.md", "two")
    memory.mv("notes/a.md", "b.md")
    memory.sessions.add("s", "user", "hello")
    memory.sessions.delete("s")
    memory.sessions.add("s", "user", "again")
    memory.sessions.vacuum("s", purge=True)
    memory.rm("b.md")
    assert check(store) == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE mdmem.content SET data = 'other' WHERE vault = %s", "content-damaged"),
        ("UPDATE mdmem.file SET size = 7 WHERE vault = %s", "content-damaged"),
        ("DELETE FROM mdmem.chunk WHERE vault = %s", "log-damaged"),
        ("UPDATE mdmem.log SET id = 'another' WHERE vault = %s", "log-orphan"),
        ("UPDATE mdmem.head SET id = 'another' WHERE vault = %s", "head-wrong"),
        ("DELETE FROM mdmem.entry WHERE vault = %s", "head-wrong"),
        ("UPDATE mdmem.head SET files = 7 WHERE vault = %s", "count-wrong"),
        ("UPDATE mdmem.head SET bytes = 7 WHERE vault = %s", "count-wrong"),
        ("UPDATE mdmem.entry SET shape = '{' WHERE vault = %s", "history-damaged"),
        ("UPDATE mdmem.entry SET shape = '[]' WHERE vault = %s", "history-damaged"),
        ("UPDATE mdmem.file SET path = '../a.md' WHERE vault = %s", "copy-differs"),
    ],
)
def test_what_is_damaged_is_found(store: PostgresStore, statement: str, code: str) -> None:
    write(store, "a.md", b"one")
    append(store, "s.jsonl", [b"one"])
    run(store, statement)
    assert code in {finding.code for finding in check(store)}


def test_what_a_hand_changed_in_the_copy_is_found_and_put_right(store: PostgresStore) -> None:
    for path in ("a.md", "b.md"):
        write(store, path, path.encode())
    append(store, "s.jsonl", [b"one"])
    root = Path(store.root)
    (root / "a.md").write_bytes(b"by hand")
    (root / "b.md").unlink()
    (root / "s.jsonl").write_bytes(b"two\n")
    (root / "own.md").write_bytes(b"own")
    assert [finding.code for finding in check(store)] == ["copy-differs"]
    assert held(store) == {"a.md": b"a.md", "b.md": b"b.md"}
    assert data_of(store.read("s.jsonl", MOST)) == b"one\n"


# -- what is erased ---------------------------------------------------------------------------------------

WORD = "quetzalcoatlus"


def find_word(server: Server, store: PostgresStore, *others: PostgresStore) -> list[str]:
    """Return where the word still stands: tables of the vault, and files of copies."""
    tables = server.ask("SELECT table_name FROM information_schema.tables WHERE table_schema = 'mdmem'")
    found = []
    for (table,) in tables:
        if table != "version":
            rows = server.ask(f"SELECT t::text FROM mdmem.{table} t WHERE vault = '{store.address.vault}'")
            told = [row for (row,) in rows if WORD in row.lower() or WORD.encode().hex() in row]
            found += [f"{table}: {row}" for row in told]
    for each in (store, *others):
        done = subprocess.run(
            ["grep", "-rlai", WORD, str(Path(each.root).parent)], capture_output=True, text=True, check=False
        )
        found += done.stdout.splitlines()
    return found


def tell(memory: Memory) -> None:
    """Let all that a vault keeps hold the word, beside a memory that stays."""
    memory.write("notes/stays.md", "# Heron\n\nblue\n")
    memory.write(f"notes/{WORD}.md", f"# {WORD.title()}\n\nold {WORD}\n")
    memory.append(f"notes/{WORD}.md", f"more {WORD}")
    memory.append("notes/stays.md", "grey")
    memory.uses.add([f"notes/{WORD}.md", "notes/stays.md"])
    memory.sessions.add(WORD, "user", f"the {WORD}")
    memory.sessions.delete(WORD)
    memory.sessions.add(WORD, "user", f"again the {WORD}")
    for session in (f"notes/{WORD}.md", "notes/stays.md"):
        assert memory.search(WORD if WORD in session else "heron").hits[0].path == session
    memory.sessions.search(WORD)
    memory.past("2999-01-01")


def test_what_is_erased_is_in_no_table_and_no_copy(
    server: Server, store: PostgresStore, other: PostgresStore
) -> None:
    memories = Memory(store), Memory(other)
    tell(memories[0])
    for memory in memories:
        memory.search(WORD)
        memory.sessions.search(WORD)
    places = find_word(server, store, other)
    tables = {place.partition(":")[0] for place in places} - set(places)
    assert tables >= {"content", "entry", "touched", "file", "log", "chunk", "use"}
    would = erase(store, f"notes/{WORD}.md", dry_run=True)
    assert would == ErasedMemory(files=1, logs=0, versions=2, changes=2, named=())
    assert find_word(server, store, other) == places
    assert erase(store, f"notes/{WORD}.md") == would
    erased = erase(store, f"sessions/{WORD}.jsonl")
    assert (erased.files, erased.logs) == (0, 2)
    assert memories[1].sessions.search(WORD).hits == ()
    assert memories[1].search(WORD).hits == ()
    assert find_word(server, store, other) == []
    for memory in memories:
        assert [hit.path for hit in memory.search("heron").hits] == ["notes/stays.md"]
        assert [entry.message for entry in memory.history()] == [
            "append to notes/stays.md",
            "write notes/stays.md",
        ]
        assert not memory.sessions.exists(WORD, archived=True)
    with pytest.raises(NamedNotFound):
        memories[1].restore(f"notes/{WORD}.md")
    memories[1].undo()
    store.recover()
    assert held(store) == {"notes/stays.md": b"# Heron\n\nblue\n"}
    assert check(store) == check(other) == []
    for memory in memories:
        memory.index.close()


def test_a_folder_is_erased_whole_and_others_stay(store: PostgresStore) -> None:
    memory = Memory(store)
    for path in ("users/ann/a.md", "users/ann/b.md", "users/anna.md", "users/annabel/a.md"):
        memory.write(path, f"{path}\n")
    memory.mv("users/ann/b.md", "shared.md")
    memory.write("users/ann/copied.md", "users/anna.md\n")
    Memory(store, mdmem.Scope(user="ann")).uses.add(["a.md"])
    memory.uses.add(["users/ann/a.md", "users/anna.md"])
    erased = erase(store, "users/ann")
    assert erased == ErasedMemory(
        files=2, logs=0, versions=1, changes=4, named=("shared.md", "users/anna.md")
    )
    assert sorted(held(store)) == ["shared.md", "users/anna.md", "users/annabel/a.md"]
    assert [file.path for file in next(memory.vault.history()).files] == ["shared.md"]
    assert memory.uses.count_all() == {"users/anna.md": 1}
    assert check(store) == []


@pytest.mark.parametrize("path", ["nothing.md", "", "notes/a.md/b.md"])
def test_to_erase_nothing_is_an_error(store: PostgresStore, path: str) -> None:
    write(store, "notes/a.md", b"one")
    with pytest.raises(MemoryNotFound):
        erase(store, path)
    assert held(store) == {"notes/a.md": b"one"}


def test_a_copy_that_was_far_behind_drops_what_was_erased(
    server: Server, store: PostgresStore, other: PostgresStore
) -> None:
    """It asks for the first time since, after further changes."""
    tell(Memory(store))
    Memory(other).search(WORD)
    Memory(other).past("2999-01-01")
    erase(store, f"notes/{WORD}.md")
    erase(store, f"sessions/{WORD}.jsonl")
    for number in range(3):
        write(store, "notes/more.md", b"%d" % number)
    assert find_word(server, store, other) != []
    other.recover()
    assert find_word(server, store, other) == []


def test_a_copy_whose_notes_are_gone_drops_what_was_erased(server: Server, store: PostgresStore) -> None:
    memory = Memory(store)
    tell(memory)
    memory.index.close()
    erasing = PostgresStore(server.url(store.address.vault, application_name="other"))
    for path in (f"notes/{WORD}.md", f"sessions/{WORD}.jsonl"):
        erase(erasing, path)
    Path(store.root, ".mdmem/local/copy.sqlite").write_bytes(b"no database" * 1000)
    again = PostgresStore(store.name)
    again.recover()
    assert find_word(server, again, erasing) == []
    for each in (again, erasing):
        each.close()


def test_who_appends_while_a_log_is_erased_begins_a_new_one(
    store: PostgresStore, other: PostgresStore
) -> None:
    append(store, "sessions/s.jsonl", [b"old"])

    def erase_log() -> None:
        erase(store, "sessions/s.jsonl")

    together([*[lambda: append(other, "sessions/s.jsonl", [b"new"])] * 3, erase_log])
    append(other, "sessions/s.jsonl", [b"last"])
    store.recover()
    lines = (data_of(store.read("sessions/s.jsonl", MOST)) or b"").splitlines()
    assert (lines[-1], b"old" in lines) == (b"last", False)
    assert check(store) == []


def test_races_what_is_asked_while_another_process_erases_is_answered(
    server: Server, store: PostgresStore
) -> None:
    """Both have the same copy, of which an erasure drops the indexes."""
    asking = Memory(PostgresStore(store.name))
    is_done = threading.Event()

    def erase_all() -> None:
        try:
            for number in range(examples(60)):
                Memory(store).sessions.add("gone", "user", f"the {WORD}")
                Memory(store).sessions.add("stays", "user", f"heron {number}")
                erase(store, "sessions/gone.jsonl")
        finally:
            is_done.set()

    def search() -> None:
        while not is_done.is_set():
            asking.sessions.search("heron")

    together([erase_all, search, search])
    asking.vault.recover()
    store.recover()
    assert find_word(server, store) == []


def test_servers_have_no_right_to_erase(server: Server, store: PostgresStore) -> None:
    write(store, "a.md", b"one")
    role = f"servers-{store.address.vault}"
    server.ask(f'CREATE ROLE "{role}" LOGIN')
    for grant in list_grants(role):
        server.ask(grant)
    bound = PostgresStore(server.url(store.address.vault).replace("//mdmem@", f"//{role}@"))
    assert check(bound) == []
    with pytest.raises(DatabaseFailed, match="permission"):
        erase(bound, "a.md")
    assert held(bound) == {"a.md": b"one"}
    bound.close()
