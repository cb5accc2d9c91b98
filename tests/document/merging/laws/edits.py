"""Pairs of edits of foreign files, made by a seed, each aimed at one law of a clean merge.

What somebody adds holds words that stand nowhere else, so that each line is known wherever it comes to stand.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import count, pairwise
from typing import TYPE_CHECKING

import yaml

from tests.document.merging.laws.oracle import (
    DELIMITER,
    HEADING,
    ITEM,
    LEAVES,
    Line,
    Pair,
    Version,
    has_markers,
    key,
    split_row,
    width,
)
from tests.foreign import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_LEAST, _MOST, _WIDEST = 5, 150, 2_000  # lines of a file, and characters of a line
_ODD = re.compile(r"\ufeff|[\x00\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)|\A\+\+\+|\A\{")
# What is read otherwise than line by line: items that begin with a block, rare HTML, underlined headings.
_UNREAD = re.compile(
    r"[ \t]*(?:<[!?][^-]|(?:[-*+]|\d+[.)])[ \t]+(?:[-*+>|]|\d+[.)]|```|~~~|<|    )|[ \t]*\d+[.)]\t)"
)
_UNREAD_BELOW = re.compile(r" {0,3}(?:(?:=+|-+)[ \t]*$|</?[a-z]+-[^>]*>$)")
_FENCES = re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SYLLABLES = [
    first + last for first in "bdfgklmnprstvz" for last in ("a", "e", "i", "o", "u", "an", "or", "il")
]
_DISTURBED = 0.3  # of the pairs have an edit beside those that they are about
_REWORDED = 0.3  # of two insertions in a leaf, one comes with other words of the line above
_WAYS = ("reword", "add", "add", "drop", "into", "move", "nest")
_TIMES = 40  # how often another file is tried for an edit that finds no place


class NoPlaceError(LookupError):
    """A file has no place for an edit."""


@cache
def read_files() -> tuple[tuple[str, Version], ...]:
    """The files of the bundle that the oracle reads as Markdown does, and that hold no marker."""
    found = []
    for path, data in files().items():
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        version = _read_version(text) if path.endswith(".md") else None
        if version:
            found.append((path, version))
    return tuple(found)


def _read_version(text: str) -> Version | None:
    newline = "\r\n" if "\r\n" in text else "\n"
    if (
        _ODD.search(text)
        or has_markers(text)
        or (newline == "\r\n" and text.count("\n") != text.count("\r\n"))
    ):
        return None
    lines = text.removesuffix(newline).split(newline)
    if not _LEAST <= len(lines) <= _MOST or max(map(len, lines)) > _WIDEST:
        return None
    version = Version(tuple(Line(number, line) for number, line in enumerate(lines, 1)), newline)
    if text.count("<!--") > text.count("-->") or len(_FENCES.findall(text)) % 2:
        return None  # what is added at the end stands in what was never closed
    pairs = pairwise(["", *lines[version.front :]])
    if any(_UNREAD.match(line) or (above.strip() and _UNREAD_BELOW.match(line)) for above, line in pairs):
        return None
    is_sound = bool(version.front) == text.startswith("---") and _has_sound_fields(
        lines[1 : max(1, version.front - 1)]
    )
    return version if len(version.keys) > 3 and is_sound else None


def _has_sound_fields(lines: list[str]) -> bool:
    try:
        read = yaml.load("\n".join(lines), yaml.BaseLoader)
    except yaml.YAMLError:
        return False
    return read is None or isinstance(read, dict)


def make_pair(scene: str, seed: str) -> Pair:
    """Make two edits of a file, of the kind that a scene is."""
    rng = random.Random(seed)
    for _ in range(_TIMES):
        path, base = rng.choice(read_files())
        try:
            pair = SCENES[scene](Stage(base, rng))
        except (IndexError, NoPlaceError):
            continue
        if base.text not in {pair.ours.text, pair.theirs.text}:
            return _share_numbers(pair._replace(name=f"{scene} in {path}"))
    raise NoPlaceError(scene)


def _share_numbers(pair: Pair) -> Pair:
    """Give one number to what both added in the same words."""
    counts = [Counter(version.keys.values()) for version in (pair.ours, pair.theirs)]
    mine = {said: n for n, said in pair.ours.keys.items() if n >= 10_000 and counts[0][said] == 1}
    changed = {
        n: mine[said]
        for n, said in pair.theirs.keys.items()
        if n >= 20_000 and said in mine and counts[1][said] == 1
    }
    lines = tuple(Line(changed.get(n, n), text) for n, text in pair.theirs.lines)
    return pair._replace(theirs=Version(lines, pair.theirs.newline, pair.theirs.moved))


class Author:
    """One side: a version that it edits, place by place."""

    def __init__(self, base: Version, rng: random.Random, first: int) -> None:
        self.version, self.rng = base, rng
        self._numbers = count(first)
        self._is_chinese = bool(_CHINESE.search(base.text))

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.version.lines

    def text(self, at: int) -> str:
        return self.lines[at].text

    def find(self, number: int) -> int:
        """The place of a line, 0-based."""
        return next(at for at, line in enumerate(self.lines) if line.number == number)

    def end(self, number: int) -> int:
        """The place behind a line and all that stands in it."""
        inside = self.version.members(number) | {number}
        last = max(at for at, line in enumerate(self.lines) if line.number in inside)
        return last + 1

    # ------------------------------------------------------------------------------------------- words

    def word(self) -> str:
        rng = self.rng
        if self._is_chinese and rng.random() < 0.7:
            return "".join(chr(rng.randrange(0x4E00, 0x9FA0)) for _ in range(rng.randint(2, 4)))
        return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))

    def sentence(self, least: int = 3, most: int = 9) -> str:
        words = [self.word() for _ in range(self.rng.randint(least, most))]
        return f"{' '.join([words[0].capitalize(), *words[1:]])}."

    def near(self, sentence: str) -> str:
        """Nearly the same sentence: one word is another."""
        words = sentence.split(" ")
        words[self.rng.randrange(1, len(words))] = self.word()
        return " ".join(words)

    # ------------------------------------------------------------------------------------------- changes

    def become(self, lines: Iterable[Line], moved: Iterable[int] = ()) -> None:
        kept = list(lines)
        while kept and not kept[-1].text.strip():
            kept.pop()
        self.version = Version(tuple(kept), self.version.newline, self.version.moved | {*moved})

    def put(self, at: int, *texts: str, instead: int = 0) -> None:
        added = [Line(next(self._numbers), text) for text in texts]
        self.become([*self.lines[:at], *added, *self.lines[at + instead :]])

    def put_block(self, at: int, *texts: str) -> None:
        """Put a block somewhere, with blank lines around it."""
        before = [""] if at and self.text(at - 1).strip() else []
        after = [""] if at < len(self.lines) and self.text(at).strip() else []
        self.put(at, *before, *texts, *after)

    def change(self, at: int, text: str) -> None:
        self.become([*self.lines[:at], self.lines[at]._replace(text=text), *self.lines[at + 1 :]])

    def drop(self, start: int, end: int) -> None:
        """Remove lines, and one of two blank lines that come to stand together."""
        is_apart = end < len(self.lines) and not self.text(end).strip()
        is_apart &= start == 0 or not self.text(start - 1).strip()
        self.put(start, instead=end - start + is_apart)

    def move(self, start: int, end: int, to: int, gap: bool) -> None:
        """Move lines in front of another."""
        assert not start <= to < end
        moved = list(self.lines[start:end])
        gap_line = [Line(next(self._numbers), "")] if gap else []
        rest = [line for at, line in enumerate(self.lines) if not start <= at < end]
        target = self.lines[to].number if to < len(self.lines) else None
        cut = next((at for at, line in enumerate(rest) if line.number == target), len(rest))
        moved = [*gap_line, *moved] if cut == len(rest) else [*moved, *gap_line]
        passed = self.lines[end:to] if to > start else self.lines[to:start]
        self.become(
            [*rest[:cut], *moved, *rest[cut:]],
            moved=[line.number for line in (*moved, *passed) if line.text.strip()],
        )

    def reword(self, at: int) -> None:
        """Change a word of a line, not the first."""
        text = self.text(at)
        heading = HEADING.match(text)
        lead = heading[0] if heading else text.removesuffix(key(text))
        words = text[len(lead) :].split(" ")
        if text == lead or not re.match(r"[\w*_`(]", words[0]):
            raise NoPlaceError
        put = self.rng.randint(1, len(words))
        self.change(at, lead + " ".join([*words[:put], self.word(), *words[put:]]))

    # ------------------------------------------------------------------------------------------- additions

    def margin(self, number: int) -> str:
        """The indentation of what stands in an item."""
        found = ITEM.match(self.text(self.find(number)))
        assert found
        lead, marker, gap = found.groups()
        return lead + " " * len(marker) + (gap if gap and len(gap) <= 4 and "\t" not in gap else " ")

    def add_item_behind(self, number: int, words: str) -> None:
        found = ITEM.match(self.text(self.find(number)))
        assert found
        marker = found[2] if not found[2][:-1] else f"{int(found[2][:-1]) + 1}{found[2][-1]}"
        self.put(self.end(number), f"{found[1]}{marker}{found[3] or ' '}{words}")

    def add_child(self, number: int, words: str) -> None:
        items = [
            n for n, place in self.version.places.items() if place.item == number and place.kind == "item"
        ]
        if items:
            self.add_item_behind(items[-1], words)
        else:
            self.put(self.end(number), f"{self.margin(number)}- {words}")

    def row(self, head: int, words: str) -> str:
        cells = split_row(self.text(self.find(head)))
        lead = self.text(self.find(head))[: width(self.text(self.find(head)))]
        return f"{lead}| {' | '.join([words, *(self.word() for _ in cells[1:])])} |"

    def line_like(self, number: int, words: str) -> str:
        """A line that goes on with the leaf that a line is of."""
        text, place = self.text(self.find(number)), self.version.places[number]
        if place.kind == "quote" and ">" not in text:
            raise NoPlaceError
        if place.kind == "quote":
            return f"{text[: text.index('>')]}> {words}"
        lead = text[: len(text) - len(text.lstrip(" \t"))]
        if place.kind == "footnote" and number == place.block:
            return f"    {words}"
        if place.kind == "term":
            return f"{lead}: {words}"
        if place.kind == "html":
            return f"{lead}<li>{words}</li>" if self.rng.random() < 0.5 else f"{lead}{words}"
        return lead + words

    def add_in(self, number: int) -> None:
        """Add something to a heading or an item: at its end, or right below its first line."""
        place = self.version.places[number]
        if place.kind == "item":
            self._add_in_item(number)
            return
        inside = [each for each in self.version.places if each in self.version.members(number)]
        kinds = {kind: [n for n in inside if self.version.places[n].kind == kind] for kind in ("item", "row")}
        leaves = [n for n in inside if _is_inside_leaf(self.version, n)]
        level = HEADING.match(self.text(self.find(number)))
        ways = ["paragraph", "below"]
        ways += ["section"] * 3 * bool(level and len(level[1]) < 6)
        ways += [name for name in ("item", "row") if kinds[name]]
        ways += ["leaf"] * bool(leaves)
        way = self.rng.choice(ways)
        if way == "section":
            assert level
            text = [self.sentence()] if self.rng.random() < 0.5 else [f"- {self.sentence()}"]
            self.put_block(self.end(number), f"{level[1]}# {self.sentence(1, 3)[:-1]}", "", *text)
        elif way == "item":
            self.add_item_behind(self.rng.choice(kinds["item"]), self.sentence())
        elif way == "row":
            row = self.rng.choice(kinds["row"])
            head = self.version.places[row].block
            at = max(self.find(row), self.find(head) + 1)
            self.put(at + 1, self.row(head, self.sentence(1, 3)))
        elif way == "leaf":
            line = self.rng.choice(leaves)
            self.put(self.find(line) + 1, self.line_like(line, self.sentence()))
        else:
            at = self.find(number) + 1 if way == "below" else self.end(number)
            self.put_block(at, self.rng.choice([self.sentence(), f"> {self.sentence()}"]))

    def _add_in_item(self, number: int) -> None:
        way = self.rng.choice(["child", "child", "line", "paragraph", "code"])
        margin = self.margin(number)
        if way == "child":
            self.add_child(number, self.sentence())
        elif way == "line":
            self.put(self.find(number) + 1, margin + self.sentence())
        elif way == "paragraph":
            self.put(self.end(number), "", margin + self.sentence())
        else:
            self.put(self.end(number), "", f"{margin}```", margin + self.word(), f"{margin}```")


def _is_inside_leaf(version: Version, number: int) -> bool:
    """Whether a line put behind that one stands in the leaf that it is of."""
    place = version.places[number]
    if place.kind not in LEAVES:
        return False
    order = list(version.places)
    at = order.index(number)
    is_last = at + 1 == len(order) or version.places[order[at + 1]].block != place.block
    text = next(line.text for line in version.lines if line.number == number)
    if place.kind == "footnote" and not text.strip():
        return False
    if place.kind == "code":
        first = next(line.text for line in version.lines if line.number == place.block)
        is_fence = first.lstrip().startswith(("```", "~~~"))
        return not (is_fence and is_last)
    if place.kind in {"html", "math"}:
        return not is_last
    return True


class Stage:
    """A file that two authors are to edit."""

    def __init__(self, base: Version, rng: random.Random) -> None:
        self.base, self.rng = base, rng
        authors = [Author(base, rng, first) for first in (10_000, 20_000)]
        self.one, self.other = authors if rng.random() < 0.5 else authors[::-1]
        self._authors = authors
        counts = Counter(base.keys.values())
        self._texts = dict(base.lines)
        self.single = {number for number, said in base.keys.items() if counts[said] == 1}

    def pair(self, law: int = 0, must: str = "", *, is_alone: bool = False) -> Pair:
        """What both have made, at times beside an edit that changes nothing about the verdict."""
        if must != "clean" and not is_alone and self.rng.random() < _DISTURBED:
            edit(self, self.rng.choice(self._authors), ways=("reword", "add"))
        ours, theirs = (author.version for author in self._authors)
        return Pair("", self.base, ours, theirs, must, law)

    def pick(self, *kinds: str, where: Callable[[int], object] = lambda _: True) -> int:
        """A line of one of some kinds whose words stand once."""
        found = [
            number
            for number, place in self.base.places.items()
            if place.kind in kinds and number in self.single and where(number)
        ]
        if not found:
            raise NoPlaceError
        return self.rng.choice(found)

    def text(self, number: int) -> str:
        return self._texts[number]

    def is_small(self, number: int) -> bool:
        """Whether at least half of a file stands outside of a line with all that stands in it."""
        return 2 * len(self.base.members(number)) < len(self.base.keys)

    def drop(self, author: Author, number: int) -> None:
        author.drop(author.find(number), author.end(number))

    def block(self, number: int) -> tuple[int, int]:
        """Where a block begins and ends in the base."""
        first = self.base.places[number].block
        at = [n for n, line in enumerate(self.base.lines) if line.number in self.base.places]
        inside = [n for n in at if self.base.places[self.base.lines[n].number].block == first]
        return inside[0], inside[-1] + 1


# ---------------------------------------------------------------------------------------------- law 1


def section_removed_and_added_to(stage: Stage) -> Pair:
    heading = stage.pick("heading", where=lambda n: stage.is_small(n) and stage.base.members(n))
    stage.one.add_in(heading)
    stage.drop(stage.other, heading)
    return stage.pair(1, "conflict")


def subsection_added_below_a_removed_section(stage: Stage) -> Pair:
    heading = stage.pick("heading", where=lambda n: stage.is_small(n) and stage.base.members(n))
    level = HEADING.match(stage.text(heading))
    assert level
    if len(level[1]) > 5:
        raise NoPlaceError
    one = stage.one
    text = stage.rng.choice([[one.sentence()], [f"- {one.sentence()}"], ["```sh", one.word(), "```"]])
    one.put_block(one.end(heading), f"{level[1]}# {one.sentence(1, 3)[:-1]}", "", *text)
    stage.drop(stage.other, heading)
    return stage.pair(1, "conflict")


def item_removed_and_added_to(stage: Stage) -> Pair:
    item = stage.pick("item", where=stage.is_small)
    stage.one.add_in(item)
    stage.drop(stage.other, item)
    return stage.pair(1, "conflict")


def table_or_leaf_removed_and_added_to(stage: Stage) -> Pair:
    line = stage.pick(
        "row", *LEAVES, where=lambda n: stage.base.places[n].kind == "row" or _is_inside_leaf(stage.base, n)
    )
    start, end = stage.block(line)
    if stage.base.places[line].kind == "row":
        head = stage.base.places[line].block
        at = max(stage.one.find(line), stage.one.find(head) + 1)
        stage.one.put(at + 1, stage.one.row(head, stage.one.sentence(1, 3)))
    else:
        stage.one.put(stage.one.find(line) + 1, stage.one.line_like(line, stage.one.sentence()))
    stage.other.drop(start, end)
    return stage.pair(1, "conflict")


def heading_renamed_and_added_to(stage: Stage) -> Pair:
    heading = stage.pick("heading")
    stage.one.add_in(heading)
    stage.other.reword(stage.other.find(heading))
    return stage.pair(1)


def section_moved_and_added_to(stage: Stage) -> Pair:
    heading = stage.pick("heading", where=lambda n: stage.is_small(n) and stage.base.members(n))
    _move_section(stage, stage.other, heading)
    stage.one.add_in(heading)
    return stage.pair(1)


def section_moved_and_reworded(stage: Stage) -> Pair:
    heading = stage.pick("heading", where=lambda n: stage.is_small(n) and stage.base.members(n))
    _move_section(stage, stage.other, heading)
    inside = stage.base.members(heading) & stage.single
    texts = [n for n in sorted(inside) if stage.base.places[n].kind in {"text", "item"}]
    stage.one.reword(stage.one.find(stage.rng.choice(texts)))
    return stage.pair(1)


def _move_section(stage: Stage, author: Author, heading: int) -> None:
    level = HEADING.match(stage.text(heading))
    assert level
    inside = stage.base.members(heading) | {heading}
    others = [
        n
        for n, place in stage.base.places.items()
        if place.kind == "heading"
        and n not in inside
        and (found := HEADING.match(stage.text(n)))
        and found[1] == level[1]
        and place.heading == stage.base.places[heading].heading
    ]
    behind = [n for n in others if n > heading]
    others = [n for n in others if n not in behind[:1]]
    if not others:
        raise NoPlaceError
    author.move(author.find(heading), author.end(heading), author.find(stage.rng.choice(others)), gap=True)


def heading_taken_out_alone(stage: Stage) -> Pair:
    heading = stage.pick("heading", where=stage.base.members)
    stage.one.add_in(heading)
    at = stage.other.find(heading)
    stage.other.drop(at, at + 1)
    return stage.pair(1)


def item_taken_out_alone(stage: Stage) -> Pair:
    item = stage.pick("item", where=stage.base.members)
    stage.one.add_child(item, stage.one.sentence())
    at, end = stage.other.find(item), stage.other.end(item)
    if any("\t" in line.text for line in stage.other.lines[at:end]):
        raise NoPlaceError
    lead = len(stage.other.margin(item)) - width(stage.other.text(at))
    lines = [
        line._replace(text=line.text[min(lead, width(line.text)) :])
        for line in stage.other.lines[at + 1 : end]
    ]
    stage.other.become([*stage.other.lines[:at], *lines, *stage.other.lines[end:]])
    return stage.pair(1)


def added_behind_a_removed_neighbour(stage: Stage) -> Pair:
    number = stage.pick("item", "heading", where=stage.is_small)
    if stage.base.places[number].kind == "item":
        stage.one.add_item_behind(number, stage.one.sentence())
    else:
        level = HEADING.match(stage.text(number))
        assert level
        title = f"{level[1]} {stage.one.sentence(1, 3)[:-1]}"
        stage.one.put_block(stage.one.end(number), title, "", stage.one.sentence())
    stage.drop(stage.other, number)
    return stage.pair(1)


# ---------------------------------------------------------------------------------------------- law 2


def two_insertions_in_a_leaf(stage: Stage) -> Pair:
    line = stage.pick(*LEAVES, where=lambda n: _is_inside_leaf(stage.base, n))
    for author in (stage.one, stage.other):
        texts = [author.line_like(line, author.sentence()) for _ in range(stage.rng.randint(1, 3))]
        author.put(author.find(line) + 1, *texts)
    with suppress(NoPlaceError):
        if stage.rng.random() < _REWORDED:
            stage.one.reword(stage.one.find(line))
    return stage.pair(2, "conflict")


def one_insertion_in_a_leaf(stage: Stage) -> Pair:
    line = stage.pick(*LEAVES, where=lambda n: _is_inside_leaf(stage.base, n))
    text = stage.one.line_like(line, stage.one.sentence())
    for author in (stage.one, stage.other):
        author.put(author.find(line) + 1, text)
    _edit_elsewhere(stage, line)
    return stage.pair(2, "clean")


def two_places_of_a_leaf(stage: Stage) -> Pair:
    line = stage.pick(*LEAVES, where=lambda n: _is_inside_leaf(stage.base, n))
    block = stage.base.places[line].block
    others = [
        n
        for n in stage.single
        if n > line + 1 and stage.base.places[n].block == block and _is_inside_leaf(stage.base, n)
    ]
    if not others:
        raise NoPlaceError
    for author, number in ((stage.one, line), (stage.other, stage.rng.choice(others))):
        author.put(author.find(number) + 1, author.line_like(number, author.sentence()))
    return stage.pair(2)


# ---------------------------------------------------------------------------------------------- law 3


def fact_replaced_by_both(stage: Stage) -> Pair:
    """Each puts up to three facts of its own where an item, a row, a paragraph or a leaf stood."""
    line = stage.pick("item", "text", "row", "code", "quote", where=lambda n: _is_whole(stage, n))
    place = stage.base.places[line]
    is_item = place.kind == "item"
    start, end = stage.block(line)
    if place.kind == "row":
        start = stage.one.find(line)
        end = start + 1
    for author in (stage.one, stage.other):
        times = stage.rng.randint(1, 3)
        if is_item:
            lead = stage.text(line)[: len(stage.text(line)) - len(stage.text(line).lstrip())]
            marker = ITEM.match(stage.text(line))
            assert marker
            texts = [f"{lead}{marker[2]} {author.sentence()}" for _ in range(times)]
        elif place.kind == "row":
            texts = [author.row(place.block, author.sentence(1, 3)) for _ in range(times)]
        else:
            lead = stage.text(line)[: width(stage.text(line))] if place.item else ""
            texts = _blocks(author, times, lead)
        author.put(start, *texts, instead=end - start)
    return stage.pair(3, "conflict")


def _is_whole(stage: Stage, number: int) -> bool:
    """Whether a line is an item without anything in it, a row, or the first line of a block."""
    place = stage.base.places[number]
    if place.kind == "item":
        return not stage.base.members(number)
    if place.kind == "row":
        return number > place.block + 1 and not DELIMITER.match(stage.text(number))
    if place.block != number or place.item is not None:
        return False
    start, end = stage.block(number)
    return end - start < 10


def _blocks(author: Author, times: int, lead: str) -> list[str]:
    way = author.rng.choice(["paragraphs", "items", "quote", "code"])
    if way == "paragraphs":
        parts = [each for _ in range(times) for each in ("", lead + author.sentence())]
        return parts[1:]
    if way == "items":
        return [f"{lead}- {author.sentence()}" for _ in range(times)]
    if way == "quote":
        return [f"{lead}> {author.sentence()}" for _ in range(times)]
    return [f"{lead}```", *(lead + author.word() for _ in range(times)), f"{lead}```"]


# ---------------------------------------------------------------------------------------------- law 5


def markers_in_the_base(stage: Stage) -> Pair:
    """A conflict that was committed, and that each side settles, in its own way or as the other does."""
    start, end = stage.block(stage.pick("text", "item", "row", "code"))
    one, other = stage.one, stage.other
    lines = list(stage.base.lines)
    size = stage.rng.choice([7, 7, 7, 8, 12])
    numbers = count(5_000)
    texts = ["<" * size + " HEAD", one.sentence(), "=" * size, one.sentence(), ">" * size + " side"]
    if stage.rng.random() < 0.3:
        texts[2:2] = ["|" * size + " base", one.sentence()]
    marked = [Line(next(numbers), text) for text in texts]
    at = stage.rng.randint(start, end)
    stage.base = Version((*lines[:at], *marked, *lines[at:]), stage.base.newline)
    for author in (one, other):
        author.version = stage.base
    choice = stage.rng.random()
    for author, kept in ((one, marked[1]), (other, marked[-2])):
        settled = [kept] if choice < 0.6 else [marked[1]] if choice < 0.8 else marked
        author.become([*lines[:at], *settled, *lines[at:]])
        if choice >= 0.6:
            edit(stage, author)
    return stage.pair(5)


def markers_on_one_side(stage: Stage) -> Pair:
    start, end = stage.block(stage.pick("text", "item", "row", "code"))
    one = stage.one
    texts = [line.text for line in stage.base.lines[start:end]]
    one.put(start, "<<<<<<< HEAD", *texts, "=======", one.sentence(), ">>>>>>> side", instead=end - start)
    edit(stage, stage.other)
    return stage.pair(5)


# ---------------------------------------------------------------------------------------------- law 6


def nearly_the_same_added(stage: Stage) -> Pair:
    words = stage.one.sentence(8, 14)
    near = stage.one.near(words)
    _add_both(stage, words, near)
    return stage.pair(6, "conflict")


def the_same_added(stage: Stage) -> Pair:
    words = stage.one.sentence(8, 14)
    _add_both(stage, words, words)
    return stage.pair(6)


def independent_things_added(stage: Stage) -> Pair:
    _add_both(stage, stage.one.sentence(6, 14), stage.other.sentence(6, 14))
    return stage.pair(6, "clean")


def entries_of_one_day_added(stage: Stage) -> Pair:
    day = stage.rng.choice(["2026-11-28: ", "2026-11-28 ", "28.11.2026: ", "2026年11月28日：", "Nov 28: "])
    _add_both(stage, day + stage.one.sentence(6, 14), day + stage.other.sentence(6, 14))
    return stage.pair(6, "clean")


def _add_both(stage: Stage, words: str, others: str) -> None:
    number = stage.pick("item", "row", "text", where=lambda n: _may_follow(stage, n))
    place = stage.base.places[number]
    for author, said in ((stage.one, words), (stage.other, others)):
        if place.kind == "item":
            author.add_item_behind(number, said)
        elif place.kind == "row":
            head = place.block
            at = max(author.find(number), author.find(head) + 1)
            # Rows are about their first cells, so the words stand in the others, if there are any.
            row = author.row(head, said)
            author.put(at + 1, f"{row[: row.index('|')]}| {said} |{'  |' * (row.count('|') - 2)}")
        else:
            author.put_block(stage.block(number)[1], said)


def _may_follow(stage: Stage, number: int) -> bool:
    place = stage.base.places[number]
    return place.kind != "text" or place.item is None


def one_row_or_field_added(stage: Stage) -> Pair:
    number = stage.pick("item", "row", "text", where=lambda n: _may_follow(stage, n))
    place, name = stage.base.places[number], stage.one.sentence(1, 2)[:-1]
    if not name.isascii():
        raise NoPlaceError
    name = name.replace(" ", "")
    form = stage.rng.choice(["{}:: {}", "**{}:** {}", "{}: {}"])
    for author in (stage.one, stage.other):
        if place.kind == "row":
            at = max(author.find(number), author.find(place.block) + 1)
            row = author.row(place.block, name)
            if row.count("|") < 3:
                raise NoPlaceError
            author.put(at + 1, row)
        elif place.kind == "item":
            author.add_item_behind(number, form.format(name, author.sentence(2, 6)))
        else:
            author.put_block(stage.block(number)[1], form.format(name, author.sentence(2, 6)))
    return stage.pair(6, "conflict")


def one_section_added(stage: Stage) -> Pair:
    """Both begin a section of one title: with facts of their own, or with nearly the same."""
    one, other = stage.one, stage.other
    end = len(stage.base.lines)
    heading = [n for n in stage.base.places if stage.base.places[n].kind == "heading"]
    if not heading:
        raise NoPlaceError
    is_near = stage.rng.random() < 0.5
    title = stage.rng.choice([one.sentence(1, 3)[:-1], "2026-11-28"])
    words = one.sentence(8, 14)
    titles = [title, stage.rng.choice([title, f"[{title}](https://x.example)", f"**{title}**"])]
    facts = [words, one.near(words) if is_near else other.sentence(8, 14)]
    lead = stage.rng.choice(["", "- "])
    for author, said, fact in zip((one, other), titles, facts, strict=True):
        author.put_block(end, f"## {said}", "", lead + fact)
    is_one = titles[0] == titles[1]
    return stage.pair(6, "conflict" if is_near or not is_one else "clean")


def two_sections_added(stage: Stage) -> Pair:
    titles = stage.rng.choice(
        [
            ("1.2.3", "1.2.4"),
            ("v2.0.0", "v2.0.1"),
            ("2026-11-28", "2026-11-29"),
            ("[1.0] - 2026-11-28", "[1.1]"),
        ]
    )
    if any(title in stage.base.text for title in titles):
        raise NoPlaceError
    for author, title in zip((stage.one, stage.other), titles, strict=True):
        author.put_block(len(stage.base.lines), f"## {title}", "", f"- {author.sentence(6, 12)}")
    return stage.pair(6, "clean")


def titles_nearly_the_same(stage: Stage) -> Pair:
    word = stage.one.word() + stage.one.word()
    if not word.isascii():
        raise NoPlaceError
    at = stage.rng.randrange(1, len(word))
    for author, title in ((stage.one, word), (stage.other, f"{word[:at]}q{word[at:]}")):
        author.put_block(len(stage.base.lines), f"## {title.capitalize()}", "", author.sentence(6, 12))
    return stage.pair(6, "conflict")


# ---------------------------------------------------------------------------------------------- other lines


def ticked_and_reworded(stage: Stage) -> Pair:
    item = stage.pick("item", where=lambda n: re.search(r"[-*+.)] \[[ x]\] \S", stage.text(n)))
    at = stage.one.find(item)
    text = stage.text(item)
    swap = {"[ ]": "[x]", "[x]": "[ ]"}
    stage.one.change(at, re.sub(r"\[[ x]\]", lambda m: swap[m[0]], text, count=1))
    stage.other.reword(at)
    return stage.pair(0, "clean")


def steps_inserted_by_both(stage: Stage) -> Pair:
    item = stage.pick("item", where=lambda n: re.match(r"\s*\d", stage.text(n)))
    steps = _list_steps(stage, item)
    for author in (stage.one, stage.other):
        behind = stage.rng.choice(steps)
        author.add_item_behind(behind, author.sentence(4, 8))
        for step in steps[steps.index(behind) + 1 :]:
            at = author.find(step)
            author.change(at, re.sub(r"\d+", lambda m: str(int(m[0]) + 1), author.text(at), count=1))
    return stage.pair(0, "clean")


def _list_steps(stage: Stage, item: int) -> list[int]:
    """The steps of a numbered list in which each has the number behind that of the one before."""
    place, lead = stage.base.places[item], width(stage.text(item))
    steps: list[int] = []
    for number, each in stage.base.places.items():
        if each.kind != "item" or each.item != place.item or width(stage.text(number)) != lead:
            if each.item == place.item and each.kind in {"heading", "rule", "text", "code"}:
                if item in steps:
                    break
                steps = []
            continue
        found = re.match(r"\s*(\d+[.)])", stage.text(number))
        last = re.match(r"\s*(\d+)([.)])", stage.text(steps[-1])) if steps else None
        is_next = bool(found and last and found[1] == f"{int(last[1]) + 1}{last[2]}")
        steps = [*steps, number] if is_next else [number] if found and item not in steps else steps
        if item in steps and not is_next and number != item and number not in steps:
            break
    if len(steps) < 2 or item not in steps or not {*steps} <= stage.single:
        raise NoPlaceError
    return steps


def nested_and_split(stage: Stage) -> Pair:
    """One makes an item a child of the one above, the other makes two of it."""
    item = stage.pick("item", where=lambda n: _may_be_nested(stage, n))
    above = max(n for n in stage.base.places if n < item and stage.base.places[n].kind == "item")
    text = stage.text(item)
    at = stage.one.find(item)
    mark = ITEM.match(text)
    assert mark
    words = text[mark.end() :].split(" ")
    cut = stage.rng.randint(2, len(words) - 2)
    lead = stage.one.margin(above)
    stage.one.change(at, f"{lead}- {' '.join(words)}")
    stage.other.change(at, f"{mark[0]}{' '.join(words[:cut])}")
    stage.other.put(at + 1, f"{mark[0]}{' '.join(words[cut:])}")
    pieces = frozenset({item, stage.other.lines[at + 1].number})
    return stage.pair(1, is_alone=True)._replace(pieces=pieces)


def _may_be_nested(stage: Stage, item: int) -> bool:
    text, base = stage.text(item), stage.base
    order = list(base.places)
    at = order.index(item)
    if base.members(item) or not re.match(r"\s*[-*+] \w", text) or len(text.split(" ")) < 8 or not at:
        return False
    above = order[at - 1]
    place = base.places[above]
    is_same = place.kind == "item" and place.item == base.places[item].item
    return is_same and width(stage.text(above)) == width(text) and "\t" not in text


def child_and_parent_deleted(stage: Stage) -> Pair:
    """One deletes an item, the other the one behind it, whose children come to stand below the first."""
    item = stage.pick("item", where=lambda n: len(stage.base.members(n)) > 0)
    behind = [
        n
        for n, place in stage.base.places.items()
        if n > item and place.kind == "item" and place.item == stage.base.places[item].item
    ]
    if not behind or not stage.base.members(behind[0]):
        raise NoPlaceError
    children = [n for n, p in stage.base.places.items() if p.item == item and p.kind == "item"]
    if not children:
        raise NoPlaceError
    stage.drop(stage.one, children[-1])
    at = stage.other.find(behind[0])
    stage.other.put(at, instead=1)
    return stage.pair(7)


def _edit_elsewhere(stage: Stage, number: int) -> None:
    """Let one side reword a line that is not near."""
    far = [
        n
        for n in stage.single
        if abs(n - number) > 6
        and stage.base.places[n].kind in {"text", "item"}
        and stage.base.places[n].item is None
    ]
    if not far:
        raise NoPlaceError
    stage.one.reword(stage.one.find(stage.rng.choice(sorted(far))))


def anything(stage: Stage) -> Pair:
    for author in (stage.one, stage.other):
        for _ in range(stage.rng.randint(1, 3)):
            edit(stage, author)
    return stage.pair()


def close_together(stage: Stage) -> Pair:
    """Edits of both within a few lines."""
    number = stage.pick("text", "item", "row", "heading", "code", "quote")
    near = {n for n in stage.base.places if abs(n - number) < 6}
    for author in (stage.one, stage.other):
        for _ in range(stage.rng.randint(1, 2)):
            edit(stage, author, near)
    return stage.pair()


def edit(stage: Stage, author: Author, near: set[int] | None = None, ways: Sequence[str] = _WAYS) -> None:
    """Make one edit as people make them, of any kind."""
    known = author.version.places
    for _ in range(20):
        number = stage.rng.choice(sorted(stage.single & known.keys() & (near or stage.single)))
        at = author.find(number)
        try:
            _edit_line(stage, author, number, at, stage.rng.choice(ways))
        except NoPlaceError:
            continue
        return
    raise NoPlaceError


def _edit_line(stage: Stage, author: Author, number: int, at: int, way: str) -> None:
    place = author.version.places[number]
    kind, is_free = place.kind, place.item is None
    if way in {"drop", "move", "nest"}:
        _take_line(stage, author, number, at, way)
    elif way == "reword" and kind in {"text", "item", "heading", "quote"}:
        author.reword(at)
    elif way == "add" and kind == "item":
        author.add_item_behind(number, author.sentence())
    elif way == "add" and kind == "text" and is_free:
        author.put_block(_block_of(author, number)[1], author.sentence())
    elif way == "add" and _is_inside_leaf(author.version, number):
        author.put(at + 1, author.line_like(number, author.sentence()))
    elif way == "into" and kind in {"item", "heading"}:
        author.add_in(number)
    else:
        raise NoPlaceError


def _take_line(stage: Stage, author: Author, number: int, at: int, way: str) -> None:
    """Remove what a line begins, or put it elsewhere."""
    place = author.version.places[number]
    kind, is_free = place.kind, place.item is None
    is_whole = author.version is stage.base and stage.is_small(number)
    if way == "drop" and kind in {"item", "heading"} and stage.is_small(number):
        author.drop(at, author.end(number))
    elif way == "drop" and kind == "text" and is_free:
        author.drop(*_block_of(author, number))
    elif way == "drop" and kind == "row" and at > author.find(place.block) + 1:
        author.put(at, instead=1)
    elif way == "move" and kind == "heading" and is_whole:
        _move_section(stage, author, number)
    elif way == "move" and kind == "item" and is_whole:
        _move_item(stage, author, number)
    elif way == "nest" and kind == "item" and is_whole and _may_be_nested(stage, number):
        _nest_item(author, number)
    else:
        raise NoPlaceError


def _block_of(author: Author, number: int) -> tuple[int, int]:
    """Where the block of a line begins and ends."""
    block = author.version.places[number].block
    inside = [author.find(n) for n, place in author.version.places.items() if place.block == block]
    return inside[0], inside[-1] + 1


def _move_item(stage: Stage, author: Author, item: int) -> None:
    """Move an item in front of another one of its list."""
    order = list(stage.base.places)
    mark = ITEM.match(stage.text(item))
    near = {item}
    for numbers in (order[order.index(item) + 1 :], order[: order.index(item)][::-1]):
        for number in numbers:
            place = stage.base.places[number]
            if place.item == stage.base.places[item].item and place.kind == "item":
                other = ITEM.match(stage.text(number))
                if not mark or not other or other.groups() != mark.groups():
                    break
                near.add(number)
            elif not place.item:
                break
    behind = [n for n in near if n > item]
    others = sorted(near - {item, min(behind, default=item)})
    if not others or not mark or mark[2][:-1]:
        raise NoPlaceError
    author.move(author.find(item), author.end(item), author.find(stage.rng.choice(others)), gap=False)


def _nest_item(author: Author, item: int) -> None:
    at = author.find(item)
    above = author.lines[at - 1].number
    if not ITEM.match(author.text(at - 1)):
        raise NoPlaceError
    more = len(author.margin(above)) - width(author.text(at))
    author.change(at, " " * more + author.text(at))


SCENES: dict[str, Callable[[Stage], Pair]] = {
    scene.__name__: scene
    for scene in (
        section_removed_and_added_to,
        subsection_added_below_a_removed_section,
        item_removed_and_added_to,
        table_or_leaf_removed_and_added_to,
        heading_renamed_and_added_to,
        section_moved_and_added_to,
        section_moved_and_reworded,
        heading_taken_out_alone,
        item_taken_out_alone,
        added_behind_a_removed_neighbour,
        two_insertions_in_a_leaf,
        one_insertion_in_a_leaf,
        two_places_of_a_leaf,
        fact_replaced_by_both,
        markers_in_the_base,
        markers_on_one_side,
        nearly_the_same_added,
        the_same_added,
        independent_things_added,
        entries_of_one_day_added,
        one_row_or_field_added,
        one_section_added,
        two_sections_added,
        titles_nearly_the_same,
        ticked_and_reworded,
        steps_inserted_by_both,
        nested_and_split,
        child_and_parent_deleted,
        anything,
        close_together,
    )
}
