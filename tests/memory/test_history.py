"""The states of memories: what has changed since one of them, and back to them with undo and redo."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import mdmem
from mdmem.errors import (
    Conflict,
    MemoryNotFound,
    NamedNotFound,
    PathRefused,
    UndoConflict,
    UndoRefused,
    Usage,
)
from tests import speed
from tests.killing import killed
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.facade.memory import Memory


@pytest.fixture
def memory(vault_root: Path) -> Memory:
    return mdmem.open(vault_root)


def lines(diff: str) -> list[str]:
    """The lines that a diff takes away and adds."""
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in {"---", "+++"}]


def test_without_a_state_it_is_the_last_change(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    assert lines(memory.diff("a.md")) == ["+one"]
    memory.append("a.md", "two")
    memory.append("a.md", "three")
    memory.append("b.md", "other")
    assert lines(memory.diff("a.md")) == ["+three"]
    assert memory.diff("a.md").startswith("--- a/a.md\n+++ b/a.md\n")


def test_from_a_hash_and_from_a_change_on(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    first = memory.show("a.md").hash
    change = memory.append("a.md", "two").id
    memory.append("a.md", "three")
    assert lines(memory.diff("a.md", against=first)) == ["+two", "+three"]
    assert lines(memory.diff("a.md", against=first[:8].upper())) == ["+two", "+three"]
    assert memory.diff("a.md", against=change) == memory.diff("a.md", against=first)
    assert memory.diff("a.md", against=memory.show("a.md").hash) == ""


def test_what_other_programs_have_changed_counts(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "one\n")
    memory.append("a.md", "two")
    (vault_root / "a.md").write_text("one\nthree\n")
    assert lines(memory.diff("a.md")) == ["+three"]


def test_a_memory_that_is_gone_is_taken_away(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    memory.rm("a.md")
    assert memory.diff("a.md") == "--- a/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"


def test_it_knows_what_a_memory_was_under_another_name(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    first = memory.show("a.md").hash
    memory.append("a.md", "two")
    memory.mv("a.md", "b/c.md")
    assert lines(memory.diff("b/c.md")) == ["+two"]
    assert lines(memory.diff("b/c.md", against=first)) == ["+two"]


def test_what_is_not_known_is_refused(memory: Memory, vault_root: Path) -> None:
    (vault_root / "a.md").write_text("one\n")
    with pytest.raises(NamedNotFound, match=r"no change of a\.md 'last'"):
        memory.diff("a.md")
    change = memory.append("a.md", "two").id
    with pytest.raises(MemoryNotFound):
        memory.diff("none.md")
    with pytest.raises(Usage):
        memory.diff("a.md", against="abc")
    with pytest.raises(NamedNotFound, match="no version or change '00000000'"):
        memory.diff("a.md", against="00000000")
    memory.append("b.md", "x")
    with pytest.raises(NamedNotFound):
        memory.diff("b.md", against=change)
    with pytest.raises(PathRefused):
        memory.diff("../a.md")


def test_it_sees_nothing_of_other_namespaces(memory: Memory, vault_root: Path) -> None:
    memory.write("users/bob/notes/a.md", "secret\n")
    theirs = memory.show("users/bob/notes/a.md").hash
    change = memory.history()[0].id
    alice = mdmem.open(vault_root, mdmem.Scope(user="alice"))
    alice.write("notes/a.md", "mine\n")
    mine = alice.show("notes/a.md").hash
    for since in (theirs, change):
        with pytest.raises(NamedNotFound) as refused:
            alice.diff("notes/a.md", against=since)
        assert "users" not in str(refused.value)
        assert refused.value.near in {(), (mine[:8],)}


def test_a_version_that_is_not_kept_any_more_is_told(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    memory.append("a.md", "two")
    before = memory.history()[0].files[0].before
    os.unlink(f"{memory.vault.disk.trash.path}/{before}")
    with pytest.raises(NamedNotFound, match=r"no kept version of a\.md"):
        memory.diff("a.md")


@settings(max_examples=examples(30))
@given(texts=st.lists(st.text(alphabet="ab\n#é\r", max_size=12), min_size=2, max_size=4))
def test_the_diff_is_that_of_the_texts(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    memory = mdmem.open(mdmem.init(tmp_path_factory.mktemp("v") / "memories").root)
    states = []
    for text in texts:
        memory.write("a.md", text, overwrite=True)
        states.append((memory.show("a.md").hash, text))
    for digest, text in states:
        diff = memory.diff("a.md", against=digest)
        assert (diff == "") == (text == texts[-1])


# ------------------------------------------------------------------------ written over all that was seen


def test_a_text_made_of_what_was_seen_is_merged_with_what_has_changed_since(memory: Memory) -> None:
    memory.write("a.md", "# A\n\none\n\n# B\n\ntwo\n")
    seen = memory.show("a.md")
    memory.replace("a.md", "two", "theirs")
    memory.write("a.md", seen.text.replace("one", "mine"), base=seen)
    assert memory.show("a.md").text == "# A\n\nmine\n\n# B\n\ntheirs\n"


def test_where_both_have_changed_it_is_refused_with_what_has_changed_since(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    seen = memory.show("a.md")
    memory.replace("a.md", "one", "theirs")
    with pytest.raises(Conflict) as refused:
        memory.write("a.md", "mine\n", base=seen)
    assert "-one\n+theirs" in refused.value.diff
    memory.rm("a.md")
    with pytest.raises(MemoryNotFound):
        memory.write("a.md", "mine\n", base=seen)
    assert not memory.exists("a.md")


def test_what_was_seen_is_a_document_or_a_hash(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    with pytest.raises(TypeError):
        memory.write("a.md", "mine\n", base=7)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ undo and redo


def files_of(root: Path) -> dict[str, bytes]:
    """What all files of a vault hold, attachments included, by their paths."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".mdmem" not in path.parts and ".git" not in path.parts
    }


