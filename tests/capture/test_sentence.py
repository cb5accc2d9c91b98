"""How a sentence is meant: its clauses, and what its words may tell."""

from __future__ import annotations

import pytest

from mdmem.capture.lexicon import builtin
from mdmem.capture.sentence import ANY, OF_TEXTS, SpokenSentence
from mdmem.diagnostic import Span


def spoken(text: str) -> SpokenSentence:
    return SpokenSentence(text, Span(0, len(text)), builtin(), None)


def words_of(sentence: SpokenSentence, start: int, end: int) -> str:
    return " ".join(word.word for word in sentence.words[start:end])


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("Use tabs, not spaces", ["use tabs", "not spaces"]),
        ("It is 1,204 lines at 10:30", ["it is 1 204 lines at 10 30"]),
        ("Stop if it fails", ["stop", "if it fails"]),
        ("Keep it short and write plainly", ["keep it short", "and write plainly"]),
        ("别动接口，前端要用", ["别 动 接 口", "前 端 要 用"]),
        ("A (B) - C", ["a", "b", "c"]),
        ("", []),
    ],
)
def test_punctuation_and_words_that_begin_one_part_clauses(text: str, clauses: list[str]) -> None:
    sentence = spoken(text)
    found = [words_of(sentence, each.start, each.end) for each in sentence.clauses]
    assert [each for each in found if each] == clauses


def test_a_phrase_reaches_over_no_punctuation() -> None:
    assert any(mark.name == "constraint" for mark in spoken("make sure of it").marks)
    assert not any(mark.part == "openings" for mark in spoken("make, sure").marks)


def test_a_phrase_that_says_nothing_hides_those_in_it() -> None:
    assert not any(mark.name == "constraint" for mark in spoken("you must be joking").marks)
    assert any(mark.name == "constraint" for mark in spoken("it must be small").marks)


def test_an_order_may_stand_behind_fillers() -> None:
    sentence = spoken("But please never do it")
    assert sentence.clauses[-1].heads >= {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "silent"),
    [
        ("Never do it?", "never do it"),
        ("If it rains, never go out", "if it rains"),
        ("Never go out when it rains", "when it rains"),
        ("I wonder if it must be so", "i wonder if it must be so"),
        ("He said that we must go", "said that we must go"),
        ("You need not go", "you need not go"),
        ("I said we must go", ""),
    ],
)
def test_words_tell_nothing_where_they_are_asked_supposed_or_reported(text: str, silent: str) -> None:
    sentence = spoken(text)
    at = [number for number, kinds in enumerate(sentence.allowed) if not kinds]
    assert " ".join(sentence.words[number].word for number in at) == silent


def test_a_task_tells_how_a_text_is_to_be_written_and_no_more() -> None:
    assert set(spoken("Write a text for kids").allowed) == {OF_TEXTS}
    assert set(spoken("Never write a text").allowed) >= {ANY}
