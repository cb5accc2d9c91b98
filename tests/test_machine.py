"""Tests read their own folders and the checkout: what an audit hook refuses, and what it lets pass."""

from __future__ import annotations

import importlib.metadata
import os
import sysconfig
import zoneinfo
from pathlib import Path

import pytest

from mdmem.vault.paths import above
from tests.machine import CHECKOUT, ReadsTheMachine
from tests.tables import cases

PACKAGES = Path(sysconfig.get_path("purelib"))
STDLIB = Path(sysconfig.get_path("stdlib"))
# What mdmem, git and the programs that agents run in look for in every folder above.
LOOKED_FOR_ABOVE = (".git", ".mdmem", "memories/.mdmem", "AGENTS.md", "CLAUDE.md", ".claude")


@cases("folder", ["/", "/etc", "/usr/share", str(PACKAGES), str(STDLIB)])
def test_folders_of_the_machine_are_not_listed(folder: str) -> None:
    with pytest.raises(ReadsTheMachine):
        os.listdir(folder)
    with pytest.raises(ReadsTheMachine):
        os.scandir(folder)
    with pytest.raises(ReadsTheMachine):
        list(os.walk(folder))


@cases("path", ["/etc/passwd", *map(str, PACKAGES.glob("pytest-*.dist-info/METADATA"))])
def test_files_of_the_machine_are_not_opened(path: str) -> None:
    with pytest.raises(ReadsTheMachine):
        Path(path).read_bytes()
    for named in (path, os.fsencode(path)):
        with pytest.raises(ReadsTheMachine):
            os.open(named, os.O_RDONLY)


def test_markdown_of_a_package_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = tmp_path / "lib" / "README.md"
    readme.parent.mkdir()
    readme.write_text("# A package\n")
    monkeypatch.setattr("tests.machine._LIBRARIES", (f"{readme.parent}/",))
    with pytest.raises(ReadsTheMachine):
        readme.read_text()


def test_the_checkout_and_what_is_relative_to_a_descriptor_are_read(tmp_path: Path) -> None:
    assert (CHECKOUT / "README.md").read_text("utf-8").startswith("# mdmem")
    (tmp_path / "a.md").write_text("a")
    folder = os.open(tmp_path, os.O_RDONLY)
    file = os.open("a.md", os.O_RDONLY, dir_fd=folder)
    assert os.read(file, 9) == b"a"
    assert os.listdir(folder) == ["a.md"]
    os.close(file)
    os.close(folder)


def test_what_imports_read_and_the_system_gives_passes() -> None:
    assert importlib.metadata.version("pytest")
    assert zoneinfo.ZoneInfo("Asia/Kolkata").key
    assert Path("/proc/self/status").read_text()
    assert not Path("/nowhere").exists()
    with pytest.raises(FileNotFoundError):
        Path("/nowhere").read_bytes()


def test_what_mdmem_looks_for_above_ends_below_the_folders_of_the_tests(tmp_path: Path) -> None:
    """It looks upward to the root of the file system, so nothing that it would find may stand there."""
    found = [os.path.join(one, name) for one in above(str(tmp_path)) for name in LOOKED_FOR_ABOVE]
    assert [path for path in found if os.path.lexists(path)] == []
