"""The program `mdmem`: its command tree, what a command line names, and what becomes of an error."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from mdmem import __version__

if TYPE_CHECKING:
    from mdmem import Scope
    from mdmem.facade.memory import Memory


class Target(NamedTuple):
    """The memories that the command line names: the vault, the scope, and who asks."""

    vault: str | None
    user: str | None
    project: str | None
    resource: str | None
    shared: bool
    actor: str

    @property
    def scope(self) -> Scope:
        """The scope that the options name."""
        import mdmem
        from mdmem.errors import Usage

        kind, slash, identifier = (self.resource or "").partition("/")
        if self.resource and not (kind and slash and identifier):
            raise Usage(problem=f"--resource is TYPE/ID, not {self.resource!r}")
        resource = {"resource_type": kind or None, "resource_id": identifier or None}
        return mdmem.Scope(user=self.user, project=self.project, shared=self.shared, **resource)

    @property
    def binding(self) -> tuple[str | None, Scope, str]:
        """The vault, the scope and the actor that the options name."""
        return self.vault, self.scope, self.actor

    def open(self) -> Memory:
        """Open the memories that the options name."""
        import mdmem

        return mdmem.open(self.vault, self.scope, actor=self.actor)


# `- one more`, or a frontmatter with its lines; not `--title=Use SQLite`.
_NO_OPTION = re.compile(r"-[^\s=]*\s|-{3,}\Z")
_MARK = "\0"  # no argument of a program holds one


class Command(click.Command):
    """A command that reads `- one more` as a text, and only what can be an option as one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        texts = {_MARK + text: text for text in args if _NO_OPTION.match(text)}
        try:
            rest = super().parse_args(ctx, [_MARK + text if _MARK + text in texts else text for text in args])
        except click.NoSuchOption as error:
            hint = _import_module("help").find_hint(ctx, error.option_name)
            if not hint:
                raise
            raise click.UsageError(f"{error.option_name} is not here: {hint}", ctx) from None

        def text_of(value: Any) -> Any:
            return tuple(map(text_of, value)) if isinstance(value, tuple) else texts.get(value, value)

        if texts:
            ctx.params = {name: text_of(value) for name, value in ctx.params.items()}
        return rest


def _import_module(name: str) -> Any:
    """Import a module of commands; those import this one."""
    return importlib.import_module(f"mdmem.cli.{name}")


# Names that commands had before; no help lists them.
_OLDER_NAMES = {
    "preferences delete": "rm",
    "preferences get": "show",
    "rules add": "new",
    "sessions add": "append",
    "sessions delete": "rm",
    "working get": "show",
    "working update": "set",
}


class Group(click.Group):
    """A group of such commands, which lists each with a whole sentence, and suggests names."""

    command_class = Command

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, or of one that it had before."""
        return super().get_command(ctx, _OLDER_NAMES.get(f"{self.name} {cmd_name}", cmd_name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options that stand before the command."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = _import_module("help").find_place_behind(self, ctx, error.option_name, given)
            if not hint:
                raise
            raise click.UsageError(f"{error.option_name} is not here: {hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        _import_module("help").write_section("commands", self.list_commands(ctx), self, ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named."""
        name = args[0]
        if not ctx.resilient_parsing and name[:1] != "-" and self.get_command(ctx, name) is None:
            problem, names = f"No such command {name!r}.", self.list_commands(ctx)
            raise _import_module("help").unknown_name(problem, name, names, ctx)
        return super().resolve_command(ctx, args)


command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)


# Which commands each module holds.
_MODULES = {
    "agents": "hook install project tool uninstall",
    "edit": "append delete-lines edit insert mv prepend replace rm section set unset write"
    " history redo restore undo share unshare",
    "review": "git",  # it adds its command to those of git
    "inbox": "inbox",
    "help": "help",
    "find": "access check context doctor ls show",
    "kinds": "notes preferences remember rules working",
    "main": "completion",
    "make": "import init new schema template",
    "order": "consolidate duplicates merge quality report",
    "references": "backlinks graph refs tags",
    "results": "results",
    "search": "grep search",
    "serve": "index lsp mcp watch web",
    "sessions": "sessions",
    "team": "store token",
    "validity": "confirm contradict past prune reinstate revoke supersede why",
    "views": "diff stats status today",
}
_COMMANDS = {name: module for module, names in _MODULES.items() for name in names.split()}


class LazyGroup(Group):
    """A group that knows the names of its commands, and imports a module when one of its commands runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; --help is answered while that is done, and has to know of --all."""
        ctx.meta["all"] = "--all" in args
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what comes first, or with --all everything."""
        module = _import_module("help")
        write = module.write_all if ctx.meta.get("all") else module.write_first_screen
        write(self, ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Return the command of this name."""
        if cmd_name not in _COMMANDS:
            return None
        name = f"{cmd_name.replace('-', '_')}_command"
        return getattr(_import_module(_COMMANDS[cmd_name]), name)  # type: ignore[no-any-return]


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", message="mdmem %(version)s")
@click.option(
    "--vault", metavar="DIR", envvar="MDMEM_VAULT", help="Use this vault (or URL), not the nearest."
)
@click.option("--user", metavar="ID", envvar="MDMEM_USER", help="Use the memory of this user.")
@click.option("--project", metavar="ID", envvar="MDMEM_PROJECT", help="Use the memory about this project.")
@click.option("--resource", metavar="TYPE/ID", help="Use the memory about this resource.")
@click.option("--shared", is_flag=True, help="Use the memory that all users share.")
@click.option("--actor", metavar="NAME", envvar="MDMEM_ACTOR", default="", help="Name who makes changes.")
@click.option(
    "--no-pager",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, given: ctx.meta.update(no_pager=given),
    help="Print long output directly; else PAGER or less shows it on a terminal.",
)
@click.option(
    "--all",
    is_flag=True,
    hidden=True,  # the last line of the help names it
    expose_value=False,
    callback=lambda ctx, _, given: _refuse_all(ctx) if given else None,
    help="Take all of them, not one or some.",
)
@click.pass_context
def app(ctx: click.Context, /, **named: Any) -> None:
    """Keep an agent's memory as plain Markdown and JSON files."""
    ctx.obj = Target(**named)


