"""What git knows of memories: commits, changes by fact, and who said what; only those of the namespace."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.errors import (
    GitFailed,
    Invalid,
    MemoryNotFound,
    NamedNotFound,
    PathRefused,
    SectionNotFound,
    Usage,
)
from tests.git.conftest import Tree, VaultTree, set_up
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory
    from mdmem.review.review import MemoryChange

NOTE = """---
title: Database
tags: [a]
---
# Database

- SQLite is one file. ^one
- It has no server of its own.

## Why

We looked at [[old]] before we chose it.
"""


class Work(VaultTree):
    """A repository with a vault in it, whose commits have trailers."""

    def save(self, message: str = "m", **trailers: str) -> str:
        lines = [f"Mdmem-{name.capitalize()}: {value}" for name, value in trailers.items()]
        return self.commit("\n".join((message, "", *lines)))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    set_up(monkeypatch)
    return Work(tmp_path / "work")


def told(changes: list[MemoryChange]) -> list[tuple[str, str, Any, Any]]:
    return [(each.path, each.change, each.before, each.after) for each in changes]


# ---------------------------------------------------------------------------------------------------- log


def test_the_log_tells_who_did_what_to_which_memory(work: Work) -> None:
    work.note("notes/db.md", NOTE)
    work.save("Begin")
    work.write("src/app.py", "pass\n")
    work.save("Code only")
    work.note("notes/db.md", NOTE + "More.\n")
    id_ = work.save("Add more", op="append notes/db.md", id="20260101", agent="claude", session="s1")
    found = work.open().git.log()
    assert [commit.subject for commit in found] == ["Add more", "Begin"]
    last = found[0]
    assert (last.commit, last.agent, last.author, last.session) == (id_, "claude", "A", "s1")
    assert (last.operations, last.ids) == (("append notes/db.md",), ("20260101",))
    assert [(each.path, each.status) for each in last.memories] == [("notes/db.md", "changed")]
    assert len(work.open().git.log(limit=1)) == 1


def test_a_memory_is_followed_through_renames_and_its_end(work: Work) -> None:
    work.note("notes/a.md", NOTE)
    work.save("add")
    work.git("mv", "memories/notes/a.md", "memories/notes/b.md")
    work.save("move")
    assert [commit.subject for commit in work.open().git.log("notes/b.md")] == ["move", "add"]
    work.git("rm", "--quiet", "memories/notes/b.md")
    work.save("remove")
    assert [commit.subject for commit in work.open().git.log("notes/b.md")] == ["remove", "move", "add"]


def test_a_mounted_file_is_a_memory_under_its_path_in_the_vault(work: Work) -> None:
    work.write("AGENTS.md", "# Project\n\n- Use SQLite\n")
    work.write("README.md", "no memory\n")
    work.save("add")
    memory = work.open()
    assert [each.path for each in memory.git.log()[0].memories] == ["AGENTS.md"]
    assert memory.git.log("AGENTS.md")
    work.write("AGENTS.md", "# Project\n\n- Use SQLite\n- And tests\n")
    assert told(memory.git.diff()) == [("AGENTS.md", "fact-added", None, "And tests")]
    assert [said.note for said in memory.git.blame("AGENTS.md")] == ["", "", "not committed yet"]


def test_a_section_and_a_block_have_a_log_of_their_own(work: Work) -> None:
    work.note("notes/db.md", NOTE.replace(" ^one", ""))
    work.save("begin")
    work.note("notes/db.md", NOTE)
    work.save("give an id")
    work.note("notes/db.md", NOTE + "\nMore of it.\n")
    work.save("more why")
    work.note("notes/db.md", NOTE.replace("## Why", "## Reasons") + "\nMore of it.\n")
    work.save("rename the heading")
    work.note(
        "notes/db.md", NOTE.replace("## Why", "## Reasons").replace("one file", "a file") + "\nMore of it.\n"
    )
    work.save("reword the fact")
    git = work.open().git
    assert [each.subject for each in git.log("notes/db.md", "^one")] == [
        "reword the fact",
        "give an id",
        "begin",
    ]
    assert [each.subject for each in git.log("notes/db.md", "Reasons")] == [
        "rename the heading",
        "more why",
        "begin",
    ]
    assert len(git.log("notes/db.md", "Reasons", limit=1)) == 1
    with pytest.raises(SectionNotFound):
        git.log("notes/db.md", "Nothing")
    with pytest.raises(SectionNotFound) as caught:
        git.log("notes/db.md", "^none")
    assert "no commit has it" in caught.value.hint  # and not that there are no headings
    with pytest.raises(Usage):
        git.log(None, "Why")


def test_what_is_gone_has_a_log(work: Work) -> None:
    work.note("notes/db.md", NOTE)
    work.save("begin")
    work.note("notes/db.md", NOTE.replace("- SQLite is one file. ^one\n", ""))
    work.save("take away")
    assert [each.subject for each in work.open().git.log("notes/db.md", "^one")] == ["take away", "begin"]


# --------------------------------------------------------------------------------------------------- diff


def test_a_diff_names_fields_facts_and_links(work: Work) -> None:
    work.note("notes/db.md", NOTE)
    work.note("notes/gone.md", "- a fact that goes away for good\n")
    first = work.save()
    work.note(
        "notes/db.md",
        NOTE.replace("tags: [a]", "tags: [a, b]")
        .replace("one file", "a single file")
        .replace("- It has no server of its own.\n", "")
        .replace("[[old]]", "[[new]]")
        + "\nIt has no server of its own.\n",
    )
    (work.root / "memories/notes/gone.md").unlink()
    work.note("notes/new.md", "- new\n")
    expected = [
        ("notes/db.md", "field-changed", ["a"], ["a", "b"]),
        ("notes/db.md", "fact-reworded", "SQLite is one file. ^one", "SQLite is a single file. ^one"),
        (
            "notes/db.md",
            "links-repointed",
            "We looked at [[old]] before we chose it.",
            "We looked at [[new]] before we chose it.",
        ),
        ("notes/db.md", "fact-moved", "It has no server of its own.", "It has no server of its own."),
        ("notes/gone.md", "memory-removed", None, None),
        ("notes/gone.md", "fact-removed", "a fact that goes away for good", None),
        ("notes/new.md", "memory-added", None, None),
        ("notes/new.md", "fact-added", None, "new"),
    ]
    git = work.open().git
    assert told(git.diff()) == told(git.diff("HEAD")) == told(git.diff(first)) == expected
    second = work.save()
    assert git.diff() == []
    for revisions in (f"{first}..{second}", f"{first}..", "HEAD~1..HEAD", "main~1..main"):
        assert told(git.diff(revisions)) == expected
    assert len(git.diff(f"{second}..{first}")) == len(expected)
    reworded = git.diff(f"{first}..")[1]
    assert [(word.mark, word.text) for word in reworded.words][1:3] == [("-", "one"), ("+", "a single")]


def test_a_diff_is_of_some_memories(work: Work) -> None:
    for name in ("notes/a.md", "notes/b.md", "c.md"):
        work.note(name, "- one\n")
    work.save()
    for name in ("notes/a.md", "notes/b.md", "c.md"):
        work.note(name, "- two\n")
    git = work.open().git
    assert {change.path for change in git.diff(paths=["notes"])} == {"notes/a.md", "notes/b.md"}
    assert {change.path for change in git.diff("HEAD", ["notes/a.md"])} == {"notes/a.md"}
    work.save()
    assert {change.path for change in git.diff("HEAD~1..HEAD", ["c.md", "notes/b.md"])} == {
        "c.md",
        "notes/b.md",
    }
    for revisions in ("", "HEAD~1..HEAD"):
        with pytest.raises(MemoryNotFound):
            git.diff(revisions, ["nothing.md"])
        with pytest.raises(PathRefused):
            git.diff(revisions, ["../x.md"])
    (work.root / "memories/c.md").unlink()
    assert git.diff(paths=["c.md"])[0].change == "memory-removed"


def test_a_renamed_memory_is_one(work: Work) -> None:
    work.note("notes/a.md", NOTE)
    work.note("notes/b.md", "---\nid: b1\n---\n- quite short\n")
    work.save()
    (work.root / "memories/notes/a.md").rename(work.root / "memories/notes/c.md")
    (work.root / "memories/notes/b.md").unlink()
    work.note("notes/d.md", "---\nid: b1\n---\n- said in other words\n")
    git = work.open().git
    renamed = [(c.old_path, c.path, c.sure) for c in git.diff() if c.change == "memory-renamed"]
    assert renamed == [("notes/a.md", "notes/c.md", True), ("notes/b.md", "notes/d.md", True)]
    work.save()
    found = git.diff("HEAD~1..HEAD")
    assert [(c.old_path, c.path) for c in found if c.change == "memory-renamed"] == [
        ("notes/a.md", "notes/c.md")
    ]


def test_a_renamed_memory_is_chosen_by_either_name(work: Work) -> None:
    """To say that one is added, or removed, would have a reviewer delete what the other name holds."""
    work.note("notes/a.md", NOTE)
    work.note("other.md", "- other\n")
    work.save()
    work.git("mv", "-k", "memories/notes/a.md", "memories/b.md")
    (work.root / "memories/archive").mkdir()
    (work.root / "memories/b.md").rename(work.root / "memories/archive/b.md")
    work.note("other.md", "- other words\n")
    git = work.open().git
    expected = [("archive/b.md", "memory-renamed", "notes/a.md")]
    for committed in (False, True):
        revisions = ["", "HEAD"] if not committed else ["HEAD~1", "HEAD~1.."]
        for paths in (["notes/a.md"], ["archive/b.md"], ["notes"], ["archive"], None):
            for found in (git.diff(each, paths) for each in revisions):
                told_of = [
                    (each.path, each.change, each.old_path) for each in found if each.path != "other.md"
                ]
                assert told_of == expected, paths
                assert len(found) > 1 if paths is None else found == found[:1], paths
        work.save()


def test_a_memory_that_git_ignores_is_no_difference_where_it_is_named_either(work: Work) -> None:
    work.write(".gitignore", "mine.md\n")
    work.save()
    work.note("notes/mine.md", "x\n")
    assert work.open().git.diff(paths=["notes/mine.md"]) == []


def test_an_item_that_was_made_a_child_has_the_words_of_its_parent(work: Work) -> None:
    work.note("a.md", "# A\n\n- Deploys go through Ann.\n- Never on a Friday.\n\n# B\n\n- other\n")
    work.save()
    work.note("a.md", "# A\n\n- Deploys go through Ann.\n  - Never on a Friday.\n\n# B\n\n- other\n")
    (change,) = work.open().git.diff()
    assert (change.change, change.after) == ("fact-moved", "Never on a Friday.")
    assert (change.parent, change.heading) == ("Deploys go through Ann.", change.old_heading)
    work.save()
    work.note("a.md", "# A\n\n- Deploys go through Ann.\n- Never on a Friday.\n\n# B\n\n- other\n")
    (change,) = work.open().git.diff()
    assert (change.change, change.moved, change.parent) == ("fact-moved", True, "")


def merge_both(work: Work, base: str, ours: str, theirs: str) -> None:
    """Leave a conflict in `notes/a.md`, by git's own merge of lines."""
    work.note("notes/a.md", base)
    work.save()
    work.git("branch", "side")
    work.note("notes/a.md", ours)
    work.save("ours")
    work.git("checkout", "--quiet", "side")
    work.note("notes/a.md", theirs)
    work.save("theirs")
    work.git("checkout", "--quiet", "main")
    subprocess.run(["git", "merge", "side"], cwd=work.root, capture_output=True, check=False)


