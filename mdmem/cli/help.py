"""Print help: commands in groups, topics, and which command a wrong name may mean."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from mdmem.cli import render
from mdmem.cli.main import command
from mdmem.cli.options import all_option

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

# What each group of commands is for, in the order in which somebody needs them; hidden ones are in none.
GROUPS = {
    "start": "init install status uninstall import help",
    "find and read": "search grep show ls refs backlinks tags today",
    "change": "remember write edit replace mv rm append section set unset new",
    "go back, and review": "undo redo history check git web diff restore doctor inbox",
    "give to agents": "context mcp",
    "what counts": "supersede contradict reinstate confirm why duplicates consolidate quality report",
    "kinds of memory": "notes working preferences project rules sessions results",
    "the vault": "watch schema template",
}
# Those that the first screen shows; `--all` shows the rest.
FIRST = (
    "init install status search grep show ls refs remember write edit replace mv rm"
    " undo history check git web context mcp"
)
_FIRST_OPTIONS = ("vault", "user", "project")

_TOPICS = os.path.join(os.path.dirname(__file__), "topics")
_OTHERWISE = os.path.join(os.path.dirname(__file__), "otherwise")
_SUFFIX = ".txt"
_WHOLE = 100_000  # characters: a first sentence is never cut


def topics() -> list[str]:
    """Return the names of all topics."""
    return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(_TOPICS) if name.endswith(_SUFFIX))


def read_topic(name: str) -> tuple[str, str]:
    """Read the title and the text of a topic that `topics` lists; what begins with blanks stays as it is."""
    with open(os.path.join(_TOPICS, name + _SUFFIX), encoding="utf-8") as file:
        title, _, text = file.read().partition("\n")
    return title, text.strip("\n")


def sentence(of: click.Command) -> str:
    """Return the first sentence of the help of a command."""
    return of.get_short_help_str(_WHOLE)


def write_commands(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the commands of a group, each with its first sentence."""
    _write_section("commands", group.list_commands(context), group, context, formatter)


def write_first_screen(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the commands and the options that come first, a line each, and how to see all."""
    first = FIRST.split()
    for title, names in GROUPS.items():
        _write_section(title, [name for name in names.split() if name in first], group, context, formatter)
    _write_options(context, formatter, _FIRST_OPTIONS)
    formatter.write("\nmdmem --help --all lists what people type, mdmem help COMMAND explains one.\n")


def write_all(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write all commands of the program in groups, its options, and the topics."""
    _write_options(context, formatter)
    for title, names in GROUPS.items():
        _write_section(title, names.split(), group, context, formatter)
    every = group.list_commands(context)
    hidden = [name for name in every if (each := group.get_command(context, name)) and each.hidden]
    formatter.write(f"\nSeldom typed, each with --help: {', '.join(hidden)}\n")
    with formatter.section("Topics, as in `mdmem help json`"):
        formatter.write_dl([(name, read_topic(name)[0]) for name in topics()])


def _write_section(
    title: str,
    names: Iterable[str],
    group: click.Group,
    context: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    """Write commands with their first sentences below a title, without those that are hidden."""
    found = [(name, group.get_command(context, name)) for name in names]
    rows = [(name, sentence(each)) for name, each in found if each and not each.hidden]
    if rows:
        with formatter.section(title.capitalize()):
            formatter.write_dl(rows)


def _write_options(
    context: click.Context, formatter: click.HelpFormatter, names: Container[str] | None = None
) -> None:
    """Write the options of a command, or those with these names."""
    found = [each for each in context.command.get_params(context) if names is None or each.name in names]
    with formatter.section("Options"):
        formatter.write_dl([record for each in found if (record := each.get_help_record(context))])


def read_other_names(of: str) -> dict[str, str]:
    """Read what the commands or options of other programs are here; `of` is a command, or `commands`."""
    try:
        with open(os.path.join(_OTHERWISE, f"{of.replace(' ', '-')}.txt"), encoding="utf-8") as file:
            rows = [line.rstrip("\n").partition("  ") for line in file]
    except FileNotFoundError:
        return {}
    return {name: here for names, _, here in rows for name in names.split()}


def find_hint(context: click.Context, option: str) -> str:
    """Return what to do instead of an option that another program, or `mdmem` itself, has; else nothing."""
    path = context.command_path.partition(" ")[2]
    if hint := read_other_names(path).get(option):
        return hint
    for each in context.find_root().command.params if path else ():
        if option in each.opts and each.name not in {"all", "version"}:
            words = filter(None, ("mdmem", option, each.metavar, path))
            return f"it stands before the command: `{' '.join(words)}`"
    return ""


def find_place_behind(group: click.Group, context: click.Context, option: str, given: Sequence[str]) -> str:
    """Return how to say an option behind the command that is given, where that has it; else nothing."""
    for name in given:
        each = group.get_command(context, name) if name[:1] != "-" else None
        if each is not None:
            has_it = any(option in param.opts for param in each.params)
            return f"it stands behind the command: `{context.command_path} {name} {option}`" if has_it else ""
    return ""


def no_command(group: click.Group, context: click.Context, name: str) -> click.UsageError:
    """Make the error that suggests commands for an unknown name."""
    return _unknown_name(f"No such command {name!r}.", name, group.list_commands(context), context)


def _unknown_name(problem: str, name: str, names: Iterable[str], context: click.Context) -> click.UsageError:
    from difflib import get_close_matches

    known = list(names)
    of_group = context.command_path.partition(" ")[2]
    others = (read_other_names("commands") | read_other_names(of_group)).get(name, "").split(", ")
    called = [each for each in others if each.split(" ")[0] in {*known, "--version"}]
    near = called or get_close_matches(name, known)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if not near and context.info_name == "git":
        meant = f" Commands of git itself are run without mdmem: `git {name}`"
    return click.UsageError(problem + meant, context)


def _find_context(context: click.Context, names: tuple[str, ...]) -> click.Context | None:
    """Find the context of the command that names lead to, from that of the program; None if there is none."""
    for name in names:
        group = context.command
        each = group.get_command(context, name) if isinstance(group, click.Group) else None
        if each is None:
            return None
        context = click.Context(each, info_name=name, parent=context)
    return context


@command("help", epilog="Example: mdmem help conditions")
@click.argument("names", nargs=-1, metavar="[COMMAND|TOPIC]")
@all_option()
@click.pass_context
def help_command(ctx: click.Context, names: tuple[str, ...], all: bool) -> None:  # noqa: A002 - click passes it by name
    """Explain a command or a topic; without one, list the commands."""
    render.start_paging()
    root = ctx.find_root()
    root.meta["all"] = all
    found = _find_context(root, names)
    if found is None and (len(names) > 1 or names[0] not in topics()):
        known = (
            [*root.command.list_commands(root), *topics()] if isinstance(root.command, click.Group) else []
        )
        raise _unknown_name(f"No help on {' '.join(names)!r}.", names[0], known, root)
    if found is None:
        print(_format_topic(names[0], root.make_formatter()))
    else:
        print(found.get_help())


def _format_topic(name: str, formatter: click.HelpFormatter) -> str:
    title, text = read_topic(name)
    formatter.write_text(f"{name}: {title}")
    for paragraph in text.split("\n\n"):
        formatter.write_paragraph()
        if paragraph.startswith(" "):
            formatter.write(f"{paragraph}\n")
        else:
            formatter.write_text(paragraph)
    return formatter.getvalue().rstrip("\n")
