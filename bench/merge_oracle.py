"""What a merge of two edits of a note must come to, from the identity of each line: no code of mdmem.

Each line of a note has a number that an edit keeps when it rewords or moves the line. What a line stands in
is read from indentation, markers and blank lines: the item around it, its heading, its block (the lines that
no blank line parts from it), its list or table.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import yaml

ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
DEFINITION = re.compile(r" {0,3}\[([^\]]+)\]:")
RULE = re.compile(r"[ \t]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(?!.*`)")
QUOTE = re.compile(r"[ \t]*>")
COMMENT = re.compile(r"[ \t]*<!--")
PREFIX = re.compile(r"(?:[ \t]*>)*[ \t]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$))?")


class Line(NamedTuple):
    number: int
    text: str


class Place(NamedTuple):
    """What a line stands in, as numbers of lines; a block, list or table has that of its first line."""

    kind: str
    parent: int | None
    heading: int | None
    block: int
    group: int | None


@dataclass
class Version:
    """One version of a note; `moved` are lines, `reshaped` the heads of tables whose columns were changed."""

    lines: list[Line]
    moved: set[int] = field(default_factory=set)
    reshaped: set[int] = field(default_factory=set)

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    @cached_property
    def front(self) -> int:
        """How many lines the frontmatter has, with its dashes."""
        if not self.lines or self.lines[0].text != "---":
            return 0
        ends = (at for at, line in enumerate(self.lines[1:], 2) if line.text == "---")
        return next(ends, 0)

    @cached_property
    def fields(self) -> dict[str, Any] | None:
        """The frontmatter; None where it cannot be read."""
        text = "\n".join(line.text for line in self.lines[1 : max(1, self.front - 1)])
        try:
            read = yaml.load(text, yaml.BaseLoader)
        except yaml.YAMLError:
            return None
        return read if isinstance(read, dict) else None if read else {}

    @cached_property
    def places(self) -> dict[int, Place]:
        return dict(_Reader(self.lines[self.front :]).read())

    @cached_property
    def keys(self) -> dict[int, str]:
        """The words of each line of the body that has any, without its marker and indentation."""
        return {line.number: key(line.text) for line in self.lines[self.front :] if line.text.strip()}

    @cached_property
    def blocks(self) -> dict[int, set[int]]:
        return _members((place.block, number) for number, place in self.places.items())

    @cached_property
    def groups(self) -> dict[int, set[int]]:
        return _members((p.group, number) for number, p in self.places.items() if p.group is not None)

    def block(self, number: int) -> set[int]:
        return self.blocks[self.places[number].block] if number in self.places else set()

    def group(self, number: int) -> set[int]:
        group = self.places[number].group
        return self.groups[group] if group is not None else set()

    @cached_property
    def items(self) -> set[int]:
        return {number for number, place in self.places.items() if place.kind == "item"}

    def chain(self, place: Place) -> Iterator[int]:
        """The items around a line, from the inmost."""
        parent = place.parent
        while parent is not None:
            yield parent
            parent = self.places[parent].parent

    def neighbours(self, number: int, among: set[int]) -> list[int]:
        """The nearest lines before and behind, among those."""
        order = list(self.places)
        at = order.index(number)
        before = (each for each in reversed(order[:at]) if each in among)
        behind = (each for each in order[at + 1 :] if each in among)
        return [each for each in (next(before, None), next(behind, None)) if each is not None]


def key(text: str) -> str:
    """What a line says, whatever its marker and its indentation."""
    return text[len(m[0]) if (m := PREFIX.match(text)) else 0 :].strip() or text.strip()


def _members(pairs: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    sets: dict[int, set[int]] = defaultdict(set)
    for name, number in pairs:
        sets[name].add(number)
    return sets


def width(text: str) -> int:
    """The columns of the indentation, a tab to the next fourth."""
    lead = text[: len(text) - len(text.lstrip(" \t"))]
    return len(lead.expandtabs(4))


class _Reader:
    """Reads what each line of a body stands in."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.items: list[tuple[int, int]] = []  # where the text of each open item begins, and the item
        self.headings: list[tuple[int, int]] = []
        self.lists: dict[int | None, tuple[int, str]] = {}  # the open list below each item, and its bullet
        self.end = ""  # of an open fence or comment
        self.above: Place | None = None  # None behind a blank line

    def read(self) -> Iterator[tuple[int, Place]]:
        for at, (number, text) in enumerate(self.lines):
            if self.end and self.items and text.strip() and width(text) < self.items[-1][0]:
                self.end, self.above = "", None
            if self.end and self.above:
                place = self.above
                if _closes(text, self.end):
                    self.end, self.above = "", None
            elif not text.strip():
                self.above = None
                continue
            else:
                place = self.above = self._continued(at) or self._begun(at)
                if place.kind == "html" and not self.end:
                    self.above = None
            yield number, place

    def _is_head(self, at: int) -> bool:
        behind = self.lines[at + 1].text if at + 1 < len(self.lines) else ""
        return "|" in self.lines[at].text and bool(DELIMITER.match(behind))

    def _continued(self, at: int) -> Place | None:
        """Lazy or not, a line that begins nothing continues what stands above it."""
        (number, text), above = self.lines[at], self.above
        if above is None or above.kind not in {"item", "text", "quote", "row"}:
            return None
        item = ITEM.match(text)
        # A list that begins with another number than 1 does not interrupt a paragraph.
        is_text = (
            item and item[2][:-1] not in {"", "1"} and (not self.items or width(text) >= self.items[-1][0])
        )
        if _begins(text) and not (is_text and above.kind in {"item", "text"}):
            return None
        if above.kind == "item":
            above = above._replace(kind="text", parent=above.block, group=None)
        if above.kind == "text" and self._is_head(at):
            return above._replace(kind="row", block=number, group=number)
        return above

    def _begun(self, at: int) -> Place:
        number, text = self.lines[at]
        while self.items and width(text) < self.items[-1][0]:
            self.items.pop()
        parent = self.items[-1][1] if self.items else None
        block, group, above = number, None, self.above
        kind = _begins(text) or ("row" if self._is_head(at) else "text")
        if kind == "item":
            group = self._item(number, text, parent)
        else:
            self.lists.pop(parent, None)
        if kind == "heading":
            depth = len(text.split()[0])
            self.headings = [each for each in self.headings if each[0] < depth]
        elif kind == "row":
            group = number
        elif kind == "quote" and above and (above.kind, above.parent) == ("quote", parent):
            block = above.block
        elif kind == "text" and DEFINITION.match(text):
            kind = "definition"
        elif kind in {"code", "html"}:
            self.end = fence[1] if (fence := FENCE.match(text)) else "" if "-->" in text else "-->"
        place = Place(kind, parent, self.headings[-1][1] if self.headings else None, block, group)
        if kind == "heading":
            self.headings.append((len(text.split()[0]), number))
        return place

    def _item(self, number: int, text: str, parent: int | None) -> int:
        """Open an item, and give the first one of its list."""
        match = ITEM.match(text)
        assert match
        lead, marker, gap = match.groups()
        begins = len(f"{lead}{marker}".expandtabs(4)) + min(len(gap.expandtabs(4)) or 1, 4)
        first, bullet = self.lists.get(parent, (number, ""))
        group = first if bullet == marker[-1] else number
        self.lists[parent] = group, marker[-1]
        self.items.append((begins, number))
        return group


