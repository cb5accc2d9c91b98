"""Three-way merge of documents: what two sides made of one base, as one text or as conflicts.

Frontmatter and JSON are merged by key, from the source text of each side, so comments and quoting stay; a
body by lines, and where changed lines touch by section; where the result is not what both changes come to, it
is a conflict as a whole. Two insertions at one place are both kept, theirs first if that is right. When they
are identical they are one: the same change often arrives twice (a retried write, a cherry-picked commit), and
two sides that are equal as a whole merge to themselves as well. Whoever means a second equal line must append
again to what is there, rather than merge.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from mdmem.diagnostic import Span
from mdmem.errors import DocumentRefused
from mdmem.text import frontmatter
from mdmem.text.blocks import Heading, may_have_headings, scan, sections
from mdmem.text.conflict import ConflictKind, Conflicts, Markers, MergeConflict, value_conflict
from mdmem.text.diff import Versions, complete, hunks, merged_order, regions, shared
from mdmem.text.edit import TextEdit, splice
from mdmem.text.lines import LINE_END, whole_lines
from mdmem.text.merge_fields import merged_fields, merged_json
from mdmem.text.regex import regex
from mdmem.text.relink import MOST_COMPARED, repointed
from mdmem.text.tree import same

if TYPE_CHECKING:
    from mdmem.text.document import Document
    from mdmem.text.frontmatter import Frontmatter

__all__ = ["Markers", "MergeConflict", "Merged", "merge"]

_FINAL_LINE_END = regex(r"(?:\r\n|\n|\r)\Z")
_ITEM = regex(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]|\|)")
_PieceKey = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to.

    Attributes:
        text: None when there are conflicts; with markers, only where they cannot be marked in the text.
        conflicts: the places that both sides changed.
    """

    text: str | None
    conflicts: tuple[MergeConflict, ...] = ()


def merge(base: Document, ours: Document, theirs: Document, *, markers: Markers | None = None) -> Merged:
    """Merge what `ours` and `theirs` made of `base`, all three versions of one memory.

    What cannot be read as frontmatter or JSON is merged as lines. Lines with a block id are the same lines
    wherever they stand: one side may move them while the other says them in other words. So are links: one
    side may lead them elsewhere while the other changes the text around them. Of versions larger than
    `MOST_COMPARED`, lines and sections alone are compared.

    Args:
        base, ours, theirs: the versions.
        markers: how to mark conflicts in the text; without them, a text with conflicts is none.
    """
    versions = Versions(base, ours, theirs)
    whole = versions.map(lambda document: document.text).agreed()
    if whole:
        return Merged(text=whole[0])
    merged = _merged_somehow(versions, markers)
    if merged.conflicts and all(c.reason or c.kind in {"lines", "section"} for c in merged.conflicts):
        # Of two insertions at one place, one may be right only in front of the other.
        other = _merged_somehow(Versions(base, theirs, ours), None)
        merged = merged if other.conflicts else other
    return merged


def _merged_somehow(versions: Versions[Document], markers: Markers | None) -> Merged:
    """The merge of versions as they are written, or else with their blocks alike."""
    merged = _merged(versions, versions, markers)
    alike = _by_block(versions) if merged.conflicts else None
    if alike:
        other = _merged(alike, versions, markers)
        # The lines of its conflicts are not those of theirs.
        if not other.conflicts or (markers and other.text is not None):
            return other
    return merged


def _merged(versions: Versions[Document], written: Versions[Document], markers: Markers | None) -> Merged:
    """The merge of versions; that of their lines is held to how they were `written`."""
    conflicts = Conflicts(markers)
    text = merged_json(versions, conflicts)
    if text is None and not conflicts:
        text = _merged_markdown(versions, written, conflicts)
    elif conflicts:
        text = None
    return Merged(text=text, conflicts=tuple(conflicts.found))


