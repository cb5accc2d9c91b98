"""Three versions of one thing, as a merge meets them: the base, and what two sides made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

from mdmem.text.document import Document
from mdmem.text.tree import KeyPath, dotted

ConflictKind = Literal["lines", "field", "section", "json"]
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
K = TypeVar("K", bound=Hashable)


class Three(NamedTuple, Generic[T]):
    """A thing in the base and on both sides."""

    base: T
    ours: T
    theirs: T

    def map(self, of: Callable[[T], U]) -> Three[U]:
        """What `of` makes of each."""
        return Three(of(self.base), of(self.ours), of(self.theirs))

    def paired(self, other: Three[U], of: Callable[[T, U], V]) -> Three[V]:
        """What `of` makes of each together with its partner in `other`."""
        return Three(*map(of, self, other))

    def agreed(self) -> tuple[T] | None:
        """What it becomes, when at most one side changed it or both did equally."""
        if self.ours in (self.base, self.theirs):
            return (self.theirs,)
        return (self.ours,) if self.theirs == self.base else None


def complete(three: Three[T | None]) -> Three[T] | None:
    """The same three, or None when one of them is missing."""
    base, ours, theirs = three
    return None if base is None or ours is None or theirs is None else Three(base, ours, theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """A place that both sides changed, each in its own way.

    Attributes:
        kind: the same lines, the same field of the frontmatter, a section that one side changed and the other
            removed, or the same JSON value.
        where: the heading path (`Design > Index`) or the dotted key; may be empty.
        line: where it stands in theirs, 1-based.
        base: the text of the place before; empty where there was none. `ours` and `theirs` alike.
    """

    kind: ConflictKind
    where: str
    line: int
    base: str
    ours: str
    theirs: str


def value_conflict(
    kind: ConflictKind, path: KeyPath, theirs: Document, texts: Three[str] | Three[str | None]
) -> MergeConflict:
    """The conflict about the value at `path`, at the line of the value or of what is nearest to it."""
    line = theirs.lines.number(theirs.tree.nearest(path).span.start) if theirs.tree else 1
    before, mine, yours = (text or "" for text in texts)
    return MergeConflict(kind=kind, where=dotted(path), line=line, base=before, ours=mine, theirs=yours)


def merged_order(keys: Three[list[K]]) -> list[K] | None:
    """All keys of both sides in one order, or None when both sides moved them, each in its own way.

    A side that moved keys gives the order, else theirs; the other side's own keys follow what they followed.
    """
    shared = set(keys.base).intersection(keys.ours, keys.theirs)
    kept = keys.map(lambda side: [key for key in side if key in shared])
    if not kept.agreed():
        return None
    if kept.theirs == kept.base != kept.ours:
        return placed(keys.ours, keys.theirs)
    return placed(keys.theirs, keys.ours)


def placed(order: Sequence[K], other: Sequence[K]) -> list[K]:
    """`order`, and the keys that only `other` has: behind what precedes them and what `order` added there."""
    known, shared = set(order), set(other)
    behind: dict[K | None, list[K]] = {}
    anchor: K | None = None
    for key in other:
        if key in known:
            anchor = key
        else:
            behind.setdefault(anchor, []).append(key)
    result: list[K] = []
    pending = behind.get(None, [])
    for key in order:
        if key in shared:
            result += pending
            pending = behind.get(key, [])
        result.append(key)
    return result + pending
