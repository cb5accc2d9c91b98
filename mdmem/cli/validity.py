"""The commands that say what counts, what took its place, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli import options, render
from mdmem.cli.main import command
from mdmem.facade.paths import READ, READ_OTHER, WRITE

if TYPE_CHECKING:
    from mdmem import Memory
    from mdmem.facade.questions.why import Why

_at_option = click.option("--at", metavar="WHEN", help="Let it end at this day or time (default: now).")


@command("supersede", epilog="Example: mdmem supersede notes/old.md notes/db.md --at 2026-05-01")
@options.path_argument("old", role=WRITE)
@options.path_argument("by", role=READ)
@_at_option
@options.verb_command("supersede")
def supersede_command() -> None:
    """Let memory BY take the place of OLD, which search and context leave out from then on."""


@command("contradict", epilog="Example: mdmem contradict notes/old.md notes/db.md")
@options.path_argument(role=WRITE)
@options.path_argument("by", role=READ)
@_at_option
@options.verb_command("contradict")
def contradict_command() -> None:
    """Note that memory BY speaks against PATH, which search and context leave out from then on."""


@command("reinstate", epilog="Example: mdmem reinstate notes/old.md")
@options.path_argument(role=WRITE)
@options.verb_command("reinstate")
def reinstate_command() -> None:
    """Let a memory count again: remove its successor, its contradictions and an end that has passed."""


@command("confirm", epilog="Example: mdmem confirm notes/db.md --source sessions/t1#7")
@options.path_argument(role=WRITE)
@options.source_option("source")
@options.verb_command("confirm")
def confirm_command() -> None:
    """Note that a memory was found right today; --source adds a source to it."""


@command("revoke", hidden=True, epilog="Example: mdmem revoke sessions/t1#7")
@options.path_argument("source", role=READ_OTHER)
@options.verb_command("revoke")
def revoke_command() -> None:
    """Take a source out of memories that have others, and propose to delete those that have none.

    SOURCE is a message, a session, a URL, or the path of a memory, as memories name it. What is proposed
    waits in the inbox.
    """


@command("prune", hidden=True, epilog="Example: mdmem prune --dry-run")
@options.verb_command("prune")
def prune_command() -> None:
    """Propose in the inbox to delete memories that are hardly sure and that nothing links to."""


@command("why", epilog="Example: mdmem why notes/db.md")
@options.path_argument(role=READ)
@options.read_command
def why_command(memory: Memory, path: str) -> int:
    """Explain how sure a memory is, what it rests on, what took its place, and what speaks against it."""
    return render.print_found(memory.why(path), _print_why)


def _print_why(why: Why) -> None:
    render.print_head(f"{why.path}  {why.state}")
    if why.confidence is None:
        print("confidence: it names no type of source")
    else:
        print(f"confidence: {why.confidence:.2f}, today {why.today:.2f}")
    for term in why.terms:
        print(f"  {term.value:+.2f}  {term.of}")
    commit, uses = why.commit, why.uses
    rows = {
        "sources": why.sources,
        "superseded by": (why.successor,) if why.successor else (),
        "supersedes": why.predecessors,
        "derived from": why.ancestors,
        "contradicted by": why.contradicted_by,
        "last commit": (f"{commit.commit[: render.SHORT]} {commit.date[:10]} {commit.subject}",)
        if commit
        else (),
        "last use": (f"{uses.time}, of {uses.times}",) if uses and uses.times else (),
    }
    for name, values in rows.items():
        if values:
            print(f"{name}: {', '.join(values)}")
    for bullet in why.bullets:
        print(f"line {bullet.line}: {bullet.text} ({' '.join(bullet.sources)})")


@command("past", hidden=True, epilog="Example: mdmem past 2999-12-31")
@click.argument("when")
@options.read_command
def past_command(memory: Memory, when: str) -> None:
    """Copy the memories as they were at WHEN, a day, a time or a revision, and print the folder.

    It is a vault that refuses changes: `mdmem --vault FOLDER search …` answers as of then. What is not
    certain is named on standard error.
    """
    past = memory.past(when).origin
    if past is not None:
        found = {"folder": past.root, "unsure": dict(past.unsure)}
        render.print_found(found, lambda found: print(found["folder"]))
        render.print_remarks(f"{path}: {certainty}" for path, certainty in past.unsure)
