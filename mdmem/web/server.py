"""Serve the page to a browser of this machine: its files to anybody, memories to who has the token."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import threading
import time
import webbrowser
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import CapacityLimiter, from_thread, to_thread
from anyio.lowlevel import current_token
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from mdmem.errors import LimitReached, MdmemError, NamedNotFound, Unavailable, Usage
from mdmem.serve.mcp.door import HOST, Door, listen, serve
from mdmem.web.answers import QUESTIONS, Refusal, wait_for_change
from mdmem.web.values import find_status, read_arguments, write_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mdmem import Watch
    from mdmem.facade.memory import Memory

_PAGE = os.path.join(os.path.dirname(__file__), "page")
_FILES = {
    "/": ("index.html", "text/html"),
    "/app.css": ("app.css", "text/css"),
    "/app.js": ("app.js", "text/javascript"),
}
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
    " require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_JSON = "application/json"
_AT_ONCE = 4  # requests that are worked on; others wait
_MOST_BYTES = 4_000_000  # of a body
_BODY_SECONDS = 10.0
_LONGEST_WAIT = 25.0  # seconds
_RETRY_SECONDS = 1.0  # after the index could not be made current
_MEMORIES = {"created", "changed", "moved", "deleted", "ready", "stale", "dangling", "healed"}


class Guard:
    """Refuses requests that a page of another origin may have sent; nothing may be kept, framed or run.

    Such a request says another host, also where that name leads here (DNS rebinding), or another origin. The
    port may be any: ssh and editors forward it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SAFE)
            await send(message)

        given = Headers(scope=scope)
        app = self._app
        if not _is_here(hosts := given.getlist("host")):
            app = PlainTextResponse("this is no name of the page", 421)
        elif given.getlist("origin") not in ([], [f"http://{hosts[0]}"]):
            app = PlainTextResponse("this comes from another page", 403)
        await app(scope, receive, send_safely)


def _is_here(hosts: list[str]) -> bool:
    """Tell whether a request names this machine, once, with any port."""
    name, _, port = hosts[0].partition(":") if len(hosts) == 1 else ("", "", "")
    return name in {HOST, "localhost"} and (not port or (port.isascii() and port.isdigit()))


class Changes:
    """Counts what happens to memories, for whoever waits for the next change."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self.number = memory, 0
        self._changed = anyio.Event()
        self._watch: Watch | None = None
        self._is_begun = self._is_ended = False

    async def wait(self, since: int) -> int:
        """Wait until the number is more than `since`, or some time has passed; return it.

        Nothing is watched before somebody waits.
        """
        if since >= 0 and not self._is_begun:
            self._is_begun = True
            count = partial(from_thread.run_sync, self._count, token=current_token())
            threading.Thread(target=self._follow, args=(count,), daemon=True).start()
        with anyio.move_on_after(_LONGEST_WAIT):
            while self.number <= since and not self._is_ended:
                await self._changed.wait()
        return self.number

    def _count(self) -> None:
        self.number += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _follow(self, count: Callable[[], object]) -> None:
        """Count the events of the memories, in a thread of its own; a vault in a database has none."""
        with suppress(MdmemError, RuntimeError), self._memory.watch() as self._watch:
            while not self._is_ended:
                try:
                    event = self._watch.next()
                except Unavailable:
                    time.sleep(_RETRY_SECONDS)
                    continue
                if event and event.kind in _MEMORIES:
                    count()

    def end(self) -> None:
        """End the watch, and answer whoever waits."""
        self._is_ended = True
        self._wake()
        if self._watch:
            self._watch.close()


class Api:
    """Answers questions and decisions with JSON."""

    def __init__(self, memory: Memory, changes: Changes) -> None:
        self._memory, self._changes = memory, changes
        self._limiter = CapacityLimiter(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an error says its code, and by the status what kind it is."""
        request, status = Request(scope, receive), 200
        try:
            found = await self._answer(request)
        except MdmemError as error:
            found = Refusal(error)
        if isinstance(found, Refusal):
            status = find_status(found.error)
        response = Response(await to_thread.run_sync(write_json, found), status, media_type=_JSON)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Any:
        asked = request.method, request.url.path.removeprefix("/api/")
        if asked not in QUESTIONS:
            raise NamedNotFound(kind="answer to", name=" ".join(asked), remedy="load the page again")
        given = await _read_body(request) if request.method == "POST" else dict(request.query_params)
        question = QUESTIONS[asked]
        arguments = read_arguments(question, given)
        if question is wait_for_change:
            return {"number": await self._changes.wait(**arguments)}
        return await to_thread.run_sync(partial(question, self._memory, **arguments), limiter=self._limiter)


async def _read_body(request: Request) -> Any:
    """Read the JSON of a body, which has a bound, and has to come in time."""
    data = bytearray()
    try:
        with anyio.fail_after(_BODY_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > _MOST_BYTES:
                    raise LimitReached(what="bytes of a request", limit=_MOST_BYTES)
        return json.loads(data)
    except TimeoutError:
        raise Usage(problem=f"the request did not end within {_BODY_SECONDS:.0f} seconds") from None
    except (ValueError, RecursionError):
        raise Usage(problem="the request is not JSON") from None


async def _give_file(request: Request) -> Response:
    """Give a file of the page; it holds nothing of the memories."""
    name, kind = _FILES[request.url.path]
    return Response(await anyio.Path(_PAGE, name).read_bytes(), media_type=kind)


def make_app(memory: Memory, token: str) -> ASGIApp:
    """Make what serves the page of some memories."""
    changes = Changes(memory)

    @asynccontextmanager
    async def end(_: Starlette) -> AsyncIterator[None]:
        yield
        changes.end()

    routes = [Route(path, _give_file) for path in _FILES]
    api = Mount("/api", Door(Api(memory, changes), token))
    return Guard(Starlette(routes=[*routes, api], lifespan=end))


def serve_page(memory: Memory, say: Callable[[str], None], *, opens: bool = False) -> None:
    """Serve the page of some memories on a free port until a signal ends it.

    Args:
        memory: the memories.
        say: prints the address.
        opens: also show it in the browser of the user.
    """
    token = secrets.token_urlsafe(32)
    with listen(0) as listening, tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
        address = f"http://{HOST}:{listening.getsockname()[1]}/#{token}"
        say(address)
        if opens:
            _show_in_browser(address, os.path.join(folder, "page.html"))
        serve(make_app(memory, token), listening)


def _show_in_browser(address: str, file: str) -> None:
    """Let the user's browser open a file that leads to the page: others can read a command line."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as page:
        page.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">')
    webbrowser.open(f"file://{file}")
