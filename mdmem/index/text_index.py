"""The text index of the memories, for ranked search, in a folder that can be deleted any time.

Each passage is a document of tantivy's. The first one of a memory also has the text, title and filters of the
whole memory. The text itself is not stored.

The constants of ranking come first, with their effects as measured by `bench/retrieval.py`. "Without it" is
the result when the constant is 0 and nothing else changes: the mean reciprocal rank, if not stated otherwise.
LoCoMo is its development half; "words" and "heading" are documentation, searched by five words of a paragraph
and by a heading that was removed, "name" by a heading and the file's name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from types import TracebackType
from typing import Any, NamedTuple

import tantivy

from mdmem.document.text.regex import regex
from mdmem.errors import IndexDamaged, MdmemError, StorageFailed
from mdmem.index import passages
from mdmem.index.database import VERSION_FILE, alias_key
from mdmem.index.passages import Indexed
from mdmem.kind import OBSERVATION, PROPOSAL, Kind, kind_at
from mdmem.vault.paths import Namespace, is_under

# -- a memory as a whole ------------------------------------------------------------------------------

# The share of a word's weight for a memory that holds it at all; the rest grows with its frequency. With .7,
# turns of LoCoMo, recall at 10, are .756, not .760; with .5, heading .581, not .590.
PRESENCE = 0.35
# The share of a stop word's weight that grows with its frequency, where there are other words. Without it,
# recall at 10 in LoCoMo .932, not .939.
COMMON = 0.4
# The weight of a word's rarity among passages, added to that among memories. Without it, heading .50, not
# .52; name .82, not .85.
RARITY_IN_PASSAGES = 0.6
# A word in these fields, relative to the text. With twice as much in headings, words .79, not .83; with twice
# as much in the title, name .95, not .92, and words .80, not .83.
TITLE = 0.5
HEADINGS = 0.15
TAGS = 0.5
# A memory that is called as the query says, relative to all words of the query: more than another can have.
# Without it, of 60 names of notes in the help of Obsidian 17 do not come first.
NAMED = 10.0
# The memories of the first block, however many hits are wanted.
BLOCK = 60
# The memories in which similar words are looked for where nothing is found.
ALIKE = 8
# Of memories with the same words, shorter ones are scored first: the bonus of an empty memory, as a share of
# its score, and the length in code points with half of it.
BREVITY = 0.25
LONG_SIZE = 2_000
# The length of a typical passage for BM25, in code points. With 120, words .72, not .83.
TYPICAL = 700

# -- its passages -------------------------------------------------------------------------------------

# As PRESENCE. Without it, words .87, not .88; heading .51, not .52.
PASSAGE_PRESENCE = 0.4
# A word in the headings above a passage. Without it, name .84, not .85; with twice as much, words .85, not
# .88.
HEADING = 0.25
# Two neighbouring words of the query that are near in a passage, with at most PAIR_GAP others between them.
# Without it, LoCoMo .82, not .83; heading .50, not .52.
PAIR = 0.6
PAIR_GAP = 2
MOST_PAIRS = 8
MOST_PASSAGES = 4_000  # a block rarely has more

# -- both together ------------------------------------------------------------------------------------

# The share of the best passage in a memory's score. Without it, LoCoMo .81, not .83; words .79, not .88.
BEST_PASSAGE = 0.45
# The share of passages one, and two, away from it. Without it, recall at 5 in LoCoMo is .879, not .880; with
# (0.35, 0.1) it is .883, and words .88, not .90.
NEIGHBOURS = (0.2, 0.05)
# Where passages are ranked, the share of the memory, and of passages one, two and three away: turns of
# LoCoMo, recall at 10, are .73 without the one, .70 without the other, .76 with both.
MEMORY = 1.2
PASSAGE_NEIGHBOURS = (0.5, 0.3, 0.15)

# -- meaning ------------------------------------------------------------------------------------------

# What a passage gains for each further step of nearness, and what its memory gains by its nearest passage: a
# share of the weight of all words of the query. See `mdmem.index.meaning`.
PASSAGE_MEANING = 0.125
MEMORY_MEANING = 0.075
# The passages of a scan that mostly are of enough memories to fill the first block.
NEAREST = 512

# -- priors -------------------------------------------------------------------------------------------

# Shares of a score that no set measures; they are small, to settle only what is close. In the median, the
# first hit has a quarter more than the second; in one question of four, less than a thirteenth.
# The bonus of a memory of today, and the days that halve it.
RECENCY = 0.05
RECENCY_DAYS = 90
# The loss for each namespace between a memory and the own one.
LAYER = 0.02
# The loss of a memory of confidence 0.
CONFIDENCE = 0.1
# The factor of an observation, which repeats other memories. With .8, sessions of LoCoMo have an MRR of .836,
# not .837 as alone; where observations count for how rare a word is in other memories, .832 at most.
OBSERVED = 0.65


# Raise it when the schema, the analysis or the cut of passages changes.
VERSION = 9

_META_FILE = "meta.json"
# A thread of tantivy's leaves this lock a moment after an index was opened, also in a folder that was emptied
# or replaced since.
_LATE_FILE = ".tantivy-meta.lock"
# Bytes that a writer buffers: the least, and what leaves fewer segments after a first run. One thread keeps
# up with parsing; two took more memory, and no less time.
_SMALL, _LARGE = 15_000_000, 50_000_000
# The bits of the line, and of the number of lines, in the fast field `place` of 64 bits.
_LINE_BITS, _COUNT_BITS = 22, 20
_WORDS = "mdmem"
_TOLD_APART = (OBSERVATION, PROPOSAL)
_META = regex(r"[\\.+*?()|\[\]{}^$#&~-]")
_BETWEEN_WORDS = regex(r"""[-_\s"“”„«»「」『』]+""")
_KEY_BITS = 36  # bits of a memory's key that order the memories of one day
# A score of tantivy's is a float of 32 bits, which is exact for whole numbers of 24 bits.
_EXACT_BITS = 24
MOST_FOUND = 20_000  # documents at once, where not all are wanted
ALL = 1 << 31  # documents: more than an index has
_MOST_COUNTS = 10_000
_MOST_WEIGHED, _MOST_RARE = 400, 30  # words of a memory that are counted, and by which others are found
_LONGEST_TITLE = 4_000  # code points


