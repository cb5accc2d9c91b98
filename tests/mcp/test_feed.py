"""The feed: a watcher that ends begins anew, and who may have missed something is told to look again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated

from mdmem.mcp.answer import Bound
from mdmem.mcp.server import MemoryServer
from tests.mcp.conftest import run

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.memory.memory import Memory

URI = "mdmem:///notes/a.md"


def test_a_watcher_that_ends_begins_anew_and_streams_end_so_that_nothing_is_missed(
    memory: Memory, vault_root: Path
) -> None:
    memory.write("notes/a.md", "one\n")
    server = MemoryServer(Bound(memory=memory))

    async def work() -> None:
        async with Client(server.server) as client:
            async with client.listen(resource_subscriptions=[URI]) as events:
                assert server.feed._watch
                server.feed._watch.close()
                assert [event async for event in events] == []
            async with client.listen(resource_subscriptions=[URI]) as events:
                (vault_root / "notes/a.md").write_text("two\n")
                async for event in events:
                    assert event == ResourceUpdated(uri=URI)
                    break

    run(work)


def test_no_events_are_followed_until_somebody_subscribes(memory: Memory) -> None:
    server = MemoryServer(Bound(memory=memory))

    async def work() -> None:
        async with Client(server.server) as client:
            await client.call_tool("search", {"query": "x"})
            assert server.feed._watch is None

    run(work)
