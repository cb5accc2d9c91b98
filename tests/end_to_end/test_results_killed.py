"""Results under attack: kills, several processes at once, full disks, vaults that cannot be written to."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mdmem.conversations.results.results import ToolResults
from mdmem.facade.memory import Memory
from tests.speed import is_all, soak_most

LOG = "".join(f"step {number} of src/app.py\n" for number in range(1_000))
MEGABYTE = 1 << 20
STRIDE = 1 if is_all else 9  # of the instants of a kill
TOGETHER, TIMES = ("abcd", 50) if is_all else ("ab", 6)
LARGE = (50 if is_all else 3) * MEGABYTE
MANY = """
import sys
from mdmem.facade.memory import Memory
results = Memory(sys.argv[1]).results
for number in range(int(sys.argv[3])):
    mine = results.compress("Bash", f"{sys.argv[2]} {number} src/own_{sys.argv[2]}.py\\n" + "x\\n" * 3_000)
    ours = results.compress("Bash", f"{number} src/shared.py\\n" + "y\\n" * 3_000)
    assert mine.recoverable and ours.recoverable, (mine.rest, ours.rest)
    assert results.recover(mine.hash).startswith(f"{sys.argv[2]} {number} ".encode())
"""
FULL = """
import json, resource, signal, sys
from mdmem.facade.memory import Memory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
results = Memory(sys.argv[1]).results
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
done = [results.compress("Bash", f"{number}\\n" + "x\\n" * 3_000) for number in range(30)]
print(json.dumps([[each.hash, each.recoverable, each.rest, len(each.summary)] for each in done]))
"""


@pytest.fixture
def results(vault_root: Path) -> ToolResults:
    return Memory(str(vault_root)).results


def killed_at(root: Path, instant: int, output: str) -> bool:
    """Store an output in a process that is killed at an instant: before a call, or a statement of SQL."""
    if process := os.fork():
        return os.WIFSIGNALED(os.waitpid(process, 0)[1])
    left = instant

    def step(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*given: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **options)
        connection.set_trace_callback(step)
        return connection

    def watch(event: str, _: tuple[object, ...]) -> None:
        if event.startswith(("sqlite3", "os.", "open", "fcntl")):
            step()

    connect: Any = sqlite3.connect
    try:
        results = Memory(str(root)).results
        vars(sqlite3)["connect"] = traced
        sys.addaudithook(watch)
        results.compress("Bash", output, session="s")
    finally:
        os._exit(0)


@pytest.mark.parametrize("first", [True, False])
def test_a_kill_at_each_instant_of_storing_leaves_all_of_it_or_nothing(
    tmp_path: Path, vault_root: Path, *, first: bool
) -> None:
    """Of the first output, for which the database is made, and of a later one, which sweeps an older one."""
    (vault_root / ".mdmem/config.toml").write_text(f"[results]\nmax_bytes = {2 * len(LOG)}\n")
    instant, ended = 1 - STRIDE, True
    while ended:
        instant += STRIDE
        root = tmp_path / f"at {instant}"
        shutil.copytree(vault_root, root)
        results = Memory(str(root)).results
        old = [] if first else [results.compress("Bash", LOG.replace("app", name)).hash for name in "ab"]
        ended = killed_at(root, instant, LOG)
        whole = bool(results.can_recover(sha256(LOG.encode()).hexdigest()))
        assert whole or ended
        assert ("src/app.py" in {each.value for each in results.references()}) == whole
        kept = [bool(results.can_recover(each)) for each in old]
        assert kept == ([] if first else [not whole, True])
        assert bool(old and results.can_recover(old[0]).gone) == bool(old and whole)
        assert results.compress("Bash", LOG, session="s").recoverable
        (here,) = results.lookup("app.py")
        assert here.count == 1 + whole
        (folder,) = (root / ".mdmem/local/results").iterdir()
        assert {path.name for path in folder.iterdir()} == {
            "lock",
            "results.sqlite",
            "results.sqlite-journal",
        }
        assert memory_remarks(root) == []
    assert instant > 30


def memory_remarks(root: Path) -> list[str]:
    memory = Memory(str(root))
    memory.results.list()
    return memory.service.remarks


def test_processes_that_meet_a_damaged_database_at_once_put_it_aside_once(
    results: ToolResults, vault_root: Path
) -> None:
    results.compress("Bash", LOG)
    (file,) = vault_root.glob(".mdmem/local/results/*/results.sqlite")
    file.write_bytes(b"no database" * 10_000)
    command = [sys.executable, "-c", MANY, str(vault_root)]
    running = [subprocess.Popen([*command, name, "5"], stderr=subprocess.PIPE) for name in TOGETHER[:3]]
    for process in running:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert len(results.list()) == 5 * (len(running) + 1)
    assert file.with_name("results.sqlite.damaged").read_bytes().startswith(b"no database")


def test_processes_at_once_keep_everything(results: ToolResults, vault_root: Path) -> None:
    """Each its own outputs, and as many that all of them store; the database is made by one of them."""
    command = [sys.executable, "-c", MANY, str(vault_root)]
    running = [subprocess.Popen([*command, name, str(TIMES)], stderr=subprocess.PIPE) for name in TOGETHER]
    for process in running:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert len(results.list()) == TIMES * (len(TOGETHER) + 1)
    assert all(results.can_recover(each.hash) for each in results.list())
    counts = {each.value: each.count for each in results.references("file_path")}
    shared = {"src/shared.py": TIMES * len(TOGETHER)}
    assert counts == shared | {f"src/own_{name}.py": TIMES for name in TOGETHER}


@pytest.mark.parametrize("room", soak_most([0, 1_000, 20_000, 80_000, 120_000], quick=(3,)))
def test_where_a_file_may_not_grow_the_short_form_is_given_and_says_so(
    results: ToolResults, vault_root: Path, room: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-B", "-c", FULL, str(vault_root), str(room)], capture_output=True, check=True
    )
    done = json.loads(ended.stdout)
    assert not all(recoverable for _, recoverable, _, _ in done)
    for hash_, recoverable, rest, length in done:
        assert bool(results.can_recover(hash_)) == recoverable
        assert 0 < length < 6_000
        assert recoverable or "it is not kept: " in rest
    assert results.compress("Bash", LOG).recoverable


@contextlib.contextmanager
def small_disk(size: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mdmem-full-") as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("needs the right to mount")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def test_on_a_full_disk_nothing_is_lost_and_what_fits_again_is_kept() -> None:
    with small_disk("2m") as disk:
        root = disk / "memories"
        (root / ".mdmem").mkdir(parents=True)
        (root / ".mdmem/config.toml").touch()
        results = Memory(str(root)).results
        first = results.compress("Bash", LOG)
        refused = results.compress("Bash", "z" * 3 * MEGABYTE)
        assert (first.recoverable, refused.recoverable) == (True, False)
        assert "full" in refused.rest
        assert len(refused.summary) < 6_000
        assert results.recover(first.hash) == LOG.encode()
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        assert not results.compress("Read", LOG + "more\n" * 30_000).recoverable
        assert results.recover(first.hash) == LOG.encode()
        filler.unlink()
        assert results.compress("Read", LOG + "more\n").recoverable
        assert [bool(results.can_recover(each.hash)) for each in results.list()] == [True, True]


def test_a_vault_that_cannot_be_written_to_gives_short_forms_and_what_it_has() -> None:
    with small_disk("8m") as disk:
        root = disk / "memories"
        (root / ".mdmem").mkdir(parents=True)
        (root / ".mdmem/config.toml").touch()
        first = Memory(str(root)).results.compress("Bash", LOG)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        results = Memory(str(root)).results
        done = results.compress("Bash", LOG * 2)
        assert len(done.summary) < len(LOG)
        assert not done.recoverable
        assert "it is not kept: " in done.rest
        assert "read-only" in done.rest.lower() or "readonly" in done.rest.lower()
        assert results.recover(first.hash) == LOG.encode()
        assert results.can_recover(first.hash)
        assert [each.value for each in results.references()] == ["src/app.py"]


def test_a_vault_without_local_state_that_cannot_be_written_to_gives_short_forms() -> None:
    with small_disk("1m") as disk:
        root = disk / "memories"
        (root / ".mdmem").mkdir(parents=True)
        (root / ".mdmem/config.toml").touch()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        results = Memory(str(root)).results
        done = results.compress("Bash", LOG)
        assert not done.recoverable
        assert "it is not kept: " in done.rest
        assert not results.can_recover(done.hash)
        assert results.list() == []


def test_a_copy_of_a_vault_has_none_of_its_results(results: ToolResults, vault_root: Path) -> None:
    """What is under `.mdmem/local` is believed only where it was made."""
    hash_ = results.compress("Bash", LOG).hash
    shutil.copytree(vault_root, copy := vault_root.with_name("copy"))
    assert not Memory(str(copy)).results.can_recover(hash_)
    assert Memory(str(copy)).results.list() == []


def test_a_large_output_comes_back_through_the_program(vault_root: Path, tmp_path: Path) -> None:
    line = tmp_path / "line"
    with line.open("wb") as file:
        file.write(b"begin\xff" + b"x" * LARGE)
    command = [sys.executable, "-m", "mdmem", "--vault", str(vault_root), "results"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MDMEM_")}
    with line.open("rb") as given:
        ended = subprocess.run(
            [*command, "compress", "--tool", "Bash"], stdin=given, capture_output=True, check=True, env=env
        )
    assert ended.stdout.startswith("begin\ufffdx".encode())
    assert len(ended.stdout) < 6_100
    hash_ = ended.stderr.decode().split("recover ")[1].split()[0].rstrip(";")
    with (tmp_path / "back").open("wb") as back:
        subprocess.run([*command, "recover", hash_], stdout=back, check=True, env=env)
    assert (tmp_path / "back").read_bytes() == line.read_bytes()
