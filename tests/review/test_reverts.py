"""What git knows of a fact or a commit is taken back in the memories as they are now."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import GitRefused, MemoryNotFound, NamedNotFound, PathRefused, RevertRefused, Usage
from mdmem.review.past import target_of
from tests.git.conftest import VaultTree, set_up

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


@pytest.mark.parametrize(
    ("what", "path", "anchor", "text"),
    [
        ("notes/a.md#^f1", "notes/a.md", "^f1", ""),
        ("notes/a.md#Design > Index", "notes/a.md", "Design > Index", ""),
        ("notes/a.md:some words", "notes/a.md", "", "some words"),
        ('notes/a.md:"some words"', "notes/a.md", "", "some words"),
        ('notes/a.md:say "x"', "notes/a.md", "", 'say "x"'),
        ("a.md#b.md:c", "a.md", "b.md:c", ""),
        ("a.md:b.md#c", "a.md", "", "b.md#c"),
        ("a.md:-x\ny", "a.md", "", "-x\ny"),
    ],
)
def test_a_fact_is_named(what: str, path: str, anchor: str, text: str) -> None:
    assert target_of(what) == (path, anchor, text)


@pytest.mark.parametrize("what", ["HEAD", "main", "abc123", "a.md^", "HEAD:a", "notes"])
def test_anything_else_is_a_commit(what: str) -> None:
    assert target_of(what) is None


def test_a_whole_memory_and_what_leaves_the_vault_are_refused(notes: Notes) -> None:
    with pytest.raises(Usage, match="whole memory"):
        notes.memory.git.revert("notes/a.md")
    with pytest.raises(PathRefused):
        notes.memory.git.revert("../a.md#^x")
    with pytest.raises(Usage, match="a fact and paths"):
        notes.memory.git.revert("notes/a.md#^x", ["notes/b.md"])


@pytest.mark.parametrize("revision", ["nosuch", "--output=x", "HEAD; rm", ":/m", "HEAD^{/m}", "", "a..b"])
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


# -------------------------------------------------------------------------------------------- a commit


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
        with pytest.raises(RevertRefused, match="a conflict of git's stands in it: settle that first"):
            notes.memory.git.revert(what)
    assert notes.read("notes/a.md") == text
