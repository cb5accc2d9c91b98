"""A vault's sessions, and their logs as files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from mdmem.conversations.sessions import Sessions
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def sessions(vault_root: Path) -> Sessions:
    return Memory(str(vault_root)).sessions


@pytest.fixture
def folder(vault_root: Path) -> Path:
    """Where the logs are."""
    return vault_root / "sessions"


@pytest.fixture
def audited() -> Iterator[list[tuple[str, str]]]:
    """What this process opens and starts from now on: the names of Python's audit events, and the file."""
    events: list[tuple[str, str]] = []
    is_on = True

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if is_on and event in {"open", "subprocess.Popen"}:
            events.append((event, str(arguments[0])))

    sys.addaudithook(note)
    yield events
    is_on = False  # no hook is ever taken away
