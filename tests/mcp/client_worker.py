"""A client in a process of its own, for a test that ends it; prints what it has reached, a line each.

client_worker.py URL TOKEN MODE call TOOL ARGUMENTS     `connected`, then `progress` each time it is told
client_worker.py URL TOKEN MODE listen URI              `connected`, then `listening`
"""

from __future__ import annotations

import json
import sys

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def told(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
    say("progress")


async def listen(client: Client, uri: str) -> None:
    """Subscribe, and wait."""
    async with client.listen(resource_subscriptions=[uri]):
        say("listening")
        await anyio.sleep_forever()


async def main(*arguments: str) -> None:
    url, token, mode, action, *given = arguments
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        say("connected")
        if action == "listen":
            await listen(client, *given)
        tool, values = given
        await client.call_tool(tool, json.loads(values), progress_callback=told)
        say("done")


anyio.run(main, *sys.argv[1:])
