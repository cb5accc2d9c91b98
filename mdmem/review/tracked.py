"""The memories of a namespace as the git repository around them has them: names, and old versions."""

from __future__ import annotations

import os
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Self

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.document import Document, digest, parse
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import first_of
from mdmem.errors import DocumentRefused, MdmemError, PathRefused, TooLarge, VersionRefused, plural
from mdmem.git.history import AGENT, ID, OP, SESSION, Commit, History, LoggedCommit, TouchedFile
from mdmem.git.repository import Objects, Repository, TooLong
from mdmem.index.code.workspace import Source
from mdmem.kind import kind_at
from mdmem.vault import outside
from mdmem.vault.local_store import LOCAL
from mdmem.vault.paths import Namespace, check_memory, is_under, join, relative
from mdmem.vault.vault import Vault

NAMES_A_MEMORY = regex(r"\.(?:mdx?|markdown|json)\b")
"""What is in the words of an operation that say which memories it is about."""

SETTINGS = ".mdmem"
_ALL = "."
_NAMED = 4  # of the memories that git ignores
_MOST_AT_ONCE = 200  # commits that are looked at together for other files
_INODE = 0xFFFFFFFF  # as much of the number of a file as the index keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTouched:
    """A memory that a commit touched: `status` is "added", "changed", "removed" or "renamed" from `old`."""

    path: str
    status: str
    old: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCommit:
    """A commit that touched memories of the namespace.

    Attributes:
        date: when it was written, in ISO 8601.
        agent: who made the changes in it, as it says itself; empty where it does not.
        ids: the changes in the history of the vault that did it.
        session: in which session; empty where it does not say.
        subject: the first line of its message; empty with `is_part`.
        memories: those of the namespace that it touched.
        is_part: whether it touched others, too; then its message, which may name them, is not told.
    """

    commit: str
    date: str
    author: str
    email: str
    agent: str
    operations: tuple[str, ...]
    ids: tuple[str, ...]
    session: str
    subject: str
    memories: tuple[MemoryTouched, ...]
    is_part: bool = False


