"""What differs between two versions of a memory: its fields by key, its facts by identity."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import TextEdit, splice
from mdmem.document.merging.facts import Fact, facts_by_node, in_one_line
from mdmem.document.merging.matching import TELLING, Matching, occurrences
from mdmem.document.outline import read_tree
from mdmem.document.text.diff import increasing
from mdmem.document.tree import KeyPath, same
from mdmem.errors import DocumentRefused

FactChangeKind = Literal["added", "removed", "moved", "reordered", "reworded", "repointed"]
FieldChangeKind = Literal["added", "removed", "changed"]
_MASK = "\0"  # stands in no memory
_NOTHING = object()
_NO_MEMORY = parse_text("none.md", "")


class FactChange(NamedTuple):
    """What became of one fact.

    Attributes:
        kind: a fact is "moved" when it stands under another heading or item, or in another memory;
            "reordered" when it passed others there; "repointed" when nothing but the target of links in it
            differs, and "reworded" when its words or its id do.
        before, after: the fact in each version; None in the one that does not have it.
        sure: False where another fact is about as similar.
        moved: whether it moved, whatever else became of it.
        source: the memory that it was in before, when that is another one.
        into: of a fact that moved within its memory, the item or heading that it stands in now.
    """

    kind: FactChangeKind
    before: Fact | None
    after: Fact | None
    sure: bool = True
    moved: bool = False
    source: str = ""
    into: Fact | None = None

    @property
    def fact(self) -> Fact:
        """The fact as it is, or as it was last."""
        fact = self.after or self.before
        if fact is None:
            raise AssertionError("a change is about a fact")
        return fact


class FieldChange(NamedTuple):
    """What became of a field of the frontmatter, or of a JSON memory.

    Attributes:
        key: its keys from the root on; none for a JSON value that is not an object.
        before, after: its value; None also where it is not there.
    """

    kind: FieldChangeKind
    key: KeyPath
    before: Any
    after: Any


class Comparison(NamedTuple):
    """What differs between two versions of a memory.

    Attributes:
        fields: the fields that differ, in the order of the later version; removed ones first.
        facts: the facts that differ, in the order of the later version; a removed one stands where it stood.
        unmatched: how many facts were not compared with all of the other version, since there were too many.
        layout: whether the texts differ in marks and blanks only.
    """

    fields: tuple[FieldChange, ...] = ()
    facts: tuple[FactChange, ...] = ()
    unmatched: int = 0
    layout: bool = False


def compare(before: Document | None, after: Document | None) -> Comparison:
    """Return what differs between two versions of a memory; None is a version in which it is not there.

    Raises:
        TooManyParts: one of them has more parts than its limit.
    """
    if before and after and before.text == after.text:
        return Comparison()
    return follow_facts(before, after, ())[0]


def pair_facts(before: Document | None, after: Document | None) -> list[tuple[Fact, Fact | None]]:
    """Pair each fact of a version with the same fact in the one before; None for a new one."""
    return _Pairing(before or _NO_MEMORY, after or _NO_MEMORY).pairs()


def follow_facts(
    before: Document | None, after: Document | None, meant: Collection[Fact]
) -> tuple[Comparison, list[Fact]]:
    """Return what differs, as `compare`, and the facts that are `meant` as they were in the version before.

    Where facts passed each other, and either may have moved, those that are meant have.
    """
    old, new = (each or _NO_MEMORY for each in (before, after))
    pairing = _Pairing(old, new)
    facts = tuple(pairing.changes(meant))
    fields: tuple[FieldChange, ...] = ()
    if _is_unread(old) or _is_unread(new):
        # Fields that cannot be read in one version are compared as they stand in both.
        facts += tuple(_compare_sources(_read_source(old), _read_source(new)))
    else:
        values = (each.tree.value if each.tree else _NOTHING for each in (old, new))
        fields = tuple(_compare_fields((), *values))
    is_layout = bool(before and after) and not (fields or facts)
    earlier = [was for fact, was in pairing.pairs() if was and fact in meant]
    return Comparison(fields, facts, pairing.unmatched, is_layout), earlier


def moved_across(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """Make one move of the removal and the addition of a fact in several memories, by path.

    The move is in the comparison of the memory that has the fact now. Facts pair by their words and block id
    if these were removed once and added once.
    """
    places: dict[Hashable, dict[str, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for path, found in comparisons.items():
        for number, change in enumerate(found.facts):
            if change.kind in {"removed", "added"} and _is_telling(change.fact):
                places[change.fact.id, change.fact.text][change.kind].append((path, number))
    changes: dict[str, list[FactChange | None]] = {path: [*each.facts] for path, each in comparisons.items()}
    for each in places.values():
        if len(each["removed"]) == len(each["added"]) == 1:
            ((source, old),), ((path, new),) = each["removed"], each["added"]
            before, after = comparisons[source].facts[old].before, comparisons[path].facts[new].after
            changes[source][old] = None
            changes[path][new] = FactChange(
                "moved", before, after, moved=True, source=source if source != path else ""
            )
    return {
        path: each._replace(facts=tuple(filter(None, changes[path]))) for path, each in comparisons.items()
    }


def _is_telling(fact: Fact) -> bool:
    """Return whether a fact says enough to be known again in another memory."""
    return bool(fact.id) or (fact.kind != "heading" and len(occurrences(fact.text)) >= TELLING)


def _is_unread(document: Document) -> bool:
    """Return whether some fields of a memory cannot be read."""
    try:
        if document.is_json:
            return not document.tree and bool(document.text.strip())
        front = document.frontmatter
        return bool(front.unread or (front.flaws and not front.node)) or front.form != "YAML"
    except DocumentRefused:
        return True


def _compare_fields(path: KeyPath, before: Any, after: Any) -> Iterator[FieldChange]:
    if not path and (before is _NOTHING or after is _NOTHING):
        there = after if before is _NOTHING else before
        empty: Any = {} if isinstance(there, dict) else _NOTHING
        before, after = (empty if each is _NOTHING else each for each in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield FieldChange("removed", (*path, key), before[key], None)
        for key in after:
            yield from _compare_fields((*path, key), before.get(key, _NOTHING), after[key])
    elif before is _NOTHING and after is not _NOTHING:
        yield FieldChange("added", path, None, after)
    elif after is _NOTHING and before is not _NOTHING:
        yield FieldChange("removed", path, before, None)
    elif before is not _NOTHING and not same(before, after):
        yield FieldChange("changed", path, before, after)


class _Pairing:
    """The facts of two versions, and for each of `old` the index of the same one in `new`, `later`."""

    def __init__(self, before: Document, after: Document) -> None:
        self._documents = before, after
        trees = [read_tree(_NO_MEMORY if each.is_json else each) for each in self._documents]
        old, new = map(facts_by_node, self._documents, trees)
        self.old, self.new = tuple(old.values()), tuple(new.values())
        matching = Matching(*trees)
        self.unmatched = matching.unmatched
        numbers = {node: number for number, node in enumerate(new)}
        others = [numbers.get(other, -1) if (other := matching.partner(node)) else -1 for node in old]
        # What stands in a node keeps its place where the node itself says something else.
        self._place: dict[int | None, int | None] = {None: None, **dict(enumerate(others))}
        self.later = [
            None if other < 0 or node in matching.weak else other
            for node, other in zip(old, others, strict=True)
        ]
        self._unsure = {number for number, node in enumerate(old) if node in matching.unsure}

    def pairs(self) -> list[tuple[Fact, Fact | None]]:
        """Pair each fact of the new version with the same one of the old."""
        earlier = {later: fact for fact, later in zip(self.old, self.later, strict=True)}
        return [(fact, earlier.get(number)) for number, fact in enumerate(self.new)]

    def changes(self, meant: Collection[Fact] = ()) -> Iterator[FactChange]:
        """Yield what differs, in the order of the new version; see `follow_facts`."""
        reordered = self._find_reordered(meant)
        gone: dict[int, list[FactChange]] = defaultdict(list)
        changed: dict[int, FactChange] = {}
        at = -1
        for number, later in enumerate(self.later):
            if later is None:
                gone[at].append(FactChange("removed", self.old[number], None))
                continue
            change = self._compare_facts(number, later, is_reordered=number in reordered)
            if change:
                changed[later] = change
            if not (change and change.moved) and number not in reordered:
                at = later
        yield from gone[-1]
        known = set(self.later)
        for number, fact in enumerate(self.new):
            if number not in known:
                yield FactChange("added", None, fact)
            elif number in changed:
                yield changed[number]
            yield from gone[number]

    def _compare_facts(self, number: int, later: int, *, is_reordered: bool) -> FactChange | None:
        before, after = self.old[number], self.new[later]
        moved = self._place[before.parent] != after.parent
        kind: FactChangeKind
        if (before.text, before.id) != (after.text, after.id):
            kind = "repointed" if self._differ_in_links(before, after) else "reworded"
        elif moved or is_reordered:
            kind = "moved" if moved else "reordered"
        else:
            return None
        into = self.new[after.parent] if moved and after.parent is not None else None
        return FactChange(kind, before, after, number not in self._unsure, moved, into=into)

    def _find_reordered(self, meant: Collection[Fact]) -> set[int]:
        """Return the facts that passed others of the same parent."""
        siblings: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
        for number, later in enumerate(self.later):
            if later is not None and self._place[self.old[number].parent] == self.new[later].parent:
                siblings[self.old[number].parent].append((later, number))
        found: set[int] = set()
        for each in siblings.values():
            runs = [pair for pair in each if self.new[pair[0]] not in meant], each
            others, every = ([run[at] for at in increasing([later for later, _ in run])] for run in runs)
            stay = others if len(others) == len(every) else every
            found.update(number for _, number in {*each}.difference(stay))
        return found

    def _differ_in_links(self, before: Fact, after: Fact) -> bool:
        old, new = map(_mask_targets, self._documents, self._list_both_targets, (before, after))
        return before.id == after.id and _MASK in old and old == new

    @cached_property
    def _list_both_targets(self) -> tuple[list[Span], list[Span]]:
        before, after = map(_list_targets, self._documents)
        return before, after


def _list_targets(document: Document) -> list[Span]:
    """Return where the targets of links, citations and URLs are written, in order and apart."""
    spans = [Span(link.target_span.start, link.anchor_span.end) for link in document.links]
    spans += [cited.span for cited in document.citations] + [url.span for url in document.urls]
    found: list[Span] = []
    for span in sorted(spans):
        if span.start < span.end and (not found or found[-1].end <= span.start):
            found.append(span)
    return found


def _mask_targets(document: Document, targets: list[Span], fact: Fact) -> str:
    """Return the words of a fact without the targets of its links."""
    inside = targets[bisect_left(targets, fact.span) : bisect_left(targets, (fact.span.end,))]
    first = fact.span.start
    edits = [TextEdit(start - first, end - first, _MASK) for start, end in inside]
    return in_one_line("item", splice(document.text[slice(*fact.span)], edits))


def _compare_sources(old: Fact | None, new: Fact | None) -> Iterator[FactChange]:
    """Yield what became of frontmatter or JSON that cannot be read."""
    if old and new:
        if old.text != new.text:
            yield FactChange("reworded", old, new)
    elif old or new:
        yield FactChange("removed" if old else "added", old, new)


def _read_source(document: Document) -> Fact | None:
    end = len(document.text) if document.is_json else document.body_span.start
    text = document.text[:end].strip(" \t\r\n")
    return Fact("source", "", (), text, Span(0, end), 1, document.lines.number(end), None) if text else None
