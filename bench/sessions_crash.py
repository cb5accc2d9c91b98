"""kill -9 at random instants, while a process changes a session in every way, again and again.

Every step is known from its number alone, and so is what the history holds after it. A process does one step
after the other and reports each that is done. After the kill the history must be that of the last step that
was reported, or of the one after it: no message lost, doubled or back, and no step done in part.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import vaults
from table import Row
from workers import kill_after

from mdmem.conversations.log import state
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from setting import Setting

    from mdmem.conversations.sessions import Sessions

_KILLS = 1000
_KILLS_OF_A_SESSION = 25
_LONGEST = 0.05  # seconds until a kill: a good many steps
_KEY = "a:session"
_SNAPSHOT_BYTES = 1_500  # instead of 256 KiB: a snapshot is due after every few steps
_PRESSED = 100  # tokens of a budget under which compacting gets no context of several messages


class _Step(NamedTuple):
    """A way to change a session: what does it, and what becomes of the history, both by the step's number."""

    do: Callable[[Sessions, int], object]
    then: Callable[[list[str], int], list[str]]


def _texts(number: int) -> list[str]:
    return [f"{number} {part} " + "word " * (number % 40) for part in range(1 + number % 4)]


def _messages(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in _texts(number)]


def _import(sessions: Sessions, number: int) -> None:
    """Take in a transcript of messages that are later than all others."""
    file = os.path.join(os.path.dirname(sessions.logs.vault.root), f"{number}.jsonl")
    at = f"{datetime(2100, 1, 1, tzinfo=UTC) + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}"
    with open(file, "w") as lines:
        lines.writelines(json.dumps({**each, "created_at": at}) + "\n" for each in _messages(number))
    took = sessions.import_("openai-messages", file, key=_KEY)
    assert not took.left_out, took
    os.remove(file)


_STEPS = (
    _Step(
        lambda sessions, number: sessions.add(_KEY, "user", _texts(number)[0]),
        lambda history, number: [*history, _texts(number)[0]],
    ),
    _Step(
        lambda sessions, number: sessions.extend(_KEY, _messages(number)),
        lambda history, number: [*history, *_texts(number)],
    ),
    _Step(
        lambda sessions, number: sessions.truncate(_KEY, number % 9),
        lambda history, number: history[-(number % 9) :] if number % 9 else [],
    ),
    _Step(
        lambda sessions, number: sessions.set_history(_KEY, _messages(number)),
        lambda _, number: _texts(number),
    ),
    _Step(lambda sessions, _: sessions.pop(_KEY), lambda history, _: history[:-1]),
    _Step(lambda sessions, _: sessions.vacuum(_KEY), lambda history, _: history),
    _Step(lambda sessions, number: sessions.compact(_KEY, number % _PRESSED), lambda history, _: history),
    _Step(_import, lambda history, number: [*history, *_texts(number)]),
)


class _Session:
    """A session in a fresh vault, and what its history must be after `number` steps."""

    def __init__(self, root: str, seed: str) -> None:
        self.root = root
        self.number, self.history = 0, list[str]()
        self._seed, self.summaries = seed, 0
        vaults.empty(root)

    def step(self, number: int) -> _Step:
        return random.Random(f"{self._seed} {number}").choice(_STEPS)

    def after(self, number: int) -> list[str]:
        """The history after the steps up to `number`."""
        history = self.history
        for each in range(self.number + 1, number + 1):
            history = self.step(each).then(history, each)
        return history

    def go_on(self, pipe: Connection) -> None:
        """What the process does that is killed."""
        state.SNAPSHOT_BYTES = _SNAPSHOT_BYTES
        sessions, number = Memory(self.root).sessions, self.number
        while True:
            number += 1
            self.step(number).do(sessions, number)
            pipe.send(number)

    def look(self, done: int) -> str:
        """What a new process finds after the step `done` was reported: before, after or between."""
        found = [message.text for message in Memory(self.root).sessions.history(_KEY)]
        if found not in (self.after(done), self.after(done + 1)):
            return "between"
        is_before = found == self.after(done)
        self.number, self.history = done + (not is_before), found
        return "before" if is_before else "after"

    def hidden(self) -> int:
        """How many files are left over, once a vacuum had something to do."""
        sessions = Memory(self.root).sessions
        sessions.add(_KEY, "user", "one to be popped")
        sessions.pop(_KEY)
        sessions.vacuum(_KEY)
        folder = os.path.join(self.root, "sessions")
        return sum(name.startswith(".") and name != ".archive" for name in os.listdir(folder))

    def findings(self) -> int:
        """How many lines, numbers, snapshots and summaries are wrong, besides what the kills tore."""
        sessions = Memory(self.root).sessions
        with sessions.logs.reading(_KEY) as conversation:
            context = list(conversation.state.context)
        self.summaries += len(context)
        opened = [(each, sessions.expand(_KEY, [each.seq], budget=10**9).messages) for each in context]
        apart = sum(
            len(messages) != each.messages or (messages[0].seq, messages[-1].seq) != (each.first, each.last)
            for each, messages in opened
        )
        return apart + sum(each.code != "not-a-record" for each in sessions.check(_KEY))


def measure(setting: Setting) -> list[Row]:
    chance, count = setting.chance("sessions-crash"), setting.count(_KILLS)
    counted: Counter[str] = Counter()
    session = _Session(setting.path("sessions-crash"), "0")
    for number in range(1, count + 1):
        outcome = session.look(kill_after(session.go_on, chance.uniform(0, _LONGEST), session.number))
        counted.update({outcome: 1, "findings": session.findings(), "hidden": session.hidden()})
        if number % _KILLS_OF_A_SESSION == 0 or outcome == "between":
            counted.update({"steps": session.number, "summaries": session.summaries})
            session = _Session(session.root, str(number))
    counted.update({"steps": session.number, "summaries": session.summaries})
    wrong = [counted[name] for name in ("between", "findings", "hidden")]
    return [
        Row(
            what=f"kill -9 while a session is changed in every way, {count:,} times",
            ours=f"{wrong[0]} histories in between, {wrong[1]} findings of `check`, {wrong[2]} hidden files",
            beside=f"{counted['steps']:,} steps, {counted['summaries']:,} summaries opened; "
            f"{counted['before']} histories were as after the last step that was reported, "
            f"{counted['after']} as after the next one",
            budget="0, 0, 0",
            kept=not any(wrong),
        )
    ]
