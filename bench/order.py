"""Duplicates: planted ones that are found, how long that takes, and proposals that people judged.

`python bench/order.py FOLDER…` judges trees of others, each in a folder named as in `order_labels.json`: the
first 30 proposals of each are compared with the labels there. A label says that both memories say the same
and that nothing is lost where the proposal is accepted. Of the trees of agents, four in five must be right;
of others, five proposals in 1,000 memories may be made. It ends with 1 where that is not so, or where a
proposal has no label.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import vaults
from machine import environment, installed
from table import Row, ratio_row
from timing import paired, program

from mdmem.conversations.observe.consolidation import draft_changes
from mdmem.facade.memory import Memory
from mdmem.memory.duplicates import ComparedMemories

if TYPE_CHECKING:
    import random

    from setting import Setting

_LABELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "order_labels.json")
_NOTES, _PLANTED, _FIRST = 10_000, 500, 30
_FOUND_LEAST, _RIGHT_LEAST, _OTHERS_MOST = 0.9, 0.8, 5 / 1000
_COLD_MOST, _CHECK_MOST, _PAIRS = 2.0, 1.5, 9
_INDEX = ".mdmem/local/index"
# The check as it is without a look at other memories.
_BEFORE = """
import sys
import mdmem.facade.questions.check as check
from mdmem.facade.memory import Memory
view = Memory._current_view
Memory._current_view = lambda self, *, texts=False: view(self)
check.find_repeats = lambda *_: iter(())
"""
_RUN = "import sys\nfrom mdmem.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"


def measure(setting: Setting) -> list[Row]:
    root, notes, planted = setting.path("order"), setting.count(_NOTES), setting.count(_PLANTED)
    vaults.make(root, notes, setting.seed)
    copies = plant(root, notes, planted, setting.seed, setting.chance("order"))
    memory = Memory(root)
    memory.sync()
    pairs = {frozenset(pair[:2]) for pair in memory.duplicates()}
    found = sum(frozenset(each) in pairs for each in copies.items())
    others = len(pairs) - found
    memory.index.close()
    environ, command = environment(), [installed("mdmem"), "--vault", root]

    def index(number: int) -> str:
        os.rename(os.path.join(root, _INDEX), f"{root} stale {number}")
        return program([*command, "index"], environ)(number)

    cold = paired(program([*command, "duplicates"], environ), index, setting.count(_PAIRS))
    checked = [sys.executable, "-c"], ["--vault", root, "check", next(iter(copies))]
    after, before = (program([*checked[0], each + _RUN, *checked[1]], environ) for each in ("", _BEFORE))
    return [
        Row(
            what=f"duplicates of {planted} planted in {notes:,} notes",
            ours=f"{found} found, {others} other pairs",
            beside="edited, with other links and new titles",
            budget=f"≥ {_FOUND_LEAST:.0%}",
            kept=found >= _FOUND_LEAST * planted,
        ),
        ratio_row(
            f"`mdmem duplicates` in {notes + planted:,} notes, whole process",
            "`mdmem index` from nothing",
            cold,
            _COLD_MOST,
        ),
        ratio_row(
            f"`mdmem check NOTE` in {notes + planted:,} notes, whole process",
            "without a look for what repeats it",
            paired(after, before, setting.count(_PAIRS)),
            _CHECK_MOST,
        ),
    ]


def plant(root: str, notes: int, count: int, seed: int, rng: random.Random) -> dict[str, str]:
    """Write copies of notes that differ as people's do; each by its path, with what it is a copy of."""
    copies = {}
    for number in rng.sample(range(notes), count):
        lines = vaults.note(seed, number, notes).splitlines()
        body = [
            n
            for n, line in enumerate(lines)
            if n > 6 and line and line[0] not in "#`[^-" and "](" not in line
        ]
        for at in rng.sample(body, min(2, len(body))):
            lines[at] = vaults.title(seed, notes + 2 * number + at)
        heading = vaults.title(seed, notes + number)
        lines = [f"title: {heading}" if line.startswith("title:") else line for line in lines]
        lines = [f"# {heading}" if line.startswith("# ") else line for line in lines]
        lines += ["", *(f"- [[{rng.randrange(notes):06}]]" for _ in range(rng.randint(1, 5)))]
        path = f"copies/{number:06}-copy.md"
        os.makedirs(os.path.join(root, "copies"), exist_ok=True)
        vaults.write(os.path.join(root, path), "\n".join(lines) + "\n")
        copies[path] = vaults.path(number)
    return copies


def propose(folder: str) -> tuple[int, int, list[dict[str, Any]]]:
    """How many memories a tree has, how many proposals are made of it, and the first ones."""
    memory = Memory(folder)
    compared = ComparedMemories(memory.plan._view(), datetime.now(UTC))  # noqa: SLF001 - as `consolidate` does
    drafts = draft_changes(compared, (), 10**6, None, (), "").proposed
    return len(compared.paths), len(drafts), [dict(each.arguments) for each in drafts[:_FIRST]]


def label_of(arguments: dict[str, Any]) -> str:
    named = sorted((arguments["old"], arguments["by"]) if "old" in arguments else arguments["paths"])
    return hashlib.sha256("\n".join(named).encode()).hexdigest()[:12]


def judge(folders: Sequence[str]) -> Iterator[bool]:
    """Print how many proposals of each tree are right, and yield whether each bound is kept."""
    with open(_LABELS, encoding="utf-8") as file:
        known = json.load(file)
    right = judged = 0
    for folder in folders:
        name = os.path.basename(os.path.normpath(folder))
        tree = known[name]
        memories, count, first = propose(folder)
        labels = [tree["right"].get(label_of(each)) for each in first]
        held = f"{sum(map(bool, labels))} of {len(first)} right"
        print(f"{name}: {memories:,} memories, {count} proposals, {held}")
        for each, label in zip(first, labels, strict=True):
            if label is None:
                print(f"  without a label: {label_of(each)} {each}")
        yield None not in labels
        if tree["kind"] == "agents":
            right, judged = right + sum(map(bool, labels)), judged + len(first)
        else:
            yield count <= _OTHERS_MOST * memories
    print(f"of agents: {right} of {judged} right")
    yield right >= _RIGHT_LEAST * judged


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Judge the proposals of trees of others.")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    return int(not all([*judge(parser.parse_args(arguments).folders)]))


if __name__ == "__main__":
    sys.exit(main())
