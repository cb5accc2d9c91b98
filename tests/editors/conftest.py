"""Real editors: `make editors` installs and runs them; a plain `pytest` skips these tests, and says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "MDMEM_EDITORS" in os.environ:
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip("real editors: make editors runs them"))
