"""The facts of a memory: what a person would change, or take back, on its own.

A fact is an item of a list at any depth, a row of a table, a heading, else a paragraph or another block. A
line of a paragraph that ends in a block id is one by itself. Facts share no line, and each line that is not
blank, and no rule, is in one of them.
"""

from __future__ import annotations

from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Literal, NamedTuple

from mdmem.diagnostic import Span
from mdmem.text import blocks
from mdmem.text.anchor import BLOCK_MARK
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mdmem.text.document import Document

FactKind = Literal[
    "heading", "item", "paragraph", "row", "code", "quote", "html", "footnote", "definition", "source"
]

_KINDS: dict[str, FactKind] = {
    blocks.HEADING: "heading",
    blocks.ITEM: "item",
    blocks.PARAGRAPH: "paragraph",
    blocks.HEAD: "row",
    blocks.ROW: "row",
    blocks.CODE_BLOCK: "code",
    blocks.QUOTE: "quote",
    "HtmlBlock": "html",
    "FootnoteDefinition": "footnote",
}
_BLANKS = regex(r"[ \t\r\n]+")
_MARKER = regex(r"\A[ \t]*(?:(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]+|\Z))+")
_QUOTE_MARKS = regex(r"(?m)^[ \t]*(?:>[ \t]?)+")
_BARS = regex(r" ?(?<!\\)\| ?")
_LINE_ENDS = regex(r"\r\n?")
_NO_BLANK = regex(r"[^ \t\r\n]")


class Fact(NamedTuple):
    """A fact of a memory.

    Attributes:
        kind: what it is written as; "source" is frontmatter or JSON that cannot be read, as it stands.
        id: its block id, without the caret; "" without.
        path: the titles of the headings that it stands under, from the outermost on.
        text: its words, as a reader has them: without marker, indentation, line ends and block id. Of a
            heading with its marks, of code line by line.
        span: its lines, without the end of the last one. Of an item, up to the first item in it.
        whole: the same with all that is in the item, as far as that stands below it.
        line, last: the numbers of the first and the last line of `span`, 1-based.
        parent: the index of the item that it stands in, else of the nearest heading above; None without.
    """

    kind: FactKind
    id: str
    path: tuple[str, ...]
    text: str
    span: Span
    whole: Span
    line: int
    last: int
    parent: int | None

    @property
    def said(self) -> str:
        """Its words, with its block id behind them."""
        return f"{self.text} {BLOCK_MARK}{self.id}".lstrip() if self.id else self.text


# -------------------------------------------------------------------------------------------------- facts


def facts(document: Document) -> tuple[Fact, ...]:
    """The facts in the body of a Markdown memory, in order; a JSON memory has fields only.

    Raises:
        TooManyParts: the memory has more headings, items or the like than its limit.
    """
    if document.is_json:
        return ()
    found = blocks.pieces(document.text, document.body_span.start, document.limits.max_parts)
    return tuple(_Reading(document).facts(found))


