"""What follows from an edit that an agent made with its own tools: findings, and references gone wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError, MemoryNotFound
from mdmem.text.document import SUFFIXES
from mdmem.vault.paths import is_under, relative
from mdmem.vault.screen import finding_for_agent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mdmem.diagnostic import Diagnostic
    from mdmem.index.reference import Place
    from mdmem.memory.memory import Memory
    from mdmem.vault.vault import Vault

_MOST = 12
_FIXES = {
    "moved": "`mdmem refs --fix --in {path}` makes it say so",
    "changed": "read the code, mend the text, then `mdmem refs --pin --accept --in {path}`",
    "gone": "cite what took its place, or take the citation away",
    "dangling": "name what is there: `mdmem ls`, or write it",
    "ambiguous": "write the whole path",
}


def found(memory: Memory, files: Iterable[str]) -> tuple[list[str], list[str]]:
    """What is wrong behind an edit of files, in lines for the agent: errors, and what only has to be known.

    Args:
        memory: whose; files outside its namespace are none of its business, unless its memories cite them.
        files: absolute paths.
    """
    edited, sources = [], []
    for file in files:
        path = _memory_at(memory.vault, file)
        if path is not None:
            edited.append(path)
        elif is_under(os.path.realpath(file), memory.vault.workspace):
            sources.append(file)
    errors, warnings = _findings(memory, edited)
    try:
        broken = _bounded(_broken(memory, [path for path in edited if memory.vault.exists(path)], sources))
    except MdmemError as error:
        broken = [f"references were not looked at: {error}"]
    return errors, [*warnings, *broken]


def _memory_at(vault: Vault, file: str) -> str | None:
    """The memory that a file is, by its path in the namespace; None for any other file."""
    real = os.path.realpath(file)
    if is_under(real, vault.root):
        full = os.path.relpath(real, vault.root).replace(os.sep, "/")
    else:
        mounted = (path for path, place in vault.mounted("").items() if os.path.realpath(place) == real)
        full = next(mounted, "")
    hidden = any(part.startswith(".") for part in full.split("/"))
    if hidden or not full.endswith(SUFFIXES) or not vault.wall.holds(full):
        return None
    return relative(full, vault.namespace)


def _findings(memory: Memory, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    errors: list[str] = []
    warnings: list[str] = []
    for path in paths:
        try:
            findings = memory.check([path])
        except MemoryNotFound:
            continue  # it was deleted
        for finding in map(finding_for_agent, findings):
            (errors if finding.severity == "error" else warnings).append(_line(finding))
    return list(_bounded(errors)), list(_bounded(warnings))


def _line(finding: Diagnostic) -> str:
    hint = f" Fix: {finding.hint}." if finding.hint else ""
    return f"{finding.path}:{finding.position.line}: {finding.code}: {finding.message}.{hint}"


def _broken(memory: Memory, edited: Sequence[str], sources: Sequence[str]) -> Iterator[str]:
    """The references that are wrong in edited memories, and those to edited files that went stale."""
    if not edited and not sources:
        return
    from mdmem.index.view import View  # noqa: PLC0415 - what is no memory and nowhere else needs no index

    memory.index.sync(texts=False)
    view = View(memory.index, memory.vault)
    names = {os.path.relpath(os.path.realpath(file), memory.vault.workspace) for file in sources}
    citing = view.citing_files({os.path.basename(name) for name in names}) if names else []
    if not edited and not citing:
        return
    from mdmem.index.reference import CODE  # noqa: PLC0415 - few files are cited
    from mdmem.index.references import References  # noqa: PLC0415 - as above
    from mdmem.index.state import BROKEN, STALE  # noqa: PLC0415 - as above

    references = References(view)
    for each in references.occurrences(paths=edited) if edited else ():
        if each.place.state in BROKEN:
            yield _told(each.place, each.target)
    for each in references.occurrences(types=CODE, paths=citing) if citing else ():
        if each.place.state in STALE and _file_of(each.target) in names:
            yield _told(each.place, each.target)


def _file_of(target: str) -> str:
    """The file that a citation names, without its lines or symbol."""
    return target.rpartition("#")[0] or target


def _told(place: Place, target: str) -> str:
    detail = f" ({place.detail})" if place.detail else ""
    fix = _FIXES[place.state].format(path=place.path)
    return f"{place.path}:{place.line}: {place.state}: it points at {target}{detail}. Fix: {fix}."


def _bounded(lines: Iterable[str]) -> list[str]:
    every = list(dict.fromkeys(lines))
    left = len(every) - _MOST
    return every if left <= 0 else [*every[:_MOST], f"{left} more: `mdmem check`, `mdmem refs --state STATE`"]
