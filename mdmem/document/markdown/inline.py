"""What stands inside the text of a Markdown memory: links, citations of code, tags and URLs, with places.

The parser of blocks tells which brackets are links. Wikilinks are none of CommonMark, and go before other
brackets, as in Obsidian; URLs, citations and tags need no mark at all.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from mdmem.diagnostic import Span, is_within
from mdmem.document.markdown import blocks, citation, link
from mdmem.document.markdown.blocks import AUTOLINK, CODE, HTML, IMAGE, LINK, Definition, Mark, Scan
from mdmem.document.markdown.citation import Citation, Locator
from mdmem.document.markdown.link import Destination, Link
from mdmem.document.text.lines import LINE_END, MOST_PARTS, Lines
from mdmem.document.text.regex import regex
from mdmem.errors import TooManyParts

__all__ = ["Citation", "Inline", "Link", "Tag", "Url", "in_values", "scan"]

# Where the text of an inline link ends, and its destination.
_DESTINATION = regex(r"\]\([ \t\r\n]*+(<(?:[^<>\\\r\n]++|\\[^\r\n])*+>|[^\x00-\x20\x7f]*+)")
_IGNORED_SCHEMES = ("mailto:", "data:", "javascript:")
# Where a locator or a tag may begin. Patterns that begin with one certain character are found fast.
_HASH, _COLON = regex(r"#(?=[^\s#])"), regex(r":[0-9]")
# This many times as many of them as there may be tags and citations are looked at.
_STEPS = 4
# Letters, digits, "_", "-", "/" and what is neither ASCII nor punctuation; not digits alone.
_NEITHER = (
    r"\s\x00-,.:-@\[-^`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u200c\u200e-\u206f\u3000-\u303f"
    r"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_TAG = regex(f"#[0-9/_-]*+[^0-9/_{_NEITHER}-][^{_NEITHER}]*+")
# Blanks, quotes, brackets and the punctuation of other scripts end a URL. Both patterns begin with what is
# always the same: they are found forty times faster so than from the schemes on.
_URL = (
    r"\w[^\s<>\"`\[\]{}|\\^\u2018-\u201f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]*+"
)
_WITH_SCHEME, _WITHOUT = regex(f"://{_URL}"), regex(rf"www\.{_URL}")
_SCHEME = regex(r"(?:s?ptth|s?ptf)(?![^\W_])", re.IGNORECASE)  # read backwards
_LONGEST_SCHEME = 6
_URL_TAIL = frozenset("?!.,:*_~'\"")
_LONGEST_ENTITY = 12
# The first link of a tag, and what an agent's file imports. Paths of the home folder and others are none.
_HTML_LINK = regex(
    r"<[A-Za-z][\w:-]*+\s(?:[^<>]*?\s)??(?i:(href|src))\s*+=\s*+(?:\"([^\"<>]++)\"|'([^'<>]++)'|([^\s\"'<>=`]++))"
)
_IMPORT = regex(r"@((?:[\w.-]++/)*+[\w.-]*\.(?:md|mdx|markdown|json))(?![\w/-])")
_BEFORE_IMPORT = " \t\r\n(,;:"
_SPAN = attrgetter("span")
# Formulas and shortcodes, in which brackets are no links.
_MAY_HOLD_NO_LINKS = ("$", "\\begin{", "{%", "{{<")
_NO_LINKS = regex(r"\$\$?|\\(?:begin|end)(\{[^{}\n]{1,40}\})|\{\{[<%]|\{%|>\}\}|%\}\}?")
_SHORTCODES = {">}}": "{{<", "%}}": "{{%", "%}": "{%"}
_OPENING, _CLOSING = regex(r"(?a:(?<![\w$]))\$(?=\S)"), regex(r"(?<=[^\s$])\$(?a:(?![\w$]))")
_ALONE = regex(r"(?:\A|(?<=\n))[ \t>]*+\$\$[ \t]*+(?=\r?\n)")
_LONGEST_MARGIN = 100
# What Hugo and Jekyll link with, and a block that Logseq shows.
_REFERENCE = regex(
    r"\{\{[<%]\s*(?:rel)?ref\s+(?:path\s*=\s*)?([\"'`])([^\"'`\r\n]+)\1|\{%-?\s*(?:link|post_url)\s+([^\s%{}\"']+)\s*-?%\}"
)
_SHOWN_BLOCK = regex(r"\(\(([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\)\)")
# A destination that a template makes.
_TEMPLATE = regex(r"\{[{%]|\$\{")


class Tag(NamedTuple):
    """A tag: `#name` in the body, or one of `tags` in the frontmatter; its name and span have no "#"."""

    name: str
    span: Span
    line: int


class Url(NamedTuple):
    """A URL, unescaped, and where it is written."""

    url: str
    span: Span
    line: int


class Inline(NamedTuple):
    """What was found, each in order of place."""

    links: tuple[Link, ...] = ()
    citations: tuple[Citation, ...] = ()
    tags: tuple[Tag, ...] = ()
    urls: tuple[Url, ...] = ()


def scan(text: str, outline: Scan, lines: Lines, most: int = MOST_PARTS) -> Inline:
    """Find what stands in the texts of a Markdown text.

    Args:
        outline: what the scanner of blocks found in it.
        most: how many of each there may be; and a few times as many marks that could begin one.

    Raises:
        TooManyParts: there are more.
    """
    text = blocks.without_quotes(text, outline.quotes) if outline.quotes else text
    finder = _Finder(text, outline.texts, lines, most)
    finder.define(outline.definitions)
    finder.take(outline.marks)
    if "href" in text or "src" in text:
        tags = (Span(mark.start, mark.end) for mark in outline.marks if mark.kind == HTML)
        finder.find_html((*outline.html, *tags))
    if outline.texts:
        finder.find_urls()
        finder.find_tags()
        finder.find_imports()
        finder.find_references()
    return finder.found()


def in_values(text: str, values: Sequence[Span], lines: Lines) -> Inline:
    """Return the links and URLs in values of the frontmatter, which stand in order at `values`."""
    marks: list[Mark] = []
    for value in values:
        at = value.start
        for end in (*(found.start() for found in LINE_END.finditer(text, *value)), value.end):
            marks += blocks.inlines(text, at, end)
            at = end
    finder = _Finder(text, values, lines, MOST_PARTS)
    finder.take(marks)
    finder.find_urls()
    return finder.found()


class _Lead(NamedTuple):
    """Where a destination leads: to a `url`, to a `cited` file that is no memory, else to a memory."""

    span: Span
    url: str
    to: Destination
    cited: tuple[str, Locator] | None


@dataclass(slots=True, eq=False)
class _Defined:
    """A definition; `used` is the end of the first link that uses it."""

    span: Span
    lead: _Lead | None
    used: int | None = None
    shown: bool = False


class _Finder:
    """Finds links and the like in `texts`, which are parts of `text`."""

    def __init__(self, text: str, texts: Sequence[Span], lines: Lines, most: int) -> None:
        self._text = text
        self._texts = texts
        self._line = lines.number
        self._most = most
        self._left = most * _STEPS
        self._links: list[Link] = []
        self._citations: list[Citation] = []
        self._tags: list[Tag] = []
        self._urls: list[Url] = []
        # Where nothing bare can begin, in order and apart: links, code, HTML, autolinks.
        self._taken: list[Span] = []
        self._definitions: list[_Defined] = []
        self._labels: dict[str, _Defined] = {}

    def found(self) -> Inline:
        for defined in self._definitions:
            self._add_definition(defined)
        for found in (self._links, self._citations, self._urls):
            if len(found) > 1:
                found.sort(key=_SPAN)
        return Inline(tuple(self._links), tuple(self._citations), tuple(self._tags), tuple(self._urls))

    def _check_count(self, found: Sequence[object]) -> None:
        if len(found) > self._most:
            raise TooManyParts(path="", limit=self._most, what="links, citations, tags or URLs")

    def _count_step(self) -> None:
        self._left -= 1
        if self._left < 0:
            limit = self._most * _STEPS
            raise TooManyParts(path="", limit=limit, what="marks that could begin a citation or a tag")

    # ------------------------------------------------------------------------------------- definitions

    def define(self, definitions: Sequence[Definition]) -> None:
        """Take the link reference definitions; the first one with a label counts."""
        for definition in definitions:
            defined = _Defined(definition.span, self._read_lead(definition.destination))
            self._definitions.append(defined)
            self._labels.setdefault(_fold_label(definition.label), defined)

    def _add_definition(self, defined: _Defined) -> None:
        lead = defined.lead
        if not lead:
            return
        if lead.url:
            self._add_url(lead)
        elif lead.cited and defined.used is not None:
            # A pin behind the definition would be part of it, and break it.
            self._add_citation(lead, lead.cited, defined.used)
        elif not lead.cited or defined.shown:
            end, line = defined.span.end, self._line(defined.span.start)
            parts = {**lead.to._asdict(), "alias": "", "alias_span": Span(end, end)}
            self._links.append(Link(kind="definition", embed=False, span=defined.span, line=line, **parts))

    def _read_lead(self, span: Span) -> _Lead | None:
        text, (start, end) = self._text, span
        if text.startswith("<", start, end):
            start, end = start + 1, end - 1
            span = Span(start, end)
        if start == end:
            return None
        written = text[start:end]
        if "{" in written and _TEMPLATE.search(written):
            return None
        if ":" in written or "/" in written[:1] or "&" in written or "\\" in written:
            written = link.unescaped(written)
            if link.external(written):
                return _Lead(span, written, Destination("", span, "", span), None)
        to = link.destination(text, span)
        return _Lead(span, "", to, citation.in_destination(to[0], to[2]))

    # ------------------------------------------------------------------------------------------- links

    def take(self, marks: Sequence[Mark]) -> None:
        """Take the wikilinks, and what else the parser has found."""
        wikilinks = self._find_wikilinks(marks) if "[[" in self._text else []
        gone: set[Link] = set()
        self._take_marks(marks, wikilinks, gone)
        if wikilinks:
            self._links += [wikilink for wikilink in wikilinks if wikilink not in gone]
            self._check_count(self._links)
            self._taken = _drop_inner([*self._taken, *(wikilink.span for wikilink in wikilinks)])
        if self._links and any(map(self._text.__contains__, _MAY_HOLD_NO_LINKS)):
            self._drop_links(_find_formulas(self._text, self._texts, _spans_of(marks)))

    def _drop_links(self, within: Sequence[Span]) -> None:
        self._links = [
            each
            for each in self._links
            if not (is_within(within, each.span.start) and is_within(within, each.span.end - 1))
        ]

    def _take_marks(self, marks: Sequence[Mark], wikilinks: Sequence[Link], gone: set[Link]) -> None:
        """Take the marks that do not give way to wikilinks; wikilinks that give way are `gone`."""
        around = [wikilink.span for wikilink in wikilinks]
        within = bare = last = 0  # where the link, and the image, around the marks ends
        for mark in marks:
            kind, start, end, _, _ = mark
            if start < bare or (around and _gives_way(mark, wikilinks, gone)):
                continue
            if kind == LINK:
                end = within = self._take_link(mark)
            elif kind == IMAGE:
                end = bare = self._take_link(mark)
            elif kind == AUTOLINK:
                self._take_autolink(mark)
            elif kind == CODE and start >= within:
                self._take_code(start, end)
            if end > last <= start:
                last = end
                self._taken.append(Span(start, end))

    def _find_wikilinks(self, marks: Sequence[Mark]) -> list[Link]:
        """Return the wikilinks, each in one text, with its brackets in no code, HTML or autolink."""
        text, opaque, found = self._text, _spans_of(marks), []
        for matched in link.WIKILINK.finditer(text, *self._text_bounds) if self._texts else ():
            at, end = matched.span()
            room = self._texts[bisect_right(self._texts, (at, len(text))) - 1]
            is_cut = end > room.end or any(is_within(opaque, each) for each in (at, end - 2, end - 1))
            if is_cut or _is_escaped(text, at):
                continue
            embed = room.start < at and text[at - 1] == "!" and not _is_escaped(text, at - 1)
            wikilink = link.wikilink(matched, self._line(at - embed), embed=embed)
            if wikilink:
                found.append(wikilink)
        return found

    def _take_link(self, mark: Mark) -> int:
        """Take a link or an image; return where it ends, 0 when it leads nowhere."""
        text, (kind, start, end, form, close) = self._text, mark
        content = start + 1 + (kind == IMAGE)
        close = text.find("]", max(content, close), end)
        if form == "Inline":
            found = _DESTINATION.match(text, close, end - 1)
            if not found:
                return 0
            lead = self._read_lead(Span(*found.span(1)))
            written = "markdown"
        else:
            label = text[close + 2 : end - 1] if form == "Reference" else text[content:close]
            defined = self._labels.get(_fold_label(label))
            if not defined:
                return 0
            if form == "Collapsed":  # the parser leaves the empty brackets out
                end += len("[]")
            lead = defined.lead
            written = "reference"
            if kind == IMAGE:
                defined.shown = True
            elif defined.used is None:
                defined.used = end
        if lead:
            self._add_link(written, lead, Span(start, end), Span(content, close), embed=kind == IMAGE)
        return end

    def _take_autolink(self, mark: Mark) -> None:
        if mark.form == "Autolink":
            span = Span(mark.start + 1, mark.end - 1)
            to = Destination("", span, "", span)
            self._add_url(_Lead(span, self._text[slice(*span)], to, None))

    def _take_code(self, start: int, end: int) -> None:
        written = self._text[start:end]
        ticks = len(written) - len(written.lstrip("`"))
        content = written[ticks:-ticks]
        bare = content.strip(" ")
        cited = citation.in_code(bare)
        if cited:
            path, locator = cited
            at = start + ticks + len(content) - len(content.lstrip(" "))
            self._add_cited(path, locator, Span(at, at + len(bare)), at + len(path), end)

    def _add_link(self, kind: str, lead: _Lead, span: Span, alias: Span, *, embed: bool) -> None:
        if kind == "markdown" and lead.url:
            self._add_url(lead)
        elif lead.cited and not embed:
            if kind == "markdown":
                self._add_citation(lead, lead.cited, span.end)
        elif not lead.url:
            words = self._text[slice(*alias)]
            words = " ".join(words.split()) if "\n" in words or "\r" in words else words
            to = lead.to
            if to.target.startswith("((") and (block := _SHOWN_BLOCK.fullmatch(to.target)):
                inner = Span(to.target_span.start + 2, to.target_span.end - 2)
                kind, to = "block", to._replace(target=block[1], target_span=inner)
            self._links.append(Link(kind, embed, span, self._line(span[0]), *to, words, alias))
            self._check_count(self._links)

    def _add_url(self, lead: _Lead) -> None:
        if not lead.url.lower().startswith(_IGNORED_SCHEMES):
            self._urls.append(Url(lead.url, lead.span, self._line(lead.span[0])))
            self._check_count(self._urls)

    def _add_citation(self, lead: _Lead, cited: tuple[str, Locator], at: int) -> None:
        path, locator = cited
        start, end = lead.span
        if lead.to.anchor:
            stop = lead.to.anchor_span.start - 1
        elif locator.first:
            stop = self._text.rindex(":", start, end)
        else:
            stop = lead.to.target_span.end
        self._add_cited(path, locator, lead.span, stop, at, in_link=True)

    def _add_cited(
        self, path: str, locator: Locator, span: Span, stop: int, at: int, *, in_link: bool = False
    ) -> None:
        """Add the citation in `span`; its locator begins at `stop`, and its pin would stand at `at`."""
        pin, pin_span = citation.pin(self._text, at)
        line, located = self._line(span[0]), Span(stop, span[1])
        self._citations.append(Citation(path, *locator, span, line, located, pin, pin_span, in_link))
        self._check_count(self._citations)

    def find_html(self, spans: Sequence[Span]) -> None:
        for span in spans:
            if self._text.startswith("<!--", span.start):
                continue
            for found in _HTML_LINK.finditer(self._text, *span):
                self._add_plain("html", Span(*found.span(found.lastindex or 0)), embed=found[1] == "src")

    def _add_plain(self, kind: str, span: Span, *, embed: bool = False) -> None:
        """Add a link that is a destination and no more."""
        lead = self._read_lead(span)
        if lead and not lead.url:
            line, end = self._line(span.start), Span(span.end, span.end)
            self._links.append(Link(kind, embed, span, line, *lead.to, "", end))
            self._check_count(self._links)

    # ------------------------------------------------------------------------------------ bare of marks

    def find_imports(self) -> None:
        """Find the files that a text imports as agents read it, outside of links, code and HTML."""
        text = self._text
        for found in _IMPORT.finditer(text, *self._text_bounds) if "@" in text else ():
            self._count_step()
            at = found.start()
            room = self._text_around(at)
            if room and found.end() <= room.end and (at == room.start or text[at - 1] in _BEFORE_IMPORT):
                self._add_plain("import", Span(*found.span(1)))

    def find_references(self) -> None:
        """Find what shortcodes link to, and the blocks that a text shows by their ids."""
        for kind, mark, pattern in (("ref", "{", _REFERENCE), ("block", "((", _SHOWN_BLOCK)):
            for found in pattern.finditer(self._text, *self._text_bounds) if mark in self._text else ():
                self._count_step()
                room = self._text_around(found.start())
                if room and found.end() <= room.end:
                    self._add_plain(kind, Span(*found.span(found.lastindex or 0)))

    def find_urls(self) -> None:
        """Find the URLs outside of links, code and HTML; nothing bare can begin in them."""
        found = []
        for start, stop in _bare_urls(self._text, *self._text_bounds):
            room = self._text_around(start)
            if room:
                span = Span(start, _url_end(self._text, start, min(stop, room.end)))
                found.append(span)
                self._urls.append(Url(self._text[slice(*span)], span, self._line(start)))
                self._check_count(self._urls)
        if found:
            self._taken = sorted((*self._taken, *found))

    def find_tags(self) -> None:
        """Find the bare tags and citations, outside of links, code, HTML and URLs."""
        text, taken = self._text, self._taken
        start, end = self._text_bounds
        for hash_ in _HASH.finditer(text, start, end):
            self._count_step()
            at = hash_.start()
            if is_within(taken, at):
                continue  # no citation is around one of these, because none has their first character in it
            self._bare_citation(at)
            if not text[at - 1 : at].isalnum() and (tag := self._read_tag(at)):
                self._tags.append(tag)
                self._check_count(self._tags)
        if text.find(":", start, end) >= 0:
            for colon in _COLON.finditer(text, start, end):
                self._count_step()
                self._bare_citation(colon.start())

    @property
    def _text_bounds(self) -> tuple[int, int]:
        return self._texts[0].start, self._texts[-1].end

    def _bare_citation(self, at: int) -> None:
        found = citation.in_prose(self._text, at, *self._text_bounds)
        if found:
            path, locator, start, end = found
            room = self._text_around(start)
            if room and end <= room.end and self._text_around(end - 1):
                self._add_cited(path, locator, Span(start, end), at, end)

    def _read_tag(self, mark: int) -> Tag | None:
        text, room = self._text, self._text_around(mark)
        if not room or not (mark == room.start or text[mark - 1].isspace()):
            return None
        found = _TAG.match(text, mark, room.end)
        if not found:
            return None
        name = found[0][1:].rstrip("/")
        return Tag(name, Span(mark + 1, mark + 1 + len(name)), self._line(mark))

    def _text_around(self, at: int) -> Span | None:
        """Return the text around `at`; None if there is none, or `at` is in something taken."""
        text = self._texts[bisect_right(self._texts, (at, self._texts[-1].end)) - 1]
        return None if at >= text[1] or is_within(self._taken, at) else text


def _spans_of(marks: Sequence[Mark]) -> list[Span]:
    """Return where code, HTML and autolinks stand."""
    return [Span(*mark[1:3]) for mark in marks if mark.kind not in (LINK, IMAGE)]


def _find_formulas(text: str, texts: Sequence[Span], opaque: Sequence[Span]) -> list[Span]:
    r"""Return the formulas (`$…$`, `$$…$$`, `\begin{x}…\end{x}`) and shortcodes, in order and apart.

    One between single dollars stands in one text, with no blank inside of them, and no digit behind.
    """
    found: list[Span] = []
    opened: dict[str, tuple[int, int]] = {}  # where each kind began, and in which text
    for sign in _NO_LINKS.finditer(text, texts[0].start, texts[-1].end) if texts else ():
        at, written = sign.start(), sign[0]
        number = bisect_right(texts, (at, len(text))) - 1
        if at >= texts[number].end or is_within(opaque, at) or _is_escaped(text, at):
            continue
        name = sign[1] or _SHORTCODES.get(written, written)
        begun, in_text = opened.pop(name, (-1, -1))
        is_end = begun >= 0 and (written in _SHORTCODES or written.startswith("\\end"))
        if written == "$":
            is_end = in_text == number and _CLOSING.match(text, at) is not None
        elif written == "$$":
            opened.pop("$", None)
            line = text.rfind("\n", max(0, begun - _LONGEST_MARGIN), begun) + 1
            is_end = begun >= 0 and (in_text == number or _ALONE.match(text, line) is not None)
        if is_end:
            found.append(Span(begun, sign.end()))
        elif written != "$" or _OPENING.match(text, at):
            opened[name] = at, number
    return _drop_inner(found)


def _fold_label(label: str) -> str:
    return " ".join(label.casefold().split())


def _is_escaped(text: str, at: int) -> bool:
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1


def _drop_inner(spans: list[Span]) -> list[Span]:
    spans.sort(key=lambda span: (span[0], -span[1]))
    found: list[Span] = []
    for span in spans:
        if not found or span[0] >= found[-1][1]:
            found.append(span)
    return found


def _gives_way(mark: Mark, wikilinks: Sequence[Link], gone: set[Link]) -> bool:
    """Return whether a wikilink takes the place of a mark; else add the wikilinks in the mark to `gone`.

    Brackets of a wikilink belong to no other link, except in `[[1]](path)`, which may be meant either way. A
    link may hold wikilinks in its text, or one as its destination, which then is the link.
    """
    kind, start, end, form, close = mark
    inside = []
    first = bisect_right(wikilinks, start, key=lambda wikilink: wikilink.span.end)
    for number in range(first, len(wikilinks)):
        wikilink = wikilinks[number]
        if wikilink.span.start >= end:
            break
        in_text = kind == LINK and wikilink.span.end <= close
        is_destination = not in_text and form == "Inline" and wikilink.span.end == end - 1
        if (kind, form, start) == (LINK, "Inline", wikilink.span.start):
            continue
        if wikilink.span.start + wikilink.embed <= start + (kind == IMAGE) or is_destination:
            return True
        if in_text and not wikilink.embed and form not in {"Inline", "Reference"}:
            return True
        if not in_text:
            inside.append(wikilink)
    gone.update(inside)
    return False


def _bare_urls(text: str, start: int, end: int) -> list[Span]:
    """Return the URLs between `start` and `end`, each as long as it could be."""
    found: list[Span] = []
    if text.find(":", start, end) >= 0 and "://" in text:  # one character is found much faster than three
        for url in _WITH_SCHEME.finditer(text, start, end):
            at = url.start()
            scheme = _SCHEME.match(text[max(start, at - _LONGEST_SCHEME) : at][::-1])
            if scheme:
                found.append(Span(at - scheme.end(), url.end()))
    if "www." in text:
        for url in _WITHOUT.finditer(text, start, end):
            at = url.start()
            if at == start or not (text[at - 1].isalnum() or text[at - 1] in "/.@"):
                found.append(Span(at, url.end()))
        found.sort()
    return found


def _url_end(text: str, start: int, stop: int) -> int:
    """Return where a URL ends, without signs of the sentence around it (GitHub Flavored Markdown, 6.9)."""
    excess = text.count(")", start, stop) - text.count("(", start, stop)
    while True:
        last = text[stop - 1]
        if last == ")" and excess > 0:
            excess -= 1
        elif last == ";":
            entity = text.rfind("&", max(start, stop - _LONGEST_ENTITY), stop)
            stop = entity + 1 if entity >= 0 and text[entity + 1 : stop - 1].isalnum() else stop
        elif last not in _URL_TAIL:
            return stop
        stop -= 1
