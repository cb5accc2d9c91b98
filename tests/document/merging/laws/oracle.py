"""Which law a clean merge breaks, from the identity of each line: no code of mdmem.

Each line of a file has a number, which an edit keeps when it rewords, moves or indents the line, so that it
is known of each version what became of it. What a line stands in is read from indentation, markers and blank
lines: its heading, the item around it, and its block, which is a paragraph, a table, or a leaf.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAVES = frozenset({"code", "html", "math", "quote", "footnote", "term"})

HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])(?:([ \t]+)(?=\S)|[ \t]*$)")
DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_RULE = re.compile(r"[ \t]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_FENCE = re.compile(r"[ \t]*(`{3,}(?!.*`)|~{3,})")
_QUOTE = re.compile(r"[ \t]*>")
_HTML = re.compile(
    r"[ \t]*</?(?:details|summary|div|p|ul|ol|li|table|t[rdh]|thead|tbody|center|h\d|section|picture|figure"
    r"|dl|dt|dd|hr|br|form|iframe|nav|header|footer|aside|main|article|link|meta|pre|script|style)\b"
    r"|[ \t]*<!--",
    re.IGNORECASE,
)
_TAG_ALONE = re.compile(r"[ \t]*</?[A-Za-z][\w.-]*(?:\s[^<>]*)?/?>\s*$")
_FOOTNOTE = re.compile(r" {0,3}\[\^[^\]]+\]:")
_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:")
_TERM = re.compile(r" {0,3}:[ \t]+\S")
_PREFIX = re.compile(r"(?:[ \t]*>)*[ \t]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$))?(?:\[.\][ \t]+)?")
_MARKER = re.compile(r"(<|=|>)\1{6,}(?:[ \t]|$)")


class Line(NamedTuple):
    """A line, without its end, and the number that it has in each version."""

    number: int
    text: str


class Place(NamedTuple):
    """What a line stands in, each by the number of its first line."""

    kind: str
    heading: int | None
    item: int | None
    block: int


@dataclass(frozen=True)
class Version:
    """One version of a file; `moved` are lines that its author put elsewhere."""

    lines: tuple[Line, ...]
    newline: str = "\n"
    moved: frozenset[int] = frozenset()

    @cached_property
    def text(self) -> str:
        return "".join(f"{line.text}{self.newline}" for line in self.lines)

    @cached_property
    def front(self) -> int:
        """How many lines the frontmatter has, with its dashes."""
        if not self.lines or self.lines[0].text.rstrip() != "---":
            return 0
        return next((at for at, line in enumerate(self.lines[1:], 2) if line.text.rstrip() == "---"), 0)

    @cached_property
    def places(self) -> dict[int, Place]:
        return dict(_Reader(self.lines[self.front :]).read())

    @cached_property
    def keys(self) -> dict[int, str]:
        """The words of each line of the body that has any."""
        return {line.number: key(line.text) for line in self.lines[self.front :] if line.text.strip()}

    @cached_property
    def order(self) -> dict[int, int]:
        """Where each line of the body that has words stands among these."""
        return {number: at for at, number in enumerate(self.keys)}

    def members(self, number: int) -> set[int]:
        """What stands in a heading, an item or a block, without its first line."""
        found = {number}
        for each, place in self.places.items():
            if {place.heading, place.item, place.block} & found:
                found.add(each)
        return found - {number}


def key(text: str) -> str:
    """What a line says, whatever its marker, box and indentation."""
    return text[len(m[0]) if (m := _PREFIX.match(text)) else 0 :].strip() or text.strip()


def split_row(text: str) -> list[str]:
    """The cells of a row."""
    return re.split(r"(?<!\\)\|", text.strip().removeprefix("|").removesuffix("|"))


def width(text: str) -> int:
    """The columns of the indentation, a tab to the next fourth."""
    return len(text[: len(text) - len(text.lstrip(" \t"))].expandtabs(4))


class _Reader:
    """Reads what each line of a body stands in."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.items: list[
            tuple[int, int]
        ] = []  # the column where what is in an open item begins, and the item
        self.headings: list[tuple[int, int]] = []
        self.end: re.Pattern[str] | None = None  # of an open fence or comment
        self.above: Place | None = None  # None behind a blank line
        self.note: Place | None = None  # the footnote that indented lines go on with
        self.code: tuple[int, Place] | None = None  # the last line of indented code

    def read(self) -> Iterator[tuple[int, Place]]:
        for at, (number, text) in enumerate(self.lines):
            if self.end and self.items and text.strip() and width(text) < self.items[-1][0]:
                self.end = self.above = None
            if self.end and self.above:
                place = self.above
                if self.end.search(text):
                    self.end = self.above = None
            elif not text.strip():
                self.above = None
                continue
            else:
                place = self.above = self._continue(at) or self._begin(at)
                if place.kind == "html" and self.end and self.end.search(text.partition("<!--")[2] or ""):
                    self.end = self.above = None
                if place.kind in {"heading", "rule"}:
                    self.above = None
                if place.kind == "code" and not self.end:
                    self.code = number, place
            yield number, place

    def _is_head(self, at: int) -> bool:
        behind = self.lines[at + 1].text if at + 1 < len(self.lines) else ""
        head = self.lines[at].text
        if "|" not in head or "|" not in behind or not DELIMITER.match(behind):
            return False
        return len(split_row(head)) == len(split_row(behind))

    def _continue(self, at: int) -> Place | None:
        """Lazy or not, a line that begins nothing goes on with what stands above it."""
        (_, text), above = self.lines[at], self.above
        if above is None:
            return self.note if self.note and width(text) >= 4 else None
        if above.kind == "html" or (above.kind == "quote" and _QUOTE.match(text)):
            return above
        begun = self._interrupt(text, above)
        if begun == "term":
            return above._replace(kind="term")
        if begun or self._is_head(at) or above.kind not in {"item", "text", "row", *LEAVES}:
            return None
        return above._replace(kind="text", item=above.block) if above.kind == "item" else above

    def _interrupt(self, text: str, above: Place) -> str:
        """What a line begins right below another; empty where it goes on with it."""
        begun, item = _begins(text), ITEM.match(text)
        inner = self.items[-1][0] if self.items else 0
        if begun == "term":
            return begun if above.kind in {"text", "term", "item"} else ""
        if above.kind in {"text", "item"}:
            if width(text) >= inner + 4:
                return ""  # what is indented more does not interrupt
            if item and begun == "item" and not _may_interrupt(item) and width(text) >= inner:
                return ""
        return begun

    def _begin(self, at: int) -> Place:
        number, text = self.lines[at]
        while self.items and width(text) < self.items[-1][0]:
            self.items.pop()
        kind = self._name_kind(at)
        if kind == "code" and (above := self._find_code_above(at)):
            return above
        self.end = None
        level = HEADING.match(text) if kind == "heading" else None
        if level:
            self.headings = [each for each in self.headings if each[0] < len(level[1])]
        heading = self.headings[-1][1] if self.headings else None
        place = Place(kind, heading, self.items[-1][1] if self.items else None, number)
        if level:
            self.headings.append((len(level[1]), number))
        elif kind == "item":
            self._open_item(number, text)
        elif kind == "fence":
            fence = _FENCE.match(text)
            assert fence
            self.end = re.compile(rf"^[ \t]*{re.escape(fence[1])}[`~]*[ \t]*$")
            place = place._replace(kind="code")
        elif kind == "html" and text.lstrip().startswith("<!--"):
            self.end = re.compile("-->")
        self.note = place if kind == "footnote" else None
        return place

    def _name_kind(self, at: int) -> str:
        text = self.lines[at].text
        begun = _begins(text)
        if width(text) - (self.items[-1][0] if self.items else 0) >= 4:
            return "item" if begun == "item" and self.items else "code"
        if begun:
            return begun
        if self._is_head(at):
            return "row"
        if _TAG_ALONE.match(text):
            return "html"
        return "math" if text.lstrip().startswith("$$") else "text"

    def _find_code_above(self, at: int) -> Place | None:
        """Find the indented code that goes on, also behind blank lines."""
        above = next((line.number for line in reversed(self.lines[:at]) if line.text.strip()), None)
        return self.code[1] if self.code and above == self.code[0] else None

    def _open_item(self, number: int, text: str) -> None:
        match = ITEM.match(text)
        assert match
        lead, marker, gap = match.groups()
        begins = len(f"{lead}{marker}".expandtabs(4))
        wide = len(f"{lead}{marker}{gap or ' '}".expandtabs(4)) - begins
        self.items.append((begins + (wide if wide <= 4 else 1), number))


