"""What stands in the values of the frontmatter: links, tags and URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.diagnostic import Span
from mdmem.text.inline import Bare
from mdmem.text.lines import LINE_END, Lines
from mdmem.text.link import Link
from mdmem.text.link_parser import LinkParser
from mdmem.text.regex import regex
from mdmem.text.row import new
from mdmem.text.tag import Tag
from mdmem.text.url import Url

if TYPE_CHECKING:
    from mdmem.text.tree import Node

_NAME = regex(r"[^\s,]+")
_ESCAPES = {"single": "''", "double": "\\"}


def links(text: str, node: Node, lines: Lines) -> tuple[tuple[Link, ...], tuple[Url, ...]]:
    """The links and URLs in the text values under `node`, the frontmatter's mapping, in order of place.

    A value that is written with escapes has none: its places are not those of its text.
    """
    written = text[slice(*node.span)]
    if not ("[[" in written or "](" in written or "://" in written or "www." in written):
        return (), ()
    texts = [span for value in _scalars(node) if (span := _written(text, value))]
    if not texts:
        return (), ()
    parser = LinkParser(text, texts, lines)
    parser.run()
    Bare(parser, lines).urls()
    parser.finish()
    return tuple(new(Link, ("field", *link[1:])) for link in parser.links), tuple(parser.urls)


def tags(text: str, node: Node, lines: Lines) -> tuple[Tag, ...]:
    """The tags that `node`, the frontmatter's mapping, lists: `tags` is a list, or a text that names them.

    In a text there are blanks or commas between them.
    """
    member = node.member("tags")
    if not member:
        return ()
    value = member.node
    if value.kind == "list":
        spans = [span for item in value.items if (span := _written(text, item))]
    else:
        whole = _written(text, value)
        spans = [new(Span, name.span()) for name in _NAME.finditer(text, *whole)] if whole else []
    found = []
    for start, end in spans:
        name = text[start:end].removeprefix("#")
        if name:
            at = end - len(name)
            found.append(new(Tag, (name, new(Span, (at, end)), lines.number(at))))
    return tuple(found)


def _scalars(node: Node) -> list[Node]:
    if node.kind == "scalar":
        return [node]
    found = []
    for below in (*node.items, *(member.node for member in node.members)):
        found += [below] if below.kind == "scalar" else _scalars(below)
    return found


def _written(text: str, value: Node) -> Span | None:
    """Where the text of a scalar stands, without quotes; None when it is no text, or has escapes."""
    content, span, kind, style, _, _, anchored = value
    if not isinstance(content, str) or kind != "scalar" or anchored:
        return None
    if style == "plain":
        return span if span[0] < span[1] else None
    start, end = span
    if style in _ESCAPES:
        start, end = start + 1, end - 1
        if text.find(_ESCAPES[style], start, end) >= 0:
            return None
    elif style in ("literal", "folded"):
        first = LINE_END.search(text, start, end)  # the first line holds only the "|" or ">"
        start = first.end() if first else end
    return new(Span, (start, end)) if start < end else None
