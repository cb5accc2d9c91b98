"""The line scanner: headings, fences and block ids of a Markdown text, with their places.

A line scanner because a tree parser is an order of magnitude slower and knows no places inside a line;
markdown-it-py is its oracle in the tests. Rules follow CommonMark 0.31.2 (https://spec.commonmark.org):
sections 4.2 and 4.3 (headings), 4.5 (fences), 4.6 (HTML blocks).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mdmem.diagnostic import Span
from mdmem.text.lines import LINE_END

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_ATX_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_BREAK = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$")
_LIST_OR_QUOTE = re.compile(r" {0,3}(?:>|[-+*](?:[ \t]|$)|[0-9]{1,9}[.)](?:[ \t]|$))")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)")
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^([A-Za-z0-9-]+)[ \t]*$")
_HTML_OPEN = re.compile(
    r" {0,3}(?:(?P<raw><(?:script|pre|style|textarea)(?=[\s>]|$))|(?P<comment><!--)|(?P<processing><\?)"
    r"|(?P<cdata><!\[CDATA\[)|(?P<declaration><![A-Za-z])|(?P<block></?(?:address|article|aside|base|basefont"
    r"|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure"
    r"|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav"
    r"|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    r"|track|ul)(?=[\s/>]|$)))",
    re.IGNORECASE,
)
_HTML_CLOSE = {
    "raw": re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    "comment": re.compile(r"-->"),
    "processing": re.compile(r"\?>"),
    "cdata": re.compile(r"\]\]>"),
    "declaration": re.compile(r">"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading.

    Attributes:
        level: 1 to 6.
        title: its text, without the marks around it.
        span: all its lines, line ends included.
        line: the 1-based number of its first line.
        title_span: the title as written.
    """

    level: int
    title: str
    span: Span
    line: int
    title_span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A line that carries a block id, ` ^id`: `span` is the line, `id_span` the id without its caret."""

    id: str
    span: Span
    line: int
    id_span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What the scanner found. `fences` are the spans of fenced code, fences included."""

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    fences: tuple[Span, ...]


def scan(text: str, start: int = 0, line: int = 1) -> Scan:
    """Scan `text` from `start` (where 1-based line `line` begins) to its end."""
    scanner = _Scanner()
    at = start
    for ending in LINE_END.finditer(text, start):
        scanner.take(text[at : ending.start()], Span(at, ending.end()), line)
        at, line = ending.end(), line + 1
    if at < len(text):
        scanner.take(text[at:], Span(at, len(text)), line)
    return scanner.result(len(text))


def sections(headings: tuple[Heading, ...], end: int) -> tuple[Section, ...]:
    """The section of each heading, in order; the last ones reach to `end`."""
    stops = [end] * len(headings)
    titles: list[tuple[str, ...]] = []
    open_: list[int] = []
    for number, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            stops[open_.pop()] = heading.span.start
        titles.append((*(headings[n].title for n in open_), heading.title))
        open_.append(number)
    own_stops = [*(h.span.start for h in headings[1:]), end]
    return tuple(
        Section(heading=h, path=path, span=Span(h.span.start, stop), own=Span(h.span.end, own_stop))
        for h, path, stop, own_stop in zip(headings, titles, stops, own_stops, strict=True)
    )


class _Scanner:
    """The state between two lines: an open fence or HTML block, and the paragraph so far."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.blocks: list[Block] = []
        self.fences: list[Span] = []
        self._fence: tuple[str, int] | None = None
        self._html: re.Pattern[str] | None = None
        self._paragraph: tuple[int, int, list[str]] | None = None

    def take(self, content: str, span: Span, line: int) -> None:
        if self._fence:
            self._inside_fence(content, span)
        elif self._html:
            if self._html.search(content):
                self._html = None
        else:
            self._outside(content, span, line)

    def _inside_fence(self, content: str, span: Span) -> None:
        mark, start = self._fence or ("", 0)
        stripped = content.strip(" \t")
        indent = len(content) - len(content.lstrip(" "))
        if indent < 4 and len(stripped) >= len(mark) and set(stripped) == {mark[0]}:  # noqa: PLR2004 - CommonMark
            self.fences.append(Span(start, span.end))
            self._fence = None

    def _outside(self, content: str, span: Span, line: int) -> None:
        fence = _FENCE.match(content)
        if fence:
            self._fence, self._paragraph = (fence.group(1), span.start), None
            return
        if not content or content.isspace():
            self._paragraph = None
            return
        if "^" in content:
            self._block(content, span, line)
        if self._atx(content, span, line) or self._setext(content, span):
            self._paragraph = None
        elif "<" in content and self._html_opens(content):
            self._paragraph = None
        elif _BREAK.match(content) or _LIST_OR_QUOTE.match(content):
            self._paragraph = None
        elif self._paragraph:
            self._paragraph[2].append(content)
        elif not _INDENTED.match(content):
            self._paragraph = (span.start, line, [content])

    def _atx(self, content: str, span: Span, line: int) -> bool:
        found = _ATX.match(content)
        if not found:
            return False
        title = content[found.end() :]
        closing = _ATX_CLOSING.search(title)
        title = (title[: closing.start()] if closing else title).strip(" \t")
        at = span.start + (content.index(title, found.end()) if title else found.end())
        self._add(len(found.group(1)), title, span, line, Span(at, at + len(title)))
        return True

    def _setext(self, content: str, span: Span) -> bool:
        underline = _SETEXT.match(content) if self._paragraph else None
        if not underline or not self._paragraph:
            return False
        start, line, texts = self._paragraph
        title = " ".join(text.strip(" \t") for text in texts)
        lead = len(texts[0]) - len(texts[0].lstrip(" \t"))
        written = Span(start + lead, start + lead + len(texts[0].strip(" \t")))
        self._add(1 if underline.group(1)[0] == "=" else 2, title, Span(start, span.end), line, written)
        return True

    def _add(self, level: int, title: str, span: Span, line: int, title_span: Span) -> None:
        self.headings.append(Heading(level=level, title=title, span=span, line=line, title_span=title_span))

    def _block(self, content: str, span: Span, line: int) -> None:
        found = _BLOCK_ID.search(content)
        if found:
            at = Span(span.start + found.start(1), span.start + found.end(1))
            self.blocks.append(Block(id=found.group(1), span=span, line=line, id_span=at))

    def _html_opens(self, content: str) -> bool:
        opening = _HTML_OPEN.match(content)
        if not opening or not opening.lastgroup:
            return False
        close = _HTML_CLOSE.get(opening.lastgroup)
        if close is None:
            self._html = _BLANK_LINE
        elif not close.search(content, opening.end()):
            self._html = close
        return True

    def result(self, end: int) -> Scan:
        if self._fence:
            self.fences.append(Span(self._fence[1], end))
        return Scan(headings=tuple(self.headings), blocks=tuple(self.blocks), fences=tuple(self.fences))


_BLANK_LINE = re.compile(r"^[ \t]*$")
