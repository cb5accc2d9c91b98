"""A hit: one line that a search found, with the heading that it stands under, its context and its date."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from mdmem.errors import MdmemError, TooManyParts
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex
from mdmem.text.tokens import clip, clipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mdmem.document.document import Document
    from mdmem.index.ripgrep import Line
    from mdmem.markdown.blocks import Section


_BOM = "\ufeff"
# Code points: of a line or a title that is longer, so much is shown.
LONGEST, _SHOWN = 4_000, 500
_BLANK_LINE = regex(r"(?>\r\n|\n|\r)[ \t]*+(?:\r\n|\n|\r)")
_DATE_FIELDS = ("created", "date", "updated")
_DAY = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_WRITTEN_DAY = regex(rf"\s*({_DAY})(?![0-9])")
_NAMED_DAY = regex(rf"(?<![0-9]){_DAY}(?![0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One line that a search found.

    Attributes:
        path: the memory, as the vault names it.
        line: the 1-based number of the line.
        heading: the titles of the sections that it stands in, outermost first; empty outside of any.
        text: the line without its line end and without a byte-order mark; of one longer than 4,000 code
            points, about 500 around the match, with `[1,234 characters left out]` for what is not shown.
        matches: what of `text` matched: start and end in code points, end exclusive.
        column: where in the line the first match begins, 1-based, in code points; 1 without a match.
        before: the lines before it, as many as were asked for; of long ones the beginning.
        after: the lines after it, likewise.
        date: the day of the memory as `YYYY-MM-DD`, see `day_of`; empty where it says none of itself.
        score: how well it fits, higher is better; None where nothing is ranked.
        left_out: on the last hit of a limited search, how many more there are; otherwise 0.
    """

    path: str
    line: int
    heading: tuple[str, ...]
    text: str
    matches: tuple[tuple[int, int], ...] = ()
    column: int = 1
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    date: str = ""
    score: float | None = None
    left_out: int = 0

    def stands_in(self, document: Document) -> bool:
        """Whether its lines stand in a memory as they were found."""
        first, place = self.line - len(self.before), len(self.before)
        lines = (*self.before, self.text, *self.after)
        if not len(document.lines):
            return lines == ("",)
        now = lines_text(document, range(first, first + len(lines))) if first > 0 else []
        seen = (shown(text, self.column - 1 if n == place else 0) for n, text in enumerate(now))
        return tuple(seen) == lines


def shown(line: str, around: int = 0) -> str:
    """A line, or a title, as a hit shows it: of a long one, what stands around a place."""
    return line if len(line) <= LONGEST else clipped(line, _SHOWN, around)


