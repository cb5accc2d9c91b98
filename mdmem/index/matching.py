"""Matching: what of a line a query is about, for the line that a hit shows."""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mdmem.index import words
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mdmem.index.query import Query

# Letters and digits, with the accents that may stand behind a letter as characters of their own.
_WORD = regex("(?:[^\\W_]++|[\u0300-\u036f]++)++")
# How many words of texts, and of the index, are kept from one search to the next: some megabytes.
_MOST_KEPT = 1 << 15
# What parts words in ASCII, as spaces: that takes a fifth of the time.
_SPACED = bytes(code if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)


class Held(NamedTuple):
    """What a text holds of a query: a share of what its words are worth, 0 to 1, and how many of them."""

    share: float
    words: int


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
        if len(_vocabulary()) > _MOST_KEPT:
            _vocabulary.cache_clear()
        self._vocabulary = _vocabulary()
        spelt = self._vocabulary.spelt
        self._words = [(word, spelt[word]) for word in sorted(known | stems) if not words.is_unspaced(word)]
        self._beginnings = tuple(word for word in beginnings if not words.is_unspaced(word))
        self._stretches = [word for word in (*known, *beginnings) if words.is_unspaced(word)]

    def spans(self, line: str) -> tuple[tuple[int, int], ...]:
        """What matches in a line: start and end in code points, end exclusive."""
        telling = self._telling(_words_in(line))
        spans = [word.span() for word in _WORD.finditer(line) if word[0] in telling]
        for stretch in self._stretches:
            at = line.find(stretch)
            while at >= 0:
                spans.append((at, at + len(stretch)))
                at = line.find(stretch, at + 1)
        return _joined(spans)

    def _telling(self, written: frozenset[str]) -> set[str]:
        """Those words of a text that stand for a word of the query."""
        self._vocabulary.meet(written)
        telling = {each for _, spelt in self._words for each in written & spelt}
        if self._beginnings:
            telling.update(each for each in written if _folded(each).startswith(self._beginnings))
        return telling

    def worth(self, line: str) -> float:
        """What the words in a line are worth, each of them once."""
        found = self._found(line)
        return math.fsum(self._worth.get(word, 1.0) for word in found) if found else 0.0

    def _found(self, line: str) -> set[str]:
        """The words of the query in a line."""
        written = _words_in(line)
        self._vocabulary.meet(written)
        found = {word for word, spelt in self._words if not spelt.isdisjoint(written)}
        if self._beginnings:
            found.update(word for word in map(_folded, written) if word.startswith(self._beginnings))
        if self._stretches:
            found.update(stretch for stretch in self._stretches if stretch in line)
        return found

    def held(self, text: str) -> Held:
        """How much of what is looked for a text holds."""
        total = math.fsum(self._worth.values())
        found = self._found(text)
        worth = math.fsum(self._worth.get(word, 0.0) for word in found)
        return Held(worth / total if total else 0.0, len(found))


class _Vocabulary:
    """The words of texts that were met, by the words of the index that they stand for.

    Attributes:
        spelt: a word of the index to what was met of it.
    """

    def __init__(self) -> None:
        self.spelt: defaultdict[str, set[str]] = defaultdict(set)
        self._met: set[str] = set()

    def __len__(self) -> int:
        return len(self._met) + len(self.spelt)

    def meet(self, written: frozenset[str]) -> None:
        """Note what the words of a text stand for."""
        new = list(written - self._met)
        if not new:
            return
        together = " ".join(new)
        if together.isascii() and words.is_plain(together):
            # Each of them is one word of the index: one call serves all.
            for each, form in zip(new, words.analyzer().analyze(together), strict=True):
                self.spelt[form].add(each)
        else:
            for each in new:
                out = words.written_out(unicodedata.normalize("NFC", each))
                for form in words.analyzer().analyze(out):
                    self.spelt[form].add(each)
        # Last: another thread that takes a word for met looks for it above.
        self._met.update(new)


@cache
def _vocabulary() -> _Vocabulary:
    """What this process has met."""
    return _Vocabulary()


def _words_in(line: str) -> frozenset[str]:
    if line.isascii():
        return frozenset(line.encode().translate(_SPACED).decode().split())
    return frozenset(_WORD.findall(line))


@lru_cache(maxsize=1 << 14)
def _folded(written: str) -> str:
    """A word of a text without accents."""
    return words.folded(written)


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)
