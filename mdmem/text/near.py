"""The nearest lines to a text that was not found, and what differs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import accumulate

from mdmem.errors import NearLine
from mdmem.text.document import Document
from mdmem.text.lines import LINE_END

_MOST = 3
_SIMILAR = 0.6  # SequenceMatcher's own threshold for a close match
_MOST_COMPARED = 20_000  # lines; comparing is quadratic in their length


def nearest(document: Document, old: str) -> tuple[NearLine, ...]:
    """The lines of `document` that are almost `old`, best first; at most three.

    What differs is tried from the smallest slip up: line ends, a trailing newline, whitespace, case, both;
    then lines that are similar to the first line of `old`.
    """
    lines = [document.lines.content(number) for number in range(1, len(document.lines) + 1)]
    wanted = LINE_END.sub("\n", old)
    tries: list[tuple[str, str, Callable[[str], str]]] = [
        ("line ends", wanted, str),
        ("a trailing newline", wanted.strip("\n"), str),
        ("case", wanted.casefold(), str.casefold),
    ]
    for differs, needle, fold in tries:
        found = _lines_of(needle, [fold(line) for line in lines], "\n")
        if found and needle:
            return tuple(NearLine(line=n, text=lines[n - 1], differs=differs) for n in found)
    words = [(word, number) for number, line in enumerate(lines, 1) for word in line.split()]
    for differs, fold in (("whitespace", str), ("whitespace and case", str.casefold)):
        needle = " ".join(fold(old).split())
        found = _lines_of(needle, [fold(word) for word, _ in words], " ")
        if found and needle:
            return tuple(
                NearLine(line=words[n - 1][1], text=lines[words[n - 1][1] - 1], differs=differs)
                for n in found
            )
    return _similar(next((line for line in wanted.split("\n") if line.strip()), ""), lines)


def _lines_of(needle: str, parts: list[str], separator: str) -> list[int]:
    """The 1-based numbers of the parts in which `needle` begins, in the parts joined by `separator`."""
    joined = separator.join(parts)
    ends = list(accumulate(len(part) + 1 for part in parts))
    found: list[int] = []
    at = joined.find(needle) if needle else -1
    while at != -1 and len(found) < _MOST:
        found.append(bisect_right(ends, at) + 1)
        at = joined.find(needle, at + 1)
    return list(dict.fromkeys(found))


def _similar(wanted: str, lines: list[str]) -> tuple[NearLine, ...]:
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.strip())
    scored = []
    for number, line in enumerate(lines[:_MOST_COMPARED], 1):
        matcher.set_seq1(line.strip())
        if line.strip() and matcher.real_quick_ratio() >= _SIMILAR and matcher.quick_ratio() >= _SIMILAR:
            scored.append((-matcher.ratio(), number, line))
    best = sorted(s for s in scored if -s[0] >= _SIMILAR)[:_MOST]
    return tuple(NearLine(line=number, text=line, differs="similar words") for _, number, line in best)
