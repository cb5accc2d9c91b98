"""The line scanner: headings, fences, block ids and where the text is, with their places.

A line scanner because a tree parser is an order of magnitude slower and knows no places inside a line;
markdown-it-py is its oracle in the tests. Rules follow CommonMark 0.31.2 (https://spec.commonmark.org):
sections 4.1 to 4.7 (breaks, headings, code, HTML blocks, definitions) and 5.1 and 5.2 (block quotes, list
items: what stands in them is no section, but decides where a fence or a paragraph ends).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.errors import TooManyParts
from mdmem.text import definition, fence, html_block, run
from mdmem.text.cursor import Cursor
from mdmem.text.lines import LINE_END, new
from mdmem.text.outline import Block, Heading, Scan, Section, sections, without_marks
from mdmem.text.regex import regex
from mdmem.text.tree import MOST_PARTS

if TYPE_CHECKING:
    import re

    from mdmem.text.definition import Definition

__all__ = ["Block", "Heading", "Scan", "Section", "scan", "sections", "without_marks"]

# These match at the first character of a line that is neither a space nor a tab.
_FENCE = regex(r"`{3,}(?=[^`]*$)|~{3,}")
_ATX = regex(r"(#{1,6})(?:[ \t]+|$)")
_SETEXT = regex(r"(?:=+|-+)[ \t]*$")
_BREAK = regex(r"(?:(?:\*[ \t]*+){3,}|(?:_[ \t]*+){3,}|(?:-[ \t]*+){3,})$")
_ITEM = regex(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|$)")
_REST_IS_BLANK = regex(r"[ \t]*$")
_BLOCK_ID = regex(r"\^([A-Za-z0-9-]++)[ \t]*+(?=[\r\n]|\Z)")
_CODE_INDENT = 4
_WIDEST_PADDING = 4
_QUOTE = 0
# Containers nested deeper are read as text: the cost of a line is bounded by its length times this.
_MOST_CONTAINERS = 32
_PARAGRAPHS = 3  # times as many as of other parts
# A line that begins with anything else can only be text.
_MARKS = frozenset(" \t#>`~-+*_=<0123456789")


def scan(text: str, start: int = 0, line: int = 1, most: int = MOST_PARTS) -> Scan:
    """Scan `text` from `start` (where 1-based line `line` begins) to its end.

    Raises:
        TooManyParts: there are more than `most` headings or the like.
    """
    scanner = _Scanner(text, start, line, most)
    scanner.take_all(start)
    return scanner.result()


class _Text(NamedTuple):
    """Lines of a paragraph: from the text of the first, which begins at `begin`, to the end of the last."""

    start: int
    end: int
    begin: int


class _Scanner:
    """The state between two lines: the open containers, and what is open in the innermost of them.

    A container is a block quote (`_QUOTE`) or a list item (by how many columns its content is indented).

    Args:
        text: the whole text.
        start: where a line of it begins.
        line: the 1-based number of that line.
        most: how many headings and the like there may be.
    """

    def __init__(self, text: str, start: int, line: int, most: int) -> None:
        self.text = text
        self._most = most
        self._may_be_too_many = len(text) - start > most  # each takes a character at least
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
        # What may be block ids, the next one last, and where it stands.
        self._ids: list[re.Match[str]] = []
        self._next_id = len(text)
        self._line_feeds = "\r" not in text
        self._counted = start, line

    def take_all(self, at: int) -> None:
        """Take the lines from `at` to the end."""
        text, end = self.text, len(self.text)
        if text.find("^", at) >= 0:
            self._find_ids(at)
        while at < end:
            if self._may_be_too_many:
                self._count_parts()
            if self._fence or self._html:
                outside = not self._containers and self._fence
                at = self._rest_of_fence(at, *outside) if outside else self._take(at)
            elif not self._containers and (stop := self._runs(at)) > at:
                at = stop
            elif text[at] in "`~" and not self._containers and (opening := fence.OPENING.match(text, at)):
                self._close()
                self._fence = opening[1], at
                at = opening.end()
            elif (item := run.ITEM.match(text, at)) and self._begins(item):
                self._item(item)
                at = item.end()
            else:
                at = self._take(at)

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

    def _number(self, at: int) -> int:
        """The number of the line that begins at `at`: counted from the last one that was asked for."""
        counted, line = self._counted
        if at < counted:
            line -= self._count(at, counted)
        elif self._line_feeds:
            line += self.text.count("\n", counted, at)
        else:
            line += self._count(counted, at)
        self._counted = at, line
        return line

    def _count(self, start: int, end: int) -> int:
        """How many lines end there."""
        if self._line_feeds:
            return self.text.count("\n", start, end)
        return len(LINE_END.findall(self.text, start, end))

    def _take(self, at: int) -> int:
        """Take the line at `at`, and return where the next begins."""
        content_end, end = self._line_end(at)
        content, span = self.text[at:content_end], Span(at, end)
        if self._containers or self._html or content[:1] in _MARKS:
            self._line(content, span)
        else:
            self._text(content, 0, span)
        return end

    def _line_end(self, at: int) -> tuple[int, int]:
        """Where the content of the line at `at` ends, and where its line end does."""
        text = self.text
        if self._line_feeds:
            found = text.find("\n", at)
            return (found, found + 1) if found >= 0 else (len(text), len(text))
        ending = LINE_END.search(text, at)
        return ending.span() if ending else (len(text), len(text))

    def _runs(self, at: int) -> int:
        """Take what needs no look at each line, and return where that ends."""
        text, texts = self.text, self.texts
        run_at = (run.OF_LINE_FEEDS if self._line_feeds else run.OF_ANY).match
        while (found := run_at(text, at)) and found.lastindex:
            heading, words = found.span(run.HEADING), found.span(run.TEXT)
            begin, start = heading[0], words[0]
            if self._paragraph and (begin >= 0 or found.start(run.BEFORE) >= 0):
                self._close()
            if begin >= 0:
                level = found.end(run.MARK) - begin
                self._atx(level, found[run.TITLE], found.start(run.TITLE), new(Span, heading))
            ended = found.start(run.BEHIND) >= 0
            if ended and not self._paragraph:
                texts.append(new(Span, words))  # all of a paragraph, and none that begins with a definition
            elif start >= 0:
                self._paragraph.append(_Text(*words, start))
                if ended:
                    self._close()
            begin, at = found.span()
            if self._next_id < at:
                self._blocks(begin, at)
            if self._may_be_too_many:
                self._count_parts()
        return at

    def _count_parts(self) -> None:
        most = self._most
        if len(self.headings) > most or len(self.blocks) > most:
            raise TooManyParts(path="", limit=most, what="headings or block ids")
        if len(self.fences) > most or len(self.definitions) > most:
            raise TooManyParts(path="", limit=most, what="fences or definitions")
        most *= _PARAGRAPHS
        if len(self.texts) > most or len(self.marks) > most:
            raise TooManyParts(path="", limit=most, what="paragraphs")

    def _begins(self, item: re.Match[str]) -> bool:
        """Whether a list begins or goes on: in the middle of a paragraph only a first item does that."""
        if item[2][0] == "[" and definition.in_line(self.text, *item.span(2)):
            return False
        return bool(self._containers) or not self._paragraph or not item[1][0].isdigit()

    def _item(self, item: re.Match[str]) -> None:
        self._leave(0)
        self._hollow = False
        self._containers.append(len(item[1]))
        start, end = item.span(2)
        self._paragraph.append(_Text(start, end, item.start()))
        if self._next_id < item.end():
            self._blocks(*item.span())

    def _find_ids(self, start: int) -> None:
        text = self.text
        found = _BLOCK_ID.finditer(text, start)
        self._ids = [id_ for id_ in found if (at := id_.start()) == start or text[at - 1] in " \t\r\n"]
        self._ids.reverse()
        self._next_id = self._ids[-1].start() if self._ids else len(text)

    def _blocks(self, start: int, end: int) -> None:
        """Take the block ids at the ends of the lines between `start` and `end`; those before are in none."""
        text, ids = self.text, self._ids
        while ids and (caret := ids[-1].start()) < end:
            id_ = ids.pop()
            if caret >= start:
                begin = max(start, text.rfind("\n", start, caret) + 1)
                if not self._line_feeds:
                    begin = max(begin, text.rfind("\r", start, caret) + 1)
                span = new(Span, (begin, self._line_end(caret)[1]))
                self.blocks.append(new(Block, (id_[1], span, self._number(begin), new(Span, id_.span(1)))))
        self._next_id = ids[-1].start() if ids else len(text)

    def _rest_of_fence(self, at: int, mark: str, start: int) -> int:
        """Take the lines from `at` to the one that closes a fence outside of containers."""
        end = fence.end(self.text, at, mark)
        if end:
            self.fences.append(Span(start, end))
            self._fence = None
        return end or len(self.text)

    def _line(self, content: str, span: Span) -> None:
        cursor = Cursor(content)
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
            self._outside(cursor, depth, span)

    def _matched(self, cursor: Cursor) -> int:
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

    def _inside_fence(self, cursor: Cursor, span: Span, mark: str, start: int) -> None:
        rest = cursor.content[cursor.at :].rstrip(" \t")
        if cursor.indent < _CODE_INDENT and len(rest) >= len(mark) and not rest.strip(mark[0]):
            self.fences.append(Span(start, span.end))
            self._fence = None

    def _outside(self, cursor: Cursor, depth: int, span: Span) -> None:
        while cursor.indent < _CODE_INDENT and len(self._containers) < _MOST_CONTAINERS:
            container = self._container(cursor, depth)
            if container is None:
                break
            self._leave(depth)
            self._containers.append(container)
            depth += 1
        if cursor.blank:
            return
        if cursor.indent < _CODE_INDENT and self._leaf(cursor, depth, span):
            self._leave(depth)
            return
        if not self._paragraph:
            self._leave(depth)
            if cursor.indent >= _CODE_INDENT:
                return
        # A paragraph goes on through lines that lack the marks of its containers.
        self._text(cursor.content, cursor.at, span)

    def _container(self, cursor: Cursor, depth: int) -> int | None:
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

    def _leaf(self, cursor: Cursor, depth: int, span: Span) -> bool:
        """Take what is no paragraph; False when the line is text."""
        content, at = cursor.content, cursor.at
        atx = _ATX.match(content, at)
        if atx:
            self._close()
            start = span.start + atx.end()
            self._atx(len(atx[1]), content[atx.end() :], start, span, inside=depth > 0)
            if self._next_id < span.end:
                self._blocks(*span)
            return True
        opening = _FENCE.match(content, at)
        if opening:
            self._fence = opening[0], span.start
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
                rest[0] = _Text(start, rest[0].end, start)
            self._paragraph = rest
        return bool(self._paragraph)

    def _atx(self, level: int, content: str, start: int, span: Span, *, inside: bool = False) -> None:
        title = content.rstrip(" \t")
        if title[-1:] == "#":
            closed = title.rstrip("#")
            if not closed or closed[-1] in " \t":
                title = closed.rstrip(" \t")
        written = new(Span, (start, start + len(title)))
        if title:
            self.texts.append(written)
        if not inside:
            self.headings.append(new(Heading, (level, title, span, self._number(span[0]), written)))

    def _setext(self, mark: str, span: Span) -> None:
        first, last = self._paragraph[0], self._paragraph[-1]
        lines = "\n".join(self.text[text.start : text.end] for text in self._paragraph)
        title = " ".join(line.strip(" \t") for line in LINE_END.split(lines))
        written = Span(first.start, last.start + len(self.text[last.start : last.end].rstrip(" \t")))
        whole = Span(first.begin, span.end)
        line = self._number(first.begin)
        self.headings.append(Heading(1 if mark == "=" else 2, title, whole, line, written))

    def _html_opens(self, content: str, at: int) -> bool:
        close = html_block.closing(content, at, interrupts=bool(self._paragraph))
        if close:
            self._html = None if close.search(content, at) else close
        return close is not None

    def _text(self, content: str, at: int, span: Span) -> None:
        # A definition is complete at the end of its line: what follows begins anew.
        start, end = span.start + at, span.start + len(content)
        defined = None
        if not self._paragraph and content[at] == "[":
            defined = definition.in_line(self.text, start, end)
        if defined:
            self._add_definition(defined)
        else:
            if self._paragraph and ">" in content[:at]:
                self.marks.append(Span(span.start, start))
            self._paragraph.append(_Text(start, end, span.start))
        if self._next_id < span.end:
            self._blocks(*span)

    def _add_definition(self, defined: Definition) -> None:
        if defined.label.startswith("^"):
            self.texts.append(defined.destination)  # a footnote, whose text is but one word
        else:
            self.definitions.append(defined)


def _pass_quote_mark(cursor: Cursor) -> None:
    cursor.move(1)
    cursor.column += 1 if cursor.indent else 0
