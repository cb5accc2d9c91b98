"""The wall: whatever a tool is given, no byte outside of its namespace is read or touched."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.tools import TOOLS, Toolbox

sys.path.append(str(Path(__file__).parents[3] / "bench"))

import hostile

from tests.speed import examples

SECRET = "the secret beyond the wall"
SEED = 4


@pytest.fixture
def world(tmp_path: Path) -> Path:
    hostile.make_world(tmp_path, SECRET)
    return tmp_path


def toolbox(world: Path) -> Toolbox:
    return Toolbox(Bound(memory=mdmem.open(world / "memories", mdmem.Scope(user="alice"))))


def beyond(world: Path) -> dict[str, Any]:
    """Everything that is not alice's, but for what mdmem keeps for itself."""
    return hostile.snapshot(world, besides=("memories/users/alice/", "memories/.mdmem/local/"))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_path_leaves_the_namespace(world: Path, tool: Any) -> None:
    box, before = toolbox(world), beyond(world)
    text = {"content": "x", "text": "x", "old": "secret", "new": "x", "pattern": "secret", "query": "secret"}
    names = tool.schema["properties"].keys()
    rest = {name: text.get(name, "x") for name in {*tool.schema.get("required", ()), *names & {"content"}}}
    for place in ("path", "within", "source", "target", "name"):
        if place not in names:
            continue
        for path in hostile.paths(world):
            given = {**rest, place: path} | ({"kind": "note"} if tool.name == "remember" else {})
            answer = box.call(tool.name, given)
            told = str(answer.texts) + str(answer.data)
            assert "beyond the wall" not in told
            assert answer.data.get("error", {}).get("code") != "bug"
    assert beyond(world) == before


def test_a_write_through_a_link_is_refused(world: Path) -> None:
    box = toolbox(world)
    for path in ("link.md", "bobs/notes/a.md", "bobs/new.md", "notes/up/outside.md"):
        answer = box.call("write", {"path": path, "content": "x", "overwrite": True})
        assert answer.is_error, path
    assert (world / "outside.md").read_text() == SECRET


def test_a_name_that_looks_the_same_is_the_same_or_refused(world: Path) -> None:
    box = toolbox(world)
    for path in ("notes/é.md", "notes/e\u0301.md"):
        assert not box.call("section", {"path": path, "text": "x", "where": "append"}).is_error
    assert box.call("write", {"path": "notes/MINE.md", "content": "x"}).is_error
    found = box.call("ls", {"within": "notes"}).data["memories"]
    assert sorted(each["path"] for each in found) == ["notes/mine.md", "notes/é.md"]


def test_calls_made_up_from_the_schemas_break_nothing(world: Path) -> None:
    box, before = toolbox(world), beyond(world)
    draw = random.Random(SEED)
    for _ in range(examples(600)):
        tool = draw.choice(TOOLS)
        given = hostile.arguments(draw, tool, world)
        answer = box.call(tool.name, given)
        told = str(answer.texts) + str(answer.data)
        assert "beyond the wall" not in told, (tool.name, given)
        assert answer.data.get("error", {}).get("code") != "bug", (tool.name, given)
        assert answer.texts
    assert beyond(world) == before
    health = mdmem.open(world / "memories").doctor()
    assert not [finding for finding in health.findings if finding.severity == "error"]