def texts(memory: Memory) -> dict[str, str]:
    return {each.path: memory.show(each.path).text for each in memory.ls()}


def write_numbers(memory: Memory, *numbers: int) -> None:
    for number in numbers:
        memory.append("a.md", str(number))


def test_each_undo_goes_one_change_further_back_and_each_redo_one_forward(memory: Memory) -> None:
    write_numbers(memory, 1, 2, 3)
    seen = []
    for step in (memory.undo, memory.undo, memory.redo, memory.undo, memory.redo, memory.redo):
        step()
        seen.append(memory.show("a.md").text.split())
    assert seen == [["1", "2"], ["1"], ["1", "2"], ["1"], ["1", "2"], ["1", "2", "3"]]
    with pytest.raises(NamedNotFound, match="no undo to put back"):
        memory.redo()


def test_what_another_program_deleted_is_restored_as_it_was_written_last(
    memory: Memory, vault_root: Path
) -> None:
    memory.write("a.md", "one\n")
    written = memory.show("a.md").hash
    for _ in range(2):
        (vault_root / "a.md").unlink()
        memory.restore("a.md")
        assert memory.show("a.md").text == "one\n"
    memory.append("a.md", "two")
    memory.undo()
    (vault_root / "a.md").unlink()
    memory.restore("a.md")
    assert memory.show("a.md").text == "one\n"
    memory.write("a.md", "three\n", overwrite=True)
    memory.restore("a.md", hash=written)
    assert memory.show("a.md").text == "one\n"


def test_a_folder_that_another_program_deleted_is_restored_and_nothing_else(
    memory: Memory, vault_root: Path
) -> None:
    for name in ("f/a.md", "f/sub/b.md", "f/moved.md", "f/removed.md", "f/stays.md", "folder.md"):
        memory.write(name, f"{name}\n")
    memory.mv("f/moved.md", "elsewhere.md")
    memory.rm("f/removed.md")
    shutil.rmtree(vault_root / "f/sub")
    (vault_root / "f/a.md").unlink()
    (vault_root / "folder.md").unlink()
    assert len(memory.history("f")) == len(memory.history()) - 1
    memory.restore("f")
    assert sorted(listed.path for listed in memory.ls("f")) == ["f/a.md", "f/stays.md", "f/sub/b.md"]
    assert memory.show("f/sub/b.md").text == "f/sub/b.md\n"
    with pytest.raises(NamedNotFound, match="no memory that another program deleted in 'f'"):
        memory.restore("f/")
    memory.undo()
    assert not (vault_root / "f/a.md").exists()
    assert not memory.exists("folder.md")


def test_of_a_folder_with_attachments_the_memories_are_restored(memory: Memory, vault_root: Path) -> None:
    memory.write("g/a.md", "![](a.png)\n")
    (vault_root / "g/a.png").write_bytes(b"\x89PNG")
    memory.mv("g", "f")
    shutil.rmtree(vault_root / "f")
    memory.restore("f")
    assert memory.show("f/a.md").text == "![](a.png)\n"
    assert [path.name for path in (vault_root / "f").iterdir()] == ["a.md"]


@pytest.mark.parametrize("edited", ["", "edited\n"])
@pytest.mark.parametrize("by_hash", [False, True])
def test_what_another_program_edited_is_restored_as_it_was_written_last(
    memory: Memory, vault_root: Path, edited: str, *, by_hash: bool
) -> None:
    memory.write("a.md", "one\n")
    memory.append("a.md", "two")
    written = memory.show("a.md").hash
    (vault_root / "a.md").write_text(edited)
    memory.restore("a.md", hash=written if by_hash else None)
    assert memory.show("a.md").text == "one\ntwo\n"
    memory.restore("a.md")
    assert memory.show("a.md").text == edited


def test_undo_follows_a_memory_that_was_moved_since(memory: Memory) -> None:
    memory.write("m.md", "one\n")
    moved = memory.mv("m.md", "n.md")
    later = memory.append("n.md", "later")
    memory.undo(moved.id)
    assert memory.show("m.md").text == "one\nlater\n"
    memory.undo()
    assert memory.show("m.md").text == "one\n"
    memory.redo()
    assert memory.show("m.md").text == "one\nlater\n"
    memory.mv("m.md", "deep/o.md")
    memory.append("deep/o.md", "more")
    memory.undo(later.id)
    assert memory.show("deep/o.md").text == "one\nmore\n"
    assert [each.path for each in memory.ls()] == ["deep/o.md"]


