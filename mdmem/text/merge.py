"""Three-way merge of documents: what two sides made of one base, as one text or as conflicts.

Frontmatter and JSON are merged by key, from the source text of each side, so comments and quoting stay; a
body by lines, and where changed lines touch by section. Two insertions at one place are both kept, theirs
first. When they are identical they are one: the same change often arrives twice (a retried write, a
cherry-picked commit), and two sides that are equal as a whole merge to themselves as well. Whoever means a
second equal line must append again to what is there, rather than merge.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mdmem.errors import DocumentRefused
from mdmem.text import frontmatter
from mdmem.text.blocks import Heading, may_have_headings, sections
from mdmem.text.diff import Versions, complete, merged_order, regions, shared
from mdmem.text.lines import LINE_END, whole_lines
from mdmem.text.merge_fields import ConflictKind, MergeConflict, merged_fields, merged_json, value_conflict
from mdmem.text.regex import regex
from mdmem.text.tree import same

if TYPE_CHECKING:
    from mdmem.text.document import Document
    from mdmem.text.frontmatter import Frontmatter

__all__ = ["MergeConflict", "Merged", "merge"]

_FINAL_LINE_END = regex(r"(?:\r\n|\n|\r)\Z")
_PieceKey = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to: `text` is None when there are conflicts."""

    text: str | None
    conflicts: tuple[MergeConflict, ...] = ()


def merge(base: Document, ours: Document, theirs: Document) -> Merged:
    """Merge what `ours` and `theirs` made of `base`, all three versions of one memory.

    What cannot be read as frontmatter or JSON is merged as lines.
    """
    versions = Versions(base, ours, theirs)
    whole = versions.map(lambda document: document.text).agreed()
    if whole:
        return Merged(text=whole[0])
    conflicts: list[MergeConflict] = []
    text = merged_json(versions, conflicts)
    if text is None:
        text = _merged_markdown(versions, conflicts)
    return Merged(text=None if conflicts else text, conflicts=tuple(conflicts))


def _merged_markdown(versions: Versions[Document], conflicts: list[MergeConflict]) -> str:
    ended = versions.map(lambda document: _ends_line(document.text)).agreed()
    versions = _terminated(versions)
    sound = complete(versions.map(_sound_frontmatter))
    fields = merged_fields(versions, sound, conflicts) if sound else None
    starts = sound.map(lambda found: found.span.end) if sound and fields else Versions(0, 0, 0)
    parts, head, tail = _apart(versions, starts)
    front, append_from = "", sys.maxsize
    if fields:
        front = fields.text
        dashes = versions.paired(starts, lambda document, start: document.text.startswith("---", start))
        # A body that begins with dashes becomes frontmatter when that of both sides is gone: then nothing is
        # put in an order that neither side wrote.
        if "---" in front or not any(dashes):
            append_from = 0
    else:
        blocks = versions.map(lambda document: frontmatter.locate(document.text)[0])
        if all(block.start < block.end for block in blocks):
            # Within frontmatter, two insertions could give a key twice.
            append_from = len(whole_lines(versions.base.text, len(head), blocks.base.end))
    text = front + head + _LinesMerge(parts, append_from, conflicts).merged() + tail
    if sound and not conflicts:
        found = _sound_frontmatter(_with_text(versions.theirs, text))
        kept = found and (not fields or (found.span.end == len(front) and same(found.values, fields.value)))
        if not kept:
            whole = versions.map(lambda document: document.text)
            conflicts.append(value_conflict("field" if fields else "lines", (), versions.theirs, whole))
    return _FINAL_LINE_END.sub("", text) if ended == (False,) else text


def _ends_line(text: str) -> bool:
    return not text or text.endswith(("\n", "\r"))


def _with_text(document: Document, text: str) -> Document:
    return replace(document, text=text, data=text.encode())


def _terminated(versions: Versions[Document]) -> Versions[Document]:
    """The documents with a final line end, so that a line appended behind the last one does not change it."""
    newlines = versions.map(lambda document: document.lines.newline if LINE_END.search(document.text) else "")
    known = newlines.base or min(filter(None, newlines), default="\n")

    def terminated(document: Document, newline: str) -> Document:
        text = document.text
        return document if _ends_line(text) else _with_text(document, text + (newline or known))

    return versions.paired(newlines, terminated)


def _sound_frontmatter(document: Document) -> Frontmatter | None:
    """The frontmatter, which may be absent; None when something is wrong with it."""
    try:
        found = document.frontmatter
    except DocumentRefused:
        return None
    return None if found.flaws else found


# -------------------------------------------------------------------------------------------------- lines


class _Part:
    """The lines of a document from `start` to `end`, and its headings by line; all numbers are 0-based."""

    def __init__(self, document: Document, start: int, end: int) -> None:
        self.document = document
        self.lines = whole_lines(document.text, start, end)
        self._start = start

    @cached_property
    def first(self) -> int:
        """Which line of the document the first one is; a byte-order mark may stand before it."""
        return self.document.lines.number(self._start) - 1

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        """All headings of the document, those above this part included."""
        return self.document.headings if may_have_headings(self.document.text) else ()

    def headings_in(self, lines: slice) -> tuple[Heading, ...]:
        return tuple(h for h in self.headings if lines.start <= h.line - 1 - self.first < lines.stop)

    def pieces(self, lines: slice) -> dict[_PieceKey, slice]:
        """The lines cut at their headings.

        The blank lines above a heading belong to it, so that sections put behind each other stay apart.
        """
        seen: Counter[tuple[str, ...]] = Counter()
        result: dict[_PieceKey, slice] = {}
        key: _PieceKey = ((), 0)
        at = lines.start
        for section in sections(self.headings_in(lines), 0):
            cut = section.heading.line - 1 - self.first
            while cut > at and not self.lines[cut - 1].strip():
                cut -= 1
            result[key] = slice(at, cut)
            key, at = (section.path, seen[section.path]), cut
            seen[section.path] += 1
        result[key] = slice(at, lines.stop)
        return result

    def split_heading(self, lines: slice) -> tuple[list[str], list[str]]:
        """A piece as its first heading, with the blank lines above it, and the rest."""
        last = self.headings_in(lines)[0].span.end - 1
        end = min(self.document.lines.number(last) - self.first, lines.stop)
        return self.lines[lines.start : end], self.lines[end : lines.stop]

    def heading_path(self, line: int) -> str:
        """The titles of the sections that a line is in, whether they begin in this part or above it."""
        above = sections([h for h in self.headings if h.line - 1 - self.first <= line], 0)
        return " > ".join(above[-1].path) if above else ""


