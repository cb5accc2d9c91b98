"""A commit of some files: what else is staged or changed stays, and nothing of the repository is started."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.errors import GitFailed, GitRefused
from mdmem.git import program as limits
from mdmem.git.commit import Pending, WorkTree
from mdmem.git.repository import Repository
from tests import speed
from tests.speed import soak_most

if TYPE_CHECKING:
    from pathlib import Path

SECONDS, MOST = 30.0, 1000


def work(tree: Any, folder: str = "") -> WorkTree:
    repository = Repository.find(str(tree.root / folder))
    assert repository is not None
    return WorkTree(repository, str(tree.root / folder))


def pending(tree: Any, *names: str) -> list[Pending]:
    return work(tree).pending(names or ("notes",), lambda _: MOST)


def commit(tree: Any, *names: str, message: str = "m", seconds: float = SECONDS) -> str:
    at = work(tree)
    at.refuse(hooks=False)
    return at.commit(
        [each for each in at.pending(names or ("notes",), lambda _: MOST) if not each.why_not],
        message,
        seconds,
    )


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def mine(tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets one of the user's own settings; and makes their hooks."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "mine"))

    def settle(name: str, value: str) -> None:
        tree.git("config", "--file", str(tmp_path / "mine"), name, value)

    return settle


def index(tree: Any) -> str:
    """What the user has staged, and what of it is to be added."""
    return str(tree.git("ls-files", "--stage") + "\n" + tree.git("status", "--porcelain=v2", "-uno"))


# ------------------------------------------------------------------------------------- what differs


def test_what_is_changed_new_and_gone_is_told_and_nothing_else(tree: Any) -> None:
    for name in ("changed", "gone", "same"):
        tree.write(f"notes/{name}.md", "a\n")
    tree.write("other/a.md", "a\n")
    tree.commit()
    tree.write("notes/changed.md", "b\n")
    tree.write("notes/new.md", "b\n")
    tree.write("other/a.md", "b\n")
    (tree.root / "notes/gone.md").unlink()
    found = pending(tree)
    assert [(each.name, each.kind, each.is_new) for each in found] == [
        ("notes/changed.md", "changed", False),
        ("notes/gone.md", "removed", False),
        ("notes/new.md", "added", True),
    ]
    assert found[0].blob == tree.git("rev-parse", "HEAD:notes/changed.md")
    assert not any(each.why_not for each in found)


def test_before_the_first_commit_everything_is_added(tree: Any) -> None:
    tree.write("notes/a.md", "a\n")
    tree.write("notes/b.md", "b\n")
    tree.write("c.md", "c\n")
    tree.git("add", "notes/a.md", "c.md")
    assert [(each.kind, each.is_new) for each in pending(tree)] == [("added", False), ("added", True)]
    made = commit(tree)
    assert tree.git("rev-parse", "HEAD") == made
    assert tree.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["notes/a.md", "notes/b.md"]
    assert tree.git("status", "--porcelain") == "A  c.md"


def test_what_is_staged_otherwise_than_it_stands_is_not_committed_by_itself(tree: Any) -> None:
    for name in ("both", "removed", "link"):
        tree.write(f"notes/{name}.md", "a\n")
    tree.commit()
    tree.write("notes/both.md", "staged\n")
    tree.write("notes/added.md", "staged\n")
    tree.git("add", ".")
    tree.write("notes/both.md", "later\n")
    tree.write("notes/added.md", "later\n")
    tree.git("rm", "-q", "--cached", "notes/removed.md")
    (tree.root / "notes/link.md").unlink()
    (tree.root / "notes/link.md").symlink_to("both.md")
    found = {each.name: each.why_not for each in pending(tree)}
    assert {name for name, why in found.items() if "staged" in why} == {
        *("notes/both.md", "notes/added.md", "notes/removed.md"),
    }
    assert "link" in found["notes/link.md"]


def test_what_is_too_large_for_a_memory_is_not_hashed(tree: Any) -> None:
    tree.write("notes/a.md", "a\n")
    with open(tree.root / "notes/large.md", "wb") as file:
        file.truncate(1 << 40)
    found = {each.name: each.why_not for each in pending(tree)}
    assert found["notes/a.md"] == ""
    assert "the limit is 1,000" in found["notes/large.md"]


def test_what_is_in_conflict_is_told(tree: Any) -> None:
    tree.write("notes/a.md", "a\n")
    tree.commit()
    tree.write("notes/a.md", "b\n")
    tree.git("stash")
    tree.write("notes/a.md", "c\n")
    tree.commit()
    subprocess.run(["git", "stash", "pop"], cwd=tree.root, check=False, capture_output=True)
    assert [(each.name, each.why_not) for each in pending(tree)] == [
        ("notes/a.md", "it has a merge conflict")
    ]


ODD = ["-n", "--all", ":(glob)*", "a b", 'q"u', "t\tb", "l\nf", "ünï", "*", "\\", "\u202e"]


@pytest.mark.parametrize("odd", soak_most(ODD, quick=(1, 2, 4, 6, 7)))
def test_odd_names_are_names(tree: Any, odd: str) -> None:
    tree.write(f"{odd}/{odd}.md", "a\n")
    tree.write("notes/a.md", "a\n")
    commit(tree, odd)
    assert tree.git("ls-tree", "-r", "-z", "--name-only", "HEAD") == f"{odd}/{odd}.md\0"
    tree.write(f"{odd}/{odd}.md", "b\n")
    at = work(tree, odd)
    at.commit(at.pending([odd], lambda _: MOST), "m", SECONDS)
    (tree.root / odd / f"{odd}.md").unlink()
    assert [(each.name, each.kind) for each in at.pending([odd], lambda _: MOST)] == [
        (f"{odd}/{odd}.md", "removed")
    ]
    at.commit(at.pending([odd], lambda _: MOST), "m", SECONDS)
    assert tree.git("ls-tree", "-r", "HEAD") == ""


# ------------------------------------------------------------------------------------- what is committed


def test_what_is_staged_and_changed_elsewhere_stays_as_it_is(tree: Any) -> None:
    tree.write("src/a.py", "a\n")
    tree.write("src/b.py", "a\n")
    tree.write("notes/a.md", "a\n")
    tree.commit()
    tree.write("src/a.py", "staged\n")
    tree.write("src/new.py", "new\n")
    tree.git("add", ".")
    tree.write("src/a.py", "later\n")
    tree.write("src/b.py", "later\n")
    before = index(tree)
    tree.write("notes/a.md", "b\n")
    tree.write("notes/b.md", "b\n")
    made = commit(tree)
    assert tree.git("show", "--name-only", "--format=", made).split() == ["notes/a.md", "notes/b.md"]
    staged = tree.git("diff", "--cached", "--name-only").split()
    assert staged == ["src/a.py", "src/new.py"]
    for line in before.splitlines():
        if "src/" in line:
            assert line in index(tree)


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg", "prepare-commit-msg"])
def test_a_hook_that_refuses_is_told_and_nothing_is_committed(
    tree: Any, tmp_path: Path, hook: str, mine: Any
) -> None:
    tree.write("notes/a.md", "a\n")
    tree.write("src/a.py", "a\n")
    head = tree.commit()
    tree.write("src/a.py", "staged\n")
    tree.git("add", ".")
    tree.write("notes/a.md", "b\n")
    tree.write("notes/b.md", "b\n")
    before = index(tree)
    program(tmp_path / "hooks" / hook, "echo 'one of these is wrong'; echo 'and two' >&2; exit 1")
    mine("core.hooksPath", str(tmp_path / "hooks"))
    with pytest.raises(GitFailed, match=r"(?s)one of these is wrong.*and two"):
        commit(tree)
    assert tree.git("rev-parse", "HEAD") == head
    assert index(tree) == before
    assert not os.path.lexists(tree.root / ".git/index.lock")


def test_the_hooks_of_the_user_run_and_see_what_is_committed(tree: Any, tmp_path: Path, mine: Any) -> None:
    tree.write("notes/a.md", "a\n")
    tree.write("src/a.py", "a\n")
    tree.git("add", "src/a.py")
    program(tmp_path / "hooks/pre-commit", f"git diff --cached --name-only '*.md' > {tmp_path}/seen")
    program(tmp_path / "hooks/post-commit", f"sleep 600 & echo $! > {tmp_path}/left")
    mine("core.hooksPath", str(tmp_path / "hooks"))
    commit(tree)
    assert (tmp_path / "seen").read_text() == "notes/a.md\n"
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)  # nobody waited for what it left running


def test_a_hook_that_falls_silent_is_ended_and_leaves_no_lock(tree: Any, tmp_path: Path, mine: Any) -> None:
    tree.write("notes/a.md", "a\n")
    before = index(tree)
    program(tmp_path / "hooks/pre-commit", "exec sleep 600")
    mine("core.hooksPath", str(tmp_path / "hooks"))
    with pytest.raises(GitFailed, match=r"printed nothing for 0\.5 s"):
        commit(tree, seconds=0.5)
    assert index(tree) == before
    assert not os.path.lexists(tree.root / ".git/index.lock")


def test_signing_holds_and_a_failure_of_it_is_told(tree: Any, tmp_path: Path, mine: Any) -> None:
    tree.write("notes/a.md", "a\n")
    before = index(tree)
    program(tmp_path / "gpg", "echo 'no secret key' >&2; exit 2")
    for name, value in {"commit.gpgSign": "true", "gpg.program": str(tmp_path / "gpg")}.items():
        mine(name, value)
    with pytest.raises(GitFailed, match=r"gpg failed to sign|no secret key"):
        commit(tree)
    assert index(tree) == before


def test_without_an_author_git_says_so(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("notes/a.md", "a\n")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name)
    tree.git("config", "user.useConfigOnly", "true")
    before = index(tree)
    with pytest.raises(GitFailed, match="user"):
        commit(tree)
    assert index(tree) == before


def test_a_file_that_the_user_means_to_add_stays_so_after_a_failure(tree: Any, monkeypatch: Any) -> None:
    tree.write("notes/mine.md", "a\n")
    tree.write("notes/new.md", "a\n")
    tree.git("add", "--intent-to-add", "notes/mine.md")
    before = index(tree)
    tree.git("config", "user.useConfigOnly", "true")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        monkeypatch.delenv(name)
    with pytest.raises(GitFailed):
        commit(tree)
    assert index(tree) == before


def test_the_lock_of_another_git_is_waited_for_and_never_removed(tree: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("mdmem.git.commit._LOCK_SECONDS", 0.2)
    tree.write("notes/a.md", "a\n")
    lock = tree.root / ".git/index.lock"
    lock.touch()
    with pytest.raises(GitRefused, match=r"another git is running.*index\.lock"):
        commit(tree)
    assert lock.exists()
    monkeypatch.setattr("mdmem.git.commit._LOCK_SECONDS", 30)
    timer = threading.Timer(0.1, lock.unlink)
    timer.start()
    assert commit(tree) == tree.git("rev-parse", "HEAD")
    timer.join()


def test_a_message_is_kept_as_it_is(tree: Any) -> None:
    tree.write("notes/a.md", "a\n")
    text = "-m # not a comment\n\n# nor this: ünï\n\nMdmem-Id: 1"
    commit(tree, message=text)
    assert tree.git("log", "-1", "--format=%B") == text
    assert tree.git("log", "-1", "--format=%(trailers:key=Mdmem-Id,valueonly)") == "1"


def test_a_message_that_no_program_can_be_given_is_refused(tree: Any) -> None:
    tree.write("notes/a.md", "a\n")
    with pytest.raises(GitRefused, match="too long"):
        commit(tree, message="x" * 200_000)


# ------------------------------------------------------------------------------- where git is at work


def test_linked_work_trees_and_submodules_are_committed_to(tree: Any, tmp_path: Path) -> None:
    tree.write("notes/a.md", "a\n")
    tree.commit()
    tree.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = type(tree)(tmp_path / "side")
    side.write("notes/b.md", "b\n")
    made = commit(side)
    assert tree.git("rev-parse", "side") == made
    assert tree.git("log", "--format=%H", "main").count(made) == 0
    outer = type(tree)(tmp_path / "outer")
    outer.root.mkdir()
    outer.git("init", "-q")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tree.root), "-n")
    inner = type(tree)(outer.root / "-n")
    inner.write("notes/c.md", "c\n")
    made = commit(inner)
    assert inner.git("rev-parse", "HEAD") == made
    assert "notes" not in outer.git("ls-files")


def test_a_detached_head_has_no_branch_and_is_committed_to(tree: Any) -> None:
    first = tree.commit()
    tree.git("checkout", "-q", "--detach")
    tree.write("notes/a.md", "a\n")
    made = commit(tree)
    assert tree.git("rev-parse", f"{made}^") == first


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_what_git_is_in_the_middle_of_is_refused(tree: Any, what: str) -> None:
    tree.write("a.py", "a\n")
    first = tree.commit()
    tree.git("checkout", "-q", "-b", "side")
    tree.write("a.py", "b\n")
    side = tree.commit()
    tree.git("checkout", "-q", "main")
    tree.write("a.py", "c\n")
    tree.commit()
    tree.write("a.py", "d\n")
    tree.commit()
    asked = {
        "merge": ["merge", "side"],
        "rebase": ["rebase", "side"],
        "cherry-pick": ["cherry-pick", side],
        "revert": ["revert", "--no-edit", "HEAD^"],
        "bisect": ["bisect", "start", "HEAD", first],
    }
    subprocess.run(["git", *asked[what]], cwd=tree.root, check=False, capture_output=True)
    tree.write("notes/a.md", "a\n")
    with pytest.raises(GitRefused, match="is under way") as caught:
        commit(tree)
    assert f"git {what}" in caught.value.hint
    subprocess.run(caught.value.hint.split("`")[-2].split(), cwd=tree.root, check=True)
    commit(tree)


def test_whether_git_has_other_files(tree: Any) -> None:
    tree.write("memories/notes/a.md", "a\n")
    tree.write("AGENTS.md", "a\n")
    tree.write(".gitattributes", "a\n")
    tree.write("ignored.py", "a\n")
    tree.git("add", "memories", "AGENTS.md", ".gitattributes")
    repository = Repository.around(str(tree.root / "memories"))
    assert not repository.holds_more_than(["memories", "AGENTS.md"])
    assert repository.holds_more_than(["memories"])
    assert repository.holds_more_than(["memories/notes/a", "AGENTS.md"])
    assert not repository.holds_more_than(["."])


# ------------------------------------------------------------- a repository that came from somewhere else


def test_settings_and_hooks_of_the_repository_are_named_and_not_run(tree: Any, tmp_path: Path) -> None:
    """With the user's leave they run: git is asked whether each of them would have."""
    tree.write(".gitattributes", "* filter=evil\n")
    tree.write("notes/a.md", "a\n")
    tree.commit()
    marks = tmp_path / "marks"
    marks.mkdir()
    evil = tmp_path / "evil"
    program(evil, f"touch {marks}/$1; cat")
    hooks = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change")
    for name in hooks:
        program(tree.root / ".git/hooks" / name, f"touch {marks}/{name}")
    started = {
        "filter.evil.clean": f"{evil} filter",
        "gpg.program": f"{evil}",
        "commit.gpgsign": "true",
        "gpg.openpgp.program": f"{evil}",
    }
    not_started = {
        "core.fsmonitor": f"{evil} fsmonitor",
        "core.editor": f"{evil} editor",
        "core.pager": f"{evil} pager",
        "alias.commit": f"!{evil} alias",
        "alias.status": f"!{evil} alias",
        "diff.external": f"{evil} external",
        "core.sshCommand": f"{evil} ssh",
        "trailer.x.command": f"{evil} trailer",
        "commit.template": "/dev/zero",
        "core.pager.status": f"{evil} pager",
        "core.askPass": f"{evil} askpass",
        "i18n.commitEncoding": "latin1",
        "commit.verbose": "true",
        "diff.evil.textconv": f"{evil} textconv",
    }
    for name, value in (started | not_started).items():
        tree.git("config", name, value)
    tree.write("notes/a.md", "b\n")
    os.utime(tree.root / "notes/a.md", (1, 1))
    for mark in marks.iterdir():
        mark.unlink()
    with pytest.raises(GitRefused) as caught:
        commit(tree)
    assert os.listdir(marks) == []
    named = caught.value.reason.partition(": ")[2].split(", ")
    assert {*named} == {*started, *(f"hook {name}" for name in hooks)}
    for name in started:
        tree.git("config", "--unset", name)
    at = work(tree)
    at.refuse(hooks=True)
    at.commit(at.pending(["notes"], lambda _: MOST), "m", SECONDS)
    assert {*os.listdir(marks)} == {*hooks}


