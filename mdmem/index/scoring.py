"""Scoring: which memories, and which passages of them, fit a query best.

Two searches: one of the memories as a whole, then one of the passages of the best of them. Both score by BM25
with tantivy's k1 of 1.2 and b of 0.75 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

from tantivy import DocAddress, FieldType, Occur, Query as Search

from mdmem.index import weights
from mdmem.index.query import Filters, Query, Term
from mdmem.index.text import Place, TextIndex, Whole, of_memory, schema, wholes_query
from mdmem.text.regex import regex

_TEXTS = ("whole", "title", "tags")
_MEMORY_FIELDS = {"title": weights.TITLE, "headings": weights.HEADINGS, "tags": weights.TAGS}
_META, _ESCAPED = regex(r"[\\.+*?()|\[\]{}^$#&~-]"), r"\\\g<0>"
_LAST_DAY = 99_999_999
_DAYS_A_YEAR, _DAYS_A_MONTH = 365.25, 30.44


class Part(NamedTuple):
    """A part of a score.

    Attributes:
        of: what it is for. Of the memory: text, title, headings, tags, recency, confidence. Of its best
            passage: passage, heading (above it), pair (of words in it), neighbours.
        word: the word, as the index has it; empty where it is for none.
        value: how much.
    """

    of: str
    word: str
    value: float


class Ranked(NamedTuple):
    """A memory, or a passage of one, that fits.

    Attributes:
        key: of the memory.
        address: of its first passage.
        place: the passage; None for a memory of which none fits, but its title or tags.
        day: of the memory, such as 20260131; 0 for none.
        score: how well it fits.
        parts: what the score is the sum of, in large.
    """

    key: int
    address: DocAddress
    place: Place | None
    day: int
    score: float
    parts: tuple[Part, ...]


class Ranking(NamedTuple):
    """What fits, the best first, and how many fit in `all`, at least."""

    best: list[Ranked]
    all: int


class Clause(NamedTuple):
    """A part of a search: what it is for, its word, and how it is searched for."""

    of: str
    word: str
    search: Search


class Scorer:
    """Scores one query.

    Args:
        index: where.
        query: what for.
        folders: folders or memories that what is found stands in, all of them; the wall around it.
        today: such as 20260131, for recency.
    """

    def __init__(self, index: TextIndex, query: Query, folders: Sequence[str], today: int) -> None:
        self._index = index
        self._folders = [folder for folder in folders if folder]
        self._today = today
        self._frequency = cache(index.frequency)
        self._query = query
        loosened = query.loosened()
        if loosened is not query and not index.count(Search.boolean_query(self._narrowed())):
            self._query = loosened

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the query was not used, in words."""
        return self._query.notes

    # -- what is found ------------------------------------------------------------------------------------

    def memories(self, most: int) -> Ranking:
        """The memories that fit, `most` of them at least; the newest first where nothing is ranked by."""
        candidates, count = self._candidates(most)
        if not self._query.is_ranked:
            newest = [Ranked(w.key, address, None, w.day, 0.0, ()) for w, address, _ in candidates.values()]
            return Ranking(newest, count)
        best: dict[int, tuple[float, float, Place | None]] = {}
        for found, own, near in self._passages(candidates, weights.NEIGHBOURS):
            known = best.get(found.key)
            if known is None or own + near > known[0] + known[1]:
                best[found.key] = own, near, found
        ranked = []
        for key, (whole, address, memory) in candidates.items():
            parts = [Part("memory", "", memory)]
            score, around, place = best.get(key, (0.0, 0.0, None))
            if place:
                parts.append(Part("passage", "", weights.BEST_PASSAGE * score))
                parts.append(Part("neighbours", "", weights.BEST_PASSAGE * around))
            ranked.append(self._ranked(whole, address, place, parts))
        ranked.sort(key=lambda each: (-each.score, each.key))
        return Ranking(ranked, count)

    def passages(self, most: int) -> Ranking:
        """The passages of the memories that fit best; the newest memories where nothing is ranked by."""
        if not self._query.is_ranked:
            return self.memories(most)
        candidates, count = self._candidates(most)
        ranked = []
        for place, score, around in self._passages(candidates, weights.PASSAGE_NEIGHBOURS):
            whole, address, memory = candidates[place.key]
            parts = [
                Part("passage", "", score),
                Part("neighbours", "", around),
                Part("memory", "", weights.MEMORY * memory),
            ]
            ranked.append(self._ranked(whole, address, place, parts))
        ranked.sort(key=lambda each: (-each.score, each.key, each.place))
        return Ranking(ranked, len(ranked) + count - len(candidates))

    def _candidates(self, most: int) -> tuple[dict[int, tuple[Whole, DocAddress, float]], int]:
        """The memories to look into: by key, what is kept of each, where, its score; and how many fit."""
        most = max(weights.CANDIDATES, most + weights.SPARE)
        found, count = self._index.counted(self._search, most, newest=not self._query.is_ranked)
        wholes = self._index.wholes([address for _, address in found])
        return {w.key: (w, f.address, f.score) for w, f in zip(wholes, found, strict=True)}, count

    def _passages(
        self, memories: Mapping[int, object], shares: Sequence[float]
    ) -> Iterator[tuple[Place, float, float]]:
        """The passages that fit in some memories, with their score, and what stands around them gives."""
        clauses = self._passage_clauses
        if not clauses or not memories:
            return
        # One term query for each memory: a set of terms is looked up in all there are, which takes longer.
        searched = _silent(_either([of_memory(key) for key in memories]))
        for clause in clauses:
            # One by one, because tantivy goes through whole blocks of documents for a union of clauses, and
            # here few documents count: a third of the time.
            searched = Search.boolean_query([(Occur.Must, searched), (Occur.Should, clause.search)])
        found = [hit for hit in self._index.best(searched, weights.MOST_PASSAGES) if hit.score > 0]
        places = self._index.places([address for _, address in found])
        scores = {(p.key, p.ordinal): f.score for p, f in zip(places, found, strict=True)}
        steps = [(n, share) for n, share in enumerate(shares, 1)]
        for place in places:
            key, ordinal = place.key, place.ordinal
            around = 0.0
            for step, share in steps:
                around += share * (
                    scores.get((key, ordinal - step), 0.0) + scores.get((key, ordinal + step), 0.0)
                )
            yield place, scores[key, ordinal], around

    def _ranked(self, whole: Whole, address: DocAddress, place: Place | None, parts: list[Part]) -> Ranked:
        """With the priors, which are shares of the score: they settle what is close, and nothing else."""
        score = sum(part.value for part in parts)
        recency = weights.RECENCY * score * _recency(whole.day, self._today)
        doubt = -weights.CONFIDENCE * score * (1 - whole.confidence)
        if recency:
            parts.append(Part("recency", "", recency))
        if doubt:
            parts.append(Part("confidence", "", doubt))
        return Ranked(whole.key, address, place, whole.day, score + recency + doubt, tuple(parts))

    # -- how a score was made -----------------------------------------------------------------------------

    def explain(self, ranked: Ranked) -> tuple[Part, ...]:
        """The parts of a score in small: what each word gives in each field. They add up to it."""
        parts: list[Part] = []
        for part in ranked.parts:
            if part.of == "memory":
                clauses = [*self._memory_clauses, *self._common_clauses]
                parts += self._explained(part, clauses, ranked.key, None)
            elif part.of == "passage":
                parts += self._explained(part, self._passage_clauses, ranked.key, ranked.place)
            elif part.value:
                parts.append(part)
        return tuple(parts)

    def _explained(
        self, part: Part, clauses: Sequence[Clause], key: int, place: Place | None
    ) -> Iterator[Part]:
        """What each clause gives to a part, so that it is their sum."""
        given: dict[tuple[str, str], float] = {}
        for clause in clauses:
            found = self._index.best(_both(clause.search, of_memory(key)), weights.MOST_PASSAGES)
            places = self._index.places([address for _, address in found])
            for each, hit in zip(places, found, strict=True):
                if place is None or each == place:
                    name = clause.of, clause.word
                    given[name] = given.get(name, 0.0) + hit.score
        total = sum(given.values())
        for (of, word), value in given.items():
            yield Part(of, word, part.value * value / total)

    # -- what is searched for -----------------------------------------------------------------------------

    @cached_property
    def _search(self) -> Search:
        """Finds the memories that fit, scored by their texts as a whole."""
        clauses = self._narrowed()
        if self._query.is_ranked:
            clauses.append((Occur.Must, _any(self._memory_clauses)))
            clauses += [(Occur.Should, clause.search) for clause in self._common_clauses]
        else:
            clauses.append((Occur.Must, _silent(wholes_query())))
        return Search.boolean_query(clauses)

    def _narrowed(self) -> list[tuple[Occur, Search]]:
        """What a memory has to hold, and must not."""
        demanded = [*map(_place, self._folders), *_demanded(self._query)]
        clauses = [(Occur.Must, _silent(search)) for search in demanded]
        return clauses + [(Occur.MustNot, search) for search in _excluded(self._query)]

    @cached_property
    def _memory_clauses(self) -> list[Clause]:
        """What gives a memory its score as a whole."""
        clauses = []
        for word in self._query.words:
            weight, frequency = self._weight(word), self._frequency("whole", word)
            if frequency:
                held = Search.term_query(schema(), "whole", word)
                clauses.append(self._often(word, 1 - weights.PRESENCE))
                clauses.append(
                    Clause("text", word, Search.const_score_query(held, weight * weights.PRESENCE))
                )
            for name, share in _MEMORY_FIELDS.items():
                frequency = self._frequency(name, word)
                if frequency:
                    held = Search.term_query(schema(), name, word)
                    boost = share * weight / self._rarity(frequency)
                    clauses.append(Clause(name, word, Search.boost_query(held, boost)))
        for term in self._query.prefixes:
            held = _either([_term(term, name) for name in _TEXTS])
            weight = _idf(self._index.memories, self._index.count(held))
            word = f"{term.runs[0][0]}*"
            clauses.append(Clause("text", word, Search.const_score_query(held, weight)))
        if not clauses:
            # None of the words is there; or there are only phrases of words too short to have any weight.
            clauses = [
                Clause("text", "", _term(term, name)) for term in self._query.phrases for name in _TEXTS
            ]
        return clauses

    @cached_property
    def _common_clauses(self) -> list[Clause]:
        """What stop words add to that: by how often it holds them, and nothing for holding them at all."""
        held = [word for word in self._query.common if self._frequency("whole", word)]
        return [self._often(word, weights.COMMON) for word in held]

    def _often(self, word: str, share: float) -> Clause:
        """What a memory has for how often it holds a word, which is so much of the word's weight."""
        # tantivy counts passages where memories are meant: what that makes of a weight is taken back.
        boost = share * self._weight(word) / self._rarity(self._frequency("whole", word))
        held = Search.term_query(schema(), "whole", word)
        return Clause("text", word, Search.boost_query(held, boost))

    @cached_property
    def _passage_clauses(self) -> list[Clause]:
        """What gives a passage its score."""
        clauses = []
        for word in self._query.words:
            frequency = self._frequency("text", word)
            if frequency:
                held = Search.term_query(schema(), "text", word)
                weight = self._rarity(frequency) * weights.PASSAGE_PRESENCE
                clauses.append(
                    Clause("passage", word, Search.boost_query(held, 1 - weights.PASSAGE_PRESENCE))
                )
                clauses.append(Clause("passage", word, Search.const_score_query(held, weight)))
            if self._frequency("heading", word):
                above = Search.term_query(schema(), "heading", word)
                clauses.append(Clause("heading", word, Search.boost_query(above, weights.HEADING)))
        for pair in list(pairwise(self._query.words))[: weights.MOST_PAIRS]:
            near = Search.phrase_query(schema(), "text", list(pair), weights.PAIR_GAP)
            clauses.append(Clause("pair", " ".join(pair), Search.boost_query(near, weights.PAIR)))
        for term in self._query.prefixes:
            held = _term(term, "text")
            weight = _idf(self._index.searcher().num_docs, self._index.count(held))
            clauses.append(Clause("passage", f"{term.runs[0][0]}*", Search.const_score_query(held, weight)))
        return clauses

    @property
    def worth(self) -> dict[str, float]:
        """What each word of the query is worth: the rarer it is, the more."""
        return {word: self._weight(word) for word in self._query.words}

    def _weight(self, word: str) -> float:
        rarity = _idf(self._index.memories, self._frequency("whole", word))
        return rarity + weights.RARITY_IN_PASSAGES * self._rarity(self._frequency("text", word))

    def _rarity(self, frequency: int) -> float:
        """What tantivy takes for the weight of a word that so many passages have."""
        return _idf(self._index.searcher().num_docs, frequency)