def test_undo_follows_what_a_change_made_through_several_moves_of_it_and_of_its_folder(
    memory: Memory,
) -> None:
    made = memory.write("x/a.md", "[b](../b.md)\n").id
    later = memory.append("x/a.md", "more").id
    memory.write("b.md", "b\n")
    memory.mv("x", "y")
    memory.mv("y/a.md", "deep/down/c.md")  # its link is written anew
    with pytest.raises(UndoConflict, match=r"deep/down/c\.md: changed since .* and the change made it"):
        memory.undo(made)
    memory.undo(later)
    assert memory.show("deep/down/c.md").text == "[b](../../b.md)\n"
    made = memory.write("new.md", "new\n").id
    moved = memory.mv("new.md", "n.md")
    memory.undo(moved.id)
    memory.redo()
    memory.mv("n.md", "deep/n.md")
    memory.undo(moved.id)
    assert (memory.exists("new.md"), memory.exists("deep/n.md")) == (True, False)
    memory.redo()
    assert (memory.exists("new.md"), memory.exists("deep/n.md")) == (False, True)
    memory.undo(made)
    assert {*texts(memory)} == {"b.md", "deep/down/c.md"}
    memory.redo()
    assert memory.show("deep/n.md").text == "new\n"


def test_undo_of_an_import_follows_its_folder_or_changes_nothing(
    memory: Memory, vault_root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "n.md").write_text("![p](p.png)\n")
    (source / "p.png").write_bytes(b"P")
    config = vault_root / ".mdmem/config.toml"
    before, told = files_of(vault_root), config.read_text()
    done = memory.import_("obsidian", source, to="notes/obs")
    assert config.read_text() != told
    memory.mv("notes/obs", "notes/wiki")
    memory.undo(done.id)
    assert (files_of(vault_root), config.read_text()) == (before, told)
    memory.redo()
    assert [*files_of(vault_root / "notes")] == ["wiki/n.md", "wiki/p.png"]
    (source / "twin.md").write_text("![p](p.png)\n")
    done = memory.import_("obsidian", source, to="notes/two")
    memory.mv("notes/two", "notes/three")
    told = config.read_text()
    with pytest.raises(
        UndoConflict, match=r"notes/two/.*\.md: moved since by .*, with others that held the same"
    ):
        memory.undo(done.id)
    assert config.read_text() == told


def test_undo_follows_no_memory_that_was_moved_beside_one_that_held_the_same(memory: Memory) -> None:
    memory.write("x/a.md", "one\ntwo\n")
    memory.write("x/b.md", "one\n")
    later = memory.append("x/b.md", "two")
    memory.mv("x", "y")
    with pytest.raises(UndoConflict):
        memory.undo(later.id)
    assert memory.show("y/a.md").text == memory.show("y/b.md").text == "one\ntwo\n"


# A file, or attachment, and the changes after which a folder has its old name, or it one of a folder.
def remove_and_move_a_folder_there(memory: Memory) -> None:
    memory.write("a.md", "a\n")
    memory.rm("a.md")
    memory.write("sub/c.md", "c\n")
    memory.mv("sub", "a.md")


def move_and_make_below(memory: Memory) -> None:
    memory.write("a.md", "[b](b.md)\n")
    memory.write("b.md", "[a](a.md)\n")
    memory.mv("a.md", "c.md")
    memory.write("a.md/s.md/d.md", "d\n")


def move_into_folders_of_their_names(memory: Memory) -> None:
    memory.write("a.md", "[b](b.md)\n")
    memory.write("b.md", "[a](a.md)\n")
    memory.mv(["a.md", "b.md"], "a.md/")
    memory.mv("a.md/b.md", "a.md/b.md/b.md")


def move_out_of_a_folder_of_their_name(memory: Memory) -> None:
    memory.write("a.md/a.md/a.md", "a\n")
    memory.mv("a.md/a.md/a.md", "a.md/a.md")
    memory.mv("a.md/a.md", "a.md")


def make_a_folder_of_another_case(memory: Memory) -> None:
    memory.write("A.md", "a\n")
    memory.rm("A.md")
    memory.write("a.md/S.md/b.md", "b\n")
    memory.mv("a.md/S.md/b.md", "a.md/s.md")


def make_a_folder_of_an_attachment(memory: Memory) -> None:
    memory.mv("pic.png", "new/")
    memory.write("sub/c.md", "![](../new/pic.png)\n")
    memory.mv("sub", "pic.png")


def move_an_attachment_in_and_out(memory: Memory) -> None:
    memory.write("a.md", "![](pic.png)\n")
    memory.mv("pic.png", "pic.png/")
    memory.mv("pic.png/pic.png", "pic.png")


