"""What git knows of a fact or a commit is taken back in the memories as they are now."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import GitRefused, MemoryNotFound, NamedNotFound, PathRefused, RevertRefused, Usage
from mdmem.review.past import target_of
from tests.git.conftest import VaultTree, set_up
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path


class Notes(VaultTree):
    """A vault in a repository, whose notes tests write directly."""

    def file(self, path: str) -> Path:
        return self.root / "memories" / path

    def write(self, path: str, text: str | bytes) -> None:
        super().write(f"memories/{path}", text)

    def read(self, path: str) -> str:
        return self.file(path).read_bytes().decode()

    def committed(self, path: str, text: str) -> str:
        self.write(path, text)
        return self.commit()


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notes:
    set_up(monkeypatch)
    return Notes(tmp_path / "work")


# --------------------------------------------------------------------------------------- what is meant


@cases(
    "what, path, anchor, text",
    [
        ("notes/a.md#^f1", "notes/a.md", "^f1", ""),
        ("notes/a.md#Design > Index", "notes/a.md", "Design > Index", ""),
        ("notes/a.md:some words", "notes/a.md", "", "some words"),
        ('notes/a.md:"some words"', "notes/a.md", "", "some words"),
        ('notes/a.md:say "x"', "notes/a.md", "", 'say "x"'),
        ("a.md#b.md:c", "a.md", "b.md:c", ""),
        ("a.md:b.md#c", "a.md", "", "b.md#c"),
        ("a.md:-x\ny", "a.md", "", "-x\ny"),
        ("notes/a.md", "notes/a.md", "", ""),
        ("a.json:b.c", "a.json", "", "b.c"),
    ],
)
def test_a_fact_is_named(what: str, path: str, anchor: str, text: str) -> None:
    assert target_of(what) == (path, anchor, text)


@cases("what", ["HEAD", "main", "abc123", "a.md^", "HEAD:a", "notes"])
def test_anything_else_is_a_commit(what: str) -> None:
    assert target_of(what) is None


def test_what_leaves_the_vault_is_refused(notes: Notes) -> None:
    with pytest.raises(PathRefused):
        notes.memory.git.revert("../a.md#^x")
    with pytest.raises(Usage, match="a fact and paths"):
        notes.memory.git.revert("notes/a.md#^x", ["notes/b.md"])


@cases("revision", ["nosuch", "--output=x", "HEAD; rm", ":/m", "HEAD^{/m}", "", "a..b"])
def test_what_names_no_commit_is_refused(notes: Notes, revision: str) -> None:
    notes.commit()
    with pytest.raises(NamedNotFound):
        notes.memory.git.revert(revision)


# ---------------------------------------------------------------------------------------------- one fact


def test_the_last_change_of_a_fact_is_taken_back(notes: Notes) -> None:
    notes.committed("notes/a.md", "- one is first\n- two is second ^f\n")
    notes.committed("notes/a.md", "- one is first\n- two is the second ^f\n")
    notes.committed("notes/a.md", "- zero\n- one is first\n- two is the second ^f\n- three\n")
    plan = notes.memory.plan.git.revert("notes/a.md#^f")
    assert plan.message == "revert notes/a.md#^f"
    applied = notes.memory.git.revert("notes/a.md#^f")
    assert notes.read("notes/a.md") == "- zero\n- one is first\n- two is second ^f\n- three\n"
    notes.memory.undo(applied.id)
    notes.memory.git.revert("notes/a.md:one is")
    assert notes.read("notes/a.md") == "- zero\n- two is the second ^f\n- three\n"


def test_what_is_not_committed_yet_is_the_last_change(notes: Notes) -> None:
    notes.committed("notes/a.md", "- one is first\n- two is second\n")
    notes.write("notes/a.md", "- one was first\n- new\n")
    notes.memory.git.revert("notes/a.md:one was")
    assert notes.read("notes/a.md") == "- one is first\n- new\n"
    notes.memory.git.revert("notes/a.md:two")
    assert notes.read("notes/a.md") == "- one is first\n- two is second\n- new\n"


def test_a_fact_that_was_removed_long_ago_comes_back(notes: Notes) -> None:
    notes.committed("notes/a.md", "# A\n\n- one is first ^f\n- two is second\n")
    notes.committed("notes/a.md", "# A\n\n- two is second\n")
    for number in range(5):
        notes.committed("notes/a.md", f"# A\n\n- two is second\n- more {number}\n")
    notes.memory.git.revert("notes/a.md#^f")
    assert notes.read("notes/a.md") == "# A\n\n- one is first ^f\n- two is second\n- more 4\n"


def test_a_memory_that_is_gone_is_made_again_for_its_fact(notes: Notes) -> None:
    notes.committed("notes/a.md", "# A\n\n- one is first\n- two is second\n")
    notes.file("notes/a.md").unlink()
    notes.commit()
    notes.memory.git.revert("notes/a.md:two")
    assert notes.read("notes/a.md") == "# A\n\n- two is second\n"


def test_a_section_is_taken_back_with_what_stands_in_it(notes: Notes) -> None:
    notes.committed("notes/a.md", "# A\n\nText.\n")
    notes.committed("notes/a.md", "# A\n\nText is here.\n\n## B\n\n- b\n- c\n")
    notes.memory.git.revert("notes/a.md#B")
    assert notes.read("notes/a.md") == "# A\n\nText is here.\n"


def test_a_fact_is_followed_through_renames_of_its_memory(notes: Notes) -> None:
    body = "".join(f"- line {number} is here\n" for number in range(9))
    notes.committed("notes/a.md", body)
    notes.committed("notes/a.md", body + "- the last fact\n")
    notes.git("mv", "memories/notes/a.md", "memories/notes/b.md")
    notes.commit()
    notes.memory.git.revert("notes/b.md:last fact")
    assert notes.read("notes/b.md") == body


def test_what_may_be_several_facts_is_refused_with_each(notes: Notes) -> None:
    notes.committed("notes/a.md", "- one is first\n- one is second\n- one\n")
    with pytest.raises(RevertRefused) as caught:
        notes.memory.git.revert("notes/a.md:is")
    assert caught.value.reasons == ("line 1: one is first", "line 2: one is second")
    notes.memory.git.revert("notes/a.md:one")  # one of them says just that
    assert notes.read("notes/a.md") == "- one is first\n- one is second\n"


def test_what_there_never_was_is_told(notes: Notes) -> None:
    notes.committed("notes/a.md", "- one\n")
    for what in ("notes/a.md#^no", "notes/a.md:never", "notes/a.md#Never"):
        with pytest.raises(NamedNotFound):
            notes.memory.git.revert(what)
    notes.write("notes/new.md", "- one\n")
    with pytest.raises(GitRefused, match="no version"):
        notes.memory.git.revert("notes/new.md:one")
    with pytest.raises(GitRefused, match="no version"):
        notes.memory.git.revert("notes/never.md:one")


def taken_back(notes: Notes, what: str, path: str = "notes/a.md") -> str | None:
    """What a memory says once something is taken back, None where it is gone; then it is undone."""
    applied = notes.memory.git.revert(what)
    text = notes.read(path) if notes.file(path).exists() else None
    notes.memory.undo(applied.id)
    return text


STEPS = "## A\n\n- one is the first\n- two is the second\n- three is third\n"
SWAPPED = "## A\n\n- two is the second\n- one is the first\n- three is third\n"


@cases("committed", [True, False])
def test_what_was_only_reordered_goes_back_to_its_place(notes: Notes, committed: bool) -> None:
    """Of two that changed places either may have moved."""
    notes.committed("notes/a.md", STEPS)
    notes.write("notes/a.md", SWAPPED)
    if committed:
        notes.commit()
    assert taken_back(notes, "notes/a.md:one is") == taken_back(notes, "notes/a.md:two is") == STEPS
    assert taken_back(notes, "notes/a.md:three") == SWAPPED.replace("- three is third\n", "")


def test_a_section_that_was_only_reordered_goes_back_to_its_place(notes: Notes) -> None:
    one, two = "## A\n\n- one is first\n", "## B\n\n- two is second\n"
    notes.committed("notes/a.md", f"{one}\n{two}")
    notes.committed("notes/a.md", f"{two}\n{one}")
    for what in ("#A", "#B", ":A", ":B"):
        assert taken_back(notes, f"notes/a.md{what}") == f"{one}\n{two}"


def test_an_added_heading_is_named_by_its_words_and_goes_with_what_was_added_under_it(notes: Notes) -> None:
    notes.committed("notes/a.md", STEPS)
    notes.committed("notes/a.md", f"{STEPS}\n## Why not\n\nIt is said why not.\n")
    assert taken_back(notes, "notes/a.md:Why not") == taken_back(notes, "notes/a.md:## Why not") == STEPS
    notes.committed("notes/a.md", f"{STEPS}\n## Why not\n\nIt is said why not.\n\nSince then.\n")
    assert taken_back(notes, "notes/a.md:Why not") == f"{STEPS}\n## Why not\n\nSince then.\n"


def test_a_heading_that_came_above_facts_goes_alone(notes: Notes) -> None:
    notes.committed("notes/a.md", "# T\n\nx y z\n\nu v w\n")
    notes.committed("notes/a.md", "# T\n\nx y z\n\n## New one\n\nu v w\n")
    assert taken_back(notes, "notes/a.md:New one") == "# T\n\nx y z\n\nu v w\n"


FIELDS = """\
---
title: A  # as it was
tags: [a]
source:
  type: x
  ids: [1]
