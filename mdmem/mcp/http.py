"""Serving over HTTP, on this machine alone: a door that looks at every request, and a server that waits."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import socket
from typing import TYPE_CHECKING, cast

from mcp.server.transport_security import TransportSecuritySettings
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from mdmem.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from starlette.types import ASGIApp, Receive, Scope, Send

    from mdmem.mcp.server import MemoryServer

TOKEN = "MDMEM_MCP_TOKEN"  # noqa: S105 - the name of the variable that holds it
PATH = "/mcp"
_HOST = "127.0.0.1"
_LEAST_TOKEN = 16
_NAMES = (_HOST, "localhost")
_MOST_CONNECTIONS = 128
# How long a client may take to send a request, and to go on reading an answer.
_REQUEST_SECONDS, _READING_SECONDS = 5.0, 30.0


class Door:
    """Lets requests in that carry the token, for a host and from an origin that is this server.

    A page that a browser has open elsewhere can send requests to this machine, also under a name of its own
    (DNS rebinding): such a request says another host or another origin.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in _NAMES}
        self._origins = {b"http://" + host for host in self._hosts}
        self._authorization = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, problem = self._problem(scope)
        if not problem:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(problem)).encode())]
        if status == 401:  # noqa: PLR2004 - RFC 9110, section 15.5.2: it names the scheme
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": problem})

    def _problem(self, scope: Scope) -> tuple[int, bytes]:
        """The status and the words with which a request is refused; no words where it may pass."""
        given = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = [value for name, value in given if name == b"host"]
        origins = [value for name, value in given if name == b"origin"]
        tokens = [value for name, value in given if name == b"authorization"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, b"this host is not served here"
        if any(origin.lower() not in self._origins for origin in origins):
            return 403, b"requests from this origin are refused"
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._authorization):
            return 401, b"give the bearer token"
        return 0, b""


class _Connection(H11Protocol):
    """uvicorn's connection, which nobody can hold without asking something and reading the answer.

    Whoever does not send a whole request in time is cut off, be it silent or a byte a second; so is who reads
    nothing of an answer that does not fit into the buffers. A stream of events may stay open.
    """

    _timer: asyncio.TimerHandle | None = None
    _is_begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection in, unless there are too many."""
        super().connection_made(cast("asyncio.Transport", transport))
        if len(self.connections) > _MOST_CONNECTIONS:
            self.transport.abort()
        else:
            self._cut_off_after(_REQUEST_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request in."""
        if self._is_waiting and not self._is_begun:
            self._is_begun = True
            self._cut_off_after(_REQUEST_SECONDS)
        super().data_received(data)
        if not self._is_waiting:
            self._cut_off_after(None)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._is_begun = False
        is_read = not self.transport.get_write_buffer_size()
        self._cut_off_after(_REQUEST_SECONDS if is_read else _READING_SECONDS)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait until what was sent is read."""
        super().pause_writing()
        self._cut_off_after(_READING_SECONDS)

    def resume_writing(self) -> None:
        """Go on sending."""
        super().resume_writing()
        self._cut_off_after(_REQUEST_SECONDS if self._is_waiting else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._cut_off_after(None)

    @property
    def _is_waiting(self) -> bool:
        """Whether it is the client that has to send something."""
        cycle = getattr(self, "cycle", None)  # which uvicorn's annotation says is always there
        return cycle is None or cycle.response_complete or cycle.more_body

    def _cut_off_after(self, seconds: float | None) -> None:
        """Cut it off then, unless something is seen of the client before."""
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self.transport.abort) if seconds else None


class _Waiting(Server):
    """uvicorn's server, which waits for its end instead of looking ten times a second."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    async def main_loop(self) -> None:
        """Wait until a signal ends it."""
        self._loop = asyncio.get_running_loop()
        if not self.should_exit:
            await self._ended.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End it."""
        super().handle_exit(sig, frame)
        if self._loop:
            self._loop.call_soon_threadsafe(self._ended.set)


def token_of(environment: Mapping[str, str] = os.environ) -> tuple[str, bool]:
    """The token that clients have to give, and whether it was made just now.

    Raises:
        Usage: the one that is given can be guessed, or no header can carry it.
    """
    given = environment.get(TOKEN)
    if given is None:
        return secrets.token_urlsafe(32), True
    if len(given) < _LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        problem = f"{TOKEN} has to be {_LEAST_TOKEN} or more ASCII characters without blanks"
        raise Usage(problem=problem, remedy="leave it away: then one is made, and printed")
    return given, False


def serve_http(memory: MemoryServer, port: int, say: Callable[[str], None]) -> None:
    """Serve clients on a port of this machine until a signal ends it.

    Args:
        memory: what is served.
        port: the port; 0 for a free one.
        say: is told where it is served, and the token if it was made here.

    Raises:
        Usage: the port is taken, or the token is none.
    """
    token, is_made = token_of()
    os.environ.pop(TOKEN, None)  # programs that are run here need not know it
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, port))
        except OSError as error:
            raise Usage(problem=f"cannot serve on port {port}: {error.strerror}") from None
        listening.listen()
        port = listening.getsockname()[1]
        say(f"serving at http://{_HOST}:{port}{PATH}")
        if is_made:
            say(f"token {token}")
        app = memory.server.streamable_http_app(streamable_http_path=PATH, transport_security=_security(port))
        config = Config(
            Door(app, port, token),
            http=_Connection,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            ws="none",
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        _Waiting(config).run(sockets=[listening])


def _security(port: int) -> TransportSecuritySettings:
    """What the SDK looks at itself, as exactly as the door does."""
    hosts = [f"{name}:{port}" for name in _NAMES]
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )
