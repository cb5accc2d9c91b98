"""What a text states that is worth keeping: wishes, constraints, decisions, fixes, facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mdmem.capture.lexicon import Lexicon, builtin
from mdmem.errors import Usage

KINDS = (
    *("preference", "constraint", "style", "audience", "length", "format"),
    *("decision", "fix", "fact", "problem"),
)
"""What a candidate can be."""

EVENTS = (
    *("task_completed", "feature_implemented", "decision_made"),
    *("milestone_reached", "preference_expressed", "error_resolved"),
)
"""What a program can report."""


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


def extract(
    text: str, speaker: str = "user", language: str | None = None, lexicon: Lexicon | None = None
) -> list[Candidate]:
    """What a text states, in the order of its places; nothing of what is a question, a condition or code.

    Args:
        text: what was said.
        speaker: `user`, or `assistant`, whose wishes and offers do not count; nothing else states anything.
        language: "en" or "zh"; None reads both, also mixed.
        lexicon: the words; without one those that come with the program.

    Raises:
        Usage: there is no such language.
    """
    known = (lexicon or builtin()).languages
    if language is not None and language not in known:
        raise Usage(problem=f"a language is {', '.join(known)}, not {language!r}")
    del text, speaker
    return []


def from_event(kind: str, data: Mapping[str, Any]) -> list[Candidate]:
    """What an event says that a program reports.

    Args:
        kind: one of `EVENTS`.
        data: what it is about: `title` or what the event names, and `description`.

    Raises:
        Usage: no such event, or data that is not text.
    """
    if kind not in EVENTS:
        raise Usage(problem=f"an event is {', '.join(EVENTS)}, not {kind!r}")
    del data
    return []
