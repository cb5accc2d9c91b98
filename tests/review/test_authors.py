"""Who made what a commit holds, and what a memory says: by the history of the vault, and by trailers."""

from __future__ import annotations

import shutil
from itertools import tee
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.review.authors import follow, follow_all
from mdmem.vault.store import Entry, FileChange
from tests.git.conftest import VaultTree, set_up
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATH = "notes/a.md"


class Team(VaultTree):
    """A vault in a repository that several change."""

    def say(self, actor: str, text: str, path: str = PATH) -> str:
        return self.open(actor).append(path, text).id

    def undo_last(self, actor: str) -> None:
        """Take back the last change, whoever made it."""
        self.open(actor).undo(next(iter(self.memory.history())).id)

    def save(self) -> None:
        self.memory.git.commit("m")

    @property
    def named(self) -> list[str]:
        """The agents in the trailers of the last commit."""
        return self.git("log", "-1", "--format=%(trailers:key=Mdmem-Agent,valueonly)").split("\n")

    @property
    def operations(self) -> list[str]:
        return self.git("log", "-1", "--format=%(trailers:key=Mdmem-Op,valueonly)").split("\n")

    def blamed(self, path: str = PATH) -> dict[str, str]:
        said = self.open().git.blame(path)
        return {each.text: each.agent + "?" * (not each.sure) for each in said if each.kind != "heading"}

    def forget(self) -> None:
        """Leave no history of the vault, as in a clone."""
        shutil.rmtree(self.root / "memories/.mdmem/local")


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    set_up(monkeypatch)
    made = Team(tmp_path / "team")
    made.note(PATH, "## A\n\n- from the beginning\n")
    made.commit("begin")
    return made


def revert_and_undo(team: Team) -> None:
    team.open("ada").git.revert(f"{PATH}:said by claude")
    team.open("ada").undo()


def remove_and_undo(team: Team) -> None:
    team.open("ada").rm(PATH)
    team.open("ada").undo()


def undo_and_redo(team: Team) -> None:
    team.undo_last("ada")
    team.open("ada").redo()


def change_and_restore(team: Team) -> None:
    team.open("ada").replace(PATH, "- said by claude", "- something else")
    team.open("codex").restore(PATH)


def revert_the_revert(team: Team) -> None:
    revert = team.open("ada").git.revert(f"{PATH}:said by claude").id
    team.open("codex").undo(revert)


@pytest.mark.parametrize(
    "bring_back",
    [revert_and_undo, remove_and_undo, undo_and_redo, change_and_restore, revert_the_revert],
)
def test_who_takes_back_and_brings_back_has_made_nothing(
    team: Team, bring_back: Callable[[Team], None]
) -> None:
    team.say("claude", "- said by claude")
    bring_back(team)
    team.save()
    assert (team.named, team.operations) == (["claude"], [f"append to {PATH}"])
    for _ in ("by the history", "by trailers alone"):
        assert team.blamed() == {"from the beginning": "", "said by claude": "claude"}
        shutil.rmtree(team.root / "memories/.mdmem/local", ignore_errors=True)


def test_who_wrote_on_another_branch_is_named_after_the_merge(team: Team) -> None:
    """To the history of the vault, the merge is a direct edit of what both had written before."""
    team.git("switch", "--quiet", "--create", "other")
    team.say("claude", "- said by claude")
    team.note("notes/b.md", "# By hand\n")
    team.save()
    team.git("switch", "--quiet", "-")
    team.open("codex").prepend(PATH, "- said by codex")
    team.save()
    team.git("merge", "--quiet", "--no-edit", "other")
    expected = {"from the beginning": "", "said by claude": "claude", "said by codex": "codex"}
    assert team.blamed() == expected
    team.forget()
    assert team.blamed() == expected


