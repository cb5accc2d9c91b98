"""Programs that stand for a language model: real ones, as shell scripts."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.conversations.models.program import Program, command

Script = Callable[[str], Program]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test meets the settings or the state of another one, or of whoever runs it."""
    for name in ("MDMEM_MODEL", "MDMEM_VAULT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CONFIG", "STATE"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Makes a program of what a shell does."""

    def make(text: str) -> Program:
        path = tmp_path / "a model"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return command(shlex.join([str(path)]))

    return make
