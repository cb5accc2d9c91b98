"""Excerpts: stretches of memories as an agent is shown them, each in a fence with its place and day."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.bullets import bullets
from mdmem.document.moment import DAY
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import estimate, fenced, in_line, visible
from mdmem.errors import MdmemError
from mdmem.index.hit import Hit, day_of, fields_of
from mdmem.kind import PREFERENCE

if TYPE_CHECKING:
    from mdmem.document.document import Document
    from mdmem.facade.scoped import ScopedMemory
    from mdmem.memory.preferences import Preference
    from mdmem.vault.vault import Vault


_INFO = "memory"
_A_BLANK_LINE = 2  # line ends
_DATED = regex(rf"[*_`]*({DAY})(?![0-9])")
_BOM = "\ufeff"


class Excerpt(NamedTuple):
    """A stretch of a memory, which is given whole or not at all.

    Attributes:
        first, last: its lines, 1-based, both included; of an excerpt that is not lines of its memory, both 0.
        text: what stands there, or what it says.
        day: `YYYY-MM-DD`; empty where it is not known.
        note: what else is said of it, behind its place: its heading, or the files that it is about.
        together: excerpts of the same name are put into one fence; empty for one of its own.
        rank: of two excerpts the one of lower rank is given first; at the same rank, the newer one.
    """

    path: str
    first: int
    last: int
    text: str
    day: str = ""
    note: str = ""
    together: str = ""
    rank: tuple[float, ...] = ()

    @property
    def place(self) -> str:
        """Where it stands: `path#L10-L23`, in one line that can be seen."""
        path = in_line(self.path)
        if not self.first:
            return path
        return f"{path}#L{self.first}" + (f"-L{self.last}" if self.last > self.first else "")

    @property
    def block(self) -> str:
        """It in a fence of its own."""
        info = self.together or " ".join(filter(None, (self.place, self.day, self.note)))
        return fenced(self.text, f"{_INFO} {info}")

    def joined(self, other: Excerpt) -> Excerpt | None:
        """Return both as one, where the other follows it or stands in it; None where it does not."""
        if self.together or other.together:
            same = self.together == other.together
            return self._replace(text=f"{self.text}\n{other.text}") if same else None
        if self.path != other.path or self.day != other.day or not 0 < self.first <= other.first:
            return None
        if other.last <= self.last:
            return self
        if other.first <= self.last:
            return None
        gap = "\n" * (other.first - self.last)
        is_near = len(gap) <= _A_BLANK_LINE
        return self._replace(last=other.last, text=f"{self.text}{gap}{other.text}") if is_near else None


def join_blocks(excerpts: Sequence[Excerpt]) -> list[str]:
    """Return the excerpts in fences, those next to each other in one memory in one, where the first stood."""
    groups: dict[str, list[int]] = {}
    for number, excerpt in enumerate(excerpts):
        groups.setdefault(excerpt.together or excerpt.path, []).append(number)
    found: list[tuple[int, Excerpt]] = []
    for numbers in groups.values():
        run: list[tuple[int, Excerpt]] = []
        for number in sorted(numbers, key=lambda number: excerpts[number].first):
            both = run[-1][1].joined(excerpts[number]) if run else None
            if both:
                run[-1] = min(run[-1][0], number), both
            else:
                run.append((number, excerpts[number]))
        found += run
    return [excerpt.block for _, excerpt in sorted(found, key=itemgetter(0))]


class Cut(NamedTuple):
    """An excerpt that was cut between two lines: what is given of it, and the rest."""

    kept: Excerpt
    rest: Excerpt


def cut_excerpt(excerpt: Excerpt, most: int, cost_of: Callable[[Excerpt], int]) -> Cut | None:
    """Return the longest beginning of an excerpt that fits, cut before a blank line where one is near.

    Args:
        cost_of: returns what an excerpt costs; a longer one never costs less.

    Returns:
        None where not even its first line fits, or it is not lines of its memory.
    """
    lines = excerpt.text.split("\n")
    if not excerpt.first or len(lines) != excerpt.last - excerpt.first + 1:
        return None
    low, high = 0, len(lines) - 1
    while low < high:
        middle = (low + high + 1) // 2
        fits = cost_of(_split_excerpt(excerpt, lines, middle).kept) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    if not low:
        return None
    for count in range(low, low // 2, -1):
        if not lines[count].strip():
            return _split_excerpt(excerpt, lines, count)
    return _split_excerpt(excerpt, lines, low)


def _split_excerpt(excerpt: Excerpt, lines: Sequence[str], count: int) -> Cut:
    last = excerpt.first + count - 1
    rest = excerpt._replace(first=last + 1, text="\n".join(lines[count:]))
    told = f"[cut: the rest is {rest.place}]"
    return Cut(excerpt._replace(last=last, text="\n".join((*lines[:count], told))), rest)


class ExcerptSource:
    """A memory that excerpts are taken from.

    Args:
        shown: what its path is called; its own path without.
        without: a stretch of it that is left out, because it is given elsewhere.
    """

    def __init__(self, document: Document, shown: str = "", without: Span | None = None) -> None:
        self._document = document
        self._without = without
        self._path = shown or document.path
        self.day = day_of(document.path, fields_of(document))

    def whole(self, *, note: str = "", rank: tuple[float, ...] = ()) -> list[Excerpt]:
        """Return all that it says, as one excerpt; none where it says nothing."""
        return [e._replace(note=note, rank=rank) for e in self._cut_lines(self._document.body_span)]

    def sections(self, rank: tuple[float, ...] = ()) -> list[Excerpt]:
        """Its sections in order; a bullet that begins with a date is an excerpt of that day."""
        document, found = self._document, list[Excerpt]()
        start, end = document.body_span
        headings = [section.heading.span.start for section in document.sections]
        under = bullets(document, Span(headings[0], end)) if headings else ()
        days = {each.span: day[1] for each in under if (day := _DATED.match(each.text))}
        for place in sorted([*(Span(at, at) for at in headings), *days]):
            found += self._cut_lines(Span(start, place.start))
            found += [each._replace(day=days[place]) for each in self._cut_lines(place) if place in days]
            start = place.end
        found += self._cut_lines(Span(start, end))
        return [excerpt._replace(rank=rank) for excerpt in found]

    def _cut_lines(self, span: Span) -> Iterator[Excerpt]:
        """Yield the lines of a stretch without blank ones around it, in two parts where some are left out."""
        if self._without and span.start < self._without.end and self._without.start < span.end:
            before, behind = Span(span.start, self._without.start), Span(self._without.end, span.end)
            for part in (part for part in (before, behind) if part.start < part.end):
                yield from self._cut_lines(part)
            return
        text = self._document.text
        written = text[slice(*span)].rstrip()
        end = span.start + len(written)
        start = end - len(written.lstrip(f"{_BOM} \t\r\n"))
        if start >= end:
            return
        number = self._document.lines.number
        first, last = number(start), number(end - 1)
        begins = self._document.lines.span(first).start
        lines = LINE_END.split(text[begins:end].removeprefix(_BOM))
        yield Excerpt(path=self._path, first=first, last=last, text="\n".join(lines), day=self.day)


def real_path(vault: Vault, path: str) -> str:
    """Return where a memory lies, as an absolute path without links."""
    root, parts = vault.place(path)
    return os.path.realpath(os.path.join(root, *parts))


def excerpt_hits(memory: ScopedMemory, hits: Sequence[Hit], excluded: Collection[str] = ()) -> list[Excerpt]:
    """Return the passages of hits, in their order; instead of fields, what the memory says first."""
    found: list[Excerpt] = []
    read: dict[str, Document | None] = {}
    for rank, hit in enumerate(hits):
        if excluded and real_path(*memory.vault.locate_layer(hit.path)) in excluded:
            continue
        excerpt: Excerpt | None = _of_hit(hit, rank)
        if not hit.heading and hit.path not in read:
            read[hit.path] = _read_memory(memory, hit.path)
        document = None if hit.heading else read[hit.path]
        if document and hit.line < document.lines.number(document.body_span.start):
            first = next(iter(ExcerptSource(document).sections((rank,))), None)
            excerpt = first and first._replace(path=hit.path, day=hit.date)
        if excerpt and not any(each.place == excerpt.place for each in found):
            found.append(excerpt)
    return found


def quote_hits(
    memory: ScopedMemory, hits: Sequence[Hit], budget: int, excluded: Collection[str] = ()
) -> list[str]:
    """Return what `excerpt_hits` gives, in fences, as much as fits into a budget of estimated tokens."""
    kept: list[Excerpt] = []
    for excerpt in excerpt_hits(memory, hits, excluded):
        left = budget - sum(map(_estimate_block, kept))
        if _estimate_block(excerpt) <= left:
            kept.append(excerpt)
        elif parted := cut_excerpt(excerpt, left, _estimate_block):
            kept.append(parted.kept)
    return join_blocks(kept)


def _estimate_block(excerpt: Excerpt) -> int:
    return estimate(excerpt.block)


def _read_memory(memory: ScopedMemory, path: str) -> Document | None:
    try:
        return memory.show(path)
    except MdmemError:
        return None


def _of_hit(hit: Hit, rank: int) -> Excerpt:
    lines = (*hit.before, hit.text, *hit.after)
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    first = hit.line - len(hit.before)
    return Excerpt(
        path=hit.path,
        first=first,
        last=first + len(lines) - 1,
        text="\n".join(lines),
        day=hit.date,
        note=f"({in_line(' > '.join(hit.heading))})" if hit.heading else "",
        rank=(rank,),
    )


def excerpt_preference(read: Preference, shown: str) -> Excerpt:
    """Return a preference as it is told: its name, its value and why, in one line."""
    value = (
        read.value if isinstance(read.value, str) else json.dumps(read.value, ensure_ascii=False, default=str)
    )
    told = f"- {read.name}: {in_line(value)}" + (f" ({in_line(read.why)})" if read.why else "")
    day = f"{read.updated:%Y-%m-%d}" if read.updated else ""
    text = f"{told}  [{', '.join(filter(None, (in_line(shown), day)))}]"
    return Excerpt(
        path=shown,
        first=0,
        last=0,
        text=visible(text),
        day=day,
        together=PREFERENCE.folder,
        rank=(-read.strength,),
    )
