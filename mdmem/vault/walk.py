"""The files of a vault: a walk in the order of their paths, and a quick way to see which have changed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from mdmem.document.document import ANY_SUFFIXES, MARKDOWN_SUFFIXES, SUFFIXES
from mdmem.errors import MemoryNotFound, PathRefused, show_name
from mdmem.vault import files
from mdmem.vault.paths import MAX_PATH_BYTES, check_folder, check_memory, is_hidden, nfc

_SHADOWED = "in another Unicode spelling, the same name is there twice"
_GONE = (FileNotFoundError, NotADirectoryError)
# Errors for which one folder is left out, not the vault: they stay until somebody fixes them.
_CLOSED = frozenset((errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP))
_FARTHEST = 1 << 63  # nanoseconds, which SQLite keeps in 64 bits with a sign


class Found(NamedTuple):
    """A file that was met: its path in the vault, bytes, times in nanoseconds since the epoch, inode.

    `problem` says why it cannot be a memory; it is empty for one that can. Of a link, the rest is about it.
    Where another file stands in the way the inode is 0, so that the file differs once that one is gone. A
    folder that nothing can be found in is met as well, with 0 for all numbers.
    """

    path: str
    size: int
    mtime_ns: int
    problem: str = ""
    ctime_ns: int = 0
    inode: int = 0

    @property
    def seen(self) -> tuple[int, int, int, int]:
        """What tells whether it is as it was: the times of change of content and of entry, size, inode."""
        return self.mtime_ns, self.ctime_ns, self.size, self.inode


class Look(NamedTuple):
    """How the files differ from what is known.

    Attributes:
        changed: the files that differ from what is known, and new ones, in the order of their paths as text.
        gone: the known paths where nothing stands any more; none in a folder that cannot be listed.
        doubles: files with the path of another one: that one counts, and these are in no other list.
    """

    changed: list[Found]
    gone: list[str]
    doubles: list[Found]


OWN_FOLDERS = frozenset((".git", ".mdmem"))
# Files of text that somebody may take for memories; also a memory's own suffixes, in capital letters.
_TEXTS = frozenset((*ANY_SUFFIXES, ".adoc", ".mdown", ".mkd", ".org", ".rst", ".txt"))


Known = Mapping[str, tuple[int, int, int, int]]
_MOST_BYTES = 4  # of a character
# Of wanted paths: a name to what is wanted of the folder of that name; None: the file, or all of the folder.
_Tree: TypeAlias = "dict[str, _Tree | None]"


def walk(
    root: str,
    parts: tuple[str, ...] = (),
    suffixes: tuple[str, ...] = SUFFIXES,
    mounts: Mapping[str, str] | None = None,
    holds: Callable[[str], bool] | None = None,
) -> Iterator[Found]:
    """Yield every file below `root` and `parts` with one of `suffixes`, hidden names left out.

    Args:
        parts: folders below it to begin at; where one of them is missing or a link, nothing is found.
        mounts: files from elsewhere, by their paths below `root`: they stand where those paths stand.
        holds: whether a folder below `root` is entered, and a file met, by its path; all are without.

    Returns:
        The files in the order of the parts of their paths, compared by code points; where they would stand,
        the folders that may not be listed or are too deep for a memory.

    Raises:
        StorageFailed, SystemFailing: a folder cannot be listed that may be, or `root` may not be listed.
    """
    mounts = mounts or {}
    folder = _find_start(root, parts)
    if folder is None:
        return
    # The vault's own folder is hidden; the schemas and templates inside it are asked for by name, and have
    # names of their own.
    checked = not (parts and parts[0].startswith("."))
    prefix = "".join(f"{part}/" for part in parts)
    pending = sorted(((path.split("/"), path) for path in mounts), reverse=True)
    for found in _in_order(_Folder(folder, prefix), suffixes, holds, checked=checked):
        while pending and pending[-1][0] < found.path.split("/"):
            path = pending.pop()[1]
            yield from _find_mounted(path, mounts[path])
        if found.path not in mounts:
            yield found
    while pending:
        path = pending.pop()[1]
        yield from _find_mounted(path, mounts[path])


def name_file(root: str, path: str) -> str:
    """Return how messages name a file, which the disk spells `path`: with escapes where it is no memory."""
    if path.isascii() and path.isprintable():
        return path
    parts = path.split("/")
    for at, part in enumerate(parts):
        if part != nfc(part):
            with contextlib.suppress(OSError):
                twin, own = (os.path.join(root, *parts[:at], name) for name in (nfc(part), part))
                # On some file systems both spellings are one name.
                if not os.path.samefile(twin, own):
                    return _spell_out(path)
    return nfc(show_name(path))


def list_others(
    root: str,
    parts: tuple[str, ...] = (),
    suffixes: tuple[str, ...] = SUFFIXES,
    holds: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """Yield the paths of the files that `walk` passes over, in no order; they are not looked at."""
    start = _find_start(root, parts)
    pending = [_Folder(start, "".join(f"{part}/" for part in parts))] if start else []
    while pending:
        folder = pending.pop()
        entries = folder.entries()
        for entry in () if isinstance(entries, str) else entries:
            path = folder.prefix + entry.name
            if holds and not holds(nfc(path)):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(_Folder(entry.path, f"{path}/"))
            elif not entry.name.endswith(suffixes):
                yield nfc(path)


def count_passed_over(paths: Iterable[str]) -> dict[str, int]:
    """Count the files of text among those that are no memories, by their suffix, the most frequent first."""
    counts = Counter(os.path.splitext(path)[1] for path in paths)
    return {suffix: count for suffix, count in counts.most_common() if suffix.lower() in _TEXTS}


def count_files(root: str, suffixes: tuple[str, ...] = SUFFIXES, most: int | None = None) -> int:
    """Count the files below a folder with one of `suffixes`, hidden names left out, and look at none.

    With `most`, stop at the folder in which there are more.
    """
    count = 0
    for _, folders, names in tree(root):
        folders[:] = [name for name in folders if name[0] != "."]
        count += sum(name.endswith(suffixes) and name[0] != "." for name in names)
        if most is not None and count > most:
            break
    return count


def count_hidden(
    root: str, parts: tuple[str, ...] = (), holds: Callable[[str], bool] | None = None
) -> dict[str, int]:
    """Count the Markdown files below hidden folders, by the folder's name and a slash; see `walk`."""
    counts: Counter[str] = Counter()
    start = _find_start(root, parts)
    for folder, folders, names in tree(start) if start else ():
        below = os.path.relpath(f"{folder}/x", root)[:-1]
        wanted = (name for name in folders if name not in OWN_FOLDERS)
        folders[:] = [name for name in wanted if holds is None or holds(nfc(below + name))]
        if hidden := next((part for part in below.split("/") if is_hidden(part)), ""):
            counts[show_name(f"{hidden}/")] += sum(name.endswith(MARKDOWN_SUFFIXES) for name in names)
    return dict((+counts).most_common())


