"""Confidence: how sure a memory is, from what it says of its sources; the clock is an argument.

The numbers are those of aster's provenance, with contradictions, and without what use would add: a memory
says the same in a clone. Nothing of it is ever written into a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from mdmem.errors import plural

BOOTSTRAPPED, USER, TOOL, AGENT, CONVERSATION = "bootstrapped", "user", "tool", "agent", "conversation"
SURE = 0.2
"""What is surer than this is kept; see `is_doubtful`."""
SURE_IF_EXPLICIT = 0.14
"""The same for what a user said explicitly."""
_FIRST = {BOOTSTRAPPED: 0.95, USER: 0.70, CONVERSATION: 0.70, AGENT: 0.60, TOOL: 0.50}
_EXPLICIT = 0.90
_FURTHER, _MOST_FURTHER = 0.05, 0.20
_AGAINST, _MOST_AGAINST = 0.15, 0.45
_SECONDS_A_DAY = 86_400


class ConfidenceTerm(NamedTuple):
    """A part of a confidence: the reason in words, and how much it adds."""

    of: str
    value: float


def source_type(fields: Mapping[str, Any]) -> str:
    """Return the type of source that a memory names, `source.type`; empty for none that has a confidence."""
    source = fields.get("source")
    written = source.get("type") if isinstance(source, dict) else None
    return written if isinstance(written, str) and written in _FIRST else ""


def is_explicit(fields: Mapping[str, Any]) -> bool:
    """Return whether a memory is what a user said explicitly, `source.explicit`."""
    source = fields.get("source")
    is_said = isinstance(source, dict) and source.get("explicit") is True
    return is_said and source_type(fields) in (USER, CONVERSATION)


def sources_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """List the ids of the sources that a memory names, `source.ids`, in their order."""
    source = fields.get("source")
    ids = source.get("ids") if isinstance(source, dict) else None
    return tuple(str(each) for each in (ids if isinstance(ids, list) else [ids]) if _is_name(each))


def names_source(source: str, written: str) -> bool:
    """Return whether an id is that of a source, or of a message in a session that is the source."""
    return written == source or (source.startswith("sessions/") and written.startswith(f"{source}#"))


def distinct_sources(ids: Sequence[str]) -> tuple[str, ...]:
    """Name each source once, and of messages their session: who repeats himself adds nothing."""
    named = (each.partition("#")[0] if each.startswith("sessions/") else each for each in ids)
    return tuple(dict.fromkeys(named))


def terms_of(fields: Mapping[str, Any]) -> tuple[ConfidenceTerm, ...]:
    """Explain the confidence of a memory: the terms that it is the sum of, before it is kept within 0 and 1.

    Without a number in `confidence` and without a type of source, there are none.
    """
    written = fields.get("confidence")
    if not isinstance(written, bool) and isinstance(written, int | float) and 0 <= written <= 1:
        return (ConfidenceTerm("the field `confidence`", float(written)),)
    type_ = source_type(fields)
    if not type_:
        return ()
    explicit = is_explicit(fields)
    if explicit:
        first = ConfidenceTerm(f"source {type_}, explicit", _EXPLICIT)
    else:
        first = ConfidenceTerm(f"source {type_}", _FIRST[type_])
    further = len(distinct_sources(sources_of(fields))) - 1
    against = fields.get("contradicted_by")
    count = sum(map(_is_name, against if isinstance(against, list) else [against]))
    terms = [first]
    if further > 0:
        terms.append(
            ConfidenceTerm(plural(further, "further source"), min(_FURTHER * further, _MOST_FURTHER))
        )
    if count:
        terms.append(ConfidenceTerm(plural(count, "contradiction"), -min(_AGAINST * count, _MOST_AGAINST)))
    return tuple(terms)


def confidence_of(fields: Mapping[str, Any]) -> float | None:
    """Return how sure a memory is, from 0 to 1; None where it says nothing of itself."""
    terms = terms_of(fields)
    return min(1.0, max(0.0, sum(term.value for term in terms))) if terms else None


def decayed(confidence: float, since: datetime, now: datetime, half_life_days: float) -> float:
    """Return a confidence that halves with each half-life since a moment; the same without a half-life."""
    days = max(0.0, (now - since).total_seconds() / _SECONDS_A_DAY)
    return confidence * 0.5 ** (days / half_life_days) if half_life_days > 0 else confidence


def is_doubtful(fields: Mapping[str, Any], confidence: float) -> bool:
    """Return whether a memory with a type of source is too unsure to be kept; a bootstrapped one never is."""
    least = SURE_IF_EXPLICIT if is_explicit(fields) else SURE
    return source_type(fields) not in ("", BOOTSTRAPPED) and confidence < least


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() != ""
