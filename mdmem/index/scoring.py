"""Scoring: which memories, and which passages of them, fit a query best.

tantivy finds and counts documents. The scores are made here, by BM25 with k1 of 1.2 and b of 0.75 (Robertson
and Zaragoza, The Probabilistic Relevance Framework, 2009): tantivy's own depend on word frequencies and
lengths in the whole index, which would leak what other namespaces hold.
How often a memory holds a word is counted in passages.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby, pairwise, zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from tantivy import DocAddress, FieldType, Query as Search

from mdmem.index import text_index
from mdmem.index.passages import is_signed, spelled
from mdmem.index.query import FILLER_SHARE, Each, Query, Term, filler_words
from mdmem.index.text_index import (
    PassagePlace,
    TextView,
    Whole,
    any_of,
    boolean,
    escaped,
    having,
    having_run,
    of_kind,
    of_memories,
    of_namespace,
    schema,
    unscored,
    wholes_query,
)
from mdmem.kind import OBSERVATION, PROPOSAL, kind_at

if TYPE_CHECKING:
    from mdmem.index.meaning import Nearness

_TEXTS = ("whole", "title", "tags")
_NAMES = ("whole", "title", "headings", "tags")
_MEMORY_FIELDS = {"title": text_index.TITLE, "headings": text_index.HEADINGS, "tags": text_index.TAGS}
_LAST_DAY = 99_999_999
_DAYS_A_YEAR, _DAYS_A_MONTH = 365.25, 30.44
_K1, _B = 1.2, 0.75
_PRIORS = ("recency", "confidence", "layer", "observed")
# What clauses about passages are for (see `Clause`); and those of them about one word in the text.
_OF_PASSAGES = frozenset(("passage", "common", "heading", "pair"))
_OF_WORDS = frozenset(("passage", "common"))
_MEANING = "meaning"
# Weights are rounded to 1/32, which is enough to choose the memories to score.
_FINE = 32


class ScorePart(NamedTuple):
    """A part of a score.

    Attributes:
        of: what it is for. Of the memory: text, title, name (the query is its name), headings, tags,
            recency, confidence, layer, observed. Of its best passage: passage, heading (above it), pair (of
            words in it), neighbours. Of both: meaning.
        word: the word, or the name, as the index has it; empty where it is for none.
        value: how much.
    """

    of: str
    word: str
    value: float


class Contender(NamedTuple):
    """A memory that may fit.

    Attributes:
        whole, address: its fields in the index, and where they are.
        layer: the number of its namespace, 0 for the own one.
        priors: shares of its score that are added to it, see `_PRIORS`; they settle what is close.
        matches: the clauses about memories that match.
        passages: those that match, by ordinal: where each is, and its clauses.
        often: how many passages hold each word.
        near: how near passages are to the query in meaning, above 0, by ordinal.
        is_worded: whether words find it; else its meaning alone.
    """

    whole: Whole
    address: DocAddress
    layer: int
    priors: tuple[float, ...]
    matches: Sequence[Clause]
    passages: dict[int, tuple[PassagePlace, list[Clause]]]
    often: Mapping[str, int]
    near: Mapping[int, float]
    is_worded: bool


class Ranked(NamedTuple):
    """A memory, or a passage of one, that fits.

    Attributes:
        place: the passage; None where only the title or tags of the memory fit.
        score: how well it fits.
        parts: the score of the memory as a whole, of the passage, and of those around it; without priors.
        is_worded: whether words find it, so that it counts; else its meaning alone.
    """

    candidate: Contender
    place: PassagePlace | None
    score: float
    parts: tuple[float, float, float]
    is_worded: bool


class RankedBlock(NamedTuple):
    """Some of the hits, the best first, and how many memories that fit are in no block yet."""

    ranked: list[Ranked]
    further: int


class Clause(NamedTuple):
    """A part of a search.

    Attributes:
        of, word: what it is for; as in `ScorePart`.
        search: finds the documents that match.
        worth: the score of a document that matches.
        growing: a further score, multiplied by `_saturate_frequency`.
    """

    of: str
    word: str
    search: Search
    worth: float = 0.0
    growing: float = 0.0


class Scorer:
    """Scores one query.

    Args:
        within: folders or memories to search; empty for all.
        today: such as 20260131, for recency.
        near: how near passages are in meaning; None for words alone.
        is_beside: score only observations, by how often words occur in every memory. Observations repeat
            other memories: they have their own scorer, and do not count for how rare a word is elsewhere.
    """

    def __init__(
        self,
        view: TextView,
        query: Query,
        within: Sequence[str],
        today: int,
        *,
        near: Nearness | None = None,
        is_beside: bool = False,
    ) -> None:
        self._view = view
        self._index = view.index
        self._within = within
        self._today = today
        self._near = near
        self._weights: dict[str, float] = {}
        self._query = query
        pairs = (" ".join(pair) for pair in pairwise(query.words) if filler_words().issuperset(pair))
        self._fillers = {*filler_words().intersection(query.words), *pairs}
        self._is_beside, self._beside = is_beside, None
        if is_beside:
            return
        loosened = query.loosened()
        if loosened is not query and not self._index.count(self._restrict([])):
            self._query = loosened
        if self._count_seen("observations", of_kind(OBSERVATION)):
            self._beside = Scorer(view, self._query, within, today, near=near, is_beside=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the parts of the query that were not used."""
        return self._query.notes

    def missing(self) -> list[str]:
        """Return the words of the query that no visible memory has."""
        if self._beside:
            return self._beside.missing()
        return [word for word in self._query.words if not any(self._count_word(n, word) for n in _NAMES)]

    def alike(self, word: str, distance: int) -> list[str]:
        """Return the paths of visible memories with a word that differs in at most `distance` letters."""
        return self._view.find_alike(_TEXTS, word, distance)

    def rank(self, each: Each) -> Iterator[RankedBlock]:
        """Rank the memories, or passages, that fit, in blocks.

        The first block has the `text_index.BLOCK` memories that match most words; each further one ends at
        twice as many. A query without words gives the newest memories first.
        """
        by_passage = self._ranks_passages(each)
        own_blocks = self._find_blocks(self._text_search if by_passage else self._memory_search)
        score = self._score_passages if by_passage else self._score_memory
        beside = self._beside.rank(each) if self._beside else ()
        for own, other in zip_longest(own_blocks, beside):
            memories, further = own or ((), 0)
            ranked = [each for memory in memories for each in score(memory)]
            if other:
                ranked, further = ranked + other.ranked, further + other.further
            yield RankedBlock(self._sort_ranked(ranked), further)

    def _ranks_passages(self, each: Each) -> bool:
        return each == "passage" and self._query.is_ranked

    def list_keys(self, each: Each) -> list[int]:
        """List the key of its memory for all that the blocks of `rank` hold."""
        by_passage = self._ranks_passages(each)
        hits, _ = self._index.memories(
            self._text_search if by_passage else self._memory_search, text_index.ALL
        )
        keys = self._index.keys(hits)
        if by_passage:
            keys = self._list_passage_keys(set(keys))
        return keys + (self._beside.list_keys(each) if self._beside else [])

    def _list_passage_keys(self, memories: Container[int]) -> list[int]:
        holding = [clause.search for clause in self._passage_clauses if clause.of == "passage"]
        if not holding:
            return []
        found = self._index.best(Search.const_score_query(any_of(holding), 1.0), text_index.ALL)
        return [key for key in self._index.keys(found) if key in memories]

    def _find_blocks(self, search: Search) -> Iterator[tuple[Iterator[Contender], int]]:
        """Yield the memories that fit, in blocks, each with the number of those that are in no block yet."""
        most, taken, count = text_index.BLOCK, 0, 1
        while taken < count:
            hits, count = self._index.memories(search, most, newest=not self._query.is_ranked)
            if taken < len(hits) or (self._near and not taken):
                addresses = [address for _, address in hits[taken:]]
                near = None if taken else self._near
                more = self._find_nearest(near, addresses) if near and count < text_index.BLOCK else []
                taken = len(hits)
                yield self._inspect_memories(addresses, more, near), count - taken
            most *= 2

    def _score_memory(self, candidate: Contender) -> Iterator[Ranked]:
        share, none = text_index.BEST_PASSAGE, (None, 0.0, 0.0)
        passages = self._weigh_passages(candidate, text_index.NEIGHBOURS)
        place, own, around = max(passages, key=_sum_passage, default=none)
        if place and self._fillers:
            telling = self._weigh_passages(candidate, text_index.NEIGHBOURS, FILLER_SHARE)
            place, *_ = max(telling, key=_sum_passage)
        parts = _sum_parts(self._list_memory_parts(candidate)), share * own, share * around
        score = sum(parts) * (1 + sum(candidate.priors))
        yield Ranked(candidate, place, score, parts, candidate.is_worded)

    def _score_passages(self, candidate: Contender) -> Iterator[Ranked]:
        memory = text_index.MEMORY * _sum_parts(self._list_memory_parts(candidate))
        factor = 1 + sum(candidate.priors)
        for place, own, around in self._weigh_passages(candidate, text_index.PASSAGE_NEIGHBOURS):
            is_worded = any(clause.of == "passage" for clause in candidate.passages[place.ordinal][1])
            if is_worded or place.ordinal in candidate.near:
                score = (memory + own + around) * factor
                yield Ranked(candidate, place, score, (memory, own, around), is_worded)
            # Else a heading above has the words, and stands in a passage of its own.

    def paths(self, ranked: Iterable[Ranked]) -> list[str]:
        """Return the vault paths of the memories that were ranked, in their order."""
        return self._index.paths_at([each.candidate.address for each in ranked])

    def _find_nearest(self, near: Nearness, found: Sequence[DocAddress]) -> list[DocAddress]:
        """Find the nearest memories that pass the filters, as many as the first block has room for."""
        known = {whole.key for whole in self._index.wholes(found)}
        wanted, keys = text_index.BLOCK - len(found), near.nearest(text_index.NEAREST)
        fits = self._find_fitting(keys)
        if len(fits.keys() - known) < wanted and len(keys) >= text_index.BLOCK:
            # Filters leave few of the nearest ones: look at all that fit.
            fits = self._find_fitting(None)
            keys = near.nearest(text_index.NEAREST, fits.keys() - known)
        return [fits[key] for key in keys if key in fits and key not in known][:wanted]

    def _find_fitting(self, keys: Sequence[int] | None) -> dict[int, DocAddress]:
        searches = [Search.const_score_query(wholes_query(), 1.0)]
        if keys is not None:
            searches.append(any_of(of_memories(keys)))
        places = [place for _, place in self._index.best(self._restrict(searches), text_index.ALL)]
        return {whole.key: place for whole, place in zip(self._index.wholes(places), places, strict=True)}

    def _inspect_memories(
        self, found: Sequence[DocAddress], more: Sequence[DocAddress] = (), nearness: Nearness | None = None
    ) -> Iterator[Contender]:
        """Find the clauses that match each memory: those found by words, and those near in meaning."""
        addresses = [*found, *more]
        wholes, near = self._index.wholes(addresses), dict[int, dict[int, float]]()
        if nearness:
            by_path = nearness.of_memories(self._index.paths_at(addresses))
            near = {text_index.key_of(path): each for path, each in by_path.items()}
        passages: dict[int, dict[int, tuple[PassagePlace, list[Clause]]]] = {w.key: {} for w in wholes}
        matches: dict[int, list[Clause]] = {}
        for place, (own, others) in self._match_clauses(list(passages), every=bool(near)).items():
            if own or place.ordinal in near.get(place.key, ()):
                passages[place.key][place.ordinal] = place, own
            if place.ordinal == 0:
                matches[place.key] = others
        for number, (whole, address) in enumerate(zip(wholes, addresses, strict=True)):
            own_passages, of_memory = passages[whole.key], matches.get(whole.key, [])
            layers = (int(clause.word) for clause in of_memory if clause.of == "layer")
            layer = min(layers, default=len(self._layer_clauses))
            priors = (
                text_index.RECENCY * _weigh_recency(whole.day, self._today),
                -text_index.CONFIDENCE * (1 - whole.confidence),
                -text_index.LAYER * layer,
                text_index.OBSERVED - 1 if self._is_beside else 0.0,
            )
            often: dict[str, int] = {}
            for clause in (clause for _, own in own_passages.values() for clause in own):
                if clause.of in _OF_WORDS:
                    often[clause.word] = often.get(clause.word, 0) + 1
            of_memory = [clause for clause in of_memory if clause.of not in {"layer", _MEANING}]
            near_own, is_worded = near.get(whole.key, {}), number < len(found)
            yield Contender(
                whole, address, layer, priors, of_memory, own_passages, often, near_own, is_worded
            )

    def _match_clauses(
        self, keys: Sequence[int], *, every: bool
    ) -> dict[PassagePlace, tuple[list[Clause], list[Clause]]]:
        clauses = [*self._passage_clauses, *self._memory_clauses, *self._layer_clauses]
        if every:
            clauses.append(Clause(_MEANING, "", Search.all_query()))
        found = self._index.find_matching([clause.search for clause in clauses], keys)
        # Many passages match the same clauses.
        split = {
            numbers: _split_clauses([clauses[number] for number in numbers])
            for numbers in set(found.values())
        }
        return {place: split[numbers] for place, numbers in found.items()}

    def _weigh_passages(
        self, candidate: Contender, shares: Sequence[float], filler: float = 1.0
    ) -> Iterator[tuple[PassagePlace, float, float]]:
        """Score the passages that fit, in order; the second number is the share of those around."""
        scores: dict[int, float] = {}
        for ordinal, (place, clauses) in candidate.passages.items():
            worth = growing = 0.0
            for clause in clauses:
                share = filler if clause.word in self._fillers else 1.0
                worth += clause.worth * share
                growing += clause.growing * share
            worth += self._weigh_nearness(text_index.PASSAGE_MEANING, candidate.near.get(ordinal, 0.0))
            if worth or growing:
                scores[ordinal] = worth + growing * _saturate_frequency(1, place.length)
        for ordinal in sorted(scores):
            around = 0.0
            for step, share in enumerate(shares, 1):
                around += share * (scores.get(ordinal - step, 0.0) + scores.get(ordinal + step, 0.0))
            yield candidate.passages[ordinal][0], scores[ordinal], around

    def _weigh_nearness(self, share: float, nearness: float) -> float:
        """Return the score for nearness in meaning, a share of the weight of the words of the query."""
        return nearness * share * self._query_worth if nearness else 0.0

    @cached_property
    def _query_worth(self) -> float:
        """The weight of all words of the query; 1 where no memory has any of them."""
        return math.fsum(map(self._weigh_word, self._query.words)) if self._known_words else 1.0

    def _sort_ranked(self, ranked: list[Ranked]) -> list[Ranked]:
        """Sort by score, then the newest, then the nearest layer, then by path and line."""
        ordered: list[Ranked] = []
        for _, group in groupby(sorted(ranked, key=_rank_key), key=_rank_key):
            equal = list(group)
            if len(equal) > 1:  # a path is read from the disk
                ordinals = [tie.place.ordinal if tie.place else 0 for tie in equal]
                tied = zip(self.paths(equal), ordinals, equal, strict=True)
                equal = [tie for *_, tie in sorted(tied, key=itemgetter(0, 1))]
            ordered += equal
        return ordered

    def explain(self, ranked: Ranked) -> tuple[ScorePart, ...]:
        """Return the parts of a score, by field and word; they add up to it."""
        candidate = ranked.candidate
        if self._beside and candidate.priors[-1]:
            return self._beside.explain(ranked)
        memory, passage, neighbours = ranked.parts
        parts = [*_scale_parts(memory, self._list_memory_parts(candidate))]
        if ranked.place:
            parts += _scale_parts(passage, self._list_passage_parts(candidate, ranked.place))
        rest = (neighbours, *(sum(ranked.parts) * share for share in candidate.priors))
        parts += [ScorePart(of, "", value) for of, value in zip(("neighbours", *_PRIORS), rest, strict=True)]
        meaning = math.fsum(part.value for part in parts if part.of == _MEANING)
        parts = [*(part for part in parts if part.of != _MEANING), ScorePart(_MEANING, "", meaning)]
        return tuple(part for part in parts if part.value)

    def _list_memory_parts(self, candidate: Contender) -> list[tuple[str, str, float]]:
        size, parts = candidate.whole.size, []
        for words, least, growing in (
            (self._known_words, text_index.PRESENCE, 1 - text_index.PRESENCE),
            (self._known_stop_words, 0.0, text_index.COMMON),
        ):
            for word in words:
                if often := candidate.often.get(word):
                    share = least + growing * _saturate_frequency(often, size)
                    parts.append(("text", word, self._weigh_word(word) * share))
        if candidate.near:
            nearest = max(candidate.near.values())
            parts.append((_MEANING, "", self._weigh_nearness(text_index.MEMORY_MEANING, nearest)))
        return parts + [(clause.of, clause.word, clause.worth) for clause in candidate.matches]

    def _list_passage_parts(self, candidate: Contender, place: PassagePlace) -> list[tuple[str, str, float]]:
        grown = _saturate_frequency(1, place.length)
        _, clauses = candidate.passages[place.ordinal]
        parts = [(clause.of, clause.word, clause.worth + clause.growing * grown) for clause in clauses]
        nearness = candidate.near.get(place.ordinal, 0.0)
        parts.append((_MEANING, "", self._weigh_nearness(text_index.PASSAGE_MEANING, nearness)))
        return [part for part in parts if part[2]]

    @cached_property
    def _memory_search(self) -> Search:
        if not self._query.is_ranked:
            return self._restrict([unscored(wholes_query())])
        texts = [
            Clause("text", word, having("whole", word), self._weigh_word(word)) for word in self._known_words
        ]
        ranked = [
            Search.const_score_query(clause.search, float(max(1, round(_FINE * clause.worth))))
            for clause in (*texts, *self._memory_clauses)
        ]
        return self._restrict([any_of(ranked)])

    @property
    def _text_search(self) -> Search:
        held = [having("whole", word) for word in self._known_words]
        held += [_match_term(term, "whole") for term in self._query.prefixes]
        return boolean(must=[self._memory_search, unscored(any_of(held))])

    def _restrict(self, searches: Sequence[Search]) -> Search:
        demanded = [*_build_demands(self._query)]
        if self._within:
            demanded.append(any_of([having("folder", path) for path in self._within]))
        if self._is_beside:
            demanded.append(of_kind(OBSERVATION))
        excluded = [*_build_exclusions(self._query)]
        if self._beside:
            excluded.append(of_kind(OBSERVATION))
        filters = self._query.filters
        places = (kind_at(f"{path}/") for path in (*self._within, *filters.paths))
        if PROPOSAL.name not in filters.types and PROPOSAL not in places:
            # Nobody is to take one for a fact.
            excluded.append(boolean(must=[of_kind(PROPOSAL), having("type", PROPOSAL.name)]))
        wanted = boolean(must=(*map(unscored, demanded), *searches), must_not=excluded)
        return self._view.restrict(wanted)

    @cached_property
    def _known_words(self) -> list[str]:
        return [word for word in self._query.words if self._count_word("whole", word)]

    @cached_property
    def _known_stop_words(self) -> list[str]:
        return [word for word in self._query.common if self._count_word("whole", word)]

    @cached_property
    def _memory_clauses(self) -> list[Clause]:
        clauses = []
        for word in self._query.words:
            weight = self._weigh_word(word)
            for name, share in _MEMORY_FIELDS.items():
                if self._index.frequency(name, word):
                    clauses.append(Clause(name, word, having(name, word), share * weight))
        if name := text_index.name_key(self._query.name):
            worth = math.fsum(map(self._weigh_word, (*self._query.words, *self._query.common)))
            clauses.append(Clause("name", name, having("name", name), text_index.NAMED * worth))
        for term in self._query.prefixes:
            held = any_of([_match_term(term, name) for name in _TEXTS])
            weight = _idf(self._memory_count, self._count_seen(f"whole {term}", held))
            clauses.append(Clause("text", f"{term.runs[0][0]}*", held, weight))
        if not self._known_words and not any(self._count_seen(f"{c.of} {c.word}", c.search) for c in clauses):
            # None of the words is there; or there are only phrases of words too short to have any weight.
            clauses = [
                Clause("text", "", _match_term(term, name), 1.0)
                for term in self._query.phrases
                for name in _TEXTS
            ]
        return clauses

    @cached_property
    def _passage_clauses(self) -> list[Clause]:
        at_all, clauses = text_index.PASSAGE_PRESENCE, []
        for word in self._known_words:
            rarity = self._weigh_rarity(word)
            held = having("text", word)
            clauses.append(Clause("passage", word, held, at_all * rarity, (1 - at_all) * rarity))
        clauses += [Clause("common", word, having("text", word)) for word in self._known_stop_words]
        for word in self._query.words:
            if self._index.frequency("heading", word):
                above = having("heading", word)
                clauses.append(Clause("heading", word, above, text_index.HEADING * self._weigh_rarity(word)))
        # Words with signs stand elsewhere in the index than in the text.
        plain = [word for word in self._query.words if not is_signed(word)]
        for pair in list(pairwise(plain))[: text_index.MOST_PAIRS]:
            near = Search.phrase_query(schema(), "text", list(pair), text_index.PAIR_GAP)
            rarity = sum(map(self._weigh_rarity, pair))
            clauses.append(Clause("pair", " ".join(pair), near, 0.0, text_index.PAIR * rarity))
        for term in self._query.prefixes:
            held = _match_term(term, "text")
            weight = _idf(self._passage_count, self._count_seen(f"text {term}", held))
            clauses.append(Clause("passage", f"{term.runs[0][0]}*", held, weight))
        return clauses

    @cached_property
    def _layer_clauses(self) -> list[Clause]:
        """One for each layer but the last; its word is the number of the layer."""
        layers = enumerate(self._view.layers[:-1])
        return [Clause("layer", str(number), of_namespace(layer)) for number, layer in layers]

    @property
    def worth(self) -> dict[str, float]:
        """The weight of each word of the query: the rarer, the more; as of one memory where none has it."""
        if self._beside:
            return self._beside.worth
        return {word: self._weigh_word(word) for word in self._query.words}

    def _weigh_word(self, word: str) -> float:
        if word not in self._weights:
            rarity = _idf(self._memory_count, max(1, self._count_word("whole", word)))
            self._weights[word] = rarity + text_index.RARITY_IN_PASSAGES * self._weigh_rarity(word)
        return self._weights[word]

    def _weigh_rarity(self, word: str) -> float:
        # Where there are few memories, a word that none has would outweigh all that they have.
        return _idf(self._passage_count, max(1, self._count_word("text", word)))

    def _count_word(self, name: str, word: str) -> int:
        search = self._without_observations(having(name, word))
        return self._view.count_word((bool(self._beside), name, word), name, word, search)

    @property
    def _memory_count(self) -> int:
        return self._count_seen("memories", wholes_query())

    @property
    def _passage_count(self) -> int:
        return self._count_seen("passages", Search.all_query())

    def _count_seen(self, name: str, search: Search) -> int:
        return self._view.count((bool(self._beside), name), self._without_observations(search))

    def _without_observations(self, search: Search) -> Search:
        return boolean(must=[search], must_not=[of_kind(OBSERVATION)]) if self._beside else search


