"""How git is run: quietly, locally, and failing in our words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mdmem.errors import GitFailed
from mdmem.git.commit import WorkTree
from mdmem.git.program import environment, program, run
from mdmem.git.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("no_git")
def test_without_git_there_is_no_repository_and_running_it_says_so(tmp_path: Path) -> None:
    assert program() is None
    assert Repository.find(str(tmp_path)) is None
    with pytest.raises(GitFailed, match="git was not found on PATH"):
        run(["version"], str(tmp_path), "look")


def test_git_is_run_without_locks_prompts_and_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "x")
    monkeypatch.setenv("HOME", "/home/a")
    environ = environment()
    assert "GIT_DIR" not in environ
    assert environ["HOME"] == "/home/a"
    assert environ["GIT_OPTIONAL_LOCKS"] == "0"
    assert environ["GIT_ALLOW_PROTOCOL"] == "none"


@pytest.mark.parametrize(
    "name", ["GIT_CONFIG", "GIT_ICASE_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_INTERNAL_SUPER_PREFIX"]
)
def test_what_the_environment_says_of_paths_and_settings_changes_no_answer(
    tree: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    tree.write("a.md", "a\n")
    repository = Repository.find(str(tree.root))
    assert repository
    assert repository.taken(["a.md"]) == ("a.md",)
    work = WorkTree(repository, str(tree.root))
    work.refuse(hooks=False)
    assert [each.name for each in work.pending(["a.md"], lambda _: 100)] == ["a.md"]
