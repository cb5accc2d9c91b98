"""A walk over the memories of a vault, in the order of their paths."""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mdmem.errors import PathRefused, StorageFailed
from mdmem.text.form import SUFFIXES
from mdmem.vault.paths import check_memory

_SHADOWED = "in another Unicode spelling, the same name is there twice"


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
    mounts = mounts or {}
    folder = _start(root, parts)
    if folder is None:
        return
    # The vault's own folder is hidden; the schemas and templates inside it are asked for by name.
    prefix = "/".join(part for part in parts) if not (parts and parts[0].startswith(".")) else ""
    pending = sorted(((path.split("/"), path) for path in mounts), reverse=True)
    for found in _below(folder, prefix, suffixes):
        while pending and pending[-1][0] < found.path.split("/"):
            path = pending.pop()[1]
            yield from _mounted(path, mounts[path])
        if found.path not in mounts:
            yield found
    while pending:
        path = pending.pop()[1]
        yield from _mounted(path, mounts[path])


def _start(root: str, parts: tuple[str, ...]) -> str | None:
    """The folder to begin at, whatever the Unicode spelling of its names is; None where one is a link."""
    folder = root
    for part in parts:
        name = part
        if not part.isascii() and not os.path.lexists(os.path.join(folder, part)):
            with contextlib.suppress(OSError):
                name = next((n for n in os.listdir(folder) if unicodedata.normalize("NFC", n) == part), part)
        folder = os.path.join(folder, name)
        if os.path.islink(folder):
            return None
    return folder


def _mounted(path: str, file: str) -> Iterator[Found]:
    """The mounted file, when it is there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = os.lstat(file)
        if stat.S_ISREG(status.st_mode):
            yield Found(path, status.st_size, status.st_mtime_ns)
        else:
            yield Found(path, 0, 0, _other(is_link=stat.S_ISLNK(status.st_mode)))


def _other(*, is_link: bool) -> str:
    return "a symbolic link" if is_link else "not a regular file"


def _below(folder: str, prefix: str, suffixes: tuple[str, ...]) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            shown = (e for e in entries if not e.name.startswith("."))
            present = sorted(shown, key=lambda e: unicodedata.normalize("NFC", e.name))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageFailed(
            path=prefix or folder, action="list it", reason=error.strerror or str(error)
        ) from None
    names = {entry.name for entry in present}
    for entry in present:
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        found = _entry(entry, path, suffixes)
        name = entry.name if entry.name.isascii() else unicodedata.normalize("NFC", entry.name)
        if name != entry.name and name in names:
            found = (each._replace(problem=each.problem or _SHADOWED) for each in found)
        yield from found


def _entry(entry: os.DirEntry[str], path: str, suffixes: tuple[str, ...]) -> Iterator[Found]:
    if entry.is_dir(follow_symlinks=False):
        yield from _below(entry.path, path, suffixes)
    elif entry.name.endswith(suffixes):
        # A file may be gone since its folder was listed.
        with contextlib.suppress(FileNotFoundError):
            yield _found(entry, path, suffixes)


def _found(entry: os.DirEntry[str], path: str, suffixes: tuple[str, ...]) -> Found:
    if not entry.is_file(follow_symlinks=False):
        return Found(_shown(path), 0, 0, _other(is_link=entry.is_symlink()))
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
