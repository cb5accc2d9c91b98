"""The bullets of a Markdown list that stand at its top level, with their places."""

from __future__ import annotations

import re
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import Document
from mdmem.document.outline import TreeNode, read_tree
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex

_TAB_STOP = 4
_WIDEST_PADDING = 4  # columns behind a marker: with more, code begins in the first line
_MARKER = regex(r"([ \t]*)([-+*])([ \t]*)")
# A first line of nothing but these would be a thematic break, or a list in the list.
_MARKS_ONLY = regex(r"(?:-[- \t]*|\*[* \t]*|_[_ \t]*|\+[+ \t]*)$")


class Bullet(NamedTuple):
    """A bullet.

    Attributes:
        indent, marker, padding: what its first line begins with, as in `- `.
        text: all that it holds, without marker and indentation, lines joined by newlines.
        head: the span of its first paragraph.
        span: from its marker's line to the end of its last line that is not blank.
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


def bullets(document: Document, region: Span) -> list[Bullet]:
    """Return the bullets at the top level of the lists in `region`, in order; numbered items are none."""
    found = []
    for section in read_tree(document).root.children:
        for item in (item for each in section.children if each.kind == "list" for item in each.children):
            start = document.lines.span(item.line).start
            marker = _MARKER.match(document.text, start)
            if marker and region.start <= start < region.end:
                found.append(_read_bullet(document, item, marker))
    return found


def _read_bullet(document: Document, item: TreeNode, marker: re.Match[str]) -> Bullet:
    lines, start = document.lines, marker.start()
    last = max(node.last for node in item.walk())
    lead, padding = _column_width(marker[1] + marker[2]), marker[3]
    if not padding or _column_width(marker[0]) - lead > _WIDEST_PADDING:
        padding = " "
    content = _column_width(marker[1] + marker[2] + padding)
    others = (_dedent_line(lines.content(line), content) for line in range(item.line + 1, last + 1))
    texts = [lines.content(item.line)[marker.end() - start :], *others]
    return Bullet(
        indent=marker[1],
        marker=marker[2],
        padding=padding,
        text="\n".join(line.rstrip(" \t") for line in texts),
        head=Span(marker.end(), lines.content_end(item.last)),
        span=Span(start, lines.content_end(last)),
        line=item.line,
        apart=start > document.body_span.start and not lines.content(item.line - 1).strip(" \t"),
    )


def _column_width(text: str) -> int:
    return len(text.expandtabs(_TAB_STOP))


def _dedent_line(content: str, column: int) -> str:
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
    escape = "\\" if _MARKS_ONLY.match(lines[0]) else ""
    return escape + "\n".join(lines)


def written(text: str, like: Bullet | None = None) -> str:
    """Write a `normal` text as a bullet, with the indentation and marker of `like`, else `- `.

    Further lines are indented, so whatever the text says stays inside.
    """
    lead = f"{like.indent}{like.marker}{like.padding}" if like else "- "
    below = " " * _column_width(lead)
    first, *others = text.split("\n")
    return "\n".join([lead + first, *(below + line if line else "" for line in others)])