def _begins(text: str) -> str:
    """What a line begins, whatever stands above it; empty for a line of text or of a table."""
    if RULE.match(text):
        return "rule"
    kinds = {"heading": HEADING, "code": FENCE, "item": ITEM, "quote": QUOTE, "html": COMMENT}
    return next((kind for kind, pattern in kinds.items() if pattern.match(text)), "")


def _closes(text: str, end: str) -> bool:
    stripped = text.strip()
    return end in text if end == "-->" else stripped.startswith(end) and not stripped.strip("`~")


class Pair(NamedTuple):
    """A note, and what two people made of it."""

    name: str
    base: Version
    ours: Version
    theirs: Version
    edits: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[Version, Version, Version]:
        return self.base, self.ours, self.theirs

    @property
    def sides(self) -> tuple[tuple[Version, Version], tuple[Version, Version]]:
        return (self.ours, self.theirs), (self.theirs, self.ours)

    def said(self) -> Iterator[tuple[int, str | None, str | None, str | None]]:
        """Each line with its words in the base, in ours and in theirs."""
        keys = [version.keys for version in self.versions]
        for number in dict.fromkeys(each for version in keys for each in version):
            before, mine, yours = (version.get(number) for version in keys)
            yield number, before, mine, yours

    def fields(self) -> Iterator[tuple[str, Any, Any, Any]]:
        """Each field with its values."""
        fields = [version.fields or {} for version in self.versions]
        for name in {each for version in fields for each in version}:
            before, mine, yours = (version.get(name) for version in fields)
            yield name, before, mine, yours


