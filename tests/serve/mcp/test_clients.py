"""The official client, on standard input and output and over HTTP, of both generations of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from mdmem.serve.mcp.tools import TOOLS
from tests import speed
from tests.serve.mcp.conftest import TOKEN, on_http, on_http_here, on_stdio, run
from tests.speed import soak_most

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def to_http(url: str, **settings: Any) -> AsyncIterator[Client]:
    """A client of a server on HTTP."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, verify=False) as http,
        Client(streamable_http_client(url, http_client=http), **settings) as client,
    ):
        yield client


@pytest.fixture
def connect(request: pytest.FixtureRequest, vault_root: Path) -> Iterator[Connect]:
    """Connects clients: to a server each on standard input and output, or to one on HTTP, maybe in here."""
    with ExitStack() as stack:
        if request.param == "stdio":
            yield partial(on_stdio, vault_root, "--structured")
        elif request.param == "http":
            yield partial(to_http, stack.enter_context(on_http(vault_root, "--structured")).url)
        else:
            yield partial(to_http, stack.enter_context(on_http_here(vault_root)))


WAYS = ("here", "stdio", "http")
MODES = [(way, mode) for way in WAYS for mode in ("auto", "legacy")]
each_way = pytest.mark.parametrize("connect", soak_most(WAYS), indirect=True)
each_mode = pytest.mark.parametrize(("connect", "mode"), soak_most(MODES, quick=(0, 1)), indirect=["connect"])


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("context", {"query": "needle"}),
    ("write", {"path": "notes/a.md", "content": "# A\n\none needle\n"}),
    ("section", {"path": "notes/a.md", "text": "See [[b]].", "where": "append"}),
    ("replace", {"path": "notes/a.md", "old": "one", "new": "a"}),
    ("section", {"path": "notes/a.md", "heading": "A", "text": "more", "where": "append"}),
    ("remember", {"kind": "note", "name": "b", "value": "text"}),
    ("show", {"path": "notes/a.md"}),
    ("search", {"query": "needle"}),
    ("grep", {"pattern": "needle"}),
    ("ls", {}),
    ("ls", {"target": "notes/b.md"}),
    ("mv", {"source": "notes/b.md", "target": "notes/c.md"}),
    ("rm", {"path": "notes/c.md"}),
    ("write", {"path": "notes/a.md", "fields": {"tags": ["x"]}}),
    ("undo", {"change": "the last one"}),
]


