"""The floors alone, at several sizes: `python bench/floor_figures.py [NOTES…]`; 1,000 and 10,000 without any.

100,000 notes take about two minutes and 1 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from typing import TYPE_CHECKING

import floors
import machine
import vaults
from percentiles import clock, percentiles
from table import milliseconds, seconds
from timing import program, spread

from mdmem.index import ripgrep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SIZES = (1_000, 10_000)
_WORD = "quetzalcoatl"
_QUERIES = 200

Figure = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the floors alone.")
    parser.add_argument("notes", nargs="*", type=int, help="sizes of vaults; 1000 and 10000 without any")
    parser.add_argument("--folder", help="where the temporary files go, and so on which disk")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mdmem-bench-", dir=given.folder) as folder:
        print("\n".join(f"- {fact}" for fact in machine.description(folder)))
        print(f"- load {machine.load()} before, seed {given.seed}\n")
        print("| notes | floor | figure |\n| --- | --- | --- |", flush=True)
        for notes in given.notes or _SIZES:
            for what, figure in figures(notes, given.seed, os.path.join(folder, str(notes))):
                print(f"| {notes:,} | {what} | {figure} |", flush=True)
    return 0


def figures(notes: int, seed: int, folder: str) -> Iterator[Figure]:
    """Every floor in a vault of so many notes."""
    root = os.path.join(folder, "vault")
    yield "the vault, made", seconds(clock(lambda: vaults.make(root, notes, seed, {_WORD: 3})))
    sizes = [status.st_size for _, status in floors.files(root)]
    yield "bytes of a note, the mean", f"{sum(sizes) / len(sizes):.0f}"
    yield "the text of one more note", milliseconds(clock(lambda: vaults.note(seed, notes, notes + 1)))
    yield from _processes(root, folder, notes)
    yield from _queries(root, folder, seed)


def _processes(root: str, folder: str, notes: int) -> Iterator[Figure]:
    """Cold index, sync, and ripgrep."""
    count, environ = max(3, min(9, 50_000 // notes)), machine.environment()
    files = os.path.join(folder, "files.sqlite")
    itself = [sys.executable, os.path.abspath(floors.__file__)]

    def index(number: int) -> object:
        database = os.path.join(folder, f"texts{number}.sqlite")
        return program([*itself, "index", root, database], environ)(number)

    yield "cold index", _rounds(count, lambda n: floors.index(root, _texts(folder, str(n))))
    yield "cold index, whole process", _rounds(count, index)
    floors.remember(root, files)
    known = floors.table(files)
    yield "sync, the table loaded before", _rounds(20, lambda _: floors.compare(root, known))
    yield "sync, loading the table", _rounds(20, lambda _: floors.sync(root, files))
    yield "sync, whole process", _rounds(10, program([*itself, "sync", root, files], environ))
    search = [
        ripgrep.program(),
        "--no-config",
        "--no-ignore",
        "--fixed-strings",
        "--ignore-case",
        "--",
        _WORD,
    ]
    yield "ripgrep, 3 matching lines, whole process", _rounds(10, program([*search, root], environ))


def _queries(root: str, folder: str, seed: int) -> Iterator[Figure]:
    """OR queries, warm: each asked once before it is timed."""
    questions = vaults.queries(seed, _QUERIES)
    start = os.path.join(folder, "tantivy")
    fts5 = floors.Fts5(_texts(folder, "0"))
    made: list[floors.Tantivy] = []
    yield "tantivy, whole files indexed", seconds(clock(lambda: made.append(floors.Tantivy(root, start))))
    for name, ask in (("FTS5", fts5.search), ("tantivy", made[0].search)):
        for question in questions:
            ask(question)
        asked = percentiles(clock(partial(ask, question)) for question in questions)
        yield f"{name}, OR of 2 to 5 words, best 10, {_QUERIES} queries", asked.text()


def _texts(folder: str, name: str) -> str:
    return os.path.join(folder, f"warm{name}.sqlite")


def _rounds(count: int, work: Callable[[int], object]) -> str:
    return spread(clock(partial(work, number)) for number in range(count)).text(milliseconds)


if __name__ == "__main__":
    sys.exit(main())
