"""Programs of others that some tests use; `tests/programs.sh` installs them on Debian and its like."""

from __future__ import annotations

import os
import shutil

import pytest


def needs(*names: str) -> None:
    """Skip a test that lacks a program, and say which; where everything has to run, it fails."""
    missing = ", ".join(name for name in names if shutil.which(name) is None)
    if missing and os.environ.get("CI"):
        pytest.fail(f"needs {missing}: sh tests/programs.sh")
    if missing:
        pytest.skip(f"needs {missing}: sh tests/programs.sh")
