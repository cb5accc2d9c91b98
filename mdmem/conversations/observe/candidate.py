"""Candidates: what was stated in a message, or by a program that reports an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdmem.document.text.tokens import clipped, in_line
from mdmem.errors import Usage

LONGEST_VALUE = 300
"""Characters of a value."""
MOST_CHARACTERS = 100_000
"""Characters of a text in the data of an event."""

_KINDS = {
    "task_completed": ("fact", ("title", "task")),
    "feature_implemented": ("fact", ("title", "feature")),
    "decision_made": ("decision", ("title", "decision")),
    "milestone_reached": ("fact", ("title", "milestone")),
    "preference_expressed": ("preference", ("title", "preference", "value")),
    "error_resolved": ("fact", ("title", "error", "solution")),
}
EVENTS = tuple(_KINDS)
"""What a program can report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that was stated.

    Attributes:
        kind: preference, constraint, decision or fact.
        category, key: of a preference, where the words say which one is meant; else empty.
        value: what is wished, decided or known, in one line.
        quote: the exact words, `text[start:end]`, in code points.
        start, end: where they stand.
        confidence: from 0 to 1.
        why: what found it: a cue, an event, a model.
    """

    kind: str
    category: str = ""
    key: str = ""
    value: str
    quote: str
    start: int
    end: int
    confidence: float
    why: str


def from_event(event: str, data: Mapping[str, Any]) -> list[Candidate]:
    """Return what an event says: one candidate, or none where its data are blank.

    Its quote is the text that the data make, from the first character on.

    Args:
        event: one of `EVENTS`.
        data: the text, under `title` or its subject (`task`, `feature`, `decision`, `milestone`,
            `preference`, `error`), and further text under `description` or `solution`. A preference also
            has `category`, `key` and `value`. Other fields are not read.
    """
    if event not in _KINDS:
        raise Usage(problem=f"an event is {', '.join(EVENTS)}, not {clipped(in_line(str(event)), 60)!r}")
    if not isinstance(data, Mapping):
        raise Usage(problem=f"the data of an event are a mapping, not {type(data).__name__}")
    kind, names = _KINDS[event]
    further = ("solution", "description", "category", "key", "value")
    given = {name: _line_of(data, name) for name in (*names, *further)}
    said = [next((given[name] for name in names if given[name]), "")]
    said += [given[name] for name in ("solution", "description") if given[name] not in said]
    text = ": ".join(filter(None, said))
    if not text:
        return []
    is_keyed = kind == "preference" and bool(given["key"] and given["value"])
    candidate = Candidate(
        kind=kind,
        category=(given["category"] or "general") if is_keyed else "",
        key=given["key"] if is_keyed else "",
        value=given["value"] if is_keyed else clipped(text, LONGEST_VALUE),
        quote=text,
        start=0,
        end=len(text),
        confidence=1.0,
        why=f"event: {event}",
    )
    return [candidate]


def _line_of(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if not isinstance(value, str):
        raise Usage(problem=f"{name} is text, not {type(value).__name__}")
    if len(value) > MOST_CHARACTERS:
        raise Usage(problem=f"{name} has {len(value):,} characters, not at most {MOST_CHARACTERS:,}")
    return clipped(in_line(value), LONGEST_VALUE)
