"""Values as YAML: which texts are plain, which are quoted, and what lines a value takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import given, settings, strategies as st

from mdmem.document import yaml_edit
from mdmem.document.tree import same
from mdmem.document.yaml import parse
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from mdmem.document.tree import Style


def _read(text: str) -> Any:
    node = parse(text, max_depth=40, max_values=10_000).node
    assert node is not None
    return node.value


@cases(
    "text",
    [
        *("word", "two words", "it's", "a:b", "https://example.org/a?b=c#d", "a#b", "src/app.py#L10-L23"),
        *("1.2.3", "10 apples", "2024-01-02", "2024-01-02T10:00:00Z", "2024-01-02T10:00:00.5+02:00"),
        *("naïve 日本 😀", "a, b [c] {d}"),
    ],
)
def test_texts_that_every_reader_takes_for_texts_are_plain(text: str) -> None:
    assert yaml_edit.scalar(text) == text


@cases(
    "text",
    [
        *("", " a", "a ", "yes", "No", "ON", "off", "y", "N", "true", "null", "~"),
        *("12", "1_000", "1,000", "012", "0o7", "0x1f", "1e3", "1.5", ".5", ".inf", ".nan", "0b11"),
        *("12:30", "12:30:45", "190:20:30", "2024-1-2 1:00:00", "2024-01-02 10:00:00", "=", "<<"),
        *("- a", "-a", "?", ": a", "a: b", "a:", "a #b", "#a", "&a", "*a", "!a", "|", ">", "'a", '"a', "%a"),
        *("@a", "`a", "[a", "{a", "]", "}", ",", "---", "...", "... a"),
        *("\t", "a\tb", "a\nb", "\x7f", "\x85", "\u2028", "\ufeff"),
    ],
)
def test_texts_that_a_reader_could_take_for_something_else_are_quoted(text: str) -> None:
    written = yaml_edit.scalar(text)
    assert written.startswith('"')
    assert _read(f"a: {written}\n") == {"a": text}
    assert yaml.safe_load(f"a: {written}\n") == {"a": text}


def test_brackets_and_commas_are_quoted_inside_brackets() -> None:
    assert yaml_edit.inline(["a, b", "[c]", {"d}": "e"}]) == '["a, b", "[c]", {"d}": e}]'


def test_quotes_stay_where_they_can_hold_the_text() -> None:
    assert yaml_edit.scalar("it's", "single") == "'it''s'"
    assert yaml_edit.scalar("a\nb", "single") == '"a\\nb"'
    assert yaml_edit.scalar("plain", "double") == '"plain"'
    assert yaml_edit.scalar("plain", "literal") == "plain"


@cases(
    "value, written",
    [
        *((None, "null"), (True, "true"), (False, "false"), (0, "0"), (-12, "-12"), (1.0, "1.0")),
        *((1e16, "1.0e+16"), (1.5e-7, "1.5e-07"), (math.inf, ".inf"), (-math.inf, "-.inf")),
        (math.nan, ".nan"),
    ],
)
def test_other_scalars(value: Any, written: str) -> None:
    assert yaml_edit.scalar(value) == written
    assert same(_read(f"a: {written}\n"), {"a": value})
    assert repr(yaml.safe_load(written)) == repr(value)


def test_block_style() -> None:
    value = {"a": [1, {"b": 2, "c": []}, [3, 4]], "d": {"e": {}}}
    assert yaml_edit.block(value, 2) == [
        "a:",
        "  - 1",
        "  - b: 2",
        "    c: []",
        "  - - 3",
        "    - 4",
        "d:",
        "  e: {}",
    ]
    assert yaml_edit.block({"a": [1]}, 0) == ["a:", "- 1"]


@cases(
    "text, style, written",
    [
        *(("a\nb\n", "literal", ("|", ["a", "b"])), ("a\nb", "literal", ("|-", ["a", "b"]))),
        *(("a\n", "folded", (">", ["a"])), ("a\nb\n", "folded", ("|", ["a", "b"])), ("a", "literal", None)),
        *(("\na\n", "literal", None), (" a\n", "literal", None), ("a\n\n", "literal", None)),
        *(("a\n \nb\n", "literal", None), ("a\tb\n", "literal", None), ("", "literal", None)),
        ("\n", "folded", None),
    ],
)
def test_block_scalars_are_kept_where_they_are_safe(
    text: str, style: Style, written: tuple[str, list[str]] | None
) -> None:
    assert yaml_edit.literal(text, style) == written


@settings(max_examples=examples(200))
@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["plain", "single", "double"]))
def test_every_text_reads_back(text: str, style: Style) -> None:
    written = yaml_edit.scalar(text, style)
    assert "\n" not in written
    assert "\r" not in written
    assert _read(f"a: {written} # c\n") == {"a": text}
    assert _read(f"a: {yaml_edit.inline([text, {text: text}])}\n") == {"a": [text, {text: text}]}
