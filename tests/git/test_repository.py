"""What git is asked: it answers from the right repository, asks nobody, and fails in our words."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.errors import GitFailed
from mdmem.git.history import History
from mdmem.git.removals import Removals
from mdmem.git.repository import Objects, Renamed, Repository, TooLong
from mdmem.index.code.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path


def found(tree: Any) -> Repository:
    repository = Repository.find(str(tree.root))
    assert repository is not None
    return repository


def test_the_repository_of_a_hook_does_not_leak_into_ours(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("a.py", "a\n")
    tree.commit()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    repository = found(tree)
    assert repository.blame("a.py") == (repository.head(),)


def test_a_folder_outside_of_any_repository_has_none(tmp_path: Path) -> None:
    assert Repository.find(str(tmp_path)) is None
    assert Repository.find(str(tmp_path / "absent")) is None


def test_the_git_folder_itself_has_no_work_tree(tree: Any) -> None:
    assert Repository.find(str(tree.root / ".git")) is None


def test_a_repository_that_git_refuses_is_an_error_and_not_an_absence(tree: Any) -> None:
    (tree.root / ".git" / "config").write_text("[core\n")
    with pytest.raises(GitFailed, match="config"):
        Repository.find(str(tree.root))


@pytest.mark.parametrize("folder", ["sub", "-sub", "tr\nue", "ünï"])
def test_names_are_from_the_top_and_paths_from_the_folder(tree: Any, folder: str) -> None:
    tree.write(f"{folder}/a.py", "a\n")
    tree.commit()
    repository = Repository.find(str(tree.root / folder))
    assert repository is not None
    assert repository.top == str(tree.root)
    assert repository.name("a.py") == f"{folder}/a.py"
    assert repository.path(f"{folder}/a.py") == "a.py"
    assert repository.path("other/a.py") is None
    assert len(repository.blame(repository.name("a.py"))) == 1


def test_before_the_first_commit_there_is_no_head_and_nothing_to_blame(tree: Any) -> None:
    tree.write("a.py", "a\n")
    repository = found(tree)
    assert repository.head() is None
    assert repository.blame("a.py") == ()


def test_blame_names_the_commit_of_every_line_that_is_committed(tree: Any) -> None:
    tree.write("a.py", "one\ntwo\n")
    first = tree.commit()
    tree.write("a.py", "one\n2\n")
    second = tree.commit()
    tree.write("a.py", "one\n2\nthree\n")
    assert found(tree).blame("a.py") == (first, second)


def test_blame_follows_a_renamed_file(tree: Any) -> None:
    tree.write("a.py", "one\ntwo\nthree\n")
    first = tree.commit()
    tree.git("mv", "a.py", "b.py")
    tree.commit()
    assert found(tree).blame("b.py") == (first,) * 3


@pytest.mark.parametrize(
    "name", ["-a.py", "--contents", ":(glob)*", "a b.py", 'qu"ote.py', "t\tab.py", "l\nf"]
)
def test_odd_names_are_names(tree: Any, name: str) -> None:
    tree.write(name, "one\n")
    first = tree.commit()
    repository = found(tree)
    assert repository.blame(name) == (first,)
    tree.git("mv", "--", name, "moved.py")
    assert repository.renames(first) == (Renamed(name, "moved.py"),)


def test_blame_of_a_file_that_git_does_not_have_is_empty(tree: Any) -> None:
    tree.write("a.py", "one\n")
    tree.commit()
    tree.write("new.py", "one\n")
    assert found(tree).blame("new.py") == ()
    assert found(tree).blame("absent.py") == ()
    tree.git("add", "new.py")
    assert found(tree).blame("new.py") == ()


def test_blame_does_not_skip_the_commits_that_reviewers_skip(tree: Any) -> None:
    tree.write("a.md", "see a.py:1\n")
    tree.commit()
    tree.write("a.md", "see a.py:7\n")
    second = tree.commit()
    tree.write(".git-blame-ignore-revs", f"{second}\n")
    tree.git("config", "blame.ignoreRevsFile", ".git-blame-ignore-revs")
    assert found(tree).blame("a.md") == (second,)


def test_a_shallow_clone_does_not_know_who_wrote_its_oldest_lines(tree: Any, tmp_path: Path) -> None:
    tree.write("a.py", "one\n")
    tree.commit()
    tree.write("a.py", "one\ntwo\n")
    tree.commit()
    tree.write("a.py", "one\ntwo\nthree\n")
    third = tree.commit()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=2", f"file://{tree.root}", clone], check=True)
    repository = Repository.find(str(clone))
    assert repository is not None
    assert repository.shallow
    assert repository.blame("a.py") == (None, None, third)
    assert not found(tree).shallow


def test_a_broken_repository_is_said_by_blame(tree: Any) -> None:
    tree.write("a.py", "one\n")
    tree.commit()
    repository = found(tree)
    shutil.rmtree(tree.root / ".git" / "objects")
    (tree.root / ".git" / "objects").mkdir()
    with pytest.raises(GitFailed) as caught:
        repository.blame("a.py")
    assert caught.value.reason
    assert caught.value.path == str(tree.root)


def test_files_that_one_commit_made_are_told_for_a_whole_folder_as_blame_would(tree: Any) -> None:
    for name in ("same", "edited", "moved", "dirty", "deleted", "ünï", "l\nf"):
        tree.write(f"notes/{name}.md", f"{name}\none\ntwo\n")
    tree.write("other/a.md", "a\n")
    first = tree.commit()
    tree.git("switch", "--quiet", "--create", "branch")
    tree.write("notes/branch.md", "branch\n")
    branch = tree.commit()
    tree.git("switch", "--quiet", "main")
    tree.write("notes/edited.md", "edited\n1\ntwo\n")
    tree.git("mv", "notes/moved.md", "notes/renamed.md")
    tree.commit()
    tree.git("merge", "--quiet", "--no-ff", "--no-commit", "branch")
    tree.write("notes/evil.md", "made by the merge\n")
    tree.commit()
    tree.write("notes/dirty.md", "dirty\n")
    tree.write("notes/new.md", "new\n")
    tree.git("rm", "--quiet", "notes/deleted.md")
    repository = found(tree)
    told = repository.sole_commits("notes")
    assert {name: commit for name, commit in told.items() if commit} == {
        "notes/same.md": first,
        "notes/ünï.md": first,
        "notes/l\nf.md": first,
        "notes/branch.md": branch,
        **dict.fromkeys(("notes/dirty.md", "notes/deleted.md"), first),
    }
    for name in ("edited", "moved", "renamed", "evil"):
        assert told[f"notes/{name}.md"] is None
    assert "notes/new.md" not in told
    for name, commit in told.items():
        if commit and name != "notes/deleted.md":
            assert set(repository.blame(name)) == {commit}


# ------------------------------------------------------------------------------------------------ renames

BODY = "".join(f"line {number} of the file\n" for number in range(20))


def test_renames_since_a_commit_include_those_that_are_not_committed(tree: Any) -> None:
    tree.write("a.py", BODY)
    tree.write("b.py", BODY.replace("file", "other"))
    first = tree.commit()
    tree.git("mv", "a.py", "c.py")
    tree.commit()
    tree.git("mv", "b.py", "d.py")
    repository = found(tree)
    assert repository.renames(first) == (Renamed("a.py", "c.py"), Renamed("b.py", "d.py"))
    assert repository.renames(tree.git("rev-parse", "HEAD")) == (Renamed("b.py", "d.py"),)


def test_only_ids_of_commits_are_revisions(tree: Any) -> None:
    tree.commit()
    for revision in ("--output=x", "HEAD", "", "-" * 40):
        with pytest.raises(ValueError, match="not the id"):
            found(tree).renames(revision)


# ----------------------------------------------------------------- a repository that came from somewhere else


def test_no_setting_of_a_repository_starts_a_program(tree: Any, tmp_path: Path) -> None:
    """Each names a program that leaves its name behind; git itself would run most of them."""
    tree.write("notes/a.md", BODY)
    tree.write("b.py", BODY)
    first = tree.commit()
    tree.write("notes/a.md", BODY + "more\n")
    tree.write(".gitattributes", "* filter=evil diff=evil merge=evil ident\n")
    tree.commit()
    tree.git("mv", "b.py", "c.py")
    marks = tmp_path / "marks"
    marks.mkdir()
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {marks}/$1\ncat\n")
    program.chmod(0o755)
    hooks = tree.root / ".git/hooks"
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"):
        (hooks / name).parent.mkdir(exist_ok=True)
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marks}/{name}\n")
        (hooks / name).chmod(0o755)
    for setting in PROGRAMS:
        tree.git("config", setting, f"{program} {setting}")
    for setting, value in {
        "filter.evil.required": "true",
        "core.hooksPath": str(hooks),
        "log.showSignature": "true",
        "core.fsmonitor": f"{program} fsmonitor",
        "core.attributesFile": str(tree.root / ".gitattributes"),
        "blame.markUnblamableLines": "true",
        "diff.renames": "copies",
        "log.follow": "true",
    }.items():
        tree.git("config", setting, value)
    (tree.root / ".git/info/attributes").write_text("* filter=evil diff=evil\n")
    # What git has in its index looks older than the files: it would have to compare their content.
    for path in ("notes/a.md", "c.py"):
        os.utime(tree.root / path, (1, 1))
    shutil.rmtree(marks)
    marks.mkdir()
    repository = found(tree)
    head = repository.head() or ""
    assert repository.blame("notes/a.md")[-1] == head
    assert repository.sole_commits("notes") == {"notes/a.md": None}
    assert repository.renames(first) == (Renamed("b.py", "c.py"),)
    removals = Removals(History(repository), head)
    assert removals.find("b.py") is None
    removals.close()
    with Objects(str(tree.root), 10_000) as objects:
        assert objects.blob(first, "notes/a.md") == BODY.encode()
    with Workspace(str(tree.root)) as workspace:
        assert [workspace.commit_of("notes/a.md", line) for line in (1, 21)] == [first, head]
        tree.write("notes/a.md", "new\n" + BODY + "more\n")
    with Workspace(str(tree.root)) as workspace:
        assert [workspace.commit_of("notes/a.md", line) for line in (1, 2, 22)] == [None, first, head]
    assert os.listdir(marks) == []


PROGRAMS = (
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    *("diff.evil.textconv", "diff.evil.command", "diff.external", "merge.evil.driver"),
    *("core.pager", "pager.log", "pager.blame", "core.editor", "core.sshCommand", "core.gitProxy"),
    *("core.askPass", "core.alternateRefsCommand", "credential.helper", "gpg.program", "gpg.ssh.program"),
    *("alias.blame", "alias.log", "alias.rev-parse", "uploadpack.packObjectsHook", "trailer.x.command"),
    *("interactive.diffFilter", "sequence.editor", "web.browser", "diff.tool", "remote.origin.uploadpack"),
)


# ------------------------------------------------------------------------------------------------ objects


def test_one_process_reads_many_blobs(tree: Any) -> None:
    tree.write("a.py", "one\n")
    tree.write("sub/ü.py", b"\xff\x00")
    tree.write("empty.py", "")
    first = tree.commit()
    tree.write("a.py", "two\n")
    second = tree.commit()
    with Objects(str(tree.root), 100) as objects:
        assert objects.blob(first, "a.py") == b"one\n"
        process = objects._process
        assert objects.blob(first, "gone.py") is None
        assert objects.blob(first, "sub") is None
        assert objects.blob(first, "empty.py") == b""
        assert objects.blob("0" * 40, "a.py") is None
        assert objects.blob(first, "sub/ü.py") == b"\xff\x00"
        assert objects.blob(second, "a.py") == b"two\n"
        assert objects._process is process
    assert process is not None
    assert process.popen.poll() is not None


def test_what_is_no_commit_or_no_line_is_not_asked_for(tree: Any) -> None:
    first = tree.commit()
    with Objects(str(tree.root), 100) as objects:
        assert objects.blob("HEAD", "a.py") is None
        assert objects.blob("--batch", "a.py") is None
        assert objects.blob(first, "a\nb") is None
        assert objects._process is None


def test_what_a_partial_clone_lacks_is_not_fetched(tree: Any, tmp_path: Path) -> None:
    tree.write("a.py", "old\n")
    old = tree.commit()
    tree.write("a.py", "new\n")
    tree.commit()
    tree.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    source = f"file://{tree.root}"
    subprocess.run(["git", "clone", "--quiet", "--filter=blob:none", source, clone], check=True)
    with (
        Objects(str(clone), 1000) as objects,
        pytest.raises(GitFailed, match=r"a\.py .*this partial clone lacks"),
    ):
        objects.blob(old, "a.py")
    subprocess.run(["git", "show", f"{old}:a.py"], cwd=clone, check=True, capture_output=True)
    with Objects(str(clone), 1000) as objects:
        assert objects.blob(old, "a.py") == b"old\n"


@pytest.mark.usefixtures("no_git")
def test_objects_without_git_fail_in_our_words(tmp_path: Path) -> None:
    with Objects(str(tmp_path), 10) as objects, pytest.raises(GitFailed, match="not found"):
        objects.blob("0" * 40, "a.py")


def test_a_blob_over_the_limit_is_read_past(tree: Any) -> None:
    tree.write("big.py", "x" * 3_000_000)
    tree.write("a.py", "one\n")
    first = tree.commit()
    with Objects(str(tree.root), 100) as objects:
        with pytest.raises(TooLong):
            objects.blob(first, "big.py")
        assert objects.blob(first, "a.py") == b"one\n"


def test_a_symlink_is_followed_inside_the_commit_only(tree: Any) -> None:
    tree.write("a.py", "one\n")
    for name, target in (
        ("in.py", "a.py"),
        ("out.py", "/etc/hostname"),
        ("no.py", "none"),
        ("loop.py", "loop.py"),
    ):
        (tree.root / name).symlink_to(target)
    first = tree.commit()
    with Objects(str(tree.root), 100) as objects:
        assert objects.blob(first, "in.py") == b"one\n"
        assert [objects.blob(first, name) for name in ("out.py", "no.py", "loop.py")] == [None] * 3
        assert objects.blob(first, "a.py") == b"one\n"


def test_a_killed_reader_is_an_error_once_and_then_started_again(tree: Any) -> None:
    tree.write("a.py", "one\n")
    first = tree.commit()
    with Objects(str(tree.root), 100) as objects:
        assert objects.blob(first, "a.py") == b"one\n"
        process = objects._process
        assert process is not None
        process.popen.kill()
        process.popen.wait()
        with pytest.raises(GitFailed, match=r"a\.py"):
            objects.blob(first, "a.py")
        assert objects.blob(first, "a.py") == b"one\n"


def test_blame_reads_nothing_of_the_work_tree(tree: Any) -> None:
    """A pipe there would be waited for."""
    tree.write("a.py", "a\n")
    commit = tree.commit()
    for name in (".mailmap", ".gitattributes"):
        os.mkfifo(tree.root / name)
    assert found(tree).blame("a.py") == (commit,)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdmem.git.program._SILENT_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["config", "packed-refs", "objects/info/alternates"])
def test_a_pipe_in_the_folder_of_git_is_not_waited_for(tree: Any, name: str) -> None:
    tree.write("a.md", "a\n")
    tree.commit()
    tree.git("pack-refs", "--all")
    pipe = tree.root / ".git" / name
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(GitFailed, match=r"printed nothing for 0\.5 s"):
        found(tree).blame("a.md")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "name", [".gitignore", ".git/info/exclude", "notes/.gitignore", "notes/deep/.gitignore"]
)
def test_what_never_ends_in_the_work_tree_ends_the_question(tree: Any, name: str) -> None:
    tree.write("notes/deep/a.md", "a\n")
    repository = found(tree)
    (tree.root / name).unlink(missing_ok=True)
    os.mkfifo(tree.root / name)
    with pytest.raises(GitFailed, match="printed nothing"):
        repository.taken(["notes"])
    (tree.root / name).unlink()
    (tree.root / name).touch()
    os.truncate(tree.root / name, 1 << 34)
    with pytest.raises(GitFailed, match=r"[Oo]ut of memory"):
        repository.taken(["notes"])


@pytest.mark.usefixtures("impatient")
def test_settings_that_name_what_never_ends_end_the_question(tree: Any, tmp_path: Path) -> None:
    tree.write("a.md", "a\n")
    head = tree.commit()
    os.mkfifo(tmp_path / "pipe")
    tree.git("config", "core.excludesFile", str(tmp_path / "pipe"))
    repository = found(tree)
    assert list(History(repository).staged(head, ["."])) == []
    with pytest.raises(GitFailed):
        repository.taken(["."])
    tree.git("config", "core.excludesFile", os.devnull)
    assert repository.taken(["."]) == ("a.md",)
    tree.git("config", "blame.ignoreRevsFile", str(tmp_path / "pipe"))
    with pytest.raises(GitFailed):
        repository.blame("a.md")


@pytest.mark.usefixtures("impatient")
def test_an_object_that_is_a_pipe_ends_the_reader(tree: Any) -> None:
    tree.write("a.py", "one\n")
    first = tree.commit()
    blob = tree.git("rev-parse", "HEAD:a.py")
    file = tree.root / f".git/objects/{blob[:2]}/{blob[2:]}"
    file.unlink()
    os.mkfifo(file)
    with Objects(str(tree.root), 100) as objects:
        with pytest.raises(GitFailed, match=r"read a\.py .*printed nothing"):
            objects.blob(first, "a.py")
        assert objects._process is None
    with pytest.raises(GitFailed, match="blame"):
        found(tree).blame("a.py")


@pytest.mark.usefixtures("impatient")
def test_a_tree_that_is_a_pipe_ends_the_log(tree: Any) -> None:
    tree.write("a.py", "one\n")
    first = tree.commit()
    id_ = tree.git("rev-parse", "HEAD^{tree}")
    file = tree.root / f".git/objects/{id_[:2]}/{id_[2:]}"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(GitFailed, match="read the history"):
        list(History(found(tree)).log(["a.py"], first))


@pytest.mark.usefixtures("impatient")
def test_a_workspace_asks_a_silent_git_once(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("a.py", "one\n")
    tree.commit()
    (tree.root / ".git/refs/heads/main").unlink()
    os.mkfifo(tree.root / ".git/refs/heads/main")
    with Workspace(str(tree.root)) as workspace:
        assert workspace.head is None
        monkeypatch.setenv("PATH", "")  # another question would say that there is no git
        assert workspace.commit_of("a.py", 1) is None
        assert "printed nothing" in workspace.trouble


def test_a_git_that_is_silent_is_said_of_the_work_tree(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.commit()
    repository = found(tree)
    monkeypatch.setattr("mdmem.git.program._SILENT_SECONDS", 0.2)
    (tree.root / ".git/refs/heads/main").unlink()
    os.mkfifo(tree.root / ".git/refs/heads/main")
    with pytest.raises(GitFailed, match="printed nothing") as caught:
        repository.head()
    assert caught.value.path == str(tree.root)


def test_files_that_are_not_there_are_ignored_or_not_by_name(tree: Any) -> None:
    tree.write(":(top)ü/.gitignore", "/a/\n*.log\n!b.log\n")
    tree.write(":(top)ü/a/kept", "tracked\n")
    names = [f":(top)ü/{name}" for name in ("a/kept", "b.log", "*", "c.log", 'x"\n')]
    found = Repository.find(str(tree.root))
    assert found is not None
    assert found.find_unignored(names) == [names[1], names[2], names[4]]
    assert found.find_unignored(names[:1]) == []
    assert found.find_unignored(names[1:3]) == names[1:3]
