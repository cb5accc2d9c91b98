"""Where frontmatter begins and ends, and what stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document import frontmatter
from mdmem.document.frontmatter import Frontmatter
from mdmem.document.tree import TooDeep

ROOT = Path(__file__).parents[2]


def parse(text: str) -> Frontmatter:
    return frontmatter.parse(text, max_depth=32, max_values=10_000)


@pytest.mark.parametrize(
    ("text", "inner", "body", "values"),
    [
        ("---\na: 1\n---\nbody\n", "a: 1\n", "body\n", {"a": 1}),
        ("\ufeff---\na: 1\n---\nbody", "a: 1\n", "body", {"a": 1}),
        ("---\r\na: 1\r\n---\r\nbody\r\n", "a: 1\r\n", "body\r\n", {"a": 1}),
        ("---\ra: 1\r---\rbody", "a: 1\r", "body", {"a": 1}),
        ("---\na: 1\r\n---\rbody", "a: 1\r\n", "body", {"a": 1}),
        ("---\na: 1\n---", "a: 1\n", "", {"a": 1}),
        ("---\na: 1\n---\n", "a: 1\n", "", {"a": 1}),
        ("--- \t\na: 1\n---\t \nbody", "a: 1\n", "body", {"a": 1}),
        ("---\n---\n", "", "", {}),
        ("---\n---", "", "", {}),
        ("---\n\n---\nbody", "\n", "body", {}),
        ("---\n# comment\n---\nbody", "# comment\n", "body", {}),
        ("---\n{}\n---\nbody", "{}\n", "body", {}),
        ("---\na: |\n  ---\n  x\n---\nbody", "a: |\n  ---\n  x\n", "body", {"a": "---\nx\n"}),
        ("---\na: 1\n---\nb\n\n---\n\nc\n---\n", "a: 1\n", "b\n\n---\n\nc\n---\n", {"a": 1}),
        (
            "---\na: 1\n----: 2\n---x: 3\n---\nb",
            "a: 1\n----: 2\n---x: 3\n",
            "b",
            {"a": 1, "----": 2, "---x": 3},
        ),
        ("---\na: ---\n---\nbody", "a: ---\n", "body", {"a": "---"}),
    ],
)
def test_frontmatter_is_what_stands_between_the_first_two_lines_of_dashes(
    text: str, inner: str, body: str, values: dict[str, Any]
) -> None:
    found = parse(text)
    assert found.present
    assert text[slice(*found.inner)] == inner
    assert text[found.span.end :] == body
    assert found.values == values
    assert found.flaws == ()
    assert found.span.start == (1 if text.startswith("\ufeff") else 0)


@pytest.mark.parametrize(
    "text",
    [
        *("", "body\n", "\ufeff", "\ufeffbody", "---", "---\n"),
        *("---\n\nA paragraph behind a thematic break.\n", "---\n\nkey: value, but behind an empty line\n"),
        *("---\n# Heading\n", "---\n- item\n", "----\na: 1\n----\n", " ---\na: 1\n---\n"),
        *("\n---\na: 1\n---\n", "--- x\na: 1\n---\n", "\u2028---\na: 1\n---\n", "---\u2028a: 1\n---\n"),
        *("***\na: 1\n---\n", "```\n---\na: 1\n---\n```\n"),
    ],
)
def test_any_other_beginning_is_the_body(text: str) -> None:
    found = parse(text)
    assert not found.present
    start = 1 if text.startswith("\ufeff") else 0
    assert (found.span, found.inner) == ((start, start), (start, start))
    assert (found.node, found.flaws, found.values) == (None, (), {})


@pytest.mark.parametrize(
    "text", ["---\na: 1\n", "---\ntitle:\n", "\ufeff---\r\n'a b': 1\r\n\r\nbody", "---\na: 1\nb: 2\n----\n"]
)
def test_a_first_line_of_dashes_with_a_key_behind_it_was_meant_to_be_closed(text: str) -> None:
    found = parse(text)
    assert not found.present
    (flaw,) = found.flaws
    assert flaw.code == "frontmatter-unclosed"
    assert text[slice(*flaw.span)] == "---"


@pytest.mark.parametrize(
    ("inner", "kind"),
    [("- a\n- b\n", "list"), ("[a]\n", "list"), ("just text\n", "scalar"), ("12\n", "scalar")],
)
def test_frontmatter_that_holds_no_fields_is_a_flaw_and_the_body_is_still_known(
    inner: str, kind: str
) -> None:
    text = f"---\n{inner}---\nbody"
    found = parse(text)
    assert text[found.span.end :] == "body"
    assert (found.node, found.values) == (None, {})
    (flaw,) = found.flaws
    assert flaw.code == "frontmatter-not-a-mapping"
    assert kind in flaw.message
    assert text[slice(*flaw.span)] == inner.rstrip("\n")


def test_empty_braces_are_a_mapping_that_fields_can_be_put_into() -> None:
    node = parse("---\n{}\n---\n").node
    assert node is not None
    assert (node.kind, node.style, node.span) == ("mapping", "flow", (4, 6))


def test_flaws_stand_where_they_are_in_the_whole_text() -> None:
    text = "\ufeff---\nb: ok\na: x: y\n---\nbody"
    found = parse(text)
    assert [(f.code, text[f.span.start :].splitlines()[0]) for f in found.flaws] == [("invalid-yaml", ": y")]
    assert text[found.span.end :] == "body"


def test_spans_of_values_count_from_the_beginning_of_the_text() -> None:
    text = "\ufeff---\r\n😀: a\r\nb: [1, 2]\r\n---\r\nbody"
    node = parse(text).node
    assert node is not None
    assert [text[slice(*m.node.span)] for m in node.members] == ["a", "[1, 2]"]


def test_a_limit_is_passed_at_an_offset_of_the_whole_text() -> None:
    text = "---\na: " + "[" * 40 + "\n---\n"
    with pytest.raises(TooDeep) as caught:
        parse(text)
    assert caught.value.offset == text.index("[") + 31


PIECES = st.lists(
    st.sampled_from(
        ["---", "----", "--- ", " ---", "a: 1", "- b", "text", "", "\ufeff", "\n", "\r\n", "\r", "\u2028"]
    ),
    max_size=12,
).map("".join)


@given(PIECES)
@settings(max_examples=600)
def test_the_three_parts_of_a_text_make_it_up_and_parsing_the_body_alone_finds_it_whole(text: str) -> None:
    found = parse(text)
    block = text[slice(*found.span)]
    assert text == text[: found.span.start] + block + text[found.span.end :]
    assert text[: found.span.start] in ("", "\ufeff")
    assert found.span.start <= found.inner.start <= found.inner.end <= found.span.end
    if found.present:
        lines = block.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
        assert (lines[0].rstrip(" \t"), lines[-1].rstrip(" \t")) == ("---", "---")
        assert all(line.rstrip(" \t") != "---" for line in lines[1:-1])
        alone = frontmatter.parse(block, max_depth=32, max_values=10_000)
        assert alone.span == (0, len(block))
