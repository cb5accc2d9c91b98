"""The block that `project sync` writes between two marks in a file, which may hold other text as well.

The first mark holds digests of the header of a rule's own file and of the text in the block. They tell an
edited block from one that is only out of date.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.text.diff import Versions
from mdmem.document.text.lines import LINE_END, Lines
from mdmem.document.text.regex import regex

BEGIN = regex(r"(?<![^\r\n])<!-- mdmem:begin ([0-9a-f]{8})\.([0-9a-f]{8})[^\r\n]*-->[ \t]*(?:\r\n|\n|\r)")
_END = regex(r"(?<![^\r\n])<!-- mdmem:end -->[ \t]*(?:\r\n|\n|\r|\Z)")
_NAME = "<!-- mdmem:"
_MARK = regex(r"(?<![^\r\n])[ \t]*<!-- mdmem:(?:begin|end)\b")


class SyncedBlock(NamedTuple):
    """A block with its marks, what is between them, and the digests of the header and of the inside."""

    span: Span
    inner: Span
    header_digest: str
    digest: str

    def is_edited(self, text: str) -> bool:
        """Return whether somebody has changed what is between the marks, in the text that it was found in."""
        return digest_block(text[slice(*self.inner)]) != self.digest


class BrokenMarks(Exception):
    """Marks that make no block: one is missing, or there are several."""


def find_block(text: str) -> SyncedBlock | None:
    """Find the block of a text; None where there is none.

    Raises:
        BrokenMarks: there are marks, but not one of each in order.
    """
    if _NAME not in text:  # most texts, and the largest of them, are looked through at once
        return None
    begins, ends = list(BEGIN.finditer(text)), list(_END.finditer(text))
    if not begins and not ends and not has_marks(text):
        return None
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0].end():
        raise BrokenMarks
    begin, end = begins[0], ends[0]
    return SyncedBlock(Span(begin.start(), end.end()), Span(begin.end(), end.start()), begin[1], begin[2])


def has_marks(text: str) -> bool:
    """Return whether a text holds a mark, so that it cannot stand in a block."""
    return _MARK.search(text) is not None


def without_block(text: str) -> str:
    """Return a text without its block; all of it where its marks make none."""
    span = block_span(text)
    return text[: span.start] + text[span.end :]


def block_span(text: str, *, edited: bool = True) -> Span:
    """Return where the block of a text is; empty, at its start, where its marks make none.

    `edited`: also of a block that somebody has changed.
    """
    with suppress(BrokenMarks):
        block = find_block(text)
        if block and (edited or not block.is_edited(text)):
            return block.span
    return Span(0, 0)


def with_one_block(texts: Versions[str]) -> Versions[str]:
    """Return three versions of a text, all with the block of theirs, where `project sync` wrote both blocks.

    Two blocks are made of the rules of two branches, and rules are merged in their own files. With a block
    that somebody has edited, the versions stay as they are.
    """
    try:
        blocks = texts.map(find_block)
    except BrokenMarks:
        return texts
    if not (blocks.ours and blocks.theirs) or texts.paired(blocks, _cut_block).agreed():
        return texts
    if any(block and block.is_edited(text) for text, block in zip(texts, blocks, strict=True)):
        return texts
    kept = _cut_block(texts.theirs, blocks.theirs)

    def put(text: str, block: SyncedBlock | None) -> str:
        if block:
            return text[: block.span.start] + kept + text[block.span.end :]
        return text + gap_before_block(text) + kept  # a first sync writes to the end

    return texts.paired(blocks, put)


def _cut_block(text: str, block: SyncedBlock | None) -> str:
    return text[slice(*block.span)] if block else ""


def gap_before_block(text: str) -> str:
    """Return the line ends that set a block off from the text before it: a blank line behind any text."""
    newline = Lines(text).newline
    ends = len(text) - len(text.removesuffix(newline).removesuffix(newline))
    return newline * (2 - ends // len(newline)) if text else ""


def digest_block(text: str) -> str:
    """Return eight digits for a text; line ends and the blank lines around it do not count."""
    lines = "\n".join(LINE_END.split(text)).strip("\n")
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()[:8]