class Tracked:
    """The memories of the namespace of `vault` in git; to be used from one thread at a time, and closed.

    The name of a memory in git is a path from the top of the work tree. Files outside of the namespace have
    no path here. `repository` holds the vault; without it, it is found.

    Attributes:
        ignored: the memories that git ignores; known once `find_changed` has yielded all.
    """

    def __init__(self, vault: Vault, repository: Repository | None = None) -> None:
        self._vault = vault
        self.ignored: list[str] = []
        self._objects: Objects | None = None
        self._held: dict[str, bool] = {}  # whether a folder is in the repository
        if repository is not None:
            self.repository = repository

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._objects is not None:
            self._objects.close()

    @cached_property
    def repository(self) -> Repository:
        """Find the repository that holds the vault; see `Repository.around`."""
        return Repository.around(self._vault.root)

    @cached_property
    def history(self) -> History:
        """Return the commits of the repository."""
        return History(self.repository)

    @cached_property
    def head(self) -> str | None:
        """Return the id of the commit that is checked out; None before the first."""
        return self.repository.head()

    @cached_property
    def _mounted_files(self) -> dict[str, str]:
        """Map the name of each mounted file to its path in the vault."""
        mounted = self._vault.disk.mounted(Namespace()).items()
        named = ((os.path.relpath(file, self.repository.top), path) for path, file in mounted)
        return {name: path for name, path in named if self.holds(name)}

    @property
    def mounted(self) -> dict[str, str]:
        """Map the path of each mounted file in the namespace to its name in the repository."""
        own = ((name, path) for name, path in self._mounted_files.items() if self._vault.wall.holds(path))
        return {relative(path, self._vault.namespace): name for name, path in own}

    @property
    def names(self) -> list[str]:
        """Return the names of the folder of the namespace, and of its mounted files."""
        folder = self.repository.name(self._vault.namespace).rstrip("/")
        return [folder or _ALL, *self.mounted.values()]

    def holds(self, name: str) -> bool:
        """Return whether a file is in the repository, and not in another one inside of it."""
        if name.split(os.sep, maxsplit=1)[0] == os.pardir:
            return False
        folder = os.path.dirname(name)
        if folder and folder not in self._held:
            inner = os.path.join(self.repository.top, folder, ".git")
            self._held[folder] = not os.path.lexists(inner) and self.holds(folder)
        return not folder or self._held[folder]

    def find_outside(self, paths: Sequence[str]) -> list[str]:
        """Return the mounts and folders of memories outside the repository; with `paths`, only of these."""
        mounts = (relative(path, self._vault.namespace) for path in self._vault.mounted(""))
        lost = [path for path in mounts if path not in self.mounted and is_chosen(path, paths)]
        suffixes = self._vault.suffixes
        folders = {os.path.dirname(path) for path in paths if path.endswith(suffixes)}
        for name in (path for path in paths or ("",) if not path.endswith(suffixes)):
            folders |= {os.path.dirname(each.path) for each in self._vault.walk(name) if not each.problem}
        for folder in sorted(folders):
            inside = self.repository.name(join(self._vault.folder(folder), "a"))
            if not (self.holds(inside) or any(is_under(folder, path) for path in lost)):
                lost.append(folder)
        return lost

    def name(self, path: str) -> str:
        """Return what git calls a memory, whether it is there or not.

        Raises:
            PathRefused: `path` cannot name a memory of this namespace.
        """
        self._vault.place(path)
        full = join(self._vault.namespace, check_memory(path))
        mounted = next((name for name, mount in self._mounted_files.items() if mount == full), None)
        return mounted or self.repository.name(self._vault.store.spelled(full) or full)

    def path(self, name: str) -> str | None:
        """Return the memory of this namespace that git calls `name`; None for any other file."""
        full = self._full_path(name)
        if full is None or not self._vault.wall.holds(full):
            return None
        return relative(full, self._vault.namespace)

    def find_paths(self, file: TouchedFile) -> tuple[str, str]:
        """Return the memory that a file was, and the one that it is; empty where it is none."""
        before = self.path(file.old or file.name) if file.before else None
        after = self.path(file.name) if file.after else None
        return before or "", after or ""

    def _full_path(self, name: str) -> str | None:
        """Return the memory of the whole vault that git calls `name`."""
        if name in self._mounted_files:
            return self._mounted_files[name]
        inside = self.repository.path(name)
        with suppress(PathRefused):
            path = check_memory(inside, self._vault.suffixes) if inside else None
            # Where a mount stands, a file of the vault is not seen.
            return None if path in self._mounted_files.values() else path
        return None

    def attachment(self, name: str) -> str | None:
        """Return the file of this namespace that git calls `name`, and that is neither memory nor hidden."""
        inside = unicodedata.normalize("NFC", self.repository.path(name) or "")
        is_memory = name in self._mounted_files or inside.endswith(self._vault.suffixes)
        if not inside or is_memory or f"/{inside}".count("/.") or not self._vault.wall.holds(inside):
            return None
        return relative(inside, self._vault.namespace)

    def describe_commits(self, found: Iterator[LoggedCommit]) -> Iterator[MemoryCommit]:
        """Yield the commits that touched memories of the namespace, each with these memories."""
        while some := list(islice(found, _MOST_AT_ONCE)):
            touched = [(each.commit, self._touched_memories(each.files)) for each in some]
            seen = [(commit, memories) for commit, memories in touched if memories]
            partial = self.find_partial([commit for commit, _ in seen])
            for commit, memories in seen:
                yield _describe_commit(commit, memories, is_part=commit.id in partial)

    def find_partial(self, commits: Collection[Commit]) -> set[str]:
        """Return the ids of the commits that touched files outside the namespace, and of all merges."""
        if self._vault.wall == Namespace():
            return set()
        files = self.history.files(commit.id for commit in commits)
        return {
            commit.id
            for commit in commits
            if len(commit.parents) > 1 or any(map(self._is_hidden, files[commit.id]))
        }

    def _is_hidden(self, name: str) -> bool:
        """Return whether a file is in the vault, or mounted there, and outside of the namespace."""
        inside = self._mounted_files.get(name) or self.repository.path(name)
        return inside is not None and not self._vault.wall.holds(unicodedata.normalize("NFC", inside))

    def _touched_memories(self, files: Iterable[TouchedFile]) -> tuple[MemoryTouched, ...]:
        found = []
        for file in files:
            before, path = self.find_paths(file)
            if path and before and file.old:
                found.append(MemoryTouched(path=path, status="renamed", old=before))
            elif path:
                found.append(MemoryTouched(path=path, status="changed" if before else "added"))
            elif before:
                found.append(MemoryTouched(path=before, status="removed"))
        return tuple(found)

    def document(self, blob: str, path: str) -> Document | None:
        """Return the memory `path` as a version of it stands in the repository; None without the content.

        Raises:
            VersionRefused: it is no memory: too large, or no text.
        """
        limits = self._vault.config.limits
        if self._objects is None:
            self._objects = Objects(self.repository.top, limits.max_bytes)
        try:
            data = self._objects.content(blob)
        except TooLong:
            refused: DocumentRefused = TooLarge(path=path, size=limits.max_bytes + 1, limit=limits.max_bytes)
        else:
            try:
                return None if data is None else parse(path, data, limits)
            except DocumentRefused as error:
                refused = error
        version, remedy = f"what git has as {blob[:12]}", f"`git cat-file blob {blob[:12]}` prints its bytes"
        raise VersionRefused(path=path, version=version, reason=refused.fault, remedy=remedy)

    def list_blobs(self, commit: str | None, paths: Sequence[str] = ()) -> dict[str, str]:
        """Return the object ids of the memories in a commit, or of `paths` there, by path; None has none."""
        if commit is None:
            return {}
        names = [self._name_of(path) for path in paths] or self.names
        named = ((self.path(name), blob) for name, blob in self.history.tree(commit, names).items())
        return {path: blob for path, blob in named if path is not None}

    @property
    def settings_name(self) -> str:
        """Return what git calls the folder of the vault's settings."""
        return self.repository.name(SETTINGS)

    def find_settings(self, old: str, new: str | None) -> list[str]:
        """Return the files of `.mdmem` that differ between two commits, or a commit and the files now.

        None of them are told in a namespace: they are for the whole vault. A vault that `old` lacks is
        new as a whole.
        """
        if self._vault.namespace:
            return []
        folder = self.settings_name
        before = self.history.tree(old, [folder])
        if not before:
            return []
        if new:
            after = self.history.tree(new, [folder])
            names = {name for name in before | after if before.get(name) != after.get(name)}
        else:
            taken = {*before, *self.repository.taken([folder])}
            names = {name for name in taken if not self.is_in_file(name, before.get(name))}
        paths = sorted(filter(None, map(self.repository.path, names)))
        return [path for path in paths if not is_under(path, LOCAL)]

    def holds_content(self, name: str, hash_: str | None) -> bool:
        """Return whether a file of the work tree has the content of a hash."""
        with suppress(MdmemError):
            found = outside.read(outside.below(self.repository.top, name), name)
            return found is not None and digest(found.data) == hash_
        return False

    def is_in_file(self, name: str, blob: str | None) -> bool:
        """Return whether a file of the work tree has the content `blob`; None for no file."""
        try:
            found = outside.read(outside.below(self.repository.top, name), name)
        except MdmemError:
            return False
        if found is None or blob is None:
            return found is None and blob is None
        return any(
            Source(name, data).is_blob(blob) for data in (found.data, found.data.replace(b"\r\n", b"\n"))
        )

    def _name_of(self, path: str) -> str:
        if path.endswith(self._vault.suffixes):
            return self.name(path)
        return self.repository.name(self._vault.folder(path)).rstrip("/") or _ALL

    def find_changed(self, commit: str | None) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield the memories that may differ from a commit, without those that git ignores.

        Each is a path, and the object ids of its content in the commit and now: None where it is not there,
        empty for what the file holds.
        """
        index = self.history.index(self.names)
        staged = self.history.staged(commit, self.names) if commit else dict.fromkeys(index)
        mounted = self.mounted
        spelled = {unicodedata.normalize("NFC", name): name for name in index if not name.isascii()}
        written = self._index_written()
        unknown: list[tuple[str, str | None]] = []
        for each in self._vault.walk():
            if each.problem:
                continue
            name = mounted.get(each.path) or self.repository.name(join(self._vault.namespace, each.path))
            name = name if name in index else spelled.get(name, name)
            known = index.pop(name, None)
            before = staged.pop(name, known.blob if known else None)
            stamp = (each.mtime_ns, each.ctime_ns, each.size, each.inode & _INODE)
            # What was written as late as the index may have been written again since.
            if known and known.stamp == stamp and each.mtime_ns < written:
                if before != known.blob:
                    yield each.path, before, known.blob
            elif known or before:
                yield each.path, before, ""
            else:
                unknown.append((each.path, before))
        self.ignored = self.find_ignored([path for path, _ in unknown])
        yield from ((path, before, "") for path, before in unknown if path in self.taken)
        for name in index.keys() | staged.keys():
            left = index.get(name)
            before = staged.get(name, left.blob if left else None)
            after = left.blob if left and not left.is_out else None
            path = self.path(name) if before != after else None
            if path is not None:
                yield path, before, after

    @cached_property
    def taken(self) -> set[str]:
        """Find the memories that git would commit: tracked or not ignored."""
        taken = map(self.path, self.repository.taken(self.names))
        return {path for path in taken if path is not None}

    def find_ignored(self, paths: Sequence[str]) -> list[str]:
        """Return those of some memories that git ignores; not those in another repository, or in none."""
        return [path for path in paths if path not in self.taken and self.holds(self.name(path))]

    def unmerged(self) -> set[str]:
        """Find the memories that git's index holds unmerged."""
        asked = ["ls-files", "--unmerged", "-z", "--full-name", "--", *self.names]
        entries = os.fsdecode(self.repository.require(asked, "read the index")).split("\0")
        return {path for entry in entries if (path := self.path(entry.partition("\t")[2]))}

    def _index_written(self) -> int:
        """Return when the index was written last, in nanoseconds; 0 if unknown."""
        with suppress(OSError):
            return os.stat(os.path.join(self.repository.folder, "index")).st_mtime_ns
        return 0


