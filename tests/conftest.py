"""Fixtures that tests of several folders share."""

from __future__ import annotations

import gc
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import mdmem
from tests import machine, speed
from tests.vault.postgres_server import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory
    from tests.vault.postgres_server import Server

# A property whose rarer paths so many examples seldom reach says how many it takes.
MOST_EXAMPLES = 60
OUR_OWN = {"MDMEM_TEST_EXAMPLES", "MDMEM_EDITORS", "MDMEM_WEB"}

# Where this is set, every program that a test starts compiles all that it imports once more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# Most of the time that tests take is a disk's flushing, and none is cut off its power: they write to memory
# where there is room for it. What asks something of a file system itself goes to a real one all the same.
MEMORY_DISK = "/dev/shm"
ROOM = 1 << 30
if os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY_DISK)


# What large tests have freed goes back to the system at once: a worker stays half as large.
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 17))


# Half a million objects are made before the first test and stay until the last: that Python looks through
# them again and again, for any that nothing refers to, takes a tenth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 10, 5)
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="soak tests, too; examples differ with each change")


def _name_seed(root: Path) -> int:
    """Return a seed that is another one with each change of the code, and the same for the same code."""
    asked = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD^{tree}"]
    tree = subprocess.run(asked, capture_output=True, check=False, text=True).stdout.strip()
    return int(tree[:8], 16) if tree else random.SystemRandom().randrange(1 << 32)


@pytest.hookimpl(tryfirst=True)  # before hypothesis looks for its seed
def pytest_configure(config: pytest.Config) -> None:
    speed.is_all = config.option.all
    if speed.is_all and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(_name_seed(config.rootpath))
    settings.register_profile(
        "mdmem",
        deadline=None,
        max_examples=speed.examples(MOST_EXAMPLES),
        derandomize=not speed.is_all,
        database=None,
    )
    settings.load_profile("mdmem")


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.option.hypothesis_seed
    return f"seed of the examples: {seed} (again: --all --hypothesis-seed={seed})" if seed else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # It holds the trees of all modules, for which there is room before other tests have taken any.
    items.sort(key=lambda item: item.path.name != "test_house.py")
    if config.option.all or "soak" in config.option.markexpr:
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    if soak:
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    before = _measure_peak()
    with machine.watched():
        result = yield
    # An error that a test caught holds all that the test had made; what is large must not wait for its turn.
    if _measure_peak() > before:
        gc.collect()
    return result


def _measure_peak() -> int:
    """The most memory that this process has had so far, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where programs that tests start find themselves: nothing in it is of whoever runs the tests."""
    machine.allow(tempfile.gettempdir(), tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - OUR_OWN:
            if name.startswith(("GIT_", "MDMEM_", "XDG_")) or name == "VISUAL":
                patch.delenv(name)
        # What clients start is given little of the environment, but HOME.
        for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        patch.setenv("EDITOR", "true")  # nobody is there to type
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        if everything := os.environ.get("LC_ALL"):
            patch.setenv("LANG", everything)
            patch.delenv("LC_ALL")
        for name in ("LC_MESSAGES", "LC_COLLATE"):  # what programs of others say, and how they sort
            patch.setenv(name, "C")
        patch.chdir(tmp_path_factory.mktemp("current"))
        yield


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell starts background jobs deaf to interrupts, and the programs that tests start inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", params=speed.soak_most([16, 18], quick=(1,)))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A PostgreSQL server; the tests that ask for it are skipped where there is none, except in CI."""
    with served(request.param) as found:
        yield found


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
