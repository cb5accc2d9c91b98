"""Arguments: what a model may write, and what is refused instead of guessed."""

from __future__ import annotations

from typing import Any

import pytest

from mdmem.errors import Usage
from mdmem.mcp.argument import Argument, Kind, input_schema, read

ARGUMENTS = (
    Argument("path", is_needed=True, aliases="file"),
    Argument("count", "count", least=1),
    Argument("where", choices=("before", "after")),
)


def test_the_schema_says_what_is_needed_and_nothing_that_costs_tokens() -> None:
    assert input_schema(ARGUMENTS) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "count": {"type": ["integer", "string"]},
            "where": {"type": "string", "enum": ["before", "after"]},
        },
        "required": ["path"],
    }


def test_an_alias_means_the_argument() -> None:
    assert read(ARGUMENTS, {"file": "a.md", "count": "all"}) == {"path": "a.md", "count": "all"}


def test_an_argument_that_is_null_is_not_given() -> None:
    assert read(ARGUMENTS, {"path": "a.md", "count": None}) == {"path": "a.md"}


@pytest.mark.parametrize(
    ("kind", "given", "meant"),
    [
        ("integer", "5", 5),
        ("integer", 5.0, 5),
        ("flag", "true", True),
        ("flag", "False", False),
        ("texts", "notes", ["notes"]),
        ("texts", '["a", "b"]', ["a", "b"]),
        ("texts", "[[a]]", ["[[a]]"]),
        ("count", "all", "all"),
        ("fields", {"a": 1}, {"a": 1}),
        ("fields", '{"a": [1]}', {"a": [1]}),
        ("any", {"a": [1]}, {"a": [1]}),
        ("any", None, None),
    ],
)
def test_what_can_mean_only_one_thing_is_taken_as_that(kind: Kind, given: Any, meant: Any) -> None:
    assert read((Argument("x", kind),), {"x": given}) == {"x": meant}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "path must be given"),
        ({"path": "a.md", "fine": "b.md"}, "there is no argument 'fine'"),
        ({"path": "a.md", "file": "b.md"}, "path is given twice, with different values (once as 'file')"),
        ({"path": "\ud800.md"}, "path has half a character (a lone surrogate)"),
        ({"path": 1}, "path is a text, not 1"),
        ({"path": "a.md", "count": 0}, "count is 1 or more, not 0"),
        ({"path": "a.md", "count": 2**40}, "count is 2147483647 or less, not 1099511627776"),
        ({"path": "a.md", "count": True}, "count is a whole number or 'all', not True"),
        ({"path": "a.md", "count": 1.5}, "count is a whole number or 'all', not 1.5"),
        ({"path": "a.md", "where": "under"}, "where is before or after, not 'under'"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(Usage) as caught:
        read(ARGUMENTS, given)
    assert caught.value.problem == problem


def test_a_refusal_names_the_nearest_argument_and_all_others() -> None:
    with pytest.raises(Usage) as caught:
        read(ARGUMENTS, {"pathh": "a.md"})
    assert caught.value.remedy == "did you mean path? its arguments are path, count and where"


def test_the_same_value_under_two_names_is_one_value() -> None:
    assert read(ARGUMENTS, {"path": "a.md", "file": "a.md"}) == {"path": "a.md"}


@pytest.mark.parametrize(("kind", "given"), [("integer", "5x"), ("flag", 1), ("texts", [1]), ("texts", 3)])
def test_other_kinds_are_refused(kind: Kind, given: Any) -> None:
    with pytest.raises(Usage):
        read((Argument("x", kind),), {"x": given})
