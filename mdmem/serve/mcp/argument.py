"""Arguments of a tool, from the signature of its function: their JSON Schema, and how their values are read.

The SDK makes tools of signatures too, but its schemas of these take 1.6 times the tokens, it ignores an
argument with a wrong name, and its errors quote the whole input. So pydantic is asked directly.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, create_model

from mdmem.errors import Usage

_MOST = 2**31 - 1
_MOST_SHOWN = 80  # characters of a value in a message
_DROPPED = {"title", "default", "additionalProperties", "minimum", "maximum", "minProperties"}


def read_signature(function: Callable[..., Any]) -> type[BaseModel]:
    """Make a model of the arguments of a tool's function, without the first parameter, which is the call."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default)
        for each in parameters
    }
    return create_model(function.__name__, **fields)


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, without what only costs tokens."""
    schema: dict[str, Any] = _prune_schema(model.model_json_schema())
    return schema


def _prune_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_prune_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _prune_schema(each) for key, each in schema.items() if key not in _DROPPED}
    if "properties" in schema:  # and a property may have one of those names
        kept["properties"] = {name: _prune_schema(each) for name, each in schema["properties"].items()}
    if {"type": "null"} in kept.get("anyOf", ()):
        kind = next(each for each in kept.pop("anyOf") if each != {"type": "null"})
        return {**kind, **kept}
    return kept


def read_arguments(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were given, by name; null means that one was not given.

    Models write numbers, flags, lists and objects as texts: they are read as what they mean.

    Raises:
        Usage: an argument is unknown, missing, or of a wrong type.
    """
    fields = model.model_fields
    offered = f"its arguments are {_join_names([*fields])}"
    missing = [name for name, each in fields.items() if each.is_required() and name not in given]
    for name in given:
        if name not in fields:
            near = missing if len(missing) == 1 else get_close_matches(name, fields, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise Usage(problem=f"there is no argument {_shorten_value(name)}", remedy=meant + offered)
    values = {
        name: value for name, value in given.items() if value is not None or fields[name].annotation is Any
    }
    try:
        read = model.model_validate(values)
    except ValidationError as error:
        raise Usage(problem=_describe_problem(error), remedy=offered) from None
    return {name: getattr(read, name) for name in values}


def _describe_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False)
    if missing := [str(each["loc"][0]) for each in problems if each["type"] == "missing"]:
        return f"{_join_names(missing)} must be given"
    message = problems[0]["msg"].removeprefix("Input should be ")
    return f"{problems[0]['loc'][0]} should be {message}, not {_shorten_value(problems[0]['input'])}"


def _parse_json(value: Any, start: str) -> Any:
    """Parse a text that begins as JSON does; return anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) and value.startswith(start) else value
    except (ValueError, RecursionError):
        return value


def _parse_texts(value: Any) -> Any:
    value = _parse_json(value, '["')
    return [value] if isinstance(value, str) else value


Number = Annotated[int, Field(ge=0, le=_MOST)]
Positive = Annotated[int, Field(ge=1, le=_MOST)]
Count = Positive | Literal["all"]
Texts = Annotated[Sequence[str], BeforeValidator(_parse_texts)]
Fields = Annotated[dict[str, Any], BeforeValidator(partial(_parse_json, start="{")), Field(min_length=1)]


def _shorten_value(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 1]}…"


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
