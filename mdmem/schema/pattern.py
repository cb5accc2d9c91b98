"""Regular expressions of schemas: whether one can be used, and what it matches.

JSON Schema means the expressions of ECMA-262. They are given to Python's `re`, which reads what both share
the same way but for `$`, which in Python also matches before a final line end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mdmem.text.regex import ATOM, CLASS, doubtful, regex

_MANY = 10  # a repeat of more than this counts as one without end
_DOLLAR = regex(rf"({ATOM.pattern})|\$", re.DOTALL)
_VERBOSE = regex(r"\(\?[a-zA-Z]*x")
_COUNT = regex(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
_OPENING = regex(r"\((?:\?(?:P<\w+>|<?[=!]|>|[a-zA-Z-]*:|\(\w+\)))?")
_NO_GROUP = regex(r"\(\?(?:P=\w+|#[^)]*|[a-zA-Z-]+)\)")


def fault(pattern: str) -> str | None:
    """Why `pattern` cannot be used, or None when it can.

    Besides an expression that does not compile, that is one which takes exponential time on a text that
    it does not match, such as `(a+)+$`: nothing can stop Python's `re` once it has begun. Neither can one be
    used that Python says it will come to read in another way.
    """
    if _VERBOSE.search(pattern):
        return "the flag x is not known"
    mark = doubtful(pattern)
    if mark:
        return f"write a backslash before each character of {mark} inside [ ]"
    try:
        re.compile(_python(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression that Python reads: {error}"
    try:
        branches, _ = _alternatives(pattern, 0)
        if any(_explodes(item) for branch in branches for item in branch.items):
            return "it can take exponential time: a repeat stands directly inside another repeat"
    except RecursionError:
        return "it is nested too deeply"
    return None


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern`, which has no fault, matches anywhere in `text`."""
    return _compiled(pattern).search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_python(pattern))


def _python(pattern: str) -> str:
    return _DOLLAR.sub(lambda found: found.group(1) or r"\Z", pattern)


@dataclass(slots=True)
class _Item:
    """A part of an expression: a character or class, an assertion, or a group with its branches."""

    can_be_empty: bool
    repeats: bool
    branches: list[_Branch]


@dataclass(slots=True)
class _Branch:
    source: str
    items: list[_Item]

    @property
    def can_be_empty(self) -> bool:
        return all(item.can_be_empty for item in self.items)


def _alternatives(text: str, at: int) -> tuple[list[_Branch], int]:
    """The branches from `at` to the closing bracket or the end of a valid expression, and where that is."""
    branches: list[_Branch] = []
    items: list[_Item] = []
    start = at
    while at < len(text) and text[at] != ")":
        if text[at] == "|":
            branches.append(_Branch(text[start:at], items))
            items, at = [], at + 1
            start = at
        else:
            item, at = _item(text, at)
            items.append(item)
    branches.append(_Branch(text[start:at], items))
    return branches, at


def _item(text: str, at: int) -> tuple[_Item, int]:
    branches: list[_Branch] = []
    empty = text[at] in "^$"
    no_group = _NO_GROUP.match(text, at)
    if no_group:
        empty, at = True, no_group.end()
    elif text[at] == "(":
        opening = _OPENING.match(text, at)
        branches, at = _alternatives(text, opening.end() if opening else at + 1)
        asserts = opening is not None and opening.group().endswith(("=", "!"))
        empty, at = asserts or any(branch.can_be_empty for branch in branches), at + 1
    elif text[at] == "\\":
        empty, at = text[at + 1 : at + 2] in tuple("bBAZ"), at + 2
    else:
        found = CLASS.match(text, at)
        at = found.end() if found else at + 1
    least, repeats, at = _quantifier(text, at)
    return _Item(can_be_empty=empty or least == 0, repeats=repeats, branches=branches), at


def _quantifier(text: str, at: int) -> tuple[int, bool, int]:
    """The fewest times that what stands before `at` must occur, whether it repeats, and where it ends."""
    mark = text[at : at + 1]
    count = _COUNT.match(text, at)
    if mark and mark in "*+?":
        least, repeats, at = int(mark == "+"), mark != "?", at + 1
    elif count and (count.group(1) or count.group(3)):
        least, most = int(count.group(1) or 0), count.group(3) if count.group(2) else count.group(1)
        repeats, at = not most or int(most) > _MANY, count.end()
    else:
        return 1, False, at
    if text.startswith("+", at):  # possessive: it never gives back what it took
        return least, False, at + 1
    return least, repeats, at + text.startswith("?", at)


def _explodes(item: _Item) -> bool:
    if item.repeats and len({branch.source for branch in item.branches}) < len(item.branches):
        return True
    if item.repeats and any(_is_a_repeat(branch) for branch in item.branches):
        return True
    return any(_explodes(inner) for branch in item.branches for inner in branch.items)


def _is_a_repeat(branch: _Branch) -> bool:
    """Whether the branch can be nothing but one repeat: one is there, and all else can be empty."""
    for item in branch.items:
        others_can_be_empty = all(other.can_be_empty for other in branch.items if other is not item)
        inside = not item.repeats and any(_is_a_repeat(inner) for inner in item.branches)
        if others_can_be_empty and (item.repeats or inside):
            return True
    return False