class Verdict(NamedTuple):
    """What is wrong with a clean text."""

    lost: list[str]
    doubled: list[str]
    wrong: list[str]


def _both_changed(before: Any, mine: Any, yours: Any) -> bool:
    return before not in (mine, yours) and mine != yours


def _agreed(before: Any, mine: Any, yours: Any) -> Any:
    return yours if mine == before else mine


# ---------------------------------------------------------------------------------------- what must conflict


def demands(pair: Pair) -> tuple[list[str], list[str]]:
    """Why the pair must be a conflict, and why it may be one."""
    base = pair.base
    found = [(True, f"both changed the field {name}") for name, *values in pair.fields() if _is_one(*values)]
    for number, before, mine, yours in pair.said():
        if _both_changed(before, mine, yours):
            found.append((True, f"both changed: {before}"))
        elif (
            before
            and None in {mine, yours}
            and number in (pair.ours.moved | pair.theirs.moved)
            and mine != yours
        ):
            found.append((False, f"removed and moved: {before}"))
    if pair.ours.moved & pair.theirs.moved:
        found.append((False, "both moved the same"))
    for side, other in pair.sides:
        for head in side.reshaped & base.groups.keys():
            rows = other.group(head) if head in other.places else set()
            is_other = rows != base.groups[head] or any(other.keys[row] != base.keys[row] for row in rows)
            if is_other and not (rows and _says_same(side, other, head)):
                found.append((True, f"columns changed, and a row: {base.keys[head]}"))
        for number, said in side.keys.items():
            was, now = base.places.get(number), side.places[number]
            if not was or (was.parent, was.heading) != (now.parent, now.heading):
                reasons = _put_into_what_is_gone(base, side, other, number)
                found += [(must and not was, f"put {reason}: {said}") for must, reason in reasons]
    ones, others = (_labels(base, side) for side in (pair.ours, pair.theirs))
    twice = [label for label in ones.keys() & others.keys() if ones[label] != others[label]]
    found += [(True, f"both define {label}") for label in twice]
    return [reason for must, reason in found if must], [reason for must, reason in found if not must]


def _says_same(side: Version, other: Version, head: int) -> bool:
    """Whether both sides have the same lines in a table."""
    rows = side.group(head)
    return rows == other.group(head) and all(side.keys[row] == other.keys[row] for row in rows)


def _is_one(*values: Any) -> bool:
    """Whether a field has values that cannot both be kept, as lists can."""
    return _both_changed(*values) and not all(isinstance(value, list) for value in values)


def _labels(base: Version, side: Version) -> dict[str, str]:
    added = [line.text for line in side.lines if line.number not in base.keys]
    return {match[1].casefold(): key(text) for text in added if (match := DEFINITION.match(text))}


