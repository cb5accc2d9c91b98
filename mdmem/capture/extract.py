"""What a text states that is worth keeping: wishes, constraints, decisions, fixes, facts.

Rules read a text sentence by sentence. What is code, quoted, asked, reported, supposed or only offered is
passed over first; what the words of a lexicon tell counts in the rest. No model is needed, and nothing is
read but the text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from mdmem.capture.lexicon import AT_HEAD, BY_ANYONE, KINDS, PARTS, Lexicon, builtin
from mdmem.capture.sentence import Cue, SpokenClause, SpokenSentence
from mdmem.diagnostic import Span
from mdmem.errors import Usage
from mdmem.generator import Generator, prompt, structured
from mdmem.text import blocks
from mdmem.text.blocks import HTML, IMAGE, LINK
from mdmem.text.regex import regex
from mdmem.text.sentences import sentences
from mdmem.text.tokens import abridged, clipped, estimate, fenced, in_line

__all__ = [
    "EVENTS",
    "KINDS",
    "Candidate",
    "Lexicon",
    "added_by",
    "builtin",
    "extract",
    "from_event",
    "left_out",
]

MOST_READ = 100_000
"""Characters of a text that are looked at: of a longer one half of them from each side."""
_USER, _ASSISTANT = "user", "assistant"
_SPEAKERS = {_USER: _USER, "human": _USER, _ASSISTANT: _ASSISTANT, "ai": _ASSISTANT, "model": _ASSISTANT}
_LONGEST_VALUE = 300  # characters
_SURE_OF_MODEL = 0.6
_MOST_ASKED, _MOST_ANSWERED = 10_000, 1_000  # tokens of the texts that a model reads, and of its answer
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["candidates"],
    "properties": {
        "candidates": {
            "type": "array",
            "maxItems": 100,
            "items": {
                "type": "object",
                "required": ["message", "kind", "quote"],
                "properties": {
                    "message": {"type": "integer", "minimum": 1},
                    "kind": {"enum": list(KINDS)},
                    "quote": {"type": "string", "pattern": "\\S"},
                },
            },
        }
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that was stated.

    Attributes:
        kind: one of `KINDS`.
        category, key: of a preference, where they are known; else empty.
        value: what is wished, decided or known, in one line.
        tags: what it is about.
        quote: the exact words, `text[start:end]`, in characters.
        start, end: where they stand.
        confidence: from 0 to 1.
        why: which rule found it.
    """

    kind: str
    category: str = ""
    key: str = ""
    value: str
    tags: tuple[str, ...] = ()
    quote: str
    start: int
    end: int
    confidence: float
    why: str


def extract(
    text: str, speaker: str = _USER, language: str | None = None, lexicon: Lexicon | None = None
) -> list[Candidate]:
    """What a text states, in the order of its places; nothing of what is a question, a condition or code.

    Of two wishes for the same key the last one counts.

    Args:
        text: what was said, `MOST_READ` characters of it; `left_out` says how many more there are.
        speaker: `user`, or `assistant`, whose wishes and offers do not count; nothing else states anything.
        language: "en" or "zh"; None reads both, also mixed.
        lexicon: the words; without one those that come with the program.

    Raises:
        Usage: there is no such language.
    """
    words = lexicon or builtin()
    if language is not None and language not in words.languages:
        raise Usage(problem=f"a language is {', '.join(words.languages)}, not {language!r}")
    role = _SPEAKERS.get(speaker.casefold())
    if role is None:
        return []
    found: list[Candidate] = []
    for part in _parts(text):
        clean, spans = _prose(text[part.start : part.end])
        reader = _Listener(text, part.start, words, language, by_user=role == _USER)
        for span in spans:
            found += reader.read(clean, span)
    return _last_of_each(_unsolved(found))


def left_out(text: str) -> int:
    """How many characters of a text `extract` does not look at."""
    return len(text) - sum(part.end - part.start for part in _parts(text))


# -- what of a text is somebody's own words ---------------------------------------------------------------

_FENCE = regex(r"(?m)^ {0,3}(?:```|~~~)")
_QUOTED = regex(
    r"\"[^\"\n]{1,400}\"|\u201c[^\u201d\n]{1,400}\u201d|\u300c[^\u300d\n]{1,400}\u300d"
    r"|\u300e[^\u300f\n]{1,400}\u300f|\u00ab[^\u00bb\n]{1,400}\u00bb|\u201e[^\u201c\u201d\n]{1,400}[\u201c\u201d]"
    r"|(?<!\w)['\u2018](?=\S)[^'\u2019\n]{1,200}['\u2019](?!\w)"
)
_URL = regex(r"\b(?:https?|ftp)://[^\s<>\"]+")
_LETTERS = regex(r"\S")
_WORD = "_"  # stands for what is passed over, so that a sentence keeps its shape


