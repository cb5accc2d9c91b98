"""What git does to a vault of 2,000 notes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.index.watching.conftest import Follow


def git(root: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    subprocess.run(command, cwd=root.parent, check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 notes on a branch, and on another one: some changed, some gone, some in other folders."""
    root = tmp_path_factory.mktemp("commits") / "workspace" / "memories"
    (root / "data").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    for n in range(2000):
        path = root / f"notes/{n % 40}/{n}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"note {n}\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "other")
    for n in range(2000):
        path = root / f"notes/{n % 40}/{n}.md"
        if n % 3 == 0:
            path.unlink()
        elif n % 40 < 10:
            (root / f"other/{n % 40}").mkdir(parents=True, exist_ok=True)
            os.rename(path, root / f"other/{n % 40}/{n}.md")
        else:
            path.unlink()
            path.write_text(f"note {n}, changed\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "two")
    return root.parent


@pytest.fixture
def repository(commits: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-a", commits, tmp_path / "workspace"], check=True, timeout=60)
    return (tmp_path / "workspace" / "memories").resolve()


def test_git_switches_2000_files(follow: Follow, repository: Path) -> None:
    with follow(repository) as following:
        for branch in ("main", "other"):
            git(repository, "checkout", "-q", branch)
            following.until_true()
            assert following.watcher.vouches()
        assert len(following.copy.known) == 2000 - 667


def test_git_stash_and_back(follow: Follow, repository: Path) -> None:
    for note in sorted(repository.glob("notes/*/*.md"))[::2]:
        note.unlink()
        note.write_text("work in progress\n")
    (repository / "notes/new").mkdir()
    (repository / "notes/new/new.md").write_text("untracked")
    with follow(repository) as following:
        git(repository, "stash", "-q", "--include-untracked")
        following.until_true()
        assert "notes/new/new.md" not in following.copy.known
        git(repository, "stash", "pop", "-q")
        following.until_true()
        assert "notes/new/new.md" in following.copy.known


def test_a_branch_without_the_vault(follow: Follow, repository: Path) -> None:
    """The vault's folder itself goes with the checkout, and comes back with the next one."""
    git(repository, "checkout", "-q", "--orphan", "empty")
    git(repository, "rm", "-rfq", ".")
    git(repository, "commit", "-qm", "nothing", "--allow-empty")
    git(repository, "checkout", "-qf", "main")
    with follow(repository) as following:
        git(repository, "checkout", "-q", "empty")
        shutil.rmtree(repository, ignore_errors=True)
        following.until_true()
        assert not following.copy.known
        assert not following.watcher.vouches()
        git(repository, "checkout", "-q", "main")
        following.until_true()
        assert len(following.copy.known) == 2000
        (repository / "notes/1/1.md").write_text("watched again")
        following.until_true()