---

- the title is here
"""


@cases(
    "key, old, new",
    [
        ("title", "title: A  # as it was", "title: 'B'"),
        ("source.type", "type: x", "type: y"),
        ("source", "type: x", "type: y"),
        ("tags", "tags: [a]\n", ""),
        ("more", "tags: [a]\n", "tags: [a]\nmore: 1\n"),
    ],
)
def test_a_field_is_taken_back_by_its_key(notes: Notes, key: str, old: str, new: str) -> None:
    now = FIELDS.replace(old, new).replace("ids: [1]", "ids: [2]").replace("is here", "is there")
    notes.committed("notes/a.md", FIELDS)
    notes.committed("notes/a.md", now)
    expected = now.replace(new, old) if new else now.replace("source:", "tags: [a]\nsource:")
    if key == "source":
        expected = expected.replace("ids: [2]", "ids: [1]")
    assert taken_back(notes, f"notes/a.md:{key}") == expected
    assert taken_back(notes, "notes/a.md:the title is") == now.replace("is there", "is here")


def test_a_field_of_a_json_memory_is_taken_back_by_its_key(notes: Notes) -> None:
    notes.committed("x.json", '{"a": 1, "b": {"c": [1, 2]}}\n')
    notes.committed("x.json", '{"a": 2, "b": {"c": [1, 3], "d": 4}}\n')
    for key, text in (
        ("a", '{"a": 1, "b": {"c": [1, 3], "d": 4}}\n'),
        ("b.c", '{"a": 2, "b": {"c": [1, 2], "d": 4}}\n'),
        ("b.d", '{"a": 2, "b": {"c": [1, 3]}}\n'),
    ):
        assert taken_back(notes, f"x.json:{key}", "x.json") == text


def test_a_memory_is_taken_back_by_its_path(notes: Notes) -> None:
    notes.committed("notes/a.md", STEPS)
    notes.committed("notes/a.md", SWAPPED)
    assert taken_back(notes, "notes/a.md") == STEPS
    notes.write("notes/a.md", f"{SWAPPED}- four\n")
    assert taken_back(notes, "notes/a.md") == SWAPPED
    notes.write("notes/new.md", "- new\n")
    assert taken_back(notes, "notes/new.md", "notes/new.md") is None
    notes.memory.rm("notes/a.md")
    assert taken_back(notes, "notes/a.md") == f"{SWAPPED}- four\n".replace("- four\n", "")
    notes.commit()
    assert taken_back(notes, "notes/a.md") == SWAPPED
    notes.memory.mv("notes/new.md", "notes/newer.md")
    assert taken_back(notes, "notes/newer.md", "notes/new.md") == "- new\n"
    assert taken_back(notes, "notes/new.md", "notes/new.md") == "- new\n"


def test_one_of_several_equal_facts_is_named_by_its_line(notes: Notes) -> None:
    notes.committed("notes/a.md", "# A\n\n- same text\n\n# B\n\n- other\n")
    notes.committed("notes/a.md", "# A\n\n- same text\n\n# B\n\n- other\n- same text\n")
    with pytest.raises(RevertRefused) as caught:
        notes.memory.git.revert("notes/a.md:same text")
    assert "as 'notes/a.md:3'" in caught.value.hint
    assert taken_back(notes, "notes/a.md:3") == "# A\n\n# B\n\n- other\n- same text\n"
    assert taken_back(notes, "notes/a.md:8") == "# A\n\n- same text\n\n# B\n\n- other\n"
    notes.committed("notes/a.md", "# A\n\n- same text\n\n# B\n\n- same text\n- other\n- same text\n")
    assert taken_back(notes, "notes/a.md:7") == "# A\n\n- same text\n\n# B\n\n- other\n- same text\n"
    with pytest.raises(NamedNotFound):
        notes.memory.git.revert("notes/a.md:99")


@cases("committed", [True, False])
def test_a_fact_of_a_renamed_memory_is_named_under_either_name(notes: Notes, committed: bool) -> None:
    notes.committed("notes/a.md", STEPS)
    commit = notes.committed("notes/a.md", f"{STEPS}- four is here\n")
    notes.memory.mv("notes/a.md", "notes/b.md")
    if committed:
        notes.commit()
        notes.memory.mv("notes/b.md", "notes/c.md")
    path = "notes/c.md" if committed else "notes/b.md"
    for what in ("notes/a.md:four", f"{path}:four", "notes/a.md#A", commit):
        assert taken_back(notes, what, path) == STEPS


# -------------------------------------------------------------------------------------------- a commit


def kept(error: RevertRefused) -> list[str]:
    """What an error says has to be kept."""
    words = shlex.split(error.hint.partition(" with ")[2])
    assert words[::2] == ["--keep"] * (len(words) // 2)
    return words[1::2]


@cases(
    "before, after, now, names, reason, rest",
    [
        (
            STEPS,
            STEPS.replace("two is", "two was") + "- four is here\n- five\n",
            STEPS.replace("two is", "two will be") + "- five\n",
            ["two will be the second"],
            "now it reads 'two will be the second'",
            STEPS.replace("two is", "two will be"),
        ),
        (
            STEPS,
            STEPS.replace("two is", "two was").replace("one is", "one was"),
            STEPS.replace("- two is the second\n", "").replace("one is", "one will be"),
            ["one will be the first"],
            "now it reads 'one will be the first'",
            None,
        ),
        (
            "---\ntitle: A\ntags: [a]\n---\n\n- x\n",
            "---\ntitle: B\ntags: [a, b]\n---\n\n- x\n- y\n",
            "---\ntitle: C\ntags: [a, b]\n---\n\n- x\n- y\n",
            ["title"],
            "title: changed since",
            "---\ntitle: C\ntags: [a]\n---\n\n- x\n",
        ),
        (
            STEPS,
            STEPS + "- four\n- five\n",
            STEPS + "- four\n  - since then\n- five\n",
            ["four"],
            "others stand in it now: 'since then'",
            STEPS + "- four\n  - since then\n",
        ),
        (
            "# A\n\n```\nx = 1\n```\n",
            "# A\n\n```\nx = 2\n```\n\nNew.\n",
            "# A\n\n```\nx = 3\n```\n\nNew.\n",
            ["3"],
            "now it reads",
            "# A\n\n```\nx = 3\n```\n",
        ),
        (
            "# A\n\n- same is it\n\n# B\n\n- same is it\n",
            "# A\n\n- same was it\n\n# B\n\n- same was it\n- z\n",
            "# A\n\n- same was it ever\n\n# B\n\n- same was it\n- z\n",
            ["same was it ever"],
            "now it reads 'same was it ever'",
            "# A\n\n- same was it ever\n\n# B\n\n- same is it\n",
        ),
    ],
)
def test_what_stands_in_the_way_is_told_and_how_the_rest_is_taken_back(
    notes: Notes, before: str, after: str, now: str, names: list[str], reason: str, rest: str | None
) -> None:
    notes.committed("notes/a.md", before)
    commit = notes.committed("notes/a.md", after)
    notes.committed("notes/a.md", now)
    with pytest.raises(RevertRefused) as caught:
        notes.memory.git.revert(commit)
    (told,) = caught.value.reasons
    assert reason in told
    assert notes.read("notes/a.md") == now
    if rest is None:  # what it changed besides is gone
        assert "--keep" not in caught.value.hint
        return
    assert kept(caught.value) == [f"notes/a.md:{name}" for name in names]
    notes.memory.git.revert(commit, keep=kept(caught.value))
    assert notes.read("notes/a.md") == rest


def test_a_whole_memory_is_kept_and_what_is_in_no_change_is_told(notes: Notes) -> None:
    notes.write("notes/a.md", "- one\n")
    notes.write("notes/b.md", "- two\n")
    commit = notes.commit()
    notes.write("notes/b.md", "- two\n<<<<<<< a\n- x\n=======\n- y\n>>>>>>> b\n")
    with pytest.raises(RevertRefused) as caught:
        notes.memory.git.revert(commit)
    assert kept(caught.value) == ["notes/b.md"]
    for wrong in ("notes/a.md:nothing", "notes/c.md", "notes/a.md#^no"):
        with pytest.raises(NamedNotFound):
            notes.memory.git.revert(commit, keep=[wrong])
    notes.memory.git.revert(commit, keep=["notes/b.md"])
    assert not notes.file("notes/a.md").exists()


def test_a_commit_is_taken_back_whole_and_undone(notes: Notes) -> None:
    before = {"notes/a.md": "---\ntags: [a]  # c\n---\n\n- one is first\r\n", "notes/b.md": "B is here.\n"}
    for path, text in before.items():
        notes.write(path, text)
    notes.commit()
    notes.write("notes/a.md", "---\ntags: [a, b]  # c\ntitle: A\n---\n\n- one was first\n- two\n")
    notes.file("notes/b.md").unlink()
    notes.write("notes/c.md", "C.\n")
    commit = notes.commit("Do much")
    applied = notes.memory.git.revert(commit[:10])
    assert {path: notes.read(path) for path in before} == before
    assert not notes.file("notes/c.md").exists()
    assert applied.plan.message == f"revert {commit[:8]}: Do much"
    notes.memory.undo(applied.id)
    assert notes.git("status", "--porcelain") == ""


def test_what_was_written_since_stays(notes: Notes) -> None:
    notes.committed("notes/a.md", "---\ntags: [a]\n---\n\n- one is first\n")
    notes.committed("notes/a.md", "---\ntags: [a, b]\ntitle: A\n---\n\n- one is first\n- two\n")
    notes.committed(
        "notes/a.md", "---\ntags: [a, b, c]\ntitle: A\nx: 1\n---\n\n- one is first\n- two\n- three\n"
    )
    notes.memory.git.revert("HEAD^")
    assert notes.read("notes/a.md") == "---\ntags: [a, c]\nx: 1\n---\n\n- one is first\n- three\n"


def test_a_field_that_has_changed_since_is_told(notes: Notes) -> None:
    notes.committed("notes/a.md", "---\ntitle: A\n---\n\nText.\n")
    notes.committed("notes/a.md", "---\ntitle: B\n---\n\nText.\n")
    notes.committed("notes/a.md", "---\ntitle: C\n---\n\nText.\n")
    with pytest.raises(RevertRefused) as caught:
        notes.memory.git.revert("HEAD^")
    assert caught.value.reasons == ("notes/a.md: title: changed since, in another way",)


def test_json_memories_are_taken_back_by_field(notes: Notes) -> None:
    notes.committed("working/x.json", '{"a": 1, "b": 2}\n')
    notes.git("add", "-f", "memories/working/x.json")
    notes.commit()
    notes.write("working/x.json", '{"a": 5, "b": 2}\n')
    notes.git("add", "-f", "memories/working/x.json")
    commit = notes.commit()
    notes.write("working/x.json", '{"a": 5, "b": 2, "c": 3}\n')
    notes.memory.git.revert(commit)
    assert notes.read("working/x.json") == '{"a": 1, "b": 2, "c": 3}\n'


def test_only_some_memories_of_a_commit(notes: Notes) -> None:
    notes.write("notes/a.md", "A.\n")
    notes.write("notes/sub/b.md", "B.\n")
    notes.commit()
    notes.memory.git.revert("HEAD", ["notes/sub"])
    assert notes.file("notes/a.md").exists()
    assert not notes.file("notes/sub/b.md").exists()
    with pytest.raises(MemoryNotFound):
        notes.memory.git.revert("HEAD", ["notes/c.md"])


def test_a_memory_that_was_renamed_since_is_found(notes: Notes) -> None:
    body = "".join(f"- line {number} is here\n" for number in range(9))
    notes.committed("notes/a.md", body)
    commit = notes.committed("notes/a.md", body + "- new\n")
    notes.git("mv", "memories/notes/a.md", "memories/notes/b.md")
    notes.commit()
    notes.memory.git.revert(commit)
    assert notes.read("notes/b.md") == body


def test_a_folder_in_the_place_of_a_memory_is_taken_back_and_put_back(notes: Notes) -> None:
    notes.committed("notes/a.md", "# A\n\nThe one thing.\n")
    notes.file("notes/a.md").unlink()
    notes.write("notes/a.md/b.md", "# B\n\nquite another\n")
    notes.committed("notes/a.md/c/d.md", "- d\n")
    notes.memory.git.revert("HEAD")
    assert notes.read("notes/a.md") == "# A\n\nThe one thing.\n"
    notes.commit()
    notes.memory.git.revert("HEAD")
    assert notes.read("notes/a.md/b.md") == "# B\n\nquite another\n"
    assert notes.read("notes/a.md/c/d.md") == "- d\n"


def test_of_a_commit_what_is_gone_is_passed_where_a_folder_has_its_name(notes: Notes) -> None:
    notes.write("notes/k.md", "- one\n")
    notes.committed("notes/a.md", "- one\n")
    notes.write("notes/k.md", "- two\n")
    notes.committed("notes/a.md", "- two\n")
    notes.file("notes/a.md").unlink()
    notes.write("notes/a.md/b.md", "- b\n")
    assert notes.memory.git.revert("HEAD").plan.left_out == ("notes/a.md: it is gone",)
    assert notes.read("notes/k.md") == "- one\n"


def test_a_rename_is_taken_back(notes: Notes) -> None:
    body = "".join(f"- line {number} is here\n" for number in range(9))
    notes.committed("notes/a.md", body)
    notes.git("mv", "memories/notes/a.md", "memories/notes/b.md")
    commit = notes.commit()
    notes.write("notes/b.md", body + "- since\n")
    notes.memory.git.revert(commit)
    assert notes.read("notes/a.md") == body + "- since\n"
    assert not notes.file("notes/b.md").exists()
    notes.write("notes/b.md", body)
    with pytest.raises(RevertRefused, match="another memory is now"):
        notes.memory.git.revert(commit)


def test_a_commit_that_is_taken_back_already_says_so(notes: Notes) -> None:
    notes.committed("notes/a.md", "- one\n")
    notes.committed("notes/a.md", "- one\n- two\n")
    notes.memory.git.revert("HEAD")
    with pytest.raises(RevertRefused, match="as it was before"):
        notes.memory.git.revert("HEAD")
    notes.memory.append("notes/a.md", "- three\n")
    with pytest.raises(RevertRefused, match="removed already"):
        notes.memory.git.revert("HEAD")


def test_nothing_is_written_where_one_of_several_cannot_be_taken_back(notes: Notes) -> None:
    notes.write("notes/a.md", "- one\n")
    notes.write("notes/b.md", "- two is here\n")
    notes.commit()
    notes.write("notes/a.md", "- one\n- more\n")
    notes.write("notes/b.md", "- two is there\n")
    commit = notes.commit()
    notes.write("notes/b.md", "- two is nowhere\n")
    with pytest.raises(RevertRefused, match="two is nowhere"):
        notes.memory.git.revert(commit)
    assert notes.read("notes/a.md") == "- one\n- more\n"


def test_merges_and_cut_histories_are_refused(notes: Notes, tmp_path: Path) -> None:
    notes.committed("notes/a.md", "- one\n")
    notes.git("checkout", "-q", "-b", "side")
    notes.committed("notes/b.md", "- two\n")
    notes.git("checkout", "-q", "main")
    notes.committed("notes/c.md", "- three\n")
    notes.git("merge", "-q", "--no-edit", "side")
    with pytest.raises(GitRefused, match="merge"):
        notes.memory.git.revert("HEAD")
    notes.memory.git.revert("notes/b.md:two")
    assert notes.read("notes/b.md").strip() == ""
    clone = tmp_path / "clone"
    source = f"file://{notes.root}"
    subprocess.run(["git", "clone", "-q", "--depth", "1", source, clone], check=True)
    memory = mdmem.open(clone / "memories")
    with pytest.raises(GitRefused, match="shallow"):
        memory.git.revert("notes/a.md:one")
    with pytest.raises(GitRefused, match=r"shallow|merge"):
        memory.git.revert("HEAD")


def test_a_namespace_takes_back_what_is_its_own(notes: Notes) -> None:
    notes.write("users/alice/notes/a.md", "- alice\n")
    notes.write("users/bob/notes/b.md", "- bob's secret\n")
    notes.commit("about bob")
    alice = notes.open(user="alice")
    plan = alice.plan.git.revert("HEAD")
    assert plan.paths == ("notes/a.md",)
    assert "bob" not in str(plan)
    body = "".join(f"- line {number} of bob\n" for number in range(9))
    notes.committed("users/bob/notes/c.md", body)
    notes.git("mv", "memories/users/bob/notes/c.md", "memories/users/alice/notes/c.md")
    notes.commit()
    notes.write("users/alice/notes/c.md", "- mine\n")
    with pytest.raises(NamedNotFound):
        alice.git.revert("notes/c.md:never there")


def test_a_secret_that_was_removed_does_not_come_back(notes: Notes) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    notes.committed("notes/a.md", f"- one\n- the token is {key}\n")
    notes.committed("notes/a.md", "- one\n")
    with pytest.raises(mdmem.errors.Invalid) as caught:
        notes.memory.git.revert("HEAD")
    assert key not in str(caught.value)


def test_what_is_no_memory_is_refused_and_others_are_named(notes: Notes) -> None:
    notes.committed("notes/a.md", "- one\n")
    notes.file("notes/b.md").write_bytes(b"\xff\xfe\n")
    notes.commit()
    with pytest.raises(mdmem.errors.DocumentRefused):
        notes.memory.git.revert("HEAD")


def test_nothing_is_taken_back_in_a_memory_with_a_conflict(notes: Notes) -> None:
    notes.committed("notes/a.md", "# A\n\n- one\n")
    notes.committed("notes/a.md", "# A\n\n- one\n- two\n")
    text = "# A\n\n<<<<<<< ours\nmine\n=======\nyours\n>>>>>>> theirs\n\n- one\n- two\n"
    notes.write("notes/a.md", text)
    for what in ("notes/a.md:two", "HEAD"):
        with pytest.raises(RevertRefused, match="it has a conflict from a merge: resolve that first"):
            notes.memory.git.revert(what)
    assert notes.read("notes/a.md") == text


def test_a_commit_that_moved_attachments_is_reverted_with_them_or_refused(notes: Notes) -> None:
    notes.write("att/pic.png", b"P\x00one")
    notes.write("att/two.png", b"P\x00two, another")
    notes.committed("n.md", "![p](att/pic.png) ![p](att/two.png)\n")
    notes.memory.mv("att", "media")
    moved = notes.commit()
    notes.write("att/two.png", "another\n")
    with pytest.raises(RevertRefused, match=r"media/two\.png: it was att/two\.png, where something else"):
        notes.memory.git.revert(moved)
    notes.file("att/two.png").unlink()
    notes.write("media/two.png", "changed\n")
    with pytest.raises(
        RevertRefused, match=r"media/two\.png: it was att/two\.png, and has changed"
    ) as refused:
        notes.memory.git.revert(moved)
    assert "--keep media/two.png" in refused.value.hint
    notes.write("media/two.png", b"P\x00two, another")
    notes.memory.git.revert(moved)
    assert notes.read("n.md") == "![p](att/pic.png) ![p](att/two.png)\n"
    assert notes.file("att/pic.png").read_bytes() == b"P\x00one"
    assert not notes.file("media").exists()
