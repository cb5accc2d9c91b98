"""The commands of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli.command import group
from mdmem.cli.options import read_command
from mdmem.cli.render import print_json

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory


@group("rules")
def rules_command() -> None:
    """Rules: what holds for everyone, for a project, for a user; for all files, or for some."""


@rules_command.command("list", epilog="Example: mdmem rules list --for src/app.py")
@click.option(
    "--for", "for_file", metavar="FILE", help="Only rules that apply to this file of the workspace."
)
@click.option("--disabled", is_flag=True, help="Also those that are switched off.")
@read_command
def rules_list(memory: Memory, for_file: str | None, disabled: bool, as_json: bool) -> None:
    """List the rules, the most important first."""
    found = memory.rules.list(for_file, disabled=disabled)
    if as_json:
        print_json([rule.as_dict() for rule in found])
        return
    for rule in found:
        globs = f"  {', '.join(rule.globs)}" if rule.globs else ""
        state = "" if rule.enabled else "  (disabled)"
        print(f"{rule.priority:4}  {rule.scope:8} {rule.name}  {rule.title}{globs}{state}")


@rules_command.command("text", epilog="Example: mdmem rules text --for src/app.py")
@click.option(
    "--for", "for_file", metavar="FILE", help="Only rules that apply to this file of the workspace."
)
@click.option("--max-chars", type=click.IntRange(0), help="At most so many characters.")
@read_command
def rules_text(memory: Memory, for_file: str | None, max_chars: int | None, as_json: bool) -> None:
    """Print the rules as one text, to be given to a model."""
    text = memory.rules.text(for_file, max_chars)
    if as_json:
        print_json({"text": text})
    else:
        print(text)
