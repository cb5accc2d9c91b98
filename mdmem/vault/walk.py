"""A walk over the memories of a vault, in the order of their paths."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mdmem.errors import PathRefused, StorageFailed
from mdmem.text.form import SUFFIXES
from mdmem.vault.paths import check_memory


class Found(NamedTuple):
    """A file that was met: its path in the vault, bytes, time of change in nanoseconds since the epoch.

    `problem` says why it cannot be a memory; it is empty for one that can.
    """

    path: str
    size: int
    mtime_ns: int
    problem: str = ""


def walk(
    root: str,
    parts: tuple[str, ...] = (),
    suffixes: tuple[str, ...] = SUFFIXES,
    mounts: Mapping[str, str] | None = None,
) -> Iterator[Found]:
    """Every file below `root` and `parts` with one of `suffixes`, hidden names left out.

    Args:
        root: an absolute path.
        parts: folders below it to begin at; where one of them is missing or a link, nothing is found.
        suffixes: how a name ends.
        mounts: files from elsewhere, by their paths below `root`: they stand where those paths stand.

    Returns:
        The files in the order of the parts of their paths, compared by code points.
    """
    mounted = {path: file for path, file in (mounts or {}).items() if os.path.isfile(file)}
    folder = os.path.join(root, *parts)
    if any(os.path.islink(os.path.join(root, *parts[: n + 1])) for n in range(len(parts))):
        return
    # The vault's own folder is hidden; the schemas and templates inside it are asked for by name.
    prefix = "/".join(part for part in parts) if not (parts and parts[0].startswith(".")) else ""
    pending = [(path.split("/"), path) for path in mounted]
    pending.sort(reverse=True)
    for found in _below(folder, prefix, suffixes):
        while pending and pending[-1][0] < found.path.split("/"):
            yield _mounted(pending[-1][1], mounted)
            pending.pop()
        if found.path not in mounted:
            yield found
    while pending:
        yield _mounted(pending[-1][1], mounted)
        pending.pop()


def _mounted(path: str, mounted: Mapping[str, str]) -> Found:
    status = os.stat(mounted[path])
    return Found(path, status.st_size, status.st_mtime_ns)


def _below(folder: str, prefix: str, suffixes: tuple[str, ...]) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            present = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageFailed(
            path=prefix or folder, action="list it", reason=error.strerror or str(error)
        ) from None
    for entry in present:
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, path, suffixes)
        elif entry.name.endswith(suffixes):
            yield _found(entry, path, suffixes)


def _found(entry: os.DirEntry[str], path: str, suffixes: tuple[str, ...]) -> Found:
    if not entry.is_file(follow_symlinks=False):
        problem = "a symbolic link" if entry.is_symlink() else "not a regular file"
        return Found(_shown(path), 0, 0, problem)
    status = entry.stat(follow_symlinks=False)
    if suffixes is not SUFFIXES:
        return Found(path, status.st_size, status.st_mtime_ns)
    try:
        name = check_memory(path)
    except PathRefused as error:
        return Found(_shown(path), status.st_size, status.st_mtime_ns, error.reason)
    return Found(name, status.st_size, status.st_mtime_ns)


def _shown(path: str) -> str:
    """A path that can be printed: a name that is not UTF-8, or holds controls, is written with escapes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if unicodedata.category(c) != "Cc" else f"\\x{ord(c):02x}" for c in text)
