"""Anthropic's memory tool on a vault, for the tool runner of the package `anthropic` (the extra `anthropic`).

client.beta.messages.tool_runner(model=…, messages=…, tools=[MemoryTool(mdmem.open("memories"))])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mdmem.errors import ExtraMissing, ToolRefused
from mdmem.serve.adapters.memory_tool import Tool

try:
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anyio.to_thread import run_sync
except ImportError as error:
    raise ExtraMissing(extra="anthropic", package=str(error.name).partition(".")[0]) from error

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCacheControlEphemeralParam

    from mdmem.facade.memory import Memory


class _OnVault:
    """What both tools are made of, before a class of the SDK.

    Args:
        memory: what the model sees as `/memories`.
    """

    def __init__(
        self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]  # the SDK's class takes it
        self._tool = Tool(memory)


class MemoryTool(_OnVault, BetaAbstractMemoryTool):
    """The memory tool, on the namespace of `memory`; see `mdmem.serve.adapters.memory_tool`."""

    def call(self, input: object) -> str:  # noqa: A002 - the SDK's name
        """Do a command as the model gives it.

        Raises:
            ToolError: it was not done; nothing was changed.
        """
        return _run_command(self._tool, input)

    def execute(self, command: Any) -> str:
        """Do a command of the SDK's types; see `call`."""
        return self.call(command)

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Delete every memory; the vault keeps what they held."""
        return self._tool.clear()


class AsyncMemoryTool(_OnVault, BetaAsyncAbstractMemoryTool):
    """See `MemoryTool`, for an asynchronous client: each command runs in a thread."""

    async def call(self, input: object) -> str:  # noqa: A002 - the SDK's name
        """See `MemoryTool.call`."""
        return await run_sync(_run_command, self._tool, input)

    async def execute(self, command: Any) -> str:
        """Do a command of the SDK's types; see `call`."""
        return await self.call(command)

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """Delete every memory; the vault keeps what they held."""
        return await run_sync(self._tool.clear)


def _run_command(tool: Tool, command: object) -> str:
    """Return what a command answers; a command of the SDK's types is taken by its fields."""
    given = command if isinstance(command, Mapping) else cast("Any", command).model_dump()
    try:
        return tool.call(given)
    except ToolRefused as error:
        raise ToolError(error.words) from None