class _Reading:
    """Reads the facts of a document, from the beginning to the end."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines = document.lines
        self._ids: dict[int, blocks.Block] = {}
        for block in document.blocks:
            self._ids.setdefault(block.line, block)
        self._sections = {section.heading.line: section for section in document.sections}
        self._path: tuple[str, ...] = ()
        self._headings: list[tuple[int, int]] = []  # level and index of each that is open
        # The items that are open: the index of each, or of its parent where it has none, and its last line.
        self._items: list[tuple[int | None, int]] = []
        self._found: list[Fact] = []

    def facts(self, pieces: Sequence[blocks.Piece]) -> list[Fact]:
        number, end = self._lines.number, len(self._lines) + 1
        start = self._document.body_span.start
        reached = number(start) if start < len(self._document.text) else end
        firsts = [*(number(piece.start) for piece in pieces), end]
        for piece, (first, following) in zip(pieces, pairwise(firsts), strict=True):
            self._rest(reached, first)
            # Under the first row of a table is the line that makes it one.
            below = number(max(piece.start, piece.end - 1)) + (piece.kind == blocks.HEAD)
            whole = self._last(first, below)
            own = min(whole, following - 1)
            del self._items[piece.depth :]
            if piece.kind == blocks.ITEM and own < first:  # it begins in the line where its first item does
                self._items.append((self._parent(), whole))
            elif piece.kind != blocks.RULE:
                self._piece(piece, first, self._last(first, own), whole)
            reached = max(reached, own + 1)
        self._items.clear()
        self._rest(reached, end)
        return self._found

    def _rest(self, start: int, end: int) -> None:
        """Take the lines that are in no piece: definitions, each by itself."""
        for line in range(start, end):
            if self._has_text(line):
                while self._items and self._items[-1][1] < line:
                    self._items.pop()
                self._add("definition", line, line, line)

    def _piece(self, piece: blocks.Piece, first: int, own: int, whole: int) -> None:
        section = self._sections.get(first)
        kind = _KINDS[piece.kind]
        if kind == "heading" and section:
            level = section.heading.level
            while self._headings and self._headings[-1][0] >= level:
                self._headings.pop()
            self._path = section.path[:-1]
            self._add(kind, first, own, own)
            self._headings.append((level, len(self._found) - 1))
            self._path = section.path
            return
        if kind in ("heading", "paragraph"):
            while first < own:
                last = next((line for line in range(first, own) if line in self._ids), own)
                self._add("paragraph", first, last, last)
                first = last + 1
            if first == own:
                self._add("paragraph", first, first, first)
            return
        self._add(kind, first, own, whole, code=piece.code)
        if kind == "item":
            self._items.append((len(self._found) - 1, whole))

    def _parent(self) -> int | None:
        if self._items:
            return self._items[-1][0]
        return self._headings[-1][1] if self._headings else None

    def _add(self, kind: FactKind, first: int, own: int, whole: int, *, code: bool = False) -> None:
        start = max(self._lines.span(first).start, self._document.body_span.start)
        span = Span(start, self._end(own))
        heading = self._sections[first].heading if kind == "heading" else None
        block = next((self._ids[line] for line in range(first, own + 1) if line in self._ids), None)
        cuts = [Span(block.id_span.start - len(BLOCK_MARK), block.id_span.end)] if block else []
        text = without(self._document.text, heading.title_span if heading else span, cuts)
        words = normal(kind, text, code=code)
        self._found.append(
            Fact(
                kind=kind,
                id=block.id if block else "",
                path=self._path,
                text=f"{'#' * heading.level} {words}" if heading else words,
                span=span,
                whole=Span(start, self._end(whole)),
                line=first,
                last=own,
                parent=self._parent(),
            )
        )

    def _last(self, first: int, last: int) -> int:
        """The last of some lines that is not blank."""
        while last > first and not self._has_text(last):
            last -= 1
        return last

    def _has_text(self, line: int) -> bool:
        return _NO_BLANK.search(self._document.text, *self._lines.span(line)) is not None

    def _end(self, line: int) -> int:
        """Where the text of a line ends."""
        start, end = self._lines.span(line)
        text = self._document.text
        while end > start and text[end - 1] in "\r\n":
            end -= 1
        return end


def without(text: str, span: Span, cuts: Iterable[Span], mark: str = "") -> str:
    """The text of a span with `mark` in the place of each cut; line ends are made line feeds."""
    parts, at = [], span.start
    for start, end in cuts:
        parts += [text[at:start], mark]
        at = end
    return _LINE_ENDS.sub("\n", "".join([*parts, text[at : span.end]]))


def normal(kind: FactKind, text: str, *, code: bool = False) -> str:
    """The words of a fact, without what lays them out; of code, its lines."""
    if kind in ("item", "quote"):
        text = (_MARKER if kind == "item" else _QUOTE_MARKS).sub("", text)
    if code:
        first, *others = text.strip("\n").split("\n")
        below = dedent("\n".join(others if kind == "item" else [first, *others])).rstrip(" \t\n")
        return "\n".join((first.strip(" \t"), below)) if kind == "item" else below
    if kind == "row":  # below the first one is the line that makes it a table
        text = text.partition("\n")[0]
    text = _BLANKS.sub(" ", text).strip(" ")
    if kind == "row":
        text = _BARS.sub(" | ", text.removeprefix("|").removesuffix("|")).strip(" ")
    return text
