"""Listings with conditions: which memories fit, and in which order they come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import MemoryNotFound, PatternInvalid

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory

FILES = {
    "notes/a.md": "---\ntype: decision\ncreated: 2026-02-01\nweight: 10\ntags: [db]\n---\n# Alpha\n",
    "notes/b.md": "---\ntype: note\ncreated: 2026-01-01\nweight: 9\nexpires:\n---\nBody #topic/sub and #DB\n",
    "notes/deep/c.md": "---\ntype: decision\nweight: [2, 30]\nsource: {type: user}\npath: zzz\n---\n",
    "other/d.json": '{"type": "decision", "created": "2025-12-31", "pinned": true}',
    "other/2024-05-06.md": "# Zeta\n",
    "bare.md": "no fields\n",
}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    for path, text in FILES.items():
        memory.write(path, text)
    return memory


def listed(
    memory: Memory, *where: str, within: str = "", sort: str = "", globs: tuple[str, ...] = ()
) -> list[str]:
    return [entry.path for entry in memory.ls(within, where=where, sort=sort, globs=globs)]


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        (["type=decision"], ["notes/a.md", "notes/deep/c.md", "other/d.json"]),
        (["type=decision", "created>=2026"], ["notes/a.md"]),
        (["created<2026"], ["other/d.json"]),
        (["weight>9"], ["notes/a.md", "notes/deep/c.md"]),
        (["source.type=user"], ["notes/deep/c.md"]),
        (["pinned=true"], ["other/d.json"]),
        (["expires"], ["notes/b.md"]),
        (["!type"], ["bare.md", "other/2024-05-06.md"]),
        (["title=alpha"], ["notes/a.md"]),
        (["title~zet"], ["other/2024-05-06.md"]),
        (["date=2024"], ["other/2024-05-06.md"]),
        (["path~deep"], []),
        (["path~notes/a"], ["notes/a.md"]),
        (["size<10"], ["other/2024-05-06.md"]),
        (["tag=db"], ["notes/a.md", "notes/b.md"]),
        (["tags=db"], ["notes/a.md"]),
        (["tag=topic"], ["notes/b.md"]),
        (["tag=topic/sub"], ["notes/b.md"]),
        (["tag=sub"], []),
        (["!tag"], ["bare.md", "notes/deep/c.md", "other/2024-05-06.md", "other/d.json"]),
    ],
)
def test_conditions_choose_memories(memory: Memory, where: list[str], paths: list[str]) -> None:
    assert listed(memory, *where) == paths


@pytest.mark.parametrize(
    ("sort", "paths"),
    [
        ("weight", ["notes/deep/c.md", "notes/b.md", "notes/a.md"]),
        ("-weight", ["notes/a.md", "notes/b.md", "notes/deep/c.md"]),
        ("created", ["other/d.json", "notes/b.md", "notes/a.md"]),
        ("-created", ["notes/a.md", "notes/b.md", "other/d.json"]),
        ("expires", []),
        ("-expires", []),
        ("nothing", []),
    ],
)
def test_memories_without_the_field_come_last_in_the_order_of_their_paths(
    memory: Memory, sort: str, paths: list[str]
) -> None:
    rest = sorted(FILES.keys() - set(paths))
    assert listed(memory, sort=sort) == [*paths, *rest]


def test_without_a_field_to_sort_by_the_paths_give_the_order(memory: Memory) -> None:
    assert listed(memory, "type") == ["notes/a.md", "notes/b.md", "notes/deep/c.md", "other/d.json"]
    assert listed(memory, sort="path", within="notes") == ["notes/a.md", "notes/b.md", "notes/deep/c.md"]


def test_conditions_hold_below_a_folder_and_with_globs(memory: Memory) -> None:
    assert listed(memory, "type=decision", within="notes") == ["notes/a.md", "notes/deep/c.md"]
    assert listed(memory, "type=decision", within="notes/", globs=("*.md", "!deep/*")) == ["notes/a.md"]
    assert listed(memory, "type=decision", globs=("*.json",)) == ["other/d.json"]
    assert listed(memory, "type=note", within="other") == []
    with pytest.raises(MemoryNotFound):
        listed(memory, "type=note", within="note")
    with pytest.raises(PatternInvalid):
        listed(memory, "type decision")


def test_sizes_and_times_are_those_of_the_files(memory: Memory) -> None:
    plain = {entry.path: entry for entry in memory.ls()}
    assert all(plain[entry.path] == entry for entry in memory.ls(sort="-size"))


def test_a_listing_is_current_whoever_writes(memory: Memory) -> None:
    assert listed(memory, "type=fresh") == []
    Path(memory.vault.root, "notes/new.md").write_bytes(b"---\ntype: fresh\n---\n")
    assert listed(memory, "type=fresh") == ["notes/new.md"]
    Path(memory.vault.root, "notes/new.md").write_bytes(b"---\ntype: stale\n---\n")
    assert listed(memory, "type=fresh") == []


def test_a_namespace_lists_its_own_memories_alone(tmp_path: Path, memory: Memory) -> None:
    scoped = mdmem.open(tmp_path / "memories", scope=mdmem.Scope(user="alice"))
    scoped.write("notes/a.md", "---\ntype: decision\n---\n")
    other = mdmem.open(tmp_path / "memories", scope=mdmem.Scope(user="alicebob"))
    other.write("notes/z.md", "---\ntype: decision\ntags: [secret]\n---\n")
    assert listed(scoped, "type=decision") == ["notes/a.md"]
    assert listed(scoped, "tag=secret") == []
    assert "users/alice/notes/a.md" in listed(memory, "type=decision")
