"""Values as YAML text: what an edit puts into frontmatter.

A text is written plain only where every reader agrees that it is a text. YAML 1.1 readers take `no`, `12:30`
and `0b1` for something else (https://yaml.org/type/), so these are quoted, although YAML 1.2 needs no quotes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

from mdmem.text.regex import regex
from mdmem.text.tree import Style
from mdmem.text.yaml_scalar import resolve

STEP = 2  # how much deeper a nested mapping is indented

# What may not stand in a line as it is: control characters, what libyaml takes for a line end (U+0085,
# U+2028, U+2029), surrogates, and byte-order marks.
_ESCAPED = regex("[^\x20-\x7e\xa0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\ud800-\udfff]")
_INDICATORS = tuple("-?:,[]{}#&*!|>'\"%@`")
_FLOW_INDICATORS = regex(r"[,\[\]{}?]")
_ISO_DATE = regex(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[-+][0-9]{2}:?[0-9]{2})?)?"
)
# Booleans and integers of YAML 1.1 that PyYAML does not know.
_OLD_YAML = regex(r"[yYnN]|[-+]?[0-9][0-9,_]*")
_TEXT_TAG = "tag:yaml.org,2002:str"


def scalar(value: str | float | None, style: Style = "plain", *, flow: bool = False) -> str:
    """A scalar in one line.

    Args:
        value: a text, number, boolean or None.
        style: how the value that it replaces is written; a text keeps its quotes where they can hold it.
        flow: whether it stands inside `[]` or `{}`.
    """
    if isinstance(value, str):
        return _text(value, style, flow=flow)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _float(value)


def inline(value: Any) -> str:
    """Any value in one line: lists and mappings in flow style."""
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key(k, flow=True)}: {inline(v)}' for k, v in value.items())}}}"
    return scalar(value, flow=True)


def key(text: str, *, flow: bool = False) -> str:
    """A key, quoted where it has to be."""
    return scalar(text, flow=flow)


def block(value: Any, dash_offset: int) -> list[str]:
    """The lines of a value in block style, the first one at column 0, without line ends.

    Args:
        value: any value; scalars and empty collections take one line.
        dash_offset: how many columns a list's dashes stand to the right of the key that holds the list.
    """
    if isinstance(value, dict) and value:
        return [line for name, part in value.items() for line in member(name, part, dash_offset)]
    if isinstance(value, list) and value:
        return [line for part in value for line in item(part, dash_offset)]
    return [inline(value) if isinstance(value, dict | list) else scalar(value)]


def member(name: str, value: Any, dash_offset: int) -> list[str]:
    """The lines of a key and its value, as `block`."""
    lines = block(value, dash_offset)
    if not is_block(value):
        return [f"{key(name)}: {lines[0]}"]
    indent = " " * (dash_offset if isinstance(value, list) else STEP)
    return [f"{key(name)}:", *(indent + line for line in lines)]


def item(value: Any, dash_offset: int) -> list[str]:
    """The lines of a list item, as `block`."""
    first, *others = block(value, dash_offset)
    return [f"- {first}", *(f"  {line}" for line in others)]


def is_block(value: Any) -> bool:
    """Whether block style gives this value lines of its own: it is a list or mapping, and not empty."""
    return isinstance(value, dict | list) and bool(value)


def literal(text: str, style: Style) -> tuple[str, list[str]] | None:
    """The header and lines of a text as a block scalar, or None where quotes are the safer way.

    A folded scalar stays folded when the text has one line; else its lines would have to be guessed.
    """
    *lines, last = text.split("\n")
    content = lines if not last else [*lines, last]
    if not lines or not content[0] or not content[-1] or content[0][0].isspace():
        return None
    if any(_ESCAPED.search(line) or (line and line.isspace()) for line in content):
        return None
    mark = ">" if style == "folded" and len(content) == 1 else "|"
    return mark + ("-" if last else ""), content


def _text(text: str, style: Style, *, flow: bool) -> str:
    if style == "single" and not _ESCAPED.search(text):
        return "'" + text.replace("'", "''") + "'"
    if style != "double" and _is_plain(text, flow=flow):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    # A lone surrogate stays as it is: YAML has no escape for it, and the document refuses it by name.
    return _ESCAPED.sub(lambda m: m[0] if "\ud800" <= m[0] <= "\udfff" else f"\\u{ord(m[0]):04x}", quoted)


def _is_plain(text: str, *, flow: bool) -> bool:
    if not text or text != text.strip() or _ESCAPED.search(text):
        return False
    if text.startswith((*_INDICATORS, "...")) or text.endswith(":") or ": " in text or " #" in text:
        return False
    if flow and _FLOW_INDICATORS.search(text):
        return False
    if not isinstance(resolve(text), str) or _OLD_YAML.fullmatch(text):
        return False
    if _ISO_DATE.fullmatch(text):
        return _is_date(text)
    return _old_tag()(text) == _TEXT_TAG


@cache
def _old_tag() -> Callable[[str], str]:
    """What tells the tag that a YAML 1.1 reader gives a plain scalar."""
    import yaml  # noqa: PLC0415 - start-up

    resolver = yaml.resolver.Resolver()

    def tag(text: str) -> str:
        found: str = resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        return found

    return tag


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits, exponent, power = repr(value).partition("e")
    # YAML 1.1 readers want a point in a float.
    return (digits if "." in digits else f"{digits}.0") + exponent + power


def _is_date(text: str) -> bool:
    """Whether a YAML 1.1 reader, which makes a date of the text, can: there is no 13th month."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
