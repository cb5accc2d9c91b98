"""Three-way merge of documents: what two sides made of one base, as one text or as conflicts.

Frontmatter and JSON are merged by key, from the source text of each side, so comments and quoting stay; a
body by lines, and where changed lines touch by section. Two insertions at one place are both kept, theirs
first. When they are identical they are one: the same change often arrives twice (a retried write, a
cherry-picked commit), and two sides that are equal as a whole merge to themselves as well. Whoever means a
second equal line must append again to what is there, rather than merge.
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from mdmem.diagnostic import Span
from mdmem.errors import DocumentRefused
from mdmem.text import frontmatter
from mdmem.text.diff import regions
from mdmem.text.document import Document, Limits
from mdmem.text.lines import LINE_END, Lines
from mdmem.text.parsed import TooDeep
from mdmem.text.scan import Heading, sections
from mdmem.text.tree import KeyPath, Member, Node, dotted

ConflictKind = Literal["lines", "field", "section", "json"]
_FINAL_LINE_END = re.compile(r"(?:\r\n|\n|\r)\Z")
T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """A place that both sides changed, each in its own way.

    Attributes:
        kind: the same lines, the same field of the frontmatter, a section that one side changed and the other
            removed, or the same JSON value.
        where: the heading path (`Design > Index`) or the dotted key; may be empty.
        line: where it stands in theirs, 1-based.
        base: the text of the place before; empty where there was none. `ours` and `theirs` alike.
    """

    kind: ConflictKind
    where: str
    line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to: `text` is None when there are conflicts."""

    text: str | None
    conflicts: tuple[MergeConflict, ...] = ()


class _Three(NamedTuple, Generic[T]):
    """The same thing in the base and on both sides."""

    base: T
    ours: T
    theirs: T

    def map(self, of: Callable[[T], U]) -> _Three[U]:
        return _Three(of(self.base), of(self.ours), of(self.theirs))

    def agreed(self) -> tuple[T] | None:
        """What it becomes, when at most one side changed it or both did equally."""
        if self.ours in (self.base, self.theirs):
            return (self.theirs,)
        return (self.ours,) if self.theirs == self.base else None


def merge(base: Document, ours: Document, theirs: Document) -> Merged:
    """Merge what `ours` and `theirs` made of `base`, all three versions of one memory.

    What cannot be read as frontmatter or JSON is merged as lines.
    """
    three = _Three(base, ours, theirs)
    whole = three.map(lambda document: document.text).agreed()
    if whole:
        return Merged(text=whole[0])
    if all(document.is_json for document in three):
        roots = three.map(_json_root)
        if roots.base and roots.ours and roots.theirs:
            readable = _Three(roots.base, roots.ours, roots.theirs)
            return _JsonMerge(three, []).merged(readable)
    return _merged_markdown(three)


def _merged_markdown(three: _Three[Document]) -> Merged:
    ended = three.map(lambda document: not document.text or document.text.endswith(("\n", "\r"))).agreed()
    three = _terminated(three)
    blocks = three.map(_Block.of_frontmatter)
    conflicts: list[MergeConflict] = []
    if blocks.base and blocks.ours and blocks.theirs:
        text = _merged_by_field(three, _Three(blocks.base, blocks.ours, blocks.theirs), conflicts)
    else:
        text = _merged_as_lines(three, conflicts)
    if conflicts:
        return Merged(text=None, conflicts=tuple(conflicts))
    return Merged(text=_FINAL_LINE_END.sub("", text) if ended == (False,) else text)


def _terminated(three: _Three[Document]) -> _Three[Document]:
    """The documents with a final line end, so that a line appended behind the last one does not change it."""
    newlines = three.map(lambda document: document.lines.newline if LINE_END.search(document.text) else None)
    known = newlines.base or min(filter(None, newlines), default="\n")

    def terminated(document: Document, newline: str) -> Document:
        if not document.text or document.text.endswith(("\n", "\r")):
            return document
        return replace(document, text=document.text + newline, data=document.data + newline.encode())

    return _Three(*(terminated(d, newline or known) for d, newline in zip(three, newlines, strict=True)))