@pytest.mark.parametrize("kind", ["include", "worktree", "hooksPath"])
def test_settings_that_the_repository_includes_are_its_own(tree: Any, kind: str) -> None:
    tree.write("notes/a.md", "a\n")
    tree.write("more.ini", '[filter "x"]\nclean = touch /tmp/never\n')
    if kind == "include":
        tree.git("config", "include.path", "../more.ini")
    elif kind == "worktree":
        tree.git("config", "extensions.worktreeConfig", "true")
        (tree.root / ".git/config.worktree").write_text('[filter "x"]\nclean = touch /tmp/never\n')
    else:
        program(tree.root / "hooks/pre-commit", "exit 1")
        tree.git("config", "core.hooksPath", "hooks")
    with pytest.raises(GitRefused, match="hook pre-commit" if kind == "hooksPath" else "filter.x.clean"):
        commit(tree)


def test_hooks_that_the_user_replaces_are_not_named(tree: Any, tmp_path: Path, mine: Any) -> None:
    program(tree.root / ".git/hooks/pre-commit", "exit 1")
    mine("core.hooksPath", str(tmp_path / "none"))
    tree.write("notes/a.md", "a\n")
    assert commit(tree) == tree.git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    "place",
    ["COMMIT_EDITMSG", "index", "logs", "logs/HEAD", "objects/ab", "refs/heads", "refs/heads/main"],
)
def test_a_link_in_gits_folder_is_not_written_through(tree: Any, tmp_path: Path, place: str) -> None:
    tree.write("notes/a.md", "a\n")
    tree.git("-c", "user.name=a", "commit", "-q", "--allow-empty", "-m", "m")
    link = tree.root / ".git" / place
    aside = tmp_path / "aside"
    if link.exists():
        link.rename(aside)
    elif place.startswith("objects"):
        aside.mkdir()
    link.symlink_to(aside)
    with pytest.raises(GitRefused, match=f"{place} is a link"):
        commit(tree)


