"""The commands that put mdmem into a host of agents, and take it out again."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import command
from mdmem.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.cli.target import Target
    from mdmem.hosts.setup import Setup

_HOSTS = ("claude-code", "codex", "cursor", "vscode", "windsurf", "zed")


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What both commands take."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Print the diff and write nothing."),
        click.option("--project", is_flag=True, help="In the settings of this project; the default."),
        click.option("--user", is_flag=True, help="In your own settings, for every project."),
        click.argument("host", type=click.Choice(_HOSTS)),
    ):
        function = option(function)
    return click.pass_obj(json_option(function))


@command("install", epilog="Example: mdmem install claude-code --dry-run")
@_options
def install_command(target: Target, host: str, *, user: bool, project: bool, **how: bool) -> int:
    """Put the MCP server into a host's settings, and for Claude Code and Codex the hooks.

    It shows the diff and asks; everything else in those files stays as it is, to the byte. The server and the
    hooks see what --vault, --user, --project and --resource before `install` name; without a user, project or
    resource what everyone shares, as with --shared.
    """
    from mdmem.hosts import setup
    from mdmem.hosts.host import Bound

    memory = target.open()
    folder = _project(memory.vault.root, user=user, project=project, host=host)
    bound = Bound(_program(), memory.vault.root, _bound_to(target), folder)
    return _change(setup.install(host, bound), **how)


@command("uninstall", epilog="Example: mdmem uninstall claude-code --dry-run")
@_options
def uninstall_command(target: Target, host: str, *, user: bool, project: bool, **how: bool) -> int:
    """Take out of a host's settings what `install` put in, to the byte.

    It shows the diff and asks. Where a file has changed since, only the entries themselves are taken out.
    """
    from mdmem.errors import VaultNotFound
    from mdmem.hosts import setup

    try:
        vault = target.open().vault.root
    except VaultNotFound:
        vault = ""  # it may be gone already
    folder = _project(vault, user=user, project=project, host=host)
    return _change(setup.uninstall(host, folder), **how)


def _project(vault: str, *, user: bool, project: bool, host: str) -> str | None:
    """The folder of the project whose settings are meant; None for the user's own."""
    from mdmem.errors import Usage
    from mdmem.hosts.host import HOSTS
    from mdmem.vault.config import workspace_of

    if user and project:
        raise Usage(problem="--user and --project exclude each other", remedy="say one of them")
    if user or (HOSTS[host].project is None and not project):
        return None
    here = os.path.realpath(os.getcwd())
    if vault:
        around = workspace_of(vault)
        if os.path.commonpath((around, here)) == around:
            return around
    # `workspace_of` begins above what it is given.
    return workspace_of(os.path.join(here, "memories"))


def _program() -> str:
    """The command that starts this program: its name where the shell finds it."""
    from shutil import which

    beside = os.path.join(os.path.dirname(sys.executable), "mdmem")
    return beside if which("mdmem") is None and os.path.exists(beside) else "mdmem"


def _bound_to(target: Target) -> tuple[str, ...]:
    named = (("--user", target.user), ("--project", target.project), ("--resource", target.resource))
    options = [part for option, value in named if value for part in (option, value)]
    # Without a scope, an agent would be served the memories of every user.
    return (*options, "--shared") if target.shared or not options else tuple(options)


def _change(setup: Setup, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    from mdmem.cli.render import print_json
    from mdmem.errors import Usage

    wanted = bool(setup.changes) and not dry_run
    if as_json:
        if wanted and not yes:
            raise Usage(problem="--json does not ask", remedy="say --yes or --dry-run")
    elif setup.changes:
        print(setup.diff(), end="")
    for note in setup.notes():
        print(f"mdmem: {note}", file=sys.stderr)
    if wanted and not yes:
        if not sys.stdin.isatty():
            raise Usage(problem="nothing was written: nobody can be asked here", remedy="say --yes")
        wanted = click.confirm("Write this?", err=True)
    if wanted:
        setup.apply()
    if as_json:
        print_json({"applied": wanted, "files": [each.path for each in setup.changes], "diff": setup.diff()})
    elif not setup.changes:
        print("nothing to do")
    return 0
