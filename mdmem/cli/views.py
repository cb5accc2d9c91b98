"""The commands that show memories from another side: diff, stats, today."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mdmem.cli import options, render
from mdmem.cli.main import command
from mdmem.errors import NamedNotFound, plural
from mdmem.facade.paths import PAST

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.facade.questions.statistics import Amount, MemoryStats


@command("diff", epilog="Example: mdmem diff notes/db.md")
@options.path_argument(role=PAST, required=False)
@click.option("--against", metavar="HASH|CHANGE", help="Compare with this, instead of the last version.")
@options.read_command
def diff_command(memory: Memory, path: str | None, against: str | None) -> None:
    """Print what has changed in a memory, whichever program changed it.

    --against takes a hash that `mdmem history` lists, or a change: then the memory is compared with its
    content before that change. This is the vault's own history; `mdmem git diff` shows that of git.
    """
    if path is None:
        instead = "`mdmem git diff` shows all since the last commit, `mdmem history` lists changes"
        raise click.UsageError(f"Missing argument 'PATH': {instead}")
    found = {"path": path, "against": against, "diff": memory.diff(path, against=against)}
    render.print_found(found, lambda _: render.print_hunks(str(found["diff"])))
    if not found["diff"]:
        render.say_nothing(f"differences in {path}", is_asked=False)


def _read_words(ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str | None:
    return options.read_text(ctx, parameter, " ".join(words)) if words else None


@command("today", epilog="Example: mdmem today 'Moved the notes to SQLite.'")
@click.argument("content", metavar="[TEXT]...", nargs=-1, callback=_read_words)
@options.dry_run_option
@options.json_option
@options.memory_command
def today_command(memory: Memory, content: str | None) -> None:
    """Add TEXT to the log of today under the time; without TEXT, print the log.

    The log is notes/daily/YEAR-MONTH-DAY.md, by the date and time of this machine's time zone. It is made
    from the template `daily`, the vault's own or the built-in one. TEXT of `-` is standard input.
    """
    if content is not None:
        options.make_change(memory, lambda m: m.notes.today(content))
        return
    render.start_paging()
    path = memory.notes.today_path
    if not memory.exists(path):
        raise NamedNotFound(kind="log of today", name=path, remedy="begin it with `mdmem today TEXT`")
    render.print_document(memory.show(path))
    render.print_notes(memory)


_MOST_WRONG = 3


@command("status", epilog="Example: mdmem status")
@options.read_command
def status_command(memory: Memory) -> None:
    """Print what is here, and what waits for you.

    The numbers are of uncommitted memories, proposals, stale citations, and links that are broken or may mean
    several memories; each line names the command that shows more. The last lines say what is wrong with the
    setup. `check` finds secrets, since it reads the memories.
    """
    found = memory.status()
    if render.is_set("as_json"):
        render.print_json(found)
        return
    print(f"{'vault':16} {found.root}")
    print(f"{'scope':16} {found.scope}")
    rows = [
        ("memories", found.memories, "ls -t"),
        ("not committed", found.uncommitted, "git review"),
        ("open proposals", found.proposals, "inbox list"),
        ("stale citations", found.stale, "refs --stale"),
        ("broken links", found.broken, "check"),
        ("unwritten pages", found.unwritten or None, "refs --state dangling"),
        ("ambiguous links", found.ambiguous or None, "refs --state ambiguous"),
    ]
    for name, value, more in rows:
        if value is not None:
            print(f"{name:16} {value:<8,} mdmem {more}")
    if found.passed_over:
        print(f"{'passed over':16} {sum(found.passed_over.values()):<8,} mdmem check")
    for number, wrong in enumerate(found.setup[:_MOST_WRONG]):
        print(f"{'' if number else 'setup':16} {' '.join(wrong.split())}")
    if not found.setup:
        print(f"{'setup':16} nothing is wrong")
    if (left := len(found.setup) - _MOST_WRONG) > 0:
        render.print_remarks([f"setup: and {left:,} more, with --json"])


_MOST_MONTHS = 24


@command("stats", hidden=True, epilog="Example: mdmem stats")
@options.read_command
def stats_command(memory: Memory) -> None:
    """Print how much memory there is: memories, bytes and tokens, by folder and by month.

    Tokens are estimated from the text of each memory. The month is that of the memory's own date, else of
    its file's.
    """
    render.print_found(memory.stats(), _print_statistics)


def _print_statistics(stats: MemoryStats) -> None:
    print(f"{stats.memories:,} memories, {stats.bytes:,} bytes, about {stats.tokens:,} tokens")
    _print_amounts("folder", stats.folders)
    _print_amounts("month", stats.months[-_MOST_MONTHS:])
    if (earlier := len(stats.months) - _MOST_MONTHS) > 0:
        render.print_remarks([f"{plural(earlier, 'earlier month')} left out: see --json"])
    if stats.left_out:
        render.print_remarks([f"{plural(stats.left_out, 'file')} cannot be read: see `mdmem check`"])


def _print_amounts(what: str, amounts: Sequence[Amount]) -> None:
    if not amounts:
        return
    heads = (what, "memories", "bytes", "tokens")
    rows = [(each.name, f"{each.memories:,}", f"{each.bytes:,}", f"{each.tokens:,}") for each in amounts]
    first, *widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    print()
    for name, *numbers in (heads, *rows):
        cells = (f"{number:>{width}}" for number, width in zip(numbers, widths, strict=True))
        print("  ".join((f"{name:{first}}", *cells)))
