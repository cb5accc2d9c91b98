"""Moments as memories write them: RFC 3339 in UTC, to the second."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_NEVER = 1  # the year of Go's zero time, which its programs write for "not set"


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A moment as it is written: `2024-01-31T12:30:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def read(written: Any) -> datetime | None:
    """The moment that an ISO 8601 date or time says, in UTC (which one without a zone means); else None."""
    if not isinstance(written, str):
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    if moment.year == _NEVER:
        return None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        return None
