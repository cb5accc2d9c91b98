"""Edits of one section, found by its heading or its heading path."""

from __future__ import annotations

import re
from difflib import get_close_matches

from mdmem.diagnostic import Span
from mdmem.errors import SectionAmbiguous, SectionNotFound
from mdmem.text.document import Document
from mdmem.text.edit import TextEdit, fitted
from mdmem.text.scan import Section

SEPARATOR = " > "
_MARKS = re.compile(r"(#{1,6})[ \t]+(.*)")
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))+")
_LIST_ITEM = re.compile(r" {0,3}(?:[-+*]|[0-9]{1,9}[.)])[ \t]")
_MOST_NAMED = 20


def find(document: Document, heading: str) -> Section:
    """The section with this heading: a title (`Index`), a path (`Design > Index`), or with marks (`## Index`).

    Raises:
        SectionNotFound: no such section; it carries the headings that there are.
        SectionAmbiguous: more than one; it carries their lines.
    """
    marks = _MARKS.fullmatch(heading.strip())
    level, wanted = (len(marks.group(1)), marks.group(2).strip()) if marks else (None, heading.strip())
    sections = [s for s in document.sections if level in (None, s.heading.level)]
    found = [s for s in sections if s.heading.title == wanted]
    parts = tuple(part.strip() for part in wanted.split(SEPARATOR.strip()))
    if not found and len(parts) > 1:
        found = [s for s in sections if s.path[-len(parts) :] == parts]
    if not found:
        titles = [s.heading.title for s in document.sections]
        near = get_close_matches(wanted, titles) or titles[:_MOST_NAMED]
        raise SectionNotFound(path=document.path, heading=heading, near=tuple(dict.fromkeys(near)))
    if len(found) > 1:
        lines = tuple(s.heading.line for s in found)
        raise SectionAmbiguous(path=document.path, heading=heading, lines=lines)
    return found[0]


def replace_section(
    document: Document, heading: str, new: str, *, keep_subsections: bool = False
) -> list[TextEdit]:
    """Replace what stands under a heading, down to the next heading of its level or above.

    The heading and the blank lines around its text stay. With `keep_subsections` only the text before the
    first subsection is replaced.

    Raises:
        SectionNotFound, SectionAmbiguous: as `find`.
    """
    section = find(document, heading)
    region = section.own if keep_subsections else Span(section.heading.span.end, section.span.end)
    content = _trimmed(document, region)
    new = fitted(document, new).strip("\r\n")
    if content.start == content.end:
        return [_block_at(document, region.start, new)] if new else []
    if not new:
        return [TextEdit(region.start, _line_end(document, content.end), "")]
    return [TextEdit(content.start, content.end, new)]


def append_to_section(document: Document, heading: str, new: str) -> list[TextEdit]:
    """Add text at the end of a section's own text, before its first subsection.

    A list item joins a list without a blank line; anything else is set off by one.

    Raises:
        SectionNotFound, SectionAmbiguous: as `find`.
    """
    section = find(document, heading)
    content = _trimmed(document, section.own)
    new = fitted(document, new).strip("\r\n")
    if content.start == content.end:
        return [_block_at(document, section.own.start, new)]
    newline = document.lines.newline
    gap = newline if _joins_list(document, content, new) else newline * 2
    return [TextEdit(content.end, content.end, gap + new)]


def insert_before_section(document: Document, heading: str, new: str) -> list[TextEdit]:
    """Insert text before a section's heading, set off by blank lines.

    Raises:
        SectionNotFound, SectionAmbiguous: as `find`.
    """
    return [
        _block_at(document, find(document, heading).heading.span.start, fitted(document, new).strip("\r\n"))
    ]


def insert_after_section(document: Document, heading: str, new: str) -> list[TextEdit]:
    """Insert text behind a whole section, its subsections included, set off by blank lines.

    Raises:
        SectionNotFound, SectionAmbiguous: as `find`.
    """
    return [_block_at(document, find(document, heading).span.end, fitted(document, new).strip("\r\n"))]


def append_block(document: Document, new: str) -> list[TextEdit]:
    """Add text at the end of the document, set off by exactly one blank line.

    A body of nothing but blank lines counts as empty: its blank lines give way to the text.
    """
    content = _trimmed(document, document.body_span)
    new = fitted(document, new).strip("\r\n") + document.lines.newline
    end = len(document.text)
    if content.start == content.end:
        gap = document.lines.newline if document.frontmatter.present else ""
        return [TextEdit(document.body_span.start, end, gap + new)]
    return [TextEdit(content.end, end, document.lines.newline * 2 + new)]


def _trimmed(document: Document, region: Span) -> Span:
    """`region` without the blank lines around its text; empty, at its start, when it has no text."""
    text = document.text
    blank = _BLANK_LINES.match(text, region.start, region.end)
    start = blank.end() if blank else region.start
    end = start + len(text[start : region.end].rstrip(" \t\r\n"))
    return Span(start, end) if end > start else Span(region.start, region.start)


def _line_end(document: Document, offset: int) -> int:
    """Where the line of `offset` ends, its line end included."""
    return document.lines.span(document.lines.number(offset)).end


def _joins_list(document: Document, content: Span, new: str) -> bool:
    last = document.lines.content(document.lines.number(content.end - 1))
    continues = bool(_LIST_ITEM.match(last)) or last.startswith((" ", "\t"))
    return continues and bool(_LIST_ITEM.match(new))


def _block_at(document: Document, at: int, new: str) -> TextEdit:
    """An insertion of `new` at a line boundary, with one blank line between it and its neighbours."""
    text, newline = document.text, document.lines.newline
    before, after = text[document.body_span.start : at], text[at:]
    if not before.strip(" \t\r\n"):
        lead = ""
    elif before[-1] not in "\r\n":
        lead = newline * 2
    else:
        lead = "" if _ends_blank(before) else newline
    tail = newline if not after or _BLANK_LINES.match(after) else newline * 2
    return TextEdit(at, at, lead + new + tail)


def _ends_blank(text: str) -> bool:
    """Whether the last line of `text`, which ends in a line end, is blank."""
    body = text[:-2] if text.endswith("\r\n") else text[:-1]
    return not body or not body[max(body.rfind("\n"), body.rfind("\r")) + 1 :].strip(" \t")
