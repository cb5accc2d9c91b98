"""Moments: the dates and times of ISO 8601 in memories, messages and logs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

DAY = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
"""The pattern of a day: `2024-01-31`."""

_NEVER = 1  # the year of Go's zero time, which its programs write for "not set"


def read_date(written: Any) -> datetime | None:
    """Read a date or time, with the zone that it names; None for anything else."""
    try:
        return datetime.fromisoformat(written)
    except (TypeError, ValueError):
        return None


def moment_of(written: Any) -> datetime | None:
    """Read a date or time as a moment in UTC, which a missing zone means as well; None for anything else."""
    moment = read_date(written)
    if moment is None or moment.year == _NEVER:
        return None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        return None


def stamp(moment: datetime, timespec: str = "seconds") -> str:
    """Write a moment in UTC: `2024-01-31T12:30:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def stamp_of(mtime_ns: int) -> str:
    """Write the time of change of a file, in nanoseconds; return an empty text where it is no date."""
    try:
        return stamp(datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC))
    except (OverflowError, ValueError, OSError):
        return ""
