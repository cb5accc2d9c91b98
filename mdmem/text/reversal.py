"""What a change did to the facts of a memory, taken back in the text that has become of it since.

Each fact is found again by its identity, so that the surroundings may have changed. A fact that says
something else by now is left to people. What is put back has the bytes that it had, and stands under its
heading, beside the neighbours that still stand; a heading that is gone comes back with it. The result is read
again: every other fact must be what and where it was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from mdmem.errors import DocumentRefused
from mdmem.text.comparison import Paired, paired
from mdmem.text.document import parse_text
from mdmem.text.edit import TextEdit, splice
from mdmem.text.facts import Fact, facts
from mdmem.text.lines import LINE_END, with_newline
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mdmem.text.comparison import FactChange
    from mdmem.text.document import Document

_LONGEST_QUOTED = 100  # characters of a fact in a message
_MOST_QUOTED = 5
_MOST_READ = 10_000_000  # characters that are read again, for the places where something is put back
_TELLING = 4  # words of a fact from which on it is known again in another place
_NO_TEXT = regex(r"[ \t\r\n]*")
_MARKER = regex(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])[ \t]+")
_JOINED = frozenset(["item", "row"])  # facts that may stand without a blank line between them
_OTHERWISE = "it cannot be reverted by itself: the text around it would be read as something else"


class Reversal(NamedTuple):
    """A text in which a change is taken back.

    Attributes:
        text: the text; as it was, with any `refused`.
        refused: what cannot be taken back, each with its reason.
        skipped: what need not be, since it was taken back already, and headings that others need; in words.
    """

    text: str
    refused: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class Trail(NamedTuple):
    """Where the facts of a version are in a later one, `last`, as the versions between show."""

    facts: Paired
    last: Document


def follow(versions: Iterable[Document]) -> Trail:
    """The trail of the facts of the first of some versions, of which there are two at least.

    Raises:
        TooManyParts: a version has more parts than its limit.
    """
    found: Paired | None = None
    last: Document | None = None
    for version in versions:
        if last:
            step = paired(last, version)
            found = found.then(step) if found else step
        last = version
    if found is None or last is None:
        raise ValueError("a trail has two versions at least")
    return Trail(found, last)


def is_unsure(after: Document, now: Document, changes: Iterable[FactChange]) -> bool:
    """Whether two versions alone leave open what became of some facts of the first.

    Raises:
        TooManyParts: a version has more parts than its limit.
    """
    since = paired(after, now)
    known = {
        fact.span.start
        for number, fact in enumerate(since.before)
        if since.later[number] is not None and number not in since.guesses
    }
    return any(change.after and change.after.span.start not in known for change in changes)


def reverse(
    before: Document,
    after: Document,
    now: Document,
    changes: Iterable[FactChange],
    trail: Trail | None = None,
) -> Reversal:
    """Take back changes of facts that made `after` of `before`, in what that has become since.

    Args:
        before, after: two versions of a memory.
        now: a later version; the text that is returned is of this one.
        changes: some of what `compare(before, after)` found.
        trail: of the facts of `after`, to a version that is `now` or earlier; without it, those that have
            changed much are guessed.

    Raises:
        TooManyParts: a version has more parts than its limit.
    """
    since = trail.facts.then(paired(trail.last, now)) if trail else paired(after, now)
    reversing = _Reversing(before, after, now, since)
    reversing.take([change for change in changes if change.fact.kind != "source"])
    refused, text = reversing.refused, now.text
    if not refused:
        try:
            text = reversing.text()
        except _ReadOtherwise as error:
            refused = [str(error)]
    return Reversal(text, tuple(refused), tuple(reversing.skipped))


class _ReadOtherwise(Exception):
    """A text in which other facts would not be what or where they were; it says so."""


class _Token(NamedTuple):
    """A fact on its way into the result.

    One that stands now, by its number there, one that stood before, or one that is moved in another.
    """

    kind: Literal["now", "was", "moved"]
    number: int


_NOWHERE = _Token("was", -1)


class _PutBack(NamedTuple):
    """Facts to be put back together, and their text; `old` is the number of the first one."""

    old: int
    tokens: list[_Token]
    text: str


class _Reversing:
    """The facts of three versions, and what is to become of them.

    Attributes:
        refused, skipped: as those of `Reversal`.
    """

    def __init__(self, before: Document, after: Document, now: Document, since: Paired) -> None:
        self._before, self._after, self._now = before, after, now
        first = paired(before, after)
        self._old, self._mid, self._cur = first.before, first.after, since.after
        self._later, self._guessed = since.later, since.guesses
        self._old_at = {fact.span.start: number for number, fact in enumerate(self._old)}
        self._mid_at = {fact.span.start: number for number, fact in enumerate(self._mid)}
        # Which of the facts that stand now each of the first version is, and the other way round.
        self._cur_of = [None if mid is None else since.later[mid] for mid in first.later]
        self._old_of = {cur: old for old, cur in enumerate(self._cur_of) if cur is not None}
        self._mid_of = {cur: mid for mid, cur in enumerate(since.later) if cur is not None}
        self._times = Counter(map(_said, self._mid))
        self._standing: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        self._come: dict[str, list[int]] = defaultdict(list)  # since then, by words and by id
        for number, fact in enumerate(self._cur):
            self._standing[_said(fact)].append(number)
            if number not in self._mid_of:
                for key in filter(None, (fact.text, fact.id and f"^{fact.id}")):
                    self._come[key].append(number)
        self._gone: set[int] = set()  # of those that stand now
        self._reworded: dict[int, int] = {}  # those that stand now, and what they were before
        self._back: set[int] = set()  # of the first version
        self._moved: dict[int, int] = {}  # of the first version, and where they stand now
        self._carried: set[int] = set()  # of those that stand now, which move when another goes or comes back
        self.refused: list[str] = []
        self.skipped: list[str] = []

    # -- what becomes of each fact ------------------------------------------------------------------------

    def take(self, changes: Sequence[FactChange]) -> None:
        """Decide what becomes of the facts of some changes."""
        pairs = [
            (
                change,
                self._old_at[change.before.span.start] if change.before else -1,
                self._mid_at[change.after.span.start] if change.after else -1,
            )
            for change in changes
        ]
        moved = []
        for change, old, mid in pairs:
            # What is only guessed to be the same fact, elsewhere or in another form, is rather two.
            are_two = not change.sure and (change.moved or self._old[old].kind != self._mid[mid].kind)
            if change.kind == "added" or are_two:
                self._take_added(mid)
            if change.kind == "removed" or are_two:
                self._take_removed(old)
            if change.kind in {"reworded", "repointed"} and not are_two:
                self._take_reworded(old, mid)
            if change.moved and not are_two:
                moved.append((old, mid))
        for old, mid in moved:
            self._take_moved(old, mid)
        self._bring_headings()
        self._keep_with_others()

    def _refuse(self, fact: Fact, reason: str) -> None:
        self.refused.append(f"{_quoted(fact)}: {reason}")

    def _found(self, mid: int, gone: str = "") -> int | None:
        """Where a fact of the later version stands, with the same words; else it is refused.

        One that is gone is refused where `gone` says why, and else skipped.
        """
        fact, cur = self._mid[mid], self._later[mid]
        twins = self._standing[_said(fact)]
        if cur is None and gone:
            self._refuse(fact, gone)
        elif cur is None:
            self.skipped.append(f"{_quoted(fact)} was removed already")
        elif _said(self._cur[cur]) != _said(fact):
            self._refuse(fact, f"it has changed since, to {_quoted(self._cur[cur])}")
        elif len(twins) > 1 and (mid in self._guessed or len(twins) != self._times[_said(fact)]):
            lines = ", ".join(str(self._cur[twin].line) for twin in twins[:_MOST_QUOTED])
            self._refuse(
                fact, f"it stands {len(twins)} times (lines {lines}), and it is unclear which is meant"
            )
        else:
            return cur
        return None

    def _take_added(self, mid: int) -> None:
        cur = self._found(mid)
        if cur is not None:
            self._gone.add(cur)

    def _take_removed(self, old: int) -> None:
        fact = self._old[old]
        for number in self._come.get(f"^{fact.id}" if fact.id else fact.text, ()):
            each = self._cur[number]
            is_telling = fact.id or each.path == fact.path or len(fact.text.split()) >= _TELLING
            if number in self._gone or not is_telling:
                continue
            if _said(each) == _said(fact):
                self.skipped.append(f"{_quoted(fact)} is there again, in line {each.line}")
                self._come[fact.text].remove(number)
                return
            if fact.id:
                self._refuse(fact, f"^{fact.id} is there again, as {_quoted(each)}")
                return
        self._back.add(old)

    def _take_reworded(self, old: int, mid: int) -> None:
        fact, cur = self._old[old], self._later[mid]
        if cur is not None and _said(self._cur[cur]) == _said(fact):
            self.skipped.append(f"{_quoted(fact)} was reworded back already")
            return
        cur = self._found(mid, f"it took the place of {_quoted(fact)}, and is gone since")
        if cur is not None:
            self._reworded[cur] = old

    def _take_moved(self, old: int, mid: int) -> None:
        """Move a fact back; where only what it stands in came or went, that is enough."""
        fact, over, over_before = self._mid[mid], self._mid[mid].parent, self._old[old].parent
        over_now = self._later[over] if over is not None else None
        cur = self._later[mid]
        if over_now in self._gone or over_before in self._back:
            self._carried.update(() if cur is None else (cur, *_inside(self._cur, cur)))
            return
        if cur not in self._reworded:
            cur = self._found(mid, "it was moved, and is gone since")
        if cur is None:
            return
        if self._cur[cur].parent == (None if over_before is None else self._cur_of[over_before]):
            self.skipped.append(f"{_quoted(fact)} was moved back already")
        elif self._cur[cur].parent != over_now:
            self._refuse(fact, f"it was moved again since, and stands in line {self._cur[cur].line} now")
        elif fact.kind == "heading":
            self._refuse(fact, "the whole section was moved, which is left to you")
        else:
            self._moved[old] = cur
            self._back.add(old)
            self._gone.update((cur, *_inside(self._cur, cur)))

    def _bring_headings(self) -> None:
        """Let headings that are gone come back with what stood under them."""
        for old in sorted(self._back):
            over = self._old[old].parent
            while over is not None and self._cur_of[over] is None and over not in self._back:
                if self._old[over].kind != "heading":
                    self._refuse(self._old[old], f"it stood in {_quoted(self._old[over])}, which is gone")
                    return
                self._back.add(over)
                over = self._old[over].parent

    def _keep_with_others(self) -> None:
        """A heading stays while others stand under it; an item cannot go before what is in it."""
        for cur in sorted(self._gone, reverse=True):
            others = [
                number
                for number in _inside(self._cur, cur)
                if number not in self._gone and number not in self._carried
            ]
            if others and self._cur[cur].kind == "heading":
                self._gone.remove(cur)
                self.skipped.append(f"{_quoted(self._cur[cur])} stays, as other facts are under it now")
            elif others:
                named = ", ".join(_quoted(self._cur[number]) for number in others[:_MOST_QUOTED])
                self._refuse(self._cur[cur], f"others stand in it now: {named}")

    # -- the text -----------------------------------------------------------------------------------------

    def text(self) -> str:
        """The text in which all that was decided is done.

        Raises:
            _ReadOtherwise: other facts would not be what and where they were.
        """
        order = [_Token("now", number) for number in range(len(self._cur))]
        edits = [
            TextEdit(*self._cur[cur].span, self._reword(cur, old)) for cur, old in self._reworded.items()
        ]
        document = self._read(splice(self._now.text, edits), order)
        pieces = list(self._pieces())
        if len(document.text) * len(pieces) > _MOST_READ:
            raise _ReadOtherwise(f"it is too much to be put back in {len(pieces):,} places of a long memory")
        for piece in pieces:
            document = self._with(document, order, piece)
        edits = list(self._deletions(document, order))
        order = [token for token in order if not self._is_gone(token)]
        document = self._read(splice(document.text, edits), order)
        for token, fact in zip(order, facts(document), strict=True):
            over = order[fact.parent] if fact.parent is not None else None
            if not self._may_stand(token, over):
                where = f"under {_quoted(self._fact(over))}" if over else "by itself"
                raise _ReadOtherwise(f"{_quoted(fact)} would come to stand {where}")
        return document.text

    def _read(self, text: str, order: Sequence[_Token]) -> Document:
        """A text as a document, whose facts must be those in `order`."""
        try:
            document = parse_text(self._now.path, text, self._now.limits)
            read = [_said(fact) for fact in facts(document)]
        except DocumentRefused as error:
            raise _ReadOtherwise(error.message) from None
        is_same_top = text.startswith(self._now.text[: self._now.body_span.start])
        if not is_same_top or read != [_said(self._fact(token)) for token in order]:
            raise _ReadOtherwise(_OTHERWISE)
        return document

    def _is_gone(self, token: _Token) -> bool:
        return token.kind == "now" and token.number in self._gone

    def _fact(self, token: _Token) -> Fact:
        if token.kind == "was":
            cur = self._moved.get(token.number)
            return self._old[token.number] if cur is None or cur in self._reworded else self._cur[cur]
        old = self._reworded.get(token.number)
        return self._cur[token.number] if old is None else self._old[old]

    def _may_stand(self, token: _Token, over: _Token | None) -> bool:
        """Whether a fact may stand in, or under, another: it does so now, or did before."""
        if token.kind == "moved":
            parent = self._cur[token.number].parent
            head = self._old_of.get(parent) if parent is not None else None
            return over in {_Token("moved", parent or 0), _Token("was", -1 if head is None else head)}
        if token.kind == "now":
            parent = self._cur[token.number].parent
            if over == (None if parent is None else _Token("now", parent)):
                return True
        old = self._old_of.get(token.number) if token.kind == "now" else token.number
        if token.kind == "was" and self._fact(token).kind == "heading":
            return True  # its level says under which of the others it stands
        return old is not None and over == self._over_before(old)

    def _over_before(self, old: int) -> _Token | None:
        """What a fact of the first version stood in or under, as it is called in the result."""
        over = self._old[old].parent
        if over is None:
            return None
        cur = self._cur_of[over]
        return _Token("was", over) if over in self._back else _NOWHERE if cur is None else _Token("now", cur)

    def _reword(self, cur: int, old: int) -> str:
        """The former words of a fact, as they were written; behind the marker that it has now."""
        was = _written(self._before, self._old[old])
        then = _written(self._after, self._mid[self._mid_of[cur]])
        stands = _written(self._now, self._cur[cur])
        before, after, now = map(_MARKER.match, (was, then, stands))
        if before and after and now and now[0] != after[0] and len(was.splitlines()) == 1:
            was = now[0] + was[before.end() :]
        return with_newline(was, self._now.lines.newline)

    # -- what is put back ---------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[_PutBack]:
        """What is put back, each with what stood in it and is put back as well."""
        inside: dict[int, list[int]] = {}
        for old in sorted(self._back):
            over, run = self._old[old].parent, inside.get(old - 1)
            if over in inside:
                run = inside[over]
            elif run and (run[0] in self._moved or not self._are_beside(run[0], old)):
                run = None
            inside[old] = [] if run is None or old in self._moved or over in self._moved else run
            inside[old].append(old)
        for old, numbers in inside.items():
            if old in self._moved:
                yield self._moved_piece(old)
            elif numbers[0] == old:
                yield _PutBack(old, [_Token("was", number) for number in numbers], self._source(numbers))

    def _are_beside(self, first: int, old: int) -> bool:
        """Whether two facts of the first version, between which all is put back, go to one place."""
        one, other = self._old[first], self._old[old]
        return one.parent == other.parent and "heading" not in {one.kind, other.kind}

    def _moved_piece(self, old: int) -> _PutBack:
        """A fact that is moved back, with all that is in it now."""
        cur = self._moved[old]
        inside = list(_inside(self._cur, cur))
        own = self._reword(cur, old) if cur in self._reworded else _written(self._now, self._cur[cur])
        end = self._cur[inside[-1] if inside else cur].span.end
        below = self._now.text[self._cur[cur].span.end : end]
        return _PutBack(
            old, [_Token("was", old), *(_Token("moved", number) for number in inside)], own + below
        )

    def _source(self, numbers: Sequence[int]) -> str:
        """The text of facts of the first version, one behind the other."""
        parts = [_written(self._before, self._old[numbers[0]])]
        for above, number in pairwise(numbers):
            gap = self._before.text[self._old[above].span.end : self._old[number].span.start]
            if above != number - 1:
                gap = "\n" * self._distance(self._old[above], number)
            parts += [gap, _written(self._before, self._old[number])]
        return with_newline("".join(parts), self._now.lines.newline)

    def _distance(self, above: Fact, old: int) -> int:
        """How many line ends stand between a fact that is put back and what is above it.

        As many as before, if what was above it then is of the same kind.
        """
        fact = self._old[old]
        if old and self._old[old - 1].kind == above.kind:
            between = self._before.text[self._old[old - 1].span.end : fact.span.start]
            if _NO_TEXT.fullmatch(between):
                return max(1, len(LINE_END.findall(between)))
        return _least(above, fact)

    def _with(self, document: Document, order: list[_Token], piece: _PutBack) -> Document:
        """A document with what is put back into it; `order` grows as well."""
        found, text, newline = facts(document), document.text, document.lines.newline
        at, is_behind = self._place(found, order, piece.old)
        first, last = (self._fact(piece.tokens[number]) for number in (0, -1))
        offset = (
            found[at - 1].span.end if is_behind else found[at].span.start if at < len(found) else len(text)
        )
        if at:
            wanted = self._distance(found[at - 1], piece.old) if is_behind else _least(found[at - 1], first)
            lead = wanted - (0 if is_behind else _ends(text[:offset]))
        else:
            lead = int(
                text[document.body_span.start : offset].rstrip("\r\n") != "" and not _ends(text[:offset])
            )
        tail = 0
        if at < len(found):
            below = order[at].number if order[at].kind == "was" else self._old_of.get(order[at].number)
            wanted = _least(last, found[at]) if below is None else self._distance(last, below)
            tail = wanted - _begins(text[offset : found[at].span.start])
        elif not is_behind:
            tail = 1
        put = newline * lead + piece.text + newline * tail
        # Blank lines that stand there already are enough.
        ends = [*LINE_END.finditer(text, offset, found[at].span.start if at < len(found) else len(text))]
        least = _least(last, found[at]) if at < len(found) else 0
        if is_behind and 0 < lead <= len(ends) and len(ends) - lead >= least - 1:
            between = text[offset : ends[lead - 1].end()]
            if _NO_TEXT.fullmatch(between):
                offset, put = ends[lead - 1].end(), piece.text + newline
        order[at:at] = piece.tokens
        return self._read(splice(text, [TextEdit(offset, offset, put)]), order)

    def _place(self, found: Sequence[Fact], order: Sequence[_Token], old: int) -> tuple[int, bool]:
        """Where a fact of the first version belongs: before which fact, and whether right behind the last."""
        at = {token: number for number, token in enumerate(order)}
        fact, over_before = self._old[old], self._over_before(old)
        over = at.get(over_before) if over_before else None
        is_heading = fact.kind == "heading"
        stands: dict[int, int] = {}
        for other in range(len(self._old)):
            cur = self._cur_of[other]
            here = at.get(_Token("was", other), None if cur is None else at.get(_Token("now", cur)))
            if here is not None and other != old:
                stands[other] = here
        if is_heading:
            # What fell to the heading above, or stands under one that goes, comes under this one again.
            below = [here for other, here in stands.items() if self._old[other].parent == old]
            if below:
                return min(below), False
        beside = [
            (abs(other - old), other, here)
            for other, here in stands.items()
            if self._old[other].parent == fact.parent
            and found[here].parent == over
            and (found[here].kind == "heading") == is_heading
        ]
        if beside:
            _, other, here = min(beside)
            return (here, False) if other > old else (here + 1 + len(list(_inside(found, here))), True)
        if over is None:
            return (len(found), bool(found)) if is_heading else (0, False)
        if is_heading:
            return over + 1 + len(list(_inside(found, over))), True
        joins = over + 1 < len(found) and found[over + 1].parent == over and found[over + 1].kind == fact.kind
        return over + 1, not joins

    # -- what goes ----------------------------------------------------------------------------------------

    def _deletions(self, document: Document, order: Sequence[_Token]) -> Iterator[TextEdit]:
        """The edits that delete what goes, and blank lines that would be too many."""
        found, text = facts(document), document.text
        runs: list[list[int]] = []
        for number in (number for number, token in enumerate(order) if self._is_gone(token)):
            last = runs[-1][-1] if runs else -1
            between = text[found[last].span.end : found[number].span.start]
            if runs and last == number - 1 and _NO_TEXT.fullmatch(between):
                runs[-1].append(number)
            else:
                runs.append([number])
        for run in runs:
            yield _deletion(document, found[run[0]].line, found[run[-1]].last)


def _said(fact: Fact) -> tuple[str, str, str]:
    return fact.kind, fact.id, fact.text


def _written(document: Document, fact: Fact) -> str:
    return document.text[slice(*fact.span)]


def _quoted(fact: Fact) -> str:
    text = fact.text + (f" ^{fact.id}" if fact.id else "")
    return repr(text if len(text) <= _LONGEST_QUOTED else text[: _LONGEST_QUOTED - 1] + "…")


def _inside(found: Sequence[Fact], number: int) -> Iterator[int]:
    """What stands in an item, or under a heading, at any depth."""
    inside: set[int | None] = {number}
    for other in range(number + 1, len(found)):
        if found[other].parent not in inside:
            return
        inside.add(other)
        yield other


def _least(above: Fact, below: Fact) -> int:
    """How many line ends stand at least between two facts."""
    return 1 if above.kind == below.kind and above.kind in _JOINED else 2


def _ends(text: str) -> int:
    """How many line ends a text ends with."""
    return len(LINE_END.findall(text, len(text.rstrip(" \t\r\n"))))


def _begins(text: str) -> int:
    """How many line ends a text begins with."""
    return len(LINE_END.findall(text, 0, len(text) - len(text.lstrip(" \t\r\n"))))


def _deletion(document: Document, first: int, last: int) -> TextEdit:
    """The edit that deletes lines, and the blank lines on one side where there are some on both."""
    lines, text, body = document.lines, document.text, document.body_span.start

    def is_blank(number: int) -> bool:
        return not lines.content(number).strip(" \t")

    top = lines.number(body) if body else 1
    above, below = first - 1, last + 1
    while above >= top and is_blank(above):
        above -= 1
    while below <= len(lines) and is_blank(below):
        below += 1
    start, end = lines.span(first).start, lines.span(last).end
    if below > len(lines):
        end = len(text)
        if above >= top:  # what stands above becomes the end, with a line end if there was one
            start = lines.span(above).end
            start -= 0 if text[-1] in "\r\n" else start - lines.span(above).start - len(lines.content(above))
    elif above < first - 1 or above < top:
        end = lines.span(below).start
    return TextEdit(max(start, body), end, "")
