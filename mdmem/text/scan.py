"""The line scanner: headings, fences, block ids and where the text is, with their places.

A line scanner because a tree parser is an order of magnitude slower and knows no places inside a line;
markdown-it-py is its oracle in the tests. Rules follow CommonMark 0.31.2 (https://spec.commonmark.org):
sections 4.1 to 4.7 (breaks, headings, code, HTML blocks, definitions) and 5.1 and 5.2 (block quotes, list
items: what stands in them is no section, but decides where a fence or a paragraph ends).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text import definition, html_block
from mdmem.text.definition import Definition
from mdmem.text.lines import LINE_END

# These match at the first character of a line that is neither a space nor a tab.
_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_ATX = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_SETEXT = re.compile(r"(?:=+|-+)[ \t]*$")
_BREAK = re.compile(r"(?:(?:\*[ \t]*+){3,}|(?:_[ \t]*+){3,}|(?:-[ \t]*+){3,})$")
_ITEM = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|$)")
_REST_IS_BLANK = re.compile(r"[ \t]*$")
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^([A-Za-z0-9-]+)[ \t]*$")
_TAB_STOP = 4
_CODE_INDENT = 4
_WIDEST_PADDING = 4
_QUOTE = 0
# Containers nested deeper are read as text: the cost of a line is bounded by its length times this.
_MOST_CONTAINERS = 32
# A line that begins with anything else can only be text.
_MARKS = frozenset(" \t#>`~-+*_=<0123456789")
# How a line begins that can only be text, unless it is a definition.
_PLAIN = (
    r"(?:[^ \t#>`~\-+*_=<0-9\[\r\n]"
    r"|\*{1,2}(?=[^\s*])|_{1,2}(?=[^\s_])|`{1,2}(?=[^`\r\n])|[0-9]++(?=[^0-9.)]))"
)
# What needs no look at each line, where no container, fence or HTML block is open: blank lines (group 1), and
# behind them a heading (2: its marks, 3: the rest) or lines of text (4).
_RUN = re.compile(
    r"((?:[ \t]*+(?:\r\n|\n|\r))++)?+"
    r"(?:(#{1,6})(?:[ \t]++|(?=[\r\n]|\Z))([^\r\n]*+)(?:\r\n|\n|\r|\Z)"
    rf"|({_PLAIN}[^\r\n]*+(?:(?:\r\n|\n|\r)(?:{_PLAIN}|\[)[^\r\n]*+)*+)(?:\r\n|\n|\r|\Z))?"
)
_BLANKS, _MARK, _TITLE, _TEXT = range(1, 5)
# An item of a list outside of other containers that begins with a line of text (2), perhaps a task.
_SIMPLE_ITEM = re.compile(rf"([-+*] |[0-9]{{1,9}}[.)] )((?:{_PLAIN}|\[[ xX\[])[^\r\n]*+)(?:\r\n|\n|\r|\Z)")
_REST_OF_FENCE = {mark: re.compile(rf"{mark}*+[ \t]*+(?:\r\n|\n|\r|\Z)") for mark in "`~"}


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


def scan(text: str, start: int = 0, line: int = 1) -> Scan:
    """Scan `text` from `start` (where 1-based line `line` begins) to its end."""
    scanner = _Scanner(text)
    scanner.run(start, line)
    return scanner.result()


def without_marks(text: str, marks: Sequence[Span], start: int = 0, end: int | None = None) -> str:
    """`text` from `start` to `end` with spaces in the place of `marks`, so that no offset changes."""
    parts = []
    stop = len(marks) if end is None else bisect_left(marks, (end,))
    for mark in marks[bisect_left(marks, (start,)) : stop]:
        parts += [text[start : mark.start], " " * (mark.end - mark.start)]
        start = mark.end
    return "".join((*parts, text[start:end]))


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
    """Lines of a paragraph: from the text of the first, which begins at `begin`, to the end of the last."""

    start: int
    end: int
    begin: int
    line: int


class _Scanner:
    """The state between two lines: the open containers, and what is open in the innermost of them.

    A container is a block quote (`_QUOTE`) or a list item (by how many columns its content is indented).
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.headings: list[Heading] = []
        self.blocks: list[Block] = []
        self.fences: list[Span] = []
        self.texts: list[Span] = []
        self.marks: list[Span] = []
        self.definitions: list[Definition] = []
        self._containers: list[int] = []
        self._hollow = False  # the innermost container is an item, and only its marker was seen
        self._fence: tuple[str, int] | None = None
        self._html: re.Pattern[str] | None = None
        self._paragraph: list[_Text] = []
        self._ids = "^" in text
        self._line_feeds = "\r" not in text

    def run(self, at: int, line: int) -> None:
        """Take the lines from `at`, where line `line` begins, to the end."""
        text = self.text
        while at < len(text):
            if self._fence or self._html:
                outside = not self._containers and self._fence
                stop = self._rest_of_fence(at, *outside) if outside else self._take(at, line)
            elif not self._containers and (run := _RUN.match(text, at)) and run.lastindex:
                stop = run.end()
                self._run(run, line)
            elif (item := _SIMPLE_ITEM.match(text, at)) and self._begins(item):
                stop = item.end()
                self._item(item, line)
            else:
                stop = self._take(at, line)
            line += self._count(at, stop)
            at = stop

    def result(self) -> Scan:
        self._close()
        self._end_verbatim(len(self.text))
        return Scan(
            tuple(self.headings),
            tuple(self.blocks),
            tuple(self.fences),
            tuple(self.texts),
            tuple(self.marks),
            tuple(self.definitions),
        )

    def _count(self, start: int, end: int) -> int:
        """How many lines end there."""
        if self._line_feeds:
            return self.text.count("\n", start, end)
        return len(LINE_END.findall(self.text, start, end))

    def _take(self, at: int, line: int) -> int:
        """Take the line at `at`, and return where the next begins."""
        content_end, end = self._line_end(at)
        content, span = self.text[at:content_end], Span(at, end)
        if self._containers or self._html or content[:1] in _MARKS:
            self._line(content, span, line)
        else:
            self._text(content, 0, span, line)
        return end

    def _line_end(self, at: int) -> tuple[int, int]:
        """Where the content of the line at `at` ends, and where its line end does."""
        text = self.text
        if self._line_feeds:
            found = text.find("\n", at)
            return (found, found + 1) if found >= 0 else (len(text), len(text))
        ending = LINE_END.search(text, at)
        return ending.span() if ending else (len(text), len(text))

    def _run(self, run: re.Match[str], line: int) -> None:
        blanks = run.end(_BLANKS)
        if blanks >= 0:
            self._close()
            line += self._count(run.start(), blanks)
        if run.lastindex == _TEXT:
            start, end = run.span(_TEXT)
            self._paragraph.append(_Text(start, end, start, line))
        elif run.lastindex == _TITLE:
            start, end = run.start(_MARK), run.end()
            self._close()
            self._atx(len(run[_MARK]), run[_TITLE], run.start(_TITLE), Span(start, end), line)
        else:
            return
        if self._ids:
            self._blocks(start, end, line)

    def _begins(self, item: re.Match[str]) -> bool:
        """Whether a list begins or goes on: in the middle of a paragraph only a first item does that."""
        if item[2][0] == "[" and definition.in_line(item[2], 0):
            return False
        return bool(self._containers) or not self._paragraph or not item[1][0].isdigit()

    def _item(self, item: re.Match[str], line: int) -> None:
        self._leave(0)
        self._hollow = False
        self._containers.append(len(item[1]))
        start, end = item.span(2)
        self._paragraph.append(_Text(start, end, item.start(), line))
        if self._ids:
            self._blocks(item.start(), item.end(), line)

    def _blocks(self, start: int, end: int, line: int) -> None:
        text = self.text
        caret = text.find("^", start, end)
        while caret >= 0:
            begin = max(start, text.rfind("\n", start, caret) + 1, text.rfind("\r", start, caret) + 1)
            line += self._count(start, begin)
            content_end, following = self._line_end(caret)
            self._block(text[begin:content_end], Span(begin, following), line)
            start, line = following, line + 1
            caret = text.find("^", start, end)

    def _rest_of_fence(self, at: int, mark: str, start: int) -> int:
        """Take the lines from `at` to the one that closes a fence outside of containers."""
        text = self.text
        found = text.find(mark, at)
        while found >= 0:
            edge = found
            while edge > at and text[edge - 1] == " ":
                edge -= 1
            closing = _REST_OF_FENCE[mark[0]].match(text, found)
            if closing and found - edge < _CODE_INDENT and (edge == at or text[edge - 1] in "\r\n"):
                self.fences.append(Span(start, closing.end()))
                self._fence = None
                return closing.end()
            found = text.find(mark, self._line_end(found)[1])
        return len(text)

    def _line(self, content: str, span: Span, line: int) -> None:
        cursor = _Cursor(content)
        depth = self._matched(cursor)
        if depth < len(self._containers):
            self._end_verbatim(span.start)
        if self._fence:
            self._inside_fence(cursor, span, *self._fence)
        elif self._html and not (cursor.blank and self._html is html_block.UNTIL_BLANK):
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
        self._close()

    def _close(self) -> None:
        """End the paragraph: the definitions that it begins with are none of its text."""
        paragraph = self._paragraph
        if paragraph:
            self._paragraph = []
            start, end = paragraph[0].start, paragraph[-1].end
            if self.text[start] == "[":
                start = self._define(start, end)
            if start < end:
                self.texts.append(Span(start, end))

    def _define(self, start: int, end: int) -> int:
        """Take the definitions from `start` on, and return where the text behind them begins."""
        found, end = definition.leading(without_marks(self.text, self.marks, start, end), start)
        self.definitions += found
        return end

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
            self._close()
            start = span.start + atx.end()
            self._atx(len(atx[1]), content[atx.end() :], start, span, line, inside=depth > 0)
            self._block(content, span, line)
            return True
        fence = _FENCE.match(content, at)
        if fence:
            self._fence = fence[0], span.start
            return True
        if self._underlies(depth) and _SETEXT.match(content, at) and self._is_underlined():
            if depth == 0:
                self._setext(content[at], span)
            return True
        return bool(_BREAK.match(content, at)) or self._html_opens(content, at)

    def _is_underlined(self) -> bool:
        """Whether the open paragraph has text besides definitions, which are taken from it."""
        first, last = self._paragraph[0], self._paragraph[-1]
        if self.text[first.start] != "[":
            return True
        start = self._define(first.start, last.end)
        if start > first.start:
            rest = [text for text in self._paragraph if text.end > start]
            if rest and rest[0].start < start:
                line = rest[0].line + self._count(rest[0].start, start)
                rest[0] = _Text(start, rest[0].end, start, line)
            self._paragraph = rest
        return bool(self._paragraph)

    def _atx(
        self, level: int, content: str, start: int, span: Span, line: int, *, inside: bool = False
    ) -> None:
        title = content.rstrip(" \t")
        if title.endswith("#"):
            closed = title.rstrip("#")
            if not closed or closed[-1] in " \t":
                title = closed.rstrip(" \t")
        written = Span(start, start + len(title))
        if title:
            self.texts.append(written)
        if not inside:
            self.headings.append(Heading(level, title, span, line, written))

    def _setext(self, mark: str, span: Span) -> None:
        first, last = self._paragraph[0], self._paragraph[-1]
        lines = "\n".join(self.text[text.start : text.end] for text in self._paragraph)
        title = " ".join(line.strip(" \t") for line in LINE_END.split(lines))
        written = Span(first.start, last.start + len(self.text[last.start : last.end].rstrip(" \t")))
        whole = Span(first.begin, span.end)
        self.headings.append(Heading(1 if mark == "=" else 2, title, whole, first.line, written))

    def _html_opens(self, content: str, at: int) -> bool:
        close = html_block.closing(content, at, interrupts=bool(self._paragraph))
        if close:
            self._html = None if close.search(content, at) else close
        return close is not None

    def _text(self, content: str, at: int, span: Span, line: int) -> None:
        # A definition is complete at the end of its line: what follows begins anew.
        defined = definition.in_line(content, at) if not self._paragraph and content[at] == "[" else None
        if defined:
            self._add_definition(defined, span.start)
        else:
            if self._paragraph and ">" in content[:at]:
                self.marks.append(Span(span.start, span.start + at))
            self._paragraph.append(_Text(span.start + at, span.start + len(content), span.start, line))
        self._block(content, span, line)

    def _add_definition(self, defined: Definition, start: int) -> None:
        label, span, destination = defined
        place = Span(start + destination.start, start + destination.end)
        if label.startswith("^"):
            self.texts.append(place)  # a footnote, whose text is but one word
        else:
            self.definitions.append(Definition(label, Span(start + span.start, start + span.end), place))

    def _block(self, content: str, span: Span, line: int) -> None:
        found = _BLOCK_ID.search(content) if self._ids and "^" in content else None
        if found:
            at = Span(span.start + found.start(1), span.start + found.end(1))
            self.blocks.append(Block(id=found.group(1), span=span, line=line, id_span=at))


def _pass_quote_mark(cursor: _Cursor) -> None:
    cursor.move(1)
    cursor.column += 1 if cursor.indent else 0
