"""What a parser of values returns: the tree, and the flaws that it met on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Severity, Span

if TYPE_CHECKING:
    from mdmem.text.tree import Node


MOST_PARTS = 100_000
"""How many headings, links, JSON values or the like a text may have, unless a limit says otherwise."""


class Flaw(NamedTuple):
    """Something wrong in a text, before it is known which memory the text belongs to."""

    span: Span
    code: str
    message: str
    hint: str = ""
    rule: str = ""
    severity: Severity = "error"


class Parsed(NamedTuple):
    """A parsed text: `node` is None where there is no value, or none that can be read."""

    node: Node | None
    flaws: tuple[Flaw, ...] = ()


class TooDeep(Exception):
    """Values nested too deeply, or too many once aliases are followed, at `offset`."""

    def __init__(self, what: str, limit: int, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.limit = limit
        self.offset = offset