def test_a_memory_amid_a_merge_says_so_with_its_lines(work: Work) -> None:
    merge_both(work, "# A\n\n- one\n", "# A\n\n- ours\n", "# A\n\n- theirs\n")
    work.note("other.md", "- other\n")
    git = work.open().git

    def conflicts(paths: list[str] | None = None) -> list[tuple[str, int | None, int | None, bool]]:
        found = (each for each in git.diff(paths=paths) if each.change == "conflict")
        return [(each.path, each.line, each.last, "amid a merge" in each.note) for each in found]

    assert conflicts() == conflicts(["notes/a.md"]) == [("notes/a.md", 3, 7, True)]
    assert [row.change for row in git.diff(paths=["notes/a.md"])] == ["conflict"]
    work.note("notes/a.md", "# A\n\n- ours\n")  # as the last commit has it
    assert conflicts() == conflicts(["notes"]) == [("notes/a.md", None, None, True)]
    assert [change.change for change in git.diff(paths=["notes"])] == ["conflict"]
    (work.root / "memories/notes/a.md").unlink()
    assert conflicts() == conflicts(["notes/a.md"]) == [("notes/a.md", None, None, True)]
    work.git("rm", "--quiet", "memories/notes/a.md")
    assert conflicts() == []


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_blame_amid_a_merge_is_of_the_lines_of_ours_and_says_where_it_is(work: Work, style: str) -> None:
    work.git("config", "merge.conflictStyle", style)
    table = "| a | b |\n|---|---|\n| 1 | {} |\n| 2 | y |\n\nend\n"
    merge_both(work, *map(table.format, ("x", "ours", "theirs")))
    head, base = work.git("rev-parse", "HEAD"), work.git("rev-parse", "HEAD~1")
    last = 7 if style == "merge" else 9
    assert [(each.line, each.text, each.commit) for each in work.open().git.blame("notes/a.md")] == [
        (1, "a | b", base),
        (3, f"a conflict in lines 3 to {last}", None),
        (4, "1 | ours", head),
        (last + 1, "2 | y", base),
        (last + 3, "end", base),
    ]


