"""The MCP tools: their descriptions, and running a call."""

from __future__ import annotations

import copy
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from mdmem.errors import ConfigInvalid, MdmemError, Usage
from mdmem.kind import KINDS
from mdmem.serve.mcp import verbs
from mdmem.serve.mcp.answer import Answer, Bound, Tick, describe_error, encodable, name_tools, no_tick
from mdmem.serve.mcp.argument import input_schema, read_arguments, read_signature


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool.

    Attributes:
        schema: the arguments as JSON Schema.
        changes: whether it changes memories; then it also takes `base` and `dry_run`.
        destructive: whether it may remove what was there.
        idempotent: whether the same call again changes nothing more.
    """

    name: str
    title: str
    about: str
    model: type[BaseModel]
    schema: dict[str, Any]
    run: Callable[..., Answer]
    changes: bool = False
    destructive: bool = False
    idempotent: bool = False


def _make_tool(run: Callable[..., Answer], title: str, **hints: bool) -> ToolSpec:
    """Make a tool from a function; the model is shown its docstring and signature."""
    about = " ".join(inspect.getdoc(run).split())  # type: ignore[union-attr]  # each has a docstring
    model = read_signature(run)
    return ToolSpec(
        name=run.__name__, title=title, about=about, model=model, schema=input_schema(model), run=run, **hints
    )


TOOLS: tuple[ToolSpec, ...] = (
    _make_tool(verbs.context, "What to know first"),
    _make_tool(verbs.search, "Search memories"),
    _make_tool(verbs.grep, "Find lines"),
    _make_tool(verbs.ls, "List memories, links and citations"),
    _make_tool(verbs.show, "Read a memory"),
    _make_tool(verbs.write, "Write a memory or its fields", changes=True, destructive=True, idempotent=True),
    _make_tool(verbs.replace, "Replace text", changes=True, destructive=True),
    _make_tool(verbs.section, "Add or change a section", changes=True, destructive=True),
    _make_tool(verbs.mv, "Move a memory", changes=True),
    _make_tool(verbs.rm, "Delete a memory", changes=True, destructive=True),
    _make_tool(verbs.undo, "Undo or redo changes", changes=True, destructive=True),
    _make_tool(verbs.remember, "Remember", changes=True, destructive=True),
)
NAMES = frozenset(tool.name for tool in TOOLS)


class Toolbox:
    """The tools of one client, run on one bound memory."""

    def __init__(self, bound: Bound, told: set[str] | None = None) -> None:
        self._bound = bound
        self._remarks = set() if told is None else told  # each is told once
        self._own: list[str] = []

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that are offered."""
        return tuple(tool for tool in self._by_name.values() if not (tool.changes and self._bound.read_only))

    @cached_property
    def _by_name(self) -> dict[str, ToolSpec]:
        tools = {tool.name: tool for tool in TOOLS}
        with suppress(ConfigInvalid):  # every call says so
            kinds = self._bound.memory.kinds
            if declared := verbs.remembered_kinds(kinds[len(KINDS) :]):
                tools["remember"] = _with_kinds(tools["remember"], declared)
        return tools

    def call(self, name: str, given: Mapping[str, Any] | None, tick: Tick = no_tick) -> Answer:
        """Run a tool by name; errors are returned as answers.

        Raises:
            KeyError: there is no such tool.
        """
        tool = self._by_name[name]
        call = replace(self._bound, tick=tick, notes=[], own=self._own)
        answer = self._with_remarks(self._answer_call(tool, given or {}, call), call.notes)
        return Answer(tuple(map(encodable, answer.texts)), encodable(answer.data), answer.is_error)

    def _with_remarks(self, answer: Answer, notes: Sequence[str]) -> Answer:
        """Add what paths were taken for, and remarks not yet reported; an error answer gets none."""
        told = [remark for remark in self._bound.memory.service.remarks if remark not in self._remarks]
        if self._bound.say and told:  # a warning may name a folder, or a memory behind the wall
            self._remarks.update(told)
            self._bound.say("\n".join(told))
            told = []
        if answer.is_error or not (told or notes):
            return answer
        self._remarks.update(told)
        new = list(map(name_tools, (*notes, *told)))
        texts = (*answer.texts, *(f"[{remark}]" for remark in new))
        return Answer(texts, {**answer.data, "remarks": new})

    def _answer_call(self, tool: ToolSpec, given: Mapping[str, Any], call: Bound) -> Answer:
        try:
            return self._run_tool(tool, given, call)
        except MdmemError as error:
            return describe_error(error, self._bound.memory, self._bound.say)
        except Exception as error:  # noqa: BLE001 - the one boundary: a bug is told, and ends nothing
            traceback.print_exception(error, file=sys.stderr)
            problem = {"code": "bug", "message": f"a bug in mdmem: {type(error).__name__}", "hint": ""}
            return Answer((problem["message"],), {"error": problem}, is_error=True)

    def _run_tool(self, tool: ToolSpec, given: Mapping[str, Any], call: Bound) -> Answer:
        if tool.changes and self._bound.read_only:
            raise Usage(problem=f"{tool.name} is refused: this memory is bound read-only")
        return tool.run(call, **read_arguments(tool.model, given))


def _with_kinds(tool: ToolSpec, declared: tuple[str, ...]) -> ToolSpec:
    about = f"{tool.about} {', '.join(declared)}: a text adds a section, an object fills in the template."
    schema = copy.deepcopy(tool.schema)
    schema["properties"]["kind"]["enum"] += declared
    return replace(tool, about=about, schema=schema)