def give_the_name_of_an_attachment_to_another(memory: Memory) -> None:
    memory.write("a.md", "![](pic.png) ![](two.png)\n")
    memory.mv("pic.png", "one.png")
    memory.mv("two.png", "pic.png")


@pytest.mark.parametrize(
    "work",
    [
        remove_and_move_a_folder_there,
        move_and_make_below,
        move_into_folders_of_their_names,
        move_out_of_a_folder_of_their_name,
        make_a_folder_of_another_case,
        make_a_folder_of_an_attachment,
        move_an_attachment_in_and_out,
        give_the_name_of_an_attachment_to_another,
    ],
)
def test_undo_gives_a_file_its_name_back_from_a_folder_that_it_takes_away(
    memory: Memory, vault_root: Path, work: Callable[[Memory], None]
) -> None:
    for name in ("pic.png", "two.png"):
        (vault_root / name).write_bytes(name.encode())
    before = files_of(vault_root)
    work(memory)
    after, made = files_of(vault_root), len(memory.history())
    for count in range(1, made + 1):
        for number, name in enumerate(("undo", "redo")):
            planned = getattr(memory.plan, name)(count=count)
            done = getattr(memory, name)(count=count)
            assert done.plan.diff() == planned.diff()
            states = files_of(vault_root)
            assert (states == (before, after)[number]) or (count < made and not number)
    memory.undo(count=made)
    for _ in range(made):
        memory.redo()
    assert files_of(vault_root) == after
    for _ in range(made):
        memory.undo()
    assert files_of(vault_root) == before


@pytest.mark.parametrize("name", ["other.txt", "other.md", ".hidden", "empty/"])
def test_undo_begins_nothing_where_a_folder_holds_more_than_it_takes_away(
    memory: Memory, vault_root: Path, name: str
) -> None:
    remove_and_move_a_folder_there(memory)
    if name.endswith("/"):
        (vault_root / "a.md" / name).mkdir()
    else:
        (vault_root / "a.md" / name).write_text("theirs\n")
    before, made = files_of(vault_root), len(memory.history())
    with pytest.raises(PathRefused, match=r"'a\.md': it is a folder"):
        memory.undo(count=3)
    assert (files_of(vault_root), len(memory.history())) == (before, made)
    assert (vault_root / "a.md" / name).exists()
    memory.undo(count=2)


