"""The line table, compared with a reference that walks the text character by character."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from mdmem.document.text.lines import Lines, whole_lines, with_newline
from tests.speed import examples
from tests.tables import cases

TEXTS = st.text(st.sampled_from("ab\n\r\f\v\x1c\x85\u2028\u2029😀"), max_size=40)


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, one character at a time."""
    result = [""]
    for at, character in enumerate(text):
        result[-1] += character
        if character == "\n" or (character == "\r" and text[at + 1 : at + 2] != "\n"):
            result.append("")
    return [line for line in result if line]


@given(TEXTS)
def test_spans_and_contents_are_those_of_the_reference(text: str) -> None:
    lines, expected = Lines(text), lines_of(text)
    assert len(lines) == len(expected)
    written = [text[slice(*lines.span(number))] for number in range(1, len(lines) + 1)]
    assert written == expected
    assert whole_lines(text) == expected
    contents = [lines.content(number) for number in range(1, len(lines) + 1)]
    assert contents == [line.rstrip("\r\n") for line in expected]


@given(TEXTS)
def test_every_offset_has_the_line_and_column_of_the_reference(text: str) -> None:
    lines, reached = Lines(text), 0
    for number, line in enumerate(lines_of(text), start=1):
        for column in range(1, len(line) + 1):
            assert lines.number(reached) == number
            assert lines.position(reached) == (number, column)
            reached += 1
    assert lines.number(len(text)) == max(1, len(lines))


@cases("inside", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_what_only_python_takes_for_a_line_end_is_inside_a_line(inside: str) -> None:
    lines = Lines(f"a{inside}b\nc")
    assert len(lines) == 2
    assert lines.content(1) == f"a{inside}b"


def test_an_empty_text_has_no_lines_and_its_end_is_the_first_position() -> None:
    lines = Lines("")
    assert len(lines) == 0
    assert lines.position(0) == (1, 1)


def test_a_final_line_end_starts_no_other_line_and_the_end_belongs_to_the_last_one() -> None:
    lines = Lines("a\r\nb\r\n")
    assert len(lines) == 2
    assert lines.position(6) == (2, 4)


@cases(
    "text, newline, uniform",
    [
        *(("", "\n", True), ("a", "\n", True), ("a\nb", "\n", True), ("a\r\nb\r\n", "\r\n", True)),
        *(("a\rb\r", "\r", True), ("a\r\nb\r\nc\n", "\r\n", False), ("a\nb\nc\r\n", "\n", False)),
        *(("a\n\rb", "\n", False), ("a\r\r\nb", "\r\n", False)),
    ],
)
def test_newline_is_the_most_frequent_line_end_and_uniform_says_whether_it_is_the_only_one(
    text: str, newline: str, uniform: bool
) -> None:
    lines = Lines(text)
    assert (lines.newline, lines.uniform) == (newline, uniform)


@given(
    st.text(st.sampled_from("ab\n\r"), min_size=1, max_size=9), st.text("a\r", max_size=5), st.integers(0, 9)
)
@settings(deadline=None, max_examples=examples(50))
def test_of_a_long_text_the_lines_are_those_of_a_short_one(unit: str, tail: str, start: int) -> None:
    text = unit * (100_000 // len(unit)) + tail
    assert whole_lines(text, start, len(text) - 1) == text[start:-1].splitlines(keepends=True)


def test_lines_that_are_equal_are_kept_once() -> None:
    """Three versions of a memory of two million lines would take 600 MB."""
    lines = whole_lines("a\r" * 500_000)
    assert len(lines) == 500_000
    assert len(set(map(id, lines[:400_000]))) == 1


@given(TEXTS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_with_newline_ends_every_line_alike_and_changes_nothing_else(text: str, newline: str) -> None:
    result = with_newline(text, newline)
    assert [line.rstrip("\r\n") for line in lines_of(result)] == [
        line.rstrip("\r\n") for line in lines_of(text)
    ]
    assert {line[len(line.rstrip("\r\n")) :] for line in lines_of(result)} <= {newline, ""}
    assert Lines(result).uniform
