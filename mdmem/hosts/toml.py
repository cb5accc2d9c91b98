"""Exact edits of TOML settings: tables are written behind the rest, as TOML allows, and cut out again."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from mdmem.hosts.addition import Addition, Step, refuse
from mdmem.text.frontmatter import BOM
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HEADER = regex(r"^[ \t]*\[", re.MULTILINE)
_BARE = regex(r"[A-Za-z0-9_-]+")
_DELETE = "\x7f"  # the one character that JSON may write as it is and TOML may not


class Settings:
    """The text of a TOML settings file, and its values.

    Raises:
        EditRefused: it is not TOML.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        try:
            self.value: Any = tomllib.loads(text.removeprefix(BOM))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            refuse(path, f"it is not TOML: {error}")

    def added(self, additions: Sequence[Addition]) -> list[Step]:
        """The step that puts these additions behind everything else."""
        if not additions:
            return []
        newline = "\r\n" if "\r\n" in self.text else "\n"
        tables = "\n".join(_table(each.keys, each.value, each=each.each) for each in additions)
        begun = self.text.removeprefix(BOM)
        gap = ("" if not begun or begun.endswith("\n") else "\n") + ("\n" if begun.strip() else "")
        return [Step(len(self.text), (gap + tables).replace("\n", newline))]

    def without(self, goes: Callable[[Any], bool]) -> str:
        """The text without the tables that it can do without.

        Args:
            goes: whether what a stretch of text from a header to the next ones holds goes.
        """
        text = self.text.removeprefix(BOM)
        # What looks like a header inside a text or a list of several lines has no TOML in front of it.
        headers = [found.start() for found in _HEADER.finditer(text) if _is_toml(text[: found.start()])]
        tops: list[int] = []
        for at in headers:
            if not (tops and _is_below(text, tops[-1], at) and self._owns(text[tops[-1] : at], goes)):
                tops.append(at)
        ends = [*tops[1:], len(text)]
        chunks = [text[at:end] for at, end in zip(tops, ends, strict=True)]
        kept = "".join(chunk for chunk in chunks if not goes(tomllib.loads(chunk)))
        return self.text[: len(self.text) - len(text)] + text[: tops[0] if tops else None] + kept

    @staticmethod
    def _owns(chunk: str, goes: Callable[[Any], bool]) -> bool:
        """Whether what is below a header goes with it: an item of a list has its parts below."""
        return chunk.lstrip(" \t").startswith("[[") or goes(tomllib.loads(chunk))


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _is_below(text: str, first: int, second: int) -> bool:
    """Whether the header at `second` is below the one at `first`."""
    one, other = (text[at : text.find("\n", at)].strip().strip("[] \t") for at in (first, second))
    return other.startswith(f"{one}.")


def _table(keys: Sequence[str], value: dict[str, Any], *, each: bool) -> str:
    name = ".".join(key if _BARE.fullmatch(key) else _written(key) for key in keys)
    lines = [f"[[{name}]]" if each else f"[{name}]"]
    lines += [f"{key} = {_written(item)}" for key, item in value.items() if not _is_tables(item)]
    text = "\n".join((*lines, ""))
    return "\n".join((text, *_below(keys, value)))


def _below(keys: Sequence[str], value: dict[str, Any]) -> Iterator[str]:
    for key, items in value.items():
        for item in items if _is_tables(items) else ():
            yield _table((*keys, key), item, each=True)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace(_DELETE, "\\u007f")
