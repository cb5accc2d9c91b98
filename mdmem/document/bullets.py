"""The bullets of a Markdown list that stand at its top level, with their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdmem.diagnostic import Span
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from mdmem.document.document import Document

_TAB_STOP = 4
_CODE_INDENT = 4
_ITEM = regex(r"([ \t]*)([-+*]|[0-9]{1,9}[.)])(?:([ \t]+)(?=\S)|[ \t]*$)")
_BREAK = regex(r"[ \t]*(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$")
# What begins a block of its own inside a bullet, and so ends its first paragraph.
_BLOCK = regex(r"[ \t]*(?:(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|$)|#{1,6}(?:[ \t]|$)|>|`{3}|~{3}|<|\|)")
_ENDS_PARAGRAPH = regex(_BLOCK.pattern.removesuffix(r"|\|)") + rf")|{_BREAK.pattern}")
_HTML = regex(r" {0,3}<(?:!--|/?[A-Za-z][A-Za-z0-9-]*(?:[ \t/>]|$))")
_COMMENT_END = regex(r"-->.*")
_BLANK_LINE = regex(r"(?>\r\n|\n|\r)[ \t]*(?=[\r\n]|\Z)")
# A first line of nothing but these would be a thematic break, or a list in the list.
_MARKS_ONLY = regex(r"(?:-[- \t]*|\*[* \t]*|_[_ \t]*|\+[+ \t]*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullet:
    """A bullet.

    Attributes:
        indent, marker, padding: what its first line begins with, as in `- `.
        text: all that it holds, without marker and indentation, lines joined by newlines.
        head: the span of its first paragraph.
        span: from its marker's line to the end of its last line that is not blank.
        line: the 1-based number of its first line.
        apart: whether a blank line stands before it.
    """

    indent: str
    marker: str
    padding: str
    text: str
    head: Span
    span: Span
    line: int
    apart: bool


class _Open:
    """A list item, while its lines are read."""

    def __init__(self, found: re.Match[str], span: Span, line: int, *, apart: bool) -> None:
        self.indent, self.marker, self.padding = found[1], found[2], found[3] or " "
        self.column = _column_width(found[1] + found[2] + self.padding)
        after_marker = _column_width(found[1] + found[2]) + 1
        if self.column - after_marker >= _CODE_INDENT:
            self.padding, self.column = " ", after_marker
        self.texts = [found.string[found.end() :].rstrip(" \t")]
        self.start, self.line, self.apart = span.start, line, apart
        self.head = Span(span.start + found.end(), span.end)
        self.end = span.end
        self.in_head = True

    def take(self, content: str, span: Span, blanks: int, *, inside: bool) -> None:
        """Take a line that is not blank, behind `blanks` ones that are."""
        text = _dedent_line(content, self.column) if inside else content.lstrip(" \t")
        self.in_head = self.in_head and not blanks and not (inside and _BLOCK.match(text))
        if self.in_head:
            self.head = Span(self.head.start, span.end)
        self.texts += [""] * blanks + [text.rstrip(" \t")]
        self.end = span.end

    def bullet(self) -> Bullet:
        return Bullet(
            indent=self.indent,
            marker=self.marker,
            padding=self.padding,
            text="\n".join(self.texts),
            head=self.head,
            span=Span(self.start, self.end),
            line=self.line,
            apart=self.apart,
        )


def bullets(document: Document, region: Span) -> list[Bullet]:
    """Return the bullets at the top level of the lists in `region`, in order; numbered items are none.

    `region` begins at a line outside of any list, as a section's text does.
    """
    return [item.bullet() for item in _open_items(document, region) if item.marker in "-+*"]


def _open_items(document: Document, region: Span) -> Iterator[_Open]:
    item: _Open | None = None
    blanks = passed = 0
    for content, span, line in _iterate_lines(document, region):
        indent = _column_width(content[: len(content) - len(content.lstrip(" \t"))])
        if span.start < passed:
            continue
        if not content.strip(" \t"):
            blanks += 1
            continue
        if item and indent >= item.column:
            item.take(content, span, blanks, inside=True)
        elif item and not blanks and not _ENDS_PARAGRAPH.match(content):
            item.take(content, span, 0, inside=False)
        else:
            if item:
                yield item
            found = _ITEM.match(content) if indent < _CODE_INDENT and not _BREAK.match(content) else None
            item = _Open(found, span, line, apart=blanks > 0) if found else None
            passed = passed if found else _verbatim_end(document, span)
        blanks = 0
    if item:
        yield item


def _verbatim_end(document: Document, line: Span) -> int:
    """Return where the fenced code or HTML that begins in a line ends.

    The beginning of the line when none does.
    """
    fence = next((fence for fence in document.fences if fence.start == line.start), None)
    if fence:
        return fence.end
    if not _HTML.match(document.text, *line):
        return line.start
    comment = document.text.startswith("<!--", line.end - len(document.text[slice(*line)].lstrip(" ")))
    end = (_COMMENT_END if comment else _BLANK_LINE).search(document.text, line.start)
    return end.end() if end else len(document.text)


def _iterate_lines(document: Document, region: Span) -> Iterator[tuple[str, Span, int]]:
    """Yield each line of `region` without its line end, its span, and its 1-based number."""
    lines = document.lines
    number = lines.number(region.start)
    while number <= len(lines) and (start := lines.span(number).start) < region.end:
        content = lines.content(number)
        if start >= region.start:
            yield content, Span(start, start + len(content)), number
        number += 1


def _column_width(text: str) -> int:
    return len(text.expandtabs(_TAB_STOP))


def _dedent_line(content: str, column: int) -> str:
    """Return a line without the blanks before `column`."""
    at = width = 0
    while at < len(content) and width < column and content[at] in " \t":
        width += _TAB_STOP - width % _TAB_STOP if content[at] == "\t" else 1
        at += 1
    return " " * max(0, width - column) + content[at:]


def normal(text: str) -> str:
    """Return a text as a bullet can hold it, and as `Bullet.text` has it then.

    Blanks at the ends of lines go; a first line of marks alone, which would be no text, is escaped.
    """
    lines = [line.rstrip(" \t") for line in LINE_END.split(text.strip(" \t\r\n"))]
    return "\\" * bool(_MARKS_ONLY.match(lines[0])) + "\n".join(lines)


def written(text: str, like: Bullet | None = None) -> str:
    """Return a bullet that holds a `normal` text; its indentation and marker are those of `like`, else `- `.

    Its further lines are indented, so whatever the text says stays inside.
    """
    lead = f"{like.indent}{like.marker}{like.padding}" if like else "- "
    below = " " * _column_width(lead)
    first, *others = text.split("\n")
    return "\n".join([lead + first, *(below + line if line else "" for line in others)])
