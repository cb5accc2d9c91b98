"""The query language of ranked search; no text is refused.

    words             any of them: the more, and the rarer, the better
    "some words"      required, in a row; words like others where no memory has them so, and there are others
    begin*            a word that begins so
    -word  -"…"       memories without it; also before a filter
    tag:a  type:b     memories with this tag (or one below it: a/c), of this type
    path:notes/       memories whose path begins so
    after:2026-01     memories from this year, month or day on
    before:2026       memories before it

Anything else is searched as words. The notes of the query name what is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from mdmem.document.text.regex import regex
from mdmem.index import passages

Each = Literal["memory", "passage"]

# A question has some ten words, a pasted paragraph a hundred; further ones cost time and find nothing.
MOST_WORDS = 64
MOST_CHARACTERS = 10_000
_LONGEST_PATH = 900  # bytes; tantivy makes a state for each, and at most 1,000
_LONGEST_NOTED = 40  # characters of a filter in a note
# A phrase, prefix or excluded word is looked up on its own.
MOST_TERMS = 16
MOST_COMMON = 6  # stop words, as many as most questions have

T = TypeVar("T")

_QUOTED = "|".join(
    f"{opening}[^{closing}]{{0,1000}}{closing}"
    for opening, closing in ('""', "“”", "„“", "«»", "「」", "『』")
)
_PIECE = regex(
    rf"(?P<minus>-(?=[^\s-]))?(?:(?P<name>tag|type|path|before|after):(?P<value>{_QUOTED}|[^\s\"]+)"
    rf"|(?P<phrase>{_QUOTED})|(?P<word>[^\s\"“„«「『]+)|(?P<stray>.))",
    re.IGNORECASE | re.DOTALL,
)
_DATE = regex(r"([0-9]{4})(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12][0-9]|3[01]))?)?")
_NOT_TEXT = regex("[\0\ud800-\udfff]")

_STOP_WORDS = """
a about after again all also am an and any are as at be because been before being between both but by can
cannot could did do does doing done down during each either else ever every few for from further get give
had has have having he her here hers herself him himself his how i if in into is it its itself just kind
kinds let many may me mention mentioned might more most much must my myself neither no nor not now of off on
once only or other our ours ourselves out over own per please same shall she should show since so some such
tell than that the their theirs them themselves then there these they thing things this those through thus
to too under until up upon us very was way ways we were what when where whether which while who whom whose
why will with within without would yes yet you your yours yourself yourselves
aren couldn d didn doesn don hadn hasn haven isn ll m re s shouldn t ve wasn weren won wouldn
"""


# Words that fit any question: they find a memory, and hardly choose which lines of it are shown.
_FILLERS = "go happen help know like look make mean need try use want work"
FILLER_SHARE = 0.2  # of the weight of another word, where lines are chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """The arguments of a search, as `Memory.search` describes them."""

    query: str
    within: str = ""
    types: Sequence[str] = ()
    tags: Sequence[str] = ()
    since: str = ""
    before: str = ""
    limit: int = 10
    budget: int | None = None
    each: Each = "memory"
    context: int | None = None
    explain: bool = False
    where: Sequence[str] = ()
    any_state: bool = False
    as_of: str = ""


class Term(NamedTuple):
    """A phrase, prefix or word that a text must, or must not, hold.

    Attributes:
        runs: alternatives: words in a row, as the index has them.
        is_prefix: whether the first run is the beginning of one word.
    """

    runs: tuple[passages.Run, ...]
    is_prefix: bool = False


class Filters(NamedTuple):
    """Filters of memories: tags and types casefolded, prefixes of paths."""

    tags: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tags or self.types or self.paths)


class Query(NamedTuple):
    """A parsed query.

    Attributes:
        words: to rank by, as the index has them; any of them.
        common: the first few stop words: they find nothing, and settle what is close.
        prefixes: beginnings of words to rank by.
        phrases: required, all of them.
        without: excluded, each group as a whole.
        filters: all of the `tags`, one of the `types`, one of the `paths`.
        excluded: filters that must not match.
        after, before: the first day, and the first day that is too late, such as 20260131; 0 for any.
        notes: what was left out.
        said: the words and phrases as they were written; empty where there are only phrases.
        name: what a memory would be called that the query names; empty where it asks for more.
    """

    words: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    prefixes: tuple[Term, ...] = ()
    phrases: tuple[Term, ...] = ()
    without: tuple[tuple[Term, ...], ...] = ()
    filters: Filters = Filters()
    excluded: Filters = Filters()
    after: int = 0
    before: int = 0
    notes: tuple[str, ...] = ()
    said: str = ""
    name: str = ""

    @property
    def is_ranked(self) -> bool:
        """Whether there are words, prefixes or phrases to rank by."""
        return bool(self.words or self.prefixes or self.phrases)

    def loosened(self) -> Query:
        """Return the query without its phrases; itself where there is nothing else to rank by."""
        phrased = {word for term in self.phrases for run in term.runs for word in run}
        if not self.phrases or not (self.prefixes or set(self.words) - phrased):
            return self
        note = "no memory has what stands in quotation marks: its words were searched one by one"
        return self._replace(phrases=(), notes=(*self.notes, note))

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing at all."""
        narrowed = self.without or self.filters or self.excluded or self.after or self.before
        return not (self.is_ranked or narrowed)


def parse(text: str) -> Query:
    """Parse a query."""
    parser = _Parser()
    if len(text) > MOST_CHARACTERS:
        parser.notes.append(f"only the first {MOST_CHARACTERS:,} characters of the query were used")
        text = text[:MOST_CHARACTERS]
    for piece in _PIECE.finditer(_NOT_TEXT.sub(" ", text)):
        parser.take(piece)
    return parser.query()


