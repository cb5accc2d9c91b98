"""A vault's sessions, and their logs as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mdmem.memory.memory import Memory
from mdmem.sessions.sessions import Sessions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def sessions(vault_root: Path) -> Sessions:
    return Memory(str(vault_root)).sessions


@pytest.fixture
def folder(vault_root: Path) -> Path:
    """Where the logs are."""
    return vault_root / "sessions"
