"""Mounts: files of the workspace that a vault shows as its own memories."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mdmem.errors import ConfigInvalid, PathRefused
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.paths import check_memory


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
            git's folder, is no name for a memory, or stands for the same file as another.
    """
    resolved: dict[str, tuple[str, ...]] = {}
    for path, target in mounts.items():
        try:
            name = check_memory(path)
        except PathRefused as error:
            raise ConfigInvalid(path=CONFIG_PATH, reason=f"[mounts] {error}") from None
        # No file name holds a NUL: what stands before it decides where the target lies.
        file = os.path.realpath(os.path.join(root, target.partition("\0")[0]))
        parts = tuple(os.path.relpath(file, workspace).split(os.sep))
        reason = ""
        if "\0" in target or parts[0] == os.pardir or file == workspace:
            reason = "leaves the workspace"
        elif file == root or file.startswith(root + os.sep):
            reason = "lies in the vault itself"
        elif ".git" in parts:
            reason = "lies in git's own folder"
        elif parts in resolved.values() or name in resolved:
            reason = "is mounted twice"
        if reason:
            problem = f"[mounts] {name} = {target!r} {reason}"
            raise ConfigInvalid(path=CONFIG_PATH, reason=problem, remedy=f"name a file below {workspace}")
        resolved[name] = parts
    return resolved
