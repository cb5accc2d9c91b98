"""Conditions on fields: what they mean for dates, numbers, lists, and for what is not there; anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import PatternInvalid
from mdmem.index.view import Condition, Value, View, fits, parse, refuse_no_date, sort_key, sort_order
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

FIELDS: dict[str, list[Value]] = {
    "type": ["Decision"],
    "created": ["2026-03-15"],
    "at": ["2026-03-15 10:30:00"],
    "moment": ["2026-03-15T10:30:00Z"],
    "year": [2026],
    "confidence": [0.9],
    "size": [1200],
    "big": [2**53 + 1],
    "version": ["1.10"],
    "code": ["007"],
    "count": ["12"],
    "level": ["high"],
    "tags": ["db", "Storage"],
    "pinned": ["true"],
    "nothing": [None],
    "empty": [""],
    "title": ["Größe: a = b"],
    "source.type": ["user"],
    "wrong.date": ["soon"],
}


@cases(
    "condition, holds",
    [
        # texts
        ("type=decision", True),
        ("type = Decision", True),
        ("type='decision'", True),
        ('type="decision"', True),
        ("type=decisio", False),
        ("type!=decision", False),
        ("type!=note", True),
        ("type~CIS", True),
        ("type~x", False),
        ("title=größe: a = b", True),
        ('title="Größe: a = b"', True),
        ("title~'a = b'", True),
        ("source.type=user", True),
        ("level>alpha", True),
        ("level>=HIGH", True),
        ("level<alpha", False),
        # days, as far as they are written
        ("created=2026-03-15", True),
        ("created=2026-03", True),
        ("created=2026", True),
        ("created=2026-04", False),
        ("created=202", False),
        ("created>=2026-03", True),
        ("created>2026-03", False),
        ("created<=2026-03", True),
        ("created<2026-03", False),
        ("created>2026-02", True),
        ("created<2027", True),
        ("created>=2026-03-16", False),
        ("created!=2026-03", False),
        ("created!=2025", True),
        ("at=2026-03-15", True),
        ("moment=2026-03-15", True),
        ("moment<=2026-03-15", True),
        ("moment>2026-03-15", False),
        ("moment>2026-03-15T09:00:00Z", True),
        ("created<2026-03-15T09:00:00Z", True),
        ("year=2026", True),
        ("year>=2026-01", False),
        ("year>2025", True),
        ("level>2026", False),
        ("level<2026", False),
        ("wrong.date<2026-01-01", False),
        ("wrong.date>2026-01-01", False),
        # numbers
        ("size=1200", True),
        ("size=1200.0", True),
        ("size=1.2e3", True),
        ("size>999", True),
        ("size>=1200", True),
        ("size<1200", False),
        ("size>90", True),
        ("confidence=.9", True),
        ("confidence<1", True),
        ("confidence>-1", True),
        ("count>9", True),
        ("big=9007199254740993", True),
        ("big=9007199254740992", False),
        ("big>9007199254740992", True),
        ("level>5", False),
        ("level<5", False),
        ("size>abc", False),
        ("size<abc", False),
        # texts that look like numbers are compared as they are written
        ("version=1.10", True),
        ("version=1.1", False),
        ("code=7", False),
        ("code=007", True),
        # lists: one item is enough
        ("tags=db", True),
        ("tags=storage", True),
        ("tags=other", False),
        ("tags!=db", False),
        ("tags!=other", True),
        ("tags~stor", True),
        # what is there, and what is not
        ("pinned", True),
        ("!pinned", False),
        ("missing", False),
        ("!missing", True),
        ("! missing", True),
        ("missing=", False),
        ("missing!=x", True),
        ("missing>0", False),
        ("missing<0", False),
        ("missing~", False),
        ("pinned=true", True),
        ("nothing", True),
        ("nothing=", True),
        ("nothing=null", True),
        ("nothing=x", False),
        ("nothing<5", False),
        ("empty=", True),
        ("empty=''", True),
        ("empty", True),
    ],
)
def test_a_condition_holds_as_it_reads(condition: str, holds: bool) -> None:
    assert fits([parse(condition)], FIELDS) is holds


TIMES = {
    "utc 10": "2024-01-05T10:00:00Z",
    "utc 07": "2024-01-05T12:00:00+05:00",
    "space 11": "2024-01-05 11:00:00",
    "utc 04:30, the 6th": "2024-01-05T23:30:00-05:00",
}


@cases(
    "condition, found",
    [
        ("at>=2024-01-05T09:00:00Z", ["space 11", "utc 04:30, the 6th", "utc 10"]),
        ("at>=2024-01-05T11:00:00+01:00", ["space 11", "utc 04:30, the 6th", "utc 10"]),
        ("at<2024-01-05T10:00", ["utc 07"]),
        ("at=2024-01-05T11:00+01:00", ["utc 10"]),
        ("at=2024-01-06", ["utc 04:30, the 6th"]),
        ("at=2024-01-05", ["space 11", "utc 07", "utc 10"]),
        ("at<=2024-01-05", ["space 11", "utc 07", "utc 10"]),
        ("at>2024-01-05T10:00:00.5Z", ["space 11", "utc 04:30, the 6th"]),
        ("at=2024-01-05T10:00:00.000Z", ["utc 10"]),
    ],
)
def test_times_are_compared_as_moments(condition: str, found: list[str]) -> None:
    assert sorted(name for name, value in TIMES.items() if parse(condition).holds([value])) == found


def test_times_are_in_the_order_of_their_moments() -> None:
    order = sorted([*TIMES, "day"], key=lambda name: sort_key(TIMES.get(name, "2024-01-05")))
    assert order == ["day", "utc 07", "utc 10", "space 11", "utc 04:30, the 6th"]


@cases(
    "text, condition",
    [
        ("a=b", Condition("a", "=", "b")),
        (" a  >=  b c ", Condition("a", ">=", "b c")),
        ("a<=b", Condition("a", "<=", "b")),
        ("a==b", Condition("a", "=", "=b")),
        ("a=b>c", Condition("a", "=", "b>c")),
        ("a='b", Condition("a", "=", "'b")),
        ("a='", Condition("a", "=", "'")),
        ("a=' b '", Condition("a", "=", " b ")),
        ("a=b\nc", Condition("a", "=", "b\nc")),
        ("größe", Condition("größe", "", "")),
        ("!a.b-c", Condition("a.b-c", "!", "")),
    ],
)
def test_a_condition_is_read(text: str, condition: Condition) -> None:
    assert parse(text) == condition


@cases("text", ["", " ", "=b", "!", "!!a", "a b", "a b=c", "!a=b=c d", ">=", "~", "a<= "])
def test_what_is_no_condition_is_refused_and_says_what_is_one(text: str) -> None:
    with pytest.raises(PatternInvalid) as refused:
        parse(text)
    assert "FIELD=VALUE" in refused.value.hint


def test_all_conditions_have_to_hold() -> None:
    both = [parse("type=decision"), parse("created>=2026")]
    assert fits(both, FIELDS)
    assert not fits([*both, parse("!tags")], FIELDS)
    assert fits([], {})


def test_the_order_is_numbers_then_texts_then_nothing() -> None:
    values: list[Value] = [None, "b", 10, "9", "A", 2.5, "2026-01-01"]
    assert sorted(values, key=sort_key) == [2.5, "9", 10, "2026-01-01", "A", "b", None]


@pytest.mark.parametrize(
    ("text", "order"),
    [("created", ("created", False)), ("-created", ("created", True)), ("a-b", ("a-b", False))],
)
def test_a_minus_turns_the_order(text: str, order: tuple[str, bool]) -> None:
    assert sort_order(text) == order


_VALUES = (
    st.none() | st.integers() | st.floats() | st.text() | st.from_regex(r"[0-9.eE+-]{1,400}", fullmatch=True)
)


@settings(max_examples=examples(300))
@given(text=st.text(), values=st.lists(_VALUES, max_size=3), wanted=_VALUES.map(str))
def test_no_text_and_no_value_breaks_a_condition(text: str, values: list[Value], wanted: str) -> None:
    try:
        conditions = [parse(text)]
    except PatternInvalid:
        conditions = []
    for operator in ("=", "!=", "<", "<=", ">", ">=", "~", "", "!"):
        conditions.append(Condition("a", operator, wanted))
    for condition in conditions:
        assert condition.holds(values) in {True, False}
    assert len(sorted(values, key=sort_key)) == len(values)


@given(value=st.integers(), wanted=st.integers())
def test_integers_are_compared_exactly(value: int, wanted: int) -> None:
    assert Condition("a", "=", str(wanted)).holds([value]) == (value == wanted)
    assert Condition("a", "<", str(wanted)).holds([value]) == (value < wanted)
    assert Condition("a", ">=", str(wanted)).holds([value]) == (value >= wanted)


def test_anchors_that_are_loaded_at_once_are_those_of_each_memory(vault_root: Path) -> None:
    memory = mdmem.open(vault_root)
    texts = ("# A\n\n## B\n\n## B\n\nline ^Blk\n", "line ^only\n", "# É *x*\n", "no anchor\n")
    paths = [*(f"notes/{number}.md" for number in range(len(texts))), "notes/none.md"]
    for path, text in zip(paths, texts, strict=False):
        memory.write(path, text)
    memory.write("users/ann/notes/u.md", "# U\n")
    memory.sync()
    for vault in (memory.vault, mdmem.open(vault_root, mdmem.Scope(user="ann")).vault):
        view = View(memory.index, vault)
        for path in (*paths, "notes/u.md", "users/ann/notes/u.md"):
            assert view.all_names.anchors(path) == view.anchors(path), path


@cases("condition", ["created>=2026-13", "at<2026-1", "moment=2026-02-30", "created!=2026-0x"])
def test_dates_are_not_compared_with_what_is_none(condition: str) -> None:
    with pytest.raises(PatternInvalid) as caught:
        refuse_no_date([parse(condition)], [{}, FIELDS])
    assert caught.value.reason.endswith("is not a date")


@cases(
    "condition",
    [
        *(
            "created>=2026",
            "created>=2026-03",
            "created<2026-03-15",
            "at>2026-03-15 10:30",
            "moment>2026-03-15T10",
        ),
        *("created~2026-13", "created", "year>=2026-13", "version=2026-13", "missing<2026-13"),
    ],
)
def test_other_comparisons_are_made(condition: str) -> None:
    refuse_no_date([parse(condition)], [{}, FIELDS])
