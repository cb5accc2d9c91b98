"""Trouble: every error tells a model its next move in terms of the tools, and nothing of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mdmem import errors
from mdmem.errors import MdmemError, NearLine
from mdmem.mcp.trouble import told
from mdmem.memory.memory import Memory
from mdmem.text.tokens import estimate
from tests.mcp.conftest import Tools

# Errors that the façade raises while a tool runs, whose own hint speaks of the program.
WITH_A_MOVE: list[MdmemError] = [
    errors.AlreadyExists(path="a.md", remedy="give its hash (--base), or say --overwrite"),
    errors.Conflict(path="a.md", base="1" * 64, actual="2" * 64),
    errors.IndexDamaged(path="index", reason="torn"),
    errors.LimitReached(what="preferences", limit=5, remedy="sweep (`mdmem preferences sweep`)"),
    errors.LockTimeout(path="lock", seconds=10),
    errors.MemoryNotFound(path="a.md"),
    errors.PatternInvalid(pattern="(", reason="unclosed"),
    errors.RipgrepFailed(program="rg", reason="killed"),
    errors.RipgrepMissing(),
    errors.RipgrepTooOld(program="rg", version="1"),
    errors.TextAmbiguous(path="a.md", old="x", expected=1, lines=(1, 2)),
    errors.TextNotFound(path="a.md", old="x"),
]


@pytest.mark.parametrize("error", WITH_A_MOVE, ids=lambda error: error.code)
def test_the_next_move_is_one_that_a_model_can_make(memory: Memory, error: MdmemError) -> None:
    data = told(error, memory.vault).data["error"]
    assert data["code"] == error.code
    assert data["hint"]
    assert "--" not in data["hint"]
    assert "`mdmem" not in data["hint"].replace("tell the user that `mdmem doctor` says", "")


@pytest.mark.parametrize(
    "error",
    [
        errors.MemoryNotFound(path="a.md", near=("b.md",)),
        errors.TextNotFound(path="a.md", old="x", near=(NearLine(3, "y", "case"),)),
        errors.TextAmbiguous(path="a.md", old="aa", expected=1, lines=(1, 1), overlapping=True),
        errors.SectionNotFound(path="a.md", heading="x", near=("Why",)),
    ],
    ids=lambda error: error.code,
)
def test_what_is_near_is_told(memory: Memory, error: MdmemError) -> None:
    assert told(error, memory.vault).data["error"]["hint"] == error.hint


def test_folders_of_the_host_are_not_told(memory: Memory, vault_root: Path) -> None:
    error = errors.StorageFailed(path=f"{vault_root}/notes/a.md", action="read it", reason="denied")
    answer = told(error, memory.vault)
    assert answer.texts[0] == "notes/a.md: cannot read it: denied"
    assert str(vault_root.parent) not in str(answer)


def test_the_difference_of_a_conflict_is_bounded(tools: Tools, memory: Memory) -> None:
    memory.write("notes/a.md", "x\n" * 50_000)
    base = memory.show("notes/a.md").hash[:12]
    memory.write("notes/a.md", "y\n" * 50_000, overwrite=True)
    answer = tools.box.call("rm", {"path": "notes/a.md", "base": base})
    assert answer.data["error"]["code"] == "conflict"
    assert estimate("\n".join(answer.texts)) < 10_000
    assert "characters left out]" in answer.texts[0]


def test_a_bug_is_told_and_ends_nothing(
    tools: Tools, memory: Memory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(memory, "show", broken)
    told = tools.error("show", path="a.md")
    assert (told["code"], told["message"]) == ("bug", "a bug in mdmem: ZeroDivisionError")
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert tools("ls").data["total"] == 0
