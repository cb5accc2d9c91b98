"""Ranked search: the passages that fit a query best, in context, and which words of a line it is about."""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from mdmem.diagnostic import as_json
from mdmem.errors import DocumentRefused, MdmemError, Usage
from mdmem.index import passages, query as language
from mdmem.index.hit import (
    LONGEST,
    Headings,
    Hit,
    Titles,
    day_of,
    fields_of,
    line_text,
    lines_text,
    shown,
    shown_matches,
)
from mdmem.index.passages import cut, words_of
from mdmem.index.query import Each
from mdmem.index.scoring import Ranked, ScorePart, Scorer
from mdmem.text.regex import regex
from mdmem.text.tokens import estimate
from mdmem.vault import paths
from mdmem.vault.paths import Layer

if TYPE_CHECKING:
    from mdmem.diagnostic import Span
    from mdmem.document.document import Document
    from mdmem.index.passages import Passage
    from mdmem.index.query import Query, SearchRequest
    from mdmem.index.text_index import PassagePlace, TextIndex


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
        self._words = [
            (word, spelt[word]) for word in sorted(known | stems) if not passages.is_unspaced(word)
        ]
        self._beginnings = tuple(word for word in beginnings if not passages.is_unspaced(word))
        self._stretches = [word for word in (*known, *beginnings) if passages.is_unspaced(word)]

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
        if together.isascii() and passages.is_plain(together):
            # Each of them is one word of the index: one call serves all.
            for each, form in zip(new, passages.analyzer().analyze(together), strict=True):
                self.spelt[form].add(each)
        else:
            for each in new:
                out = passages.written_out(unicodedata.normalize("NFC", each))
                for form in passages.analyzer().analyze(out):
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
    return passages.folded(written)


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)


KnownHeadings = Callable[[Sequence[str]], Mapping[tuple[str, str], Sequence[tuple[int, Titles]]]]

