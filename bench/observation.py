"""Observation: what it costs, and what a kill at any instant leaves.

A process adds messages, observes, reflects and compacts, and is killed at a random moment, again and again.
After each kill every message that was said must be there; once the rest is observed, each in one observation,
and each observation in one reflection at most.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import vaults
from machine import environment, installed
from percentiles import clock
from sessions import write_log
from table import Row, ratio_row
from timing import Paired, nothing, paired, program
from workers import kill_after

from mdmem.conversations.log.record import LogRecord
from mdmem.conversations.observe.observations import CURSOR
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from setting import Setting

    from mdmem.conversations.log.conversation import Conversation
    from mdmem.conversations.sessions import Sessions

_KEY = "s"
_KILLS, _KILLS_OF_A_VAULT, _LONGEST = 1000, 20, 0.08  # the last is seconds until a kill
_CONFIG = "[observation]\nmessage_tokens = 150\nobservation_tokens = 200\nmeta_at = 2\ncompact = true\n"
_TIMES, _SLOWER = 40, 3.0
_FEW, _MANY, _LONGER = 1_000, 1_000_000, 2.0
_LITTLE, _MUCH, _CONTEXT = 20, 1_000, 1.3
_HOOK, _HOOKS = 14.0, 30
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SAID = (
    "We decided on part {0} of the plan, since {1} takes less time. I will write src/part{0}.py on Friday, "
    "and ask Ann about {1}. What is open is the index: nobody knows yet how large it gets with {0} files."
)


def measure(setting: Setting) -> list[Row]:
    return [*crash(setting), _observe(setting), _due(setting), _context(setting), _hook(setting)]


def _messages(first: int, count: int) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    words = ("reading", "hashing", "walking", "locking", "sorting")
    return [
        {"role": roles[number % 2], "content": f"{number}: {_SAID.format(number, words[number % 5])}"}
        for number in range(first, first + count)
    ]


def _model(*_: object) -> str:
    return "They talked about parts of it, and decided on some."


# -- kills ------------------------------------------------------------------------------------------------


def _go_on(root: str, start: int) -> Callable[[Connection], None]:
    """What the process does that is killed; it tells of each message that is said."""

    def work(pipe: Connection) -> None:
        memory, number = Memory(root), start
        while True:
            count = 1 + number % 5
            memory.sessions.extend(_KEY, _messages(number, count))
            number += count
            pipe.send(number)
            for told in memory.observe(_KEY, generator=_model):
                if told.problems:
                    raise RuntimeError(told.problems)

    return work


def _wrong(memory: Memory, said: int) -> Counter[str]:
    """What is lost, doubled or passed over."""
    history = memory.sessions.history(_KEY)
    numbers = [int(message.text.partition(":")[0]) for message in history]
    lost = max(0, said - len(numbers)) + (numbers != list(range(len(numbers))))
    before = memory.observations.list(_KEY)
    memory.observations.observe(_KEY)
    found = memory.observations.list(_KEY)
    held = [sum(each.first <= message.seq <= each.last for each in found) for message in history]
    named = [path for each in memory.observations.reflections(_KEY) for path in each.derived_from]
    doubled = (
        len(named) - len(set(named)) + sum(count > 1 for count in held) + (found[: len(before)] != before)
    )
    broken = sum(each.severity == "error" for each in memory.check())
    return Counter(lost=lost, doubled=doubled, skipped=held.count(0), broken=broken)


def crash(setting: Setting) -> list[Row]:
    chance, count = setting.chance("observation"), setting.count(_KILLS)
    root, said, wrong, made = setting.path("crash"), 0, Counter[str](), 0
    for number in range(count):
        if number % _KILLS_OF_A_VAULT == 0:
            vaults.empty(root, _CONFIG)
            said = 0
        said = kill_after(_go_on(root, said), chance.uniform(0, _LONGEST), said)
        memory = Memory(root)
        wrong += _wrong(memory, said) if memory.sessions.history(_KEY, limit=1) else Counter()
        said = len(memory.sessions.history(_KEY))
        if number % _KILLS_OF_A_VAULT == _KILLS_OF_A_VAULT - 1:
            made += len(memory.observations.list(_KEY)) + len(memory.observations.reflections(_KEY))
    told = ", ".join(f"{wrong[name]} {name}" for name in ("lost", "doubled", "skipped", "broken"))
    what = f"kill -9 while a session is observed and reflected on, {count:,} times"
    beside = f"about {made:,} observations and reflections"
    return [Row(what=what, ours=told, beside=beside, budget="0, 0, 0, 0", kept=not wrong.total())]


# -- time -------------------------------------------------------------------------------------------------


def _observe(setting: Setting) -> Row:
    """Observing what was said, beside reading it from the log, splitting it into words, and two writes."""
    memory = Memory(vaults.empty(setting.path("observe")))
    plain = setting.path("plain")
    os.makedirs(plain)
    mine, theirs = [], []
    for number in range(setting.count(_TIMES)):
        seen = max((message.seq for message in memory.sessions.history(_KEY, limit=1)), default=0)
        for message in _messages(100 * number, 100):
            memory.sessions.add_message(_KEY, message)
        mine.append(clock(lambda: memory.observations.observe(_KEY)))
        read = clock(partial(_read, memory.sessions, seen))
        theirs.append(_SLOWER * read + clock(partial(_write, plain, number)))
    assert len(memory.observations.list(_KEY)) == len(mine)
    pairs = Paired(ours=mine[1:], theirs=theirs[1:])
    what = "observe 100 messages, about 6,000 tokens, without a model"
    beside = f"{_SLOWER:g} times decode and split into words, and two durable writes"
    return ratio_row(what, beside, pairs, 1.0)


def _read(sessions: Sessions, since: int) -> None:
    for message in sessions.history(_KEY, after=since):
        _WORD.findall(message.text)


def _write(folder: str, number: int) -> None:
    """Two files of the size of an observation, each written aside, flushed and renamed."""
    for each in range(2):
        path = os.path.join(folder, f"{number}-{each}")
        with open(f"{path}.new", "wb") as file:
            file.write(b"x" * 500)
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{path}.new", path)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _all_but(last: int, conversation: Conversation) -> tuple[LogRecord, None]:
    """The record that says that all but the last messages were observed."""
    return LogRecord(seq=0, cursors={CURSOR: conversation.state.seq - last}), None


def _due(setting: Setting) -> Row:
    few, many = setting.count(_FEW), setting.count(_MANY)
    roots = {number: setting.path(f"due {number}") for number in (few, many)}
    for number, root in roots.items():
        write_log(root, number)
        memory = Memory(root)
        # Observed but for the last few, and not due; each process reads the log anew.
        memory.sessions.logs.commit(_KEY, partial(_all_but, 20))
        assert memory.observations.due(_KEY) == ()

    def side(root: str) -> Callable[[int], object]:
        return lambda _: Memory(root).observations.due(_KEY)

    pairs = paired(side(roots[many]), side(roots[few]), setting.count(200), warm=5)
    return ratio_row(f"`due` of {many:,} messages, read anew", f"of {few:,}", pairs, _LONGER)


def _context(setting: Setting) -> Row:
    little, much = setting.count(_LITTLE), setting.count(_MUCH)
    sides = {}
    for count in (little, much):
        memory = Memory(vaults.empty(setting.path(f"context {count}")))
        for number in range(count):
            memory.sessions.extend(_KEY, _messages(3 * number, 3))
            memory.observations.observe(_KEY)
            if number % 20 == 19:
                memory.observations.reflect(_KEY, generator=_model)
        memory.sync()
        memory.index.close()
        command = [installed("mdmem"), "--vault", memory.root, "context", "--thread", _KEY]
        sides[count] = program(command, environment())
        assert "## Conversation memory" in sides[count](0)
    pairs = paired(sides[much], sides[little], setting.count(_HOOKS), warm=2)
    what = f"`mdmem context --thread` with {much:,} observations, whole process"
    return ratio_row(what, f"with {little:,}", pairs, _CONTEXT)


def _hook(setting: Setting) -> Row:
    """A turn ends, its conversation is due, and a process that observes it is started each time."""
    root = vaults.empty(setting.path("hook"), "[observation]\nenabled = true\n")
    memory, given = Memory(root), '{"session_id": "s", "stop_hook_active": false}'
    memory.sessions.allow_capture()
    passing = nothing()
    command = [installed("mdmem"), "--vault", root, "hook", "stop"]
    mine, theirs = [], []
    for number in range(setting.count(_HOOKS)):
        memory.sessions.extend(_KEY, _messages(100 * number, 100))
        start = time.perf_counter()
        subprocess.run(command, env=environment(), input=given, text=True, capture_output=True, check=True)
        mine.append(time.perf_counter() - start)
        while memory.observations.due(_KEY):
            time.sleep(0.01)
        time.sleep(0.1)
        start = time.perf_counter()
        passing(0)
        theirs.append(time.perf_counter() - start)
    assert len(memory.observations.list(_KEY)) == len(mine)
    return ratio_row(
        "`mdmem hook stop` that starts an observer, whole process",
        "`python -c pass`",
        Paired(ours=mine, theirs=theirs),
        _HOOK,
    )
