"""The help: commands in groups, topics, what was meant by a name, and man pages made from the same text."""

from __future__ import annotations

import os
import re
import sys
from inspect import cleandoc
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import click

from mdmem import __version__
from mdmem.cli.main import NO_PAGER, command
from mdmem.cli.render import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What each group of commands is for, in the order in which somebody needs them.
GROUPS = {
    "start": "init import install uninstall completion help",
    "find and read": "search grep ls show today refs backlinks tags graph",
    "change": "write append prepend insert replace section set unset delete-lines mv rm new edit",
    "kinds of memory": "notes preferences project rules working sessions summaries observations results",
    "review": "check diff history undo restore git inbox capture",
    "agents": "context mcp hook tool observe",
    "the vault": "doctor stats index watch schema template render",
}

# What other programs call commands of ours.
_CALLED = {
    "add": "append",
    "ag": "grep",
    "blame": "git blame",
    "cat": "show",
    "commit": "git commit",
    "cp": "write",
    "create": "new",
    "delete": "rm",
    "du": "stats",
    "find": "search",
    "fsck": "doctor",
    "get": "show",
    "head": "show",
    "less": "show",
    "link": "backlinks",
    "lint": "check",
    "list": "ls",
    "log": "history, git log",
    "man": "help",
    "mkdir": "write",
    "move": "mv",
    "nano": "edit",
    "open": "edit",
    "query": "search",
    "read": "show",
    "reindex": "index",
    "remove": "rm",
    "rename": "mv",
    "reset": "undo",
    "revert": "undo, git revert",
    "rg": "grep",
    "sed": "replace",
    "serve": "mcp",
    "status": "git diff, doctor",
    "tail": "show",
    "touch": "write",
    "tree": "ls",
    "validate": "check",
    "version": "--version",
    "vi": "edit",
    "vim": "edit",
    "wc": "stats",
}

_TOPICS = os.path.join(os.path.dirname(__file__), "topics")
_SUFFIX = ".txt"
_WHOLE = 100_000  # characters: a first sentence is never cut
_ROW = re.compile(r" {4}(\S.*?) {2,}(\S.*)")


class Topic(NamedTuple):
    """A text about something that is not one command: its title, and paragraphs.

    A paragraph whose lines begin with four blanks is an example; where each of its lines has two columns, it
    is a table.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...]


def topics() -> list[str]:
    """The names of all topics."""
    return sorted(name.removesuffix(_SUFFIX) for name in os.listdir(_TOPICS) if name.endswith(_SUFFIX))


def topic(name: str) -> Topic:
    """The topic of a name that `topics` lists."""
    with open(os.path.join(_TOPICS, name + _SUFFIX), encoding="utf-8") as file:
        title, _, text = file.read().partition("\n")
    return Topic(name, title, tuple(text.strip("\n").split("\n\n")))


def table(paragraph: str) -> list[tuple[str, str]]:
    """The rows of a paragraph that is a table, else none."""
    rows = [_ROW.fullmatch(line) for line in paragraph.splitlines()]
    return [(row[1], row[2]) for row in rows if row] if all(rows) else []


def sentence(of: click.Command) -> str:
    """The first sentence of what a command says of itself."""
    return of.get_short_help_str(_WHOLE)


def write_commands(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the commands of a group, each with its first sentence, and the program's own in groups."""
    names = group.list_commands(context)
    sections = {"commands": names}
    if context.parent is None:
        sections = {title: each.split() for title, each in GROUPS.items()}
    for title, members in sections.items():
        found = [(name, group.get_command(context, name)) for name in members if name in names]
        with formatter.section(title.capitalize()):
            formatter.write_dl([(name, sentence(each)) for name, each in found if each])
    if context.parent is None:
        with formatter.section("Topics, as in `mdmem help json`"):
            formatter.write_dl([(name, topic(name).title) for name in topics()])


def no_command(group: click.Group, context: click.Context, name: str) -> click.UsageError:
    """The error that says which commands may have been meant."""
    return _unknown(f"No such command {name!r}.", name, group.list_commands(context), context)


