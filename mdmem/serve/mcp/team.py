"""Serve one vault to a team over HTTP: each token has the memories of its scope, over one index.

Requests stand alone, so any server answers any of them. A proxy in front of it has the certificate.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn import Server

from mdmem.errors import MdmemError, Usage
from mdmem.serve.mcp.answer import Answer, Bound
from mdmem.serve.mcp.door import configure, listen, serve
from mdmem.serve.mcp.http import PATH
from mdmem.serve.mcp.server import Context, MemoryServer
from mdmem.serve.mcp.tools import Toolbox

if TYPE_CHECKING:
    import socket

    import mcp_types as types
    from anyio.abc import TaskGroup, TaskStatus
    from starlette.types import Receive, Scope as Requested, Send

    from mdmem.serve.mcp.access import AccessFile, TokenGrant

HERE = ("127.0.0.1", "localhost", "::1")
"""Addresses that only programs of this machine reach."""
_THREADS = 6  # fewer than the connections to a database: a change may need a second one
_AT_ONCE = 4  # requests of a token that are worked on
_PATIENCE = 5.0  # seconds that others of it wait


class ScopeServer(MemoryServer):
    """The server of one scope, for clients that their token names."""

    def __init__(self, bound: Bound, figures: Counter[str], **named: Any) -> None:
        super().__init__(bound, **named)
        self._figures = figures

    async def _run_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        began, of = time.monotonic(), f'{{tool="{params.name}"}}'
        answer = await super()._run_tool(ctx, params)
        code = answer.data["error"]["code"] if answer.is_error else ""
        told = {
            f"calls_total{of}": 1,
            f"errors_total{of}": bool(code),
            "not_known_total": code == "not-known",
        }
        self._figures.update({**told, f"call_seconds_total{of}": time.monotonic() - began})
        return answer

    def _name_client(self, ctx: Context) -> str:
        return ctx.request.user.username if ctx.request else ""

    def _find_toolbox(self, _: Context) -> Toolbox:
        return Toolbox(self._bound, self._told)


class Team:
    """The servers of all scopes, each made when a token of it is first used; an application of ASGI."""

    def __init__(
        self, bound: Bound, access: AccessFile, security: TransportSecuritySettings, *, structured: bool
    ) -> None:
        self._bound, self._access, self._security = bound, access, security
        self._is_structured = structured
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._slots: dict[str, anyio.Semaphore] = defaultdict(partial(anyio.Semaphore, _AT_ONCE))
        self._managers: dict[object, StreamableHTTPSessionManager] = {}
        self._opening = anyio.Lock()
        self._figures = Counter[str]()
        self._tasks: TaskGroup

    @asynccontextmanager
    async def run(self, status: Server | None, sockets: list[socket.socket]) -> AsyncIterator[None]:
        """Keep the index current meanwhile, and serve the status."""
        memory, keeper = self._bound.memory, None
        _ = memory.index  # made once, before threads ask for it
        Thread(target=memory.service.begin_indexing).start()
        with suppress(MdmemError):  # of a database: it says itself what has changed
            keeper = memory.keep_current()
        async with anyio.create_task_group() as self._tasks:
            if status:
                self._tasks.start_soon(status.serve, sockets)
            yield
            self._tasks.cancel_scope.cancel()
        if keeper:
            keeper.close()

    async def __call__(self, scope: Requested, receive: Receive, send: Send) -> None:
        """Answer a request with a good token."""
        grant: TokenGrant = scope["user"].access_token.claims["grant"]
        refusal = PlainTextResponse("only POST", 405, {"Allow": "POST"})
        if scope["method"] == "POST":
            slots = self._slots[grant.sha256]
            with anyio.move_on_after(_PATIENCE) as waiting:
                await slots.acquire()
            if not waiting.cancelled_caught:
                try:
                    with suppress(ClientDisconnect):  # nobody is there to be answered
                        await (await self._find_manager(grant)).handle_request(scope, receive, send)
                finally:
                    slots.release()
                return
            refusal = PlainTextResponse("too many requests at once", 429, {"Retry-After": "1"})
        await refusal(scope, receive, send)

    async def _find_manager(self, grant: TokenGrant) -> StreamableHTTPSessionManager:
        key = grant.bound, grant.read_only
        async with self._opening:
            if key not in self._managers:
                self._managers[key] = await self._tasks.start(self._run_manager, grant)
        return self._managers[key]

    async def _run_manager(self, grant: TokenGrant, *, task_status: TaskStatus[Any]) -> None:
        memory = self._bound.memory.of_scope(grant.bound)
        bound = replace(self._bound, memory=memory, read_only=self._bound.read_only or grant.read_only)
        of_scope = ScopeServer(bound, self._figures, structured=self._is_structured, threads=self._threads)
        manager = StreamableHTTPSessionManager(
            of_scope.server, stateless=True, security_settings=self._security
        )
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()

    def tell_status(self, request: Request) -> PlainTextResponse:
        """Answer whether this process lives, whether it would answer calls, or what it has counted."""
        service, text = self._bound.memory.service, "yes\n"
        if request.url.path == "/metrics":
            figures = {**self._figures, **service.figures}
            text = "".join(f"mdmem_{key} {value}\n" for key, value in figures.items())
        elif request.url.path == "/ready" and not (self._access.read() and service.begin_indexing()):
            return PlainTextResponse("no\n", 503)
        return PlainTextResponse(text)


def serve_team(
    bound: Bound,
    place: tuple[str, int],
    access: AccessFile,
    public_url: str | None,
    status_port: int | None,
    say: Callable[[str], None],
    *,
    structured: bool = False,
) -> None:
    """Serve a team until a signal ends it.

    Args:
        place: the host and the port to listen on; 0 for a free one.
        public_url: how clients name the server, as Host and Origin of requests do; without it, as it listens.
        status_port: of this machine alone, for `/live`, `/ready` and `/metrics`.
        structured: whether answers are JSON.

    Raises:
        Usage: a port is taken, or tokens would go to the URL in plain text.
    """
    access.read()
    if access.problem:
        raise Usage(problem=access.problem, remedy="let `mdmem token new` print its lines")
    with listen(place[1], place[0]) as listening, listen(status_port or 0) as own:
        netloc = f"[{place[0]}]" if ":" in place[0] else place[0]
        url = public_url or f"http://{netloc}:{listening.getsockname()[1]}"
        parts = urlsplit(url if url.count("[") == url.count("]") else "")  # else it raises
        if parts.hostname is None or (parts.scheme != "https" and parts.hostname not in HERE):
            remedy = "give https://HOST, the address of the proxy that has the certificate"
            raise Usage(problem=f"tokens cannot be sent to {url!r}", remedy=remedy)
        # Some clients name the usual port, too.
        hosts = [parts.netloc, f"{parts.netloc}:{443 if parts.scheme == 'https' else 80}"]
        origins = [f"{parts.scheme}://{host}" for host in hosts]
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
        team = Team(bound, access, security, structured=structured)
        status = None
        said = [f"serving at {url.rstrip('/')}{PATH}"]
        if status_port is not None:
            routes = [Route(path, team.tell_status) for path in ("/live", "/ready", "/metrics")]
            guard = Middleware(TrustedHostMiddleware, allowed_hosts=list(HERE))
            status = Server(configure(Starlette(routes=routes, middleware=[guard]), most=16))
            said.append(f"status at http://{HERE[0]}:{own.getsockname()[1]}")
        app = Starlette(
            routes=[Route(PATH, RequireAuthMiddleware(team, []))],
            middleware=[Middleware(AuthenticationMiddleware, backend=access)],
            lifespan=lambda _: team.run(status, [own]),
        )
        AppStatus.enable_automatic_graceful_drain = False  # a signal would cut off answers on their way
        # A proxy that keeps connections for a minute never finds one closed when it sends.
        serve(configure(app, most=512, keep_alive=75), listening, lambda: say("\n".join(said)))
