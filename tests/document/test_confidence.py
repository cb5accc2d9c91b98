"""How sure a memory is, from what it says of its sources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mdmem.document import confidence as rules
from tests.tables import cases

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def source(type_: str, *ids: str, **more: Any) -> dict[str, Any]:
    return {"source": {"type": type_, "ids": list(ids), **more}}


@cases(
    "fields, wanted",
    [
        ({}, None),
        ({"source": "https://example.com"}, None),
        (source("file", "a"), None),
        (source("bootstrapped"), 0.95),
        (source("user"), 0.70),
        (source("user", explicit=True), 0.90),
        (source("conversation", explicit=True), 0.90),
        (source("agent", explicit=True), 0.60),
        (source("tool"), 0.50),
        (source("user", "a", "b", "c"), 0.80),
        (source("user", *"abcdefgh"), 0.90),
        (source("conversation", "sessions/t1#1", "sessions/t1#9"), 0.70),
        (source("conversation", "sessions/t1#1", "sessions/t2#1"), 0.75),
        ({**source("user"), "contradicted_by": "[[b]]"}, 0.55),
        ({**source("user"), "contradicted_by": ["a", "b", "c", "d"]}, 0.25),
        ({**source("tool"), "contradicted_by": ["a", "b", "c", "d"]}, 0.05),
        ({**source("user"), "confidence": 0.3}, 0.3),
        ({**source("user"), "confidence": True}, 0.70),
        ({"confidence": 7}, None),
    ],
)
def test_the_type_of_source_its_number_and_contradictions_say_how_sure(
    fields: dict[str, Any], wanted: float | None
) -> None:
    assert rules.confidence_of(fields) == (wanted if wanted is None else pytest.approx(wanted))


def test_confidence_halves_with_each_half_life() -> None:
    assert rules.decayed(0.7, NOW - timedelta(days=30), NOW, 30) == pytest.approx(0.35)
    assert rules.decayed(0.7, NOW + timedelta(days=30), NOW, 30) == 0.7
    assert rules.decayed(0.7, NOW - timedelta(days=30), NOW, 0) == 0.7


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "source": st.dictionaries(
                st.sampled_from(["type", "ids", "explicit"]),
                st.none() | st.booleans() | st.lists(st.text()) | st.sampled_from(["user", "tool"]),
            )
            | st.text(),
            "confidence": st.floats() | st.text() | st.none(),
            "contradicted_by": st.lists(st.text() | st.integers()) | st.text() | st.none(),
        },
    )
)
def test_whatever_the_fields_are_confidence_is_within_0_and_1(fields: dict[str, Any]) -> None:
    found = rules.confidence_of(fields)
    assert found is None or 0 <= found <= 1
    assert (found is None) == (not rules.terms_of(fields))


def test_what_is_doubtful_has_a_type_of_source_and_was_not_bootstrapped() -> None:
    assert rules.is_doubtful(source("user"), 0.19)
    assert not rules.is_doubtful(source("user", explicit=True), 0.19)
    assert rules.is_doubtful(source("user", explicit=True), 0.13)
    assert not rules.is_doubtful(source("bootstrapped"), 0.01)
    assert not rules.is_doubtful({"confidence": 0.01}, 0.01)
