"""The commands that keep the index: index, watch."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, NoReturn

import click

from mdmem.cli.command import command
from mdmem.cli.options import read_command
from mdmem.cli.render import print_json, progress_bar

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory
    from mdmem.memory.watch import Event


@command("index", epilog="Example: mdmem index --rebuild")
@click.option("--rebuild", is_flag=True, help="Make it anew, whatever it says.")
@read_command
def index_command(memory: Memory, rebuild: bool, as_json: bool) -> None:
    """Make the index say what the files say; every command that needs it does so by itself."""
    with ExitStack() as bar:
        synced = memory.sync(rebuild=rebuild, progress=progress_bar(bar, "indexing"))
    memories = len(memory.ls(where=["path"]))
    if as_json:
        print_json({**synced._asdict(), "memories": memories})
        return
    counts = ", ".join(
        f"{len(getattr(synced, name)):,} {name}" for name in ("created", "changed", "moved", "removed")
    )
    print(f"{counts}; {memories:,} {'memory' if memories == 1 else 'memories'}")


@command("watch", epilog="Example: mdmem watch --json")
@click.option(
    "--poll-seconds",
    type=click.FloatRange(0, min_open=True),
    help="Also look at every file this often; without it, where the file system does not tell everything.",
)
@read_command
def watch_command(memory: Memory, poll_seconds: float | None, as_json: bool) -> None:
    """Print what happens to memories and to what they cite, an event a line, until it is stopped."""
    signal.signal(signal.SIGTERM, _end)
    with memory.watch(poll_seconds=poll_seconds) as events:
        for event in events:
            print(json.dumps(event.as_dict(), ensure_ascii=False) if as_json else _line(event), flush=True)


def _end(*_: object) -> NoReturn:
    raise click.exceptions.Exit(0)


def _line(event: Event) -> str:
    """An event for people: `stale  notes/db.md:3  src/app.py#L1-L2  moved  moved to src/app.py#L3-L4`."""
    place = f"{event.path}:{event.line}" if event.line else event.path
    moved = f"{event.old} → {event.path}" if event.old else place
    return "  ".join(filter(None, (event.kind, moved, event.target, event.code, event.message)))