def test_a_hook_that_prints_is_not_ended(tree: Any, tmp_path: Path, mine: Any) -> None:
    """Three times the limit, with a word in between."""
    tree.write("notes/a.md", "a\n")
    program(tmp_path / "hooks/pre-commit", "for n in 1 2 3 4 5 6; do sleep 0.5; echo $n; done")
    mine("core.hooksPath", str(tmp_path / "hooks"))
    assert commit(tree, seconds=1) == tree.git("rev-parse", "HEAD")


def test_a_commit_that_was_made_before_git_was_ended_is_told_of(tree: Any, tmp_path: Path, mine: Any) -> None:
    tree.write("notes/a.md", "a\n")
    program(tmp_path / "hooks/post-commit", "exec sleep 600")
    mine("core.hooksPath", str(tmp_path / "hooks"))
    with pytest.raises(GitFailed, match="meanwhile the head became") as caught:
        commit(tree, seconds=0.5)
    assert tree.git("rev-parse", "HEAD") in caught.value.reason
    assert tree.git("status", "--porcelain") == ""


def test_a_commit_that_is_not_there_afterwards_is_an_error(tree: Any, tmp_path: Path, mine: Any) -> None:
    tree.commit()
    tree.write("notes/a.md", "a\n")
    program(tmp_path / "hooks/post-commit", "git update-ref HEAD HEAD~1")
    mine("core.hooksPath", str(tmp_path / "hooks"))
    with pytest.raises(GitFailed, match="the head is the same as before"):
        commit(tree)


