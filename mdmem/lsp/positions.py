"""Positions of the protocol: lines from 0 on, and columns in units of an encoding that is agreed on.

A line ends where one of a memory does: at a carriage return, a line feed or both, and at nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from lsprotocol import types

from mdmem.diagnostic import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class TextLines(Protocol):
        """The line table of a text: where each line starts, but for an empty last one."""

        text: str

        @property
        def starts(self) -> Sequence[int]:
            """The offset of each line's first character."""


BOM = "\ufeff"
_LAST_OF_ONE_BYTE, _LAST_OF_TWO_BYTES, _LAST_OF_PLANE = 0x7F, 0x7FF, 0xFFFF


def _width_in_utf8(character: str) -> int:
    code = ord(character)
    return 1 + (code > _LAST_OF_ONE_BYTE) + (code > _LAST_OF_TWO_BYTES) + (code > _LAST_OF_PLANE)


def _width_in_utf16(character: str) -> int:
    return 1 + (ord(character) > _LAST_OF_PLANE)


_WIDTHS: dict[str, Callable[[str], int] | None] = {
    types.PositionEncodingKind.Utf8: _width_in_utf8,
    types.PositionEncodingKind.Utf16: _width_in_utf16,
    types.PositionEncodingKind.Utf32: None,
}


def choose_encoding(offered: Sequence[str] | None) -> types.PositionEncodingKind:
    """Return the first encoding that a client offers and that is known; UTF-16, if it offers none."""
    for each in offered or ():
        if each in _WIDTHS:
            return types.PositionEncodingKind(each)
    return types.PositionEncodingKind.Utf16


class Positions:
    """Offsets in code points as positions of one encoding, and back."""

    def __init__(self, encoding: types.PositionEncodingKind) -> None:
        self._width = _WIDTHS[encoding]

    def offset(self, lines: TextLines, position: types.Position) -> int:
        """Return the offset of a position; one beyond its line is the line's end, one beyond all the text's.

        Inside of a character, it is where that begins.
        """
        text, starts = lines.text, lines.starts
        if position.line >= len(starts):
            return len(text)
        start, end = self._content(lines, max(0, position.line))
        line, column = text[start:end], max(0, position.character)
        if self._width is None or line.isascii():
            return min(start + column, end)
        for number, character in enumerate(line):
            column -= self._width(character)
            if column < 0:
                return start + number
        return end

    def position(self, lines: TextLines, offset: int, *, is_open: bool = True) -> types.Position:
        """Return the position of an offset.

        Args:
            lines: of the text.
            offset: in it; between the two characters of a line end, it is where that begins.
            is_open: whether the text is that of the editor. If not, it has read the text without its
                byte-order mark.
        """
        text, starts = lines.text, lines.starts
        if not starts or (offset >= len(text) and text[-1] in "\r\n"):
            return types.Position(len(starts), 0)
        line = max(0, bisect_right(starts, offset) - 1)
        start, end = self._content(lines, line)
        before = text[start : max(start, min(offset, end))]
        if line == 0 and not is_open:
            before = before.removeprefix(BOM)
        if self._width is None or before.isascii():
            return types.Position(line, len(before))
        return types.Position(line, sum(map(self._width, before)))

    def range(self, lines: TextLines, span: tuple[int, int], *, is_open: bool = True) -> types.Range:
        """Return a span as a range; as `position`."""
        start, end = (self.position(lines, offset, is_open=is_open) for offset in span)
        return types.Range(start, end)

    def span(self, lines: TextLines, range_: types.Range) -> Span:
        """Return a range as a span; one that ends before it begins is empty."""
        start, end = self.offset(lines, range_.start), self.offset(lines, range_.end)
        return Span(start, max(start, end))

    @staticmethod
    def _content(lines: TextLines, line: int) -> tuple[int, int]:
        """Return where a line begins, and where it ends before its line end."""
        text, starts = lines.text, lines.starts
        start = starts[line]
        end = starts[line + 1] if line + 1 < len(starts) else len(text)
        if end > start and text[end - 1] == "\n":
            end -= 1
        if end > start and text[end - 1] == "\r":
            end -= 1
        return start, end
