"""The folder of a vault: finding it, making it, and the files of the workspace that are mounted in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from mdmem.errors import AlreadyExists, ConfigInvalid, PathRefused, StorageFailed, VaultNotFound
from mdmem.kind import KINDS
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH, DEFAULT_TEXT, MOST_MOUNTS
from mdmem.vault.paths import above, check_memory, path_text
from mdmem.vault.walk import count_passed_over, list_others

if TYPE_CHECKING:
    from mdmem.vault.config import Config

_MOST_ENTRIES = 1_000  # of a folder that are looked into for a vault
_MOST_NEAR = 5  # vaults that an error names

PAST_MARK = ".mdmem/past.json"
"""The file that marks a copy of what a vault said in the past, which is not changed."""


def find(vault: str | os.PathLike[str] | None = None) -> str:
    """Find a vault, and return the absolute path of its folder; see `mdmem.open`.

    Raises:
        VaultNotFound: no vault there.
    """
    named = vault if vault is not None else os.environ.get("MDMEM_VAULT")
    start = os.path.abspath(os.path.expanduser(named or os.curdir))
    found = _find_in((start,)) if named else find_around(start)
    if found is None:
        near = (os.path.join(named, name) if named else name for name in _list_vaults(start))
        raise VaultNotFound(start=start, near=tuple(near))
    return found


def find_around(folder: str) -> str | None:
    """Return the nearest vault, upward from a folder, which may be in its `memories`; None without one."""
    return _find_in((folder, *above(folder)))


def _find_in(folders: Iterable[str]) -> str | None:
    return next(filter(_is_vault, _list_places(folders)), None)


def _list_places(folders: Iterable[str]) -> Iterator[str]:
    """Yield where a vault is looked for."""
    return (place for folder in folders for place in (folder, os.path.join(folder, "memories")))


def _list_vaults(folder: str) -> list[str]:
    """List the vaults one folder down, by name: some of them, of a folder with a great many files."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_ENTRIES))
    except OSError:
        return []
    shown = (name for name in names if name.isprintable() and _is_vault(os.path.join(folder, name)))
    return list(islice(shown, _MOST_NEAR))


def workspace_of(root: str) -> str:
    """Return what a vault's memories talk about: the git root that holds its folder, else its parent."""
    parent = os.path.dirname(root)
    return find_git_root(parent) or parent


def find_git_root(folder: str) -> str | None:
    """Return the root of the git repository around a folder, by its `.git`; None without one."""
    roots = (each for each in (folder, *above(folder)) if os.path.exists(os.path.join(each, ".git")))
    return next(roots, None)


def resolve(config: Config, root: str, workspace: str) -> dict[str, tuple[str, ...]]:
    """Return the file of each mount, as names below the workspace.

    Args:
        config: its mounts map a path of the vault to a file, seen from the vault's folder.
        root, workspace: absolute paths without links.

    Raises:
        ConfigInvalid: a mount leaves the workspace (a link in it may be what does), lies in the vault or in
            git's folder, is hidden, is not a memory by its name, or stands for the same file as another; or
            there are more than a hundred.
    """
    mounts, suffixes = config.mounts, config.suffixes
    if len(mounts) > MOST_MOUNTS:
        reason = f"[mounts] has {len(mounts):,} files, not at most {MOST_MOUNTS}"
        raise ConfigInvalid(path=CONFIG_PATH, reason=reason)
    resolved: dict[str, tuple[str, ...]] = {}
    for path, target in mounts.items():
        try:
            name = check_memory(path, suffixes)
        except PathRefused as error:
            raise ConfigInvalid(path=CONFIG_PATH, reason=f"[mounts] {error}") from None
        # No file name holds a NUL: what stands before it decides where the target lies.
        file = os.path.realpath(os.path.join(root, target.partition("\0")[0]))
        parts = tuple(os.path.relpath(file, workspace).split(os.sep))
        reason = "leaves the workspace" if "\0" in target else _fault_of_mount(parts, file, root, suffixes)
        if not reason and (parts in resolved.values() or name in resolved):
            reason = "is mounted twice"
        if reason:
            problem = f"[mounts] {name} = {target!r} {reason}"
            raise ConfigInvalid(path=CONFIG_PATH, reason=problem, remedy=f"name a file below {workspace}")
        resolved[name] = parts
    return resolved


