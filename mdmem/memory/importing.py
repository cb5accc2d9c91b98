"""Taking in the memory of another system, as one change."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from mdmem.diagnostic import Diagnostic
from mdmem.document.document import SUFFIXES, Document, UnreadableDocument, digest
from mdmem.document.text.globs import escaped
from mdmem.errors import (
    DocumentRefused,
    IndexDamaged,
    Invalid,
    LockTimeout,
    PathRefused,
    StorageFailed,
    Usage,
    show_name,
)
from mdmem.index.links.dialect import find_note_tools
from mdmem.index.links.references import AMBIGUOUS_LINK, find_ambiguous
from mdmem.kind import NOTE
from mdmem.memory.content import is_working
from mdmem.memory.imports.batch import PASSED_OVER, Batch
from mdmem.vault.config import ConfigChange, Secrets
from mdmem.vault.paths import StrPath, check_folder, is_under, join, seen_from
from mdmem.vault.plan import AttachmentChange, Change, EditPlan, Outcome, Prepared, screen
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.index.view import View

_ELSEWHERE = "move it, or import --to another folder"
FORMATS = {
    "mcp-memory": "mcp_memory:convert",
    "basic-memory": "notes:convert_basic_memory",
    "claude-code": "notes:convert_claude_code",
    "obsidian": "notes:convert_obsidian",
}


def find_tools(folder: str) -> tuple[str, ...]:
    """Return the tools, such as Obsidian, that keep their notes in a folder."""
    return find_note_tools(folder)


def importing(
    vault: Vault, view: Callable[[], View], form: str, source: str, to: StrPath | None
) -> Callable[[], EditPlan]:
    """Return what makes the plan of an import; the source is read now, and once."""
    if form not in FORMATS:
        raise Usage(problem=f"a format is one of {', '.join(FORMATS)}, not {form!r}")
    folder = check_folder(NOTE.folder if to is None else to)
    module, _, function = FORMATS[form].partition(":")
    progress = partial(vault.progress, "reading") if vault.progress else None
    read = getattr(import_module(f"mdmem.memory.imports.{module}"), function)
    batch: Batch = read(source, vault.config, progress)
    own = os.path.relpath(vault.root, os.path.realpath(source)).replace(os.sep, "/")
    if own == os.curdir:
        raise Usage(problem=f"{source} is this vault itself")
    files = {path: file for path, file in batch.files.items() if not is_under(path, own)}
    if len(files) < len(batch.files):
        passed = {f"{PASSED_OVER}this vault": [f"{own}/"]}
        batch = replace(batch, files=files, left_out={**batch.left_out, **passed})
    return lambda: _make_plan(vault, view, form, folder, batch)


def _make_plan(vault: Vault, view: Callable[[], View], form: str, folder: str, batch: Batch) -> EditPlan:
    taken: dict[str, Change | AttachmentChange] = {}
    left: dict[str, list[str]] = defaultdict(list, {why: [*p] for why, p in batch.left_out.items()})
    same = 0
    vault.recover()
    for name, file in vault.report_progress("importing", [*batch.files.items()]):
        try:
            path = check_folder(join(folder, name))
            change = _take_file(vault, path, file, taken)
        except PathRefused as error:
            left[error.reason].append(show_name(error.path))
        else:
            if change:
                taken[path] = change
            else:
                same += 1
    changes = tuple(each for each in taken.values() if isinstance(each, Change))
    attachments = tuple(each for each in taken.values() if isinstance(each, AttachmentChange))
    left_out = {why: tuple(sorted(paths)) for why, paths in sorted(left.items())}
    passed = {why for why in left_out if why.startswith(PASSED_OVER)}
    rows = (
        Outcome("new memories", len(changes)),
        Outcome("new attachments", len(attachments)),
        Outcome("stand there already", same),
        *(Outcome(why if why in passed else f"left out: {why}", len(p), p) for why, p in left_out.items()),
    )
    tools = [(vault.folder(join(folder, inside)), tool) for inside, tool in batch.tools]
    made: list[Document] = []
    for document in filter(None, (each.after(vault.config.limits) for each in changes)):
        with suppress(DocumentRefused):  # a document that passes a limit gives no names or links
            document.fields.keys()
            made.append(document)
    return EditPlan(
        changes=changes,
        message=f"import {len(changes)} from {form}" + (f", {same} stand there already" if same else ""),
        left_out=tuple(sorted(f"{p}: {why}" for why in left_out.keys() - passed for p in left_out[why])),
        warnings=tuple(_find_unclear(vault, view, made, tools)),
        attachments=attachments,
        outcomes=tuple(row for row in rows if row.files),
        config=_tell_config(vault, vault.folder(folder), tools) if changes else None,
    )


def _tell_config(vault: Vault, folder: str, tools: Sequence[tuple[str, str]]) -> ConfigChange:
    """Return the change by which the config says whose files these are, and which tools read their links."""
    guests = f"{escaped(folder)}/**" if folder else "**"
    gains = [] if "**" in vault.config.check.guests else [("check.guests", guests)]
    gains += [("links.dialects", f"{place or '.'}: {tool}") for place, tool in tools]
    return ConfigChange(tuple(gains))


def _find_unclear(
    vault: Vault, view: Callable[[], View], made: Sequence[Document], tools: Sequence[tuple[str, str]]
) -> list[Diagnostic]:
    if not made or AMBIGUOUS_LINK in vault.config.check.silenced:
        return []
    found: list[Diagnostic] = []
    with suppress(IndexDamaged, LockTimeout, StorageFailed):
        names = view().names_with(made, tools)
        for document in vault.report_progress("checking", made):
            with suppress(DocumentRefused):  # it has more than a memory may; `check` says so
                found += find_ambiguous(names, document)
    return found


def _take_file(
    vault: Vault, path: str, file: Document | bytes, others: Container[str]
) -> Change | AttachmentChange | None:
    data = file if isinstance(file, bytes) else file.data
    if path in others:
        raise PathRefused(path=path, reason="another file has the same name, in another Unicode spelling")
    with seen_from(vault.namespace):
        standing = vault.store.read(vault.folder(path), sys.maxsize)
    if standing:
        if standing.data == data:
            return None
        raise PathRefused(path=path, reason=f"another file stands there; {_ELSEWHERE}")
    if isinstance(file, bytes):
        return AttachmentChange("", path, digest(data), data)
    other = path.rpartition(".")[0] + SUFFIXES[path.endswith(SUFFIXES[0])]
    if is_working(path) and vault.exists(other):  # of the two forms only one may be
        raise PathRefused(path=path, reason=f"{other} stands there for the same id; {_ELSEWHERE}")
    change = Change(path=path, before=None, content=data, as_it_was=True)
    _refuse_secret(change, replace(file, path=path), vault.config.secrets)
    return change


def _refuse_secret(change: Change, new: Document, config: Secrets) -> None:
    """Refuse a memory with a secret, where the config says so; nothing can be taken out of an unread one."""
    if isinstance(new, UnreadableDocument):
        new = Document(path=new.path, data=new.data, text=new.data.decode("utf-8", "replace"))
        config = config._replace(policy=config.policy.replace("redact", "refuse"))
    try:
        screen(Prepared(EditPlan(changes=(change,)), [new]), config)
    except Invalid as error:
        path = f"{error.findings[0].path}:{error.findings[0].position.line}"
        raise PathRefused(path=path, reason="it holds a secret") from None