class PassagePlace(NamedTuple):
    """The place of a passage: its `key` is that of its memory, its `ordinal` the number there, from 0 on.

    `line` is the 1-based one in which it begins; `length` is that of its text, in code points.
    """

    key: int
    ordinal: int
    line: int
    lines: int
    length: int


class Whole(NamedTuple):
    """A memory as a whole: its `key`, day such as 20260131 or 0, confidence, and length in code points."""

    key: int
    day: int
    confidence: float
    size: int


# A score, and an address that is valid until the next `refresh`; a tuple, because a query makes thousands.
PassageHit = tuple[float, tantivy.DocAddress]


@cache
def schema() -> tantivy.Schema:
    """Return the fields of a passage and, in the first one of a memory, of the memory."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("key", indexed=True, fast=True)
    builder.add_unsigned_field("place", fast=True)
    builder.add_unsigned_field("length", fast=True)
    builder.add_text_field("text", tokenizer_name=_WORDS, index_option="position")
    builder.add_text_field("heading", tokenizer_name=_WORDS, index_option="basic")
    builder.add_text_field("path", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("whole", tokenizer_name=_WORDS, index_option="position")
    for name in ("title", "headings", "tags"):
        builder.add_text_field(name, tokenizer_name=_WORDS, index_option="position")
    for name in ("folder", "type", "tag", "name"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("day", indexed=True, fast=True)
    builder.add_float_field("confidence", fast=True)
    builder.add_unsigned_field("newest", fast=True)
    builder.add_unsigned_field("size", fast=True)
    builder.add_float_field("brevity", fast=True)
    return builder.build()


def key_of(path: str) -> int:
    """Return the number of a memory: 63 bits of a hash of its path."""
    return int.from_bytes(blake2b(path.encode(), digest_size=8).digest()) >> 1


def name_key(name: str) -> str:
    """Return the form of a file's name, a title or an alias in which those that people take for one agree."""
    return " ".join(_BETWEEN_WORDS.split(alias_key(name)[:_LONGEST_TITLE])).strip()


