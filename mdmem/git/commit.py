"""Commits of some files, made by git as for its user: what else is staged or changed stays as it is."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from mdmem.errors import GitFailed, GitRefused
from mdmem.git.consent import refuse
from mdmem.git.program import Ended, run_as_user
from mdmem.git.repository import Repository

PendingKind = Literal["added", "changed", "removed"]

IGNORED = "git ignores it"
_LOCK_SECONDS = 5.0
_POLL_SECONDS = 0.05
_LONGEST_MESSAGE = 100_000  # bytes; an argument of a program has at most 128 KiB
# Git reads the head before it locks the index, and refuses if another commit came in between.
_HEAD_MOVED = "cannot lock ref 'HEAD': is at "
_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


class Pending(NamedTuple):
    """A file that is not as the head has it.

    Attributes:
        name: its path from the top of the work tree.
        is_new: whether the index does not know it.
        blob: the object id of its content in the head; empty if it is not in the head.
        why_not: why it cannot be committed by itself; empty when it can.
    """

    name: str
    kind: PendingKind
    is_new: bool = False
    blob: str = ""
    why_not: str = ""


class WorkTree:
    """The files of a repository as they are now, and commits of them.

    `folder` is one in the work tree: git is run there, and finds its repository as its user would.
    """

    def __init__(self, repository: Repository, folder: str) -> None:
        self._repository = repository
        self._folder = folder
        self._environ: dict[str, str] = {}

    def refuse(self, *, hooks: bool) -> None:
        """Refuse a repository in which no commit can or should be made now: `consent.refuse`."""
        self._environ = refuse(self._repository, self._folder, hooks=hooks)

    def pending(self, names: Sequence[str], most_bytes: Callable[[str], int]) -> list[Pending]:
        """Return the files at or below `names` that are not as the head has them, sorted by their names.

        `most_bytes` says how many a file may have, by its name; one of more cannot be committed.
        """
        query = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignored"]
        query += ["--ignore-submodules=all", "--", *map(_exact_pathspec, names)]
        files: dict[str, Pending] = {}
        action = "compare the files"
        printed = os.fsdecode(self._run_git(query, action).require(self._folder, action))
        for word in reversed(printed.split("\0")):  # what the index knows of a file counts, and comes first
            mark, _, rest = word.partition(" ")
            if mark == "?" and not rest.endswith("/"):
                files[rest] = self._judge_pending(Pending(rest, "added", is_new=True), "..", most_bytes(rest))
            elif mark == "1":
                state, sub, *_, blob, _, name = rest.split(" ", 7)
                if sub.startswith("N"):
                    blob = blob if blob.strip("0") else ""
                    found = Pending(name, "changed", blob=blob)
                    files[name] = self._judge_pending(found, state, most_bytes(name))
            elif mark == "!":
                files[rest] = Pending(rest, "added", is_new=True, why_not=IGNORED)
            elif mark == "u":
                name = rest.split(" ", 9)[-1]
                files[name] = Pending(name, "changed", why_not="it has a merge conflict")
        return sorted(files.values())

    def _judge_pending(self, pending: Pending, state: str, most_bytes: int) -> Pending:
        """Return a file with its kind and why it cannot be committed; `state` is git's two letters."""
        try:
            status = os.lstat(os.path.join(self._repository.top, pending.name))
        except OSError:
            return pending._replace(kind="removed")
        why_not = ""
        if state[0] == "D":
            why_not = "its removal is staged, and the file is still there"
        elif "." not in state:
            why_not = "what is staged of it is not what the file holds: stage it again, or unstage it"
        elif not stat.S_ISREG(status.st_mode):
            why_not = "it is a link, or not a file"
        elif status.st_size > most_bytes:
            why_not = f"it has {status.st_size:,} bytes; the limit is {most_bytes:,}"
        return pending._replace(kind="changed" if pending.blob else "added", why_not=why_not)

    def commit(self, files: Sequence[Pending], message: str, seconds: float) -> str:
        """Commit files as they are now, and nothing else; the id of the commit.

        None of the files has a `why_not`. For `seconds`, git, hooks and signing may be silent.

        Raises:
            GitFailed: git does not do it, or what it starts refuses; with what was said.
            GitRefused: another git holds the lock of the index, or the message is too long.
        """
        if len(message.encode("utf-8", "surrogateescape")) > _LONGEST_MESSAGE:
            raise GitRefused(path=self._folder, reason="the message is too long", remedy="shorten it")
        new = [file.name for file in files if file.is_new]
        before = self._repository.head()
        try:
            if new:
                # Git only commits files that its index knows; this makes it know the new ones.
                self._change_index(["add", "--intent-to-add"], new, seconds)
            query = ["commit", "--quiet", "--only", "--cleanup=whitespace", "-m", message]
            parent = self._change_index(query, [file.name for file in files], seconds)
        except BaseException as error:
            if new:
                with suppress(GitFailed, GitRefused):
                    self._change_index(["reset", "--quiet"], new, seconds)
            if isinstance(error, GitFailed) and (now := self._repository.head()) != before:
                raise error.but(reason=f"{error.reason}; meanwhile the head became {now}") from None
            raise
        since = f"{parent}..HEAD" if parent else "HEAD"
        query, action = ["rev-list", "--first-parent", "--reverse", since, "--"], "read the commit"
        made = self._run_git(query, action).require(self._folder, action)
        if not made:
            raise self._refuse_commit("the head is the same as before")
        return made.decode("ascii", "replace").partition("\n")[0]

    def _refuse_commit(self, reason: str) -> GitFailed:
        remedy = "nothing was committed, and the index is as it was; try again when that is fixed"
        return GitFailed(
            code="commit-failed", path=self._repository.top, action="commit", reason=reason, remedy=remedy
        )

    def _change_index(self, arguments: Sequence[str], names: Sequence[str], seconds: float) -> str | None:
        """Run git on some files, again while another git is in its way; return the head before that."""
        given = b"\0".join(os.fsencode(_exact_pathspec(name)) for name in names)
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            head = self._repository.head()
            ended = self._run_git([*arguments, *_FROM_STDIN], "commit", given, seconds)
            if not ended.status:
                return head
            is_over, is_locked = time.monotonic() >= deadline, "index.lock" in ended.errors
            if is_locked and is_over:
                lock = os.path.join(self._repository.folder, "index.lock")
                reason = f"another git is running, or was killed: {lock} is there"
                remedy = "try again when it has ended; if none is running, remove that file"
                raise GitRefused(path=self._repository.top, reason=reason, remedy=remedy)
            if is_over or not (is_locked or _HEAD_MOVED in ended.errors):
                raise self._refuse_commit(ended.complaint)
            time.sleep(_POLL_SECONDS)

    def _run_git(self, query: Sequence[str], action: str, given: bytes = b"", seconds: float = 0) -> Ended:
        return run_as_user(query, self._folder, action, given=given, settings=self._environ, seconds=seconds)


def _exact_pathspec(name: str) -> str:
    """Return a pattern that fits one path from the top of the work tree, and what is below it."""
    return f":(top,literal){'' if name == '.' else name}"
