"""Where sentences end."""

from __future__ import annotations

import re

from hypothesis import example, given, settings, strategies as st

from mdmem.document.markdown.sentences import cut_at_sentence, sentences
from mdmem.document.text.tokens import estimate
from tests.speed import examples
from tests.tables import cases

EXAMPLES = examples(100)


def cut(text: str, longest: int = 1_000) -> list[str]:
    return [text[start:end] for start, end in sentences(text, longest=longest)]


@cases(
    "text, expected",
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Keep v1.2 alive. Drop 0.9.", ["Keep v1.2 alive.", "Drop 0.9."]),
        ("Use tabs, e.g. here, i.e. in code. Really.", ["Use tabs, e.g. here, i.e. in code.", "Really."]),
        ("Ask Dr. Who vs. Mr. Hyde. Now.", ["Ask Dr. Who vs. Mr. Hyde.", "Now."]),
        ("Tabs, spaces etc. are fine. Bye.", ["Tabs, spaces etc. are fine.", "Bye."]),
        ("Tabs, spaces etc. They are fine.", ["Tabs, spaces etc.", "They are fine."]),
        ("See no. 5 and p. 7. No. Not that.", ["See no. 5 and p. 7.", "No.", "Not that."]),
        ("1. Use tabs. 2. Or not.", ["1. Use tabs.", "2. Or not."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Wait... what?! Yes", ["Wait...", "what?!", "Yes"]),
        ("一句。两句！三句？四句；五句", ["一句。", "两句！", "三句？", "四句；", "五句"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("No full stop\nNext line\r\n\r\nLast", ["No full stop", "Next line", "Last"]),
        ("example.org/a.b is a host. So is it.", ["example.org/a.b is a host.", "So is it."]),
        (" \n\t\n", []),
        ("", []),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_a_long_line_that_goes_on_with_a_small_letter_was_broken_by_its_width() -> None:
    line = "a sentence that somebody has broken at the width of his window, as"
    assert cut(f"{line}\nmany do. Next") == [f"{line}\nmany do.", "Next"]
    assert cut(f"{line}\nMany do.") == [line, "Many do."]
    assert cut(f"{line}\n\nmany do.") == [line, "many do."]


def test_what_is_too_long_is_cut_between_words_where_there_are_any() -> None:
    assert cut("one two three four", longest=10) == ["one two", "three four"]
    assert cut("x" * 25, longest=10) == ["x" * 10, "x" * 10, "x" * 5]
    assert cut("一二三四五，六七八九十", longest=8) == ["一二三四五，", "六七八九十"]


@settings(max_examples=EXAMPLES)
@given(st.text(st.sampled_from("aZ1 .,!?\n\r\t。；“”\"'()e.g…\u3000")), st.integers(1, 30))
@example("a. " * 10, 1)
def test_sentences_stand_in_order_and_hold_every_word(text: str, longest: int) -> None:
    at = 0
    for start, end in sentences(text, longest=longest):
        assert at <= start < end <= start + longest
        assert not text[at:start].strip()
        assert text[start:end] == text[start:end].strip()
        at = end
    assert not text[at:].strip()


@cases(
    "text, most, expected",
    [
        ("One. Two.", 5, "One. Two."),
        ("One. Two. " + "x" * 100, 12, "One. Two. [101 characters left out]"),
        ('He said "Yes." Then ' + "x" * 100, 13, 'He said "Yes." [106 characters left out]'),
        ("第一句。第二句。" + "字" * 40, 18, "第一句。第二句。 [40 characters left out]"),
        ("A line\n\nanother line " + "x" * 100, 12, "A line [115 characters left out]"),
        ("v1.2 of a.py is " + "x" * 100, 16, "v1.2 of a.py[92 characters left out]xxxxxxxxxxxx"),
    ],
)
def test_a_long_text_is_cut_at_a_sentence_and_the_rest_counted(text: str, most: int, expected: str) -> None:
    assert cut_at_sentence(text, most) == expected
    assert estimate(expected) <= most


@given(st.text(st.sampled_from("ab .!?\n。字\u200d👍\"'")), st.integers(-1, 30))
def test_property_what_is_cut_at_a_sentence_fits_and_is_the_beginning(text: str, most: int) -> None:
    told = cut_at_sentence(text, most)
    assert estimate(told) <= max(most, 0)
    kept = re.split(r" ?\[[0-9,]+ characters left out\]", told)[0]
    assert text.startswith(kept)
    assert told == text or estimate(text) > most


def test_cutting_at_a_sentence_takes_no_longer_where_there_are_blanks_alone() -> None:
    assert estimate(cut_at_sentence("a." + " " * 400_000 + "b", 50_000)) <= 50_000