def _parts(text: str) -> list[Span]:
    """What of a text is looked at: all of it, or its beginning and its end."""
    if len(text) <= MOST_READ:
        return [Span(0, len(text))]
    half = MOST_READ // 2
    start = len(text) - half
    # Where the end begins inside of a fence, what closes it would look as if it opened one.
    if sum(1 for _ in _FENCE.finditer(text, 0, start)) % 2:
        closing = _FENCE.search(text, start)
        start = text.find("\n", closing.end()) if closing else -1
        start = start if start >= 0 else len(text)
    return [Span(0, half), Span(start, len(text))]


def _prose(text: str) -> tuple[str, list[Span]]:
    """A text with code, addresses and quoted words passed over, and where in it somebody speaks himself.

    These are its paragraphs, headings and cells, but those of quotes.
    """
    outline = blocks.scan(text)
    masks: list[tuple[int, int, str]] = []
    for mark in outline.marks:
        if mark.kind in {LINK, IMAGE}:
            masks.append((mark.close, mark.end, " "))
        else:
            masks.append((mark.start, mark.end, " " if mark.kind == HTML else _WORD))
    parts, at = [], 0
    for start, end, sign in sorted(masks):
        if start >= at:
            parts += [text[at:start], _LETTERS.sub(sign, text[start:end])]
            at = end
    clean = blocks.without_quotes("".join((*parts, text[at:])), outline.quotes)
    clean = _QUOTED.sub(_passed, _URL.sub(_passed, clean))
    return clean, [span for span in outline.texts if ">" not in text[_line(text, span.start) : span.start]]


def _passed(found: Any) -> str:
    return _LETTERS.sub(_WORD, found[0])