def _merged_by_field(three: _Three[Document], blocks: _Three[_Block], conflicts: list[MergeConflict]) -> str:
    fields = _FieldsMerge(three, conflicts)
    front = fields.merged(blocks)
    bodies = three.map(lambda document: _Body(document, document.body_span.start))
    # A body that begins with dashes becomes frontmatter when that of both sides is gone: then nothing is put
    # in an order that neither side wrote.
    dashes = any(body.lines and body.lines[0].startswith("---") for body in bodies)
    append_from = sys.maxsize if dashes and "---" not in front else 0
    text = front + _BodyMerge(bodies, append_from, conflicts).merged()
    if not conflicts:
        fields.check(text, len(front))
    return text


def _merged_as_lines(three: _Three[Document], conflicts: list[MergeConflict]) -> str:
    """A merge of documents whose frontmatter cannot be taken apart.

    Two insertions at one place are kept behind the frontmatter only: within, they could give a key twice.
    """
    blocks = three.map(lambda document: frontmatter.locate(document.text)[0])
    located = all(block.start < block.end for block in blocks)
    append_from = blocks.base.end if located else sys.maxsize
    text = _BodyMerge(three.map(lambda document: _Body(document, 0)), append_from, conflicts).merged()
    limits = three.theirs.limits
    if (
        not conflicts
        and all(_sound(document.text, limits) for document in three)
        and not _sound(text, limits)
    ):
        base, ours, theirs = three.map(lambda document: document.text)
        conflicts.append(MergeConflict(kind="lines", where="", line=1, base=base, ours=ours, theirs=theirs))
    return text


def _sound(text: str, limits: Limits) -> frontmatter.Frontmatter | None:
    """The frontmatter of a text, or None when something is wrong with it."""
    try:
        found = frontmatter.parse(text, max_depth=limits.max_depth, max_values=limits.max_values)
    except TooDeep:
        return None
    return None if found.flaws else found


# ------------------------------------------------------------------------------------------------- order


def _merged_order(keys: _Three[list[K]]) -> list[K] | None:
    """All keys of both sides in one order, or None when both sides moved them, each in its own way.

    A side that moved keys gives the order, else theirs; the other side's own keys follow what they followed.
    """
    shared = set(keys.base).intersection(keys.ours, keys.theirs)
    kept = keys.map(lambda side: [key for key in side if key in shared])
    if not kept.agreed():
        return None
    if kept.theirs == kept.base != kept.ours:
        return _placed(keys.ours, keys.theirs)
    return _placed(keys.theirs, keys.ours)


def _placed(order: Sequence[K], other: Sequence[K]) -> list[K]:
    """`order`, and the keys that only `other` has: behind what precedes them and what `order` added there."""
    known, shared = set(order), set(other)
    behind: dict[K | None, list[K]] = {}
    anchor: K | None = None
    for key in other:
        if key in known:
            anchor = key
        else:
            behind.setdefault(anchor, []).append(key)
    result: list[K] = []
    pending = behind.get(None, [])
    for key in order:
        if key in shared:
            result += pending
            pending = behind.get(key, [])
        result.append(key)
    return result + pending


# -------------------------------------------------------------------------------------------------- body


class _Body:
    """The lines of a document from `start` on, and its headings by line; all numbers are 0-based."""

    def __init__(self, document: Document, start: int) -> None:
        text, starts = document.text, document.lines.starts
        self.document = document
        # Not always the start of a line: a byte-order mark may stand before it.
        self.first = document.lines.number(start) - 1
        bounds = [start, *starts[self.first + 1 :], len(text)] if start < len(text) else []
        self.lines = [text[at:end] for at, end in pairwise(bounds)]

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        try:
            return self.document.headings
        except DocumentRefused:
            return ()

    @cached_property
    def _heading_lines(self) -> list[int]:
        return [heading.line - 1 - self.first for heading in self.headings]

    def headings_in(self, lines: slice) -> tuple[Heading, ...]:
        return self.headings[self._first_heading(lines.start) : self._first_heading(lines.stop)]

    def _first_heading(self, line: int) -> int:
        return bisect_left(self._heading_lines, line)

    def pieces(self, lines: slice) -> dict[_PieceKey, slice]:
        """The lines cut at their headings.

        The blank lines above a heading belong to it, so that sections put behind each other stay apart.
        """
        seen: Counter[tuple[str, ...]] = Counter()
        result: dict[_PieceKey, slice] = {}
        key: _PieceKey = ((), 0)
        at = lines.start
        for section in sections(self.headings_in(lines), len(self.document.text)):
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
        heading = self.headings_in(lines)[0]
        height = self.document.lines.number(heading.span.end - 1) - heading.line + 1
        end = min(heading.line - 1 - self.first + height, lines.stop)
        return self.lines[lines.start : end], self.lines[end : lines.stop]

    def heading_path(self, line: int) -> str:
        number = self._first_heading(line + 1)
        return " > ".join(sections(self.headings, 0)[number - 1].path) if number else ""


