"""The commands that keep something running or current: mcp, index, watch."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.main import Target, command
from mdmem.errors import ExtraMissing, Usage, plural

if TYPE_CHECKING:
    from mdmem import Event
    from mdmem.facade.memory import Memory

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@command("mcp", epilog="Example: mdmem mcp --read-only 2> mcp.log")
@click.option("--http", metavar="[HOST:]PORT", help="Serve HTTP, of localhost without HOST.")
@click.option(
    "--access",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Let a team in: the tokens of this file.",
)
@click.option("--public-url", metavar="URL", help="Give clients this address, with --access.")
@click.option(
    "--status",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve /live, /ready and /metrics on localhost, with --access.",
)
@click.option("--read-only", is_flag=True, help="Offer no tool that changes anything.")
@click.option("--structured", is_flag=True, help="Answer with JSON, as structure and as its text.")
@options.thread_option
@click.option(
    "--budget",
    type=click.IntRange(200, 25_000),
    default=6_000,
    show_default=True,
    metavar="N",
    help="Keep to N tokens.",
)
@click.pass_obj
def mcp_command(
    target: Target,
    http: str | None,
    access: str | None,
    public_url: str | None,
    status: int | None,
    read_only: bool,
    structured: bool,
    thread: str | None,
    budget: int,
) -> None:
    """Serve the memories to an agent by the Model Context Protocol.

    It has tools, resources and prompts, and speaks on standard input and output, or with --http at
    http://127.0.0.1:PORT/mcp (0: a free port) to clients that give the bearer token MDMEM_MCP_TOKEN; without
    that variable, a token is made and printed on standard error. An answer keeps to about as many tokens as
    --budget says. A client can reach what --vault, --user, --project and --resource name, and the rules that
    everybody shares; of sessions and observations only those of --thread, where that is given.

    With --access each token of a file gives the memories of one scope: see `mdmem token new`. An address that
    other machines reach needs --access and --public-url.
    """
    if find_spec("mcp") is None:
        raise ExtraMissing(extra="mcp", package="mcp")
    import anyio

    from mdmem.serve.mcp.answer import Bound
    from mdmem.serve.mcp.server import MemoryServer

    host, _, port = (http or "").rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if http and not (port.isdecimal() and int(port) < 1 << 16):
        raise click.UsageError(f"--http is PORT or HOST:PORT, not {http!r}")
    is_scoped = thread or target.actor or target.scope != mdmem.Scope()
    if (access and (is_scoped or not http)) or (not access and (public_url or status is not None)):
        raise click.UsageError("--access goes with --http, and without a scope, --actor and --thread")
    is_here = host in {"127.0.0.1", "localhost"} or (access and host == "::1")
    if not is_here and not (access and public_url):
        raise click.UsageError("an address that other machines reach needs --access and --public-url")
    say = partial(print, "mdmem:", file=sys.stderr, flush=True)
    told = say if access else None
    bound = Bound(memory=target.open(), thread=thread, read_only=read_only, budget=budget, say=told)
    server = None if access else MemoryServer(bound, structured=structured)
    # What was imported stays; a server lives long enough for the rest to be collected.
    gc.freeze()
    gc.enable()
    with _commit_at_end(bound.memory, say):
        if access:
            from mdmem.serve.mcp.access import AccessFile
            from mdmem.serve.mcp.team import serve_team

            known = AccessFile(access, say)
            serve_team(bound, (host, int(port)), known, public_url, status, say, structured=structured)
        elif server and http:
            from mdmem.serve.mcp.http import serve_http

            serve_http(server, int(port), say)
        elif server:
            anyio.run(server.serve_stdio)


@command("web", epilog="Example: mdmem web")
@click.option("--open", "open_", is_flag=True, help="Show the page in your browser.")
@click.pass_obj
def web_command(target: Target, open_: bool) -> None:
    """Review, read and search memories in a browser of this machine.

    It prints the address of the page, which holds a token: who has it can change the memories. Where git is
    used, the page shows what was changed since the last commit, to be accepted or rejected row by row.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ExtraMissing(extra="web", package="starlette")
    from mdmem.web.server import serve_page

    memory = target.open()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_program)
    render.drop_relative_path()  # where a browser is looked for
    gc.freeze()
    gc.enable()
    try:
        serve_page(memory, partial(print, flush=True), opens=open_)
    finally:
        render.print_remarks(filter(None, [memory.service.commit_left()]))