def day(text: str) -> int:
    """Return the first day of `2026`, `2026-01` or `2026-01-31` as a number; 0 for anything else."""
    date = _DATE.fullmatch(text.strip())
    return int(date[1]) * 10_000 + int(date[2] or 1) * 100 + int(date[3] or 1) if date else 0


@cache
def stop_words() -> frozenset[str]:
    """Return the words that are not searched where there are others, as the index has them."""
    return frozenset((*_STOP_WORDS.split(), *passages.analyzer().analyze(_STOP_WORDS)))


@cache
def filler_words() -> frozenset[str]:
    """Return the words that fit any question, as the index has them."""
    return frozenset(passages.analyzer().analyze(_FILLERS))


class _Parser:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.prefixes: list[Term] = []
        self.phrases: list[Term] = []
        self.without: list[tuple[Term, ...]] = []
        self.filters: dict[str, list[str]] = {}
        self.excluded: dict[str, list[str]] = {}
        self.after = self.before = 0
        self.notes: list[str] = []
        self.said: list[str] = []
        self.is_worded = False

    def take(self, piece: re.Match[str]) -> None:
        """Add a filter, a phrase or a word."""
        minus = bool(piece["minus"])
        if piece["name"]:
            self._add_filter(piece["name"].casefold(), _strip_quotes(piece["value"]), piece[0], minus=minus)
        elif piece["phrase"]:
            self._add_phrase(_strip_quotes(piece["phrase"]), minus=minus)
        elif piece["word"]:
            self._add_word(piece["word"], minus=minus)
        elif piece["stray"] == '"':
            note = "a quotation mark has no partner: the words behind it were searched one by one"
            if note not in self.notes:
                self.notes.append(note)

    def _add_filter(self, name: str, value: str, written: str, *, minus: bool) -> None:
        short = written if len(written) <= _LONGEST_NOTED else f"{written[: _LONGEST_NOTED - 1]}…"
        if name in {"after", "before"}:
            date = day(value)
            if not date:
                self.notes.append(f"{short} was left out: a date is 2026, 2026-01 or 2026-01-31")
            elif (name == "after") is not minus:
                self.after = max(self.after, date)
            else:
                self.before = min(self.before or date, date)
        elif name == "path" and len(value.encode("utf-8", "replace")) > _LONGEST_PATH:
            self.notes.append(f"{short} was left out: it is longer than {_LONGEST_PATH} bytes")
        elif value:
            value = value.lstrip("/") if name == "path" else value.casefold().removeprefix("#")
            (self.excluded if minus else self.filters).setdefault(name, []).append(value)

    def _add_phrase(self, phrase: str, *, minus: bool) -> None:
        if minus:
            self._exclude_terms(_parse_phrase(phrase))
        else:
            self.words += passages.words_of(phrase)
            self.phrases += _parse_phrase(phrase)
            self.said.append(phrase)

    def _add_word(self, word: str, *, minus: bool) -> None:
        prefix = _parse_prefix(word)
        if minus:
            self._exclude_terms([prefix] if prefix else _parse_phrase(word))
        elif prefix:
            self.prefixes.append(prefix)
        else:
            words = passages.words_of(word)
            self.words += words
            self.said.append(word)
            self.is_worded |= bool(words)

    def _exclude_terms(self, terms: list[Term]) -> None:
        if terms:
            self.without.append(tuple(terms))

    def query(self) -> Query:
        words = list(dict.fromkeys(self.words))
        telling = [word for word in words if word not in stop_words()] or words
        # A letter alone is an article, or what an apostrophe has cut off.
        common = [word for word in words if word not in telling and len(word) > 1]
        return Query(
            words=self._keep_first(telling, MOST_WORDS, "words"),
            common=tuple(common[:MOST_COMMON]),
            prefixes=self._keep_first(self.prefixes, MOST_TERMS, "beginnings of words"),
            phrases=self._keep_first(self.phrases, MOST_TERMS, "phrases"),
            without=self._keep_first(self.without, MOST_TERMS, "excluded words"),
            filters=self._build_filters(self.filters),
            excluded=self._build_filters(self.excluded),
            after=self.after,
            before=self.before,
            notes=tuple(self.notes),
            said=" ".join(self.said) if self.is_worded else "",
            name="" if self.prefixes or self.without else " ".join(self.said),
        )

    def _build_filters(self, values: dict[str, list[str]]) -> Filters:
        names = ("tag", "type", "path")
        return Filters(
            *(self._keep_first(values.get(name, []), MOST_TERMS, f"filters {name}:") for name in names)
        )

    def _keep_first(self, items: Sequence[T], most: int, what: str) -> tuple[T, ...]:
        if len(items) > most:
            self.notes.append(f"only the first {most} of {len(items):,} {what} were used")
        return tuple(items[:most])


def _parse_phrase(phrase: str) -> list[Term]:
    terms = []
    for runs in passages.runs_of(phrase):
        lone = len(runs[0]) == 1 and passages.is_lone(runs[0][0])
        terms.append(Term(runs=tuple(runs), is_prefix=lone))
    return terms


def _parse_prefix(word: str) -> Term | None:
    """Return the prefix that a word such as `begin*` stands for; None for any other word."""
    if word.endswith("*"):
        runs = tuple((beginning,) for beginning in passages.beginnings(word.rstrip("*")))
        return Term(runs=runs, is_prefix=True) if runs else None
    return Term(runs=((word,),), is_prefix=True) if passages.is_lone(word) else None


def _strip_quotes(text: str) -> str:
    return text[1:-1] if re.fullmatch(_QUOTED, text) else text