def _put_into_what_is_gone(
    base: Version, side: Version, other: Version, number: int
) -> Iterator[tuple[bool, str]]:
    """Why a line stands in what the other side removed, and whether that must be a conflict."""
    place, gone = side.places[number], base.keys.keys() - other.keys.keys()
    block, group = side.block(number) & base.keys.keys(), side.group(number) & base.keys.keys()
    if place.parent in gone:
        yield True, "into an item that is gone"
    if block and place.kind != "row" and block <= gone:
        yield True, "into a block that is gone"
    if group and group <= gone:
        yield len(group) > 1, "into a list or table that is gone"
    elif group and not any(other.places[each].kind == place.kind for each in group - gone):
        yield True, "into a list or table that is none any more"
    elif place.kind == "row" and place.group in gone:
        yield True, "into a table whose head is gone"
    if place.heading in gone and place.parent is None:
        section = {each for each, was in base.places.items() if was.heading == place.heading}
        yield bool(section) and section <= gone, "into a section that is gone"
    near, above = side.neighbours(number, {*base.keys}), side.neighbours(number, {*side.places})[:1]
    if (near and {*near} <= gone) or gone & {*above}:
        yield False, "beside what is gone"


# ---------------------------------------------------------------------------------------- what a text must be


def judge(pair: Pair, text: str) -> Verdict:
    """What is wrong with a clean text."""
    expected = {number: said for number, *keys in pair.said() if (said := _agreed(*keys))}
    merged = _numbered(text, expected)
    wanted, actual = Counter(expected.values()), Counter(merged.keys.values())
    doubled = actual - wanted
    came_back = [said for n, said in pair.base.keys.items() if n not in expected and said in doubled]
    wrong = [f"no conflict: {reason}" for reason in demands(pair)[0]]
    wrong += [f"came back: {said}" for said in came_back]
    wrong += [*_wrong_fields(pair, merged), *_wrong_order(pair, merged)]
    for number in merged.places.keys() & expected.keys():
        wrong += [f"{reason}: {expected[number]}" for reason in _misplaced(pair, merged, number)]
    doubled -= Counter(came_back)
    return Verdict([*(wanted - actual).elements()], [*doubled.elements()], wrong)


def missing(pair: Pair, text: str) -> list[str]:
    """The lines that a side added or both kept, and that are nowhere in a text with conflicts."""
    there = {key(line) for line in text.splitlines()}
    kept = {before for _, before, mine, yours in pair.said() if before == mine == yours}
    added = {said for _, before, *sides in pair.said() for said in sides if said != before}
    return [said for said in kept | added if said and said not in there]


def _numbered(text: str, expected: dict[int, str]) -> Version:
    """A text, its lines with the numbers of those that say the same; others have negative ones."""
    counts = Counter(expected.values())
    numbers = {said: number for number, said in expected.items() if counts[said] == 1}
    lines = [Line(-at, line) for at, line in enumerate(text.splitlines(), 1)]
    for at in range(Version(lines).front, len(lines)):
        lines[at] = Line(numbers.pop(key(lines[at].text), lines[at].number), lines[at].text)
    return Version(lines)


def _wrong_fields(pair: Pair, merged: Version) -> Iterator[str]:
    fields = dict(merged.fields or {})
    for name, before, mine, yours in pair.fields():
        value, found = _agreed(before, mine, yours), fields.pop(name, None)
        if all(isinstance(each, list) for each in (before, mine, yours, found)):
            gone = {each for each in map(str, before) if each not in mine or each not in yours}
            value, found = sorted({*map(str, mine), *map(str, yours)} - gone), sorted(map(str, found))
        if found != value:
            yield f"the field {name} is {found!r} and not {value!r}"
    if fields or merged.fields is None:
        yield f"fields of nobody: {fields}"