_PieceKey = tuple[tuple[str, ...], int]


@dataclass(slots=True)
class _BodyMerge:
    """A merge by lines.

    Two insertions at one place are both kept from the offset `append_from` of the base on, else conflict.
    """

    bodies: _Three[_Body]
    append_from: int
    conflicts: list[MergeConflict]

    def merged(self) -> str:
        whole = self.bodies.map(lambda body: slice(0, len(body.lines)))
        return "".join(self._lines(whole, by_section=True))

    def _cut(self, region: _Three[slice]) -> _Three[list[str]]:
        return _Three(*(body.lines[part] for body, part in zip(self.bodies, region, strict=True)))

    def _lines(self, ranges: _Three[slice], *, by_section: bool) -> list[str]:
        texts = self._cut(ranges)
        result: list[str] = []
        reached = 0
        for region in regions(*texts):
            result += texts.base[reached : region.base.start]
            reached = region.base.stop
            moved = (
                slice(whole.start + part.start, whole.start + part.stop)
                for whole, part in zip(ranges, region, strict=True)
            )
            result += self._region(_Three(*moved), by_section=by_section)
        return result + texts.base[reached:]

    def _region(self, region: _Three[slice], *, by_section: bool) -> list[str]:
        texts = self._cut(region)
        agreed = texts.agreed()
        if agreed:
            return agreed[0]
        if by_section and any(body.headings_in(part) for body, part in zip(self.bodies, region, strict=True)):
            return self._sections(region)
        if not texts.base and self._appends(region.base.start):
            return [*texts.theirs, *texts.ours]
        return self._conflict("lines", region)

    def _appends(self, line: int) -> bool:
        body = self.bodies.base
        starts = body.document.lines.starts
        number = body.first + line
        return (starts[number] if number < len(starts) else len(body.document.text)) >= self.append_from

    def _sections(self, region: _Three[slice]) -> list[str]:
        """A region that holds headings: the sections in it are merged each for itself."""
        pieces = _Three(*(body.pieces(part) for body, part in zip(self.bodies, region, strict=True)))
        order = _merged_order(pieces.map(list))
        if order is None:
            return self._conflict("section", region)
        return [line for key in order for line in self._section(pieces, key, region)]

    def _section(
        self, pieces: _Three[dict[_PieceKey, slice]], key: _PieceKey, region: _Three[slice]
    ) -> list[str]:
        parts = pieces.map(lambda side: side.get(key))
        texts = _Three(
            *(
                None if part is None else body.lines[part]
                for body, part in zip(self.bodies, parts, strict=True)
            )
        )
        agreed = texts.agreed()
        if agreed:
            return agreed[0] or []
        base, ours, theirs = parts
        if base is not None and ours is not None and theirs is not None:
            return self._lines(_Three(base, ours, theirs), by_section=False)
        if base is None and ours is not None and theirs is not None:
            added = self._added_section(ours, theirs)
            if added:
                return added
        # What a side has not got is an empty stretch where its region begins.
        places = (
            slice(whole.start, whole.start) if part is None else part
            for part, whole in zip(parts, region, strict=True)
        )
        return self._conflict("section", _Three(*places))

    def _added_section(self, ours: slice, theirs: slice) -> list[str] | None:
        """A section that both sides added under the same heading: one heading, and under it what both say."""
        head_ours, rest_ours = self.bodies.ours.split_heading(ours)
        head_theirs, rest_theirs = self.bodies.theirs.split_heading(theirs)
        if "".join(head_ours).strip() != "".join(head_theirs).strip():
            return None
        if rest_ours == rest_theirs:
            return head_theirs + rest_theirs
        return head_theirs + rest_theirs + rest_ours

    def _conflict(self, kind: ConflictKind, region: _Three[slice]) -> list[str]:
        texts = self._cut(region)
        theirs = self.bodies.theirs
        line = region.theirs.start
        named, at = (theirs, line) if texts.theirs else (self.bodies.ours, region.ours.start)
        if kind == "section":
            # Its heading may stand behind blank lines.
            at += next((n for n, text in enumerate(named.lines[at:]) if text.strip()), 0)
        self.conflicts.append(
            MergeConflict(
                kind=kind,
                where=named.heading_path(at),
                line=max(1, min(theirs.first + line + 1, len(theirs.document.lines))),
                base="".join(texts.base),
                ours="".join(texts.ours),
                theirs="".join(texts.theirs),
            )
        )
        return []