def _merged_markdown(
    versions: Versions[Document], written: Versions[Document], conflicts: Conflicts
) -> str | None:
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
    if conflicts:
        # Behind a byte-order mark, a marker would be none.
        can_mark = conflicts.markers and not text.startswith(frontmatter.BOM + "<" * conflicts.markers.size)
        return text if can_mark else None
    result = _with_text(versions.theirs, text)
    found = _sound_frontmatter(result) if sound else None
    kept = found and (not fields or (found.span.end == len(front) and same(found.values, fields.value)))
    if sound and not kept:
        reason = "has frontmatter that neither side wrote"
    else:
        bodies = written.paired(starts, lambda document, start: document.text[start:])
        reason = _wrong([*bodies, text[len(front) :]])
    if reason:
        kind: ConflictKind = "field" if fields and not kept else "lines"
        whole = versions.map(lambda document: document.text)
        conflicts.take(value_conflict(kind, (), versions.theirs, whole, reason), "\n")
        return None
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


# ------------------------------------------------------------------------------------------------- blocks

_BEGINS = regex(r"[ \t>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:[ \t]|\Z)")


def _by_block(versions: Versions[Document]) -> Versions[Document] | None:
    """The versions, in all of which what carries a block id says the same, so that its lines merge as equal.

    What both sides moved stays where theirs has it, and what one side moved and the other removed is gone.
    None where there are no ids, or the versions are too large to be compared by them.
    """
    if any(len(document.text) > MOST_COMPARED for document in versions):
        return None
    if "^" not in versions.base.text or not ("^" in versions.ours.text or "^" in versions.theirs.text):
        return None
    try:
        return _with_blocks_once(_with_equal_blocks(versions))
    except DocumentRefused:
        return None


def _with_equal_blocks(versions: Versions[Document]) -> Versions[Document]:
    places = versions.map(_block_places)
    edits: Versions[list[TextEdit]] = Versions([], [], [])
    for name in places.base:
        spans = complete(places.map(lambda side, name=name: side.get(name)))  # type: ignore[misc]
        if not spans:
            continue
        texts = versions.paired(spans, lambda document, span: document.text[slice(*span)])
        agreed = texts.agreed()
        text = agreed[0] if agreed else repointed(versions, spans)
        for span, old, side in zip(spans, texts, edits, strict=True):
            if text not in {None, old}:
                side.append(TextEdit(span.start, span.end, text or ""))
    return versions.paired(edits, _edited)


def _with_blocks_once(versions: Versions[Document]) -> Versions[Document]:
    places = versions.map(_block_places)
    ours, theirs = (_changed_lines(versions.base, side) for side in versions[1:])
    edits: Versions[list[TextEdit]] = Versions([], [], [])
    for name, at in places.base.items():
        line = versions.base.lines.number(at.start)
        if line not in ours or line not in theirs:
            continue
        spans = places.map(lambda side, name=name: side.get(name))  # type: ignore[misc]
        texts = versions.paired(spans, lambda document, span: span and document.text[slice(*span)])
        # Both took it from its place: without those in the others, one place is left, or none.
        if texts.agreed() in {(None,), (texts.base,)}:
            for document, span, side in zip(versions, spans, edits, strict=True):
                if span and (document is not versions.theirs or not spans.ours):
                    side.append(TextEdit(span.start, _line(document, span.end).end, ""))
    return versions.paired(edits, _edited)


def _edited(document: Document, edits: list[TextEdit]) -> Document:
    return _with_text(document, splice(document.text, edits)) if edits else document


def _changed_lines(base: Document, side: Document) -> set[int]:
    """The numbers of the lines of the base that a side has no longer where they were."""
    found = hunks(whole_lines(base.text), whole_lines(side.text))
    return {number for hunk in found for number in range(hunk.start + 1, hunk.end + 1)}


def _line(document: Document, offset: int) -> Span:
    return document.lines.span(document.lines.number(offset))


