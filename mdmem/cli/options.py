"""Declare the options and arguments that several commands share."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from mdmem.cli.main import Target
from mdmem.cli.render import (
    is_set,
    print_applied,
    print_diff,
    print_notes,
    print_remarks,
    show_progress,
    start_paging,
    stop_paging,
)
from mdmem.errors import MdmemError, Usage, plural
from mdmem.facade.paths import READ, READ_FOLDER, PathReader, Role

if TYPE_CHECKING:
    from mdmem import EditPlan, Memory

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=int | None)
Verb = Callable[[Any], Any]
"""A change of a memory, or of its plan."""


def _flag_option(key: str, *declared: str, help: str) -> Callable[[F], F]:  # noqa: A002 - as click calls it
    """Declare an option that `is_set` tells of, under `key`, wherever somebody asks."""

    def keep(ctx: click.Context, _: click.Parameter, given: bool) -> None:
        ctx.meta[key] = given

    # Eager: a dry run asks no model, and `_read_model` has to know.
    return click.option(
        *declared, key, is_flag=True, is_eager=True, expose_value=False, callback=keep, help=help
    )


yes_option = _flag_option("yes", "--yes", help="Do not ask.")
force_option = _flag_option("yes", "--yes", "-f", help="Do not ask.")
verbose_option = _flag_option("verbose", "--verbose", "-v", help="List all, however many.")
json_option = _flag_option("as_json", "--json", help="Print JSON, one object a line.")
dry_run_option = _flag_option("dry_run", "--dry-run", help="Print what would change, and write nothing.")
base_option = click.option(
    "--base", metavar="HASH", help="Refuse if the memory has another hash (give 8 digits or more)."
)


def number_option(
    *declared: str,
    least: int = 0,
    default: int | None = None,
    help: str,  # noqa: A002 - as above
) -> Callable[[F], F]:
    """Declare an option that is a whole number, and says its default."""
    kind = click.IntRange(least)
    return click.option(*declared, type=kind, metavar="N", default=default, show_default=True, help=help)


def choice_option(*declared: str, choices: str, **settings: Any) -> Callable[[F], F]:
    """Declare an option that is one of some words; the first is the default."""
    words = choices.split()
    return click.option(*declared, type=click.Choice(words), default=words[0], show_default=True, **settings)


def limit_option(*declared: str, default: int | None = None) -> Callable[[F], F]:
    """Declare the option --limit, or another name of it: how many are wanted."""
    names = declared or ("--limit", "-n")
    return number_option(*names, least=1, default=default, help="Take at most N.")


def budget_option(default: int | None = None, least: int = 0) -> Callable[[F], F]:
    """Declare the option --budget: how many tokens are wanted."""
    return number_option("--budget", default=default, least=least, help="Keep to N tokens.")


def in_option(name: str = "within", role: Role = READ_FOLDER, **settings: Any) -> Callable[[F], F]:
    """Declare the option --in, which is a path of a folder, or of several folders and memories."""
    multiple = name == "paths"
    return path_option("--in", name, role=role, multiple=multiple, help="Look only here.", **settings)


def format_option(choices: str = "text json github sarif") -> Callable[[F], F]:
    """Declare the option --format: what the output is for."""
    return choice_option("--format", "form", choices=choices, help="Use this form.")


def since_option(default: str | None = None) -> Callable[[F], F]:
    """Declare the option --since: the first day or time."""
    return click.option(
        "--since", metavar="TIME", default=default, help="Take only what is from this time on."
    )


def before_option(default: str | None = None) -> Callable[[F], F]:
    """Declare the option --before: the first day or time that is too late."""
    return click.option(
        "--before", metavar="TIME", default=default, help="Take only what is from before this time."
    )


def all_option(name: str = "all") -> Callable[[F], F]:
    """Declare the option --all; `name` is that of the argument."""
    return click.option("--all", name, is_flag=True, help="Take all of them, not one or some.")


from_option = click.option("--from", "owner", metavar="USER", help="Take what USER shares with you.")
regex_option = click.option("--regex", is_flag=True, help="Read the pattern as a regular expression.")


def source_option(name: str, **settings: Any) -> Callable[[F], F]:
    """Declare the option --source: what a memory rests on."""
    about = "Name where it was said, such as sessions/t1#7."
    return click.option("--source", name, metavar="ID", help=about, **settings)


case_option = choice_option("--case", choices="ignore smart exact", help="Tell whether case counts.")
session_option = click.option("--session", metavar="KEY", help="Name the session that it belongs to.")
ACCEPT = "Accept at once: with --pin, code that has changed; `same`, what memories repeat."
_OF_THREAD = "Use the memory of this thread."


def for_option(name: str, **settings: Any) -> Callable[[F], F]:
    """Declare the option --for: a file as the shell reads it where one is there, else from the workspace."""

    def find(file: str) -> str:
        return os.path.abspath(file) if os.path.lexists(file) else file

    about = "Take only rules for this file."
    return click.option("--for", name, metavar="FILE", type=find, help=about, **settings)


thread_option = click.option("--thread", metavar="ID", help=_OF_THREAD)


def setup_options(command: F) -> F:
    """Declare the options of changes to settings of other programs: --json, --dry-run and --yes."""
    return yes_option(dry_run_option(json_option(command)))


def change_options(command: F) -> F:
    """Declare the options of every change: --json, --dry-run and --verbose."""
    return verbose_option(dry_run_option(json_option(command)))


def model_option(command: F) -> F:
    """Declare the option --model, which becomes the argument `generator`."""
    help_text = "Ask this program, as `claude -p`; none: no model (default: MDMEM_MODEL or your config)."
    option = click.option("--model", "generator", metavar="COMMAND", callback=_read_model, help=help_text)
    return option(command)


def _read_model(ctx: click.Context, _: click.Parameter, model: str | None) -> Any:
    import mdmem

    # A dry run costs nothing: rules decide.
    return None if ctx.resilient_parsing or is_set("dry_run") else mdmem.configured(model)


class Spelled(str):
    """A path as it was typed, and what it may name."""

    __slots__ = ("role",)
    role: Role

    def __new__(cls, text: str, role: Role) -> Self:
        """Keep a text with its role."""
        spelled = super().__new__(cls, text)
        spelled.role = role
        return spelled


class BegunThread(str):
    """The id of a thread that is there, or the beginning of one, as it was typed."""

    __slots__ = ()


def read_paths(memory: Memory) -> PathReader:
    """Return what reads the paths that are typed, and prints what one is taken for."""
    return PathReader(memory, lambda note: print_remarks([f"note: {note}"]))


def resolve_paths(memory: Memory, arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace typed paths by those of the namespace, or of an `owner`'s layer; see `PathReader.resolve`."""
    paths, owner = read_paths(memory), arguments.pop("owner", None)
    layer = "" if owner is None else memory.shared.name(owner)

    def path_of(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(path_of, value))
        if isinstance(value, BegunThread):
            return memory.complete_thread(str(value))
        if not isinstance(value, Spelled) or layer:
            return f"{layer}{value}" if isinstance(value, Spelled) else value
        return (paths.find_checked if value.role.outside else paths.resolve)(str(value), value.role)

    if layer and "within" not in arguments and not arguments["paths"]:
        arguments["paths"] = (layer,)
    return {name: path_of(value) for name, value in arguments.items()}


