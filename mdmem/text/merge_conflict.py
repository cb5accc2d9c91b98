"""A merge conflict: a place that both sides changed, and what each of them made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mdmem.text.document import Document
from mdmem.text.three import Three
from mdmem.text.tree import KeyPath, dotted

ConflictKind = Literal["lines", "field", "section", "json"]


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
