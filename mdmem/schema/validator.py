"""The validator: JSON Schema 2020-12 of jsonschema, with our formats, `x-body`, and no network.

A few keywords are implemented here because jsonschema's own say only in prose what we must point at: which
key is missing, which one is too much.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

# There is no public way to ask which keys count as evaluated, and the rules for it fill a page.
from jsonschema._utils import find_evaluated_property_keys_by_schema
from jsonschema.protocols import Validator

# jsonschema's own metaschemas, so that a schema may refer to them without the network.
from jsonschema_specifications import REGISTRY as SPECIFICATIONS  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource
from referencing.jsonschema import DRAFT202012

from mdmem.schema import body, pattern
from mdmem.schema.catalog import PREFIX, Catalog, Schema
from mdmem.schema.formats import FORMATS
from mdmem.schema.judge import is_number
from mdmem.schema.violation import Violation

Errors = Iterator[ValidationError]
_MOST_REFERENCES = 64


def compiled(catalog: Catalog, name: str) -> Validator:
    """The validator of a schema of the catalog."""
    contents = catalog.contents(name)
    validator: Validator = _Validator(
        contents if contents is not None else False, registry=registry(catalog, name)
    )
    return validator


def violations(validator: Validator, value: Any) -> Iterator[Violation]:
    """What of a value a schema does not accept."""
    return map(_violation, validator.iter_errors(value))


def _violation(error: ValidationError) -> Violation:
    branches: dict[Any, list[Violation]] = {}
    for each in error.context or ():
        # A name of a property has one schema. An alternative that is `false` gives an error without a path.
        of_one = error.validator == "propertyNames" or not each.schema_path
        branches.setdefault(-1 if of_one else each.schema_path[0], []).append(_violation(each))
    return Violation(
        keyword=str(error.validator or "false"),
        wanted=error.validator_value,
        value=error.instance,
        schema=error.schema if isinstance(error.schema, dict) else {},
        path=tuple(error.absolute_path),
        branches=tuple(map(tuple, branches.values())),
    )


@cache
def of_schemas() -> Validator:
    """The validator of schemas themselves: the metaschema of 2020-12."""
    validator: Validator = _Bounded(Draft202012Validator.META_SCHEMA)
    return validator


def is_sound(catalog: Catalog, name: str) -> bool:
    """Whether a schema is one by the metaschema, and each `$id` inside it is an address."""
    contents = catalog.contents(name)
    if contents is None or catalog.is_builtin(name):
        return contents is not None
    if name not in catalog.sound:
        try:
            catalog.sound[name] = of_schemas().is_valid(contents)
            if catalog.sound[name]:
                Registry().with_resource(PREFIX, DRAFT202012.create_resource(contents)).crawl()
        except (RecursionError, ValueError):
            catalog.sound[name] = False
    return catalog.sound[name]


def registry(catalog: Catalog, name: str) -> Registry[Schema]:
    """What a `$ref` in the schema `name` can reach: the sound schemas of the catalog, and the metaschemas."""

    def retrieve(uri: str) -> Resource[Schema]:
        target = catalog.resolve(uri)
        contents = catalog.contents(target) if target and is_sound(catalog, target) else None
        if contents is None:
            raise NoSuchResource(ref=uri)  # type: ignore[call-arg]  # hidden by its stub
        return DRAFT202012.create_resource(contents)

    # The usual spellings are put in beforehand: what is retrieved is forgotten after each validation.
    usual = [
        (uri, retrieve(each))
        for each in catalog.closure(name)
        for uri in (each, f"{each}.json", f"{PREFIX}{each}")
        if is_sound(catalog, each)
    ]
    reachable: Registry[Schema] = Registry(retrieve=retrieve)  # type: ignore[call-arg]  # as above
    every: Registry[Schema] = SPECIFICATIONS.combine(reachable)
    return every.with_resources(usual).crawl()


class _Depth(threading.local):
    """How many references this thread is following right now, one inside the other."""

    references = 0


_depth = _Depth()


def _reference(validator: Any, reference: str, instance: Any, _: Schema) -> Errors:
    """Follow a `$ref`, with an end: a schema that refers to itself must not run into Python's own limit.

    There, RecursionError would be raised inside referencing's Rust code, which takes it for a bug and panics.
    """
    if _depth.references >= _MOST_REFERENCES:
        raise RecursionError("references are nested too deeply")
    _depth.references += 1
    try:
        yield from validator._validate_reference(ref=reference, instance=instance)  # noqa: SLF001 - as its own
    finally:
        _depth.references -= 1


def _required(_: Any, names: list[str], instance: Any, __: Schema) -> Errors:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("", validator_value=name)


def _dependent_required(_: Any, wanted: dict[str, list[str]], instance: Any, __: Schema) -> Errors:
    if isinstance(instance, dict):
        for name, others in wanted.items():
            for other in others if name in instance else ():
                if other not in instance:
                    yield ValidationError("", validator_value=(name, other))


def _properties(validator: Any, properties: dict[str, Schema], instance: Any, _: Schema) -> Errors:
    if isinstance(instance, dict):
        for key, value in instance.items():
            if key in properties:
                yield from _member(validator, value, properties[key], key)


def _pattern_properties(validator: Any, properties: dict[str, Schema], instance: Any, _: Schema) -> Errors:
    if isinstance(instance, dict):
        for key, value in instance.items():
            for wanted, schema in properties.items():
                if pattern.matches(wanted, key):
                    yield from _member(validator, value, schema, key)


def _member(validator: Any, value: Any, schema: Schema, key: str) -> Errors:
    if schema is False:  # jsonschema's `descend` does not say where that was
        yield ValidationError("", validator="false", path=(key,))
    else:
        yield from validator.descend(value, schema, path=key, schema_path=key)


def _additional_properties(validator: Any, extra: Schema, instance: Any, schema: Schema) -> Errors:
    if not isinstance(instance, dict) or not isinstance(schema, dict):
        return
    patterns = schema.get("patternProperties", ())
    for key, value in instance.items():
        if key in schema.get("properties", ()) or any(pattern.matches(each, key) for each in patterns):
            continue
        if extra is False:
            yield ValidationError("", path=(key,))
        else:
            yield from validator.descend(value, extra, path=key)


def _unevaluated_properties(validator: Any, extra: Schema, instance: Any, schema: Schema) -> Errors:
    if not isinstance(instance, dict):
        return
    evaluated: set[str] = set(find_evaluated_property_keys_by_schema(validator, instance, schema))
    for key, value in instance.items():
        if key in evaluated:
            continue
        if extra is False:
            yield ValidationError("", path=(key,))
        else:
            yield from validator.descend(value, extra, path=key)


def _property_names(validator: Any, wanted: Schema, instance: Any, _: Schema) -> Errors:
    if isinstance(instance, dict):
        for key in instance:
            errors = list(validator.descend(key, wanted))
            if errors:
                yield ValidationError("", path=(key,), context=errors)


def _pattern(_: Any, wanted: str, instance: Any, __: Schema) -> Errors:
    if isinstance(instance, str) and not pattern.matches(wanted, instance):
        yield ValidationError("")


def _format(_: Any, wanted: str, instance: Any, __: Schema) -> Errors:
    known = FORMATS.get(wanted)
    if known and isinstance(instance, str) and not known.accepts(instance):
        yield ValidationError("")


def _multiple_of(_: Any, divisor: float, instance: Any, __: Schema) -> Errors:
    # By the decimals as written: 0.3 is a multiple of 0.1, which it is not for binary floats.
    if is_number(instance) and (_exact(instance) / _exact(divisor)).denominator != 1:
        yield ValidationError("")


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _body(_: Any, wanted: dict[str, Any], instance: Any, __: Schema) -> Errors:
    if isinstance(instance, body.Fields | body.Body):
        for shortfall in body.shortfalls(instance.document, wanted):
            yield ValidationError("", validator_value=shortfall)


_Bounded = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, validators={"$ref": _reference, "$dynamicRef": _reference}
)
_Validator = validators.extend(  # type: ignore[no-untyped-call]
    _Bounded,
    validators={
        "additionalProperties": _additional_properties,
        "dependentRequired": _dependent_required,
        "format": _format,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "properties": _properties,
        "propertyNames": _property_names,
        "required": _required,
        "unevaluatedProperties": _unevaluated_properties,
        body.KEYWORD: _body,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", lambda _, value: is_number(value)),
)
