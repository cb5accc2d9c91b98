"""Sessions: many writers of one log, one more message, and the end of a conversation of any length."""

from __future__ import annotations

import os
import sys
import time
from itertools import count
from typing import TYPE_CHECKING

import finding
import vaults
from machine import environment, installed
from table import Row, difference_row, milliseconds, ratio, ratio_row, seconds
from timing import Paired, paired, program, spread
from workers import Worker

from mdmem.conversations.log.record import LogHeader, LogRecord, write_header, write_record
from mdmem.conversations.log.state import SNAPSHOT_BYTES, State
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from setting import Setting

_KEY = "s"
_WRITERS, _EACH, _ROUNDS = 8, 500, 5
_MANY_TIMES = 2.5
_PAIRS, _MORE = 400, 0.001
_FEW, _LARGE, _LAST = 1_000, 1_000_000, 50
_LONGER, _MORE_MEMORY = 1.5, 20e6
_FILLED, _BUDGET, _AT_MOST = 100_000, 8_000, 2.0
_NOTES, _SESSIONS, _SPOKEN = 200, 1_000, 20
_BESIDE_MOST, _BESIDE_MORE = 1.05, 0.005
_SAID = "A sentence of a conversation, about one thing or another, as long as most of them are."
_HISTORY = """
import sys, mdmem
assert len(mdmem.open(sys.argv[1]).sessions.history("s", limit=50)) == 50
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measure(setting: Setting) -> list[Row]:
    own = [_writers(setting), _append(setting), *_history(setting), _assemble(setting), *_beside(setting)]
    return [*own, *finding.measure(setting)]


def _vault(root: str) -> str:
    os.makedirs(os.path.join(vaults.empty(root), "sessions"))
    return root


def write_log(root: str, messages: int) -> None:
    """Make a vault with a session of so many messages, as a process would that adds one after the other."""
    header, line = LogHeader("0123456789abcdef", _KEY), b""
    state, size = State.of(header), 0
    with open(os.path.join(_vault(root), "sessions", f"{_KEY}.jsonl"), "wb") as file:
        size += file.write(write_header(header) + b"\n")
        for number in range(messages):
            data = {"role": ("user", "assistant")[number % 2], "content": f"{number}: {_SAID}"}
            at = "2026-05-04T03:02:01.000Z"
            record = LogRecord(seq=state.seq + 1, at=at, messages=(data,))
            line = write_record(record)
            size += file.write(line + b"\n")
            state.take(record, len(line) + 1)
            if state.grown >= SNAPSHOT_BYTES and state.wants_snapshot:
                snapshot = state.snapshot._replace(start=size)
                record = LogRecord(seq=state.seq + 1, at=at, snapshot=snapshot)
                line = write_record(record)
                size += file.write(line + b"\n")
                state.take(record, len(line) + 1)


def _writers(setting: Setting) -> Row:
    """Eight processes at once, beside as many writes and flushes of the same file in one."""
    each, rounds = setting.count(_EACH), setting.count(_ROUNDS)
    ours, theirs, kept = [], [], 0
    for number in range(rounds):
        root = _vault(setting.path(f"writers {number}"))

        def write(pipe: Connection, root: str = root) -> None:
            sessions = Memory(root).sessions
            for _ in range(each):
                sessions.add(_KEY, "user", _SAID)
            pipe.send("done")

        workers = [Worker(write) for _ in range(_WRITERS)]
        start = time.perf_counter()
        for worker in workers:
            worker.go()
        for worker in workers:
            worker.wait()
        ours.append(time.perf_counter() - start)
        kept += len(Memory(root).sessions.history(_KEY))
        start = time.perf_counter()
        flushed = _Flushed(setting.path(f"plain {number}"))
        for _ in range(_WRITERS * each):
            flushed.add()
        theirs.append(time.perf_counter() - start)
    pairs, wanted = Paired(ours=ours, theirs=theirs), rounds * _WRITERS * each
    return Row(
        what=f"{_WRITERS} processes add {each} messages each to one session, {rounds} times",
        ours=f"{kept:,} of {wanted:,} kept, {spread(ours).text(seconds)}",
        beside=f"as many times write and fsync: {spread(theirs).text(seconds)}",
        compared=pairs.ratio.text(ratio),
        budget=f"all kept, ≤ {ratio(_MANY_TIMES)}",
        kept=kept == wanted and pairs.ratio.median <= _MANY_TIMES,
    )


class _Flushed:
    """A file to which lines are added with a write and a flush each, and nothing else."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._numbers = count(1)

    def add(self) -> None:
        message = {"role": "user", "content": _SAID}
        record = LogRecord(seq=next(self._numbers), at="2026-05-04T03:02:01.000Z", messages=(message,))
        os.write(self._file, write_record(record) + b"\n")
        os.fsync(self._file)


