"""Commits of memories: which of them go into one, what its message says, and when it is made by itself.

A commit takes the memories of the namespace and the files that are mounted in it, and nothing else. Its
trailers name the changes of the vault's own history that led from what git has to what the files hold now:

    Mdmem-Op: append to notes/db.md        what was done
    Mdmem-Id: 20260801T120000123456-1f2e   the change, as `mdmem history` and `mdmem undo` name it
    Mdmem-Agent: claude                    who did it, where that is known

An operation begins with its `Mdmem-Op`. A memory that was edited directly is named by an `Mdmem-Op` without
an id beside those of others; where all was edited directly, there is none, and git's author stands for it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import GitRefused, MdmemError, MemoryNotFound, NotAllowed, Usage
from mdmem.git.commit import Pending, PendingKind, WorkTree
from mdmem.git.history import AGENT, ID, OP, SESSION
from mdmem.git.repository import Objects, Repository, TooLong
from mdmem.memory.tracked import Tracked
from mdmem.text.document import SUFFIXES, digest
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.mark import allow, is_allowed
from mdmem.vault.paths import check_folder, is_under, relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mdmem.vault.store import Entry, FileChange
    from mdmem.vault.vault import Vault

_SECONDS = 300.0  # for hooks and signing, where somebody waits and may interrupt
_SECONDS_ALONE = 60.0
_MOST_ENTRIES = 10_000  # of the history that are looked at
_MOST_OPERATIONS = 200  # that a message names
_MOST_COMMITS = 1_000  # that are looked at for the changes that they name
_LONGEST_LINE = 72
_LONGEST_VALUE = 300  # of a trailer
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRAILER = re.compile(r"[A-Za-z0-9-]+: \S.*|[ \t]+\S.*")
_DONE = {"added": "Add", "changed": "Change", "removed": "Remove"}
_UNKNOWN = "unknown"
_DETACHED = "the head is detached: keep the commit with `git branch NAME {commit}`"
_NOT_HELD = "in another repository, or in none"
_HOLDS_MORE = "is for a repository of memories, and this one has other files as well"


class CommittedFile(NamedTuple):
    """A memory in a commit, and what became of it."""

    path: str
    kind: PendingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A commit of memories, or what would go into one.

    Attributes:
        commit: its id; None where none was made, for a dry run or since nothing has changed.
        branch: the branch that it is on; empty when the head is detached.
        message: its whole message; empty when nothing has changed.
        files: what is in it.
        left_out: memories that have changed and are not in it, each with the reason.
        ignored: how many memories git ignores.
        notes: what should be known about it.
    """

    commit: str | None
    branch: str
    message: str
    files: tuple[CommittedFile, ...]
    left_out: tuple[str, ...] = ()
    ignored: int = 0
    notes: tuple[str, ...] = ()

    def json_shape(self) -> dict[str, Any]:
        """The commit as a JSON object."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"applied": self.commit is not None, **fields}


class Commits:
    """Makes commits of the memories of one namespace."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def commit(
        self,
        message: str = "",
        *,
        only: Sequence[str] = (),
        session: str = "",
        hooks: bool = False,
        dry_run: bool = False,
    ) -> Committed:
        """Commit the memories that have changed, are new, or are gone; see `Git.commit`."""
        chosen = tuple(map(check_folder, only))
        made = self._commit(chosen, message, session, hooks=hooks, dry_run=dry_run, seconds=_SECONDS)
        for path, name in zip(only, chosen, strict=True):
            stands = self._vault.store.stands(self._vault.folder(name))
            if not stands and not any(is_under(file.path, name) for file in made.files):
                raise MemoryNotFound(path=path)
        return made

    def _commit(
        self,
        chosen: Sequence[str],
        message: str = "",
        session: str = "",
        *,
        hooks: bool = False,
        dry_run: bool = False,
        seconds: float,
    ) -> Committed:
        repository = Repository.around(self._vault.root)
        tree = WorkTree(repository, self._vault.root)
        tree.refuse(hooks=hooks or is_allowed("hooks", repository.top))
        members = _Members(self._vault, Tracked(self._vault, repository), chosen)
        lock = os.path.join(self._vault.disk.local("git"), "commit.lock") if not dry_run else ""
        with files.held(lock, seconds) if lock else nullcontext():
            found = list(members.of(tree.pending(members.where, self._vault.config.limits.max_bytes)))
            taken = {path: each for path, each in found if not each.why_not}
            left_out = tuple(f"{path}: {each.why_not}" for path, each in found if each.why_not)
            ignored = members.ignored()
            told = self._message(message, repository, taken, session) if taken else ""
            branch, made = tree.branch() or "", None
            if taken and not dry_run:
                made = tree.commit(list(taken.values()), told, seconds)
        return Committed(
            commit=made,
            branch=branch.removeprefix("refs/heads/"),
            message=told,
            files=tuple(CommittedFile(path, each.kind) for path, each in taken.items()),
            left_out=(*left_out, *members.elsewhere),
            ignored=ignored,
            notes=() if branch or not made else (_DETACHED.format(commit=made[:12]),),
        )

    # -- by itself ----------------------------------------------------------------------------------------

    def allow(self, what: str, *, off: bool = False) -> None:
        """Let the vault do something for the user of this machine; see `Git.allow`."""
        if what == "commit":
            allow("commit", self._vault.root, allowed=not off)
        elif what == "hooks":
            allow("hooks", Repository.around(self._vault.root).top, allowed=not off)
        else:
            raise Usage(problem=f"`commit` or `hooks` can be allowed, not {what!r}")

    def refused(self) -> MdmemError | None:
        """Why nothing is committed by itself, where the config asks for that; None otherwise."""
        wanted = self._vault.config.git.commit
        if wanted == "off":
            return None
        asked = f'[git] commit = "{wanted}"'
        try:
            if not is_allowed("commit", self._vault.root):
                remedy = "if you want that, run `mdmem git allow commit`"
                return NotAllowed(path=CONFIG_PATH, what=f"{asked}: changes go to git", remedy=remedy)
            repository = Repository.around(self._vault.root)
            whole = self._vault.within("")
            members = _Members(whole, Tracked(whole, repository))
            if WorkTree(repository, self._vault.root).holds_more_than(members.where):
                remedy = "commit with `mdmem git commit`"
                return GitRefused(path=CONFIG_PATH, reason=f"{asked} {_HOLDS_MORE}", remedy=remedy)
        except MdmemError as error:
            return error
        return None

    def by_itself(self, only: Sequence[str] = ()) -> str:
        """Commit what has changed, or `only` these memories, where the config wants it and it may be.

        No error is raised: what is to be committed was done, and stands.

        Returns:
            A word about what was not committed, and why.
        """
        error = self.refused()
        if error is None:
            try:
                made = self._commit(only, seconds=_SECONDS_ALONE)
            except MdmemError as failed:
                error = failed
            else:
                left = [f"not committed: {each}" for each in made.left_out if only]
                return "; ".join([*left, *made.notes])
        return f"nothing was committed: {error.message}" + (f" ({error.hint})" if error.hint else "")

    # -- what a commit says -------------------------------------------------------------------------------

    def _message(self, text: str, repository: Repository, taken: dict[str, Pending], session: str) -> str:
        entries, direct = self._explaining(repository, taken)
        unique = list(dict.fromkeys(_line(entry.message) for entry in entries if entry.message.strip()))
        text = text.strip() or _default([(path, each.kind) for path, each in taken.items()], unique)
        trailers = [line for entry in entries[-_MOST_OPERATIONS:] for line in _trailers(entry)]
        if trailers:
            # Else it would seem that the operations made these changes, too.
            trailers += [f"{OP}: edit {_line(path)} directly" for path in direct[:_MOST_OPERATIONS]]
        trailers += [f"{SESSION}: {_line(session)}"] if session.strip() else []
        if not trailers:
            return text
        *above, last = text.split("\n\n")
        ends = bool(above) and all(_TRAILER.fullmatch(line) for line in last.splitlines())
        return text + ("\n" if ends else "\n\n") + "\n".join(trailers)

    def _explaining(self, repository: Repository, taken: dict[str, Pending]) -> tuple[list[Entry], list[str]]:
        """What led from what the head has to what the files hold.

        Returns:
            The changes, the oldest first; and the memories that were edited directly as well.
        """
        wanted = {path: _Since(now=self._now(path, each)) for path, each in taken.items()}
        self._read_head(repository, taken, wanted)
        found: dict[str, Entry] = {}
        for count, entry in enumerate(self._vault.history()):
            if count == _MOST_ENTRIES or all(path.is_done for path in wanted.values()):
                break
            for file in entry.files:
                if file.path in wanted and not wanted[file.path].is_done:
                    wanted[file.path].take(entry, file)
        known = _named(repository) if any(not path.is_done for path in wanted.values()) else set()
        direct = []
        for name, path in wanted.items():
            led = {e.id: e for e in path.entries if path.is_done or e.id not in known}
            found |= led
            if path.is_torn if path.is_done else not led:
                direct.append(name)
        return sorted(found.values(), key=lambda entry: entry.id), direct

    def _now(self, path: str, pending: Pending) -> str | None:
        """The hash of what a memory holds; None where it is gone."""
        if pending.kind == "removed":
            return None
        with suppress(MdmemError):
            document = self._vault.find(path)
            return document.hash if document else None
        return _UNKNOWN

    def _read_head(
        self, repository: Repository, taken: dict[str, Pending], wanted: dict[str, _Since]
    ) -> None:
        """Put what the head has into the paths."""
        head = repository.head()
        with Objects(repository.top, self._vault.config.limits.max_bytes) as objects:
            for path, each in taken.items():
                if not each.blob:
                    wanted[path].head = None
                elif head:
                    with suppress(TooLong):
                        data = objects.blob(head, each.name)
                        wanted[path].head = digest(data) if data is not None else _UNKNOWN


