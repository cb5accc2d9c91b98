"""The command that a host's hooks run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmem.cli.answer import answer
from mdmem.cli.command import command

if TYPE_CHECKING:
    from mdmem.cli.target import Target


@command("hook", epilog="""Example: mdmem hook post-edit <<< '{"tool_input": {}}'""")
@click.argument("event", metavar="EVENT")
@click.pass_obj
def hook_command(target: Target, event: str) -> int:
    """Answer a hook of Claude Code or Codex.

    EVENT is session-start, user-prompt, post-edit, pre-compact or stop. What the host says is read from
    standard input as JSON; the answer has the form that the host reads. It never fails a turn of the agent:
    whatever goes wrong is a note on standard error. Without a vault it says nothing.
    """
    return answer(target, event)
