"""Fixtures that tests of several folders share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def vault_root(tmp_path: Path) -> Path:
    """A vault without memories, whose config says nothing."""
    root = tmp_path / "memories"
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem" / "config.toml").touch()
    return root