def _merged_text(texts: _Three[str]) -> str | None:
    """Texts merged by lines, or None when that conflicts."""
    lines = texts.map(lambda text: [text[slice(*Lines(text).span(n + 1))] for n in range(len(Lines(text)))])
    result: list[str] = []
    reached = 0
    for region in regions(*lines):
        cut = _Three(lines.base[region.base], lines.ours[region.ours], lines.theirs[region.theirs])
        agreed = cut.agreed()
        if not agreed and cut.base:
            return None
        result += lines.base[reached : region.base.start]
        result += agreed[0] if agreed else [*cut.theirs, *cut.ours]
        reached = region.base.stop
    return "".join([*result, *lines.base[reached:]])


# ------------------------------------------------------------------------------------------- frontmatter


class _Entry(NamedTuple):
    """A key of a block mapping: the comments and blank lines above it; its own lines, from offset `at` on."""

    lead: str
    own: str
    at: int
    member: Member
    document: Document

    @property
    def node(self) -> Node:
        return self.member.node

    @property
    def value(self) -> Any:
        return self.member.node.value

    def within(self, start: int, end: int) -> str:
        return self.own[start - self.at : end - self.at]

    def inner(self) -> tuple[str, _Block] | None:
        """The line of the key, and the block mapping under it."""
        node, end = self.node, self.at + len(self.own)
        head_end = _line(self.document, self.member.key_span.end - 1).end
        if node.kind != "mapping" or node.style != "block" or node.anchored:
            return None
        if node.members[0].key_span.start < head_end:
            return None
        block = _Block.of_mapping(self.document, node, Span(head_end, end))
        return (self.within(self.at, head_end), block) if block else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """The lines of a block mapping: its keys, what follows the last, and the `---` lines of frontmatter."""

    entries: dict[str, _Entry]
    tail: str
    fence: tuple[str, str] = ("", "")

    @classmethod
    def of_frontmatter(cls, document: Document) -> _Block | None:
        """Of frontmatter, or of its absence; None when it cannot be taken apart key by key."""
        try:
            found = document.frontmatter
        except DocumentRefused:
            return None
        text, node = document.text, found.node
        if found.flaws or (node and (node.style != "block" or node.anchored)):
            return None
        if not found.present and text.startswith("---", found.span.start):
            # A line at the other's place would be enough to make frontmatter of it.
            return None
        block = cls.of_mapping(document, node, found.inner)
        fence = text[found.span.start : found.inner.start], text[found.inner.end : found.span.end]
        return replace(block, fence=fence) if block else None

    @classmethod
    def of_mapping(cls, document: Document, node: Node | None, lines: Span) -> _Block | None:
        """Of a mapping that stands on the whole lines of a span; None when two of its keys share a line."""
        text, at = document.text, lines.start
        entries = {}
        for member in node.members if node else ():
            start = _line(document, member.key_span.start).start
            end = _line(document, max(member.key_span.end, member.node.span.end) - 1).end
            if start < at or end > lines.end:
                return None
            entries[member.key] = _Entry(text[at:start], text[start:end], start, member, document)
            at = end
        return cls(entries=entries, tail=text[at : lines.end])


