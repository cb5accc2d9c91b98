"""Trouble: errors as a model is told them, with its next move in terms of the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, Unavailable
from mdmem.mcp.answer import BUDGET, Answer, short
from mdmem.text.regex import regex
from mdmem.text.tokens import clipped
from mdmem.vault.screen import for_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mdmem.vault.vault import Vault

_MOST = BUDGET * 3  # characters of a message: the difference of a conflict may be as long as the memory

# The next move where that of the program would be an option of it, or something that no model can do.
_MOVES: Mapping[str, str] = {
    "already-exists": "read it with show and give its hash as base, or add to it with section;"
    " to replace it unread, give overwrite=true",
    "conflict": "read it again with show, make the change to what is there now, and give its hash as base",
    "index-damaged": "nothing is lost: call the tool again; the index is made anew",
    "limit-reached": "remove what is not needed any more with rm, then try again",
    "lock-timeout": "call the tool again",
    "pattern-invalid": "to look for the characters themselves, leave regex away",
    "ripgrep-failed": "use search instead, and tell the user that `mdmem doctor` says what is wrong",
    "ripgrep-missing": "use search instead, and tell the user that ripgrep is not installed",
    "ripgrep-too-old": "use search instead, and tell the user that ripgrep is too old",
    "text-ambiguous": "give more of the text around it as old, or say with count how often it stands there"
    " (all: every one)",
    "too-large": "split it into several memories",
}
# What only the user can mend, who has the program.
_OF_THE_USER = (
    *("config-invalid", "extra-missing", "git-failed", "not-utf8", "storage-failed"),
    *("template-failed", "vault-not-found"),
)
# A command of the program in a hint, and the tool that does the same.
_COMMAND = regex(r"`mdmem ([a-z]+)[^`]*`")
_TOOLS: Mapping[str, str] = {"ls": "ls", "rm": "rm", "set": "write", "show": "show", "unset": "replace"}


def told(error: MdmemError, vault: Vault) -> Answer:
    """An error as the answer of a tool."""
    error = for_agent(error)
    hint = _move(error)
    data = {"code": error.code, "message": error.message, "hint": hint, **_places(error)}
    # Only what the system says names folders of the host; what quotes a memory stays as it is.
    hide = _hider(vault) if isinstance(error, Unavailable) else str
    told = {key: hide(value) if isinstance(value, str) else value for key, value in data.items()}
    told["message"] = clipped(told["message"], _MOST)
    return Answer(tuple(filter(None, (told["message"], told["hint"]))), {"error": told}, is_error=True)


def _move(error: MdmemError) -> str:
    if error.code == "text-ambiguous" and error.values["overlapping"]:
        return error.hint
    if error.code in _OF_THE_USER:
        return f"tell the user: {error.hint}" if error.hint else "tell the user"
    return _MOVES.get(error.code) or _with_tools(error.hint)


def _with_tools(hint: str) -> str:
    """A hint with tools instead of commands; of a command that no tool stands for the user is to be told."""
    return _COMMAND.sub(lambda found: _TOOLS.get(found[1]) or f"{found[0]} (tell the user to run it)", hint)


def _places(error: MdmemError) -> dict[str, Any]:
    """What of an error a program may want by itself: where it is, and what is there now."""
    values = error.values
    found: dict[str, Any] = {name: values[name] for name in ("path", "lines") if name in values}
    if error.code == "conflict":
        found["hash"] = short(values["actual"])
    findings = [finding.as_dict() for finding in values.get("findings", ())]
    for finding in findings:
        finding["hint"] = _with_tools(finding["hint"])
    return {**found, "findings": findings} if findings else found


def _hider(vault: Vault) -> Callable[[str], str]:
    """Takes the host's folders out of a text."""
    base = f"{vault.root}/{vault.namespace}".rstrip("/")

    def hide(text: str) -> str:
        for folder in (base, vault.root, vault.workspace):
            text = text.replace(f"{folder}/", "").replace(folder, "the memory")
        return text

    return hide
