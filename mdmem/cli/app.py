"""The command tree. A command's module is imported when the command runs."""

from __future__ import annotations

import importlib

import click

from mdmem import __version__
from mdmem.cli.target import ENVIRONMENT, Target

# Which module each command lives in.
_COMMANDS = {
    "append": "edit",
    "backlinks": "references",
    "check": "find",
    "completion": "completion",
    "context": "context",
    "delete-lines": "edit",
    "doctor": "find",
    "graph": "references",
    "grep": "find",
    "history": "past",
    "hook": "hook",
    "import": "imports",
    "index": "index",
    "init": "make",
    "install": "install",
    "insert": "edit",
    "ls": "find",
    "mcp": "mcp",
    "mv": "edit",
    "new": "make",
    "notes": "notes",
    "preferences": "preferences",
    "prepend": "edit",
    "project": "project",
    "refs": "references",
    "render": "make",
    "replace": "edit",
    "restore": "past",
    "rm": "edit",
    "rules": "rules",
    "schema": "make",
    "search": "search",
    "section": "edit",
    "set": "edit",
    "show": "find",
    "tags": "references",
    "template": "make",
    "tool": "tool",
    "undo": "past",
    "uninstall": "install",
    "unset": "edit",
    "watch": "index",
    "working": "working",
    "write": "edit",
}


class LazyGroup(click.Group):
    """A group that knows its commands' names, and imports a command's module when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The command of this name."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"mdmem.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "--version", message="mdmem %(version)s")
@click.option(
    "--vault", metavar="DIR", envvar=ENVIRONMENT["vault"], help="The vault; else it is looked for upward."
)
@click.option("--user", metavar="ID", envvar=ENVIRONMENT["user"], help="The memory of this user.")
@click.option("--project", metavar="ID", envvar=ENVIRONMENT["project"], help="The memory about this project.")
@click.option("--resource", metavar="TYPE/ID", help="The memory about this resource.")
@click.option("--shared", is_flag=True, help="The memory that all users share.")
@click.option(
    "--actor",
    metavar="NAME",
    envvar=ENVIRONMENT["actor"],
    default="",
    help="Who changes it, for the history.",
)
@click.pass_context
def app(
    ctx: click.Context,
    vault: str | None,
    user: str | None,
    project: str | None,
    resource: str | None,
    shared: bool,
    actor: str,
) -> None:
    """Keep an agent's memory as plain Markdown and JSON files.

    \b
    mdmem init                                   make a vault in ./memories
    mdmem notes append db "One file." --title SQLite
    mdmem search sqlite                          find it
    mdmem replace notes/db.md "One" "A single"   change exactly that
    mdmem undo                                   take it back

    Every command has --json; every change has --dry-run, which prints the diff.
    """  # noqa: D301 - the backspace is click's mark for lines that stay as they are
    ctx.obj = Target(vault, user, project, resource, shared, actor)