def _apart(versions: Versions[Document], starts: Versions[int]) -> tuple[Versions[_Part], str, str]:
    """What differs in the documents from `starts` on, and the lines before and behind that all have alike."""
    base, ours, theirs = versions.paired(starts, lambda document, start: document.text[start:])
    head, tail = map(min, shared(base, ours), shared(base, theirs))
    parts = versions.paired(
        starts, lambda document, start: _Part(document, start + head, len(document.text) - tail)
    )
    return parts, base[:head], base[len(base) - tail :]


@dataclass(slots=True)
class _LinesMerge:
    """A merge by lines, and by section where changed lines touch.

    Two insertions at one place, lines or sections, are both kept from line `append_from` of the base on, else
    they conflict.
    """

    parts: Versions[_Part]
    append_from: int
    conflicts: list[MergeConflict]

    def merged(self) -> str:
        whole = self.parts.map(lambda part: slice(0, len(part.lines)))
        return "".join(self._lines(whole, by_section=True))

    def _cut(self, region: Versions[slice]) -> Versions[list[str]]:
        return self.parts.paired(region, lambda part, lines: part.lines[lines])

    def _lines(self, ranges: Versions[slice], *, by_section: bool) -> list[str]:
        texts = self._cut(ranges)
        result: list[str] = []
        reached = 0
        for region in regions(*texts):
            result += texts.base[reached : region.base.start]
            reached = region.base.stop
            result += self._region(region.paired(ranges, _moved), by_section=by_section)
        return result + texts.base[reached:]

    def _region(self, region: Versions[slice], *, by_section: bool) -> list[str]:
        texts = self._cut(region)
        agreed = texts.agreed()
        if agreed:
            return agreed[0]
        if by_section and any(self.parts.paired(region, _Part.headings_in)):
            return self._sections(region)
        if not texts.base and region.base.start >= self.append_from:
            return [*texts.theirs, *texts.ours]
        return self._conflict("lines", region)

    def _sections(self, region: Versions[slice]) -> list[str]:
        """A region that holds headings: the sections in it are merged each for itself."""
        pieces = self.parts.paired(region, _Part.pieces)
        base, ours, theirs = pieces.map(list)
        order = merged_order(Versions(base, ours, theirs))
        if order is None or (
            region.base.start < self.append_from and order != merged_order(Versions(base, theirs, ours))
        ):
            return self._conflict("section", region)
        return [
            line
            for key in order
            for line in self._section(Versions(*(side.get(key) for side in pieces)), region)
        ]

    def _section(self, lines: Versions[slice | None], region: Versions[slice]) -> list[str]:
        texts = self.parts.paired(lines, lambda part, own: None if own is None else part.lines[own])
        agreed = texts.agreed()
        if agreed:
            return agreed[0] or []
        present = complete(lines)
        if present:
            return self._lines(present, by_section=False)
        if not lines.base and lines.ours and lines.theirs:
            both = region.base.start >= self.append_from
            added = self._added_section(lines.ours, lines.theirs, both=both)
            if added:
                return added
        # What a side has not got is an empty stretch where its region begins.
        places = lines.paired(region, lambda own, whole: own or slice(whole.start, whole.start))
        return self._conflict("section", places)

    def _added_section(self, ours: slice, theirs: slice, *, both: bool) -> list[str] | None:
        """A section that both sides added under the same heading: one heading, and under it what both say.

        None where the headings differ, or what is under them and not `both` may be kept.
        """
        head_ours, rest_ours = self.parts.ours.split_heading(ours)
        head_theirs, rest_theirs = self.parts.theirs.split_heading(theirs)
        if "".join(head_ours).strip() != "".join(head_theirs).strip():
            return None
        # They may differ in the blank lines before it.
        head = max(head_theirs, head_ours, key=len)
        if rest_ours == rest_theirs:
            return head + rest_theirs
        return head + rest_theirs + rest_ours if both or not (rest_ours and rest_theirs) else None

    def _conflict(self, kind: ConflictKind, region: Versions[slice]) -> list[str]:
        texts, theirs = self._cut(region), self.parts.theirs
        named, at = (theirs, region.theirs.start) if texts.theirs else (self.parts.ours, region.ours.start)
        if kind == "section":
            # Its heading may stand behind blank lines.
            at += next((n for n, text in enumerate(named.lines[at:]) if text.strip()), 0)
        line = max(1, min(theirs.first + region.theirs.start + 1, len(theirs.document.lines)))
        base, ours, yours = texts.map("".join)
        self.conflicts.append(
            MergeConflict(
                kind=kind, where=named.heading_path(at), line=line, base=base, ours=ours, theirs=yours
            )
        )
        return []


def _moved(part: slice, whole: slice) -> slice:
    """A stretch counted from the beginning of a whole, counted as the whole is."""
    return slice(whole.start + part.start, whole.start + part.stop)
