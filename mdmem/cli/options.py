"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mdmem.cli.main import NO_PAGER, Target
from mdmem.cli.paths import READ, READ_FOLDER, Role, Spelled, completions, resolved
from mdmem.cli.render import Terminal, go_on, memories, print_applied, print_diff, print_notes, show_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem import EditPlan, Memory

_EMPTY = "mdmem.empty"

F = TypeVar("F", bound=Callable[..., Any])
Verb = Callable[[Any], Any]
"""A change of a memory, or of its plan."""


def json_option(command: F) -> F:
    """The options --json and --raw."""
    help_text = "On a terminal, too, print control characters as they are."
    raw = click.option(
        "--raw", is_flag=True, is_eager=True, expose_value=False, callback=_print_raw, help=help_text
    )
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, an object a line.")(raw(command))


def _print_raw(_ctx: click.Context, _: click.Parameter, raw: bool) -> None:
    if isinstance(sys.stdout, Terminal):
        sys.stdout.exact = raw


yes_option = click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
verbose_option = click.option("--verbose", "-v", is_flag=True, help="List all, however many.")
# Eager, since a dry run asks no model: `_read_model` has to know.
dry_run_option = click.option(
    "--dry-run", is_flag=True, is_eager=True, help="Print the diff and write nothing."
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
)


def base_option(command: F) -> F:
    """The option --base."""
    help_text = "The hash that you saw (8 digits or more): refuse if the memory has changed since."
    return click.option("--base", metavar="HASH", help=help_text)(command)


def model_option(command: F) -> F:
    """The option --model, which becomes the argument `generator`."""
    help_text = "Ask this: none, or a program as `claude -p`; else what MDMEM_MODEL or your config names."
    return click.option("--model", "generator", metavar="COMMAND", callback=_read_model, help=help_text)(
        command
    )


def _read_model(ctx: click.Context, _: click.Parameter, model: str | None) -> Any:
    import mdmem

    program = None if ctx.resilient_parsing else mdmem.configured(model)
    return _unasked(program.__name__) if program and ctx.params.get("dry_run") else program


def _unasked(name: str) -> Any:
    """What stands for a model in a dry run, which costs nothing: rules decide, and the reason is told."""

    def ask(prompt: str, *_: float) -> str:
        from mdmem import estimate
        from mdmem.errors import Usage

        tokens = f"its first prompt has about {estimate(prompt):,} tokens"
        raise Usage(problem=f"a dry run does not ask {name}, and {tokens}")

    ask.__name__ = name
    return ask


def path_argument(name: str = "path", role: Role = READ, **settings: Any) -> Callable[[F], F]:
    """An argument that is the path of a memory, or several: what it names is looked up with `resolved`."""
    return click.argument(name, **_of_paths(role), **settings)


def path_option(*declared: str, role: Role = READ_FOLDER, **settings: Any) -> Callable[[F], F]:
    """An option that is the path of a folder, or of a memory; as `path_argument`."""
    return click.option(*declared, **_of_paths(role), **settings)


