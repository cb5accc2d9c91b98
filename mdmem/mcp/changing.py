"""The tools that change: each is one call of a verb of the façade, or of the same verb of its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mdmem import clipped
from mdmem.errors import Usage
from mdmem.kind import WORKING
from mdmem.mcp.answer import Answer, short
from mdmem.memory.memory import Kinds

if TYPE_CHECKING:
    from mdmem import Applied, EditPlan
    from mdmem.mcp.answer import Call

Verb = Callable[[Kinds[Any]], Any]

_MOST_FILES = 50
_CHARACTERS_A_TOKEN = 3
_LAST = "last"


def change(call: Call, verb: Verb, *, dry_run: bool) -> Answer:
    """Make a change and say what it did, or with `dry_run` what it would do."""
    memory = call.memory
    if not dry_run:
        return _applied(verb(memory))
    plan = memory.prepared(verb(memory.plan))
    diff = clipped(plan.diff(), call.budget * _CHARACTERS_A_TOKEN)
    data = {"dry_run": True, "diff": diff, "paths": list(plan.paths[:_MOST_FILES]), "total": len(plan.paths)}
    notes = _notes(plan)
    texts = ("nothing is written; this would change:", diff or "nothing", "\n".join(notes))
    return Answer(tuple(filter(None, texts)), {**data, "notes": notes})


def _applied(applied: Applied) -> Answer:
    """What a change did: every memory with its new hash."""
    files = [
        {
            "path": file.path,
            "did": "created" if file.before is None else "deleted" if file.after is None else "changed",
            "hash": short(file.after),
            "merged": file.path in applied.merged,
        }
        for file in applied.files
    ]
    told = [_told(file) for file in files[:_MOST_FILES]]
    if not files:
        told = [f"nothing to change{f': {applied.plan.message}' if applied.plan.message else ''}"]
    left_out = len(files) - _MOST_FILES
    if left_out > 0:
        told.append(f"[{left_out:,} more memories left out]")
    notes = _notes(applied.plan)
    data = {"change": applied.id, "files": files[:_MOST_FILES], "total": len(files), "notes": notes}
    named = [f"change {applied.id}"] if applied.id else []
    return Answer(("\n".join((*told, *notes, *named)),), data)


def _notes(plan: EditPlan) -> list[str]:
    """What a plan could not look into, and what was found in it that does not refuse it."""
    warnings = [f"warning: {finding}" for finding in plan.warnings]
    return [*warnings, *(f"left out: {each}" for each in plan.left_out)][:_MOST_FILES]


def _told(file: dict[str, Any]) -> str:
    digest = f"hash {file['hash']}" if file["hash"] else ""
    merged = "merged with a change made meanwhile" if file["merged"] else ""
    return "  ".join(filter(None, (f"{file['did']} {file['path']}", digest, merged)))


def write(
    call: Call,
    path: str,
    content: str | None = None,
    fields: Mapping[str, Any] | None = None,
    base: str | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Answer:
    """Write a whole memory, or some of its fields."""
    if (content is None) == (fields is None):
        raise Usage(problem="either content or fields must be given")
    if content is None:
        return change(call, lambda m: m.set(path, fields or {}, base=base), dry_run=dry_run)
    return change(call, lambda m: m.write(path, content, base=base, overwrite=overwrite), dry_run=dry_run)


def replace(call: Call, dry_run: bool = False, **options: Any) -> Answer:
    """Replace text in a memory."""
    return change(call, lambda m: m.replace(**options), dry_run=dry_run)


def section(
    call: Call, path: str, text: str, heading: str = "", dry_run: bool = False, **options: Any
) -> Answer:
    """Change a section; without a heading, append to the memory."""
    if heading:
        return change(call, lambda m: m.section(path, heading, text, **options), dry_run=dry_run)
    if options.get("where") != "append" or options.get("keep_subsections"):
        remedy = "only where=append can do without: it adds at the end of the memory"
        raise Usage(problem="heading must be given", remedy=remedy)
    return change(call, lambda m: m.append(path, text, base=options.get("base")), dry_run=dry_run)


def mv(call: Call, dry_run: bool = False, **options: Any) -> Answer:
    """Move a memory or a folder."""
    call.sync()
    return change(call, lambda m: m.mv(**options), dry_run=dry_run)


def rm(call: Call, path: str = "", undo: str = "", base: str | None = None, dry_run: bool = False) -> Answer:
    """Delete a memory or a folder, or take a change back."""
    if bool(path) == bool(undo):
        raise Usage(problem="either path or undo must be given")
    if path:
        return change(call, lambda m: m.rm(path, base=base), dry_run=dry_run)
    if base is not None:
        raise Usage(problem="undo keeps what has changed since", remedy="leave base out")
    return change(call, lambda m: m.undo(None if undo == _LAST else undo), dry_run=dry_run)


def remember(
    call: Call,
    kind: str,
    name: str = "",
    resource: str | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Answer:
    """Keep something where its kind is kept."""
    resource = resource or None
    if kind == WORKING.name and not resource:
        name = call.thread(name) or ""
    return change(call, lambda m: m.remember(kind, name, resource=resource, **options), dry_run=dry_run)
