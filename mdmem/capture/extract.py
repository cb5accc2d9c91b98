"""What a text states that is worth keeping: wishes, constraints, decisions, fixes, facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

KINDS = (
    *("preference", "constraint", "style", "audience", "length", "format"),
    *("decision", "fix", "fact", "problem"),
)
"""What a candidate can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that was stated.

    Attributes:
        kind: one of `KINDS`.
        category, key: of a preference, where they are known; else empty.
        value: what is wished, decided or known, in one line.
        tags: what it is about.
        quote: the exact words, `text[start:end]`, in characters.
        start, end: where they stand.
        confidence: from 0 to 1.
        why: which rule found it.
    """

    JSON: ClassVar = (
        *("kind", "category", "key", "value", "tags"),
        *("quote", "start", "end", "confidence", "why"),
    )

    kind: str
    category: str = ""
    key: str = ""
    value: str
    tags: tuple[str, ...] = ()
    quote: str
    start: int
    end: int
    confidence: float
    why: str
