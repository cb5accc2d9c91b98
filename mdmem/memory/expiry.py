"""When a memory expires: the field `expires`, read leniently and written exactly."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from mdmem.errors import Usage
from mdmem.memory import moment
from mdmem.text.document import Document

FIELD = "expires"


class Life(NamedTuple):
    """How long a change lets a memory live.

    Attributes:
        until: the moment as it is written; None for ever.
        given: whether the caller named a ttl; otherwise it is the default.
    """

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
    if type(seconds) is not int or seconds < 0:
        raise Usage(problem=f"a ttl is a whole number of seconds, not {ttl!r}", remedy="give 0 for ever")
    if not seconds:
        return Life(None, ttl is not None)
    try:
        # Written in whole seconds, so a second that has begun counts: nothing lives too short.
        end = now + timedelta(seconds=seconds, microseconds=999_999)
    except OverflowError:
        problem = f"a ttl of {seconds} seconds ends behind the year 9999"
        raise Usage(problem=problem, remedy="give 0 for ever") from None
    return Life(moment.stamp(end), ttl is not None)


def written(document: Document) -> str | None:
    """The field `expires` as it stands in a memory; None where there is none, or none that says a moment."""
    value = document.fields.get(FIELD)
    return value if moment.read(value) else None


def has_passed(expires: str | None, now: datetime) -> bool:
    """Whether the moment that `expires` says has come. What cannot be read never has: a schema reports it."""
    end = moment.read(expires)
    return end is not None and end <= now


def living(document: Document, life: Life) -> Document:
    """`document` with its `expires` set, or removed, as `life` says; nothing else changes.

    Raises:
        Usage: it should expire, and is JSON that has no place for a field.
        EditRefused: its fields cannot be edited exactly.
    """
    from mdmem.memory.content import is_object, spliced  # noqa: PLC0415 - start-up
    from mdmem.text.field import set_field, unset_field  # noqa: PLC0415 - start-up

    if life.until is None:
        edits = unset_field(document, FIELD) if FIELD in document.fields else []
    elif is_object(document):
        edits = set_field(document, FIELD, life.until)
    else:
        raise Usage(
            problem=f"{document.path}: a JSON value that is no object has no place for `expires`",
            remedy="give a ttl of 0, or put the value into an object",
        )
    return spliced(document, edits)
