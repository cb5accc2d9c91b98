"""What a hit takes from its memory: the lines, and the headings above them, however little of it is read.

What a memory lends to the hits in it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.document import Document, parse_text
from mdmem.errors import MemoryNotFound, NotUtf8
from mdmem.index.database import record
from mdmem.index.hit import HitReader, headings_above, line_text, lines_text
from mdmem.index.ripgrep import Line
from tests.speed import examples
from tests.tables import cases

# What begins, continues or ends a block, so that much of it stands in the way of a heading.
_PIECES = (
    *("# A", "## B ##", "### C", "#", " ## D", "    # code", "- # item", "> # quote", "- item", "  # inside"),
    *("text", "more text", "===", "---", " ---", "```", "~~~", "  ```", "- ```", "> ```", "<div>", "<!--"),
    *("-->", "<pre>", "</pre>", "[a]: /b", "'title", "'", "", "", " ", "\t", "title: x"),
)
texts = st.builds(
    lambda start, lines: start + "".join(lines),
    st.sampled_from(("", "\ufeff", "---\ntitle: x\n---\n", "---\n")),
    st.lists(st.tuples(st.sampled_from(_PIECES), st.sampled_from(("\n", "\n", "\r\n", "\r"))).map("".join)),
)


def above(document: Document, line: int) -> tuple[str, ...]:
    """The headings above a line, of all that the scanner finds."""
    last = document.lines.span(line).end - 1
    paths = [section.path for section in document.sections if section.span.start <= last]
    return paths[-1] if paths else ()


@given(texts)
@settings(deadline=None, max_examples=examples(300))
def test_headings_that_the_index_knows_are_those_of_the_memory(text: str) -> None:
    document = parse_text("a.md", text)
    known = [(int(row[1] or 0), tuple(str(row[3]).split("\n"))) for row in record(document, 0).sections]
    for line in range(1, len(document.lines) + 1):
        assert (
            headings_above(document, line) == headings_above(document, line, known) == above(document, line)
        )


@cases(
    "text, line, expected",
    [
        ("# A\n\ntext\n", 3, ("A",)),
        ("# A\n\ntext\n", 1, ("A",)),
        ("\ufeff# A\n", 1, ("A",)),
        ("first\nline\n===\n", 1, ("first line",)),
        ("```\n# code\n```\n\ntext\n", 5, ()),
        ("---\ntitle: '# A'\n---\n# B\n", 2, ()),
        ("# A\n## B\n\ntext\n\n# C\n", 4, ("A", "B")),
    ],
)
def test_a_line_stands_under_its_headings(text: str, line: int, expected: tuple[str, ...]) -> None:
    assert headings_above(parse_text("a.md", text), line) == expected


def test_a_json_memory_has_no_headings() -> None:
    assert headings_above(parse_text("a.json", '{\n"a": "# b"\n}\n'), 2) == ()


@given(texts, st.integers(1, 9), st.integers(0, 9))
@settings(deadline=None, max_examples=examples(300))
def test_lines_together_are_the_lines_one_by_one(text: str, first: int, count: int) -> None:
    document = parse_text("a.md", text)
    lines = range(first, first + count)
    assert lines_text(document, lines) == [line_text(document, line) for line in lines]


TEXT = "# Plan\n\nwhy\nneedle\nend\n"


def reader(text: str, path: str = "users/a/2026-03-04.md") -> HitReader:
    return HitReader(path, lambda read: parse_text(read, text), "2026-03-04.md")


def test_a_hit_has_the_path_that_is_shown_and_what_the_memory_lends() -> None:
    hit = reader(TEXT).matched_hit(Line(4, 0, "needle", ((0, 6),)), 1, 1)
    assert (hit.path, hit.line, hit.heading, hit.date) == ("2026-03-04.md", 4, ("Plan",), "2026-03-04")
    assert (hit.text, hit.matches, hit.before, hit.after) == ("needle", ((0, 6),), ("why",), ("end",))


def test_a_memory_is_read_once_at_its_vault_path() -> None:
    read = []

    def noted(path: str) -> Document:
        read.append(path)
        return parse_text(path, TEXT)

    memory = HitReader("users/a/x.md", noted, "x.md")
    assert [memory.matched_hit(Line(n, 0, "", ()), 0, 0).path for n in (1, 2)] == ["x.md", "x.md"]
    assert read == ["users/a/x.md"]


def test_a_line_that_was_changed_meanwhile_is_lent_nothing() -> None:
    hit = reader(TEXT).matched_hit(Line(4, 0, "needle before", ()), 1, 1)
    assert (hit.line, hit.text, hit.heading, hit.before) == (4, "needle before", (), ())


@pytest.mark.parametrize(
    "error", [MemoryNotFound(path="a.md"), NotUtf8(path="a.md", offset=0, byte=0xFF, line=1)], ids=repr
)
def test_a_memory_that_cannot_be_read_has_hits_all_the_same(error: Exception) -> None:
    def refused(_: str) -> Document:
        raise error

    hit = HitReader("a.md", refused, "a.md").matched_hit(Line(2, 1, "needle", ()), 1, 1)
    assert (hit.line, hit.text, hit.heading, hit.date) == (3, "needle", (), "")


def test_lone_carriage_returns_count_as_line_ends() -> None:
    memory = reader("a\rb\nneedle\rneedle\n")
    assert [memory.matched_hit(Line(2, piece, "needle", ()), 1, 1).line for piece in (0, 1)] == [3, 4]
    assert memory.matched_hit(Line(2, 1, "needle", ()), 1, 1).before == ("needle",)


@given(st.lists(st.sampled_from(("a", "b c", "", "\n", "\r\n", "\r")), max_size=30).map("".join))
@settings(deadline=None)
def test_a_line_that_ripgrep_found_is_that_of_the_memory(text: str) -> None:
    """ripgrep counts line feeds; a lone carriage return, wherever it stands, ends a line of the memory."""
    memory, document = reader(text), parse_text("a.md", text)
    numbers = []
    for number, stretch in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        for piece, line in enumerate(stretch.removesuffix("\r").split("\r")):
            hit = memory.matched_hit(Line(number, piece, line, ()), 0, 0)
            numbers.append(hit.line)
            assert line == line_text(document, hit.line)
    assert numbers == list(range(1, len(numbers) + 1))
