"""Cites code at an old commit and judges it at the newest: `python bench/citations.py REPO…`.

Half of the citations are line ranges, half are symbols. What became of them is also asked of git: which lines
are still there, and where, says `git blame --reverse`; whether something stands in place of lines that are
not says the diff of each commit with its first parent. Prints precision and recall for every state, and
whether what is said to have moved is the same there. Ends with 1 when it is not.

The other way round, `git log -L` is asked where the lines come from that a citation is judged to mean now.
Those that are the same must lead to what was cited, and no commit may have touched them since; those that
changed must overlap with what was cited, and a commit must have touched them.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tracking import Cited, Fate, Repository, Trace, Tracking

from mdmem.diagnostic import Span
from mdmem.document.markdown.inline import Citation
from mdmem.index.code.citations import Judgement, judge
from mdmem.index.code.workspace import Source, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MEMORY = "mdmem-bench-citations.md"
_STATES = ("unchanged", "moved", "changed", "gone")
_TRACED = ("unchanged", "moved", "changed")
_LONGEST = 30


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


class Result(NamedTuple):
    cited: Cited
    judgement: Judgement
    fate: Fate
    trace: Trace | None

    @property
    def is_traced(self) -> bool | None:
        """Whether `git log -L` says the same; None where there are no lines to ask it about."""
        if self.trace is None:
            return None
        path, first, last, touched = self.trace
        cited = self.cited
        if self.judgement.state == "changed":
            overlaps = path == cited.citation.path and first <= cited.last and cited.first <= last
            return overlaps and touched > 0
        return (path, first, last) == (cited.citation.path, cited.first, cited.last) and not touched

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
    repository.remember(old, _MEMORY, [_written(each) for each in cited])
    tracking = Tracking(repository, old, new)
    start = time.perf_counter()
    with Workspace(folder) as workspace:
        judged = [judge(workspace, _MEMORY, each.citation) for each in cited]
        duration = time.perf_counter() - start
        results = [
            Result(
                each, judgement, tracking.fate(each, files[each.citation.path]), _traced(tracking, judgement)
            )
            for each, judgement in zip(cited, judged, strict=True)
        ]
        wrong = [r for r in results if r.judgement.state == "moved" and not _same(repository, new, files, r)]
    followed = repository.git("rev-list", "--count", f"{old}..{new}").strip()
    described = (
        f"{len(cited)} citations of {len(files)} files at {old[:12]}, judged at {new[:12]},"
        f" {followed} commits later, in {duration:.2f} s"
    )
    return results, wrong, described


def _traced(tracking: Tracking, judgement: Judgement) -> Trace | None:
    state, path, first, last, *_ = judgement
    if state not in _TRACED or first is None or last is None:
        return None
    return tracking.trace(path, first, last)


def _same(repository: Repository, new: str, files: Mapping[str, Source], result: Result) -> bool:
    """Whether the lines that it is re-pointed to are those that were cited, byte for byte."""
    cited, judgement = result.cited, result.judgement
    then = files[cited.citation.path].cut(cited.first, cited.last)
    now = Source(judgement.path, repository.git("show", f"{new}:{judgement.path}").encode())
    return then == now.cut(judgement.first or 0, judgement.last or 0)


def table(results: Sequence[Result]) -> str:
    """Precision and recall by state, and how many of those that `git log -L` was asked about it confirms."""
    lines = [
        "| state | judged | git says | both | precision | recall | `git log -L` agrees |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
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
            _confirmed(r for r in results if r.judgement.state == state),
        )
        lines.append(f"| {state} | {' | '.join(map(str, cells))} |")
    agreed = sum(both.values())
    share = _share(agreed, len(results))
    lines.append(f"| all | {len(results)} | {len(results)} | {agreed} | {share} | | {_confirmed(results)} |")
    return "\n".join(lines)


def _confirmed(results: Iterable[Result]) -> str:
    asked = [r.is_traced for r in results if r.is_traced is not None]
    return f"{sum(asked)} of {len(asked)}" if asked else "-"


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
                if not result.agrees or result.is_traced is False:
                    print(f"- {_written(result.cited)} {result.judgement} git: {result.fate} {result.trace}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
