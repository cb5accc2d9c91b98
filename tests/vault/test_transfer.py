"""Copying a vault to a folder or a database: what arrives, what is refused, and what goes on after a kill."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pytest

import mdmem
from mdmem.document.document import digest
from mdmem.errors import EditRefused, LimitReached, PathRefused
from mdmem.vault import postgres, transfer
from mdmem.vault.connection import make_tables, read_address
from mdmem.vault.local_store import LocalStore
from mdmem.vault.postgres import PostgresStore, list_places
from mdmem.vault.postgres_upkeep import erase, put
from mdmem.vault.transfer import copy

from .store_conformance import MOST, append, data_of, write
from .test_postgres import run

if TYPE_CHECKING:
    from .postgres_server import Server

NFD = unicodedata.normalize("NFD", "notes/caf\xe9/\xfcber.md")
FILES = {
    "notes/a.md": b"# Heron\n\nblue\n",
    "notes/crlf.md": b"\xef\xbb\xbf# Windows\r\n\r\nline\r\n",
    NFD: b"# NFD\n",
    "notes/picture.png": bytes(range(256)),
    "notes/empty.md": b"",
    ".mdmem/schemas/recipe.json": b'{"type": "object"}\n',
    "users/ann/notes/\xe4.md": b"private\n",
}


class State(NamedTuple):
    """All that a vault holds: of each file its place, bytes, permissions and time; history, versions."""

    files: dict[str, tuple[bytes, int, int]]
    history: list[Any]
    versions: dict[str, bytes | None]


def state_of(store: LocalStore) -> State:
    store.recover()
    found = {}
    for place in list_places(store.root):
        if not place.endswith(".gitignore"):
            path = Path(store.root, place)
            status = path.stat()
            found[place] = path.read_bytes(), status.st_mode, status.st_mtime_ns
    history = list(store.entries())
    hashes = {h for entry in history for file in entry.files for h in (file.before, file.after) if h}
    return State(found, history, {h: data_of(store.kept(h)) for h in hashes})


def make_vault(root: Path) -> LocalStore:
    """Make a vault with a history, logs that were put aside, and files of other systems."""
    memory = mdmem.open(mdmem.init(root).root, actor="ann")
    for number, (path, data) in enumerate(FILES.items()):
        Path(root, path).parent.mkdir(parents=True, exist_ok=True)
        Path(root, path).write_bytes(data)
        os.utime(Path(root, path), ns=(number, 1_600_000_000_123_456_789 + number))
    Path(root, "notes/a.md").chmod(0o640)
    memory.append("notes/a.md", "grey")
    memory.replace("notes/crlf.md", "line", "Zeile")
    memory.mv("notes/a.md", "notes/b.md")
    memory.write("notes/gone.md", "soon gone\n")
    memory.rm("notes/gone.md")
    memory.undo()
    for key in ("t1", "t2"):
        memory.sessions.add(key, "user", "hello")
    memory.sessions.delete("t2")
    memory.sessions.add("t2", "user", "again")
    memory.index.close()
    return LocalStore(str(root))


@pytest.fixture
def source(tmp_path: Path) -> LocalStore:
    return make_vault(tmp_path / "from")


@pytest.fixture
def database(server: Server) -> PostgresStore:
    url = server.url(uuid4().hex)
    make_tables(read_address(url))
    return PostgresStore(url)


def test_a_folder_is_the_same_behind_a_database(
    source: LocalStore, database: PostgresStore, tmp_path: Path
) -> None:
    before = state_of(source)
    copied = copy(source, database)
    assert (copied.files, copied.logs, copied.changes) == (9, 3, 6)
    assert state_of(database) == before
    back = LocalStore(str(tmp_path / "back"))
    assert copy(database, back, dry_run=True).files == 9
    assert not Path(back.root).exists()
    assert copy(database, back).versions == copied.versions > 3
    assert state_of(back) == before == state_of(source)
    assert mdmem.open(back.root).check() == mdmem.open(source.root).check()
    again = [copy(*pair) for pair in ((source, database), (database, back), (source, back))]
    assert {(each.files, each.logs, each.versions, each.changes) for each in again} == {(0, 0, 0, 0)}


def test_counts_of_use_go_along(source: LocalStore, database: PostgresStore, tmp_path: Path) -> None:
    memory, ann = mdmem.open(source.root), mdmem.open(source.root, mdmem.Scope(user="ann"))
    memory.uses.add(["notes/b.md", "notes/crlf.md"], at=5)
    memory.uses.add(["notes/b.md"], at=7)
    ann.uses.add(["notes/\xe4.md"], at=3)
    counts = source.uses.list_counts()
    assert [row[1:] for row in counts] == [
        ("notes/b.md", 2, 7),
        ("notes/crlf.md", 1, 5),
        ("users/ann/notes/\xe4.md", 1, 3),
    ]
    back = LocalStore(str(tmp_path / "back"))
    for _ in range(2):  # a copy that goes on counts nothing twice
        copy(source, database)
        copy(database, back)
        assert database.uses.list_counts() == back.uses.list_counts() == counts
    database.uses.add("", ["notes/b.md"], 9)
    copy(source, database)
    assert [(each.times, each.last) for each in database.uses.list_counts("notes/b.md")] == [(3, 9)]
    assert source.uses.list_counts() == counts


def test_counts_of_use_that_are_damaged_keep_nothing_back(
    source: LocalStore, database: PostgresStore, tmp_path: Path
) -> None:
    Path(source.own("uses"), "uses.sqlite").write_bytes(b"no database" * 1000)
    for target in (database, LocalStore(str(tmp_path / "other"))):
        (note,) = copy(source, target).notes
        assert "the counts of use are not copied" in note
        assert state_of(target) == state_of(source)


def test_nothing_is_written_over(source: LocalStore, database: PostgresStore, tmp_path: Path) -> None:
    """Another file, another history, a change since: the target stays as it is."""
    other = make_vault(tmp_path / "other")
    copy(other, database)
    for target in (database, other):
        before = state_of(target)
        with pytest.raises(EditRefused, match=r"notes/|sessions/t1|changes of its own"):
            copy(source, target)
        assert state_of(target) == before
    write(database, "notes/a.md", b"more")
    with pytest.raises(EditRefused, match=r"notes/a\.md"):
        copy(other, database)
    write(other, "notes/a.md", b"more")
    with pytest.raises(EditRefused, match="changes of its own"):
        copy(other, database)


@pytest.mark.parametrize("has_config", [False, True])
def test_a_folder_that_holds_other_files_is_refused(
    source: LocalStore, tmp_path: Path, has_config: bool
) -> None:
    own = tmp_path / "own"
    if has_config:
        mdmem.init(own)
    own.mkdir(exist_ok=True)
    (own / "mine.md").write_text("mine")
    with pytest.raises(EditRefused, match=r"mine\.md"):
        copy(source, LocalStore(str(own)))
    assert (own / ".mdmem").exists() == has_config or not (own / ".mdmem/config.toml").exists()
    with pytest.raises(PathRefused, match="inside the vault"):
        copy(source, LocalStore(f"{source.root}/notes/inner"))


def test_what_no_vault_in_a_database_may_have_is_told(
    source: LocalStore, database: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links, devices, names that are no paths, twins in Unicode, and what is too large."""
    root = Path(source.root)
    outside = tmp_path / "secret.md"
    outside.write_text("qqsecret")
    (root / "notes/link.md").symlink_to(outside)
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "notes/pipe.md")
    (root / "notes/back\\slash.md").write_text("x")
    (root / "notes/caf\xe9").mkdir()
    (root / "notes/caf\xe9/\xfcber.md").write_text("twin")
    (root / "notes/large.bin").write_bytes(b"x" * 5000)
    monkeypatch.setattr(transfer, "MOST_ATTACHED_BYTES", 4999)
    os.close(os.open(os.fsencode(root) + b"/notes/\xff.md", os.O_CREAT))
    with (root / "sessions/holes.jsonl").open("wb") as sparse:
        sparse.truncate(1 << 40)
    for hidden in (".git/config", "notes/.obsidian/a.md", "node_modules/a.md", ".mdmem/local/a.md", ".env"):
        (root / hidden).parent.mkdir(parents=True, exist_ok=True)
        (root / hidden).write_text("qqhidden")
    copied = copy(source, database)
    assert {os.fsencode(each) for each in copied.left_out} == {
        *(b"linked", b"notes/link.md", b"notes/pipe.md", b"notes/back\\slash.md", b"notes/large.bin"),
        *(b"notes/\xff.md", os.fsencode(NFD), b"sessions/holes.jsonl"),
    }
    held = state_of(database).files
    assert not any(b"qq" in data for data, *_ in held.values())


