"""Commits of some files, made by git as for its user: what else is staged or changed stays as it is.

The user's own settings hold. What the repository itself would start is named and refused, unless the user
lets it: its settings and hooks may have come with it. So may links in git's folder, which git would follow.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from mdmem.errors import CommitFailed, GitFailed, GitRefused
from mdmem.git.program import Ended, run_as_user
from mdmem.git.repository import unreadable
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mdmem.git.repository import Repository

PendingKind = Literal["added", "changed", "removed"]

_SECONDS = 60.0  # to look at the files: filters of the user may convert each
_LOCK_SECONDS = 5.0
_POLL_SECONDS = 0.05
_LONGEST_REASON = 4_000  # characters of what a hook says
_LONGEST_MESSAGE = 100_000  # bytes; an argument of a program has at most 128 KiB
# Of a file that the index knows: what is staged, what is not, and its mode and content as the head has it.
_KNOWN = regex(
    r"1 (?P<staged>.)(?P<changed>.) (?P<sub>.)\S+ [0-7]+ [0-7]+ [0-7]+ (?P<blob>\S+) \S+ (?P<name>(?s:.+))"
)
_UNMERGED = regex(r"u (?:\S+ ){9}(?P<name>(?s:.+))")
_NOTHING_STAGED, _NOTHING_CHANGED = ".", "."
# What git is in the middle of, by what it leaves in its folder, and what ends that.
_UNDER_WAY = {
    "MERGE_HEAD": ("a merge", "git merge --abort"),
    "rebase-merge": ("a rebase", "git rebase --abort"),
    "rebase-apply": ("a rebase", "git rebase --abort"),
    "CHERRY_PICK_HEAD": ("a cherry-pick", "git cherry-pick --abort"),
    "REVERT_HEAD": ("a revert", "git revert --abort"),
    "sequencer": ("a cherry-pick or revert", "git cherry-pick --abort"),
    "BISECT_LOG": ("a bisection", "git bisect reset"),
}
_HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("reference-transaction", "post-index-change", "pre-auto-gc"),
)
_STARTED = regex(r"filter\..*\.(?:clean|process)|hook\..*\.command|gc\.recentobjectshook")
_STARTED_TO_SIGN = regex(r"gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand|commit\.gpgsign")
_OWN = frozenset(["local", "worktree"])
_FALSE = frozenset(["false", "no", "off", "0", ""])
_PROMISED = regex(r"extensions\.partialclone|remote\..*\.promisor")
_READ_WHOLE = ("core.attributesfile", "core.excludesfile")


class Pending(NamedTuple):
    """A file that is not as the head has it.

    Attributes:
        name: its path from the top of the work tree.
        kind: what becomes of it in a commit.
        is_new: whether the index does not know it.
        blob: the object id of what it holds in the head; empty where it is not there.
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
        self._settings: dict[str, str] = {}

    # -- what stands in the way ---------------------------------------------------------------------------

    def refuse(self, *, hooks: bool) -> None:
        """Refuse a repository in which no commit can or should be made now.

        Args:
            hooks: whether it may start its own programs: hooks, filters, signing.

        Raises:
            GitRefused: it is in the middle of something, its folder is not plainly its own, or it would start
                programs and may not.
            GitFailed: git cannot say.
        """
        top, own, common = self._repository.top, self._repository.folder, self._repository.common
        for name, (what, end) in _UNDER_WAY.items():
            if os.path.lexists(os.path.join(own, name)):
                remedy = f"finish it, or give it up with `{end}`"
                raise GitRefused(path=top, reason=f"{what} is under way", remedy=remedy)
        link = self._link_of_git(own) or next(self._links(own, common), "")
        if link:
            reason = f"{link}, so that a commit would be written elsewhere"
            raise GitRefused(path=top, reason=reason, remedy="if that is intended, commit with git itself")
        settings = list(self._listed())
        unread = next(_unread(settings, self._folder), "") or next(
            self._repository.endless([self._repository.prefix], every=True), ""
        )
        if unread:
            raise GitRefused(path=top, reason=unread, remedy="correct it, or remove it")
        if hooks:
            return
        started = [*_started(settings), *self._hooks(settings)]
        if started:
            named = ", ".join(dict.fromkeys(started))
            reason = f"a commit would start programs that the repository itself names: {named}"
            remedy = "run them this once with --hooks, or always with `mdmem git allow hooks`"
            raise GitRefused(path=top, reason=reason, remedy=remedy)
        if any(scope in _OWN and _PROMISED.fullmatch(key) for scope, key, _ in settings):
            # What is missing of a partial clone would be fetched, by programs that its settings name.
            self._settings = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}

    def _link_of_git(self, own: str) -> str:
        """Why git's folder may not belong to the work tree, in words."""
        top = self._repository.top
        link = os.path.join(top, ".git")
        if os.path.islink(link):
            return ".git is a link"
        if os.path.isdir(link) or not os.path.exists(link):
            return ""
        # A file that names the folder: of a linked work tree, or of a submodule. The folder has to name it.
        back = os.path.join(own, "gitdir")
        with suppress(OSError, UnicodeDecodeError):
            if stat.S_ISREG(os.lstat(back).st_mode):
                with open(back, encoding="utf-8", errors="surrogateescape") as file:
                    named = file.read(_LONGEST_REASON).removesuffix("\n")
                if os.path.realpath(os.path.join(own, named)) == os.path.realpath(link):
                    return ""
        tree = next((value for _, key, value in self._listed() if key == "core.worktree"), "")
        if tree and os.path.realpath(os.path.join(own, tree)) == os.path.realpath(top):
            return ""
        return f".git names {own}, which does not name this work tree"

    def _links(self, own: str, common: str) -> Iterator[str]:
        """The links, and what else is no file or folder, where a commit writes; in words."""
        branch = self.branch() or "HEAD"
        parts = branch.split("/")
        refs = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        written = [
            os.path.join(own, name) for name in ("HEAD", "index", "COMMIT_EDITMSG", "logs", "logs/HEAD")
        ]
        written += [os.path.join(common, name) for name in ("objects", "refs", "reftable", "logs")]
        written += [os.path.join(common, part, name) for part in ("", "logs") for name in refs]
        with suppress(OSError), os.scandir(os.path.join(common, "objects")) as entries:
            written += [entry.path for entry in entries if not entry.is_dir(follow_symlinks=False)]
        for path in written:
            with suppress(OSError):
                mode = os.lstat(path).st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    kind = "a link" if stat.S_ISLNK(mode) else "not a file"
                    yield f"{os.path.relpath(path, self._repository.top)} is {kind}"

    def _listed(self) -> Iterator[tuple[str, str, str]]:
        """The settings: scope, name in small letters but for what stands between dots, value."""
        printed = self._done(["config", "--list", "-z", "--show-scope"], "read the settings").printed
        words = os.fsdecode(printed).split("\0")
        for scope, pair in zip(words[::2], words[1::2], strict=False):
            key, newline, value = pair.partition("\n")
            yield scope, key, value if newline else "true"

    def _hooks(self, settings: Sequence[tuple[str, str, str]]) -> Iterator[str]:
        """The hooks of the repository itself that a commit would start."""
        scopes = [scope for scope, key, _ in settings if key == "core.hookspath"]
        if scopes and scopes[-1] not in _OWN:
            return  # those of the user are run in their place
        folder = self._path(["--git-path", "hooks"])
        for name in _HOOKS:
            path = os.path.join(folder, name)
            if os.path.exists(path) and os.access(path, os.X_OK):
                yield f"hook {name}"

    # -- what differs from the head -----------------------------------------------------------------------

    def branch(self) -> str | None:
        """The full name of the branch that is checked out; None when the head is detached."""
        ended = self._run(["symbolic-ref", "--quiet", "HEAD"], "read the head")
        return None if ended.status else os.fsdecode(ended.printed.removesuffix(b"\n"))

    def pending(self, names: Sequence[str], most_bytes: int) -> list[Pending]:
        """The files at or below `names` that are not as the head has them, sorted by their names.

        Args:
            names: paths from the top of the work tree.
            most_bytes: a file of more cannot be committed.

        Raises:
            GitFailed: git cannot say.
        """
        asked = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignored=no"]
        told = self._done(
            [*asked, "--ignore-submodules=all", "--", *map(_exactly, names)], "compare the files"
        )
        words = [os.fsdecode(word) for word in told.printed.split(b"\0") if word]
        new = {word[2:] for word in words if word.startswith("? ")}
        found = {name: Pending(name, "added", is_new=True) for name in new if not name.endswith("/")}
        for word in words:
            known, unmerged = _KNOWN.fullmatch(word), _UNMERGED.fullmatch(word)
            if unmerged:
                found[unmerged["name"]] = Pending(
                    unmerged["name"], "changed", why_not="it has a merge conflict"
                )
            elif known and known["sub"] == "N":
                each = self._known(known["name"], known["staged"], known["changed"], known["blob"])
                found[each.name] = each
        return sorted(self._judged(each, most_bytes) for each in found.values())

    def _known(self, name: str, staged: str, changed: str, blob: str) -> Pending:
        """A file that the index or the head knows."""
        stands = os.path.lexists(os.path.join(self._repository.top, name))
        blob = blob if blob.strip("0") else ""
        kind: PendingKind = "changed" if blob and stands else "added" if stands else "removed"
        why_not = ""
        if staged == "D" and stands:
            why_not = "its removal is staged, and the file is still there"
        elif staged != _NOTHING_STAGED and changed != _NOTHING_CHANGED:
            why_not = "what is staged of it is not what the file holds: stage it again, or unstage it"
        return Pending(name, kind, blob=blob, why_not=why_not)

    def _judged(self, pending: Pending, most_bytes: int) -> Pending:
        """A file, with why it cannot be committed when it is none, or too large."""
        if pending.why_not or pending.kind == "removed":
            return pending
        with suppress(OSError):
            status = os.lstat(os.path.join(self._repository.top, pending.name))
            if stat.S_ISREG(status.st_mode):
                reason = f"it has {status.st_size:,} bytes; the limit is {most_bytes:,}"
                return pending._replace(why_not=reason) if status.st_size > most_bytes else pending
        return pending._replace(why_not="it is a link, or not a file")

    def holds_more_than(self, names: Sequence[str]) -> bool:
        """Whether git has a file that is not at or below one of `names`, its own settings left out.

        Raises:
            GitFailed: git cannot say.
        """
        if "" in names:
            return False
        but = [f":(top,literal,exclude){name}" for name in names]
        told = self._done(["ls-files", "-z", "--full-name", "--", ":(top)", *but], "list the files").printed
        files = filter(None, told.split(b"\0"))
        return any(os.path.basename(name) not in {b".gitignore", b".gitattributes"} for name in files)

    # -- a commit -----------------------------------------------------------------------------------------

    def commit(self, files: Sequence[Pending], message: str, seconds: float) -> str:
        """Commit files as they are now, and nothing else; the id of the commit.

        Args:
            files: none of them has a `why_not`.
            message: the whole message.
            seconds: how long hooks and signing may take.

        Raises:
            CommitFailed: git does not do it, or what it starts refuses; with what was said.
            GitRefused: another git holds the lock of the index, or the message is too long.
        """
        if len(message.encode("utf-8", "surrogateescape")) > _LONGEST_MESSAGE:
            remedy = "give a shorter one"
            raise GitRefused(path=self._folder, reason="the message is too long", remedy=remedy)
        names = [file.name for file in files]
        new = [file.name for file in files if file.is_new]
        before = self._repository.head()
        try:
            if new:
                # Git commits the files that its index knows: of these it knows now that they will be added.
                self._locking(["add", "--intent-to-add"], new, _SECONDS)
            self._locking(
                ["commit", "--quiet", "--only", "--cleanup=whitespace", "-m", message], names, seconds
            )
        except BaseException as error:
            left = self._forget(new)
            moved = self._repository.head() if isinstance(error, GitFailed) else before
            if isinstance(error, GitFailed) and (left or moved != before):
                more = f"; meanwhile the head became {moved}" if moved != before else ""
                more += (
                    f"; the index still says that these are to be added: {', '.join(left)}" if left else ""
                )
                raise error.but(reason=error.values["reason"] + more) from None
            raise
        return self._made(before)

    def _made(self, before: str | None) -> str:
        """The commit that came after the head that was."""
        since = f"{before}..HEAD" if before else "HEAD"
        told = self._done(["rev-list", "--first-parent", "--reverse", since, "--"], "read the commit")
        made: str = told.printed.decode("ascii", "replace").partition("\n")[0]
        return made

    def _locking(self, arguments: Sequence[str], names: Sequence[str], seconds: float) -> None:
        """Run what locks the index, on some files; while another git holds the lock, wait a little."""
        lock = os.path.join(self._repository.folder, "index.lock")
        given = b"\0".join(os.fsencode(_exactly(name)) for name in names)
        asked = [*arguments, "--pathspec-from-file=-", "--pathspec-file-nul"]
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            while os.path.lexists(lock) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            if os.path.lexists(lock):
                reason = f"another git is running, or was killed: {lock} is there"
                remedy = "try again when it has ended; if none is running, remove that file"
                raise GitRefused(path=self._repository.top, reason=reason, remedy=remedy)
            ended = self._run(asked, "commit", given, seconds)
            if not ended.status:
                return
            if "index.lock" not in ended.errors or time.monotonic() >= deadline:
                raise CommitFailed(path=self._repository.top, reason=_told(ended))

    def _forget(self, new: Sequence[str]) -> list[str]:
        """Take back that files will be added, where that is still all that the index knows; those left."""
        if not new:
            return []
        with suppress(GitFailed, GitRefused):
            asked = ["diff", "--cached", "--name-only", "--no-renames", "--diff-filter=A", "-z"]
            staged = {*os.fsdecode(self._done(asked, "read the index").printed).split("\0")}
            known = {
                *os.fsdecode(
                    self._done(["ls-files", "-z", "--full-name", "--", ":(top)"], "read the index").printed
                ).split("\0")
            }
            only_meant = [name for name in new if name in known - staged]
            if only_meant:
                self._unlisted(only_meant)
            return []
        return list(new)

    def _unlisted(self, names: Sequence[str]) -> None:
        given = b"".join(os.fsencode(name) + b"\0" for name in names)
        asked = ["update-index", "-z", "--force-remove", "--stdin"]
        ended = self._run(asked, "restore the index", given, folder=self._repository.top)
        if ended.status:
            raise GitFailed(path=self._folder, action="restore the index", reason=ended.reason)

    # -- git ----------------------------------------------------------------------------------------------

    def _path(self, asked: Sequence[str]) -> str:
        """A path that git names, made absolute."""
        told = self._done(["rev-parse", *asked], "look at the repository").printed
        return os.path.join(self._folder, os.fsdecode(told.removesuffix(b"\n")))

    def _run(
        self,
        arguments: Sequence[str],
        action: str,
        given: bytes = b"",
        seconds: float = _SECONDS,
        folder: str = "",
    ) -> Ended:
        settings: Mapping[str, str] = self._settings
        return run_as_user(
            arguments, folder or self._folder, action, given=given, settings=settings, seconds=seconds
        )

    def _done(self, arguments: Sequence[str], action: str) -> Ended:
        ended = self._run(arguments, action)
        if ended.status:
            raise GitFailed(path=self._folder, action=action, reason=ended.reason)
        return ended


