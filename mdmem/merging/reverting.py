"""Takes a change of a memory back in what the memory says now.

All of it is taken back by a merge of the version before with what came of the version after. Single facts,
or all of them where that merge has conflicts, are put back as they were into the tree of now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mdmem.merging.comparison import compare, partners
from mdmem.merging.facts import Fact, facts
from mdmem.merging.joining import join_trees
from mdmem.merging.matching import TELLING, Matching
from mdmem.merging.merge import merge
from mdmem.merging.tree import read_tree
from mdmem.merging.writing import Writer
from mdmem.text.conflict import Conflicts
from mdmem.text.diff import Versions
from mdmem.text.document import Document, parse_text
from mdmem.text.lines import with_newline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.merging.comparison import FactChange
    from mdmem.merging.tree import Tree, TreeNode

_LONGEST_QUOTED = 100  # characters of a fact in a message
_MISREAD = "it cannot be reverted by itself: the text around it would be read as something else"


class TakenBack(NamedTuple):
    """A text in which a change is taken back.

    Attributes:
        text: the text; as it was, with any `refused`.
        refused: what cannot be taken back, each with its reason.
        skipped: what need not be, since it was taken back already, or others need it; in words.
    """

    text: str
    refused: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def take_back(
    before: Document, after: Document, now: Document, changes: Sequence[FactChange] | None = None
) -> TakenBack:
    """Take back what made `after` of `before`, in what that has become since.

    Args:
        before, after, now: versions of one memory, in this order.
        changes: some of what `compare(before, after)` found; without them, all that differs.

    Raises:
        TooManyParts: a version has more parts than its limit.
    """
    before, after = (_with_newline(each, now.lines.newline) for each in (before, after))
    undoing = _Undoing(before, after, now)
    every = compare(before, after).facts if changes is None else changes
    every = [change for change in every if change.fact.kind != "source"]
    is_all = changes is None
    for change in every:
        is_all &= undoing.find_step(change, is_alone=len(every) == 1)
    front = before if changes is None else after
    conflicts: list[str] = []
    for version in (after, now):
        # What was written since beside what goes is no reason to keep that.
        if version is now and not undoing.keep_with_others():
            break
        try:
            body = before.body if is_all and version is after else undoing.undo(version)
        except _MisreadError as error:
            conflicts = [str(error)]
            continue
        merged = merge(_with_body(after, version.body), _with_body(front, body), now)
        if merged.text is not None:
            return TakenBack(merged.text, (), tuple(undoing.skipped))
        conflicts = [
            f"{each.where or 'the value'}: changed since, in another way" for each in merged.conflicts
        ]
    return TakenBack(now.text, tuple(undoing.refused or conflicts), tuple(undoing.skipped))


class _MisreadError(Exception):
    """A fact cannot be put back where it was; it says why."""


class _Undo(NamedTuple):
    """A fact before a change, after it, and now; and whether the change moved it."""

    was: Fact | None
    then: Fact | None
    stands: Fact | None
    moved: bool


class _Undoing:
    """Undoes changes of facts.

    Attributes:
        refused, skipped: as those of `TakenBack`.
    """

    def __init__(self, before: Document, after: Document, now: Document) -> None:
        self._before, self._now_document = before, now
        pairs = partners(after, now)
        self._after, self._now = facts(after), [fact for fact, _ in pairs]
        self._partner = {then.line: fact for fact, then in pairs if then}
        self._come = [fact for fact, then in pairs if not then]
        self._steps: list[_Undo] = []
        self.refused: list[str] = []
        self.skipped: list[str] = []

    def find_step(self, change: FactChange, *, is_alone: bool) -> bool:
        """Find a changed fact as it stands now; False if a removed one is there again.

        What is not as the change left it can only be undone by a merge, if at all.
        """
        was, then = change.before, change.after
        again = self._find_again(was) if was and not then else None
        if was and again and again.said == was.said:
            self._come.remove(again)
            self.skipped.append(f"{_quote(was)} is there again, in line {again.line}")
            return False
        stands = self._partner.get(then.line) if then else None
        self._steps.append(_Undo(was, then, stands, change.moved or change.kind == "reordered"))
        if was and again:
            self.refuse(was, f"^{was.id} is there again, as {_quote(again)}")
        elif then and not stands and was:
            self.refuse(then, f"it took the place of {_quote(was)}, and is gone since")
        elif then and not stands:
            self.skipped.append(f"{_quote(then)} was removed already")
            if not is_alone:
                self.refuse(then, "it is gone since")
        elif then and stands and was and then.said != was.said == stands.said:
            self.skipped.append(f"{_quote(then)} was reworded back already")
        elif then and stands and stands.said != then.said:
            self.refuse(then, f"it has changed since, or is gone: now it reads {_quote(stands)}")
        elif then and stands and (change.moved or not is_alone) and not self._is_in_same(then, stands):
            self.refuse(then, f"it was moved since, and stands in line {stands.line} now")
        return True

    def keep_with_others(self) -> bool:
        """Let a heading stay while others stand under it; an item cannot go before what is in it."""
        known = {step.stands for step in self._steps}
        for step in reversed(self._steps):
            if step.was or not step.stands:
                continue
            others = list(self._find_below(step.stands, known))
            if others and step.stands.kind == "heading":
                self._steps.remove(step)
                known.remove(step.stands)
                self.skipped.append(f"{_quote(step.stands)} stays, as other facts are under it now")
            elif others:
                self.refuse(step.stands, f"others stand in it now: {', '.join(map(_quote, others))}")
        return not self.refused

    def _find_again(self, was: Fact) -> Fact | None:
        """The fact that came since, and is the same as one that was removed."""
        for fact in self._come:
            if was.id or fact.id:
                if was.id == fact.id:
                    return fact
            elif (fact.kind, fact.text) == (was.kind, was.text) and (
                fact.path == was.path or len(was.text.split()) >= TELLING
            ):
                return fact
        return None

    def _is_in_same(self, then: Fact, stands: Fact) -> bool:
        over = None if then.parent is None else self._partner.get(self._after[then.parent].line)
        return over == (None if stands.parent is None else self._now[stands.parent])

    def _find_below(self, fact: Fact, known: set[Fact | None]) -> Iterator[Fact]:
        inside = {self._now.index(fact)}
        for number, each in enumerate(self._now):
            if each.parent in inside:
                inside.add(number)
                if each not in known:
                    yield each

    def refuse(self, what: Fact | str, reason: str) -> None:
        """Refuse to undo what was done to a fact, or to a field."""
        self.refused.append(f"{what if isinstance(what, str) else _quote(what)}: {reason}")

    def undo(self, version: Document) -> str:
        """The body of the version after the change, or of a later one, with the changes undone."""
        newline, is_ended = version.lines.newline, _ends_line(version.text)
        new, old = (
            each if _ends_line(each.text) else parse_text(each.path, each.text + newline, each.limits)
            for each in (version, self._before)
        )
        trees = Versions(read_tree(new), read_tree(old), read_tree(new))
        trees.ours.tail = trees.base.tail
        joined = join_trees(trees, chosen=self._choose_nodes(trees, is_now=version is self._now_document))
        writer = Writer(Versions(new, old, new), trees, joined)
        body = writer.write(Conflicts()).lstrip("\r\n")
        body = new.body[: len(new.body) - len(new.body.lstrip("\r\n"))] + body
        read = read_tree(_with_body(new, body)).nodes
        number = {node: at for at, node in enumerate(read)}
        found = [(node.kind, node.words, number[node.parent] if node.parent else -1) for node in read]
        if writer.misplaced or not joined.is_whole or found != writer.written:
            raise _MisreadError(_MISREAD)
        return body if is_ended else body.removesuffix(newline)

    def _choose_nodes(self, trees: Versions[Tree], *, is_now: bool) -> dict[TreeNode, bool]:
        """The nodes that come, go or change, and whether they move; with lists and headings that are gone."""
        news, olds = (
            {node.line: node for node in tree.nodes if node.head} for tree in (trees.base, trees.ours)
        )
        chosen: dict[TreeNode, bool] = {}
        for step in self._steps:
            stands = step.stands if is_now else step.then
            chosen.update({news[stands.line]: step.moved} if stands else {})
            chosen.update({olds[step.was.line]: step.moved} if step.was else {})
        matching = Matching(trees.ours, trees.base)
        for node in [*chosen]:
            above = (node.above or node.parent) if node in olds.values() else None
            while above and above not in chosen:
                there = matching.partner(above)
                if there and above not in matching.weak:
                    break
                if above.kind in {"item", "table"}:
                    raise _MisreadError(f"{node.words!r}: it stood in {above.words!r}, which is gone")
                chosen[above] = False
                above = above.above or above.parent
        return chosen


def _with_body(document: Document, body: str) -> Document:
    """A document with another body."""
    if document.is_json:
        return document
    front = document.text[: document.body_span.start]
    return parse_text(document.path, front + body, document.limits)


def _with_newline(document: Document, newline: str) -> Document:
    if document.lines.newline == newline:
        return document
    return parse_text(document.path, with_newline(document.text, newline), document.limits)


def _ends_line(text: str) -> bool:
    return not text or text.endswith(("\n", "\r"))


def _quote(fact: Fact) -> str:
    words = fact.said
    return repr(words if len(words) <= _LONGEST_QUOTED else words[: _LONGEST_QUOTED - 1] + "…")
