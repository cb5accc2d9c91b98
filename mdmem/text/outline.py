"""The outline of a Markdown text: what the line scanner finds in it, each with its place."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.text.lines import new

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.text.definition import Definition


class Heading(NamedTuple):
    """A heading.

    Attributes:
        level: 1 to 6.
        title: its text, without the marks around it; its lines joined by a space.
        span: all its lines, line ends included.
        line: the 1-based number of its first line.
        title_span: the title as written, of all its lines.
    """

    level: int
    title: str
    span: Span
    line: int
    title_span: Span


class Section(NamedTuple):
    """A heading and what stands under it.

    Attributes:
        heading: its heading.
        path: the titles from the outermost heading down to this one.
        span: from the heading to the next heading of its level or above.
        own: what stands under the heading before any other heading.
    """

    heading: Heading
    path: tuple[str, ...]
    span: Span
    own: Span


class Block(NamedTuple):
    """A line that carries a block id, ` ^id`: `span` is the line, `id_span` the id without its caret."""

    id: str
    span: Span
    line: int
    id_span: Span


class Scan(NamedTuple):
    """What the scanner found, each in order of place.

    Attributes:
        headings: those outside of lists and quotes.
        blocks: the lines that carry a block id.
        fences: the spans of fenced code, fences included.
        texts: where links and the like may stand: the span of each paragraph, and of each heading's title.
        marks: what stands in such a span and is no text: the marks of quotes before the lines of a paragraph.
        definitions: the link reference definitions.
    """

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    fences: tuple[Span, ...]
    texts: tuple[Span, ...] = ()
    marks: tuple[Span, ...] = ()
    definitions: tuple[Definition, ...] = ()


def without_marks(text: str, marks: Sequence[Span], start: int = 0, end: int | None = None) -> str:
    """`text` from `start` to `end` with spaces in the place of `marks`, so that no offset changes."""
    parts = []
    stop = len(marks) if end is None else bisect_left(marks, (end,))
    for mark in marks[bisect_left(marks, (start,)) : stop]:
        parts += [text[start : mark.start], " " * (mark.end - mark.start)]
        start = mark.end
    return "".join((*parts, text[start:end]))


def sections(headings: Sequence[Heading], end: int) -> tuple[Section, ...]:
    """The section of each heading, in order; the last ones reach to `end`."""
    stops = [end] * len(headings)
    paths: list[tuple[str, ...]] = []
    open_: list[int] = []
    for number, (level, title, (start, _), _, _) in enumerate(headings):
        while open_ and headings[open_[-1]].level >= level:
            stops[open_.pop()] = start
        paths.append((*paths[open_[-1]], title) if open_ else (title,))
        open_.append(number)
    found = []
    following = end
    for number in range(len(headings) - 1, -1, -1):
        heading = headings[number]
        start, under = heading[2]
        whole, own = new(Span, (start, stops[number])), new(Span, (under, following))
        found.append(new(Section, (heading, paths[number], whole, own)))
        following = start
    return tuple(reversed(found))
