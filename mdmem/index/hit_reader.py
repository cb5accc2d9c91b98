"""Reading a memory for the hits in it: their headings, their context, its day."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mdmem.errors import MdmemError
from mdmem.index.hit import (
    Headings,
    Hit,
    context_of,
    day_of,
    fields_of,
    line_text,
    shown,
    shown_matches,
)
from mdmem.text.lines import LINE_END

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.index.ripgrep import Line
    from mdmem.text.document import Document


class HitReader:
    """A memory that has hits, read once for all of them.

    Where it cannot be read, or a line is no longer what was found, a hit has neither heading nor context.

    Args:
        path: the vault path of the memory.
        file: the absolute path of its file, which may lend it a day.
        read: gives the memory at a vault path.
        shown: the path that its hits carry.
    """

    def __init__(self, path: str, file: str, read: Callable[[str], Document], shown: str) -> None:
        self.path = path
        self._shown = shown
        try:
            self._document: Document | None = read(path)
        except MdmemError:
            self._document = None  # vanished, or not UTF-8: what ripgrep saw is all there is
        self._headings = Headings(self._document) if self._document else None
        self._firsts = _first_lines(self._document.text) if self._document else []
        try:
            modified = os.stat(file).st_mtime
        except OSError:
            modified = None
        self._day = day_of(path, fields_of(self._document) if self._document else {}, modified)

    def hit(self, found: Line, context: int) -> Hit:
        """The hit for a line that ripgrep found.

        Args:
            found: the line.
            context: the most lines to give before and after it.
        """
        line = found.number + found.piece
        if self._firsts and found.number <= len(self._firsts):
            line = self._firsts[found.number - 1] + found.piece
        heading: tuple[str, ...] = ()
        before, after = heading, heading
        # A line that reads otherwise now was changed meanwhile: what is around it is another text.
        if self._document and self._headings and line_text(self._document, line) == found.text:
            heading = self._headings.above(line)
            before, after = context_of(self._document, line, context)
        return Hit(
            path=self._shown,
            line=line,
            heading=heading,
            text=shown(found.text, found.spans[0][0] if found.spans else 0),
            matches=shown_matches(found.text, found.spans),
            column=found.spans[0][0] + 1 if found.spans else 1,
            before=before,
            after=after,
            date=self._day,
        )


def _first_lines(text: str) -> list[int]:
    r"""The number of the first line in each stretch that ends at `\n`; empty where every line does."""
    if text.count("\r") == text.count("\r\n"):
        return []
    firsts, number = [1], 1
    for ending in LINE_END.findall(text):
        number += 1
        if ending != "\r":
            firsts.append(number)
    return firsts
