"""Twenty users of a team for ten minutes: two servers behind a round-robin proxy, one killed every 30 s.

Each user has a client of the SDK all the time, every other one of the older protocol, and writes, reads and
searches. No answer may hold another user's text, what was acknowledged must be found, and no client may stay
broken. The proxy gives each request to the next server; it asks another one only where nothing was sent.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio
import httpx2
import uvicorn
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from table import Row

import mdmem
from mdmem.facade.memory import init_store
from mdmem.serve.mcp.access import make_token

sys.path.append(str(Path(__file__).parents[1]))

from tests.vault.postgres_server import served

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from setting import Setting
    from starlette.requests import Request

_USERS = 20
_SECONDS = 600
_KILL_SECONDS = 30
_BROKEN_SECONDS = 15.0  # that a client fails again and again
_MARK = re.compile(r"mark-(\d+)-")
_PASSED_ON = ("authorization", "accept", "content-type", "host", "mcp-")


class _Machine:
    """A server with a cache of its own, at a port that it keeps."""

    def __init__(self, url: str, access: str, public: str, folder: str) -> None:
        self.port = _find_port()
        self._folder = folder
        self._command = [sys.executable, "-m", "mdmem", "--vault", url, "mcp", "--http", str(self.port)]
        self._command += ["--access", access, "--public-url", public]
        os.mkdir(folder)
        self.begin()

    def begin(self) -> None:
        environment = {**os.environ, "XDG_CACHE_HOME": self._folder, "XDG_STATE_HOME": self._folder}
        with open(os.path.join(self._folder, "log"), "a") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stderr=log, env=environment
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class _Proxy:
    """Gives each request to the next server, of those that take a connection."""

    def __init__(self) -> None:
        self.port = _find_port()
        self.ports: list[int] = []
        self._turn = itertools.count()
        routes = [Route("/mcp", self._answer, methods=["GET", "POST", "DELETE"])]
        settings = {"log_level": "critical", "access_log": False, "ws": "none"}
        app = Starlette(routes=routes)
        self._server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", self.port, **settings))  # type: ignore[arg-type]
        self._http = httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_keepalive_connections=0))
        Thread(target=self._server.run, daemon=True).start()

    async def _answer(self, request: Request) -> Any:
        headers = {key: value for key, value in request.headers.items() if key.startswith(_PASSED_ON)}
        body, first = await request.body(), next(self._turn)
        for number in range(2):
            url = f"http://127.0.0.1:{self.ports[(first + number) % 2]}/mcp"
            asked = self._http.build_request(request.method, url, headers=headers, content=body)
            try:
                found = await self._http.send(asked, stream=True)
            except httpx2.ConnectError:
                continue
            except httpx2.HTTPError:
                break
            told = {"content-type": found.headers.get("content-type", "text/plain")}
            return StreamingResponse(
                found.aiter_raw(), found.status_code, told, background=BackgroundTask(found.aclose)
            )
        return PlainTextResponse("no server answers", 502)


class _User:
    """A user: what was acknowledged, and what went wrong."""

    def __init__(self, number: int, chance: random.Random, counts: Counter[str]) -> None:
        self.number, self._chance, self._counts = number, chance, counts
        self.kept: dict[str, str] = {}
        self._failed_at: float | None = None

    async def live(self, url: str, token: str, until: float) -> None:
        """Use one client until a moment; where it ends by itself, that is counted."""
        mode = "legacy" if self.number % 2 else "auto"
        try:
            async with _connect(url, token, mode) as client:
                await self.work(client, until)
        except Exception as error:  # noqa: BLE001 - whatever ends it
            self._counts["broken"] += 1
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            print(f"user {self.number} ({mode}): {error!r}", file=sys.stderr)

    async def work(self, client: Client, until: float) -> None:
        while time.monotonic() < until:
            try:
                await self._step(client)
                self._failed_at = None
            except (
                MCPError,
                httpx2.HTTPError,
                OSError,
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
            ):
                self._counts["failed"] += 1
                now = time.monotonic()
                self._failed_at = self._failed_at or now
                if now - self._failed_at > _BROKEN_SECONDS:
                    self._counts["broken"] += 1
                    return
                await anyio.sleep(0.2)
            await anyio.sleep(self._chance.random() * 0.5)

    async def _step(self, client: Client) -> None:
        if not self.kept or self._chance.random() < 0.3:
            path, mark = f"notes/{uuid4().hex}.md", f"mark-{self.number}-{uuid4().hex}"
            answer = await self._call(client, "write", path=path, content=f"# Heron\n\n{mark}\n")
            if answer is None:
                return
            self.kept[path] = mark
        path, mark = self._chance.choice(list(self.kept.items()))
        asked: list[tuple[str, dict[str, Any]]] = [("show", {"path": path}), ("search", {"query": "heron"})]
        asked += [("grep", {"pattern": mark}), ("context", {"query": "heron"}), ("ls", {})]
        tool, given = self._chance.choice(asked)
        found = await self._call(client, tool, **given)
        if found is not None and tool in {"show", "grep"} and mark not in found:
            self._counts["lost"] += 1

    async def _call(self, client: Client, tool: str, **given: Any) -> str | None:
        """Return the text of an answer; None where it is an error."""
        with anyio.fail_after(60):
            answer = await client.call_tool(tool, given)
        text = str(answer.content)
        self._counts["answers"] += 1
        self._counts["others'"] += any(number != str(self.number) for number in _MARK.findall(text))
        self._counts["refused"] += bool(answer.is_error)
        return None if answer.is_error else text


@asynccontextmanager
async def _connect(url: str, token: str, mode: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def _run(
    users: list[_User], tokens: list[str], url: str, machines: list[_Machine], seconds: float
) -> int:
    until, kills = time.monotonic() + seconds, 0
    async with anyio.create_task_group() as tasks:
        for user, token in zip(users, tokens, strict=True):
            tasks.start_soon(user.live, url, token, until)
        for machine in itertools.cycle(machines):
            await anyio.sleep(min(_KILL_SECONDS, seconds / 4))
            if time.monotonic() > until:
                break
            await anyio.to_thread.run_sync(machine.kill)
            machine.begin()
            kills += 1
    return kills


def measure(setting: Setting) -> list[Row]:
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        server = stack.enter_context(served(18))
        folder = stack.enter_context(TemporaryDirectory(prefix="mdmem-team-"))
        url = server.url("team")
        init_store(url)
        made = [make_token(f"user {n}", mdmem.Scope(user=f"u{n}")) for n in range(_USERS)]
        access = Path(folder, "access.toml")
        access.write_text("".join(lines for _, lines in made))
        proxy = _Proxy()
        public = f"http://127.0.0.1:{proxy.port}"
        machines = [_Machine(url, str(access), public, os.path.join(folder, name)) for name in "ab"]
        proxy.ports = [machine.port for machine in machines]
        for machine in machines:
            stack.callback(machine.kill)
            _wait(machine.port)
        users = [_User(n, setting.chance(f"user {n}"), counts) for n in range(_USERS)]
        seconds = setting.count(_SECONDS)
        tokens = [token for token, _ in made]
        kills = anyio.run(_run, users, tokens, f"{public}/mcp", machines, float(seconds))
        memory = mdmem.open(url)
        kept = {(f"users/u{user.number}/{path}", mark) for user in users for path, mark in user.kept.items()}
        lost = sum(mark not in memory.show(path).text for path, mark in kept)
    words = f"{counts['answers']:,} answers, {len(kept):,} writes, {kills} kills, {seconds} s"
    more = f"{counts['failed']} calls failed, {counts['refused']} refused"
    wrong = {
        "answers with another's text": counts["others'"],
        "acknowledged and not found": lost + counts["lost"],
    }
    wrong |= {"clients that stayed broken": counts["broken"]}
    return [
        Row(
            what=f"team of {_USERS}: {what}",
            ours=str(n),
            beside=words,
            compared=more,
            budget="0",
            kept=n == 0,
        )
        for what, n in wrong.items()
    ]


def _wait(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(port)
