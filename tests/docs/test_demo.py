"""The demo: it ends well, fits on a screen or two, and its stand-in for an agent uses what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(folder / ".state"),
    }
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def test_the_stand_in_for_an_agent_is_given_memory_and_writes_it(tmp_path: Path) -> None:
    agent = (sys.executable, str(CHECKOUT / "bench/agent.py"))
    for command in (
        "git init --quiet && mdmem init && mdmem install claude-code --yes",
        "mdmem notes append db 'The database is one file.' --title SQLite",
    ):
        assert run("sh", "-c", command, folder=tmp_path).returncode == 0
    given = run(*agent, "UserPromptSubmit", "which database file", folder=tmp_path)
    assert "The database is one file." in given.stdout, given
    refused = run(*agent, "replace", "path=notes/db.md", "old=two files", "new=one", folder=tmp_path)
    assert (refused.returncode, "'two files' does not occur" in refused.stdout) == (1, True), refused
    done = run(*agent, "section", "path=notes/db.md", "where=append", "text=- A.\\n- B.", folder=tmp_path)
    assert done.returncode == 0, done
    assert (tmp_path / "memories/notes/db.md").read_text().endswith("file.\n- A.\n- B.\n")


# README: `make demo` shows the main job …
@pytest.mark.soak
def test_the_demo_fits_and_ends_well(tmp_path: Path) -> None:
    done = run("sh", str(CHECKOUT / "bench/demo.sh"), folder=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) <= 80
    assert max(len(line) for line in lines if str(CHECKOUT) not in line) <= 100
    assert "the same bytes" in lines
    assert "    - Kept on two disks." in lines  # what one of two notes that say the same has alone
    assert [*tmp_path.iterdir()] == []