def test_a_direct_edit_that_repeats_a_change_which_was_undone_names_nobody(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.open("ada").undo(next(iter(team.memory.history())).id)
    team.note(PATH, (team.root / "memories" / PATH).read_text() + "- said by claude\n")
    team.say("codex", "- said by codex")
    assert team.blamed() == {"from the beginning": "", "said by claude": "", "said by codex": "codex"}


def test_what_is_gone_again_names_nobody(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.say("codex", "- said by codex")
    team.open("ada").git.revert(f"{PATH}:said by claude")
    team.save()
    assert team.named == ["codex"]


def test_a_removal_that_was_undone_and_redone_is_of_who_removed(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.save()
    team.open("codex").replace(PATH, "- said by claude\n", "")
    undo_and_redo(team)
    team.save()
    assert team.named == ["codex"]


def test_a_revert_that_stands_is_an_operation_of_nobody(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.save()
    team.open("ada").git.revert(f"{PATH}:said by claude")
    team.say("codex", "\nOther words.")
    team.save()
    assert team.named == ["codex"]
    assert team.operations == [f"revert {PATH}:'said by claude'", f"append to {PATH}"]
    team.forget()
    assert team.blamed()["Other words."] == "codex"


def test_a_revert_that_brings_back_a_fact_names_who_had_made_it(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.save()
    team.open("codex").replace(PATH, "- said by claude\n", "")
    team.save()
    assert team.named == ["codex"]
    team.open("ada").git.revert("HEAD")
    team.save()
    assert (team.named, len(team.operations)) == (["claude"], 2)
    for _ in ("by the history", "by trailers alone"):
        assert team.blamed()["said by claude"] == "claude"
        shutil.rmtree(team.root / "memories/.mdmem/local", ignore_errors=True)


def test_each_fact_of_a_commit_of_several_has_its_own_maker(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.note(PATH, (team.root / "memories" / PATH).read_text() + "- written directly\n")
    team.say("codex", "- said by codex")
    team.open("ada").replace(PATH, "said by codex", "said by codex and ada")
    team.save()
    assert team.named == ["claude", "ada"]
    assert team.operations[-1] == f"edit {PATH} directly"
    assert team.blamed() == {
        "from the beginning": "",
        "said by claude": "claude",
        "written directly": "",
        "said by codex and ada": "ada",
    }
    team.forget()
    assert team.blamed()["said by claude"] == "claude, ada?"


def test_lines_of_one_paragraph_name_all_who_wrote_them(team: Team) -> None:
    for actor in ("claude", "ada"):
        team.say(actor, f"Said by {actor}.", "notes/b.md")
    team.save()
    assert team.named == ["claude", "ada"]


def test_lines_that_stand_twice_name_nobody_else(team: Team) -> None:
    code = "\n```\nx = {}\n```\n"
    team.say("claude", code.format(1))
    team.save()
    team.say("ada", code.format(2))
    team.say("codex", "\nOne line.\nTwo lines.", "notes/b.md")
    team.save()
    assert team.named == ["ada", "codex"]
    assert [agent for text, agent in team.blamed().items() if "x = 2" in text] == ["ada"]


def test_a_line_that_is_taken_out_of_a_paragraph_has_a_maker(team: Team) -> None:
    team.say("claude", "One.\nTwo.", "notes/b.md")
    team.save()
    team.open("ada").replace("notes/b.md", "Two.\n", "")
    team.say("codex", "- said by codex")
    team.save()
    assert team.named == ["ada", "codex"]


def test_a_commit_by_git_itself_has_the_makers_that_the_history_knows(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.say("ada", "- said by ada")
    assert team.blamed()["said by ada"] == "ada"  # not committed yet
    team.commit("by hand")
    team.git("commit", "--quiet", "--amend", "--message", "in other words")
    assert team.blamed() == {"from the beginning": "", "said by claude": "claude", "said by ada": "ada"}


def test_a_memory_that_is_moved_keeps_who_made_its_facts(team: Team) -> None:
    team.say("claude", "- said by claude, see [[b]]")
    team.say("codex", "- said by codex", "notes/b.md")
    team.open("ada").mv("notes/b.md", "c/b.md")
    team.open("ada").mv(PATH, "c/d.md")
    team.save()
    assert team.named == ["claude", "codex", "ada"]
    assert team.blamed("c/b.md") == {"said by codex": "codex"}
    team.say("codex", "- more", "c/d.md")
    team.open("ada").mv("c/d.md", "e.md")
    team.save()
    assert team.named == ["codex", "ada"]
    assert team.blamed("e.md")["more"] == "codex"
    team.forget()
    assert team.blamed("e.md")["more"] == "codex, ada?"


def test_what_was_moved_and_what_was_removed_have_a_maker_as_well(team: Team) -> None:
    team.say("claude", "- one is first\n- two is second\n- three is third")
    team.save()
    text = (team.root / "memories" / PATH).read_text()
    moved = text.replace("- one is first\n- two is second\n", "- two is second\n- one is first\n")
    team.open("codex").write(PATH, moved, overwrite=True)
    team.open("ada").replace(PATH, "- three is third\n", "")
    team.save()
    assert team.named == ["codex", "ada"]
    assert set(team.blamed().values()) == {"", "claude"}
    team.open("ada").rm(PATH)
    team.save()
    assert team.named == ["ada"]


def test_of_two_equal_facts_each_has_its_own_maker(team: Team) -> None:
    team.say("claude", "- the same words\n\n## B\n\n- other")
    team.open("ada").section(PATH, "B", "- other\n- the same words")
    team.save()
    said = [each for each in team.open().git.blame(PATH) if each.text == "the same words"]
    assert [each.agent for each in said] == ["claude", "ada"]


def test_a_field_has_a_maker_and_one_that_was_unset_has_one(team: Team) -> None:
    team.open("claude").set(PATH, {"title": "A", "tags": ["a"]})
    team.save()
    team.open("codex").set(PATH, {"title": "B"})
    team.undo_last("ada")
    team.open("ada").set(PATH, {"owner": "Ann"})
    team.open("codex").unset(PATH, "tags")
    team.save()
    assert sorted(team.named) == ["ada", "codex"]
    assert team.blamed() == {"title: A": "claude", "owner: Ann": "ada", "from the beginning": ""}


def test_what_a_branch_brings_is_of_who_made_it_there(team: Team) -> None:
    team.git("checkout", "--quiet", "-b", "agent")
    team.say("claude", "- said by claude")
    team.save()
    team.git("checkout", "--quiet", "main")
    team.say("ada", "- said by ada", "notes/b.md")
    team.save()
    team.git("merge", "--quiet", "--no-edit", "agent")
    team.say("codex", "- said by codex")
    team.save()
    assert team.named == ["codex"]
    assert team.blamed() == {"from the beginning": "", "said by claude": "claude", "said by codex": "codex"}


def test_what_is_not_kept_any_more_is_told_by_all_who_may_have_made_it(team: Team) -> None:
    team.say("claude", "- said by claude")
    team.say("ada", "- said by ada")
    for file in (team.root / "memories/.mdmem/local/trash").iterdir():
        if len(file.name) == len("0" * 64):
            file.unlink()
    team.save()
    assert team.named == ["claude", "ada"]
    assert team.blamed()["said by claude"] == "ada, claude?"


PATHS, HASHES = st.sampled_from(("a", "b", "c", "d")), st.sampled_from(("1", "2", None))
FILES = st.lists(st.builds(FileChange, PATHS, HASHES, HASHES), unique_by=lambda file: file.path, max_size=4)
ENTRIES = st.builds(
    lambda message, files: Entry("id", "time", "ada", message, tuple(files)),
    st.sampled_from(("move a to b", "write a")),
    FILES,
)


@given(entries=st.lists(ENTRIES, max_size=8))
@settings(max_examples=examples(200), deadline=None)
def test_files_are_followed_together_as_each_by_itself(entries: list[Entry]) -> None:
    (log,), alone = tee(entries, 1), {}
    for path in ("a", "b", "c", "d"):
        names = [path]
        if steps := [*follow(log, names)]:
            alone[path] = names, steps
    assert follow_all(log, ("a", "b", "c", "d")) == alone


def test_the_history_is_read_as_often_for_many_files_as_for_one() -> None:
    class Files(tuple[FileChange, ...]):
        __slots__ = ()
        reads = 0

        def __iter__(self) -> Iterator[FileChange]:
            Files.reads += 1
            return super().__iter__()

    new = [FileChange(f"new/{number}.png", None, f"{number}") for number in range(300)]
    old = [FileChange(f"old/{number}.png", f"{number}", None) for number in range(300)]
    (log,), counts = tee([Entry("id", "time", "ada", "move old to new", Files((*new, *old)))], 1), []
    for many in (new[:1], new):
        Files.reads = 0
        found = follow_all(log, [file.path for file in many])
        assert [names for names, _ in found.values()] == [
            [n.path, o.path] for n, o in zip(many, old, strict=False)
        ]
        counts.append(Files.reads)
    assert counts[0] == counts[1]