def test_a_pipe_in_gits_folder_is_not_waited_for(tree: Any) -> None:
    tree.commit()
    tree.write("notes/a.md", "a\n")
    (tree.root / ".git/COMMIT_EDITMSG").unlink()
    os.mkfifo(tree.root / ".git/COMMIT_EDITMSG")
    with pytest.raises(GitFailed, match="printed nothing"):
        commit(tree, seconds=0.5)


def test_a_folder_of_another_repository_is_not_committed_to(tree: Any, tmp_path: Path) -> None:
    tree.write("notes/a.md", "a\n")
    head = tree.commit()
    for name in ("link", "file"):
        other = type(tree)(tmp_path / name)
        other.write("notes/a.md", "evil\n")
        if name == "link":
            (other.root / ".git").symlink_to(tree.root / ".git")
        else:
            other.write(".git", f"gitdir: {tree.root}/.git\n")
        with pytest.raises(GitRefused, match=r"is a link|does not name this work tree"):
            commit(other)
    assert tree.git("rev-parse", "HEAD") == head


def test_a_folder_that_shares_the_commits_of_another_repository_is_not_committed_to(
    tree: Any, tmp_path: Path
) -> None:
    """As `.git` is a folder and no link, only what it shares leads elsewhere."""
    tree.write("notes/a.md", "a\n")
    head = tree.commit()
    other = type(tree)(tmp_path / "other")
    other.write("notes/a.md", "evil\n")
    other.write(".git/commondir", f"{tree.root}/.git\n")
    other.write(".git/gitdir", f"{other.root}/.git\n")
    other.write(".git/HEAD", "ref: refs/heads/main\n")
    with pytest.raises(GitRefused, match="does not name this work tree"):
        commit(other)
    assert tree.git("rev-parse", "HEAD") == head


