"""The commands of notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import group
from mdmem.cli.options import base_option, change_command, read_command, text_argument
from mdmem.cli.render import print_document, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.memory.memory import Memory


@group("notes")
def notes_command() -> None:
    """Notes: Markdown under notes/ that grows by sections."""


@notes_command.command("append", epilog="Example: mdmem notes append db 'One file.' --title SQLite")
@click.argument("name")
@text_argument("content")
@click.option("--title", help="The heading of the section; without one, the local time.")
@change_command
def notes_append(name: str, content: str, title: str | None) -> Callable[[Any], Any]:
    """Add a section at the end of a note, which is made if it is not there."""
    return lambda m: m.notes.append(name, content, title)


@notes_command.command("overwrite", epilog="Example: mdmem notes overwrite db 'One file.' --title SQLite")
@click.argument("name")
@text_argument("content")
@click.option("--title", help="The heading of the section; without one, the local time.")
@base_option
@change_command
def notes_overwrite(name: str, content: str, title: str | None, base: str | None) -> Callable[[Any], Any]:
    """Make a note just one section; its frontmatter stays."""
    return lambda m: m.notes.overwrite(name, content, title, base=base)


@notes_command.command("read", epilog="Example: mdmem notes read db")
@click.argument("name")
@read_command
def notes_read(memory: Memory, name: str, as_json: bool) -> None:
    """Print a note exactly as it is; its hash goes to standard error."""
    print_document(memory.notes.read(name), as_json=as_json)


@notes_command.command("list", epilog="Example: mdmem notes list decisions")
@click.argument("within", default="", metavar="[FOLDER]")
@read_command
def notes_list(memory: Memory, within: str, as_json: bool) -> None:
    """List the notes with their titles."""
    infos = memory.notes.list(within)
    if as_json:
        print_json([info.as_dict() for info in infos])
        return
    for info in infos:
        print(f"{info.path}\t{info.title}")
