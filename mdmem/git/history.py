"""The history of a repository: its commits with their trailers, and what each did to which files.

A revision that somebody gives is resolved before anything else is asked about it. What a commit says may be
of any length: what is read of it is bounded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Literal, NamedTuple

from mdmem.document.text.regex import regex
from mdmem.errors import NamedNotFound
from mdmem.git.program import NO_WORK_TREE, GitProcess, command, environment, failing
from mdmem.git.repository import OBJECT_ID, OF_THE_INDEX, Repository, read_statuses
from mdmem.vault.paths import above

FileStatus = Literal["added", "changed", "removed", "renamed"]

TRAILERS = OP, ID, ALSO, AGENT, SESSION = (
    "Mdmem-Op",
    "Mdmem-Id",
    "Mdmem-Also",
    "Mdmem-Agent",
    "Mdmem-Session",
)
"""What a commit says about the operations in it, in lines at the end of its message."""

_SECOND = 10**9  # nanoseconds
_CHUNK = 1 << 16
_LONGEST = 1 << 16  # bytes of a name or a text of a commit; the rest is not read
_LONGEST_VALUE = 1_000  # characters of a trailer
_COMMITS_AT_ONCE = 500  # ids that stand in one command line
_MOST_COMMITS = 1_000  # that are looked at for the changes that they name
_BETWEEN = "\x1f"
_KEYS = ",".join(f"key={name}" for name in TRAILERS)
# Git itself cuts a longer subject.
_FORMAT = "%x00".join(
    (
        *("%H", "%P", "%ct", "%an", "%ae", "%aI", "%<(400,trunc)%s"),
        f"%(trailers:{_KEYS},only,unfold,separator=%x1f)",
    )
)
_FIELDS = 8
_TRAILER = regex(r"([A-Za-z-]+)[ \t]*:[ \t]*(.*)")
_IS_TRAILER = re.compile(r"[A-Za-z0-9-]+: \S.*|[ \t]+\S.*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CALLED = {name.lower(): name for name in TRAILERS}  # to git upper and lower case are the same in them
# No setting of a repository may change which commits are listed, or how.
_LOG = (
    *("-c", "log.showRoot=true", "-c", "diff.orderFile=/dev/null", "log", "-z", "--no-color", "--no-notes"),
    *("--no-ext-diff", "--no-textconv", "--encoding=UTF-8", f"--format={_FORMAT}"),
)
# Renames of the same content alone: to compare others takes five times as long, and content that a partial
# clone lacks.
_REMOVALS = (
    *("-c", "log.showRoot=true", "-c", "diff.orderFile=/dev/null", "log", "-z", "--no-color", "--format=%H"),
    *("--no-ext-diff", "--no-textconv", "-c", "--name-status", "-M100%", "--diff-filter=DR"),
)
_RAW = ("--raw", "--no-abbrev", "-M", "-l1000")
_REFUSED = regex(r"[\x00-\x20\x7f]|\A-|\A\Z|\.\.|:|\^\{/")
# The modes of a file in each parent and in the commit, its object ids there, and a letter for each parent.
_ENTRY = regex(r"(?P<marks>:+)(?P<values>(?:[0-7]{6} |[0-9a-f]{40,64} )+)(?P<letters>[A-Z]+)[0-9]*")
_TREE = regex(r"(?P<mode>[0-7]{6}) blob (?P<blob>[0-9a-f]{40,64})\t(?P<name>(?s:.+))")
# For people, so another git may print it differently: then the files are read.
_INDEXED = re.compile(
    rb"(?P<tag>\S) (?P<mode>[0-7]{6}) (?P<blob>[0-9a-f]{40,64}) (?P<stage>[0-3])\t(?P<name>[^\0]+)\0"
    rb"(?:  ctime: (?P<changed>[0-9]+:[0-9]+)\n  mtime: (?P<written>[0-9]+:[0-9]+)\n"
    rb"  dev: [0-9]+\tino: (?P<inode>[0-9]+)\n  uid: .*\n  size: (?P<size>[0-9]+)\tflags: [0-9a-f]+\n)?"
)
_FILES = {"100644", "100755"}
_NOT_CHECKED_OUT = b"Ss"


def with_trailers(text: str, trailers: Sequence[tuple[str, str]]) -> str:
    """Return a message that ends in trailers of one line each, after those that it ends in already."""
    added = "\n".join(f"{name}: {one_line(value)}" for name, value in trailers)
    *above, last = text.split("\n\n")
    ends = bool(above) and all(map(_IS_TRAILER.fullmatch, last.splitlines()))
    return f"{text}\n{'' if ends else chr(10)}{added}" if added else text


def one_line(text: str, longest: int = 300) -> str:
    """Return a text in one line of at most this many characters."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