def _demanded(query: Query) -> Iterator[Search]:
    """What has to hold."""
    for term in query.phrases:
        yield _either([_term(term, name) for name in _TEXTS])
    yield from (_tag(tag) for tag in query.filters.tags)
    if query.filters.types:
        yield _either([_type(name) for name in query.filters.types])
    if query.filters.paths:
        yield _either([_path(path) for path in query.filters.paths])
    if query.after or query.before:
        # A memory without a day has 0 for one, which is not before anything.
        last = query.before - 1 if query.before else _LAST_DAY
        first = max(query.after, 1)
        if first > last:
            yield Search.empty_query()
        else:
            yield Search.range_query(schema(), "day", FieldType.Unsigned, first, last)


def _excluded(query: Query) -> Iterator[Search]:
    """What must not hold."""
    for group in query.without:
        held = [_either([_term(term, name) for name in _TEXTS]) for term in group]
        yield Search.boolean_query([(Occur.Must, search) for search in held])
    excluded: Filters = query.excluded
    yield from (_tag(tag) for tag in excluded.tags)
    yield from (_type(name) for name in excluded.types)
    yield from (_path(path) for path in excluded.paths)


def _term(term: Term, name: str) -> Search:
    """Finds a term in a field."""
    found = [
        Search.term_query(schema(), name, run[0])
        if len(run) == 1
        else Search.phrase_query(schema(), name, list(run))
        for run in term.runs
    ]
    if term.is_prefix:
        found[0] = Search.regex_query(schema(), name, f"{_META.sub(_ESCAPED, term.runs[0][0])}.*")
    return _either(found)


