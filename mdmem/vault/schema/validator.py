"""Validator: jsonschema's own for 2020-12, with our formats, `x-body`, no network, and a bound.

A schema may come from a stranger and cause work without end, so every keyword is wrapped to count its steps.
Replaced are the keywords that run patterns by Python's `re`, which cannot be stopped; `uniqueItems`, which
takes the square of the time; `multipleOf`, which rounds; and those that name the place in prose only.
`x-body` says which headings the Markdown below the fields must have, and its most bytes of UTF-8:

    "x-body": {"sections": ["Context", "Decision"], "maxBytes": 20000}
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema_specifications import REGISTRY as SPECIFICATIONS  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from mdmem.vault.schema.catalog import (
    BODY,
    DIALECT,
    LISTS,
    MAPPINGS,
    PREFIX,
    REFERENCES,
    SINGLES,
    Catalog,
    Schema,
)
from mdmem.vault.schema.meter import STEP, VALUE, Meter, Unchecked
from mdmem.vault.schema.violation import escape, show

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Errors: TypeAlias = Iterator[ValidationError]

_extend: Any = validators.extend  # which its stub does not type
UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_CLOSING = ("additionalProperties", "items", *UNEVALUATED)
_ERROR_STEPS = 3  # for each error, and one for each keyword that passes it on
_MOST_DEPTH = 150  # keywords inside each other: with 4 calls each, Python allows that
_DYNAMIC_STEPS = 50  # for the search of all the schemas that led to a `$dynamicRef`
_OWN_METASCHEMA = f"{PREFIX}/metaschema"
_SECTIONS = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}
_BODY_SCHEMA = {
    "type": "object",
    "properties": {"sections": _SECTIONS, "maxBytes": {"type": "integer", "minimum": 0}},
    "additionalProperties": False,
    "examples": [{"sections": ["Context"], "maxBytes": 20000}],
}


class Subschema(dict[str, Any]):
    """A schema, or one inside it, as the validator reads it; what a `$ref` may lead to."""


def make_validator(catalog: Catalog, name: str) -> Validator:
    """Make the validator of a schema of the catalog, which has no error and refers to none that has."""
    validator: Validator = _Validator({"$ref": make_address(name)}, registry=make_registry(catalog, name))
    return validator


def find_errors(validator: Validator, value: Any, meter: Meter) -> Errors:
    """Find everything in a value that its schema does not accept."""
    meter.value = value
    try:
        yield from validator.evolve(format_checker=meter).iter_errors(value)
    except (RecursionError, ValueError, OverflowError):
        raise Unchecked("a value is too large or too deep") from None
    except Unresolvable as error:
        raise Unchecked(f"a reference leads nowhere: {error}") from None


def fault(schema: dict[str, Any], value: Any) -> str:
    """Describe the first thing in a JSON value that a schema of ours does not accept; empty when it fits."""
    validator: Validator = _Validator(schema, registry=_load_metaschemas())
    try:
        error = next(find_errors(validator, value, Meter()), None)
    except Unchecked as stopped:
        return f"it cannot be checked: {stopped}"
    if error is None:
        return ""
    place = "".join(f"/{part}" for part in error.absolute_path) or "it"
    return f"{place} is not as `{error.validator}` says: {show(error.validator_value)}"


# -- the schemas that a validator can reach -----------------------------------------------------------------


def make_address(name: str) -> str:
    """Make the URI under which a schema of the catalog is registered."""
    return f"{PREFIX}{quote(name, safe='')}"


def normalize_reference(catalog: Catalog, reference: str) -> str:
    """Replace the name of a schema in a `$ref`, however it is written, by its address."""
    file, _, fragment = reference.partition("#")
    name = catalog.resolve(file) if file else None
    return reference if name is None else f"{make_address(name)}#{fragment}"


def make_registry(catalog: Catalog, name: str) -> Registry[Schema]:
    """Collect what a schema may refer to: sound schemas of the catalog, and the metaschemas of 2020-12."""
    normalize = partial(_normalize_schema, normalize_ref=partial(normalize_reference, catalog))
    names = [each for each in catalog.closure(name) if is_sound(catalog, each)]
    resources = ((make_address(each), normalize(catalog.parsed(each))) for each in names)
    return _register_schemas(_load_metaschemas(), resources)


def is_sound(catalog: Catalog, name: str) -> bool:
    """Return whether a schema is one by the metaschema."""
    if name not in catalog.sound:
        schema = catalog.parsed(name)
        catalog.sound[name] = schema is not None and (
            catalog.is_builtin(name) or next(find_errors(load_metaschema(), schema, Meter()), None) is None
        )
    return catalog.sound[name]


@cache
def load_metaschema() -> Validator:
    """Load the validator of schemas: the metaschema of 2020-12, and what `x-body` may be."""
    own: Schema = {"$dynamicAnchor": "meta", "$ref": DIALECT, "properties": {BODY: _BODY_SCHEMA}}
    registry = _register_schemas(_load_metaschemas(), [(_OWN_METASCHEMA, own)])
    # `lint` explains what is wrong with an address or a pattern.
    without_formats = _extend(_Validator, {"format": lambda *_: ()})
    validator: Validator = without_formats({"$ref": _OWN_METASCHEMA}, registry=registry)
    return validator


@cache
def _load_metaschemas() -> Registry[Schema]:
    schemas = ((uri, _normalize_schema(SPECIFICATIONS.contents(uri), str)) for uri in _metaschemas())
    # A `$dynamicRef` leads back to them, and their references are relative to their own addresses.
    return _register_schemas(Registry(), ((uri, Subschema(schema | {"$id": uri})) for uri, schema in schemas))


def _metaschemas() -> list[str]:
    return [uri for uri in SPECIFICATIONS if uri.startswith(DIALECT.removesuffix("schema"))]


@cache
def list_keywords() -> tuple[str, ...]:
    """List the keywords of 2020-12, and ours."""
    named = (SPECIFICATIONS.contents(uri).get("properties", ()) for uri in _metaschemas())
    return (*dict.fromkeys(keyword for names in named for keyword in names), BODY)


def _register_schemas(registry: Registry[Schema], schemas: Any) -> Registry[Schema]:
    return registry.with_resources(
        (uri, DRAFT202012.create_resource(schema)) for uri, schema in schemas
    ).crawl()


def _normalize_schema(schema: Any, normalize_ref: Callable[[str], str]) -> Any:
    """Copy a sound schema into the form that the validator reads.

    Unknown keywords are left out, because jsonschema goes through them each time; so are `$id` and `$schema`,
    which would change what references mean. `False` becomes a keyword: its error says where it stands.
    """
    if isinstance(schema, bool):
        return schema or Subschema({"not": True})
    copy = Subschema()
    for keyword, value in schema.items():
        if keyword in REFERENCES:
            copy[keyword] = normalize_ref(value)
        elif keyword in MAPPINGS:
            copy[keyword] = {key: _normalize_schema(each, normalize_ref) for key, each in value.items()}
        elif keyword in LISTS:
            copy[keyword] = [_normalize_schema(each, normalize_ref) for each in value]
        elif keyword in SINGLES and not (value is False and keyword in _CLOSING):
            copy[keyword] = _normalize_schema(value, normalize_ref)
        elif keyword in _KEPT:
            copy[keyword] = value
    return copy


# -- keywords -----------------------------------------------------------------------------------------------


def _check_required(_: Any, names: list[str], instance: Any, __: Schema) -> Errors:
    for name in names if isinstance(instance, dict) else ():
        if name not in instance:
            yield ValidationError("", validator_value=name)


def _check_dependents(_: Any, wanted: dict[str, list[str]], instance: Any, schema: Schema) -> Errors:
    for name, others in wanted.items() if isinstance(instance, dict) else ():
        yield from _check_required(_, others if name in instance else [], instance, schema)


def _match_properties(validator: Any, properties: dict[str, Schema], instance: Any, _: Schema) -> Errors:
    for key, value in instance.items() if isinstance(instance, dict) else ():
        for pattern, schema in properties.items():
            if validator.format_checker.matches(pattern, key):
                yield from validator.descend(value, schema, path=key, schema_path=pattern)


def _check_additional(validator: Any, wanted: Schema, instance: Any, schema: Any) -> Errors:
    patterns = schema.get("patternProperties", ())
    for key in instance if isinstance(instance, dict) else ():
        known = key in schema.get("properties", ())
        if not known and not any(validator.format_checker.matches(each, key) for each in patterns):
            yield from _check_undescribed(validator, wanted, instance, key)


def _check_undescribed(validator: Any, wanted: Schema, instance: Any, key: str) -> Errors:
    if wanted is False:
        yield ValidationError("", path=(key,))
    else:
        yield from validator.descend(instance[key], wanted, path=key)


def _check_unevaluated_properties(validator: Any, wanted: Schema, instance: Any, schema: Any) -> Errors:
    check = partial(_check_unevaluated, UNEVALUATED[1], validator, wanted, instance)
    if isinstance(instance, dict) and any(check(schema)):
        for key in instance:  # jsonschema names the keys in prose only: it is asked about each of them alone
            others = dict.fromkeys(instance.keys() - {key}, True)
            if any(check({**schema, "properties": {**schema.get("properties", {}), **others}})):
                yield from _check_undescribed(validator, wanted, instance, key)


def _check_unevaluated(keyword: str, validator: Any, wanted: Schema, instance: Any, schema: Any) -> Errors:
    """Run jsonschema's own `unevaluated…`, which walks the schemas beside it uncounted.

    They are evaluated first, which is counted and takes as many steps. Counted, too, is the search of each
    key in the list that jsonschema makes of the keys that they describe.
    """
    if isinstance(instance, dict | list):
        meter: Meter = validator.format_checker
        before = meter.left
        beside = {other: value for other, value in schema.items() if other not in UNEVALUATED}
        deque(validator.evolve(schema=beside).iter_errors(instance), maxlen=0)
        meter.count((before - meter.left + len(instance)) * len(instance) // VALUE)
        yield from Draft202012Validator.VALIDATORS[keyword](validator, wanted, instance, schema) or ()


def _check_names(validator: Any, wanted: Schema, instance: Any, _: Schema) -> Errors:
    for key in instance if isinstance(instance, dict) else ():
        errors = list(validator.descend(key, wanted))
        if errors:
            yield ValidationError("", path=(key,), context=errors)


def _check_pattern(validator: Any, pattern: str, instance: Any, __: Schema) -> Errors:
    if isinstance(instance, str) and not validator.format_checker.matches(pattern, instance):
        yield ValidationError("")


def _check_unique(_: Any, wanted: bool, instance: Any, __: Schema) -> Errors:
    if wanted and isinstance(instance, list):
        texts = {json.dumps(each, sort_keys=True) for each in instance}
        if len(texts) < len(instance):
            yield ValidationError("")


def _is_number(_: Any, value: Any) -> bool:
    # YAML can write infinity and not-a-number, which JSON does not have.
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _check_multiple(_: Any, divisor: float, instance: Any, __: Schema) -> Errors:
    from fractions import Fraction  # noqa: PLC0415 - few schemas have it

    # Decimals as they are written: 0.3 is a multiple of 0.1, though not as binary floats.
    if _is_number(_, instance):
        number, step = (
            Fraction(value if isinstance(value, int) else repr(value)) for value in (instance, divisor)
        )
        if (number / step).denominator != 1:
            yield ValidationError("")


def _check_body(validator: Any, wanted: dict[str, Any], instance: Any, __: Schema) -> Errors:
    meter: Meter = validator.format_checker
    if meter.document is None or instance is not meter.value:
        return
    body, headings = meter.document.body, meter.document.headings
    meter.count((meter.size(wanted) + len(body) + 100 * len(headings)) // STEP)
    titles = {" ".join(heading.title.split()).casefold() for heading in headings}
    for section in wanted.get("sections", ()):
        if " ".join(section.split()).casefold() not in titles:
            message, hint = (
                f"the body has no section `{escape(section)}`",
                f"add a heading `## {escape(section)}`",
            )
            yield ValidationError("", validator_value=(section, message, hint))
    size, most = len(body.encode("utf-8")), wanted.get("maxBytes")
    if most is not None and size > most:
        message, hint = (
            f"the body has {size:,} bytes; the most is {most:,}",
            "shorten it, or move a part of it",
        )
        yield ValidationError("", validator_value=("maxBytes", message, hint))


# -- counting -----------------------------------------------------------------------------------------------

_KEYWORDS: dict[str, Any] = {
    **Draft202012Validator.VALIDATORS,
    "additionalProperties": _check_additional,
    "dependentRequired": _check_dependents,
    "multipleOf": _check_multiple,
    "pattern": _check_pattern,
    "patternProperties": _match_properties,
    "propertyNames": _check_names,
    "required": _check_required,
    "unevaluatedItems": partial(_check_unevaluated, UNEVALUATED[0]),
    "unevaluatedProperties": _check_unevaluated_properties,
    "uniqueItems": _check_unique,
    BODY: _check_body,
}
_KEPT = {
    *("$anchor", "$dynamicAnchor", "description", "examples", "maxContains", "minContains"),
    *_KEYWORDS,
}
_VISIT_ITEMS = (*_CLOSING, "contains", "dependentSchemas", "properties", "propertyNames")
_COMPARE = ("const", "dependentRequired", "enum", "required", *REFERENCES)


def _count_steps(keyword: str, function: Any) -> Any:
    """Wrap a keyword, so that all that it does is counted: what it compares, each schema that it visits."""

    def find(validator: Any, wanted: Any, instance: Any, schema: Any) -> Errors:
        meter: Meter = validator.format_checker
        instances = len(instance) if isinstance(instance, dict | list) else 0
        schemas = len(wanted) if isinstance(wanted, dict | list) else 0
        steps = 1
        if keyword in LISTS:
            steps += schemas
        if keyword in _VISIT_ITEMS:
            steps += instances
        if keyword == "$dynamicRef":
            steps += _DYNAMIC_STEPS
        size = VALUE * (instances + schemas)
        if keyword in _COMPARE:
            size += meter.size(wanted)
        elif keyword == "multipleOf":
            size += 3 * STEP + meter.size(wanted) + meter.size(instance)
        elif keyword == "uniqueItems":
            size += 8 * meter.size(instance)
        meter.depth += 1
        try:
            if meter.depth > _MOST_DEPTH:
                raise Unchecked("the schema refers to itself without end, or is nested too deeply")
            meter.count(steps + size // STEP)
            for error in function(validator, wanted, instance, schema) or ():
                is_new = not error.schema_path
                meter.count(1 + _ERROR_STEPS + len(error.message) // STEP if is_new else 1)
                yield error
        finally:
            meter.depth -= 1

    return find


_Validator: Any = _extend(
    Draft202012Validator,
    {keyword: _count_steps(keyword, function) for keyword, function in _KEYWORDS.items()},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number),
)
