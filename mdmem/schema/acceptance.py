"""Acceptance: what the built-in schemas surely accept, told without jsonschema.

jsonschema takes longer to import than most commands take to run, and nearly every memory is as it should be.
So it is asked only where that is not sure: it says what is wrong, and it judges a vault's own schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from mdmem.schema.catalog import Catalog, Schema
from mdmem.schema.formats import FORMATS

_SILENT = frozenset(("$defs", "title", "description", "examples"))


def is_sure(catalog: Catalog, name: str, value: Any) -> bool:
    """Whether a built-in schema, with the built-in ones that it refers to, surely accepts a value.

    False means that the validator has to look: it may accept the value all the same.
    """
    return _at(catalog, name, "", value)


def _at(catalog: Catalog, name: str, pointer: str, value: Any) -> bool:
    """Whether the place in a schema that a JSON pointer names accepts a value."""
    place: Any = catalog.contents(name) if catalog.is_builtin(name) else None
    for key in pointer.split("/")[1:]:
        place = place.get(key) if isinstance(place, dict) else None
    return place is not None and _accepts(catalog, name, place, value)


def _accepts(catalog: Catalog, name: str, schema: Schema, value: Any) -> bool:
    if isinstance(schema, bool):
        return schema
    return all(
        keyword in _JUDGES and _JUDGES[keyword](catalog, name, wanted, value)
        for keyword, wanted in schema.items()
        if keyword not in _SILENT
    )


# -- the keywords: each with the schema that it stands in, its own value, and the value to judge -------------


def _reference(catalog: Catalog, name: str, wanted: str, value: Any) -> bool:
    named, _, pointer = wanted.partition("#")
    target = catalog.resolve(named) if named else name
    return target is not None and _at(catalog, target, pointer, value)


def _any_of(catalog: Catalog, name: str, wanted: list[Schema], value: Any) -> bool:
    return any(_accepts(catalog, name, each, value) for each in wanted)


def _items(catalog: Catalog, name: str, wanted: Schema, value: Any) -> bool:
    return not isinstance(value, list) or all(_accepts(catalog, name, wanted, each) for each in value)


def _properties(catalog: Catalog, name: str, wanted: dict[str, Schema], value: Any) -> bool:
    return not isinstance(value, dict) or all(
        _accepts(catalog, name, wanted[key], each) for key, each in value.items() if key in wanted
    )


def _required(_catalog: Catalog, _name: str, wanted: list[str], value: Any) -> bool:
    return not isinstance(value, dict) or all(key in value for key in wanted)


def _type(_catalog: Catalog, _name: str, wanted: str | list[str], value: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted
    return any(each in _TYPES and _TYPES[each](value) for each in names)


def _format(_catalog: Catalog, _name: str, wanted: str, value: Any) -> bool:
    return isinstance(value, str) and wanted in FORMATS and FORMATS[wanted].accepts(value)


def _minimum(_catalog: Catalog, _name: str, wanted: float, value: Any) -> bool:
    return not isinstance(value, int | float) or value >= wanted


def _maximum(_catalog: Catalog, _name: str, wanted: float, value: Any) -> bool:
    return not isinstance(value, int | float) or value <= wanted


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_JUDGES: dict[str, Callable[[Catalog, str, Any, Any], bool]] = {
    "$ref": _reference,
    "anyOf": _any_of,
    "format": _format,
    "items": _items,
    "maximum": _maximum,
    "minimum": _minimum,
    "properties": _properties,
    "required": _required,
    "type": _type,
}
# Numbers as JSON has them; whether 1.0 is an integer, say, is left to the validator.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": lambda value: _is_integer(value) or (isinstance(value, float) and isfinite(value)),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
