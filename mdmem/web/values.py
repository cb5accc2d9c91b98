"""Values on their way: arguments that a request gives, checked; answers as JSON, made visible."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from mdmem import as_json, visible
from mdmem.errors import Conflict, LimitReached, MdmemError, NotFound, RevertRefused, Unavailable, Usage

_MOST = 2**53  # whole numbers that are exact in a browser
_HALF = re.compile("[\ud800-\udfff]")  # of a character, which no file can hold
_NUMBER = re.compile(r"-?[0-9]{1,15}")
# The status of an error, by the first class that it is of.
_STATUSES: Mapping[type[MdmemError], int] = {
    NotFound: 404,
    LimitReached: 413,
    Conflict: 409,
    RevertRefused: 409,
    Unavailable: 503,
    MdmemError: 400,
}


def find_status(error: MdmemError) -> int:
    """Find the status of HTTP that says what kind of error it is."""
    return next(status for kind, status in _STATUSES.items() if isinstance(error, kind))


def write_json(value: Any) -> bytes:
    """Write a value as JSON, with what cannot be seen made visible."""
    return json.dumps(_show(as_json(value)), ensure_ascii=False, separators=(",", ":")).encode()


def _show(value: Any) -> Any:
    """Return a value of JSON as a browser reads it; one that it cannot read as a text."""
    if isinstance(value, dict):
        return {visible(str(name)): _show(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_show(each) for each in value]
    is_number = isinstance(value, float | int) and (-_MOST < value < _MOST)
    return value if value is None or is_number else visible(str(value))


def read_arguments(function: Callable[..., Any], given: Any) -> dict[str, Any]:
    """Return the arguments of a function that a request gives, without the first one, which is the memory.

    Raises:
        Usage: one is unknown, missing, or of a wrong type.
    """
    if not isinstance(given, dict):
        raise Usage(problem="the arguments are no JSON object")
    parameters = dict([*inspect.signature(function).parameters.items()][1:])
    missing = [name for name, each in parameters.items() if each.default is each.empty and name not in given]
    if wrong := missing or [*(given.keys() - parameters.keys())]:
        raise Usage(problem=f"{'missing' if missing else 'unknown'}: the argument {wrong[0]!r:.80}")
    return {name: _read(name, parameters[name].annotation, value) for name, value in given.items()}


def _read(name: str, kind: str, value: Any) -> Any:
    """Read an argument of a type, which is named as the signature writes it; a query has numbers as texts."""
    if kind == "int" and isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    if not _is_of(kind, value):
        raise Usage(problem=f"the argument {name} is not of the type {kind}")
    return value


def _is_of(kind: str, value: Any) -> bool:
    if kind == "str":
        return isinstance(value, str) and not _HALF.search(value)
    if kind == "int":
        return type(value) is int and -_MOST < value < _MOST
    if kind == "list[str]":
        return isinstance(value, list) and all(_is_of("str", each) for each in value)
    return isinstance(value, dict) and all(
        _is_of("str", n) and _is_of("list[str]", v) for n, v in value.items()
    )
