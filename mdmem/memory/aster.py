"""Preferences as aster keeps them: one JSON file for each user, an array of objects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mdmem.errors import PathRefused, Usage
from mdmem.memory import moment
from mdmem.memory.preference import Given

_KNOWN = ("id", "userid", "category", "key", "value", "strength", "confidence", "createdat", "updatedat")
# Law 7: how often something was read is no memory. Whose preferences these are, the namespace says.
_DROPPED = ("accesscount", "userid")
_REMEDY = "give the text of one of aster's preference files, as it stands"


def preferences(text: str, now: datetime, *, strength: float, confidence: float) -> list[Given]:
    """The preferences of one of aster's files, in its order.

    Field names may be written as Go does (`UpdatedAt`) or in snake case. The id goes to `source`; the
    metadata, and fields that aster has not, go to `metadata`.

    Args:
        text: the JSON text; `null`, which aster writes for a user without any, is an empty list.
        now: when a preference without a time was updated.
        strength, confidence: of a preference that does not say.

    Raises:
        Usage: it is not such a file; it names the entry.
    """
    try:
        entries = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise Usage(problem=f"this is not JSON: {error}", remedy=_REMEDY) from None
    if not isinstance(entries, list | None):
        raise Usage(problem="this is not a list of preferences", remedy=_REMEDY)
    return [_given(number, entry, now, strength, confidence) for number, entry in enumerate(entries or (), 1)]


def _given(number: int, entry: Any, now: datetime, strength: float, confidence: float) -> Given:
    if not isinstance(entry, dict):
        raise Usage(problem=f"entry {number} is not an object", remedy=_REMEDY)
    fields = {name.replace("_", "").lower(): value for name, value in entry.items()}
    for name in ("category", "key"):
        if not isinstance(fields.get(name), str):
            raise Usage(problem=f"entry {number}: {name} is a text, not {fields.get(name)!r}", remedy=_REMEDY)
    what = f"entry {number} ({fields['category']}/{fields['key']})"
    if "value" not in fields:
        raise Usage(problem=f"{what} has no value", remedy=_REMEDY)
    created, updated = (_moment(what, name, fields.get(name)) for name in ("createdat", "updatedat"))
    given = Given(
        category=fields["category"],
        key=fields["key"],
        value=fields["value"],
        strength=_share(what, "strength", fields.get("strength"), strength),
        confidence=_share(what, "confidence", fields.get("confidence"), confidence),
        created=created or updated,
        updated=updated or created or now,
        is_said_now=False,
        fields=_rest(what, entry, fields),
    )
    try:
        _ = given.path
    except PathRefused as error:
        raise Usage(problem=f"{what}: {error.message}", remedy=error.hint) from None
    return given


def _share(what: str, name: str, value: Any, default: float) -> float:
    if value is None:
        return default
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or math.isnan(value) or not 0 <= value <= 1:
        raise Usage(problem=f"{what}: {name} is a number from 0 to 1, not {value!r}", remedy=_REMEDY)
    return float(value)


def _moment(what: str, name: str, value: Any) -> datetime | None:
    if value is None or (isinstance(value, str) and (not value or value.startswith("0001-"))):
        return None
    found = moment.read(value)
    if found is None:
        problem = f"{what}: {name} is a time such as 2024-01-31T12:30:00Z, not {value!r}"
        raise Usage(problem=problem, remedy=_REMEDY)
    return found


def _rest(what: str, entry: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """What there is no field of ours for: the id as the source, all else as metadata."""
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Usage(problem=f"{what}: metadata is an object, not {metadata!r}", remedy=_REMEDY)
    known = {*_KNOWN, *_DROPPED, "metadata"}
    others = {name: value for name, value in entry.items() if name.replace("_", "").lower() not in known}
    identifier = fields.get("id")
    kept = {**others, **metadata}
    rest: dict[str, Any] = {"metadata": kept} if kept else {}
    if isinstance(identifier, str) and identifier:
        rest["source"] = {"type": "aster", "ids": [identifier]}
    return rest
