"""The schemas there are, by name: the built-in ones, and the vault's own over them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, TypeAlias

from mdmem.document.text.regex import regex
from mdmem.document.tree import Key
from mdmem.vault.builtin import builtin_folder

Schema: TypeAlias = dict[str, Any] | bool

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PREFIX = "mdmem:"
BODY = "x-body"
_SUFFIX = ".json"
_SCHEME = regex(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Keywords with a schema as their value, a list of schemas, or schemas by name.
SINGLES = (
    *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames"),
    *("then", "unevaluatedItems", "unevaluatedProperties"),
)
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
MAPPINGS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
REFERENCES = ("$ref", "$dynamicRef")


class Catalog:
    """The schemas by name. `own` maps a name to JSON text; nothing is parsed before it is asked for.

    The validator fills `sound`: by name, whether the schema is valid.
    """

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own
        self.sound: dict[str, bool] = {}
        self._parsed: dict[str, Schema | None] = {}
        self._closures: dict[str, tuple[str, ...]] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every name, sorted."""
        return tuple(sorted({*self._own, *_builtin_names()}))

    def is_builtin(self, name: str) -> bool:
        """Return whether the schema of this name is the built-in one."""
        return name not in self._own

    def path(self, name: str) -> str:
        """Return where the schema of this name stands, as findings about it say."""
        return f"schemas/{name}.json" if self.is_builtin(name) else f".mdmem/schemas/{name}.json"

    def text(self, name: str) -> str:
        """Return the JSON text of the schema of this exact name."""
        return _builtin_text(name) if self.is_builtin(name) else self._own[name]

    def resolve(self, reference: str) -> str | None:
        """Return the name of the schema that a `$schema` or `$ref` (without its fragment) means, or None.

        That is its name, `name.json`, `mdmem:name`, a relative path that ends in one of them, or the exact
        `$id` of a schema of the vault.
        """
        if reference in self.names:
            return reference
        bare = reference.removesuffix("#").removeprefix(PREFIX)
        if "#" in bare:
            return None
        if _SCHEME.match(bare):
            return self._map_ids.get(bare)
        last = bare.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(_SUFFIX)
        return last if last in self.names else None

    def near(self, name: str) -> tuple[str, ...]:
        """Return the names most like `name`; all of them where none is."""
        return tuple(get_close_matches(name, self.names, n=3)) or self.names

    def parsed(self, name: str) -> Schema | None:
        """Return the schema as it is written, or None when the text is no JSON object or boolean."""
        if name not in self._parsed:
            value = _parse_json(self.text(name))
            self._parsed[name] = value if isinstance(value, dict | bool) else None
        return self._parsed[name]

    def title(self, name: str) -> str:
        """Return the title of the schema; empty when it has none."""
        schema = self.parsed(name)
        title = schema.get("title") if isinstance(schema, dict) else None
        return title if isinstance(title, str) else ""

    def closure(self, name: str) -> tuple[str, ...]:
        """Return the schema and every schema that it refers to, directly or through another."""
        if name not in self._closures:
            reached = [name]
            for each in reached:  # which grows meanwhile
                references = _list_references(self.parsed(each))
                targets = (self.resolve(reference.partition("#")[0]) for reference in references)
                reached += dict.fromkeys(t for t in targets if t is not None and t not in reached)
            self._closures[name] = tuple(reached)
        return self._closures[name]

    def declares(self, name: str, key: str) -> bool:
        """Return whether the schema, or one that it refers to, speaks of `key` at its top.

        Others do not count beside `additionalProperties`, which does not look there either.
        """
        own = self.parsed(name)
        is_closed = isinstance(own, dict) and "additionalProperties" in own
        schemas = [own] if is_closed else map(self.parsed, self.closure(name))
        tops = [schema for schema in schemas if isinstance(schema, dict)]
        parts = [part for top in tops for part in (top, *top.get("allOf", ())) if isinstance(part, dict)]
        return any(key in part.get(keyword, ()) for part in parts for keyword in ("properties", "required"))

    @cached_property
    def _map_ids(self) -> dict[str, str]:
        schemas = ((name, self.parsed(name)) for name in self._own)
        ids = ((schema.get("$id"), name) for name, schema in schemas if isinstance(schema, dict))
        return {id_.removesuffix("#"): name for id_, name in ids if isinstance(id_, str)}


def list_children(schema: Schema) -> Iterator[tuple[tuple[Key, ...], Schema]]:
    """Yield the schemas directly inside a valid schema, each with its path from there."""
    if isinstance(schema, bool):
        return
    for keyword, value in schema.items():
        if keyword in SINGLES:
            yield (keyword,), value
        elif keyword in LISTS:
            yield from (((keyword, number), each) for number, each in enumerate(value))
        elif keyword in MAPPINGS:
            yield from (((keyword, key), each) for key, each in value.items())


def _list_references(value: Any) -> Iterator[str]:
    # Any value is taken: the schemas that a broken one leads to are looked at, too.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield from (each[k] for k in REFERENCES if isinstance(each.get(k), str))
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


@cache
def _builtin_names() -> frozenset[str]:
    files = os.listdir(builtin_folder("schemas"))
    return frozenset(file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX))


@cache
def _builtin_text(name: str) -> str:
    with open(os.path.join(builtin_folder("schemas"), f"{name}.json"), encoding="utf-8") as file:
        return file.read()
