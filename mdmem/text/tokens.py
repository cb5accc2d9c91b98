"""Tokens: how many a language model makes of a text, for budgets. No tokenizer is needed; one can be used."""

from __future__ import annotations

import math
from collections.abc import Callable

from mdmem.text.regex import regex

# Quarters of a token that a character is more than the one of a letter of ASCII, by script. Chosen between
# what the vocabularies cl100k_base and o200k_base of OpenAI make of the same paragraph in twenty-four
# languages, and of 530,000 characters of Markdown, JSON and code: nearer to the larger number, because a
# budget that is passed costs more than one that is not used up. It is a sum over characters, so that a text
# costs no less than a part of it, and no more than its parts; what random letters cost is underestimated.
_QUARTERS = (
    # Digits, in dates, addresses and numbers, and the signs of ASCII: 1 to 3 characters a token.
    (1, regex(r"[!-@\[-`{-~]+")),
    # Greek, Cyrillic, Armenian: 1.1 to 4.5 characters a token, in sum.
    (1, regex("[\u0250-\u058f\u1f00-\u1fff]+")),
    # Latin letters with accents, alone.
    (2, regex("[\u0080-\u024f\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff]+")),
    # Hebrew, Arabic, the scripts of India and South-East Asia, Georgian: 1 to 3.9.
    (2, regex("[\u0590-\u10ff\u1780-\u17ff\u1c90-\u1cbf]+")),
    # Hangul: 1.4 to 2.1.
    (2, regex("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")),
    # Kana, Han, and the signs used with them: 1 to 1.5. Dashes, quotes, arrows, the signs of mathematics,
    # lines of tables, and what cannot be seen: 0.7 to 1.6.
    (
        3,
        regex("[\u2000-\u25ff\u2e80-\u312f\u3190-\ua4cf\uf900-\ufaff\ufe30-\uffef]+"),
    ),
    # Pictures, Ethiopic and other rare scripts, which are spelled by their bytes: 0.4 to 0.6.
    (
        7,
        regex("[\u1200-\u177f\u1800-\u1c8f\u1cc0-\u1dff\u2600-\u2bff\ufe00-\ufe0f\U0001f000-\U0001ffff]+"),
    ),
    # Scripts of old, rare Han, letters of mathematics, and tags: 0.2 to 0.5.
    (12, regex("[\U00010000-\U0001efff\U00020000-\U0010ffff]+")),
)
_A_TOKEN = 4
_VOCABULARY = "o200k_base"  # of OpenAI's models; no vocabulary of Claude's is published


def estimate(text: str) -> int:
    """About how many tokens a text is: one for four characters of English, more in other scripts.

    Args:
        text: any text, Markdown included.
    """
    quarters = len(text)
    for further, characters in _QUARTERS[:1] if text.isascii() else _QUARTERS:
        quarters += further * sum(map(len, characters.findall(text)))
    return math.ceil(quarters / _A_TOKEN)


def counter(*, estimated: bool = False) -> Callable[[str], int]:
    """What counts the tokens of a text: a tokenizer where one is installed (extra `tokens`), else `estimate`.

    Args:
        estimated: take `estimate` in every case; loading a tokenizer takes half a second.
    """
    if estimated:
        return estimate
    try:
        import toktok  # noqa: PLC0415 - it is optional, and takes half a second
    except ImportError:
        return estimate

    def count(text: str) -> int:
        # One thread: starting more costs longer than counting. What is no UTF-8 is never in a memory.
        return int(toktok.batch_count([text.encode(errors="replace").decode()], _VOCABULARY, 1)[0])

    return count
