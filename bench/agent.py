"""Stand for an agent in Claude Code: run the hooks and call the server that its settings name.

    bench/agent.py SessionStart            prints what the hook of the event gives to the agent
    bench/agent.py UserPromptSubmit TEXT   the same, with the prompt of a user
    bench/agent.py replace path=notes/db.md old=this new=that

The last calls a tool of the server. A value that is JSON, such as a number, is taken as that, and in others
backslash and n are a new line. It runs in the root of a repository after `mdmem install claude-code`.
No model is asked: it does what the arguments say.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters

EVENT = r"[A-Z]\w+"


def run_hooks(event: str, prompt: str) -> str:
    """Run the hooks of an event as the host does, with JSON, and return what they give to the agent."""
    given = {"session_id": "demo", "cwd": str(Path.cwd()), "hook_event_name": event, "prompt": prompt}
    settings = json.loads(Path(".claude/settings.json").read_text())
    told = []
    for hook in (hook for entry in settings["hooks"][event] for hook in entry["hooks"]):
        command = ["sh", "-c", hook["command"]]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
        told.append(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else "")
    return "\n".join(told).rstrip("\n")


def read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.replace("\\n", "\n")


async def call_tool(server: dict[str, Any], name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Start the server as the host does, call one tool, and return its answer and whether it is an error."""
    words = [each.replace("${CLAUDE_PROJECT_DIR:-.}", ".") for each in server["args"]]
    parameters = StdioServerParameters(command=server["command"], args=words, env=dict(os.environ))
    who = types.Implementation(name="claude-code", version="1")
    async with Client(parameters, client_info=who) as client:
        answer = await client.call_tool(name, arguments)
    texts = [each.text for each in answer.content if isinstance(each, types.TextContent)]
    return "\n".join(texts), bool(answer.is_error)


def main(arguments: list[str]) -> int:
    name, *rest = arguments
    if re.fullmatch(EVENT, name):
        print(run_hooks(name, " ".join(rest)))
        return 0
    values = {key: read_value(text) for key, _, text in (each.partition("=") for each in rest)}
    server = json.loads(Path(".mcp.json").read_text())["mcpServers"]["mdmem"]
    text, is_error = anyio.run(call_tool, server, name, values)
    print(text)
    return int(is_error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
