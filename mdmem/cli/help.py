"""Print help: commands in groups, topics, guides, codes, and which command a wrong name may mean."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple, cast

import click

from mdmem.cli import render
from mdmem.cli.main import command
from mdmem.cli.options import all_option


class CommandGroup(NamedTuple):
    """Commands that belong together: what they are for, and their names."""

    title: str
    commands: str


# In the order in which somebody needs them, by the names that `mdmem help` takes; no hidden commands.
GROUPS = {
    "start": CommandGroup("Start", "init install import status uninstall help"),
    "find": CommandGroup("Find and read", "search grep show ls refs backlinks tags today"),
    "change": CommandGroup("Change", "remember write edit append replace mv rm section set unset new"),
    "review": CommandGroup(
        "Go back, and review", "undo redo history check git web diff restore doctor inbox"
    ),
    "agents": CommandGroup("Give to agents", "context mcp"),
    "counts": CommandGroup(
        "What counts", "supersede contradict reinstate confirm why duplicates consolidate quality report"
    ),
    "kinds": CommandGroup("Kinds of memory", "notes working preferences project rules sessions results"),
    "vault": CommandGroup("The vault", "watch schema template"),
}
# The commands that the first screen shows; below them it names the others, by their groups.
FIRST = {
    "start": "init install import status",
    "every day": "search grep show ls remember write edit append replace mv rm undo history check git web",
}
_FIRST_OPTIONS = ("vault", "user", "project")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CODES = os.path.join(os.path.dirname(__file__), "codes.toml")
_TOPICS = os.path.join(os.path.dirname(__file__), "topics")
_OTHERWISE = os.path.join(os.path.dirname(__file__), "otherwise")
_SUFFIX, _PAGE = ".txt", ".md"
_OF_KEYWORDS = "schema-KEYWORD"  # stands for the code of any keyword of a schema
_MADE = "<!-- Made by "  # what a reference begins with, below its title
_WHOLE = 100_000  # characters: a first sentence is never cut


def topics() -> list[str]:
    """Return the names of all topics."""
    return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(_TOPICS) if name.endswith(_SUFFIX))


def read_topic(name: str) -> tuple[str, str]:
    """Read the title and the text of a topic that `topics` lists; what begins with blanks stays as it is."""
    with open(os.path.join(_TOPICS, name + _SUFFIX), encoding="utf-8") as file:
        title, _, text = file.read().partition("\n")
    return title, text.strip("\n")


def read_codes() -> dict[str, dict[str, str]]:
    """Read what each code means and what to do about it, by the groups of codes."""
    import tomllib

    with open(_CODES, "rb") as file:
        return tomllib.load(file)


def explain_code(code: str) -> str:
    """Return what the code of a finding or an error means and what to do about it; empty for no code.

    A state in which `refs` lists a link or a citation, such as `gone`, is explained as its finding is.
    """
    texts = {name: text for codes in read_codes().values() for name, text in codes.items()}
    found = next(filter(None, map(texts.get, (code, f"{code}-link", f"citation-{code}"))), "")
    return found or (texts[_OF_KEYWORDS] if code.startswith("schema-") else "")


def pages() -> list[str]:
    """Return the names of the pages of the documentation, which stand in the wheel or in the checkout."""
    return sorted(name for name in os.listdir(_find_pages()) if name.endswith(_PAGE))


def read_page(name: str) -> str:
    """Read a page that `pages` lists, with or without `.md`."""
    with open(os.path.join(_find_pages(), name.removesuffix(_PAGE) + _PAGE), encoding="utf-8") as file:
        return file.read()


def _find_pages() -> str:
    installed = os.path.join(_PACKAGE, "docs")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), "docs")


def list_guides() -> list[tuple[str, str]]:
    """List the guides with their titles: the pages that people have written, for users."""
    found = [(name, read_page(name)) for name in pages() if name != "contributing.md"]
    return [(name, text.partition("\n")[0].lstrip("# ")) for name, text in found if _MADE not in text]


def sentence(of: click.Command) -> str:
    """Return the first sentence of the help of a command."""
    return of.get_short_help_str(_WHOLE)


def write_first_screen(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the commands that come first, a line each, the names of the others, and the options."""
    for title, names in FIRST.items():
        write_section(title, names.split(), group, context, formatter)
    first = " ".join(FIRST.values()).split()
    with formatter.section("More, as in `mdmem help find`"):
        formatter.write_dl(
            (name, ", ".join(each for each in of.commands.split() if each not in first))
            for name, of in GROUPS.items()
        )
    _write_options(context, formatter, _FIRST_OPTIONS)
    formatter.write("\nmdmem help COMMAND explains one, mdmem --help --all lists all, and the guides.\n")


