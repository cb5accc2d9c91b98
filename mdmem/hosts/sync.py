"""Write the tools' files from one source: the project memory and the rules of a vault."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mdmem.document.synced_block import without_block
from mdmem.errors import EditRefused, PathRefused, Usage
from mdmem.hosts.files import AGENTS, SourceFiles
from mdmem.hosts.generated import (
    FOLDERS,
    IMPORTERS,
    TARGETS,
    Difference,
    RuleText,
    Wanted,
    compare,
    imports_shared,
    list_wanted,
)
from mdmem.memory.content import StatesAt
from mdmem.memory.rules import Rules
from mdmem.vault import outside
from mdmem.vault.paths import Scope
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.trash import TrashFolder
from mdmem.vault.vault import Vault

_KEPT = "instructions"  # the folder of overwritten files, under `.mdmem/local`


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSynced:
    """What differed from the source, and what was written.

    `outside` are the written files that are no memories, so that `undo` does not touch them.
    """

    differences: tuple[Difference, ...]
    written: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def left(self) -> tuple[Difference, ...]:
        """What still differs."""
        return tuple(one for one in self.differences if one.path not in self.written)

    def diff(self) -> str:
        """Return what was written, or would be, as one unified diff."""
        return "".join(one.diff() for one in self.differences)


def sync(
    vault: Vault, find_states: StatesAt, *, tools: Sequence[str] = (), check: bool = False
) -> FilesSynced:
    """Write project memory and rules into the files of tools; see `WorkspaceProject.sync`."""
    for tool in tools:
        if tool not in TARGETS:
            raise Usage(problem=f"there is no tool {tool!r}", remedy=f"it is one of {', '.join(TARGETS)}")
    chosen = tuple(tools) or TARGETS
    wanted = list_wanted(chosen, _list_rules(vault, find_states), *_read_memory(vault))
    differences = tuple(_compare_files(vault, wanted, chosen))
    changed = [one for one in differences if one.is_fixed and not check]
    for difference in changed:
        write(vault, difference)
    written = tuple(one.path for one in changed)
    others = tuple(path for path in written if not _is_memory(vault, path))
    return FilesSynced(differences=differences, written=written, outside=others)


def _is_memory(vault: Vault, path: str) -> bool:
    return path == AGENTS and _in_workspace(vault, AGENTS) == AGENTS


def _list_rules(vault: Vault, find_states: StatesAt) -> list[RuleText]:
    rules = Rules(vault, lambda build: build(), Scope(), find_states).list()
    for rule in rules:
        if rule.flaw:
            raise EditRefused(path=rule.path, reason=rule.flaw, remedy="`mdmem check` says what is wrong")
    return [
        RuleText(rule.name, rule.title, rule.globs, rule.text, _in_workspace(vault, rule.path))
        for rule in rules
    ]


def _in_workspace(vault: Vault, path: str) -> str:
    return vault.disk.in_workspace(path).replace(os.sep, "/")


def _read_memory(vault: Vault) -> tuple[str | None, str]:
    """Return the project memory, and where it is when it is not the workspace's AGENTS.md itself."""
    document = vault.find(AGENTS)
    # What `sync` wrote there itself is not a memory: it goes when the rules go.
    text = without_block(document.text) if document else ""
    if not text.strip():
        return None, ""
    place = _in_workspace(vault, AGENTS)
    return text, "" if place == AGENTS else place


def _compare_files(vault: Vault, wanted: Sequence[Wanted], tools: Sequence[str]) -> Iterator[Difference]:
    """Yield how the files of some tools differ; where nothing is wanted, there should be no block."""
    source = SourceFiles(os.path.realpath(vault.workspace), vault.hides)
    by_path = {one.path: one for one in wanted}
    paths = {*by_path, AGENTS, *(IMPORTERS[tool][0] for tool in tools if tool in IMPORTERS)}
    for folder, suffix in (FOLDERS[tool] for tool in tools if tool in FOLDERS):
        below = source.list_below(os.path.join(source.workspace, folder), suffix)
        # `sync` gives no file a name that cannot be printed.
        paths.update(os.path.relpath(place, source.workspace) for place in below if place.isprintable())
    for path in sorted(paths):
        if difference := _compare_file(vault, path, by_path.get(path)):
            yield difference


def _compare_file(vault: Vault, path: str, wanted: Wanted | None) -> Difference | None:
    place, shared = (os.path.realpath(os.path.join(vault.workspace, name)) for name in (path, AGENTS))
    if path != AGENTS and place == shared:
        return None  # its tool reads the same text
    try:
        content = outside.read(outside.below(vault.workspace, path), path)
        text = content.data.decode("utf-8") if content else None
    except (UnicodeDecodeError, PathRefused) as error:
        reason = error.reason if isinstance(error, PathRefused) else "it is not UTF-8"
        return Difference(path=path, state="refused", reason=reason) if wanted else None
    if text is not None and imports_shared(path, text):
        wanted = None
    return compare(path, text, wanted)


def write(vault: Vault, difference: Difference) -> None:
    """Write what a difference asks for; what is overwritten is kept under its hash.

    Raises:
        Conflict: the file has changed since it was compared.
    """
    path = difference.path
    if _is_memory(vault, path):
        vault.transact(lambda: _plan_memory(vault, difference))
        return
    kept = TrashFolder(vault.disk.local(_KEPT), vault.config.trash)
    before, after = _encode_text(difference.before), _encode_text(difference.after)
    message = f"project sync: {difference.state}"
    outside.replace(outside.below(vault.workspace, path), path, before, after, kept, message)


def _plan_memory(vault: Vault, difference: Difference) -> EditPlan:
    document = vault.find(AGENTS)
    present = document.text if document else None
    if present == difference.after:
        return EditPlan(changes=())
    if present != difference.before:
        raise outside.conflict(AGENTS, _encode_text(difference.before), _encode_text(present))
    content = _encode_text(difference.after)
    change = Change(path=AGENTS, before=document, content=content, delete=content is None)
    return EditPlan(changes=(change,), message=f"{AGENTS}: project sync")


def _encode_text(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