def _line(text: str, at: int) -> int:
    """Where the line of a place begins."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


# -- what a sentence tells --------------------------------------------------------------------------------

# Of what one clause tells, the first of these; a preference with a key before all but the first two.
_RANKS = {
    "fix": 0,
    "decision": 1,
    "audience": 3,
    "length": 4,
    "format": 5,
    "style": 6,
    "preference": 7,
    "constraint": 8,
    "problem": 9,
    "fact": 10,
}
_RANK_OF_KEYED = 2
_SURE = {**dict.fromkeys(PARTS, 0.8), "pair": 0.7, "value": 0.9}
_LESS_SURE_OF_ASSISTANT, _LESS_SURE_OF_FACT = 0.2, 0.1
_SHORT = 3  # words of a sentence that only says "Fixed."
_AROUND = " \t\r\n,;:\uff0c\uff1b\uff1a"


class _Statement(NamedTuple):
    """What a clause tells: the rank, lowest first, of which kind, by which words, and how sure that is."""

    rank: int
    kind: str
    first: int
    end: int
    sure: float
    value: tuple[str, str, str] = ("", "", "")


class _Listener:
    """Reads the paragraphs of a part of a text, which begins in it at `offset`."""

    def __init__(
        self, text: str, offset: int, lexicon: Lexicon, language: str | None, *, by_user: bool
    ) -> None:
        self._text = text
        self._offset = offset
        self._lexicon = lexicon
        self._language = language
        self._by_user = by_user

    def read(self, clean: str, span: Span) -> list[Candidate]:
        """The candidates of a paragraph."""
        found: list[Candidate] = []
        short: Candidate | None = None
        for place in sentences(clean, *span):
            sentence = SpokenSentence(clean, place, self._lexicon, self._language)
            here = self._candidates(sentence)
            if short is not None and not sentence.is_question:  # "Fixed." is told by what follows
                here = [each for each in here if each.kind not in {"fix", "problem", "fact"}]
                found[-1] = self._quoting(short, short.start - self._offset, place.end)
            found += here
            is_short = len(sentence.words) <= _SHORT and here and here[-1].kind == "fix"
            short = here[-1] if is_short else None
        return found

    def _candidates(self, sentence: SpokenSentence) -> list[Candidate]:
        """What each clause tells first, every kind and key once."""
        told: dict[tuple[str, str], tuple[int, _Statement]] = {}
        for clause in sentence.clauses:
            best = min(_Teller(sentence, clause, self._lexicon, by_user=self._by_user).told(), default=None)
            if best and (best.value[1] or (best.kind, "") not in told):
                told[best.kind, best.value[1]] = clause.start, best
        if any(key for _, key in told):
            told.pop(("preference", ""), None)
        if ("fix", "") in told:
            told.pop(("problem", ""), None)
        if len(told) > 1:
            told.pop(("fact", ""), None)
        ordered = sorted(told.values())
        tags = tuple(sorted({mark.name for mark in sentence.marks if mark.part == "tag"}))
        starts = [sentence.words[start].start for start, _ in ordered[1:]]
        places = pairwise([sentence.span.start, *starts, sentence.span.end])
        return [
            self._candidate(sentence, best, place, tags)
            for (_, best), place in zip(ordered, places, strict=False)
        ]

    def _candidate(
        self, sentence: SpokenSentence, told: _Statement, place: tuple[int, int], tags: tuple[str, ...]
    ) -> Candidate:
        category, key, value = told.value
        less = (0 if self._by_user else _LESS_SURE_OF_ASSISTANT, _LESS_SURE_OF_FACT * (told.kind == "fact"))
        words = " ".join(word.word for word in sentence.words[told.first : told.end])
        candidate = Candidate(
            kind=told.kind,
            category=category,
            key=key,
            value=value,
            tags=tags,
            quote="",
            start=0,
            end=0,
            confidence=round(told.sure - sum(less), 2),
            why=f"{told.kind}: {words}",
        )
        return self._quoting(candidate, *place)

    def _quoting(self, candidate: Candidate, start: int, end: int) -> Candidate:
        """A candidate that quotes what stands between two places of the part."""
        begin = start + self._offset
        quote = self._text[begin : end + self._offset].rstrip(_AROUND)
        value = candidate.value if candidate.key else clipped(in_line(quote), _LONGEST_VALUE)
        return replace(candidate, quote=quote, start=begin, end=begin + len(quote), value=value)


_TURNED = frozenset({"fix", "decision", "problem", "fact"})  # by a negation before it
_NOT_ALONE = frozenset({"constraint", "preference"})  # does a word at the beginning of a clause tell it
_NEAR, _BESIDE = 3, 2  # words: of a negation, and of what rejects a value


class _Teller:
    """Finds what the phrases of a clause tell."""

    def __init__(
        self, sentence: SpokenSentence, clause: SpokenClause, lexicon: Lexicon, *, by_user: bool
    ) -> None:
        self._sentence = sentence
        self._clause = clause
        self._lexicon = lexicon
        self._by_user = by_user
        self._turns = sorted(mark.end for mark in clause.of("negations"))
        self._either = [mark.first for mark in clause.of("alternatives")]
        self._others = min((mark.first for mark in clause.of("others")), default=clause.end)

    def told(self) -> Iterator[_Statement]:
        """All that they tell."""
        for mark in self._clause.marks:
            if mark.part in PARTS and self._counts(mark) and self._may(mark.name, mark.first, mark.end):
                yield _Statement(_RANKS[mark.name], mark.name, mark.first, mark.end, _SURE[mark.part])
        yield from self._pairs()
        if self._by_user:
            yield from self._lasting()
            yield from self._lengths()
            yield from self._values()

    def _counts(self, mark: Cue) -> bool:
        """Whether a phrase counts from this speaker, and at this place."""
        if not self._by_user and mark.part not in BY_ANYONE:
            return False
        if mark.part not in AT_HEAD:
            return True
        if mark.name == "constraint" and self._is_joined():
            return False
        is_alone = mark.name in _NOT_ALONE and mark.end == self._clause.end  # "No."
        return mark.first in self._clause.heads and not is_alone

    def _is_joined(self) -> bool:
        """Whether "and" joins the clause to what is no order: "they help and always smile"."""
        start = self._clause.start
        begins = any(mark.first == 0 for mark in self._sentence.classes["subjects"])
        return start > 0 and start not in self._sentence.breaks and begins

    def _may(self, kind: str, first: int, end: int) -> bool:
        """Whether words may tell a kind."""
        allowed = self._sentence.allowed
        if kind not in allowed[first] or kind not in allowed[end - 1]:
            return False
        if kind == "preference" and (self._others < first or end in self._sentence.hollow):
            return False  # "she likes …", "I like it"
        return kind not in _TURNED or not self._is_turned(first - _NEAR, first)

    def _is_turned(self, start: int, end: int) -> bool:
        """Whether a negation ends between two words."""
        return bisect_left(self._turns, start) < bisect_right(self._turns, end)

    def _pairs(self) -> Iterator[_Statement]:
        firsts: dict[str, Cue] = {}
        for mark in self._clause.marks:  # in order of their first words
            if mark.part == "first":
                firsts[mark.name] = mark
            first = firsts.get(mark.name) if mark.part == "then" else None
            if first is None:
                continue
            pair = self._lexicon.pairs[mark.name]
            if not first.end <= mark.first < first.end + pair.reach or not (self._by_user or pair.anyone):
                continue
            if pair.kind == "preference" and mark.end == self._clause.end and not self._goes_on(mark.end):
                continue  # "what I love"
            is_turned = pair.kind in _TURNED and self._is_turned(first.end + 1, mark.first)
            if not is_turned and self._may(pair.kind, first.first, mark.end):
                yield _Statement(_RANKS[pair.kind], pair.kind, first.first, mark.end, _SURE["pair"])

    def _goes_on(self, end: int) -> bool:
        """Whether no punctuation stands behind a word."""
        return end < len(self._sentence.words) and end not in self._sentence.breaks

    def _lasting(self) -> Iterator[_Statement]:
        """A rule: what would be an order for this moment, were it not for every time."""
        orders = [*self._clause.of("errands"), *self._clause.of("tasks")]
        if any(order.first in self._clause.heads for order in orders):
            for mark in self._clause.of("lasting"):
                if self._may("constraint", mark.first, mark.end):
                    rank = _RANKS["constraint"]
                    yield _Statement(rank, "constraint", mark.first, mark.end, _SURE["pair"])

    def _lengths(self) -> Iterator[_Statement]:
        """How long a text is to be: a number of a unit, where something in the sentence bounds it."""
        if not self._sentence.classes["bounds"]:
            return
        numbered = {mark.end for mark in self._clause.of("numbers")}
        for mark in self._clause.of("units"):
            before = self._sentence.words[mark.first - 1].word if mark.first else ""
            is_number = before[:1].isdigit() or mark.first in numbered
            if is_number and self._may("length", mark.first - 1, mark.end):
                yield _Statement(_RANKS["length"], "length", mark.first - 1, mark.end, _SURE["pair"])

    def _values(self) -> Iterator[_Statement]:
        """Preferences with a key: the first value that is wished and not rejected."""
        values = _outermost(mark for mark in self._clause.marks if mark.part == "value")
        rejecting = sorted(mark.end for mark in self._clause.of("rejections"))
        done: set[str] = set()
        for number, mark in enumerate(values):
            category, key, value = self._lexicon.values[mark.name]
            name = f"{category}/{key}"
            if name in done or not self._is_wished(name) or not self._may("preference", mark.first, mark.end):
                continue
            before = values[number - 1].end if number else self._clause.start
            if self._is_one_of_two(name, values, number):
                done.add(name)
                continue
            at = bisect_right(rejecting, mark.first) - 1
            if at >= 0 and rejecting[at] >= max(before, mark.first - _BESIDE):
                continue
            done.add(name)
            told = _Statement(_RANK_OF_KEYED, "preference", mark.first, mark.end, _SURE["value"])
            yield told._replace(value=(category, key, value))

    def _is_wished(self, name: str) -> bool:
        """Whether something in the sentence makes a value of a key a wish."""
        if name in self._lexicon.beside:
            return name in self._sentence.beside
        return self._sentence.has_wish

    def _is_one_of_two(self, name: str, values: Sequence[Cue], number: int) -> bool:
        """Whether "or" stands between a value and the next one of its key."""
        following = values[number + 1] if number + 1 < len(values) else None
        if following is None or not following.name.startswith(f"{name}="):
            return False
        at = bisect_left(self._either, values[number].end)
        return at < len(self._either) and self._either[at] < following.first


def _outermost(marks: Iterable[Cue]) -> list[Cue]:
    """Phrases in order, without those inside of others."""
    found: list[Cue] = []
    for mark in sorted(marks, key=lambda each: (each.first, -each.end)):
        if not found or mark.first >= found[-1].end:
            found.append(mark)
    return found


# -- what of it counts ------------------------------------------------------------------------------------


def _unsolved(found: list[Candidate]) -> list[Candidate]:
    """Candidates without the problems that a later one of the same text has fixed."""
    fixed = max((each.start for each in found if each.kind == "fix"), default=-1)
    return [each for each in found if each.kind != "problem" or each.start > fixed]


def _last_of_each(found: list[Candidate]) -> list[Candidate]:
    """Candidates without the wishes for a key that a later one takes back."""
    last = {(each.category, each.key): each for each in found if each.key}
    return [each for each in found if not each.key or last[each.category, each.key] is each]


# -- what programs and models say --------------------------------------------------------------------------

_OF_EVENTS = {
    "task_completed": ("fact", ("title", "task")),
    "feature_implemented": ("fact", ("title", "feature")),
    "decision_made": ("decision", ("title", "decision")),
    "milestone_reached": ("fact", ("title", "milestone")),
    "preference_expressed": ("preference", ("title", "preference", "value")),
    "error_resolved": ("fix", ("title", "error", "solution")),
}
EVENTS = tuple(_OF_EVENTS)
"""What a program can report."""


def from_event(kind: str, data: Mapping[str, Any]) -> list[Candidate]:
    """What an event says that a program reports: one candidate, or none where its data are blank.

    Its quote is the text that the data make, from the first character on.

    Args:
        kind: one of `EVENTS`.
        data: text under `title` or the name of what it is about (`task`, `feature`, `decision`, `milestone`,
            `preference`, `error`), further text under `description` or `solution`; of a preference also
            `category`, `key` and `value`. Nothing else in it is looked at.

    Raises:
        Usage: no such event, or data that are no text.
    """
    if kind not in _OF_EVENTS:
        raise Usage(problem=f"an event is {', '.join(EVENTS)}, not {clipped(in_line(str(kind)), 60)!r}")
    if not isinstance(data, Mapping):
        raise Usage(problem=f"the data of an event are a mapping, not {type(data).__name__}")
    of, names = _OF_EVENTS[kind]
    further = ("solution", "description", "category", "key", "value")
    given = {name: _line_of(data, name) for name in (*names, *further)}
    said = [next((given[name] for name in names if given[name]), "")]
    said += [given[name] for name in ("solution", "description") if given[name] not in said]
    text = ": ".join(filter(None, said))
    is_keyed = of == "preference" and bool(given["key"] and given["value"])
    if not text:
        return []
    return [
        Candidate(
            kind=of,
            category=(given["category"] or "general") if is_keyed else "",
            key=given["key"] if is_keyed else "",
            value=given["value"] if is_keyed else clipped(text, _LONGEST_VALUE),
            quote=text,
            start=0,
            end=len(text),
            confidence=1.0,
            why=f"event: {kind}",
        )
    ]


def _line_of(data: Mapping[str, Any], name: str) -> str:
    """What stands in data under a name, in one line."""
    value = data.get(name)
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if not isinstance(value, str):
        raise Usage(problem=f"{name} is text, not {type(value).__name__}")
    if len(value) > MOST_READ:
        raise Usage(problem=f"{name} has {len(value):,} characters, not at most {MOST_READ:,}")
    return clipped(in_line(value), _LONGEST_VALUE)


def is_user(speaker: str) -> bool:
    """Whether a role is that of the user, whose words alone a model is asked about."""
    return _SPEAKERS.get(speaker.casefold()) == _USER


class Additions(NamedTuple):
    """Candidates of each text with those that a model named: its name, and why it named none."""

    candidates: list[list[Candidate]]
    by: str
    problem: str = ""


def in_batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """The numbers of texts about which a model is asked at once, since together they are not too long."""
    batch: list[int] = []
    left = _MOST_ASKED
    for number, text in enumerate(texts):
        left -= estimate(text)
        if batch and left < 0:
            yield batch
            batch, left = [], _MOST_ASKED - estimate(text)
        batch.append(number)
    if batch:
        yield batch


def added_by(generator: Generator, texts: Sequence[str], known: Sequence[Sequence[Candidate]]) -> Additions:
    """Candidates with those that a model names besides, in the order of their places.

    A model may only add: what it quotes has to stand literally in the text, beside what is known already.
    Without a sound answer there are the known ones.

    Args:
        generator: asks the model, once.
        texts: what was said; of a very long one the model reads the beginning and the end.
        known: what `extract` found in each.
    """
    said = "\n".join(
        fenced(abridged(text, _MOST_ASKED), f"message {number}") for number, text in enumerate(texts, 1)
    )
    asked = f"{prompt('capture').replace('{target}', str(_MOST_ANSWERED), 1)}\n{said}\n"
    answer = structured(generator, asked, _MOST_ANSWERED, _SCHEMA)
    found = [[*each] for each in known]
    for entry in () if answer.problem else answer.value["candidates"]:
        number, quote = entry["message"] - 1, entry["quote"].strip()
        start = texts[number].find(quote) if number < len(texts) else -1
        end = start + len(quote)
        if start < 0 or any(each.start < end and start < each.end for each in found[number]):
            continue
        candidate = Candidate(
            kind=entry["kind"],
            value=clipped(in_line(quote), _LONGEST_VALUE),
            quote=quote,
            start=start,
            end=end,
            confidence=_SURE_OF_MODEL,
            why="model",
        )
        found[number].append(candidate)
    return Additions([sorted(each, key=lambda c: c.start) for each in found], answer.by, answer.problem)
