"""Finds nearly equal additions at one place, which a person has to see both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from heapq import nlargest
from typing import NamedTuple

from mdmem.document.anchor import plain
from mdmem.document.merging.matching import occurrences, pair_nearest
from mdmem.document.text.regex import regex

_ALIKE = 0.7  # share of equal words from which on two additions may be one
_CLEARER = 0.1  # by which they are more alike than either is to anything else there
_MOST_LETTERS = 2  # in which the titles of one section differ
_SHORTEST_TITLE = 5  # letters; in shorter ones two letters make another word
_LONGEST_TITLE = 80  # characters of a title, or of the beginning of a field, that are read
_MOST_BESIDE = 200  # neighbours, of more, that two additions are compared with
_DIGITS = regex(r"[0-9]+")
_LINK = regex(r"(?:\[.\][ \t]+)?\[[^\[\]]+\]\(([^()\s]+)\)")
_TASK = regex(r"\[.\][ \t]+(.+)")
_FIELD = regex(
    r"[\[(]?[*_`]*([^\W\d_][\w.-]*(?: [\w.-]+){0,3})[*_`]*(?:::|\uff1a|:(?=[*_`]*[ \t]))[*_`]*[ \t]*.+"
)
_DATE = regex(
    r"[0-9]{1,4}[-./][0-9]{1,2}(?![0-9])|[0-9]{1,4}年"
    r"|(?i:\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b)"
)


class PlacedFact(NamedTuple):
    """An addition, or what is beside it: kind as in `TreeNode`, words, and what it stands in and under.

    Of a section, the words are all that is in it; its title stands apart.
    """

    kind: str
    words: str
    title: str = ""
    parent: object = None
    section: object = None


def find_alike(
    mine: Sequence[PlacedFact],
    yours: Sequence[PlacedFact],
    before: Sequence[PlacedFact],
    *,
    by_key: bool = False,
) -> Iterator[tuple[int, int]]:
    """Yield which of two sides' additions at one place are nearly the same, by their places.

    They have 0.7 of their words in common, and 0.1 more than either has with anything else there, `before`
    included. Or they give one field, task or row two values, or are sections with titles that differ in two
    letters. With `by_key` only additions about one thing count as alike.
    """
    if not (mine and yours):
        return
    keys = Counter((each.parent, read_key(each.kind, each.words)) for each in before)
    all_facts = (*mine, *yours, *before)
    words = {each.words: occurrences(each.words) for each in all_facts}
    sections, others = (
        sorted({each.words for each in all_facts if (each.kind == "section") == is_section})
        for is_section in (True, False)
    )

    def measure(one: str, other: str) -> float:
        total = len(words[one]) + len(words[other])
        return 2 * len(words[one] & words[other]) / total if total else 0.0

    @cache
    def find_closest(text: str, kind: str) -> list[tuple[float, str]]:
        """Return the two texts that are most alike to one, with their shares."""
        beside = sections if kind == "section" else others
        some = (each for each in beside[:: len(beside) // _MOST_BESIDE + 1] if each != text)
        return nlargest(2, ((measure(each, text), each) for each in some))

    def are_alike(one: PlacedFact, other: PlacedFact) -> bool:
        share = measure(one.words, other.words)
        return share >= _ALIKE and all(
            closest <= share - _CLEARER or text == partner
            for fact, partner in ((one, other.words), (other, one.words))
            for closest, text in find_closest(fact.words, fact.kind)
        )

    for n, m, _ in pair_nearest(len(mine), len(yours)):
        one, other = mine[n], yours[m]
        if one.section is not other.section or (one.kind == "section") != (other.kind == "section"):
            continue
        if one.words == other.words:
            is_alike = one.kind != other.kind or one.parent is not other.parent
        else:
            is_alike = _name_one_thing(one, other, keys) or (not by_key and are_alike(one, other))
        if is_alike:
            yield n, m


def _name_one_thing(one: PlacedFact, other: PlacedFact, keys: Counter[tuple[object, str]]) -> bool:
    """Return whether two facts have the same title, or a key that no two others there have."""
    key, *same = [(each.parent, read_key(each.kind, each.words)) for each in (one, other)]
    is_one_key = key[1] != "" and [key] == same and keys[key] <= 1
    return is_one_key or (one.title != "" and _are_one_title(one.title, other.title))


def _are_one_title(one: str, other: str) -> bool:
    """Return whether two new headings differ in two letters at most, and in no number."""
    titles = [plain(each[:_LONGEST_TITLE]).casefold() for each in (one, other)]
    lengths = sorted(map(len, titles))
    if lengths[0] < _SHORTEST_TITLE or lengths[1] - lengths[0] > _MOST_LETTERS:
        return False
    if one[_LONGEST_TITLE:] != other[_LONGEST_TITLE:]:
        return False
    if _DIGITS.findall(titles[0]) != _DIGITS.findall(titles[1]):
        return False
    changes = SequenceMatcher(None, titles[0], titles[1], autojunk=False).get_opcodes()
    letters = sum(max(i - h, k - j) for tag, h, i, j, k in changes if tag != "equal")
    return letters <= _MOST_LETTERS


def read_key(kind: str, words: str) -> str:
    """Return what a row, task, field or item with a link is about; nothing of others, and of dates."""
    if kind == "item" and (link := _LINK.match(words)):
        return link[1]
    is_line = "\n" not in words
    found = (_TASK.fullmatch(words) or _FIELD.match(words[:_LONGEST_TITLE])) if is_line else None
    name = words.partition(" | ")[0] if kind == "row" else found[1] if found else ""
    name = plain(name).strip(" *_`~").casefold()
    return "" if _DATE.search(name) else name
