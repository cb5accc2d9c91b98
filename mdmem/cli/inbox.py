"""The commands of the inbox: changes that somebody proposes, for people to accept or reject."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.main import Target, group
from mdmem.cli.options import (
    Verb,
    base_option,
    change_command,
    dry_run_option,
    json_option,
    read_command,
    text_argument,
)
from mdmem.cli.render import (
    print_applied,
    print_coloured,
    print_diff,
    print_each,
    print_error,
    print_json,
    print_notes,
)
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mdmem.memory.memory import Memory
    from mdmem.memory.proposal import Proposal


@group("inbox")
def inbox_command() -> None:
    """The inbox: changes that somebody proposes, which nothing makes until they are accepted."""


@inbox_command.command(
    "propose",
    epilog="""Example: mdmem inbox propose append '{"path": "notes/db.md", "text": "One file."}'""",
)
@click.argument("verb")
@text_argument("arguments")
@click.option("--reason", default="", help="Why it is proposed.")
@click.option("--author", default="", help="Who proposes it; else --actor.")
@click.option("--source", "sources", multiple=True, metavar="SOURCE", help="Where it was said; repeatable.")
@change_command
def inbox_propose(arguments: str, **given: Any) -> Verb:
    """Propose a change: a verb, and its arguments as a JSON object.

    The same change proposed twice is one proposal, and one that was rejected is not made again.
    """
    try:
        members = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"the arguments are not JSON: {error}") from None
    return lambda m: m.inbox.propose(arguments=members, **given)


@inbox_command.command("list", epilog="Example: mdmem inbox list --all")
@click.option("--all", is_flag=True, help="Also those that were rejected or have lapsed.")
@read_command
def inbox_list(memory: Memory, all: bool, as_json: bool) -> int:  # noqa: A002 - click passes it by name
    """List the proposals that wait: id, status, verb, target, reason; 1 when there are none."""
    found = memory.inbox.list(all=all)
    print_each(found, _line, as_json=as_json)
    return 0 if found else 1


def _line(found: Proposal) -> str:
    status = found.status if not found.problem else "broken"
    what = f"{found.verb} {found.target}".strip() if not found.problem else found.problem
    return "  ".join(filter(None, (found.id, status, what, found.reason)))


@inbox_command.command("show", epilog="Example: mdmem inbox show 3ef2cab7ed453782")
@click.argument("id")
@read_command
def inbox_show(memory: Memory, id: str, as_json: bool) -> int:  # noqa: A002 - as above
    """Print a proposal, and the diff of what it would change now; the exit code is 1 when it cannot.

    Its hash goes to standard error: with it as --base, what was shown is accepted, or nothing.
    """
    found = memory.inbox.show(id)
    if as_json:
        print_json(found)
        return 1 if found.problem else 0
    print(f"{found.path}  {found.hash}", file=sys.stderr, flush=True)
    print(_line(found))
    if found.sources:
        print(f"said in {', '.join(found.sources)}")
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in found.diff.splitlines(keepends=True):
        print_coloured(line, colours.get(line[:1]))
    return 1 if found.problem else 0


def each_command(function: Callable[..., Callable[[str], Verb]]) -> Callable[..., int]:
    """Make a command of a function that returns, for an id, the change to make: one change for each id.

    What fails is told, and the others are made all the same; the exit code is that of the last failure.
    """

    @click.argument("ids", nargs=-1, required=True, metavar="ID…")
    @base_option
    @dry_run_option
    @json_option
    @click.pass_obj
    def command(
        target: Target, /, *, ids: Sequence[str], base: str | None, dry_run: bool, as_json: bool
    ) -> int:
        if base is not None and len(ids) > 1:
            raise click.UsageError("a base is the hash of one proposal: give one id")
        memory, verb_of, code, done = target.open(), function(base=base), 0, []
        for each in ids:
            try:
                if dry_run:
                    plan = memory.prepared(verb_of(each)(memory.plan))
                    done.append({"id": each, "plan": plan, "diff": plan.diff()})
                    None if as_json else print_diff(plan.diff(), plan, as_json=False)
                else:
                    applied = verb_of(each)(memory)
                    done.append({"id": each, "change": applied})
                    None if as_json else print_applied(applied, as_json=False)
            except MdmemError as error:
                code = error.exit_code
                done.append({"id": each, "error": error})
                print_error(error, as_json=False)
        if as_json:
            print_json(done)
        print_notes(memory)
        return code

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


@inbox_command.command("accept", epilog="Example: mdmem inbox accept 3ef2cab7ed453782")
@each_command
def inbox_accept(base: str | None) -> Callable[[str], Verb]:
    """Do what is proposed, to what is there now, and remove the proposal; `undo` takes both back."""
    return lambda each: lambda m: m.inbox.accept(each, base=base)


@inbox_command.command("reject", epilog="Example: mdmem inbox reject 3ef2cab7ed453782")
@each_command
def inbox_reject(base: str | None) -> Callable[[str], Verb]:
    """Say no: the file stays, so that the same is not proposed again."""
    return lambda each: lambda m: m.inbox.reject(each, base=base)


@inbox_command.command("sweep", epilog="Example: mdmem inbox sweep")
@change_command
def inbox_sweep() -> Verb:
    """Remove the proposals that have lapsed, except those that were rejected."""
    return lambda m: m.inbox.sweep()
