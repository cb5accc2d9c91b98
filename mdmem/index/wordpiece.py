"""WordPiece: the tokens of a text as BERT's uncased vocabulary has them (Devlin and others, 2019).

The library for this brings an HTTP client and 40 MB. The tests hold this to it. The vocabulary is Google's,
under the Apache License 2.0, which stands beside it.
"""

from __future__ import annotations

import os
import unicodedata
from functools import cache, lru_cache

_FILE = os.path.join(os.path.dirname(__file__), "wordpiece.vocabulary")
_LONGEST_WORD = 100  # characters
# What BERT takes for Chinese: each character is a word.
_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class _Spelling(dict[int, str]):
    """What stands for each character: nothing, a space, itself as a word, or its small letter."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if character.isspace() and (category != "Cc" or character in "\t\n\r"):
            spelled = " "
        elif category in {"Cc", "Cf", "Co", "Cs", "Mn"} or character == "\ufffd":
            spelled = ""
        elif (
            category[0] == "P"
            or (character.isascii() and not character.isalnum())
            or any(first <= code <= last for first, last in _CHINESE)
        ):
            spelled = f" {character} "
        else:
            spelled = character.lower()
        self[code] = spelled
        return spelled


_SPELLING = _Spelling()


def tokens_of(text: str, most: int) -> list[int]:
    """Return the numbers of the tokens of a text, at most `most`, with one before and one behind them."""
    vocabulary = _load_vocabulary()
    tokens = [vocabulary["[CLS]"]]
    for word in unicodedata.normalize("NFD", text).translate(_SPELLING).split():
        tokens += _split_word(word)
        if len(tokens) >= most:
            break
    return [*tokens[: most - 1], vocabulary["[SEP]"]]


@lru_cache(maxsize=1 << 14)
def _split_word(word: str) -> tuple[int, ...]:
    """Split a word into the longest tokens, from its beginning on; the unknown token where that fails."""
    vocabulary, tokens, start = _load_vocabulary(), [], 0
    unknown = (vocabulary["[UNK]"],)
    if len(word) > _LONGEST_WORD:
        return unknown
    while start < len(word):
        mark = "##" if start else ""
        end = len(word)
        while end > start and mark + word[start:end] not in vocabulary:
            end -= 1
        if end == start:
            return unknown
        tokens.append(vocabulary[mark + word[start:end]])
        start = end
    return tuple(tokens)


@cache
def _load_vocabulary() -> dict[str, int]:
    with open(_FILE, encoding="utf-8", newline="\n") as file:
        return {token: number for number, token in enumerate(file.read().removesuffix("\n").split("\n"))}
