"""Tokens are those that the library `tokenizers` has, which only this test imports."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest

from mdmem.index import wordpiece
from mdmem.index.wordpiece import tokens_of
from tests import foreign, speed

OLD = unicodedata.ucd_3_2_0  # what is newer, the two may take for another kind of character


def texts(count: int) -> list[str]:
    rng = random.Random(1)
    files = [data.decode("utf-8", "replace") for data in foreign.files().values()]
    found = [text[at : at + 600] for text in files for at in range(0, min(len(text), 6_000), 600)]
    rng.shuffle(found)
    ranges = [(32, 127), (0, 0x300), (0x300, 0x3000), (0x3000, 0xD7FF), (0xE000, 0x20000), (0x20000, 0x2A6DF)]
    while len(found) < count:
        drawn = [chr(rng.randrange(*rng.choice(ranges))) if rng.random() < 0.85 else " " for _ in range(40)]
        known = [each for each in drawn if OLD.category(each) == unicodedata.category(each) != "Cn"]
        found.append("".join(known))
    return found[:count]


def test_tokens_are_those_of_the_library() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = Path(wordpiece.__file__).with_name("wordpiece.vocabulary")
    library = tokenizers.BertWordPieceTokenizer(str(path), lowercase=True)
    for text in texts(speed.examples(10_000)):
        assert tokens_of(text, 1 << 20) == library.encode(text).ids, text


def test_a_text_is_cut_to_some_tokens() -> None:
    text = "Unbelievable: naïve 数据 \u200b" + "x" * 101
    whole = tokens_of(text, 100)
    assert [tokens_of(text, most) for most in (3, 5)] == [[*whole[: most - 1], whole[-1]] for most in (3, 5)]
    assert tokens_of("", 10) == tokens_of("\0 \ufffd", 10) == [101, 102]
    assert whole[-2] == 100  # unknown: a word that long
