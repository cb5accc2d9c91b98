"""Provenance: where a memory comes from, how sure it is today, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mdmem.document import confidence as rules
from mdmem.document.moment import moment_of
from mdmem.index.hit import DATE_FIELDS
from mdmem.kind import PREFERENCE, PROJECT, RULE, kind_at

if TYPE_CHECKING:
    from mdmem.index.view import View

FIELDS = ("confidence", "source.type", "source.ids", "source.explicit", "contradicted_by", "tier")
"""The fields, by their dotted keys, that say how sure a memory is."""
_SINCE = ("confirmed", "updated")
_LASTING = (PREFERENCE, RULE, PROJECT)


def today(
    path: str, fields: Mapping[str, Any], day: str, now: datetime, half_life_days: float
) -> float | None:
    """Return how sure a memory is today, from 0 to 1; None where it says nothing of itself.

    Confidence halves with each half-life since the memory was confirmed, updated or, without either, written.
    It stays for what was bootstrapped or is pinned, and for preferences, rules and project memory.

    Args:
        day: of the memory, see `mdmem.index.hit.day_of`; empty for none.
        now: with a time zone.
        half_life_days: 0 for confidence that lasts.
    """
    sure = rules.confidence_of(fields)
    if sure is None:
        return None
    is_lasting = rules.source_type(fields) == rules.BOOTSTRAPPED or fields.get("tier") == "pinned"
    written = (moment_of(fields.get(key)) for key in _SINCE)
    since = next(filter(None, written), None) or moment_of(day)
    if is_lasting or kind_at(path) in _LASTING or since is None:
        return sure
    return rules.decayed(sure, since, now, half_life_days)


def find_confidences(view: View, now: datetime) -> Iterator[tuple[str, float]]:
    """Yield each memory that says how sure it is, with how sure it is today."""
    for path, _, sure in _judge_memories(view, now):
        yield path, sure


def find_doubtful(view: View, now: datetime) -> Iterator[tuple[str, float]]:
    """Yield each memory that is too unsure today to be kept, with how sure it is; see `is_doubtful`."""
    for path, fields, sure in _judge_memories(view, now):
        if rules.is_doubtful(fields, sure):
            yield path, sure


def _judge_memories(view: View, now: datetime) -> Iterator[tuple[str, Mapping[str, Any], float]]:
    half_life = view.vault.config.confidence.half_life_days
    for path, _, _, values in view.memories({*FIELDS, *_SINCE}):
        day, fields = str(values.get("date", [""])[0]), _nest_values(values)
        sure = today(path, fields, day, now, half_life)
        if sure is not None:
            yield path, fields, sure


def list_memories(view: View) -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """Yield each memory with the fields about its sources and bounds, its title and its day."""
    keys = {*FIELDS, *_SINCE, *DATE_FIELDS, "source", "valid_from", "valid_to", "expires"}
    # Of memories without a date, it is the day of the file.
    dated = {path for path, _ in view.field_values("date")["date"]}
    for path, _, _, values in view.memories(keys):
        day, title = (str(values.get(key, [""])[0] or "") for key in ("date", "title"))
        fields = {key: value for key, value in _nest_values(values).items() if value}
        yield path, fields if path in dated else {**fields, "date": None}, title, day


def _nest_values(values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the fields of a memory as its frontmatter has them, from their values by dotted keys."""
    fields: dict[str, Any] = {key: found[0] for key, found in values.items() if found and "." not in key}
    fields["contradicted_by"] = list(values.get("contradicted_by", ()))
    if type_ := values.get("source.type"):
        explicit = values.get("source.explicit", (False,))[0]
        fields["source"] = {
            "type": type_[0],
            "ids": list(values.get("source.ids", ())),
            "explicit": explicit in (True, 1, "true"),
        }
    return fields
