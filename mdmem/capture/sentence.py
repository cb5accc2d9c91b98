"""A sentence as a lexicon reads it: its words, the phrases in it, its clauses, and what each word may tell.

A word tells nothing where it is asked, supposed, reported, doubted, only offered, or said to be no matter.
Each of these begins with a phrase and reaches to the end of its clause, of a condition that follows at once,
or of the sentence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from mdmem.capture.lexicon import KINDS, PARTS, Lexicon, tokens
from mdmem.diagnostic import Span
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ANY = frozenset(KINDS)
"""What a word may tell that nothing limits."""
OF_TEXTS = frozenset({"style", "audience", "length", "format"})
"""How a text is to be written."""
_DEPENDING = frozenset({"constraint", "problem", "fix", "fact", "decision"})  # "never …, unless I say so"
_PROBLEM = frozenset({"problem"})
_NOTHING = frozenset[str]()

# A comma inside of a number, or a colon inside of an address, parts nothing.
_BREAK = regex("[,;:](?=[\\s\u3400-\u9fff]|\\Z)|[\uff0c\uff1b\uff1a\uff08\uff09\u2014\u2013()|]|\\s-+\\s|\\n")
_QUESTION = regex("[?\uff1f][\"')\\]\u2019\u201d\u300d\u300f\uff09!\uff01*_\\s]*\\Z")
_HAN_FROM = "\u3400"
_TAIL = 20  # characters in which a question mark stands
_TAG = 3  # words of "isn't it" and the like

_TELLING = frozenset({*PARTS, "first", "value"})
# These say nothing where a longer phrase that tells something begins with the same word, as "make sure" does.
_YIELDING = frozenset({"hedges", "asking", "errands", "tasks", "lifted", "fillers", "negations"})
_BEGINNING = ("joins", "conditions", "times")


class Cue(NamedTuple):
    """A phrase that was found: what it tells, and of which words."""

    part: str
    name: str
    first: int
    end: int


class SpokenClause(NamedTuple):
    """A clause: which words it has, the phrases that begin in it, and the words at which it may begin.

    The latter are its first one, and each one behind what may stand before an order.
    """

    start: int
    end: int
    marks: Sequence[Cue]
    heads: frozenset[int]

    def of(self, name: str) -> list[Cue]:
        """The phrases of a class of words."""
        return [mark for mark in self.marks if mark.part == "word" and mark.name == name]


class SpokenSentence:
    """A sentence of a text.

    Args:
        text: in which it stands.
        span: where.
        lexicon: the words that are known.
        language: of which phrases count; None for all.
    """

    def __init__(self, text: str, span: Span, lexicon: Lexicon, language: str | None) -> None:
        self.span = span
        self.words = tokens(text, *span)
        self.breaks = {
            number
            for number, (one, other) in enumerate(pairwise(self.words), 1)
            if other.start > one.end and _BREAK.search(text, one.end, other.start + 1)
        }
        tail = text[max(span.start, span.end - _TAIL) : span.end]
        self.is_question = _QUESTION.search(tail) is not None
        self.marks = _spoken(list(self._found(lexicon, language)))

    def _found(self, lexicon: Lexicon, language: str | None) -> Iterator[Cue]:
        for first in range(len(self.words)):
            node, at = lexicon.root, first
            while at < len(self.words) and (at == first or at not in self.breaks):
                following = node.then.get(self.words[at].word)
                if following is None:
                    break
                node, at = following, at + 1
                for phrase in node.tells:
                    if language is None or phrase.language in {"", language}:
                        yield Cue(phrase.part, phrase.name, first, at)

    @cached_property
    def classes(self) -> dict[str, list[Cue]]:
        """The phrases of each class of words, in order."""
        found: dict[str, list[Cue]] = defaultdict(list)
        for mark in self.marks:
            if mark.part == "word":
                found[mark.name].append(mark)
        return found

    @cached_property
    def hollow(self) -> frozenset[int]:
        """The words before which "I like" says nothing to others: "it", unless "when" follows."""
        times = {mark.first for mark in self.classes["times"]}
        return frozenset(mark.first for mark in self.classes["hollow"] if mark.end not in times)

    @cached_property
    def beside(self) -> frozenset[str]:
        """The keys whose values may count, by what stands beside them."""
        return frozenset(mark.name for mark in self.marks if mark.part == "beside")

    @cached_property
    def has_wish(self) -> bool:
        """Whether something in it is wished."""
        return any("preference" in self.allowed[mark.first] for mark in self.classes["wishes"])

    @cached_property
    def clauses(self) -> list[SpokenClause]:
        """Its clauses: punctuation parts them, and words that begin one."""
        telling = {at for mark in self.marks if mark.part in _TELLING for at in range(mark.first, mark.end)}
        starts = {0, *self.breaks}
        for name in _BEGINNING:
            starts |= {mark.first for mark in self.classes[name] if mark.first not in telling}
        # What ends a condition in Chinese begins no clause.
        starts -= {mark.first for mark in self.classes["conditions"] if self._closes(mark)}
        fillers: dict[int, int] = {}
        for mark in self.classes["fillers"]:
            fillers[mark.first] = max(mark.end, fillers.get(mark.first, 0))
        firsts = [mark.first for mark in self.marks]
        clauses = []
        for start, end in pairwise([*sorted(starts), len(self.words)]):
            heads = [start]
            while fillers.get(heads[-1], end) < end:
                heads.append(fillers[heads[-1]])
            marks = self.marks[bisect_left(firsts, start) : bisect_left(firsts, end)]
            clauses.append(SpokenClause(start, end, marks, frozenset(heads)))
        return clauses

    def _closes(self, mark: Cue) -> bool:
        """Whether a phrase stands at the end of a clause, and not at its beginning as well."""
        is_last = mark.end == len(self.words) or mark.end in self.breaks
        return is_last and mark.first > 0 and mark.first not in self.breaks

    @cached_property
    def allowed(self) -> list[frozenset[str]]:
        """Of each word, which kinds it may tell."""
        limits = [*self._of_questions(), *self._of_clauses()]
        allowed = [ANY] * len(self.words)
        for kinds in {kinds for *_, kinds in limits}:
            depths = [0] * (len(self.words) + 1)
            for start, end, of in limits:
                if of == kinds and start < end:
                    depths[start] += 1
                    depths[end] -= 1
            for at, depth in enumerate(accumulate(depths[:-1])):
                if depth:
                    allowed[at] &= kinds
        return allowed

    def _of_questions(self) -> Iterator[tuple[int, int, frozenset[str]]]:
        """What is asked: from the first clause that begins a question on, or one such clause alone."""
        reaches = self._reaches
        asked = [
            number
            for number, clause in enumerate(self.clauses)
            if any(mark.first in clause.heads or self._is_han(mark.first) for mark in clause.of("asking"))
        ]
        if not self.is_question:
            for number in asked:
                start = self.clauses[number].start
                if number == 0 or self._is_han(start):
                    yield start, reaches[number], _NOTHING
            return
        first = asked[0] if asked else 0
        clause = self.clauses[first] if self.clauses else None
        if clause:
            is_tag = clause.end == len(self.words) and clause.end - clause.start <= _TAG
            yield 0 if is_tag else clause.start, len(self.words), _NOTHING

    def _is_han(self, at: int) -> bool:
        return self.words[at].word >= _HAN_FROM

    @cached_property
    def _reaches(self) -> list[int]:
        """Where what begins in each clause ends: with it, or with a condition or time right behind it."""
        depending = {mark.first for name in ("conditions", "times") for mark in self.classes[name]}
        ends: list[int] = []
        end = len(self.words)
        for clause in reversed(self.clauses):
            if clause.end in self.breaks or clause.end not in depending:
                end = clause.end
            ends.append(end)
        return ends[::-1]

    def _of_clauses(self) -> Iterator[tuple[int, int, frozenset[str]]]:
        """What is supposed, reported, doubted, offered, only asked for now, or no matter."""
        whole = len(self.words)
        own = {mark.end for mark in self.classes["own"]}
        has_main = False
        for clause, reach in zip(self.clauses, self._reaches, strict=True):
            is_condition, is_lasting = False, bool(clause.of("lasting"))
            for mark in clause.marks:
                name, is_head = (mark.name if mark.part == "word" else ""), mark.first in clause.heads
                if name in {"conditions", "times"} and (is_head or self._closes(mark)):
                    yield clause.start, clause.end, _NOTHING
                    is_condition |= name == "conditions"
                elif name == "lifted":
                    yield clause.start, reach, _NOTHING
                elif name == "hedges" or (name == "errands" and is_head and not is_lasting):
                    yield mark.first, reach, _NOTHING
                elif name == "tasks" and is_head and not is_lasting:
                    yield mark.first, reach, OF_TEXTS
                elif name == "reported" and mark.first not in own:
                    yield mark.first, whole, _NOTHING
            if is_condition and not has_main:
                yield clause.end, whole, _PROBLEM
            elif is_condition and clause.start not in self.breaks:
                yield 0, clause.start, _DEPENDING
            has_main |= clause.end - clause.start > 1


def _spoken(marks: list[Cue]) -> list[Cue]:
    """The phrases without those inside of others that say nothing, or that tell more."""
    idle: dict[int, Cue] = {}
    longest: dict[int, int] = {}
    for mark in marks:
        if mark.part == "word" and mark.name == "idle":
            for at in range(mark.first, mark.end):
                if at not in idle or idle[at].end < mark.end:
                    idle[at] = mark
        elif mark.part in _TELLING:
            longest[mark.first] = max(mark.end, longest.get(mark.first, 0))

    def is_spoken(mark: Cue) -> bool:
        over = idle.get(mark.first)
        if over is not None and (over.first, over.end) != (mark.first, mark.end):
            return over.first == mark.first and mark.end > over.end
        return mark.name not in _YIELDING or mark.end >= longest.get(mark.first, 0)

    return [mark for mark in marks if is_spoken(mark)]
