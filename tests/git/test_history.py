"""What the commits of a repository say, and what they did to which files."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.errors import GitFailed, NamedNotFound
from mdmem.git.history import History
from mdmem.git.repository import Repository
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.git.history import LoggedCommit


def history(tree: Any) -> History:
    repository = Repository.find(str(tree.root))
    assert repository is not None
    return History(repository)


def logged(tree: Any, *names: str, follow: bool = False) -> list[LoggedCommit]:
    found = history(tree)
    start = found.repository.head()
    assert start
    with closing(found.log(names or (".",), start, follow=follow)) as commits:
        return list(commits)


def commit(tree: Any, message: str) -> str:
    tree.git("add", "--all")
    tree.git("commit", "--quiet", "--allow-empty", "--message", message)
    return str(tree.git("rev-parse", "HEAD"))


def test_commits_are_told_with_their_trailers(tree: Any) -> None:
    tree.write("a.md", "a\n")
    message = "Add\n\nText.\n\nMdmem-Op: append\nMdmem-Id: 1\nMdmem-Id: 2\nmdmem-agent: claude\nOther: x"
    id_ = commit(tree, message)
    ((found, files),) = logged(tree)
    assert (found.id, found.parents, found.author, found.email) == (id_, (), "A", "a@example.org")
    assert found.date == "2026-01-01T00:00:00+00:00"
    assert (found.subject, found.values("Mdmem-Op")) == ("Add", ("append",))
    assert found.values("Mdmem-Id") == ("1", "2")
    assert found.values("Mdmem-Agent") == ("claude",)
    assert [(file.status, file.name) for file in files] == [("added", "a.md")]


@pytest.mark.parametrize(
    "message", ["\x1e\x1f", "a\tb", "ü" * 3000, "x\n\nMdmem-Op: ", "x\n\nMdmem-Op: a\x1fb"]
)
def test_no_message_is_taken_for_something_else(tree: Any, message: str) -> None:
    tree.write("a.md", "a\n")
    commit(tree, message)
    tree.write("b.md", "b\n")
    commit(tree, "second")
    assert [[file.name for file in files] for _, files in logged(tree)] == [["b.md"], ["a.md"]]
    assert len(logged(tree)[1].commit.subject) <= 400


def test_names_are_told_as_they_are(tree: Any) -> None:
    names = sorted(
        ["a b.md", "ü.md", '"q".md', "line\nend.md", "tab\t.md", "0" * 40, "R100", "-x.md", ":(top)"]
    )
    for name in names:
        tree.write(name, f"{name}\n" * 4)
    commit(tree, "all")
    ((_, files),) = logged(tree)
    assert sorted(file.name for file in files) == names
    for name in names:
        assert [file.name for _, files in logged(tree, name, follow=True) for file in files] == [name]


def test_a_file_is_followed_through_renames(tree: Any) -> None:
    tree.write("a.md", "one\ntwo\nthree\n")
    first = commit(tree, "add")
    tree.git("mv", "a.md", "b.md")
    second = commit(tree, "rename")
    found = logged(tree, "b.md", follow=True)
    assert [each.commit.id for each in found] == [second, first]
    (file,) = found[0].files
    assert (file.status, file.name, file.old, file.before == file.after) == ("renamed", "b.md", "a.md", True)


def test_links_and_submodules_have_no_content(tree: Any) -> None:
    tree.write("a.md", "a\n")
    first = commit(tree, "add")
    (tree.root / "a.md").unlink()
    (tree.root / "a.md").symlink_to("/etc/passwd")
    tree.git("add", "a.md")
    tree.git("update-index", "--add", "--cacheinfo", f"160000,{first},sub.md")
    tree.git("commit", "--quiet", "--message", "link")
    second = tree.git("rev-parse", "HEAD")
    by_name = {file.name: file for file in logged(tree)[0].files}
    assert (by_name["a.md"].status, by_name["a.md"].after) == ("removed", "")
    assert by_name["sub.md"].after == by_name["sub.md"].before == ""
    assert history(tree).tree(second, ["."]) == {}


def test_a_merge_tells_what_it_settled(tree: Any) -> None:
    tree.write("a.md", "a\n")
    tree.write("b.md", "b\n")
    commit(tree, "base")
    tree.git("checkout", "--quiet", "-b", "side")
    tree.write("a.md", "side\n")
    commit(tree, "side")
    tree.git("checkout", "--quiet", "main")
    tree.write("a.md", "main\n")
    commit(tree, "main")
    subprocess.run(["git", "merge", "--quiet", "side"], cwd=tree.root, check=False, capture_output=True)
    tree.write("a.md", "both\n")
    merge = commit(tree, "merge")
    found = {each.commit.id: each for each in logged(tree)}[merge]
    assert [(file.status, file.name) for file in found.files] == [("changed", "a.md")]
    assert history(tree).files([merge]) == {merge: ("a.md",)}


@cases(
    "revision",
    ["", "nothing", "-x", "--help", "HEAD..HEAD", ":/add", "HEAD^{/add}", "HEAD:a.md", "a b", "x\0"],
)
def test_what_names_no_commit_is_refused(tree: Any, revision: str) -> None:
    tree.write("a.md", "a\n")
    commit(tree, "add")
    with pytest.raises(NamedNotFound):
        history(tree).resolve(revision)


def test_a_revision_names_a_commit(tree: Any) -> None:
    first = commit(tree, "one")
    second = commit(tree, "two")
    tree.git("tag", "-a", "v1", "-m", "v1", first)
    for revision, expected in (("HEAD", second), ("HEAD~1", first), ("v1", first), (first[:8], first)):
        assert history(tree).resolve(revision) == expected


def test_commits_are_read_by_their_ids(tree: Any) -> None:
    ids = [commit(tree, f"number {number}") for number in range(3)]
    assert {id_: found.subject for id_, found in history(tree).commits(ids).items()} == {
        id_: f"number {number}" for number, id_ in enumerate(ids)
    }
    assert history(tree).commits([]) == {}


def test_what_the_index_knows_is_told_with_its_stamp(tree: Any) -> None:
    tree.write("notes/a.md", "a\n")
    commit(tree, "add")
    entry = history(tree).index(["notes"])["notes/a.md"]
    stat = os.stat(tree.root / "notes/a.md")
    assert entry.stamp == (stat.st_mtime_ns, stat.st_ctime_ns, 2, stat.st_ino & 0xFFFFFFFF)
    assert entry.is_out
    assert entry.blob == history(tree).tree("HEAD", ["notes"])["notes/a.md"]


def test_settings_change_nothing(tree: Any, tmp_path: Path) -> None:
    tree.write("a.md", "a\n" * 9)
    commit(tree, "add")
    before = logged(tree)
    os.mkfifo(tmp_path / "pipe")
    for name, value in {
        "log.showRoot": "false",
        "log.date": "relative",
        "log.follow": "true",
        "log.diffMerges": "off",
        "format.pretty": "oneline",
        "format.notes": "true",
        "diff.orderFile": str(tmp_path / "pipe"),
        "diff.renames": "false",
        "diff.external": str(tmp_path / "pipe"),
        "color.ui": "always",
        "core.pager": str(tmp_path / "pipe"),
        "core.abbrev": "4",
        "i18n.logOutputEncoding": "UTF-16",
        "log.showSignature": "true",
        "gpg.program": str(tmp_path / "pipe"),
        "trailer.separators": "#",
    }.items():
        tree.git("config", name, value)
    assert logged(tree) == before


def test_git_that_cannot_read_its_repository_is_an_error(tree: Any) -> None:
    tree.write("a.md", "a\n")
    id_ = commit(tree, "add")
    (tree.root / ".git/objects" / id_[:2] / id_[2:]).unlink()
    found = history(tree)
    with pytest.raises(GitFailed), closing(found.log(["."], id_)) as commits:
        list(commits)


def test_a_reader_that_stops_leaves_no_process(tree: Any) -> None:
    for number in range(30):
        tree.write("a.md", f"{number}\n")
        commit(tree, "x" * 5000)
    found = history(tree)
    head = found.repository.head()
    assert head
    with closing(found.log(["."], head)) as commits:
        assert next(commits).commit.id == head