def _wrong_order(pair: Pair, merged: Version) -> Iterator[str]:
    """Whether what a side put in an order is in it, but for what the other moved and what was put beside."""
    base = {*pair.base.keys}
    for side, other in pair.sides:
        free = {*other.moved}
        put = {number for number in side.places if number not in base or number in side.moved}
        for number in put if free else ():
            place = side.places[number]
            if other.moved & {*side.neighbours(number, base - {number}), place.parent, place.heading}:
                free.add(number)
        # What has come into another item goes where that stands.
        same = {
            n
            for n, place in merged.places.items()
            if n in side.places and place.parent == side.places[n].parent
        }
        order = [number for number in side.places if number in same - free]
        found = [number for number in merged.places if number in same - free]
        for parent in {merged.places[number].parent for number in found}:
            was, now = ([n for n in each if merged.places[n].parent == parent] for each in (order, found))
            yield from (
                f"in another order: {merged.keys.get(n)}" for n, m in zip(now, was, strict=True) if n != m
            )


def _misplaced(pair: Pair, merged: Version, number: int) -> Iterator[str]:
    if number in pair.base.places:
        yield from _misplaced_from_base(pair, merged, number)
    else:
        side, other = pair.sides[number not in pair.ours.places]
        yield from _misplaced_addition(pair.base, side, other, merged, number)
    if merged.places[number].kind in {"row", "code", "html"}:
        return
    allowed = {number}
    for _ in range(3):
        allowed |= {each for n in allowed for side in (pair.ours, pair.theirs) for each in side.block(n)}
    others = {each for each in merged.block(number) - allowed if each > 0}
    if others:
        yield f"glued to {merged.keys[min(others)]!r}"
    partners = (pair.ours.block(number) & pair.theirs.block(number) & merged.places.keys()) - {number}
    if partners and not partners & merged.block(number):
        yield "parted from its block"


def _misplaced_from_base(pair: Pair, merged: Version, number: int) -> Iterator[str]:
    if any(number not in version.places for version in pair.versions):
        return
    place = merged.places[number]
    for name in ("kind", "parent", "heading") if place.parent is None else ("kind", "parent"):
        before, mine, yours = (getattr(version.places[number], name) for version in pair.versions)
        value = _agreed(before, mine, yours)
        gone = value in pair.base.places and any(value not in version.places for version in pair.versions)
        if getattr(place, name) != value and not gone and not _both_changed(before, mine, yours):
            yield f"its {name} is {getattr(place, name)!r} and not {value!r}"


def _misplaced_addition(
    base: Version, side: Version, other: Version, merged: Version, number: int
) -> Iterator[str]:
    given, place = side.places[number], merged.places[number]
    near = [each for each in side.neighbours(number, {*base.places}) if each in other.places]
    siblings = [each for each in side.group(number) if each in base.places and each in other.places]
    # What the other side made of the lines beside it may be right for it, too.
    parents = {given.parent} | {
        other.places[each].parent
        for each in [*near, *siblings]
        if other.places[each].parent != base.places[each].parent and side.places[each].parent == given.parent
    }
    headings = {given.heading} | {
        other.places[each].heading for each in near if side.places[each].heading == given.heading
    }
    block = (side.block(number) - {number}) & merged.places.keys()
    items = {each for each in siblings if each in merged.items}
    is_apart = given.kind in {"row", "code", "html"}
    yield from _reasons(
        (f"it is {place.kind} and not {given.kind}", place.kind != given.kind),
        ("it stands in another item", place.parent not in parents),
        ("it stands under another heading", place.parent is None and place.heading not in headings),
        ("it stands in another table", given.kind == "row" and place.group != given.group),
        ("parted from what it was glued to", block and not is_apart and not block & merged.block(number)),
        ("it stands in another list", given.kind == "item" and items and not items & merged.group(number)),
    )


def _reasons(*found: tuple[str, object]) -> Iterator[str]:
    return (reason for reason, is_so in found if is_so)
