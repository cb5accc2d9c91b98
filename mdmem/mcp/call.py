"""A call: what the host has bound, and how long work says how far it is and learns that it should stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mdmem.errors import Usage
from mdmem.mcp.answer import BUDGET

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory

Tick = Callable[[int, int], None]
"""Told how many of how many are done, 0 of 0 where that is not known; it raises to end the work."""


def no_tick(_done: int, _total: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the host has bound; no argument of a tool leaves it.

    Attributes:
        memory: the vault and the namespace.
        thread: whose working memory `context` gives and `remember` writes; None: the one that they name.
        read_only: whether the tools that change something are left out, and refused.
        budget: about how many tokens an answer may have.
    """

    memory: Memory
    thread: str | None = None
    read_only: bool = False
    budget: int = BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool."""

    bound: Bound
    tick: Tick = no_tick

    @property
    def memory(self) -> Memory:
        """The memories."""
        return self.bound.memory

    @property
    def budget(self) -> int:
        """About how many tokens the answer may have."""
        return self.bound.budget

    def thread(self, name: str | None) -> str | None:
        """The thread that is meant: the one that the host has bound, where it has.

        Raises:
            Usage: another one is named.
        """
        bound = self.bound.thread
        if bound is not None and name not in {None, "", bound}:
            raise Usage(problem=f"the host has bound the thread {bound!r}", remedy="name no other one")
        return (name or None) if bound is None else bound

    def sync(self) -> None:
        """Make the index current, and say how far it is: what asks the index does so again at no cost."""
        self.memory.sync(progress=self.tick)
