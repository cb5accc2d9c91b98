"""The commands that show memories from another side: diff, stats, today."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from mdmem.cli.main import command
from mdmem.cli.options import (
    dry_run_option,
    json_option,
    make_change,
    opened,
    page,
    path_argument,
    read_command,
    read_text,
)
from mdmem.cli.paths import PAST
from mdmem.cli.render import bar, print_document, print_hunks, print_json, print_notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.cli.main import Target
    from mdmem.memory.memory import Memory
    from mdmem.memory.statistics import Amount


@command("diff", epilog="Example: mdmem diff notes/db.md")
@path_argument(role=PAST, required=False)
@click.option(
    "--since", metavar="HASH|CHANGE", help="Compare with this content; else before the last change."
)
@read_command
def diff_command(memory: Memory, path: str | None, since: str | None, as_json: bool) -> None:
    """Print what has changed in a memory, whichever program changed it.

    --since takes a hash or a change that `mdmem history` lists: the content with this hash, or before this
    change. This is the vault's own history; `mdmem git diff` shows that of git.
    """
    if path is None:
        instead = "`mdmem git diff` shows all since the last commit, `mdmem history` lists changes"
        raise click.UsageError(f"Missing argument 'PATH': {instead}")
    diff = memory.diff(path, since=since)
    if as_json:
        print_json({"path": path, "since": since, "diff": diff})
    else:
        print_hunks(diff)


def _read_words(ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str | None:
    return read_text(ctx, parameter, " ".join(words)) if words else None


@command("today", epilog="Example: mdmem today 'Moved the notes to SQLite.'")
@click.argument("content", metavar="[TEXT]...", nargs=-1, callback=_read_words)
@dry_run_option
@json_option
@click.pass_obj
def today_command(target: Target, /, content: str | None, dry_run: bool, as_json: bool) -> None:
    """Add TEXT to the log of today under the time; without TEXT, print it.

    The log is notes/daily/YEAR-MONTH-DAY.md, by the date and time of this machine's time zone. It is made
    from the template `daily`, the vault's own or the built-in one. TEXT of `-` is standard input.
    """
    memory = opened(target)
    if content is not None:
        make_change(memory, lambda m: m.notes.today(content), dry_run=dry_run, as_json=as_json)
        return
    page()
    path = memory.notes.today_path
    if not memory.exists(path):
        from mdmem.errors import NamedNotFound

        raise NamedNotFound(kind="log of today", name=path, remedy="begin it with `mdmem today TEXT`")
    print_document(memory.show(path), as_json=as_json)
    print_notes(memory)


_MOST_MONTHS = 24
_WIDEST_BAR = 30  # columns


@command("stats", epilog="Example: mdmem stats")
@read_command
def stats_command(memory: Memory, as_json: bool) -> None:
    """Print how much memory there is: memories, bytes and tokens, by folder and by month.

    Tokens are estimated from the text of each memory. The month is that of the memory's own date, else of
    its file's.
    """
    stats = memory.stats()
    if as_json:
        print_json(stats)
        return
    print(f"{stats.memories:,} memories, {stats.bytes:,} bytes, about {stats.tokens:,} tokens")
    _print_amounts("folder", stats.folders, [each.bytes for each in stats.folders])
    shown = stats.months[-_MOST_MONTHS:]
    _print_amounts("month", shown, [each.memories for each in shown])
    earlier = len(stats.months) - len(shown)
    sys.stdout.flush()
    if earlier:
        print(f"{earlier:,} earlier months left out: see --json", file=sys.stderr)
    if stats.left_out:
        files = "file" if stats.left_out == 1 else "files"
        print(f"{stats.left_out:,} {files} cannot be read: see `mdmem check`", file=sys.stderr)


def _print_amounts(what: str, amounts: Sequence[Amount], sizes: Sequence[int]) -> None:
    """Print a table of amounts, each with a bar for its size; nothing where there are none."""
    if not amounts:
        return
    heads = (what, "memories", "bytes", "tokens")
    rows = [(each.name, f"{each.memories:,}", f"{each.bytes:,}", f"{each.tokens:,}") for each in amounts]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    left = get_terminal_size().columns - sum(widths) - 2 * len(widths)
    print()
    for (name, *numbers), size in zip([heads, *rows], [0, *sizes], strict=True):
        cells = (f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True))
        drawn = bar(size / max(sizes), min(left, _WIDEST_BAR)) if size and left > 0 else ""
        print("  ".join((f"{name:{widths[0]}}", *cells, drawn)).rstrip())
