"""One preference: what its file says, and what becomes of it when a value is given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.errors import FieldNotFound
from mdmem.memory import moment
from mdmem.memory.strength import LEAST_VISIBLE, confirmed, decayed, rounded
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import TextEdit, fitted, splice
from mdmem.text.regex import regex
from mdmem.vault.paths import decode_id, encode_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

FOLDER = "preferences"
# Who writes a preference by hand, without these, means it.
_BY_HAND = 1.0
_SHAPE = regex(rf"{FOLDER}/([^/]+)/([^/]+)\.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A preference, as it is now.

    Attributes:
        category, key: its name; one file has one.
        value: any JSON value.
        strength: how much it matters, 0 to 1, as it has faded until now.
        stored_strength: its strength when it was last updated.
        confidence: how sure it is, 0 to 1.
        created, updated: UTC; None where the file does not say.
        why: the reason, which is the body of the file.
        path: the file.
        hidden: whether it has faded so far that it no longer counts.
    """

    category: str
    key: str
    value: Any
    strength: float
    stored_strength: float
    confidence: float
    created: datetime | None
    updated: datetime | None
    why: str
    path: str
    hidden: bool

    @property
    def name(self) -> str:
        """The category and the key."""
        return f"{self.category}/{self.key}"

    def as_dict(self) -> dict[str, Any]:
        """The preference as a JSON object."""
        return {
            "category": self.category,
            "key": self.key,
            "value": self.value,
            "strength": self.strength,
            "stored_strength": self.stored_strength,
            "confidence": self.confidence,
            "created": moment.stamp(self.created) if self.created else None,
            "updated": moment.stamp(self.updated) if self.updated else None,
            "why": self.why,
            "path": self.path,
            "hidden": self.hidden,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value that somebody wants."""

    category: str
    key: str
    value: Any
    strength: float
    confidence: float
    why: str | None = None

    @property
    def path(self) -> str:
        """The file of this preference."""
        return path_of(self.category, self.key)


def path_of(category: str, key: str) -> str:
    """The file of a preference.

    Raises:
        PathRefused: a name that no file can carry.
    """
    return f"{FOLDER}/{encode_id(category)}/{encode_id(key)}.md"


def name_of(path: str) -> tuple[str, str] | None:
    """The category and key whose file `path` is; None when it is the file of none."""
    shape = _SHAPE.fullmatch(path)
    if not shape:
        return None
    category, key = decode_id(shape[1]), decode_id(shape[2])
    return (category, key) if path_of(category, key) == path else None


def read(document: Document, now: datetime) -> Preference:
    """The preference that a file holds.

    Strength and confidence are 1 where the file gives no number for them, and without a time (`updated`,
    else `created`) it does not fade: that is how a file written by hand is meant.

    Raises:
        FieldNotFound: it has no value, or its fields cannot be read.
    """
    fields = document.fields
    if "value" not in fields:
        raise FieldNotFound(path=document.path, key="value", near=tuple(fields))
    category, key = name_of(document.path) or ("", "")
    created = moment.read(fields.get("created"))
    updated = moment.read(fields.get("updated")) or created
    stored = _share(fields.get("strength"))
    strength = decayed(stored, updated, now)
    return Preference(
        category=category,
        key=key,
        value=fields["value"],
        strength=strength,
        stored_strength=stored,
        confidence=_share(fields.get("confidence")),
        created=created,
        updated=updated,
        why=document.body.strip(),
        path=document.path,
        hidden=strength < LEAST_VISIBLE,
    )


def _share(written: Any) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float) or math.isnan(written):
        return _BY_HAND
    return float(min(1, max(0, written)))


def settled(document: Document | None, given: Given, policy: str, now: datetime) -> Document | None:
    """The file once `given` has been taken in by `policy`; None where the preference stays as it is.

    Args:
        document: the file that there is.
        given: the value that is wanted.
        policy: one of `mdmem.vault.config.POLICIES`.
        now: when it is said, and strengths are compared.

    Raises:
        EditRefused: the fields of the file cannot be edited.
        Usage: the value is no JSON value.
    """
    updated = {"updated": moment.stamp(now)}
    if document is None:
        new = {
            "type": "preference",
            "category": given.category,
            "key": given.key,
            **_fields(given),
            "created": moment.stamp(now),
            **updated,
        }
        return _written(parse_text(given.path, ""), new, given.why)
    if "value" not in document.fields:
        return _written(document, {**_fields(given), **updated}, given.why)
    outcome = _outcome(read(document, now), given, policy)
    return _written(document, {**outcome, **updated}, given.why) if outcome else None


def _fields(given: Given) -> dict[str, Any]:
    strength, confidence = rounded(given.strength), rounded(given.confidence)
    return {"value": given.value, "strength": strength, "confidence": confidence}


def _outcome(stored: Preference, given: Given, policy: str) -> dict[str, Any]:
    """The fields that change; none where what is stored stays."""
    from mdmem.text.field import same  # noqa: PLC0415 - start-up

    if same(stored.value, given.value):
        confidence = rounded(max(stored.confidence, given.confidence))
        return {"strength": confirmed(stored.strength, given.strength), "confidence": confidence}
    strength = rounded(given.strength)
    if policy == "merge":
        value = _merged(stored.value, given.value)
        return {
            "value": (given.value if strength >= stored.strength else stored.value)
            if value is None
            else value,
            "strength": rounded((stored.strength + given.strength) / 2),
            "confidence": rounded((stored.confidence + given.confidence) / 2),
        }
    return _fields(given) if policy == "keep-latest" or strength > stored.strength else {}


def _merged(old: Any, new: Any) -> Any:
    """Two lists united, or two mappings of which the new one wins key by key; None for anything else."""
    from mdmem.text.field import same  # noqa: PLC0415 - start-up

    if isinstance(old, list) and isinstance(new, list):
        united = list(old)
        for item in new:
            if not any(same(item, present) for present in united):
                united.append(item)
        return united
    return {**old, **new} if isinstance(old, dict) and isinstance(new, dict) else None


def _written(document: Document, fields: Mapping[str, Any], why: str | None) -> Document:
    """`document` with these fields, and with another body where there is a `why`."""
    from mdmem.text.field import set_field  # noqa: PLC0415 - start-up

    for name, value in fields.items():
        edits = set_field(document, (name,), value)
        document = parse_text(document.path, splice(document.text, edits), document.limits)
    if why is None:
        return document
    edits = [_body(document, fitted(document, why).strip())]
    return parse_text(document.path, splice(document.text, edits), document.limits)


def _body(document: Document, why: str) -> TextEdit:
    """The edit that puts `why` in the place of the body; blank lines around it stay."""
    start, body, newline = document.body_span.start, document.body, document.lines.newline
    written = body.strip()
    if not written:
        return TextEdit(start, len(document.text), f"{newline}{why}{newline}" if why else body)
    at = start + body.index(written)
    return TextEdit(at, at + len(written), why)
