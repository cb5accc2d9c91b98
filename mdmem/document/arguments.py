"""Values that callers give, checked where they go into a file or a question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, TypeVar

from mdmem.errors import Usage

T = TypeVar("T")
_DEEPEST = 200
_MOST_NAMED = 5  # ids that an error names
_LARGEST = 10**3500  # longer integers cannot be read back
_FLATTEN = "this is not a JSON value: it is nested too deeply, or holds itself"


def texts_of(values: T, name: str) -> T:
    """Return a collection of texts; one text is a TypeError, since nobody means its letters."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{name} is a collection of texts, not one: write [{values!r}]")
    return values


def complete_id(kind: str, given: str, known: Iterable[str]) -> str:
    """Return the one id that begins as `given` does; `given` itself where none does, or it is one.

    Raises:
        Usage: several begin so.
    """
    fitting = sorted({each for each in known if given and each.startswith(given)})
    if given in fitting or not fitting:
        return given
    if len(fitting) > 1:
        problem = f"{len(fitting):,} {kind}s begin with {given!r}: {', '.join(fitting[:_MOST_NAMED])}"
        more = ", …" if len(fitting) > _MOST_NAMED else ""
        raise Usage(problem=problem + more, remedy="give more of it")
    return fitting[0]


def require_text(**given: object) -> None:
    """Raise TypeError unless every value is a text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be str, not {type(value).__name__}")


def check_natural(**given: int) -> None:
    """Raise Usage where a number is negative."""
    for name, value in given.items():
        if value < 0:
            raise Usage(problem=f"the {name} is 0 or more, not {value}")


def json_value(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON has it; dates and times become texts in ISO 8601, with `Z` for UTC.

    Raises:
        Usage: not a JSON value: NaN, an infinity, a key that is not a text, or an object of another type.
    """
    if depth > _DEEPEST:
        raise Usage(problem=_FLATTEN, remedy="flatten it")
    if isinstance(value, list):
        return [json_value(part, depth + 1) for part in value]
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise Usage(problem=f"this is not a JSON value: the key {name!r} is not a text")
        return {name: json_value(part, depth + 1) for name, part in value.items()}
    return _json_scalar(value)


def _json_scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # an enumeration's own says its name
    if isinstance(value, int) and abs(value) < _LARGEST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, int | float):
        shown = "a number of more than 3,500 digits" if isinstance(value, int) else value
        raise Usage(problem=f"{shown} is not a JSON value", remedy="use null or a text")
    if isinstance(value, date | time):
        is_utc = isinstance(value, datetime | time) and value.utcoffset() == timedelta()
        return value.isoformat().replace("+00:00", "Z") if is_utc else value.isoformat()
    remedy = "give a text, number, boolean, null, date, list or mapping"
    raise Usage(problem=f"an object of the type {type(value).__name__} is not a JSON value", remedy=remedy)
