"""What has changed in a memory: from each state that it had, under each of its names, to what it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import Conflict, MemoryNotFound, NamedNotFound, PathRefused, Usage

if TYPE_CHECKING:
    from pathlib import Path

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


@settings(max_examples=30)
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
