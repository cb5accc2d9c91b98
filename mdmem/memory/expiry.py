"""When a memory expires: the field `expires`, read leniently and written exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mdmem.errors import Usage
from mdmem.schema.formats import is_date, is_date_time
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import splice
from mdmem.text.field import set_field, unset_field

FIELD = "expires"


class Life(NamedTuple):
    """How long a change lets a memory live: `until` as it is written (None: for ever), and whether a ttl was given."""

    until: str | None
    given: bool


def life(ttl: int | None, default: int, now: datetime) -> Life:
    """The life that begins at `now`.

    Args:
        ttl: seconds; 0 for ever; None for the default.
        default: seconds; 0 for ever.
        now: with a time zone.

    Raises:
        Usage: the seconds are negative, no whole number, or end behind the year 9999.
    """
    seconds = default if ttl is None else ttl
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 0:
        raise Usage(problem=f"a ttl is a whole number of seconds, not {ttl!r}", remedy="give 0 for ever")
    if not seconds:
        return Life(None, ttl is not None)
    try:
        # Written in whole seconds, so a second that has begun counts: nothing lives too short.
        moment = now.astimezone(UTC) + timedelta(seconds=seconds, microseconds=999_999)
    except OverflowError:
        problem = f"a ttl of {seconds} seconds ends behind the year 9999"
        raise Usage(problem=problem, remedy="give 0 for ever") from None
    return Life(f"{moment:%Y-%m-%dT%H:%M:%SZ}", ttl is not None)


def written(document: Document) -> str | None:
    """The field `expires` as it stands in a memory; None where there is none, or none that says a moment."""
    value = document.fields.get(FIELD)
    return value if isinstance(value, str) and _moment(value) else None


def has_passed(expires: str | None, now: datetime) -> bool:
    """Whether the moment that `expires` says has come. What cannot be read never has: a schema reports it."""
    moment = _moment(expires) if expires else None
    return moment is not None and moment <= now


def living(document: Document, life: Life) -> Document:
    """`document` with its `expires` set, or removed, as `life` says; nothing else changes.

    Raises:
        Usage: it should expire, and is JSON that has no place for a field.
        EditRefused: its fields cannot be edited exactly.
    """
    if life.until is None:
        edits = unset_field(document, FIELD) if FIELD in document.fields else []
    elif is_object(document):
        edits = set_field(document, FIELD, life.until)
    else:
        raise Usage(
            problem=f"{document.path}: a JSON value that is no object has no place for `expires`",
            remedy="give a ttl of 0, or put the value into an object",
        )
    return parse_text(document.path, splice(document.text, edits, document.path), document.limits)


def is_object(document: Document) -> bool:
    """Whether a memory has fields, or could have: JSON that is no object cannot."""
    return not document.is_json or (document.tree is not None and document.tree.kind == "mapping")


def _moment(text: str) -> datetime | None:
    """A date (its first moment in UTC) or a date and time (in UTC where it names no offset), else None."""
    if not (is_date(text) or is_date_time(text)):
        return None
    # A leap second is the last second of its minute to Python, which knows none.
    text = text[:17] + "59" + text[19:] if text[17:19] == "60" else text
    moment = datetime.fromisoformat(text.upper())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
