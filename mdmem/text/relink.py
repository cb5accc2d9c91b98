"""Rewriting the target or the anchor of a link, or the path of a citation, in its own way of writing.

Nothing else of it changes. What a part becomes is given decoded; here it is only written down.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mdmem.diagnostic import Span
from mdmem.errors import EditRefused
from mdmem.text import frontmatter
from mdmem.text.edit import TextEdit
from mdmem.text.link import Link, percent_decoded, unescaped
from mdmem.text.regex import regex

if TYPE_CHECKING:
    import re

    from mdmem.text.citation import Citation

# A wikilink has no escapes: these would end its target or its anchor, or the link itself.
_NOT_IN_TARGETS = regex(r"[#|\[\]`\r\n]|\A\s|\s\Z")
_NOT_IN_ANCHORS = regex(r"[|\[\]`\r\n]|\A\s|\s\Z")
# What a destination cannot hold as it is, in every place that it may stand in: a table, a value in quotes,
# text with code or other links in it.
_ENCODED = regex(r"[%#?<>\[\]`\"|\\{}\x00-\x1f\x7f]|[^\S ]|&(?=[#A-Za-z])")
_BLANK = regex(r" ")
_PARENTHESIS = regex(r"[()]")
_UNESCAPED_PARENTHESIS = regex(r"(?<!\\)[()]")
_MOST_PARENTHESES = 32
_OTHER_LETTERS = regex(r"[^\x00-\x7f]")
# A plain value of YAML that is a text, and nothing else, wherever it stands.
_PLAIN = regex(r"(?![-+.\d][\w.+-]*\Z)(?!(?i:null|true|false)\Z)[\w./](?:[\w./()@+~-]|\b#| (?=\S))*")
# What would have to be escaped in a value of the frontmatter, or end it, by the value's style.
_NOT_IN_FIELDS = {"single": regex("'"), "double": regex(r"[\"\\]"), "plain": regex(r":\s|\s#")}
# Those of JSON first.
_QUOTES = {'"': "double", "'": "single"}
_ENCODED_LETTER = regex(r"%[89A-Fa-f][0-9A-Fa-f]")


def retarget(link: Link, text: str, target: str) -> TextEdit:
    """The edit that gives a link another target; `text` is all of the text that it stands in.

    Raises:
        EditRefused: a wikilink cannot hold this target.
    """
    return _edit(link, text, link.target_span, target, _NOT_IN_TARGETS)


def reanchor(link: Link, text: str, anchor: str) -> TextEdit:
    """The edit that gives a link, which has an anchor, another one.

    Raises:
        EditRefused: a wikilink cannot hold this anchor.
    """
    return _edit(link, text, link.anchor_span, anchor, _NOT_IN_ANCHORS)


def repath(citation: Citation, text: str, path: str) -> TextEdit:
    """The edit that gives a citation another path; `text` is all of the text that it stands in."""
    span = Span(citation.span.start, citation.locator_span.start)
    return TextEdit(*span, _in_destination(text, span.start, span, path) if citation.in_link else path)


def is_wikilink(link: Link, text: str) -> bool:
    """Whether a link is an identifier: with two brackets, in the body or in a field, or bare in a field."""
    return link.kind == "wikilink" or (
        link.kind == "field" and (text.startswith(("[[", "![["), link.span.start) or _is_bare(link))
    )


def _is_bare(link: Link) -> bool:
    """Whether a link is a value of a field, with no mark around it; see `mdmem.text.properties.lineage`."""
    return link.kind == "field" and link.span == (link.target_span.start, link.anchor_span.end)


def destination(old: str, new: str, *, in_angles: bool = False) -> str:
    """`new`, decoded, as a part of a Markdown destination, in the way in which `old` is written.

    Parts of a path that are in both are written as they were.

    Args:
        old: the same part as it is written.
        new: what it becomes.
        in_angles: whether the destination stands between `<` and `>`.
    """
    as_before = {percent_decoded(unescaped(part)): part for part in old.split("/")}
    written = "/".join(
        as_before.get(part) or _encoded(part, old, in_angles=in_angles) for part in new.split("/")
    )
    if in_angles or _balanced(written):
        return written
    return _PARENTHESIS.sub(
        _percent, "/".join(_encoded(part, "", in_angles=False) for part in new.split("/"))
    )


def _edit(link: Link, text: str, span: Span, new: str, forbidden: re.Pattern[str]) -> TextEdit:
    if not is_wikilink(link, text):
        written = _in_destination(text, link.target_span.start, span, new)
    elif not new or forbidden.search(new):
        raise EditRefused(
            path="",
            reason=f"the wikilink in line {link.line} cannot say {new!r}",
            remedy="choose a name without # | [ ] and backticks, or write that link as [text](path)",
        )
    else:
        written = new
    if _is_bare(link):
        return _bare(link, text, span, new)
    return TextEdit(*span, _in_field(link, text, span, written))


def _bare(link: Link, text: str, span: Span, new: str) -> TextEdit:
    """The edit of a value that is a link, in its quotes; one without gets some where it needs them."""
    start, end = link.span
    whole = text[start : span.start] + new + text[span.end : end]
    quote = text[start - 1] if text[start - 1 : start] in {"'", '"'} else ""
    if quote or _PLAIN.fullmatch(whole):
        forbidden = _NOT_IN_FIELDS[_QUOTES.get(quote, "plain")]
        if not forbidden.search(new):
            return TextEdit(*span, new)
    elif quote := next((q for q, style in _QUOTES.items() if not _NOT_IN_FIELDS[style].search(whole)), ""):
        return TextEdit(start, end, f"{quote}{whole}{quote}")
    raise _needs_escapes(link, new)


def _in_destination(text: str, start: int, span: Span, new: str) -> str:
    """`new` as it is written in `span`, a part of the destination that begins at `start`."""
    return destination(text[slice(*span)], new, in_angles=text.startswith("<", start - 1))


def _encoded(part: str, old: str, *, in_angles: bool) -> str:
    part = _ENCODED.sub(_percent, part)
    if not in_angles or "%20" in old:
        part = _BLANK.sub(_percent, part)
    if not in_angles and ("\\(" in old or "\\)" in old):
        part = _PARENTHESIS.sub(r"\\\g<0>", part)
    elif "%28" in old or "%29" in old:
        part = _PARENTHESIS.sub(_percent, part)
    if _ENCODED_LETTER.search(old) and old.isascii():
        part = _OTHER_LETTERS.sub(_percent, part)
    return part


def _percent(character: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in character[0].encode())


def _balanced(written: str) -> bool:
    """Whether the parentheses that nothing escapes close one another, as in a bare destination they must."""
    depth = 0
    for mark in _UNESCAPED_PARENTHESIS.findall(written):
        depth += 1 if mark == "(" else -1
        if not 0 <= depth <= _MOST_PARENTHESES:
            return False
    return depth == 0


def _in_field(link: Link, text: str, span: Span, new: str) -> str:
    """`new` as it is written in `span`, which may stand in a value of the frontmatter.

    Raises:
        EditRefused: it would have to be escaped: a value with escapes is not looked into for links.
    """
    if link.kind != "field":
        return new
    # The text was read as a memory before, so its limits hold.
    node = frontmatter.parse(text, max_depth=sys.maxsize, max_values=sys.maxsize).node
    scalars = (each for each in node.nodes() if each.kind == "scalar") if node else iter(())
    style = next((each.style for each in scalars if each.span.start <= span.start < each.span.end), "")
    forbidden = _NOT_IN_FIELDS.get(style)
    if not forbidden or not forbidden.search(new):
        return new
    if not is_wikilink(link, text):
        return forbidden.sub(_percent, new)
    raise _needs_escapes(link, new)


def _needs_escapes(link: Link, new: str) -> EditRefused:
    return EditRefused(
        path="",
        reason=f"the value in line {link.line} cannot hold {new!r} without escapes",
        remedy="write that value in other quotes first",
    )
