"""Names: the tools are verbs of the façade, their arguments its parameters, and all cost few tokens."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.mcp.argument import input_schema
from mdmem.mcp.tools import TOOLS, ToolSpec
from mdmem.memory.memory import Memory
from mdmem.memory.references import References
from mdmem.text.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Callable

# Arguments that are about the answer, and what has another shape here, with the reason.
ABOUT_THE_ANSWER = {"limit", "offset", "line", "column", "dry_run", "heading"}
OTHERWISE = {
    "within": "references.paths: the memories and folders that are looked into",
    "stale": "references.stale, the verb",
    "fields": "set.fields: write sets fields where it is given these instead of all",
    "undo": "undo.change: rm takes back a change where it is given one instead of a path",
}
VERBS: dict[str, Callable[..., Any]] = {"references": References.lookup}


def _verb(tool: ToolSpec) -> Callable[..., Any]:
    return VERBS.get(tool.name) or getattr(Memory, tool.name)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_has_the_name_and_the_arguments_of_its_verb(tool: ToolSpec) -> None:
    parameters = inspect.signature(_verb(tool)).parameters.keys()
    named = {argument.name for argument in tool.arguments}
    assert named - parameters - ABOUT_THE_ANSWER - OTHERWISE.keys() == set()


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_runs_with_all_of_its_arguments(tool: ToolSpec) -> None:
    parameters = inspect.signature(tool.run).parameters
    named = {argument.name for argument in tool.arguments}
    # What it does not take itself it hands on to its verb.
    handed_on = inspect.signature(_verb(tool)).parameters.keys() if "options" in parameters else set()
    assert parameters.keys() - {"call", "options"} <= named <= parameters.keys() | handed_on
    for argument in (each for each in tool.arguments if each.name in parameters):
        has_default = parameters[argument.name].default is not inspect.Parameter.empty
        assert has_default != argument.is_needed or argument.kind == "any"


def test_what_is_offered_says_which_tool_to_take() -> None:
    about = {tool.name: tool.about for tool in TOOLS}
    assert "question" in about["search"]
    assert "exactly" in about["grep"]
    assert all("Replaces" in about[name] for name in ("write", "replace", "section"))
    assert "adds" in about["section"]
    assert "undo" in about["rm"]
    assert "fields" in about["write"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_name_means_two_arguments(tool: ToolSpec) -> None:
    names = [argument.name for argument in tool.arguments]
    aliases = [
        alias for argument in tool.arguments for alias in argument.aliases.split() if alias not in names
    ]
    assert len(aliases) == len(set(aliases))


def test_every_change_takes_the_hash_and_can_be_tried() -> None:
    for tool in TOOLS:
        named = {argument.name for argument in tool.arguments}
        assert ({"base", "dry_run"} <= named) == tool.changes


def test_there_are_twelve_tools_at_most_and_all_are_cheap() -> None:
    assert len(TOOLS) <= 12
    assert all(tool.title for tool in TOOLS)
    described = "".join(
        f"{tool.name}{tool.title}{tool.about}{input_schema(tool.arguments)}" for tool in TOOLS
    )
    assert estimate(described) < 2_500