def test_a_pipe_that_git_would_wait_for_elsewhere_ends_the_commit(tree: Any) -> None:
    """Git looks at every file that its index knows, and at what attributes it has."""
    tree.write("src/a.py", "a\n")
    tree.commit()
    head = tree.git("rev-parse", "HEAD")
    tree.write("src/a.py", "b\n")
    tree.write("notes/a.md", "a\n")
    os.mkfifo(tree.root / "src/.gitattributes")
    with pytest.raises(GitFailed, match="printed nothing"):
        commit(tree, seconds=0.5)
    assert tree.git("rev-parse", "HEAD") == head
    (tree.root / "src/.gitattributes").unlink()
    os.mkfifo(tree.root / "src/pipe")
    tree.git("config", "diff.orderFile", str(tree.root / "src/pipe"))
    assert commit(tree) == tree.git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("file", "words"),
    soak_most([("/dev/zero", "Out of memory"), ("/dev/urandom", "Out of memory|bytes of errors")]),
)
def test_attributes_that_never_end_are_an_error(
    tree: Any, monkeypatch: pytest.MonkeyPatch, file: str, words: str
) -> None:
    if not speed.is_all:
        less = [each.replace(str(limits._MOST_MEMORY), str(1 << 17)) for each in limits._LIMITED]
        monkeypatch.setattr(limits, "_LIMITED", less)
    tree.write("notes/a.md", "a\n")
    tree.git("config", "core.attributesFile", file)
    with pytest.raises(GitFailed, match=words):
        commit(tree)
    assert tree.git("rev-list", "--all") == ""


