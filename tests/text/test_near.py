"""What is nearest to a text that was not found: the smallest slip that explains it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.errors import NearLine
from mdmem.text.document import parse_text
from mdmem.text.near import nearest


def near(text: str, old: str) -> list[tuple[int, str]]:
    return [(found.line, found.differs) for found in nearest(parse_text("n.md", text), old)]


@pytest.mark.parametrize(
    ("text", "old", "expected"),
    [
        ("a\r\nb\r\n", "a\nb\n", [(1, "line ends")]),
        ("x\ra\rb", "a\r\nb", [(2, "line ends")]),
        ("x\na b", "a b\n", [(2, "a trailing newline")]),
        ("x\na b", "\na b\n\n", [(2, "a trailing newline")]),
        ("x\nA\n", "a\n", [(2, "case")]),
        ("a\r\nb", "a\nb\n", [(1, "a trailing newline")]),
        ("x\n\n  a   b\nc\n", "a b", [(3, "whitespace")]),
        ("x\na\nb\n", "a b", [(2, "whitespace")]),
        ("x\na\u00a0b\n", "a b", [(2, "whitespace")]),
        ("x\na b\n", "a\n    b\n\n", [(2, "whitespace")]),
        ("STRASSE und Weg\n", "straße und weg", [(1, "case")]),
        ("x\nA\nB\n", "a\nb", [(2, "case")]),
        ("A  b\n", "a B", [(1, "whitespace and case")]),
        ("The cache is kept for an hour.\n", "the cashe is kept for one hour", [(1, "similar words")]),
        ("one\n", "something else entirely", []),
        ("", "a", []),
        ("a\n", " \t", []),
        ("a\n", "\n\n\n", []),
    ],
)
def test_the_smallest_slip_is_named(text: str, old: str, expected: list[tuple[int, str]]) -> None:
    assert near(text, old) == expected


def test_whitespace_is_a_smaller_slip_than_case() -> None:
    assert near("A B\na  b\n", "a b") == [(2, "whitespace")]


def test_a_line_is_given_as_it_stands() -> None:
    (found,) = nearest(parse_text("n.md", "x\r\n  Some\tText \r\n"), "some text")
    assert found == NearLine(line=2, text="  Some\tText ", differs="whitespace and case")


def test_at_most_three_lines_and_each_once() -> None:
    assert near("A a A\n" * 5, "a A a") == [(1, "case"), (2, "case"), (3, "case")]
    text = "".join(f"item number {word}\n" for word in ("one", "two", "three", "four"))
    assert len(near(text, "item number onne")) == 3


def test_the_most_similar_line_is_first() -> None:
    text = "the fast brown fox runs\nnothing\nthe quick brown fox jumps\nthe quick fox jumps\n"
    found = near(text, "the quick brown fax jumps\nand more")
    assert [line for line, _ in found] == [3, 4, 1]


def test_similar_lines_are_found_by_the_first_line_that_says_something() -> None:
    assert near("x\nthe quick fox\n", "\n  \nthe quick fix\nzzz") == [(2, "similar words")]


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("".join(f"the quick brown fox {n} jumps over a dog\n" for n in range(20_000)), "the quack fox over"),
        (("ab cd ef gh ij " * 13 + "\n") * 6_000, "ab cd ef gh ji " * 400),
        ("ab" * 500_000, "ba" * 500_000 + "c"),
        (("ab" * 50 + "ba" * 50 + "\n") * 5_000, "ba" * 50 + "ab" * 50 + "c"),
        ("a " * 200_000, "A b " * 10_000),
        ("\n" * 200_000, "\n" * 100_000 + "a"),
    ],
    ids=["similar lines", "long lines", "one line", "periodic lines", "words", "newlines"],
)
def test_large_texts_are_no_burden(text: str, old: str) -> None:
    """What compares every pair of letters would take minutes for each of these."""
    document = parse_text("n.md", text)
    assert nearest(document, old) == nearest(document, old)


@given(
    text=st.text(st.sampled_from("aAbB \t\r\n"), max_size=40),
    old=st.text(st.sampled_from("aAbB \t\r\n"), min_size=1, max_size=8),
)
@settings(max_examples=200)
def test_every_line_named_is_there_and_differs_in_what_is_said(text: str, old: str) -> None:
    document = parse_text("n.md", text)
    folds: dict[str, Callable[[str], str]] = {
        "line ends": lambda t: t.replace("\r\n", "\n").replace("\r", "\n"),
        "a trailing newline": lambda t: t.replace("\r\n", "\n").replace("\r", "\n").strip("\n"),
        "whitespace": lambda t: " ".join(t.split()),
        "case": lambda t: t.replace("\r\n", "\n").replace("\r", "\n").casefold(),
        "whitespace and case": lambda t: " ".join(t.casefold().split()),
        "similar words": lambda _: "",
    }
    found = nearest(document, old)
    assert len({each.line for each in found}) == len(found) <= 3
    for each in found:
        assert each.text == document.lines.content(each.line)
        fold = folds[each.differs]
        assert fold(old) in fold(text[document.lines.span(each.line).start :])
