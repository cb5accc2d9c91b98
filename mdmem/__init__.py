"""mdmem keeps an agent's memory as plain Markdown and JSON files.

Example:
    memory = mdmem.open("memories", scope=mdmem.Scope(user="alice", project="demo"))
    memory.notes.append("db.md", "SQLite: one file.", title="Decision")
    plan = memory.plan.replace("notes/db.md", "one file", "a single file")
    memory.apply(plan)

What is public is what stands here; everything else may change without a word.

    open, init, Scope               begin: a vault, and whose memory
    Memory                          all that is asked and changed: help(mdmem.Memory)
    EditPlan, Change, TextEdit      a change that is not made yet, as memory.plan returns it
    Applied                         what a change did
    Document, Span, Position        a memory, and places in its text
    Hit, Reference                  what grep, search and references find
    Diagnostic                      what is wrong with a memory
    Message, RunSummary, SessionHits, ResultReference      what sessions and results hold
    Event, Watch, Keeper            what memory.watch() gives
    MdmemError                      every error, with its code: NotFound, Refused, Conflict, Invalid,
                                    PathRefused, Unavailable
    Generator, Program, command, configured                a model that is asked
    Embedder                        what makes vectors, for a search by meaning
    MergedFile, merge_files         git's merges
    Setup, uninstall                what install would write, and what takes it away
    StoredMemory, VaultStore        a store by namespace and id, with vectors
    MemoryTool, AsyncMemoryTool, VaultSession, VaultBackend      for SDKs of agents; each needs its extra
    as_json, check_folder, check_memory, clipped, estimate, fenced, find_section, read_value, visible
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdmem.conversations.find.find import SessionHits
    from mdmem.conversations.log.message import Message
    from mdmem.conversations.log.record import RunSummary
    from mdmem.conversations.models.generator import Generator
    from mdmem.conversations.models.program import Program, command, configured
    from mdmem.conversations.results.database import ResultReference
    from mdmem.diagnostic import Diagnostic, Position, Span, as_json
    from mdmem.document.document import Document
    from mdmem.document.edit import TextEdit
    from mdmem.document.section import find_section
    from mdmem.document.text.tokens import clipped, estimate, fenced, visible
    from mdmem.document.yaml import read_value
    from mdmem.errors import Conflict, Invalid, MdmemError, NotFound, PathRefused, Refused, Unavailable
    from mdmem.facade.memini import StoredMemory, VaultStore
    from mdmem.facade.memory import Memory, open  # noqa: A004 - mdmem.open reads as what it does
    from mdmem.hosts.hosts import Setup, uninstall
    from mdmem.index.embedder import Embedder
    from mdmem.index.hit import Hit
    from mdmem.index.links.references import Reference
    from mdmem.index.watch.events import Event, Watch
    from mdmem.index.watch.watcher import Keeper
    from mdmem.review.merge_driver import MergedFile, merge_files
    from mdmem.serve.adapters.anthropic import AsyncMemoryTool, MemoryTool
    from mdmem.serve.adapters.deepagents import VaultBackend
    from mdmem.serve.adapters.openai_agents import VaultSession
    from mdmem.vault.folder import init
    from mdmem.vault.paths import Scope, check_folder, check_memory
    from mdmem.vault.plan import Change, EditPlan
    from mdmem.vault.transaction import Applied

__version__ = "0.1.0"

# Where each public name lives. Loaded when it is first used, so that `mdmem --version` loads none of them.
_HOMES = {
    name: f"mdmem.{module}"
    for module, names in {
        "hosts.hosts": ("Setup", "uninstall"),
        "diagnostic": ("Diagnostic", "Position", "Span", "as_json"),
        "errors": ("Conflict", "Invalid", "MdmemError", "NotFound", "PathRefused", "Refused", "Unavailable"),
        "conversations.models.generator": ("Generator",),
        "review.merge_driver": ("MergedFile", "merge_files"),
        "index.embedder": ("Embedder",),
        "index.hit": ("Hit",),
        "index.links.references": ("Reference",),
        "facade.memini": ("StoredMemory", "VaultStore"),
        "facade.memory": ("Memory", "open"),
        "serve.adapters.anthropic": ("AsyncMemoryTool", "MemoryTool"),
        "serve.adapters.deepagents": ("VaultBackend",),
        "serve.adapters.openai_agents": ("VaultSession",),
        "conversations.models.program": ("Program", "command", "configured"),
        "conversations.results.database": ("ResultReference",),
        "conversations.find.find": ("SessionHits",),
        "conversations.log.message": ("Message",),
        "conversations.log.record": ("RunSummary",),
        "document.document": ("Document",),
        "document.edit": ("TextEdit",),
        "document.section": ("find_section",),
        "document.text.tokens": ("clipped", "estimate", "fenced", "visible"),
        "document.yaml": ("read_value",),
        "vault.folder": ("init",),
        "vault.paths": ("Scope", "check_folder", "check_memory"),
        "vault.plan": ("Change", "EditPlan"),
        "vault.transaction": ("Applied",),
        "index.watch.events": ("Event", "Watch"),
        "index.watch.watcher": ("Keeper",),
    }.items()
    for name in names
}

__all__ = [
    "Applied",
    "AsyncMemoryTool",
    "Change",
    "Conflict",
    "Diagnostic",
    "Document",
    "EditPlan",
    "Embedder",
    "Event",
    "Generator",
    "Hit",
    "Invalid",
    "Keeper",
    "MdmemError",
    "Memory",
    "MemoryTool",
    "MergedFile",
    "Message",
    "NotFound",
    "PathRefused",
    "Position",
    "Program",
    "Reference",
    "Refused",
    "ResultReference",
    "RunSummary",
    "Scope",
    "SessionHits",
    "Setup",
    "Span",
    "StoredMemory",
    "TextEdit",
    "Unavailable",
    "VaultBackend",
    "VaultSession",
    "VaultStore",
    "Watch",
    "__version__",
    "as_json",
    "check_folder",
    "check_memory",
    "clipped",
    "command",
    "configured",
    "estimate",
    "fenced",
    "find_section",
    "init",
    "merge_files",
    "open",
    "read_value",
    "uninstall",
    "visible",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - start-up

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