def test_what_is_mounted_becomes_a_file(database: PostgresStore, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("# Ours\n")
    source = LocalStore(mdmem.init(tmp_path / "memories").root)
    assert copy(source, database).mounted == ("AGENTS.md",)
    database.recover()
    assert data_of(database.read("AGENTS.md", MOST)) == b"# Ours\n"
    back = LocalStore(str(tmp_path / "elsewhere" / "back"))
    assert copy(database, back).mounted == ("AGENTS.md",)
    assert Path(back.root, "AGENTS.md").read_text() == "# Ours\n"
    assert copy(database, back).files == 0


@pytest.mark.parametrize("last", ["put", "erase"])
def test_the_history_comes_along_where_the_last_change_is_told_to_nobody(
    source: LocalStore, database: PostgresStore, tmp_path: Path, last: str
) -> None:
    write(database, "notes/a.md", b"one")
    write(database, "notes/b.md", b"two")
    if last == "put":
        put(database, source.root)
    else:
        erase(database, "notes/b.md")
    back = LocalStore(str(tmp_path / "back"))
    assert copy(database, back).changes > 0
    assert state_of(back)[1:] == state_of(database)[1:]


def test_a_vault_without_a_config_gets_the_usual_one(database: PostgresStore, tmp_path: Path) -> None:
    write(database, "a.md", b"one")
    back = LocalStore(str(tmp_path / "back"))
    for _ in "ab":
        copy(database, back)
    assert mdmem.open(back.root).show("a.md").text == "one"


def test_more_than_a_vault_may_hold_is_refused(
    source: LocalStore, database: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Path(source.root, ".mdmem/config.toml")
    config.write_text("[team]\nmax_bytes = 100\n")
    with pytest.raises(LimitReached, match="bytes of the files of a vault: the limit is 100"):
        copy(source, database)
    config.write_text("")
    monkeypatch.setattr(postgres, "_MOST_FILES", 8)
    with pytest.raises(LimitReached, match="the files of a vault: the limit is 8"):
        copy(source, database)
    assert state_of(database) == State({}, [], {})


def test_whoever_follows_meanwhile_has_what_the_database_has(
    source: LocalStore, database: PostgresStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server asks between the parts of a copy, whose files come in several transactions."""
    other = PostgresStore(server.url(database.address.vault, application_name="other"))
    monkeypatch.setattr(postgres, "_MOST_FETCHED", 20)
    monkeypatch.setattr(transfer, "_AT_ONCE", 1)
    seen = set[tuple[int, int]]()
    commit = database.database.commit

    def follow(*given: Any) -> None:
        commit(*given)
        state = state_of(other)
        seen.add((len(state.files), len(state.history)))
        count = "SELECT FROM mdmem.file WHERE vault = %s UNION ALL SELECT FROM mdmem.log WHERE vault = %s"
        assert len(state.files) == len(other.database.ask(count, [other.address.vault] * 2))

    monkeypatch.setattr(database.database, "commit", follow)
    copy(source, database)
    assert state_of(other) == state_of(source)
    assert len(seen) > 8
    for store in (other, database):
        store.close()


def test_somebody_who_changes_the_target_meanwhile_loses_nothing(
    source: LocalStore, database: PostgresStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PostgresStore(server.url(database.address.vault, application_name="other"))
    fill = transfer._TargetDatabase.put_files

    def change(*given: Any) -> None:
        other.recover()
        write(other, "notes/theirs.md", b"theirs")
        fill(*given)

    monkeypatch.setattr(transfer._TargetDatabase, "put_files", change)
    with pytest.raises(EditRefused, match="meanwhile"):
        copy(source, database)
    assert [*state_of(database).files] == ["notes/theirs.md"]


def test_what_is_damaged_in_a_database_is_told(database: PostgresStore, tmp_path: Path) -> None:
    for path in ("a.md", "b.md"):
        write(database, path, path.encode())
    append(database, "sessions/s.jsonl", [b"one"])
    run(
        database,
        f"UPDATE mdmem.content SET data = 'other' WHERE vault = %s AND hash = '{digest(b'a.md')}'",
        "DELETE FROM mdmem.chunk WHERE vault = %s",
    )
    shutil.rmtree(database.root)
    copied = copy(database, LocalStore(str(tmp_path / "back")))
    assert [note.partition(":")[0] for note in copied.notes] == ["a.md", "sessions/s.jsonl"]
    assert (tmp_path / "back/b.md").exists()
    assert not (tmp_path / "back/a.md").exists()


def test_what_a_hand_changed_in_this_machines_copy_is_not_copied(
    database: PostgresStore, tmp_path: Path
) -> None:
    write(database, "a.md", b"one")
    Path(database.root, "a.md").write_bytes(b"by hand")
    Path(database.root, "b.md").write_bytes(b"by hand")
    back = LocalStore(str(tmp_path / "back"))
    copy(database, back)
    assert [data for path, (data, *_) in state_of(back).files.items() if path.endswith(".md")] == [b"one"]


def test_a_vault_is_not_copied_to_itself(source: LocalStore, database: PostgresStore) -> None:
    for store in (source, database):
        with pytest.raises(EditRefused, match="to itself"):
            copy(store, store)


def test_of_two_copies_to_one_target_one_goes_on(server: Server, source: LocalStore, tmp_path: Path) -> None:
    """Two processes copy two equal vaults to one database, and to one folder; what one leaves is whole."""
    twin = LocalStore(str(tmp_path / "twin"))
    copy(source, twin)
    url = server.url(uuid4().hex)
    make_tables(read_address(url))
    for target in (url, str(tmp_path / "both")):
        commands = [[sys.executable, "-m", "mdmem", "store", "copy", s.root, target] for s in (source, twin)]
        codes = [process.wait() for process in [subprocess.Popen(command) for command in commands]]
        assert set(codes) <= {0, 2}
        to = PostgresStore(target) if target == url else LocalStore(target)
        copy(source, to)
        assert state_of(to) == state_of(source)
        to.close()
