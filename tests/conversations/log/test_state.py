"""The state of a session, folded line by line."""

from __future__ import annotations

import pytest

from mdmem.conversations.log import state as state_module
from mdmem.conversations.log.message import Message
from mdmem.conversations.log.record import LogHeader, LogRecord, Ranges, RunSummary
from mdmem.conversations.log.state import SAME_WITHIN, State


def messages(*texts: str) -> tuple[dict[str, str], ...]:
    return tuple({"role": "user", "content": text} for text in texts)


def state_of(*records: LogRecord) -> State:
    state = State.of(LogHeader("abc", "s"))
    for record in records:
        state.take(record, 100)
    return state


def test_messages_are_in_the_history_until_they_are_dropped() -> None:
    state = state_of(
        LogRecord(seq=1, at="t1", messages=messages("a", "b", "c")),
        LogRecord(seq=4, at="t2", drop=Ranges.of([(1, 2)]), live=1),
        LogRecord(seq=5, at="t3", messages=messages("d")),
    )
    assert (state.seq, state.live, state.created, state.updated) == (5, 2, "t1", "t3")
    assert [number for number in range(8) if state.holds(number)] == [3, 4, 5]
    assert state.has_dropped


def test_a_new_history_drops_the_old_one_in_the_same_line() -> None:
    state = state_of(
        LogRecord(seq=1, messages=messages("a", "b")),
        LogRecord(seq=3, messages=messages("c"), drop=Ranges.of([(1, 2)])),
    )
    assert (state.live, [number for number in (1, 2, 3) if state.holds(number)]) == (1, [3])


def test_a_summary_takes_the_place_of_what_it_stands_for() -> None:
    first, second = RunSummary(5, 0, 1, 2, 2, text="x"), RunSummary(6, 0, 3, 4, 2, text="y")
    above = RunSummary(7, 1, 1, 4, 4, of=(5, 6), text="z")
    state = state_of(LogRecord(seq=1, messages=messages(*"abcd")), LogRecord(seq=6, summary=second))
    state.take(LogRecord(seq=7, summary=first), 100)
    assert [each.seq for each in state.context] == [5, 6]
    assert [each.text for each in state.context] == ["", ""]
    assert state.covering(3) == second.place
    state.take(LogRecord(seq=8, summary=above), 100)
    assert [each.seq for each in state.context] == [7]
    assert state.covering(5) is None


def test_what_is_amended_stays_with_its_message_while_the_log_has_it() -> None:
    state = state_of(
        LogRecord(seq=1, messages=messages("a", "b")),
        LogRecord(seq=3, amend={1: {"model": "m"}, 2: {"model": "n"}}),
        LogRecord(seq=4, amend={2: {"time": "t"}}),
    )
    assert state.amended == {1: {"model": "m"}, 2: {"model": "n", "time": "t"}}
    state.take(LogRecord(seq=5, drop=Ranges.of([(1, 1)]), live=1), 100)
    assert state.amended == {1: {"model": "m"}, 2: {"model": "n", "time": "t"}}


def test_a_snapshot_says_what_the_lines_before_it_said() -> None:
    records = (
        LogRecord(seq=1, at="t", messages=messages("a", "b", "c")),
        LogRecord(seq=4, summary=RunSummary(4, 0, 2, 3, 2, text="x")),
        LogRecord(seq=5, drop=Ranges.of([(1, 1)]), live=2, context=(RunSummary(4, 0, 2, 3, 2),)),
        LogRecord(seq=6, amend={2: {"a": 1}}, text="said", cursors={"index": [1, "x"]}),
    )
    whole = state_of(*records)
    from_snapshot = state_of(LogRecord(seq=7, snapshot=whole.snapshot))
    assert from_snapshot.snapshot == whole.snapshot
    assert (from_snapshot.grown, from_snapshot.snapshot_bytes) == (0, 100)


def test_a_snapshot_is_due_after_some_bytes_and_seldom_where_it_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", 250)
    state = state_of(LogRecord(seq=1, messages=messages("a")), LogRecord(seq=2, messages=messages("b")))
    due = [state.wants_snapshot]
    state.take(LogRecord(seq=3, messages=messages("c")), 100)
    due.append(state.wants_snapshot)
    state.take(LogRecord(seq=4, snapshot=state.snapshot), 100)
    for number in range(5, 21):
        state.take(LogRecord(seq=number, messages=messages("d")), 100)
        due.append(state.wants_snapshot)
    assert due == [False, True, *[False] * 15, True]


def test_a_copy_goes_on_by_itself() -> None:
    state = state_of(LogRecord(seq=1, messages=({"role": "user", "id": "1"},), amend={1: {"a": 1}}))
    state.remember_ids([Message(1, {"role": "user", "id": "1"})])
    other, before = state.copy(), state.copy()
    other.take(LogRecord(seq=2, messages=({"role": "user", "id": "2"},), cursors={"a": 1}), 100)
    other.take(LogRecord(seq=3, summary=RunSummary(3, 0, 1, 2, 2), amend={1: {"b": 2}}), 100)
    assert (state.snapshot, state.seq) == (before.snapshot, before.seq)
    assert [*(state.recent_ids or {})] == ["1"]
    assert [*(other.recent_ids or {})] == ["1", "2"]


def test_the_last_ids_are_those_of_the_last_numbers() -> None:
    def said(number: int) -> Message:
        return Message(number, {"role": "user", **({"id": f"m{number}"} if number % 2 else {})})

    state = State.of(LogHeader("abc", "s"))
    state.seq = 500
    state.remember_ids(map(said, range(1, 501)))
    assert len(state.recent_ids or ()) == 250
    state.seq = 2_000
    state.remember_ids(map(said, range(501, 2_001)))
    assert state.recent_ids
    assert next(iter(state.recent_ids)) == f"m{2_001 - SAME_WITHIN}"
    assert len(state.recent_ids) == SAME_WITHIN // 2
    assert state.recent_ids["m1999"] == (1_999, said(1_999).hash)
