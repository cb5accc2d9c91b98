"""Hooks: what an agent is told when a session begins, behind an edit, before compaction, and when it stops.

The forms are those of Claude Code and of Codex, which took over Claude Code's: JSON in, JSON out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mdmem.errors import Usage
from mdmem.hosts import editing
from mdmem.hosts.beside import Beside
from mdmem.memory.memory import Memory
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from datetime import datetime

    from mdmem.memory.excerpt import Gathered

Given = Mapping[str, Any]
_SESSIONS = "sessions"
_SESSION_SECONDS = 7 * 24 * 3600
_LONGEST_SESSION = 64  # bytes of its id
_PATCHED = regex(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)
_THREADS = "/working/threads/"
CONTEXT_TOKENS = 2_000
"""About how much a session begins with."""


def answer(memory: Memory, event: str, given: Given) -> dict[str, Any] | str | None:
    """What a hook is answered: JSON, a plain text, or nothing.

    Args:
        memory: whose.
        event: `session-start`, `post-edit`, `pre-compact` or `stop`.
        given: what the host says.

    Raises:
        Usage: there is no such event.
        MdmemError: the answer cannot be found.
    """
    if event not in _ANSWERS:
        raise Usage(problem=f"there is no event {event!r}", remedy=f"say {', '.join(_ANSWERS)}")
    return _ANSWERS[event](memory, given)


# -- the events -------------------------------------------------------------------------------------------


def _session_start(memory: Memory, _given: Given) -> dict[str, Any] | None:
    from datetime import UTC, datetime  # noqa: PLC0415 - other events need none

    now = datetime.now(UTC)
    # Another process gathers while this one makes the template ready.
    found = Beside(lambda: _gathered(memory, now))
    from mdmem.memory.context import composed  # noqa: PLC0415 - as above

    _forget_old_sessions(memory)
    text = composed(memory, found.result, CONTEXT_TOKENS, estimated=True, now=now).text
    return _told("SessionStart", text) if text else None


def _gathered(memory: Memory, now: datetime) -> dict[str, Gathered]:
    """What a session begins with: the context with the newest thread's working memory."""
    from mdmem.memory.context_source import gathered  # noqa: PLC0415 - as above

    threads = (path for path, _ in _live(memory) if _THREADS in f"/{path}")
    newest = next(threads, None)
    return gathered(memory, "", (), _name(newest) if newest else None, now)


def _post_edit(memory: Memory, given: Given) -> dict[str, Any] | None:
    files = list(_edited(given))
    if not files:
        return None
    _note_edit(memory, given)
    errors, warnings = editing.found(memory, files)
    text = "\n".join((*errors, *warnings))
    if not errors:
        return _told("PostToolUse", text) if text else None
    # The edit stands: "block" only makes the host hand the reason back at once.
    return {"decision": "block", "reason": text}


def _pre_compact(memory: Memory, given: Given) -> dict[str, Any] | str | None:
    working = _live(memory)
    if not working and not _edited_since(memory, given, 0):
        return None
    lines = ["What mdmem keeps is given back after this: project memory, preferences and working memory."]
    lines += [f"- {path} (changed {_ago(changed)})" for path, changed in working]
    lines.append(
        "Keep in the summary what is not there yet: decisions and their reasons, what is open, the next step."
    )
    text = "\n".join(lines)
    # Claude Code appends a plain text to the instructions of the summary. Codex has no such place.
    return {"systemMessage": text} if _is_codex(given) else text


def _stop(memory: Memory, given: Given) -> dict[str, Any] | None:
    # What stopped it once must not stop it again, nor a session that has edited nothing since.
    if given.get("stop_hook_active") is not False or not _edited_since(memory, given, 0):
        return None
    working = _live(memory)
    if not working or not _edited_since(memory, given, working[0][1]):
        return None
    path, changed = working[0]
    _forget_edit(memory, given)
    option = "--thread" if _THREADS in f"/{path}" else "--resource"
    return {
        "decision": "block",
        "reason": (
            f"Files were edited since the working memory {path} was written ({_ago(changed)})."
            " If state, decisions or the next step have changed, write them there:"
            f" `mdmem working update TEXT {option} {_name(path)}`. Otherwise finish."
        ),
    }


_ANSWERS = {
    "session-start": _session_start,
    "post-edit": _post_edit,
    "pre-compact": _pre_compact,
    "stop": _stop,
}


def _told(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


# -- what the host says -----------------------------------------------------------------------------------


def _is_codex(given: Given) -> bool:
    """Whether Codex asks: it counts turns where there are any, and Claude Code says where the project is."""
    return "turn_id" in given or "CLAUDE_PROJECT_DIR" not in os.environ


def _edited(given: Given) -> Iterator[str]:
    """The files that a tool of the host has changed, as absolute paths."""
    tool = given.get("tool_input")
    folder = str(given.get("cwd") or os.getcwd())
    if not isinstance(tool, Mapping):
        return
    named = [tool.get("file_path"), tool.get("notebook_path")]
    command = tool.get("command", tool.get("patch"))
    if given.get("tool_name") == "apply_patch" and isinstance(command, str):
        named += _PATCHED.findall(command)
    for path in dict.fromkeys(name for name in named if isinstance(name, str) and name):
        yield os.path.join(folder, path)


# -- working memory ---------------------------------------------------------------------------------------


def _live(memory: Memory) -> list[tuple[str, float]]:
    """The working memories that live, each with when it was changed, the newest first."""
    changed = {
        found.path: found.mtime_ns / 1e9 for found in memory.vault.walk("working") if not found.problem
    }
    if not changed:
        return []
    live = [info.path for info in memory.working.list() if not info.expired and info.path in changed]
    return sorted(((path, changed[path]) for path in live), key=lambda pair: -pair[1])


def _name(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


def _ago(moment: float) -> str:
    minutes = max(0, int((time.time() - moment) // 60))
    if minutes < 120:  # noqa: PLR2004 - two hours
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago"


# -- what was edited in a session -------------------------------------------------------------------------


def _mark(memory: Memory, given: Given) -> str:
    """The file whose time is that of the last edit in a session."""
    session = str(given.get("session_id", "")).encode("utf-8", "replace")
    # What is longer than an id has the end that tells it from others; a digest would take longer to import.
    return os.path.join(memory.vault.local(_SESSIONS), f"s{session[-_LONGEST_SESSION:].hex()}")


def _note_edit(memory: Memory, given: Given) -> None:
    with open(_mark(memory, given), "wb"):
        pass


def _edited_since(memory: Memory, given: Given, moment: float) -> bool:
    try:
        return os.stat(_mark(memory, given)).st_mtime > moment
    except FileNotFoundError:
        return False


def _forget_edit(memory: Memory, given: Given) -> None:
    os.unlink(_mark(memory, given))


def _forget_old_sessions(memory: Memory) -> None:
    before = time.time() - _SESSION_SECONDS
    with os.scandir(memory.vault.local(_SESSIONS)) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)
