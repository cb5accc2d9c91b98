"""What git says became of lines of an old commit, by three ways of tracking them.

Which lines are still there, and where, says `git blame --reverse`; whether something stands in place of lines
that are not, the diff of each commit with its first parent; where lines of the newest commit come from, and
which commits touched them, `git log -L`.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from mdmem.index.code.workspace import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.document.markdown.inline import Citation

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "bench"), ("EMAIL", "bench@example.org"), ("DATE", "2020-01-01T00:00:00Z"))
}
# Kept apart, so that mdmem sees the history as it is.
_REPLACED = {"GIT_REPLACE_REF_BASE": "refs/bench/"}


class Cited(NamedTuple):
    """A citation of the old commit, with the lines that it stands for there."""

    citation: Citation
    first: int
    last: int


class Fate(NamedTuple):
    """What became of it: a state and, for lines that are still there, their place."""

    state: str
    path: str = ""
    first: int = 0


class Trace(NamedTuple):
    """Where lines of the newest commit come from.

    Attributes:
        path, first, last: what they were in the old commit; no path where they were not there.
        touched: how many commits since then have touched them.
    """

    path: str
    first: int
    last: int
    touched: int


class Repository:
    """A clone that may be written to."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def git(self, *arguments: str, stdin: str = "", **environ: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C", **_AUTHOR, **environ},
            input=stdin.encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace")

    def old_commit(self, back: int) -> str:
        """The newest commit of the main line that `back` commits or more have followed."""
        line = self.git("rev-list", "--first-parent", "HEAD").split()
        low, high = 0, len(line) - 1
        while low < high:
            middle = (low + high) // 2
            if int(self.git("rev-list", "--count", f"{line[middle]}..HEAD")) >= back:
                high = middle
            else:
                low = middle + 1
        return line[low]

    def files(self, commit: str) -> dict[str, Source]:
        """The Python files of a commit."""
        names = self.git("ls-tree", "-r", "--name-only", "-z", commit).split("\0")
        found: dict[str, Source] = {}
        for name in names:
            if name.endswith(".py"):
                source = Source(name, self.git("show", f"{commit}:{name}").encode())
                if len(source.lines) > 20 and not source.symbols.problem:
                    found[name] = source
        return found

    def remember(self, old: str, memory: str, lines: Sequence[str]) -> None:
        """Write a memory as if it had been committed on top of `old` and merged since; check that out."""
        head = self.git("rev-parse", "HEAD").strip()
        blob = self.git("hash-object", "-w", "--stdin", stdin="".join(f"{line}\n" for line in lines)).strip()
        index = {"GIT_INDEX_FILE": os.path.join(self.folder, ".git", "bench-index")}

        def commit(base: str, *parents: str) -> str:
            self.git("read-tree", base, **index)
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{memory}", **index)
            tree = self.git("write-tree", **index).strip()
            given = [word for parent in parents for word in ("-p", parent)]
            return self.git("commit-tree", tree, *given, "-m", "bench").strip()

        merge = commit(head, head, commit(old, old))
        self.git("checkout", "--quiet", "--detach", merge)


