"""What stands in the values of the frontmatter: links, tags and URLs."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping
from typing import Any

from mdmem.diagnostic import Span
from mdmem.document.markdown.inline import Inline, Tag, Url, in_values
from mdmem.document.markdown.link import Link, external
from mdmem.document.text.lines import LINE_END, Lines
from mdmem.document.text.regex import regex
from mdmem.document.tree import LINEAGE, Node

_NAME = regex(r"[^\s,]+")
_BRACKETS = regex(r"\[\[[^\[\]{},\"'\r\n]+\]\]")
_ESCAPES = {"single": "''", "double": "\\", "json": "\\"}


def links(text: str, node: Node, lines: Lines) -> tuple[tuple[Link, ...], tuple[Url, ...]]:
    """Find the links and URLs in the text values under `node`, in order of place.

    What a field of `LINEAGE` names is a link without being written as one, see `lineage`. What is written
    with escapes is none: its places are not those of its text.
    """
    written = text[slice(*node.span)]
    named = lineage(text, node, lines)
    if not ("[[" in written or "](" in written or "://" in written or "www." in written):
        return named, ()
    texts: list[Span] = []
    for value in node.nodes():
        span = _span_of_brackets(text, value) or _span_of_text(text, value, escaped=True)
        if span and (not texts or texts[-1].end <= span.start):  # else it is the name in such brackets
            texts.append(span)
    if not texts:
        return named, ()
    within = in_values(text, texts, lines)
    if any(escape in written for escape in _ESCAPES.values()):
        quoted = [value for value in node.nodes() if value.style in _ESCAPES]
        starts = [value.span.start for value in quoted]

        def is_plain(found: Link | Url) -> bool:
            start, end = found.span
            value = quoted[bisect(starts, start) - 1] if starts and starts[0] < start else node
            return value.span.end <= start or text.find(_ESCAPES.get(value.style, "\0"), start, end) < 0

        within = Inline(tuple(filter(is_plain, within.links)), urls=tuple(filter(is_plain, within.urls)))
    found = [link._replace(kind="field") for link in within.links]
    taken = [*(link.span.start for link in found), *(url.span.start for url in within.urls)]
    named = tuple(link for link in named if not any(link.span[0] <= at < link.span[1] for at in taken))
    return tuple(sorted((*found, *named), key=lambda link: link.span)), within.urls


def lineage(text: str, node: Node, lines: Lines) -> tuple[Link, ...]:
    """Find the names that the fields of `LINEAGE` give plainly, as links: `notes/db.md`, `../db.md`, an id.

    Such a link is its target and its anchor, with no mark around them.
    """
    found = []
    for key in LINEAGE:
        member = node.member(key)
        value = member.node if member else None
        for item in () if value is None else value.items if value.kind == "list" else (value,):
            span = _span_of_plain_name(text, item)
            if not span:
                continue
            start, end = span
            target, mark, anchor = text[start:end].partition("#")
            middle, behind = start + len(target), start + len(target) + len(mark)
            found.append(
                Link(
                    "field",
                    embed=False,
                    span=span,
                    line=lines.number(start),
                    target=target,
                    target_span=Span(start, middle),
                    anchor=anchor,
                    anchor_span=Span(behind, end),
                    alias="",
                    alias_span=Span(end, end),
                )
            )
    return tuple(found)


def _span_of_plain_name(text: str, value: Node) -> Span | None:
    """Return where a value stands that can be the name of a memory; None for others, and for escapes."""
    is_number = isinstance(value.value, int) and not isinstance(value.value, bool) and not value.anchored
    span = value.span if is_number else _span_of_text(text, value)
    if not span or value.style in ("literal", "folded"):
        return None
    name = text[slice(*span)]
    is_whole = name == str(value.value) and name == name.strip() and not external(name)
    return Span(*span) if is_whole else None


def tags(text: str, node: Node, lines: Lines) -> tuple[Tag, ...]:
    """Find the tags in the frontmatter: `tags` is a list, or a text with blanks or commas between them."""
    member = node.member("tags")
    if not member:
        return ()
    value = member.node
    if value.kind == "list":
        spans = [span for item in value.items if (span := _span_of_text(text, item))]
    else:
        whole = _span_of_text(text, value)
        spans = [Span(*name.span()) for name in _NAME.finditer(text, *whole)] if whole else []
    found = []
    for start, end in spans:
        name = text[start:end].removeprefix("#")
        if name:
            at = end - len(name)
            found.append(Tag(name, Span(at, end), lines.number(at)))
    return tuple(found)


def quoted_tags(text: str, inner: Span, fields: Mapping[str, Any], lines: Lines) -> tuple[Tag, ...]:
    """Find the tags in frontmatter of TOML or JSON, each between quotes behind the name of the field."""
    at, found = text.find("tags", *inner), []
    names = fields.get("tags", ())
    for name in names if isinstance(names, list) and at >= 0 else ():
        quoted = regex(rf"([\"']){re.escape(name)}\1").search(text, at, inner.end)
        if quoted and name:
            at = quoted.end()
            found.append(Tag(name, Span(quoted.start() + 1, at - 1), lines.number(at)))
    return tuple(found)


def _span_of_brackets(text: str, value: Node) -> Span | None:
    """Return where a wikilink without quotes stands; YAML reads it as a list in a list."""
    is_bare = value.kind == "list" and not value.anchored and _BRACKETS.fullmatch(text, *value.span)
    names = [each.value for inner in value.items for each in inner.items] if is_bare else []
    return value.span if names and isinstance(names[0], str) else None


def _span_of_text(text: str, value: Node, *, escaped: bool = False) -> Span | None:
    """Return where the text of a scalar stands, without quotes; None for no text, or for escapes."""
    content, span, kind, style, _, _, anchored = value
    if not isinstance(content, str) or kind != "scalar" or anchored:
        return None
    if style == "plain":
        return span if span[0] < span[1] else None
    start, end = span
    if style in _ESCAPES:  # and so in quotes
        start, end = start + 1, end - 1
        if not escaped and text.find(_ESCAPES[style], start, end) >= 0:
            return None
    elif style in ("literal", "folded"):
        first = LINE_END.search(text, start, end)  # the first line holds only the "|" or ">"
        start = first.end() if first else end
    return Span(start, end) if start < end else None