def _exactly(name: str) -> str:
    """A pattern that fits one path from the top of the work tree, and what is below it."""
    return f":(top,literal){name}"


def _started(settings: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The settings of a repository itself that start a program at a commit."""
    signing = [value for _, key, value in settings if key == "commit.gpgsign"]
    signs = bool(signing) and signing[-1].casefold() not in _FALSE
    for scope, key, value in settings:
        if (
            scope in _OWN
            and value
            and (_STARTED.fullmatch(key) or (signs and _STARTED_TO_SIGN.fullmatch(key)))
        ):
            yield key


def _unread(settings: Sequence[tuple[str, str, str]], folder: str) -> Iterator[str]:
    """The files that a repository itself has git read whole, and that never end; in words."""
    for scope, key, value in settings:
        reason = unreadable(os.path.join(folder, os.path.expanduser(value)))
        if scope in _OWN and key in _READ_WHOLE and reason:
            yield f"its setting {key} names {value}, which {reason}"


def _told(ended: Ended) -> str:
    """What git and what it started complained about."""
    said = "\n".join(line.rstrip() for line in ended.errors.splitlines() if line.strip())
    if len(said) > _LONGEST_REASON:
        said = said[:_LONGEST_REASON] + " …"
    return said or f"it ended with {ended.status} without a word"