def shown_matches(line: str, matches: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """What matched in a line, as spans of what is shown of it around the first match."""
    if len(line) <= LONGEST or not matches:
        return tuple(matches)
    start, end, moved = clip(len(line), _SHOWN, matches[0][0])
    return tuple((first + moved, min(last, end) + moved) for first, last in matches if start <= first < end)


def day_of(path: str, fields: Mapping[str, Any], modified: float | None = None) -> str:
    """The day of a memory: what its fields say, else its name, else when its file was modified.

    Args:
        path: of the memory; only the file name counts.
        fields: its frontmatter; the first of `created`, `date`, `updated` that begins with a day counts.
        modified: seconds since the epoch, or None when they are not known.

    Returns:
        `YYYY-MM-DD` (of `modified`: in UTC), or an empty string.
    """
    for name in _DATE_FIELDS:
        written = _WRITTEN_DAY.match(str(fields.get(name, "")))
        if written:
            return written.group(1)
    named = _NAMED_DAY.search(path.rpartition("/")[2])
    if named:
        return named.group()
    return "" if modified is None else time.strftime("%Y-%m-%d", time.gmtime(modified))


def lines_text(document: Document, lines: range) -> list[str]:
    """As `line_text`, of lines that follow each other."""
    if lines.stop > len(document.lines) + 1 or not lines:
        return [line_text(document, line) for line in lines]
    text = document.text[document.lines.starts[lines.start - 1] : document.lines.span(lines.stop - 1).end]
    found = LINE_END.split(text) if "\r" in text else text.split("\n")
    del found[len(lines) :]
    if lines.start == 1:
        found[0] = found[0].removeprefix(_BOM)
    return found


def line_text(document: Document, line: int) -> str:
    """Line `line` (1-based) as a hit shows it; empty behind the last one."""
    if line > len(document.lines):
        return ""
    content = document.lines.content(line)
    return content.removeprefix(_BOM) if line == 1 else content


def context_of(
    document: Document, line: int, most: int, most_after: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Up to `most` lines before `line` (1-based), and up to `most_after` lines after it."""
    before = range(max(1, line - most), line)
    after = range(line + 1, min(len(document.lines), line + most_after) + 1)
    return tuple(map(shown, lines_text(document, before))), tuple(map(shown, lines_text(document, after)))


Titles = tuple[str, ...]


class Headings:
    """The headings of a memory, read no further than they are asked for.

    Args:
        document: the memory.
        known: where they are known already: the line (1-based) of each, with the titles of the sections that
            begin or go on there, outermost first; in order.
    """

    def __init__(self, document: Document, known: Sequence[tuple[int, Titles]] | None = None) -> None:
        self._document = document
        self._known = known
        self._sections: Sequence[Section] = ()
        self._end = -1  # how far they are known

    def above(self, line: int) -> Titles:
        """The titles of the sections that `line` (1-based) stands in, outermost first.

        A heading's own line counts to its section.
        """
        return tuple(map(shown, self._above(line)))

    def _above(self, line: int) -> Titles:
        if self._known is not None:
            place = bisect_right(self._known, line, key=itemgetter(0))
            return self._known[place - 1][1] if place else ()
        # The end of the line, because a byte-order mark stands before the heading in the first one.
        at = self._document.lines.span(line).end - 1
        if at >= self._end:
            self._read(at)
        place = bisect_right(self._sections, at, key=lambda section: section.span.start)
        return self._sections[place - 1].path if place else ()

    def _read(self, at: int) -> None:
        """Read on to the end of the paragraph at `at`; whoever comes back for more is given all.

        A memory with more headings than it may have is read as one without.
        """
        try:
            self._read_on(at)
        except TooManyParts:
            self._sections, self._end = (), len(self._document.text)

    def _read_on(self, at: int) -> None:
        document = self._document
        text, end = document.text, len(document.text)
        if self._end < 0 and not document.is_json:
            # Nothing behind a blank line makes a heading of what stands before it.
            gap = _BLANK_LINE.search(text, at)
            end = gap.end() if gap else end
        if end == len(text):
            self._sections = document.sections
        elif document.body_span.start < end:
            from mdmem.markdown import blocks  # noqa: PLC0415 - start-up

            start = document.body_span.start
            most = document.limits.max_parts
            headings = blocks.scan(text[:end], start, document.lines.number(start), most).headings
            self._sections = blocks.sections(headings, end)
        self._end = end


def fields_of(document: Document) -> Mapping[str, Any]:
    """The fields of a memory; none where they cannot be read."""
    try:
        return document.fields
    except MdmemError:
        return {}


class HitReader:
    """A memory that has hits, read once for all of them.

    Where it cannot be read, or a line is no longer what was found, a hit has neither heading nor context.

    Args:
        path: the vault path of the memory.
        read: gives the memory at a vault path.
        shown: the path that its hits carry.
    """

    def __init__(self, path: str, read: Callable[[str], Document], shown: str) -> None:
        self.path = path
        self._shown = shown
        try:
            self._document: Document | None = read(path)
        except MdmemError:
            self._document = None  # vanished, or not UTF-8: what ripgrep saw is all there is
        self._headings = Headings(self._document) if self._document else None
        self._firsts = _first_lines(self._document.text) if self._document else []
        self._day = day_of(path, fields_of(self._document) if self._document else {})

    def hit(self, found: Line, most: int, most_after: int) -> Hit:
        """The hit for a line that ripgrep found.

        Args:
            found: the line.
            most, most_after: the most lines to give before and after it.
        """
        line = found.number + found.piece
        if self._firsts and found.number <= len(self._firsts):
            line = self._firsts[found.number - 1] + found.piece
        heading: tuple[str, ...] = ()
        before, after = heading, heading
        # A line that reads otherwise now was changed meanwhile: what is around it is another text.
        if self._document and self._headings and line_text(self._document, line) == found.text:
            heading = self._headings.above(line)
            before, after = context_of(self._document, line, most, most_after)
        return Hit(
            path=self._shown,
            line=line,
            heading=heading,
            text=shown(found.text, found.spans[0][0] if found.spans else 0),
            matches=shown_matches(found.text, found.spans),
            column=found.spans[0][0] + 1 if found.spans else 1,
            before=before,
            after=after,
            date=self._day,
        )


def _first_lines(text: str) -> list[int]:
    r"""The number of the first line in each stretch that ends at `\n`; empty where every line does."""
    if text.count("\r") == text.count("\r\n"):
        return []
    firsts = [1]
    for stretch in text.split("\n")[:-1]:
        firsts.append(firsts[-1] + 1 + stretch.count("\r") - stretch.endswith("\r"))
    return firsts
