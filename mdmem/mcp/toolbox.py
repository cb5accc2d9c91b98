"""The toolbox: the tools of one binding, and how a call of one becomes an answer."""

from __future__ import annotations

import sys
import traceback
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, Usage
from mdmem.mcp import argument
from mdmem.mcp.answer import Answer, encodable
from mdmem.mcp.call import Bound, Call, Tick, no_tick
from mdmem.mcp.tools import TOOLS, Tool
from mdmem.mcp.trouble import told
from mdmem.mcp.uri import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_BY_NAME = {tool.name: tool for tool in TOOLS}
NAMES = frozenset(_BY_NAME)
_PATHS = ("path", "source", "target", "within")


class Toolbox:
    """The tools of one binding."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """Those that are offered."""
        return tuple(tool for tool in TOOLS if not (tool.changes and self._bound.read_only))

    def call(self, name: str, given: Mapping[str, Any] | None, tick: Tick = no_tick) -> Answer:
        """Do what a model asks for; what goes wrong is an answer too.

        Raises:
            KeyError: there is no such tool.
            Whatever `tick` raises, to end the work.
        """
        tool = _BY_NAME[name]
        answer = self._answer(tool, given or {}, tick)
        return Answer(tuple(map(encodable, answer.texts)), encodable(answer.data), answer.is_error)

    def _answer(self, tool: Tool, given: Mapping[str, Any], tick: Tick) -> Answer:
        try:
            return self._done(tool, given, tick)
        except MdmemError as error:
            return told(error, self._bound.memory.vault)
        except Exception as error:  # noqa: BLE001 - the one boundary: a bug is told, and ends nothing
            traceback.print_exception(error, file=sys.stderr)
            problem = {"code": "bug", "message": f"a bug in mdmem: {type(error).__name__}", "hint": ""}
            return Answer((problem["message"],), {"error": problem}, is_error=True)

    def _done(self, tool: Tool, given: Mapping[str, Any], tick: Tick) -> Answer:
        if tool.changes and self._bound.read_only:
            raise Usage(problem=f"{tool.name} is refused: this memory is bound read-only")
        values = argument.read(tool.arguments, given)
        for key in _PATHS:
            if key in values:
                values[key] = _located(values[key])
        return tool.run(Call(bound=self._bound, tick=tick), **values)


def _located(value: Any) -> Any:
    """A path that was given as the URI of a resource."""
    if isinstance(value, list):
        return [_located(each) for each in value]
    return path_of(value) if value.startswith("mdmem:") else value
