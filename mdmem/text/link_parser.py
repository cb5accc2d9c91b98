"""The parser of links: brackets, and what goes before them, which is code, HTML and autolinks.

Rules follow CommonMark 0.31.2 (https://spec.commonmark.org), sections 2.4 and 6.1 to 6.6. Wikilinks are
none of it, and go before other brackets.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.errors import TooManyParts
from mdmem.text import citation, link, opener, raw_html
from mdmem.text.citation import Citation, Locator
from mdmem.text.lines import Lines, new
from mdmem.text.link import Destination, Link
from mdmem.text.regex import regex
from mdmem.text.tree import MOST_PARTS
from mdmem.text.url import Url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.text.definition import Definition
    from mdmem.text.opener import Opener

_MARKS = "[`<"
# What means something in a text. The most usual forms are matched whole: a wikilink (groups 1 to 3: target,
# anchor, alias), a code span (4), a link (5: its text, 6: its destination). Of many brackets in a row only
# the last two can begin a wikilink. Each alternative begins with one certain character: so the search jumps.
_TOKEN = regex(
    r"\[\[([^\[\]#|\\`\r\n]*+)(?:#([^\[\]|\\`\r\n]*+))?+(?:\|([^\[\]`\r\n]*+))?+\]\]"
    r"|`([^`]++)`(?!`)"
    r"|\[([^\[\]\\`<]*+)\]\(([^\x00-\x20\x7f()<\\]++)\)"
    r"|\\[\s\S]|``*+|<(?=[\w/!?.+])|\[\[*(?=\[\[)|\[|\]"
)
_CODE, _DESTINATION = 4, 6
_TICKS = regex("`+")
_AUTOLINK = regex(
    r"<(?:([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\x00-\x20<>]*+)|[\w.!#$%&'*+/=?^`{|}~-]++@[\w.-]++)>", re.ASCII
)
_LABEL = regex(r"\[((?:[^\[\]\\]++|\\[\s\S])*+)\]")
_LONGEST_LABEL = 999
_BLANKS = regex(r"[ \t\r\n]*+")
_IN_ANGLES = regex(r"<((?:[^<>\\\r\n]++|\\[^\r\n])*+)>")
_MOST_PARENTHESES = 32
_BARE = r"(?:[^\x00-\x20\x7f()\\]++|\\[!-/:-@\[-`{-~]|\\"
_BARE_DESTINATION = regex(rf"{_BARE}|\(" * _MOST_PARENTHESES + rf"{_BARE})*+" + r"\))*+" * _MOST_PARENTHESES)
_LINK_END = regex(
    r"(?:[ \t\r\n]++"
    r"(?:\"(?:[^\"\\]++|\\[\s\S])*+\"|'(?:[^'\\]++|\\[\s\S])*+'|\((?:[^()\\]++|\\[\s\S])*+\)))?+"
    r"[ \t\r\n]*+\)"
)
_SPAN = attrgetter("span")
# So many times as many marks as links may be looked at: three or four make one, and some none.
_STEPS = 4
_IGNORED_SCHEMES = ("mailto:", "data:", "javascript:")


class _Lead(NamedTuple):
    """Where a destination leads: `url` when it is external, `cited` when it is a file that is no memory."""

    span: Span
    url: str
    to: Destination
    cited: tuple[str, Locator] | None


class _Defined:
    """A definition, and what uses it: `used` is where the first link that does ends."""

    __slots__ = ("lead", "shown", "span", "used")

    def __init__(self, span: Span, lead: _Lead | None) -> None:
        self.span = span
        self.lead = lead
        self.used: int | None = None
        self.shown = False


class LinkParser:
    """What was found so far in `text`, of which only `texts` are looked at.

    Attributes:
        links, citations, urls: what was found; in order of place after `finish`.
        taken: the spans where nothing bare can begin, in order and apart: links, code, HTML, autolinks.
    """

    def __init__(self, text: str, texts: Sequence[Span], lines: Lines, most: int = MOST_PARTS) -> None:
        self.text = text
        self.texts = texts
        self.links: list[Link] = []
        self.citations: list[Citation] = []
        self.urls: list[Url] = []
        self.taken: list[Span] = []
        self._most = most
        self._left = most * _STEPS
        self._line = lines.number
        self._definitions: list[_Defined] = []
        self._labels: dict[str, _Defined] = {}
        # Of the text that is being looked at: the brackets that are open, how many of them stand around a
        # link, and so begin none, where the runs of backticks begin, by length, and which ends of HTML do not
        # follow any more.
        self._stack: list[Opener] = []
        self._barrier = 0
        self._ticks: dict[int, list[int]] = {}
        self._unclosed: set[str] = set()

    def step(self) -> None:
        """Count a mark that is looked at.

        Raises:
            TooManyParts: that were as many as there may be.
        """
        self._left -= 1
        if self._left < 0:
            what = "marks that could begin a link, a citation or a tag"
            raise TooManyParts(path="", limit=self._most * _STEPS, what=what)

    def bound(self, found: Sequence[object]) -> None:
        """Refuse what has more of what was found than there may be.

        Raises:
            TooManyParts: there are more.
        """
        if len(found) > self._most:
            raise TooManyParts(path="", limit=self._most, what="links, citations, tags or URLs")

    def define(self, definitions: Sequence[Definition]) -> None:
        """Take the link reference definitions; of those with the same label, the first counts."""
        for definition in definitions:
            defined = _Defined(definition.span, self._lead(definition.destination))
            self._definitions.append(defined)
            self._labels.setdefault(_normal(definition.label), defined)

    def _lead(self, span: Span) -> _Lead | None:
        text, (start, end) = self.text, span
        if text.startswith("<", start, end):
            start, end = start + 1, end - 1
            span = Span(start, end)
        if start == end:
            return None
        to = link.destination(text, span)
        written = text[start:end]
        if ":" in written or "/" in written[:1] or "&" in written or "\\" in written:
            written = link.unescaped(written)
            if link.external(written):
                return _Lead(span, written, to, None)
        return new(_Lead, (span, "", to, citation.in_destination(to[0], to[2])))

    def _add(self, kind: str, lead: _Lead, span: Span, alias: Span, *, embed: bool) -> None:
        """Add the link in `span` to what `lead` says, with its text in `alias`."""
        if kind == "markdown" and lead.url:
            self._add_url(lead)
        elif lead.cited and not embed:
            if kind == "markdown":
                self._add_citation(lead, lead.cited, span.end)
        elif not lead.url:
            words = self.text[slice(*alias)]
            words = " ".join(words.split()) if "\n" in words or "\r" in words else words
            self.links.append(new(Link, (kind, embed, span, self._line(span[0]), *lead.to, words, alias)))
            self.bound(self.links)

    def _add_url(self, lead: _Lead) -> None:
        if not lead.url.lower().startswith(_IGNORED_SCHEMES):
            self.urls.append(Url(lead.url, lead.span, self._line(lead.span.start)))
            self.bound(self.urls)

    def _add_citation(self, lead: _Lead, cited: tuple[str, Locator], at: int) -> None:
        path, locator = cited
        start, end = lead.span
        if lead.to.anchor:
            stop = lead.to.anchor_span.start - 1
        elif locator.first:
            stop = self.text.rindex(":", start, end)
        else:
            stop = lead.to.target_span.end
        self.cite(path, locator, lead.span, stop, at, in_link=True)

    def cite(
        self, path: str, locator: Locator, span: Span, stop: int, at: int, *, in_link: bool = False
    ) -> None:
        """Add the citation in `span`, whose locator begins at `stop`, and whose pin would stand at `at`."""
        pin, pin_span = citation.pin(self.text, at)
        line, located = self._line(span[0]), new(Span, (stop, span[1]))
        found = new(Citation, (path, *locator, span, line, located, pin, pin_span, in_link))
        self.citations.append(found)
        self.bound(self.citations)

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
            self.links.append(Link(kind="definition", embed=False, span=defined.span, line=line, **parts))

    def finish(self) -> None:
        """Add what definitions lead to, and bring everything into the order of place."""
        for defined in self._definitions:
            self._add_definition(defined)
        for found in (self.links, self.citations, self.urls):
            if len(found) > 1:
                found.sort(key=_SPAN)

    def run(self) -> None:
        """Find the links, the citations in code spans, and the autolinks."""
        text, texts = self.text, self.texts
        first, last = texts[0][0], texts[-1][1]
        more = set()  # the numbers of the texts that are more than words
        for mark in _MARKS:  # single characters are found faster than any of them
            at = text.find(mark, first, last)
            while at >= 0:
                number = bisect_right(texts, (at, last)) - 1
                following = texts[number][1]
                if at < following:
                    more.add(number)
                else:
                    following = texts[number + 1][0]
                at = text.find(mark, following, last)
        for number in sorted(more):
            self._text(*texts[number])

    def _text(self, at: int, end: int) -> None:
        """Find what is in one text."""
        text, stack = self.text, self._stack
        stack.clear()
        self._barrier = 0
        self._ticks.clear()
        self._unclosed.clear()
        while found := _TOKEN.search(text, at, end):
            self.step()
            behind, (start, at) = at, found.span()
            mark, kind = text[start], found.lastindex
            image = mark == "[" and start > behind and text[start - 1] == "!"
            if kind == _CODE:
                self._take_code(start, at, 1)
            elif kind and self._take_link(found, image=image):
                self._barrier = self._barrier if image else len(stack)
            elif mark == "[":
                at = self._opening(start, start + 1 if image or kind else at, end, image=image)
            elif mark == "]":
                at = self._closing(start, end) if stack else at
            elif mark == "`":
                at = self._code(start, at, end)
            elif mark == "<":
                at = self._angle(start, end)

    def _opening(self, start: int, at: int, end: int, *, image: bool) -> int:
        """Take the wikilink that the brackets from `start` to `at` begin, else put them on the stack."""
        stop = self._wikilink(start, end, image=image)
        if stop:
            self._barrier = self._barrier if image else len(self._stack)
            return stop
        opener.push(self._stack, start - image, at, image=image)
        return at

    def _closing(self, at: int, end: int) -> int:
        """Take the link whose text ends with the bracket at `at`, if it is one, and return where to go on."""
        last = self._stack.pop()
        around = len(self._stack)
        if around >= self._barrier or last.image:
            stop = self._close(last, at, end)
            if stop and not last.image:
                self._barrier = around
        else:
            stop = 0
        self._barrier = min(self._barrier, around)
        return stop or at + 1

    def _code(self, start: int, at: int, end: int) -> int:
        """Take the code span that the backticks from `start` to `at` begin, and return where to go on."""
        close = self._closing_ticks(start, at, end)
        if close is None:
            return at
        stop = close + at - start
        self._take_code(start, stop, at - start)
        return stop

    def _take_code(self, start: int, stop: int, ticks: int) -> None:
        at = start + ticks
        content = self.text[at : stop - ticks]
        bare = content.strip(" ")
        cited = citation.in_code(bare)
        if cited:
            path, locator = cited
            at += len(content) - len(content.lstrip(" "))
            self.cite(path, locator, new(Span, (at, at + len(bare))), at + len(path), stop)
        self.taken.append(new(Span, (start, stop)))

    def _take_link(self, found: re.Match[str], *, image: bool) -> bool:
        """Take a link that is nothing but its text and destination, or a wikilink, if it names something."""
        start, stop = found.span()
        if found.lastindex != _DESTINATION:
            wikilink = link.wikilink(found, self._line(start - image), embed=image)
            if wikilink:
                self.links.append(wikilink)
                self.bound(self.links)
                self.taken.append(wikilink.span)
            return wikilink is not None
        if self._stack:
            self._stack[-1].nests = True
        lead = self._lead(new(Span, found.span(_DESTINATION)))
        span, words = new(Span, (start - image, stop)), new(Span, found.span(_DESTINATION - 1))
        if lead:
            self._add("markdown", lead, span, words, embed=image)
        self.taken.append(span)
        return True

    def _closing_ticks(self, start: int, at: int, end: int) -> int | None:
        """Where the run of backticks begins that closes the one from `start` to `at`."""
        if not self._ticks:
            for run in _TICKS.finditer(self.text, start, end):
                self._ticks.setdefault(run.end() - run.start(), []).append(run.start())
        runs = self._ticks.get(at - start, [])
        number = bisect_left(runs, at)
        return runs[number] if number < len(runs) else None

    def _angle(self, start: int, end: int) -> int:
        """Take the autolink or HTML that begins at `start`, and return where to go on."""
        found = _AUTOLINK.match(self.text, start, end)
        if found and found[1]:
            span = Span(*found.span(1))
            self._add_url(_Lead(span, found[1], Destination("", span, "", span), None))
        stop = found.end() if found else raw_html.end(self.text, start, end, self._unclosed)
        if stop:
            self.taken.append(Span(start, stop))
        return stop or start + 1

    def _wikilink(self, start: int, end: int, *, image: bool) -> int:
        """Take the wikilink that begins at `start`, and return where it ends; 0 without one."""
        found = link.WIKILINK.match(self.text, start, end)
        if not found:
            return 0
        stop = found.end()
        tick = self.text.find("`", start, stop)
        if tick >= 0:
            run = _TICKS.match(self.text, tick, end)
            close = self._closing_ticks(tick, run.end(), end) if run else None
            if close is not None and close >= stop:
                return 0  # the brackets at its end stand in code
        return stop if self._take_link(found, image=image) else 0

    def _close(self, opening: Opener, at: int, end: int) -> int:
        """Take the link whose text ends with the bracket at `at`; return where it ends, 0 when it is none."""
        inline = self._inline(at + 1, end)
        if inline:
            destination, stop = inline
            lead = self._lead(destination)
            kind = "markdown"
        else:
            defined, stop = self._reference(opening, at, end)
            if not defined:
                return 0
            lead, kind = defined.lead, "reference"
            if opening.image:
                defined.shown = True
            elif defined.used is None:
                defined.used = stop
        span = Span(opening.start, stop)
        self._forget(opening)
        if lead:
            self._add(kind, lead, span, Span(opening.content, at), embed=opening.image)
        self.taken.append(span)
        return stop

    def _forget(self, opening: Opener) -> None:
        """What stands in the text of a link is its label: of it, only images and autolinks stay."""
        start = opening.start
        while self.taken and self.taken[-1].start >= start:
            self.taken.pop()
        while self.citations and self.citations[-1].span.start >= start:
            self.citations.pop()
        if opening.image:
            while self.links and self.links[-1].span.start >= start:
                self.links.pop()

    def _inline(self, at: int, end: int) -> tuple[Span, int] | None:
        """The destination in the parentheses that open at `at`, and where they end."""
        text = self.text
        if not text.startswith("(", at, end):
            return None
        blanks = _BLANKS.match(text, at + 1, end)
        start = blanks.end() if blanks else at + 1
        if text.startswith("<", start, end):
            angles = _IN_ANGLES.match(text, start, end)
            if not angles:
                return None
            stop = angles.end()
        else:
            bare = _BARE_DESTINATION.match(text, start, end)
            stop = bare.end() if bare else start
        closing = _LINK_END.match(text, stop, end)
        return (Span(start, stop), closing.end()) if closing else None

    def _reference(self, opening: Opener, at: int, end: int) -> tuple[_Defined | None, int]:
        """The definition that the link whose text ends at `at` refers to, and where the link ends."""
        if not self._labels:
            return None, 0
        text, stop = self.text, at + 1
        found = _LABEL.match(text, stop, min(end, stop + _LONGEST_LABEL + 2))
        label = found[1] if found else ""
        if found and label.strip():
            return self._labels.get(_normal(label)), found.end()
        if opening.nests or at - opening.content > _LONGEST_LABEL:
            return None, 0
        # In `[label][]`, the empty brackets belong to the link.
        stop = found.end() if found and not label else stop
        return self._labels.get(_normal(text[opening.content : at])), stop


def _normal(label: str) -> str:
    return " ".join(label.casefold().split())
