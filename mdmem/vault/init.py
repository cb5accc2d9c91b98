"""Making a vault: its config, and what git leaves out."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from mdmem.errors import AlreadyExists, PathRefused, StorageFailed, WrongType
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH, DEFAULT_TEXT
from mdmem.vault.mounts import workspace_of

_GITIGNORE = "working/\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A vault that was made (or would be): its folder, and its new files with their text."""

    root: str
    files: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """The vault as a JSON object."""
        return {"root": self.root, "files": self.files}


def init(folder: str | os.PathLike[str] = "memories", *, dry_run: bool = False) -> Made:
    """Make a vault. Inside a git repository, the repository's `AGENTS.md` is mounted as project memory.

    Files that are there stay as they are. With `dry_run` nothing is written.

    Raises:
        AlreadyExists: the folder is a vault.
        WrongType: `folder` is no path.
        PathRefused: it is inside a vault, or holds one as `memories`.
        StorageFailed: the folder cannot be written to.
    """
    named: object = type(folder).__fspath__(folder) if isinstance(folder, os.PathLike) else folder
    if not isinstance(named, str):
        kind = type(folder).__name__
        raise WrongType(problem=f"init() argument 'folder' must be str or os.PathLike, not {kind}")
    if not named or "\0" in named:
        raise PathRefused(path=named, reason="this cannot be a folder", remedy="name one, such as memories")
    root = os.path.realpath(os.path.expanduser(named))
    if _is_vault(root):
        raise AlreadyExists(
            path=os.path.join(root, CONFIG_PATH), remedy="this folder is a vault already: use it"
        )
    _refuse_nested(root)
    workspace = workspace_of(root)
    config = DEFAULT_TEXT
    if os.path.exists(os.path.join(workspace, ".git")):
        config += f'"AGENTS.md" = {json.dumps(os.path.relpath(os.path.join(workspace, "AGENTS.md"), root))}\n'
    made = {".gitignore": _GITIGNORE, CONFIG_PATH: config}
    made = {path: text for path, text in made.items() if not os.path.exists(os.path.join(root, path))}
    if not dry_run:
        _write(root, made)
    return Made(root=root, files=made)


def _refuse_nested(root: str) -> None:
    """Refuse a vault inside a vault, where each memory of the inner one would be in both."""
    above = os.path.dirname(root)
    while not _is_vault(above):
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    else:
        remedy = "use that vault, which is found from here, or make this one outside of it"
        raise PathRefused(path=root, reason=f"it is inside the vault {above}", remedy=remedy)
    inner = os.path.join(root, "memories")
    if _is_vault(inner):
        remedy = f"use that vault, which is found from {root}"
        raise PathRefused(path=root, reason=f"the vault {inner} is in it", remedy=remedy)


def _is_vault(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, CONFIG_PATH))


def _write(root: str, made: dict[str, str]) -> None:
    try:
        os.makedirs(root, files.NEW_FOLDER, exist_ok=True)
        for path, text in made.items():
            *folders, name = path.split("/")
            with files.opened(root, folders, create=True) as folder:
                files.write_new(folder, name, text.encode())
                os.fsync(folder)
    except OSError as error:
        raise StorageFailed(path=root, action="make a vault", reason=error.strerror or str(error)) from None
