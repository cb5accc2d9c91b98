"""Taking in the memory of another system, as one change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from mdmem.errors import DocumentRefused, PathRefused, Usage
from mdmem.text.document import Document, parse
from mdmem.text.edit import splice
from mdmem.text.secret import find, redactions
from mdmem.vault.paths import check_folder, check_memory, check_new, join
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.imports.batch import Batch
    from mdmem.index.synced import Progress

FORMATS = ("mcp-memory", "basic-memory", "claude-code", "obsidian")


def importing(
    vault: Vault, form: str, source: str, to: str, progress: Progress | None
) -> Callable[[], EditPlan]:
    """What makes the plan of an import; the source is read now, and once.

    Raises:
        Usage: there is no such format, or the source is not of it.
    """
    if form not in FORMATS:
        raise Usage(problem=f"a format is one of {', '.join(FORMATS)}, not {form!r}")
    folder = check_folder(to)
    module = import_module(f"mdmem.imports.{form.replace('-', '_')}")
    batch: Batch = module.convert(source, vault.config.limits, progress)
    return lambda: _plan(vault, form, folder, batch)


def _plan(vault: Vault, form: str, folder: str, batch: Batch) -> EditPlan:
    changes: dict[str, Change] = {}
    left_out, same = list(batch.left_out), 0
    for document in batch.documents:
        path = join(folder, document.path)
        try:
            new = parse(check_memory(path), document.data, document.limits)
            change = _change(vault, new)
        except (DocumentRefused, PathRefused) as error:
            left_out.append(error.message)
            continue
        except _LeftOut as reason:
            left_out.append(f"{path}: {reason}")
            continue
        if change is None:
            same += 1
        elif path.casefold() in changes:
            left_out.append(f"{path}: differs only in case from {changes[path.casefold()].path}")
        else:
            changes[path.casefold()] = change
    message = f"import {len(changes)} from {form}" + (f", {same} stand there already" if same else "")
    warnings = tuple(replace(each, path=join(folder, each.path)) for each in batch.warnings)
    return EditPlan(
        changes=tuple(changes.values()), message=message, left_out=tuple(left_out), warnings=warnings
    )


class _LeftOut(Exception):
    """Why a memory is not taken in."""


def _change(vault: Vault, new: Document) -> Change | None:
    """What makes a memory; None where it stands there already.

    Raises:
        _LeftOut: another one does, or it breaks its schema.
        DocumentRefused, PathRefused: it cannot be a memory.
    """
    check_new(new.path)
    before = vault.find(new.path)
    if before:
        if before.data != new.data:
            raise _LeftOut("another memory stands there; move it, or import --to another folder")
        return None
    for finding in vault.schemas.check(new):
        if finding.severity == "error":
            # What a schema says of a value quotes it.
            said = splice(finding.message, redactions(find(finding.message)))
            raise _LeftOut(f"line {finding.position.line}: {said}")
    return Change(path=new.path, before=None, content=new.data)
