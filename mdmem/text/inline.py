"""What stands inside the text of a Markdown memory: links, citations of code, tags and URLs, with places."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text import citation, table, tag, url
from mdmem.text.citation import Citation
from mdmem.text.lines import Lines, new
from mdmem.text.link import Link
from mdmem.text.link_parser import LinkParser
from mdmem.text.outline import Scan, without_marks
from mdmem.text.regex import regex
from mdmem.text.tag import Tag
from mdmem.text.tree import MOST_PARTS
from mdmem.text.url import Url

__all__ = ["Citation", "Inline", "Link", "Tag", "Url", "scan"]

# Where a locator or a tag may begin. Patterns that begin with one certain character are found fast.
_HASH, _COLON = regex(r"#(?=[^\s#])"), regex(r":[0-9]")


class Inline(NamedTuple):
    """What was found, each in order of place."""

    links: tuple[Link, ...] = ()
    citations: tuple[Citation, ...] = ()
    tags: tuple[Tag, ...] = ()
    urls: tuple[Url, ...] = ()


def scan(text: str, outline: Scan, lines: Lines, most: int = MOST_PARTS) -> Inline:
    """Find what stands in the texts of a Markdown text.

    Args:
        text: the whole text.
        outline: what the line scanner found in it.
        lines: its line table.
        most: how many of each there may be; and a few times as many marks that could begin one.

    Raises:
        TooManyParts: there are more.
    """
    texts = outline.texts
    if outline.marks:
        text = without_marks(text, outline.marks)
    if "|" in text and texts:
        texts = tuple(table.split(text, texts))
    parser = LinkParser(text, texts, lines, most)
    if outline.definitions:
        parser.define(outline.definitions)
    tags: list[Tag] = []
    if texts:
        parser.run()
        bare = Bare(parser, lines)
        bare.urls()
        tags = bare.run()
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
                self._parser.bound(self._parser.urls)
        if found:
            self._taken = sorted((*self._taken, *found))

    def run(self) -> list[Tag]:
        """Find citations, and the tags, which are returned."""
        text, tags, parser, taken = self._text, [], self._parser, self._parser.taken
        start, end = self._bounds
        for hash_ in _HASH.finditer(text, start, end):
            parser.step()
            at = hash_.start()
            number = bisect_right(taken, (at, end)) - 1
            if number >= 0 and at < taken[number][1]:
                continue  # no citation is around one of these, because none has their first character in it
            self._citation(at)
            if not text[at - 1 : at].isalnum() and (tag := self._tag(at)):
                tags.append(tag)
                parser.bound(tags)
        if text.find(":", start, end) >= 0:
            for colon in _COLON.finditer(text, start, end):
                parser.step()
                self._citation(colon.start())
        return tags

    def _citation(self, at: int) -> None:
        """Take the citation whose locator begins at `at`, if one does."""
        found = citation.in_prose(self._text, at, *self._bounds)
        if found:
            path, locator, start, end = found
            room = self._room(start)
            if room and end <= room.end and self._room(end - 1):
                self._parser.cite(path, locator, Span(start, end), at, end)

    def _tag(self, mark: int) -> Tag | None:
        """The tag that begins at `mark`, if one does."""
        text, room = self._text, self._room(mark)
        if not room or not (mark == room.start or text[mark - 1].isspace()):
            return None
        stop = tag.end(text, mark, self._bounds[1])
        if not stop:
            return None
        name = text[mark + 1 : min(stop, room.end)].rstrip("/")
        return new(Tag, (name, new(Span, (mark + 1, mark + 1 + len(name))), self._line(mark)))

    def _room(self, at: int) -> Span | None:
        """The text that `at` stands in; None when it stands in none, or in what is taken."""
        taken, key = self._taken, (at, self._bounds[1])
        text = self._texts[bisect_right(self._texts, key) - 1]
        if at >= text[1]:
            return None
        number = bisect_right(taken, key) - 1
        return None if number >= 0 and at < taken[number][1] else text
