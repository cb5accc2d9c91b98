"""The sentences of a text, in Chinese as well: what ends one, and what only looks as if it did.

No abbreviation and no version ends a sentence. A line end does, but for one where a long line goes on with a
small letter: whoever writes messages rarely ends a line with a full stop, and few break their lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import takewhile

from mdmem.diagnostic import Span
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import abridged, estimate, gap

# Signs with a blank behind them, the signs of Chinese, Japanese and Korean, and line ends. The pattern begins
# with one class of all these signs: `re` jumps to the next one. With three branches it would try each letter.
_END = regex(
    r"[.!?\u2026\u3002\uff01\uff1f\uff1b\r\n](?:"
    r"(?<=[.!?\u2026])[.!?\u2026]*+[\"')\]\u2019\u201d\u00bb*_]*+(?=\s|\Z)"
    r"|(?<=[\u3002\uff01\uff1f\uff1b])[\u3002\uff01\uff1f\uff1b]*+[\"')\]\u2019\u201d\u300d\u300f\uff09]*+"
    r"|(?<=[\r\n])[\r\n]*+)"
)
_WORD_BEFORE = regex(r"[^\W_]+(?:\.[^\W_]+)*\Z")
_LONGEST_ABBREVIATION = 12
_ALWAYS = {
    *("e.g", "i.e", "z.b", "d.h", "vs", "cf", "approx", "resp", "incl", "excl"),
    *("dr", "mr", "mrs", "ms", "prof", "fig", "figs", "eq", "ref"),
    *("vol", "ver", "bzw", "ca", "st"),
}
"""Abbreviations behind which a sentence goes on."""
_BEFORE_SMALL = {
    *("etc", "al", "a.m", "p.m", "u.s", "u.k", "inc", "ltd", "corp", "dept"),
    *("est", "min", "max", "sec", "usw"),
}
"""Those behind which it may also end: it goes on where no capital letter follows."""
_BEFORE_DIGITS = {"no", "nr", "pp", "p", "art"}
_WRAPPED = 60  # characters of a line from which on it may have been broken by its width
_BLANK = regex(r"\s*+")
_A_TOKEN = 8  # characters that are one, at most
_BETWEEN = " \t\u3000,;\uff0c\u3001"


def sentences(text: str, longest: int = 1_000) -> Iterator[Span]:
    """Yield where each sentence of a text stands, without the blanks around it.

    One of more than `longest` characters is cut between words if there are any.
    """
    begin, stop = 0, len(text)
    for found in _END.finditer(text):
        at, behind = found.span()
        if not _goes_on(text, begin, at, behind):
            yield from _split_sentence(text, begin, behind, longest)
            begin = behind
    if begin < stop:
        yield from _split_sentence(text, begin, stop, longest)


def cut_at_sentence(text: str, most: int) -> str:
    """Return a text, or of one of more than `most` tokens its first sentences, and how much is behind them.

    Where not even the first one fits, it is cut as `abridged` does.
    """
    if len(text) <= most * _A_TOKEN and estimate(text) <= most:
        return text
    spans = takewhile(lambda span: span.end <= most * _A_TOKEN, sentences(text, longest=len(text)))
    ends = [span.end for span in spans]
    fitting = bisect_right(ends, most, key=lambda end: estimate(_cut_beginning(text, end)))
    return _cut_beginning(text, ends[fitting - 1]) if fitting else abridged(text, most)


def _cut_beginning(text: str, end: int) -> str:
    return f"{text[:end]} {gap(len(text) - end)}"


def _goes_on(text: str, begin: int, at: int, behind: int) -> bool:
    """Return whether the sentence goes on behind `text[at:behind]`, which looks like its end."""
    sign = text[at:behind]
    if sign in ("\n", "\r", "\r\n"):
        following = _next_character(text, behind)
        return at - begin >= _WRAPPED and following.islower() and following.isascii()
    if sign != "." or behind >= len(text):
        return False
    before = text[max(begin, at - _LONGEST_ABBREVIATION) : at].casefold().rpartition(" ")[2]
    if not before.isalnum():
        word = _WORD_BEFORE.search(before)
        before = word[0] if word else ""
    if before.isdigit():  # the number of a list's item
        return at - len(before) == begin + len(text[begin:at]) - len(text[begin:at].lstrip())
    return (
        before in _ALWAYS
        or (before in _BEFORE_SMALL and not _next_character(text, behind).isupper())
        or (before in _BEFORE_DIGITS and _next_character(text, behind).isdigit())
    )


def _next_character(text: str, at: int) -> str:
    """Return the character at a place, or behind a blank there; nothing if there is none."""
    return text[at : at + 2].lstrip()[:1]


def _split_sentence(text: str, start: int, end: int, longest: int) -> list[Span]:
    """Return a sentence without the blanks around it, in pieces if it is too long."""
    whole = text[start:end].rstrip()
    last = start + len(whole)
    at = last - len(whole.lstrip())
    pieces = []
    while last - at > longest:
        least = at + longest // 2
        stop = max(text.rfind(sign, least, at + longest) for sign in _BETWEEN) + 1 or at + longest
        pieces.append(Span(at, at + len(text[at:stop].rstrip())))
        found = _BLANK.match(text, stop, last)
        at = found.end() if found else stop
    if at < last:
        pieces.append(Span(at, last))
    return pieces