@dataclass(slots=True)
class _FieldsMerge:
    """A merge of frontmatter by key.

    `values` is what the result must read as: lines of YAML can depend on each other in more ways than their
    keys show (anchors, multi-line text), so the result is read again.
    """

    documents: _Three[Document]
    conflicts: list[MergeConflict]
    values: dict[str, Any] | None = None

    def merged(self, blocks: _Three[_Block]) -> str:
        """The frontmatter, both `---` lines and the byte-order mark included."""
        marks = self.documents.map(lambda document: document.text[: document.frontmatter.span.start]).agreed()
        mark = marks[0] if marks else ""
        text, self.values = self._mapping((), blocks)
        fences = blocks.map(lambda block: block.fence)
        fence = (fences.agreed() or (fences.theirs,))[0]
        if text and not any(fence):
            fence = next((other for other in (fences.theirs, fences.ours) if any(other)), fences.base)
        return f"{mark}{fence[0]}{text}{fence[1]}"

    def check(self, text: str, length: int) -> None:
        """Find a conflict when the first `length` code points of `text` do not read as the merged values."""
        found = _sound(text, self.documents.theirs.limits)
        if not found or found.span.end != length or not _same(found.values, self.values):
            self._conflict((), self.documents.map(lambda document: document.text[: document.body_span.start]))

    def _mapping(self, path: KeyPath, blocks: _Three[_Block]) -> tuple[str, dict[str, Any]]:
        keys = blocks.map(lambda block: list(block.entries))
        parts, values = [], {}
        for key in _merged_order(keys) or _placed(keys.theirs, keys.ours):
            found = self._entry((*path, key), _Three(*(block.entries.get(key) for block in blocks)))
            if found:
                parts.append(found[0])
                values[key] = found[1]
        tails = blocks.map(lambda block: block.tail)
        tail = _merged_text(tails)
        if tail is None:
            self._conflict(path, tails)
        return "".join([*parts, tail or ""]), values

    def _entry(self, path: KeyPath, entries: _Three[_Entry | None]) -> tuple[str, Any] | None:
        """The lines and the value of a key; None when it is gone."""
        texts = entries.map(lambda entry: entry.lead + entry.own if entry else None)
        base, ours, theirs = entries
        if ours is None or theirs is None:
            agreed, kept = texts.agreed(), ours or theirs
            if not agreed:
                self._conflict(path, texts)
            return (agreed[0], kept.value) if agreed and agreed[0] is not None and kept else None
        lead = _merged_text(_Three(base.lead if base else "", ours.lead, theirs.lead))
        known = len(self.conflicts)
        own = self._own(path, base, ours, theirs)
        if len(self.conflicts) == known and (lead is None or own is None):
            self._conflict(path, texts)
        return ((lead or "") + own[0], own[1]) if own else None

    def _own(
        self, path: KeyPath, base: _Entry | None, ours: _Entry, theirs: _Entry
    ) -> tuple[str, Any] | None:
        agreed = _Three(base.own if base else None, ours.own, theirs.own).agreed()
        if agreed:
            return (theirs.own, theirs.value) if agreed[0] == theirs.own else (ours.own, ours.value)
        # Lines that say the same in other words give way, but not with a comment in them.
        for side, other in (ours, theirs), (theirs, ours):
            if "#" not in side.own and any(e and _same(side.value, e.value) for e in (base, other)):
                return other.own, other.value
        if base:
            inner = _Three(base.inner(), ours.inner(), theirs.inner())
            if inner.base and inner.ours and inner.theirs:
                head = _Three(inner.base[0], inner.ours[0], inner.theirs[0]).agreed()
                blocks = _Three(inner.base[1], inner.ours[1], inner.theirs[1])
                text, values = self._mapping(path, blocks)
                return (head[0] + text, values) if head else None
        return _merged_list(base, ours, theirs)

    def _conflict(self, path: KeyPath, texts: _Three[str] | _Three[str | None]) -> None:
        base, ours, theirs = (text or "" for text in texts)
        line = _line_of(self.documents.theirs, path)
        self.conflicts.append(
            MergeConflict(kind="field", where=dotted(path), line=line, base=base, ours=ours, theirs=theirs)
        )


def _line(document: Document, offset: int) -> Span:
    return document.lines.span(document.lines.number(offset))


def _line_of(document: Document, path: KeyPath) -> int:
    """The line of the value at `path`, or of what is nearest to it."""
    if not document.tree:
        return 1
    parent = document.tree.find(path[:-1])
    member = parent.member(str(path[-1])) if parent and path else None
    place = member.key_span if member else document.tree.nearest(path).span
    return document.lines.number(place.start)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of equal types: 1, 1.0 and true are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


# ------------------------------------------------------------------------------------------- collections


