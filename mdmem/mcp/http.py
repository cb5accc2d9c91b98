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
from uvicorn import Config, Server

from mdmem.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from mdmem.mcp.server import MemoryServer

TOKEN = "MDMEM_MCP_TOKEN"  # noqa: S105 - the name of the variable that holds it
PATH = "/mcp"
_HOST = "127.0.0.1"
_LEAST_TOKEN = 16
_NAMES = (_HOST, "localhost")
_MOST_CONNECTIONS = 128
_IDLE_SECONDS = 5  # that a connection stays open between two requests
_MOST_HEAD = 16 * 1024  # bytes of a request before its body


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
        """Serve a request, or refuse it."""
        status, problem = self._find_refusal(scope) if scope["type"] == "http" else (0, b"")
        if not problem:
            with suppress(ClientDisconnect):  # nobody is there to be answered
                await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(problem)).encode())]
        if status == 401:  # noqa: PLR2004 - RFC 9110, section 15.5.2: it names the scheme
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": problem})

    def _find_refusal(self, scope: Scope) -> tuple[int, bytes]:
        """Return the status and the words that refuse a request; no words where it may pass."""
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
        app = memory.server.streamable_http_app(
            streamable_http_path=PATH, transport_security=_security_settings(port)
        )
        config = Config(
            Door(app, port, token),
            http="h11",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            h11_max_incomplete_event_size=_MOST_HEAD,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            ws="none",
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        Server(config).run(sockets=[listening])


def _security_settings(port: int) -> TransportSecuritySettings:
    """Return what the SDK looks at itself, as exactly as the door does."""
    hosts = [f"{name}:{port}" for name in _NAMES]
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )
