"""What cannot be seen is shown, what writing needs stays, and no text closes the fence that it stands in."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt

from mdmem.text.visible import clipped, fenced, in_line, visible

TRICKY = st.text(st.one_of(st.sampled_from("`~ \n\r\t>-#<!\u202e\u200b\ufeff\U000e0041"), st.characters()))


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("safe\u202egnp.exe", "safe<U+202E>gnp.exe"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("pass\u200bword", "pass<U+200B>word"),
        ("a\ufeffb\u2060c", "a<U+FEFF>b<U+2060>c"),
        ("soft\u00adhyphen", "soft<U+00AD>hyphen"),
        ("\U000e0048\U000e0069", "<U+E0048><U+E0069>"),
        ("a\ufe0fb\U000e0101", "a<U+FE0F>b<U+E0101>"),
        ("\x1b[31mred\x07\x00", "<U+001B>[31mred<U+0007><U+0000>"),
        ("line\u2028paragraph\u2029next\x85", "line<U+2028>paragraph<U+2029>next<U+0085>"),
        ("\u3164\u115f\u034f\u180e", "<U+3164><U+115F><U+034F><U+180E>"),
    ],
)
def test_what_cannot_be_seen_is_named_by_its_code_point(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\n\nof lines",
        "❤️ ⚡︎ ©️",
        "1️⃣ #️⃣",
        "👩‍💻 👩🏽‍🚒 🏳️‍🌈",
        "می‌خواهم",
        "क्‍ष",
        "Tiếng Việt, ελληνικά, עברית, ไทย, 日本語, 한국어",
    ],
)
def test_what_writing_needs_stays(text: str) -> None:
    assert visible(text) == text


def test_only_one_selector_stays_behind_a_picture() -> None:
    assert visible("❤\ufe0f\ufe0f\ufe0e") == "❤\ufe0f<U+FE0F><U+FE0E>"


def test_a_joiner_stays_between_pictures_only() -> None:
    assert visible("a\u200d👩\u200d\u200d💻") == "a<U+200D>👩<U+200D><U+200D>💻"


def test_a_flag_of_tags_is_shown_for_tags_can_hide_sentences() -> None:
    assert visible("🏴\U000e0067\U000e007f") == "🏴<U+E0067><U+E007F>"


def test_every_format_and_control_character_that_unicode_knows_is_shown() -> None:
    """But for the tab and line ends, and the marks of Arabic and its kin that stand around a number."""
    numbers = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\t\n\r":
            assert (visible(character) == character) == (number in numbers), hex(number)


@given(TRICKY)
def test_what_is_visible_is_not_changed_again_and_has_as_many_lines(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert shown.count("\n") == text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


@given(TRICKY)
def test_a_text_in_a_line_is_one(text: str) -> None:
    assert "\n" not in in_line(text)
    assert visible(in_line(text)) == in_line(text)


@given(TRICKY, TRICKY)
@example("```", "a`b")
@example("~~~\n```", "`")
@example("````\n# out", "path with ``` in it")
@example("", "")
def test_no_text_and_no_name_gets_out_of_a_fence(text: str, info: str) -> None:
    """An independent parser sees one block of code, and what stands behind it."""
    tokens = MarkdownIt("commonmark").parse(f"{fenced(text, info)}\n\n# after\n")
    assert [token.type for token in tokens] == ["fence", "heading_open", "inline", "heading_close"]
    assert tokens[2].content == "after"
    shown = visible(text).strip("\n")
    assert tokens[0].content == f"{shown}\n"


def test_a_short_text_is_not_clipped() -> None:
    assert clipped("abc", 3) == "abc"


def test_a_clipped_text_says_on_both_sides_how_much_is_missing() -> None:
    text = "a" * 30 + "HERE" + "b" * 66
    assert clipped(text, 10, around=30) == "[27 characters left out]aaaHEREbbb[63 characters left out]"
    assert clipped(text, 97) == f"{text[:97]}[3 characters left out]"
