"""Lines of a log: what is written is read again, and what is not one is none."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mdmem.conversations.log.record import (
    BEGINS_WITHIN,
    LAST_NUMBER,
    NOTHING,
    LogHeader,
    LogRecord,
    Ranges,
    RunSummary,
    Snapshot,
    read_header,
    read_record,
    read_seq,
    write_header,
    write_record,
)
from tests.tables import cases

TEXTS = st.text(max_size=20)
NUMBERS = st.integers(1, 1_000)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
DATA = st.dictionaries(TEXTS, VALUES | st.lists(VALUES, max_size=3), max_size=4)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS).map(sorted), max_size=5).map(Ranges.of)
AMENDED = st.dictionaries(NUMBERS, DATA, max_size=3)


@st.composite
def summaries(draw: st.DrawFn, seq: int = 2_000) -> RunSummary:
    first, last = sorted((draw(NUMBERS), draw(NUMBERS)))
    of = tuple(draw(st.lists(NUMBERS, max_size=3)))
    depth, texts = draw(st.integers(0, 9)), [draw(TEXTS) for _ in range(4)]
    return RunSummary(seq, depth, first, last, last - first + 1, of, 5, 50, *texts)


SNAPSHOTS = st.builds(
    Snapshot,
    start=NUMBERS,
    seq=st.integers(0, 2_000),
    live=NUMBERS,
    dropped=RANGES,
    has_dropped=st.booleans(),
    context=st.lists(summaries(), max_size=2).map(tuple),
    amended=AMENDED,
    text=TEXTS,
    alias_of=TEXTS,
    cursors=DATA,
    title=TEXTS,
    metadata=DATA,
    created=TEXTS,
)
RECORDS = st.builds(
    LogRecord,
    seq=st.just(2_000),
    at=TEXTS,
    messages=st.lists(DATA, max_size=3).map(tuple),
    drop=st.just(NOTHING),
    live=st.just(0),
    context=st.just(()),
    summary=st.none() | summaries(),
    amend=AMENDED,
    text=st.none() | TEXTS,
    alias_of=st.none() | TEXTS,
    cursors=DATA,
    title=st.none() | TEXTS,
    metadata=st.none() | DATA,
    snapshot=st.none() | SNAPSHOTS,
)


def cut(pair: tuple[LogRecord, float]) -> bytes:
    line = write_record(pair[0])
    return line[: int(len(line) * pair[1])]


@given(RECORDS, RANGES, NUMBERS)
def test_a_record_comes_back_equal(record: LogRecord, drop: Ranges, live: int) -> None:
    dropping = record._replace(drop=drop, live=live if drop else 0)
    line = write_record(dropping)
    assert b"\n" not in line
    assert read_seq(line[:BEGINS_WITHIN]) == 2_000
    assert read_record(line) == dropping


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\udc00\ud83d"])
def test_half_a_character_comes_back_and_the_line_is_utf_8(text: str) -> None:
    record = LogRecord(seq=1, at="", messages=({"role": text, "whole": "\U0001f600é"},))
    assert read_record(write_record(record)) == record
    write_record(record).decode()


@given(st.binary(max_size=200) | st.tuples(RECORDS, st.floats(0, 1, exclude_max=True)).map(cut))
def test_a_part_of_a_line_is_no_record(line: bytes) -> None:
    assert read_record(line) is None
    assert read_header(line) is None


@given(st.from_regex(r"\A[0-9a-f]{16}\Z"), TEXTS, st.integers(0, 9), st.integers(0, LAST_NUMBER))
def test_a_header_comes_back_equal(log: str, key: str, version: int, vacuumed: int) -> None:
    header = LogHeader(log, key, version, vacuumed)
    assert read_header(write_header(header)) == header
    assert read_record(write_header(header)) is None
    assert read_seq(write_header(header)) == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=8))
def test_ranges_hold_what_any_of_them_holds(given_: list[list[int]]) -> None:
    ranges, numbers = Ranges.of(given_), {n for first, last in given_ for n in range(first, last + 1)}
    assert {n for n in range(40) if ranges.holds(n)} == numbers
    assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(ranges))
    for first in range(0, 31, 5):
        assert ranges.meets(first, first + 3) == bool(numbers & {*range(first, first + 4)})


@cases("ranges", [[(2, 1)], [(-1, 1)], [(1, 2.0)], [("1", "2")], [(1,)], [(1, 2, 3)], [(0, True)]])
def test_ranges_of_something_else_are_refused(ranges: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Ranges.of(ranges)


def test_a_number_that_is_too_large_is_none() -> None:
    assert read_seq(b'{"seq":999999999999999,') == LAST_NUMBER
    assert read_seq(b'{"seq":1000000000000000,') is None
    many = LogRecord(seq=LAST_NUMBER, messages=({"role": "a"}, {"role": "b"}))
    assert read_record(write_record(many)) is None


@cases("depth", [101, 300, 600, 900, 5_000])
def test_a_message_that_is_nested_too_deeply_is_none(depth: int) -> None:
    """Nobody could add it; what looks at its values would not come back."""
    value = '{"a":' * depth + '"deep"' + "}" * depth
    line = b'{"seq":1,"at":"","messages":[{"role":"user","content":%s}]}'
    assert read_record(line % value.encode()) is None
    assert read_record(line % b'{"a":"deep"}') is not None
