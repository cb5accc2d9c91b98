"""Ranked search: warm, beside raw FTS5 and raw tantivy with the same words, and as a whole process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import floors
import vaults
from machine import environment, installed
from percentiles import Percentiles, clock, percentiles
from table import Row, milliseconds, ratio_row
from timing import nothing, paired, program
from watcher import Watching

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from setting import Setting

MOST_P95 = {10_000: 0.005, 100_000: 0.015}
_MOST_PROCESS = 12  # times as long as Python takes to do nothing
_NOTES = 10_000
_QUERIES = 200
_PROCESSES = 20


def measure(setting: Setting) -> list[Row]:
    notes = setting.count(_NOTES)
    root = setting.path("ranked")
    vaults.make(root, notes, setting.seed)
    Memory(root).sync()
    return rows_of(setting, root, notes, MOST_P95[_NOTES])


def rows_of(setting: Setting, root: str, notes: int, most: float) -> list[Row]:
    """Every row about ranked search in a vault that has been indexed; `most` seconds for a warm one."""
    questions = vaults.queries(setting.seed, setting.count(_QUERIES))
    return [_warm(root, notes, questions, most), _process(setting, root, notes, questions)]


def _warm(root: str, notes: int, questions: list[str], most: float) -> Row:
    """Every question once before it is timed; the process watches the vault."""
    memory = Memory(root)
    texts = f"{root} texts"
    floors.index(root, texts)
    fts5, raw = floors.Fts5(texts), floors.Tantivy(root, f"{root} tantivy")
    alone = _asked(lambda question: memory.search(question, limit=floors.LIMIT), questions)
    with Watching(memory):
        ours = _asked(lambda question: memory.search(question, limit=floors.LIMIT), questions)
    beside = {"FTS5": _asked(fts5.search, questions), "tantivy": _asked(raw.search, questions)}
    return Row(
        what=f"ranked search in {notes:,} notes, warm, {len(questions)} questions",
        ours=f"{ours.text()}; without a watcher, each after a sync: {alone.text()}",
        beside="; ".join(f"{name}, words joined by OR: {found.text()}" for name, found in beside.items()),
        budget=f"p95 ≤ {milliseconds(most)}",
        kept=ours.p95 <= most,
    )


def _asked(ask: floors.Ask, questions: list[str]) -> Percentiles:
    for question in questions:
        ask(question)
    return percentiles(clock(partial(ask, question)) for question in questions)


def _process(setting: Setting, root: str, notes: int, questions: list[str]) -> Row:
    """`mdmem search` from its start to its end, a question that finds something each time."""
    command = [installed("mdmem"), "--vault", root, "search"]
    asked = [question for question in questions if question.isascii()][: setting.count(_PROCESSES)]
    limited = ["--limit", str(floors.LIMIT), "--json"]
    ours = [program([*command, *limited, question], environment()) for question in asked]
    pairs = paired(lambda number: ours[number % len(ours)](number), nothing(), len(ours))
    what = f"`mdmem search` in {notes:,} notes, index current, whole process"
    return ratio_row(what, "`python -c pass`", pairs, _MOST_PROCESS if notes <= _NOTES else None)
