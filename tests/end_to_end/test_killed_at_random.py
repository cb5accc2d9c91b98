"""Killed at random instants, as the benchmarks are a thousand times: nothing is lost, doubled or half."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.speed import is_all

REPOSITORY = Path(__file__).parents[2]
KILLS = 25 if is_all else 3  # of each
# Outputs are stored, messages captured and proposals accepted, sessions observed, and changed in every way,
# memories shared, taken back, and written by a guest.
PROGRAM = """
import sys
sys.path.insert(0, "bench")
import inbox_crash, observation, results, sessions_crash, sharing_crash
from setting import Setting
setting, kills = Setting(folder=sys.argv[1], seed=1, quick=False), int(sys.argv[2])
inbox_crash._KILLS = observation._KILLS = sessions_crash._KILLS = sharing_crash._KILLS = kills
rows = [results.killed(setting, kills), *inbox_crash.measure(setting), *observation.crash(setting)]
rows += [*sessions_crash.measure(setting), *sharing_crash.measure(setting)]
print(*(f"{row.what}: {row.ours}" for row in rows), sep="\\n")
sys.exit(len(rows) != 5 or not all(row.kept for row in rows))
"""


def test_a_kill_at_any_instant_loses_and_doubles_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(KILLS)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
