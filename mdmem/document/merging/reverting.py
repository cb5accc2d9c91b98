"""Takes a change of a memory back in the memory as it is now, by a merge.

The base is the version after the change. Ours is the version before; for single facts, it is the version
after with these put back. If that conflicts with what was written since, the text of now is the base of
another merge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from mdmem.document.document import Document
from mdmem.document.edit import spliced
from mdmem.document.field import set_field, unset_field
from mdmem.document.merging.comparison import FactChange, FieldChange, FieldChangeKind, compare, pair_facts
from mdmem.document.merging.facts import Fact, facts
from mdmem.document.merging.matching import TELLING
from mdmem.document.merging.merge import merge
from mdmem.document.text.diff import increasing, placed
from mdmem.document.text.lines import with_newline
from mdmem.document.text.regex import shortened

_OPPOSITE: dict[str, FieldChangeKind] = {"added": "removed", "removed": "added", "changed": "changed"}
_LONGEST_QUOTED = 100  # characters of a fact in a message


class TakenBack(NamedTuple):
    """A text in which a change is taken back.

    Attributes:
        text: as it was, with any `refused`.
        refused: what cannot be taken back, each with its reason.
        skipped: what need not be, since it was taken back already, or others need it; in words.
    """

    text: str
    refused: Sequence[str] = ()
    skipped: Sequence[str] = ()


class _Undo(NamedTuple):
    """A fact before a change, after it, and now; whether the change moved it, and others are in it now."""

    was: Fact | None
    then: Fact | None
    now: Fact | None
    moved: bool
    has_others: bool


class _MisreadError(Exception):
    """The reason why a fact cannot be put back where it was."""


def take_back(
    before: Document,
    after: Document,
    now: Document,
    changes: Sequence[FactChange | FieldChange] | None = None,
) -> TakenBack:
    """Take back the change from `before` to `after` in the memory as it is now.

    Args:
        changes: some of those in `compare(before, after)`; without them, all that differs.

    Raises:
        TooManyParts: a version has more parts than its limit.
        EditRefused: a field cannot be changed alone.
    """
    if changes is None and now.text == after.text:
        return TakenBack(before.text)
    newline = now.lines.newline
    before, after = (each.with_text(with_newline(each.text, newline)) for each in (before, after))
    found = compare(before, after).facts if changes is None else changes
    fields = [each for each in found if isinstance(each, FieldChange)]
    every = [each for each in found if isinstance(each, FactChange) and each.fact.kind != "source"]
    undos, refused, skipped = _find_undos(after, now, every)
    is_whole = changes is None and len(undos) == len(every)
    conflicts: list[str] = []
    for version in (after,) if refused else (after, now):
        if version is now:  # a heading stays that others are under
            stay = [each.now for each in undos if each.now and each.has_others]
            skipped += [f"{_quote_fact(fact)} stays, as other facts are under it now" for fact in stay]
            undos = [each for each in undos if each.now not in stay]
        for front, mine in _list_ways(before, after, fields, is_all=changes is None):
            try:
                is_known = is_whole and version is after
                body = before.body if is_known else _put_back(before, version, undos, after)
                merged = merge(_with_body(front, version.body), _with_body(mine, body), now)
            except _MisreadError as error:
                conflicts = [str(error)]
                continue
            if merged.text is not None:
                return TakenBack(merged.text, (), tuple(skipped))
            places = [each.where or "the value" for each in merged.conflicts]
            conflicts = [f"{place}: changed since, in another way" for place in places]
    return TakenBack(now.text, tuple(refused or conflicts), tuple(skipped))


def _list_ways(
    before: Document, after: Document, fields: Sequence[FieldChange], *, is_all: bool
) -> Iterator[tuple[Document, Document]]:
    """Yield a base and ours for the merge that takes some fields back, or all of them."""
    if not fields:
        yield after, before if is_all else after
        return
    yield _with_fields(before, fields), before
    # A list of values may be written in another way than a change of it alone would write it.
    back = [FieldChange(_OPPOSITE[each.kind], each.key, each.after, each.before) for each in fields]
    mine = _with_fields(after, back)
    yield after, before if mine.fields == before.fields else mine


def _find_undos(
    after: Document, now: Document, changes: Sequence[FactChange]
) -> tuple[list[_Undo], list[str], list[str]]:
    """Return the facts to put back, why some cannot be, and what need not be, in words."""
    pairs = pair_facts(after, now)
    partner = {then.line: fact for fact, then in pairs if then}
    come = [fact for fact, then in pairs if not then]
    meant = {partner[each.after.line].line for each in changes if each.after and each.after.line in partner}
    parents, over = _find_parents([fact for fact, _ in pairs]), _find_parents(facts(after))
    undos, refused, skipped = list[_Undo](), list[str](), list[str]()
    for change in changes:
        was, then, reason = change.before, change.after, ""
        moved = change.moved or change.kind == "reordered"
        stands = partner.get(then.line) if then else None
        again = next((each for each in come if was and not then and _is_again(was, each)), None)
        others = [
            each
            for each, _ in pairs
            if stands and not was and each.line not in meant and _is_in(parents, each.line, stands.line)
        ]
        if again:
            come.remove(again)
            skipped.append(f"{_quote_fact(again)} is there again, in line {again.line}")
            continue
        if then and not stands:
            place = f", which took the place of {_quote_fact(was)}," if was else ""
            skipped.append(f"{_quote_fact(then)}{place} was removed already")
            continue
        if then and stands and then.said != stands.said and not (was and was.said == then.said):
            reason = f"it has changed since, or is gone: now it reads {_quote_fact(stands)}"
            if was and was.said == stands.said:
                skipped.append(f"{_quote_fact(then)} was reworded back already")
        elif then and stands and moved:
            above = partner.get(over[then.line])
            if parents[stands.line] != (above.line if above else 0):
                reason = f"it was moved since, and stands in line {stands.line} now"
        elif others and stands and stands.kind != "heading":
            reason = f"others stand in it now: {', '.join(map(_quote_fact, others))}"
        if reason:
            refused.append(f"{_quote_fact(change.fact)}: {reason}")
        undos.append(_Undo(was, then, stands, moved, bool(others)))
    return undos, refused, skipped


def _is_again(was: Fact, fact: Fact) -> bool:
    """Return whether a new fact is the same as one that was removed."""
    if was.id or fact.id:
        return was.id == fact.id
    is_there = fact.path == was.path or len(was.text.split()) >= TELLING
    return (fact.kind, fact.text) == (was.kind, was.text) and is_there


def _find_parents(every: Sequence[Fact]) -> dict[int, int]:
    """Return the line of the parent of each fact, by its own line; 0 for none."""
    return {fact.line: every[fact.parent].line if fact.parent is not None else 0 for fact in every}


def _is_in(parents: dict[int, int], line: int, over: int) -> bool:
    """Return whether a fact is another one, or stands in or under that."""
    while line and line != over:
        line = parents[line]
    return line == over


# ------------------------------------------------------------------------------ a text with facts put back


def _put_back(before: Document, version: Document, undos: Sequence[_Undo], after: Document) -> str:
    """Return the body of a version with facts as they were before the change."""
    cells = _Cells(before, version)
    steps = [(undo, undo.then if version is after else undo.now) for undo in undos]
    for undo, stands in steps:
        was, then = undo.was, undo.then
        if stands and not was:
            cells.gone.add(stands.line)
        if was and then and stands and was.said != then.said:
            cells.texts[stands.line] = cells.texts[-was.line]
        if was and (undo.moved or not stands):
            cells.move(was.line, stands.line if stands else 0)
    cells.add_headings()
    body = cells.join()
    _check_result(before, version, _with_body(version, body), steps)
    is_ended = not version.text or version.text.endswith(("\n", "\r"))
    return body if is_ended else body.removesuffix(version.lines.newline)


class _Cells:
    """The facts of a version and of one before, each with its lines and the text above it.

    A key is the number of the first line of a fact, negative for the version before.

    Attributes:
        gone: the facts of the version that go.
        come: what comes in the place of an earlier fact, by its line.
    """

    def __init__(self, before: Document, version: Document) -> None:
        self.texts: dict[int, str] = {}
        self.gone: set[int] = set()
        self.come: dict[int, list[int]] = {}
        self._newline = version.lines.newline
        self._facts: dict[int, Fact] = {}
        self._leads: dict[int, tuple[int, str]] = {}  # what stands above in the document, and what is between
        for sign, document in ((-1, before), (1, version)):
            end, above = document.body_span.start, 0
            for fact in facts(document):
                key, start = sign * fact.line, max(end, document.lines.starts[fact.line - 1])
                self._facts[key], self._leads[key] = fact, (above, document.text[end:start])
                end, above = document.lines.span(fact.last).end, key
                self.texts[key] = document.text[start:end].rstrip("\r\n") + self._newline
            self._tail = document.text[end:]  # the version's at last
        self._order = [key for key in self._facts if key > 0]
        pairs = pair_facts(before, version)
        self._partner = {0: 0} | {was.line: fact.line for fact, was in pairs if was}
        self._over, self._parents = (
            _find_parents([fact for key, fact in self._facts.items() if key * sign > 0]) for sign in (-1, 1)
        )

    def move(self, line: int, there: int) -> None:
        """Put a fact of the version, with all in it, where an earlier one was; 0 for the earlier one."""
        block = [key for key in self._order if there and _is_in(self._parents, key, there)]
        self.come[line] = block or [-line]
        self.gone.update(block)

    def add_headings(self) -> None:
        """Add the missing headings above the facts that come; an item cannot be added."""
        for line in [*self.come]:
            over = self._over[line]
            while over not in self._partner and over not in self.come:
                fact = self._facts[-over]
                if fact.kind != "heading":
                    reason = f"it stood in {_quote_fact(fact)}, which is gone"
                    raise _MisreadError(f"{_quote_fact(self._facts[-line])}: {reason}")
                self.come[over], over = [-over], self._over[over]

    def _arrange_facts(self) -> list[int]:
        """Return all facts in order; what comes back follows the nearest earlier one that did not move."""
        kept = {key: None for key in self._order if key not in self.gone}
        steady = self._find_steady(kept)
        moved = {0: 0}  # for each earlier fact, the nearest one that moved: itself, one above it, or none
        back: dict[int, list[int]] = {0: []}  # the facts that moved with each of these
        for line, over in self._over.items():
            there = self._partner.get(line, 0)
            moved[line] = line if there in kept and there not in steady else moved[over]
            back.setdefault(moved[line], []).extend(self.come.get(line, [there] if there in kept else []))
        earlier = dict.fromkeys(chain(*back.values()))
        order = placed([key for key in kept if key in earlier], [*earlier])
        return self._keep_together(placed(order, [*kept]))

    def _find_steady(self, kept: Collection[int]) -> set[int]:
        """Return the facts that stand in the same one as before and passed none of the others there."""
        siblings: dict[int, list[int]] = defaultdict(list)
        for line, over in self._over.items():
            there = self._partner.get(line, 0)
            if there in kept and self._parents[there] == self._partner.get(over):
                siblings[over].append(there)
        return {each[at] for each in siblings.values() for at in increasing(each)}

    def _keep_together(self, order: Sequence[int]) -> list[int]:
        """Return facts in order, each behind the one that it is in, and before what follows that."""
        parents = dict(self._parents)
        for line, block in self.come.items():
            over = self._over[line]
            parents[block[0]] = self._partner.get(over, -over)
        inner: dict[int, list[int]] = {key: [] for key in (0, *order)}
        for key in order:
            over = parents[key]
            while over not in inner:  # it goes, and leaves what is in it to the one that it is in
                over = parents[over]
            inner[over].append(key)
        arranged, left = list[int](), inner[0][::-1]
        while left:
            key = left.pop()
            arranged.append(key)
            left += inner[key][::-1]
        return arranged

    def join(self) -> str:
        """Return the text of all facts; if two touch in either version, they are parted as there."""
        order, body, lead = self._arrange_facts(), "", ""
        names = {key: key if key > 0 or key in order else self._partner.get(-key, key) for key in self._facts}
        names[0] = 0
        leads = {(names[above], names[key]): between for key, (above, between) in self._leads.items()}
        for above, key in pairwise([0, *order]):
            was_above, own = self._leads[key]
            kind, kind_above, kind_was = (
                self._facts[each].kind if each else "" for each in (key, above, was_above)
            )
            if not above:
                own = self._leads[self._order[0]][1] if self._order else own
            elif kind == kind_above and kind in {"item", "row"}:
                own = own if kind == kind_was else ""
            else:
                own = (own.removeprefix(lead) if above < 0 else own) or own or self._newline
            lead = leads.get((above, key), own)
            body += lead + self.texts[key]
        return body + (self._tail.removeprefix(lead) if order and order[-1] < 0 else self._tail)


def _check_result(
    before: Document, version: Document, result: Document, steps: Sequence[tuple[_Undo, Fact | None]]
) -> None:
    """Refuse a text with a fact that is neither as in the version nor as before, or is not put back."""
    found, earlier = (
        [change for change in compare(each, result).facts if change.kind != "reordered"]
        for each in (version, before)
    )
    come = {undo.was.line for undo, _ in steps if undo.was}
    gone = {stands.line for undo, stands in steps if stands and not undo.was}
    # A fact with its earlier words in its earlier place may look like another one.
    may_go = {stands.line for _, stands in steps if stands}
    lost = {each.before.line for each in found if each.before and not each.after}
    other = {each.after.line for each in found if each.after}.intersection(
        each.after.line for each in earlier if each.after
    )
    if other or not gone <= lost <= may_go or come & {each.before.line for each in earlier if each.before}:
        raise _MisreadError(
            "it cannot be reverted by itself: the text around it would be read as something else"
        )


def _with_fields(document: Document, fields: Sequence[FieldChange]) -> Document:
    """Return a version with the fields as the changes left them."""
    for field in fields:
        is_gone = field.kind == "removed"
        edits = unset_field(document, field.key) if is_gone else set_field(document, field.key, field.after)
        document = spliced(document, edits)
    return document


def _with_body(document: Document, body: str) -> Document:
    front = document.text[: document.body_span.start]
    return document if document.is_json else document.with_text(front + body)


def _quote_fact(fact: Fact) -> str:
    return repr(shortened(fact.said, _LONGEST_QUOTED))
