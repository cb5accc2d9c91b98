"""The commands that keep order: what is said twice, what is weak, and what to do about it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from mdmem.cli import options, render
from mdmem.cli.main import command
from mdmem.errors import plural, show_name
from mdmem.facade.paths import NEW, READ, READ_ANY, WRITE

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.facade.questions.report import MemoryReport
    from mdmem.memory.duplicates import DuplicatePair
    from mdmem.memory.quality import MemoryQuality

_MOST_LINES = 3


@command("duplicates", epilog="Example: mdmem duplicates --in notes")
@options.path_argument(role=READ, required=False)
@options.in_option(default="")
@options.read_command
def duplicates_command(memory: Memory, path: str | None, within: str) -> int:
    """List memories that say the same, and the lines that each has alone.

    With PATH, it lists only memories that say the same as that one. Nothing is changed: `mdmem consolidate`
    proposes what to do. Memories that do not count are left out, and those with frontmatter that cannot be
    read.
    """
    found = memory.duplicates(within, path)
    for pair in found:
        render.print_found(pair, _print_pair)
    return 0 if found else render.say_nothing("duplicates", is_asked=False)


def _print_pair(pair: DuplicatePair) -> None:
    render.print_head(f"{pair.path}  {pair.other}  {'the same' if pair.is_same else f'{pair.share:.0%}'}")
    for path, lines in ((pair.path, pair.alone), (pair.other, pair.other_alone)):
        if lines:
            print(f"  only in {path}:")
            render.print_some(lines, _MOST_LINES, "    ")


@command("consolidate", epilog="Example: mdmem consolidate --in notes --limit 5")
@options.in_option(default="")
@click.option(
    "--strategy", "strategies", multiple=True, metavar="NAME", help="Use redundant, conflict or summary."
)
@options.limit_option(default=20)
@click.option("--accept", metavar="same", default="", help=options.ACCEPT)
@options.model_option
@options.verb_command("consolidate")
def consolidate_command() -> None:
    """Propose to merge memories that say the same; the proposals wait in the inbox.

    Nothing is deleted: a memory that is superseded stays as it is. With a model, memories that a newer one
    contradicts are found as well. `summary` proposes a summary of the memories in the folder of --in.
    """


@command("merge", hidden=True, epilog="Example: mdmem merge notes/old.md notes/db.md --into notes/db.md")
@options.path_argument("paths", role=WRITE, nargs=-1, required=True)
@options.path_option("--into", role=NEW, required=True, help="Write all into this memory.")
@options.verb_command("merge")
def merge_command() -> None:
    """Make one memory of several, which it supersedes; what each has alone goes under its heading."""


@command("quality", epilog="Example: mdmem quality notes --below 0.5")
@options.path_argument("paths", role=READ_ANY, nargs=-1)
@click.option(
    "--below", type=float, metavar="N", default=1.0, help="Take only what scores less, from 0 to 1."
)
@options.read_command
def quality_command(memory: Memory, paths: tuple[str, ...], below: float) -> int:
    """Judge memories in five dimensions, from 0 to 1, and say why; the worst come first.

    What is not known of a memory does not count. Weights are in `[quality]` of the config.
    """
    found = memory.quality(paths, below=below)
    for each in found:
        render.print_found(each, _print_quality)
    return 0 if found else render.say_nothing("memories", is_asked=False)


def _print_quality(found: MemoryQuality) -> None:
    render.print_head(f"{found.score:.2f}  {found.path}")
    for name, value, terms in found.dimensions:
        if value is not None:
            print(show_name(f"      {name:12} {value:.2f}  {'; '.join(term.of for term in terms)}"))


@command("report", epilog="Example: mdmem report --since 2026-01-01")
@options.since_option()
@options.read_command
def report_command(memory: Memory, since: str | None) -> None:
    """Report what is weak, as Markdown: counts by kind, the worst memories, and the command for each.

    With --since, also the counts of that day, time or revision.
    """
    render.print_found(memory.report(since=since), _print_report)


def _print_report(found: MemoryReport) -> None:
    print(f"# Report\n\n{plural(found.memories, 'memory')}, quality {found.quality:.2f} of 1\n")
    for kind, count in found.counts.items():
        print(f"- {kind}: {count:,}" + (f" (before: {found.before[kind]:,})" if found.before else ""))
    for kind, group in groupby(found.worst, key=lambda each: each.kind):
        print(f"\n## {kind.capitalize()}\n")
        for weak in group:
            print(show_name(f"- {weak.path}: {weak.problem}"), f"  `{weak.command}`", sep="\n")
