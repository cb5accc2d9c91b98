"""Matching: what of a line a query is about, for the line that a hit shows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from mdmem.index import words
from mdmem.index.query import Query

# Letters and digits, with the accents that may stand behind a letter as characters of their own.
_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f])+")


class Match(NamedTuple):
    """What of a line matched: start and end in code points, end exclusive; and what the words are worth."""

    spans: tuple[tuple[int, int], ...]
    worth: float


class Matcher:
    """Finds the words of a query in lines.

    Args:
        query: what is looked for.
        worth: how much each word is worth; 1 for those that are missing.
    """

    def __init__(self, query: Query, worth: Mapping[str, float]) -> None:
        runs = [run for term in query.phrases for run in term.runs]
        known = {*query.words, *(word for run in runs for word in run)}
        beginnings = [word for term in query.prefixes for (word,) in term.runs[:1]]
        stems = {word for term in query.prefixes for (word,) in term.runs[1:]}
        self._worth = worth
        self._known: dict[str, frozenset[str]] = {}
        self._words = frozenset(word for word in known | stems if not words.is_unspaced(word))
        self._beginnings = tuple(word for word in beginnings if not words.is_unspaced(word))
        self._stretches = [word for word in (*known, *beginnings) if words.is_unspaced(word)]

    def match(self, line: str) -> Match:
        """What matches in a line."""
        spans: list[tuple[int, int]] = []
        found: set[str] = set()
        known = self._known
        for word in _WORD.finditer(line):
            written = word[0]
            held = known.get(written)
            if held is None:
                held = known[written] = self._held(written)
            if held:
                spans.append(word.span())
                found |= held
        for stretch in self._stretches:
            at = line.find(stretch)
            if at >= 0:
                found.add(stretch)
            while at >= 0:
                spans.append((at, at + len(stretch)))
                at = line.find(stretch, at + 1)
        return Match(_joined(spans), sum(self._worth.get(word, 1.0) for word in found))

    def _held(self, written: str) -> frozenset[str]:
        """The words of the query that a word of a text stands for."""
        forms, folded = _forms(written)
        held = forms & self._words
        if self._beginnings and folded.startswith(self._beginnings):
            return held | {folded}
        return held


@lru_cache(maxsize=1 << 14)
def _forms(written: str) -> tuple[frozenset[str], str]:
    """The words that a word of a text is found by, and itself without accents."""
    out = words.written_out(unicodedata.normalize("NFC", written))
    return frozenset(words.analyzer().analyze(out)), words.folded(written)


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)
