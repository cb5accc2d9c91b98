"""What is watched through inotify (Linux): the folders of a vault, and single files outside of it.

The kernel queues an event before the call that made the change returns, so what has happened up to some
moment is known by reading the queue then. watchdog's observer is not used here: it holds back a file that was
moved out of the tree for half a second, and every later event behind it; when the queue overflowed, or a
folder could not be watched, it tells its log and not its caller; and it watches hidden folders, too.

A folder's watch belongs to its inode and goes with it when it is moved, while the kernel names entries only:
which path a watch stands for is kept here, and fixed by every event that moves a folder. A new folder is
first watched and then listed, so that nothing created in between is missed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from inotify_simple import Event, INotify, flags

from mdmem.document.document import SUFFIXES
from mdmem.watch.hints import GatheredHints, Notice, counts, entry_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

# Folders of cited code that are watched; cited files in others are left to the caller.
MOST_CODE_FOLDERS = 1_024

_COMES = flags.CREATE | flags.MOVED_TO
_GOES = flags.DELETE | flags.MOVED_FROM
_WRITES = flags.MODIFY | flags.CLOSE_WRITE | flags.ATTRIB  # CLOSE_WRITE: mapped memory modifies unseen
_ENTRIES = _COMES | _GOES | _WRITES
_SELF = flags.DELETE_SELF | flags.MOVE_SELF
_FOLDER = flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK
_FILE = _WRITES | flags.DONT_FOLLOW
_AT_LIMIT = frozenset({errno.ENOSPC, errno.ENOMEM})
_PASSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM})

_LOST = Notice(
    "events-lost", "so much changed at once that the system dropped events; everything is looked at again"
)


class _WatchedFolder(NamedTuple):
    """A watched folder: its absolute path, and its path in the vault (None for one outside of the vault)."""

    path: str
    inside: str | None


class Watched:
    """The watches of one vault.

    Args:
        root: of the vault, absolute and without links.
        mounts: files from elsewhere, by their paths in the vault.

    Attributes:
        limited: a folder could not be watched: events do not tell everything.
        gone: the vault's folder is not there.

    Raises:
        OSError: the system gives out no more queues.
    """

    def __init__(self, root: str, mounts: Mapping[str, str]) -> None:
        self.limited = False
        self.gone = False
        self._root = root
        self._mounts = {file: path for path, file in mounts.items()}
        self._cited: frozenset[str] = frozenset()
        self._above: frozenset[str] = frozenset()
        self._queue = INotify()
        self._folders: dict[int, _WatchedFolder] = {}
        self._inside: dict[str, int] = {}
        self._outside: dict[str, tuple[int, int]] = {}
        self._linked: dict[int, set[str]] = {}
        self._identity: tuple[int, int] | None = None
        # What the events that are being handled ask for in the end.
        self._lost = False
        self._moved: set[str] = set()
        self._new_links: set[int] = set()
        self._handling = False
        self._rebuild_watches()

    def fileno(self) -> int:
        """Return the descriptor, readable when there are events."""
        fd: int = self._queue.fileno()
        return fd

    def close(self) -> None:
        """Give all watches back."""
        self._queue.close()

    def cite(self, files: Collection[str]) -> frozenset[str]:
        """Watch these files (absolute paths) instead of those that were given before.

        Returns:
            The ones that are not watched: below a link, or in more folders than may be watched.
        """
        held = Counter(map(os.path.dirname, files))
        straight = [folder for folder, _ in held.most_common() if os.path.realpath(folder) == folder]
        inside = {folder for folder in straight if f"{folder}/".startswith(f"{self._root}/")}
        kept = inside.union([folder for folder in straight if folder not in inside][:MOST_CODE_FOLDERS])
        self._cited = frozenset(
            file for file in files if os.path.dirname(file) in kept and not os.path.islink(file)
        )
        self._place_single_watches()
        self._link_files(self._cited)
        blind = {folder for folder in kept if self._is_blind(folder)}
        return frozenset(file for file in files if file not in self._cited or os.path.dirname(file) in blind)

    def _is_blind(self, folder: str) -> bool:
        """Return whether a folder is there, and could not be watched."""
        return folder not in self._inside and folder not in self._outside and os.path.isdir(folder)

    def retry(self, *, everything: bool = False) -> None:
        """Watch what could not be watched; with `everything`, watch all that is there now."""
        if self.limited or everything:
            self._rebuild_watches()

    # -- events -------------------------------------------------------------------------------------------

    def drain(self, into: GatheredHints) -> bool:
        """Handle every event that is in the queue by now; never waits.

        Returns:
            Whether the single files have to be cited again: folders above them came or went.
        """
        # Where an interrupt came in between, events were read and not handled.
        self._lost = self._lost or self._handling
        was_gone = self.gone
        self._handling = True
        for event in self._queue.read(timeout=0):
            self._handle_event(event, into)
        if self._lost:
            self._rebuild_watches()
            into.all(_LOST)
            into.code |= self._cited
        self._follow_single_files(into)
        if self._new_links:
            self._link_all(into)
        if self.gone or self._root in self._moved:
            self._look_at_root(into)
        into.root(self._root, was_gone=was_gone, is_gone=self.gone)
        has_moved = self._lost or bool(self._moved)
        self._lost = self._handling = False
        self._moved, self._new_links = set(), set()
        return has_moved

    def _handle_event(self, event: Event, into: GatheredHints) -> None:
        if event.mask & flags.Q_OVERFLOW:
            self._lost = True
        elif event.mask & flags.IGNORED:
            self._forget_watch(event.wd)
        elif event.mask & flags.UNMOUNT:
            self._lost = True
        elif folder := self._folders.get(event.wd):
            if event.name:
                self._handle_entry(folder, event, into)
            elif event.mask & _SELF:
                self._moved |= {folder.path, *self._above_root(folder.path)}
        else:
            for path in self._linked.get(event.wd, ()):
                self._touch_file(path, into)

    def _handle_entry(self, folder: _WatchedFolder, event: Event, into: GatheredHints) -> None:
        path = f"{folder.path}/{event.name}"
        inside = None if folder.inside is None else entry_of(folder.inside, event.name)
        # A link may come in the place of a folder.
        if path in self._above and event.mask & (_COMES | _GOES | flags.ISDIR):
            self._moved.add(path)
        if event.mask & flags.ISDIR:
            if inside is not None:
                self._handle_folder(path, inside, event.mask, into)
            return
        if event.mask & _COMES and (inode := _shared_inode(path)):
            self._new_links.add(inode)
        if path in self._cited or path in self._mounts:
            self._touch_file(path, into)
            if event.mask & _COMES and os.path.islink(path):
                self._moved.add(path)
        elif inside is not None:
            into.file(inside)

    def _handle_folder(self, path: str, inside: str, bits: int, into: GatheredHints) -> None:
        if bits & flags.MOVED_FROM:
            self._unwatch_tree(path)
        elif bits & _COMES or (bits & flags.ATTRIB and path not in self._inside):
            self._watch_tree(path, inside)
        into.folder(inside)

    def _touch_file(self, path: str, into: GatheredHints) -> None:
        """Note that a file may have changed, whichever way it is known."""
        if path in self._cited:
            into.cited(path)
        if path in self._mounts:
            into.file(self._mounts[path])
        elif path.startswith(self._root + "/") and counts(inside := path[len(self._root) + 1 :]):
            into.file(inside)

    def _above_root(self, path: str) -> Iterator[str]:
        """Yield the root, when `path` is the folder of the vault or above it."""
        if self._root == path or self._root.startswith(path + "/"):
            yield self._root

    def _follow_single_files(self, into: GatheredHints) -> None:
        """After folders above single files came or went: what is watched may stand elsewhere by now."""
        if not self._moved:
            return
        for path in [
            path for path in self._outside if not self._moved.isdisjoint((path, *_folders_above(path)))
        ]:
            self._leave_folder(path)
        for path in self._cited | self._mounts.keys():
            if not self._moved.isdisjoint(_folders_above(path)):
                self._touch_file(path, into)

    def _look_at_root(self, into: GatheredHints) -> None:
        # One that is made again may be the same inode as the one before, without its watch.
        if self._root not in self._inside or self._identity != _folder_identity(self._root):
            self._rebuild_watches()
            if not self.gone:
                into.all()

    # -- watches ------------------------------------------------------------------------------------------

    def _rebuild_watches(self) -> None:
        """Watch what is there now; what was watched and is not there goes."""
        old = {*self._folders, *self._linked}
        self._folders, self._inside, self._outside, self._linked = {}, {}, {}, {}
        self.limited = False
        self._identity = _folder_identity(self._root)
        self.gone = self._identity is None
        if not self.gone:
            self._watch_tree(self._root, "")
        self._place_single_watches()
        self._link_files(self._cited | self._mounts.keys())
        for watch in old - self._folders.keys() - self._linked.keys():
            self._remove_watch(watch)

    def _watch_tree(self, path: str, inside: str) -> None:
        """Watch a folder of the vault and all below it."""
        below = [(path, inside)]
        while below:
            path, inside = below.pop()
            watch = self._add_watch(path, _ENTRIES | _FOLDER | (0 if inside else _SELF))
            if watch is None:
                continue
            self._name_watch(watch, path, inside)
            try:
                with os.scandir(path) as entries:
                    for entry in entries:
                        self._meet_entry(entry, entry_of(inside, entry.name), below)
            except OSError as error:
                self.limited |= error.errno not in _PASSING

    def _meet_entry(self, entry: os.DirEntry[str], inside: str | None, below: list[tuple[str, str]]) -> None:
        if inside is None:
            return
        if entry.is_dir(follow_symlinks=False):
            below.append((entry.path, inside))
        elif inside.endswith(SUFFIXES) and _shared_inode(entry.path):
            self._watch_linked_file(entry.path)

    def _name_watch(self, watch: int, path: str, inside: str) -> None:
        """Say which folder of the vault a watch stands for, now that it may have been moved there."""
        was, before = self._folders.get(watch), self._inside.get(path)
        if was and was.path != path:
            if self._inside.get(was.path) == watch:
                del self._inside[was.path]
            if self._outside.get(was.path, (-1, 0))[0] == watch:
                del self._outside[was.path]
        if before not in {None, watch} and self._folders.get(before) == (path, inside):
            del self._folders[before]
            self._remove_watch(before)
        self._folders[watch] = _WatchedFolder(path, inside)
        self._inside[path] = watch

    def _unwatch_tree(self, path: str) -> None:
        """Stop watching a folder and all below it: it was moved away, and is watched where it went."""
        prefix = path + "/"
        for known in [known for known in self._inside if known == path or known.startswith(prefix)]:
            watch = self._inside.pop(known)
            self._folders.pop(watch, None)
            self._remove_watch(watch)

    def _place_single_watches(self) -> None:
        """Watch the folders that hold single files, and whether one above these or above the vault moves.

        Of a folder that is missing, the nearest one above it that is there is watched for its coming.
        """
        single = self._cited | self._mounts.keys()
        self._above = frozenset(above for file in single for above in _folders_above(file))
        wanted = self._wanted_folders(single)
        while True:
            for path in [path for path, (_, bits) in self._outside.items() if wanted.get(path) != bits]:
                self._leave_folder(path)
            for path, bits in wanted.items():
                if path not in self._outside:
                    watch_or_none = self._add_watch(path, bits | _FOLDER)
                    if watch_or_none is not None and watch_or_none not in self._folders:
                        self._outside[path] = watch_or_none, bits
                        self._folders[watch_or_none] = _WatchedFolder(path, None)
            before, wanted = wanted, self._wanted_folders(single)
            # A missing folder may have come between the look and the watch.
            if wanted == before:
                return

    def _leave_folder(self, path: str) -> None:
        """Watch a folder outside of the tree no longer."""
        watch, _ = self._outside.pop(path)
        if self._folders.get(watch) == (path, None):
            del self._folders[watch]
            self._remove_watch(watch)

    def _wanted_folders(self, single: Collection[str]) -> dict[str, int]:
        """Return the folders outside of the tree to watch, with what of each is wanted."""
        wanted: dict[str, int] = {}
        for folder in {os.path.dirname(file) for file in single}:
            held = folder
            while held not in self._inside and not os.path.isdir(held):
                held = os.path.dirname(held)
            wanted[held] = _ENTRIES | _SELF
        for path in (*wanted, self._root):
            for above in _folders_above(path):
                wanted.setdefault(above, _SELF)
        return {path: bits for path, bits in wanted.items() if path not in self._inside}

    def _add_watch(self, path: str, bits: int) -> int | None:
        """Watch a file or folder; None when it cannot be."""
        try:
            watch: int = self._queue.add_watch(path, bits | flags.MASK_ADD)
        except OSError as error:
            self.limited |= error.errno in _AT_LIMIT
            return None
        return watch

    def _remove_watch(self, watch: int) -> None:
        with contextlib.suppress(OSError):  # the kernel has removed it by itself
            self._queue.rm_watch(watch)

    def _forget_watch(self, watch: int) -> None:
        """Forget a watch that the kernel has removed."""
        self._linked.pop(watch, None)
        folder = self._folders.pop(watch, None)
        if folder and self._inside.get(folder.path) == watch:
            del self._inside[folder.path]
        if folder and self._outside.get(folder.path, (-1, 0))[0] == watch:
            del self._outside[folder.path]

    # -- files with several names -------------------------------------------------------------------------

    def _link_all(self, into: GatheredHints) -> None:
        """Watch the files that now have several names, and hint at all of these.

        A write through another name may have come before the watch.
        """
        known = {path for paths in self._linked.values() for path in paths}
        for folder in list(self._inside):
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    # The inode comes with the name: a look at each file would take ten times as long.
                    if entry.inode() in self._new_links and entry.name.endswith(SUFFIXES):
                        self._watch_linked_file(entry.path)
        self._link_files(self._cited | self._mounts.keys())
        for path in {path for paths in self._linked.values() for path in paths} - known:
            self._touch_file(path, into)

    def _link_files(self, files: Collection[str]) -> None:
        for path in files:
            if _shared_inode(path):
                self._watch_linked_file(path)

    def _watch_linked_file(self, path: str) -> None:
        """Watch the file itself: a write through a name elsewhere is not told to its folder."""
        watch = self._add_watch(path, _FILE)
        if watch is not None:
            self._linked.setdefault(watch, set()).add(path)


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders above an absolute path, from the nearest to the first one."""
    while (path := os.path.dirname(path)) != os.path.dirname(path):
        yield path


def _shared_inode(path: str) -> int:
    """Return the inode of a regular file that has more than one name; 0 for anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_ino if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 else 0


def _folder_identity(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from another one at the same path; None when there is none."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