def _begins(text: str) -> str:
    """What a line begins, whatever stands above it; empty for a line of text or of a table."""
    if _RULE.match(text):
        return "rule"
    kinds = {
        "heading": HEADING,
        "fence": _FENCE,
        "item": ITEM,
        "quote": _QUOTE,
        "html": _HTML,
        "footnote": _FOOTNOTE,
        "definition": _DEFINITION,
        "term": _TERM,
    }
    return next((kind for kind, pattern in kinds.items() if pattern.match(text)), "")


def _may_interrupt(item: re.Match[str]) -> bool:
    return item[3] is not None and item[2][:-1] in {"", "1"}


class Pair(NamedTuple):
    """A file, and what two people made of it.

    Attributes:
        name: the file, and what both did.
        must: `conflict` or `clean`, where their edits leave no other verdict; else empty.
        law: the number of the law that says so.
        pieces: the lines that a side made of one, which stay together wherever that one goes.
    """

    name: str
    base: Version
    ours: Version
    theirs: Version
    must: str = ""
    law: int = 0
    pieces: frozenset[int] = frozenset()

    @property
    def versions(self) -> tuple[Version, Version, Version]:
        return self.base, self.ours, self.theirs

    @property
    def sides(self) -> tuple[tuple[Version, Version], tuple[Version, Version]]:
        return (self.ours, self.theirs), (self.theirs, self.ours)

    @property
    def swapped(self) -> Pair:
        return self._replace(ours=self.theirs, theirs=self.ours)


