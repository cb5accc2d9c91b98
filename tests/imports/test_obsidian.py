"""An Obsidian vault is taken in byte for byte; links that lead nowhere or to several are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.memory.memory import Memory, open as open_memory

if TYPE_CHECKING:
    from pathlib import Path

HOME = """\
---
aliases: [Start]
---
[[Daily]] and [[Twin]] and ![[picture.png]]
[here](sub/Other%20note.md) but [[Nowhere]]
"""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return open_memory(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for path, text in {
        "Home.md": HOME,
        "Daily.md": "[[Start]]\r\n",
        "a/Twin.md": "one\n",
        "b/Twin.md": "two\n",
        "sub/Other note.md": "[[Home#Nothing|home]]\n",
        "picture.png": "not really",
        ".obsidian/app.json": "{}",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


def test_notes_are_taken_as_they_are_and_unclear_links_are_warnings(memory: Memory, source: Path) -> None:
    applied = memory.import_("obsidian", str(source), to="notes/vault")
    assert {file.path for file in applied.files} == {
        f"notes/vault/{name}"
        for name in ("Home.md", "Daily.md", "a/Twin.md", "b/Twin.md", "sub/Other note.md")
    }
    for name in ("Home.md", "Daily.md"):
        assert memory.show(f"notes/vault/{name}").data == (source / name).read_bytes()
    assert applied.plan.left_out == ("picture.png: no Markdown",)
    assert [(w.path, w.position.line, w.code, w.severity) for w in applied.plan.warnings] == [
        ("notes/vault/Home.md", 4, "ambiguous-link", "warning"),
        ("notes/vault/Home.md", 5, "dangling-link", "warning"),
    ]
    assert "a/Twin.md, b/Twin.md" in applied.plan.warnings[0].message
    assert "'Nowhere'" in applied.plan.warnings[1].message


def test_a_plan_reports_the_same_and_writes_nothing(memory: Memory, source: Path) -> None:
    before = memory.ls()
    plan = memory.plan.import_("obsidian", str(source))
    assert len(plan.warnings) == 2
    assert memory.ls() == before


def test_a_note_that_cannot_be_read_is_left_out_and_the_rest_is_taken(memory: Memory, source: Path) -> None:
    (source / "deep.md").write_text("---\n" + "a: " + "[" * 40 + "]" * 40 + "\n---\n[[Home]]\n")
    applied = memory.import_("obsidian", str(source))
    assert len(applied.files) == 5
    assert any("deep.md" in reason for reason in applied.plan.left_out)
