"""Values and variables that are given on the command line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.errors import Usage
from tests.speed import examples
from tests.tables import cases


@cases(
    "text, value",
    [
        ("", None),
        ("null", None),
        ("~", None),
        ("5", 5),
        ("-1.5", -1.5),
        *((text, text) for text in ("0x10", "0o17", "1e3", "1234567e2", "9e99999", ".inf", "-0", ".5", "5.")),
        ("true", True),
        ("no", "no"),
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ('"5"', "5"),
        ("'it''s'", "it's"),
        ("[a, 1, [b]]", ["a", 1, ["b"]]),
        ("{a: 1, b: {c: null}}", {"a": 1, "b": {"c": None}}),
        (" 5 ", 5),
        *((number, number) for number in ("0123", "007", "-012", "00.5", "+4917")),
        *(("1.10", "1.10"), ('"1.10"', "1.10"), ("1.1", 1.1), ("5.0", 5.0), ("1e+20", 1e20)),
        ("[007, 8, {a: 01}, 3.10]", ["007", 8, {"a": "01"}, "3.10"]),
        *((link, link) for link in ("[[Ada]]", "[[notes/Ada#Life|her]]", "[[Ä b]]")),
        ("[[a, b]]", [["a", "b"]]),
        ("[[1], [2]]", [[1], [2]]),
        ('["[[a]]", "[[b]]"]', ["[[a]]", "[[b]]"]),
        ("0.5", 0.5),
        # YAML would take these apart, cut them off, or fold them.
        ("SQLite: one file", "SQLite: one file"),
        ("- x", "- x"),
        ("C # and D", "C # and D"),
        ("#1", "#1"),
        ("5 # five", "5 # five"),
        ("[a] # list", "[a] # list"),
        ("a\n\nb", "a\n\nb"),
        (" x ", " x "),
        ("&a x", "&a x"),
        ("*a", "*a"),
        ("!!str 5", "!!str 5"),
        ("> x", "> x"),
        ("|", "|"),
        ("--- a", "--- a"),
        ("[a", "[a"),
        ('"open', '"open'),
        ("{a: 1, a: 2}", "{a: 1, a: 2}"),
        ("\x00", "\x00"),
    ],
)
def test_a_value_is_yaml_in_one_line_or_the_text_itself(text: str, value: Any) -> None:
    found = mdmem.read_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["[" * 40 + "]" * 40, "[" + "x, " * 20_000 + "]", "\ud800"])
def test_a_value_that_no_memory_could_hold_is_refused(text: str) -> None:
    with pytest.raises(Usage):
        mdmem.read_value(text)


@settings(max_examples=examples(300))
@given(st.text(alphabet=st.sampled_from("ab:# -[]{}&*!|>'\"%@,?\n\t\\0159.~é"), max_size=12))
def test_a_text_is_never_changed(text: str) -> None:
    """What becomes a text is that text, unless it was quoted; nothing else is ever raised."""
    found = mdmem.read_value(text)
    if isinstance(found, str) and not text.strip().startswith(("'", '"')):
        assert found == text
