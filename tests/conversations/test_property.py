"""Whatever is done to a session, in whatever order, its log says the same from both ends and anywhere."""

from __future__ import annotations

import itertools
import os
from functools import partial
from itertools import dropwhile, islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.conversations.log import state as state_module
from mdmem.conversations.log.conversation import Conversation, faults
from mdmem.conversations.log.message import check
from mdmem.conversations.log.record import LogRecord, RunSummary, read_header
from mdmem.conversations.log.state import State
from mdmem.errors import Usage
from mdmem.facade.memory import Memory
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mdmem.conversations.sessions import Sessions

pytestmark = pytest.mark.timeout(1_800)
EXAMPLES = settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
MOST = 1 << 20
KEYS = map("session {:06}".format, itertools.count())

TEXTS = st.text(st.characters(), max_size=12)  # lone surrogates included
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.integers(1, 4)),
        st.tuples(st.just("extend"), st.integers(1, 4)),
        st.tuples(st.just("truncate"), st.integers(-1, 12)),
        st.tuples(st.just("set_history"), st.integers(0, 4)),
        st.tuples(st.just("summarise"), st.integers(1, 4)),
        st.tuples(st.sampled_from(("pop", "clear", "set_summary", "vacuum", "torn", "junk")), st.just(0)),
    ),
    max_size=14,
)


class Told(NamedTuple):
    """What a session must say: its messages by number, and the text of `set_summary`."""

    messages: dict[int, str]
    text: str


