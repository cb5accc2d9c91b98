"""What memories were derived from: the cases of aster's lineage, without its bugs."""

from __future__ import annotations

from pathlib import Path

import pytest

import mdmem
from mdmem import Memory
from mdmem.index.links.lineage import LineageStats
from tests import speed


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


def derive(memory: Memory, path: str, *parents: str, source: str = "") -> None:
    names = ", ".join(f'"{each}"' for each in parents)
    ids = f'source: {{type: user, ids: ["{source}"]}}\n' if source else ""
    memory.write(path, f"---\nderived_from: [{names}]\n{ids}---\n{path}\n", overwrite=True)


@pytest.fixture
def diamond(memory: Memory) -> Memory:
    derive(memory, "a.md", source="sessions/t1#1")
    derive(memory, "b.md", "a.md", source="sessions/t1#2")
    derive(memory, "c.md", "a.md", source="sessions/t10#2")
    derive(memory, "d.md", "b.md", "[[c]]")
    derive(memory, "e.md", "d.md", "x.md")
    return memory


def test_each_memory_is_named_once_however_many_ways_lead_to_it(diamond: Memory) -> None:
    assert diamond.lineage.ancestors("d.md") == ("b.md", "c.md", "a.md")
    assert diamond.lineage.descendants("a.md") == ("b.md", "c.md", "d.md", "e.md")
    assert diamond.lineage.ancestors("a.md") == ()
    assert diamond.lineage.descendants("nowhere.md") == ()


def test_depth_is_the_way_to_what_derives_from_nothing(diamond: Memory) -> None:
    assert [diamond.lineage.depth(f"{name}.md") for name in "abcde"] == [0, 1, 1, 2, 3]
    assert diamond.lineage.stats() == LineageStats(memories=5, joins=5, roots=1, depth=3)


def test_a_circle_ends(memory: Memory) -> None:
    derive(memory, "a.md", "c.md", "a.md")
    derive(memory, "b.md", "a.md")
    derive(memory, "c.md", "b.md")
    assert memory.lineage.ancestors("a.md") == ("c.md", "b.md")
    assert memory.lineage.descendants("a.md") == ("b.md", "c.md")
    assert memory.lineage.depth("a.md") == 2
    assert memory.lineage.stats().roots == 0


def test_a_source_is_a_message_or_a_session_and_no_other_that_begins_so(diamond: Memory) -> None:
    assert diamond.lineage.by_source("sessions/t1#1") == ("a.md",)
    assert diamond.lineage.by_source("sessions/t1") == ("a.md", "b.md")
    assert diamond.lineage.by_source("sessions/t*") == ()


def test_what_derives_from_nothing_else_goes_with_it_in_one_change(diamond: Memory) -> None:
    diamond.write("x.md", "another source\n")
    plan = diamond.plan.rm("a.md", cascade=True)
    assert plan.paths == ("a.md", "b.md", "c.md", "d.md")
    diamond.rm("a.md", cascade=True)
    assert [each.path for each in diamond.ls()] == ["e.md", "x.md"]
    diamond.undo()
    assert len(diamond.ls()) == 6


def test_without_a_cascade_the_children_stay(diamond: Memory) -> None:
    diamond.rm("a.md")
    assert diamond.lineage.ancestors("d.md") == ("b.md", "c.md")


def test_lineage_follows_a_memory_that_moves(diamond: Memory) -> None:
    diamond.set("c.md", {"id": "cc"})
    diamond.mv("a.md", "deep/a.md")
    diamond.rename_id("c.md", "other")
    assert diamond.lineage.ancestors("d.md") == ("b.md", "c.md", "deep/a.md")


def test_a_chain_of_any_length_is_followed(memory: Memory) -> None:
    count = 3_000 if speed.is_all else 1_100  # more than Python calls within each other
    for number in range(count):
        parent = f'derived_from: ["n/{number - 1}.md"]\n' if number else ""
        file = Path(memory.root, "n", f"{number}.md")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"---\n{parent}---\n{number}\n")
    assert len(memory.lineage.descendants("n/0.md")) == count - 1
    assert memory.lineage.depth(f"n/{count - 1}.md") == count - 1
    assert memory.lineage.stats() == LineageStats(memories=count, joins=count - 1, roots=1, depth=count - 1)
