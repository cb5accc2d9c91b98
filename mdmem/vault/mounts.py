"""Mounts: files of the workspace that a vault shows as its own memories."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mdmem.errors import ConfigInvalid, PathRefused
from mdmem.text.form import SUFFIXES
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.paths import check_memory

_MOST = 100


def workspace_of(root: str) -> str:
    """What the memories of the vault at `root` talk about: the git root that holds it, else its parent."""
    parent = os.path.dirname(root)
    folder = parent
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return parent
        folder = above
    return folder


def resolve(mounts: Mapping[str, str], root: str, workspace: str) -> dict[str, tuple[str, ...]]:
    """The file of each mount, as names below the workspace.

    Args:
        mounts: path of the vault to file, as the config has it: seen from the vault's folder.
        root, workspace: absolute paths without links.

    Raises:
        ConfigInvalid: a mount leaves the workspace (a link in it may be what does), lies in the vault or in
            git's folder, is hidden, is not a memory by its name, or stands for the same file as another; or
            there are more than a hundred.
    """
    if len(mounts) > _MOST:
        raise ConfigInvalid(
            path=CONFIG_PATH, reason=f"[mounts] has {len(mounts):,} files, not at most {_MOST}"
        )
    resolved: dict[str, tuple[str, ...]] = {}
    for path, target in mounts.items():
        try:
            name = check_memory(path)
        except PathRefused as error:
            raise ConfigInvalid(path=CONFIG_PATH, reason=f"[mounts] {error}") from None
        # No file name holds a NUL: what stands before it decides where the target lies.
        file = os.path.realpath(os.path.join(root, target.partition("\0")[0]))
        parts = tuple(os.path.relpath(file, workspace).split(os.sep))
        reason = "leaves the workspace" if "\0" in target else _fault(parts, file, root)
        if not reason and (parts in resolved.values() or name in resolved):
            reason = "is mounted twice"
        if reason:
            problem = f"[mounts] {name} = {target!r} {reason}"
            raise ConfigInvalid(path=CONFIG_PATH, reason=problem, remedy=f"name a file below {workspace}")
        resolved[name] = parts
    return resolved


def _fault(parts: tuple[str, ...], file: str, root: str) -> str:
    """Why the file at `parts` below the workspace cannot be mounted; empty when it can."""
    if parts[0] in {os.pardir, os.curdir}:
        return "leaves the workspace"
    if file == root or file.startswith(root + os.sep):
        return "lies in the vault itself"
    if ".git" in parts:
        return "lies in git's own folder"
    if any(part.startswith(".") for part in parts):
        # There stands what programs obey: .bashrc, .ssh/authorized_keys, .vscode/settings.json.
        return "is hidden, or lies in a hidden folder"
    return "" if parts[-1].endswith(SUFFIXES) else "does not end in .md or .json"
