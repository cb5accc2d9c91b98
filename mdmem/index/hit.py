"""A hit: one line that a search found, with the heading that it stands under, its context and its date."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mdmem.document.moment import DAY
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clip, clipped
from mdmem.errors import MdmemError, TooManyParts

if TYPE_CHECKING:
    from mdmem.document.document import Document
    from mdmem.index.ripgrep import Line


_BOM = "\ufeff"
# Code points: of a line or a title that is longer than LONGEST, _SHOWN are shown.
LONGEST, _SHOWN = 4_000, 500
DATE_FIELDS = ("created", "date", "updated")
_WRITTEN_DAY = regex(rf"\s*({DAY})(?![0-9])")
_STAMP = regex(r"([0-9]{10})(?:[0-9]{3})?")  # seconds or milliseconds since 1970
_JOINED_DAY = regex(r"((?:19|20)[0-9]{2})([0-9]{2})([0-9]{2})(?:[0-9]{6})?")
_DAY_PARTS = regex(r"([0-9]{4}|[0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{1,2})(?:[T ,].*)?")
_YEAR = 4  # digits
# `Tuesday, September 12th, 2023, 10:00`, `12 Sep 2023`.
_SPELLED_DAY = regex(
    r"(?:[A-Za-z]+,? )?(?:([A-Za-z]{3})[a-z]*\.? ([0-9]{1,2})|([0-9]{1,2})(?:st|nd|rd|th|\.)?,? "
    r"([A-Za-z]{3})[a-z]*)(?:st|nd|rd|th)?[.,]* ([0-9]{4})(?![0-9]).*"
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)  # fmt: skip
_NAMED_DAY = regex(rf"(?<![0-9]){DAY}(?![0-9])")


class Hit(NamedTuple):
    """One line that a search found.

    Attributes:
        path: the memory, as the vault names it.
        line: the 1-based number of the line.
        heading: the titles of the sections that it is in, outermost first; empty outside of any.
        text: the line without its line end and without a byte-order mark; of one longer than 4,000 code
            points, about 500 around the match, with `[1,234 characters left out]` for what is not shown.
        matches: what of `text` matched: start and end in code points, end exclusive.
        column: where in the line the first match begins, 1-based, in code points; 1 without a match.
        before, after: the lines before and after it; of long ones the beginning.
        date: the day of the memory as `YYYY-MM-DD`, see `day_of`; empty where it states none.
        score: how well it fits, higher is better; None without ranking.
        state: why the memory does not count, such as "superseded"; empty where it does.
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
    state: str = ""
    left_out: int = 0

    def stands_in(self, document: Document) -> bool:
        """Return whether a memory still has its lines where they were found."""
        first, place = self.line - len(self.before), len(self.before)
        lines = (*self.before, self.text, *self.after)
        if not len(document.lines):
            return lines == ("",)
        texts = lines_text(document, range(first, first + len(lines))) if first > 0 else []
        return (
            tuple(shown(text, self.column - 1 if n == place else 0) for n, text in enumerate(texts)) == lines
        )


def shown(line: str, around: int = 0) -> str:
    """Shorten a long line, or title, to what surrounds a place."""
    return line if len(line) <= LONGEST else clipped(line, _SHOWN, around)


