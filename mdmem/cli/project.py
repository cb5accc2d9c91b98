"""The commands of project memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import group
from mdmem.cli.options import change_command, read_command, read_value, text_argument
from mdmem.cli.render import print_document, print_json

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory

Verb = Callable[[Any], Any]


@group("project")
def project_command() -> None:
    """Project memory: the AGENTS.md of the namespace; in a repository, the one at its root."""


@project_command.command("load", epilog="Example: mdmem project load")
@read_command
def project_load(memory: Memory, as_json: bool) -> None:
    """Print the project memory exactly as it is; its hash goes to standard error."""
    print_document(memory.project.load(), as_json=as_json)


@project_command.command("summary", epilog="Example: mdmem project summary --max-chars 2000")
@click.option("--max-chars", type=click.IntRange(0), help="At most so many characters.")
@read_command
def project_summary(memory: Memory, max_chars: int | None, as_json: bool) -> None:
    """Print its preferences and decisions."""
    text = memory.project.summary(max_chars)
    if as_json:
        print_json({"summary": text})
    else:
        print(text)


@project_command.command("append", epilog="Example: mdmem project append Decisions 'Use SQLite' --date")
@click.argument("section")
@text_argument("entry")
@click.option("--date", is_flag=True, help="Write today's date before it.")
@change_command
def project_append(section: str, entry: str, date: bool) -> Verb:
    """Add a bullet to a section, which is made if it is not there."""
    return lambda m: m.project.append(section, entry, date=date)


@project_command.command("step", epilog="Example: mdmem project step deploy done 'on Friday'")
@click.argument("id_", metavar="ID")
@click.argument("status")
@click.argument("note", default="")
@click.option("--section", default="Workflow", show_default=True, help="Where it stands.")
@change_command
def project_step(id_: str, status: str, note: str, section: str) -> Verb:
    """Say how a step of the workflow stands."""
    return lambda m: m.project.step(id_, status, note, section=section)


@project_command.command("params", epilog="Example: mdmem project params model=large temperature=0.2")
@click.argument("pairs", nargs=-1, required=True, metavar="NAME=VALUE")
@click.option("--section", default="Parameters", show_default=True, help="Where they stand.")
@change_command
def project_params(pairs: tuple[str, ...], section: str) -> Verb:
    """Record parameters. VALUE is read as YAML."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{pair!r} is not NAME=VALUE")
        values[name] = read_value(value)
    return lambda m: m.project.params(values, section=section)
