"""Fixtures of the tests that use the whole of mdmem."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def swift(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; in memory where there is such a place, as a kill is the same on every disk."""
    if not os.access(MEMORY_DISK, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="mdmem-", dir=MEMORY_DISK))
    yield folder
    shutil.rmtree(folder)
