"""The judge: what the built-in schemas do not accept, told without jsonschema.

jsonschema takes longer to import than most commands take to run. The built-in schemas have few keywords, and
those are judged here. A vault's own schemas may have any, and are left to jsonschema: where both can judge,
a property test holds them to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from mdmem.schema.catalog import Catalog, Schema
from mdmem.schema.formats import FORMATS
from mdmem.schema.violation import Violation
from mdmem.text.tree import KeyPath


def violations(catalog: Catalog, name: str, value: Any) -> Iterator[Violation]:
    """What of a value a schema does not accept, where it and all that it refers to are built-in ones."""
    return _at(_Schemas(catalog, name), "", value, ())


class _Schemas(NamedTuple):
    """The schemas, seen from the one of this name: a `$ref` without a name means that one."""

    catalog: Catalog
    name: str


def _at(schemas: _Schemas, pointer: str, value: Any, path: KeyPath) -> Iterator[Violation]:
    """As `violations`, by the part of a schema that a JSON pointer names."""
    place: Any = schemas.catalog.contents(schemas.name)
    for key in pointer.split("/")[1:]:
        place = place[key]
    return _inside(schemas, place, value, path)


def _inside(schemas: _Schemas, schema: Schema, value: Any, path: KeyPath) -> Iterator[Violation]:
    if isinstance(schema, dict):
        for keyword, wanted in schema.items():
            if keyword in FITS:
                if not FITS[keyword](wanted, value):
                    yield Violation(keyword, wanted, value, schema, path)
            elif keyword in FOLLOWED:
                yield from FOLLOWED[keyword](schemas, schema, wanted, value, path)


# -- keywords that judge a value as it is -------------------------------------------------------------------


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def is_number(value: Any) -> bool:
    """Whether a value is a number to a schema."""
    # YAML can write infinity and not-a-number, JSON cannot: they are none.
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and isfinite(value))


_TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def _is_of_type(wanted: str | list[str], value: Any) -> bool:
    return any(_TYPES[name](value) for name in ([wanted] if isinstance(wanted, str) else wanted))


FITS: dict[str, Callable[[Any, Any], bool]] = {
    "format": lambda wanted, value: not isinstance(value, str) or FORMATS[wanted].accepts(value),
    "maximum": lambda wanted, value: not is_number(value) or value <= wanted,
    "minimum": lambda wanted, value: not is_number(value) or value >= wanted,
    "type": _is_of_type,
}
"""Whether a value fits the keyword, by the keyword."""


# -- keywords that lead to other schemas, or to other values ------------------------------------------------


def _reference(
    schemas: _Schemas, _schema: Schema, wanted: str, value: Any, path: KeyPath
) -> Iterator[Violation]:
    named, _, pointer = wanted.partition("#")
    target = schemas.catalog.resolve(named) if named else schemas.name
    return _at(_Schemas(schemas.catalog, str(target)), pointer, value, path)


def _any_of(
    schemas: _Schemas, schema: dict[str, Any], wanted: list[Schema], value: Any, path: KeyPath
) -> Iterator[Violation]:
    branches = tuple(tuple(_inside(schemas, each, value, path)) for each in wanted)
    if all(branches):
        yield Violation("anyOf", wanted, value, schema, path, branches)


def _items(
    schemas: _Schemas, _schema: Schema, wanted: Schema, value: Any, path: KeyPath
) -> Iterator[Violation]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _inside(schemas, wanted, each, (*path, number))


def _properties(
    schemas: _Schemas, _schema: Schema, wanted: dict[str, Schema], value: Any, path: KeyPath
) -> Iterator[Violation]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key in wanted:
                yield from _inside(schemas, wanted[key], each, (*path, key))


def _required(
    _schemas: _Schemas, schema: dict[str, Any], wanted: list[str], value: Any, path: KeyPath
) -> Iterator[Violation]:
    if isinstance(value, dict):
        for name in wanted:
            if name not in value:
                yield Violation("required", name, value, schema, path)


FOLLOWED: dict[str, Callable[[_Schemas, Any, Any, Any, KeyPath], Iterator[Violation]]] = {
    "$ref": _reference,
    "anyOf": _any_of,
    "items": _items,
    "properties": _properties,
    "required": _required,
}
"""What is violated where the keyword leads, by the keyword."""