def write_all(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write all commands of the program in groups, its options, the topics and the guides."""
    _write_options(context, formatter)
    for of in GROUPS.values():
        write_section(of.title, of.commands.split(), group, context, formatter)
    every = group.list_commands(context)
    hidden = [name for name in every if (each := group.get_command(context, name)) and each.hidden]
    formatter.write(f"\nSeldom typed, each with --help: {', '.join(hidden)}\n")
    with formatter.section("Topics, as in `mdmem help json`"):
        formatter.write_dl([(name, read_topic(name)[0]) for name in topics()])
    with formatter.section("Guides, as in `mdmem help find.md`"):
        formatter.write_dl(list_guides())


def write_section(
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


def unknown_name(problem: str, name: str, names: Iterable[str], context: click.Context) -> click.UsageError:
    """Make the error that suggests names for an unknown one."""
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
    """Find the context of the command that names lead to, from that of the program; None without one."""
    for name in names:
        group = context.command
        each = group.get_command(context, name) if isinstance(group, click.Group) else None
        if each is None:
            return None
        context = click.Context(each, info_name=name, parent=context)
    return context


@command("help", epilog="Example: mdmem help conditions")
@click.argument("names", nargs=-1, metavar="[COMMAND|GROUP|TOPIC|GUIDE|CODE]")
@all_option()
@click.pass_context
def help_command(ctx: click.Context, names: tuple[str, ...], all: bool) -> None:  # noqa: A002 - click passes it by name
    """Explain a command, a group of commands, a topic, a guide, or the code of a finding or an error.

    Without a name, it lists the commands.
    """
    render.start_paging()
    root = ctx.find_root()
    root.meta["all"] = all
    found = _find_context(root, names)
    if found is not None:
        print(found.get_help())
    elif text := _explain_name(" ".join(names), root):
        print(text)
    else:
        raise unknown_name(f"No help on {' '.join(names)!r}.", names[0], _list_names(root), root)
    if names and f"{names[0]}{_PAGE}" in pages() and (found or names[0] in GROUPS):
        print(f"\nGuide: mdmem help {names[0]}{_PAGE}")


def _explain_name(name: str, root: click.Context) -> str:
    """Return the text about a group, a topic, a code or a page; empty for another name."""
    formatter = root.make_formatter()
    if name in GROUPS:
        title, commands = GROUPS[name]
        write_section(title, commands.split(), cast("click.Group", root.command), root, formatter)
        return formatter.getvalue().strip("\n")
    if name in topics():
        return _format_topic(name, formatter)
    if text := explain_code(name):
        meaning, _, remedy = text.strip("\n").partition("\n")
        formatter.write_text(f"{name}: {meaning}")
        formatter.write_paragraph()
        formatter.write_text(remedy)
        return formatter.getvalue().rstrip("\n")
    return read_page(name).rstrip("\n") if name.removesuffix(_PAGE) + _PAGE in pages() else ""


def _list_names(root: click.Context) -> list[str]:
    codes = [code for each in read_codes().values() for code in each]
    program = cast("click.Group", root.command)
    return [*program.list_commands(root), *GROUPS, *topics(), *codes, *pages()]


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
