"""The cursor of the line scanner: how deep in its containers a line stands."""

from __future__ import annotations

_TAB_STOP = 4


class Cursor:
    """How far a line's containers reach into it, in columns with tab stops of four.

    Attributes:
        at: the offset of the next character that is neither a space nor a tab.
        edge: the column of that character.
        column: where the content of the innermost container begins; it may be inside a tab.
    """

    __slots__ = ("at", "column", "content", "edge")

    def __init__(self, content: str) -> None:
        self.content = content
        self.at = self.column = self.edge = 0
        self._skip_blank()

    @property
    def indent(self) -> int:
        """How many columns stand between the edge of the container and the next character."""
        return self.edge - self.column

    @property
    def blank(self) -> bool:
        """Whether nothing follows."""
        return self.at == len(self.content)

    def follows(self, character: str) -> bool:
        """Whether the next character is this one."""
        return self.content.startswith(character, self.at)

    def move(self, width: int) -> None:
        """Pass a marker of `width` characters and the blanks behind it."""
        self.at += width
        self.column = self.edge = self.edge + width
        self._skip_blank()

    def _skip_blank(self) -> None:
        content, at, edge = self.content, self.at, self.edge
        while at < len(content) and content[at] in " \t":
            edge += _TAB_STOP - edge % _TAB_STOP if content[at] == "\t" else 1
            at += 1
        self.at, self.edge = at, edge