def _block_places(document: Document) -> dict[str, Span]:
    """Where what carries a block id stands, without its last line end: its line, and those that lead to it.

    An id that stands twice names nothing.
    """
    lines, start = document.lines, document.body_span.start
    found: dict[str, list[Span]] = {}
    above = lines.number(start) - 1 if start < len(document.text) else 0
    for block in document.blocks:
        first = block.line
        while first > above + 1 and not _BEGINS.match(lines.content(first)):
            before = lines.content(first - 1)
            if not before.strip() or (_BEGINS.match(before) and before.lstrip(" \t>").startswith("#")):
                break
            first -= 1
        above = block.line
        end = lines.span(block.line).start + len(lines.content(block.line))
        found.setdefault(block.id, []).append(Span(lines.span(first).start, end))
    return {name: spans[0] for name, spans in found.items() if len(spans) == 1}


# ------------------------------------------------------------------------------------------------- result

# Where links lead is no word: one side may lead the links elsewhere that the other one wrote.
_WORD = regex(r"(?:\[\[|\]\()[^\[\]()|\r\n]*|((?<= )\^[A-Za-z0-9-]+|\w+)")
_MAY_HIDE = regex(r"```|~~~|<|(?:\A|[\r\n])(?: {4}| {0,3}\t)")
_BEHIND = "\n\nwhat follows\n"
_LONGEST = 60
_Counts = Counter[tuple[str, str]]


def _wrong(bodies: list[str]) -> str:
    """Why a clean merge is not to be trusted, in words that follow "it"; empty where nothing is wrong.

    A merge of lines may have a line twice that both sides moved, keep one that one side removed and the
    other moved, and make code of text where both moved fences. So each word that names something, since it
    stood once at most, and each line, as text or as code, has to stand as often as both changes say.

    Args:
        bodies: what was merged by lines: of the three versions, and of the result.
    """
    head, tail = map(min, zip(*(shared(bodies[0], body) for body in bodies[1:]), strict=True))
    changed = [body[head : len(body) - tail] for body in bodies]
    if max(map(len, changed)) > MOST_COMPARED:
        return ""
    counts = [Counter((word, "") for word in _WORD.findall(text) if word) for text in changed]
    parts = [filter(str.strip, whole_lines(text)) for text in changed]
    lines = [Counter((line.strip("\r\n"), "text") for line in part) for part in parts]
    if any(map(_MAY_HIDE.search, changed)) and max(map(len, bodies)) <= MOST_COMPARED:
        with suppress(DocumentRefused):
            lines = list(map(_lines, bodies))
    base, ours, theirs, after = map(Counter.__or__, counts, lines)
    known = base | ours | theirs
    written = {said for said, kind in known if kind}
    everywhere = cache(lambda: Counter(_WORD.findall(bodies[0])))
    for unit in after | known:
        (said, kind), before, times = unit, base[unit], after[unit]
        least, most = _limits(before, ours[unit], theirs[unit])
        # A line that no side wrote was put together from both.
        if unit not in known and kind and said in written:
            return f"makes {kind} of {said.strip()[:_LONGEST]!r}"
        is_wrong = unit in known and (times > most or (times < least and (before or not kind)))
        if is_wrong and (kind or everywhere()[said] <= 1):
            told = "has lost {}" if times < least else "has {} more often than both sides together"
            told = told if most else "still has {}, which one side removed"
            return told.format(repr(said.strip()[:_LONGEST]))
    return ""


def _lines(text: str) -> _Counts:
    """How often each line stands, as text, as code, or as neither.

    Behind all stands one more, which is text unless something is left open.
    """
    outline = scan(text + _BEHIND, frontmatter.locate(text)[0].end)
    texts = ((start, end, "text") for start, end in outline.texts)
    spans = sorted([*texts, *((start, end, "code") for start, end in outline.fences)])
    found: _Counts = Counter()
    at = number = 0
    for line in whole_lines(text + _BEHIND):
        end = at + len(line)
        while number < len(spans) and spans[number][1] <= at:
            number += 1
        kind = spans[number][2] if number < len(spans) and spans[number][0] < end else "no text"
        if line.strip():
            found[line.strip("\r\n"), kind] += 1
        at = end
    return found


