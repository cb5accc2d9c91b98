"""Serve over HTTP on this machine alone, to clients that have the token."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from uvicorn import Config, Server

from mdmem.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from mdmem.serve.mcp.server import MemoryServer

TOKEN = "MDMEM_MCP_TOKEN"  # noqa: S105 - the name of the variable that holds it
PATH = "/mcp"
_HOST = "127.0.0.1"
_LEAST_TOKEN = 16


class Door:
    """Lets requests in that carry the token; the SDK looks at their Host and Origin."""

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


def token_of(environment: Mapping[str, str] = os.environ) -> tuple[str, bool]:
    """Return the token that clients have to give, and whether it was made just now.

    Raises:
        Usage: the one that is given can be guessed, or no header can carry it.
    """
    given = environment.get(TOKEN)
    if given is None:
        return secrets.token_urlsafe(32), True
    if len(given) < _LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        problem = f"{TOKEN} has to be {_LEAST_TOKEN} or more ASCII characters without blanks"
        raise Usage(problem=problem, remedy="unset it: then one is made, and printed")
    return given, False


def serve_http(memory: MemoryServer, port: int, say: Callable[[str], None]) -> None:
    """Serve clients on a port of this machine until a signal ends it.

    Args:
        memory: the server.
        port: the port; 0 for a free one.
        say: prints the address, and the token if it was made here.

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
        # A page that a browser has open elsewhere can send requests to this machine, also under a name of
        # its own (DNS rebinding): such a request says another host or another origin.
        hosts = [f"{name}:{port}" for name in (_HOST, "localhost")]
        security = TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        )
        app = memory.server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
        config = Config(
            Door(app, token),
            http="h11",
            ws="none",
            log_level="warning",
            access_log=False,
            limit_concurrency=128,  # requests beyond it are answered with 503
            timeout_keep_alive=5,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=16 * 1024,  # of a request before its body
        )
        Server(config).run(sockets=[listening])
