"""Fences around code, where no container is open: the line that opens one, and where it ends.

CommonMark 0.31.2, section 4.5 (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
"""

from __future__ import annotations

from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex

# A line that opens a fence without a blank before it; its group is the mark.
OPENING = regex(r"(`{3,}(?=[^`\r\n]*+(?:[\r\n]|\Z))|~{3,})[^\r\n]*+(?:\r\n|\n|\r|\Z)")
_REST = {mark: regex(rf"{mark}*+[ \t]*+(?:\r\n|\n|\r|\Z)") for mark in "`~"}
_WIDEST_INDENT = 3


def end(text: str, start: int, mark: str) -> int:
    """Where the line ends that closes the fence of `mark`, from the line at `start` on; 0 without one."""
    rest = _REST[mark[0]]
    at = text.find(mark, start)
    while at >= 0:
        edge = at
        while edge > start and text[edge - 1] == " ":
            edge -= 1
        closing = rest.match(text, at)
        if closing and at - edge <= _WIDEST_INDENT and (edge == start or text[edge - 1] in "\r\n"):
            return closing.end()
        ending = LINE_END.search(text, at)
        at = text.find(mark, ending.end()) if ending else -1
    return 0
