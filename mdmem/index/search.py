"""Ranked search: the passages that fit a query best, in context, and which words of a line it is about."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from mdmem.diagnostic import Span, as_json
from mdmem.document.document import Document
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import estimate, first_of
from mdmem.errors import DocumentRefused, MdmemError, Usage, plural
from mdmem.index import passages, query as language
from mdmem.index.hit import (
    LONGEST,
    Hit,
    HitReader,
    KnownHeadings,
    field_of_day,
    fields_of,
    line_text,
    lines_text,
)
from mdmem.index.passages import Passage, analyzed, cut, dates_text, words_of
from mdmem.index.query import Each, Query, SearchRequest
from mdmem.index.scoring import Ranked, ScorePart, Scorer
from mdmem.index.text_index import PassagePlace, TextIndex, TextView, key_of
from mdmem.vault import paths
from mdmem.vault.paths import Layer

if TYPE_CHECKING:
    from mdmem.index.meaning import Meaning


# Letters and digits, and combining accents.
_SPACED = bytes(code if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)
_WORD = regex("(?:[^\\W_]++|[\u0300-\u036f]++)++")


class Held(NamedTuple):
    """What a text holds of a query: the share of the weight of its words, 0 to 1, and how many of them."""

    share: float
    words: int


class Matcher:
    """Finds the words of a query in lines; a word that is missing in `worth` has the weight 1."""

    def __init__(self, query: Query, worth: Mapping[str, float]) -> None:
        phrased = (word for term in query.phrases for run in term.runs for word in run)
        beginnings = [word for term in query.prefixes for (word,) in term.runs[:1]]
        stems = [word for term in query.prefixes for (word,) in term.runs[1:]]
        words = {*query.words, *phrased, *stems}
        self._worth = worth
        self._words = {word for word in words if not passages.is_unspaced(word)}
        self._has_signs = any(map(passages.is_signed, self._words))
        self._beginnings = tuple(word for word in beginnings if not passages.is_unspaced(word))
        self._unspaced = [word for word in (*words, *beginnings) if passages.is_unspaced(word)]

    def spans(self, line: str) -> tuple[tuple[int, int], ...]:
        """Find what matches in a line: start and end in code points, end exclusive."""
        spans = [word.span() for word in _WORD.finditer(line) if self._is_match(word[0])]
        if self._has_signs:
            found = passages.signed_words(line)
            spans += [(start, end) for start, end, word in found if self._is_match(word)]
        for stretch in self._unspaced:
            starts = (match.start() for match in re.finditer(f"(?={re.escape(stretch)})", line))
            spans += [(start, start + len(stretch)) for start in starts]
        return _join_spans(spans)

    def _is_match(self, written: str) -> bool:
        return not self._words.isdisjoint(_analyze_word(written)) or (
            bool(self._beginnings) and _fold_word(written).startswith(self._beginnings)
        )

    def _find_words(self, text: str) -> set[str]:
        written = [*_split_words(text)]
        if self._has_signs:
            written += [word for *_, word in passages.signed_words(text)]
        words = self._words & frozenset[str]().union(*map(_analyze_word, written))
        if self._beginnings:
            words.update(word for word in map(_fold_word, written) if word.startswith(self._beginnings))
        return words.union(stretch for stretch in self._unspaced if stretch in text)

    def is_among(self, words: Collection[str]) -> bool:
        """Tell whether a word of the query is among words of the index."""
        begun = (*self._beginnings, *self._unspaced)
        return not self._words.isdisjoint(words) or any(word.startswith(begun) for word in words)

    def worth(self, line: str) -> float:
        """Return the weight of the words in a line, each counted once; of fillers, a share."""
        fillers, share = language.filler_words(), language.FILLER_SHARE
        words = self._find_words(line)
        return math.fsum(self._worth.get(word, 1.0) * (share if word in fillers else 1) for word in words)

    def held(self, text: str) -> Held:
        """Measure how much of the query a text holds."""
        total = math.fsum(self._worth.values())
        words = self._find_words(text)
        worth = math.fsum(self._worth.get(word, 0.0) for word in words)
        return Held(worth / total if total else 0.0, len(words))


def _split_words(text: str) -> Sequence[str]:
    # Most lines are ASCII, and split by a table in a third of the time: a tenth of a warm search.
    return text.encode().translate(_SPACED).decode().split() if text.isascii() else _WORD.findall(text)


@lru_cache(maxsize=1 << 14)
def _analyze_word(written: str) -> frozenset[str]:
    return frozenset(passages.analyzer().analyze(passages.written_out(written)))


@lru_cache(maxsize=1 << 14)
def _fold_word(written: str) -> str:
    return passages.folded(written)


def _join_spans(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)


# In JSON, the letter of a line end is no part of a word.
_ESCAPE = regex(r"""\\[bfnrt"\\/]""")
# Suggestions where nothing is found: words that are looked at, letters of a word (20,000 take 300 MB),
# code points of a memory, and suggestions.
_MOST_MISSING, _LEAST_ALIKE, _MOST_ALIKE, _MOST_READ, _MOST_NEAR = 4, 4, 40, 200_000, 3
_MOST_HIDDEN = 10  # that are named
_STEP = 10  # hits for which paths are read at once
_SEARCH_WORD = regex(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results of a search.

    Attributes:
        hits: the best first.
        left_out: how many further ones fit.
        left_out_tokens: about how many tokens of `hits` a budget left out; 0 without one.
        notes: which parts of the query were not used, and what could not be searched.
        unread: how many files cannot be read, and so not be searched.
        flawed: how many memories have unreadable frontmatter; its lines are searched as text.
        explanations: the parts of the score of each hit; empty unless `explain` was set.
        held: what of the query each hit holds, with the lines around it, its headings and the memory's name.
    """

    hits: tuple[Hit, ...]
    left_out: int = 0
    left_out_tokens: int = 0
    notes: tuple[str, ...] = ()
    unread: int = 0
    flawed: int = 0
    explanations: tuple[tuple[ScorePart, ...], ...] = ()
    held: tuple[Held, ...] = ()

    @property
    def unread_note(self) -> str:
        """What could not be searched, in a sentence; empty where all could."""
        files = plural(self.unread, "file")
        return f"{files} cannot be read, and not be searched: `mdmem check` says why" if self.unread else ""

    @property
    def flawed_note(self) -> str:
        """Of how many memories the frontmatter cannot be read, in a sentence; empty for none."""
        words = "cannot be read, and is searched as text: `mdmem check` says why"
        return f"the frontmatter of {plural(self.flawed, 'memory')} {words}" if self.flawed else ""

    def json_shape(self) -> dict[str, Any]:
        """Return a JSON object, each hit with the parts of its score if there are explanations."""
        hits = [as_json(hit) for hit in self.hits]
        for hit, parts in zip(hits, self.explanations, strict=False):
            hit["parts"] = parts
        shape = {"left_out": self.left_out, "left_out_tokens": self.left_out_tokens}
        return {"hits": hits, **shape, "notes": self.notes}


def search(
    index: TextIndex,
    request: SearchRequest,
    *,
    read: Callable[[str], Document],
    headings: KnownHeadings = lambda *_: None,
    layers: Sequence[Layer] = (Layer(),),
    today: str = "",
    states: Mapping[str, str] = MappingProxyType({}),
    wanted: Collection[str] | None = None,
    meaning: Meaning | None = None,
) -> Results:
    """Find the passages that fit a query best: one hit for each memory, or for each passage.

    A hit is the best line of its passage. A memory that can no longer be read has none.

    Args:
        read: returns the memory at a vault path.
        layers: the namespaces to search, the own one first; hits are named as these name them.
        today: the day that recency counts from, `YYYY-MM-DD`; today (UTC) without.
        states: what does not count, by name in the layers: it is named, and found only with `any_state`.
        wanted: the only memories to find, by their names in the layers.

    Raises:
        Usage: an argument is invalid.
        PathRefused: `within` is not a path of a vault.
        IndexDamaged, StorageFailed: the index cannot be used.
    """
    _check_request(request)
    within = [_resolve_within(layers, request.within)] if request.within else []
    query = _apply_request(language.parse(request.query), layers, request)
    if query.is_empty:
        return Results(hits=(), notes=(*query.notes, "there is nothing to search for"))
    day = language.day(today or datetime.now(UTC).date().isoformat())
    namespaces = [layer.namespace for layer in layers]
    asked = meaning.ask(query.said, namespaces) if meaning and query.said else None
    near = None if isinstance(asked, str) else asked
    view = TextView(index, namespaces)
    scorer = Scorer(view, query, within, day, near=near)
    reader = _MemoryReader(scorer, Matcher(query, scorer.worth), read, headings, layers, request.context)
    admission = _Admission.of(layers, {} if request.any_state else states, wanted)
    chosen, left_out = _choose_hits(scorer, reader, admission, request)
    hits = [hit._replace(state=states.get(hit.path, "")) for _, hit in chosen]
    if hits and left_out:
        hits[-1] = hits[-1]._replace(left_out=left_out)
    notes = [*scorer.notes, *([asked] if isinstance(asked, str) else [])]
    if near:
        notes += near.list_notes(view.passage_count)
    if admission.hidden:
        hidden = first_of([*admission.hidden], _MOST_HIDDEN)
        notes.append(f"left out, as it does not count: {hidden}; ask for any state to get it")
    elif not hits:
        notes.append(_explain_no_hits(request.query, scorer, read))
    results = Results(
        hits=tuple(hits),
        left_out=left_out,
        notes=tuple(notes),
        explanations=tuple(scorer.explain(ranked) for ranked, _ in chosen) if request.explain else (),
        held=tuple(map(reader.held, hits)),
    )
    return results if request.budget is None else within_budget(results, request.budget)


def _choose_hits(
    scorer: Scorer, reader: _MemoryReader, admission: _Admission, request: SearchRequest
) -> tuple[list[tuple[Ranked, Hit]], int]:
    """Return the best hits that are admitted, each with its rank, and how many more there are."""
    chosen: list[tuple[Ranked, Hit]] = []
    seen = 0
    for block in scorer.rank(request.each):
        admitted = list(filter(admission.admits, block.ranked))
        seen += sum(ranked.is_worded for ranked in admitted)
        for number, hit in reader.read_hits(admitted):
            chosen.append((admitted[number], hit))
            if len(chosen) < request.limit:
                continue
            if block.further and not (admission.admits_all and request.each == "memory"):
                every = sum(map(admission.has_key, scorer.list_keys(request.each)))
                further = every - seen
            else:
                further = block.further
            return chosen, further + sum(ranked.is_worded for ranked in admitted[number + 1 :])
    return chosen, 0


class _Admission(NamedTuple):
    """The memories that a search may give.

    Attributes:
        states: what does not count, by the key of the memory: its name, and why.
        wanted: the keys of the only memories to give; None for all.
        hidden: the names of those that were found and do not count.
    """

    states: Mapping[int, str]
    wanted: Collection[int] | None
    hidden: dict[str, None]

    @classmethod
    def of(
        cls, layers: Sequence[Layer], states: Mapping[str, str], wanted: Collection[str] | None
    ) -> _Admission:
        """Choose by names that memories have in the layers."""
        told = {
            key: f"{name} ({state})" for name, state in states.items() for key in _find_keys(layers, name)
        }
        keys = None if wanted is None else {key for name in wanted for key in _find_keys(layers, name)}
        return cls(told, keys, {})

    @property
    def admits_all(self) -> bool:
        return not self.states and self.wanted is None

    def has_key(self, key: int) -> bool:
        return key not in self.states and self._is_wanted(key)

    def _is_wanted(self, key: int) -> bool:
        return self.wanted is None or key in self.wanted

    def admits(self, ranked: Ranked) -> bool:
        """Tell whether a memory may be given, and keep the name of one that does not count."""
        key = ranked.candidate.whole.key
        if not ranked.is_worded:
            return self.has_key(key)
        if key in self.states and self._is_wanted(key):
            self.hidden[self.states[key]] = None
        return self.has_key(key)


def _find_keys(layers: Sequence[Layer], name: str) -> Iterator[int]:
    """Yield the keys of the memories that have a name in the layers: one, but for a colon in a path."""
    for layer in layers:
        prefix = f"{layer.name}:" if layer.name else ""
        if name.startswith(prefix):
            yield key_of(paths.join(layer.namespace.folder, name.removeprefix(prefix)))


def within_budget(results: Results, tokens: int) -> Results:
    """Keep the best hits that fit a budget of tokens; after one that does not fit, others may."""
    fits: list[bool] = []
    left, left_out_tokens = tokens, 0
    for cost in map(tokens_of, results.hits):
        fits.append(cost <= left)
        if fits[-1]:
            left -= cost
        else:
            left_out_tokens += cost
    hits = [hit._replace(left_out=0) for hit in compress(results.hits, fits)]
    left_out = results.left_out + len(results.hits) - len(hits)
    if hits and left_out:
        hits[-1] = hits[-1]._replace(left_out=left_out)
    return replace(
        results,
        hits=tuple(hits),
        left_out=left_out,
        left_out_tokens=left_out_tokens,
        explanations=tuple(compress(results.explanations, fits)),
        held=tuple(compress(results.held, fits)),
    )


def tokens_of(hit: Hit) -> int:
    """Estimate the tokens of a hit: its place, date and lines."""
    place = f"{hit.path}:{hit.line} {' > '.join(hit.heading)} {hit.date}"
    return estimate("\n".join((place, *hit.before, hit.text, *hit.after, "")))


def _explain_no_hits(text: str, scorer: Scorer, read: Callable[[str], Document]) -> str:
    """Say that nothing was found, with the nearest words for those that no memory has."""
    from difflib import get_close_matches  # noqa: PLC0415 - start-up, and most searches find something

    near: dict[str, None] = {}
    words = _SEARCH_WORD.findall(text[: language.MOST_CHARACTERS])
    for missing in scorer.missing()[:_MOST_MISSING]:
        spellings = (w for w in words if _LEAST_ALIKE <= len(w) <= _MOST_ALIKE and missing in words_of(w))
        if not (written := next(spellings, "")):
            continue
        known: set[str] = set()
        for path in scorer.alike(missing, 1 if len(missing) <= _LEAST_ALIKE else 2):
            with suppress(MdmemError):
                known.update(map(str.lower, _SEARCH_WORD.findall(f"{path} {read(path).text[:_MOST_READ]}")))
        near.update(dict.fromkeys(get_close_matches(written.lower(), sorted(known), _MOST_NEAR)))
    return f"nothing was found; the nearest words are: {', '.join(near)}" if near else "nothing was found"


@dataclass(slots=True)
class _MemoryReader:
    """Reads the memories that were found, each once; the attributes are as `search` has them."""

    scorer: Scorer
    matcher: Matcher
    read: Callable[[str], Document]
    headings: KnownHeadings
    layers: Sequence[Layer]
    context: int | None
    _read_before: dict[str, HitReader] = field(default_factory=dict)
    _cut: dict[str, list[Passage]] = field(default_factory=dict)

    def read_hits(self, ranked: Sequence[Ranked]) -> Iterator[tuple[int, Hit]]:
        """Make the hits for what was ranked, each with its number; none for what no longer fits."""
        for start in range(0, len(ranked), _STEP):
            some = ranked[start : start + _STEP]
            for number, path in enumerate(self.scorer.paths(some)):
                with suppress(DocumentRefused):  # it was changed since it was indexed, and passes a limit
                    if hit := self._read_hit(some[number], path):
                        yield start + number, hit

    def _read_hit(self, ranked: Ranked, path: str) -> Hit | None:
        memory = self._read_memory(path, self.layers[ranked.candidate.layer])
        document = memory.document
        if document is None:
            return None
        lines = _find_passage_lines(document, ranked.place)
        line, matches = self._choose_line(document, lines, ranked.place)
        if ranked.place and not matches:
            # It fits by what its lines do not show as it is written, or was changed since it was indexed.
            if unshown := self._find_unshown(document, ranked.place, ranked.candidate.near):
                line, matches = unshown, tuple(self.matcher.spans(line_text(document, unshown)))
            else:
                line, matches = self._choose_line(document, range(1, len(document.lines) + 1), None)
                if not matches:
                    return None
            lines = lines if line in lines else range(line, line + 1)
        around = self._find_context(document, lines, line)
        return memory.hit(line, around, matches, score=round(ranked.score, 4))

    def _find_unshown(self, document: Document, place: PassagePlace, near: Collection[int]) -> int:
        """Find the line to show of a passage that fits by its date, an escape or a heading above.

        Of a passage that is `near` in meaning, it is the first line; it is 0 if the passage no longer fits.
        """
        passages = self._cut_passages(document)
        passage = passages[place.ordinal] if place.ordinal < len(passages) else None
        if passage is None or passage.line != place.line:
            return 0
        if place.ordinal in near or self.matcher.is_among(analyzed(passage.text, *passage.heading)):
            return passage.line
        fields = fields_of(document)
        if place.ordinal == 0 and self.matcher.is_among(analyzed(dates_text(document.path, fields))):
            members = document.tree.members if document.tree else ()
            stated = (member.key_span.start for member in members if member.key == field_of_day(fields))
            return next(map(document.lines.number, stated), passage.line)
        return 0

    def _cut_passages(self, document: Document) -> list[Passage]:
        if document.path not in self._cut:
            self._cut[document.path] = [*cut(document)]
        return self._cut[document.path]

    def _find_context(self, document: Document, lines: range, line: int) -> range:
        """Return the lines to show: those of the passage, or the `context` ones around its best line."""
        # An empty memory, found by its path, has no line; of a field, the other fields are no text.
        if not document.text:
            return range(line, line + 1)
        if self.context is not None:
            return _find_lines_near(document, line, self.context)
        if document.lines.starts[line - 1] < document.body_span.start:
            return range(line, line + 1)
        return self._add_announced(document, lines)

    def _add_announced(self, document: Document, lines: range) -> range:
        """Add to a passage that ends in a colon the next one of its section, which it announces."""
        starts = document.lines.starts
        end = starts[lines.stop - 1] if lines.stop <= len(starts) else None
        if not document.text[:end].rstrip().endswith(":") or document.is_json:
            return lines
        passages = self._cut_passages(document)
        above = bisect_right(passages, lines.start, key=attrgetter("line"))
        near = passages[max(0, above - 1) : above + 1]
        if len(near) < 2 or near[0].heading != near[1].heading:  # noqa: PLR2004 - the passage and the next
            return lines
        return range(lines.start, near[1].line + near[1].lines)

    def held(self, hit: Hit) -> Held:
        """Measure what of the query a hit holds; see `Results`."""
        name = hit.path.rpartition("/")[2].rpartition(".")[0]  # of "md", no memory is about it
        lines = (name, *hit.heading, *hit.before, hit.text, *hit.after)
        return self.matcher.held("\n".join(lines))

    def _read_memory(self, path: str, layer: Layer) -> HitReader:
        if path not in self._read_before:
            self._read_before[path] = HitReader(path, self.read, layer.shown(path), self.headings)
        return self._read_before[path]

    def _choose_line(
        self, document: Document, lines: range, place: PassagePlace | None
    ) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Find the first line that matches best, and what of it matches; a heading yields to another line.

        Of a line that is too long to be shown, the passage that was found counts, else the best one.
        """
        best, most, is_heading = 0, 0.0, False
        excerpt, first = "", 0
        is_json = document.is_json
        for number, line in enumerate(lines_text(document, lines) or [""]):
            start, text = self._excerpt_line(document, lines.start + number, line, place)
            text = _ESCAPE.sub("  ", text) if is_json else text
            worth = self.matcher.worth(text)
            is_better = worth > most or (is_heading and worth == most)
            if is_better:
                best, most, is_heading = number, worth, text.startswith("#")
            if is_better or not number:
                excerpt, first = text, start
        return lines.start + best, tuple((first + a, first + b) for a, b in self.matcher.spans(excerpt))

    def _excerpt_line(
        self, document: Document, number: int, line: str, place: PassagePlace | None
    ) -> tuple[int, str]:
        """Return where the searched part of a line begins, and its text: of a long one, the passage in it."""
        start, end = 0, len(line)
        if end > LONGEST:
            bom = number == 1 and document.text.startswith("\ufeff")
            before = document.lines.span(number).start + bom
            spans = (span for span in self._find_passage_spans(document, number, place) if before < span.end)
            ranges = [(max(0, span.start - before), span.end - before) for span in spans]
            worth = self.matcher.worth
            start, end = max(ranges, key=lambda span: worth(line[slice(*span)]), default=(0, LONGEST))
        return start, line[start:end]

    def _find_passage_spans(self, document: Document, line: int, place: PassagePlace | None) -> list[Span]:
        passages = self._cut_passages(document)
        if place and place.ordinal < len(passages):
            return [passages[place.ordinal].span]
        return [passage.span for passage in passages if passage.line <= line < passage.line + passage.lines]


def _find_passage_lines(document: Document, place: PassagePlace | None) -> range:
    """Return the lines of a passage; without one, the first line of the body with any text."""
    last = len(document.lines.starts)
    if place and place.line <= last:
        return range(place.line, min(place.line + place.lines, last + 1))
    start = document.body_span.start
    line = document.lines.number(start) if start < len(document.text) else 1
    while line < last and not line_text(document, line).strip():
        line += 1
    return range(line, line + 1)


def _find_lines_near(document: Document, line: int, most: int) -> range:
    lines, sections = document.lines, document.sections
    first, last = 1, len(lines)
    place = bisect_right(sections, lines.span(line).start, key=lambda section: section.span.start)
    if place:
        first = sections[place - 1].heading.line
    if place < len(sections):
        last = sections[place].heading.line - 1
    return range(max(first, line - most), min(last, line + most) + 1)


def _resolve_within(layers: Sequence[Layer], path: str) -> str:
    """Return the vault path of a path that may name a layer, such as `shared:notes`."""
    name, colon, inside = path.partition(":")
    named = [layer for layer in layers if colon and layer.name == name]
    layer, inside = (named[0], inside) if named else (layers[0], path)
    return paths.join(layer.namespace.folder, paths.check_folder(inside))


def _resolve_path_filters(layers: Sequence[Layer], beginnings: Sequence[str]) -> tuple[str, ...]:
    """Return the vault paths of filters by path, in each layer unless one is named."""
    return tuple(
        paths.join(layer.namespace.folder, path.removeprefix(f"{layer.name}:"))
        for path in beginnings
        for layer in layers
        if not path.startswith(
            tuple(f"{other.name}:" for other in layers if other.name != layer.name and other.name)
        )
    )


def _apply_request(query: Query, layers: Sequence[Layer], request: SearchRequest) -> Query:
    filters, excluded = query.filters, query.excluded
    since, before = _parse_day(request.since, "since"), _parse_day(request.before, "before")
    texts = (request.types, request.tags)
    types, tags = ([text.encode("utf-8", "replace").decode() for text in values] for values in texts)
    if types and filters.types:
        common = {name.casefold() for name in types} & set(filters.types)
        types = [*common] or [""]
    return query._replace(
        filters=filters._replace(
            tags=(*filters.tags, *(tag.casefold().removeprefix("#") for tag in tags)),
            types=tuple(name.casefold() for name in types) or filters.types,
            paths=_resolve_path_filters(layers, filters.paths),
        ),
        excluded=excluded._replace(paths=_resolve_path_filters(layers, excluded.paths)),
        after=max(query.after, since),
        before=min(query.before or before, before or query.before),
    )


def _check_request(request: SearchRequest) -> None:
    if request.limit < 1:
        raise Usage(problem=f"limit is {request.limit}", remedy="give a limit of 1 or more")
    if request.context is not None and request.context < 0:
        raise Usage(
            problem=f"context is {request.context}", remedy="give 0 or more lines of context, or none"
        )
    if request.each not in get_args(Each):
        raise Usage(problem=f"each is {' or '.join(get_args(Each))}, not {request.each!r}")


def _parse_day(text: str, name: str) -> int:
    day = language.day(text) if text else 0
    if text and not day:
        raise Usage(problem=f"{name} is {text!r}", remedy="give a date: 2026, 2026-01 or 2026-01-31")
    return day