def _of_paths(role: Role) -> dict[str, Any]:
    """What keeps the role of a path with it, and what the shell completes it with."""

    def spelled(_ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        return (
            tuple(map(spell, value)) if isinstance(value, tuple) else value if value is None else spell(value)
        )

    def spell(text: str) -> Spelled:
        return Spelled(text, role)

    return {"callback": spelled, "shell_complete": functools.partial(_complete_path, role)}


def _complete_path(role: Role, ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from mdmem import visible
    from mdmem.errors import MdmemError

    try:
        paths = completions(Target(**ctx.find_root().params).open(), incomplete, role)
        # The shell shows what it will put in: never a name that looks like another one.
        return [path for path in paths if visible(path) == path]
    except (MdmemError, OSError):
        return []


def text_argument(name: str = "text", *, may_be_empty: bool = False) -> Callable[[F], F]:
    """An argument that is a text; `-`, or leaving it away, reads standard input.

    An empty standard input is refused: most often a program before the pipe has failed. Where an empty text
    means something, the option --empty allows it.
    """
    argument = click.argument(name, default="-", callback=read_text)
    if not may_be_empty:
        return argument
    help_text = f"Without {name.upper()}, standard input may be empty."
    option = click.option(
        "--empty", is_flag=True, is_eager=True, expose_value=False, callback=_allow_empty, help=help_text
    )
    return lambda command: argument(option(command))


def _allow_empty(ctx: click.Context, _: click.Parameter, empty: bool) -> None:
    ctx.meta[_EMPTY] = empty


def read_text(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """The text of an argument; of `-` what standard input gives."""
    if value != "-":
        return value
    if sys.stdin.isatty():
        print(f"reading {parameter.name} from standard input; end with ^D", file=sys.stderr)
    data = sys.stdin.buffer.read()
    if not data.strip() and not ctx.meta.get(_EMPTY):
        instead = f"give {parameter.human_readable_name}"
        if _EMPTY in ctx.meta:
            instead += ", or say --empty"
        raise click.UsageError(f"standard input is empty, and there is no other text: {instead}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not UTF-8 (byte {error.start})") from None


def read_pairs(pairs: Iterable[str], form: str, read: Callable[[str, str], Any]) -> dict[str, Any]:
    """Arguments such as NAME=VALUE as a mapping."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{pair!r} is not {form}")
        values[name] = read(name, value)
    return values


def variable_options(command: F) -> F:
    """The options --var and --vars."""
    command = click.option(
        "--vars", "from_stdin", is_flag=True, help="Read a JSON object from standard input."
    )(command)
    return click.option("--var", "pairs", multiple=True, metavar="KEY=VALUE", help="A variable; repeatable.")(
        command
    )


def read_variables(pairs: tuple[str, ...], *, from_stdin: bool) -> dict[str, Any]:
    """The variables that the options --var and --vars give."""
    variables: dict[str, Any] = {}
    if from_stdin:
        go_on()  # somebody may type them
        try:
            import json

            variables = json.loads(sys.stdin.buffer.read())
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"standard input is not JSON: {error}") from None
        if not isinstance(variables, dict):
            raise click.UsageError("standard input is not a JSON object")
    return {**variables, **read_pairs(pairs, "KEY=VALUE", lambda _, value: value)}


def read_value(_name: str, text: str) -> Any:
    """The value of an argument; see `mdmem.read_value`."""
    import mdmem
    from mdmem.errors import Usage

    try:
        return mdmem.read_value(text)
    except Usage as error:
        raise click.UsageError(error.message) from None


def change_command(function: Callable[..., Verb]) -> Callable[..., None]:
    """Make a command of a function that returns the change to make: adds its options, and prints.

    The function returns a call of one verb, which is made on the memory, or with --dry-run on its plan.
    """

    @verbose_option
    @dry_run_option
    @json_option
    @click.pass_obj
    @functools.wraps(function)
    def command(target: Target, /, **arguments: Any) -> None:
        how = {name: arguments.pop(name) for name in ("dry_run", "as_json", "verbose")}
        memory = opened(target)
        make_change(memory, function(**resolved(memory, arguments)), **how)

    return command


def opened(target: Target) -> Memory:
    """The memories that the command line names; what takes a while with them is shown on a terminal."""
    memory = target.open()
    memory.progress = show_status()
    return memory


def make_change(memory: Memory, verb: Verb, *, dry_run: bool, as_json: bool, verbose: bool = False) -> None:
    """Make a change and print what it did, or with `dry_run` only what it would do."""
    if dry_run:
        plan = memory.prepared(verb(memory.plan))
        print_diff(plan.diff(), plan, as_json=as_json)
    else:
        print_applied(verb(memory), as_json=as_json, verbose=verbose)
    print_notes(memory)


def may_ask(*, yes: bool) -> bool:
    """Whether somebody is there to be asked, who has not said --yes."""
    return not yes and sys.stdin.isatty() and sys.stdout.isatty()


def is_confirmed(plan: EditPlan, verb: str) -> bool:
    """Whether a plan may be applied, as who is asked says."""
    if click.confirm(f"{verb} {memories(len(plan.changes))}?"):
        show_status()
        return True
    print("nothing was changed", file=sys.stderr)
    return False


def page() -> None:
    """Let the user's pager show what is printed from now on, where a terminal has too few lines for it."""
    if isinstance(sys.stdout, Terminal) and not click.get_current_context().meta[NO_PAGER]:
        from mdmem.cli.programs import start_paging

        start_paging()


def read_command(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Make a command of a function that takes the opened memory first; adds --json and a pager."""

    @json_option
    @click.pass_obj
    @functools.wraps(function)
    def command(target: Target, /, **arguments: Any) -> int | None:
        page()
        memory = opened(target)
        code = function(memory, **resolved(memory, arguments))
        print_notes(memory)
        return code

    return command
