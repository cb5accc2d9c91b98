"""Write the tools' files from one source: the project memory and the rules of a vault."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdmem.agents.files import AGENTS, SourceFiles
from mdmem.agents.generated import (
    FOLDERS,
    IMPORTERS,
    TARGETS,
    Difference,
    RuleText,
    Wanted,
    compare,
    imports_shared,
    list_wanted,
    outside as outside_of_block,
)
from mdmem.errors import PathRefused, Usage
from mdmem.vault import outside
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.trash import TrashFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mdmem.vault.vault import Vault

_KEPT = "instructions"  # the folder of what was overwritten, under `.mdmem/local`


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSynced:
    """What differed from the source; `written` are the files that were brought up to date."""

    differences: tuple[Difference, ...]
    written: tuple[str, ...] = ()

    @property
    def left(self) -> tuple[Difference, ...]:
        """What still differs."""
        return tuple(one for one in self.differences if one.path not in self.written)

    def diff(self) -> str:
        """Return what was written, or would be, as one unified diff."""
        return "".join(one.diff() for one in self.differences)


def sync(
    vault: Vault,
    rules: Callable[[], Sequence[RuleText]],
    *,
    tools: Sequence[str] = (),
    check: bool = False,
) -> FilesSynced:
    """Write what the project memory and the rules of a vault say into the files of some tools.

    Each file is replaced at once, and what it held is kept. A block that somebody edited is never
    overwritten. `WorkspaceProject.sync` describes arguments and errors.
    """
    for tool in tools:
        if tool not in TARGETS:
            raise Usage(problem=f"there is no tool {tool!r}", remedy=f"it is one of {', '.join(TARGETS)}")
    chosen, files = tuple(tools) or TARGETS, ToolFiles(vault)
    differences = tuple(files.compare(list_wanted(chosen, rules(), *_read_memory(vault)), chosen))
    written = [one for one in differences if one.is_fixed and not check]
    for difference in written:
        files.write(difference)
    return FilesSynced(differences=differences, written=tuple(one.path for one in written))


def _is_mounted(vault: Vault) -> bool:
    return vault.disk.in_workspace(AGENTS) == AGENTS


def _read_memory(vault: Vault) -> tuple[str | None, str]:
    """Return the project memory, and where it is when it is not the workspace's AGENTS.md itself."""
    document = vault.find(AGENTS)
    # What `sync` wrote there itself is not a memory: it goes when the rules go.
    text = outside_of_block(document.text) if document else ""
    if not text.strip():
        return None, ""
    return text, "" if _is_mounted(vault) else vault.disk.in_workspace(AGENTS).replace(os.sep, "/")


def _plan_memory(vault: Vault, difference: Difference) -> EditPlan:
    """Plan a difference as a change of the mounted project memory.

    Raises:
        Conflict: it has changed since it was compared.
    """
    document = vault.find(AGENTS)
    present = document.text if document else None
    if present == difference.after:
        return EditPlan(changes=())
    if present != difference.before:
        raise outside.conflict(AGENTS, _encode_text(difference.before), _encode_text(present))
    content = _encode_text(difference.after)
    change = Change(path=AGENTS, before=document, content=content, delete=content is None)
    return EditPlan(changes=(change,), message=f"{AGENTS}: project sync")


class ToolFiles:
    """The tools' files in the workspace of a vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._workspace = vault.workspace

    def compare(self, wanted: Sequence[Wanted], tools: Sequence[str]) -> list[Difference]:
        """Compare the files of some tools with what is wanted; return the differences in the order of paths.

        Files of these tools of which nothing is wanted should have no block.
        """
        source = SourceFiles(os.path.realpath(self._workspace), self._vault.hides)
        by_path = {one.path: one for one in wanted}
        paths = {*by_path, AGENTS, *(IMPORTERS[tool][0] for tool in tools if tool in IMPORTERS)}
        for folder, suffix in (FOLDERS[tool] for tool in tools if tool in FOLDERS):
            below = source.list_below(os.path.join(source.workspace, folder), suffix)
            # `sync` gives no file a name that cannot be printed.
            paths.update(os.path.relpath(place, source.workspace) for place in below if place.isprintable())
        differences = (self._compare_file(path, by_path.get(path)) for path in sorted(paths))
        return [difference for difference in differences if difference]

    def _compare_file(self, path: str, wanted: Wanted | None) -> Difference | None:
        if path != AGENTS and self._resolve_file(path) == self._resolve_file(AGENTS):
            return None  # its tool reads the same text
        try:
            content = outside.read(outside.below(self._workspace, path), path)
            text = content.data.decode("utf-8") if content else None
        except (UnicodeDecodeError, PathRefused) as error:
            reason = error.reason if isinstance(error, PathRefused) else "it is not UTF-8"
            return Difference(path=path, state="refused", reason=reason) if wanted else None
        if text is not None and imports_shared(path, text):
            wanted = None
        return compare(path, text, wanted)

    def _resolve_file(self, path: str) -> str:
        return os.path.realpath(os.path.join(self._workspace, path))

    def write(self, difference: Difference) -> None:
        """Write what a difference asks for; what is overwritten is kept under its hash.

        Raises:
            Conflict: the file has changed since it was compared.
            PathRefused, LockTimeout, FileBusy, StorageFailed: it cannot be written.
        """
        path = difference.path
        if path == AGENTS and _is_mounted(self._vault):
            self._vault.transact(lambda: _plan_memory(self._vault, difference))
            return
        kept = TrashFolder(self._vault.disk.local(_KEPT), self._vault.config.trash)
        before, after = _encode_text(difference.before), _encode_text(difference.after)
        message = f"project sync: {difference.state}"
        outside.replace(outside.below(self._workspace, path), path, before, after, kept, message)


def _encode_text(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
