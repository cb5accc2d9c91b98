"""The index through crashes and on full disks: the next look at it is right, and no memory is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.speed import is_all, soak_most

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKER = Path(__file__).with_name("index_fault_worker.py")
IS_ROOT = os.geteuid() == 0
TRIALS = 20 if is_all else 3


def reported(*arguments: str, before: Sequence[str] = ()) -> Any:
    """What the worker reports."""
    ran = subprocess.run(
        [*before, sys.executable, str(WORKER), *arguments], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("seed", soak_most([1, 2]))
def test_a_sync_that_is_killed_at_any_instant_leaves_a_sound_index(tmp_path: Path, seed: int) -> None:
    trials = TRIALS // 2
    report = reported("crash", str(tmp_path / "vault"), str(tmp_path / "rebuilt"), str(trials), str(seed))
    assert report["failures"] == []
    assert report["killed"] > trials // 3  # most of them in the middle


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is of Linux")
def test_a_commit_of_the_texts_that_is_killed_at_any_step_leaves_a_sound_index(tmp_path: Path) -> None:
    report = reported("commit", str(tmp_path / "vault"), str(tmp_path / "rebuilt"), str(TRIALS), "3")
    assert report["failures"] == []
    assert report["steps"] > 20
    assert report["killed"] > TRIALS // 2 or not is_all  # which only a machine with time for it makes sure of
    assert report["files"] < 200  # what a killed one leaves behind is removed by the next ones


@pytest.mark.parametrize(
    ("options", "spare"), soak_most([("size=4m", 120), ("size=100m,nr_inodes=330", 36)], quick=(1,))
)
def test_on_a_full_disk_the_index_stands_elsewhere_and_is_right(
    tmp_path: Path, options: str, spare: int
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"'
    words = ["unshare", "--mount", *([] if IS_ROOT else ["--user", "--map-root-user"]), "sh", "-c", script]
    tried = shutil.which("unshare") and subprocess.run([*words, str(disk), "true"], check=False)
    if not tried or tried.returncode:
        assert os.environ.get("CI") != "true", "nothing can be mounted here"
        pytest.skip("nothing can be mounted here")
    places = (str(disk / "vault"), str(tmp_path / "rebuilt"))
    report = reported("full", *places, str(spare), "12" if is_all else "4", before=[*words, str(disk)])
    assert report["failures"] == []
    attempts = report["attempts"]
    assert {attempt["code"] for attempt in attempts} == {0}
    assert {attempt["right"] for attempt in attempts} == {True}
    outside = [attempt for attempt in attempts if not attempt["inside"]]
    assert 0 < len(outside) < len(attempts)
    for attempt in attempts:
        said = [note for note in attempt["notes"] if "not in the vault: " in note]
        assert len(said) == (not attempt["inside"])
