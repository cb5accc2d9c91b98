"""Reading with the help of other processes: the same memories, whatever becomes of those."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.index import worker
from mdmem.index.sync import read_and_parse
from mdmem.index.worker import count_workers, read_with_workers
from mdmem.vault.vault import Vault
from tests import speed
from tests.speed import soak_most
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mdmem.index.sync import Parsed

LEAST_FILES = 1_500
WORKER = b"mdmem.index.worker"


def fill(root: Path, count: int) -> list[str]:
    """Write that many notes, some of which are none or gone; the paths of all."""
    (root / "notes").mkdir()
    for number in range(count):
        points = f"See [[n{number + 1}]] and src/a.py#L{number}."
        text = f"---\ntags: [t{number % 7}]\n---\n# Note {number}\n\n{points}\n"
        (root / f"notes/n{number}.md").write_text(text, encoding="utf-8")
    (root / "notes/binary.md").write_bytes(b"\0\1")
    (root / "notes/data.json").write_text('{"title": "Data"}')
    return sorted(f"notes/{name}" for name in [*os.listdir(root / "notes"), "gone.md"])


def workers_of(parent: int) -> list[int]:
    """The workers that a process has started, by their numbers."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if WORKER in (entry / "cmdline").read_bytes():
                numbers = (entry / "stat").read_text().rpartition(")")[2].split()
                found += [int(entry.name)] if int(numbers[1]) == parent else []
        except (OSError, ValueError):
            continue
    return found


def all_workers() -> set[int]:
    """Every worker of this machine, whosoever it is."""
    return {
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and WORKER in read_or_nothing(entry / "cmdline")
    }


def read_or_nothing(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def settled(found: Iterable[Parsed | None]) -> list[Any]:
    """What was read, without whether it was read right behind its writing."""
    return [each and (each[0]._replace(racy=False), each[1]) for each in found]


def read_alone(root: Path, paths: list[str]) -> list[Any]:
    vault = Vault(str(root))
    return settled(read_and_parse(vault, path, texts=True) for path in paths)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers, whatever the machine has, also for few files."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(worker, "_EACH", 50)


@pytest.mark.usefixtures("two")
def test_workers_read_what_one_process_reads(vault_root: Path) -> None:
    paths = fill(vault_root, 300)
    found = [*read_with_workers(Vault(str(vault_root)), paths, texts=True)]
    assert settled(found) == read_alone(vault_root, paths)
    assert found[paths.index("notes/gone.md")] is None
    assert workers_of(os.getpid()) == []


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("number", soak_most(range(0, 300, 15), quick=(1,)))
def test_what_a_killed_worker_had_is_read_all_the_same(vault_root: Path, number: int) -> None:
    paths, found = fill(vault_root, 300), []
    for each in read_with_workers(Vault(str(vault_root)), paths, texts=True):
        found.append(each)
        if len(found) == number + 1:
            for process in workers_of(os.getpid()):
                os.kill(process, signal.SIGKILL)
    assert settled(found) == read_alone(vault_root, paths)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("program", ["/nowhere/python", "", sys.prefix, "/bin/true"])
def test_what_a_worker_that_cannot_start_had_is_read_all_the_same(
    vault_root: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    paths = fill(vault_root, 100)
    monkeypatch.setattr(sys, "executable", program)
    found = [*read_with_workers(Vault(str(vault_root)), paths, texts=True)]
    assert settled(found) == read_alone(vault_root, paths)


@pytest.mark.usefixtures("two")
def test_workers_end_with_whoever_stops_to_read(vault_root: Path) -> None:
    paths = fill(vault_root, 300)
    reading: Iterator[object] = read_with_workers(Vault(str(vault_root)), paths, texts=True)
    next(reading)
    assert len(workers_of(os.getpid())) == 2
    reading.close()  # type: ignore[attr-defined]
    assert workers_of(os.getpid()) == []


def test_workers_read_only_what_takes_longer_than_their_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_workers(LEAST_FILES - 1) == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4, 5, 6, 7}, raising=False)
    assert [count_workers(files) for files in (LEAST_FILES, 2 * LEAST_FILES, 10**6)] == [1, 2, 3]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert count_workers(10**6) == 0
    monkeypatch.setenv("MDMEM_WORKER", "1")
    assert count_workers(10**6) == 0, "a worker starts none, whatever program it is"


# -- as programs use it -------------------------------------------------------------------------------------

SYNC = "import mdmem; print(len(mdmem.open(ROOT).sync().created))"
PLAIN = f"import sys; ROOT = sys.argv[1]\n{SYNC}"
DAEMON = f"""
import multiprocessing, sys
ROOT = sys.argv[1]
def work():
    {SYNC}
process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
process.start(); process.join(); sys.exit(process.exitcode)
"""


@pytest.mark.soak
@pytest.mark.parametrize("way", ["a script without a guard", "standard input", "a daemon process"])
def test_a_first_run_goes_well_in(vault_root: Path, tmp_path: Path, way: str) -> None:
    fill(vault_root, LEAST_FILES)
    script = tmp_path / "script.py"
    script.write_text(DAEMON if way == "a daemon process" else PLAIN)
    command = [sys.executable, "-" if way == "standard input" else str(script), str(vault_root)]
    given = script.read_text() if way == "standard input" else ""
    ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.strip(), ended.stderr) == (str(LEAST_FILES + 1), "")


@pytest.mark.soak
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_is_left_whenever_its_parent_is_killed(vault_root: Path, how: signal.Signals) -> None:
    fill(vault_root, 2 * LEAST_FILES)
    for moment in range(20 if speed.is_all else 1):
        before = all_workers()
        command = [sys.executable, "-m", "mdmem", "--vault", str(vault_root), "index", "--rebuild"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            counted = Path(mdmem.open(vault_root).index.folder, "count")
            until(lambda: process.poll() is not None or read_or_nothing(counted) > b"%10d" % (moment * 100))  # noqa: B023
            process.send_signal(how)
        until(lambda: all_workers() <= before)  # noqa: B023
        until(lambda: workers_of(process.pid) == [])
    memory = mdmem.open(vault_root)
    memory.sync()
    assert memory.search("note 7", limit=1).hits
    assert {each.code for each in memory.doctor().findings} <= {"dangling-link", "not-a-memory", "binary"}
