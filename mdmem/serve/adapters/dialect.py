"""The dialects of hosts: what their hooks are given, in the words of Claude Code, and what they are answered.

Which host says what, and what reaches its model, is in the table of docs/formats.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

Given = Mapping[str, Any]
DEAF = frozenset({"copilot-cli", "cursor", "vscode"})
"""The hosts that do not hand the model what a prompt hook says."""
_NATIVE = frozenset({"claude-code", "codex"})
_NAMES = {"conversation_id": "session_id", "tool_args": "tool_input", "tool_result": "tool_response"}
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_OF_CURSOR = {"conversation_id", "cursor_version", "workspace_roots"}
_OF_GEMINI = {"BeforeAgent", "AfterTool", "AfterAgent", "PreCompress"}
# The names of tools that change files, of all hosts: a host without matchers asks behind each tool.
_EDITS = r"(?i)edit|write|create|replace|patch|insert|delete|update"
_SHELLS = (
    r"(?i)(?:local_|exec_)?(?:bash|shell|powershell|command|run_shell_command)"
    r"|run_?(?:in_?)?terminal(?:_?(?:cmd|command))?"
)
_FILES = (
    *("file_path", "filePath", "absolute_path", "notebook_path", "target_file", "path"),
    *("files", "edits", "replacements"),
)
_PATCHED = r"(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$"


def translate(given: Given, host: str = "") -> dict[str, Any]:
    """Return what a host says in the words of Claude Code, with the host as `host`.

    Args:
        host: the host that the command names; empty where it names none. What is said tells whether
            another host reads its settings.
    """
    names = {name: _CAPITAL.sub(r"_\1", name).lower() for name in reversed(list(given))}
    said = {_NAMES.get(called, called): given[name] for name, called in names.items()}
    tool = said.get("tool_input")
    if isinstance(tool, str):
        said["tool_input"] = {"patch": tool}  # as it is, where it is no JSON
        with suppress(ValueError):
            said["tool_input"] = json.loads(tool)
    if "tool_input" not in said and isinstance(given.get("file_path"), str):
        said["tool_input"] = {"file_path": given["file_path"]}
    folder = next(iter(list_folders(given)), None)
    return {**said, "host": _name_host(given, host), **({"cwd": folder} if folder else {})}


def _name_host(given: Given, host: str) -> str:
    is_seen = {
        "codex": "turn_id" in given,
        "cursor": bool(_OF_CURSOR & given.keys()),
        "gemini-cli": given.get("hook_event_name") in _OF_GEMINI,
        "vscode": "hookEventName" in given,
        "copilot-cli": "sessionId" in given,
    }
    if seen := next((name for name, is_so in is_seen.items() if is_so), None):
        return seen
    # Claude Code says no time; those that say what they do in its words do.
    if host in {"claude-code", "copilot-cli"} and "timestamp" in given and "permission_mode" not in given:
        return "vscode" if {"transcript_path", "tool_use_id"} <= given.keys() else "copilot-cli"
    return host or ("claude-code" if "CLAUDE_PROJECT_DIR" in os.environ else "codex")


def list_folders(given: Given) -> list[str]:
    """List the folders in which a session works, as absolute paths; the one that the agent is in first."""
    roots = given.get("workspace_roots")
    named = [given.get("cwd"), *(roots if isinstance(roots, list) else [])]
    return [each for each in named if isinstance(each, str) and os.path.isabs(each) and "\0" not in each]


def is_shell(given: Given) -> bool:
    """Return whether a tool ran a command, which may have changed any file."""
    return bool(re.fullmatch(_SHELLS, str(given.get("tool_name"))))


def list_edited(given: Given) -> Iterator[str]:
    """Yield the files that a tool of the host has changed, as absolute paths."""
    name, tool = str(given.get("tool_name") or "Edit"), given.get("tool_input")
    if not isinstance(tool, Mapping) or not re.search(_EDITS, name) or "mdmem" in name:
        return
    if tool.get("command") == "view":  # what an editor that does several things has done
        return
    named = list(_list_named(tool))
    if name == "apply_patch":
        said = [tool.get(key) for key in ("command", "patch", "input")]
        texts = [text for each in said for text in (each if isinstance(each, list) else [each])]
        named += re.findall(_PATCHED, "\n".join(map(str, texts)))
    folder = str(given.get("cwd") or os.getcwd())
    paths = dict.fromkeys(map(_read_address, named))
    yield from (os.path.join(folder, path) for path in paths if path and "\0" not in path)


def _read_address(named: str) -> str:
    """Return the path of a file that is named by its address, as the tools of VS Code let a model do."""
    if not named.startswith("file://"):
        return named
    from urllib.parse import unquote  # noqa: PLC0415 - most are named by paths

    return unquote(f"/{named.split('/', 3)[-1]}")


def _list_named(tool: Any) -> Iterator[str]:
    for value in (tool.get(key) for key in _FILES) if isinstance(tool, Mapping) else ():
        if isinstance(value, str):
            yield value
        for each in value if isinstance(value, list) else ():
            yield from [each] if isinstance(each, str) else _list_named(each)


def render(given: Given, event: str, told: dict[str, Any] | str | None) -> dict[str, Any] | str | None:
    """Return an answer in the form of the host of `given`; None where nothing of it would reach anybody."""
    host = given["host"]
    if told is None or host in _NATIVE:
        return told
    if isinstance(told, str):
        return None
    specific, reason = told.get("hookSpecificOutput", {}), told.get("reason", "")
    name = given.get("hook_event_name") or specific.get("hookEventName", "")
    answer = {key: told[key] for key in ("systemMessage",) if key in told}
    if event == "stop" and reason:
        decided = {"decision": "deny" if host == "gemini-cli" else "block", "reason": reason}
        if host == "cursor":
            return {"followup_message": reason}
        return {**answer, **decided, "hookSpecificOutput": {"hookEventName": name, **decided}}
    if text := specific.get("additionalContext") or reason:
        answer["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": text}
        if host in DEAF:
            answer["additional_context" if host == "cursor" else "additionalContext"] = text
    return answer or None