def compare_files(
    root: str, known: Known, mounts: Mapping[str, str] | None = None, suffixes: tuple[str, ...] = SUFFIXES
) -> Look:
    """Compare every file that `walk` would meet with what is known, at little more than the price of asking.

    `known` has `Found.seen` of the files that were met before, by their paths, of those with a problem too.
    """
    search = _Search(known, mounts or {}, suffixes)
    search.compare_folder(_Folder(root, ""), None)
    return search.result(known)


def compare_paths(
    root: str,
    paths: Collection[str],
    known: Known,
    mounts: Mapping[str, str] | None = None,
    suffixes: tuple[str, ...] = SUFFIXES,
) -> Look:
    """See `compare_files`, at `paths` only: of memories, and of folders, with everything below them."""
    if "" in paths:
        return compare_files(root, known, mounts, suffixes)
    wanted = frozenset(map(nfc, paths))
    inside = {path: file for path, file in (mounts or {}).items() if _is_covered(wanted, path)}
    search = _Search(known, inside, suffixes)
    search.compare_folder(_Folder(root, ""), _build_tree(wanted))
    return search.result(_find_covered(wanted, known, inside))


def tree(
    root: str, refused: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """See `os.walk`, however deep folders are: before Python 3.12 that one calls itself for each level.

    Args:
        refused: is given the error of each folder that cannot be listed.
    """
    pending = [root]
    while pending:
        found = next(os.walk(pending.pop(), onerror=refused), None)
        if found:
            yield found
            folder, folders, _ = found
            inside = (os.path.join(folder, name) for name in reversed(folders))
            pending += [path for path in inside if not os.path.islink(path)]


class _Folder(NamedTuple):
    """A folder: its absolute path, what the paths in it begin with, whether another one has these paths."""

    place: str
    prefix: str
    shadowed: bool = False

    def entries(self) -> list[os.DirEntry[str]] | str:
        """Return what is in it and not hidden, nothing when it is gone; or why it is left out."""
        if len(self.prefix) * _MOST_BYTES > MAX_PATH_BYTES and len(os.fsencode(self.prefix)) > MAX_PATH_BYTES:
            return f"a folder that is left out: a path has at most {MAX_PATH_BYTES} bytes"
        try:
            with os.scandir(self.place) as entries:
                return [entry for entry in entries if not is_hidden(entry.name)]
        except _GONE:
            return []
        except OSError as error:
            if error.errno in _CLOSED and self.prefix:
                return f"a folder that cannot be listed: {error.strerror}"
            raise files.failure(error, show_name(self.prefix[:-1] or self.place), "list it") from None

    def left_out(self, why: str) -> Found:
        return Found(show_name(self.prefix[:-1]), 0, 0, why)


class _FolderEntry(NamedTuple):
    """An entry of a folder: its path as the disk spells it, and whether another one has that path."""

    dir_entry: os.DirEntry[str]
    path: str
    shadowed: bool

    @property
    def folder(self) -> _Folder | None:
        if not self.dir_entry.is_dir(follow_symlinks=False):
            return None
        return _Folder(self.dir_entry.path, f"{self.path}/", self.shadowed)

    def file(self, *, checked: bool = True) -> Found | None:
        """Return the entry as a file; None when it is gone. With `checked`, judge its path as a memory's."""
        status = _stat_file(self.dir_entry.path, self.path)
        if status is None:
            return None
        if isinstance(status, str):
            return Found(show_name(self.path), 0, 0, status)
        path, problem = self.path, find_file_problem(status)
        if checked and not problem:
            try:
                path = (check_memory if path.endswith(ANY_SUFFIXES) else check_folder)(path)
            except PathRefused as error:
                problem = error.reason
        if self.shadowed and not problem:
            path, problem = _spell_out(self.path), _SHADOWED
        return _make_found(show_name(path) if problem else path, status, problem)


def _sort_entries(
    folder: _Folder, some: Iterable[os.DirEntry[str]], all_: list[os.DirEntry[str]]
) -> Iterator[_FolderEntry]:
    odd = [entry.name for entry in all_ if not entry.name.isascii()]
    names = {entry.name for entry in all_} if odd else frozenset[str]()
    shadowed = {name for name in odd if name != nfc(name) and nfc(name) in names}
    for entry in some:
        yield _FolderEntry(entry, folder.prefix + entry.name, folder.shadowed or entry.name in shadowed)


def _in_order(
    folder: _Folder,
    suffixes: tuple[str, ...],
    holds: Callable[[str], bool] | None,
    *,
    checked: bool,
) -> Iterator[Found]:
    """Yield the files below a folder, in the order of the parts of their paths."""
    pending: list[_FolderEntry | _Folder] = [folder]
    while pending:
        entry = pending.pop()
        below = entry if isinstance(entry, _Folder) else entry.folder
        if below:
            if holds and isinstance(entry, _FolderEntry) and not holds(entry.path):
                continue
            entries = below.entries()
            if isinstance(entries, str):
                yield below.left_out(entries)
            else:
                backwards = sorted(entries, key=lambda entry: nfc(entry.name), reverse=True)
                pending += _sort_entries(below, backwards, entries)
        elif isinstance(entry, _FolderEntry) and entry.dir_entry.name.endswith(suffixes):
            found = entry.file(checked=checked)
            if found and (holds is None or holds(found.path)):
                yield found


class _Search:
    """A comparison that is under way: the known files that are as they were, and all others."""

    def __init__(self, known: Known, mounts: Mapping[str, str], suffixes: tuple[str, ...]) -> None:
        self._known = known
        self._mounts = mounts
        self._suffixes = suffixes
        self._same: list[str] = []
        self._closed: list[str] = []  # folders that are left out: nobody can say what is gone from them
        self._others = [found for path, file in mounts.items() for found in _find_mounted(path, file)]

    def compare_folder(self, folder: _Folder, wanted: _Tree | None) -> None:
        """Compare the wanted files of a folder with the known ones; without `wanted`, everything below it."""
        pending = [(folder, wanted)]
        while pending:
            folder, wanted = pending.pop()
            entries = folder.entries()
            if isinstance(entries, str):
                self._others.append(folder.left_out(entries))
                self._closed.append(folder.prefix)
            elif wanted is None:
                pending += self._compare_all(folder, entries)
            else:
                pending += self._compare_wanted(folder, entries, wanted)

    def _compare_all(
        self, folder: _Folder, entries: list[os.DirEntry[str]]
    ) -> list[tuple[_Folder, _Tree | None]]:
        """Take in the files of a folder that differ from what is known; return the folders in it."""
        known, mounts, same = self._known.get, self._mounts, self._same
        prefix, suffixes, others = folder.prefix, self._suffixes, []
        for entry in entries:
            name = entry.name
            if name.endswith(suffixes):
                path = prefix + name
                seen = known(path)
                # A known path was checked before.
                if seen and seen == _file_signature(entry) and path not in mounts:
                    same.append(path)
                    continue
            others.append(entry)
        return (
            [(below, None) for below in self._take_files(_sort_entries(folder, others, entries))]
            if others
            else []
        )

    def _compare_wanted(
        self, folder: _Folder, entries: list[os.DirEntry[str]], wanted: _Tree
    ) -> list[tuple[_Folder, _Tree | None]]:
        """Take in the wanted files of a folder; return the folders with what is wanted below each."""
        keys = {entry.name: key for entry in entries if (key := nfc(show_name(entry.name))) in wanted}
        some = [entry for entry in entries if entry.name in keys]
        found: list[tuple[_Folder, _Tree | None]] = []
        for entry in _sort_entries(folder, some, entries):
            inner = wanted[keys[entry.dir_entry.name]]
            if inner is None:
                found += [(below, None) for below in self._take_files([entry])]
            elif below := entry.folder:
                found.append((below, inner))
        return found

    def _take_files(self, some: Iterable[_FolderEntry]) -> Iterator[_Folder]:
        for entry in some:
            below = entry.folder
            if below:
                yield below
            elif entry.dir_entry.name.endswith(self._suffixes):
                found = entry.file()
                if found and found.problem and found.path in self._known and not any(found.seen):
                    self._same.append(found.path)  # nobody can say that it is another one
                elif found and found.path not in self._mounts:
                    self._others.append(found)

    def result(self, known: Collection[str]) -> Look:
        """Return what was found; each path in `known` was met or is gone."""
        met, changed, doubles = set(self._same), [], []
        for found in sorted(self._others, key=_rank_found):
            if found.path in met:
                doubles.append(found)
                continue
            met.add(found.path)
            if found.seen != self._known.get(found.path):
                changed.append(found)
        closed = tuple(self._closed)
        gone = sorted(path for path in known if path not in met and not path.startswith(closed))
        return Look(changed, gone, doubles)


def _rank_found(found: Found) -> tuple[str, bool, bool, int]:
    """Order files of one path: the memory first, and last what another file stands in the way of."""
    return found.path, bool(found.problem), not found.inode, found.inode


def _build_tree(paths: Iterable[str]) -> _Tree:
    tree: _Tree = {}
    for path in paths:
        *folders, name = path.split("/")
        inner: _Tree | None = tree
        for folder in folders:
            inner = inner.setdefault(folder, {}) if inner is not None else None
        if inner is not None:
            inner[name] = None
    return tree


def _find_covered(wanted: frozenset[str], known: Known, mounts: Mapping[str, str]) -> Collection[str]:
    """Return the known paths that are wanted, or below one that is."""
    # A file has nothing below its path, unless it is mounted over a folder.
    if wanted <= known.keys() and not wanted & mounts.keys():
        return wanted
    is_inside: dict[str, bool] = {}
    covered = []
    for path in known:
        folder = path.rpartition("/")[0]
        inside = is_inside.get(folder)
        if inside is None:
            inside = is_inside[folder] = _is_covered(wanted, folder)
        if inside or nfc(path) in wanted:
            covered.append(path)
    return covered


def _is_covered(wanted: frozenset[str], path: str) -> bool:
    path = nfc(path)
    while path and path not in wanted:
        path = path.rpartition("/")[0]
    return bool(path)


def _find_start(root: str, parts: tuple[str, ...]) -> str | None:
    """Return the folder to begin at, in any Unicode spelling; None where a part of it is a link."""
    folder = root
    for part in parts:
        name = part
        if not part.isascii() and not os.path.lexists(os.path.join(folder, part)):
            shown = show_name(folder)
            with contextlib.suppress(MemoryNotFound, PathRefused), files.translated(shown, "list it"):
                name = next((n for n in os.listdir(folder) if nfc(n) == part), part)
        folder = os.path.join(folder, name)
        if os.path.islink(folder):
            return None
    return folder


def _find_mounted(path: str, file: str) -> Iterator[Found]:
    status = _stat_file(file, path)
    if isinstance(status, str):
        yield Found(path, 0, 0, status)
    elif status:
        yield _make_found(path, status, find_file_problem(status))


def _stat_file(file: str, path: str) -> os.stat_result | str | None:
    """Return what the system says of a file; None when it is gone, or why it is left out."""
    try:
        return os.lstat(file)
    except _GONE:
        return None
    except OSError as error:
        if error.errno in _CLOSED:
            return f"a file that cannot be looked at: {error.strerror}"
        raise files.failure(error, show_name(path), "look at it") from None


def _file_signature(entry: os.DirEntry[str]) -> tuple[int, int, int, int] | None:
    """Return what tells whether a file is as it was; None where that cannot be told."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return changed_at(status), status.st_ctime_ns, status.st_size, status.st_ino


def changed_at(status: os.stat_result) -> int:
    """Return when a file's content was changed, in nanoseconds since the epoch.

    Whoever packed a file chose that: for a time beyond the years 1677 to 2262, which no database has room
    for, the epoch stands.
    """
    time = status.st_mtime_ns
    return time if -_FARTHEST < time < _FARTHEST else 0


def _make_found(path: str, status: os.stat_result, problem: str) -> Found:
    inode = 0 if problem == _SHADOWED else status.st_ino
    return Found(path, status.st_size, changed_at(status), problem, status.st_ctime_ns, inode)


def find_file_problem(status: os.stat_result) -> str:
    """Return why what is there cannot be a memory, by its kind; empty for a regular file."""
    if stat.S_ISREG(status.st_mode):
        return ""
    return "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"


def _spell_out(path: str) -> str:
    """Return a path with escapes in the names that stand there in another form than the normal one."""
    parts = (p if p == nfc(p) else p.encode("unicode_escape").decode() for p in path.split("/"))
    return show_name("/".join(parts))
