"""Both stores do what any store must do; and nothing above the vault reaches below its store unseen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import mdmem
from mdmem.document.document import digest
from mdmem.errors import LockTimeout, PathRefused, StorageFailed, VaultNotFound
from mdmem.vault import files, local_store
from mdmem.vault.local_store import LocalStore
from mdmem.vault.store import Step
from mdmem.vault.vault import Vault
from tests import speed
from tests.memory.forking import run_at_once
from tests.vault.store_conformance import add_lines, count

from .memory_store import MemoryStore
from .store_conformance import MOST, Put, StoreConformance, append, check_lines, commit, data_of, write

REPOSITORY = Path(__file__).parents[2]


class TestMemoryConformance(StoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def put(self, store: MemoryStore) -> Put:
        return store.put

    def test_what_needs_a_folder_says_so(self, store: MemoryStore) -> None:
        with pytest.raises(VaultNotFound):
            Vault(store).disk.local("index")


def count_and_add(root: str, name: str) -> None:
    store = LocalStore(root)
    count(store, 10)
    add_lines(store, name.encode())


class TestLocalConformance(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(str(tmp_path))

    @pytest.fixture
    def put(self, tmp_path: Path) -> Put:
        def write_file(path: str, data: bytes) -> None:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(data)

        return write_file

    def test_processes_lose_no_change_and_tear_no_line(self, store: LocalStore) -> None:
        names = ["a", "b", "c"] if speed.is_all else ["a", "b"]
        assert set(run_at_once(*(partial(count_and_add, store.root, name) for name in names))) == {0}
        assert data_of(store.read("a.md", MOST)) == b"%d" % (10 * len(names))
        check_lines(store, [name.encode() for name in names])

    def test_other_spellings_of_a_name_are_found_and_told_apart(self, store: LocalStore, put: Put) -> None:
        put("ne\u0301/e\u0301.md", b"one")
        assert data_of(store.read("n\xe9/\xe9.md", MOST)) == b"one"
        assert store.read("n\xe9/\xe9.md", MOST, exact=True) is None
        assert store.names("n\xe9") == ["\xe9.md"]
        assert store.spelled("n\xe9/\xe9.md") == "ne\u0301/e\u0301.md"
        base = store.read("n\xe9/\xe9.md", MOST)
        commit(store, Step("n\xe9/\xe9.md", base, b"two", spelled="ne\u0301/e\u0301.md"))
        assert data_of(store.read("ne\u0301/e\u0301.md", MOST, exact=True)) == b"two"

    def test_what_a_program_wrote_over_a_step_is_kept(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It comes between the comparison and the exchange, in a file that was compared already."""
        write(store, "a.md", b"base")
        base, exchange = store.read("a.md", MOST), files.exchange

        def overtaken(staged: tuple[int, str], target: tuple[int, str]) -> None:
            monkeypatch.setattr(files, "exchange", exchange)
            Path(store.root, "a.md").write_bytes(b"theirs")
            exchange(staged, target)

        monkeypatch.setattr(files, "exchange", overtaken)
        with pytest.raises(files.Raced) as raced:
            commit(store, Step("a.md", base, b"ours"))
        assert raced.value.late == {"a.md": b"theirs"}
        assert data_of(store.read("a.md", MOST)) == b"theirs"
        assert data_of(store.kept(digest(b"theirs"))) == b"theirs"
        assert next(store.entries()).message == "set aside what another program wrote"


@pytest.mark.parametrize("obstacle", ["link", "folder", "pipe", "folder is a link"])
def test_a_log_that_is_none_is_refused(tmp_path: Path, obstacle: str) -> None:
    store, log = LocalStore(str(tmp_path / "v")), tmp_path / "v/logs/a.jsonl"
    log.parent.mkdir(parents=True)
    if obstacle == "link":
        (tmp_path / "profile").write_bytes(b"")
        log.symlink_to(tmp_path / "profile")
    elif obstacle == "folder":
        log.mkdir()
    elif obstacle == "pipe":
        os.mkfifo(log)
    else:
        log.parent.rmdir()
        log.parent.symlink_to(tmp_path)
    with pytest.raises((PathRefused, StorageFailed)) as refused:
        append(store, "logs/a.jsonl", [b"one"])
    assert refused.value.values["path"] == "logs/a.jsonl"
    assert not (tmp_path / "a.jsonl").exists()
    assert not (tmp_path / "profile").exists() or (tmp_path / "profile").read_bytes() == b""


