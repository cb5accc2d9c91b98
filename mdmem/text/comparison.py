"""What became of the facts and fields of a memory, from one version to the next.

Facts are paired by identity, surest first: the same block id, the same words in the same place, the same
words elsewhere, the same words but for where a link leads, and last similar words, which is a guess.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from mdmem.diagnostic import Span
from mdmem.errors import DocumentRefused
from mdmem.text.facts import Fact, facts, normal, without
from mdmem.text.regex import regex
from mdmem.text.tree import KeyPath, same

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from mdmem.text.document import Document

FactChangeKind = Literal["added", "removed", "moved", "reworded", "repointed"]
FieldChangeKind = Literal["added", "removed", "changed"]
Word = str | tuple[str, int]
T = TypeVar("T")
# Scripts without blanks between words: each character counts as one.
_WORD = regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_MASK = "\0"  # stands in no memory
_NOTHING = object()
_TELLING = 4  # words of a fact from which on it is known again in another memory, or in a longer one
_SIMILAR = 0.5  # share of equal words from which on two facts may be one
_NEARLY_ALL = 0.9
_NEARNESS = 0.1
_RARE = 64  # facts that have a word, at most, for it to be looked at first
_MOST_READ = 10_000  # characters of a fact whose words tell whether it is like another
_MOST_STEPS = 4_000_000  # looks at a fact for a word that it shares
_MOST_COMPARED = 16  # facts that one is compared with, those that share most words


class FactChange(NamedTuple):
    """What became of one fact.

    Attributes:
        kind: a fact is "moved" when it stands under another heading or item, or in another memory;
            "repointed" when nothing but the target of links in it differs, and "reworded" when its words or
            its id do.
        before, after: the fact in each version; None in the one that does not have it.
        sure: whether it is certain that both are one fact: they have one id, or words that no other has.
        moved: whether it moved, whatever else became of it.
        source: the memory that it was in before, when that is another one.
    """

    kind: FactChangeKind
    before: Fact | None
    after: Fact | None
    sure: bool = True
    moved: bool = False
    source: str = ""

    @property
    def fact(self) -> Fact:
        """The fact as it is, or as it was last."""
        fact = self.after or self.before
        if fact is None:
            raise AssertionError("a change is about a fact")
        return fact


class FieldChange(NamedTuple):
    """What became of a field of the frontmatter, or of a JSON memory.

    Attributes:
        kind: what became of it.
        key: its keys from the root on; none for a JSON value that is not an object.
        before, after: its value; None also where it is not there.
    """

    kind: FieldChangeKind
    key: KeyPath
    before: Any
    after: Any


class Comparison(NamedTuple):
    """What differs between two versions of a memory.

    Attributes:
        fields: the fields that differ, in the order of the later version; removed ones first.
        facts: the facts that differ, in the order of the later version; a removed one stands where it stood.
        unmatched: how many removed facts were not compared with all added ones, since there were too many.
        layout: whether the texts differ and neither fields nor facts do: in order, blanks or marks.
    """

    fields: tuple[FieldChange, ...] = ()
    facts: tuple[FactChange, ...] = ()
    unmatched: int = 0
    layout: bool = False


def compare(before: Document | None, after: Document | None) -> Comparison:
    """What differs between two versions of a memory; None is a version in which it is not there.

    Raises:
        TooManyParts: one of them has more parts than its limit.
    """
    if before and after and before.text == after.text:
        return Comparison()
    versions = [document for document in (before, after) if document]
    if any(map(_is_unread, versions)):
        # Fields that cannot be read in one version are compared as they stand in both.
        fields: tuple[FieldChange, ...] = ()
        old, new = (_Version(document, with_source=True) for document in (before, after))
    else:
        values = (
            document.tree.value if document and document.tree else _NOTHING for document in (before, after)
        )
        fields = tuple(_field_changes((), *values))
        old, new = _Version(before), _Version(after)
    pairing = _Pairing(old, new)
    changes = tuple(pairing.changes())
    is_layout = len(versions) > 1 and not fields and not changes
    return Comparison(fields, changes, pairing.unmatched, is_layout)


class Paired(NamedTuple):
    """The facts of two versions, and which of them are the same.

    Attributes:
        before, after: the facts of each.
        later: for each of the earlier ones, the index of the same one in the later version; None for none.
        guesses: the indexes of the earlier ones of which that is a guess.
    """

    before: tuple[Fact, ...]
    after: tuple[Fact, ...]
    later: tuple[int | None, ...]
    guesses: frozenset[int]

    def then(self, following: Paired) -> Paired:
        """The facts of the first of three versions in the last one, by way of the one between."""
        pairs = [*enumerate(self.later)]
        later = [None if between is None else following.later[between] for _, between in pairs]
        guesses = {number for number, between in pairs if between in following.guesses}
        return Paired(self.before, following.after, tuple(later), self.guesses | guesses)


def paired(before: Document, after: Document) -> Paired:
    """Which facts of two versions of a memory are the same.

    Raises:
        TooManyParts: as `compare`.
    """
    old, new = _Version(before), _Version(after)
    guesses = _Pairing(old, new).guesses
    return Paired(old.facts, new.facts, tuple(old.other), guesses)


def partners(before: Document, after: Document) -> list[tuple[Fact, Fact | None]]:
    """Each fact of a version with the same fact in the one before; None where that does not have it.

    Raises:
        TooManyParts: as `compare`.
    """
    found = paired(before, after)
    earlier = {later: fact for fact, later in zip(found.before, found.later, strict=True)}
    return [(fact, earlier.get(number)) for number, fact in enumerate(found.after)]


def moved_across(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """The comparisons of several memories, by path, in which a fact that left one for another is moved.

    It is told where it is now. Only words that were removed once and added once, or a block id, tell that.
    """
    gone, come = (
        _once(
            (_identity(change.fact), (path, number))
            for path, found in comparisons.items()
            for number, change in enumerate(found.facts)
            if change.kind == kind
        )
        for kind in ("removed", "added")
    )
    changes: dict[str, list[FactChange | None]] = {
        path: list(each.facts) for path, each in comparisons.items()
    }
    for identity in gone.keys() & come.keys():
        (source, old), (path, new) = gone[identity], come[identity]
        if source != path:
            before, after = comparisons[source].facts[old].before, comparisons[path].facts[new].after
            changes[source][old] = None
            changes[path][new] = FactChange("moved", before, after, moved=True, source=source)
    return {
        path: each._replace(facts=tuple(filter(None, changes[path]))) for path, each in comparisons.items()
    }


def _identity(fact: Fact) -> Hashable:
    """What tells a fact from those of other memories; None when it says too little."""
    is_telling = fact.id or (fact.kind != "heading" and len(_words(fact.text[:_MOST_READ])) >= _TELLING)
    return (fact.id, fact.text) if is_telling else None


def _once(pairs: Iterable[tuple[Hashable, T]]) -> dict[Hashable, T]:
    """The values whose key is not None and stands once."""
    found: dict[Hashable, list[T]] = defaultdict(list)
    for key, value in pairs:
        if key is not None:
            found[key].append(value)
    return {key: values[0] for key, values in found.items() if len(values) == 1}


def _is_unread(document: Document) -> bool:
    """Whether it has fields and they cannot be read."""
    try:
        if document.tree:
            return False
        return bool(document.text.strip()) if document.is_json else bool(document.frontmatter.flaws)
    except DocumentRefused:
        return True


def _field_changes(path: KeyPath, before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield FieldChange("removed", (*path, key), before[key], None)
        for key in after:
            yield from _field_changes((*path, key), before.get(key, _NOTHING), after[key])
    elif before is _NOTHING and not path:
        yield from _field_changes(path, {}, after) if isinstance(after, dict) else _root("added", None, after)
    elif after is _NOTHING:
        yield from (
            _field_changes(path, before, {}) if isinstance(before, dict) else _root("removed", before, None)
        )
    elif before is _NOTHING:
        yield FieldChange("added", path, None, after)
    elif not same(before, after):
        yield FieldChange("changed", path, before, after)


def _root(kind: FieldChangeKind, before: Any, after: Any) -> Iterator[FieldChange]:
    if not (before is _NOTHING or after is _NOTHING):
        yield FieldChange(kind, (), before, after)


class _Version:
    """A version of a memory while it is compared.

    Attributes:
        facts: its facts; with `with_source`, its frontmatter, or the whole JSON, is the last one.
        other: for each fact, the index of its partner in the other version.
    """

    def __init__(self, document: Document | None, *, with_source: bool = False) -> None:
        self._document = document
        self.facts: tuple[Fact, ...] = facts(document) if document else ()
        if document and with_source:
            end = document.body_span.start if not document.is_json else len(document.text)
            text = document.text[:end].strip(" \t\r\n")
            if text:
                span = Span(0, end)
                last = document.lines.number(end)
                self.facts += (Fact("source", "", (), text, span, span, 1, last, None),)
        self.other: list[int | None] = [None] * len(self.facts)

    def free(self) -> list[int]:
        """The facts that have no partner yet."""
        return [number for number, partner in enumerate(self.other) if partner is None]

    def place(self, number: int) -> Hashable:
        """Where a fact stands: the titles above it, and the words of the item that it is in."""
        fact = self.facts[number]
        above = self.facts[fact.parent] if fact.parent is not None else None
        return (fact.path, above.text if above and above.kind == "item" else "")

    @cached_property
    def _targets(self) -> list[Span]:
        """Where links, citations and URLs of the body lead, as written, in order and apart."""
        document = self._document
        if not document:
            return []
        spans = [Span(link.target_span.start, link.anchor_span.end) for link in document.links]
        spans += [cited.span for cited in document.citations]
        spans += [url.span for url in document.urls]
        found: list[Span] = []
        for span in sorted(span for span in spans if span.start >= document.body_span.start):
            if span.start < span.end and (not found or found[-1].end <= span.start):
                found.append(span)
        return found

    def targets(self, fact: Fact) -> list[Span]:
        """Those in a fact."""
        first = bisect_left(self._targets, fact.span)
        return self._targets[first : bisect_left(self._targets, (fact.span.end,))]

    def written(self, fact: Fact) -> list[str]:
        """The same as they are written."""
        return [self._document.text[slice(*span)] for span in self.targets(fact)] if self._document else []

    def masked(self, number: int) -> str | None:
        """The words of a fact without where its links lead; None when it has none."""
        fact = self.facts[number]
        targets = self.targets(fact) if fact.kind != "source" else []
        if not targets or not self._document:
            return None
        text = without(self._document.text, fact.span, targets, _MASK)
        return normal("item", text)


class _Pairing:
    """Pairs the facts of two versions.

    `unmatched` is how many facts without partner were not compared with all others.
    """

    def __init__(self, old: _Version, new: _Version) -> None:
        self._old, self._new = old, new
        self._guessed: set[int] = set()
        self.unmatched = 0
        ids = [Counter(fact.id for fact in version.facts) for version in (old, new)]
        self._pair(lambda version, n: version.facts[n].kind == "source" or None)
        self._pair(lambda version, n: _only_once(version.facts[n].id, ids))
        self._pair(lambda version, n: (version.place(n), *_said(version.facts[n])))
        self._pair(lambda version, n: _said(version.facts[n]), elsewhere=True)
        if old.free() and new.free():
            self._pair(
                lambda version, n: (version.masked(n), version.place(n)) if version.masked(n) else None
            )
            self._pair(_Version.masked, elsewhere=True)
            self._pair_headings()
            for is_heading in (True, False):
                self._pair_similar(is_heading=is_heading)

    @property
    def guesses(self) -> frozenset[int]:
        """The earlier facts whose partner is a guess."""
        return frozenset(self._guessed)

    def changes(self) -> Iterator[FactChange]:
        """What differs, in the order of the new version."""
        gone: dict[int, list[FactChange]] = defaultdict(list)
        changed: dict[int, FactChange] = {}
        at = -1
        for number, partner in enumerate(self._old.other):
            before = self._old.facts[number]
            if partner is None:
                gone[at].append(FactChange("removed", before, None))
                continue
            change = self._change(number, partner)
            if change:
                changed[partner] = change
            if not (change and change.moved):
                at = partner
        yield from gone[-1]
        for number, fact in enumerate(self._new.facts):
            if self._new.other[number] is None:
                yield FactChange("added", None, fact)
            elif number in changed:
                yield changed[number]
            yield from gone[number]

    def _change(self, old: int, new: int) -> FactChange | None:
        before, after = self._old.facts[old], self._new.facts[new]
        moved = not self._same_parent(before, after)
        kind: FactChangeKind
        if before.text == after.text and before.id == after.id:
            if not moved:
                return None
            kind = "moved"
        elif (
            before.id == after.id
            and self._old.masked(old) not in (None, "")
            and self._old.masked(old) == self._new.masked(new)
        ):
            kind = "repointed"
        else:
            kind = "reworded"
        return FactChange(kind, before, after, sure=old not in self._guessed, moved=moved)

    def _same_parent(self, before: Fact, after: Fact) -> bool:
        if before.parent is None or after.parent is None:
            return before.parent is after.parent
        return self._old.other[before.parent] == after.parent

    def _join(self, old: int, new: int, *, guess: bool) -> None:
        self._old.other[old], self._new.other[new] = new, old
        if guess:
            self._guessed.add(old)

    def _pair(self, key: Callable[[_Version, int], Hashable], *, elsewhere: bool = False) -> None:
        """Pair the facts that have equal keys, in order; with several of them `elsewhere` that is a guess."""
        olds, news = (_grouped(version, key) for version in (self._old, self._new))
        for each, old in olds.items():
            new = news.get(each, [])
            guess = elsewhere and len(old) + len(new) > len(("old", "new"))
            for pair in zip(old, new, strict=False):
                self._join(*pair, guess=guess)

    def _pair_headings(self) -> None:
        """Pair a heading with the one that stands over most of its facts now."""
        votes: dict[int, Counter[int]] = defaultdict(Counter)
        for fact, partner in zip(self._old.facts, self._old.other, strict=True):
            parent = self._new.facts[partner].parent if partner is not None else None
            if fact.parent is None or parent is None:
                continue
            both = self._old.facts[fact.parent], self._new.facts[parent]
            is_free = self._old.other[fact.parent] is None and self._new.other[parent] is None
            if is_free and all(each.kind == "heading" for each in both):
                votes[fact.parent][parent] += 1
        for old, found in votes.items():
            ((new, _),) = found.most_common(1)
            if self._new.other[new] is None:
                self._join(old, new, guess=True)

    def _pair_similar(self, *, is_heading: bool) -> None:
        """Pair facts of similar words, the most similar first."""
        old, new = (
            {
                n: _occurrences(version.facts[n].text)
                for n in version.free()
                if (version.facts[n].kind == "heading") == is_heading
            }
            for version in (self._old, self._new)
        )
        likeness = _Likeness(new)
        for rare in (True, False):
            scored = []
            for number in [number for number in old if self._old.other[number] is None]:
                found = likeness.candidates(number, old[number], self._new.other, rare=rare)
                self.unmatched += found is None
                for other in found or ():
                    share = _likeness(old[number], new[other])
                    if share >= _SIMILAR:
                        is_near = self._same_parent(self._old.facts[number], self._new.facts[other])
                        scored.append((-share - is_near * _NEARNESS, abs(number - other), number, other))
            for *_, number, other in sorted(scored):
                if self._old.other[number] is None and self._new.other[other] is None:
                    self._join(number, other, guess=True)


def _likeness(words: set[Word], others: set[Word]) -> float:
    """The share of equal words; enough of them also where nearly all of the shorter text is in the longer."""
    shared, fewest = len(words & others), min(len(words), len(others))
    is_part = fewest >= _TELLING and shared >= fewest * _NEARLY_ALL
    return max(2 * shared / (len(words) + len(others)), _SIMILAR * is_part)


class _Likeness:
    """Finds facts by the words that they share with another."""

    def __init__(self, words: Mapping[int, set[Word]]) -> None:
        self._left = _MOST_STEPS
        self._with: dict[Word, list[int]] = defaultdict(list)
        for number, each in words.items():
            for word in each:
                self._with[word].append(number)

    def candidates(
        self, near: int, words: set[Word], partners: Sequence[int | None], *, rare: bool
    ) -> list[int] | None:
        """The facts without a partner that share most of some words; None when no steps are left.

        Of equal ones those `near` a place count. With `rare` only words do that few facts have, else only the
        others.
        """
        shared: Counter[int] = Counter()
        for word in words:
            numbers = self._with.get(word, ())
            if (len(numbers) <= _RARE) == rare:
                self._left -= len(numbers)
                if self._left < 0:
                    return None
                shared.update(number for number in numbers if partners[number] is None)
        return nlargest(_MOST_COMPARED, shared, lambda number: (shared[number], -abs(number - near)))


def _grouped(version: _Version, key: Callable[[_Version, int], Hashable]) -> dict[Hashable, list[int]]:
    """The facts that have no partner yet, by key."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number in version.free():
        each = key(version, number)
        if each is not None:
            found[each].append(number)
    return found


def _only_once(id_: str, counts: Sequence[Counter[str]]) -> str | None:
    return id_ if id_ and all(count[id_] == 1 for count in counts) else None


def _said(fact: Fact) -> tuple[bool, str]:
    return fact.kind == "heading", fact.text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _occurrences(text: str) -> set[Word]:
    """The words that a text begins with, each as often as it stands there."""
    counts: Counter[str] = Counter()
    found: set[Word] = set()
    for word in _words(text[:_MOST_READ]):
        found.add((word, counts[word]) if counts[word] else word)
        counts[word] += 1
    return found
