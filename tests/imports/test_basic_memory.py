"""A folder of basic-memory is taken in as it is: only what its links call a note is added, as aliases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import Usage
from mdmem.memory.memory import Memory, open as open_memory

if TYPE_CHECKING:
    from pathlib import Path

BREWING = """\
---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]  # two
permalink: main/coffee/coffee-brewing-methods
created: 2024-01-31
---

# Coffee Brewing Methods

## Observations
- [method] Pour over gives more clarity #brewing (personal experience)

## Relations
- requires [[Proper Grinding]]
- relates_to [[main/beans/origins]]
"""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return open_memory(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "basic-memory"
    for path, text in {
        "coffee/Coffee Brewing Methods.md": BREWING,
        "coffee/grinding.md": "---\ntitle: Proper Grinding\ntype: Technique\naliases: grind\n---\n\nx\n",
        "beans/origins.md": "---\ntitle: origins\npermalink: main/beans/origins\n---\nBeans\n",
        "plain.md": "no frontmatter\r\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


def test_a_note_keeps_every_byte_but_gets_its_names(memory: Memory, source: Path) -> None:
    applied = memory.import_("basic-memory", str(source))
    assert applied.plan.left_out == ()
    brewing = memory.show("notes/coffee/Coffee Brewing Methods.md")
    assert brewing.fields["aliases"] == ["main/coffee/coffee-brewing-methods"]
    without = [
        line
        for line in brewing.text.splitlines()
        if "aliases" not in line and line != ("  - main/coffee/coffee-brewing-methods")
    ]
    assert without == BREWING.splitlines()
    assert memory.show("notes/plain.md").data == b"no frontmatter\r\n"
    assert memory.show("notes/coffee/grinding.md").fields["aliases"] == ["grind", "Proper Grinding"]
    assert memory.check() == []


def test_links_by_title_and_by_permalink_resolve(memory: Memory, source: Path) -> None:
    memory.import_("basic-memory", str(source))
    found = {r.target: {place.state for place in r.places} for r in memory.references.list(types=["note"])}
    assert found == {"notes/coffee/grinding.md": {"ok"}, "notes/beans/origins.md": {"ok"}}


def test_the_same_again_changes_nothing_and_undo_takes_it_back(memory: Memory, source: Path) -> None:
    applied = memory.import_("basic-memory", str(source), to="notes/bm")
    assert len(applied.files) == 4
    assert not memory.import_("basic-memory", str(source), to="notes/bm").files
    memory.undo(applied.id)
    assert not [listed for listed in memory.ls() if listed.path.startswith("notes/bm")]


def test_what_is_no_memory_is_named_and_the_rest_is_taken(memory: Memory, source: Path) -> None:
    (source / "picture.png").write_bytes(b"\x89PNG")
    (source / "latin.md").write_bytes(b"caf\xe9\n")
    (source / "bad.md").write_text("---\ntags: 3\n---\n")
    (source / "what?.md").write_text("a name that not every system can hold\n")
    (source / "link.md").symlink_to(source / "plain.md")
    (source / ".obsidian").mkdir()
    (source / ".obsidian" / "app.md").write_text("hidden\n")
    applied = memory.import_("basic-memory", str(source))
    reasons = sorted(applied.plan.left_out)
    assert [reason.split(": ")[0] for reason in reasons] == [
        "'notes/what?.md'",
        "latin.md:1",
        "link.md",
        "notes/bad.md",
        "picture.png",
    ]
    assert len(applied.files) == 4


def test_what_differs_from_what_stands_there_is_left_out(memory: Memory, source: Path) -> None:
    memory.write("notes/plain.md", "mine\n")
    applied = memory.import_("basic-memory", str(source))
    assert len(applied.plan.left_out) == 1
    assert memory.show("notes/plain.md").text == "mine\n"


def test_of_two_names_that_differ_only_in_case_one_is_taken(memory: Memory, source: Path) -> None:
    (source / "Plain.md").write_text("other\n")
    if len(list(source.glob("*lain.md"))) == 1:
        pytest.skip("this file system does not tell them apart")
    applied = memory.import_("basic-memory", str(source))
    assert applied.plan.left_out == ("notes/plain.md: differs only in case from notes/Plain.md",)


def test_of_two_spellings_of_one_name_and_of_one_folder_one_is_taken(memory: Memory, source: Path) -> None:
    for name in ("caf\u00e9.md", "cafe\u0301.md", "Coffee/other.md"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(name)
    if len(list(source.glob("caf*.md"))) == 1 or len(list(source.glob("[cC]offee"))) == 1:
        pytest.skip("this file system does not tell them apart")
    applied = memory.import_("basic-memory", str(source))
    assert applied.plan.left_out == (
        "notes/caf\u00e9.md: has the same name as notes/caf\u00e9.md",
        "notes/coffee/Coffee Brewing Methods.md: differs only in case from notes/Coffee",
        "notes/coffee/grinding.md: differs only in case from notes/Coffee",
    )


def test_a_reason_does_not_quote_a_secret(memory: Memory, source: Path) -> None:
    token = "AKIA" + "QWERTYUIOPASDF23"
    (source / "bad.md").write_text(f"---\ncreated: {token}\n---\n")
    (reason,) = memory.import_("basic-memory", str(source)).plan.left_out
    assert reason.startswith("notes/bad.md: line 2: ")
    assert token not in reason


def test_a_folder_that_is_not_there_is_refused(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(Usage, match="no such folder"):
        memory.import_("basic-memory", str(tmp_path / "none"))
    with pytest.raises(Usage, match="mcp-memory, basic-memory"):
        memory.import_("other", str(tmp_path))


def test_progress_is_told(memory: Memory, source: Path) -> None:
    told: list[tuple[int, int]] = []
    memory.plan.import_("basic-memory", str(source), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
