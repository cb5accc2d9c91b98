"""Make the reference pages of docs/ from the code: the command line, Python, MCP, the config.

The examples of the page about Python are written there by hand; they stay where they are.

bench/pages.py            writes them
bench/pages.py --check    names those that are not what the code says, and ends with 1
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from examples import Page

import mdmem
from mdmem.cli import help as topics
from mdmem.cli.main import app
from mdmem.serve.mcp.prompts import describe_prompts
from mdmem.serve.mcp.tools import TOOLS
from mdmem.vault.config import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 80
MOST_LINKS = 3
_MOST_NAMED = 6
_MADE = "<!-- Made by bench/pages.py from the code. -->"
_COMMANDS = """\
What `mdmem COMMAND --help` prints for each command, and below them the [topics](#topics) of `mdmem help`.
Options before the command choose the vault and [whose memories](concepts.md#scopes) are meant."""
_WRONG = """\
Each finding of `mdmem check` and each error has a code, which never changes. `mdmem help CODE` prints the
entry of this page. A hint below the finding or the error says what to do in this very case.

Findings that you do not want to see are silenced by their code: for all memories under `[check] silenced` of
the [config](config.md#check), in one memory by a comment, `<!-- mdmem: silence dangling-link -->`. A secret
is always told.

`mdmem doctor` looks at the vault itself. It repairs first what a crash left; `--fix` corrects what it can."""
_FLAGS = """\
A flag means the same in every command that takes it. Letters of `grep`, `ls` and `show` mean what they mean
to ripgrep, ls and cat. What changes nothing, such as `grep -n`, is left out."""
_PYTHON = """\
What the command line has, Python has, mostly under the same name. `mdmem.open` returns a [`Memory`](#memory),
whose parts keep notes, preferences, conversations and so on. Each verb that changes something does it at
once; the same verb of `memory.plan` returns the edit plan and writes nothing. So a verb that returns `R`
below returns an [`Applied`](#mdmemapplied), and of `memory.plan` an [`EditPlan`](#mdmemeditplan). A `StrPath`
is a text or a `pathlib.Path`.

The site that `make docs` builds shows here what each name takes, returns and raises. `help(mdmem.Memory)` in
Python says the same.

An error is a `mdmem.MdmemError` with a stable `code`. It means that nothing was changed."""
_MCP = """\
`mdmem mcp` serves the memories of one scope to an agent, by the Model Context Protocol. It does so on
standard input and output, or with `--http PORT` on this machine alone. [Connect an agent](hosts.md) says how
a host starts it. This page lists what an agent is offered.

An answer is a text; with `--structured` it is JSON, as structure and as its text.
`--read-only` leaves out every tool that changes memories. A tool that changes a memory also takes `base`, the
hash that was read, and `dry_run`, which returns the diff and changes nothing.

Paths are relative to the namespace, such as `notes/db.md`. A tool also takes a path as git names it
(`memories/notes/db.md`), an absolute path in the vault, or a wikilink (`[[db]]`). A name
(`db`) is taken, too, unless several memories have it, and the answer says which one was meant.

A change is made by the client, under the name in its `clientInfo`, unless `--actor` or `MDMEM_ACTOR` names
another: `mdmem history` shows it, in one line of at most 100 characters. `undo` without an id takes back what
this server has changed for this client, newest first; of a client on HTTP without a session nothing is
known, and it asks for the id."""
_CONFIG = """\
A vault has its settings in `.mdmem/config.toml`, which git tracks. Every key has a default, so the file may
be empty. A value that cannot be is an error that names its line. An unknown key, which a later version may
know, is passed over with a warning.
[config.schema.json](config.schema.json) is the same as JSON Schema, for editors."""
_MOUNTS = """\
`[mounts]` shows one file of the workspace as a memory of the vault, as in `"AGENTS.md" = "../AGENTS.md"`."""

# What is below `memory`, with the class that its verbs are of.
PARTS = {
    "notes": "mdmem.memory.notes.Notes",
    "working": "mdmem.memory.working.Working",
    "preferences": "mdmem.memory.preferences.Preferences",
    "project": "mdmem.facade.instructions.WorkspaceProject",
    "rules": "mdmem.memory.rules.Rules",
    "references": "mdmem.memory.references.References",
    "lineage": "mdmem.index.links.lineage.Lineage",
    "git": "mdmem.review.git.Git",
    "sessions": "mdmem.conversations.sessions.Sessions",
    "summaries": "mdmem.conversations.observe.summaries.Summaries",
    "observations": "mdmem.conversations.observe.observer.SessionObservations",
    "capture": "mdmem.conversations.observe.capture.Capture",
    "inbox": "mdmem.memory.inbox.Inbox",
    "results": "mdmem.conversations.results.results.ToolResults",
    "uses": "mdmem.facade.questions.uses.Uses",
    "shared": "mdmem.facade.sharing.Shared",
    "store": "mdmem.facade.memini.VaultStore",
}
BEGINS = ("init", "open", "Scope")
ERRORS = ("MdmemError", "NotFound", "Refused", "Invalid", "Conflict", "PathRefused", "Unavailable")


def write_commands() -> Iterator[str]:
    """The page of the command line: what `--help` says of each command, and the topics of `mdmem help`."""
    yield from ("# Commands", "", _MADE, "", _COMMANDS)
    root = click.Context(app, info_name="mdmem", terminal_width=WIDTH)
    groups = {of.title: of.commands.split() for of in topics.GROUPS.values()}
    grouped = {name for members in groups.values() for name in members}
    groups["seldom typed"] = [name for name in app.list_commands(root) if name not in grouped]
    for title, members in groups.items():
        yield from ("", f"## {title.capitalize()}")
        for name in members:
            yield from _write_command(_get_command(root, name), root, name)
    yield from _write_flags(root)
    yield from ("", "## Topics")
    for name in topics.topics():
        title, text = topics.read_topic(name)
        lines = [line if line.startswith("    ") else line.replace("<", "&lt;") for line in text.split("\n")]
        yield from ("", f"### help {name}", "", f"{title}.", "", *lines)


def write_codes() -> Iterator[str]:
    """The page of the codes of findings and errors: what each means, and what to do."""
    yield from ("# When something is wrong", "", _MADE, "", _WRONG)
    for title, codes in topics.read_codes().items():
        yield from ("", f"## {title}")
        for code, text in codes.items():
            meaning, _, remedy = text.strip("\n").partition("\n")
            yield from ("", f"### {code}", "", _escape(meaning), "", _escape(remedy))


def _escape(text: str) -> str:
    """Return a text whose signs of HTML are shown, those in code left alone."""
    parts = text.split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def _write_flags(root: click.Context) -> Iterator[str]:
    """Yield the table of flags: each with what it means in every command that takes it."""
    yield from ("", "## Flags", "", _FLAGS, "", "| flag | means | in |", "|---|---|---|")
    commands: dict[tuple[str, str], list[str]] = {}
    for context, command in _walk_commands(root):
        for option in command.params:
            if isinstance(option, click.Option) and option.name != "same":
                flag = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
                meaning = (option.help or "").replace("|", "\\|").replace("<", "&lt;")
                commands.setdefault((flag, meaning), []).append(context.command_path.partition(" ")[2])
    for (flag, meaning), names in sorted(commands.items(), key=lambda row: row[0][0].lstrip("`-").lower()):
        shown = ", ".join(f"`{name}`" for name in names if name) if len(names) <= _MOST_NAMED else ""
        yield f"| {flag} | {meaning} | {shown or (f'{len(names)} commands' if any(names) else 'all')} |"


def _walk_commands(context: click.Context) -> Iterator[tuple[click.Context, click.Command]]:
    """Yield a command that is not hidden, and what is below it, each with its context."""
    yield context, context.command
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            if not (below := _get_command(context, name)).hidden:
                yield from _walk_commands(click.Context(below, info_name=name, parent=context))


def _get_command(context: click.Context, name: str) -> click.Command:
    command = context.command.get_command(context, name)  # type: ignore[attr-defined]  # it is a group's
    assert isinstance(command, click.Command)
    return command


def _write_command(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    yield from (
        "",
        f"### {context.command_path}",
        "",
        "```text",
        *command.get_help(context).split("\n"),
        "```",
    )
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _write_command(_get_command(context, each), context, each)


def write_python() -> Iterator[str]:
    """The page of the Python reference: directives for mkdocstrings, and which guides show each name."""
    shown = {page: Page(page).code() for page in sorted(DOCS.glob("*.md")) if page.name != "python.md"}
    examples = read_examples(DOCS / "python.md")

    def links(pattern: str) -> str:
        pages = [page for page, code in shown.items() if re.search(pattern, code)]
        titles = [page.read_text().partition("\n")[0].removeprefix("# ") for page in pages[:MOST_LINKS]]
        named = [f"[{title}]({page.name})" for title, page in zip(titles, pages, strict=False)]
        named = named or [
            f"[{name}](#{re.sub(r'[^a-z_]', '', name.lower())})"
            for name, example in examples.items()
            if re.search(pattern, example) and not re.search(pattern, name)
        ]
        return f"Shown in: {', '.join(named[:MOST_LINKS])}." if named else ""

    yield from ("# Python", "", _MADE, "", _PYTHON)
    values = [each for each in mdmem.__all__ if each not in (*BEGINS, *ERRORS, "Memory", "__version__")]
    for title, names in (("Begin", BEGINS), ("Memory", ("Memory",))):
        yield from ("", f"## {title}")
        for name in names:
            yield from _write_name(f"mdmem.{name}", _home(name), links(rf"\bmdmem\.{name}\b"), examples)
    yield from ("", "## The parts of a memory")
    for part, home in PARTS.items():
        yield from _write_name(f"memory.{part}", home, links(rf"\bmemory(\.plan)?\.{part}\b"), examples)
    for title, chosen in (("Values and functions", values), ("Errors", [*ERRORS])):
        yield from ("", f"## {title}")
        for name in chosen:
            yield from _write_name(f"mdmem.{name}", _home(name), links(rf"\bmdmem\.{name}\b"), examples)


def _home(name: str) -> str:
    return f"{getattr(mdmem, name).__module__}.{name}"


def read_examples(page: Path) -> dict[str, str]:
    """Read the examples of a page, by the heading that they stand under."""
    sections = re.split(r"^### (\S+)\n", page.read_text(), flags=re.MULTILINE) if page.is_file() else [""]
    found = {}
    for name, text in zip(sections[1::2], sections[2::2], strict=True):
        if example := re.search(r"^```python\n.*?(?=^:::)", text, re.MULTILINE | re.DOTALL):
            found[name] = example[0].rstrip()
    return found


def _write_name(title: str, home: str, shown: str, examples: dict[str, str]) -> Iterator[str]:
    yield from ("", f"### {title}", "")
    if shown:
        yield from (shown, "")
    name = title.removeprefix("mdmem.")
    if name in mdmem.__all__ and inspect.isfunction(function := getattr(mdmem, name)):
        signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
        yield from ("```text", _wrap_signature(f"{title}{signature}"), "```", "")
    if title in examples:
        yield from (examples[title], "")
    yield f"::: {home}"


def _wrap_signature(signature: str) -> str:
    """Return a signature with a line for each argument, where one line does not hold it."""
    if len(signature) <= WIDTH:
        return signature
    name, _, rest = signature.partition("(")
    arguments, _, result = rest.rpartition(")")
    lines = re.sub(r", (?=\*,|\w+: )", ",\n    ", arguments)
    return f"{name}(\n    {lines},\n){result}"


def write_mcp() -> Iterator[str]:
    """The page of the MCP server: its tools, resources and prompts."""
    yield from ("# MCP", "", _MADE, "", _MCP)
    yield from ("", "## Tools")
    for tool in TOOLS:
        yield from ("", f"### {tool.name}", "", tool.about, "")
        hints = {"It changes memories.": tool.changes, "It may remove what was there.": tool.destructive}
        yield from ("| argument | type | |", "| --- | --- | --- |")
        required = tool.schema.get("required", ())
        for name, form in tool.schema["properties"].items():
            about = [
                each for each in ("required" if name in required else "", form.get("description", "")) if each
            ]
            yield f"| `{name}` | {_name_type(form)} | {_cell(', '.join(about))} |"
        if told := " ".join(hint for hint, holds in hints.items() if holds):
            yield from ("", told)
    yield from (
        "",
        "## Resources",
        "",
        "Every memory of the namespace is a resource: `mdmem:///notes/db.md`.",
    )
    yield from ("", "## Prompts", "")
    for prompt in describe_prompts():
        arguments = ", ".join(f"`{each.name}`: {each.description}" for each in prompt.arguments or ())
        yield f"- `{prompt.name}`: {prompt.description} {arguments}"


def _name_type(form: dict[str, Any]) -> str:
    if "enum" in form:
        return _cell(" or ".join(f"`{each}`" for each in form["enum"]))
    if "anyOf" in form:
        return " or ".join(map(_name_type, form["anyOf"]))
    kind = str(form.get("type", "any value"))
    return f"array of {_name_type(form['items'])}" if kind == "array" and "items" in form else kind


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write_config() -> Iterator[str]:
    """The page of the config: each table with its keys."""
    yield from ("# Config", "", _MADE, "", _CONFIG)
    for table, form in schema()["properties"].items():
        if "properties" not in form:
            continue
        yield from ("", f"## {table}", "", "| key | default | |", "| --- | --- | --- |")
        for name, key in form["properties"].items():
            choices = (
                " One of " + ", ".join(f"`{json.dumps(each)}`" for each in key["enum"]) + "."
                if "enum" in key
                else ""
            )
            yield f"| `{name}` | `{json.dumps(key['default'])}` | {_cell(key['description'])}.{choices} |"
    yield from (
        "",
        "## kinds",
        "",
        "`[kinds.NAME]` declares [a kind of memory of your own](templates.md#a-kind-of-your-own).",
        "",
    )
    yield from ("| key | default | |", "| --- | --- | --- |")
    for name, key in next(iter(schema()["properties"]["kinds"]["patternProperties"].values()))[
        "properties"
    ].items():
        yield f"| `{name}` | `{json.dumps(key['default'])}` | {_cell(key['description'])}. |"
    yield from ("", "## mounts", "", _MOUNTS)


PAGES = {
    "commands.md": write_commands,
    "wrong.md": write_codes,
    "python.md": write_python,
    "mcp.md": write_mcp,
    "config.md": write_config,
}


def main(arguments: list[str]) -> int:
    stale = []
    for name, write in PAGES.items():
        text = re.sub(r"[ \t]+$", "", "\n".join(write()), flags=re.MULTILINE) + "\n"
        file = DOCS / name
        if file.is_file() and file.read_text() == text:
            continue
        if arguments == ["--check"]:
            stale.append(name)
        else:
            file.write_text(text)
    if stale:
        print(f"not what the code says: {', '.join(stale)}; write them with: make docs")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
