"""The commands that go back: history, restore, undo."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import command
from mdmem.cli.options import change_command, path_argument, read_command
from mdmem.cli.render import print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.memory.memory import Memory

_SHORT = 12  # digits of a hash that tell versions apart


@command("history", epilog="Example: mdmem history notes/db.md --limit 5")
@path_argument(required=False)
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many changes."
)
@read_command
def history_command(memory: Memory, path: str | None, limit: int, as_json: bool) -> None:
    """List the changes made through mdmem, newest first, with the hashes that restore takes."""
    entries = memory.history(path)
    older = len(entries) - limit
    if older > 0:
        changes = "change" if older == 1 else "changes"
        print(f"{older} older {changes} left out: raise --limit", file=sys.stderr)
    if as_json:
        print_json([entry.as_dict() for entry in entries[:limit]])
        return
    for entry in entries[:limit]:
        print(f"{entry.id}  {entry.time}  {entry.actor or '-'}  {entry.message}")
        for file in entry.files:
            before, after = (digest[:_SHORT] if digest else "absent" for digest in (file.before, file.after))
            print(f"    {file.path}  {before} → {after}")


@command("restore", epilog="Example: mdmem restore notes/db.md --hash 3f2a9c01")
@path_argument()
@click.option("--hash", "hash_", metavar="HASH", help="The content with this hash; else what it held before.")
@change_command
def restore_command(path: str, hash_: str | None) -> Callable[[Any], Any]:
    """Bring back what a memory held before its last change, or an older content of it."""
    return lambda m: m.restore(path, hash=hash_)


@command("undo", epilog="Example: mdmem undo --dry-run")
@click.argument("change", required=False)
@change_command
def undo_command(change: str | None) -> Callable[[Any], Any]:
    """Take back the last change, or the one with this id, in all its memories at once."""
    return lambda m: m.undo(change)
