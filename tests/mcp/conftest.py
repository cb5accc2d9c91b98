"""A vault, its tools in this process, and servers that the official client talks to."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import pytest
from mcp import Client, StdioServerParameters

import mdmem
from mdmem.mcp.answer import Bound
from mdmem.mcp.tools import Toolbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory
    from mdmem.mcp.answer import Answer

T = TypeVar("T")
TOKEN = "a-token-for-tests-only"
# What a test may wait for a server that does not answer.
SECONDS = 60


class Tools:
    """The tools of one binding, in this process."""

    def __init__(self, memory: Memory, **bound: Any) -> None:
        self.box = Toolbox(Bound(memory=memory, **bound))

    def __call__(self, name: str, /, **given: Any) -> Answer:
        answer = self.box.call(name, given)
        assert not answer.is_error, answer.texts
        return answer

    def error(self, name: str, /, **given: Any) -> dict[str, Any]:
        answer = self.box.call(name, given)
        assert answer.is_error, answer.texts
        told: dict[str, Any] = answer.data["error"]
        assert answer.texts == tuple(filter(None, (told["message"], told["hint"])))
        return told


@pytest.fixture
def memory(vault_root: Path) -> Memory:
    return mdmem.open(vault_root)


@pytest.fixture
def tools(memory: Memory) -> Tools:
    return Tools(memory)


def command(root: Path, *options: str, scope: tuple[str, ...] = ()) -> list[str]:
    """The command line of a server."""
    return [sys.executable, "-m", "mdmem", "--vault", str(root), *scope, "mcp", *options]


def on_stdio(
    root: Path, *options: str, mode: str = "auto", scope: tuple[str, ...] = (), **settings: Any
) -> Client:
    """A client of a server of its own, on standard input and output."""
    program, *arguments = command(root, *options, scope=scope)
    return Client(StdioServerParameters(command=program, args=arguments), mode=mode, **settings)


class Served(NamedTuple):
    """A server on HTTP: its address, its process."""

    url: str
    process: subprocess.Popen[str]


@contextmanager
def on_http(root: Path, *options: str, token: str | None = TOKEN) -> Iterator[Served]:
    environment = {name: value for name, value in os.environ.items() if name != "MDMEM_MCP_TOKEN"}
    if token is not None:
        environment["MDMEM_MCP_TOKEN"] = token
    process = subprocess.Popen(
        command(root, "--http", "0", *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stderr is not None
        yield Served(process.stderr.readline().split()[-1], process)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def run(work: Callable[[], Awaitable[T]]) -> T:
    """What asynchronous work returns, within the time that a test has."""

    async def bounded() -> T:
        with anyio.fail_after(SECONDS):
            return await work()

    return anyio.run(bounded)