def test_what_a_partial_clone_lacks_is_not_fetched(tree: Any, tmp_path: Path) -> None:
    tree.write("notes/a.md", "a\n")
    tree.write("notes/b.md", "a\n")
    tree.commit()
    tree.git("config", "uploadpack.allowFilter", "true")
    clone = type(tree)(tmp_path / "clone")
    subprocess.run(
        ["git", "clone", "-q", "--filter=tree:0", "--no-checkout", f"file://{tree.root}", clone.root],
        check=True,
    )
    program(tmp_path / "evil", f'touch {tmp_path}/mark; exec git-upload-pack "$@"')
    clone.git("config", "remote.origin.uploadpack", str(tmp_path / "evil"))
    clone.write("notes/a.md", "b\n")
    with pytest.raises(GitFailed):
        commit(clone)
    assert not (tmp_path / "mark").exists()


# --------------------------------------------------------------------------------------- two at once


def test_two_at_once_both_commit(tree: Any) -> None:
    tree.write("one/a.md", "a\n")
    tree.write("two/a.md", "a\n")
    tree.commit()
    made: dict[str, str] = {}
    tree.write("one/a.md", "b\n")
    tree.write("two/new.md", "b\n")
    threads = [
        threading.Thread(target=lambda n=name: made.setdefault(n, commit(tree, n))) for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.git("status", "--porcelain") == ""
    assert tree.git("rev-list", "--count", "HEAD") == "3"


# What another commits while git makes a commit, once or each time.
OTHERS = "git update-ref HEAD $(git -c user.name=a commit-tree -p HEAD -m other HEAD^{tree})"


def test_a_commit_that_comes_in_between_is_followed(tree: Any, tmp_path: Path, mine: Any) -> None:
    tree.commit()
    tree.write("notes/new.md", "a\n")
    program(
        tmp_path / "hooks/pre-commit", f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; {OTHERS}; }}"
    )
    mine("core.hooksPath", str(tmp_path / "hooks"))
    assert commit(tree) == tree.git("rev-parse", "HEAD")
    assert tree.git("log", "-2", "--format=%s").split() == ["m", "other"]
    assert tree.git("status", "--porcelain") == ""


def test_commits_that_come_in_between_each_time_are_told_of(
    tree: Any, tmp_path: Path, mine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.git.commit._LOCK_SECONDS", 0.2)
    tree.commit()
    tree.write("notes/new.md", "a\n")
    before = index(tree)
    program(tmp_path / "hooks/pre-commit", OTHERS)
    mine("core.hooksPath", str(tmp_path / "hooks"))
    with pytest.raises(GitFailed, match=r"but expected .* meanwhile the head became"):
        commit(tree)
    assert index(tree) == before
