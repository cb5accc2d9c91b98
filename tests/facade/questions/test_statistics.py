"""How much memory there is: as a plain count over the files says, and of one namespace alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.diagnostic import as_json
from tests.speed import examples

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory


@pytest.fixture
def memory(vault_root: Path) -> Memory:
    return mdmem.open(vault_root)


@settings(max_examples=examples(20))
@given(
    texts=st.dictionaries(
        st.sampled_from(["a.md", "notes/a.md", "notes/b/c.md", "users/u/notes/d.md", "rules/e.md"]),
        st.text(alphabet="ab é数\n#-", max_size=40),
    )
)
def test_the_sums_are_those_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]
) -> None:
    memory = mdmem.open(mdmem.init(tmp_path_factory.mktemp("v") / "memories").root)
    for path, text in texts.items():
        memory.write(path, text, overwrite=True)
    stats = memory.stats()
    assert stats.memories == len(texts)
    assert stats.bytes == sum(len(text.encode()) for text in texts.values())
    assert stats.tokens == sum(map(mdmem.estimate, texts.values()))
    for amounts in (stats.folders, stats.months):
        for name in ("memories", "bytes", "tokens"):
            assert sum(getattr(each, name) for each in amounts) == getattr(stats, name)


def test_a_memory_counts_to_its_kind_below_its_namespace(memory: Memory) -> None:
    paths = ["a.md", "notes/a/b/c.md", "users/ann/b.md", "users/ann/projects/p/notes/d/e.md"]
    for path in [*paths, "resources/t/1/working/x.md"]:
        memory.write(path, "x\n")
    found = {each.name: each.memories for each in memory.stats().folders}
    assert found == {
        ".": 1,
        "notes": 1,
        "users/ann": 1,
        "users/ann/projects/p/notes": 1,
        "resources/t/1/working": 1,
    }


def test_the_month_is_that_of_the_memory_else_of_its_file(memory: Memory, vault_root: Path) -> None:
    memory.write("a.md", "---\ncreated: 2024-01-31\n---\n")
    memory.write("2023-12-24.md", "x\n")
    memory.write("b.md", "x\n")
    os.utime(vault_root / "b.md", (0, 0))
    assert [each.name for each in memory.stats().months] == ["1970-01", "2023-12", "2024-01"]


def test_a_namespace_counts_what_is_in_it(memory: Memory, vault_root: Path) -> None:
    memory.write("users/bob/notes/a.md", "secret\n")
    (vault_root / "users/bob/bad.md").write_bytes(b"\xff")
    alice = mdmem.open(vault_root, mdmem.Scope(user="alice"))
    assert as_json(alice.stats()) == {
        **dict.fromkeys(("memories", "bytes", "tokens", "left_out"), 0),
        "folders": [],
        "months": [],
    }
    assert (memory.stats().memories, memory.stats().left_out) == (1, 1)


def test_it_tells_how_far_it_is(memory: Memory) -> None:
    for name in "abc":
        memory.write(f"{name}.md", "x\n")
    memory.stats()
    told: list[tuple[str, int, int]] = []
    memory.progress = lambda *each: told.append(each)
    memory.stats()
    assert told[-3:] == [("counting", number, 3) for number in (1, 2, 3)]


def test_how_many_files_others_have_is_not_told(memory: Memory, vault_root: Path) -> None:
    for number in range(7):
        memory.write(f"users/bob/{number}.md", "x\n")
    memory.write("users/alice/a.md", "x\n")
    alice = mdmem.open(vault_root, mdmem.Scope(user="alice"))
    told: list[tuple[str, int, int]] = []
    alice.progress = lambda *each: told.append(each)
    assert alice.stats().memories == 1
    assert [of for doing, _, of in told if doing == "indexing"] == [100] * (len(told) - 1)
    assert told[-1] == ("counting", 1, 1)


def test_sizes_are_those_of_the_texts_the_largest_first_and_say_what_leads_nowhere(memory: Memory) -> None:
    memory.write("notes/b.md", "# Long\n\nSee [[nowhere]], and much more of it.\n")
    memory.write("notes/a.md", "# A\n")
    memory.write("notes/c.md", "[[a]]\n")
    sizes = memory.sizes()
    assert {size.path: size.dead for size in sizes} == {
        "notes/a.md": False,
        "notes/b.md": True,
        "notes/c.md": False,
    }
    assert sizes[0].path == "notes/b.md"
    assert [size.tokens for size in sizes] == [mdmem.estimate(memory.show(size.path).text) for size in sizes]
