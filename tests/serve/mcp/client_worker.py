"""A client in a process of its own, for a test that ends it; prints what it has reached, a line each.

client_worker.py URL TOKEN MODE TOOL ARGUMENTS     `connected`, then `progress` each time it is told

A search is asked again and again.
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


async def main(*arguments: str) -> None:
    url, token, mode, tool, values = arguments
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        say("connected")
        await client.call_tool(tool, json.loads(values), progress_callback=told)
        while tool == "search":
            await client.call_tool(tool, json.loads(values), progress_callback=told)
        say("done")


anyio.run(main, *sys.argv[1:])
