"""The command that serves the Model Context Protocol."""

from __future__ import annotations

import gc
import signal
import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from mdmem.cli.command import command

if TYPE_CHECKING:
    from mdmem.cli.target import Target


@command("mcp", epilog="Example: mdmem mcp --read-only 2> mcp.log")
@click.option(
    "--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve HTTP on this machine."
)
@click.option("--read-only", is_flag=True, help="Offer no tool that changes anything.")
@click.option("--thread", metavar="ID", help="The thread whose working memory is given and written.")
@click.option(
    "--budget",
    type=click.IntRange(200, 25_000),
    default=6_000,
    show_default=True,
    metavar="TOKENS",
    help="About how long an answer may be.",
)
@click.pass_obj
def mcp_command(target: Target, port: int | None, read_only: bool, thread: str | None, budget: int) -> None:
    """Serve the memories to an agent: tools, resources and prompts of the Model Context Protocol.

    It speaks on standard input and output, or with --http at http://127.0.0.1:PORT/mcp (0: a free port) to
    clients that give the bearer token MDMEM_MCP_TOKEN; without that variable, a token is made and printed on
    standard error. What --vault, --user, --project and --resource name is all that a client can reach,
    besides the rules that everybody shares.
    """
    from mdmem.errors import ExtraMissing

    if find_spec("mcp") is None:
        raise ExtraMissing(extra="mcp", package="mcp")
    import anyio

    from mdmem.mcp.call import Bound
    from mdmem.mcp.server import MemoryServer

    bound = Bound(memory=target.open(), thread=thread, read_only=read_only, budget=budget)
    server = MemoryServer(bound)
    # What was imported stays; a server lives long enough for the rest to be collected.
    gc.freeze()
    gc.enable()
    if port is not None:
        from mdmem.mcp.http import serve_http

        serve_http(server, port, partial(print, "mdmem:", file=sys.stderr, flush=True))
        return
    # The thread that reads standard input cannot be interrupted; a vault survives the end of a process.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(server.serve_stdio)
    finally:
        signal.signal(signal.SIGINT, before)
