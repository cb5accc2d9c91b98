"""The workspace: the source files that memories cite, as they are and as git knows that they were."""

from __future__ import annotations

import errno
import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

from mdmem.document.text.diff import hunks
from mdmem.document.text.lines import LINE_END
from mdmem.errors import GitFailed, HistoryNotReady, MdmemError, ProgramFailed
from mdmem.index.code.symbols import Symbols, symbols
from mdmem.vault.files import open_regular
from mdmem.vault.paths import above

if TYPE_CHECKING:
    from mdmem.git.removals import Removals
    from mdmem.git.repository import Objects, Renamed, Repository
    from mdmem.vault.vault import Vault


# Without a bound, a pin of n lines costs n hashed lines for every line of the file.
_MOST_HASHED = 1 << 28


def pin_of(lines: Sequence[str]) -> str:
    r"""Return the pin of lines: 16 hexadecimal digits of SHA-256, each line ended by one `\n`.

    A change of line ends alone does not change a pin; a change of a blank does.
    """
    return _pin_data("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def _pin_data(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


_SHA1_DIGITS = 40


class Source:
    """The content of a file of the workspace, now or as it was in a commit."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its lines without their ends. A byte that is no UTF-8 is a lone surrogate, and itself in a pin."""
        lines = LINE_END.split(self.data.decode("utf-8", "surrogateescape"))
        return tuple(lines if lines[-1] else lines[:-1])

    @cached_property
    def symbols(self) -> Symbols:
        """What it defines."""
        return symbols(self.path, self.data)

    def is_blob(self, blob: str) -> bool:
        """Return whether git calls this content `blob`."""
        named = b"blob %d\0" % len(self.data) + self.data
        make = hashlib.sha1 if len(blob) == _SHA1_DIGITS else hashlib.sha256
        return make(named, usedforsecurity=False).hexdigest() == blob

    def cut(self, first: int, last: int) -> tuple[str, ...] | None:
        """Return the lines `first` to `last`, 1-based and both included.

        None when not all of them are there.
        """
        return self.lines[first - 1 : last] if last <= len(self.lines) else None

    def place(self, symbol: str) -> tuple[int, int] | None:
        """Return the first and the last line of the first definition of `symbol`; None when none is found."""
        definitions = self.symbols.named(symbol)
        return (definitions[0].first, definitions[0].last) if definitions else None

    def definition(self, symbol: str) -> tuple[str, ...]:
        """Return the lines of all definitions of `symbol`, one after the other; empty when none is found."""
        definitions = self.symbols.named(symbol)
        return tuple(line for one in definitions for line in self.lines[one.first - 1 : one.last])

    def places(self, content: Sequence[str]) -> list[int]:
        """Return the 1-based lines at which `content` begins; places may overlap."""
        wanted = tuple(content)
        places = []
        at = 0
        last = len(self.lines) - len(wanted)
        while wanted and at <= last:
            try:
                at = self.lines.index(wanted[0], at, last + 1) + 1
            except ValueError:
                break
            if self.lines[at - 1 : at - 1 + len(wanted)] == wanted:
                places.append(at)
        return places

    def pinned_places(self, pin: str, count: int) -> list[int] | None:
        """Return the 1-based lines at which `count` lines with this pin begin.

        None when that takes too long.
        """
        encoded = [f"{line}\n".encode("utf-8", "surrogateescape") for line in self.lines]
        windows = len(encoded) - count + 1
        if windows > 0 and windows * count * (len(self.data) // len(encoded) + 1) > _MOST_HASHED:
            return None
        return [at + 1 for at in range(windows) if _pin_data(b"".join(encoded[at : at + count])) == pin]


class LineMap:
    """Maps lines of an old text to lines of a new one along their diff; all numbers are 1-based."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.hunks = hunks(old, new)

    def old_line(self, line: int) -> int | None:
        """Return where the new line `line` stood; None when it was added."""
        at = bisect_right(self._new_starts, line - 1)
        if not at:
            return line
        hunk = self.hunks[at - 1]
        return None if line <= hunk.new_end else line - hunk.new_end + hunk.end

    @cached_property
    def _new_starts(self) -> list[int]:
        return [hunk.new_start for hunk in self.hunks]

    def moved(self, first: int, last: int) -> int | None:
        """Return where the old lines `first` to `last` begin now.

        None unless they are all there and together.
        """
        shift = 0
        for hunk in self.hunks:
            if hunk.start >= last:
                break
            if hunk.end >= first:
                return None
            shift = hunk.new_end - hunk.end
        return first + shift

    def successor(self, first: int, last: int) -> tuple[int, int]:
        """Return the first and the last new line where the old lines `first` to `last` stood.

        The last is the line before the first when nothing does. A change that covers more than the range
        counts whole if it kept at least half its size, else not at all.
        """
        start, end = first - 1, last
        places: list[int] = []
        gap: int | None = None
        at = start
        shift = 0
        for hunk in self.hunks:
            if hunk.start >= end:
                break
            if hunk.end > start:
                gap = hunk.new_start if gap is None else gap
                places += range(at + shift, max(at, hunk.start) + shift)
                instead = range(hunk.new_start, hunk.new_end)
                is_inside = start <= hunk.start and hunk.end <= end
                if is_inside or 2 * len(instead) >= hunk.end - hunk.start:
                    places += instead
                at = max(start, hunk.end)
            shift = hunk.new_end - hunk.end
        places += range(at + shift, end + shift)
        if not places:
            return (gap or 0) + 1, gap or 0
        return min(places) + 1, max(places) + 1


MOST_BYTES = 4 << 20
"""The largest source file that is looked into."""

MOST_FILES = 250_000
"""In a workspace with more files, none is found by its name alone."""

_KEPT = 512
_OTHER_NAMESPACE = "it is in another namespace"
# Behind this many files, the history of their whole folder is cheaper than a process for each.
_FEW_BLAMES = 7
_MOST_RENAMES = 20
_MOST_MISSING = 1_000
_FEW_MISSING = 50  # of more, only files that are the same are paired: each new one is compared with each
_SAME_SHARE = 0.5  # of the lines, above which two files are one that was renamed, as for git
_REMOVALS = "removals.sqlite"
_HURRIED_SECONDS = 0.5  # for the history, where nobody may be kept waiting

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Unread(NamedTuple):
    """A path that is there, without a look at its content.

    Attributes:
        reason: why not: "it is binary".
        inside: whether it is a file or folder of the workspace all the same.
    """

    reason: str
    inside: bool


class Followed(NamedTuple):
    """What git says of a file that is gone: its new path, or the commit that deleted it, or neither.

    `is_committed` says that it is in the commit that is checked out: only the work tree lacks it.
    """

    path: str | None = None
    deletion: str | None = None
    is_committed: bool = False

    @property
    def existed(self) -> bool:
        """Whether git knows of the file at all."""
        return self.path is not None or self.deletion is not None or self.is_committed


class _Committed(NamedTuple):
    """The files of a folder in git, by name: the one commit that made each, and its blob in the head."""

    commits: dict[str, str | None]
    blobs: dict[str, str]


class Workspace:
    """A look at a workspace, for one run of questions.

    What was read is remembered, so that many questions cost few reads and few processes; a later run makes a
    new one. To be used from one thread at a time, and closed.

    Args:
        hides: says of a file, by its absolute path, whether it must not be looked at.
        unsaved: what stands in an editor in the place of files, by their paths from the workspace.
        keep: returns the folder in which what git says of its history is kept; it may raise `MdmemError`.

    Attributes:
        trouble: what git could not do, in words; empty when it did all.
        notes: remarks about what could not be judged, for whoever asked.
    """

    _is_hurried = False

    @classmethod
    def of(cls, vault: Vault, unsaved: Mapping[str, bytes] | None = None) -> Self:
        """Return a look at what the memories of a vault talk about."""
        found = cls(vault.workspace, vault.hides, unsaved, lambda: vault.disk.own("history"))
        found._is_hurried = vault.is_hurried
        found.notes = vault.notes
        return found

    def __init__(
        self,
        root: str,
        hides: Callable[[str], bool] = lambda _: False,
        unsaved: Mapping[str, bytes] | None = None,
        keep: Callable[[], str] | None = None,
    ) -> None:
        self._unsaved = unsaved or {}
        self._keep = keep
        self.root = os.path.realpath(root)
        self._is_hidden = hides
        self.trouble = ""
        self.notes: list[str] = []
        self._is_silent = False
        self._objects: Objects | None = None
        self._sources: WeakValueDictionary[tuple[str, bytes], Source] = WeakValueDictionary()
        self.current = lru_cache(maxsize=_KEPT)(self._read_current)
        self.then = lru_cache(maxsize=_KEPT)(self._read_version)
        self.line_map = lru_cache(maxsize=_KEPT)(lambda old, new: LineMap(old.lines, new.lines))
        self.follow = lru_cache(maxsize=None)(self._follow_renames)
        self._commits = lru_cache(maxsize=_KEPT)(self._blame_lines)
        self._sole_commits = lru_cache(maxsize=None)(self._sole_commits_in)
        self._renames = lru_cache(maxsize=_KEPT)(self._renames_of)
        self._committed_path = lru_cache(maxsize=None)(self._find_committed_path)
        self._missing = lru_cache(maxsize=None)(self._read_missing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that reads old content."""
        if self._objects is not None:
            self._objects.close()
        if removals := vars(self).get("_removals"):
            removals.close()

    @cached_property
    def repository(self) -> Repository | None:
        """The repository that holds the workspace; None without one, or without git."""
        if not is_versioned(self.root):
            return None
        from mdmem.git.repository import Repository  # noqa: PLC0415 - as above

        return self._ask_git(None, Repository.find, self.root)

    @cached_property
    def head(self) -> str | None:
        """The commit that is checked out; None when there is none."""
        return None if self.repository is None else self._ask_git(None, self.repository.head)

    @cached_property
    def left_out(self) -> frozenset[str]:
        """What git has and a sparse work tree leaves out, by its path from the workspace."""
        if self.repository is None:
            return frozenset()
        from mdmem.git.history import History  # noqa: PLC0415 - as above

        return self._ask_git(frozenset(), History(self.repository).list_left_out)

    def _read_current(self, path: str) -> Source | Unread | None:
        """Return the file `path` of the workspace as it is now; None when there is no such file.

        A symlink is followed inside the workspace, and never out of it.
        """
        if path in self._unsaved:
            return self._make_source(path, self._unsaved[path])
        try:
            file = os.path.realpath(os.path.join(self.root, path), strict=True)
            if os.path.commonpath((file, self.root)) != self.root:
                return Unread("it is a symlink that leaves the workspace", inside=False)
            if self._is_hidden(file):
                return Unread(_OTHER_NAMESPACE, inside=False)
            data = _read_regular_file(file)
        except (FileNotFoundError, NotADirectoryError):
            is_hidden = self._is_hidden(os.path.join(self.root, path))
            missing = Unread("it is not checked out", inside=True) if path in self.left_out else None
            return Unread(_OTHER_NAMESPACE, inside=False) if is_hidden else missing
        except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
            reason = error.strerror if isinstance(error, OSError) else None
            return Unread(f"it cannot be read: {reason or error}", inside=isinstance(error, OSError))
        return self._make_source(path, data) if isinstance(data, bytes) else data

    def named(self, name: str) -> tuple[str, ...] | None:
        """Return the files of a name, in whatever folder, by their paths; but for those that are ignored.

        Hidden folders are not looked into. None where there are more than `MOST_FILES` files, or ripgrep,
        which knows the ignore files, cannot list them.
        """
        files = self._files_by_name
        return None if files is None else tuple(sorted(files.get(name, ())))

    @cached_property
    def _files_by_name(self) -> dict[str, list[str]] | None:
        from mdmem.index import ripgrep  # noqa: PLC0415 - only where a citation leads nowhere

        options = ("--no-config", "--no-messages", "--no-require-git", "--files", "--", "./")
        files: dict[str, list[str]] = {}
        count = 0
        try:
            with ripgrep.Process([ripgrep.program(), *options], self.root) as process:
                for count, line in enumerate(process.lines(), 1):
                    if count > MOST_FILES:
                        break
                    path = os.fsdecode(line.rstrip(b"\n")).removeprefix("./")
                    if not self._is_hidden(os.path.join(self.root, path)):
                        files.setdefault(path[path.rfind("/") + 1 :], []).append(path)
        except ProgramFailed:
            return None
        return files if count <= MOST_FILES else None

    def _read_version(self, commit: str, path: str) -> Source | None:
        """Return the file `path` as it was in a commit.

        None when it was not there, or cannot be looked into.
        """
        if self.repository is None:
            return None
        from mdmem.git.repository import Objects, TooLong  # noqa: PLC0415 - as above

        if self._objects is None:
            self._objects = Objects(self.repository.top, MOST_BYTES)
        try:
            data = self._ask_git(None, self._objects.blob, commit, self.repository.name(path))
        except TooLong:
            return None
        return None if data is None or b"\0" in data else self._make_source(path, data)

    def _make_source(self, path: str, data: bytes) -> Source:
        # The same content comes back in many commits, and its lines, symbols and maps with it.
        return self._sources.setdefault((path, data), Source(path, data))

    def commit_of(self, path: str, line: int) -> str | None:
        """Return the commit that last touched a line (1-based) of a file of the workspace."""
        sole = self._sole_commit(path)
        if sole is not None:
            return sole or None
        number = self._find_committed_line(path, line)
        return self._commits(path)[number - 1] if number else None

    def is_cut_off(self, path: str, line: int) -> bool:
        """Return whether a line (1-based) is committed, and older than a shallow clone knows."""
        is_shallow = self.repository is not None and self.repository.shallow
        number = self._find_committed_line(path, line) if is_shallow else None
        return number is not None and self._commits(path)[number - 1] is None

    def _find_committed_line(self, path: str, line: int) -> int | None:
        commits = self._commits(path)
        committed = self._committed_path(path)
        now, then = self.current(path), self.then(self.head, committed) if commits and self.head else None
        if then is None or not isinstance(now, Source):
            return None
        number = line if now is then else self.line_map(then, now).old_line(line)
        # Where a lone carriage return ends a line of a memory, git counts other lines.
        return number if number and number <= len(commits) == len(then.lines) else None

    def is_newer(self, path: str, other: str) -> bool:
        """Return whether a file of the workspace was written after another one, as far as their times say."""
        if path in self._unsaved or other in self._unsaved:
            return False
        try:
            stamps = [os.stat(os.path.join(self.root, each)).st_mtime_ns for each in (path, other)]
        except (OSError, ValueError):  # such as a memory of a vault that has no files
            return False
        return stamps[0] > stamps[1]

    def _sole_commit(self, path: str) -> str | None:
        """Return the one commit that made a file as it is.

        Empty when none did, None when `blame` must say.
        """
        folder, slash, _ = path.partition("/")
        many = self._commits.cache_info().misses >= _FEW_BLAMES
        known = self._sole_commits(folder) if many and slash else None
        if known is None or self.repository is None:
            return None
        name, now = self.repository.name(path), self.current(path)
        sole = known.commits.get(name, "")
        if not sole and self._committed_path(path) != path:
            return None
        if not sole:
            return sole
        return sole if isinstance(now, Source) and now.is_blob(known.blobs.get(name, "")) else None

    def _sole_commits_in(self, folder: str) -> _Committed | None:
        repository, head = self.repository, self.head
        # In a shallow clone the oldest commit that it has seems to have made every file.
        if repository is None or repository.shallow or head is None:
            return None
        from mdmem.git.history import History  # noqa: PLC0415 - as above

        name = repository.name(folder)
        commits = self._ask_git(None, repository.sole_commits, name)
        blobs = self._ask_git(None, History(repository).tree, head, [name])
        return None if commits is None or blobs is None else _Committed(commits, blobs)

    def _blame_lines(self, path: str) -> tuple[str | None, ...]:
        if self.repository is None:
            return ()
        committed = self._committed_path(path)
        if self.head and not self.then(self.head, committed):
            return ()  # it is not committed: nothing to ask
        return self._ask_git((), self.repository.blame, self.repository.name(committed))

    def _find_committed_path(self, path: str) -> str:
        """Return the name that the head has for a file: another one, where it was renamed since."""
        repository, head, now = self.repository, self.head, self.current(path)
        if not repository or not head or not isinstance(now, Source) or self.then(head, path):
            return path
        lines, missing = frozenset(now.lines), self._missing(os.path.splitext(path)[1])
        if lines in missing:
            return missing[lines]
        best, share = path, _SAME_SHARE
        for kept, old in missing.items() if len(missing) <= _FEW_MISSING else ():
            same = len(lines & kept) / max(len(lines | kept), 1)
            if same > share:
                best, share = old, same
        return best

    def _read_missing(self, suffix: str) -> dict[frozenset[str], str]:
        """Return the paths of files of a suffix that the head has and the work tree lacks, by their lines."""
        repository, head = self.repository, self.head
        if repository is None or head is None:
            return {}
        missing = self._ask_git([], repository.find_missing, head)
        names = [name for name in missing if name.endswith(suffix)]
        paths = filter(None, map(repository.path, names[:_MOST_MISSING]))
        found = {path: self.then(head, path) for path in paths}
        return {frozenset(source.lines): path for path, source in found.items() if source is not None}

    def _follow_renames(self, path: str) -> Followed:
        """Return where a file that is gone went, as far as git can tell."""
        repository = self.repository
        if repository is None or self.head is None:
            return Followed()
        from mdmem.git.repository import Renamed  # noqa: PLC0415 - as above

        name = repository.name(path)
        target = self._find_existing(self._renames(self.head), name)
        if target:
            return Followed(target)
        deletion = None
        for _ in range(_MOST_RENAMES):
            removal = self._removals.find(name) if self._removals else None
            if removal is None:
                break
            deletion, new = removal
            pairs = (Renamed(name, new),) if new else ()
            # One commit deleted, another one added: then only the work tree can be compared with before.
            target = self._find_existing(pairs, name) or self._find_existing(
                self._renames(deletion, before=True), name
            )
            if target:
                return Followed(target)
            if not new:
                break
            name = new
        return Followed(deletion=deletion, is_committed=self.then(self.head, path) is not None)

    def find_renamed(self, path: str) -> str | None:
        """Return where commits moved a file that neither the head nor the work tree has, without changes."""
        if self.repository is None or self.head is None or self.then(self.head, path) is not None:
            return None
        name = self.repository.name(path)
        for _ in range(_MOST_RENAMES):
            removal = self._removals.find(name) if self._removals else None
            if removal is None or not removal.new:
                return None
            name = removal.new
            moved = self.repository.path(name)
            if moved is not None and self.current(moved) is not None:
                return moved
        return None

    @cached_property
    def _removals(self) -> Removals | None:
        if self.repository is None or self.head is None:
            return None
        from mdmem.git.history import History  # noqa: PLC0415 - as above
        from mdmem.git.removals import Removals  # noqa: PLC0415 - as above

        file = ""
        if self._keep:
            with suppress(MdmemError):  # such as a vault that cannot be written to
                file = os.path.join(self._keep(), _REMOVALS)
        read = partial(self._ask_git, None, partial(Removals, History(self.repository), self.head, file))
        if not self._is_hurried:
            return read()
        found: list[Removals | None] = []
        reading = Thread(target=lambda: found.append(read()), daemon=True)
        reading.start()
        reading.join(_HURRIED_SECONDS)  # git may say nothing for longer
        if not found:
            raise HistoryNotReady
        return found[0]

    def _renames_of(self, commit: str, *, before: bool = False) -> tuple[Renamed, ...]:
        if self.repository is None:
            return ()
        return self._ask_git((), lambda of: of.renames(commit, before=before), self.repository)

    def _find_existing(self, pairs: tuple[Renamed, ...], name: str) -> str | None:
        for pair in pairs:
            path = self.repository.path(pair.new) if pair.old == name and self.repository else None
            if path is not None and self.current(path) is not None:
                return path
        return None

    def _ask_git(
        self, otherwise: _Result, ask: Callable[_Given, _Result], *given: _Given.args, **named: _Given.kwargs
    ) -> _Result:
        """Return what git answers; `otherwise` when it fails, which is remembered in words.

        Once it has fallen silent, it is not asked again: each question would take as long.
        """
        if self._is_silent:
            return otherwise
        try:
            return ask(*given, **named)
        except GitFailed as error:
            self._is_silent = error.code == "git-silent"
            self.trouble = self.trouble or error.message
            return otherwise


def _read_regular_file(file: str) -> bytes | Unread:
    try:
        descriptor = open_regular(file)
    except OSError as error:
        if error.errno not in {errno.EISDIR, errno.ENXIO}:
            raise
        return Unread(error.strerror or "", inside=True)
    with open(descriptor, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return Unread(f"it has more than {MOST_BYTES:,} bytes", inside=True)
    return Unread("it is binary", inside=True) if b"\0" in data else data


def is_versioned(folder: str) -> bool:
    """Return whether a folder can be in a work tree: where git finds nothing, it need not be asked."""
    return any(os.path.lexists(os.path.join(place, ".git")) for place in (folder, *above(folder)))
