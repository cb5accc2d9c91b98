"""What stands between the parts of a collection stays where it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from mdmem.text.brackets import Brackets
from mdmem.text.document import parse_text


def brackets(text: str) -> Brackets[object]:
    tree = parse_text("list.json", text).tree
    assert tree
    return Brackets(text, tree, {item.value: item.span for item in tree.items})


@pytest.mark.parametrize(
    ("text", "other", "parts", "expected"),
    [
        ("[1, 2,  3]", "[]", [1, 2, 3], "[1, 2,  3]"),
        ("[1, 2,  3]", "[]", [1, 3], "[1,  3]"),
        ("[1,2]", "[3, 4]", [1, 2, 4], "[1,2,4]"),
        ("[\n  1\n]", "[1, 2]", [1, 2], "[\n  1, 2\n]"),
        ("[\n  1\n]", "[2]", [1, 2], "[\n  1,\n  2\n]"),
        ("[]", "[ 1,2 ]", [1, 2], "[ 1,2 ]"),
        ("[ 1 ]", "[]", [], "[]"),
        ("[]", "[]", [1, 2], "[1, 2]"),
    ],
)
def test_parts_are_joined_as_they_were(text: str, other: str, parts: list[int], expected: str) -> None:
    assert brackets(text).joined(brackets(other), {part: str(part) for part in parts}) == expected


@given(st.lists(st.integers(0, 20), unique=True), st.sampled_from([None, 0, 2]))
def test_all_parts_joined_are_the_text(values: list[int], indent: int | None) -> None:
    text = json.dumps(values, indent=indent)
    layout = brackets(text)
    assert layout.joined(layout, {value: str(value) for value in values}) == text
