"""The judge: what usual schemas do not accept, told without jsonschema.

jsonschema takes longer to import than most commands take to run, and most schemas have few keywords: those
are judged here. An unusual schema is left to jsonschema. Where both can judge, a property test holds them to
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from mdmem.schema import body, pattern
from mdmem.schema.catalog import Catalog, Schema
from mdmem.schema.formats import FORMATS
from mdmem.schema.violation import Violation
from mdmem.text.tree import KeyPath


def violations(catalog: Catalog, name: str, value: Any) -> Iterator[Violation]:
    """What of a value a schema does not accept that is a usual one."""
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
            if keyword in _FITS:
                if not _FITS[keyword](wanted, value):
                    yield Violation(keyword, wanted, value, schema, path)
            elif keyword in _FOLLOWED:
                yield from _FOLLOWED[keyword](schemas, schema, wanted, value, path)


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


TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
"""Whether a value is of a type, by the name of the type."""


def _is_of_type(wanted: str | list[str], value: Any) -> bool:
    return any(TYPES[name](value) for name in ([wanted] if isinstance(wanted, str) else wanted))


def _is_same(wanted: Any, value: Any) -> bool:
    # To Python, True is 1.
    return isinstance(wanted, bool) == isinstance(value, bool) and bool(wanted == value)


_FITS: dict[str, Callable[[Any, Any], bool]] = {
    "type": _is_of_type,
    "const": _is_same,
    "enum": lambda wanted, value: any(_is_same(each, value) for each in wanted),
    "format": lambda wanted, value: not isinstance(value, str) or FORMATS[wanted].accepts(value),
    "pattern": lambda wanted, value: not isinstance(value, str) or pattern.matches(wanted, value),
    "minLength": lambda wanted, value: not isinstance(value, str) or len(value) >= wanted,
    "maxLength": lambda wanted, value: not isinstance(value, str) or len(value) <= wanted,
    "minimum": lambda wanted, value: not is_number(value) or value >= wanted,
    "maximum": lambda wanted, value: not is_number(value) or value <= wanted,
    "exclusiveMinimum": lambda wanted, value: not is_number(value) or value > wanted,
    "exclusiveMaximum": lambda wanted, value: not is_number(value) or value < wanted,
    "minItems": lambda wanted, value: not isinstance(value, list) or len(value) >= wanted,
    "maxItems": lambda wanted, value: not isinstance(value, list) or len(value) <= wanted,
    "minProperties": lambda wanted, value: not isinstance(value, dict) or len(value) >= wanted,
    "maxProperties": lambda wanted, value: not isinstance(value, dict) or len(value) <= wanted,
}


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


def _all_of(
    schemas: _Schemas, _schema: Schema, wanted: list[Schema], value: Any, path: KeyPath
) -> Iterator[Violation]:
    for each in wanted:
        yield from _inside(schemas, each, value, path)


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


def _additional(
    schemas: _Schemas, schema: dict[str, Any], wanted: Schema, value: Any, path: KeyPath
) -> Iterator[Violation]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key in schema.get("properties", ()):
                continue
            if wanted is False:
                yield Violation("additionalProperties", wanted, value, schema, (*path, key))
            else:
                yield from _inside(schemas, wanted, each, (*path, key))


def _required(
    _schemas: _Schemas, schema: dict[str, Any], wanted: list[str], value: Any, path: KeyPath
) -> Iterator[Violation]:
    if isinstance(value, dict):
        for name in wanted:
            if name not in value:
                yield Violation("required", name, value, schema, path)


def _body(
    _schemas: _Schemas, schema: dict[str, Any], wanted: dict[str, Any], value: Any, path: KeyPath
) -> Iterator[Violation]:
    if isinstance(value, body.Fields | body.Body):
        for shortfall in body.shortfalls(value.document, wanted):
            yield Violation(body.KEYWORD, shortfall, value, schema, path)


_FOLLOWED: dict[str, Callable[[_Schemas, Any, Any, Any, KeyPath], Iterator[Violation]]] = {
    "$ref": _reference,
    "additionalProperties": _additional,
    "allOf": _all_of,
    "anyOf": _any_of,
    "items": _items,
    "properties": _properties,
    "required": _required,
    body.KEYWORD: _body,
}
