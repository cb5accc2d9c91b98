"""Answers: bounded, and what is left out is said."""

from __future__ import annotations

from mdmem.mcp.answer import encodable, page, short, within


def test_the_first_item_is_always_taken() -> None:
    assert within([(1, "x" * 1000), (2, "y")], 1) == [(1, "x" * 1000)]


def test_items_are_taken_as_far_as_they_fit() -> None:
    assert [number for number, _ in within(((n, "x" * 40) for n in range(9)), 30)] == [0, 1, 2]


def test_a_page_says_how_many_are_behind_it() -> None:
    assert page(range(10), 2, 3) == ([2, 3, 4], 5)
    assert page(range(3), 5, 3) == ([], 0)


def test_half_a_character_becomes_its_escape_wherever_it_is() -> None:
    assert encodable({"a\ud800": ["\udfff", ("é", 1)]}) == {"a\\ud800": ["\\udfff", ["é", 1]]}


def test_no_hash_is_short_too() -> None:
    assert short(None) == ""
    assert short("0123456789abcdef") == "0123456789ab"
