"""Where the tests of the vault write to."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on a disk: what the vault asks of a file system, a real one has to answer."""
    with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
        yield Path(folder).resolve()