def _append(setting: Setting) -> Row:
    sessions = Memory(_vault(setting.path("append"))).sessions
    flushed = _Flushed(setting.path("append plain"))
    pairs = paired(
        lambda number: sessions.add_message(_KEY, {"role": "user", "content": _SAID, "id": f"m{number}"}),
        lambda _: flushed.add(),
        setting.count(_PAIRS),
        warm=20,
    )
    return difference_row("add a message with an id, durable, warm", "write, fsync", pairs, _MORE)


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def _history(setting: Setting) -> list[Row]:
    few, large = setting.count(_FEW), setting.count(_LARGE)
    roots = {number: setting.path(f"history {number}") for number in (few, large)}
    for number, root in roots.items():
        write_log(root, number)
    commands = {number: [sys.executable, "-c", _HISTORY, root] for number, root in roots.items()}
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    sides = {number: program(command, environment) for number, command in commands.items()}
    pairs = paired(sides[large], sides[few], 21)
    peaks = {number: int(side(0)) * 1024 for number, side in sides.items()}
    more = peaks[large] - peaks[few]
    return [
        ratio_row(f"the last {_LAST} of {large:,} messages, whole process", f"of {few:,}", pairs, _LONGER),
        Row(
            what=f"the same, memory at most, {large:,} messages",
            ours=_megabytes(peaks[large]),
            beside=f"of {few:,}: {_megabytes(peaks[few])}",
            compared=f"+ {_megabytes(more)}",
            budget=f"≤ + {_megabytes(_MORE_MEMORY)}",
            kept=more <= _MORE_MEMORY,
        ),
    ]


def _assemble(setting: Setting) -> Row:
    """A prompt of a long conversation that nobody compacted, beside that of a short one; both read anew."""
    few, filled = setting.count(_FEW), setting.count(_FILLED)
    roots = {number: setting.path(f"assemble {number}") for number in (few, filled)}
    for number, root in roots.items():
        write_log(root, number)
    assert Memory(roots[filled]).sessions.assemble(_KEY, _BUDGET).left_out

    def side(root: str) -> Callable[[int], object]:
        return lambda _: Memory(root).sessions.assemble(_KEY, _BUDGET)

    pairs = paired(side(roots[filled]), side(roots[few]), setting.count(200), warm=5)
    what = f"assemble {_BUDGET:,} tokens of {filled:,} messages"
    return ratio_row(what, f"of {few:,}", pairs, _AT_MOST)


def _beside(setting: Setting) -> Iterator[Row]:
    """Commands about memories in a vault with sessions, beside the same vault without any."""
    roots = [setting.path("beside none"), setting.path("beside many")]
    for root in roots:
        vaults.make(root, setting.count(_NOTES), setting.seed)
    sessions = Memory(roots[1]).sessions
    for number in range(setting.count(_SESSIONS)):
        sessions.extend(f"session {number}", [{"role": "user", "content": _SAID}] * _SPOKEN)
    commands = (["ls"], ["grep", "e", "--limit", "5"], ["search", "note"], ["check"])
    for command in commands:
        without, beside = (
            program([installed("mdmem"), "--vault", root, *command], environment()) for root in roots
        )
        pairs = paired(beside, without, 21, warm=2)
        times, more = pairs.ratio, pairs.difference
        yield Row(
            what=f"`mdmem {command[0]}` beside {setting.count(_SESSIONS):,} sessions, whole process",
            ours=spread(pairs.ours).text(milliseconds),
            beside=f"without: {spread(pairs.theirs).text(milliseconds)}",
            compared=f"{ratio(times.median)}, + {milliseconds(more.median)}",
            budget=f"≤ {ratio(_BESIDE_MOST)} or + {milliseconds(_BESIDE_MORE)}",
            kept=times.median <= _BESIDE_MOST or more.median <= _BESIDE_MORE,
        )
