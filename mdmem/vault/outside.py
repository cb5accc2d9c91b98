"""Files outside of the vault: how they are read, and the one way in which they are written.

`project sync` and `install` name and show the files that they change. Such a file may be a stranger's, or be
written by other programs at the same time: so no link is followed to it, it must hold what was shown, what
it held is kept, and it is exchanged at once. What a killed process leaves beside it goes the next time that a
file in the same folder is written.
"""

from __future__ import annotations

import contextlib
import os

from mdmem.document.document import digest
from mdmem.document.text.diff import unified
from mdmem.errors import Conflict, EditRefused, FileBusy, MemoryNotFound
from mdmem.vault import files, mark
from mdmem.vault.files import BUSY_SECONDS, Content, Place, Raced, take
from mdmem.vault.paths import above
from mdmem.vault.store import FileChange, hashed, new_entry
from mdmem.vault.trash import TrashFolder

_LOCK_SECONDS = 10.0
_MOST_BYTES = 64 * 1024 * 1024
_BESIDE = ".mdmem-"


def below(root: str, path: str) -> Place:
    """Return where the file `path`, seen from the folder `root`, is; nothing below `root` may be a link."""
    return Place(root, tuple(path.split(os.sep)))


def of_user(path: str) -> Place:
    """Return where a file of the user is; a link that tools for dotfiles make is followed."""
    target = os.path.realpath(path)
    folder, *_ = filter(os.path.isdir, above(target))
    known = target if os.path.exists(target) else folder
    if target != os.path.abspath(path) and os.stat(known).st_uid != os.geteuid():
        reason = f"it is a link to {target}, which belongs to another user"
        raise EditRefused(path=path, reason=reason, remedy="make it a file of your own")
    return Place(folder, tuple(os.path.relpath(target, folder).split(os.sep)))


def read(place: Place, shown: str) -> Content | None:
    """Return the file at a place, once nobody is writing it; None when there is none.

    Raises:
        PathRefused: it, or a folder on the way to it, is a link, or it is not a regular file.
        StorageFailed: it is too large, or the system refused.
    """
    *folders, name = place.parts
    try:
        with files.translated(shown, "read it"), files.opened(place.root, folders) as folder:
            return _read_settled(folder, name) or files.read(folder, name, _MOST_BYTES)
    except MemoryNotFound:
        return None


def _read_settled(folder: int, name: str) -> Content | None:
    if files.size(folder, name) > _MOST_BYTES:
        return None
    return files.read_settled(folder, name, BUSY_SECONDS)


def replace(
    place: Place,
    shown: str,
    before: bytes | None,
    after: bytes | None,
    kept: TrashFolder | None = None,
    message: str = "",
) -> None:
    """Put `after` in the place of `before`; None stands for no file.

    Where it holds `after` already, another process was faster. `kept` takes what it held, and its log says
    what was done to `shown`. Folders on the way to it are made.

    Raises:
        Conflict: it holds something else; with the diff.
        PathRefused: it, or a folder on the way to it, is a link, or it is not a regular file.
    """
    *folders, name = place.parts
    with (
        files.translated(shown, "write it"),
        files.opened(place.root, folders, create=after is not None) as folder,
    ):
        # Who is killed gives it back: what stands beside the file then is nobody's.
        take(folder, shown, _LOCK_SECONDS)
        staged = _BESIDE + mark.name_for(folder)
        _clear_leftovers(folder, staged, kept)
        now = _read_now(folder, name, shown)
        present = now.data if now else None
        if present == after:
            return
        if present != before:
            raise conflict(shown, before, present)
        if now and kept:
            kept.keep(now.data, digest(now.data), now)
        try:
            if after is not None:
                files.write_new(folder, staged, after, now)
            _exchange_content((folder, staged), (folder, name), shown, before, after)
        finally:
            files.remove(folder, staged)
        os.fsync(folder)
    if kept:
        changed = FileChange(path=shown, before=hashed(before), after=hashed(after))
        with files.held(f"{kept.path}.lock", _LOCK_SECONDS):
            kept.record(new_entry("", message, (changed,)))


def _exchange_content(
    staged: tuple[int, str], target: tuple[int, str], shown: str, before: bytes | None, after: bytes | None
) -> None:
    """Swap two files; if the one taken out is not what was shown, put it back."""
    try:
        if before is None:
            files.move(staged, target)
            return
        if after is None:
            files.move(target, staged)
        else:
            files.exchange(staged, target)
        replaced = _read_now(*staged, shown)
        if replaced is None or replaced.data != before:
            with contextlib.suppress(Raced):
                (files.move if after is None else files.exchange)(staged, target)
            raise conflict(shown, before, replaced.data if replaced else None)
    except Raced:
        now = _read_now(*target, shown)
        raise conflict(shown, before, now.data if now else None) from None


def _read_now(folder: int, name: str, shown: str) -> Content | None:
    try:
        content = _read_settled(folder, name)
    except FileNotFoundError:
        return None
    if content is None:
        raise FileBusy(path=shown, seconds=BUSY_SECONDS)
    return content


def _clear_leftovers(folder: int, staged: str, kept: TrashFolder | None) -> None:
    """Remove what a killed process left in a folder, but keep what may stand nowhere else."""
    for name in (staged, f"{staged}~"):
        if kept and files.exists(folder, name):
            content = files.read(folder, name, _MOST_BYTES)
            kept.keep(content.data, digest(content.data), content)
        files.remove(folder, name)


def conflict(shown: str, before: bytes | None, now: bytes | None) -> Conflict:
    """Return the error that says how a file differs from what was shown."""
    old, new = (None if data is None else data.decode("utf-8", "replace") for data in (before, now))
    return Conflict(path=shown, base=hashed(before), actual=hashed(now), diff=unified(old, new, shown))
