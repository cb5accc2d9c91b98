"""Results: an output of 1 MB, compressed and kept; and kill -9 at random instants while outputs are kept.

Each step stores an output that is known from its number alone, new or of a step before; a small bound sweeps
old ones. After the kill, each output whose step was reported comes back byte for byte or was swept, nothing
is kept that no step has stored, and what an output names is there with it.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections import Counter
from glob import glob
from typing import TYPE_CHECKING

import vaults
from table import Row, difference_row
from timing import Paired, paired
from workers import kill_after

from mdmem.document.document import digest
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from setting import Setting

_MEGABYTE, _PAIRS, _TIMES, _MORE = 1_000_000, 40, 2, 0.020
_KILLS, _KILLS_OF_A_VAULT, _LONGEST = 1_000, 10, 0.2
_MOST_BYTES = 400_000
_CONFIG = f"[results]\nmax_bytes = {_MOST_BYTES}\n"
_AFTERWARDS = b"x" * 3_000


def measure(setting: Setting) -> list[Row]:
    return [storing(setting), killed(setting, setting.count(_KILLS))]


# -- storing ------------------------------------------------------------------------------------------------


def _log(number: int, size: int) -> str:
    """What a build prints: an error here and there, files, and a URL."""
    chance = random.Random(number)
    lines, written = list[str](), 0
    while written < size:
        step = len(lines)
        line = (
            f"[{step:05}] compiling src/part_{chance.randrange(200)}/unit_{chance.randrange(50)}.c -O2 -Wall"
        )
        if chance.random() < 0.005:
            line = f"src/part_{step % 200}/unit.c:{step}: error: undefined symbol f_{chance.random()}"
        lines.append(line)
        written += len(line) + 1
    return "\n".join(lines)


def storing(setting: Setting) -> Row:
    root = vaults.empty(setting.path("results-storing"), _CONFIG)
    results, count = Memory(root).results, setting.count(_PAIRS)
    outputs = [_log(number, _MEGABYTE) for number in range(count + 5)]

    def write(number: int) -> None:
        path = os.path.join(root, f"plain {number}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, outputs[number].encode())
        os.fsync(descriptor)
        os.close(descriptor)

    pairs = paired(lambda number: results.compress("Bash", outputs[number]), write, count, warm=5)
    many = Paired(ours=pairs.ours, theirs=[_TIMES * each for each in pairs.theirs])
    return difference_row(
        "compress and keep an output of 1 MB", f"{_TIMES} times write and fsync it", many, _MORE
    )


# -- kills --------------------------------------------------------------------------------------------------


def output_of(number: int) -> bytes:
    """The output that a step stores: every third one again what an earlier step has stored."""
    number = _named(number)
    return f"file_{number}.py:{number}: ".encode() + random.Random(number).randbytes(
        3_000 + 997 * (number % 40)
    )


class _Steps:
    """A vault in which results are stored, step by step."""

    def __init__(self, root: str) -> None:
        self.root = vaults.empty(root, _CONFIG)
        self.number = 0

    def go_on(self, pipe: Connection) -> None:
        """What the process does that is killed."""
        results, number = Memory(self.root).results, self.number
        while True:
            number += 1
            results.compress("Bash", output_of(number), session=f"s{number % 3}")
            pipe.send(number)

    def look(self, done: int) -> Counter[str]:
        """What is wrong in the vault after the step `done` was reported."""
        results = Memory(self.root).results
        found: Counter[str] = Counter()
        last = done + 1
        known = {digest(_AFTERWARDS): _AFTERWARDS}
        known |= {digest(each): each for each in map(output_of, range(1, last + 1))}
        for number in range(max(1, done - 30), done + 1):
            told = results.can_recover(digest(output_of(number)))
            found["lost"] += not (told.recoverable or told.gone)
        kept = results.list()
        for each in {each.hash for each in kept}:
            found["wrong"] += each not in known or not results.can_recover(each)
        for each in [each.hash for each in kept][-2:]:
            found["wrong"] += results.recover(each) != known[each]
        found["doubled"] += len(kept) - len({(each.hash, each.session) for each in kept})
        found["too much"] += sum({each.hash: each.size for each in kept}.values()) > _MOST_BYTES
        named = {each.value for each in results.references("file_path")}
        newest = range(max(1, done - 5), done + 1)
        found["unnamed"] += sum(f"file_{_named(number)}.py" not in named for number in newest)
        found["files"] += _unsound(self.root)
        if digest(output_of(last)) in {each.hash for each in kept} and f"file_{_named(last)}.py" not in named:
            found["half"] += 1
        self.number = done
        return found


def _named(number: int) -> int:
    return number - (number % 3 and number % 2)


def _unsound(root: str) -> int:
    """How many databases are not sound, or were put aside, once one more result is stored."""
    Memory(root).results.compress("Bash", _AFTERWARDS)
    aside = glob(os.path.join(root, ".mdmem/local/results/*/*.damaged"))
    aside += glob(os.path.join(root, ".mdmem/local/results/*/*.new*"))
    (file,) = glob(os.path.join(root, ".mdmem/local/results/*/results.sqlite"))
    connection = sqlite3.connect(file)
    try:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        counted = connection.execute("SELECT value FROM counts").fetchone()[0]
        total = connection.execute("SELECT coalesce(sum(size), 0) FROM outputs").fetchone()[0]
        loose = connection.execute("SELECT count(*) FROM stored WHERE output NOT IN (SELECT id FROM outputs)")
        wrong: int = len(aside) + (not sound) + (counted != total) + loose.fetchone()[0]
        return wrong
    finally:
        connection.close()


def killed(setting: Setting, kills: int) -> Row:
    """A row about so many kills while results are stored: nothing lost, doubled or stored in part."""
    chance = setting.chance("results-killed")
    counted: Counter[str] = Counter()
    steps, done = _Steps(setting.path("results-killed")), 0
    for number in range(1, kills + 1):
        counted += steps.look(kill_after(steps.go_on, chance.uniform(0, _LONGEST), steps.number))
        if number % _KILLS_OF_A_VAULT == 0:
            done += steps.number
            steps = _Steps(steps.root)
    wrong = {name: count for name, count in counted.items() if count}
    return Row(
        what=f"kill -9 while outputs of tools are kept, {kills:,} times",
        ours=", ".join(f"{count} {name}" for name, count in wrong.items())
        or "nothing lost, doubled or half done",
        beside=f"{done + steps.number:,} outputs stored",
        budget="nothing",
        kept=not wrong,
    )
