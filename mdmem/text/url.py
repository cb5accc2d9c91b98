"""URLs that nothing marks as such: where they begin, and what behind them belongs to the sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text.regex import regex


class Url(NamedTuple):
    """A URL, unescaped, and where it is written."""

    url: str
    span: Span
    line: int


# Blanks, quotes, brackets and the punctuation of other scripts end a URL. Both patterns begin with what is
# always the same: they are found forty times faster so than from the schemes on.
_REST = (
    r"\w[^\s<>\"`\[\]{}|\\^\u2018-\u201f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]*+"
)
_WITH_SCHEME = regex(f"://{_REST}")
_WITHOUT = regex(rf"www\.{_REST}")
_SCHEME = regex(r"(?:s?ptth|s?ptf)(?![^\W_])", re.IGNORECASE)  # read backwards
_LONGEST_SCHEME = 6
_URL_TAIL = frozenset("?!.,:*_~'\"")
_LONGEST_ENTITY = 12


def spans(text: str, start: int, end: int) -> list[Span]:
    """The URLs between `start` and `end`, each up to where it cannot go on."""
    found: list[Span] = []
    if text.find(":", start, end) >= 0 and "://" in text:  # one character is found much faster than three
        for url in _WITH_SCHEME.finditer(text, start, end):
            at = url.start()
            scheme = _SCHEME.match(text[max(start, at - _LONGEST_SCHEME) : at][::-1])
            if scheme:
                found.append(Span(at - scheme.end(), url.end()))
    if "www." in text:
        for url in _WITHOUT.finditer(text, start, end):
            at = url.start()
            if at == start or not (text[at - 1].isalnum() or text[at - 1] in "/.@"):
                found.append(Span(at, url.end()))
        found.sort()
    return found


def end(text: str, start: int, stop: int) -> int:
    """Where the URL from `start` to `stop` ends without what belongs to the sentence around it.

    GitHub Flavored Markdown 0.29, section 6.9.
    """
    excess = text.count(")", start, stop) - text.count("(", start, stop)
    while True:
        last = text[stop - 1]
        if last == ")" and excess > 0:
            excess -= 1
        elif last == ";":
            entity = text.rfind("&", max(start, stop - _LONGEST_ENTITY), stop)
            stop = entity + 1 if entity >= 0 and text[entity + 1 : stop - 1].isalnum() else stop
        elif last not in _URL_TAIL:
            return stop
        stop -= 1
