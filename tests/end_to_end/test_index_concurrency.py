"""Many processes and one index: nobody is told a lie, nobody hears of a lock, and in the end all agree."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from tests.speed import is_all, soak_most

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKER = Path(__file__).with_name("index_writer_worker.py")
CHECK = Path(__file__).with_name("index_fault_worker.py")
STEPS = 60 if is_all else 8  # of each process


class Writers:
    """Processes that write to a vault; see `index_writer_worker.py`."""

    def __init__(self, root: Path, watching: list[bool]) -> None:
        pipe = subprocess.PIPE
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(WORKER), str(root), f"w{n}", str(STEPS), str(int(watches))],
                stdin=pipe,
                stdout=pipe,
                text=True,
            )
            for n, watches in enumerate(watching)
        ]

    def hear(self, word: str) -> None:
        """Wait until all of them say so."""
        for process in self.processes:
            assert process.stdout
            assert process.stdout.readline() == f"{word}\n"

    def tell(self) -> None:
        for process in self.processes:
            assert process.stdin
            process.stdin.write("go on\n")
            process.stdin.flush()

    def reports(self) -> list[dict[str, Any]]:
        found = []
        for process in self.processes:
            assert process.stdout
            found.append(json.loads(process.stdout.readline()))
        return found


@contextlib.contextmanager
def writers(root: Path, watching: list[bool]) -> Iterator[Writers]:
    started = Writers(root, watching)
    try:
        yield started
    finally:
        for process in started.processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    "watching",
    soak_most([[True, True, False], [False, False, False]]),
    ids=["two watch", "none watches"],
)
def test_processes_that_write_and_ask_at_once_agree(tmp_path: Path, watching: list[bool]) -> None:
    root = tmp_path / "memories"
    mdmem.init(root)
    with writers(root, watching) as started:
        for word in ("ready", "done"):
            started.hear(word)
            started.tell()
        reports = started.reports()
    found = (path for path in root.glob("notes/**/*.md") if not path.name.startswith("."))
    files = {str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in found}
    assert len(files) > STEPS // 2
    for report, watches in zip(reports, watching, strict=True):
        assert report["errors"] == []
        assert report["wrong"] == []
        assert report["notes"] == []
        assert report["documents"] == files
        assert report["texts"] == sorted(files)
        assert report["steps"] == STEPS
        assert bool(report["events"]) == watches
    checked = subprocess.run(
        [sys.executable, str(CHECK), "check", str(root), str(tmp_path / "rebuilt")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(checked.stdout) == []
    shared = (root / "notes/shared.md").read_text().split()
    assert len(shared) == len(set(shared))
