"""The cells of a Markdown table: no link or code span reaches from one into the next.

GitHub Flavored Markdown 0.29, section 4.10 (https://github.github.com/gfm/#tables-extension-).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.diagnostic import Span
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COLUMN = r"[ \t]*+:?-++:?[ \t]*+"
_DELIMITERS = regex(
    rf"[ \t]*+(?:\|{_COLUMN}(?:\|{_COLUMN})*+\|?|{_COLUMN}(?:\|{_COLUMN})++\|?|{_COLUMN}\|)[ \t]*+"
)
# One of these is in every row of delimiters.
_HINTS = regex(r"\|[ \t]*+:?-"), regex(r"-:?[ \t]*+\|")
_BAR = regex(r"\\[\s\S]|\|")


def split(text: str, texts: Sequence[Span]) -> list[Span]:
    """`texts` with each paragraph that holds a table replaced by what is before it, and its cells."""
    if not any(hint.search(text, texts[0].start, texts[-1].end) for hint in _HINTS):
        return list(texts)
    found: list[Span] = []
    for span in texts:
        if text.find("|", *span) >= 0 and text.find("-", *span) >= 0:
            found += _paragraph(text, span)
        else:
            found.append(span)
    return found


def _paragraph(text: str, span: Span) -> Iterator[Span]:
    rows = list(_rows(text, span))
    for number in range(1, len(rows)):
        row = rows[number]
        if text.find("-", *row) >= 0 and _DELIMITERS.fullmatch(text, *row):
            head = list(_cells(text, rows[number - 1]))
            if len(head) == len(list(_cells(text, row))):
                break
    else:
        yield span
        return
    if number > 1:
        yield Span(span.start, rows[number - 2].end)
    yield from head
    for row in rows[number + 1 :]:
        yield from list(_cells(text, row))[: len(head)]


def _rows(text: str, span: Span) -> Iterator[Span]:
    start = span.start
    for ending in LINE_END.finditer(text, *span):
        yield Span(start, ending.start())
        start = ending.end()
    yield Span(start, span.end)


def _cells(text: str, row: Span) -> Iterator[Span]:
    start, end = row
    while start < end and text[start] in " \t":
        start += 1
    while end > start and text[end - 1] in " \t":
        end -= 1
    if text.startswith("|", start, end):
        start += 1
    for bar in _BAR.finditer(text, start, end):
        if bar[0] == "|":
            yield Span(start, bar.start())
            start = bar.end()
    if start < end:
        yield Span(start, end)
