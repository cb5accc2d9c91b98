"""Positions of the protocol: lines from 0 on, and columns in units of an encoding that is agreed on.

A line ends where one of a memory does: at a carriage return, a line feed or both, and at nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lsprotocol import types

from mdmem.diagnostic import Span

if TYPE_CHECKING:

    class TextLines(Protocol):
        """The line table of a text: where each line starts, but for an empty last one."""

        text: str

        @property
        def starts(self) -> Sequence[int]:
            """The offset of each line's first character."""


BOM = "\ufeff"
START = types.Position(0, 0)
# How Python names each encoding, and the bytes of one unit of it; UTF-32 counts code points, as Python does.
_CODECS: dict[str, tuple[str, int] | None] = {
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: None,
}
_TAIL_OF_UTF8, _PAIR_OF_UTF16 = 0b10, (0b110110, 0b110111)  # the high bits of a byte


def choose_encoding(offered: Sequence[str] | None) -> types.PositionEncodingKind:
    """Return the first encoding that a client offers and that is known; UTF-16, if it offers none."""
    for each in offered or ():
        if each in _CODECS:
            return types.PositionEncodingKind(each)
    return types.PositionEncodingKind.Utf16


class TextPositions(NamedTuple):
    """Offsets in a text, in code points, as positions of one encoding, and back.

    Attributes:
        is_open: whether the text is that of the editor. If not, it has read the text without its
            byte-order mark.
    """

    lines: TextLines
    encoding: types.PositionEncodingKind
    is_open: bool

    def offset(self, position: types.Position) -> int:
        """Return the offset of a position; one beyond its line is the line's end, one beyond all the text's.

        Inside of a character, it is where that begins.
        """
        if position.line >= len(self.lines.starts):
            return len(self.lines.text)
        start, end = self._content(position.line)
        line, column, codec = self.lines.text[start:end], position.character, _CODECS[self.encoding]
        if codec is None or line.isascii():
            return min(start + column, end)
        data = line.encode(codec[0], "surrogatepass")
        if column * codec[1] >= len(data):
            return end
        at = _begin_of_character(data, column * codec[1], codec[1])
        return start + len(data[:at].decode(codec[0], "surrogatepass"))

    def position(self, offset: int) -> types.Position:
        """Return the position of an offset; between the two characters of a line end, where that begins."""
        text, starts, codec = self.lines.text, self.lines.starts, _CODECS[self.encoding]
        if not starts or (offset >= len(text) and text[-1] in "\r\n"):
            return types.Position(len(starts), 0)
        line = max(0, bisect_right(starts, offset) - 1)
        start, end = self._content(line)
        before = text[start : max(start, min(offset, end))]
        if codec is None or before.isascii():
            return types.Position(line, len(before))
        return types.Position(line, len(before.encode(codec[0], "surrogatepass")) // codec[1])

    def range(self, span: tuple[int, int]) -> types.Range:
        """Return a span as a range."""
        return types.Range(self.position(span[0]), self.position(span[1]))

    def span(self, range_: types.Range) -> Span:
        """Return a range as a span; one that ends before it begins is empty."""
        start, end = self.offset(range_.start), self.offset(range_.end)
        return Span(start, max(start, end))

    def _content(self, line: int) -> tuple[int, int]:
        """Return where a line begins, and where it ends before its line end."""
        text, starts = self.lines.text, self.lines.starts
        end = starts[line + 1] if line + 1 < len(starts) else len(text)
        start = starts[line] or int(not self.is_open and text.startswith(BOM))
        if end > start and text[end - 1] == "\n":
            end -= 1
        if end > start and text[end - 1] == "\r":
            end -= 1
        return start, end


def _begin_of_character(data: bytes, at: int, size: int) -> int:
    """Return where a character begins that the unit at `at` is part of."""
    if size == 1:
        while data[at] >> 6 == _TAIL_OF_UTF8:
            at -= 1
    elif at and (data[at - 1] >> 2, data[at + 1] >> 2) == _PAIR_OF_UTF16:
        at -= size
    return at