def folders_of(path: str) -> list[str]:
    """Return the folders above a memory, and its own path."""
    return [path[:at] for at, character in enumerate(path) if character == "/"] + [path]


def tag_terms(tag: str) -> list[str]:
    """Return a casefolded tag with the tags above it: of `a/b`, also `a`."""
    return folders_of(tag.casefold().removeprefix("#"))


class TextIndex:
    """The text index in `folder`, which is created when it is missing.

    The caller locks out other processes to create it and for `add`, `remove`, `commit` and `clear`. One
    object may be used by several threads, one at a time.

    Raises:
        IndexDamaged: the folder holds no text index, or one of an earlier version.
        StorageFailed: the system refused, or a later version of mdmem has written it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._writer: tantivy.IndexWriter | None = None
        self._searcher: tantivy.Searcher | None = None
        self._searched = -1
        self._counts: dict[Hashable, int] = {}
        self._open_index()

    def _open_index(self) -> None:
        with _TranslatingErrors(self, "open the index"):
            os.makedirs(self.folder, exist_ok=True)
            self._check_version()
            self._index = tantivy.Index(schema(), path=self.folder)
            self._index.register_tokenizer(_WORDS, passages.analyzer())
            self._index.config_reader("manual")

    def _check_version(self) -> None:
        path = os.path.join(self.folder, VERSION_FILE)
        if {*os.listdir(self.folder)} <= {_LATE_FILE}:
            with open(path, "w", encoding="utf-8") as file:
                file.write(str(VERSION))
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                version = file.read(32)
        except FileNotFoundError:
            version = "unknown"
        if version.isdecimal() and int(version) > VERSION:
            reason = f"a later version of mdmem has written it ({version}, not {VERSION})"
            raise StorageFailed(path=self.folder, action="use the index", reason=reason)
        if version != str(VERSION):
            raise IndexDamaged(path=self.folder, reason=f"its version is {version}, not {VERSION}")

    def close(self) -> None:
        """Close it without a commit."""
        self._writer = self._searcher = None

    def clear(self) -> None:
        """Delete everything in it."""
        self.close()
        with _TranslatingErrors(self, "empty the index"):
            # The folder itself stays: see _LATE_FILE.
            for name in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, name))
        self._searched = -1
        self._open_index()

    def add(self, memory: Indexed) -> None:
        """Add a memory that is not in the index, or was removed."""
        key, folders, kind = key_of(memory.path), folders_of(memory.path), kind_at(memory.path)
        if kind in _TOLD_APART:
            folders = [*folders, _mark_kind(kind)]
        with _TranslatingErrors(self, "write the index"):
            writer = self._open_writer()
            for ordinal, passage in enumerate(memory.passages):
                document = tantivy.Document()
                document.add_unsigned("key", key)
                place = ordinal << _LINE_BITS | min(passage.line, 2**_LINE_BITS - 1)
                document.add_unsigned("place", place << _COUNT_BITS | min(passage.lines, 2**_COUNT_BITS - 1))
                document.add_unsigned("length", len(passage.text))
                for folder in folders:
                    document.add_text("folder", folder)
                document.add_text("text", passage.text)
                if passage.heading:
                    # Every passage repeats them: a title may have megabytes.
                    titles = (title[:_LONGEST_TITLE] for title in passage.heading)
                    document.add_text("heading", " ".join(titles))
                if ordinal == 0:
                    _add_whole(document, memory, key)
                writer.add_document(document)

    def remove(self, path: str) -> None:
        """Remove a memory, if it is there."""
        with _TranslatingErrors(self, "write the index"):
            # By a query, because tantivy 0.27 deletes nothing by a term of numbers.
            self._open_writer().delete_documents_by_query(*of_memories([key_of(path)]))

    def remove_below(self, folder: str) -> None:
        """Remove every memory in a folder."""
        with _TranslatingErrors(self, "write the index"):
            self._open_writer().delete_documents_by_query(having("folder", folder))

    def commit(self, *, more: bool = False) -> int:
        """Commit what was added and removed, and return the `opstamp`.

        Unless `more` follows soon, the writer is closed, and another process may write.
        """
        with _TranslatingErrors(self, "write the index"):
            if self._writer:
                self._writer.commit()
                if not more:
                    # A writer that is only dropped ends its merges half way: segments would pile up.
                    self._writer.wait_merging_threads()
                    self._writer = None
        self._searcher = None
        return self.opstamp

    def sweep(self) -> None:
        """Delete the files of a commit that was killed: the next one would use the same names."""
        self.close()
        self._open_index()
        with _TranslatingErrors(self, "write the index"):
            self._open_writer().garbage_collect_files()

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            heap = _SMALL if self.searcher().num_docs else _LARGE
            self._writer = self._index.writer(heap, num_threads=1)
        return self._writer

    @property
    def opstamp(self) -> int:
        """The number of the last commit on disk; 0 before the first one. It grows with each commit."""
        with (
            _TranslatingErrors(self, "read the index"),
            open(os.path.join(self.folder, _META_FILE), "rb") as file,
        ):
            return int(json.load(file)["opstamp"])

    def refresh(self) -> None:
        """Load the last commit on disk, whichever process made it."""
        opstamp = self.opstamp
        if self._searcher is None or opstamp != self._searched:
            with _TranslatingErrors(self, "read the index"):
                self._index.reload()
                self._searcher, self._searched = self._index.searcher(), opstamp
            self._counts.clear()

    def searcher(self) -> tantivy.Searcher:
        """Return the index as it was at the last `refresh`."""
        if self._searcher is None:
            self.refresh()
        assert self._searcher is not None  # noqa: S101 - refresh sets it
        return self._searcher

    def best(self, query: tantivy.Query, limit: int) -> list[PassageHit]:
        """Return the documents to which a query gives a score, the best first."""
        searcher = self.searcher()
        with _TranslatingErrors(self, "search the index"):
            result = searcher.search(query, _bound_limit(limit, searcher), count=False)
            return [hit for hit in result.hits if hit[0]]

    def find_matching(
        self, searches: Sequence[tantivy.Query], keys: Iterable[int]
    ) -> dict[PassagePlace, tuple[int, ...]]:
        """Find the passages of some memories that match any of some searches: by place, which of them.

        tantivy does not tell which clauses of a search match: it adds up their scores. So each clause scores
        a power of two, and the bits of the sum are the clauses that match. That takes one search for 24
        clauses; one for each would pass the budget of a query.
        """
        # One term query for each memory: a set of terms is looked up in all there are, which takes longer.
        inside = any_of([unscored(search) for search in of_memories(keys)])
        matching: dict[PassagePlace, tuple[int, ...]] = {}
        for start in range(0, len(searches), _EXACT_BITS):
            some = searches[start : start + _EXACT_BITS]
            query = unscored(tantivy.Query.all_query())
            for bit, search in enumerate(some):
                # One by one, because tantivy goes through whole blocks of documents for a union of clauses,
                # and here few documents count: a third of the time.
                scored = tantivy.Query.const_score_query(search, float(1 << bit))
                query = boolean(must=[query], should=[scored])
            # `inside` last: a query is copied into the one around it, and these are many. A third less.
            hits = self._find_scored(boolean(must=[query, inside]), MOST_PASSAGES)
            numbers = {score: _list_bits(int(score), start) for score in {score for score, _ in hits}}
            for place, (score, _) in zip(self._read_places([hit[1] for hit in hits]), hits, strict=True):
                matching[place] = matching.get(place, ()) + numbers[score]
        return matching

    def _find_scored(self, query: tantivy.Query, usual: int) -> list[PassageHit]:
        hits = self.best(query, usual)
        return self.best(query, ALL) if len(hits) == usual else hits

    def memories(
        self, query: tantivy.Query, limit: int, *, newest: bool = False
    ) -> tuple[list[PassageHit], int]:
        """Return at least `limit` memories that a query finds, and how many there are in all.

        The best first, of equal ones the shortest; or the newest first. The order never depends on how the
        index has stored them. The scores of a query are small whole numbers.
        """
        searcher: Any = self.searcher()
        order = {"order_by_field": "newest"} if newest else {"weight_by_field": "brevity"}
        most = limit = _bound_limit(limit, searcher)
        with _TranslatingErrors(self, "search the index"):
            while True:
                result = searcher.search(query, most + 1, **order)
                hits = list(result.hits)
                if result.count <= most:
                    return hits, result.count
                # The place in the index decides which memories with the last score are among the hits.
                sure = [hit for hit in hits if hit[0] > hits[-1][0]]
                if len(sure) >= limit or most >= MOST_FOUND:
                    return sure or hits, result.count
                most = min(4 * most, MOST_FOUND)

    def count(self, query: tantivy.Query) -> int:
        """Count the documents that a query finds."""
        searcher = self.searcher()
        with _TranslatingErrors(self, "search the index"):
            result = searcher.aggregate(query, {"n": {"value_count": {"field": "key"}}})
            return int(result["n"]["value"])

    def count_once(self, name: Hashable, query: tantivy.Query) -> int:
        """Count as `count`, and keep the result under a name until the next `refresh`."""
        self.searcher()  # where a commit has dropped it, it refreshes
        if len(self._counts) > _MOST_COUNTS:
            self._counts.clear()
        if name not in self._counts:
            self._counts[name] = self.count(query)
        return self._counts[name]

    def frequency(self, name: str, word: str) -> int:
        """Return how many documents have a word in a field, including removed ones."""
        searcher = self.searcher()
        with _TranslatingErrors(self, "search the index"):
            return searcher.doc_freq(name, word)

    def keys(self, hits: Iterable[PassageHit]) -> list[int]:
        """Return the keys of the memories that some documents are of."""
        (keys,) = self._read_fast_fields(("key",), [address for _, address in hits])
        return keys

    def _read_places(self, addresses: Sequence[tantivy.DocAddress]) -> list[PassagePlace]:
        keys, packed, lengths = self._read_fast_fields(("key", "place", "length"), addresses)
        ordinal, line, count = _LINE_BITS + _COUNT_BITS, 2**_LINE_BITS - 1, 2**_COUNT_BITS - 1
        return [
            PassagePlace(key, place >> ordinal, place >> _COUNT_BITS & line, place & count, length)
            for key, place, length in zip(keys, packed, lengths, strict=True)
        ]

    def wholes(self, addresses: Sequence[tantivy.DocAddress]) -> list[Whole]:
        """Return memories, by their first passages."""
        return list(map(Whole, *self._read_fast_fields(("key", "day", "confidence", "size"), addresses)))

    def paths_at(self, addresses: Iterable[tantivy.DocAddress]) -> list[str]:
        """Return the paths of memories, by their first passages."""
        searcher = self.searcher()
        with _TranslatingErrors(self, "read the index"):
            return [str(searcher.doc(address)["path"][0]) for address in addresses]

    def paths(self) -> list[str]:
        """Return the paths of all memories, in order."""
        hits = self.best(wholes_query(), max(1, self.searcher().num_docs))
        return sorted(self.paths_at(address for _, address in hits))

    def _read_fast_fields(
        self, names: Sequence[str], addresses: Sequence[tantivy.DocAddress]
    ) -> list[list[Any]]:
        searcher, listed = self.searcher(), list(addresses)
        with _TranslatingErrors(self, "read the index"):
            return [list(searcher.fast_field_values(name, listed)) for name in names]


class TextView:
    """What some namespaces, the own one first, hold of a text index.

    Nothing else is found or counted, or decides a score.
    """

    def __init__(self, index: TextIndex, layers: Sequence[Namespace]) -> None:
        self.index = index
        self.layers = tuple(layers)
        is_whole = any(not layer.folder and not layer.hides for layer in layers)
        self._wall = None if is_whole else any_of([of_namespace(layer) for layer in layers])

    def restrict(self, query: tantivy.Query) -> tantivy.Query:
        """Return a query that finds only what is inside of the wall; the score stays."""
        return boolean(must=[query, unscored(self._wall)]) if self._wall else query

    def count(self, name: Hashable, query: tantivy.Query) -> int:
        """Count the documents that a query finds; the count is kept, see `TextIndex.count_once`."""
        return self.index.count_once((self.layers, name), self.restrict(query))

    def count_word(self, name: Hashable, field: str, word: str, query: tantivy.Query) -> int:
        """Count as `count` the documents that a query for a word in a field finds."""
        return self.count(name, query) if self.index.frequency(field, word) else 0

    @property
    def passage_count(self) -> int:
        """The number of all passages."""
        return self.count("every passage", tantivy.Query.all_query())

    def find_alike(self, fields: Iterable[str], word: str, distance: int) -> list[str]:
        """Return the paths of a few memories with a word that differs in at most `distance` letters."""
        near = [tantivy.Query.fuzzy_term_query(schema(), field, word, distance) for field in fields]
        query = self.restrict(tantivy.Query.const_score_query(any_of(near), 1.0))
        hits, _ = self.index.memories(query, ALIKE)
        return self.index.paths_at(address for _, address in hits)

    def nearest(self, written: str, limit: int) -> list[str]:
        """Return the paths of the memories that hold most of the rarest words of a text, the best first.

        Only what is within the wall decides what is rare and what comes first; of a long text, a sample.
        """
        words = sorted(set(passages.analyzed(passages.written_out(written))))
        words = words[:: len(words) // _MOST_WEIGHED + 1]
        terms = {word: having("whole", word) for word in words}
        counts = {word: self.index.count(self.restrict(term)) for word, term in terms.items()}
        shared = sorted((word for word in words if counts[word] > 1), key=lambda word: (counts[word], word))
        asked = [tantivy.Query.const_score_query(terms[word], 1.0) for word in shared[:_MOST_RARE]]
        hits, _ = self.index.memories(self.restrict(boolean(should=asked)), limit)
        return self.index.paths_at(address for _, address in hits[:limit])

    def count_holders(self, text: str) -> int:
        """Count the memories that hold the words of a short text in a row."""
        rows = (stretch[0] for stretch in passages.runs_of(text) if not passages.is_signed(stretch[0][0]))
        terms = (having_run("whole", row) for row in rows)
        return self.index.count(self.restrict(boolean(must=terms)))


def _bound_limit(limit: int, searcher: tantivy.Searcher) -> int:
    """Lower a limit to the number of documents: tantivy allocates room for as many hits."""
    return min(limit, max(searcher.num_docs, 1))


class _TranslatingErrors:
    """Translates tantivy's errors inside a `with`.

    A class, because a search enters it dozens of times, and a generator takes three times as long.
    """

    __slots__ = ("_action", "_index")

    def __init__(self, index: TextIndex, action: str) -> None:
        self._index = index
        self._action = action

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, MdmemError):
            return
        if isinstance(error, FileNotFoundError):
            # Another process has deleted or replaced it.
            raise self._make_damage_error(error.strerror or str(error)) from None
        if isinstance(error, OSError):
            raise self._make_refusal(error.strerror or str(error)) from None
        if isinstance(error, ValueError | LookupError):
            self._index.close()
            reason = str(error)
            if "LockBusy" in reason:
                raise self._make_refusal("another process is writing it") from None
            if "No space left" in reason or "Permission denied" in reason:
                raise self._make_refusal(reason) from None
            raise self._make_damage_error(reason) from None
        # A panic in Rust, which damaged files can cause, derives from BaseException.
        if type(error).__name__ == "PanicException":
            raise self._make_damage_error(str(error)) from None

    def _make_damage_error(self, reason: str) -> IndexDamaged:
        self._index.close()
        return IndexDamaged(path=self._index.folder, reason=reason)

    def _make_refusal(self, reason: str) -> StorageFailed:
        return StorageFailed(path=self._index.folder, action=self._action, reason=reason)


def _add_whole(document: tantivy.Document, memory: Indexed, key: int) -> None:
    document.add_text("path", memory.path)
    document.add_text("whole", memory.text)
    for name in {name_key(each) for each in (*memory.title.split("\n"), *memory.aliases)} - {""}:
        document.add_text("name", name)
    document.add_text("title", passages.written_out("\n".join((memory.title, *memory.aliases))))
    if memory.headings:
        document.add_text("headings", passages.written_out("\n".join(memory.headings)))
    if memory.tags:
        document.add_text("tags", passages.written_out("\n".join(memory.tags)))
    for term in {term for tag in memory.tags for term in tag_terms(tag)}:
        document.add_text("tag", term)
    if memory.type:
        document.add_text("type", memory.type.casefold())
    document.add_unsigned("day", memory.day)
    document.add_float("confidence", memory.confidence)
    document.add_unsigned("newest", memory.day << _KEY_BITS | key >> 63 - _KEY_BITS)
    document.add_unsigned("size", len(memory.text))
    document.add_float("brevity", _weigh_brevity(len(memory.text), key))


def _weigh_brevity(size: int, key: int) -> float:
    """Return the factor that favours shorter memories, and differs for two of one length.

    tantivy multiplies a score by log2(2 + x).
    """
    share = BREVITY / (1 + size / LONG_SIZE)
    return float(2 ** (1 + share + (key >> 50) * 2.0**-20) - 2)


def of_memories(keys: Iterable[int]) -> list[tantivy.Query]:
    """Find the passages of memories, by their keys: a query for each."""
    return [tantivy.Query.term_query(schema(), "key", key) for key in keys]


def having(field: str, value: str) -> tantivy.Query:
    """Find the passages with a value, or a word, in a field."""
    return tantivy.Query.term_query(schema(), field, value)


def having_run(field: str, run: passages.Run) -> tantivy.Query:
    """Find the passages with some words in a row in a field."""
    return having(field, run[0]) if len(run) == 1 else tantivy.Query.phrase_query(schema(), field, [*run])


def wholes_query() -> tantivy.Query:
    """Find every memory, by its first passage: no other passage has a day."""
    return tantivy.Query.range_query(schema(), "day", tantivy.FieldType.Unsigned, 0, 99_999_999)


def any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Find what one of some queries finds."""
    return queries[0] if len(queries) == 1 else boolean(should=queries)


