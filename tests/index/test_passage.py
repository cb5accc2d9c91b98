"""Memories are cut into passages that leave nothing out and stand where they say."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.index.passage import LONG, MOST, Passage, cut, indexed
from mdmem.text.document import Document, Limits, parse_text

MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(
            ["", " ", "# One", "## Two", "text", "- item", "```", "Setext", "===", "\t", "---", "title: x"]
        ),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
        st.integers(1, 40).map(lambda count: "some words " * count),
    ),
    max_size=30,
)


def passages(text: str, path: str = "notes/a.md") -> list[Passage]:
    return list(cut(parse_text(path, text)))


def written(document: Document, passage: Passage) -> str:
    return document.text[slice(*passage.span)]


def test_a_paragraph_is_a_passage_with_the_headings_above_it() -> None:
    found = passages("# Top\n\nOne.\n\n## Deep\n\nTwo.\nStill two.\n\nThree.\n")
    assert [(p.line, p.lines, p.heading, p.text) for p in found] == [
        (1, 3, ("Top",), "# Top\n\nOne."),
        (5, 4, ("Top", "Deep"), "## Deep\n\nTwo.\nStill two."),
        (10, 1, ("Top", "Deep"), "Three."),
    ]


def test_a_heading_with_nothing_under_it_counts_to_what_follows() -> None:
    found = passages("# Top\n\n## Deep\n\nText.\n\n## Last\n")
    assert [(p.line, p.heading, p.text) for p in found] == [
        (1, ("Top", "Deep"), "# Top\n\n## Deep\n\nText."),
        (7, ("Top", "Last"), "## Last"),
    ]


def test_a_long_list_is_cut_between_its_lines() -> None:
    text = "".join(f"- item number {number} of a list that goes on\n" for number in range(60))
    found = passages(text)
    assert len(found) > 1
    assert "\n".join(p.text.rstrip("\n") for p in found) == text.rstrip("\n")
    assert all(len(p.text) <= LONG for p in found)
    assert [p.line for p in found[1:]] == [p.line + p.lines for p in found[:-1]]


def test_a_line_is_cut_only_where_it_is_very_long() -> None:
    assert len(passages("word " * (MOST // 5 - 1))) == 1
    found = passages("word " * MOST)
    assert len(found) > 1
    assert {p.line for p in found} == {1}
    assert all(len(p.text) <= MOST for p in found)


@pytest.mark.timeout(30)
def test_a_line_of_megabytes_is_cut_in_one_go() -> None:
    """A look at the rest of the line for each piece of it would take minutes."""
    text = "ab " * 8_000_000
    found = list(cut(parse_text("a.md", text, Limits(max_bytes=len(text)))))
    assert max(len(passage.text) for passage in found) <= MOST
    assert sum(passage.text.count("ab") for passage in found) == 8_000_000


def test_an_escape_that_a_cut_parts_is_no_text() -> None:
    found = passages('["' + r"\u0041" * 2_000 + '"]', "a.json")
    assert len(found) > 1
    assert set("".join(passage.text for passage in found)) <= set('["A] u041')


def test_what_the_fields_say_is_a_passage_and_bookkeeping_is_none() -> None:
    text = "---\ntitle: T\nid: x1\ntags: [t]\nvalue: dark\nnested: {deep: [one, 2]}\n---\nBody.\n"
    found = passages(text)
    assert [(p.text, p.line, p.lines) for p in found] == [("dark\none\n2", 2, 5), ("Body.", 8, 1)]


def test_the_day_of_a_memory_is_found_by_its_month() -> None:
    memory = indexed(parse_text("notes/a.md", "---\ncreated: 2026-05-08\n---\nBody.\n"))
    assert memory.passages[0].text == "Body.\n2026-05-08 8 May 2026"
    assert memory.day == 20260508


def test_escapes_of_json_are_no_part_of_words() -> None:
    (found,) = passages('{"a": "one\\ntwo", "b": "caf\\u00e9 \\ud83d\\ude00"}', "notes/a.json")
    assert "one two" in found.text
    assert "café" in found.text


def test_an_empty_memory_has_one_empty_passage() -> None:
    for text in ("", "\n\n", "---\ntitle: x\n---\n"):
        assert [p.text for p in passages(text)] == [""]


def test_what_is_kept_of_a_memory_is_what_it_says() -> None:
    text = (
        "---\ntitle: Choice\ntags: [a/b]\naliases: [Pick]\ntype: Decision\nconfidence: 0.5\n"
        "date: 2026-01-02\n---\n# Head\n\nBody #more.\n"
    )
    memory = indexed(parse_text("notes/2025-db.md", text), modified=0)
    assert memory.title == "Choice\n2025-db"
    assert memory.headings == ("Head",)
    assert memory.tags == ("a/b", "more")
    assert memory.aliases == ("Pick",)
    assert (memory.type, memory.day, memory.confidence) == ("Decision", 20260102, 0.5)


def test_a_memory_without_fields_has_the_day_of_its_file_and_full_confidence() -> None:
    memory = indexed(parse_text("notes/a.md", "# Head\n"), modified=86_400 * 365)
    assert (memory.title, memory.day, memory.confidence) == ("Head\na", 19710101, 1.0)
    for value in ("true", "2", "-1", "high", ".nan"):
        assert indexed(parse_text("notes/a.md", f"---\nconfidence: {value}\n---\n")).confidence == 1.0


@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=400)
def test_passages_hold_every_character_that_is_not_blank_in_order(lines: list[str], end: str) -> None:
    document = parse_text("notes/a.md", end.join(lines))
    body = [p for p in cut(document) if p.span.start >= document.body_span.start]
    kept = "".join(written(document, p) for p in body)
    assert "".join(kept.split()) == "".join(document.body.split())
    assert all(one.span.end <= other.span.start for one, other in pairwise(body))


@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=400)
def test_a_passage_stands_in_the_lines_that_it_says(lines: list[str], end: str) -> None:
    document = parse_text("notes/a.md", end.join(lines))
    for passage in cut(document):
        if passage.span.start < passage.span.end and passage.span.start >= document.body_span.start:
            first = document.lines.span(passage.line).start
            last = document.lines.span(passage.line + passage.lines - 1).end
            assert first <= passage.span.start < passage.span.end <= last