def test_undo_follows_a_memory_whose_old_name_is_a_folder(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    change = memory.append("a.md", "two").id
    memory.mv("a.md", "b.md")
    memory.write("a.md/c.md", "c\n")
    memory.undo(change)
    assert texts(memory) == {"a.md/c.md": "c\n", "b.md": "one\n"}


def test_undo_names_who_made_the_change_if_it_was_another(vault_root: Path) -> None:
    mdmem.open(vault_root, actor="b").write("b.md", "b\n")
    agent = mdmem.open(vault_root, actor="a")
    with pytest.raises(NamedNotFound, match=r"no change of yours to take back") as refused:
        agent.undo()
    last = agent.history()[0].id
    assert (
        refused.value.hint == f"the last one is by b ({last}): write b.md; `mdmem undo {last}` takes it back"
    )
    assert agent.undo(last).plan.message.endswith(": write b.md (by b)")
    assert agent.redo().plan.message.endswith(": write b.md (by b)")
    with pytest.raises(NamedNotFound, match=r"no change of yours"):
        agent.undo()  # what was put back is b's all the same
    agent.write("a.md", "a\n")
    assert agent.undo().plan.message.endswith(": write a.md")


def test_undo_of_a_memory_that_is_gone_since_says_who_deleted_it(memory: Memory, vault_root: Path) -> None:
    made = memory.write("a.md", "one\n")
    bob = mdmem.open(vault_root, actor="bob")
    deleted = bob.rm("a.md")
    (said,) = memory.undo(made.id).plan.left_out
    assert (
        said
        == f"a.md is gone already: deleted by bob ({deleted.id}); `mdmem undo {deleted.id}` brings it back"
    )
    memory.undo(deleted.id)
    (vault_root / "a.md").unlink()
    assert memory.undo(made.id).plan.left_out == ("a.md is gone already; mdmem did not delete it",)
    assert memory.history()[0].undoes == deleted.id


def test_undo_says_which_newer_changes_of_others_stay(vault_root: Path) -> None:
    a, b, c = (mdmem.open(vault_root, actor=actor) for actor in ("a", "b", ""))
    first = a.write("a.md", "a\n")
    b.write("old.md", "b\n")
    a.append("a.md", "more")
    assert a.plan.undo().newer == ""
    theirs = b.write("b.md", "b\n").id
    assert a.plan.undo().newer == f"1 newer change by b stays; `mdmem undo {theirs}` takes it back"
    last = c.write("c.md", "c\n").id
    newer = f"2 newer changes by somebody without a name and b stay; `mdmem undo {last}` takes one back"
    assert a.undo().plan.newer == newer
    b.undo()  # what is taken back stays no more; what is put back stays as the change of who made it
    c.undo()
    assert a.plan.undo().newer.startswith("1 newer change by b stays; ")
    b.redo()
    assert a.plan.undo().newer.startswith("2 newer changes by b stay; ")
    assert a.undo(first.id).plan.newer == ""  # whoever names a change has seen the history
    assert {*texts(a)} == {"b.md", "old.md"}


def test_undo_says_when_what_it_takes_back_was_made(memory: Memory) -> None:
    write_numbers(memory, 1, 2)
    times = [entry.time for entry in memory.history()[:2]]
    assert [step.made_at for step in memory.plan.undo(count=2).steps] == times
    assert memory.undo().plan.made_at == times[0]
    assert memory.redo().plan.made_at == ""


def test_undo_that_meets_a_change_of_the_same_lines_names_who_made_it_and_what_it_did(
    vault_root: Path,
) -> None:
    a, b, c = (mdmem.open(vault_root, actor=actor) for actor in ("a", "b", "c"))
    a.write("a.md", "# A\n\none\n\n# B\n\ntext\n")
    a.replace("a.md", "one", "two")
    theirs = b.replace("a.md", "two", "three").id
    c.replace("a.md", "text", "more text")
    with pytest.raises(UndoConflict) as refused:
        a.undo()
    assert f"changed since by b ({theirs}), in the same place" in refused.value.message
    assert "-two\n+three\n" in refused.value.message
    b.undo()
    a.undo()
    assert a.show("a.md").text == "# A\n\none\n\n# B\n\nmore text\n"
    made = a.write("new.md", "one\n").id
    theirs = b.append("new.md", "two").id
    with pytest.raises(UndoConflict, match=r"and the change made it") as refused:
        a.undo()
    assert refused.value.change == made
    assert f"changed since by b ({theirs})" in refused.value.message
    assert refused.value.message.endswith("+two")


def test_undo_by_ids_takes_these_and_no_others_of_the_same_name(vault_root: Path) -> None:
    one, two = (mdmem.open(vault_root, actor="claude-code") for _ in range(2))
    mine = one.write("a.md", "a\n").ids
    two.write("b.md", "b\n")
    undone = one.undo(own=mine)
    assert undone.plan.undoes == mine[0]
    with pytest.raises(NamedNotFound):
        one.undo(own=mine)
    with pytest.raises(NamedNotFound):
        two.redo(own=())
    assert one.redo(own=undone.ids).plan.redoes == mine[0]


def test_a_restored_file_survives_a_second_undo(memory: Memory) -> None:
    memory.write("a.md", "kept\n")
    memory.rm("a.md")
    memory.restore("a.md")
    memory.write("b.md", "wrong\n")
    memory.write("c.md", "wrong\n")
    memory.undo()
    memory.undo()
    assert texts(memory) == {"a.md": "kept\n"}


def test_redo_ends_with_another_change_and_undo_takes_that_one(memory: Memory) -> None:
    write_numbers(memory, 1, 2)
    memory.undo()
    memory.write("b.md", "b\n")
    with pytest.raises(NamedNotFound):
        memory.redo()
    memory.undo()
    assert texts(memory) == {"a.md": "1\n"}
    memory.undo()
    assert not texts(memory)
    with pytest.raises(NamedNotFound) as refused:
        memory.undo()
    assert "redo" in refused.value.hint


def test_a_change_taken_back_by_its_id_is_not_taken_back_again(memory: Memory) -> None:
    first = memory.write("a.md", "a\n").id
    memory.write("b.md", "b\n")
    memory.write("c.md", "c\n")
    undone = memory.undo(first).id
    memory.undo()
    memory.undo()
    assert not texts(memory)
    memory.redo(count=2)
    assert set(texts(memory)) == {"b.md", "c.md"}
    memory.undo(undone)  # to take an undo back is to put back what it took
    assert set(texts(memory)) == {"a.md", "b.md", "c.md"}
    memory.undo()
    assert set(texts(memory)) == {"b.md", "c.md"}


def test_several_are_taken_back_each_as_its_own_change(memory: Memory) -> None:
    write_numbers(memory, 1, 2, 3, 4)
    before = len(memory.history())
    plan = memory.plan.undo(count=3)
    assert lines(plan.diff()) == ["-2", "-3", "-4"]
    done = memory.undo(count=3)
    assert [(file.path, file.did) for file in done.files] == [("a.md", "changed")]
    assert done.id == memory.history()[0].id
    assert len(memory.history()) == before + 3
    memory.redo()
    assert memory.show("a.md").text == "1\n2\n"
    assert len(memory.undo(count=99).plan.steps) == 2
    assert not texts(memory)
    memory.redo(count=99)
    assert memory.show("a.md").text == "1\n2\n3\n4\n"


def test_the_plan_of_several_undos_does_what_they_do(memory: Memory) -> None:
    write_numbers(memory, 1, 2, 3)
    plan = memory.plan.undo(count=2)
    memory.apply(plan)
    assert memory.show("a.md").text == "1\n"
    memory.redo()
    assert memory.show("a.md").text == "1\n2\n"


def test_none_of_several_is_taken_back_where_one_is_refused(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "one\n")
    memory.replace("a.md", "one", "two")
    memory.write("b.md", "b\n")
    plan = memory.plan.undo(count=2)
    (vault_root / "a.md").write_text("another program\n")
    before = files_of(vault_root)
    with pytest.raises(Conflict, match=r"a\.md"):
        memory.undo(count=2)
    with pytest.raises(Conflict, match=r"a\.md"):
        memory.apply(plan)
    assert files_of(vault_root) == before
    memory.undo()
    with pytest.raises(Conflict):
        memory.undo()


def test_what_cannot_be_a_count_is_refused(memory: Memory) -> None:
    change = memory.write("a.md", "a\n").id
    with pytest.raises(Usage, match="count is 0"):
        memory.undo(count=0)
    with pytest.raises(Usage, match="count is 0"):
        memory.redo(count=0)
    with pytest.raises(Usage, match="one change"):
        memory.undo(change, count=2)


def test_what_came_since_stays_through_redo_and_undo(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "# A\n\none\n\n# B\n\ntwo\n")
    memory.replace("a.md", "one", "1")
    memory.undo()
    (vault_root / "a.md").write_text("# A\n\none\n\n# B\n\ntheirs\n")
    memory.redo()
    assert memory.show("a.md").text == "# A\n\n1\n\n# B\n\ntheirs\n"
    memory.undo()
    assert memory.show("a.md").text == "# A\n\none\n\n# B\n\ntheirs\n"


TEXT = "one\n\na\n\nb\n\nc\n\nd\n"


def test_undo_keeps_what_another_program_changed_elsewhere(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", TEXT)
    change = memory.replace("a.md", "one", "ONE").id
    (vault_root / "a.md").write_text(TEXT.replace("one", "ONE").replace("c\n", "cc\n"))
    assert memory.plan.undo(change).changes
    memory.undo()
    assert memory.show("a.md").text == TEXT.replace("c\n", "cc\n")


def test_undo_that_cannot_keep_it_says_so_in_its_own_words(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", TEXT)
    before = memory.show("a.md").hash
    memory.replace("a.md", "one", "ONE")
    written = memory.show("a.md").hash
    (vault_root / "a.md").write_text(TEXT.replace("one", "theirs"))
    with pytest.raises(Conflict, match=r"^a\.md: changed since by another program, in the same") as refused:
        memory.undo()
    assert "-ONE\n+theirs" in refused.value.diff
    assert f"`mdmem restore a.md --hash {before[:8]}`" in refused.value.hint
    os.unlink(f"{memory.vault.disk.trash.path}/{written}")
    with pytest.raises(Conflict, match="what the change wrote is not kept any more"):
        memory.undo()
    (vault_root / "a.md").unlink()
    with pytest.raises(Conflict, match="deleted since by another program"):
        memory.undo()
    memory.restore("a.md", hash=before[:8])
    assert memory.show("a.md").text == TEXT


def test_redo_of_what_another_program_changed_in_the_same_place_is_refused(
    memory: Memory, vault_root: Path
) -> None:
    memory.write("a.md", "one\n")
    memory.replace("a.md", "one", "two")
    memory.undo()
    (vault_root / "a.md").write_text("theirs\n")
    with pytest.raises(Conflict):
        memory.redo()
    assert memory.show("a.md").text == "theirs\n"
    (vault_root / "a.md").unlink()
    with pytest.raises(Conflict):
        memory.redo()


def test_what_is_as_before_already_is_counted_and_passed(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "one\n")
    memory.write("b.md", "b\n")
    (vault_root / "b.md").unlink()
    assert not memory.undo().files
    assert [file.path for file in memory.undo(count=2).files] == ["a.md"]


def test_undo_of_a_move_moves_back_what_the_memory_holds_now(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "one\n")
    memory.write("b.md", "See [[a]].\n")
    memory.mv("a.md", "c/d.md")
    (vault_root / "c/d.md").write_text("one\n\ntheirs\n")
    for _ in range(2):
        memory.undo()
        assert memory.show("a.md").text == "one\n\ntheirs\n"
        assert memory.show("b.md").text == "See [[a]].\n"
        assert not memory.exists("c/d.md")
        memory.redo()
        assert memory.show("c/d.md").text == "one\n\ntheirs\n"
        assert not memory.exists("a.md")
    (vault_root / "a.md").write_text("another\n")
    with pytest.raises(Conflict, match=r"^a\.md: made again since by another program"):
        memory.undo()
    assert memory.show("c/d.md").text == "one\n\ntheirs\n"


def test_undo_of_a_move_deletes_nothing_where_its_old_place_is_taken(
    memory: Memory, vault_root: Path
) -> None:
    memory.write("a.md", "one\n")
    memory.mv("a.md", "b.md")
    (vault_root / "a.md").write_text("one\n")  # as it was before the move
    (vault_root / "b.md").write_text("one\n\ntheirs\n")
    with pytest.raises(Conflict, match=r"^a\.md: made again since by another program;"):
        memory.undo()
    assert memory.show("b.md").text == "one\n\ntheirs\n"


def test_undo_of_a_move_confuses_no_memories_that_held_the_same(memory: Memory, vault_root: Path) -> None:
    for name in ("a", "b"):
        memory.write(f"x/{name}.md", "one\n")
    memory.mv("x", "y")
    (vault_root / "y/a.md").write_text("one\n\ntheirs\n")
    with pytest.raises(Conflict, match=r"^y/a\.md: changed since by another program"):
        memory.undo()
    assert not memory.exists("x/a.md")


def test_what_stands_in_the_way_of_undo_of_one_memory_is_given_up_in_one_step(
    memory: Memory, vault_root: Path
) -> None:
    memory.write("a.md", "one\n")
    memory.replace("a.md", "one", "two")
    (vault_root / "a.md").write_text("zwei\n")
    with pytest.raises(UndoConflict) as refused:
        memory.undo()
    before = refused.value.before
    assert before
    assert refused.value.hint.endswith(f"what is new: `mdmem restore a.md --hash {before[:8]}`")
    memory.restore("a.md", hash=before)
    assert memory.show("a.md").text == "one\n"


def test_what_stands_in_the_way_of_undo_is_given_up_in_two_steps(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "one\n")
    memory.write("b.md", "See [[a]].\n")
    memory.mv("a.md", "c.md")
    (vault_root / "a.md").write_text("another\n")
    with pytest.raises(UndoConflict) as refused:
        memory.undo()
    change = refused.value.change
    assert refused.value.hint.endswith(f"what is new: `mdmem rm a.md`, then `mdmem undo {change}`")
    memory.rm("a.md")
    memory.undo(change)
    assert memory.show("a.md").text == "one\n"


def test_undo_of_a_move_names_what_was_made_where_the_memory_has_to_go_back_to(memory: Memory) -> None:
    memory.write("a.md", "one\n")
    change = memory.mv("a.md", "c.md").id
    memory.write("a.md", "other\n")
    memory.append("c.md", "three")
    with pytest.raises(UndoConflict, match=r"^a\.md: made again since by .*; nothing was undone") as refused:
        memory.undo(change)
    assert refused.value.hint.endswith(f"what is new: `mdmem rm a.md`, then `mdmem undo {change}`")
    memory.rm("a.md")
    memory.undo(change)
    assert memory.show("a.md").text == "one\nthree\n"
    assert not memory.exists("c.md")


def test_a_namespace_undoes_and_redoes_only_its_own(memory: Memory, vault_root: Path) -> None:
    alice = mdmem.open(vault_root, mdmem.Scope(user="alice"))
    bob = mdmem.open(vault_root, mdmem.Scope(user="bob"))
    alice.write("a.md", "a\n")
    bob.write("b.md", "b\n")
    alice.undo()
    with pytest.raises(NamedNotFound):
        bob.redo()
    bob.append("b.md", "more")
    alice.redo()
    bob.undo(count=9)
    assert files_of(vault_root) == {"users/alice/a.md": b"a\n"}
    memory.mv("users/alice/a.md", "users/bob/a.md")
    memory.undo()
    with pytest.raises(UndoRefused):
        alice.redo()
    memory.redo()
    with pytest.raises(UndoRefused):
        alice.undo(count=2)
    assert set(files_of(vault_root)) == {"users/bob/a.md"}


def test_history_says_what_was_taken_back_and_put_back(memory: Memory) -> None:
    made = memory.write("a.md", "a\n").id
    memory.undo()
    memory.redo()
    redone, undone, first = memory.history()
    assert (first.subject, undone.undoes, redone.redoes) == (made, made, made)
    assert {"undoes", "redoes"} & mdmem.as_json(first).keys() == set()
    assert mdmem.as_json(undone)["undoes"] == mdmem.as_json(redone)["redoes"] == made


def test_undo_and_redo_are_committed_to_git_where_changes_are(memory: Memory, vault_root: Path) -> None:
    def git(*arguments: str) -> str:
        result = subprocess.run(
            ["git", "-C", vault_root, *arguments], check=True, capture_output=True, text=True
        )
        return result.stdout

    git("init", "-q")
    git("config", "user.name", "a")
    git("config", "user.email", "a@example.com")
    (vault_root / ".mdmem/config.toml").write_text('[git]\ncommit = "auto"\n')
    memory = mdmem.open(vault_root)
    memory.git.allow("commit")
    write_numbers(memory, 1, 2, 3)
    memory.undo(count=2)
    memory.redo()
    assert git("show", "HEAD:a.md") == "1\n2\n"
    assert git("show", "HEAD~1:a.md") == "1\n"
    assert "Mdmem-Op: undo " in git("log", "-1", "--format=%B", "HEAD~1")
    assert not git("status", "--porcelain", "a.md")


def do(root: Path, name: str) -> None:
    getattr(mdmem.open(root), name)()


@pytest.mark.parametrize("name", ["undo", "redo"])
def test_a_process_killed_in_between_has_done_it_or_not(tmp_path: Path, name: str) -> None:
    """So that the next undo or redo goes on from where the files are."""
    stop, is_killed = 0, True
    while is_killed:
        stop += 1 if speed.is_all else 12
        root = tmp_path / str(stop)
        memory = mdmem.open(mdmem.init(root).root)
        memory.write("a.md", "See [[b]].\n")
        memory.write("b.md", "b\n")
        memory.mv("b.md", "c.md")
        memory.undo()
        states = [files_of(root)]
        memory.redo()
        states.append(files_of(root))
        if name == "redo":
            memory.undo()
        before, after = states if name == "redo" else reversed(states)
        is_killed = killed(partial(do, root, name), stop)
        memory = mdmem.open(root)
        memory.vault.recover()
        found = files_of(root)
        assert found in (before, after)
        forward = (found == before) == (name == "redo")
        (memory.redo if forward else memory.undo)()
        assert files_of(root) == (states[1] if forward else states[0])
    assert stop > 10


NAMES = ("a.md", "b.md", "sub/c.md")
TEXTS = st.sampled_from(["", "x\n", "# T\n\n[a](a.md)\n", "x\ny\n[[c]]\n", "\ufeffz\r\n", "é"])


class UndoMachine(RuleBasedStateMachine):
    """After any changes, undos and redos, the files are what a list of their states and a cursor say."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        mdmem.init(self.root)
        (self.root / "AGENTS.md").unlink(missing_ok=True)
        (self.root / "pic.png").write_bytes(b"a picture")
        # Two namespaces, neither of which knows of the other.
        self.memories = [mdmem.open(self.root, mdmem.Scope(user=name)) for name in ("ann", "bo")]
        for memory in self.memories:
            Path(memory.folder).mkdir(parents=True)
            (Path(memory.folder) / "pic.png").write_bytes(memory.folder.encode())
        self.states = [[files_of(Path(memory.folder))] for memory in self.memories]
        self.cursors = [0, 0]

    def teardown(self) -> None:
        self.folder.cleanup()

    def change(self, who: int, work: Callable[[Memory], Any]) -> None:
        with contextlib.suppress(mdmem.MdmemError):
            work(self.memories[who])
        found = files_of(Path(self.memories[who].folder))
        states = self.states[who]
        if found != states[self.cursors[who]]:
            self.cursors[who] += 1
            states[self.cursors[who] :] = [found]

    WHO = st.sampled_from([0, 0, 1])

    @rule(who=WHO, path=st.sampled_from(NAMES), text=TEXTS)
    def write(self, who: int, path: str, text: str) -> None:
        self.change(who, lambda m: m.write(path, text, overwrite=True))

    @rule(who=WHO, path=st.sampled_from(NAMES), text=TEXTS)
    def append(self, who: int, path: str, text: str) -> None:
        self.change(who, lambda m: m.append(path, text))

    @rule(
        who=WHO,
        source=st.sampled_from([*NAMES, "sub", "pic.png", "sub/pic.png", "a.md/c.md", "pic.png/pic.png"]),
        to=st.sampled_from([*NAMES, "sub/", "new/", "pic.png", "a.md/", "a.md/c.md", "pic.png/"]),
    )
    def mv(self, who: int, source: str, to: str) -> None:
        self.change(who, lambda m: m.mv(source, to))

    @rule(who=WHO, path=st.sampled_from([*NAMES, "sub"]))
    def rm(self, who: int, path: str) -> None:
        self.change(who, lambda m: m.rm(path, recursive=True))

    @rule(who=WHO, path=st.sampled_from(NAMES))
    def restore(self, who: int, path: str) -> None:
        self.change(who, lambda m: m.restore(path))

    @rule(who=WHO)
    def replace(self, who: int) -> None:
        self.change(who, lambda m: m.replace(None, "x", "y"))

    @rule(who=WHO, count=st.integers(1, 4))
    def undo(self, who: int, count: int) -> None:
        self.go(who, "undo", count, max(0, self.cursors[who] - count))

    @rule(who=WHO, count=st.integers(1, 4))
    def redo(self, who: int, count: int) -> None:
        self.go(who, "redo", count, min(len(self.states[who]) - 1, self.cursors[who] + count))

    def go(self, who: int, name: str, count: int, cursor: int) -> None:
        memory = self.memories[who]
        if cursor == self.cursors[who]:
            with pytest.raises(NamedNotFound):
                getattr(memory, name)(count=count)
            return
        planned = getattr(memory.plan, name)(count=count)
        done = getattr(memory, name)(count=count)
        assert done.plan.diff() == planned.diff()
        assert len(done.plan.steps or [done.plan]) == abs(cursor - self.cursors[who])
        self.cursors[who] = cursor

    @invariant()
    def the_files_are_as_the_list_says(self) -> None:
        for memory, states, cursor in zip(self.memories, self.states, self.cursors, strict=True):
            assert files_of(Path(memory.folder)) == states[cursor]


TestUndo = UndoMachine.TestCase
TestUndo.settings = settings(max_examples=examples(40), stateful_step_count=25)