def _refuse_all(ctx: click.Context) -> None:
    """Refuse --all of the program, which --help has answered where it is there as well."""
    if not ctx.resilient_parsing:
        raise click.UsageError("--all goes with --help: `mdmem --help --all`")


_HELP = {"-h", "--help"}
_REFUSED = 2
_BUG = 3
_INTERRUPTED = 130
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
# What a full disk, a limit, a terminal that is gone and a reader that is too slow say of the output.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.ENXIO, errno.EAGAIN)
_COMPLETE = "_MDMEM_COMPLETE"  # set by the completion script of a shell


def _run_command(arguments: list[str]) -> int:
    """Run a command as click's own `main` does, but leave an interrupt and a closed pipe to the caller."""
    instruction = os.environ.get(_COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, "mdmem", _COMPLETE, instruction)
    options = set(takewhile(lambda argument: argument != "--", arguments))
    as_json = "--json" in options
    if options & _HELP and "--no-pager" not in options and sys.stdout.isatty():
        _import_module("render").start_paging()
    try:
        with app.make_context("mdmem", arguments.copy()) as context:
            code = app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except OSError:
        raise  # errors of the vault are errors of ours: this is the output
    except Exception as error:  # noqa: BLE001 - the one boundary: what is expected becomes a message, a bug says so
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None  # it came while a class was made, up to Python 3.11
        return _print_failure(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _print_failure(error: Exception, *, as_json: bool = False) -> int:
    from mdmem.cli.render import print_error, print_usage, stop_paging
    from mdmem.errors import MdmemError

    stop_paging()  # an error is seen though nobody reads to the end
    if isinstance(error, click.ClickException):
        print_usage(error, as_json=as_json)
        return error.exit_code
    if isinstance(error, MdmemError):
        print_error(error, as_json=as_json)
        return error.exit_code
    import traceback

    traceback.print_exception(error)
    print("mdmem: this is a bug in mdmem; no change was left half done", file=sys.stderr)
    return _BUG


@click.command("completion", hidden=True, epilog='Example: eval "$(mdmem completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell, to be evaluated in its start-up file."""
    if shell == "zsh":
        from click.shell_completion import ZshComplete

        print(ZshComplete(ctx.find_root().command, {}, "mdmem", _COMPLETE).source())
        return
    # Instead of click's, which leave names unquoted (bash) and cut them at a comma (fish).
    path = os.path.join(os.path.dirname(__file__), "completion", f"mdmem.{shell}")
    with open(path, encoding="utf-8") as file:
        print(file.read())


def program() -> NoReturn:
    """Run the program, and end this process with its exit code."""
    _prepare_streams()
    code = main(sys.argv[1:])
    # Taking the interpreter down, object by object, takes a tenth of the time of a search, and closing a
    # database waits for the disk. A vault survives the end of a process at any moment.
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the program with `arguments`, until all that it prints is out.

    Returns:
        The exit code: 0 done, 1 a finding or no match, 2 wrong usage or refused, 3 a bug, 130 interrupted.
    """
    try:
        code = _run_command([*arguments])
        _stop_paging()
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        _stop_paging(is_interrupted=True)
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0  # the reader has seen enough
    except OSError as error:
        if error.errno in _EXHAUSTED:
            print(f"mdmem: the system has run out of something: {error}", file=sys.stderr)
            return _REFUSED
        if error.errno not in _UNWRITABLE or error.filename is not None:
            return _print_failure(error)
        _drop_output()
        with contextlib.suppress(OSError):  # it may be standard error that cannot be written
            problem = f"cannot write the output: {error.strerror}; a change that was made stands"
            print(f"mdmem: {problem}", file=sys.stderr)
        return _REFUSED
    return code


def _stop_paging(*, is_interrupted: bool = False) -> None:
    if sys.stdout.isatty() or sys.stderr.isatty():
        _import_module("render").stop_paging(is_interrupted=is_interrupted)


def _prepare_streams() -> None:
    """Prepare the standard streams: they lose and refuse nothing, and no terminal obeys what is printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It is closed, and the next file to be opened would take its number.
            null = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - until the end
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        kind: type[io.TextIOWrapper[Any]] = io.TextIOWrapper
        if is_terminal := stream.isatty():
            from mdmem.cli.render import Terminal

            kind = Terminal
        # A name or a text that the locale's encoding lacks must not end the program. With PYTHONUNBUFFERED,
        # Python would not notice that only a part of a text was written.
        file = open(stream.fileno(), "wb", closefd=False)  # noqa: SIM115 - until the end
        is_by_line = is_terminal or name == "stderr"
        setattr(sys, name, kind(file, "utf-8", "backslashreplace", line_buffering=is_by_line))


def _drop_output() -> None:
    # Else Python complains when it closes what could not be written.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
