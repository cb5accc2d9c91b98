"""The doctor: what is wrong with a vault itself, rather than with what its memories say."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.errors import MdmemError
from mdmem.index import ripgrep
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the doctor found: facts by name, and findings; without findings the vault is clean."""

    facts: dict[str, str | int]
    findings: tuple[Diagnostic, ...]

    def as_dict(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {"facts": self.facts, "findings": [finding.as_dict() for finding in self.findings]}


def examine(vault: Vault) -> Health:
    """Look at the config, what a crash left, mounts, names, schemas, and the programs that are needed.

    What a crash left behind is put right first, as every command does.
    """
    facts: dict[str, str | int] = {"vault": vault.root, "workspace": vault.workspace}
    findings: list[Diagnostic] = []
    try:
        facts["recovered"] = vault.recover()
        findings += [*_leftovers(vault), *_mounts(vault), *vault.schemas.lint()]
        met = list(vault.walk())
        facts["memories"] = sum(not found.problem for found in met)
        findings += [
            about_file(f.path, "not-a-memory", f.problem, severity="warning") for f in met if f.problem
        ]
        facts["kept versions"] = _count(os.path.join(vault.root, ".mdmem/local/trash"))
    except MdmemError as error:
        findings.append(
            about_file(getattr(error, "path", CONFIG_PATH), error.code, error.message, error.hint)
        )
    try:
        program = ripgrep.program()
        facts["ripgrep"] = f"{program} {'.'.join(map(str, ripgrep.version(program)))}"
    except MdmemError as error:
        findings.append(about_file("rg", error.code, error.message, error.hint))
    return Health(facts=facts, findings=tuple(findings))


def _leftovers(vault: Vault) -> Iterator[Diagnostic]:
    """Temporary files that nothing will finish: in the staging folder, and beside mounted files."""
    folders = {os.path.join(vault.root, ".mdmem/local/staging"): ""}
    folders |= {os.path.join(vault.workspace, *parts[:-1]): ".mdmem-" for parts in vault.mounts.values()}
    for folder, prefix in folders.items():
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(os.listdir(folder)):
                if name.startswith(prefix):
                    path = os.path.relpath(os.path.join(folder, name), vault.root)
                    yield about_file(path, "leftover", "a temporary file that nothing uses", "delete it")


def _mounts(vault: Vault) -> Iterator[Diagnostic]:
    for path, parts in vault.mounts.items():
        target = os.path.join(vault.workspace, *parts)
        if not os.path.exists(target):
            message = f"the mounted file {os.path.join(*parts)} does not exist yet"
            yield about_file(
                path, "mount-missing", message, "write it, or take the mount away", severity="warning"
            )
        if os.path.lexists(os.path.join(vault.root, path)):
            message = "a file of the vault is hidden by a mount of the same path"
            yield about_file(path, "mount-shadows", message, "move the file away, or take the mount away")


def _count(folder: str) -> int:
    try:
        return sum(name != "log.jsonl" for name in os.listdir(folder))
    except FileNotFoundError:
        return 0