class _Collection(Generic[K]):
    """The layout of a JSON object or a flow list: what stands before each part, and behind the last."""

    def __init__(self, text: str, node: Node, places: dict[K, Span]) -> None:
        self.brackets = text[node.span.start], text[node.span.end - 1]
        self.commas: dict[K, str] = {}
        at = node.span.start + 1
        gaps = []
        for place in places.values():
            gaps.append(text[at : place.start])
            at = place.end
        self.lead = gaps[0] if gaps else ""
        self.commas = dict(zip(list(places)[1:], gaps[1:], strict=True))
        self.end = text[at : node.span.end - 1]
        self.empty = not places

    @property
    def commented(self) -> bool:
        return any("#" in gap for gap in (self.lead, self.end, *self.commas.values()))

    def joined(self, other: _Collection[K], parts: dict[K, str]) -> str:
        """`parts` in this layout; what it does not know, as in `other`."""
        opening, closing = self.brackets
        if not parts:
            return opening + closing
        layout = other if self.empty else self
        known = next(iter({**self.commas, **other.commas}.values()), f",{layout.lead or ' '}")
        result = [opening]
        for number, (key, part) in enumerate(parts.items()):
            result += [self.commas.get(key, known) if number else layout.lead, part]
        return "".join([*result, layout.end, closing])


_ScalarKey = tuple[str, Any]
_Scalars = dict[_ScalarKey, Node]


def _scalars(entry: _Entry | None) -> _Scalars | None:
    """The items of a list that is a set of one-line scalars; None when it is something else."""
    if entry is None or (entry.node.kind == "scalar" and entry.value is None):
        return {}
    node, lines = entry.node, entry.document.lines
    if node.kind != "list" or node.anchored:
        return None
    items: _Scalars = {}
    for item in node.items:
        start, end = item.span
        plain = item.kind == "scalar" and not item.anchored and start < end
        if not plain or lines.number(start) != lines.number(end - 1):
            return None
        items[type(item.value).__name__, item.value] = item
    return items if len(items) == len(node.items) else None


def _merged_list(base: _Entry | None, ours: _Entry, theirs: _Entry) -> tuple[str, list[Any]] | None:
    """Two lists of scalars merged as sets, in the layout of theirs; None when that cannot be done exactly."""
    if ours.node.kind != "list" or theirs.node.kind != "list":
        return None
    sets = _Three(_scalars(base), _scalars(ours), _scalars(theirs))
    if sets.base is None or sets.ours is None or sets.theirs is None:
        return None
    nodes = _Three(sets.base, sets.ours, sets.theirs)
    # What stands around the items is kept as well; where the styles differ, only comments matter.
    entries = _Three(base, ours, theirs)
    around = _around(theirs)
    if base and len({entry.node.style for entry in (base, ours, theirs)}) == 1:
        agreed = _Three(_around(base), _around(ours), around).agreed()
    else:
        agreed = None if "#" in "".join(_around(ours)) else (around,)
    keys = nodes.map(list)
    order = _merged_order(keys)
    if order is None:
        return None
    kept = [key for key in order if _Three(*(key in side for side in nodes)).agreed() == (True,)]
    if theirs.node.style == "flow":
        text = _flow_list(ours, theirs, nodes, kept)
    else:
        text = _block_list(entries, nodes, kept, theirs)
    if not agreed or not text:
        return None
    values = [(nodes.theirs.get(key) or nodes.ours[key]).value for key in kept]
    return f"{agreed[0][0]}{text}{agreed[0][1]}", values


def _around(entry: _Entry) -> tuple[str, str]:
    """What stands before and behind the items of a list: in a block list, its key's lines and nothing."""
    node, end = entry.node, entry.at + len(entry.own)
    if node.style == "flow":
        return entry.within(entry.at, node.span.start), entry.within(node.span.end, end)
    return entry.within(entry.at, _line(entry.document, node.items[0].span.start).start), ""


def _flow_list(ours: _Entry, theirs: _Entry, nodes: _Three[_Scalars], kept: list[_ScalarKey]) -> str | None:
    texts: dict[_ScalarKey, str] = {}
    layouts: list[_Collection[_ScalarKey]] = []
    for entry, items in (ours, nodes.ours), (theirs, nodes.theirs):
        places = {key: item.span for key, item in items.items()}
        texts |= {key: entry.within(*place) for key, place in places.items()}
        if entry.node.style == "flow":
            layouts.append(_Collection(entry.document.text, entry.node, places))
    if any(layout.commented for layout in layouts):
        return None
    return layouts[-1].joined(layouts[0], {key: texts[key] for key in kept})