def test_a_memory_that_is_moved_and_not_committed_keeps_who_said_its_facts(work: Work) -> None:
    work.note("notes/a.md", NOTE)
    first = work.save("begin", op="write notes/a.md", agent="claude")
    work.open("ada").mv("notes/a.md", "b.md")
    (work.root / "memories/b.md").rename(work.root / "memories/c.md")
    said = work.open().git.blame("c.md")
    assert {(each.commit, each.agent, each.note) for each in said} == {(first, "claude", "")}


def test_a_conflict_in_code_is_told_where_git_knows_of_the_merge(work: Work) -> None:
    work.note("doc.md", "# Markers\n")
    merge_both(work, "```\none\n```\n", "```\nours\n```\n", "```\ntheirs\n```\n")
    work.note("doc.md", "# Markers\n\n```\n<<<<<<< a\n=======\n>>>>>>> b\n```\n")
    found = [each for each in work.open().git.diff() if each.change == "conflict"]
    assert [(each.path, each.line, each.last) for each in found] == [("notes/a.md", 2, 6)]


def test_a_conflict_is_refused_and_one_that_stands_is_settled_bit_by_bit(work: Work) -> None:
    merge_both(work, "- one\n", "- ours\n- k\n", "- theirs\n- k\n")
    memory = work.open()
    (found,) = (each for each in memory.check() if each.severity == "error")
    assert (found.path, found.code, found.position.line) == ("notes/a.md", "conflict-markers", 1)
    marked = (work.root / "memories/notes/a.md").read_text()
    with pytest.raises(Invalid):
        memory.write("notes/b.md", marked)
    memory.replace("notes/a.md", "- theirs\n", "")
    memory.replace("notes/a.md", ">>>>>>> side\n", "")
    assert memory.check() == []


