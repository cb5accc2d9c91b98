"""The guide: which fields a schema names, what they mean and what they may be, for people who fill them in.

A schema may have come with somebody else's files: no more than a number of its parts is looked at, and those
that refer to each other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from mdmem.vault.schema.catalog import Catalog

_MOST_PARTS = 1_000
_COMBINED = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("then", "else")
_ITEMS = "items"


class FieldGuide(NamedTuple):
    """What a schema says of a field.

    Attributes:
        description: what it means; empty where the schema does not say.
        types: what it may be, as JSON Schema names it; empty for anything.
        choices: the only values that it may have; empty for any.
        examples: values that it may have, the default first.
        is_required: whether it has to be there.
    """

    name: str
    description: str
    types: tuple[str, ...]
    choices: tuple[Any, ...]
    examples: tuple[Any, ...]
    is_required: bool


class _Part(NamedTuple):
    """A schema inside of another one, and the name of that."""

    name: str
    schema: dict[str, Any]


def list_fields(catalog: Catalog, name: str, path: Sequence[str | int] = ()) -> dict[str, FieldGuide]:
    """Return the fields that a schema names, those of the value at `path`; a number there is an item."""
    parts = _find_parts(catalog, name, path)
    required = {key for part in parts for key in _as_list(part.schema.get("required"))}
    named: dict[str, list[_Part]] = {}
    for part in parts:
        for key, below in _as_mapping(part.schema.get("properties")).items():
            named.setdefault(key, []).extend(_wrap(part.name, below))
    return {
        key: _describe(key, list(_gather(catalog, below)), is_required=key in required)
        for key, below in named.items()
    }


def describe_item(catalog: Catalog, name: str, path: Sequence[str | int]) -> FieldGuide:
    """Return what a schema says of the items of the list at `path`."""
    return _describe("", _find_parts(catalog, name, (*path, 0)), is_required=False)


def _find_parts(catalog: Catalog, name: str, path: Sequence[str | int]) -> list[_Part]:
    parts = list(_gather(catalog, _wrap(name, catalog.parsed(name))))
    for key in path:
        parts = list(_gather(catalog, _step_into(parts, key)))
    return parts


def _wrap(name: str, schema: Any) -> Iterator[_Part]:
    if isinstance(schema, dict):
        yield _Part(name, schema)


def _step_into(parts: Iterable[_Part], key: str | int) -> list[_Part]:
    found: list[_Part] = []
    for name, schema in parts:
        below = schema.get(_ITEMS) if isinstance(key, int) else _as_mapping(schema.get("properties")).get(key)
        found += _wrap(name, below)
    return found


def _gather(catalog: Catalog, parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yield schemas and all others that speak of the same value."""
    waiting, seen = list(parts), set[int]()
    for part in waiting:
        if id(part.schema) in seen or len(seen) >= _MOST_PARTS:
            continue
        seen.add(id(part.schema))
        yield part
        name, schema = part
        reference = schema.get("$ref")
        if isinstance(reference, str):
            waiting += _follow(catalog, name, reference)
        for keyword in _COMBINED:
            waiting += (each for below in _as_list(schema.get(keyword)) for each in _wrap(name, below))
        for keyword in _CONDITIONAL:
            waiting += _wrap(name, schema.get(keyword))


def _follow(catalog: Catalog, name: str, reference: str) -> Iterator[_Part]:
    target, _, pointer = reference.partition("#")
    found = catalog.resolve(target) if target else name
    value: Any = catalog.parsed(found) if found is not None else None
    for key in pointer.split("/")[1:]:
        value = _as_mapping(value).get(unquote(key).replace("~1", "/").replace("~0", "~"))
    yield from _wrap(found or "", value)


def _describe(name: str, parts: Sequence[_Part], *, is_required: bool) -> FieldGuide:
    schemas = [part.schema for part in parts]
    described = (schema.get("description") or schema.get("title") for schema in schemas)
    types = [each for schema in schemas for each in _as_list(schema.get("type"), one=True)]
    choices = [each for schema in schemas for each in _as_list(schema.get("enum"))]
    choices += [schema["const"] for schema in schemas if "const" in schema]
    if "boolean" in types and not choices:
        choices = [True, False]
    examples = [schema["default"] for schema in schemas if "default" in schema]
    examples += [each for schema in schemas for each in _as_list(schema.get("examples"))]
    return FieldGuide(
        name=name,
        description=next((text for text in described if isinstance(text, str)), ""),
        types=tuple(dict.fromkeys(each for each in types if isinstance(each, str))),
        choices=tuple(choices),
        examples=tuple(examples),
        is_required=is_required,
    )


def _as_list(value: Any, *, one: bool = False) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value] if one and value is not None else []


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
