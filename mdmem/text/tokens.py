"""Tokens: about how many a language model makes of a text, for budgets. No tokenizer is needed."""

from __future__ import annotations

import math
import re

# Quarters of a token that a character is more than the one of a letter of ASCII, by script. Chosen between
# what the vocabularies cl100k_base and o200k_base of OpenAI make of the same paragraph in seventeen
# languages, and of 240,000 characters of Markdown (3.9 characters a token): nearer to the larger number,
# because a budget that is passed costs more than one that is not used up.
_QUARTERS = (
    # Digits: 1.7 characters a token in dates, addresses and numbers.
    (1, re.compile(r"[0-9]+")),
    # Latin letters with accents, Greek, Cyrillic, Armenian: 1.1 to 4.5 characters a token, in sum.
    (1, re.compile("[\u0080-\u058f\u1e00-\u1fff\u2c60-\u2c7f\ua720-\ua7ff]+")),
    # Hebrew, Arabic, the scripts of India and South-East Asia: 1 to 3.9.
    (2, re.compile("[\u0590-\u10ff\u1200-\u1dff]+")),
    # Hangul: 1.4 to 2.1.
    (2, re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")),
    # Kana, Han, and the signs used with them: 1 to 1.5.
    (
        3,
        re.compile(
            "[\u2e80-\u312f\u3190-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U000323af]+"
        ),
    ),
    # Pictures and rare scripts, which are spelled by their bytes: 0.4 to 0.6.
    (7, re.compile("[\u2600-\u27bf\ufe00-\ufe0f\U00010000-\U0001ffff\U000e0000-\U000fffff]+")),
)
_A_TOKEN = 4


def estimate(text: str) -> int:
    """About how many tokens a text is: one for four characters of English, more in other scripts.

    Args:
        text: any text, Markdown included.
    """
    quarters = len(text)
    for further, characters in _QUARTERS[:1] if text.isascii() else _QUARTERS:
        quarters += further * sum(map(len, characters.findall(text)))
    return math.ceil(quarters / _A_TOKEN)
