"""The write lock: one holder at a time, across processes and threads, and free when its holder is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mdmem.errors import LockTimeout, StorageFailed
from mdmem.vault import lock

HOLD = """
import sys
from mdmem.vault import lock
with lock.held(sys.argv[1], 60):
    print("held", flush=True)
    sys.stdin.readline()
"""
COUNT = """
import sys
from mdmem.vault import lock
for _ in range(100):
    with lock.held(sys.argv[1], 60):
        with open(sys.argv[2]) as file:
            number = int(file.read())
        with open(sys.argv[2], "w") as file:
            file.write(str(number + 1))
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the lock until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        yield process


# README: Locks are `flock(2)` …
def test_another_process_is_kept_out_until_the_holder_is_done(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        with pytest.raises(LockTimeout) as refused, lock.held(str(path), 0):
            pytest.fail("two hold one lock")
        assert (refused.value.path, refused.value.seconds) == (str(path), 0)
        assert str(path) in str(refused.value)
        process.communicate(b"\n")
        with lock.held(str(path), 60):
            assert path.exists()


def test_a_holder_that_is_killed_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.kill()
        with lock.held(str(path), 60):
            assert path.exists()


def test_no_step_of_several_processes_is_lost(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "lock"), str(counter)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert counter.read_text() == "300"


def test_threads_exclude_each_other_like_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    inside, most, total = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, total
        for _ in range(50):
            with lock.held(path, 60):
                inside += 1
                most = max(most, inside)
                total += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, total) == (1, 200)


def test_a_thread_is_kept_out_while_another_holds_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    refusals: list[LockTimeout] = []

    def attempt() -> None:
        with pytest.raises(LockTimeout) as refused, lock.held(path, 0.01):
            pytest.fail("two hold one lock")
        refusals.append(refused.value)

    with lock.held(path, 0):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert [refusal.seconds for refusal in refusals] == [0.01]


def test_the_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with pytest.raises(KeyError), lock.held(path, 0):
        raise KeyError
    with lock.held(path, 0):
        pass


def test_the_file_stays_so_that_everybody_locks_the_same_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.held(str(path), 0):
        inode = path.stat().st_ino
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("kind", ["missing folder", "link", "folder"])
def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "missing folder":
        path = tmp_path / "gone" / "lock"
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
    with pytest.raises(StorageFailed) as refused, lock.held(str(path), 0):
        pytest.fail("it was locked")
    assert refused.value.path == str(path)
    assert not os.path.exists(tmp_path / "elsewhere")
