"""kill -9 at random instants, while a process captures what is said, and accepts what that proposes.

Each message has its number. After the kill, and once what came last is captured, every message that states
something must stand in the memory exactly once, be it as the source of a proposal, of a bullet or of a
preference; and each decision in one place: the inbox before it is accepted, the note behind it.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import vaults
from table import Row
from workers import kill_after

from mdmem.document.source import said_in
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from setting import Setting

_KILLS = 1000
_KILLS_OF_A_VAULT = 20
_LONGEST = 0.15  # seconds until a kill: several steps
_KEY = "t"
_DECISIONS = "notes/decisions.md"


def _text(number: int) -> str:
    """What message `number` says: a decision, the same again, a wish, or nothing to keep."""
    named = number if number % 4 == 1 else number - 1
    decided = f"We decided to use the tool{named} for the part{named}."
    return {0: "Thanks.", 3: "I prefer dark mode."}.get(number % 4, decided)


class _Inbox:
    """A session in a fresh vault, what was captured from it, and what was accepted."""

    def __init__(self, root: str, seed: str) -> None:
        self.root = root
        self._seed = seed
        vaults.empty(root, '[capture]\npolicy = "inbox"\nmax_open = 100000\n')

    def go_on(self, pipe: Connection) -> None:
        """What the process does that is killed."""
        memory = Memory(self.root)
        number = self.numbers(memory)
        chance = random.Random(f"{self._seed} {number}")
        while True:
            number += 1
            memory.sessions.add_message(_KEY, {"id": str(number), "role": "user", "content": _text(number)})
            memory.capture.run(_KEY)
            waiting = memory.inbox.list()
            if waiting and chance.random() < 0.7:
                memory.inbox.accept(chance.choice(waiting).id)
            pipe.send(number)

    def numbers(self, memory: Memory) -> int:
        """How many messages there are; each one has its number as its id."""
        last = memory.sessions.history(_KEY, limit=1)
        return int(last[0].id) if last else 0

    def look(self, done: int) -> Counter[str]:
        """What is wrong with what a new process finds after the message `done` was reported."""
        memory = Memory(self.root)
        wrong: Counter[str] = Counter()
        before = Counter(place for _, place in self.places(memory))
        wrong["doubled"] += sum(count > 1 for count in before.values())
        memory.capture.run(_KEY)
        stated = {m.seq for m in memory.sessions.history(_KEY) if int(m.id) % 4}
        found = Counter(source for source, _ in self.sources(memory))
        wrong["lost"] += len({f"sessions/{_KEY}#{seq}" for seq in stated} - found.keys())
        wrong["lost"] += max(0, done - self.numbers(memory))
        wrong["doubled"] += sum(count > 1 for count in found.values())
        places = Counter(place for _, place in self.places(memory))
        wrong["doubled"] += sum(count > 1 for count in places.values())
        wrong["findings"] += sum(each.severity == "error" for each in memory.check())
        wrong["findings"] += len(memory.sessions.check(_KEY))
        return wrong

    def places(self, memory: Memory) -> Iterator[tuple[str, str]]:
        """Each decision that stands somewhere: where, and what it says."""
        for proposal in memory.inbox.list(all=True):
            text = proposal.arguments.get("text")
            if isinstance(text, str):
                yield proposal.path, said_in(text)[0]
        for line in self.lines(memory):
            yield _DECISIONS, said_in(line)[0]

    def sources(self, memory: Memory) -> Iterator[tuple[str, str]]:
        """Each message that is named somewhere: which one, and where."""
        for proposal in memory.inbox.list(all=True):
            yield from ((source, proposal.path) for source in proposal.sources)
        for line in self.lines(memory):
            yield from ((source, _DECISIONS) for source in said_in(line)[1])
        for preference in memory.preferences.list():
            source = memory.show(preference.path).fields["source"]
            yield from ((each, preference.path) for each in source["ids"])

    def lines(self, memory: Memory) -> list[str]:
        return memory.show(_DECISIONS).text.splitlines() if memory.exists(_DECISIONS) else []


def measure(setting: Setting) -> list[Row]:
    chance, count = setting.chance("inbox-crash"), setting.count(_KILLS)
    counted: Counter[str] = Counter()
    inbox = _Inbox(setting.path("inbox-crash"), "0")
    for number in range(1, count + 1):
        counted += inbox.look(kill_after(inbox.go_on, chance.uniform(0, _LONGEST), 0))
        if number % _KILLS_OF_A_VAULT == 0 or number == count:
            memory = Memory(inbox.root)
            counted["messages"] += inbox.numbers(memory)
            counted["accepted"] += len(inbox.lines(memory))
            inbox = _Inbox(inbox.root, str(number))
    wrong = [counted[name] for name in ("lost", "doubled", "findings")]
    return [
        Row(
            what=f"kill -9 while messages are captured and proposals accepted, {count:,} times",
            ours=f"{wrong[0]} messages lost, {wrong[1]} counted or standing twice, {wrong[2]} findings",
            beside=f"{counted['messages']:,} messages, of which three in four state something; "
            f"{counted['accepted']:,} decisions accepted",
            budget="0, 0, 0",
            kept=not any(wrong),
        )
    ]