def test_a_fact_that_goes_to_another_memory_is_named_once(work: Work) -> None:
    work.note("notes/a.md", "- SQLite is a single file.\n- k\n")
    work.note("notes/b.md", "- j\n")
    work.save()
    work.note("notes/a.md", "- k\n")
    work.note("notes/b.md", "- j\n- SQLite is a single file.\n")
    (change,) = work.open().git.diff()
    assert (change.path, change.change, change.old_path) == ("notes/b.md", "fact-moved", "notes/a.md")


def test_what_git_ignores_is_no_difference(work: Work) -> None:
    work.save()
    work.note("working/threads/t.md", "Green.\n")
    work.note("notes/mine.md", "x\n")
    work.write(".gitignore", "mine.md\n")
    assert work.open().git.diff() == []
    work.git("add", "--force", "memories/notes/mine.md")
    assert [change.change for change in work.open().git.diff()] == ["memory-added", "fact-added"]


def test_line_ends_that_git_may_have_made_are_no_difference(work: Work) -> None:
    work.note("notes/a.md", "- one\n- two\n")
    work.save()
    work.note("notes/a.md", "- one\r\n- two\r\n")
    assert work.open().git.diff() == []


def test_a_change_that_keeps_size_and_time_is_seen(work: Work) -> None:
    work.note("notes/a.md", "- one\n")
    file = work.root / "memories/notes/a.md"
    os.utime(file, ns=(10**18, 10**18))
    work.save()
    file.write_text("- two\n")
    os.utime(file, ns=(10**18, 10**18))
    assert [change.change for change in work.open().git.diff()] == ["fact-removed", "fact-added"]


def test_what_cannot_be_a_memory_is_said(work: Work) -> None:
    work.note("notes/a.md", "- one\n")
    work.note("notes/b.md", "---\na: 1\n---\n")
    work.save()
    work.write("memories/notes/a.md", b"\xff\xfe")
    work.note("notes/b.md", "---\na: [\n---\n")
    changes = work.open().git.diff()
    assert [(change.path, change.change) for change in changes] == [
        ("notes/a.md", "not-compared"),
        ("notes/b.md", "fact-reworded"),
    ]
    assert "UTF-8" in changes[0].note


def test_only_the_layout_is_said_to_differ(work: Work) -> None:
    work.note("notes/a.md", "- one\n- two\n")
    work.save()
    work.note("notes/a.md", "- one\n\n- two\n")
    (change,) = work.open().git.diff()
    assert (change.change, bool(change.note)) == ("layout", True)


def test_facts_in_another_order_are_said_to_be_reordered(work: Work) -> None:
    work.note("notes/a.md", "- one\n- two\n- three\n")
    work.save()
    work.note("notes/a.md", "- two\n- three\n- one\n")
    (change,) = work.open().git.diff()
    assert (change.change, change.before, change.after) == ("fact-reordered", "one", "one")


@cases("revisions", ["nothing", "nothing..HEAD", "HEAD..nothing", "-x", "--help..", ":/m", "HEAD:x"])
def test_what_names_no_commit_is_refused(work: Work, revisions: str) -> None:
    work.save()
    with pytest.raises(NamedNotFound):
        work.open().git.diff(revisions)


