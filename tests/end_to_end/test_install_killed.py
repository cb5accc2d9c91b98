"""`mdmem install`, killed before any of its calls: each file is old or new, and it is ended or taken back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import mdmem
from mdmem.cli.main import main
from tests.killing import killed
from tests.speed import is_all

HOW = ("claude-code", "--yes")
STRIDES = {"--global": 1, "--local": 2} if is_all else {"--global": 7, "--local": 8}  # between kills
UNINSTALLED_EVERY = 3  # kills behind which it is taken out again
State = dict[str, bytes]


def installed(root: Path, where: str, stop: int = 0, verb: str = "install") -> bool:
    """Whether a process that installs was killed, before its call of the system number `stop`."""

    def work() -> int:
        os.chdir(root / "work")
        os.environ["HOME"] = str(root / "home")
        return main(["--vault", str(root / "work/memories"), verb, *HOW, where])

    return killed(work, stop)


def made(root: Path) -> State:
    shutil.rmtree(root, ignore_errors=True)
    (root / "work/.claude").mkdir(parents=True)
    (root / "home/.claude").mkdir(parents=True)
    mdmem.init(root / "work/memories")
    for name in ("work/.mcp.json", "home/.claude.json"):
        (root / name).write_text('{\n  "mcpServers": {"mine": {"command": "mine"}}\n}\n')
    for name in ("work/.claude/settings.json", "home/.claude/settings.json"):
        (root / name).write_text('{\n  "model": "mine"\n}\n')
    return state(root)


def state(root: Path) -> State:
    """Every file but what the vault keeps for itself."""
    every = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in every.items() if "/.mdmem/local/" not in name}


@pytest.mark.parametrize("where", ["--global", "--local"])
def test_killed_at_any_step_each_file_is_old_or_new(
    swift: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    root = swift / "place"
    before = made(root)
    monkeypatch.chdir(swift)
    monkeypatch.setenv("HOME", str(root / "home"))
    programs = swift / "bin"
    programs.mkdir()
    (programs / "mdmem").touch(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    # So that not each fork loads what it needs.
    assert main(["--vault", str(root / "work/memories"), "install", *HOW, "--global", "--dry-run"]) == 0
    assert not installed(root, where)
    after = state(root)
    changed = {name for name in after if after[name] != before.get(name)}
    assert len(changed) > 1
    seen: set[frozenset[str]] = set()
    was_killed, stop = True, 0
    while was_killed:
        stop += STRIDES[where]
        made(root)
        was_killed = installed(root, where, stop)
        now = state(root)
        for name in before.keys() | after.keys():
            assert now.get(name) in {before.get(name), after.get(name)}, (stop, name)
        beside = now.keys() - before.keys() - after.keys()
        assert all(Path(name).name.startswith(".mdmem-") for name in beside), stop
        seen.add(frozenset(name for name in changed if now.get(name) == after[name]))
        if stop % UNINSTALLED_EVERY:
            assert not installed(root, where)
            assert state(root) == after, stop
        else:
            assert not installed(root, where, verb="uninstall")
            assert state(root) == before, stop
    assert {frozenset(), frozenset(changed)} < seen  # and in between
