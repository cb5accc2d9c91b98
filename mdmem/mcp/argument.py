"""Arguments of a tool: what its schema says of them, and what a model may give instead."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mdmem.errors import Usage
from mdmem.mcp.answer import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["text", "integer", "flag", "texts", "fields", "count", "any"]

_TYPES: dict[Kind, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "fields": {"type": "object"},
    "count": {"type": ["integer", "string"]},
    "any": {},
}
_CALLED: dict[Kind, str] = {
    "text": "a text",
    "integer": "a whole number",
    "flag": "true or false",
    "texts": "a list of texts",
    "fields": "an object of names and values",
    "count": "a whole number or 'all'",
}
_FLAGS = {"true": True, "false": False}
ALL = "all"
_MOST = 2**31 - 1


class Argument(NamedTuple):
    """One argument.

    Attributes:
        name: the name of the façade's parameter.
        kind: what it may be; a "count" is a whole number or "all".
        about: what a model has to know beyond the name.
        is_needed: whether it has to be given.
        aliases: other names that models use, with blanks between them; they are not in the schema.
        choices: the only values, where there are few.
        least: the least value of a whole number.
    """

    name: str
    kind: Kind = "text"
    about: str = ""
    is_needed: bool = False
    aliases: str = ""
    choices: tuple[str, ...] = ()
    least: int = 0

    @property
    def schema(self) -> dict[str, Any]:
        """The argument as JSON Schema has it."""
        schema = dict(_TYPES[self.kind])
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.about:
            schema["description"] = self.about
        return schema

    def read(self, value: Any) -> Any:
        """The value that is meant by what was given.

        Models write numbers, flags and lists as texts: what can mean nothing else is taken as that.

        Raises:
            Usage: it can mean nothing.
        """
        if encodable([value]) != [value]:
            raise Usage(problem=f"{self.name} has half a character (a lone surrogate)")
        if self.kind == "any":
            return value
        read = self._read(value)
        if read is None:
            raise Usage(problem=f"{self.name} is {_CALLED[self.kind]}, not {_shown(value)}")
        if isinstance(read, int) and not isinstance(read, bool) and not self.least <= read <= _MOST:
            bound = f"{self.least} or more" if read < self.least else f"{_MOST} or less"
            raise Usage(problem=f"{self.name} is {bound}, not {_shown(read)}")
        if self.choices and read not in self.choices:
            raise Usage(problem=f"{self.name} is {_listed(self.choices, 'or')}, not {_shown(value)}")
        return read

    def _read(self, value: Any) -> Any:
        if self.kind == "text":
            return value if isinstance(value, str) else None
        if self.kind == "flag":
            flag = _FLAGS.get(value.lower()) if isinstance(value, str) else value
            return flag if isinstance(flag, bool) else None
        if self.kind == "texts":
            return _texts(value)
        if self.kind == "fields":
            return _fields(value)
        return ALL if self.kind == "count" and value == ALL else _integer(value)


def input_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    schema: dict[str, Any] = {"type": "object", "properties": {a.name: a.schema for a in arguments}}
    needed = [a.name for a in arguments if a.is_needed]
    return {**schema, "required": needed} if needed else schema


def read(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, by the names of the façade; those that are null are not.

    Raises:
        Usage: one is unknown, missing, given twice, or of a wrong kind.
    """
    by_name = {name: a for a in arguments for name in (*a.aliases.split(), a.name)}
    by_name |= {a.name: a for a in arguments}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in by_name:
            raise Usage(problem=f"there is no argument {_shown(name)}", remedy=_offered(name, arguments))
        argument = by_name[name]
        if value is None and argument.kind != "any":
            continue
        taken = argument.read(value)
        if values.setdefault(argument.name, taken) != taken:
            problem = f"{argument.name} is given twice, with different values (once as {name!r})"
            raise Usage(problem=problem, remedy=f"give {argument.name} alone")
    missing = [a.name for a in arguments if a.is_needed and a.name not in values]
    if missing:
        raise Usage(problem=f"{_listed(missing, 'and')} must be given", remedy=_offered("", arguments))
    return values


def _offered(name: str, arguments: Sequence[Argument]) -> str:
    """What may be given instead of `name`."""
    names = [a.name for a in arguments]
    near = get_close_matches(name, names, 1)
    offered = f"its arguments are {_listed(names, 'and')}"
    return f"did you mean {near[0]}? {offered}" if near else offered


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 19:  # noqa: PLR2004 - as many digits as 64 bits hold
        return int(value)
    return value if isinstance(value, int) else None


def _texts(value: Any) -> list[str] | None:
    if isinstance(value, str):
        written = _json(value) if value.startswith('["') and value.endswith("]") else None
        value = [value] if written is None else written
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    return None


def _fields(value: Any) -> dict[str, Any] | None:
    value = _json(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) and value else None


def _json(text: str) -> Any:
    """What was written as JSON; None where it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"  # noqa: PLR2004 - as much as a line carries


def _listed(names: Sequence[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else names[0]