def unscored(query: tantivy.Query) -> tantivy.Query:
    """Find what a query finds, without a score."""
    return tantivy.Query.const_score_query(query, 0.0)


def boolean(
    must: Iterable[tantivy.Query] = (),
    should: Iterable[tantivy.Query] = (),
    must_not: Iterable[tantivy.Query] = (),
) -> tantivy.Query:
    """Find what all of some queries find and none of others; further ones only add to the score."""
    clauses = [(tantivy.Occur.Must, each) for each in must]
    clauses += [(tantivy.Occur.Should, each) for each in should]
    return tantivy.Query.boolean_query(clauses + [(tantivy.Occur.MustNot, each) for each in must_not])


def _list_bits(bits: int, start: int) -> tuple[int, ...]:
    """List the numbers of the bits that are set, counted from `start`."""
    return tuple(start + number for number in range(bits.bit_length()) if bits >> number & 1)


def of_namespace(namespace: Namespace) -> tantivy.Query:
    """Find the passages in a namespace."""
    inside = having("folder", namespace.folder) if namespace.folder else tantivy.Query.all_query()
    hidden: list[tantivy.Query] = []
    for folder in namespace.hides:
        if "*" not in folder:
            kept = [having("folder", path) for path in namespace.keeps if is_under(path, folder)]
            hidden.append(boolean(must=[having("folder", folder)], must_not=kept))
    # All at once, because each searches every folder.
    if patterns := [escaped(folder).replace(r"\*", "[^/]+") for folder in namespace.hides if "*" in folder]:
        hidden.append(tantivy.Query.regex_query(schema(), "folder", "|".join(patterns)))
    return boolean(must=[inside], must_not=hidden)


def of_kind(kind: Kind) -> tantivy.Query:
    """Find the passages of observations, or of proposals, in all namespaces."""
    return having("folder", _mark_kind(kind))


def _mark_kind(kind: Kind) -> str:
    """Return the mark of a kind in the field `folder`; no path has an empty part."""
    return f"//{kind.name}"


def escaped(text: str) -> str:
    """Return a regular expression of tantivy's that matches a text and nothing else."""
    return _META.sub(r"\\\g<0>", text)