@pytest.mark.parametrize(("connect", "mode"), soak_most(MODES, quick=(0, 3)), indirect=["connect"])
# README: From then on the agent has twelve tools …
def test_every_tool_resource_and_prompt(connect: Connect, memory: Memory, mode: str) -> None:
    async def work() -> None:
        async with connect(mode=mode) as client:
            offered = (await client.list_tools()).tools
            assert (
                {tool.name for tool in offered}
                == {tool.name for tool in TOOLS}
                == {name for name, _ in CALLS}
            )
            assert all(tool.title for tool in offered)
            for name, given in CALLS:
                # On HTTP without sessions, a server cannot tell whose changes are whose.
                filled = {**given, "change": memory.history()[0].id} if "change" in given else given
                result = await client.call_tool(name, filled)
                assert not result.is_error, (name, result.content)
                (block,) = result.content
                assert isinstance(block, types.TextContent)
                assert json.loads(block.text) == result.structured_content
                assert all(isinstance(block, types.TextContent) for block in result.content)
            assert memory.show("notes/a.md").text == "# A\n\na needle\nSee [[c]].\n\nmore\n"

            (resource,) = (await client.list_resources()).resources
            assert (resource.uri, resource.name) == ("mdmem:///notes/a.md", "notes/a.md")
            (template,) = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "mdmem:///{+path}"
            (content,) = (await client.read_resource(resource.uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text == memory.show("notes/a.md").text
            assert content.meta == {"hash": memory.show("notes/a.md").hash[:12]}

            for prompt in (await client.list_prompts()).prompts:
                assert prompt.arguments
                (argument,) = prompt.arguments
                given = {argument.name: "needle"} if argument.required else {}
                (message,) = (await client.get_prompt(prompt.name, given)).messages
                assert isinstance(message.content, types.TextContent)
                assert ("a needle" in message.content.text) == bool(given)

    run(work)


def test_an_answer_is_sent_once_as_text(vault_root: Path, memory: Memory) -> None:
    memory.write("a.md", "only once\n")

    async def work() -> None:
        async with on_stdio(vault_root) as client:
            for path, is_error in (("a.md", False), ("b.md", True)):
                result = await client.call_tool("show", {"path": path})
                assert (result.structured_content, result.is_error) == (None, is_error)
                texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
                assert "".join(texts).count("only once") == (not is_error)

    run(work)


@each_way
def test_what_is_not_there_is_an_error_of_the_protocol(connect: Connect) -> None:
    async def work() -> None:
        async with connect() as client:
            for ask in (
                client.call_tool("forget", {}),
                client.read_resource("mdmem:///notes/none.md"),
                client.read_resource("mdmem:///../none.md"),
                client.get_prompt("forget"),
                client.get_prompt("recall"),
            ):
                with pytest.raises(MCPError) as caught:
                    await ask
                assert caught.value.code == types.INVALID_PARAMS
            result = await client.call_tool("show", {"path": "notes/none.md"})
            assert result.is_error

    run(work)


@each_way
def test_long_work_says_how_far_it_is(connect: Connect, vault_root: Path) -> None:
    told: list[tuple[float, float | None]] = []

    async def told_of(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        told.append((progress, total))

    async def work() -> None:
        async with connect() as client:
            await client.call_tool("search", {"query": "needle"})  # behind the look at its start
            (vault_root / "notes").mkdir()
            for number in range(300):
                (vault_root / f"notes/{number}.md").write_text("needle\n")
            await client.call_tool("search", {"query": "needle"}, progress_callback=told_of)

    run(work)
    assert told[-1] == (300.0, 300.0)


@each_way
def test_a_cancelled_call_ends_and_the_server_goes_on(
    connect: Connect, memory: Memory, vault_root: Path
) -> None:
    (vault_root / "notes").mkdir()
    for number in range(2_000 if speed.is_all else 800):
        (vault_root / f"notes/{number}.md").write_text("needle\n" * 30)

    async def work() -> None:
        async with connect() as client:
            started = anyio.Event()

            async def told_of(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
                started.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    partial(client.call_tool, "search", {"query": "needle"}, progress_callback=told_of)
                )
                await started.wait()
                tasks.cancel_scope.cancel()
            result = await client.call_tool("write", {"path": "notes/new.md", "content": "x\n"})
            assert not result.is_error

    run(work)
    assert memory.show("notes/new.md").text == "x\n"
    assert len(memory.search("needle", limit=5).hits) == 5


@each_way
def test_four_clients_edit_one_memory_and_nothing_is_lost(connect: Connect, memory: Memory) -> None:
    """Appends land; a change with the hash of what has moved on is refused, and lands when tried again."""
    memory.write("notes/a.md", "0\n")
    clients, rounds = 4, 12 if speed.is_all else 3
    all_read = [anyio.Event() for _ in range(rounds)]
    reads = [0] * rounds
    refused = 0

    async def edit(name: int) -> None:
        nonlocal refused
        async with connect() as client:
            for number in range(rounds):
                result = await client.call_tool(
                    "section", {"path": "notes/log.md", "text": f"- {name}.{number}", "where": "append"}
                )
                assert not result.is_error, result.content
                while True:
                    read = (await client.call_tool("show", {"path": "notes/a.md"})).structured_content
                    # Nobody writes before all have read: of the first writes of a round, one can land.
                    reads[number] += 1
                    if reads[number] == clients:
                        all_read[number].set()
                    await all_read[number].wait()
                    count = int(read["text"])
                    given = {"path": "notes/a.md", "content": f"{count + 1}\n", "base": read["hash"]}
                    result = await client.call_tool("write", given)
                    if not result.is_error:
                        break
                    assert result.structured_content["error"]["code"] == "conflict", result.content
                    refused += 1

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for name in range(clients):
                tasks.start_soon(edit, name)

    run(work)
    assert memory.show("notes/a.md").text == f"{clients * rounds}\n"
    lines = memory.show("notes/log.md").text.splitlines()
    assert sorted(lines) == sorted(
        f"- {name}.{number}" for name in range(clients) for number in range(rounds)
    )
    assert refused >= (clients - 1) * rounds


@each_mode
def test_a_change_is_made_by_the_client_that_named_itself(
    connect: Connect, memory: Memory, mode: str
) -> None:
    """Also while clients with other names are at it."""
    names = ("claude-code", "cursor-vscode")

    async def edit(name: str) -> None:
        async with connect(mode=mode, client_info=types.Implementation(name=name, version="1")) as client:
            for number in range(4):
                given = {"path": f"notes/{name}.md", "text": f"- {number}", "where": "append"}
                assert not (await client.call_tool("section", given)).is_error

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(edit, name)

    run(work)
    made = sorted((entry.actor, entry.files[0].path) for entry in memory.history())
    assert made == [(name, f"notes/{name}.md") for name in names for _ in range(4)]
