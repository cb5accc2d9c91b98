"""Arguments are of their types or refused; answers are JSON that a browser reads exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mdmem.errors import Conflict, GitFailed, LimitReached, MemoryNotFound, PathRefused, RevertRefused, Usage
from mdmem.web.values import find_status, read_arguments, write_json
from tests.tables import cases


def ask(memory: None, path: str, limit: int = 1, rows: list[str] = [], by: dict[str, list[str]] = {}) -> None:  # noqa: B006
    """Ask."""


@cases(
    "given, read",
    [
        ({"path": "a"}, {"path": "a"}),
        ({"path": "a", "limit": "-12"}, {"path": "a", "limit": -12}),
        ({"path": "a", "limit": 12, "rows": ["x"]}, {"path": "a", "limit": 12, "rows": ["x"]}),
        ({"path": "", "by": {"a": ["b"]}}, {"path": "", "by": {"a": ["b"]}}),
    ],
)
def test_arguments_are_read_by_the_signature(given: Any, read: Any) -> None:
    assert read_arguments(ask, given) == read


@pytest.mark.parametrize(
    "given",
    [
        [],
        None,
        {},
        {"limit": 1},
        {"path": "a", "more": 1},
        {"path": "a", "memory": None},
        {"path": 1},
        {"path": "\ud800"},
        {"path": "a", "limit": "1.5"},
        {"path": "a", "limit": "٣"},
        {"path": "a", "limit": True},
        {"path": "a", "limit": 2**53},
        {"path": "a", "limit": "9" * 16},
        {"path": "a", "rows": "x"},
        {"path": "a", "rows": [1]},
        {"path": "a", "by": {"a": "b"}},
        {"path": "a", "by": []},
    ],
)
def test_an_argument_of_another_type_or_name_is_refused(given: Any) -> None:
    with pytest.raises(Usage):
        read_arguments(ask, given)


def test_what_a_browser_cannot_read_exactly_is_a_text() -> None:
    value = {"a\u202e": [1, 1.5, True, None, 2**53, float("nan"), float("inf"), "\ud800\x1b"], "b": {1}}
    assert json.loads(write_json(value)) == {
        "a<U+202E>": [1, 1.5, True, None, str(2**53), "nan", "inf", "<U+D800><U+001B>"],
        "b": "{1}",
    }


@cases(
    "error, status",
    [
        (Usage(problem="x"), 400),
        (PathRefused(path="x", reason="y"), 400),
        (MemoryNotFound(path="x"), 404),
        (Conflict(path="x", base="y", actual="z"), 409),
        (RevertRefused(what="x", reasons=()), 409),
        (LimitReached(what="x", limit=1), 413),
        (GitFailed(path="x", action="y", reason="z"), 503),
    ],
)
def test_an_error_has_the_status_of_its_kind(error: Any, status: int) -> None:
    assert find_status(error) == status
