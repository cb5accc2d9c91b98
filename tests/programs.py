"""Programs of others that some tests use; `tests/programs.sh` installs them on Debian and its like."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

import pytest

import mdmem


def needs(*names: str) -> None:
    """Skip a test that lacks a program, and say which; where everything has to run, it fails."""
    missing = ", ".join(name for name in names if shutil.which(name) is None)
    if missing and os.environ.get("CI"):
        pytest.fail(f"needs {missing}: sh tests/programs.sh")
    if missing:
        pytest.skip(f"needs {missing}: sh tests/programs.sh")


def needs_readers() -> None:
    """Skip a test that becomes another user, where that one may not read mdmem and what it needs."""
    files = [Path(mdmem.__file__), Path(sysconfig.get_path("purelib")) / "click" / "__init__.py"]
    closed = [one for file in files for one in file.parents if not one.stat().st_mode & 0o001]
    closed += [file for file in files if not file.stat().st_mode & 0o004]
    if os.geteuid() == 0 and closed:
        pytest.skip(f"another user may not read {closed[0]}")