def _unknown(problem: str, name: str, names: Iterable[str], context: click.Context) -> click.UsageError:
    from difflib import get_close_matches

    known = list(names)
    called = [
        each for each in _CALLED.get(name, "").split(", ") if each.split(" ")[0] in {*known, "--version"}
    ]
    near = called or get_close_matches(name, known)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if not near and context.info_name == "git":
        meant = f" Commands of git itself are run without mdmem: `git {name}`"
    return click.UsageError(problem + meant, context)


def _found(context: click.Context, names: tuple[str, ...]) -> click.Context | None:
    """The context of the command that names lead to, from the program's own; None where they lead nowhere."""
    for name in names:
        group = context.command
        each = group.get_command(context, name) if isinstance(group, click.Group) else None
        if each is None:
            return None
        context = click.Context(each, info_name=name, parent=context)
    return context


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    found = _found(ctx.find_root(), ctx.params.get("names") or ())
    group = found.command if found else None
    names = group.list_commands(found) if found and isinstance(group, click.Group) else []
    return [
        name
        for name in (*names, *(topics() if found is ctx.find_root() else ()))
        if name.startswith(incomplete)
    ]


@command("help", epilog="Example: mdmem help conditions")
@click.argument("names", nargs=-1, metavar="[COMMAND|TOPIC]", shell_complete=_complete)
@click.option("--man", is_flag=True, help="Print its man page, for `man -l -`.")
@click.pass_context
def help_command(ctx: click.Context, names: tuple[str, ...], man: bool) -> None:
    """Explain a command or a topic; without one, list them all."""
    if isinstance(sys.stdout, Terminal) and not ctx.meta[NO_PAGER]:
        from mdmem.cli.programs import start_paging

        start_paging()
    root = ctx.find_root()
    found = _found(root, names)
    if found is None and (len(names) > 1 or names[0] not in topics()):
        known = (
            [*root.command.list_commands(root), *topics()] if isinstance(root.command, click.Group) else []
        )
        raise _unknown(f"No help on {' '.join(names)!r}.", names[0], known, root)
    if man:
        page = topic_page(topic(names[0])) if found is None else command_page(found)
        print(page, end="")
    elif found is None:
        print(_shown(topic(names[0]), root.make_formatter()))
    else:
        print(found.get_help())


def _shown(about: Topic, formatter: click.HelpFormatter) -> str:
    """A topic as text for a terminal."""
    formatter.write_text(f"{about.name}: {about.title}")
    for paragraph in about.paragraphs:
        formatter.write_paragraph()
        if rows := table(paragraph):
            with formatter.indentation():
                formatter.write_dl(rows)
        elif paragraph.startswith(" "):
            formatter.write(f"{paragraph}\n")
        else:
            formatter.write_text(paragraph)
    return formatter.getvalue().rstrip("\n")


# ---------------------------------------------------------------------------------------------- man pages

_NOT_ASCII = re.compile(r"[^ -~]")
_NO_BREAK = "\b"  # click's mark, before a paragraph whose lines stay as they are


def pages(app: click.Group) -> Iterator[tuple[str, str]]:
    """The man pages of the program: the name of each file, such as `man1/mdmem-show.1`, and what it says."""
    with app.make_context("mdmem", [], resilient_parsing=True) as root:
        yield "man1/mdmem.1", command_page(root)
        for name in app.list_commands(root):
            found = _found(root, (name,))
            if found:
                yield f"man1/mdmem-{name}.1", command_page(found)
    for name in topics():
        yield f"man7/mdmem-{name}.7", topic_page(topic(name))


def command_page(context: click.Context) -> str:
    """The man page of a command, of a group with its commands, or of the program."""
    about = context.command
    name = context.command_path.replace(" ", "-")
    summary = sentence(about).rstrip(".")
    lines = [*_header(name, "1", summary), *_section("synopsis"), *_usage(context), *_section("description")]
    lines += [*_help(about), *_options(context, _section("options"))]
    if context.parent is None:
        lines += _program(context)
    elif isinstance(about, click.Group):
        lines += _section("commands")
        for each in about.list_commands(context):
            found = _found(context, (each,))
            lines += _command(found) if found else ()
    lines += _example(about, _section("example"))
    if context.parent:
        lines += [*_section("see also"), ".BR mdmem (1)"]
    return _joined(lines)