def _block_list(
    entries: _Three[_Entry | None], nodes: _Three[_Scalars], kept: list[_ScalarKey], theirs: _Entry
) -> str | None:
    first = theirs.node.items[0].span.start
    lead = theirs.within(_line(theirs.document, first).start, first)
    indent, newline = lead[: len(lead) - len(lead.lstrip(" "))], theirs.document.lines.newline
    sides = _Three(
        *(
            _item_lines(entry, items, indent, newline) if entry else {}
            for entry, items in zip(entries, nodes, strict=True)
        )
    )
    chosen: dict[_ScalarKey, str | None] = {}
    for key in {**sides.base, **sides.ours, **sides.theirs}:
        agreed = _Three(*(side.get(key) for side in sides)).agreed()
        if not agreed:
            return None
        chosen[key] = agreed[0]
    return "".join(chosen[key] or "" for key in kept)


def _item_lines(entry: _Entry, items: _Scalars, indent: str, newline: str) -> dict[_ScalarKey, str]:
    """The lines of each item of a list, with the comments above it, as in a block list with this indent."""
    if entry.node.style == "flow":
        return {key: f"{indent}- {entry.within(*item.span)}{newline}" for key, item in items.items()}
    result = {}
    at: int | None = None
    for key, item in items.items():
        line = _line(entry.document, item.span.start)
        lines = entry.within(line.start if at is None else at, line.end)
        own = entry.within(*line)
        depth = len(own) - len(own.lstrip(" "))
        result[key] = re.sub(rf"(?:(?<=[\r\n])|\A) {{{depth}}}(?![\r\n]|\Z)", indent, lines)
        at = line.end
    return result


# -------------------------------------------------------------------------------------------------- JSON


def _json_root(document: Document) -> Node | None:
    try:
        return None if document.findings else document.tree
    except DocumentRefused:
        return None


@dataclass(slots=True)
class _JsonMerge:
    """A merge of JSON by key: the changes of ours are spliced into the text of theirs."""

    documents: _Three[Document]
    conflicts: list[MergeConflict]

    def merged(self, roots: _Three[Node]) -> Merged:
        text = self._value((), _Three(*roots))
        if self.conflicts:
            return Merged(text=None, conflicts=tuple(self.conflicts))
        start, end = roots.theirs.span
        whole = self.documents.theirs.text
        return Merged(text=f"{whole[:start]}{text}{whole[end:]}")

    def _value(self, path: KeyPath, nodes: _Three[Node | None]) -> str | None:
        """The text of a value; None when it is gone."""
        base, ours, theirs = nodes
        texts: _Three[str | None] = _Three(
            *(
                document.text[slice(*node.span)] if node else None
                for document, node in zip(self.documents, nodes, strict=True)
            )
        )
        agreed = texts.agreed()
        if agreed:
            return agreed[0]
        if _same_node(ours, base) or _same_node(ours, theirs):
            return texts.theirs
        if _same_node(theirs, base):
            return texts.ours
        if ours and theirs and all(node is None or node.kind == "mapping" for node in nodes):
            return self._object(path, nodes)
        self.conflicts.append(
            MergeConflict(
                kind="json",
                where=dotted(path),
                line=_line_of(self.documents.theirs, path),
                base=texts.base or "",
                ours=texts.ours or "",
                theirs=texts.theirs or "",
            )
        )
        return None

    def _object(self, path: KeyPath, nodes: _Three[Node | None]) -> str:
        members = nodes.map(lambda node: {member.key: member for member in node.members} if node else {})
        layouts = [
            _Collection(
                document.text, node, {key: Span(m.key_span.start, m.node.span.end) for key, m in side.items()}
            )
            for document, node, side in zip(self.documents, nodes, members, strict=True)
            if node
        ]
        keys = members.map(list)
        parts: dict[str, str] = {}
        for key in _merged_order(keys) or _placed(keys.theirs, keys.ours):
            found = [side.get(key) for side in members]
            value = self._value((*path, key), _Three(*(member.node if member else None for member in found)))
            named = next((n for n in (2, 1) if found[n]), 0)
            member = found[named]
            if value is not None and member:
                name = self.documents[named].text[member.key_span.start : member.node.span.start]
                parts[key] = name + value
        return layouts[-1].joined(layouts[-2], parts)


def _same_node(one: Node | None, other: Node | None) -> bool:
    return one is other if one is None or other is None else _same(one.value, other.value)
