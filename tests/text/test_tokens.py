"""Estimates are near what tokenizers make of a text, in every script, and never fall when a text grows."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from mdmem.text.tokens import estimate


# What cl100k_base and o200k_base make of the same text, the smaller number first.
@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The decision was to use one file for the database, because it can be deleted at any time.", 19, 19),
        ("def parse(path: str, *, strict: bool = False) -> Config:\n    return load(path)\n", 21, 21),
        ("Die Entscheidung fiel für eine einzige Datei, weil sie jederzeit gelöscht werden kann.", 17, 24),
        ("Было решено использовать один файл, потому что его можно удалить в любой момент.", 18, 31),
        ("我们决定使用一个文件，因为它可以随时删除。", 15, 21),
        ("언제든지 삭제할 수 있기 때문에 하나의 파일을 사용하기로 결정했습니다.", 18, 28),
    ],
)
def test_an_estimate_is_near_what_tokenizers_make_of_it(text: str, least: int, most: int) -> None:
    assert least * 0.7 <= estimate(text) <= most * 1.5


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fiver", 2), ("2026", 2), ("你好", 2)]
)
def test_four_letters_are_a_token_two_digits_and_one_character_of_han(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_two_texts_take_no_more_than_both_alone_and_no_less_than_either(one: str, other: str) -> None:
    both = estimate(one + other)
    assert max(estimate(one), estimate(other)) <= both <= estimate(one) + estimate(other)
