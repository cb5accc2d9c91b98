"""Rewriting the target or the anchor of a link, or the path of a citation, in its own way of writing.

Nothing else of it changes. What a part becomes is given decoded; here it is only written down.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document import frontmatter
from mdmem.document.document import Document
from mdmem.document.edit import TextEdit, splice
from mdmem.document.markdown.citation import Citation
from mdmem.document.markdown.link import Link, external, percent_decoded, unescaped
from mdmem.document.text.diff import Versions
from mdmem.document.text.regex import regex
from mdmem.errors import DocumentRefused, EditRefused

# A wikilink has no escapes: these would end its target or its anchor, or the link itself.
_NOT_IN_TARGETS = regex(r"[#|\[\]`\r\n]|\A\s|\s\Z")
_NOT_IN_ANCHORS = regex(r"[|\[\]`\r\n]|\A\s|\s\Z")
# What a destination cannot hold as it is, in every place that it may stand in: a table, a value in quotes,
# text with code or other links in it.
_ENCODED_IN_ANGLES = regex(r"[%#?<>\[\]`\"|\\{}\x00-\x1f\x7f]|[^\S ]|&(?=[#A-Za-z])")
_ENCODED = regex(rf"{_ENCODED_IN_ANGLES.pattern}| ")
_IMPORTED = regex(r"[\w./-]+")
_PARENTHESIS = regex(r"[()]")
_PERCENT_PARENTHESIS = regex(r"%28[^/%]*+%29")
_BALANCED = regex(r"[^()]*+(?:\([^()]*+\)[^()]*+)*+")
# A plain value of YAML that is a text, and nothing else, wherever it stands.
_PLAIN = regex(r"(?![-+.\d][\w.+-]*\Z)(?!(?i:null|true|false)\Z)[\w./](?:[\w./()@+~-]|\b#| (?=\S))*")
# What would have to be escaped in a value of the frontmatter, or end it, by the value's style.
_NOT_IN_FIELDS = {
    "single": regex("'"),
    "double": regex(r"[\"\\]"),
    "plain": regex(r":\s|\s#"),
    "bracketed": regex(r":\s|\s#|[,{}\"'&*!%@:]"),
}
# Those of JSON first.
_QUOTES = {'"': "double", "'": "single"}
MOST_COMPARED = 1 << 19
"""Versions of more code points are merged by lines alone: what stands in them is not compared."""


def retarget(link: Link, text: str, target: str) -> TextEdit:
    """Return the edit that gives a link another target; `text` is all of the text that it stands in.

    Raises:
        EditRefused: a wikilink, an import or a field cannot hold this target.
    """
    return _edit_span(link, text, link.target_span, target, _NOT_IN_TARGETS)


def reanchor(link: Link, text: str, anchor: str) -> TextEdit:
    """Return the edit that gives a link, which has an anchor, another one; as `retarget`."""
    return _edit_span(link, text, link.anchor_span, anchor, _NOT_IN_ANCHORS)


def repath(citation: Citation, text: str, path: str) -> TextEdit:
    """Return the edit that gives a citation another path; `text` is all of the text that it stands in."""
    start, end = citation.span.start, citation.locator_span.start
    query = text.find("?", start, end) if citation.in_link and "?" not in citation.path else -1
    span = Span(start, query if query >= 0 else end)
    return TextEdit(*span, _in_destination(text, start, span, path) if citation.in_link else path)


def is_wikilink(link: Link, text: str) -> bool:
    """Return whether a link is an identifier: in two brackets, or bare in a field."""
    return link.kind == "wikilink" or (
        link.kind == "field" and (text.startswith(("[[", "![["), link.span.start) or _is_bare(link))
    )


def _is_bare(link: Link) -> bool:
    """Return whether a link is the whole value of a field, see `properties.lineage`."""
    return link.kind == "field" and link.span == (link.target_span.start, link.anchor_span.end)


def destination(old: str, new: str, *, in_angles: bool = False) -> str:
    """Write a part of a Markdown destination; parts of a path that `old` has, too, stay as written.

    `in_angles` says whether the destination stands between `<` and `>`.
    """
    encoded = _ENCODED_IN_ANGLES if in_angles else _ENCODED
    as_before = {percent_decoded(unescaped(part)): part for part in old.split("/")}
    written = "/".join(as_before.get(part) or encoded.sub(percent, part) for part in new.split("/"))
    as_is = in_angles or (_BALANCED.fullmatch(written) and not _PERCENT_PARENTHESIS.search(old))
    return written if as_is else _PARENTHESIS.sub(percent, written)


def _edit_span(link: Link, text: str, span: Span, new: str, forbidden: re.Pattern[str]) -> TextEdit:
    if link.kind == "import":
        if not _IMPORTED.fullmatch(new):
            raise EditRefused(path="", reason=f"the import in line {link.line} cannot say {new!r}")
        written = new
    elif not is_wikilink(link, text):
        written = _in_destination(text, link.target_span.start, span, new)
        if link.kind == "html":  # which may be in single quotes
            written = written.replace("'", "%27")
    elif not new or forbidden.search(new):
        raise EditRefused(
            path="",
            reason=f"the wikilink in line {link.line} cannot say {new!r}",
            remedy="choose a name without # | [ ] and backticks, or write that link as [text](path)",
        )
    else:
        written = new
    if _is_bare(link):
        return _edit_bare_value(link, text, span, new)
    return TextEdit(*span, _in_field(link, text, span, written))


def _edit_bare_value(link: Link, text: str, span: Span, new: str) -> TextEdit:
    """Return the edit of a field that is a link, with quotes where the new value needs them."""
    start, end = link.span
    whole = text[start : span.start] + new + text[span.end : end]
    quote = text[start - 1] if text[start - 1 : start] in {"'", '"'} else ""
    if quote or _PLAIN.fullmatch(whole):
        forbidden = _NOT_IN_FIELDS[_QUOTES.get(quote, "plain")]
        if not forbidden.search(new):
            return TextEdit(*span, new)
    fitting = next((q for q, style in _QUOTES.items() if not _NOT_IN_FIELDS[style].search(whole)), "")
    if fitting and not (quote and text.lstrip()[:1] == "{"):  # JSON has but one
        return TextEdit(start - len(quote), end + len(quote), f"{fitting}{whole}{fitting}")
    raise _needs_escapes(link, new)


def _in_destination(text: str, start: int, span: Span, new: str) -> str:
    """Write a part of the destination that begins at `start`."""
    written = destination(text[slice(*span)], new, in_angles=text.startswith("<", start - 1))
    # A colon in the first part of a path would end the scheme of a URL (RFC 3986, 4.2).
    return written.replace(":", "%3A", 1) if span.start == start and external(written) else written


def percent(character: re.Match[str]) -> str:
    """Return a character as a URL has it, percent-encoded."""
    return "".join(f"%{byte:02X}" for byte in character[0].encode())


def _in_field(link: Link, text: str, span: Span, new: str) -> str:
    """Write a part of a link, which may stand in a value of the frontmatter."""
    if link.kind != "field":
        return new
    # The text was read as a memory before, so its limits hold.
    node = frontmatter.parse(text, max_depth=sys.maxsize, max_values=sys.maxsize).node
    scalars = (each for each in node.nodes() if each.kind == "scalar") if node else iter(())
    scalar = next((each for each in scalars if each.span.start <= span.start < each.span.end), None)
    style: str = scalar.style if scalar else ""
    if scalar and link.span.start < scalar.span.start and style == "plain":
        style = "bracketed"
    forbidden = _NOT_IN_FIELDS.get(style)
    if not forbidden or not forbidden.search(new):
        return new
    if not is_wikilink(link, text):
        return forbidden.sub(percent, new)
    raise _needs_escapes(link, new)


def _needs_escapes(link: Link, new: str) -> EditRefused:
    return EditRefused(
        path="",
        reason=f"the value in line {link.line} cannot hold {new!r} without escapes",
        remedy="write that value in other quotes first",
    )


# ------------------------------------------------------------------------------------------------ versions


class _Stretch(NamedTuple):
    """A stretch of a document, and the links in it."""

    document: Document
    span: Span
    links: list[Link]

    @classmethod
    def of(cls, document: Document, span: Span) -> _Stretch:
        """Read a stretch of a document; the definition that a reference refers to stands elsewhere."""
        first = bisect_left(document.links, span.start, key=_START)
        inside = takewhile(lambda link: link.span.start < span.end, document.links[first:])
        links = [link for link in inside if link.kind != "reference" and link.span.end <= span.end]
        return cls(document, span, links)

    def written(self, edits: Iterable[TextEdit]) -> str:
        start = self.span.start
        inside = (TextEdit(edit.start - start, edit.end - start, edit.new) for edit in edits)
        return splice(self.document.text[slice(*self.span)], inside)

    def words(self) -> str:
        """Return the text, without what says where its links lead."""
        spans = (span for link in self.links for span in (link.target_span, link.anchor_span))
        return self.written(TextEdit(*span, "\0") for span in spans if span.start < span.end)


_START = attrgetter("span.start")


def repointed(documents: Versions[Document], spans: Versions[Span]) -> str | None:
    """Return a stretch as one side wrote it, with its links led to where the other side led them.

    Return None unless one side changed only the targets of links, each in the same way, and the other still
    links to all of them. Return None also for versions that are too large.
    """
    if any(len(document.text) > MOST_COMPARED for document in documents):
        return None
    try:
        base, ours, theirs = documents.paired(spans, _Stretch.of)
        if not base.links:
            return None
        words = base.words()
        for mine, other in (ours, theirs), (theirs, ours):
            text = _lead_links(base, mine, other) if mine.words() == words else None
            if text is not None:
                return text
    except (DocumentRefused, EditRefused):
        return None
    return None


def _lead_links(base: _Stretch, mine: _Stretch, other: _Stretch) -> str | None:
    """Return the text of `other` with its links led as `mine` leads those of `base`; None if unclear."""
    targets: dict[str, str] = {}
    anchors: dict[tuple[str, str], str] = {}
    for old, new in zip(base.links, mine.links, strict=True):
        name = old.target, old.anchor
        if targets.setdefault(old.target, new.target) != new.target:
            return None
        if anchors.setdefault(name, new.anchor) != new.anchor:
            return None
    edits = []
    missed = {name for name in anchors if (targets[name[0]], anchors[name]) != name}
    for link in other.links:
        name = link.target, link.anchor
        missed.discard(name)
        target, anchor = targets.get(link.target, link.target), anchors.get(name, link.anchor)
        if target != link.target:
            edits.append(retarget(link, other.document.text, target))
        if anchor != link.anchor:
            edits.append(reanchor(link, other.document.text, anchor))
    return None if missed else other.written(edits)
