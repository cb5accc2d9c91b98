"""The index: from nothing, with nothing changed, with one note changed and with one more."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import floors
import vaults
from machine import environment, installed
from percentiles import clock
from table import Row, milliseconds, ratio_row
from timing import paired, program, spread

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from setting import Setting

_MOST_COLD = 4.5
_MOST_SYNC = 1.5
_MOST_ONE = 0.005
# The budgets are for the largest; the others show what grows with a vault.
_SIZES = (1_000, 10_000)
_PAIRS = 20
_SETTLED = 0.05  # seconds after which a file that was written is not read again because its time is too new
_FOLDER = ".mdmem/local/index"


def measure(setting: Setting) -> list[Row]:
    rows: list[Row] = []
    for size in _SIZES:
        notes = setting.count(size)
        root = setting.path(f"index {size}")
        vaults.make(root, notes, setting.seed)
        found = rows_of(setting, root, notes)
        rows += found if size == _SIZES[-1] else [replace(row, budget="", kept=None) for row in found]
    return rows


def rows_of(setting: Setting, root: str, notes: int) -> list[Row]:
    """Every row about the index of a vault of so many notes."""
    cold = _cold(root, notes)
    memory = Memory(root)
    memory.sync()
    return [
        cold,
        _unchanged(setting, memory, notes),
        _one(setting, memory, f"one note changed, of {notes:,}", lambda _: vaults.path(0), notes),
        _one(setting, memory, f"one note more than {notes:,}", lambda n: vaults.path(notes + n), notes),
        _told(setting, memory, notes),
    ]


def _cold(root: str, notes: int) -> Row:
    """From nothing, as whole processes."""
    environ, floor = environment(), [sys.executable, os.path.abspath(floors.__file__), "index", root]
    ours = program([installed("mdmem"), "--vault", root, "index"], environ)

    def index(number: int) -> str:
        # Moved out of the way, which takes no time: deleting it would.
        if os.path.exists(os.path.join(root, _FOLDER)):
            os.rename(os.path.join(root, _FOLDER), f"{root} stale {number}")
        return ours(number)

    def insert(number: int) -> str:
        return program([*floor, f"{root} floor {number}"], environ)(number)

    pairs = paired(index, insert, max(3, min(9, 50_000 // notes)))
    row = ratio_row(
        f"index {notes:,} notes from nothing, whole process",
        f"read, hash, insert into FTS5 ({_each(pairs.theirs, notes)} a note)",
        pairs,
        _MOST_COLD,
    )
    return replace(row, ours=f"{row.ours}, {_each(pairs.ours, notes)} a note")


def _unchanged(setting: Setting, memory: Memory, notes: int) -> Row:
    """In a warm process. The floor loads its table each time: somebody else may have changed it."""
    root, table = memory.vault.root, f"{memory.vault.root} files"
    floors.remember(root, table)
    time.sleep(_SETTLED)
    memory.sync()
    if any(memory.sync()) or any(floors.sync(root, table)):
        raise RuntimeError("nothing has changed, and a sync found something")
    pairs = paired(lambda _: memory.sync(), lambda _: floors.sync(root, table), setting.count(_PAIRS))
    what = f"sync, nothing changed, {notes:,} notes, warm"
    return ratio_row(what, "load a table, `scandir`, `stat`, compare", pairs, _MOST_SYNC)


def _one(setting: Setting, memory: Memory, what: str, place: Callable[[int], str], notes: int) -> Row:
    """A sync that finds one written file, beside the floor of one that finds nothing."""
    root, table = memory.vault.root, f"{memory.vault.root} files"
    ours, theirs, quiet = [], [], []
    for number in range(setting.count(_PAIRS)):
        time.sleep(_SETTLED)
        memory.sync()
        quiet.append(clock(memory.sync))
        theirs.append(clock(partial(floors.sync, root, table)))
        _write(setting, memory, place(number), number, notes)
        start = time.perf_counter()
        synced = memory.sync()
        ours.append(time.perf_counter() - start)
        if (*synced.created, *synced.changed) != (place(number),):
            raise RuntimeError(f"{place(number)} was written, and a sync found {synced}")
    over = spread(a - _MOST_SYNC * b for a, b in zip(ours, theirs, strict=True))
    alone = spread(a - b for a, b in zip(ours, quiet, strict=True))
    return Row(
        what=f"{what} → index current, warm",
        ours=f"{spread(ours).text(milliseconds)}; with nothing changed {milliseconds(alone.median)} less",
        beside=f"the same floor: {spread(theirs).text(milliseconds)}",
        compared=f"{over.text(milliseconds)} over {_MOST_SYNC} times the floor",
        budget=f"≤ {_MOST_SYNC} times the floor + {milliseconds(_MOST_ONE)}",
        kept=over.median <= _MOST_ONE,
    )


def _told(setting: Setting, memory: Memory, notes: int) -> Row:
    """One more note, when the sync is told which: what a write and the watcher do. No folder is walked."""
    durations = []
    for number in range(setting.count(_PAIRS)):
        path = vaults.path(notes + 1_000 + number)
        _write(setting, memory, path, number, notes)
        durations.append(clock(partial(memory.index.sync, [path])))
    return Row(
        what=f"one note more than {notes:,}, told which → index current, warm",
        ours=spread(durations).text(milliseconds),
    )


def _each(durations: Sequence[float], notes: int) -> str:
    return milliseconds(spread(durations).median / notes)


def _write(setting: Setting, memory: Memory, path: str, number: int, notes: int) -> None:
    """Write a note that differs from every one that stood there."""
    file = os.path.join(memory.vault.root, path)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    vaults.write(file, vaults.note(setting.seed + 1, number, notes))
