"""Serve over HTTP on this machine alone, to clients that have the token."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings

from mdmem.errors import Usage
from mdmem.serve.mcp.door import HOST, Door, configure, listen, serve

if TYPE_CHECKING:
    from mdmem.serve.mcp.server import MemoryServer

TOKEN = "MDMEM_MCP_TOKEN"  # noqa: S105 - the name of the variable that holds it
PATH = "/mcp"
_LEAST_TOKEN = 16


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
        say: prints the address, and the token if it was made here.

    Raises:
        Usage: the port is taken, or the token is none.
    """
    token, is_made = token_of()
    os.environ.pop(TOKEN, None)  # programs that are run here need not know it
    with listen(port) as listening:
        port = listening.getsockname()[1]
        # A page that a browser has open elsewhere can send requests to this machine, also under a name of
        # its own (DNS rebinding): such a request says another host or another origin.
        hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
        security = TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        )
        app = memory.server.streamable_http_app(streamable_http_path=PATH, transport_security=security)

        def say_address() -> None:
            say(f"serving at http://{HOST}:{port}{PATH}")
            if is_made:
                say(f"token {token}")

        serve(configure(Door(app, token), most=128), listening, say_address)