class Marked(NamedTuple):
    """A text, and how many lines stand in it between markers of conflicts."""

    text: str
    between: int

    @property
    def is_clean(self) -> bool:
        return not self.between


def merge_by_git(pair: Pair) -> Marked:
    """Merge the bodies with the real git, behind the frontmatter of the base, which nobody changed."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder, name) for name in ("base", "ours", "theirs")]
        for file, version in zip(names, pair.versions, strict=True):
            file.write_bytes(_body(version).encode())
        base, ours, theirs = map(str, names)
        done = subprocess.run(
            ["git", "merge-file", "-p", ours, base, theirs], check=False, capture_output=True
        )
    assert 0 <= done.returncode < 128, done.stderr
    front = "".join(f"{line.text}{pair.base.newline}" for line in pair.base.lines[: pair.base.front])
    text = front + done.stdout.decode()
    return Marked(text, count_between(text) if done.returncode else 0)


def _body(version: Version) -> str:
    return "".join(f"{line.text}{version.newline}" for line in version.lines[version.front :])


def count_between(text: str) -> int:
    """Count the lines that stand between markers, without the markers; 1 at least where there are any."""
    found, inside = 0, False
    for line in text.splitlines():
        if line.startswith("<<<<<<< "):
            inside, found = True, max(found, 1)
        elif line.startswith(">>>>>>> "):
            inside = False
        elif inside and line != "=======":
            found += 1
    return found


def has_markers(text: str) -> bool:
    """Whether a text holds the markers of a conflict, in this order, whatever they stand in."""
    signs = iter(match[1] for line in text.splitlines() if (match := _MARKER.match(line)))
    return all(sign in signs for sign in "<=>")


# ------------------------------------------------------------------------------------------- a clean text


def find_broken(pair: Pair, text: str) -> list[str]:
    """The laws that a clean text breaks, where git's merge is not clean: what, and with which line."""
    merged = _number_lines(pair, text)
    found = [f"law {pair.law}: it is clean: {pair.name}"] if pair.must == "conflict" else []
    found += [*_find_lost(pair, merged), *_find_strangers(pair, merged), *_find_two_in_leaf(pair)]
    return [*found, *_find_replaced(pair), *_find_crossed(pair, merged), *_find_torn(pair, merged)]