def _fault_of_mount(parts: tuple[str, ...], file: str, root: str, suffixes: tuple[str, ...]) -> str:
    """Return why the file at `parts` below the workspace cannot be mounted; empty when it can."""
    if parts[0] in {os.pardir, os.curdir}:
        return "leaves the workspace"
    if file == root or file.startswith(root + os.sep):
        return "lies in the vault itself"
    if ".git" in parts:
        return "lies in git's own folder"
    if any(part.startswith(".") for part in parts):
        # There stands what programs obey: .bashrc, .ssh/authorized_keys, .vscode/settings.json.
        return "is hidden, or lies in a hidden folder"
    return "" if parts[-1].endswith(suffixes) else f"does not end in {' or '.join(suffixes)}"


SESSIONS_IGNORED = ("**/sessions/*.jsonl", "**/sessions/.archive/")
"""What git leaves out of the sessions, which are private and grow all the time."""
# Of a namespace alone: a folder of that name among the notes is somebody's own.
_NAMESPACES = [
    f"/{user}{project}{resource}"
    for user in ("", "users/*/")
    for project in ("", "projects/*/")
    for resource in ("", "resources/*/*/")
]
_IGNORED = [f"{place}{k.folder}/" for k in KINDS if k.is_ignored for place in _NAMESPACES]
_GITIGNORE = "".join(f"{line}\n" for line in (*_IGNORED, *SESSIONS_IGNORED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A vault that was made (or would be).

    Attributes:
        root: the absolute path of its folder.
        files: its new files with their text.
        passed_over: of the files of text that were there, by suffix, how many are no memories; see
            `mdmem.vault.walk.count_passed_over`.
        is_found: whether it is the vault that is found from the current folder, without its name.
    """

    root: str
    files: dict[str, str]
    passed_over: dict[str, int]
    is_found: bool


def init(folder: str | os.PathLike[str] = "memories", *, dry_run: bool = False) -> Made:
    """Make a vault. Inside a git repository, the repository's `AGENTS.md` is mounted as project memory.

    Files that are there stay as they are.

    Args:
        folder: the vault's folder.
        dry_run: write nothing.

    Raises:
        AlreadyExists: the folder is a vault.
        TypeError: `folder` is no path.
        PathRefused: it is inside a vault, or holds one as `memories`.
        StorageFailed: the folder cannot be written to.
    """
    named = path_text(folder)
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
        _write_files(root, made)
    passed_over = count_passed_over(list_others(root))
    return Made(root=root, files=made, passed_over=passed_over, is_found=_is_found(root))


def _is_found(root: str) -> bool:
    """Tell whether `find` leads to a vault at `root`, which may not be there yet."""
    named = os.environ.get("MDMEM_VAULT")
    here = os.path.abspath(os.path.expanduser(named or os.curdir))
    places = map(os.path.realpath, _list_places((here,) if named else (here, *above(here))))
    return next((place for place in places if place == root or _is_vault(place)), None) == root


def _refuse_nested(root: str) -> None:
    """Refuse a vault inside a vault, where each memory of the inner one would be in both."""
    around = next(filter(_is_vault, above(root)), None)
    if around:
        remedy = "use that vault, which is found from here, or make this one outside of it"
        raise PathRefused(path=root, reason=f"it is inside the vault {around}", remedy=remedy)
    inner = os.path.join(root, "memories")
    if _is_vault(inner):
        remedy = f"use that vault, which is found from {root}"
        raise PathRefused(path=root, reason=f"the vault {inner} is in it", remedy=remedy)


def _is_vault(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, CONFIG_PATH))


def _write_files(root: str, texts: dict[str, str]) -> None:
    try:
        os.makedirs(root, files.NEW_FOLDER, exist_ok=True)
        for path, text in texts.items():
            *folders, name = path.split("/")
            with files.opened(root, folders, create=True) as folder:
                files.write_new(folder, name, text.encode())
                os.fsync(folder)
    except OSError as error:
        raise StorageFailed(path=root, action="make a vault", reason=error.strerror or str(error)) from None