def describe_ignored(tracked: Tracked, ignored: Iterable[str]) -> Diagnostic | None:
    """Report the memories that git ignores and mdmem does not keep out of it; None without any."""
    lost = [path for path in ignored if not ((kind := kind_at(path)) and kind.is_ignored)]
    if not lost:
        return None
    file = shlex.quote(os.path.join(tracked.repository.top, tracked.name(lost[0])))
    message = f"git ignores {plural(len(lost), 'memory')}: {first_of(lost, _NAMED)}"
    hint = f"`git check-ignore -v {file}` names the rule"
    return about_file(lost[0], "git-ignores", message, hint, severity="warning")


def is_chosen(path: str, chosen: Sequence[str]) -> bool:
    """Return whether a path is one of some memories and folders, or in one; each is where there are none."""
    return not chosen or any(is_under(path, each) for each in chosen)


def agent_of(commit: Commit, *, is_part: bool) -> str:
    """Return who made the changes in a commit; for a part of it, nothing if several are named."""
    agents = list(dict.fromkeys(commit.values(AGENT)))
    return "" if is_part and len(agents) > 1 else ", ".join(agents)


def _describe_commit(
    commit: Commit, memories: tuple[MemoryTouched, ...], *, is_part: bool = False
) -> MemoryCommit:
    return MemoryCommit(
        commit=commit.id,
        date=commit.date,
        author=commit.author,
        email=commit.email,
        agent=agent_of(commit, is_part=is_part),
        operations=() if is_part else commit.values(OP),
        ids=() if is_part else commit.values(ID),
        session="" if is_part else ", ".join(dict.fromkeys(commit.values(SESSION))),
        subject="" if is_part else commit.subject,
        memories=memories,
        is_part=is_part,
    )
