"""Blocks of HTML: how each of the seven kinds begins and ends.

CommonMark 0.31.2, section 4.6 (https://spec.commonmark.org/0.31.2/#html-blocks).
"""

from __future__ import annotations

import re

from mdmem.text.regex import regex

_OPEN = regex(
    r"(?P<raw><(?:script|pre|style|textarea)(?=[ \t>]|$))|(?P<comment><!--)|(?P<processing><\?)"
    r"|(?P<cdata>(?-i:<!\[CDATA\[))|(?P<declaration><![A-Z])|(?P<block></?(?:address|article|aside|base"
    r"|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption"
    r"|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem"
    r"|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    r"|track|ul)(?=[ \t>]|/>|$))"
    r"|(?P<tag><(?:/[A-Z][A-Z0-9-]*+|[A-Z][A-Z0-9-]*+(?:[ \t]++[A-Z_:][A-Z0-9:._-]*+(?:[ \t]*+=[ \t]*+"
    r"(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?)*[ \t]*+/?)[ \t]*>[ \t]*$)",
    re.IGNORECASE | re.ASCII,
)
# What ends a block that only a blank line ends.
UNTIL_BLANK = regex(r"(?!)")
_CLOSE = {
    "raw": regex(r"</(?:script|pre|style|textarea)>", re.IGNORECASE | re.ASCII),
    "comment": regex(r"-->"),
    "processing": regex(r"\?>"),
    "cdata": regex(r"\]\]>"),
    "declaration": regex(r">"),
    "block": UNTIL_BLANK,
    "tag": UNTIL_BLANK,
}


def closing(content: str, at: int, *, interrupts: bool) -> re.Pattern[str] | None:
    """What ends the block that begins at `at`; None when none does.

    Args:
        content: a line.
        at: its first character that is neither a space nor a tab.
        interrupts: whether the line before is one of a paragraph.
    """
    opening = _OPEN.match(content, at)
    if not opening or not opening.lastgroup or (opening.lastgroup == "tag" and interrupts):
        return None
    return _CLOSE[opening.lastgroup]
