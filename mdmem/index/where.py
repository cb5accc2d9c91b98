"""Conditions on memories: `type=decision`, `created>=2026-01-01`, `tags=db`, `size>1000`, `!expires`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from mdmem.errors import PatternInvalid
from mdmem.text.regex import regex

Value: TypeAlias = str | int | float | None
Values: TypeAlias = Sequence[Value]

_CONDITION = regex(r"(?P<key>[^\s=<>!~]+)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*)", re.DOTALL)
_PRESENCE = regex(r"(?P<absent>!?)\s*(?P<key>[^\s=<>!~]+)")
_DAY = regex(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?")
_DATED = regex(r"[0-9]{4}(?:-|\Z)")
_INTEGER = regex(r"[-+]?[0-9]{1,100}")
_NUMBER = regex(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_REMEDY = "say FIELD=VALUE, or !=, <, <=, >, >=, ~ (contains); FIELD alone: it is there, !FIELD: it is not"


class Condition(NamedTuple):
    """A condition on one field.

    `operator` is one of =, !=, <, <=, >, >=, ~, "" (it is there), "!" (it is not).
    """

    key: str
    operator: str
    value: str

    def holds(self, values: Values) -> bool:
        """Whether a memory fits whose field has these values; of a list, one item is enough.

        `!=` is the opposite of `=`: no item is equal, and a memory without the field fits.
        """
        if self.operator in {"", "!"}:
            return bool(values) is not bool(self.operator)
        if self.operator == "!=":
            return not any(_equal(value, self.value) for value in values)
        if self.operator == "=":
            return any(_equal(value, self.value) for value in values)
        if self.operator == "~":
            return any(self.value.casefold() in _text(value).casefold() for value in values)
        fits = _ORDERS[self.operator]
        orders = (_order(value, self.value) for value in values if value is not None)
        return any(order is not None and fits(order) for order in orders)


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        PatternInvalid: it is none.
    """
    found = _CONDITION.fullmatch(text.strip())
    if found:
        return Condition(found["key"], found["operator"], _unquoted(found["value"].strip()))
    there = _PRESENCE.fullmatch(text.strip())
    if there:
        return Condition(there["key"], there["absent"], "")
    raise PatternInvalid(pattern=text, reason="this is no condition", remedy=_REMEDY)


def fits(conditions: Sequence[Condition], fields: Mapping[str, Values]) -> bool:
    """Whether all conditions hold for a memory with these fields."""
    return all(condition.holds(fields.get(condition.key, ())) for condition in conditions)


def sort_order(text: str) -> tuple[str, bool]:
    """A field to sort by, and whether the largest value comes first: that is said by a `-` before it."""
    return text.removeprefix("-"), text.startswith("-")


def sort_key(value: Value) -> tuple[int, float, str]:
    """Orders values of any kind: numbers, then texts, and what is missing at the end."""
    if value is None:
        return 2, 0, ""
    number = _number(value)
    return (1, 0, _text(value)) if number is None else (0, number, "")


def _equal(value: Value, wanted: str) -> bool:
    """Whether a value is what was asked for: numbers by their value, texts without regard to case.

    A date that is cut off means all of it: `created=2026-03` is every day of that month.
    """
    if value is None:
        return wanted in {"", "null"}
    if not isinstance(value, str) and _number(wanted) is not None:
        return _number(value) == _number(wanted)
    text = _text(value)
    if _DAY.fullmatch(wanted) and text.startswith((f"{wanted}-", f"{wanted}T", f"{wanted} ")):
        return True
    return text.casefold() == wanted.casefold()


def _order(value: Value, wanted: str) -> int | None:
    """-1, 0 or 1, as the value is before, at or behind what was asked for; None where they have no order.

    Numbers are compared as numbers, and all else as text without regard to case, which orders dates: only as
    far as the wanted day is written, so that `created<=2026-03` includes that month.
    """
    mine, other = _number(value), _number(wanted)
    if mine is not None and other is not None:
        return (mine > other) - (mine < other)
    text = _text(value).casefold()
    if _DAY.fullmatch(wanted):
        if not _DATED.match(text):
            return None
        text = text[: len(wanted)]
    elif mine is not None or other is not None:
        return None
    wanted = wanted.casefold()
    return (text > wanted) - (text < wanted)


def _number(value: Value) -> float | None:
    text = _text(value)
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _text(value: Value) -> str:
    return "" if value is None else str(value)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
