"""The nearest lines to a text that was not found, and what differs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from mdmem.errors import NearLine
from mdmem.text.document import Document
from mdmem.text.lines import LINE_END

_MOST = 3
_SIMILAR = 0.6  # SequenceMatcher's own threshold for a close match
# Comparing is quadratic in the length of lines, so only their beginnings are compared, and only the lines
# that a cheaper bound puts first.
_LONGEST_COMPARED = 200  # code points
_MOST_COMPARED = 20
_MOST_LINES = 20_000


def nearest(document: Document, old: str) -> tuple[NearLine, ...]:
    """The lines of `document` that are almost `old`, best first; at most three.

    What differs is tried from the smallest slip up: line ends, a newline at the edge, whitespace, case, both;
    then lines that are similar to the first line of `old`.
    """
    lines = [document.lines.content(number) for number in range(1, len(document.lines) + 1)]
    ended = [*lines, ""] if document.text.endswith(("\n", "\r")) else lines
    wanted = LINE_END.sub("\n", old)
    for differs, needle in (("line ends", wanted), ("a trailing newline", wanted.strip("\n"))):
        found = _places(needle, ended, "\n")
        if found:
            return _named(differs, (place + 1 for place in found), lines)
    words = [word for line in lines for word in line.split()]
    spaced = " ".join(old.split())
    slips: tuple[tuple[str, str, list[str], str], ...] = (
        ("whitespace", spaced, words, " "),
        ("case", wanted, ended, "\n"),
        ("whitespace and case", spaced, words, " "),
    )
    for differs, needle, parts, separator in slips:
        folds = "case" in differs
        found = _places(
            needle.casefold() if folds else needle,
            [part.casefold() for part in parts] if folds else parts,
            separator,
        )
        if found:
            numbers = range(1, len(lines) + 1) if parts is ended else _line_of_each_word(lines)
            return _named(differs, (numbers[place] for place in found), lines)
    return _similar(next((line for line in wanted.split("\n") if line.strip()), ""), lines)


def _named(differs: str, numbers: Iterable[int], lines: Sequence[str]) -> tuple[NearLine, ...]:
    return tuple(
        NearLine(line=number, text=lines[number - 1], differs=differs) for number in dict.fromkeys(numbers)
    )


def _line_of_each_word(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines, 1) for _ in line.split()]


def _places(needle: str, parts: Sequence[str], separator: str) -> list[int]:
    """The 0-based places of the parts in which `needle` begins, in the parts joined by `separator`."""
    if not needle:
        return []
    joined = separator.join(parts)
    ends = list(accumulate(len(part) + 1 for part in parts))
    found: list[int] = []
    at = joined.find(needle)
    while at != -1 and len(found) < _MOST:
        place = bisect_right(ends, at)
        found.append(place)
        at = joined.find(needle, ends[place])
    return found


def _similar(wanted: str, lines: Sequence[str]) -> tuple[NearLine, ...]:
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.strip()[:_LONGEST_COMPARED])
    bounds = []
    for number, line in enumerate(lines[:_MOST_LINES], 1):
        matcher.set_seq1(line.strip()[:_LONGEST_COMPARED])
        if matcher.real_quick_ratio() >= _SIMILAR and (bound := matcher.quick_ratio()) >= _SIMILAR:
            bounds.append((-bound, number))
    scored = []
    for _, number in sorted(bounds)[:_MOST_COMPARED]:
        matcher.set_seq1(lines[number - 1].strip()[:_LONGEST_COMPARED])
        scored.append((-matcher.ratio(), number))
    best = sorted(score for score in scored if -score[0] >= _SIMILAR)[:_MOST]
    return _named("similar words", (number for _, number in best), lines)
