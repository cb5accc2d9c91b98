"""Three versions of one thing, as a merge meets them: the base, and what two sides made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

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
