"""The commands of the inbox: what is proposed, for a person to accept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from mdmem import EditPlan, clipped
from mdmem.cli import options, render
from mdmem.cli.main import group
from mdmem.errors import MdmemError
from mdmem.facade.paths import GROW, NEW, NEW_NOTE, WRITE, WRITE_ANY, Role

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.memory.proposal import Proposal


_MOST_SHOWN = 200  # characters of a reason in a listing


@group("inbox")
def inbox_command() -> None:
    """Propose changes, and accept or reject them; a proposal changes nothing until it is accepted.

    `mdmem inbox list` prints the id of each; its first digits are enough.
    """


@inbox_command.command(
    "propose", epilog="""Example: mdmem inbox propose append '{"path": "a.md", "text": "One."}'"""
)
@click.argument("verb")
@options.text_argument("arguments")
@click.option("--reason", default="", help="Say why.")
@click.option("--author", default="", help="Name who proposes it; else --actor.")
@options.source_option("sources", multiple=True)
@options.change_options
@options.memory_command
def inbox_propose(memory: Memory, verb: str, arguments: str, **given: Any) -> int:
    """Propose a change: a verb, and its arguments as a JSON object.

    VERB is write, new, append, prepend, replace, section, set, unset, rm, supersede, merge, or one of a kind,
    such as notes.append. If ARGUMENTS do not fit it, the error lists the names that it takes. The same change
    proposed twice is one proposal, and one that was rejected is not made again.
    """
    values = options.read_object(arguments, "ARGUMENTS")
    roles = {"write": NEW, "append": GROW, "new": Role(kind=str(values.get("template"))), "rm": WRITE_ANY}
    role = NEW_NOTE if verb.startswith("notes.") else roles.get(verb, WRITE)
    for name in ("path", "name"):
        if isinstance(values.get(name), str):
            values[name] = options.read_paths(memory).resolve(values[name], role)
    return options.make_change(memory, lambda m: m.inbox.propose(verb, values, **given))


@inbox_command.command("list", epilog="Example: mdmem inbox list --all")
@options.all_option()
@options.read_command
def inbox_list(memory: Memory, all: bool) -> int:  # noqa: A002 - click passes it by name
    """List the open proposals: id, status, verb, target, reason.

    With --all, also those that were rejected or have expired.
    """
    return render.print_list(memory.inbox.list(all=all), _format_proposal, "proposals")


def _format_proposal(found: Proposal) -> str:
    what, reason = f"{found.verb} {found.target}".strip(), clipped(found.reason, _MOST_SHOWN)
    problem = f"cannot be accepted: {found.problem}" if found.problem else ""
    return "  ".join(filter(None, (found.id, found.status, what, reason, problem)))


@inbox_command.command("show", epilog="Example: mdmem inbox show 3ef2cab7ed453782")
@click.argument("id")
@options.read_command
def inbox_show(memory: Memory, id: str) -> int:  # noqa: A002 - as above
    """Print a proposal and the diff that it would make now; the exit code is 1 when it cannot be accepted.

    Its hash goes to standard error: `accept --base HASH` accepts what was shown, or nothing.
    """
    found = memory.inbox.show(id)
    if not render.is_set("as_json"):
        render.print_remarks([f"{found.path}  {found.hash[: render.SHORT]}"])
    render.print_found(found, _print_proposal)
    return 1 if found.problem else 0


def _print_proposal(found: Proposal) -> None:
    print(_format_proposal(found))
    if found.sources:
        print(f"said in {', '.join(found.sources)}")
    render.print_hunks(found.diff)


def each_command(function: Callable[..., Callable[[str], options.Verb]]) -> Callable[..., int]:
    """Make a command of a function that returns, for an id, the change to make: one change for each id.

    A change that fails is reported, and the others are made; the exit code is that of the last failure.
    """

    @click.argument("ids", nargs=-1, required=True, metavar="ID…")
    @options.base_option
    @options.dry_run_option
    @options.json_option
    @options.memory_command
    @functools.wraps(function)
    def command(memory: Memory, /, *, ids: Sequence[str], base: str | None) -> int:
        if base is not None and len(ids) > 1:
            raise click.UsageError("a base is the hash of one proposal: give one id")
        verb_of, code = function(base=base), 0
        for each in ids:
            try:
                verb = verb_of(each)
                change = memory.prepared(verb(memory.plan)) if render.is_set("dry_run") else verb(memory)
            except MdmemError as error:
                code = error.exit_code
                render.print_json({"id": each, "error": error} if render.is_set("as_json") else None)
                render.print_error(error, as_json=False)
                continue
            if render.is_set("as_json"):
                render.print_json({"id": each, "change": change})
            else:
                render.print_diff(change) if isinstance(change, EditPlan) else render.print_applied(change)
        render.print_notes(memory)
        return code

    return command


@inbox_command.command("accept", epilog="Example: mdmem inbox accept 3ef2cab7ed453782")
@each_command
def inbox_accept(base: str | None) -> Callable[[str], options.Verb]:
    """Make the proposed change to what is there now, and remove the proposal; `undo` takes both back."""
    return lambda each: lambda m: m.inbox.accept(each, base=base)


@inbox_command.command("reject", epilog="Example: mdmem inbox reject 3ef2cab7ed453782")
@each_command
def inbox_reject(base: str | None) -> Callable[[str], options.Verb]:
    """Reject a proposal; the file stays, so that the same is not proposed again."""
    return lambda each: lambda m: m.inbox.reject(each, base=base)


@inbox_command.command("sweep", hidden=True, epilog="Example: mdmem inbox sweep")
@options.verb_command("inbox.sweep")
def inbox_sweep() -> None:
    """Remove the proposals that have expired, except those that were rejected."""