def _limits(base: int, ours: int, theirs: int) -> tuple[int, int]:
    """How often what each side has so often may stand in their merge: it may be one change or two."""
    two = ours + theirs - base
    if min(ours, theirs) < base < max(ours, theirs):
        return two, two
    one = min(ours, theirs) if min(ours, theirs) < base else max(ours, theirs)
    return min(one, two), max(one, two)


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

    def span(self, lines: slice) -> Span:
        """Where lines of this part, one at least, stand in the document."""
        table = self.document.lines
        return Span(table.span(self.first + lines.start + 1).start, table.span(self.first + lines.stop).end)

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
    conflicts: Conflicts

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
        merged = self._repointed(region)
        if merged is None:
            merged = self._items(region)
        return self._conflict("lines", region) if merged is None else merged

    def _repointed(self, region: Versions[slice]) -> list[str] | None:
        """Lines in which one side changed only where links lead."""
        if not all("[" in "".join(lines) for lines in self._cut(region)):
            return None
        documents = self.parts.map(lambda part: part.document)
        text = repointed(documents, self.parts.paired(region, _Part.span))
        return None if text is None else whole_lines(text)

    def _items(self, region: Versions[slice]) -> list[str] | None:
        """Items of one list, of which each side changed others: that their lines touch is no conflict."""
        if any(len(part.document.text) > MOST_COMPARED for part in self.parts):
            return None
        items = complete(self._cut(region).map(_items))
        found = list(regions(*items, apart=True)) if items else []
        if not items or len(found) < 2:  # noqa: PLR2004 - nothing is gained
            return None
        starts = items.map(
            lambda side: [0, *accumulate(len(whole_lines(item)) for item in side)],
        )
        result: list[str] = []
        reached = 0
        for each in found:
            result += items.base[reached : each.base.start]
            reached = each.base.stop
            lines = each.paired(starts, lambda part, at: slice(at[part.start], at[part.stop]))
            result += self._region(lines.paired(region, _moved), by_section=False)
        return result + items.base[reached:]

    def _sections(self, region: Versions[slice]) -> list[str]:
        """A region that holds headings: the sections in it are merged each for itself."""
        pieces = self.parts.paired(region, _Part.pieces)
        base, ours, theirs = pieces.map(list)
        order = merged_order(Versions(base, ours, theirs))
        if (
            order is None
            or _replaced(Versions(base, ours, theirs))
            or (region.base.start < self.append_from and order != merged_order(Versions(base, theirs, ours)))
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
        found = MergeConflict(
            kind=kind, where=named.heading_path(at), line=line, base=base, ours=ours, theirs=yours
        )
        return [self.conflicts.take(found, theirs.document.lines.newline)]


def _replaced(keys: Versions[list[_PieceKey]]) -> bool:
    """Whether a section has gone from both sides, and one has another in its place: it may be that one."""
    base, ours, theirs = keys.map(set)
    common = base & ours & theirs

    def places(side: list[_PieceKey], only: set[_PieceKey]) -> set[_PieceKey]:
        """The section that all have, behind which the side has one of `only`."""
        found, behind = set(), side[0]  # what stands above the first heading is in all
        for key in side:
            if key in common:
                behind = key
            elif key in only:
                found.add(behind)
        return found

    gone, mine, yours = base - ours - theirs, ours - base - theirs, theirs - base - ours
    return bool(places(keys.base, gone) & (places(keys.ours, mine) | places(keys.theirs, yours)))


def _items(lines: list[str]) -> list[str] | None:
    """Lines as the items of one list, or the rows of a table, each with what is in it; None for others."""
    items: list[str] = []
    margin = 0
    for line in lines:
        indent = len(line) - len(line.lstrip(" \t"))
        margin = margin if items else indent
        if indent == margin and _ITEM.match(line):
            items.append(line)
        elif items and indent > margin and line.strip():
            items[-1] += line
        else:
            return None
    return items


def _moved(part: slice, whole: slice) -> slice:
    """A stretch counted from the beginning of a whole, counted as the whole is."""
    return slice(whole.start + part.start, whole.start + part.stop)
