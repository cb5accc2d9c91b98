"""The three-way merge of frontmatter and JSON by key, from the source text of each side.

Comments and quoting stay. Of JSON, the changes of ours are spliced into the text of theirs; of frontmatter,
each key has the lines of the side that changed it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from mdmem.diagnostic import Span
from mdmem.document import frontmatter
from mdmem.document.document import Document
from mdmem.document.frontmatter import Frontmatter
from mdmem.document.merging.conflict import Conflicts, value_conflict
from mdmem.document.merging.line_merge import is_clean, join_lines, merge_texts
from mdmem.document.moment import read_date
from mdmem.document.relink import repointed
from mdmem.document.text.diff import Versions, complete, merged_order, placed
from mdmem.document.tree import KeyPath, Member, Node, same
from mdmem.errors import DocumentRefused

K = TypeVar("K")


class Brackets(Generic[K]):
    """The brackets of a collection, and what stands between them and its parts: commas, blanks, line ends.

    `places` are the spans of its parts in `text`, in order.
    """

    def __init__(self, text: str, node: Node, places: Mapping[K, Span]) -> None:
        start, end = node.span
        starts, ends = [place.start for place in places.values()], [place.end for place in places.values()]
        self.gaps = [text[at:to] for at, to in zip([start + 1, *ends], [*starts, end - 1], strict=True)]
        self.commas = dict(zip(list(places)[1:], self.gaps[1:], strict=False))
        self.pair = text[start], text[end - 1]

    def join_parts(self, other: Brackets[K], parts: Mapping[K, str]) -> str:
        """Join `parts` in this layout; commas and blanks that it lacks come from `other`."""
        opening, closing = self.pair
        if not parts:
            return opening + closing
        lead, *gaps = self.gaps if len(self.gaps) > 1 else other.gaps
        usual = next(iter({**self.commas, **other.commas}.values()), f",{lead or ' '}")
        (_, first), *others = parts.items()
        rest = (self.commas.get(key, usual) + part for key, part in others)
        return "".join([opening, lead, first, *rest, *gaps[-1:], closing])


class MergedFields(NamedTuple):
    """Lines of YAML, and what they must read as."""

    text: str
    value: Any


def merge_fields(
    documents: Versions[Document], fronts: Versions[Frontmatter], conflicts: Conflicts
) -> MergedFields | None:
    """Return the frontmatter, with its `---` lines and byte-order mark; None when it cannot be merged by key.

    Lines of YAML depend on each other in more ways than their keys show (anchors, text of several lines), so
    whoever uses the text must check that it reads as the value.

    Frontmatter in `fronts` has no flaws, and may be absent. `conflicts` takes those that are found; with any,
    the value means nothing, nor does unmarked text.
    """
    blocks = complete(documents.paired(fronts, _read_frontmatter_block))
    if not blocks:
        return None
    text, value = _FieldsMerge(documents, conflicts).merge_mapping((), blocks)
    marks = documents.paired(fronts, lambda document, front: document.text[: front.span.start])
    fences = documents.paired(fronts, _split_fence)
    # Where one side removed all fields and the other added some, the lines around them come from the other.
    choices = [*(fences.agreed() or ()), fences.theirs, fences.ours]
    opening, closing = next(fence for fence in choices if any(fence) or not text)
    return MergedFields("".join([*(marks.agreed() or ()), opening, text, closing]), value)


def _split_fence(document: Document, front: Frontmatter) -> tuple[str, str]:
    """Return the `---` lines; empty where there is no frontmatter."""
    (start, end), inner = front.span, front.inner
    return document.text[start : inner.start], document.text[inner.end : end]


# ------------------------------------------------------------------------------------------------ entries


class _Entry(NamedTuple):
    """A key of a block mapping: the comments and blank lines above it, and the span of its own lines."""

    document: Document
    lead: str
    span: Span
    member: Member

    @property
    def node(self) -> Node:
        return self.member.node

    @property
    def own(self) -> str:
        return self.document.text[slice(*self.span)]

    @property
    def fields(self) -> MergedFields:
        return MergedFields(self.own, self.node.value)

    def split_key(self) -> tuple[str, _Block] | None:
        """Return the line of the key, and the block mapping under it."""
        document, node = self.document, self.node
        head_end = document.lines.around(self.member.key_span.end - 1).end
        if node.kind != "mapping" or node.style != "block" or node.anchored:
            return None
        if node.members[0].key_span.start < head_end:
            return None
        block = _read_mapping_block(document, node, Span(head_end, self.span.end))
        return (document.text[self.span.start : head_end], block) if block else None


class _Block(NamedTuple):
    """The lines of a block mapping: its keys, and what follows the last."""

    entries: dict[str, _Entry]
    tail: str


def _read_frontmatter_block(document: Document, front: Frontmatter) -> _Block | None:
    if front.node and (front.node.style != "block" or front.node.anchored):
        return None
    if not front.present and document.text[front.span.start :].lstrip(" \t\r\n").startswith("---"):
        # A line at the other's place would be enough to make frontmatter of it.
        return None
    return _read_mapping_block(document, front.node, front.inner)


def _read_mapping_block(document: Document, node: Node | None, lines: Span) -> _Block | None:
    """Return the mapping on the whole lines of a span; None when two of its keys share a line."""
    text, at = document.text, lines.start
    entries = {}
    for member in node.members if node else ():
        start = document.lines.around(member.key_span.start).start
        end = document.lines.around(max(member.key_span.end, member.node.span.end) - 1).end
        if start < at or end > lines.end:
            return None
        entries[member.key] = _Entry(document, text[at:start], Span(start, end), member)
        at = end
    return _Block(entries, text[at : lines.end])


# -------------------------------------------------------------------------------------------------- merge


@dataclass(slots=True)
class _FieldsMerge:
    """A three-way merge of block mappings in frontmatter, which collects its conflicts."""

    documents: Versions[Document]
    conflicts: Conflicts

    def merge_mapping(self, path: KeyPath, blocks: Versions[_Block]) -> MergedFields:
        keys = blocks.map(lambda block: list(block.entries))
        parts, values = [], {}
        for key in merged_order(keys) or placed(keys.theirs, keys.ours):
            found = None if path else _merge_stamps(key, blocks)
            found = found or self._merge_entry(
                (*path, key), Versions(*(block.entries.get(key) for block in blocks))
            )
            if found:
                parts.append(found.text)
                values[key] = found.value
        tails = blocks.map(lambda block: block.tail)
        tail = tails.agreed() or (self._mark_conflict(path, tails),)
        return MergedFields("".join([*parts, *tail]), values)

    def _merge_entry(self, path: KeyPath, entries: Versions[_Entry | None]) -> MergedFields | None:
        """Return the lines of a key; None when it is gone."""
        base, ours, theirs = entries
        texts = entries.map(lambda entry: entry.lead + entry.own if entry else None)
        known = len(self.conflicts)
        if ours and theirs:
            lead = Versions(base.lead if base else "", ours.lead, theirs.lead).agreed()
            own = self._merge_own(path, base, ours, theirs)
            if lead and own:
                return MergedFields(lead[0] + own.text, own.value)
        else:
            agreed, kept = texts.agreed(), ours or theirs
            if agreed:
                return MergedFields(agreed[0], kept.node.value) if agreed[0] is not None and kept else None
        # Where keys inside of it have told of conflicts, the key itself is not another one.
        return MergedFields(self._mark_conflict(path, texts, told=len(self.conflicts) > known), None)

    def _merge_own(
        self, path: KeyPath, base: _Entry | None, ours: _Entry, theirs: _Entry
    ) -> MergedFields | None:
        """Merge the own lines and value of a key; None in a conflict."""
        agreed = Versions(base.own if base else None, ours.own, theirs.own).agreed()
        if agreed:
            return theirs.fields if agreed[0] == theirs.own else ours.fields
        # Lines that say the same in other words give way, but not with a comment in them.
        for side, other in (ours, theirs), (theirs, ours):
            if "#" not in side.own and any(e and same(side.node.value, e.node.value) for e in (base, other)):
                return other.fields
        inner = complete(Versions(base.split_key() if base else None, ours.split_key(), theirs.split_key()))
        if inner:
            head = inner.map(itemgetter(0)).agreed()
            text, values = self.merge_mapping(path, inner.map(itemgetter(1)))
            return MergedFields(head[0] + text, values) if head else None
        known = complete(Versions(base, ours, theirs))
        return _merged_list(base, ours, theirs) or (self._merge_lines(known) if known else None)

    def _merge_lines(self, known: Versions[_Entry]) -> MergedFields | None:
        """Return a key if one side changed only its links, or a list of mappings merged by its lines."""
        text = repointed(self.documents, known.map(lambda entry: entry.span))
        names = known.map(lambda entry: _count_names(entry.node))
        if text is None and all(names):
            pieces = merge_texts(known.map(lambda entry: entry.own))
            text = join_lines(piece.text for piece in pieces) if is_clean(pieces) else None
        if not text:
            return None
        limits = self.documents.theirs.limits
        front = frontmatter.parse(
            f"---\n{text}---\n", max_depth=limits.max_depth, max_values=limits.max_values
        )
        key = known.theirs.member.key
        if not front.node or front.values.keys() != {key}:
            return None
        is_twice = not _count_names(front.node.members[0].node) <= names.ours | names.theirs
        return None if is_twice else MergedFields(text, front.values[key])

    def _mark_conflict(
        self, path: KeyPath, texts: Versions[str] | Versions[str | None], *, told: bool = False
    ) -> str:
        theirs = self.documents.theirs
        conflict, newline = value_conflict("field", path, theirs, texts), theirs.lines.newline
        if told:
            return self.conflicts.marked(conflict.base, conflict.ours, conflict.theirs, newline)
        return self.conflicts.take(conflict, newline)


def _count_names(node: Node) -> Counter[tuple[str, str]]:
    """Return how often each first member of a mapping, such as its name, stands in a list."""
    firsts = [item.members[0] for item in node.items if item.kind == "mapping" and item.members]
    return Counter((member.key, str(member.node.value)) for member in firsts)


# ------------------------------------------------------------------------------------------------- stamps


def _merge_stamps(key: str, blocks: Versions[_Block]) -> MergedFields | None:
    """Merge a time that mdmem writes itself, if both sides did the same at different moments.

    The later `updated` stays, and the earlier `created`, or `valid_to` if both sides name the same successor.
    Return None for all else.
    """
    base, ours, theirs = (block.entries.get(key) for block in blocks)
    if not (ours and theirs) or ours.lead != theirs.lead or (base and base.own in (ours.own, theirs.own)):
        return None
    successors = blocks.map(lambda block: entry.own if (entry := block.entries.get("superseded_by")) else "")
    is_first = key == "created" or (key == "valid_to" and successors.base != successors.ours)
    if not (key == "updated" or (is_first and base is None and successors.ours == successors.theirs)):
        return None
    mine, yours = read_date(ours.node.value), read_date(theirs.node.value)
    if not (mine and yours and mine.tzinfo and yours.tzinfo) or mine == yours:
        return None
    kept = ours if (mine > yours) == (key == "updated") else theirs
    return MergedFields(kept.lead + kept.own, kept.node.value)


# -------------------------------------------------------------------------------------------------- lists


_Scalar = tuple[str, Any]  # the type of a value, since 1, 1.0 and true are equal, and the value


class _List(NamedTuple):
    """A list of scalars, each once and in one line, or an empty value, which counts as an empty list."""

    entry: _Entry
    places: dict[_Scalar, Span]

    @classmethod
    def of(cls, entry: _Entry) -> _List | None:
        node, lines = entry.node, entry.document.lines
        if node.anchored or not (node.kind == "list" or (node.kind == "scalar" and node.value is None)):
            return None
        for item in node.items:
            start, end = item.span
            plain = item.kind == "scalar" and not item.anchored and start < end
            if not plain or lines.number(start) != lines.number(end - 1):
                return None
        places = {(type(item.value).__name__, item.value): item.span for item in node.items}
        return cls(entry, places) if len(places) == len(node.items) else None

    @property
    def is_flow(self) -> bool:
        return self.entry.node.style == "flow"

    @property
    def span(self) -> Span:
        """The span of the items: the brackets, or the lines from the first item on."""
        entry, node = self.entry, self.entry.node
        if self.is_flow:
            return node.span
        return Span(entry.document.lines.around(node.items[0].span.start).start, entry.span.end)

    @property
    def outer_texts(self) -> tuple[str, str]:
        """The other text in the lines of the key: before the items, and behind them."""
        text = self.entry.document.text
        return text[self.entry.span.start : self.span.start], text[self.span.end : self.entry.span.end]

    def loses_comment(self, like: _List) -> bool:
        """Return whether a comment between the items would have no place in another list."""
        edges = [self.span.start, *chain.from_iterable(self.places.values()), self.span.end]
        between = (self.entry.document.text[s:e] for s, e in zip(edges[::2], edges[1::2], strict=True))
        return (self.is_flow or like.is_flow) and any("#" in text for text in between)

    def find_brackets(self) -> Brackets[_Scalar]:
        return Brackets(self.entry.document.text, self.entry.node, self.places)

    def write_items(self, like: _List) -> dict[_Scalar, str]:
        """Write each item as another list has it: in brackets its value, else its lines."""
        document, text = self.entry.document, self.entry.document.text
        values = {key: text[slice(*place)] for key, place in self.places.items()}
        if like.is_flow:
            return values
        indent = _indentation_at(like.entry.document, like.entry.node.items[0].span)
        if self.is_flow:
            return {k: f"{indent}- {v}{like.entry.document.lines.newline}" for k, v in values.items()}
        result = {}
        at: int | None = None
        for key, place in self.places.items():
            # The comments above an item belong to it; those above the first one, to the list.
            line = document.lines.around(place.start)
            lines = text[line.start if at is None else at : line.end]
            margin = rf"(?:(?<=[\r\n])|\A){_indentation_at(document, place)}(?![\r\n]|\Z)"
            result[key] = re.sub(margin, indent, lines)
            at = line.end
        return result


def _indentation_at(document: Document, place: Span) -> str:
    line = document.text[slice(*document.lines.around(place.start))]
    return line[: len(line) - len(line.lstrip(" "))]


def _merged_list(base: _Entry | None, ours: _Entry, theirs: _Entry) -> MergedFields | None:
    """Return two lists merged as sets, in the layout of theirs; None if that cannot be exact."""
    lists = complete(Versions(base or ours, ours, theirs).map(_List.of))
    if not lists or ours.node.kind != "list" or theirs.node.kind != "list":
        return None
    if not base:
        lists = lists._replace(base=_List(ours, {}))
    like = lists.theirs
    if base and len({side.entry.node.style for side in lists}) == 1:
        around = lists.map(lambda side: side.outer_texts).agreed()
    else:
        # Where the styles differ, only comments would be missed.
        around = None if "#" in "".join(lists.ours.outer_texts) else (like.outer_texts,)
    order = merged_order(lists.map(lambda side: list(side.places)))
    if not around or order is None or lists.ours.loses_comment(like) or like.loses_comment(like):
        return None
    written = lists.map(lambda side: side.write_items(like))
    kept: dict[_Scalar, str] = {}
    for key in {**written.base, **dict.fromkeys(order)}:
        agreed = Versions(*(side.get(key) for side in written)).agreed()
        if not agreed:
            return None
        if agreed[0] is not None:
            kept[key] = agreed[0]
    parts = {key: kept[key] for key in order if key in kept}
    if like.is_flow:
        other = lists.ours if lists.ours.is_flow else like
        text = like.find_brackets().join_parts(other.find_brackets(), parts)
    elif parts:
        text = "".join(parts.values())
    else:
        return None
    return MergedFields(around[0][0] + text + around[0][1], [value for _, value in parts])


_ABSENT = object()


def merged_json(documents: Versions[Document], conflicts: Conflicts) -> str | None:
    """Return the merged text; None when one of the documents is not sound JSON.

    With conflicts the text means nothing, as JSON has no place for marks.
    """
    roots = complete(documents.map(_find_root))
    if not roots:
        return None
    text = _JsonMerge(documents, conflicts).merge_value((), Versions(*roots))
    start, end = roots.theirs.span
    return f"{documents.theirs.text[:start]}{text}{documents.theirs.text[end:]}"


def _find_root(document: Document) -> Node | None:
    try:
        return document.tree if document.is_json and not document.findings else None
    except DocumentRefused:
        return None


@dataclass(slots=True)
class _JsonMerge:
    """A three-way merge of JSON values, which collects its conflicts."""

    documents: Versions[Document]
    conflicts: Conflicts

    def merge_value(self, path: KeyPath, nodes: Versions[Node | None]) -> str | None:
        """Return the text of a value; None when it is gone."""
        texts = self.documents.paired(
            nodes, lambda document, node: document.text[slice(*node.span)] if node else None
        )
        agreed = texts.agreed()
        if agreed:
            return agreed[0]
        # What says the same in other words gives way.
        values = nodes.map(lambda node: node.value if node else _ABSENT)
        if same(values.ours, values.base) or same(values.ours, values.theirs):
            return texts.theirs
        if same(values.theirs, values.base):
            return texts.ours
        if nodes.ours and nodes.theirs and all(node is None or node.kind == "mapping" for node in nodes):
            return self._merge_objects(path, nodes.base, nodes.ours, nodes.theirs)
        united = self._merge_lists(nodes)
        if united is None:
            self.conflicts.take(value_conflict("json", path, self.documents.theirs, texts), "\n")
        return united

    def _merge_lists(self, nodes: Versions[Node | None]) -> str | None:
        """Return lists of scalars, each once, merged as sets; None for other lists."""
        places = complete(nodes.map(_list_scalars))
        order = places and merged_order(places.map(list))
        if not (places and order and nodes.ours and nodes.theirs):
            return None
        stands = {key: places.map(lambda side, key=key: key in side).agreed() for key in order}  # type: ignore[misc]
        (_, mine, yours), (_, ours, theirs) = self.documents, places
        parts = {
            key: yours.text[slice(*theirs[key])] if key in theirs else mine.text[slice(*ours[key])]
            for key in order
            if stands[key] == (True,)
        }
        layout, other = Brackets(yours.text, nodes.theirs, theirs), Brackets(mine.text, nodes.ours, ours)
        return layout.join_parts(other, parts)

    def _merge_objects(self, path: KeyPath, base: Node | None, ours: Node, theirs: Node) -> str:
        members = Versions(base, ours, theirs).map(lambda node: node.members if node else ())
        nodes_by_key = members.map(lambda side: {member.key: member.node for member in side})
        names = {
            member.key: document.text[member.key_span.start : member.node.span.start]
            for document, node in zip(self.documents[1:], (ours, theirs), strict=True)
            for member in node.members
        }
        keys = nodes_by_key.map(list)
        parts: dict[str, str] = {}
        for key in merged_order(keys) or placed(keys.theirs, keys.ours):
            value = self.merge_value((*path, key), Versions(*(side.get(key) for side in nodes_by_key)))
            if value is not None:
                parts[key] = names[key] + value
        layout, other = (
            Brackets(
                document.text, node, {m.key: Span(m.key_span.start, m.node.span.end) for m in node.members}
            )
            for document, node in ((self.documents.theirs, theirs), (self.documents.ours, ours))
        )
        return layout.join_parts(other, parts)


def _list_scalars(node: Node | None) -> dict[_Scalar, Span] | None:
    """Return the items of a JSON list by value; None if they are not scalars, each once."""
    if node is None:
        return {}
    if node.kind != "list" or any(item.kind != "scalar" for item in node.items):
        return None
    places = {(type(item.value).__name__, item.value): item.span for item in node.items}
    return places if len(places) == len(node.items) else None
