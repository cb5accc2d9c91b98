"""Usual schemas: those that the judge can judge by.

They have keywords that the judge knows, each with a value that it may have, and refer to schemas of that kind
in the usual ways. That is told without jsonschema. An unusual schema is no wrong one: it is left to
jsonschema, which also says what is wrong with a wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mdmem.schema import body, pattern
from mdmem.schema.catalog import DIALECT, PREFIX, Catalog
from mdmem.schema.formats import FORMATS
from mdmem.schema.judge import TYPES, is_number
from mdmem.text.regex import regex

_LONGEST = 20_000  # characters
_DEEPEST = 16
_ADDRESS = regex(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~/-]+")
_SURROGATE = regex(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_POINTER = regex(r"(?:/[A-Za-z0-9_$-]+)*")


def is_usual(catalog: Catalog, name: str) -> bool:
    """Whether the schema of this name, and each that it refers to, is a usual one."""
    return _Reader(catalog).reads(name, "")


class _Reader:
    """Reads schemas as far as they refer to each other."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._texts: dict[str, bool] = {}
        self._places: dict[tuple[str, str], bool] = {}

    def reads(self, name: str, pointer: str) -> bool:
        """Whether what a JSON pointer names in a schema is a usual schema."""
        here = name, pointer
        if here not in self._places:
            self._places[here] = False  # while it is read: who refers to it goes round in a circle
            place = self._contents(name)
            for key in pointer.split("/")[1:]:
                place = place.get(key) if isinstance(place, dict) else None
            self._places[here] = self._is_schema(place, name, 0)
        return self._places[here]

    def _contents(self, name: str) -> Any:
        if name not in self._texts:
            self._texts[name] = self._catalog.is_builtin(name) or _is_plain(self._catalog.text(name))
        return self._catalog.contents(name) if self._texts[name] else None

    def _is_schema(self, value: Any, name: str, depth: int) -> bool:
        if not isinstance(value, dict) or depth > _DEEPEST:
            return value is True

        def is_inside(inner: Any) -> bool:
            return self._is_schema(inner, name, depth + 1)

        for keyword, wanted in value.items():
            if keyword in _MAPPINGS:
                fits = isinstance(wanted, dict) and all(map(is_inside, wanted.values()))
            elif keyword in _LISTS:
                fits = isinstance(wanted, list) and bool(wanted) and all(map(is_inside, wanted))
            elif keyword in _ONE:
                fits = is_inside(wanted) or (keyword == "additionalProperties" and wanted is False)
            elif keyword == "$ref":
                fits = isinstance(wanted, str) and self._leads(wanted, name)
            else:
                fits = keyword in _VALUES and _VALUES[keyword](wanted)
            if not fits:
                return False
        return True

    def _leads(self, reference: str, name: str) -> bool:
        named, _, pointer = reference.partition("#")
        bare = named.removeprefix(PREFIX).removesuffix(".json")
        target = bare if named else name
        return (
            target in self._catalog.names
            and named in ("", bare, f"{bare}.json", f"{PREFIX}{bare}")
            and _POINTER.fullmatch(pointer) is not None
            and self.reads(target, pointer)
        )


def _is_plain(text: str) -> bool:
    """Whether a text is JSON without oddities, of an object that can be a schema as far as its top says."""
    if len(text) > _LONGEST or _SURROGATE.search(text):
        return False
    try:
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    dialect, address = value.get("$schema", DIALECT), value.get("$id", PREFIX + "x")
    return dialect == DIALECT and isinstance(address, str) and _ADDRESS.fullmatch(address) is not None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands there twice")
    return members


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


# -- the values that keywords may have ----------------------------------------------------------------------


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | str)


def _are_names(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return False
    return len({*value}) == len(value)


def _is_type(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return _are_names(names) and bool(names) and all(name in TYPES for name in names)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_MAPPINGS = ("properties", "$defs")
_LISTS = ("allOf", "anyOf")
_ONE = ("items", "additionalProperties")
_VALUES: dict[str, Callable[[Any], bool]] = {
    "$comment": _is_text,
    "title": _is_text,
    "description": _is_text,
    "default": lambda _: True,
    "examples": lambda value: isinstance(value, list),
    "deprecated": _is_flag,
    "readOnly": _is_flag,
    "writeOnly": _is_flag,
    "type": _is_type,
    "const": _is_scalar,
    "enum": lambda value: isinstance(value, list) and bool(value) and all(map(_is_scalar, value)),
    "format": lambda value: isinstance(value, str) and value in FORMATS,
    "pattern": lambda value: isinstance(value, str) and pattern.fault(value) is None,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_count),
    "required": _are_names,
    body.KEYWORD: lambda value: not any(body.faults(value)),
}
