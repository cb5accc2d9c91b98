"""A repository in a temporary folder, made by the real git without anybody's settings."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import mdmem

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
    },
}


CONFIG = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
"""


def make_repository(root: Path) -> None:
    """What `git init --initial-branch=main` makes, but samples of hooks."""
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks", "info"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/config").write_text(CONFIG)


class Tree:
    """A work tree that tests write to and commit."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, message: str = "m") -> str:
        self.git("add", "--all")
        alone = ("-c", "maintenance.auto=false", "-c", "gc.auto=0")
        self.git(*alone, "commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


class VaultTree(Tree):
    """A work tree with a vault in it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        root.mkdir(exist_ok=True)
        make_repository(root)
        self.memory = mdmem.open(mdmem.init(root / "memories").root)

    def open(self, actor: str = "", **scope: Any) -> Memory:
        return mdmem.open(self.root / "memories", mdmem.Scope(**scope), actor=actor)

    def note(self, path: str, text: str) -> None:
        self.write(f"memories/{path}", text)


def set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git read nobody's settings, and know who commits."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    set_up(monkeypatch)
    root = tmp_path / "work"
    root.mkdir()
    tree = Tree(root)
    make_repository(root)
    return tree


@pytest.fixture
def no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
