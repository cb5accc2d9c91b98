"""Trouble: errors as a model is told them, with its next move in terms of the tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mdmem.errors import MdmemError, Unavailable
from mdmem.mcp.answer import BUDGET, Answer, clipped, short
from mdmem.vault.vault import Vault

_MOST = BUDGET * 3  # characters of a message: the difference of a conflict may be as long as the memory

# The next move where that of the program would be an option or a command of it.
_MOVES: Mapping[str, str] = {
    "already-exists": "read it with show and give its hash as base, or add to it with section;"
    " to replace it unread, give overwrite=true",
    "conflict": "read it again with show, make the change to what is there now, and give its hash as base",
    "index-damaged": "nothing is lost: call the tool again; the index is made anew",
    "limit-reached": "remove what is not needed any more with rm, then try again",
    "lock-timeout": "call the tool again",
    "memory-not-found": "see what there is with ls or search",
    "ripgrep-failed": "use search instead, and tell the user that `mdmem doctor` says what is wrong",
    "ripgrep-missing": "use search instead, and tell the user that ripgrep is not installed",
    "ripgrep-too-old": "use search instead, and tell the user that ripgrep is too old",
    "text-ambiguous": "give more of the text around it as old, or say with count how often it stands there"
    " (all: every one)",
    "text-not-found": "no line is similar: read the memory again with show",
}
# Codes whose own hint, where it names what is near, says more.
_OWN_IF_NEAR = ("memory-not-found", "text-not-found")
_PATTERN = "to look for the characters themselves, leave regex away"


def told(error: MdmemError, vault: Vault) -> Answer:
    """An error as the answer of a tool."""
    hint = _move(error)
    data = {"code": error.code, "message": error.message, "hint": hint, **_places(error)}
    # Only what the system says names folders of the host; what quotes a memory stays as it is.
    hide = _hider(vault) if isinstance(error, Unavailable) else str
    told = {key: hide(value) if isinstance(value, str) else value for key, value in data.items()}
    told["message"] = clipped(told["message"], _MOST)
    return Answer(tuple(filter(None, (told["message"], told["hint"]))), {"error": told}, is_error=True)


def _move(error: MdmemError) -> str:
    values = error.values
    if error.code in _OWN_IF_NEAR and (values.get("near") or values.get("left_out")):
        return error.hint
    if error.code == "text-ambiguous" and values.get("overlapping"):
        return error.hint
    if error.code == "pattern-invalid":
        return _PATTERN
    return _MOVES.get(error.code, error.hint)


def _places(error: MdmemError) -> dict[str, Any]:
    """What of an error a program may want by itself: where it is, and what is there now."""
    values = error.values
    found: dict[str, Any] = {name: values[name] for name in ("path", "lines") if name in values}
    if error.code == "conflict":
        found["hash"] = short(values["actual"])
    findings = [finding.as_dict() for finding in values.get("findings", ())]
    return {**found, "findings": findings} if findings else found


def _hider(vault: Vault) -> Callable[[str], str]:
    """Takes the host's folders out of a text."""
    base = f"{vault.root}/{vault.namespace}".rstrip("/")

    def hide(text: str) -> str:
        for folder in (base, vault.root, vault.workspace):
            text = text.replace(f"{folder}/", "").replace(folder, "the memory")
        return text

    return hide
