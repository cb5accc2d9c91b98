"""The command that takes in the memory of other systems."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from mdmem.cli.command import command
from mdmem.cli.options import json_option, make_change
from mdmem.cli.render import progress_bar
from mdmem.memory.importing import FORMATS

if TYPE_CHECKING:
    from mdmem.cli.target import Target


@command("import", epilog="Example: mdmem import mcp-memory memory.jsonl --dry-run")
@click.argument("format_", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("source")
@click.option("--to", metavar="FOLDER", help="The folder to put it in (notes; for aster, that of each kind).")
@click.option("--dry-run", is_flag=True, help="Print the diff and write nothing.")
@json_option
@click.pass_obj
def import_command(
    target: Target, format_: str, source: str, to: str | None, dry_run: bool, as_json: bool
) -> None:
    """Take in the memory of another system, as one change that `mdmem undo` takes back.

    \b
    mcp-memory    the JSONL file of the MCP memory server: a note for each entity
    basic-memory  a folder of its notes: titles and permalinks become aliases
    claude-code   ~/.claude/projects/REPOSITORY: names become titles and aliases
    obsidian      a vault: as it is, with a warning for each link that is unclear
    aster         a folder or a file of its notes, rules, project and working memory, preferences

    Nothing that is there is overwritten; what is left out is named on standard error, with the reason.
    """  # noqa: D301 - as in mdmem.cli.app
    with ExitStack() as stack:
        progress = progress_bar(stack, "importing")
        make_change(
            target.open(),
            lambda m: m.import_(format_, source, to=to, progress=progress),
            dry_run=dry_run,
            as_json=as_json,
        )
