"""The command of the memory tool: commands of a model in, answers for it out."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import command

if TYPE_CHECKING:
    from mdmem.cli.target import Target
    from mdmem.memory.tool import Dialect, Tool


@command("tool", epilog="""Example: mdmem tool '{"command": "view", "path": "/memories"}'""")
@click.argument("given", metavar="[COMMAND]", default="-")
@click.option(
    "--dialect",
    type=click.Choice(["python", "docs"]),
    default="python",
    show_default=True,
    help="Answer as Anthropic's Python SDK does, or as the documentation of its memory tool says.",
)
@click.pass_obj
def tool_command(target: Target, given: str, dialect: Dialect) -> int:
    """Do what a memory tool is told: view, create, str_replace, insert, delete, rename.

    COMMAND is JSON as a model gives it; without it, each line of standard input is one. Each line of the
    output is an answer: {"content": "…", "is_error": false}. The folder /memories is the namespace.
    """
    from mdmem.memory.tool import Tool

    tool, failed = Tool(target.open(), dialect), False
    for line in sys.stdin.buffer if given == "-" else [given]:
        if line.strip():
            answer = _answer(tool, line)
            failed = failed or answer["is_error"]
            print(json.dumps(answer, ensure_ascii=False), flush=True)
    return int(failed)


def _answer(tool: Tool, line: bytes | str) -> dict[str, Any]:
    from mdmem.errors import ToolRefused

    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"content": f"The command is not JSON: {error}", "is_error": True}
    if not isinstance(given, dict):
        return {"content": "The command is not a JSON object.", "is_error": True}
    try:
        return {"content": tool.call(given), "is_error": False}
    except ToolRefused as error:
        return {"content": error.words, "is_error": True}
