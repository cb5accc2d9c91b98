"""Where the lines of an old text stand in a new one."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from mdmem.text.diff import Hunk, hunks
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = regex(r"\w+")
# Lines with half of their words in common are versions of one line.
_ALIKE = 0.5
# What tells a line from the many `else:` and `)`, and how many such lines tell a block from others.
_TELLING = 4
_FEWEST = 3
# Comparing more lines with more others than this is not worth the time.
_MOST_PAIRS = 40_000


class LineMap:
    """Maps lines of `old` to lines of `new` along their diff; all numbers are 1-based."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.old = old
        self.new = new
        self.hunks = hunks(old, new)
        self._likest: dict[Hunk, dict[int, int]] = {}

    def old_line(self, line: int) -> int | None:
        """Where the new line `line` stood; None when it was added."""
        at = bisect_right(self._new_starts, line - 1)
        if not at:
            return line
        hunk = self.hunks[at - 1]
        return None if line <= hunk.new_end else line - hunk.new_end + hunk.end

    @cached_property
    def _new_starts(self) -> list[int]:
        return [hunk.new_start for hunk in self.hunks]

    def moved(self, first: int, last: int) -> int | None:
        """Where the old lines `first` to `last` begin now; None unless they are all there and together."""
        shift = 0
        for hunk in self.hunks:
            if hunk.start >= last:
                break
            if hunk.end >= first:
                return None
            shift = hunk.new_end - hunk.end
        return first + shift

    def successor(self, first: int, last: int) -> tuple[int, int]:
        """What stands now where the old lines `first` to `last` stood: the first and the last new line.

        The last is the line before the first when nothing does. A change that covers more than the range
        counts only with the lines that are versions of lines in the range, or whole if it kept at least half
        its size.
        """
        start, end = first - 1, last
        places: list[int] = []
        gap: int | None = None
        at = start
        shift = 0
        for hunk in self.hunks:
            if hunk.start >= end:
                break
            if hunk.end > start:
                gap = hunk.new_start if gap is None else gap
                places += range(at + shift, max(at, hunk.start) + shift)
                places += self._versions(hunk, max(start, hunk.start), min(end, hunk.end))
                at = max(start, hunk.end)
            shift = hunk.new_end - hunk.end
        places += range(at + shift, end + shift)
        if not places:
            return (gap or 0) + 1, gap or 0
        return min(places) + 1, max(places) + 1

    def _versions(self, hunk: Hunk, start: int, end: int) -> Sequence[int]:
        """The new lines of a hunk in the place of its old lines from `start` until `end` (0-based)."""
        whole = range(hunk.new_start, hunk.new_end)
        if (start, end) == (hunk.start, hunk.end):
            return whole
        if hunk not in self._likest:
            self._likest[hunk] = self._compared(hunk)
        found = [place for place, number in self._likest[hunk].items() if start <= number < end]
        return found or (whole if 2 * len(whole) >= hunk.end - hunk.start else ())

    def _compared(self, hunk: Hunk) -> dict[int, int]:
        """The likest old line of the new lines of a hunk, of those that have one (0-based)."""
        olds = [(number, _words(self.old[number])) for number in range(hunk.start, hunk.end)]
        found: dict[int, int] = {}
        if len(olds) * (hunk.new_end - hunk.new_start) <= _MOST_PAIRS:
            for place in range(hunk.new_start, hunk.new_end):
                words = _words(self.new[place])
                likeness, number = max(((_likeness(words, other), n) for n, other in olds), default=(0.0, 0))
                if likeness >= _ALIKE:
                    found[place] = number
        return found

    def resettled(self, first: int, last: int) -> tuple[int, int] | None:
        """Where half of the old lines `first` to `last` or more were added, close by; None if nowhere."""
        content = self.old[first - 1 : last]
        telling = {line for line in content if sum(map(str.isalnum, line)) >= _TELLING}
        added = [
            place
            for hunk in self.hunks
            for place in range(hunk.new_start, hunk.new_end)
            if self.new[place] in telling
        ]
        if len(added) * len(content) > _MOST_PAIRS:
            return None
        best: list[int] = []
        most = 0
        for number, place in enumerate(added):
            near = added[number : bisect_right(added, place + 2 * len(content) - 1)]
            several = len({self.new[n] for n in near})
            if several > most:
                best, most = near, several
        if most < _FEWEST or 2 * most < len(telling):
            return None
        return best[0] + 1, best[-1] + 1


def _words(line: str) -> frozenset[str]:
    return frozenset(_WORD.findall(line))


def _likeness(some: frozenset[str], others: frozenset[str]) -> float:
    """The share of common words (the Jaccard index); none for lines without words."""
    common = len(some & others)
    return common / (len(some) + len(others) - common) if common else 0.0