def shown_matches(line: str, matches: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Convert the matches in a line to spans of the shown part."""
    if len(line) <= LONGEST or not matches:
        return tuple(matches)
    start, end, moved = clip(len(line), _SHOWN, matches[0][0])
    return tuple((first + moved, min(last, end) + moved) for first, last in matches if start <= first < end)


def day_of(path: str, fields: Mapping[str, Any], modified: float | None = None) -> str:
    """Return the day of a memory, `YYYY-MM-DD`: from its fields, else its file's name, else `modified`.

    Of its fields, the first of `created`, `date` and `updated` that begins with a day counts. `modified` is
    in seconds since the epoch, and its day that in UTC. Without any day, it is empty.
    """
    if written := next(filter(None, (_read_day(fields.get(name)) for name in DATE_FIELDS)), ""):
        return written
    named = _NAMED_DAY.search(path.rpartition("/")[2])
    if named:
        return named.group()
    return "" if modified is None else time.strftime("%Y-%m-%d", time.gmtime(modified))


def field_of_day(fields: Mapping[str, Any]) -> str:
    """Return the name of the field that states the day of a memory; empty where none does."""
    return next((name for name in DATE_FIELDS if _read_day(fields.get(name))), "")


def _read_day(value: Any) -> str:
    """Return the day that a date says, as `YYYY-MM-DD`; empty where that is not certain: `09/12/2023`."""
    if value is None:
        return ""
    text = str(value)
    if text.startswith("[["):  # a link, unquoted a list in a list
        text = text.strip(" []\"'").partition("|")[0].rpartition("/")[2]
    if written := _WRITTEN_DAY.match(text):
        return written.group(1)
    if stamp := _STAMP.fullmatch(text):
        return time.strftime("%Y-%m-%d", time.gmtime(int(stamp[1])))
    if joined := _JOINED_DAY.fullmatch(text):
        orders = [joined.groups()]
    elif parts := _DAY_PARTS.fullmatch(text):
        first, sign, middle, last = parts.groups()
        orders = [(first, middle, last), (last, middle, first)]
        if sign != ".":
            orders.append((last, first, middle))
    elif spelled := _SPELLED_DAY.fullmatch(text):
        said = (spelled[1] or spelled[4]).capitalize()
        month = next((number for number, name in enumerate(MONTHS, 1) if name.startswith(said)), 0)
        orders = [(spelled[5], f"{month}", spelled[2] or spelled[3])]
    else:
        return ""
    days: set[str] = set()
    for order in orders:
        with suppress(ValueError):
            days |= {date(*map(int, order)).isoformat()} if len(order[0]) == _YEAR else set()
    return days.pop() if len(days) == 1 else ""


def lines_text(document: Document, lines: range) -> list[str]:
    """Return several lines, each as `line_text`."""
    starts = document.lines.starts
    if lines.stop > len(starts) + 1 or not lines:
        return [line_text(document, line) for line in lines]
    end = starts[lines.stop - 1] if lines.stop <= len(starts) else len(document.text)
    text = document.text[starts[lines.start - 1] : end]
    texts = LINE_END.split(text) if "\r" in text else text.split("\n")
    del texts[len(lines) :]
    if lines.start == 1:
        texts[0] = texts[0].removeprefix(_BOM)
    return texts


def line_text(document: Document, line: int) -> str:
    """Return line `line` (1-based) without its end and byte-order mark; empty after the last one."""
    if line > len(document.lines):
        return ""
    content = document.lines.content(line)
    return content.removeprefix(_BOM) if line == 1 else content


# A heading as the index has it: its line, and the titles of the sections that it is in, its own the last.
Heading = tuple[int, tuple[str, ...]]
KnownHeadings: TypeAlias = "Callable[[str, str], Sequence[Heading] | None]"


def headings_above(document: Document, line: int, known: Sequence[Heading] | None = None) -> tuple[str, ...]:
    """Return the titles of the sections that a line (1-based) is in, outermost first.

    A heading counts to its own section. A memory with too many headings is treated as one without any. Those
    that the index has are `known`: to parse them takes a fifth of a search.
    """
    if known is not None:
        place = bisect_right(known, line, key=itemgetter(0))
        return tuple(map(shown, known[place - 1][1])) if place else ()
    try:
        sections = document.sections
    except TooManyParts:
        return ()
    # The end of the line, because a byte-order mark may stand before the heading in it.
    at = document.lines.span(line).end - 1 if sections else 0
    place = bisect_right(sections, at, key=lambda section: section.span.start)
    return tuple(map(shown, sections[place - 1].path)) if place else ()


def fields_of(document: Document) -> Mapping[str, Any]:
    """Return the fields of a memory; none where they cannot be read."""
    try:
        return document.fields
    except MdmemError:
        return {}


def first_text(value: Any) -> str:
    """Return the text of a scalar, or of the first one in a list."""
    return next(filter(None, map(field_text, value)), "") if isinstance(value, list) else field_text(value)


def field_text(value: Any) -> str:
    """Return the text of a scalar; empty for None, a list and a mapping."""
    return "" if value is None or isinstance(value, dict | list) else str(value)


class HitReader:
    """A memory that has hits, read once for all of them.

    Its hits have the path `shown`. `document` is None where it cannot be read.
    """

    def __init__(
        self,
        path: str,
        read: Callable[[str], Document],
        shown: str,
        known: KnownHeadings = lambda *_: None,
        judge: Callable[[Document], str] = lambda _: "",
    ) -> None:
        self.path, self._shown = path, shown
        self.document: Document | None = None
        with suppress(MdmemError):  # it is gone, or not UTF-8
            self.document = read(path)
        document = self.document
        self._headings = known(path, document.hash) if document else None
        self._firsts = _list_first_lines(document.text) if document else []
        self._state = judge(document) if document else ""
        self._day = day_of(path, fields_of(document) if document else {})

    def hit(
        self,
        line: int,
        around: range,
        matches: Sequence[tuple[int, int]],
        *,
        text: str = "",
        score: float | None = None,
    ) -> Hit:
        """Make the hit for a line.

        Args:
            line: its 1-based number.
            around: the lines to show, it among them; empty where it no longer stands in the memory, or that
                cannot be read: the hit has neither heading nor context then, and `text`.
            matches: what matched in it, in code points, end exclusive.
        """
        texts, place = [text], 0
        heading: tuple[str, ...] = ()
        if self.document and around:
            texts, place = lines_text(self.document, around), line - around.start
            heading = headings_above(self.document, line, self._headings) if self.document.text else ()
        first = matches[0][0] if matches else 0
        return Hit(
            path=self._shown,
            line=line,
            heading=heading,
            text=shown(texts[place], first),
            matches=shown_matches(texts[place], matches),
            column=first + 1,
            before=tuple(map(shown, texts[:place])),
            after=tuple(map(shown, texts[place + 1 :])),
            date=self._day,
            score=score,
            state=self._state,
        )

    def matched_hit(self, match: Line, most: int, most_after: int) -> Hit:
        """Make the hit for a line that ripgrep found; `most` and `most_after` bound the lines around it."""
        line = match.number + match.piece
        if self._firsts and match.number <= len(self._firsts):
            line = self._firsts[match.number - 1] + match.piece
        around = range(0)
        if self.document and line_text(self.document, line) == match.text:
            last = min(max(line, len(self.document.lines)), line + most_after)
            around = range(max(1, line - most), last + 1)
        return self.hit(line, around, match.spans, text=match.text)


def _list_first_lines(text: str) -> list[int]:
    r"""Return the number of the first line in each stretch that ends at `\n`; empty where all lines do."""
    if text.count("\r") == text.count("\r\n"):
        return []
    firsts = [1]
    for stretch in text.split("\n")[:-1]:
        firsts.append(firsts[-1] + 1 + stretch.count("\r") - stretch.endswith("\r"))
    return firsts
