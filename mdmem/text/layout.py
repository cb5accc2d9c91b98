"""Where the parts of values stand in the lines of a document: what every edit of values asks."""

from __future__ import annotations

from mdmem.text.document import Document
from mdmem.text.frontmatter import BOM
from mdmem.text.tree import Node


class Layout:
    """The lines of one document, around the values in it. Offsets are code points of its text."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.lines = document.lines

    def line_start(self, at: int) -> int:
        """The beginning of the line that `at` stands in."""
        return self.lines.span(self.lines.number(at)).start

    def content_end(self, at: int) -> int:
        """The end of the line that `at` stands in, before its line end."""
        number = self.lines.number(at)
        return self.lines.span(number).start + len(self.lines.content(number))

    def following_line(self, at: int) -> int:
        """The beginning of the line behind the one that `at` stands in."""
        return self.lines.span(self.lines.number(at)).end

    def column(self, at: int) -> int:
        """How many characters stand before `at` in its line."""
        return at - self.line_start(at)

    def indent(self, at: int) -> str:
        """The blanks at the beginning of the line that `at` stands in."""
        line = self.text[self.line_start(at) : self.content_end(at)].removeprefix(BOM)
        return line[: len(line) - len(line.lstrip(" \t"))]

    def begins_line(self, at: int) -> bool:
        """Whether only blanks stand before `at` in its line."""
        return not self.text[self.line_start(at) : at].removeprefix(BOM).strip(" \t")


def parts(container: Node) -> list[Node]:
    """The values in a mapping, in order, or in a list."""
    return [m.node for m in container.members] if container.kind == "mapping" else list(container.items)
