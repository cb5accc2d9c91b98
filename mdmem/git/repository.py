"""A repository: its files as they were, who wrote which line, and what was renamed.

Git is asked about commits and the index, and never compares a file of the work tree: for that it would run
the filters that the repository's settings name.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cached_property
from io import BufferedReader
from typing import NamedTuple, Self

from mdmem.document.text.regex import regex
from mdmem.errors import GitFailed
from mdmem.git.program import NO_WORK_TREE, Ended, GitProcess, command, environment, failing, program, run

OBJECT_ID = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


# -------------------------------------------------------------------------------------------- old content


_PROMISED = r"^(extensions\.partialclone|remote\..*\.promisor)$"
_LACKS = (
    "this partial clone lacks it, and nothing is fetched here; fetch it with git itself, as by a checkout"
)
_BLOB = re.compile(rb"[0-9a-f]+ blob (?P<size>[0-9]+)\n")
_OTHER_CONTENT = re.compile(rb"(?:[0-9a-f]+ [a-z]+|symlink|dangling|loop|notdir) (?P<size>[0-9]+)\n")


class TooLong(Exception):
    """A blob has more bytes than the reader takes."""


class Objects:
    """Reads files as they were; one process serves all reads. To be used from one thread at a time."""

    def __init__(self, folder: str, limit: int) -> None:
        """Read from the repository at `folder`; a blob of more than `limit` bytes is not read."""
        self.folder = folder
        self.limit = limit
        self._process: GitProcess | None = None
        self._printed: BufferedReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a later read starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def blob(self, commit: str, path: str) -> bytes | None:
        """Return the file `path`, from the root of the repository, as it was in `commit`; None if it was not.

        A symlink is followed as far as it stays inside the commit.
        """
        if not OBJECT_ID.fullmatch(commit) or "\n" in path or "\0" in path:
            return None  # no name of an object; and one question is one line
        name = f"{commit}:{path}".encode("utf-8", "surrogateescape")
        return self._ask_object(name, f"read {path} of {commit[:12]}")

    def content(self, id_: str) -> bytes | None:
        """Return the blob with this object id; None where the repository does not have it."""
        return self._ask_object(id_.encode("ascii"), f"read {id_[:12]}") if OBJECT_ID.fullmatch(id_) else None

    def _ask_object(self, name: bytes, action: str) -> bytes | None:
        with failing(self.folder, action):
            try:
                return self._read_answer(name)
            except OSError:
                self.close()
                raise
            except EOFError:
                self.close()
                asked = run(["config", "--get-regexp", _PROMISED], self.folder, "read the settings")
                raise OSError("its answer broke off" if asked.status else _LACKS) from None

    def _read_answer(self, name: bytes) -> bytes | None:
        from_git = self._send_request(name)
        header = from_git.readline()
        if not header.endswith(b"\n"):
            raise EOFError
        blob = _BLOB.fullmatch(header)
        other = blob or _OTHER_CONTENT.fullmatch(header)
        if other is None:
            return None  # "… missing"
        size = int(other["size"])
        if size > self.limit:
            self.close()  # what it prints is not read
            if blob:
                raise TooLong
            return None
        content = from_git.read(size)
        if len(content) != size or from_git.read(1) != b"\n":
            raise EOFError
        return content if blob else None

    def _send_request(self, name: bytes) -> BufferedReader:
        """Ask for an object, and return the stream that the answer comes from."""
        if self._process is None or self._printed is None:
            line = command(["cat-file", "--batch", "--follow-symlinks"])
            self._process = GitProcess(line, self.folder, environment(), stdin=subprocess.PIPE)
            self._printed = BufferedReader(self._process)
        self._process.ask(name + b"\n")
        return self._printed


# ------------------------------------------------------------------------------------------------ history


_NOT_A_REPOSITORY = regex(r"not a git repository|must be run in a work tree|not a working tree")
_NOT_COMMITTED = regex(r"no such path .* in HEAD|no such ref: HEAD|bad revision 'HEAD'|no such path ")
# Git reads the ignore file even to compare the index.
OF_THE_INDEX = ("-c", "core.excludesFile=/dev/null", "diff-index", "--cached")
_OF_GIT = (".gitignore", ".gitattributes")
_BLAMED = re.compile(rb"(?P<commit>[0-9a-f]{40,64}) [0-9]+ [0-9]+(?: [0-9]+)?")
_TWO_NAMES = regex(r"[RC][0-9]+")


class Renamed(NamedTuple):
    """A file that was `old` and is `new`; paths from the root of the repository."""

    old: str
    new: str


class Repository:
    """The git repository that holds a folder. Every method raises `GitFailed` where git cannot answer.

    Attributes:
        top: the absolute path of its work tree.
        prefix: the folder from there, ending with "/"; empty when it is the work tree itself.
        folder: the absolute path of git's own folder.
        common: the same of the one that all work trees of the repository share.
        shallow: whether its history is cut off, so that an old line seems to come from where it is cut.
    """

    def __init__(self, top: str, prefix: str, folder: str, common: str, *, shallow: bool) -> None:
        self.top = top
        self.prefix = prefix
        self.folder = folder
        self.common = common
        self.shallow = shallow

    @classmethod
    def find(cls, folder: str) -> Repository | None:
        """Return the repository with `folder` in its work tree; None without one, or without git.

        Raises:
            GitFailed: git refuses it, such as one that belongs to another user, or cannot read it.
        """
        if program() is None or not os.path.isdir(folder):
            return None
        query = ["rev-parse", "--show-toplevel", "--is-shallow-repository", "--absolute-git-dir"]
        query += ["--is-inside-work-tree", "--git-common-dir", "--is-inside-git-dir", "--show-prefix"]
        ended = run(query, folder, "look at the repository")
        if ended.status and _NOT_A_REPOSITORY.search(ended.errors):
            return None
        printed = os.fsdecode(ended.require(folder, "look at the repository").removesuffix(b"\n"))
        # The prefix is last: it alone may be empty, and the names of folders may hold line ends.
        top, shallow, own, _, shared, _, prefix = re.split(r"\n(true|false)\n", printed, maxsplit=3)
        common = os.path.normpath(os.path.join(folder, shared))
        return cls(top, prefix, own, common, shallow=shallow == "true")

    @classmethod
    def around(cls, folder: str) -> Repository:
        """See `find`; raise `GitFailed` if there is none."""
        repository = cls.find(folder)
        if repository is None:
            is_missing = program() is None
            reason = "git was not found on PATH" if is_missing else "it is not in a work tree of git"
            remedy = "run `git init` above it, or go to a clone that is not bare"
            action = "find a repository"
            raise GitFailed(code="no-repository", path=folder, action=action, reason=reason, remedy=remedy)
        return repository

    def name(self, path: str) -> str:
        """Return what git calls the file `path` of the folder: its path from the top of the work tree."""
        return self.prefix + path

    def path(self, name: str) -> str | None:
        """Return the path from the folder of the file that git calls `name`; None for one outside of it."""
        return name.removeprefix(self.prefix) if name.startswith(self.prefix) else None

    def head(self) -> str | None:
        """Return the id of the commit that is checked out; None before the first."""
        ended = self.ask(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], "read the head")
        commit = ended.printed.decode("ascii", "replace").strip()
        return commit if OBJECT_ID.fullmatch(commit) else None

    def branch(self) -> str:
        """Return the full name of the branch that is checked out; empty when the head is detached."""
        printed = self.ask(["symbolic-ref", "--quiet", "HEAD"], "read the head").printed
        return os.fsdecode(printed.removesuffix(b"\n"))

    def blame(self, name: str, *, words: bool = False) -> tuple[str | None, ...]:
        r"""Return the commit that last touched each line of the file `name`, as the head has it.

        None for a line that is older than a shallow clone knows. Git's lines end at `\n` only. Empty when the
        file is not committed at all. Who only indented a line, or ended the last one, has not touched it, nor
        with `words` who moved it.
        """
        # A list of commits to skip would name an older commit, where the line said something else. An empty
        # name takes back those that the settings name.
        query = ["blame", "--porcelain", "--no-textconv", "--ignore-revs-file="]
        query += ["-w", *(("-M",) if words else ()), "HEAD", "--", name]
        # The files in that setting must exist, though they are not used.
        tree = self.top if self._skips_commits else NO_WORK_TREE
        ended = self.ask(query, f"blame {name}", tree)
        if ended.status and _NOT_COMMITTED.search(ended.errors):
            return ()
        printed = ended.require(self.top, f"blame {name}")
        return tuple(_parse_blame(printed, shallow=self.shallow))

    def sole_commits(self, folder: str) -> dict[str, str | None]:
        """Find the one commit that all lines of each file of a folder come from, by name.

        None for a file that several commits touched: `blame` knows more about it. A file that is not there
        was never committed.
        """
        settings = ["log", "-c", "-M", "--format=%H", "--name-status", "-z", "--no-ext-diff"]
        printed = self.require([*settings, "HEAD", "--", folder], f"read the history of {folder}")
        commits: dict[str, str | None] = {}
        for commit, status, names in read_statuses(iter(os.fsdecode(printed).split("\0"))):
            for name in names:
                commits[name] = commit if status == "A" and name not in commits else None
        return commits

    def renames(self, commit: str, *, before: bool = False) -> tuple[Renamed, ...]:
        """Return the files that `commit` has under one name, and the index under another, as git pairs them.

        `before`: those that its first parent has.
        """
        query = [*OF_THE_INDEX, "-M", "--diff-filter=R", "--name-status", "-z"]
        base = _require_id(commit)
        query += [f"{base}^" if before else base, "--"]
        words = os.fsdecode(self.require(query, "look for renamed files")).split("\0")
        return tuple(Renamed(*names) for _, _, names in read_statuses(iter(words)))

    def find_missing(self, commit: str) -> list[str]:
        """List the files of a commit that the work tree lacks, whether the index has them or not."""
        query = [
            "diff-index",
            "--no-renames",
            "--diff-filter=D",
            "--name-only",
            "-z",
            _require_id(commit),
            "--",
        ]
        printed = self.require(query, "list the files", self.top)
        return sorted(map(os.fsdecode, filter(None, printed.split(b"\0"))))

    def tracked(self, name: str) -> int:
        """Return how many files at or below `name` are in the index."""
        query = ["ls-files", "--cached", "-z", "--full-name", "--", name]
        return self.require(query, f"look for {name} in the index").count(b"\0")

    def holds_more_than(self, names: Sequence[str]) -> bool:
        """Return whether the index has a file outside of `names`, other than git's settings."""
        printed = self.require(["ls-files", "--cached", "-z", "--full-name"], "list the files")
        under = tuple(f"{name}/" for name in names)
        return any(
            not (name in names or name.startswith(under) or os.path.basename(name) in _OF_GIT)
            for name in map(os.fsdecode, filter(None, printed.split(b"\0")))
            if "." not in names
        )

    def taken(self, names: Sequence[str]) -> tuple[str, ...]:
        """List the files at or below `names` that git would commit: tracked or not ignored."""
        query = ["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--full-name", "--", *names]
        printed = self.require(query, "look for what it ignores", self.top)
        return tuple(map(os.fsdecode, filter(None, printed.split(b"\0"))))

    def find_unignored(self, names: Sequence[str]) -> list[str]:
        """Return the `names` that no rule makes git ignore; the files need not exist."""
        action = "look for what it ignores"
        # Git takes no literal patterns here; a name behind `./` is no pattern either.
        query = ["--no-literal-pathspecs", "check-ignore", "--no-index", "--stdin", "-z"]
        given = {name: b"./" + os.fsencode(name) for name in names}
        ended = self.ask(query, action, self.top, b"\0".join(given.values()))
        if ended.status != 1:  # with which it says that it ignores none of them
            ended.require(self.top, action)
        ignored = ended.printed.split(b"\0")
        return [name for name in names if given[name] not in ignored]

    @property
    def is_sparse(self) -> bool:
        """Whether a setting leaves files out of the work tree."""
        query = ["config", "--type=bool", "--get", "core.sparseCheckout"]
        return self.ask(query, "read the settings").printed == b"true\n"

    @cached_property
    def _skips_commits(self) -> bool:
        """Whether a setting names commits for blame to skip; asked once, as a workspace blames many files."""
        return self.ask(["config", "--get", "blame.ignoreRevsFile"], "read the settings").status != 1

    def ask(self, arguments: list[str], action: str, tree: str = NO_WORK_TREE, given: bytes = b"") -> Ended:
        """Run git in the repository, with `tree` as its work tree; it reads `given` from standard input."""
        try:
            return run(arguments, tree, action, own=self.folder, given=given)
        except GitFailed as error:
            raise error.but(path=self.top) from None

    def require(self, arguments: list[str], action: str, tree: str = NO_WORK_TREE) -> bytes:
        """See `ask`, and return what git printed; raise `GitFailed` if it ended with an error."""
        return self.ask(arguments, action, tree).require(self.top, action)


def _require_id(commit: str) -> str:
    if not OBJECT_ID.fullmatch(commit):
        raise ValueError(f"{commit!r} is not the id of a commit")
    return commit


def _parse_blame(printed: bytes, *, shallow: bool) -> Iterator[str | None]:
    boundaries: set[bytes] = set()
    lines: list[bytes] = []
    for line in printed.split(b"\n"):
        if line.startswith(b"\t"):
            continue
        header = _BLAMED.fullmatch(line)
        if header:
            lines.append(header["commit"])
        elif line == b"boundary":
            boundaries.add(lines[-1])
    for commit in lines:
        unknown = not commit.strip(b"0") or (shallow and commit in boundaries)
        yield None if unknown else commit.decode("ascii")


def read_statuses(words: Iterator[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield commit, status and names of each file in what `--name-status -z` prints, cut at each NUL.

    The commit is empty where `--format=%H` does not print it.
    """
    commit = ""
    for word in map(str.strip, words):
        if OBJECT_ID.fullmatch(word):
            commit = word
        elif word:
            # A rename, such as R100, has two names; a merge has a letter for each parent.
            yield commit, word, [next(words, "") for _ in range(2 if _TWO_NAMES.fullmatch(word) else 1)]