@command("lsp", hidden=True, epilog="Example: mdmem lsp 2> lsp.log")
@click.pass_obj
def lsp_command(target: Target) -> int:
    """Serve the memories to an editor: links, renames and findings, unsaved texts included.

    It speaks the Language Server Protocol on standard input and output, for every vault in which a file is
    opened, or for that of --vault. It writes no memory: the editor does.
    """
    if find_spec("pygls") is None:
        raise ExtraMissing(extra="lsp", package="pygls")
    from mdmem.editor.lsp.server import MemoryLanguageServer

    vault, scope, actor = target.binding
    if vault:
        target.open()
    server = MemoryLanguageServer(vault, scope, actor)
    gc.freeze()
    gc.enable()
    return server.serve()


@contextmanager
def _commit_at_end(memory: Memory, say: Callable[[str], None]) -> Iterator[None]:
    """Commit to git what a server leaves, where the config asks for that, also when a signal ends it.

    A signal ends the process, and does not wait for the server: the thread that reads standard input cannot
    be interrupted, and a vault survives that.
    """

    def leave() -> None:
        if word := memory.service.commit_left():
            say(word)

    def ended(number: int, _: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        try:
            leave()
        finally:
            signal.raise_signal(number)

    ours = (each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN)
    before = {each: signal.signal(each, ended) for each in ours}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    leave()


@command("index", hidden=True, epilog="Example: mdmem index --rebuild")
@click.option("--rebuild", is_flag=True, help="Rebuild it from nothing.")
@click.option("--meaning", is_flag=True, help="Make the vectors that a search by meaning lacks.")
@click.option("--fetch", is_flag=True, help="Let fastembed fetch its model first, with --meaning.")
@click.option("--remove", is_flag=True, help="Delete all vectors, with --meaning.")
@options.read_command
def index_command(memory: Memory, rebuild: bool, meaning: bool, fetch: bool, remove: bool) -> None:
    """Rebuild the index (commands keep it current by themselves)."""
    if (fetch or remove) and not meaning:
        raise click.UsageError("--fetch and --remove go with --meaning")
    if meaning and remove:
        memory.forget_meaning()
        return
    synced = memory.sync(rebuild=rebuild)
    count = sum(not each.problem for each in memory.ls(where=["path"]))
    changes = ("created", "changed", "moved", "removed")
    counts = ", ".join(f"{len(getattr(synced, name)):,} {name}" for name in changes)
    render.print_found(
        {**mdmem.as_json(synced), "memories": count},
        lambda _: print(f"{counts}; {plural(count, 'memory')}"),
    )
    if meaning:
        _fill_meaning(memory, fetch=fetch)


def _fill_meaning(memory: Memory, *, fetch: bool) -> None:
    """Make the missing vectors of passages; first say how many are made for each vault, and where."""
    meaning = memory.meaning
    if meaning is None:
        remedy = 'write embedder = "minilm" into your own config.toml, or set MDMEM_EMBEDDER=minilm'
        raise Usage(problem="no embedder is set, or the config of the vault turns it off", remedy=remedy)
    if fetch:
        render.print_remarks([meaning.fetch()])
    progress = partial(memory.progress, "making vectors") if memory.progress else lambda *_: None

    def refuse(path: str, reason: str) -> None:
        whose = f" of {path}" if memory.scope == mdmem.Scope() else ""  # others may not see it
        render.print_remarks([f"meaning: a passage{whose} is passed over: {reason}"])

    made = meaning.fill(progress, begin=lambda line: render.print_remarks([line]), refuse=refuse)
    render.print_remarks([f"meaning: {made:,} vectors were made"])


@command("watch", epilog="Example: mdmem watch --json")
@click.option(
    "--poll-seconds",
    type=click.FloatRange(0, min_open=True),
    help="Also look at every file this often; by default only where the file system reports no changes.",
)
@options.read_command
def watch_command(memory: Memory, poll_seconds: float | None) -> None:
    """Print what happens to memories and to what they cite, one event a line, until it is stopped."""
    render.stop_paging()
    signal.signal(signal.SIGTERM, end_program)
    with memory.watch(poll_seconds=poll_seconds) as events:
        for event in events:
            render.print_found(event, lambda one: print(_format_event(one)))
            sys.stdout.flush()


def end_program(*_: object) -> NoReturn:
    """End the program with the exit code 0, when a signal says so."""
    raise click.exceptions.Exit(0)


def _format_event(event: Event) -> str:
    """Format an event: `stale  notes/db.md:3  src/app.py#L1-L2  moved  moved to src/app.py#L3-L4`."""
    place = f"{event.path}:{event.line}" if event.line else event.path
    moved = f"{event.old} → {event.path}" if event.old else place
    return "  ".join(filter(None, (event.kind, moved, event.target, event.code, event.message)))