def _place(folder: str) -> Search:
    return Search.term_query(schema(), "folder", folder)


def _tag(tag: str) -> Search:
    return Search.term_query(schema(), "tag", tag)


def _type(name: str) -> Search:
    return Search.term_query(schema(), "type", name)


def _path(beginning: str) -> Search:
    return Search.regex_query(schema(), "path", f"{_META.sub(_ESCAPED, beginning)}.*")


def _either(searches: Sequence[Search]) -> Search:
    if len(searches) == 1:
        return searches[0]
    return Search.boolean_query([(Occur.Should, search) for search in searches])


def _any(clauses: Sequence[Clause]) -> Search:
    return Search.boolean_query([(Occur.Should, clause.search) for clause in clauses])


def _both(search: Search, silent: Search) -> Search:
    """Finds what both find, scored by the first."""
    return Search.boolean_query([(Occur.Must, search), (Occur.Must, _silent(silent))])


def _silent(search: Search) -> Search:
    """Finds the same, and scores nothing."""
    return Search.const_score_query(search, 0.0)


def _idf(documents: int, having: int) -> float:
    """The weight of a word that so many of the documents have, as BM25 has it in Lucene and tantivy."""
    return math.log(1 + (max(documents, having) - having + 0.5) / (having + 0.5))


def _recency(day: int, today: int) -> float:
    """1 for today, half of it for each so many days; 0 for a memory without a day."""
    if not day:
        return 0.0
    age = max(0.0, _days(today) - _days(day))
    return math.exp2(-age / weights.RECENCY_DAYS)


def _days(day: int) -> float:
    """A day as a number of days, near enough for a prior."""
    return day // 10_000 * _DAYS_A_YEAR + day // 100 % 100 * _DAYS_A_MONTH + day % 100