def _build_demands(query: Query) -> Iterator[Search]:
    for term in query.phrases:
        yield any_of([_match_term(term, name) for name in _TEXTS])
    yield from (having("tag", tag) for tag in query.filters.tags)
    if query.filters.types:
        yield any_of([having("type", name) for name in query.filters.types])
    if query.filters.paths:
        yield any_of([_match_path_prefix(path) for path in query.filters.paths])
    if query.after or query.before:
        # A memory without a day has 0 for one, which is not before anything.
        last = query.before - 1 if query.before else _LAST_DAY
        first = max(query.after, 1)
        if first > last:
            yield Search.empty_query()
        else:
            yield Search.range_query(schema(), "day", FieldType.Unsigned, first, last)


def _build_exclusions(query: Query) -> Iterator[Search]:
    for group in query.without:
        held = [any_of([_match_term(term, name) for name in _TEXTS]) for term in group]
        yield boolean(must=held)
    yield from (having("tag", tag) for tag in query.excluded.tags)
    yield from (having("type", name) for name in query.excluded.types)
    yield from (_match_path_prefix(path) for path in query.excluded.paths)


def _match_term(term: Term, name: str) -> Search:
    searches = [having_run(name, run) for run in term.runs]
    if term.is_prefix:
        searches[0] = Search.regex_query(schema(), name, f"{escaped(term.runs[0][0])}.*")
    return any_of(searches)


