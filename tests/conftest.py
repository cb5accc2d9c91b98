"""Fixtures that tests of several folders share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import mdmem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory

# A property whose rarer paths so many examples seldom reach says how many it takes.
settings.register_profile("mdmem", deadline=None, max_examples=60)
settings.load_profile("mdmem")


# Where this is set, every program that a test starts compiles all that it imports once more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# Most of the time that tests take is a disk's flushing, and none is cut off its power: they write to memory
# where there is room for it. What asks something of a file system itself goes to a real one all the same.
MEMORY_DISK = "/dev/shm"
ROOM = 1 << 30
if os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY_DISK)


# Half a million objects are made before the first test and stay until the last: that Python looks through
# them again and again, for any that nothing refers to, takes a tenth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept outside of vaults goes where the tests are, and not to the home of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        # What clients start is given little of the environment, but this.
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in ("MDMEM_MODEL", "XDG_CONFIG_HOME", "VISUAL"):  # nor do they ask the model of whoever does
            patch.delenv(name, raising=False)
        patch.setenv("EDITOR", "true")  # nobody is there to type
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell starts background jobs deaf to interrupts, and the programs that tests start inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """The memories of a vault as `mdmem init` makes it."""
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def vault_root(tmp_path: Path) -> Path:
    """A vault without memories, whose config says nothing."""
    root = tmp_path / "memories"
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem" / "config.toml").touch()
    return root
