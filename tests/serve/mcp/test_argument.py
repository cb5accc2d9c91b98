"""Arguments: what a model may write, and what is refused instead of guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import Field, create_model

from mdmem.errors import Usage
from mdmem.serve.mcp.argument import (
    Count,
    Fields,
    Number,
    Texts,
    input_schema,
    read_arguments,
    read_signature,
)
from tests.tables import cases

if TYPE_CHECKING:
    from pydantic import BaseModel


def example(
    call: str,
    path: str,
    count: Count = 1,
    where: Annotated[Literal["before", "after"], Field(description="default after")] = "after",
    title: str | None = None,
) -> None:
    """A tool with arguments of several types."""


MODEL = read_signature(example)


def read(kind: Any, value: Any) -> Any:
    """Read the value of an argument of a type."""
    model: type[BaseModel] = create_model("m", x=(kind, ...))
    return read_arguments(model, {"x": value})["x"]


def test_the_schema_says_what_is_needed_and_nothing_that_costs_tokens() -> None:
    assert input_schema(MODEL) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "count": {"anyOf": [{"type": "integer"}, {"type": "string", "const": "all"}]},
            "where": {"type": "string", "enum": ["before", "after"], "description": "default after"},
            "title": {"type": "string"},
        },
        "required": ["path"],
    }


def test_an_argument_that_is_null_is_not_given() -> None:
    assert read_arguments(MODEL, {"path": "a.md", "count": None}) == {"path": "a.md"}


@cases(
    "kind, given, meant",
    [
        (Number, "5", 5),
        (Number, 5.0, 5),
        (bool, "true", True),
        (bool, "False", False),
        (Texts, "notes", ["notes"]),
        (Texts, '["a", "b"]', ["a", "b"]),
        (Texts, "[[a]]", ["[[a]]"]),
        (Count, "all", "all"),
        (Fields, {"a": 1}, {"a": 1}),
        (Fields, '{"a": [1]}', {"a": [1]}),
        (Any, {"a": [1]}, {"a": [1]}),
        (Any, None, None),
        (Any, "[1]", "[1]"),
    ],
)
def test_what_can_mean_only_one_thing_is_taken_as_that(kind: Any, given: Any, meant: Any) -> None:
    assert read(kind, given) == meant


@cases(
    "given, problem",
    [
        ({}, "path must be given"),
        ({"path": None}, "path must be given"),
        ({"path": "a.md", "fine": "b.md"}, "there is no argument 'fine'"),
        ({"file": "a.md", "count": 0}, "there is no argument 'file'"),
        ({"path": 1}, "path should be a valid string, not 1"),
        ({"path": "a.md", "count": 0}, "count should be greater than or equal to 1, not 0"),
        (
            {"path": "a.md", "count": 2**40},
            "count should be less than or equal to 2147483647, not 1099511627776",
        ),
        ({"path": "a.md", "where": "under"}, "where should be 'before' or 'after', not 'under'"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(Usage) as caught:
        read_arguments(MODEL, given)
    assert caught.value.problem == problem


@cases(
    "given, meant",
    [
        ({"pathh": "a.md"}, "did you mean path? "),
        ({"file": "a.md"}, "did you mean path? "),
        ({"path": "a.md", "position": "after"}, ""),
        ({}, ""),
    ],
)
def test_a_refusal_names_the_right_argument_and_all_others(given: dict[str, Any], meant: str) -> None:
    with pytest.raises(Usage) as caught:
        read_arguments(MODEL, given)
    assert caught.value.remedy == f"{meant}its arguments are path, count, where and title"


@cases(
    "kind, given",
    [
        *((Number, "5x"), (Number, "9" * 5000), (Number, 1.5), (Number, -1), (Number, float("inf"))),
        *((bool, 5), (bool, "maybe"), (Texts, [1]), (Texts, 3), (Texts, {"a": 1})),
        *((Fields, {}), (Fields, "a"), (Fields, "[1]"), (Fields, "{" * 10_000), (Count, "some")),
        *((str, ["a"]), (str, True)),
    ],
)
def test_other_values_are_refused(kind: Any, given: Any) -> None:
    with pytest.raises(Usage) as caught:
        read(kind, given)
    assert len(caught.value.problem) < 200
