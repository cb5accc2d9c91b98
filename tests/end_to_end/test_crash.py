"""Killed, or refused by the system, at any step of a change: the vault is as before, or as after.

Each case is some dozens of trials, made by `crash_worker.py`: after each one the vault is opened as the next
command opens it, and must hold every memory as it was, or every memory as it was to be; with nothing lost,
and no temporary file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.speed import is_all, soak_most

WORKER = Path(__file__).with_name("crash_worker.py")
# Of calls that fail, which are some 80, and some 400; and of the kills of what has many steps.
STRIDES, KILLED_EVERY = ({"change": 2, "many": 11}, 1) if is_all else ({"change": 5, "many": 23}, 8)
PLANS = ("change", "mounted", "make", "move", "attach", "delete", "sweep", "many")
KILLED = [(what, how) for how in ("kill", "kill:plain") for what in PLANS]
OFTEN = (("delete", "kill"), ("sweep", "kill"), ("many", "kill"), ("change", "kill:plain"))
# Python has a class of its own for the last.
FAILED = [(what, error) for error in ("ENOSPC,EIO", "EACCES") for what in PLANS if what != "attach"]

Report = dict[str, Any]
Try = Callable[..., Report]


@contextmanager
def worker(before: Sequence[str] = ()) -> Iterator[Try]:
    """Asks a process for trials, which must all go well; `before` are the first words of its command line."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*before, sys.executable, str(WORKER)], stdin=pipe, stdout=pipe, text=True
    ) as process:

        def trials(folder: Path, what: str, how: str, stride: int, inner: int = 1) -> Report:
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps([str(folder), what, how, stride, inner]) + "\n")
            process.stdin.flush()
            report: Report = json.loads(process.stdout.readline())
            assert report["wrong"] == []
            return report

        yield trials
        process.communicate()


@pytest.fixture(scope="module")
def trials() -> Iterator[Try]:
    with worker() as trials:
        yield trials


# ----------------------------------------------------------------------------------------------------- killed


@pytest.mark.parametrize(("what", "how"), soak_most(KILLED, quick=[KILLED.index(row) for row in OFTEN]))
def test_a_change_is_killed_at_every_step(swift: Path, trials: Try, what: str, how: str) -> None:
    found = trials(swift, what, how, KILLED_EVERY if what == "many" else 1)
    assert found["said"] == {"killed": found["trials"] - 1, "done": 1}
    assert found["before"] > 7
    assert found["after"] > 2


@pytest.mark.parametrize(
    ("what", "error"),
    soak_most(FAILED, quick=(FAILED.index(("many", "ENOSPC,EIO")), FAILED.index(("change", "EACCES")))),
)
def test_a_call_that_fails_leaves_everything_as_it_was(
    swift: Path, trials: Try, what: str, error: str
) -> None:
    found = trials(swift, what, error, STRIDES.get(what, 3))
    assert found["trials"] > 15
    refused = found["said"].get("storage-failed", 0) + found["said"].get("system-failing", 0)
    assert found["said"].keys() - {"system-failing"} == {"storage-failed", "done"}
    assert found["before"] == refused > 12


@pytest.mark.parametrize(
    ("what", "stride", "least"), soak_most([("change", 7, 7), ("change", 2, 25), ("many", 11, 25)])
)
def test_a_disk_that_goes_on_failing_leaves_it_to_the_next_command(
    swift: Path, trials: Try, what: str, stride: int, least: int
) -> None:
    found = trials(swift, what, "ENOSPC*", stride)
    assert found["trials"] > least + 5
    assert found["before"] > least


@pytest.mark.parametrize(
    ("what", "how", "strides", "least"),
    soak_most(
        [
            ("change", "EIO+kill", (11, 3), 5),
            ("change", "EIO+kill", (5, 1), 10),
            ("many", "EIO+kill", (61, 5), 10),
            ("many", "EIO+kill:plain", (61, 7), 10),
        ]
    ),
)
def test_taking_a_change_back_is_killed(
    swift: Path, trials: Try, what: str, how: str, strides: tuple[int, int], least: int
) -> None:
    found = trials(swift, what, how, *strides)
    assert found["said"]["killed"] > least
    assert found["before"] > 2 * least


@pytest.mark.parametrize(
    ("what", "how", "strides", "least"),
    soak_most(
        [
            ("delete", "kill+kill", (3, 2), 4),
            ("change", "kill+kill", (2, 1), 10),
            ("delete", "kill+kill", (1, 1), 10),
            ("delete", "kill+kill:plain", (1, 1), 10),
            ("sweep", "kill+kill", (2, 2), 10),
            ("many", "kill+kill", (11, 3), 10),
            ("many", "kill+kill:plain", (13, 5), 10),
        ]
    ),
)
def test_the_recovery_from_a_crash_is_killed(
    swift: Path, trials: Try, what: str, how: str, strides: tuple[int, int], least: int
) -> None:
    found = trials(swift, what, how, *strides)
    assert found["said"] == {"killed": found["trials"]}
    assert found["before"] >= least
    assert found["after"] > 1


# -------------------------------------------------------------------------------------- two file systems


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Try]]:
    """A workspace where the vault is a file system of its own, and trials in it."""
    workspace = tmp_path_factory.mktemp("workspace")
    vault = workspace / "memories"
    vault.mkdir()
    mount = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
    inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    inside += ["sh", "-c", mount, str(vault)]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], check=False, stderr=-3).returncode:
        if os.environ.get("CI") == "true":
            pytest.fail("no file system can be mounted here")
        pytest.skip("no file system can be mounted here")
    with worker(inside) as trials:
        yield workspace, trials


@pytest.mark.parametrize(
    ("how", "strides"),
    soak_most([("kill", (5,)), ("kill", (3,)), ("EIO", (17,)), ("kill+kill", (13, 4))]),
)
def test_a_mounted_memory_on_another_file_system_changes_with_the_rest(
    mounted: tuple[Path, Try], how: str, strides: tuple[int, ...]
) -> None:
    workspace, trials = mounted
    found = trials(workspace, "many", how, *strides)
    assert found["trials"] > 15
    assert found["before"] > 10
