"""Taking in the memory of another system, as one change."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from mdmem.document.document import SUFFIXES, Document, parse
from mdmem.document.edit import splice
from mdmem.document.secret import find, redactions
from mdmem.errors import DocumentRefused, IndexDamaged, LockTimeout, PathRefused, StorageFailed, Usage
from mdmem.kind import NOTE
from mdmem.links.references import AMBIGUOUS_LINK, find_ambiguous
from mdmem.memory.content import is_working
from mdmem.vault.paths import StrPath, check_folder, check_memory, join
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from mdmem.diagnostic import Diagnostic
    from mdmem.imports.batch import Batch
    from mdmem.index.view import View
    from mdmem.vault.vault import Vault

FORMATS = {
    "mcp-memory": "mcp_memory:convert",
    "basic-memory": "notes:convert_basic_memory",
    "claude-code": "notes:convert_claude_code",
    "obsidian": "notes:convert_obsidian",
}


def importing(
    vault: Vault, view: Callable[[], View], form: str, source: str, to: StrPath | None
) -> Callable[[], EditPlan]:
    """Return what makes the plan of an import; the source is read now, and once.

    Raises:
        Usage: there is no such format, or no such source.
        NamedNotFound: there is nothing to import in it.
    """
    if form not in FORMATS:
        raise Usage(problem=f"a format is one of {', '.join(FORMATS)}, not {form!r}")
    folder = check_folder(NOTE.folder if to is None else to)
    module, _, function = FORMATS[form].partition(":")
    progress = partial(vault.progress, "importing") if vault.progress else None
    batch: Batch = getattr(import_module(f"mdmem.imports.{module}"), function)(source, vault.config, progress)
    return lambda: _make_plan(vault, view, form, folder, batch)


def _make_plan(vault: Vault, view: Callable[[], View], form: str, folder: str, batch: Batch) -> EditPlan:
    changes: dict[str, Change] = {}
    made: list[Document] = []
    left_out, same = list(batch.left_out), 0
    new_names = vault.new_names()
    for document in batch.documents:
        path = join(folder, document.path)
        try:
            new = parse(check_memory(path), document.data, document.limits)
            change = _make_change(vault, new, changes)
            if change is None:
                same += 1
                continue
            new_names.refuse_of(change)
            changes[change.path] = change
            made.append(new)
        except (DocumentRefused, PathRefused) as error:
            left_out.append("; ".join(filter(None, (error.message, error.hint))))
        except _Refused as reason:
            left_out.append(f"{path}: {reason}")
    message = f"import {len(changes)} from {form}" + (f", {same} stand there already" if same else "")
    return EditPlan(
        changes=tuple(changes.values()),
        message=message,
        left_out=tuple(left_out),
        warnings=tuple(_find_unclear(vault, view, made)),
    )


def _find_unclear(vault: Vault, view: Callable[[], View], made: Sequence[Document]) -> list[Diagnostic]:
    """Return the links of new memories that will be ambiguous; none where there is no index to ask."""
    if not made or AMBIGUOUS_LINK in vault.config.check.silenced:
        return []
    found: list[Diagnostic] = []
    with suppress(IndexDamaged, LockTimeout, StorageFailed):
        names = view().names_with(made)
        for document in vault.report_progress("checking", made):
            with suppress(DocumentRefused):  # it has more than a memory may; `check` says so
                found += find_ambiguous(names, document)
    return found


class _Refused(Exception):
    """Why a memory is not taken in."""


def _make_change(vault: Vault, new: Document, others: Container[str]) -> Change | None:
    """Return what makes a memory beside others; None where it stands there already."""
    if new.path in others:  # in another Unicode spelling
        raise _Refused(f"has the same name as {new.path}")
    before = vault.find(new.path)
    if before:
        if before.data != new.data:
            raise _Refused("another memory stands there; move it, or import --to another folder")
        return None
    if twin := _find_other_form(vault, new.path):
        raise _Refused(f"{twin} stands there for the same id; move it, or import --to another folder")
    for finding in vault.schemas.check(new):
        if finding.severity == "error":
            # What a schema says of a value quotes it.
            said = splice(finding.message, redactions(find(finding.message)))
            raise _Refused(f"line {finding.position.line}: {said}")
    return Change(path=new.path, before=None, content=new.data)


def _find_other_form(vault: Vault, path: str) -> str | None:
    """Return the working memory that stands in the other form for the same id, of which only one may be."""
    if not is_working(path):
        return None
    stem = path.rpartition(".")[0]
    return next((stem + suffix for suffix in SUFFIXES if vault.exists(stem + suffix)), None)