@dataclass(slots=True)
class _Since:
    """The changes of one memory since the head, while the history is read from its end.

    `now` and `head` are hashes; None where there is no file.
    """

    now: str | None
    head: str | None = _UNKNOWN
    is_done: bool = False
    is_torn: bool = False
    _every: list[Entry] = field(default_factory=list)
    _joined: list[Entry] = field(default_factory=list)

    def take(self, entry: Entry, file: FileChange) -> None:
        """Take the change before those that were taken."""
        if file.after == self.head:
            self.is_done = True
            return
        self._every.append(entry)
        # Where a file was edited directly, one change does not begin with what another left.
        self.is_torn = self.is_torn or file.after != self.now
        if not self.is_torn:
            self._joined.append(entry)
            self.now = file.before
        self.is_done = file.before == self.head

    @property
    def entries(self) -> list[Entry]:
        """Those since the head; where the history does not know what the head has, the surest of them."""
        return self._every if self.is_done else self._joined


class _Members:
    """The memories of a namespace that a commit is to take: all, or those at or below `only`."""

    def __init__(self, vault: Vault, tracked: Tracked, only: Sequence[str] = ()) -> None:
        self._vault = vault
        self._tracked = tracked
        self._only = only
        self._mounted = {path: name for path, name in tracked.mounted.items() if self._is_chosen(path)}

    @property
    def where(self) -> list[str]:
        """The folder of the vault, and the chosen files that are mounted in it."""
        return [self._tracked.repository.prefix.rstrip("/"), *self._mounted.values()]

    @property
    def elsewhere(self) -> list[str]:
        """The chosen mounts, and folders of memories, that the repository does not hold, in words."""
        mounts = (relative(path, self._vault.namespace) for path in self._vault.mounted(""))
        lost = [path for path in mounts if self._is_chosen(path) and path not in self._mounted]
        inner = {os.path.dirname(path) for path, name in self._named if not self._tracked.holds(name)}
        for folder in sorted(inner):
            lost += [] if any(is_under(folder, path) for path in lost) else [folder]
        return [f"{path}: {_NOT_HELD}" for path in lost]

    def of(self, found: Iterable[Pending]) -> Iterator[tuple[str, Pending]]:
        """The chosen memories among some files, by their paths."""
        for each in found:
            path = self._tracked.path(each.name)
            if path is not None and self._is_chosen(path):
                yield path, each

    def ignored(self) -> int:
        """How many of the chosen memories are there, and git ignores them.

        Raises:
            GitFailed: git cannot say.
        """
        repository = self._tracked.repository
        taken = repository.taken([name or "." for name in self.where])
        standing = {
            unicodedata.normalize("NFC", name) for _, name in self._named if self._tracked.holds(name)
        }
        return len(standing - {unicodedata.normalize("NFC", name) for name in taken})

    @cached_property
    def _named(self) -> list[tuple[str, str]]:
        """The chosen memories that are there, each with what git calls it."""
        name = self._tracked.repository.name
        return [(path, self._mounted.get(path) or name(self._vault.folder(path))) for path in self._paths()]

    def _paths(self) -> Iterator[str]:
        """The chosen memories that are there."""
        for name in self._only or ("",):
            if name.endswith(SUFFIXES):
                yield from [name] if self._vault.exists(name) else []
            else:
                yield from (found.path for found in self._vault.walk(name) if not found.problem)

    def _is_chosen(self, path: str) -> bool:
        return not self._only or any(is_under(path, name) for name in self._only)