def topic_page(about: Topic) -> str:
    """The man page of a topic."""
    lines = [*_header(f"mdmem-{about.name}", "7", about.title), *_section("description")]
    for paragraph in about.paragraphs:
        lines += _paragraph(paragraph)
    return _joined([*lines, *_section("see also"), ".BR mdmem (1)"])


def _program(context: click.Context) -> Iterator[str]:
    """The commands and topics, each with the page that is about it."""
    group = context.command
    names = group.list_commands(context) if isinstance(group, click.Group) else []
    yield from _section("commands")
    for title, members in GROUPS.items():
        yield f".SS {_roff(title.capitalize())}"
        for name in members.split():
            found = _found(context, (name,)) if name in names else None
            if found:
                yield from (".TP", f".BR {_roff(f'mdmem-{name}')} (1)", _roff(sentence(found.command)))
    yield from _section("topics")
    for name in topics():
        yield from (".TP", f".BR {_roff(f'mdmem-{name}')} (7)", _roff(topic(name).title))


def _command(context: click.Context) -> Iterator[str]:
    """A command of a group: a subsection."""
    yield f".SS {_roff(context.command_path)}"
    yield from _usage(context)
    yield ".PP"
    yield from _help(context.command)
    yield from _options(context, [])
    yield from _example(context.command, [])


def _header(name: str, number: str, summary: str) -> list[str]:
    title = f'.TH {_roff(name.upper())} {number} "" "mdmem {__version__}" "mdmem"'
    # Neither hyphens nor blanks are put into what somebody may copy.
    return [title, ".nh", ".ad l", *_section("name"), f"{_roff(name)} \\- {_roff(summary)}"]


def _section(title: str) -> list[str]:
    return [f".SH {title.upper()}"]


def _usage(context: click.Context) -> list[str]:
    pieces = context.command.collect_usage_pieces(context)
    return [f".B {_roff(context.command_path)}", _roff(" ".join(pieces))]


def _help(about: click.Command) -> Iterator[str]:
    for paragraph in cleandoc(about.help or "").split("\n\n"):
        yield from _paragraph(paragraph)


def _paragraph(text: str) -> Iterator[str]:
    rows = table(text)
    for term, description in rows:
        yield from (".TP", f".B {_roff(term)}", _roff(description))
    if rows:
        yield ".PP"
    elif text.startswith((" ", _NO_BREAK)):
        yield from _literal(text.removeprefix(_NO_BREAK).strip("\n"))
    else:
        yield from (".PP", _roff(" ".join(text.split())))


def _literal(text: str) -> list[str]:
    return [
        ".PP",
        ".RS 4",
        ".nf",
        *(_roff(line.removeprefix("    ")) for line in text.splitlines()),
        ".fi",
        ".RE",
    ]


def _options(context: click.Context, head: list[str]) -> list[str]:
    told = []
    for each in context.command.get_params(context):
        record = each.get_help_record(context) if isinstance(each, click.Option) else None
        # That of each command of a group is told once, with those of the group.
        if record and (head or each.name != "help"):
            told += [".TP", f".B {_roff(record[0])}", _roff(record[1]) or "\\&"]
    return [*head, *told] if told else []


def _example(about: click.Command, head: list[str]) -> list[str]:
    text = (about.epilog or "").removeprefix("Example: ")
    return [*head, *_literal(text)] if text else []


def _joined(lines: Iterable[str]) -> str:
    """A page: no macro for a paragraph stands twice, or right behind the title of a section."""
    kept: list[str] = []
    for line in lines:
        if line == ".PP" and kept and kept[-1].startswith((".PP", ".SH", ".SS")):
            continue
        kept.append(line)
    return "".join(f"{line}\n" for line, _ in groupby(kept))


_ROFF = {
    ord(plain): roff
    for plain, roff in (
        ("\\", "\\e"),
        ("-", "\\-"),
        ("`", "\\(ga"),
        ("^", "\\(ha"),
        ("~", "\\(ti"),
        ('"', "\\(dq"),
        ("|", "|\\:"),
    )
}


def _roff(text: str) -> str:
    """A line of text as roff has it: nothing in it is a request, and every character is itself."""
    text = _NOT_ASCII.sub(lambda found: f"\\[u{ord(found[0]):04X}]", text.translate(_ROFF))
    return f"\\&{text}" if text.startswith((".", "'")) else text
