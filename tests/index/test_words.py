"""Texts and queries are taken apart in the same way: whatever is written is found as it is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.index import words

TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from('aAbZ_ \n"*-数据库カナ한글ไทย์ที่éÅﬁ\u0301'),
        st.just(" "),
    ),
    max_size=60,
)


def indexed(text: str) -> list[str]:
    return words.analyzer().analyze(words.written_out(text))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("the café", "cafe"),
        ("the cafe", "CAFÉ"),
        ("the cafe\u0301", "café"),
        ("running tests", "run test"),
        ("parse_config", "parse config"),
        ("parseConfig", "parse_config"),
        ("parseConfig", "parse config"),
        ("parseConfig", "parseconfig"),
        ("class HTTPServer:", "http server"),
        ("HTTPServer", "httpserver"),
        ("SQLite", "sqlite"),
        ("our GitHub account", "git hub"),
        ("我们使用SQLite数据库", "sqlite"),
        ("我们使用SQLite数据库", "数据库"),
        ("東京都に住む", "京都"),
        ("데이터베이스를", "데이터베이스"),
        ("ﬁle ＡＢＣ", "file abc"),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
        ("https://example.org/a/b?c=d", "example.org"),
    ],
)
# README: `search` ranks whole memories and their best passages …
def test_words_are_found_by_each_other(written: str, asked: str) -> None:
    assert set(words.words_of(asked)) <= set(indexed(written))


@pytest.mark.parametrize(
    ("written", "asked"), [("category", "cat"), ("deadbeefDEAD", "beef"), ("abc", "ab"), ("数据", "据数")]
)
def test_words_that_only_look_alike_are_not(written: str, asked: str) -> None:
    assert not set(words.words_of(asked)) <= set(indexed(written))


@given(TEXTS)
@settings(max_examples=300)
def test_every_text_is_found_by_itself(text: str) -> None:
    assert set(words.words_of(text)) <= set(indexed(text))


@given(TEXTS)
def test_a_phrase_has_runs_of_words_that_follow_each_other_in_its_text(text: str) -> None:
    found = indexed(text)
    for runs in words.runs_of(text):
        assert any(_follow(list(run), found) for run in runs)


def _follow(run: list[str], found: list[str]) -> bool:
    return any(found[at : at + len(run)] == run for at in range(len(found)))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("conf", "config"),
        ("configurat", "configuration"),
        ("happ", "happiness"),
        ("Caf", "café"),
        ("relation", "relational"),
    ],
)
def test_a_beginning_finds_the_stems_of_words_that_begin_so(asked: str, found: str) -> None:
    first, *stems = words.beginnings(asked)
    (stem,) = indexed(found)
    assert stem.startswith(first) or stem in stems


@pytest.mark.parametrize("text", ["", "*", "two words", "a-b", "\0"])
def test_what_is_not_one_word_is_no_beginning(text: str) -> None:
    assert words.beginnings(text) == []


def test_a_plain_text_is_one_that_stays_as_it_is() -> None:
    assert words.is_plain("Plain ASCII, with API and IDs.")
    assert words.written_out("Plain ASCII, with API and IDs.") == "Plain ASCII, with API and IDs."
    assert not words.is_plain("camelCase")
    assert words.is_plain("é")
    assert not words.is_plain("e\u0301")
    assert not words.is_plain("é 検索")