@pytest.fixture(autouse=True)
def snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every few lines, so that short logs have some."""
    monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", 400)
    monkeypatch.setattr(state_module, "_TIMES_THE_LAST", 1)


def apply(sessions: Sessions, key: str, steps: list[tuple[str, int]]) -> Iterator[Told]:
    """Do each step; what the session must say after it."""
    log = sessions.logs.vault.root + "/" + sessions.logs.path(key)
    told, names = Told({}, ""), itertools.count()
    for step, count in steps:
        messages, text = dict(told.messages), told.text
        if step in {"extend", "set_history"}:
            said = [f"message {next(names)}" for _ in range(count)]
            verb = getattr(sessions, step)
            numbers = verb(key, [{"role": "user", "content": each} for each in said])
            before = messages if step == "extend" else {}
            assert numbers == sorted(numbers)
            assert not numbers or numbers[0] > max(messages, default=0)
            messages = {**before, **dict(zip(numbers, said, strict=True))}
        elif step == "truncate":
            sessions.truncate(key, count)
            messages = dict([*messages.items()][-count:] if count > 0 else [])
        elif step == "pop":
            popped = sessions.pop(key)
            assert (popped and popped.seq) == (messages.popitem()[0] if messages else None)
        elif step == "clear":
            sessions.clear(key)
            messages, text = {}, ""
        elif step == "set_summary":
            text = f"summary {next(names)}"
            sessions.set_summary(key, text)
        elif step == "summarise" and messages:
            sessions.logs.commit(key, partial(summary_of, count))
        elif step == "vacuum":
            sessions.vacuum(key)
        elif step in {"torn", "junk"} and os.path.exists(log):
            with open(log, "ab") as file:
                file.write(b'{"seq":9,"at":"2026' if step == "torn" else b'["\xff"]\n{"seq":1,"at":""}\n')
        told = Told(messages, text)
        yield told


def summary_of(count: int, opened: Conversation) -> tuple[LogRecord | None, None]:
    """A summary over the first messages, or over the summaries, as an engine would make them."""
    state = opened.state
    if len(state.context) > 1:
        of = state.context
        first, last, messages = of[0].first, of[-1].last, sum(each.messages for each in of)
        depth = 1 + max(each.depth for each in of)
    else:
        # A run, as an engine takes one: no other summary stands for anything in it.
        behind = dropwhile(lambda each: state.covering(each.seq), opened.messages())
        open_ = [*islice(takewhile(lambda each: not state.covering(each.seq), behind), count)]
        if not open_:
            return None, None
        of, depth, first, last, messages = [], 0, open_[0].seq, open_[-1].seq, len(open_)
    seqs = tuple(each.seq for each in of)
    summary = RunSummary(state.seq + 1, depth, first, last, messages, of=seqs, text="in short")
    return LogRecord(seq=0, summary=summary), None


def says(sessions: Sessions, key: str, told: Told) -> None:
    found = sessions.history(key)
    assert {each.seq: each.text for each in found} == told.messages
    assert [each.seq for each in found] == sorted(told.messages)
    assert sessions.summary(key) == told.text
    for last in (1, 3):
        assert sessions.history(key, limit=last) == found[-last:]
    for since in (each.seq for each in found[:3]):
        assert sessions.history(key, after=since) == [each for each in found if each.seq > since]


def same(state: State) -> tuple[Any, ...]:
    """What two readings of a log must have in common: not what says how far a snapshot is away."""
    snapshot = state.snapshot._replace(is_disordered=False)  # only what counts is read again from the start
    return (state.log, state.seq, state.vacuumed, snapshot, state.updated)


def from_start(opened: Conversation) -> State:
    """The state that every line says, without a look at a snapshot, unless a vacuum left only that."""
    state = None
    with_snapshot = None
    for line in opened.log.read(0, opened.log.size).split(b"\n")[:-1]:
        if state is None:
            header = read_header(line)
            state = State.of(header) if header else None
    assert state is not None
    blocks = reversed(list(opened.blocks_back()))
    for record, _, line_, _ in itertools.chain.from_iterable(blocks):
        with_snapshot = record.snapshot if record.seq == state.vacuumed + 1 else None
        state.take(LogRecord(**{**fields(record), "snapshot": with_snapshot}), line_.end - line_.start)
    return state


def fields(record: LogRecord) -> dict[str, Any]:
    return record._asdict()


@EXAMPLES
@given(STEPS)
def test_property_of_any_steps(vault_root: Path, steps: list[tuple[str, int]]) -> None:
    """What every verb promises; numbers stay through all, and who read before sees no more than others."""
    key = next(KEYS)
    warm, numbers = Memory(str(vault_root)).sessions, dict[str, int]()
    for told in apply(warm, key, steps):
        says(warm, key, told)
        says(Memory(str(vault_root)).sessions, key, told)
        for number, text in told.messages.items():
            assert numbers.setdefault(text, number) == number
    cold = Memory(str(vault_root)).sessions
    for text, number in numbers.items():
        assert cold.message(key, number).text == text  # also what only the archive has


@EXAMPLES
@given(STEPS)
@example([("extend", 6), ("summarise", 3), ("summarise", 1), ("truncate", 4), ("summarise", 2)])
def test_property_state_from_both_ends(vault_root: Path, steps: list[tuple[str, int]]) -> None:
    key, sessions = next(KEYS), Memory(str(vault_root)).sessions
    for _ in apply(sessions, key, steps):
        pass
    with Memory(str(vault_root)).sessions.logs.opened(key) as opened:
        if opened.is_new:
            return
        assert same(from_start(opened)) == same(opened.state)
        forward = list(opened.records())
        assert [each.record for block in opened.blocks_back() for each in reversed(block)] == forward[::-1]
        assert {each.code for each in faults(opened.log, MOST)} <= {"not-a-record"}
        context = opened.state.context
        assert all(opened.summary(each.seq) for each in context)
        assert all(a.last < b.first for a, b in itertools.pairwise(context))
        live = [each.seq for each in opened.messages()]
        assert all(sum(each.first <= n <= each.last for n in live) == each.messages for each in context)


@EXAMPLES
@given(STEPS, st.floats(0, 1))
def test_property_of_any_prefix(vault_root: Path, steps: list[tuple[str, int]], part: float) -> None:
    """A log cut anywhere is readable, keeps every whole commit, and goes on."""
    key, sessions = next(KEYS), Memory(str(vault_root)).sessions
    path = vault_root / sessions.logs.path(key)
    sizes = {0: Told({}, "")}
    for told in apply(sessions, key, steps):
        if path.exists():
            size = path.stat().st_size
            if size < max(sizes):
                sizes.clear()  # it was written anew
            sizes[size] = told
    whole = path.read_bytes() if path.exists() else b""
    cut = min(sizes) + int(part * (len(whole) - min(sizes)))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(whole[:cut])
    cold = Memory(str(vault_root)).sessions
    at = max(size for size in sizes if size <= cut)
    later = [told for size, told in sizes.items() if size > cut][:1]
    found = Told({each.seq: each.text for each in cold.history(key)}, cold.summary(key))
    assert found in [sizes[at], *later]  # the next one, where all but its snapshot is there
    cold.add(key, "user", "goes on")
    assert [each.text for each in cold.history(key)] == [*found.messages.values(), "goes on"]


@EXAMPLES
@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), min_size=1, max_size=4))
def test_property_of_any_message(vault_root: Path, given_: list[dict[str, Any]]) -> None:
    """Every field comes back equal and in order, from the log and after a vacuum."""
    key, sessions = next(KEYS), Memory(str(vault_root)).sessions
    first: dict[str, Any] = {"role": "user"}
    messages = [first, *filter(encodes, ({**each, "role": "user"} for each in given_))]
    sessions.extend(key, messages)
    for left in (messages, messages[1:]):
        found = [dict(each.data) for each in Memory(str(vault_root)).sessions.history(key)]
        assert found == left
        assert [[*each] for each in found] == [[*each] for each in left]
        sessions.truncate(key, len(messages) - 1)
        sessions.vacuum(key)


def encodes(message: dict[str, Any]) -> bool:
    try:
        check(message)
    except Usage:
        return False
    return True
