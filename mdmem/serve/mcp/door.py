"""The door of a server on this machine: its socket, and the token that requests have to carry."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import h11
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from mdmem.errors import Usage

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
_REST_SECONDS = 0.2
_REQUEST_SECONDS = 20.0  # for a client to send a request


class Door:
    """Lets requests in that carry the token; who serves looks at their Host and Origin."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._authorization = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "http":
            tokens = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._authorization):
                refusal = PlainTextResponse("give the bearer token", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        with suppress(ClientDisconnect):  # nobody is there to be answered
            await self._app(scope, receive, send)


@contextmanager
def listen(port: int, host: str = HOST) -> Iterator[socket.socket]:
    """Give a socket that listens on a port, 0 for a free one; without a host, of this machine alone.

    Raises:
        Usage: the port is taken, or the host is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, since asyncio sends small parts at once only where it is: else each waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise Usage(problem=f"cannot serve on port {port} of {host}: {error.strerror}") from None
        listening.listen()
        yield listening


class PromptProtocol(H11Protocol):
    """Closes a connection when its client takes too long to send a request.

    uvicorn bounds the time between two requests. It waits without end for the first one, and for the rest of
    one that has begun.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._bound_request()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        self._bound_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._end_deadline()
        super().connection_lost(exc)

    def _bound_request(self) -> None:
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._end_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_REQUEST_SECONDS, self.transport.close)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class EndingServer(Server):
    """A server that says when signals end it, and when it ends, before it waits for the requests left."""

    def __init__(self, config: Config, at_start: Callable[[], None], at_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._at_start, self._at_end = at_start, at_end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        if self.started:
            self._at_start()

    async def on_tick(self, counter: int) -> bool:
        """Look whether it ends: three times a second, not ten, which take time where nothing happens."""
        await asyncio.sleep(_REST_SECONDS)
        return await super().on_tick(counter * 10)  # it keeps the time for answers at each tenth

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End it."""
        self._at_end()
        await super().shutdown(sockets)


def configure(app: ASGIApp, *, most: int, keep_alive: int = 5) -> Config:
    """Return how an application is served.

    Args:
        most: connections; requests beyond it are answered with 503.
        keep_alive: seconds that a connection stays open without a request.
    """
    return Config(
        app,
        http=PromptProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        limit_concurrency=most,
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=16 * 1024,  # of a request before its body
    )


def serve(
    config: Config,
    listening: socket.socket,
    at_start: Callable[[], None],
    at_end: Callable[[], None] = lambda: None,
) -> None:
    """Serve what comes to a socket until a signal ends it.

    Args:
        at_start: is called once signals end the server; what prints its address waits for that.
        at_end: ends the requests that wait.
    """
    EndingServer(config, at_start, at_end).run(sockets=[listening])