# Of how many memories the headings are asked for at once; of more, they are read from the memory.
_MOST_KNOWN = 500
# In JSON, the letter of a line end is no part of a word.
_ESCAPE = regex(r"""\\[bfnrt"\\/]""")
# Of a search that finds nothing: for how many of its words near ones are looked for, of how many letters at
# least, in how much of a memory, and how many are named.
_MOST_MISSING, _LEAST_ALIKE, _MOST_READ, _MOST_NEAR = 4, 4, 200_000, 3
_SEARCH_WORD = regex(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a search found.

    Attributes:
        hits: the best first.
        left_out: how many further ones fit. Of passages it is the least that there are: of the memories that
            were not looked into each counts as one.
        left_out_tokens: about how many tokens of `hits` a budget left out; 0 without one.
        notes: what of the query was not used, in words.
        explanations: what the score of each hit is the sum of; empty unless that was asked for.
        held: what of the query each hit holds, with the lines around it, its headings and the memory's name.
    """

    hits: tuple[Hit, ...]
    left_out: int = 0
    left_out_tokens: int = 0
    notes: tuple[str, ...] = ()
    explanations: tuple[tuple[ScorePart, ...], ...] = ()
    held: tuple[Held, ...] = ()

    def json_shape(self) -> dict[str, Any]:
        """What was found as a JSON object, each hit with the parts of its score where they were asked for."""
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
    headings: KnownHeadings | None = None,
    layers: Sequence[Layer] = (Layer(),),
    today: str = "",
) -> Results:
    """Find the passages that fit a query best: one hit for each memory, or for each passage.

    A hit is the best line of its passage. A memory that cannot be read any more has none.

    Args:
        index: where to search; it must be current.
        request: what for.
        read: gives the memory at a path of the vault.
        headings: gives those of memories by their paths, as far as they are known: by path and hash.
        layers: what is searched, the own namespace first; hits are named as these name them.
        today: the day that recency counts from, `YYYY-MM-DD`; that of the clock (UTC) without.

    Raises:
        Usage: an argument that cannot mean anything.
        PathRefused: `within` is not a path of a vault.
        IndexDamaged, StorageFailed: the index cannot be used.
    """
    _check(request)
    limit = request.limit
    folders = _places(layers, request.within) if request.within else []
    query = _narrowed(language.parse(request.query), layers, request)
    if query.is_empty:
        return Results(hits=(), notes=(*query.notes, "there is nothing to search for"))
    scorer = Scorer(index, query, [layer.namespace for layer in layers], folders, _today(today))
    hits: list[Hit] = []
    explanations: list[tuple[ScorePart, ...]] = []
    reader = _MemoryReader(Matcher(query, scorer.worth), read, {}, layers, request.context)
    left_out = 0
    for block in scorer.rank(request.each):
        rest = iter(block.ranked)
        # As many as are wanted still: of those that were read, some may be gone.
        while batch := [*islice(rest, min(limit - len(hits), _MOST_KNOWN))]:
            named = [scorer.path(ranked) for ranked in batch]
            reader.headings = headings(named) if headings else {}
            for ranked, path in zip(batch, named, strict=True):
                try:
                    hit = reader.hit(ranked, path)
                except DocumentRefused:
                    continue  # it was changed since it was indexed, and passes a limit
                if hit is None:
                    continue
                hits.append(hit)
                if request.explain:
                    explanations.append(scorer.explain(ranked))
        left_out = len([*rest]) + block.further
        if len(hits) == limit:
            break
    if hits and left_out:
        hits[-1] = replace(hits[-1], left_out=left_out)
    notes = scorer.notes if hits else (*scorer.notes, _nothing(request.query, scorer, read))
    results = Results(
        hits=tuple(hits),
        left_out=left_out,
        notes=notes,
        explanations=tuple(explanations),
        held=tuple(map(reader.held, hits)),
    )
    return results if request.budget is None else within_budget(results, request.budget)


def within_budget(results: Results, tokens: int) -> Results:
    """The hits that fit into a budget, the best first; one that does not fit leaves its room to later ones.

    Args:
        results: what was found.
        tokens: about how many may be used, see `mdmem.text.tokens`.
    """
    kept: list[int] = []
    left, out = tokens, 0
    for number, hit in enumerate(results.hits):
        cost = tokens_of(hit)
        if cost <= left:
            kept.append(number)
            left -= cost
        else:
            out += cost
    count = len(results.hits) - len(kept)
    hits = [replace(results.hits[number], left_out=0) for number in kept]
    left_out = results.left_out + count
    if hits and left_out:
        hits[-1] = replace(hits[-1], left_out=left_out)
    return replace(
        results,
        hits=tuple(hits),
        left_out=left_out,
        left_out_tokens=out,
        explanations=tuple(results.explanations[number] for number in kept) if results.explanations else (),
        held=tuple(results.held[number] for number in kept) if results.held else (),
    )


def tokens_of(hit: Hit) -> int:
    """About how many tokens a hit takes: where it is, its date, and its lines."""
    place = f"{hit.path}:{hit.line} {' > '.join(hit.heading)} {hit.date}"
    return estimate("\n".join((place, *hit.before, hit.text, *hit.after, "")))


def _nothing(text: str, scorer: Scorer, read: Callable[[str], Document]) -> str:
    """What is said where nothing was found: with the nearest words that there are, where one is not there."""
    from difflib import get_close_matches  # noqa: PLC0415 - start-up, and most searches find something

    near: dict[str, None] = {}
    asked = [
        word for word in _SEARCH_WORD.findall(text[: language.MOST_CHARACTERS]) if len(word) >= _LEAST_ALIKE
    ]
    for missing in scorer.missing()[:_MOST_MISSING]:
        written = next((word for word in asked if missing in words_of(word)), "")
        if not written:
            continue
        there: set[str] = set()
        for path in scorer.alike(missing, 1 if len(missing) <= _LEAST_ALIKE else 2):
            with suppress(MdmemError):
                there.update(map(str.lower, _SEARCH_WORD.findall(f"{path} {read(path).text[:_MOST_READ]}")))
        near.update(dict.fromkeys(get_close_matches(written.lower(), sorted(there), _MOST_NEAR)))
    return f"nothing was found; the nearest words are: {', '.join(near)}" if near else "nothing was found"


@dataclass(slots=True)
class _MemoryReader:
    """Reads the memories that were found, each once.

    Attributes:
        matcher: finds what of a line matches.
        read, layers, context: as `search` takes them.
        headings: those that are known, by path and hash of the memory.
    """

    matcher: Matcher
    read: Callable[[str], Document]
    headings: Mapping[tuple[str, str], Sequence[tuple[int, Titles]]]
    layers: Sequence[Layer]
    context: int | None
    _read_before: dict[str, tuple[Document, Headings] | None] = field(default_factory=dict)
    _cut: dict[str, list[Passage]] = field(default_factory=dict)  # of memories with long lines

    def hit(self, ranked: Ranked, path: str) -> Hit | None:
        """The hit for what was ranked; None when the memory is no longer there, or no longer fits."""
        found = self._document(path)
        if found is None:
            return None
        document, headings = found
        lines = _lines_of(document, ranked.place)
        line, matches = self._best(document, lines, ranked.place)
        if ranked.place and not matches:
            # It was changed since it was indexed: what was found may stand elsewhere.
            line, matches = self._best(document, range(1, len(document.lines) + 1), None)
            lines = range(line, line + 1)
            if not matches:
                return None
        around = lines if self.context is None else _near(document, line, self.context)
        if self.context is None and document.lines.span(line).start < document.body_span.start:
            around = range(line, line + 1)  # the other fields are no text
        texts, place = lines_text(document, around), line - around.start
        return Hit(
            path=self.layers[ranked.candidate.layer].shown(path),
            line=line,
            heading=headings.above(line) if len(document.lines) else (),
            text=shown(texts[place], matches[0][0] if matches else 0),
            matches=shown_matches(texts[place], matches),
            column=matches[0][0] + 1 if matches else 1,
            before=tuple(map(shown, texts[:place])),
            after=tuple(map(shown, texts[place + 1 :])),
            date=day_of(path, fields_of(document)),
            score=round(ranked.score, 4),
        )

    def held(self, hit: Hit) -> Held:
        """What of the query a hit holds; see `Results`."""
        lines = (hit.path.rpartition("/")[2], *hit.heading, *hit.before, hit.text, *hit.after)
        return self.matcher.held("\n".join(lines))

    def _document(self, path: str) -> tuple[Document, Headings] | None:
        """The memory and its headings; None when it cannot be read any more."""
        if path not in self._read_before:
            try:
                document = self.read(path)
            except MdmemError:
                self._read_before[path] = None
            else:
                known = self.headings.get((path, document.hash))
                self._read_before[path] = document, Headings(document, known)
        return self._read_before[path]

    def _best(
        self, document: Document, lines: range, place: PassagePlace | None
    ) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The line that matches best, the first of these, and what of it does.

        A heading comes after other lines that match as well. Of a line that is too long to be shown, the
        passage counts that was found, else the best one.
        """
        best, most, is_heading = 0, 0.0, False
        looked_at, first = "", 0
        for number, line in enumerate(lines_text(document, lines) or [""]):
            start, text = self._looked_at(document, lines.start + number, line, place)
            worth = self.matcher.worth(text)
            is_better = worth > most or (is_heading and worth == most)
            if is_better:
                best, most, is_heading = number, worth, text.startswith("#")
            if is_better or not number:
                looked_at, first = text, start
        return lines.start + best, tuple((first + a, first + b) for a, b in self.matcher.spans(looked_at))

    def _looked_at(
        self, document: Document, number: int, line: str, place: PassagePlace | None
    ) -> tuple[int, str]:
        """What of a line is looked at, and where in it that begins: of a long one, the passage in it."""
        start, end = 0, len(line)
        if end > LONGEST:
            bom = number == 1 and document.text.startswith("\ufeff")
            before = document.lines.span(number).start + bom
            spans = (span for span in self._spans(document, number, place) if before < span.end)
            ranges = [(max(0, span.start - before), span.end - before) for span in spans]
            worth = self.matcher.worth
            start, end = max(ranges, key=lambda each: worth(line[slice(*each)]), default=(0, LONGEST))
        text = line[start:end]
        return start, _ESCAPE.sub("  ", text) if document.is_json else text

    def _spans(self, document: Document, line: int, place: PassagePlace | None) -> list[Span]:
        """Where the passage at a place stands; without one, all that have a part of the line."""
        if document.path not in self._cut:
            self._cut[document.path] = [*cut(document)]
        passages = self._cut[document.path]
        if place and place.ordinal < len(passages):
            return [passages[place.ordinal].span]
        return [each.span for each in passages if each.line <= line < each.line + each.lines]


def _lines_of(document: Document, place: PassagePlace | None) -> range:
    """The lines of a passage; without one, the first line of what a memory says."""
    last = len(document.lines)
    if place and place.line <= last:
        return range(place.line, min(place.line + place.lines, last + 1))
    start = document.body_span.start
    line = document.lines.number(start) if start < len(document.text) else 1
    while line < last and not line_text(document, line).strip():
        line += 1
    return range(line, line + 1)


def _near(document: Document, line: int, most: int) -> range:
    """Up to `most` lines before and after a line, no further than its section."""
    lines, sections = document.lines, document.sections
    first, last = 1, len(lines)
    place = bisect_right(sections, lines.span(line).start, key=lambda section: section.span.start)
    if place:
        first = sections[place - 1].heading.line
    if place < len(sections):
        last = sections[place].heading.line - 1
    return range(max(first, line - most), min(last, line + most) + 1)


def _places(layers: Sequence[Layer], path: str) -> list[str]:
    """What a path that one of the layers names is for the whole vault; of the own one where none is named."""
    name, colon, inside = path.partition(":")
    named = [layer for layer in layers if colon and layer.name == name]
    layer, inside = (named[0], inside) if named else (layers[0], path)
    return [paths.join(layer.namespace.folder, paths.check_folder(inside))]


def _begun(layers: Sequence[Layer], beginnings: Sequence[str]) -> tuple[str, ...]:
    """The beginnings of paths of any of the layers, as the whole vault names them."""
    return tuple(
        paths.join(layer.namespace.folder, path.removeprefix(f"{layer.name}:"))
        for path in beginnings
        for layer in layers
        if not path.startswith(
            tuple(f"{other.name}:" for other in layers if other.name != layer.name and other.name)
        )
    )


def _narrowed(query: Query, layers: Sequence[Layer], request: SearchRequest) -> Query:
    """A query with the filters of its request; its paths as the whole vault names them."""
    filters, excluded = query.filters, query.excluded
    since, before = _day(request.since, "since"), _day(request.before, "before")
    given = (request.types, request.tags)
    types, tags = ([text.encode("utf-8", "replace").decode() for text in each] for each in given)
    if types and filters.types:
        common = {name.casefold() for name in types} & set(filters.types)
        types = [*common] or [""]
    return query._replace(
        filters=filters._replace(
            tags=(*filters.tags, *(tag.casefold().removeprefix("#") for tag in tags)),
            types=tuple(name.casefold() for name in types) or filters.types,
            paths=_begun(layers, filters.paths),
        ),
        excluded=excluded._replace(paths=_begun(layers, excluded.paths)),
        after=max(query.after, since),
        before=min(query.before or before, before or query.before),
    )


def _check(request: SearchRequest) -> None:
    if request.limit < 1:
        raise Usage(problem=f"limit is {request.limit}", remedy="give a limit of 1 or more")
    if request.context is not None and request.context < 0:
        raise Usage(
            problem=f"context is {request.context}", remedy="give 0 or more lines of context, or none"
        )
    if request.each not in get_args(Each):
        raise Usage(problem=f"each is {' or '.join(get_args(Each))}, not {request.each!r}")


def _day(text: str, name: str) -> int:
    found = language.day(text)
    if text and not found:
        raise Usage(problem=f"{name} is {text!r}", remedy="give a date: 2026, 2026-01 or 2026-01-31")
    return found


def _today(text: str) -> int:
    return language.day(text or datetime.now(UTC).date().isoformat())
