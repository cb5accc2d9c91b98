"""Editors that `tests/editors.sh` installs, and the settings for them that docs/editors.md shows."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / ".venv/editors"
SETTINGS = (CHECKOUT / "docs/editors.md").read_text()


def require(piece: str, program: str) -> str:
    """Return an installed program; without it, skip with the reason why it could not be installed."""
    found = FOLDER / "bin" / program
    if not found.exists():
        reason = FOLDER / "missing" / piece
        pytest.skip(f"needs {program}: {reason.read_text() if reason.exists() else 'run make editors'}")
    return str(found)


def read_settings(editor: str, language: str) -> str:
    """Return the settings that the page shows for an editor."""
    section = re.search(rf"^## {editor}\n(.*?)(?=^## |\Z)", SETTINGS, re.MULTILINE | re.DOTALL)
    assert section
    block = re.search(rf"^```{language}\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)
    assert block
    return block[1]


def environment(home: Path) -> dict[str, str]:
    """Return the environment of somebody whose home is new, and who has this mdmem on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MDMEM_", "NVIM"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    home.mkdir(exist_ok=True)
    return {**kept, "HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
