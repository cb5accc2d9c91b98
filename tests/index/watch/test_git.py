"""What git does to a vault of many notes."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests import speed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.watch.conftest import Follow


NOTES = 2_000 if speed.is_all else 400


def git(root: Path, *words: str, told: str = "") -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    subprocess.run(command, cwd=root.parent, check=True, input=told.encode(), capture_output=True, timeout=60)


def commit(branch: str, *changes: str) -> str:
    """A commit, as `git fast-import` takes it."""
    return "\n".join([f"commit refs/heads/{branch}", "committer a <a@b.c> 0 +0000", "data 0", *changes, ""])


def saved(path: str, text: str) -> str:
    return f"M 644 inline memories/{path}\ndata {len(text)}\n{text}"


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Notes on a branch, on another some changed, gone or in other folders, and none on a third."""
    first, then = [], ["from refs/heads/main"]
    for n in range(NOTES):
        path = f"notes/{n % 40}/{n}.md"
        first.append(saved(path, f"note {n}\n"))
        if n % 3 == 0:
            then.append(f"D memories/{path}")
        elif n % 40 < 10:
            then.append(f"R memories/{path} memories/other/{n % 40}/{n}.md")
        else:
            then.append(saved(path, f"note {n}, changed\n"))
    folder = tmp_path_factory.mktemp("commits")
    git(folder / "git", "init", "-q", "--bare", "-b", "main")
    stream = commit("main", *first) + commit("other", *then) + commit("empty")
    git(folder / "git", "fast-import", "--quiet", told=stream)
    return folder


@pytest.fixture
def repository(commits: Path, tmp_path: Path) -> Path:
    root = tmp_path / "workspace" / "memories"
    git(root.parent, "clone", "-q", str(commits), str(root.parent))
    (root / "data").mkdir()
    return root.resolve()


def test_git_switches_all_files(follow: Follow, repository: Path) -> None:
    with follow(repository) as following:
        for branch, notes in (("other", NOTES - len(range(0, NOTES, 3))), ("main", NOTES)):
            git(repository, "checkout", "-q", branch)
            following.until_true()
            assert following.watcher.vouches()
            assert len(following.copy.known) == notes


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
    with follow(repository) as following:
        git(repository, "checkout", "-q", "empty")
        shutil.rmtree(repository, ignore_errors=True)
        following.until_true()
        assert not following.copy.known
        assert not following.watcher.vouches()
        git(repository, "checkout", "-q", "main")
        following.until_true()
        assert len(following.copy.known) == NOTES
        (repository / "notes/1/1.md").write_text("watched again")
        following.until_true()