def path_argument(name: str = "path", role: Role = READ, **settings: Any) -> Callable[[F], F]:
    """Declare an argument that is a path of a memory, or several; `resolve_paths` looks them up."""
    return click.argument(name, **_of_paths(role), **settings)


def path_option(*declared: str, role: Role = READ_FOLDER, **settings: Any) -> Callable[[F], F]:
    """Declare an option that is a path of a folder or a memory, as `path_argument`."""
    return click.option(*declared, **_of_paths(role), **settings)


def _of_paths(role: Role) -> dict[str, Any]:
    """Return the settings that keep the role of a path with it, and let the shell complete it."""

    def spell(_ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(Spelled(each, role) for each in value)
        return value if value is None else Spelled(value, role)

    return {"callback": spell, "shell_complete": functools.partial(_complete_path, role)}


def _complete_path(role: Role, ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from mdmem import visible

    try:
        paths = read_paths(Target(**ctx.find_root().params).open()).complete(incomplete, role)
        # The shell shows what it will put in: never a name that looks like another one.
        return [path for path in paths if visible(path) == path]
    except (MdmemError, OSError):
        return []


def thread_argument(name: str = "key", **settings: Any) -> Callable[[F], F]:
    """Declare an argument that is a session which is there; the beginning of its key is enough."""
    return click.argument(name, callback=_begin_thread, **settings)


def _begin_thread(_ctx: click.Context, _: click.Parameter, value: str | None) -> BegunThread | None:
    return value if value is None else BegunThread(value)


begun_thread_option = click.option("--thread", metavar="ID", callback=_begin_thread, help=_OF_THREAD)


def text_argument(name: str = "text") -> Callable[[F], F]:
    """Declare an argument that is a text; `-`, or no argument, reads standard input."""
    return click.argument(name, default="-", callback=read_text)


def read_text(_ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the text of an argument; for `-`, what standard input gives.

    Nothing to read is refused: most often a program before the pipe has failed.
    """
    if value != "-":
        return value
    if sys.stdin.isatty():
        print(f"reading {parameter.name} from standard input; end with ^D", file=sys.stderr)
    data = sys.stdin.buffer.read()
    if not data.strip():
        name = parameter.human_readable_name
        raise click.UsageError(f"standard input is empty, and there is no other text: give {name}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not UTF-8 (byte {error.start})") from None


def read_pairs(_ctx: click.Context, _: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """Read arguments of the form KEY=VALUE as a mapping."""
    values = {}
    for pair in pairs:
        key, equals, values[key] = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{pair!r} is not KEY=VALUE")
    return values


variable_option = click.option(
    "--var", "variables", multiple=True, metavar="KEY=VALUE", callback=read_pairs, help="Set a variable."
)


def read_json(text: str | bytes, name: str = "VALUE") -> Any:
    """Read a text as JSON; `name` is what an error calls it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{name} is not JSON: {error}") from None


def read_object(text: str | bytes, name: str) -> dict[str, Any]:
    """Read a text as a JSON object, as `read_json`."""
    value = read_json(text, name)
    if not isinstance(value, dict):
        raise click.UsageError(f"{name} is not a JSON object")
    return value


where_option = click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Take only memories that meet this condition: `mdmem help conditions`.",
)


def type_option(*letters: str) -> Callable[[F], F]:
    """Declare the option --type: the types of memories."""
    about = "Take only memories of this type; repeatable."
    return click.option("--type", *letters, "types", multiple=True, metavar="TYPE", help=about)


globs_option = click.option(
    "--glob", "-g", "globs", multiple=True, help="Take what matches; with !GLOB, what does not."
)


def kind_option(name: str, **settings: Any) -> Callable[[F], F]:
    """Declare the option --kind: of references, or of memories."""
    return click.option("--kind", name, metavar="KIND", help="Name the kind.", **settings)


fix_option = click.option("--fix", is_flag=True, help="Fix what can be fixed without asking.")


def memory_command(function: Callable[..., C]) -> Callable[..., C]:
    """Make a command of a function that takes the opened memory first, and its paths as they are there."""

    @click.pass_obj
    @functools.wraps(function)
    def command(target: Target, /, **arguments: Any) -> C:
        memory = open_memory(target)
        return function(memory, **resolve_paths(memory, arguments))

    return command


def change_command(function: Callable[..., Verb]) -> Callable[..., int]:
    """Make a command of a function that returns the change to make: add its options, make it, and print.

    The function returns a call of one verb, which is made on the memory, or with --dry-run on its plan.
    """

    @change_options
    @memory_command
    @functools.wraps(function)
    def command(memory: Memory, /, **arguments: Any) -> int:
        return make_change(memory, function(**arguments))

    return command


def verb_command(name: str) -> Callable[[Callable[[], None]], Callable[..., int]]:
    """Make a command that gives its arguments to the verb of this name, such as `notes.append`."""

    def declare(function: Callable[[], None]) -> Callable[..., int]:
        def change(**given: Any) -> Verb:
            return lambda of: attrgetter(name)(of)(**given)

        return change_command(functools.wraps(function)(change))

    return declare


def open_memory(target: Target) -> Memory:
    """Open the memories that the command line names; show on a terminal how far long work is."""
    memory = target.open()
    memory.progress = show_progress()
    return memory


def make_change(memory: Memory, verb: Verb) -> int:
    """Make a change and print it, or with --dry-run what it would do; return 1 if an import is not whole."""
    plan: EditPlan
    if is_set("dry_run"):
        print_diff(plan := memory.prepared(verb(memory.plan)))
    else:
        print_applied(applied := verb(memory))
        plan = applied.plan
    print_notes(memory)
    return int(bool(plan.outcomes and plan.left_out))


def may_ask() -> bool:
    """Tell whether somebody is there to be asked, who has not said --yes."""
    return not is_set("yes") and sys.stdin.isatty() and sys.stdout.isatty()


def is_confirmed(plan: EditPlan, verb: str) -> bool:
    """Ask whether a plan may be applied."""
    if click.confirm(f"{verb} {plural(len(plan.changes), 'memory')}?"):
        return True
    print("nothing was changed", file=sys.stderr)
    return False


def is_purge_confirmed(what: str, by: str = "that") -> bool:
    """Ask whether something may go for good; `by` names what was asked for.

    Raises:
        Usage: nobody can be asked.
    """
    if is_set("yes"):
        return True
    if not may_ask():
        problem = f"nothing was changed: {by} is for good, and nobody can be asked"
        raise Usage(problem=problem, remedy="say --yes")
    stop_paging()
    if click.confirm(f"remove for good {what}?"):
        return True
    print("nothing was changed", file=sys.stderr)
    return False


def read_command(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Make a command of a function that takes the opened memory first; add --json and a pager."""

    @json_option
    @memory_command
    @functools.wraps(function)
    def command(memory: Memory, /, **arguments: Any) -> int | None:
        start_paging()
        code = function(memory, **arguments)
        print_notes(memory)
        return code

    return command
