"""Cites code at an old commit and judges it at the newest: `python bench/citations.py REPO…`.

Half of the citations are line ranges, half are symbols. What became of them is also asked of git: which lines
are still there, and where, says `git blame --reverse`; whether something stands in place of lines that are
not says the diff of each commit with its first parent. Prints precision and recall for every state, and
whether what is said to have moved is the same there. Ends with 1 when it is not.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.index.citations import Judgement, judge
from mdmem.index.source import Source
from mdmem.index.workspace import Workspace
from mdmem.text.inline import Citation

_MEMORY = "mdmem-bench-citations.md"
_STATES = ("unchanged", "moved", "changed", "gone")
_LONGEST = 30
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "bench"), ("EMAIL", "bench@example.org"), ("DATE", "2020-01-01T00:00:00Z"))
}


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
            stdout=subprocess.PIPE,
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

    def remember(self, old: str, lines: Sequence[str]) -> None:
        """Write a memory as if it had been committed on top of `old` and merged since; check that out."""
        head = self.git("rev-parse", "HEAD").strip()
        blob = self.git("hash-object", "-w", "--stdin", stdin="".join(f"{line}\n" for line in lines)).strip()
        index = {"GIT_INDEX_FILE": os.path.join(self.folder, ".git", "bench-index")}

        def commit(base: str, *parents: str) -> str:
            self.git("read-tree", base, **index)
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{_MEMORY}", **index)
            tree = self.git("write-tree", **index).strip()
            given = [word for parent in parents for word in ("-p", parent)]
            return self.git("commit-tree", tree, *given, "-m", "bench").strip()

        merge = commit(head, head, commit(old, old))
        self.git("checkout", "--quiet", "--detach", merge)


def cite(files: Mapping[str, Source], count: int, chance: random.Random) -> list[Cited]:
    """Random citations: ranges wherever there are lines, symbols wherever there are symbols."""
    paths = list(files)
    sizes = [len(files[path].lines) for path in paths]
    found: list[Cited] = []
    for path in chance.choices(paths, sizes, k=count - count // 2):
        lines = len(files[path].lines)
        first = chance.randint(1, lines)
        last = min(lines, first + chance.randint(0, _LONGEST - 1))
        found.append(Cited(_citation(path, len(found) + 1, first, last, ""), first, last))
    symbols = [(path, symbol) for path in paths for symbol in files[path].symbols.found]
    alone = [(path, s) for path, s in symbols if len(files[path].symbols.named(s.name)) == 1]
    for path, symbol in chance.sample(alone, min(count // 2, len(alone))):
        cited = _citation(path, len(found) + 1, None, None, symbol.name)
        found.append(Cited(cited, symbol.first, symbol.last))
    return found


def _citation(path: str, line: int, first: int | None, last: int | None, symbol: str) -> Citation:
    nowhere = Span(0, 0)
    return Citation(path, first, last, symbol, nowhere, line, nowhere, "", nowhere, in_link=False)


def _written(cited: Cited) -> str:
    citation = cited.citation
    anchor = citation.symbol or f"L{citation.first}-L{citation.last}"
    return f"See `{citation.path}#{anchor}`."


# ------------------------------------------------------------------------------------------- what git says


class Tracking:
    """What git says of lines of the old commit."""

    def __init__(self, repository: Repository, old: str, new: str) -> None:
        self.repository = repository
        self.old, self.new = old, new
        self._survivors: dict[str, dict[int, tuple[str, int]]] = {}
        self._changes = list(self._read_changes())

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


# ------------------------------------------------------------------------------------------- the comparison


class Result(NamedTuple):
    cited: Cited
    judgement: Judgement
    fate: Fate

    @property
    def agrees(self) -> bool:
        """Whether both say the same, and where it moved to."""
        if self.judgement.state != self.fate.state:
            return False
        place = (self.judgement.path, self.judgement.first)
        return self.fate.state != "moved" or place == (self.fate.path, self.fate.first)


def compare(folder: str, count: int, back: int, seed: int) -> tuple[list[Result], list[Result], str]:
    """Every result, those that moved to other content, and a description."""
    repository = Repository(folder)
    new = repository.git("rev-parse", "HEAD").strip()
    old = repository.old_commit(back)
    files = repository.files(old)
    cited = cite(files, count, random.Random(seed))
    repository.remember(old, [_written(each) for each in cited])
    tracking = Tracking(repository, old, new)
    start = time.perf_counter()
    with Workspace(folder) as workspace:
        judged = [judge(workspace, _MEMORY, each.citation) for each in cited]
        duration = time.perf_counter() - start
        results = [
            Result(each, judgement, tracking.fate(each, files[each.citation.path]))
            for each, judgement in zip(cited, judged, strict=True)
        ]
        wrong = [r for r in results if r.judgement.state == "moved" and not _same(repository, new, files, r)]
    followed = repository.git("rev-list", "--count", f"{old}..{new}").strip()
    described = (
        f"{len(cited)} citations of {len(files)} files at {old[:12]}, judged at {new[:12]},"
        f" {followed} commits later, in {duration:.2f} s"
    )
    return results, wrong, described


def _same(repository: Repository, new: str, files: Mapping[str, Source], result: Result) -> bool:
    """Whether the lines that it is re-pointed to are those that were cited, byte for byte."""
    cited, judgement = result.cited, result.judgement
    then = files[cited.citation.path].cut(cited.first, cited.last)
    now = Source(judgement.path, repository.git("show", f"{new}:{judgement.path}").encode())
    return then == now.cut(judgement.first or 0, judgement.last or 0)


def table(results: Sequence[Result]) -> str:
    """Precision and recall by state."""
    lines = ["| state | judged | git says | both | precision | recall |", "|---|--:|--:|--:|--:|--:|"]
    said = Counter(r.judgement.state for r in results)
    true = Counter(r.fate.state for r in results)
    both = Counter(r.fate.state for r in results if r.agrees)
    for state in (*_STATES, *sorted(set(said) - set(_STATES))):
        cells = (
            said[state],
            true[state],
            both[state],
            _share(both[state], said[state]),
            _share(both[state], true[state]),
        )
        lines.append(f"| {state} | {' | '.join(map(str, cells))} |")
    agreed = sum(both.values())
    lines.append(f"| all | {len(results)} | {len(results)} | {agreed} | {_share(agreed, len(results))} | |")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Judge citations of code beside git's own line tracking.")
    parser.add_argument("repositories", nargs="+", metavar="REPO", help="a git repository with Python files")
    parser.add_argument("--count", type=int, default=200, help="how many citations in each")
    parser.add_argument("--back", type=int, default=200, help="at least so many commits ago")
    parser.add_argument("--seed", type=int, default=1, help="for the same citations again")
    parser.add_argument("--differences", action="store_true", help="print every disagreement")
    given = parser.parse_args(arguments)
    failed = False
    for path in given.repositories:
        with tempfile.TemporaryDirectory(prefix="mdmem-bench-") as folder:
            clone = os.path.join(folder, "clone")
            subprocess.run(["git", "clone", "--quiet", "--", os.path.abspath(path), clone], check=True)
            results, wrong, described = compare(clone, given.count, given.back, given.seed)
        print(f"## {os.path.basename(os.path.abspath(path))}\n\n{described}\n")
        for name, part in (
            ("line ranges", [r for r in results if not r.cited.citation.symbol]),
            ("symbols", [r for r in results if r.cited.citation.symbol]),
        ):
            print(f"### {name}\n\n{table(part)}\n")
        moved = sum(r.judgement.state == "moved" for r in results)
        print(f"re-pointed to the same content: {moved - len(wrong)} of {moved}\n", flush=True)
        failed = failed or bool(wrong)
        if given.differences:
            for result in results:
                if not result.agrees:
                    print(f"- {_written(result.cited)} {result.judgement} git: {result.fate}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
