"""The commands of observations: what stretches of sessions left behind."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli import options, render
from mdmem.cli.main import command, group
from mdmem.cli.serve import end_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem import Program
    from mdmem.facade.memory import Memory
    from mdmem.observations.observations import Observation
    from mdmem.observations.observer import ObservedSession


@command("observe", epilog="Example: mdmem observe --session t1")
@click.option("--session", metavar="KEY", help="Observe this session.")
@click.option("--all", is_flag=True, help="Observe every session instead of one.")
@click.option("--watch", is_flag=True, help="Go on, as they grow, until it is stopped.")
@options.model_option
@options.read_command
def observe_command(memory: Memory, watch: bool, **given: Any) -> int:
    """Note what sessions came to since the last time, and let a model reflect on that, where it is due.

    When it is, the config says under [observation]. Each memory that is made is printed. A session that
    another process observes is left to that one. The exit code is 1 where anything went wrong.
    """
    if watch:
        render.stop_paging()
        signal.signal(signal.SIGTERM, end_program)
    code = 0
    for each in memory.observe(watch=watch, **given):
        code = 1 if each.problems else code
        render.print_found(each, _print_observed)
        sys.stdout.flush()
    return code


def _print_observed(each: ObservedSession) -> None:
    for path in each.made:
        print(f"created {path}")
    if each.compacted:
        print(f"{each.compacted:,} stand for their messages in a prompt of {each.session}")
    busy = ["another process observes it"] if each.is_busy else []
    render.print_remarks(f"{each.session}: {problem}" for problem in (*busy, *each.problems))


@group("observations")
def observations_command() -> None:
    """Print what stretches of sessions left behind, and reflections on that."""


@observations_command.command("reflect", epilog="Example: mdmem observations reflect t1")
@click.argument("session", metavar="KEY")
@click.option("--meta", is_flag=True, help="Reflect on reflections instead of observations.")
@options.model_option
@options.read_command
def observations_reflect(memory: Memory, session: str, meta: bool, generator: Program | None) -> int:
    """Let a model sum up what no reflection covers; the exit code is 1 when that is nothing."""
    made = memory.observations.reflect(session, meta=meta, generator=generator)
    return render.print_found([made] if made else [], _print_observations)


@observations_command.command("list", epilog="Example: mdmem observations list t1 --recent 5")
@click.argument("session", metavar="KEY")
@options.number_option("--recent", help="Print only the newest N.")
@options.read_command
def observations_list(memory: Memory, session: str, recent: int | None) -> None:
    """Print the observations of a session, the oldest first."""
    render.print_found(memory.observations.list(session, recent), _print_observations)


@observations_command.command("expand", epilog="Example: mdmem observations expand t1/0123abcd-1-14")
@click.argument("id_", metavar="ID")
@options.token_option
@options.read_command
def observations_expand(memory: Memory, id_: str, budget: int) -> None:
    """Print the messages that an observation is about, also those that left the history."""
    render.print_found(memory.observations.expand(id_, budget), _print_expanded)


def _print_expanded(found: Any) -> None:
    render.print_messages(found.messages)
    render.print_left_out(found.left_out)


@observations_command.command("delete", epilog="Example: mdmem observations delete --session t1")
@click.argument("ids", metavar="ID…", nargs=-1)
@click.option("--session", metavar="KEY", help="Delete all of this session.")
@options.change_command
def observations_delete(ids: Sequence[str], session: str | None) -> options.Verb:
    """Remove observations and reflections; what they are about stays, and is not observed again."""
    return lambda m: m.observations.delete(ids, session)


def _print_observations(found: Sequence[Observation]) -> None:
    for each in found:
        kind = f"reflection {each.generation}" if each.generation else "observation"
        render.print_head(f"{each.path}  {kind} of #{each.first} to #{each.last}, by {each.by}")
        print(each.text or each.problem, end="\n\n")
