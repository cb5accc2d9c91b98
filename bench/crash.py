"""kill -9 at random instants, while a process changes one file, or twenty together, again and again.

The files of a vault hold the number of the generation that they belong to. A process makes one generation of
all files after the other, each with one plan, and reports each that is done. After the kill the vault is
opened: every file must be of one generation, the last one that was reported or the one after it.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import vaults
from table import Row, milliseconds
from workers import Worker, kill_after

from mdmem.facade.memory import Memory
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from setting import Setting

_KILLS = 1000
_KILLS_OF_A_VAULT = 50  # then `doctor` looks it over, and a fresh one is made: a trash of thousands slows all
_SIZES = (1, 20)
_TIMED = 15
_BEYOND = 1.2  # some plans take longer than the median: their ends must be hit as well
_STAGING = ".mdmem/local/staging"
_EXPECTED = re.compile(
    r"notes/[0-9]+\.md|\.mdmem/config\.toml|\.mdmem/local/(?:\.gitignore|lock|trash\.size|trash/(?:log\.jsonl|[0-9a-f]{64}))"
)


class _Vault:
    """A fresh vault of `size` files, at generation 1, and the object that has written it."""

    def __init__(self, root: str, size: int) -> None:
        self.root = root
        self.size = size
        self.generation = 1
        vaults.empty(root)
        os.makedirs(os.path.join(root, "notes"))
        for number in range(size):
            with open(os.path.join(root, _name(number)), "wb") as file:
                file.write(_content(number, 0))
        self._memory = Memory(root)
        self.advance(1)

    def advance(self, generation: int) -> None:
        """Make all files those of `generation`, by one plan."""
        documents = [self._memory.show(_name(number)) for number in range(self.size)]
        changes = (
            Change(path=document.path, before=document, content=_content(number, generation))
            for number, document in enumerate(documents)
        )
        self._memory.apply(EditPlan(changes=tuple(changes), message=f"generation {generation}"))

    def make_generations(self, pipe: Connection) -> None:
        """What the process does that is killed."""
        generation = self.generation
        while True:
            generation += 1
            self.advance(generation)
            pipe.send(generation)

    def make_one(self, pipe: Connection) -> None:
        """Make one generation, and report how many seconds that took."""
        start = time.perf_counter()
        self.advance(self.generation + 1)
        pipe.send(time.perf_counter() - start)

    def is_of(self, generation: int) -> bool:
        """Whether every file is exactly that of `generation`."""
        return all(
            _read(os.path.join(self.root, _name(number))) == _content(number, generation)
            for number in range(self.size)
        )

    def is_amid(self) -> bool:
        """Whether a plan has begun and not ended."""
        return bool(os.listdir(os.path.join(self.root, _STAGING)))

    def unexpected(self) -> list[str]:
        """Every file that is neither a memory nor the bookkeeping of a vault at rest."""
        found = (os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names)
        return [path for path in found if not _EXPECTED.fullmatch(os.path.relpath(path, self.root))]

    def findings(self) -> int:
        """How many findings `doctor` has."""
        return len(Memory(self.root).doctor().findings)


def measure(setting: Setting) -> list[Row]:
    return [_kills(setting, size) for size in _SIZES]


def _kills(setting: Setting, size: int) -> Row:
    chance = setting.chance(f"crash {size}")
    root, count = setting.path(f"crash {size}"), setting.count(_KILLS)
    duration = _duration(root, size)
    seen: Counter[str] = Counter()
    vault = _Vault(root, size)
    for number in range(1, count + 1):
        found = _kill(vault, chance.uniform(0, duration * _BEYOND))
        seen.update(found)
        if number % _KILLS_OF_A_VAULT == 0 or number == count or found["between"]:
            seen["findings"] += vault.findings()
            vault = _Vault(root, size)
    return Row(
        what=f"kill -9 while a plan of {size} file{'s' if size > 1 else ''} is applied, {count:,} times",
        ours=f"{seen['between']} vaults in between, {seen['temporary']} temporary files, "
        f"{seen['findings']} findings of `doctor`",
        beside=f"{seen['amid']} kills came amid a plan; {seen['before']} vaults were as before it, "
        f"{seen['after']} as after it; a plan took {milliseconds(duration)}",
        budget="0, 0, 0",
        kept=not (seen["between"] or seen["temporary"] or seen["findings"]),
    )


def _duration(root: str, size: int) -> float:
    """How many seconds a process that was just forked takes for one generation."""
    vault = _Vault(root, size)
    durations = []
    for _ in range(_TIMED):
        worker = Worker(vault.make_one)
        worker.go()
        durations += [report for report in worker.wait() if isinstance(report, float)]
        vault.generation += 1
    return median(durations)


def _kill(vault: _Vault, pause: float) -> Counter[str]:
    """Kill a process `pause` seconds after it began to make generations, open the vault, and look at it."""
    done = kill_after(vault.make_generations, pause, vault.generation)
    amid = vault.is_amid()
    Memory(vault.root).ls()  # the next command, whichever it is
    state = "before" if vault.is_of(done) else "after" if vault.is_of(done + 1) else "between"
    vault.generation = done + (state == "after")
    return Counter({state: 1, "amid": amid, "temporary": len(vault.unexpected())})


def _name(number: int) -> str:
    return f"notes/{number}.md"


def _content(number: int, generation: int) -> bytes:
    return f"---\ntitle: File {number}\n---\n\n# Generation\n\n{generation}\n".encode()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
