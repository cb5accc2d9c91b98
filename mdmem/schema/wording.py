"""What a schema accepts, and what stands there instead, in words that follow "must be" and "not"."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from mdmem.schema.formats import FORMATS

_MOST_CHARACTERS = 60
_MOST_CHOICES = 20
_MOST_BITS = 128  # of a number that is written out; Python refuses to write very long ones
_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}


def printable(text: str) -> str:
    """`text` with escapes for what cannot be shown: control characters, lone surrogates, line ends."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(value: Any) -> str:
    """A value as a message shows it: short, on one line."""
    if isinstance(value, str):
        cut = value if len(value) <= _MOST_CHARACTERS else value[:_MOST_CHARACTERS] + "…"
        return f'"{printable(cut)}"'
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "a mapping"
    if value is None:
        return "empty"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a very large number"
    return str(value).lower() if isinstance(value, bool) else str(value)


def example(values: Any) -> str:
    """The first of a schema's `examples` as it would be written, or nothing."""
    if not isinstance(values, list) or not values:
        return ""
    written = printable(json.dumps(values[0], ensure_ascii=False))
    return f", for example {written}" if len(written) <= _MOST_CHARACTERS else ""


def choices(values: Iterable[Any]) -> str:
    """The values of an `enum`."""
    every = [shown(value) for value in values]
    more = f" and {len(every) - _MOST_CHOICES} more" if len(every) > _MOST_CHOICES else ""
    return ", ".join(every[:_MOST_CHOICES]) + more


def either(phrases: Iterable[str]) -> str:
    """The phrases, each once, with `or` between them."""
    return " or ".join(dict.fromkeys(phrases))


def accepted(keyword: str, value: Any, schema: dict[str, Any]) -> str:
    """What `keyword` with this value, in this schema, accepts."""
    say = _PHRASES.get(keyword)
    return say(value, schema) if say else f"as the schema's `{keyword}` says"


def _type(value: Any, schema: dict[str, Any]) -> str:
    names = [value] if isinstance(value, str) else value
    if names == ["string"] and schema.get("format") in FORMATS:
        return FORMATS[schema["format"]].means
    return either(_TYPES.get(name, name) for name in names)


def _range(_: Any, schema: dict[str, Any]) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f"a number from {shown(schema['minimum'])} to {shown(schema['maximum'])}"
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    return "a number of " + " and ".join(f"{w} {shown(schema[k])}" for k, w in words.items() if k in schema)


def _size(noun: str, least: str, most: str) -> Callable[[Any, dict[str, Any]], str]:
    def say(_: Any, schema: dict[str, Any]) -> str:
        bounds = [
            f"{word} {schema[k]}" for k, word in ((least, "at least"), (most, "at most")) if k in schema
        ]
        return f"{noun.partition(' of ')[0]} of {' and '.join(bounds)} {noun.partition(' of ')[2]}"

    return say


_characters = _size("a string of characters", "minLength", "maxLength")
_items = _size("a list of items", "minItems", "maxItems")
_fields = _size("a mapping of fields", "minProperties", "maxProperties")
_fitting = _size("a list of items that fit `contains`", "minContains", "maxContains")

_PHRASES: dict[str, Callable[[Any, dict[str, Any]], str]] = {
    "type": _type,
    "enum": lambda value, _: f"one of {choices(value)}" if len(value) != 1 else shown(value[0]),
    "const": lambda value, _: shown(value),
    "format": lambda value, _: FORMATS[value].means,
    "pattern": lambda value, _: f"a string that matches {printable(value)}",
    "minimum": _range,
    "maximum": _range,
    "exclusiveMinimum": _range,
    "exclusiveMaximum": _range,
    "multipleOf": lambda value, _: f"a multiple of {shown(value)}",
    "minLength": _characters,
    "maxLength": _characters,
    "minItems": _items,
    "maxItems": _items,
    "minProperties": _fields,
    "maxProperties": _fields,
    "minContains": _fitting,
    "maxContains": _fitting,
    "uniqueItems": lambda _, __: "a list without repeated items",
    "contains": lambda _, __: "a list with an item that fits the schema's `contains`",
    "items": lambda _, schema: f"a list of at most {len(schema.get('prefixItems', ()))} items",
    "unevaluatedItems": lambda _, __: "a list of no more items than the schema describes",
    "not": lambda _, __: "something else: the schema rules this value out",
    "anyOf": lambda _, __: "one of the alternatives in the schema",
    "oneOf": lambda _, __: "one alternative of the schema only: several fit",
}
