"""Killed, or refused by the system, at any step of a change: the vault is as before, or as after.

Each case is some hundred trials, made by `crash_worker.py`: after each one the vault is opened as the next
command opens it, and must hold every memory as it was, or every memory as it was to be; with nothing lost,
and no temporary file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("crash_worker.py")
STRIDES = {"change": 1, "many": 17}  # of calls that fail: they are some 60, and some 650


def trials(swift: Path, what: str, how: str, *strides: int) -> dict[str, Any]:
    """The report of the worker, once it says that no trial went wrong."""
    command = [sys.executable, str(WORKER), str(swift), what, how, *map(str, strides)]
    return report(command)


def report(command: list[str]) -> dict[str, Any]:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert found["wrong"] == []
    return found


def test_a_change_of_one_memory_is_killed_at_every_step(swift: Path) -> None:
    found = trials(swift, "change", "kill", 1)
    assert found["trials"] > 300
    assert found["before"] > 100
    assert found["after"] > 50


@pytest.mark.parametrize("file_system", ["", ":plain"])
@pytest.mark.parametrize("what", ["mounted", "make", "move", "delete"])
def test_other_changes_are_killed(swift: Path, what: str, file_system: str) -> None:
    found = trials(swift, what, f"kill{file_system}", 11)
    assert found["trials"] > 30
    assert found["before"] > 20
    assert found["after"] > 3


@pytest.mark.parametrize("file_system", ["", ":plain"])
def test_a_change_of_many_memories_is_killed(swift: Path, file_system: str) -> None:
    found = trials(swift, "many", f"kill{file_system}", 53)
    assert found["trials"] > 80
    assert found["before"] > 40
    assert found["after"] > 5


@pytest.mark.parametrize("what", ["change", "make", "move", "delete", "mounted", "many"])
@pytest.mark.parametrize("error", ["ENOSPC", "EACCES", "EIO"])
def test_a_call_that_fails_leaves_everything_as_it_was(swift: Path, what: str, error: str) -> None:
    found = trials(swift, what, error, STRIDES.get(what, 3))
    assert found["trials"] > 15
    assert found["said"].keys() == {"storage-failed", "done"}
    assert found["said"]["storage-failed"] > 12
    assert found["before"] == found["said"]["storage-failed"]


@pytest.mark.parametrize("what", ["change", "many"])
def test_a_disk_that_goes_on_failing_leaves_it_to_the_next_command(swift: Path, what: str) -> None:
    found = trials(swift, what, "ENOSPC*", STRIDES[what])
    assert found["trials"] > 30
    assert found["before"] > 25


@pytest.mark.parametrize(
    ("what", "how", "strides"),
    [
        ("change", "EIO+kill", (11, 5)),
        ("many", "EIO+kill", (211, 131)),
        ("many", "EIO+kill:plain", (211, 131)),
    ],
)
def test_taking_a_change_back_is_killed(swift: Path, what: str, how: str, strides: tuple[int, int]) -> None:
    found = trials(swift, what, how, *strides)
    assert found["said"]["killed"] > 20
    assert found["before"] > 20


@pytest.mark.parametrize(
    ("what", "how", "strides"),
    [
        ("change", "kill+kill", (97, 23)),
        ("delete", "kill+kill", (97, 23)),
        ("delete", "kill+kill:plain", (97, 23)),
        ("many", "kill+kill", (701, 307)),
        ("many", "kill+kill:plain", (701, 307)),
    ],
)
def test_the_recovery_from_a_crash_is_killed(
    swift: Path, what: str, how: str, strides: tuple[int, int]
) -> None:
    found = trials(swift, what, how, *strides)
    assert found["trials"] > 40
    assert found["before"] > 15
    assert found["after"] > 5


@pytest.mark.parametrize(("how", "strides"), [("kill", (97,)), ("EIO", (17,)), ("kill+kill", (701, 307))])
def test_a_mounted_memory_on_another_file_system_changes_with_the_rest(
    tmp_path: Path, how: str, strides: tuple[int, ...]
) -> None:
    vault = tmp_path / "memories"
    vault.mkdir()
    mount = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
    inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    inside += ["sh", "-c", mount, str(vault)]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], check=False, stderr=-3).returncode:
        if os.environ.get("CI") == "true":
            pytest.fail("no file system can be mounted here")
        pytest.skip("no file system can be mounted here")
    command = [sys.executable, str(WORKER), str(tmp_path), "many", how, *map(str, strides)]
    found = report([*inside, *command])
    assert found["trials"] > 30
    assert found["before"] > 20
