"""Names: the tools are verbs of the façade, their arguments its parameters, and all cost few tokens."""

from __future__ import annotations

import inspect

from mdmem.document.text.tokens import estimate
from mdmem.facade.memory import Memory
from mdmem.serve.mcp.tools import TOOLS, ToolSpec
from tests.tables import cases

# Arguments that are about the answer, and what has another shape here, with the reason.
ABOUT_THE_ANSWER = {"limit", "offset", "line", "column", "dry_run", "heading"}
OTHERWISE = {
    "target": "references.lookup.target: ls lists what links to it, where it is given one",
    "stale": "references.stale, the verb",
    "fields": "set.fields: write sets fields where it is given these instead of all",
    "redo": "redo, the verb",
}


@cases("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_has_the_name_and_the_arguments_of_its_verb(tool: ToolSpec) -> None:
    parameters = inspect.signature(getattr(Memory, tool.name)).parameters.keys()
    named = tool.schema["properties"].keys()
    assert named - parameters - ABOUT_THE_ANSWER - OTHERWISE.keys() == set()


def test_what_is_offered_says_which_tool_to_take() -> None:
    about = {tool.name: tool.about for tool in TOOLS}
    assert "question" in about["search"]
    assert "exactly" in about["grep"]
    assert all("Replaces" in about[name] for name in ("write", "replace", "section"))
    assert "adds" in about["section"]
    assert "undo" in about["rm"]
    assert "again" in about["undo"]
    assert "links to" in about["ls"]
    assert "fields" in about["write"]


def test_every_change_takes_the_hash_and_can_be_tried() -> None:
    for tool in TOOLS:
        named = tool.schema["properties"].keys()
        expected = {"dry_run"} if tool.name == "undo" else {"base", "dry_run"}  # it keeps what came since
        assert (expected <= named) == tool.changes


def test_there_are_twelve_tools_at_most_and_all_are_cheap() -> None:
    assert len(TOOLS) <= 12
    assert all(tool.title for tool in TOOLS)
    described = "".join(f"{tool.name}{tool.title}{tool.about}{tool.schema}" for tool in TOOLS)
    assert estimate(described) < 2_500
