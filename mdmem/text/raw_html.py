"""HTML inside a paragraph.

CommonMark 0.31.2, section 6.6 (https://spec.commonmark.org/0.31.2/#raw-html).
"""

from __future__ import annotations

import re

from mdmem.text.regex import regex

_TAG = regex(
    r"<(?:/[A-Za-z][A-Za-z0-9-]*+\s*+|[A-Za-z][A-Za-z0-9-]*+(?:\s++[A-Za-z_:][\w.:-]*+"
    r"(?:\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?+)*+\s*+/?)>",
    re.ASCII,
)
_LONGEST = 2000
_OPEN = regex(r"<(?:(!--)|(\?)|(!\[CDATA\[)|(![A-Za-z]))")
_CLOSE = ("", "-->", "?>", "]]>", ">")


def end(text: str, start: int, stop: int, unclosed: set[str]) -> int:
    """Where the tag, comment, instruction, section or declaration ends that begins at `start`; 0 without one.

    Args:
        text: the whole text.
        start, stop: where it begins, and what it has to end before.
        unclosed: which ends do not follow any more before `stop`; what is missed is added, and not looked for
            again.
    """
    tag = _TAG.match(text, start, min(stop, start + _LONGEST))
    if tag:
        return tag.end()
    opening = _OPEN.match(text, start, stop)
    if not opening or not opening.lastindex:
        return 0
    close = _CLOSE[opening.lastindex]
    if close in unclosed:
        return 0
    # `<!-->` and `<!--->` are whole comments.
    found = text.find(close, start + 2 if close == "-->" else opening.end(), stop)
    if found < 0:
        unclosed.add(close)
        return 0
    return found + len(close)