def _named(repository: Repository) -> set[str]:
    """The ids of changes that the last commits name."""
    asked = ["log", f"-{_MOST_COMMITS}", f"--format=%(trailers:key={ID},valueonly)", "HEAD", "--"]
    return {*repository.ask(asked, "read the history").printed.decode("utf-8", "replace").split()}


def _trailers(entry: Entry) -> Iterator[str]:
    yield f"{OP}: {_line(entry.message) or 'change'}"
    yield f"{ID}: {_line(entry.id)}"
    if entry.actor.strip():
        yield f"{AGENT}: {_line(entry.actor)}"


def _line(text: str) -> str:
    """A text in one line that is not too long."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= _LONGEST_VALUE else line[: _LONGEST_VALUE - 1] + "…"


def _default(changed: Sequence[tuple[str, PendingKind]], operations: Sequence[str]) -> str:
    """The message where none is given, made of what was done."""
    if len(operations) == 1:
        subject = operations[0][:1].upper() + operations[0][1:]
    else:
        kinds = {kind for _, kind in changed}
        done = _DONE[kinds.pop()] if len(kinds) == 1 else "Change"
        paths = [path for path, _ in changed]
        subject = f"{done} {' and '.join(paths) if len(paths) <= 2 else f'{len(paths):,} memories'}"  # noqa: PLR2004
    if len(subject) > _LONGEST_LINE:
        subject = subject[: _LONGEST_LINE - 1] + "…"
    if len(operations) <= 1:
        return subject
    told = [f"- {each}" for each in operations[:_MOST_OPERATIONS]]
    more = len(operations) - len(told)
    return "\n".join((subject, "", *told, *([f"- and {more:,} more"] if more else [])))
