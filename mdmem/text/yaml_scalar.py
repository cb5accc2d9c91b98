"""What a plain scalar of YAML stands for: the core schema of YAML 1.2.2, section 10.3.2.

https://yaml.org/spec/1.2.2/#1032-tag-resolution: `no` and `12:30` are strings, dates stay text.
"""

from __future__ import annotations

from typing import Any

from mdmem.text.regex import regex

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float("inf") for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
# Python refuses to write down an integer of more than 4300 decimal digits: such a scalar stays text.
_NUMBER = regex(
    r"([-+]?[0-9]{1,3500})|(0o[0-7]{1,3500}|0x[0-9a-fA-F]{1,3500})"
    r"|[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)"
)
_INTEGER, _BASED_INTEGER = 1, 2
_NUMBERS_BEGIN = frozenset("0123456789+-.")


def resolve(text: str) -> Any:
    """The value of a plain scalar under the YAML 1.2 core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBERS_BEGIN:
        return text
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    shape = number.lastindex
    return int(text) if shape == _INTEGER else int(text, base=0) if shape == _BASED_INTEGER else float(text)
