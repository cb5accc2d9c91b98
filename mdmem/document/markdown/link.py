"""A link to a memory, and how its destination is written: escapes, entities, percent signs, anchors."""

from __future__ import annotations

import re
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.text.regex import regex


class Link(NamedTuple):
    """A link to a memory or an attachment; never an external URL.

    Attributes:
        kind: "wikilink", "markdown", "reference" (`[text][label]` and its short forms), "definition",
            "field" (in a value of the frontmatter), "html" (`href` or `src` of a tag), "import" (`@a.md`),
            "ref" (`{{< ref "a.md" >}}`, `{% link a.md %}`), "block" (`((id))`).
        embed: whether it shows its target: `![[…]]` or `![…](…)`.
        target: decoded: unescaped, %-decoded, without `<>`, anchor, query (`?raw=true`) and line (`:3`); ""
            means the memory itself.
        target_span: the target as written; of a "reference", in its definition.
        anchor: decoded, without "#"; "" without. A block is "^id"; "H1#H2" stays as written.
        anchor_span: behind the "#"; without one, empty at the end of the target.
        alias: the text of the link; "" without.
        alias_span: the same as written; without one, empty at the end of the link.
    """

    kind: str
    embed: bool
    span: Span
    line: int
    target: str
    target_span: Span
    anchor: str
    anchor_span: Span
    alias: str
    alias_span: Span


class Destination(NamedTuple):
    """Where a link leads: decoded, and the spans of both parts as written."""

    target: str
    target_span: Span
    anchor: str
    anchor_span: Span


# `tel:112` has a scheme, `Makefile:10` and `a.py:10` are lines of a file.
_SCHEME = regex(r"[A-Za-z][A-Za-z0-9+.-]{1,31}:(?![0-9]+(?:[-:][0-9]+)?\Z)|[a-z]{2,32}:|//")
_ESCAPED = regex(r"\\([!-/:-@\[-`{-~])|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# A destination without escapes: target, and anchor.
_AS_WRITTEN = regex(r"([^\\&%#?:]*+)(?:#([^\\&%]*+))?+")
# What stands behind the path and is no part of it: a query, and the line of a memory.
_QUERY = regex(r"\?(?:[\w&~-]++|[^?=]++=.*)\Z")
_LINES = regex(r"(?:(?<=\.md)|(?<=\.mdx)|(?<=\.json)|(?<=\.markdown)):[1-9][0-9]{0,8}(?:[:-][0-9]{1,9})?\Z")
# The first "#" that begins an anchor: one that belongs to an entity does not.
_HASH = regex(r"(?:[^&#]++|&#(?=[0-9xX]{1,8}[0-9A-Fa-f]*;)|&)*+#")
_PERCENT = regex(r"(?:%[0-9A-Fa-f]{2})+")
# Target, anchor and alias. The bar may have a backslash before it: in a table it has to.
WIKILINK = regex(
    r"\[\[((?:[^\[\]#|\\\r\n]++|\\(?!\|))*+)"
    r"(?:#((?:[^\[\]|\\\r\n]++|\\(?!\|))*+))?+(?:\\?\|([^\[\]\r\n]*+))?+\]\]"
)


def external(destination: str) -> bool:
    """Return whether a decoded destination is a URL: it has a scheme, or a host."""
    return _SCHEME.match(destination) is not None


def unescaped(written: str) -> str:
    """Return a text without backslash escapes and character references (CommonMark 0.31.2, 2.4 and 2.5)."""
    return _ESCAPED.sub(_unescape_one, written) if "\\" in written or "&" in written else written


def _unescape_one(escaped: re.Match[str]) -> str:
    if escaped[1]:
        return escaped[1]
    import html.entities  # noqa: PLC0415 - few memories have any

    entity = escaped[0]
    return html.unescape(entity) if entity[1] == "#" else html.entities.html5.get(entity[1:], entity)


def percent_decoded(written: str) -> str:
    """`written` with its %-sequences decoded; those that are no UTF-8 stay as written."""
    return _PERCENT.sub(_decode_octets, written) if "%" in written else written


def _decode_octets(escaped: re.Match[str]) -> str:
    try:
        return bytes.fromhex(escaped[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return escaped[0]


def destination(text: str, span: Span) -> Destination:
    """Return the destination in `span` of `text`, without `<>` around it."""
    start, end = span
    plain = _AS_WRITTEN.fullmatch(text, start, end)
    if plain:
        target, anchor = plain.groups("")
        behind = plain.span(2) if plain.lastindex == 2 else (end, end)  # noqa: PLR2004 - it has an anchor
        return Destination(target, Span(*plain.span(1)), anchor, Span(*behind))
    written = text[start:end]
    found = _HASH.match(written) if "#" in written else None
    path = written[: found.end() - 1] if found else written
    tail = _QUERY.search(path) if "?" in path else _LINES.search(path) if ":" in path else None
    path = path[: tail.start()] if tail else path
    target_span = Span(start, start + len(path))
    if not found:
        return Destination(_decode_target(path), target_span, "", Span(target_span.end, target_span.end))
    anchor_span = Span(start + found.end(), end)
    return Destination(_decode_target(path), target_span, _decode_target(written[found.end() :]), anchor_span)


def _decode_target(written: str) -> str:
    return percent_decoded(unescaped(written))


def wikilink(found: re.Match[str], line: int, *, embed: bool) -> Link | None:
    """Return a match of `WIKILINK` as a link; None when it names nothing.

    `embed` says whether there is a "!" before the brackets.
    """
    target, target_span = _strip_group(found, 1)
    anchor, anchor_span = _strip_group(found, 2) if found[2] else ("", _empty_span(target_span[1]))
    if not target and not anchor:
        return None
    start, end = found.span()
    alias, alias_span = _strip_group(found, 3) if found[3] else ("", _empty_span(end))
    where = (target, target_span, anchor, anchor_span, alias, alias_span)
    return Link("wikilink", embed, Span(start - embed, end), line, *where)


def _empty_span(at: int) -> Span:
    return Span(at, at)


def _strip_group(found: re.Match[str], group: int) -> tuple[str, Span]:
    written, span = found[group], found.span(group)
    bare = written.strip()
    if len(bare) < len(written):
        start = span[0] + len(written) - len(written.lstrip())
        span = start, start + len(bare)
    return bare, Span(*span)