class Tracking:
    """What git says of lines of the old commit."""

    def __init__(self, repository: Repository, old: str, new: str) -> None:
        self.repository = repository
        self.old, self.new = old, new
        self._survivors: dict[str, dict[int, tuple[str, int]]] = {}
        self._changes = list(self._read_changes())
        # As the first commit of all, it shows every line that is followed down to it.
        repository.git("replace", "--graft", old, **_REPLACED)

    def fate(self, cited: Cited, source: Source) -> Fate:
        citation = cited.citation
        there = self.survivors(citation.path)
        numbers = range(cited.first, cited.last + 1)
        places = [there.get(number) for number in numbers]
        start = places[0]
        intact = start is not None and all(
            place == (start[0], start[1] + n) for n, place in enumerate(places)
        )
        if citation.symbol:
            defined = self._still_defined(cited)
            if start and intact:
                return Fate("unchanged" if defined and start[0] == citation.path else "moved", *start)
            return Fate("changed" if defined else "gone")
        if start and intact:
            return Fate("unchanged" if start == (citation.path, cited.first) else "moved", *start)
        telling = [n for n in numbers if source.lines[n - 1].strip()]
        if any(n in there for n in telling or numbers):
            return Fate("changed")
        return Fate("changed" if self._replaced(cited) else "gone")

    def trace(self, path: str, first: int, last: int) -> Trace | None:
        """Follow lines of the newest commit back by `git log -L`; None where it has no such lines."""
        lines = f"{first},{last}:{path}"
        try:
            told = self.repository.git(
                *("-c", "core.quotePath=false", "log", "--first-parent", "--no-color", "--no-ext-diff"),
                *("--format=%x00%H", "-L", lines, self.new),
                **_REPLACED,
            )
        except subprocess.CalledProcessError:
            return None
        commits = told.split("\0")[1:]
        if not commits or not commits[-1].startswith(self.old):
            return Trace("", 0, 0, len(commits))
        name = re.search(r"^\+\+\+ b/(.*)$", commits[-1], re.MULTILINE)
        hunk = _HUNK.search(commits[-1])
        if name is None or hunk is None:
            return Trace("", 0, 0, len(commits) - 1)
        start, length = int(hunk[3]), int(hunk[4] or 1)
        return Trace(name[1], start, start + length - 1, len(commits) - 1)

    def survivors(self, path: str) -> dict[int, tuple[str, int]]:
        """Where each line that is still there is now, by `git blame --reverse`."""
        if path not in self._survivors:
            told = self.repository.git(
                "blame", "--reverse", "--line-porcelain", f"{self.old}..{self.new}", "--", path
            )
            found: dict[int, tuple[str, int]] = {}
            commit, now, then, name = "", 0, 0, ""
            for line in told.split("\n"):
                header = re.fullmatch(r"([0-9a-f]{40,64}) (\d+) (\d+)(?: \d+)?", line)
                if header:
                    commit, now, then = header[1], int(header[2]), int(header[3])
                elif line.startswith("filename "):
                    name = line.removeprefix("filename ")
                elif line.startswith("\t") and commit == self.new:
                    found[then] = (name, now)
            self._survivors[path] = found
        return self._survivors[path]

    def _still_defined(self, cited: Cited) -> bool:
        """Whether the file, under its newest name, still has the symbol: by words and indentation alone."""
        path = self._tracked(cited)[0]
        lines = self._show(path).split("\n") if path else []
        *classes, name = map(re.escape, cited.citation.symbol.split("."))
        for each in classes:
            lines = _block(lines, rf"([ \t]*)class\s+{each}\b")
        assigned = rf"{name}\s*(:|=(?!=))|[\w\s,()*]*\b{name}\b[\w\s,()*]*=(?!=)"
        return any(re.match(rf"\s*((async\s+def|def|class)\s+{name}\b|{assigned})", line) for line in lines)

    def _show(self, path: str) -> str:
        try:
            return self.repository.git("show", f"{self.new}:{path}")
        except subprocess.CalledProcessError:
            return ""  # it came back under a name that a merge brought

    def _replaced(self, cited: Cited) -> bool:
        path, first, last = self._tracked(cited)
        if not path or last < first:
            return False
        lines = self._show(path).split("\n")
        return any(line.strip() for line in lines[first - 1 : last])

    def _tracked(self, cited: Cited) -> tuple[str, int, int]:
        """The range, carried through every commit as `git log -L` carries it back; no path once deleted."""
        path, first, last = cited.citation.path, cited.first, cited.last
        for files in self._changes:
            change = files.get(path)
            if change is None:
                continue
            path, hunks = change
            if not path:
                return "", 0, -1
            first, last = _carried(hunks, first, last)
        return path, first, last

    def _read_changes(self) -> Iterator[dict[str, tuple[str, list[tuple[int, int, int, int]]]]]:
        """By commit, oldest first, and old name: the new name, empty for a deletion, and the hunks."""
        told = self.repository.git(
            *("-c", "core.quotePath=false", "log", "--first-parent", "-m", "-p", "-U0", "-M", "--reverse"),
            *("--no-ext-diff", "--no-textconv", "--no-color", "--format=%x00", f"{self.old}..{self.new}"),
        )
        for commit in told.split("\0")[1:]:
            files: dict[str, tuple[str, list[tuple[int, int, int, int]]]] = {}
            for part in re.split(r"^diff --git ", commit, flags=re.MULTILINE)[1:]:
                head = part.split("\n@@", 1)[0]
                names = re.match(r"a/(.*) b/(.*)", head)
                renamed = re.search(r"^rename from (.*)\nrename to (.*)$", head, re.MULTILINE)
                old, new = renamed.groups() if renamed else (names.groups() if names else ("", ""))
                deleted = re.search(r"^deleted file", head, re.MULTILINE)
                found = _HUNK.finditer("\n".join(line for line in part.split("\n") if line.startswith("@@")))
                hunks = [
                    (int(a), 1 if b is None else int(b), int(c), 1 if d is None else int(d))
                    for a, b, c, d in (hunk.groups() for hunk in found)
                ]
                files[old] = ("" if deleted else new, hunks)
            yield files


def _block(lines: Sequence[str], opening: str) -> list[str]:
    """The lines that are indented under the first one that matches."""
    for number, line in enumerate(lines):
        found = re.match(opening, line)
        if found:
            deeper = re.compile(rf"{found[1]}[ \t)]|\s*(#.*)?$")
            return list(itertools.takewhile(deeper.match, lines[number + 1 :]))
    return []


def _carried(hunks: list[tuple[int, int, int, int]], first: int, last: int) -> tuple[int, int]:
    start, end = first - 1, last
    new_start, new_end = start, end
    if end <= start:
        return first + sum(d - b for a, b, _, d in hunks if a <= start), last + sum(
            d - b for a, b, _, d in hunks if a <= start
        )
    for a, b, c, d in hunks:
        begin = a - 1 if b else a
        new_begin = c - 1 if d else c
        if begin >= end:
            break
        if begin + b <= start:
            new_start = start + new_begin + d - begin - b
        elif begin <= start:
            new_start = new_begin
        new_end = new_begin + d if begin + b >= end else end + new_begin + d - begin - b
    return new_start + 1, new_end
