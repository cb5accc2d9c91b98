"""The line table of a text: where each line starts, and what ends it."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from functools import cached_property

from mdmem.diagnostic import Position, Span
from mdmem.document.text.regex import regex

MOST_PARTS = 100_000
"""The most headings, links, JSON values or the like in a text, unless a limit says otherwise."""

# Only these end a line. str.splitlines also breaks at form feeds, U+0085, U+2028 and more,
# which are characters inside a line for Markdown, git and every editor.
LINE_END = regex(r"\r\n|\n|\r")
_LINE = regex(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_STRETCH = 1 << 16  # code points that are cut into lines at once: a text may have millions


class Lines:
    """The lines of `text`. Numbers are 1-based; a final line end does not start another line."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def starts(self) -> array[int]:
        """The offset of each line's first character; empty for an empty text."""
        text = self.text
        if "\r" in text:  # one character for each line end, where it ends
            text = text.replace("\r\n", " \n").replace("\r", "\n")
        starts = array("l", (0,) if text else ())
        for at in range(0, len(text), _STRETCH):
            lines = text[at : at + _STRETCH].split("\n")
            starts.fromlist([at := at + len(line) + 1 for line in lines[:-1]])
        if starts and starts[-1] == len(text):
            starts.pop()
        return starts

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        """Return the number of the line that `offset` stands in.

        The end of the text counts to its last line.
        """
        return bisect_right(self.starts, offset) or 1

    def position(self, offset: int) -> Position:
        """Return the line and column of `offset`."""
        line = self.number(offset)
        return Position(line, offset - (self.starts[line - 1] if self.starts else 0) + 1)

    def span(self, number: int) -> Span:
        """Return the span of line `number`, its line end included."""
        following = self.starts[number] if number < len(self.starts) else len(self.text)
        return Span(self.starts[number - 1], following)

    def around(self, offset: int) -> Span:
        """Return the span of the line that `offset` stands in, its line end included."""
        return self.span(self.number(offset))

    def content(self, number: int) -> str:
        """Line `number` without its line end."""
        start, end = self.span(number)
        return self.text[start:end].rstrip("\r\n")

    def content_end(self, number: int) -> int:
        """Return where line `number` ends, before its line end."""
        return self.span(number).start + len(self.content(number))

    @cached_property
    def newline(self) -> str:
        r"""The line end that the text uses most, `\n` when it has none."""
        counts = line_ends(self.text)
        return max(counts, key=counts.__getitem__)

    @cached_property
    def uniform(self) -> bool:
        """Whether every line ends the same way."""
        return sum(map(bool, line_ends(self.text).values())) <= 1


def line_ends(text: str) -> dict[str, int]:
    """Return how often each kind of line end stands in `text`."""
    pairs = text.count("\r\n")
    return {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}


def whole_lines(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """Return the lines of `text` from `start` to `end`, with their line ends."""
    end = len(text) if end is None else end
    lines: list[str] = []
    while end - start > _STRETCH:
        # Of a million lines most are alike, or are those of another version: each is kept once.
        cut = LINE_END.search(text, start + _STRETCH, end)
        stop = cut.end() if cut else end
        lines += map(sys.intern, _LINE.findall(text, start, stop))
        start = stop
    return lines + _LINE.findall(text, start, end)


def with_newline(text: str, newline: str) -> str:
    r"""`text` with every line end written as `newline`."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)