class Commit(NamedTuple):
    """A commit.

    Attributes:
        committed: when it was made, in seconds since the epoch.
        author, email: who wrote it, as it says itself.
        date: when it was written, in ISO 8601 with the offset from UTC.
        subject: the first paragraph of its message, in one line; a long one is cut.
        trailers: those of `TRAILERS` that it has, in its order.
    """

    id: str
    parents: tuple[str, ...]
    committed: int
    author: str
    email: str
    date: str
    subject: str
    trailers: tuple[tuple[str, str], ...]

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of the trailers of this name."""
        return tuple(value for name, value in self.trailers if name == key and value)


class TouchedFile(NamedTuple):
    """What became of a file.

    Attributes:
        name: its path from the top of the work tree; `old` is the one before, where it was renamed.
        before, after: the object ids of its content; empty where it is not there, or is a link or the like.
    """

    status: FileStatus
    name: str
    old: str = ""
    before: str = ""
    after: str = ""


class IndexEntry(NamedTuple):
    """What the index says of a file.

    Attributes:
        stamp: of the file when it had that content: the times of change of content and of entry, in
            nanoseconds, its size, and its number in 32 bits; None where the index does not tell.
        is_out: whether it is meant to be in the work tree: a sparse one leaves some out.
    """

    blob: str
    stamp: tuple[int, int, int, int] | None
    is_out: bool


class LoggedCommit(NamedTuple):
    """A commit, and those of the files asked about that it touched."""

    commit: Commit
    files: tuple[TouchedFile, ...]


class Removal(NamedTuple):
    """The id of the commit that took a file away, and the name that it gave it; empty where it deleted it."""

    commit: str
    new: str = ""


class History:
    """The commits of a repository, and the files in them; names are paths from the top of its work tree.

    Every method raises `GitFailed` where git cannot answer.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def resolve(self, revision: str) -> str:
        """Return the id of the commit that a revision names, such as `HEAD~2`, a branch, a tag or a short id.

        Raises:
            NamedNotFound: it names no commit; one that would search messages is not looked up.
        """
        if not _REFUSED.search(revision):
            query = ["rev-parse", "--revs-only", "--end-of-options", f"{revision}^{{commit}}"]
            printed = self.repository.ask(query, "resolve a revision").printed
            commit = printed.decode("ascii", "replace").removesuffix("\n")
            if OBJECT_ID.fullmatch(commit):
                return commit
        remedy = "give a commit, a branch or a tag: `git log --oneline` lists commits"
        raise NamedNotFound(kind="revision", name=revision, remedy=remedy)

    def merge_base(self, one: str, other: str) -> str:
        """Return the last commit that two commits have in common, by their ids."""
        printed = self.repository.ask(["merge-base", one, other], "compare commits").printed
        if found := printed.decode("ascii", "replace").strip():
            return found
        name, remedy = f"{one[:12]} and {other[:12]}", "`mdmem git diff A..B` compares them as they are"
        raise NamedNotFound(kind="common commit of", name=name, remedy=remedy)

    def log(
        self, names: Sequence[str], start: str, *, follow: bool = False
    ) -> Generator[LoggedCommit, None, None]:
        """Yield the commits that touched files at or below `names`, from `start` back; to be closed.

        With `follow` there is one name, of a file: go on behind its renames.
        """
        query = [*_LOG, "-c", *_RAW, *(("--follow",) if follow else ()), start, "--", *names]
        with closing(self._run_words(query, "read the history")) as words:
            yield from _read_log(words)

    def descends(self, commit: str, other: str) -> bool:
        """Return whether a commit is another one, or stands on it, by their ids; not where one is gone."""
        return not self.repository.ask(
            ["merge-base", "--is-ancestor", other, commit], "compare commits"
        ).status

    def removals(self, head: str, start: str = "") -> Generator[tuple[str, Removal], None, None]:
        """Yield every file that a commit took away, by its name, the newest commit first; to be closed.

        Of a merge, those that it took away itself. What was renamed and changed at once counts as deleted.

        Commits that `start` stands on are left out, and it too.
        """
        commits = f"{start}..{head}" if start else head
        with closing(self._run_words([*_REMOVALS, commits, "--"], "read the history")) as words:
            for commit, status, names in read_statuses(words):
                if not status.strip("D") or len(names) > 1:
                    yield names[0], Removal(commit, *names[1:])

    def commits(self, ids: Iterable[str]) -> dict[str, Commit]:
        """Return the commits with these ids, by id."""
        return {logged.commit.id: logged.commit for logged in self._read_commits(ids)}

    def _read_commits(self, ids: Iterable[str], options: Sequence[str] = ()) -> Iterator[LoggedCommit]:
        wanted = [*dict.fromkeys(ids)]
        for at in range(0, len(wanted), _COMMITS_AT_ONCE):
            query = [*_LOG, *options, "--no-walk=unsorted", *wanted[at : at + _COMMITS_AT_ONCE], "--"]
            yield from _read_log(self._run_words(query, "read commits"))

    def change_ids(self) -> set[str]:
        """Return the ids of the vault's changes that the last commits name."""
        query = ["log", f"-{_MOST_COMMITS}", f"--format=%(trailers:key={ID},valueonly)", "HEAD", "--"]
        return {*self.repository.ask(query, "read the history").printed.decode("utf-8", "replace").split()}

    def newest(self, ids: Sequence[str]) -> str:
        """Return one of some commits that none of the others descends from."""
        query = [*_LOG, "--topo-order", "--max-count=1", *ids, "--"]
        return next(_read_log(self._run_words(query, "read commits"))).commit.id

    def files(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the names of all files that each commit touched, by id; for a merge, those it settled."""
        logged = self._read_commits(ids, ("-c", "--raw", "--no-abbrev", "--no-renames"))
        return {commit.id: tuple(file.name for file in files) for commit, files in logged}

    def differences(self, old: str, new: str, names: Sequence[str]) -> list[TouchedFile]:
        """List the files at or below `names` that differ between two commits, renames paired by git."""
        query = ["-c", "diff.orderFile=/dev/null", "diff-tree", "-r", *_RAW, "-z", "--no-commit-id"]
        words = self._run_words([*query, old, new, "--", *names], "compare commits")
        return [file for word in words for file in _read_touched(word, words)]

    def tree(self, commit: str, names: Sequence[str]) -> dict[str, str]:
        """Return the object ids of the files at or below `names` in a commit, by name."""
        query = ["ls-tree", "-r", "-z", "--full-tree", commit, "--", *(name for name in names if name != ".")]
        entries = filter(None, map(_TREE.fullmatch, self._run_words(query, "read a commit")))
        return {entry["name"]: entry["blob"] for entry in entries if entry["mode"] in _FILES}

    def index(self, names: Sequence[str]) -> dict[str, IndexEntry]:
        """Return what the index says of the files at or below `names`, by name; no links, no submodules."""
        query = ["ls-files", "--stage", "--debug", "-v", "-z", "--full-name", "--", *names]
        entries = {}
        for line in _INDEXED.finditer(self.repository.require(query, "read the index")):
            if line["mode"].decode() not in _FILES:
                continue
            stamp = None
            if line["written"] and line["stage"] == b"0":
                times = _to_nanoseconds(line["written"]), _to_nanoseconds(line["changed"])
                stamp = (*times, int(line["size"]), int(line["inode"]))
            is_out = line["tag"] not in _NOT_CHECKED_OUT
            entries[os.fsdecode(line["name"])] = IndexEntry(line["blob"].decode(), stamp, is_out=is_out)
        return entries

    def list_left_out(self) -> frozenset[str]:
        """List the files of the folder that a sparse work tree leaves out, and the folders around them."""
        entries = self.index(["."]) if self.repository.is_sparse else {}
        paths = [self.repository.path(name) for name, entry in entries.items() if not entry.is_out]
        return frozenset(part for path in paths if path for part in (path, *above(path)))

    def staged(self, commit: str, names: Sequence[str]) -> dict[str, str | None]:
        """Map the files at or below `names` that differ between the index and a commit to their ids there.

        None where the commit has no such file.
        """
        query = ["-c", "diff.orderFile=/dev/null", *OF_THE_INDEX, "--raw", "--no-abbrev", "-z"]
        words = self._run_words([*query, "--no-renames", commit, "--", *names], "read the index")
        return {file.name: file.before or None for word in words for file in _read_touched(word, words)}

    def _run_words(self, arguments: Sequence[str], action: str) -> Generator[str, None, None]:
        """Yield what git prints, cut at each NUL, as it comes; git ends when nobody wants more."""
        top = self.repository.top
        with (
            failing(top, action),
            GitProcess(command(arguments), NO_WORK_TREE, environment(own=self.repository.folder)) as process,
        ):
            yield from map(os.fsdecode, _split_at_nul(process))
            process.ended().require(top, action)


def _split_at_nul(stream: GitProcess) -> Iterator[bytes]:
    """Yield what stands between NULs; of each, no more than is read of one."""
    rest = b""
    while chunk := stream.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from (word[:_LONGEST] for word in whole)
        # One byte more, so that a cut word is recognised as cut.
        rest = rest[:_LONGEST]
    if rest:
        yield rest


def _read_log(words: Iterator[str]) -> Iterator[LoggedCommit]:
    """Read commits: the fields of the format, then a status and one or two names per file."""
    commit: Commit | None = None
    files: list[TouchedFile] = []
    for word in words:
        start = word.strip()
        if OBJECT_ID.fullmatch(start):
            if commit:
                yield LoggedCommit(commit, tuple(files))
            commit, files = _make_commit(start, [next(words, "") for _ in range(_FIELDS - 1)]), []
        else:
            files += _read_touched(word, words)
    if commit:
        yield LoggedCommit(commit, tuple(files))


def _to_nanoseconds(time: bytes) -> int:
    seconds, _, rest = time.partition(b":")
    return int(seconds) * _SECOND + int(rest)


def _read_touched(word: str, words: Iterator[str]) -> Iterator[TouchedFile]:
    """Yield what a line of `--raw -z` tells; its names are the next words.

    Of a merge it tells of the files that it settled, the first parent's content before the commit's own.
    """
    entry = _ENTRY.fullmatch(word.strip())
    if not entry:
        return
    values, letters = entry["values"].split(), entry["letters"]
    old = next(words, "") if letters in ("R", "C") else ""
    name = next(words, "")
    count = len(entry["marks"]) + 1
    before, after = (values[count + at] if values[at] in _FILES else "" for at in (0, count - 1))
    if before and after:
        is_renamed = letters == "R"
        status: FileStatus = "renamed" if is_renamed else "added" if letters == "C" else "changed"
        yield TouchedFile(status, name, old if is_renamed else "", "" if letters == "C" else before, after)
    elif before:
        yield TouchedFile("removed", old or name, "", before, "")
    else:
        yield TouchedFile("added" if after else "changed", name, "", "", after)


def _make_commit(id_: str, fields: Sequence[str]) -> Commit:
    parents, committed, author, email, date, subject, trailers = fields
    matches = (_TRAILER.match(line) for line in trailers.split(_BETWEEN))
    values = tuple(
        (_CALLED.get(match[1].lower(), match[1]), match[2].strip()[:_LONGEST_VALUE])
        for match in matches
        if match
    )
    return Commit(
        id_, tuple(parents.split()), int(committed or 0), author, email, date, subject.rstrip(), values
    )