FULL = """
import resource, signal, sys
from mdmem.errors import StorageFailed
from mdmem.vault.local_store import LocalStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with LocalStore(sys.argv[1]).appending("a.jsonl") as (log,):
        log.append([b"x" * 600, b"y" * 600])
except StorageFailed as error:
    sys.exit(0 if error.path == "a.jsonl" else 2)
"""


def test_a_full_disk_leaves_nothing_of_the_lines(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    append(store, "a.jsonl", [b"one"])
    subprocess.run([sys.executable, "-B", "-c", FULL, store.root], check=True)
    assert data_of(store.read("a.jsonl", MOST)) == b"one\n"


def test_a_log_that_somebody_keeps_locked_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_store, "LOCK_SECONDS", 0.02)
    store = LocalStore(str(tmp_path))
    append(store, "a.jsonl", [b"one"])
    (lock,) = (tmp_path / ".mdmem/local/logs").iterdir()
    with files.held(str(lock), 1), pytest.raises(LockTimeout):
        append(store, "a.jsonl", [b"two"])


# Who asks a store on a disk for files, besides the vault: what ripgrep, the index, the watcher and other
# programs need is where a file is. Each line that is added here is one more thing that no other store can do.
BELOW = {
    "hosts/files.py": "other tools' files",
    "hosts/hosts.py": "settings of hosts, which are no memories",
    "hosts/settings.py": "writes outside of the vault",
    "hosts/sync.py": "writes outside of the vault",
    "index/code/workspace.py": "the code that memories cite",
    "review/merge_driver.py": "which memory a file is that git merges",
    "memory/imports/batch.py": "other systems' files",
    "index/database.py": "whether the index was replaced",
    "index/grep.py": "ripgrep",
    "index/meaning.py": "the lock of whoever makes vectors",
    "index/index.py": "where the index is, and the look at what has changed",
    "index/sync.py": "reads many files at once",
    "index/view.py": "code beside the vault",
    "index/unindexed.py": "the files of a namespace that has no index yet",
    "index/links/dialect.py": "the settings of the tools that notes are written for",
    "facade/questions/check.py": "which files a mount hides",
    "facade/background.py": "the lock of whoever is at a session",
    "review/commits.py": "the lock of commits, and what git calls a memory",
    "editor/editing.py": "the watcher",
    "facade/questions/excerpt.py": "when a file was changed last",
    "facade/questions/past.py": "where copies of the past stand",
    "facade/questions/uses.py": "where the counts of use stand",
    "facade/questions/status.py": "which mounted files are missing",
    "facade/service.py": "which files a session has changed",
    "facade/questions/doctor.py": "what lies about in the vault's own folder",
    "review/merge_setup.py": "writes outside of the vault",
    "facade/memory.py": "where vectors of programs are kept",
    "facade/scoped.py": "ripgrep, which memory a file is, and a folder for what can be made again",
    "review/tracked.py": "what git calls a memory",
    "memory/verbs.py": "which memories are mounted",
    "conversations/results/database.py": "where outputs of tools are kept",
    "conversations/results/results.py": "where outputs of tools are kept",
    "conversations/transcripts/importing.py": "other programs' files",
    "conversations/log/logs.py": "the locks of compactions",
    "conversations/find/search.py": "where its index is",
    "conversations/transcripts/transcripts.py": "other programs' files",
    "index/watch/events.py": "the watcher",
    "index/watch/inotify.py": "the watcher",
    "index/watch/watcher.py": "the watcher",
}


def test_nothing_else_reaches_below_the_store() -> None:
    house = Path(mdmem.__file__).parent
    reaching = re.compile(
        r"\.disk\b|vault\.(?:mounted|place)\(|from mdmem\.vault\.(?:files|journal|trash|local_store)\b"
        r"|from mdmem\.vault import .*\b(?:files|journal|trash|local_store)\b"
    )
    found = {
        name
        for path in house.rglob("*.py")
        if (name := str(path.relative_to(house))).partition("/")[0] != "vault"
        and reaching.search(re.sub(r"(?m)^if TYPE_CHECKING:(?:\n(?: .*)?)+", "", path.read_text()))
    }
    assert found == set(BELOW)
