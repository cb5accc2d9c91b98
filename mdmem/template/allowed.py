"""What a template may touch: kinds of values, what it may read of each, and which of Jinja's filters."""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, ValuesView
from datetime import date, time, timedelta
from typing import Any

from jinja2 import Undefined
from jinja2.runtime import BlockReference, LoopContext

DICT_VIEWS = (KeysView, ValuesView, ItemsView)
LEAVES = (float, type(None), date, time, timedelta, Undefined)
LISTS = (list, tuple, *DICT_VIEWS)
VALUES = (str, int, dict, range, *LISTS, *LEAVES)

_FILTERS = """
    abs capitalize count d default dictsort first float groupby int items last length list lower map max
    min reject rejectattr reverse select selectattr sort string title truncate unique upper urlencode
    wordcount
"""
FILTERS = frozenset(_FILTERS.split())

# Methods whose result is no larger than the text, and whose time grows with it.
_TEXT_METHODS = """
    capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower
    isnumeric isspace istitle isupper lower lstrip partition removeprefix removesuffix rstrip split
    splitlines startswith strip swapcase title upper
"""
_DATE_PARTS = "year month day hour minute second date time isoformat weekday isoweekday isocalendar"
_LOOP = "index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle changed"
_ATTRIBUTES: tuple[tuple[type | tuple[type, ...], frozenset[str]], ...] = (
    (str, frozenset(_TEXT_METHODS.split())),
    (dict, frozenset(("get", "items", "keys", "values"))),
    ((list, tuple), frozenset(("count", "index", "grouper", "list"))),  # the last two: what groupby gives
    ((date, time), frozenset(_DATE_PARTS.split())),
    (LoopContext, frozenset(_LOOP.split())),
    (BlockReference, frozenset(("super",))),
)


def is_readable(owner: Any, attribute: str) -> bool:
    """Whether a template may read this attribute, of those that Jinja's own sandbox lets it read."""
    listed = next((names for kind, names in _ATTRIBUTES if isinstance(owner, kind)), None)
    # What remains are a namespace and an imported template, whose attributes the template made itself.
    return attribute in listed if listed is not None else not isinstance(owner, (*VALUES, type))
