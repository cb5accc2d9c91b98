"""mdmem keeps an agent's memory as plain Markdown and JSON files.

Example:
    memory = mdmem.open("memories", scope=mdmem.Scope(user="alice", project="demo"))
    memory.notes.append("db.md", "SQLite: one file.", title="Decision")
    plan = memory.plan.replace("notes/db.md", "one file", "a single file")
    memory.apply(plan)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdmem.diagnostic import Diagnostic, Position, Span, as_json
    from mdmem.errors import Conflict, Invalid, MdmemError, NotFound, PathRefused, Refused, Unavailable
    from mdmem.index.hit import Hit
    from mdmem.index.query import SearchRequest
    from mdmem.links.references import Reference
    from mdmem.memory.memory import Memory, open  # noqa: A004 - mdmem.open reads as what it does
    from mdmem.text.document import Document
    from mdmem.text.edit import TextEdit
    from mdmem.text.section import find_section
    from mdmem.text.tokens import clipped, estimate, fenced, visible
    from mdmem.text.yaml import read_value
    from mdmem.vault.config import init
    from mdmem.vault.paths import Scope, check_folder, check_memory
    from mdmem.vault.plan import Change, EditPlan
    from mdmem.vault.transaction import Applied

__version__ = "0.1.0"

# Where each public name lives. Loaded when it is first used, so that `mdmem --version` loads none of them.
_HOMES = {
    "Applied": "mdmem.vault.transaction",
    "Change": "mdmem.vault.plan",
    "Conflict": "mdmem.errors",
    "Diagnostic": "mdmem.diagnostic",
    "Document": "mdmem.text.document",
    "EditPlan": "mdmem.vault.plan",
    "Hit": "mdmem.index.hit",
    "Invalid": "mdmem.errors",
    "MdmemError": "mdmem.errors",
    "Memory": "mdmem.memory.memory",
    "NotFound": "mdmem.errors",
    "PathRefused": "mdmem.errors",
    "Position": "mdmem.diagnostic",
    "Reference": "mdmem.links.references",
    "Refused": "mdmem.errors",
    "Scope": "mdmem.vault.paths",
    "SearchRequest": "mdmem.index.query",
    "Span": "mdmem.diagnostic",
    "TextEdit": "mdmem.text.edit",
    "Unavailable": "mdmem.errors",
    "as_json": "mdmem.diagnostic",
    "check_folder": "mdmem.vault.paths",
    "check_memory": "mdmem.vault.paths",
    "clipped": "mdmem.text.tokens",
    "estimate": "mdmem.text.tokens",
    "fenced": "mdmem.text.tokens",
    "find_section": "mdmem.text.section",
    "init": "mdmem.vault.config",
    "open": "mdmem.memory.memory",
    "read_value": "mdmem.text.yaml",
    "visible": "mdmem.text.tokens",
}

__all__ = [
    "Applied",
    "Change",
    "Conflict",
    "Diagnostic",
    "Document",
    "EditPlan",
    "Hit",
    "Invalid",
    "MdmemError",
    "Memory",
    "NotFound",
    "PathRefused",
    "Position",
    "Reference",
    "Refused",
    "Scope",
    "SearchRequest",
    "Span",
    "TextEdit",
    "Unavailable",
    "__version__",
    "as_json",
    "check_folder",
    "check_memory",
    "clipped",
    "estimate",
    "fenced",
    "find_section",
    "init",
    "open",
    "read_value",
    "visible",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - start-up

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