def _match_path_prefix(beginning: str) -> Search:
    return Search.regex_query(schema(), "path", f"{escaped(beginning)}.*")


def _sum_passage(passage: tuple[PassagePlace | None, float, float]) -> float:
    return passage[1] + passage[2]


def _sum_parts(parts: Sequence[tuple[str, str, float]]) -> float:
    return sum(value for _, _, value in parts)


def _scale_parts(total: float, parts: Sequence[tuple[str, str, float]]) -> Iterator[ScorePart]:
    own = _sum_parts(parts)
    for of, word, value in parts:
        yield ScorePart(of, spelled(word), total * value / own)


def _split_clauses(clauses: Sequence[Clause]) -> tuple[list[Clause], list[Clause]]:
    own, others = list[Clause](), list[Clause]()
    for clause in clauses:
        (own if clause.of in _OF_PASSAGES else others).append(clause)
    return own, others


def _saturate_frequency(often: int, length: int) -> float:
    """Return BM25's term frequency factor for a text of this length: 0 to K1 + 1."""
    return often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * length / text_index.TYPICAL))


def _rank_key(ranked: Ranked) -> tuple[float, int, int]:
    return -ranked.score, -ranked.candidate.whole.day, ranked.candidate.layer


def _idf(documents: int, having: int) -> float:
    """Return BM25's inverse document frequency, as Lucene and tantivy have it."""
    return math.log(1 + (max(documents, having) - having + 0.5) / (having + 0.5))


@lru_cache(maxsize=1 << 12)
def _weigh_recency(day: int, today: int) -> float:
    """Return 1 for today, halved every RECENCY_DAYS; 0 for a memory without a day."""
    if not day:
        return 0.0
    age = max(0.0, _count_days(today) - _count_days(day))
    return math.exp2(-age / text_index.RECENCY_DAYS)


def _count_days(day: int) -> float:
    return day // 10_000 * _DAYS_A_YEAR + day // 100 % 100 * _DAYS_A_MONTH + day % 100