def test_three_dots_show_what_a_branch_did_since_it_began(work: Work) -> None:
    work.note("notes/a.md", "- one is here\n")
    base = work.save()
    work.git("checkout", "--quiet", "-b", "agent")
    work.note("notes/a.md", "- one is here\n- two of the agent\n")
    work.save()
    work.git("checkout", "--quiet", "main")
    work.note("notes/b.md", "- three of main\n")
    work.save()
    git = work.open().git

    def told(revisions: str) -> set[tuple[str, str]]:
        return {(row.path, row.change) for row in git.diff(revisions)}

    added, removed = ("notes/a.md", "fact-added"), ("notes/b.md", "memory-removed")
    assert told("main...agent") == told("...agent") == told(f"{base}..agent") == {added}
    assert told("main..agent") == {added, removed, ("notes/b.md", "fact-removed")}
    assert told("agent...") == {("notes/b.md", "memory-added"), ("notes/b.md", "fact-added")}
    for wrong in ("main....agent", "main...nosuch", "main...a..b"):
        with pytest.raises(NamedNotFound, match="no revision"):
            git.diff(wrong)


def test_three_dots_between_histories_without_a_common_commit_say_so(work: Work) -> None:
    work.note("notes/a.md", "- one\n")
    work.save()
    work.git("checkout", "--quiet", "--orphan", "other")
    work.save("another beginning")
    with pytest.raises(NamedNotFound, match="common") as caught:
        work.open().git.diff("main...other")
    assert "A..B" in caught.value.hint


def test_a_proposal_is_one_row_with_its_reason(work: Work) -> None:
    work.note("notes/a.md", "- one\n")
    work.note("inbox/mine.md", "# A list of my own\n\n- read this\n")
    work.save()
    memory = work.open()
    for n in range(3):
        memory.inbox.propose("append", {"path": "notes/a.md", "text": f"- fact {n}"}, reason=f"said {n}")
    work.note("inbox/mine.md", "# A list of my own\n\n- read that\n")
    rows = memory.git.diff()
    assert sorted((row.change, row.note) for row in rows) == [
        ("fact-reworded", ""),
        *(("memory-added", f"said {n}") for n in range(3)),
    ]
    work.save()
    first, second, _ = memory.inbox.list()
    memory.inbox.reject(first.id)
    (row,) = memory.git.diff()
    assert (row.key, row.before, row.after) == ("status", "open", "rejected")
    (work.root / "memories" / second.path).unlink()
    assert [row.change for row in memory.git.diff(paths=[second.path])] == ["memory-removed"]


# -------------------------------------------------------------------------------------------------- blame


def test_each_fact_has_who_said_it(work: Work) -> None:
    work.note("notes/db.md", NOTE)
    first = work.save("begin")
    work.note("notes/db.md", NOTE.replace("one file", "a file"))
    second = work.save("reword", op="replace notes/db.md", agent="claude")
    work.note("notes/db.md", NOTE.replace("one file", "a file") + "\n- Not yet said.\n")
    said = {each.text: each for each in work.open().git.blame("notes/db.md")}
    assert {text: each.commit for text, each in said.items()} == {
        "title: Database": first,
        "tags: [a]": first,
        "# Database": first,
        "SQLite is a file.": second,
        "It has no server of its own.": first,
        "## Why": first,
        "We looked at [[old]] before we chose it.": first,
        "Not yet said.": None,
    }
    fact = said["SQLite is a file."]
    assert (fact.agent, fact.author, fact.operations) == ("claude", "A", ("replace notes/db.md",))
    assert (fact.date, fact.line, fact.id, fact.heading) == (
        "2026-01-01T00:00:00+00:00",
        7,
        "one",
        ("Database",),
    )
    assert said["Not yet said."].note == "not committed yet"


def test_who_moved_or_indented_a_fact_has_not_said_it(work: Work) -> None:
    work.note("notes/a.md", "# A\n\n- a fact that is long enough to be known again\n\n# B\n\n- other\n")
    first = work.save()
    work.note("notes/a.md", "# A\n\n# B\n\n- other\n  - a fact that is long enough to be known again\n")
    work.save()
    assert {each.commit for each in work.open().git.blame("notes/a.md")} == {first}


