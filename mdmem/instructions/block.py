"""Marked blocks: the part of a file that `sync` writes; everything around it is somebody else's.

A block begins with a comment that holds two digests: of what stands before it in a file of its own (the
header of a rule), and of what is in it. So a later look tells a block that somebody edited from one that is
only out of date.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.text.lines import LINE_END, with_newline
from mdmem.text.regex import regex

_BEGIN = regex(r"(?<![^\r\n])<!-- mdmem:begin ([0-9a-f]{8})\.([0-9a-f]{8})[^\r\n]*-->[ \t]*(?:\r\n|\n|\r)")
_END = regex(r"(?<![^\r\n])<!-- mdmem:end -->[ \t]*(?:\r\n|\n|\r|\Z)")
_MARK = regex(r"(?<![^\r\n])[ \t]*<!-- mdmem:(?:begin|end)\b")


class Block(NamedTuple):
    """A block that stands in a text.

    Attributes:
        span: the block with its marks.
        inner: what is between them.
        header_digest, digest: what the mark says of the text before the block, and of what is in it.
    """

    span: Span
    inner: Span
    header_digest: str
    digest: str


class Broken(Exception):
    """Marks that make no block: one is missing, or there are several."""


def find(text: str) -> Block | None:
    """The block of a text; None where there is none.

    Raises:
        Broken: there are marks, but not one of each in order.
    """
    begins, ends = list(_BEGIN.finditer(text)), list(_END.finditer(text))
    if not begins and not ends and not _MARK.search(text):
        return None
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0].end():
        raise Broken
    begin, end = begins[0], ends[0]
    return Block(Span(begin.start(), end.end()), Span(begin.end(), end.start()), begin[1], begin[2])


def written(inner: str, source: str, header: str = "") -> str:
    """A block with `inner` in it, made of `source`, for a file that begins with `header`."""
    mark = f"<!-- mdmem:begin {digest(header)}.{digest(inner)} from {source}, by `mdmem project sync` -->"
    return "\n".join([mark, with_newline(inner, "\n").strip("\n"), "<!-- mdmem:end -->", ""])


def digest(text: str) -> str:
    """Eight digits for a text; its kind of line ends and the blank lines around it do not count."""
    lines = "\n".join(LINE_END.split(text)).strip("\n")
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def has_marks(text: str) -> bool:
    """Whether a text holds a mark, so that it cannot stand in a block."""
    return _MARK.search(text) is not None


def outside(text: str) -> str:
    """A text without its block; all of it where its marks make none."""
    found = _sound(text)
    return text[: found.span.start] + text[found.span.end :] if found else text


def inside(text: str) -> str:
    """What is in the block of a text; empty where its marks make none."""
    found = _sound(text)
    return text[slice(*found.inner)] if found else ""


def _sound(text: str) -> Block | None:
    try:
        return find(text)
    except Broken:
        return None
