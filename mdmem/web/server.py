"""Serve the page on this machine. Anybody gets its files; memories need the token."""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
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
from mdmem.serve.mcp.door import HOST, Door, configure, listen, serve
from mdmem.web.answers import QUESTIONS, Refusal, wait_for_change
from mdmem.web.values import find_status, read_arguments, write_json

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mdmem import Watch
    from mdmem.facade.memory import Memory

_PAGE = os.path.join(os.path.dirname(__file__), "page")
_FILES = {
    "/": ("index.html", "text/html"),
    "/app.css": ("app.css", "text/css"),
    "/app.js": ("app.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
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
_NAME = re.compile(rf"({re.escape(HOST)}|localhost)(:[0-9]{{1,5}})?")
_AT_ONCE = 4  # requests that are worked on; others wait
_MOST_BYTES = 4_000_000  # of a body
# The time for a body to arrive, the longest wait for a change, and the pause after the index failed.
_BODY_SECONDS, _WAIT_SECONDS, _RETRY_SECONDS = 10.0, 25.0, 1.0
_TOLD = {"created", "changed", "moved", "deleted", "ready", "stale", "dangling", "healed"}


class Changes:
    """Counts what happens to memories, for whoever waits for the next change."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._number = memory, 0
        self._changed = anyio.Event()
        self._watch: Watch | None = None
        self._is_begun = self._is_ended = False

    async def wait(self, since: int = -1) -> int:
        """Wait until more than `since` changes were counted, but not for long; return the count.

        The memories are watched from the first wait on.
        """
        if since >= 0 and not self._is_begun:
            self._is_begun = True
            count = partial(from_thread.run_sync, self._count, token=current_token())
            threading.Thread(target=self._follow, args=(count,), daemon=True).start()
        with anyio.move_on_after(_WAIT_SECONDS):
            while self._number <= since and not self._is_ended:
                await self._changed.wait()
        return self._number

    def _count(self) -> None:
        self._number += 1
        self._changed.set()
        self._changed = anyio.Event()

    def _follow(self, count: Callable[[], object]) -> None:
        """Count the events of the memories, in a thread of its own; a vault in a database has no events."""
        with suppress(MdmemError, RuntimeError), self._memory.watch() as self._watch:
            while not self._is_ended:
                try:
                    event = self._watch.next()
                except Unavailable:  # the next call tries again
                    time.sleep(_RETRY_SECONDS)
                    continue
                if event and event.kind in _TOLD:
                    count()
        self._is_begun = False

    def end(self) -> None:
        """End the watch, and answer whoever waits."""
        self._is_ended = True
        self._changed.set()
        if self._watch:
            self._watch.close()


class Api:
    """Answers the page in JSON: what it asks about memories, and what the user decides about them."""

    def __init__(self, memory: Memory, changes: Changes) -> None:
        self._memory, self._changes = memory, changes
        self._limiter = CapacityLimiter(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. For an error, the body has its code, and the HTTP status tells its kind."""
        try:
            found = await self._answer(Request(scope, receive))
        except MdmemError as error:
            found = Refusal(error)
        status = find_status(found.error) if isinstance(found, Refusal) else 200
        data = await to_thread.run_sync(write_json, found)
        await Response(data, status, media_type="application/json")(scope, receive, send)

    async def _answer(self, request: Request) -> Any:
        asked = request.method, request.url.path.removeprefix("/api/")
        if asked not in QUESTIONS:
            raise NamedNotFound(kind="answer to", name=" ".join(asked), remedy="load the page again")
        given = dict(request.query_params) if request.method == "GET" else await _read_body(request)
        arguments = read_arguments(question := QUESTIONS[asked], given)
        if question is wait_for_change:
            return {"number": await self._changes.wait(**arguments)}
        return await to_thread.run_sync(partial(question, self._memory, **arguments), limiter=self._limiter)


async def _read_body(request: Request) -> Any:
    """Read the body of a request as JSON; refuse one that is too large or too slow."""
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


class PageApp:
    """Serves the page of some memories, and refuses requests from pages of other origins.

    It refuses a request whose Host header names another host, even one that leads to this machine (DNS
    rebinding), and one whose Origin header names another origin. Ports are not compared, since ssh and
    editors forward them. Headers keep browsers from storing the page, from framing it, and from loading its
    parts into other pages.
    """

    def __init__(self, memory: Memory, token: str) -> None:
        self._changes = Changes(memory)
        api = Mount("/api", Door(Api(memory, self._changes), token))
        self._app = Starlette(routes=[*(Route(path, _give_file) for path in _FILES), api])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SAFE)
            await send(message)

        app: ASGIApp = self._app
        if scope["type"] == "http":
            given = Headers(scope=scope)
            hosts = given.getlist("host")
            if len(hosts) != 1 or not _NAME.fullmatch(hosts[0]):
                app = PlainTextResponse("this is no name of the page", 421)
            elif given.getlist("origin") not in ([], [f"http://{hosts[0]}"]):
                app = PlainTextResponse("this comes from another page", 403)
        await app(scope, receive, send_safely)

    def end(self) -> None:
        """Answer whoever waits for a change."""
        self._changes.end()


def serve_page(memory: Memory, say: Callable[[str], None], *, opens: bool = False) -> None:
    """Serve the page of some memories on a free port until a signal ends it; `opens`: in a browser."""
    _ = memory.index  # made once, before threads ask for it
    app = PageApp(memory, token := secrets.token_urlsafe(32))
    with listen(0) as listening, tempfile.NamedTemporaryFile("w", prefix="mdmem-", suffix=".html") as page:
        address = f"http://{HOST}:{listening.getsockname()[1]}/#{token}"

        def show_address() -> None:
            say(address)
            if opens:  # users can read command lines of others, but not this file; browsers may not return
                page.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">')
                page.flush()
                threading.Thread(target=webbrowser.open, args=(f"file://{page.name}",), daemon=True).start()

        serve(configure(app, most=128), listening, show_address, app.end)
