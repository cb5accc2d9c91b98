"""The line scanner: headings, fences and block ids of a Markdown text, with their places.

A line scanner because a tree parser is an order of magnitude slower and knows no places inside a line;
markdown-it-py is its oracle in the tests. Rules follow CommonMark 0.31.2 (https://spec.commonmark.org):
sections 4.1 to 4.7 (breaks, headings, code, HTML blocks, definitions) and 5.1 and 5.2 (block quotes, list
items: what stands in them is no section, but decides where a fence or a paragraph ends).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text.lines import LINE_END

# These match at the first character of a line that is neither a space nor a tab.
_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_ATX = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_SETEXT = re.compile(r"(?:=+|-+)[ \t]*$")
_BREAK = re.compile(r"(?:(?:\*[ \t]*+){3,}|(?:_[ \t]*+){3,}|(?:-[ \t]*+){3,})$")
_ITEM = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|$)")
_DEFINITION = re.compile(
    r"\[(?=[^\]]*[^\s\]])[^\[\]\\]{1,999}\]:[ \t]*(?:<[^<>\\]*>|[^\s<]\S*)"
    r"(?:[ \t]+(?:\"[^\"\\]*\"|'[^'\\]*'))?[ \t]*$"
)
_REST_IS_BLANK = re.compile(r"[ \t]*$")
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^([A-Za-z0-9-]+)[ \t]*$")
_HTML_OPEN = re.compile(
    r"(?P<raw><(?:script|pre|style|textarea)(?=[ \t>]|$))|(?P<comment><!--)|(?P<processing><\?)"
    r"|(?P<cdata>(?-i:<!\[CDATA\[))|(?P<declaration><![A-Z])|(?P<block></?(?:address|article|aside|base"
    r"|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption"
    r"|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem"
    r"|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    r"|track|ul)(?=[ \t>]|/>|$))"
    r"|(?P<tag><(?:/[A-Z][A-Z0-9-]*+|[A-Z][A-Z0-9-]*+(?:[ \t]++[A-Z_:][A-Z0-9:._-]*+(?:[ \t]*+=[ \t]*+"
    r"(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?)*[ \t]*+/?)[ \t]*>[ \t]*$)",
    re.IGNORECASE | re.ASCII,
)
_UNTIL_BLANK = re.compile(r"(?!)")
_HTML_CLOSE = {
    "raw": re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE | re.ASCII),
    "comment": re.compile(r"-->"),
    "processing": re.compile(r"\?>"),
    "cdata": re.compile(r"\]\]>"),
    "declaration": re.compile(r">"),
    "block": _UNTIL_BLANK,
    "tag": _UNTIL_BLANK,
}
_TAB_STOP = 4
_CODE_INDENT = 4
_WIDEST_PADDING = 4
_QUOTE = 0
# Containers nested deeper are read as text: the cost of a line is bounded by its length times this.
_MOST_CONTAINERS = 32
# A line that begins with anything else can only be text.
_MARKS = frozenset(" \t#>`~-+*_=<0123456789")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
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
    own_stops = [*(h.span.start for h in headings), end][1:]
    return tuple(
        Section(heading=h, path=path, span=Span(h.span.start, stop), own=Span(h.span.end, own_stop))
        for h, path, stop, own_stop in zip(headings, titles, stops, own_stops, strict=True)
    )


class _Cursor:
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
        return self.edge - self.column

    @property
    def blank(self) -> bool:
        return self.at == len(self.content)

    def follows(self, character: str) -> bool:
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


class _Text(NamedTuple):
    """A line of a paragraph: `content` from the offset `at` in the line `span` on."""

    content: str
    at: int
    span: Span
    line: int


class _Scanner:
    """The state between two lines: the open containers, and what is open in the innermost of them.

    A container is a block quote (`_QUOTE`) or a list item (by how many columns its content is indented).
    """

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.blocks: list[Block] = []
        self.fences: list[Span] = []
        self._containers: list[int] = []
        self._hollow = False  # the innermost container is an item, and only its marker was seen
        self._fence: tuple[str, int] | None = None
        self._html: re.Pattern[str] | None = None
        self._paragraph: list[_Text] = []

    def take(self, content: str, span: Span, line: int) -> None:
        if self._containers or self._fence or self._html or content[:1] in _MARKS:
            self._line(content, span, line)
        elif content:
            self._text(content, 0, span, line)
        else:
            self._paragraph = []

    def result(self, end: int) -> Scan:
        self._end_verbatim(end)
        return Scan(headings=tuple(self.headings), blocks=tuple(self.blocks), fences=tuple(self.fences))

    def _line(self, content: str, span: Span, line: int) -> None:
        cursor = _Cursor(content)
        depth = self._matched(cursor)
        if depth < len(self._containers):
            self._end_verbatim(span.start)
        if self._fence:
            self._inside_fence(cursor, span, *self._fence)
        elif self._html and not (cursor.blank and self._html is _UNTIL_BLANK):
            self._html = None if self._html.search(content, cursor.at) else self._html
        elif cursor.blank:
            self._leave(depth)
            self._html = None
        else:
            self._outside(cursor, depth, span, line)

    def _matched(self, cursor: _Cursor) -> int:
        """How many of the open containers this line continues; the cursor is moved into them."""
        hollow, self._hollow = self._hollow, False
        for number, needed in enumerate(self._containers):
            if needed == _QUOTE:
                if cursor.indent >= _CODE_INDENT or not cursor.follows(">"):
                    return number
                _pass_quote_mark(cursor)
            elif cursor.blank:
                if hollow and number == len(self._containers) - 1:
                    return number
            elif cursor.indent >= needed:
                cursor.column += needed
            else:
                return number
        return len(self._containers)

    def _end_verbatim(self, at: int) -> None:
        """End the fence or HTML block that ends, unclosed, with what contains it."""
        if self._fence:
            self.fences.append(Span(self._fence[1], at))
        self._fence = self._html = None

    def _leave(self, depth: int) -> None:
        """End the paragraph, and the containers that are nested deeper than `depth`."""
        del self._containers[depth:]
        self._paragraph = []

    def _inside_fence(self, cursor: _Cursor, span: Span, mark: str, start: int) -> None:
        rest = cursor.content[cursor.at :].rstrip(" \t")
        if cursor.indent < _CODE_INDENT and len(rest) >= len(mark) and not rest.strip(mark[0]):
            self.fences.append(Span(start, span.end))
            self._fence = None

    def _outside(self, cursor: _Cursor, depth: int, span: Span, line: int) -> None:
        while cursor.indent < _CODE_INDENT and len(self._containers) < _MOST_CONTAINERS:
            container = self._container(cursor, depth)
            if container is None:
                break
            self._leave(depth)
            self._containers.append(container)
            depth += 1
        if cursor.blank:
            return
        if cursor.indent < _CODE_INDENT and self._leaf(cursor, depth, span, line):
            self._leave(depth)
            return
        if not self._paragraph:
            self._leave(depth)
            if cursor.indent >= _CODE_INDENT:
                return
        # A paragraph goes on through lines that lack the marks of its containers.
        self._text(cursor.content, cursor.at, span, line)

    def _container(self, cursor: _Cursor, depth: int) -> int | None:
        """Pass the mark of a container that begins at the cursor, if one does."""
        if cursor.follows(">"):
            _pass_quote_mark(cursor)
            return _QUOTE
        mark = _ITEM.match(cursor.content, cursor.at)
        if not mark or _BREAK.match(cursor.content, cursor.at):
            return None
        hollow = bool(_REST_IS_BLANK.match(cursor.content, mark.end()))
        if self._underlies(depth) and (hollow or int(mark[1] or 1) != 1):
            return None
        margin = cursor.indent + len(mark[0])
        cursor.move(len(mark[0]))
        padding = 1 if hollow or cursor.indent > _WIDEST_PADDING else cursor.indent
        cursor.column += padding
        self._hollow = hollow
        return margin + padding

    def _underlies(self, depth: int) -> bool:
        """Whether the open paragraph stands in the very container that the line has reached."""
        return bool(self._paragraph) and depth == len(self._containers)

    def _leaf(self, cursor: _Cursor, depth: int, span: Span, line: int) -> bool:
        """Take what is no paragraph; False when the line is text."""
        content, at = cursor.content, cursor.at
        atx = _ATX.match(content, at)
        if atx:
            if depth == 0:
                self._atx(content, atx, span, line)
            self._block(content, span, line)
            return True
        fence = _FENCE.match(content, at)
        if fence:
            self._fence = fence[0], span.start
            return True
        if self._underlies(depth) and _SETEXT.match(content, at):
            if depth == 0:
                self._setext(content[at], span)
            return True
        return bool(_BREAK.match(content, at)) or self._html_opens(content, at)

    def _atx(self, content: str, mark: re.Match[str], span: Span, line: int) -> None:
        title = content[mark.end() :].rstrip(" \t")
        closed = title.rstrip("#")
        if not closed or closed[-1] in " \t":
            title = closed.rstrip(" \t")
        at = span.start + mark.end()
        self._add(len(mark[1]), title, span, line, Span(at, at + len(title)))

    def _setext(self, mark: str, span: Span) -> None:
        first, last = self._paragraph[0], self._paragraph[-1]
        title = " ".join(text.content.strip(" \t") for text in self._paragraph)
        written = Span(first.span.start + first.at, last.span.start + len(last.content.rstrip(" \t")))
        self._add(1 if mark == "=" else 2, title, Span(first.span.start, span.end), first.line, written)

    def _add(self, level: int, title: str, span: Span, line: int, title_span: Span) -> None:
        self.headings.append(Heading(level=level, title=title, span=span, line=line, title_span=title_span))

    def _html_opens(self, content: str, at: int) -> bool:
        opening = _HTML_OPEN.match(content, at)
        if not opening or not opening.lastgroup or (opening.lastgroup == "tag" and self._paragraph):
            return False
        close = _HTML_CLOSE[opening.lastgroup]
        self._html = None if close.search(content, at) else close
        return True

    def _text(self, content: str, at: int, span: Span, line: int) -> None:
        # A definition is complete at the end of its line: what follows begins anew.
        if self._paragraph or not _DEFINITION.match(content, at):
            self._paragraph.append(_Text(content, at, span, line))
        self._block(content, span, line)

    def _block(self, content: str, span: Span, line: int) -> None:
        found = _BLOCK_ID.search(content) if "^" in content else None
        if found:
            at = Span(span.start + found.start(1), span.start + found.end(1))
            self.blocks.append(Block(id=found.group(1), span=span, line=line, id_span=at))


def _pass_quote_mark(cursor: _Cursor) -> None:
    cursor.move(1)
    cursor.column += 1 if cursor.indent else 0
