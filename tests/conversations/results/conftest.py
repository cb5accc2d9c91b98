"""A vault's results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.conversations.results.results import ToolResults


@pytest.fixture
def results(vault_root: Path) -> ToolResults:
    return Memory(str(vault_root)).results