def has_moved_lines(pair: Pair) -> bool:
    """Whether two lines that stand once in the base and on a side have changed their order there."""
    base, *sides = (_place_single_lines(version) for version in pair.versions)
    for side in sides:
        places = [side[said] for said in base if said in side]
        if places != sorted(places):
            return True
    return False


def _place_single_lines(version: Version) -> dict[str, int]:
    said = [line.text.strip() for line in version.lines[version.front :]]
    counts = Counter(said)
    return {text: at for at, text in enumerate(said) if text and counts[text] == 1}


def has_twice(pair: Pair, text: str) -> bool:
    """Whether a text holds something twice, an id or label, that stands once at most in each version."""
    counts = Counter(_list_names(text))
    known = [Counter(_list_names(version.text)) for version in pair.versions]
    return any(count > max(1, *(each[name] for each in known)) for name, count in counts.items())


def _list_names(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip():
            yield key(line)
        yield from re.findall(r" \^[\w-]+$|^ {0,3}\[[^\]]+\]:", line)


def _number_lines(pair: Pair, text: str) -> Version:
    """A text, its lines with the numbers of those that say the same; others have negative ones."""
    numbers: dict[str, set[int]] = {}
    for version in pair.versions:
        for number, said in version.keys.items():
            numbers.setdefault(said, set()).add(number)
    counts = Counter(key(line) for line in text.splitlines())
    lines = []
    for at, line in enumerate(text.splitlines(), 1):
        known = numbers.get(key(line), set())
        is_one = len(known) == 1 and counts[key(line)] == 1
        lines.append(Line(min(known) if is_one else -at, line))
    return Version(tuple(lines))


def _find_lost(pair: Pair, merged: Version) -> Iterator[str]:
    """Yield what is lost, doubled, or came back."""
    counts = Counter(merged.keys.values())
    base, ours, theirs = (version.keys for version in pair.versions)
    said = Counter(each for version in (base, ours, theirs) for each in set(version.values()))
    own = {number for version in pair.versions for number in version.keys}
    for number in sorted(own):
        before, mine, yours = base.get(number), ours.get(number), theirs.get(number)
        if before not in {mine, yours} and mine != yours:
            if before is not None:
                yield f"law 3: both changed {before!r}"
                continue
            if mine and yours:
                yield f"law 6: both added {mine!r} and {yours!r}"
                continue
        wanted = (mine or yours) if before is None else yours if mine == before else mine
        if wanted is not None and not counts[wanted]:
            yield f"law 1: lost {wanted!r}"
        if wanted is None and before is not None and said[before] == 1 and counts[before]:
            yield f"law 4: {before!r} came back"
    known = [Counter(each.values()) for each in (base, ours, theirs)]
    for wanted, often in counts.items():
        if often > 1 and all(each[wanted] <= 1 for each in known):
            yield f"law 6: {wanted!r} stands twice"


def _find_strangers(pair: Pair, merged: Version) -> Iterator[str]:
    """Yield what a side added, and what does not stand in what its author saw it in."""
    for side, other in pair.sides:
        added = side.order.keys() - pair.base.order.keys() - other.order.keys() - pair.pieces
        for number in sorted(added & merged.places.keys()):
            given, place = side.places[number], merged.places[number]
            for name in ("heading", "item", "block"):
                if name == "heading" and given.item is not None:
                    continue
                if name == "block" and given.kind not in {"row", *LEAVES}:
                    continue
                wanted, found = getattr(given, name), getattr(place, name)
                is_right = wanted in {number, found}
                if not is_right and not _may_stand(pair, other, merged, name, number, wanted, found):
                    said = "nothing" if found is None else _text_of(merged, found)
                    yield f"law 1: {side.keys[number]!r} has the {name} {said!r}"


def _text_of(version: Version, number: int | None) -> str:
    return next((line.text for line in version.lines if line.number == number), "")


def _may_stand(
    pair: Pair, other: Version, merged: Version, name: str, number: int, wanted: int | None, found: int | None
) -> bool:
    """Whether an addition may stand elsewhere than its author saw it, for what the other side did."""
    base = pair.base
    if found is not None and (found < 0 or (found in other.order and found not in base.order)):
        return True  # a line that stands twice, or what the other side has cut the place into
    side = pair.ours if number in pair.ours.order else pair.theirs
    near = [
        each
        for each, place in side.places.items()
        if each in base.places and each in other.places and getattr(place, name) == wanted
    ]
    shifted = {getattr(other.places[each], name) for each in near}
    if wanted is None or wanted in other.order:
        is_known = wanted is None or wanted in merged.places
        moved = shifted - {getattr(base.places[each], name) for each in near}
        return not is_known or found in moved
    if wanted not in base.order:
        return wanted not in merged.places  # its text stands twice
    left = [each for each in base.members(wanted) if each in other.places]
    if not left:
        return False
    return name == "block" or found in {getattr(other.places[each], name) for each in left} | shifted


def _find_torn(pair: Pair, merged: Version) -> Iterator[str]:
    """Yield pieces of one thing that do not stand one behind the other in one place."""
    order = [number for number in merged.order if number in pair.pieces]
    if order != sorted(pair.pieces):
        yield f"law 1: the pieces stand as {order}"
    elif len({(merged.places[number].item, merged.places[number].heading) for number in order}) > 1:
        yield f"law 1: the pieces stand in different things: {[merged.keys[number] for number in order]}"


def _find_two_in_leaf(pair: Pair) -> Iterator[str]:
    """Yield places in a leaf at which each side put something of its own."""
    ours, theirs = (_list_put_in_leaves(pair.base, side) for side in (pair.ours, pair.theirs))
    for number in ours.keys() & theirs.keys():
        if ours[number] != theirs[number]:
            yield f"law 2: both put something behind {pair.base.keys[number]!r}"


def _list_put_in_leaves(base: Version, side: Version) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    last: int | None = None
    for number in side.order:
        if number in base.order:
            last = number
        elif last in base.places and base.places[last].kind in LEAVES:
            is_inside = side.places[number].block == side.places[last].block
            if is_inside:
                found.setdefault(last, []).append(side.keys[number])
    return found


def _find_replaced(pair: Pair) -> Iterator[str]:
    """Yield facts in whose place each side put something of its own, and that neither kept."""
    gone = [n for n in pair.base.order if n not in pair.ours.order and n not in pair.theirs.order]
    for number in gone:
        ours, theirs = (_list_put_for(pair.base, side, number) for side in (pair.ours, pair.theirs))
        if ours and theirs and ours != theirs:
            yield f"law 3: both replaced {pair.base.keys[number]!r}"


def _list_put_for(base: Version, side: Version, number: int) -> list[str]:
    """What a side alone has between the lines that it kept around one that it removed."""
    order = list(base.order)
    at = order.index(number)
    above = next((n for n in reversed(order[:at]) if n in side.order), None)
    below = next((n for n in order[at + 1 :] if n in side.order), None)
    if {above, below} & side.moved:
        return []
    first = -1 if above is None else side.order[above]
    last = len(side.order) if below is None else side.order[below]
    return [side.keys[n] for n, place in side.order.items() if first < place < last and n not in base.order]


def _find_crossed(pair: Pair, merged: Version) -> Iterator[str]:
    """Yield lines that nobody moved, and that stand across another one, or under another heading."""
    ours, theirs = pair.ours, pair.theirs
    moved = ours.moved | theirs.moved
    kept = [n for n in pair.base.order if n in ours.order and n in theirs.order and n in merged.order]
    steady = [n for n in kept if n not in moved]
    for above, below in pairwise(steady):
        if merged.order[below] < merged.order[above]:
            yield f"law 4: {merged.keys[below]!r} stands above {merged.keys[above]!r}"
    for number in steady:
        found = merged.places[number]
        for name in ("heading", "item") if found.item is None else ("item",):
            given = [getattr(version.places[number], name) for version in pair.versions]
            where = getattr(found, name)
            if where is not None and where < 0:
                continue
            wanted = given[2] if given[1] == given[0] else given[1]
            if where not in given[1:] or (
                given[0] in given[1:] and where != wanted and wanted in merged.order
            ):
                yield f"law 4: {merged.keys[number]!r} has the {name} {_text_of(merged, where)!r}"
