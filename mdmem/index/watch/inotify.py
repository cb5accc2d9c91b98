"""What is watched through inotify (Linux): the folders of a vault.

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

from inotify_simple import Event, INotify, flags

from mdmem.document.document import ANY_SUFFIXES
from mdmem.index.watch.hints import GatheredHints, Notice, entry_of
from mdmem.vault.files import status_of

_COMES = flags.CREATE | flags.MOVED_TO
_GOES = flags.DELETE | flags.MOVED_FROM
_WRITES = flags.MODIFY | flags.CLOSE_WRITE | flags.ATTRIB  # CLOSE_WRITE: mapped memory modifies unseen
_SELF = flags.DELETE_SELF | flags.MOVE_SELF
_FOLDER = _COMES | _GOES | _WRITES | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK
_PASSING = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}
)

_LOST = Notice(
    "events-lost", "so much changed at once that the system dropped events; everything is looked at again"
)


class Watched:
    """The watches of one vault.

    Attributes:
        limited: a folder could not be watched: events do not tell everything.
        gone: the vault's folder is not there.
        linked: the memories with several names: a write through a name elsewhere makes no event.

    Raises:
        OSError: the system gives out no more queues.
    """

    def __init__(self, root: str) -> None:
        self.limited = False
        self.gone = False
        self.linked: set[str] = set()
        self._root = root
        self._queue = INotify()
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._identity: tuple[int, int] | None = None
        # What the events that are being handled ask for in the end.
        self._is_lost = self._is_root_moved = self._is_handling = False
        self._new_links: set[int] = set()
        self.rebuild()

    def fileno(self) -> int:
        """Return the descriptor, readable when there are events."""
        fd: int = self._queue.fileno()
        return fd

    def close(self) -> None:
        """Give all watches back."""
        self._queue.close()

    def rebuild(self) -> None:
        """Watch what is there now; what was watched and is not there goes."""
        old = set(self._folders)
        self._folders, self._watches, self.linked = {}, {}, set()
        self.limited = False
        self._identity = _folder_identity(self._root)
        self.gone = self._identity is None
        if not self.gone:
            self._watch_tree("")
        for watch in old - self._folders.keys():
            self._remove_watch(watch)

    # -- events -------------------------------------------------------------------------------------------

    def drain(self, into: GatheredHints) -> None:
        """Handle every event that is in the queue by now; never waits."""
        # Where an interrupt came in between, events were read and not handled.
        self._is_lost = self._is_lost or self._is_handling
        self._is_handling = True
        for event in self._queue.read(timeout=0):
            self._handle_event(event, into)
        if self._is_lost:
            self.rebuild()
            into.all(_LOST)
        if self._new_links:
            self._find_links(into)
        self._look_at_root(into)
        self._is_lost = self._is_root_moved = self._is_handling = False
        self._new_links = set()

    def _handle_event(self, event: Event, into: GatheredHints) -> None:
        folder = self._folders.get(event.wd)
        if event.mask & (flags.Q_OVERFLOW | flags.UNMOUNT):
            self._is_lost = True
        elif folder is None:
            return
        elif event.mask & flags.IGNORED:  # the kernel has removed the watch
            del self._folders[event.wd], self._watches[folder]
            self._is_root_moved |= not folder
        elif not event.name:
            self._is_root_moved |= bool(event.mask & _SELF)
        elif (path := entry_of(folder, event.name)) is not None:
            if event.mask & flags.ISDIR:
                self._handle_folder(path, event.mask)
                into.folder(path)
            else:
                if event.mask & _COMES and (inode := _shared_inode(self._locate(path))):
                    self._new_links.add(inode)
                into.file(path)

    def _handle_folder(self, path: str, bits: int) -> None:
        if bits & flags.MOVED_FROM:
            self._unwatch_tree(path)
        elif bits & _COMES or (bits & flags.ATTRIB and path not in self._watches):
            self._watch_tree(path)

    def _look_at_root(self, into: GatheredHints) -> None:
        """See whether the vault's folder is still the one that is watched: one above it may have moved."""
        was_gone = self.gone
        # One that is made again may be the same inode as the one before, without its watch.
        if self._is_root_moved or self._identity != _folder_identity(self._root):
            self.rebuild()
            if not self.gone:
                into.all()
        into.root(self._root, was_gone=was_gone, is_gone=self.gone)

    # -- watches ------------------------------------------------------------------------------------------

    def _watch_tree(self, folder: str) -> None:
        below = [folder]
        while below:
            folder = below.pop()
            place = self._locate(folder)
            try:
                watch = self._queue.add_watch(place, _FOLDER if folder else _FOLDER | _SELF)
                self._name_watch(watch, folder)
                with os.scandir(place) as entries:
                    for entry in entries:
                        path = entry_of(folder, entry.name)
                        if path is None:
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            below.append(path)
                        elif path.endswith(ANY_SUFFIXES) and _shared_inode(entry.path):
                            self.linked.add(path)
            except OSError as error:
                self.limited |= error.errno not in _PASSING

    def _name_watch(self, watch: int, folder: str) -> None:
        """Say which folder of the vault a watch stands for, now that it may have been moved there."""
        was, before = self._folders.get(watch), self._watches.get(folder)
        if was is not None:
            del self._watches[was]
        if before is not None and before != watch:
            del self._folders[before]
            self._remove_watch(before)
        self._folders[watch] = folder
        self._watches[folder] = watch

    def _unwatch_tree(self, folder: str) -> None:
        """Stop watching a folder and all below it: it was moved away, and is watched where it went."""
        for known in [known for known in self._watches if f"{known}/".startswith(f"{folder}/")]:
            watch = self._watches.pop(known)
            del self._folders[watch]
            self._remove_watch(watch)

    def _remove_watch(self, watch: int) -> None:
        with contextlib.suppress(OSError):  # the kernel has removed it by itself
            self._queue.rm_watch(watch)

    def _find_links(self, into: GatheredHints) -> None:
        """Find the other names of files that came, and hint at all: a write may have come before the look."""
        for folder in self._watches:
            with contextlib.suppress(OSError), os.scandir(self._locate(folder)) as entries:
                for entry in entries:
                    # The inode comes with the name: a look at each file would take ten times as long.
                    if entry.inode() in self._new_links and entry.name.endswith(ANY_SUFFIXES):
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        self.linked.add(path)
                        into.file(path)

    def find_linked(self) -> None:
        """Find the memories that got another name in a folder that the system does not name."""
        for folder in self._watches:
            with contextlib.suppress(OSError), os.scandir(self._locate(folder)) as entries:
                for entry in entries:
                    if entry.name.endswith(ANY_SUFFIXES) and entry.stat(follow_symlinks=False).st_nlink > 1:
                        path = entry_of(folder, entry.name)
                        self.linked.update([path] if path and entry.is_file(follow_symlinks=False) else ())

    def _locate(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


def _shared_inode(path: str) -> int:
    """Return the inode of a regular file that has more than one name; 0 for anything else."""
    status = status_of(path)
    return status.st_ino if status and stat.S_ISREG(status.st_mode) and status.st_nlink > 1 else 0


def _folder_identity(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from another one at the same path; None when there is none."""
    status = status_of(folder)
    return (status.st_dev, status.st_ino) if status and stat.S_ISDIR(status.st_mode) else None
