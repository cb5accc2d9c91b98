"""The doctor: what is wrong with a vault itself, rather than with what its memories say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.errors import MdmemError
from mdmem.index import ripgrep
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.journal import STAGING
from mdmem.vault.vault import Vault

Facts: TypeAlias = dict[str, str | int]
_BESIDE = ".mdmem-"  # how the journal names a file that it stages beside its target …
_RECORDS = (".one", ".many", ".done")  # … and the records of its changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the doctor found: facts by name, and findings; without findings the vault is clean."""

    facts: Facts
    findings: tuple[Diagnostic, ...]

    def as_dict(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {"facts": self.facts, "findings": [finding.as_dict() for finding in self.findings]}


def examine(vault: Vault) -> Health:
    """Look at the config, what a crash left, mounts, names, schemas, and the programs that are needed.

    What a crash left behind is put right first, as every command does.
    """
    facts: Facts = {"vault": vault.root, "workspace": vault.workspace}
    findings: list[Diagnostic] = []
    for look in (_files, _leftovers, _mounts, _schemas, _programs):
        try:
            findings += look(vault, facts)
        except MdmemError as error:
            findings.append(_failure(error, getattr(error, "path", CONFIG_PATH)))
    # A broken config is met wherever it is needed.
    return Health(facts=facts, findings=tuple(dict.fromkeys(findings)))


def _failure(error: MdmemError, path: str) -> Diagnostic:
    return about_file(path, error.code, error.message, error.hint)


def _files(vault: Vault, facts: Facts) -> Iterator[Diagnostic]:
    facts["recovered"] = vault.recover()
    met = list(vault.walk())
    facts["memories"] = sum(not found.problem for found in met)
    facts["kept versions"] = _count(os.path.join(vault.root, ".mdmem/local/trash"))
    for found in met:
        if found.problem:
            yield about_file(found.path, "not-a-memory", found.problem, severity="warning")


def _schemas(vault: Vault, _: Facts) -> list[Diagnostic]:
    return vault.schemas.lint()


def _programs(_: Vault, facts: Facts) -> list[Diagnostic]:
    try:
        program = ripgrep.program()
        facts["ripgrep"] = f"{program} {'.'.join(map(str, ripgrep.version(program)))}"
    except MdmemError as error:
        return [_failure(error, "rg")]
    return []


def _leftovers(vault: Vault, _: Facts) -> Iterator[Diagnostic]:
    """Temporary files that nothing will finish: in the staging folder, and beside mounted files."""
    staging = os.path.join(vault.root, STAGING)
    beside = {os.path.join(vault.workspace, *parts[:-1]): _BESIDE for parts in vault.mounts.values()}
    found = [(f, name) for f, prefix in ({staging: ""} | beside).items() for name in _names(f, prefix)]
    # A change that another process is making right now has its record there, or is done by now.
    running = tuple(name.partition(".")[0] for name in _names(staging) if name.endswith(_RECORDS))
    for folder, name in found:
        file = os.path.join(folder, name)
        if not name.removeprefix(_BESIDE).startswith(running) and os.path.lexists(file):
            path = os.path.relpath(file, vault.root)
            yield about_file(path, "leftover", "a temporary file that nothing uses", "delete it")


def _names(folder: str, prefix: str = "") -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(prefix))
    except OSError:
        return []  # whether it can be read is for those to say who need it


def _mounts(vault: Vault, _: Facts) -> Iterator[Diagnostic]:
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
