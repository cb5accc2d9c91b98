"""Readers: with their help or without it the answers are the same, whatever happens to them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mdmem.index.readers import Answer, readings
from mdmem.index.reading import MOST_TOGETHER, Folder
from mdmem.text.document import Limits

COUNT = 1_600  # more than it takes to ask for help
LIMITS = Limits(max_bytes=1_000)
Told = dict[str, Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Folder]:
    """Many files in folders, and some that are no memories, or gone."""
    root = tmp_path_factory.mktemp("many")
    made = []
    for start in range(0, COUNT, MOST_TOGETHER):
        name = f"n{start}"
        (root / name).mkdir()
        files = []
        for number in range(start, start + MOST_TOGETHER):
            file = root / name / f"{number}.md"
            if number % 97 == 0:
                file.write_bytes(b"\xff")
            elif number % 89 == 0:
                file.write_bytes(b"x" * 2_000)
            elif number % 83:
                file.write_text(f"---\ntitle: T{number}\n---\n# One\n[[{number + 1}]] #tag\n")
            files.append((f"{name}/{number}.md", f"{number}.md"))
        made.append(Folder(str(root), (name,), tuple(files)))
    made.append(Folder(str(root), ("gone",), (("gone/a.md", "a.md"),)))
    return made


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started; on every machine there are processors for two."""
    processes: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    return processes


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process, and no pipe."""
    before = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
    yield
    gc.collect()  # a pipe that is only forgotten warns here
    after = sorted(os.listdir("/proc/self/fd")) if before else []
    assert len(after) == len(before)


def as_told(found: Iterator[tuple[Folder, Answer]]) -> Told:
    told: Told = {}
    for folder, answer in found:
        for (path, _), each in zip(folder.files, answer, strict=True):
            assert path not in told
            told[path] = each and (each[0]._replace(racy=False), each[1])
    return told


@pytest.fixture(scope="module")
def alone(folders: list[Folder]) -> Told:
    """What is told without any help: few files at a time."""
    told: Told = {}
    for folder in folders:
        told |= as_told(readings([folder], LIMITS))
    return told


def is_gone(process: subprocess.Popen[bytes]) -> bool:
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_with_help_the_answers_are_the_same(
    folders: list[Folder], alone: Told, started: list[subprocess.Popen[bytes]]
) -> None:
    assert as_told(readings(folders, LIMITS)) == alone
    assert len(started) == 2
    assert all(map(is_gone, started))
    assert len(alone) == COUNT + 1
    assert alone["gone/a.md"] is None
    assert alone["n0/97.md"][1].problem
    assert alone["n0/89.md"][0].hash == ""
    assert alone["n0/83.md"] is None
    assert alone["n0/1.md"][1].record.summary.title == "T1"


def test_nobody_is_asked_where_there_is_little(
    folders: list[Folder], started: list[subprocess.Popen[bytes]]
) -> None:
    assert as_told(readings(folders[:2], LIMITS))
    assert started == []


@pytest.mark.parametrize(
    ("answers", "how"), [(0, signal.SIGKILL), (1, signal.SIGTERM), (3, signal.SIGKILL), (9, signal.SIGKILL)]
)
def test_readers_that_are_killed_lose_nothing(
    folders: list[Folder],
    alone: Told,
    started: list[subprocess.Popen[bytes]],
    answers: int,
    how: signal.Signals,
) -> None:
    def killing() -> Iterator[tuple[Folder, Answer]]:
        for count, each in enumerate(readings(folders, LIMITS)):
            if count == answers:
                for process in started:
                    process.send_signal(how)
            yield each

    assert as_told(killing()) == alone
    assert all(map(is_gone, started))


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_readers_that_cannot_be_started_are_not_needed(
    folders: list[Folder], alone: Told, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(sys, "executable", program)
    assert as_told(readings(folders, LIMITS)) == alone


def test_who_stops_asking_ends_them(folders: list[Folder], started: list[subprocess.Popen[bytes]]) -> None:
    found = readings(folders, LIMITS)
    next(found)
    assert not any(map(is_gone, started))
    assert isinstance(found, Generator)
    found.close()
    assert len(started) == 2
    assert all(map(is_gone, started))


def test_a_reader_ends_with_whoever_asks(folders: list[Folder], tmp_path: Path) -> None:
    """Even when that one is killed: its end of the pipe is closed."""
    script = tmp_path / "asks.py"
    script.write_text(
        "import os, pickle, sys\n"
        "os.cpu_count = lambda: 2\n"
        "from mdmem.index.readers import readings\n"
        "from mdmem.text.document import Limits\n"
        "found = readings(pickle.load(sys.stdin.buffer), Limits())\n"
        "next(found)\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    import pickle

    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        pytest.skip("who belongs to whom cannot be asked here")
    ran = subprocess.run(
        [sys.executable, str(script)], input=pickle.dumps(folders), capture_output=True, check=False
    )
    assert ran.returncode == -signal.SIGKILL
    (child,) = map(int, ran.stdout.split())
    # It is nobody's child here, so it cannot be waited for: it ends within a moment, or the test never does.
    while os.path.exists(f"/proc/{child}") and "State:\tZ" not in Path(f"/proc/{child}/status").read_text():
        pass
