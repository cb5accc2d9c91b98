"""kill -9 at random instants, while a process merges memories and accepts what is proposed of them.

After the kill, and once the vault is opened again, each pair is as it was before or as it is afterwards: the
old memory is superseded and the other one holds what it says, or both have the bytes that they had.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import vaults
from table import Row
from workers import kill_after

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from setting import Setting

_KILLS, _PAIRS = 500, 40
_LONGEST = 0.5  # seconds until a kill: some of the pairs
_LINES = "".join(f"Line {n} of part {{0}} says that its limit is {n} times {{0}}.\n\n" for n in range(8))


def _texts(number: int) -> tuple[str, str]:
    text = f"# Part {number}\n\n{_LINES.format(number)}"
    return text, text + (f"\nMore of part {number}.\n" if number % 2 else "")


class _Pairs:
    """Pairs of memories of which the odd ones are merged, and the even ones accepted as proposed."""

    def __init__(self, root: str) -> None:
        self.root = vaults.empty(root)
        memory = Memory(root)
        for number in range(_PAIRS):
            for name, text in zip("ab", _texts(number), strict=True):
                memory.write(f"notes/{number}-{name}.md", text)

    def go_on(self, pipe: Connection) -> None:
        """What the process does that is killed."""
        memory = Memory(self.root)
        done = {path for path in memory.states() if path.endswith("-a.md")}
        for number in (each for each in range(_PAIRS) if f"notes/{each}-a.md" not in done):
            if number % 2:
                memory.merge([f"notes/{number}-a.md", f"notes/{number}-b.md"], f"notes/{number}-b.md")
            else:
                memory.inbox.propose(
                    "supersede", {"old": f"notes/{number}-a.md", "by": f"notes/{number}-b.md"}
                )
                memory.inbox.accept(memory.inbox.list()[0].id)
            pipe.send(number)

    def look(self, done: int) -> Counter[str]:
        """What is wrong with what a new process finds after the pair `done` was reported."""
        memory, wrong = Memory(self.root), Counter[str]()
        states = memory.states()
        for number in range(_PAIRS):
            a, b = (memory.show(f"notes/{number}-{name}.md") for name in "ab")
            is_ended = f"notes/{number}-a.md" in states
            wrong["lost"] += number <= done and not is_ended
            wrong["between"] += not is_ended and (a.text, b.text) != _texts(number)
            wrong["between"] += is_ended and number % 2 == 1 and b.fields.get("derived_from") != [a.path]
        waiting = [each for each in memory.inbox.list() if str(each.arguments["old"]) in states]
        wrong["between"] += len(waiting)
        wrong["findings"] += sum(each.severity == "error" for each in memory.check())
        return wrong


def measure(setting: Setting) -> list[Row]:
    chance, count = setting.chance("order-crash"), setting.count(_KILLS)
    counted, pairs, done = Counter[str](), _Pairs(setting.path("order-crash")), -1
    for _ in range(count):
        before, done = done, kill_after(pairs.go_on, chance.uniform(0, _LONGEST), done)
        counted += pairs.look(done)
        counted["done"] += done - before
        if done == _PAIRS - 1:
            pairs, done = _Pairs(setting.path("order-crash")), -1
    wrong = [counted[name] for name in ("lost", "between", "findings")]
    return [
        Row(
            what=f"kill -9 while memories are merged and proposals accepted, {count:,} times",
            ours=f"{wrong[0]} changes lost, {wrong[1]} vaults in between, {wrong[2]} findings",
            beside=f"{counted['done']:,} changes were reported",
            budget="0, 0, 0",
            kept=not any(wrong),
        )
    ]
