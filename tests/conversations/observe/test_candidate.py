"""What a program reports, as a candidate."""

from __future__ import annotations

import pytest

from mdmem.conversations.observe.candidate import EVENTS, from_event
from mdmem.errors import Usage
from tests.tables import cases


@cases(
    "kind, data, of, value",
    [
        ("task_completed", {"task": "Port the parser"}, "fact", "Port the parser"),
        (
            "feature_implemented",
            {"feature": "Undo", "description": "in all views"},
            "fact",
            "Undo: in all views",
        ),
        ("decision_made", {"decision": "Use Postgres"}, "decision", "Use Postgres"),
        ("milestone_reached", {"title": "Beta", "milestone": "M2"}, "fact", "Beta"),
        ("preference_expressed", {"preference": "No emojis"}, "preference", "No emojis"),
        (
            "error_resolved",
            {"error": "Timeout", "solution": "Raise it to 60 s"},
            "fact",
            "Timeout: Raise it to 60 s",
        ),
    ],
)
def test_every_event_is_captured(kind: str, data: dict[str, str], of: str, value: str) -> None:
    (found,) = from_event(kind, data)
    assert (found.kind, found.value, found.confidence, found.why) == (of, value, 1.0, f"event: {kind}")
    assert found.quote[found.start : found.end] == found.quote


def test_a_preference_may_say_its_key() -> None:
    data = {"category": "ui", "key": "theme", "value": "dark", "description": "at night"}
    (found,) = from_event("preference_expressed", data)
    assert (found.category, found.key, found.value) == ("ui", "theme", "dark")
    (found,) = from_event("preference_expressed", {"key": "tabs", "value": True})
    assert (found.category, found.key, found.value) == ("general", "tabs", "true")


def test_an_unknown_event_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Usage) as caught:
        from_event("party_held", {"title": "x"})
    assert all(kind in caught.value.message for kind in EVENTS)


@cases("data", [{"task": ["a"]}, {"title": "a", "description": {}}, ["task"], {"task": "x" * 10**6}])
def test_data_that_are_no_text_are_refused(data: object) -> None:
    with pytest.raises(Usage):
        from_event("task_completed", data)  # type: ignore[arg-type]


def test_data_of_an_event_become_one_line_of_bounded_length() -> None:
    (found,) = from_event("task_completed", {"task": "a\n\u202eb " + "c" * 1_000, "other": object()})
    assert found.value.startswith("a <U+202E>b")
    assert "characters left out" in found.value
    assert len(found.value) < 1_000
    assert from_event("task_completed", {"task": " \n"}) == []