def test_the_last_of_several_commits_counts(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.note("notes/a.md", "one\ntwo\nthree\n")
    work.save()
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-02-01T00:00:00Z")
    work.note("notes/a.md", "one\n2\nthree\n")
    second = work.save()
    (said,) = work.open().git.blame("notes/a.md")
    assert (said.text, said.commit) == ("one 2 three", second)


def test_a_carriage_return_ends_no_line_of_git(work: Work) -> None:
    work.write("memories/notes/a.md", b"\xef\xbb\xbf- a\r- b\r\n- c\n")
    first = work.save()
    work.write("memories/notes/a.md", b"\xef\xbb\xbf- a\r- b\r\n- d\n")
    second = work.save()
    assert [each.commit for each in work.open().git.blame("notes/a.md")] == [first, first, second]


def test_blame_leaves_out_what_was_done_to_other_memories(work: Work) -> None:
    work.note("notes/a.md", "A\n")
    work.note("notes/b.md", "B\n")
    done = (("write notes/a.md", "claude"), ("append to notes/b.md", "codex"), ("replace in notes", "ann"))
    trailers = [f"Mdmem-Op: {operation}\nMdmem-Agent: {agent}" for operation, agent in done]
    work.git("add", "--all")
    work.git("commit", "--quiet", "--message", "\n".join(("both", "", *trailers)))
    blamed = {name: work.open().git.blame(f"notes/{name}.md")[0] for name in "ab"}
    assert [(said.agent, said.operations) for said in blamed.values()] == [
        ("claude, ann", ("write notes/a.md", "replace in notes")),
        ("codex, ann", ("append to notes/b.md", "replace in notes")),
    ]
    work.git("mv", "memories/notes/b.md", "memories/notes/c.md")
    work.save("moved")
    assert work.open().git.blame("notes/c.md")[0].agent == "ann"


@pytest.mark.parametrize(
    ("done", "sure"),
    [
        (["append to notes/a.md|claude", "replace in notes/a.md|claude"], True),
        (["append to notes/a.md|claude", "append to notes/b.md|codex"], True),
        (["append to notes/a.md|claude", "append to notes/a.md|codex"], False),
        (["append to notes/a.md|claude", "edit notes/a.md directly|"], False),
        (["append to notes/a.md|claude", "edit notes/b.md directly|"], True),
        (["append to notes/a.md|claude", "replace in notes|codex"], False),
        (["append to notes/a.md|claude", "move notes/b.md to c.md\nMdmem-Also: notes/a.md|codex"], False),
        (["append to notes/a.md|claude", "move notes/b.md to c.md\nMdmem-Also: notes/d.md|codex"], True),
        (["append to notes/a.md|claude", "move notes/b.md to c.md\nMdmem-Also: 21 memories|codex"], False),
        (["append to notes/a.md|"], True),
    ],
)
def test_an_agent_is_sure_where_all_that_was_done_to_the_memory_is_its_own(
    work: Work, done: list[str], sure: bool
) -> None:
    work.note("notes/a.md", "A\n")
    parts = (each.partition("|") for each in done)
    trailers = [f"Mdmem-Op: {op}" + f"\nMdmem-Agent: {agent}" * bool(agent) for op, _, agent in parts]
    work.commit("\n".join(("m", "", *trailers)))
    (said,) = work.open().git.blame("notes/a.md")
    assert said.sure is sure
    assert work.open().git.blame("notes/a.md")[0].operations


def test_of_commits_of_one_second_the_later_one_said_it(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
    commits = []
    for number in range(4):
        lines = [f"line {each} {'new' if each < number else 'old'}\n" for each in range(4)]
        work.note("notes/a.md", "".join(lines if number % 2 else reversed(lines)))
        commits.append(work.save(f"{number}"))
    (said,) = work.open().git.blame("notes/a.md")
    assert said.commit == commits[-1]


def test_a_json_memory_is_blamed_by_field(work: Work) -> None:
    work.note("a.json", '{\n  "a": 1,\n  "b": [1]\n}\n')
    first = work.save()
    work.note("a.json", '{\n  "a": 1,\n  "b": [2]\n}\n')
    said = work.open().git.blame("a.json")
    assert [(each.heading, each.commit, each.kind) for each in said] == [
        (("a",), first, "field"),
        (("b",), None, "field"),
    ]


def test_a_new_memory_is_not_committed_and_none_is_not_found(work: Work) -> None:
    memory = work.open()
    work.note("notes/a.md", "- a\n")
    assert [each.note for each in memory.git.blame("notes/a.md")] == [
        "not committed yet"
    ]  # on an unborn branch
    work.git("commit", "--quiet", "--allow-empty", "--message", "m")
    assert [each.note for each in memory.git.blame("notes/a.md")] == ["not committed yet"]
    with pytest.raises(MemoryNotFound):
        memory.git.blame("notes/b.md")


# --------------------------------------------------------------------------------------------- the wall


def test_a_scope_sees_its_own_memories_alone(work: Work) -> None:
    work.note("users/alice/notes/a.md", "- alice alone knows of this\n")
    work.note("users/bob/notes/b.md", "- bob alone knows of that\n")
    work.note("notes/shared.md", "- all\n")
    both = work.save("about notes/b.md of bob", op="write users/bob/notes/b.md", id="7", agent="claude")
    work.note("users/alice/notes/a.md", "- alice alone knows of this\n- and this\n")
    own = work.save("alice only", op="append notes/a.md")
    work.git("mv", "memories/users/bob/notes/b.md", "memories/users/alice/notes/c.md")
    work.save("from bob")
    git = work.open(user="alice").git
    from_bob, second, first = git.log()
    assert (second.commit, second.subject, second.operations) == (own, "alice only", ("append notes/a.md",))
    assert (first.commit, first.is_part, first.subject, first.operations, first.ids) == (
        both,
        True,
        "",
        (),
        (),
    )
    assert [(each.path, each.status, each.old) for each in from_bob.memories] == [("notes/c.md", "added", "")]
    assert from_bob.is_part
    texts = (
        str(git.log()) + str(git.diff("HEAD~2..")) + str(git.blame("notes/a.md")) + str(git.log("notes/c.md"))
    )
    assert "bob/" not in texts
    assert "b.md" not in texts
    changes = git.diff("HEAD~1..")
    assert told(changes) == [
        ("notes/c.md", "memory-added", None, None),
        ("notes/c.md", "fact-added", None, "bob alone knows of that"),
    ]
    assert {each.path for each in work.open(shared=True).git.diff("HEAD~2..")} == set()
    assert [each.path for commit in work.open(shared=True).git.log() for each in commit.memories] == [
        "notes/shared.md"
    ]
    with pytest.raises(PathRefused):
        work.open(shared=True).git.log("users/bob/notes/b.md")
    with pytest.raises(PathRefused):
        git.blame("../bob/notes/b.md")


def test_who_else_is_in_a_commit_is_not_told(work: Work) -> None:
    work.note("users/alice/a.md", "- a\n")
    work.note("users/bob/b.md", "- b\n")
    work.git("add", "--all")
    message = "m\n\nMdmem-Agent: alices\nMdmem-Agent: bobs\nMdmem-Session: s1"
    work.git("commit", "--quiet", "--message", message)
    git = work.open(user="alice").git
    assert (git.log()[0].agent, git.log()[0].session, git.blame("a.md")[0].agent) == ("", "", "")
    assert work.open().git.log()[0].agent == "alices, bobs"


def test_a_link_in_a_commit_leads_nowhere(work: Work) -> None:
    """Else a commit of a link could show what is behind the wall."""
    work.note("users/bob/secret.md", "- a secret\n")
    work.note("users/alice/x.md", "- a\n")
    work.save()
    (work.root / "memories/users/alice/x.md").unlink()
    (work.root / "memories/users/alice/x.md").symlink_to("../bob/secret.md")
    work.save("only a link")
    git = work.open(user="alice").git
    assert told(git.diff("HEAD~1..")) == [
        ("x.md", "memory-removed", None, None),
        ("x.md", "fact-removed", "a", None),
    ]
    assert "secret" not in str(git.log("x.md"))
    assert git.diff() == []
    assert told(git.diff("HEAD~1")) == told(git.diff("HEAD~1.."))


def test_a_merge_of_others_is_not_told(work: Work) -> None:
    work.note("users/alice/a.md", "- a\n")
    work.save()
    work.git("checkout", "--quiet", "-b", "bobs-secret")
    work.note("users/alice/a.md", "- side\n")
    work.save()
    work.git("checkout", "--quiet", "main")
    work.note("users/alice/a.md", "- main\n")
    work.save()
    subprocess.run(
        ["git", "merge", "--quiet", "bobs-secret"], cwd=work.root, check=False, capture_output=True
    )
    work.note("users/alice/a.md", "- both\n")
    work.save("Merge branch 'bobs-secret'")
    assert "secret" not in str(work.open(user="alice").git.log())
    assert "secret" in str(work.open().git.log())


# --------------------------------------------------------------------------------- states of a repository


Asked = tuple[list[str], list[str], list[str]]


def asked(memory: Memory) -> Asked:
    git = memory.git
    return (
        [commit.subject for commit in git.log()],
        [change.change for change in git.diff()],
        [said.note for said in git.blame("notes/a.md")],
    )


def test_an_unborn_branch(work: Work) -> None:
    work.note("notes/a.md", "- a\n")
    expected: Asked = ([], ["memory-added", "fact-added"], ["not committed yet"])
    assert asked(work.open()) == expected
    work.git("add", "--all")
    assert asked(work.open()) == expected
    with pytest.raises(NamedNotFound):
        work.open().git.diff("HEAD..")


def test_a_detached_head_a_linked_work_tree_and_a_submodule(work: Work, tmp_path: Path) -> None:
    work.note("notes/a.md", "- a\n")
    work.save("one")
    expected: Asked = (["one"], [], [""])
    work.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    assert asked(mdmem.open(tmp_path / "linked/memories")) == expected
    (tmp_path / "outer").mkdir()
    outer = Tree(tmp_path / "outer")
    outer.git("init", "--quiet")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(work.root), "sub")
    assert asked(mdmem.open(tmp_path / "outer/sub/memories")) == expected
    work.git("checkout", "--quiet", "--detach")
    assert asked(work.open()) == expected


def test_a_shallow_clone(work: Work, tmp_path: Path) -> None:
    work.note("notes/a.md", "- a\n")
    work.save("one")
    work.note("notes/a.md", "- a\n- b\n")
    second = work.save("two")
    source = f"file://{work.root}"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", source, tmp_path / "shallow"], check=True)
    memory = mdmem.open(tmp_path / "shallow/memories")
    log, diff, notes = asked(memory)
    assert (log, diff) == (["two"], [])
    assert set(notes) == {"older than this shallow clone"}
    assert second


def test_a_vault_that_is_a_work_tree_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    tree = Tree(tmp_path / "vault")
    mdmem.init(tree.root)
    tree.git("init", "--quiet")
    tree.write("notes/a.md", "- a\n")
    tree.commit()
    assert asked(mdmem.open(tree.root)) == (["m"], [], [""])


def test_in_the_middle_of_a_merge(work: Work) -> None:
    work.note("notes/a.md", "- a\n")
    work.save("base")
    work.git("checkout", "--quiet", "-b", "side")
    work.note("notes/a.md", "- side\n")
    work.save("side")
    work.git("checkout", "--quiet", "main")
    work.note("notes/a.md", "- main\n")
    work.save("main")
    subprocess.run(["git", "merge", "--quiet", "side"], cwd=work.root, check=False, capture_output=True)
    log, diff, notes = asked(work.open())
    assert log == ["main", "base"]
    assert diff
    assert set(notes) == {"", "amid a merge"}
    subprocess.run(["git", "rebase", "side"], cwd=work.root, check=False, capture_output=True)
    assert asked(work.open())[0] == log


def test_a_sparse_work_tree_has_removed_nothing(work: Work) -> None:
    for name in ("notes/a.md", "more/b.md"):
        work.note(name, "- a\n")
    work.save("one")
    work.git("sparse-checkout", "set", "memories/notes", "memories/.mdmem")
    assert not (work.root / "memories/more").exists()
    assert asked(work.open()) == (["one"], [], [""])


def test_a_vault_in_no_repository_and_no_git_are_said(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mdmem.init(tmp_path / "alone")
    with pytest.raises(GitFailed, match="not in a work tree"):
        mdmem.open(tmp_path / "alone").git.log()
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(GitFailed, match="git was not found"):
        work.open().git.diff()


def test_settings_that_differ_are_told_by_each_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    tree = VaultTree(tmp_path / "work")
    tree.note("notes/a.md", "# A\n")
    first = tree.commit()
    tree.write("memories/.mdmem/config.toml", '[secrets]\npolicy = "off"\n')
    tree.write("memories/.mdmem/schemas/decision.json", "{}\n")
    memory = tree.open()
    told = "settings of the vault differ: .mdmem/config.toml, .mdmem/schemas/decision.json; see `git diff"
    (row,) = memory.git.diff()
    assert (row.path, row.change, row.note) == (".mdmem", "settings", f"{told} -- :/memories/.mdmem`")
    reviewed = memory.git.review()
    assert (list(reviewed), reviewed.settings) == ([], row.note)
    assert row.note in memory.status().setup
    assert memory.git.diff("", ["notes"]) == []
    assert tree.open(project="p").git.diff() == []
    second = tree.commit()
    (row,) = memory.git.diff(f"{first}..{second}")
    assert row.note == f"{told} {first[:12]} {second[:12]} -- :/memories/.mdmem`"
    assert memory.git.diff() == []


def test_settings_of_a_vault_that_is_new_to_the_repository_do_not_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    mdmem.init(tmp_path / "memories")
    assert mdmem.open(tmp_path / "memories").git.diff() == []


def test_settings_that_differ_in_their_line_ends_alone_are_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    tree = VaultTree(tmp_path / "work")
    config = tree.root / "memories/.mdmem/config.toml"
    tree.commit()
    config.write_bytes(config.read_bytes().replace(b"\n", b"\r\n"))
    assert tree.open().git.diff() == []


def test_settings_that_cannot_be_read_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    tree = VaultTree(tmp_path / "work")
    tree.write("memories/.mdmem/schemas/a.json", "{}\n")
    tree.commit()
    schema = tree.root / "memories/.mdmem/schemas/a.json"
    schema.unlink()
    schema.symlink_to("/dev/zero")
    schema.with_name("\x1b[31m.json").touch()
    note = tree.open().git.diff()[0].note
    assert ".mdmem/schemas/a.json" in note
    assert "\x1b" not in note
