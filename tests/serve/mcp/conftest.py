"""A vault, its tools in this process, and servers that the official client talks to."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import pytest
from mcp import Client, StdioServerParameters

import mdmem
from mdmem.cli.main import main
from mdmem.serve.mcp import door, http
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.server import MemoryServer
from mdmem.serve.mcp.tools import Toolbox
from tests.cli.conftest import cli, files

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory
    from mdmem.serve.mcp.answer import Answer

__all__ = ["cli", "files"]

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


def serve_here(root: Path, client: Callable[[Any, Any], T], *options: str, scope: tuple[str, ...] = ()) -> T:
    """What a client returns that talks to the program in this process; it shuts the first of its ends."""
    (given, to_server), (from_server, printed) = os.pipe(), os.pipe()
    with (
        ThreadPoolExecutor(1) as thread,
        open(given, encoding="utf-8") as stdin,
        open(to_server, "wb", 0) as to,
        open(from_server, "rb") as answers,
        pytest.MonkeyPatch.context() as patch,
    ):
        talk = thread.submit(client, to, answers)
        with open(printed, "w", encoding="utf-8") as stdout:
            patch.setattr(sys, "stdin", stdin)
            patch.setattr(sys, "stdout", stdout)
            code = main(["--vault", str(root), *scope, "mcp", *options])
        result = talk.result(SECONDS)
        assert code == 0
        return result


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


@contextmanager
def on_http_here(root: Path) -> Iterator[str]:
    """The address of a server on HTTP in a thread of this process, which answers with structure."""
    told: Queue[Any] = Queue()

    class Ended(door.EndingServer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            told.put(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(http.TOKEN, TOKEN)
        patch.setattr(door, "EndingServer", Ended)
        served = MemoryServer(Bound(memory=mdmem.open(root)), structured=True)
        thread = Thread(target=http.serve_http, args=(served, 0, told.put))
        thread.start()
        server, said = (told.get(timeout=SECONDS) for _ in range(2))
        try:
            yield said.split()[-1]
        finally:
            server.should_exit = True
            thread.join(SECONDS)
            assert not thread.is_alive()


def run(work: Callable[[], Awaitable[T]]) -> T:
    """What asynchronous work returns, within the time that a test has."""

    async def bounded() -> T:
        with anyio.fail_after(SECONDS):
            return await work()

    return anyio.run(bounded)
