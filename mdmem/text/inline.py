"""What stands inside the text of a Markdown memory: links, citations of code, tags and URLs, with places."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text import citation, table, tag, url
from mdmem.text.citation import Citation
from mdmem.text.lines import Lines
from mdmem.text.link import Link
from mdmem.text.link_parser import LinkParser
from mdmem.text.scan import Scan, without_marks
from mdmem.text.tag import Tag
from mdmem.text.url import Url

__all__ = ["Citation", "Inline", "Link", "Tag", "Url", "scan"]


class Inline(NamedTuple):
    """What was found, each in order of place."""

    links: tuple[Link, ...] = ()
    citations: tuple[Citation, ...] = ()
    tags: tuple[Tag, ...] = ()
    urls: tuple[Url, ...] = ()


def scan(text: str, outline: Scan, lines: Lines) -> Inline:
    """Find what stands in the texts of a Markdown text.

    Args:
        text: the whole text.
        outline: what the line scanner found in it.
        lines: its line table.
    """
    texts = outline.texts
    if outline.marks:
        text = without_marks(text, outline.marks)
    if "|" in text and texts:
        texts = tuple(table.split(text, texts))
    parser = LinkParser(text, texts, lines)
    if outline.definitions:
        parser.define(outline.definitions)
    tags: list[Tag] = []
    if texts:
        parser.run()
        bare = Bare(parser, lines)
        bare.urls()
        bare.citations()
        tags = bare.tags()
    parser.finish()
    return Inline(tuple(parser.links), tuple(parser.citations), tuple(tags), tuple(parser.urls))


class Bare:
    """Finds what nothing marks as such, outside of what the parser of links has taken; adds it there."""

    def __init__(self, parser: LinkParser, lines: Lines) -> None:
        self._parser = parser
        self._text = parser.text
        self._texts = parser.texts
        self._taken = parser.taken
        self._line = lines.number
        self._bounds = parser.texts[0].start, parser.texts[-1].end

    def urls(self) -> None:
        """Find URLs."""
        found = []
        for start, stop in url.spans(self._text, *self._bounds):
            room = self._room(start)
            if room:
                span = Span(start, url.end(self._text, start, min(stop, room.end)))
                found.append(span)
                self._parser.urls.append(Url(self._text[slice(*span)], span, self._line(start)))
        if found:
            self._taken = sorted((*self._taken, *found))

    def citations(self) -> None:
        """Find citations."""
        for path, locator, start, stop, end in citation.in_prose(self._text, *self._bounds):
            room = self._room(start)
            if room and end <= room.end and self._room(end - 1):
                self._parser.cite(path, locator, Span(start, end), stop, end)

    def tags(self) -> list[Tag]:
        """The tags."""
        text, found = self._text, []
        for start, stop in tag.spans(text, *self._bounds):
            mark = start - 1
            room = None if text[mark - 1 : mark].isalnum() else self._room(mark)
            if room and (mark == room.start or text[mark - 1].isspace()):
                name = text[start : min(stop, room.end)].rstrip("/")
                found.append(Tag(name, Span(start, start + len(name)), self._line(mark)))
        return found

    def _room(self, at: int) -> Span | None:
        """The text that `at` stands in; None when it stands in none, or in what is taken."""
        text = self._texts[bisect_right(self._texts, (at, self._bounds[1])) - 1]
        if at >= text.end:
            return None
        number = bisect_right(self._taken, (at, self._bounds[1])) - 1
        return None if number >= 0 and at < self._taken[number].end else text
