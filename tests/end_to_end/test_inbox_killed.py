"""Capture and the inbox, killed at any instant: nothing that was said is lost, and nothing counts twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_a_kill_at_any_instant_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """As the benchmark does a thousand times: messages are captured, and proposals accepted."""
    measured = [sys.executable, "bench/run.py", "inbox-crash", "--quick", "--folder", str(tmp_path)]
    ended = subprocess.run(measured, cwd=REPOSITORY, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout.decode().rstrip().endswith("| yes |")) == (0, True), ended
