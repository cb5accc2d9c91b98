"""Exact edits of settings in JSON, comments and trailing commas included, and in TOML.

In JSON, comments and trailing commas are blanked out for our reader, length for length: the places that it
gives hold in the text as it stands. In TOML, tables are written behind the rest, as TOML allows, and cut out
again.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mdmem.errors import EditRefused, TooManyParts
from mdmem.text import tree
from mdmem.text.frontmatter import BOM
from mdmem.text.regex import regex
from mdmem.text.tree import Node, TooDeep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Addition(NamedTuple):
    """A value to put into settings.

    Attributes:
        keys: where: the keys from the outermost on.
        value: the value.
        each: whether it is one more item of the list there, beside those of others.
    """

    keys: tuple[str, ...]
    value: Any
    each: bool = False

    @property
    def nested(self) -> Any:
        """The value as it stands under the last key."""
        return [self.value] if self.each else self.value


class Insertion(NamedTuple):
    """A stretch of text that was put in at `start`, in code points of the text with the earlier steps."""

    start: int
    text: str


def stepped(text: str, steps: Sequence[Insertion]) -> str:
    """The text with the steps put in, in their order."""
    for at, new in steps:
        text = text[:at] + new + text[at:]
    return text


def added(settings: Any, additions: Sequence[Addition]) -> Any:
    """What settings are once something is added: what an edit of their text is held against."""
    whole = copy.deepcopy(settings)
    for addition in additions:
        place = whole
        for key in addition.keys[:-1]:
            place = place.setdefault(key, {})
        last = addition.keys[-1]
        if addition.each:
            place.setdefault(last, []).append(addition.value)
        else:
            place[last] = addition.value
    return whole


def at(settings: Any, keys: Sequence[str]) -> Any:
    """The value under some keys; None where there is none."""
    for key in keys:
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings


def refuse(path: str, reason: str, remedy: str = "mend the file, or add what is shown by hand") -> NoReturn:
    """Refuse to edit a settings file."""
    raise EditRefused(path=path, reason=reason, remedy=remedy)


_MAX_DEPTH = 64
# What is never closed reaches to the end: else each of many would be looked for to the end.
_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_COMMENT = r"//[^\r\n]*+|/\*.*?(?:\*/|\Z)"
_STRING_OR_COMMENT = regex(f"{_STRING}|{_COMMENT}", re.DOTALL)
_STRING_OR_TRAILING = regex(_STRING + r"|,(?=[ \t\r\n]*[}\]])", re.DOTALL)
_COMMENT_BEHIND = regex(rf"[ \t]*+(?:{_COMMENT})", re.DOTALL)
_COMMA = regex(r"[ \t\r\n]*,")
_NOT_LINE_END = regex(r"[^\r\n]")
_LINE_END = regex(r"\r\n|\n|\r")


class JsonSettings:
    """The text of a JSON settings file, and its values with their places.

    Raises:
        EditRefused: it is not JSON, or no object.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._uncommented = _STRING_OR_COMMENT.sub(_blank_comment, text)
        start = len(BOM) if text.startswith(BOM) else 0
        self.tree: Node | None = None
        if self._uncommented[start:].strip(" \t\r\n"):
            self.tree = self._parsed(start)

    def _parsed(self, start: int) -> Node:
        plain = _STRING_OR_TRAILING.sub(lambda found: " " if found[0] == "," else found[0], self._uncommented)
        try:
            node, flaws = tree.parse_json(plain, start, max_depth=_MAX_DEPTH)
        except (TooDeep, TooManyParts):
            refuse(self.path, f"it has too many values, or some are nested more than {_MAX_DEPTH} deep")
        if node is None:
            line = self.text.count("\n", 0, flaws[0].span.start) + 1
            refuse(self.path, f"line {line}: {flaws[0].message}")
        if node.kind != "mapping":
            refuse(self.path, "its value is not an object")
        return node

    @property
    def value(self) -> Any:
        """The settings."""
        return self.tree.value if self.tree else {}

    # -- adding -------------------------------------------------------------------------------------------

    def added(self, additions: Sequence[Addition]) -> list[Insertion]:
        """The steps that put these additions into the text.

        Raises:
            EditRefused: another kind of value is in the way.
        """
        steps: list[Insertion] = []
        for addition in additions:
            steps += JsonSettings(self.path, stepped(self.text, steps)).put(addition)
        return steps

    def put(self, addition: Addition) -> list[Insertion]:
        """The steps that put in one addition."""
        if self.tree is None:
            value = addition.nested
            for key in reversed(addition.keys):
                value = {key: value}
            start = len(self.text)
            gap = "" if not self.text or self.text in BOM or self.text[-1] in "\r\n" else self._newline
            return [Insertion(start, gap + self._written(value, "") + self._newline)]
        node = self.tree
        for depth, key in enumerate(addition.keys):
            if node.kind != "mapping":
                refuse(self.path, f"the value of {addition.keys[depth - 1]!r} is not an object")
            below = node.child(key)
            if below is None:
                value = addition.nested
                for name in reversed(addition.keys[depth + 1 :]):
                    value = {name: value}
                return self._insert(node, key, value)
            node = below
        if not addition.each or node.kind != "list":
            refuse(self.path, f"{'.'.join(addition.keys)} is there already, with another value")
        return self._insert(node, "", addition.value)

    def _insert(self, container: Node, key: str, value: Any) -> list[Insertion]:
        starts = container.starts
        if not starts:
            return [self._fill(container, key, value)]
        alone, base = self._begins_line(starts[-1]), self._indent(starts[-1])
        piece = self._part(container, key, value, base if alone else None)
        piece = (self._newline + base if alone else " ") + piece
        at = container.parts[-1].span.end
        comma = _COMMA.match(self._uncommented, at)
        place = end = comma.end() if comma else at
        # A comment behind the last value stays with it.
        while alone and (comment := _COMMENT_BEHIND.match(self.text, place)):
            place = comment.end()
        if comma:
            return [Insertion(place, f"{piece},")]
        return (
            [Insertion(at, f",{piece}")]
            if place == end
            else [Insertion(at, ","), Insertion(place + 1, piece)]
        )

    def _fill(self, container: Node, key: str, value: Any) -> Insertion:
        start, end = container.span
        inside, base = self.text[start + 1 : end - 1], self._indent(start)
        spread = container is self.tree or bool(_LINE_END.search(self.text.strip()))
        if not spread:
            return Insertion(start + 1, self._part(container, key, value, None))
        inner = base + self._unit
        closing = "" if _LINE_END.search(inside) else self._newline + base
        return Insertion(
            start + 1, self._newline + inner + self._part(container, key, value, inner) + closing
        )

    def _part(self, container: Node, key: str, value: Any, base: str | None) -> str:
        written = self._written(value, base)
        return f"{json.dumps(key, ensure_ascii=False)}: {written}" if container.kind == "mapping" else written

    def _written(self, value: Any, base: str | None) -> str:
        """A value as JSON, in one line without `base`, which is the indentation of the line it begins in."""
        if base is None:
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, ensure_ascii=False, indent=self._unit)
        return text.replace("\n", self._newline + base)

    # -- taking away --------------------------------------------------------------------------------------

    def without(self, keys: Sequence[str], index: int | None = None) -> str:
        """The text without the member at `keys`, or the item `index` of the list there.

        What is empty then, from there outward, goes with it; other comments stay.
        """
        path: list[tuple[Node, int]] = []
        node = self.tree
        for key in keys:
            if node is None or node.kind != "mapping" or key not in node.value:
                return self.text
            number = max(n for n, member in enumerate(node.members) if member.key == key)
            path.append((node, number))
            node = node.members[number].node
        if index is not None and node is not None:
            path.append((node, index))
        while len(path) > 1 and len(path[-1][0].parts) == 1 and not self._is_commented(*path[-2]):
            path.pop()
        return self._cut(*path[-1])

    def _cut(self, container: Node, index: int) -> str:
        values = container.parts
        start, end = container.starts[index], values[index].span.end
        comma = _COMMA.match(self._uncommented, end)
        if comma and self.text[end : comma.end()] == comma[0]:
            gone, end = -1, comma.end()
        elif comma:  # a comment stands before it
            gone = comma.end() - 1
        else:
            gone = self._uncommented.index(",", values[index - 1].span.end) if index else -1
        start, end = self._tidied(start, end)
        kept = ((0, start), (end, len(self.text)))
        return "".join(
            self.text[at:until]
            if not at <= gone < until
            else self.text[at:gone] + self.text[gone + 1 : until]
            for at, until in kept
        )

    def _tidied(self, start: int, end: int) -> tuple[int, int]:
        """A stretch that is to go, with the whole line where nothing else stands in it."""
        line_end = _LINE_END.search(self.text, end)
        behind = self.text[end : line_end.start() if line_end else len(self.text)]
        if self._begins_line(start) and not behind.strip(" \t"):
            return self._line_start(start), line_end.end() if line_end else len(self.text)
        return len(self.text[:start].rstrip(" \t")), end

    def _is_commented(self, container: Node, index: int) -> bool:
        stretch = slice(container.starts[index], container.parts[index].span.end)
        return self.text[stretch] != self._uncommented[stretch]

    # -- what stands --------------------------------------------------------------------------------------

    def _line_start(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1

    def _begins_line(self, at: int) -> bool:
        return not self.text[self._line_start(at) : at].strip(" \t")

    def _indent(self, at: int) -> str:
        line = self.text[self._line_start(at) : at].removeprefix(BOM)
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def _newline(self) -> str:
        found = _LINE_END.search(self.text)
        return found[0] if found else "\n"

    @property
    def _unit(self) -> str:
        """One level of indentation."""
        first = self.tree.starts[:1] if self.tree else []
        indent = self._indent(first[0]) if first and self._begins_line(first[0]) else ""
        return indent or "  "


def _blank_comment(found: re.Match[str]) -> str:
    kept = found[0].startswith('"') or (found[0].startswith("/*") and not found[0].endswith("*/", 2))
    return found[0] if kept else _NOT_LINE_END.sub(" ", found[0])


_HEADER = regex(r"^[ \t]*\[", re.MULTILINE)
_BARE = regex(r"[A-Za-z0-9_-]+")
_DELETE = "\x7f"  # the one character that JSON may write as it is and TOML may not


class TomlSettings:
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

    def added(self, additions: Sequence[Addition]) -> list[Insertion]:
        """The step that puts these additions behind everything else."""
        if not additions:
            return []
        newline = "\r\n" if "\r\n" in self.text else "\n"
        tables = "\n".join(_table(each.keys, each.value, each=each.each) for each in additions)
        begun = self.text.removeprefix(BOM)
        gap = ("" if not begun or begun.endswith("\n") else "\n") + ("\n" if begun.strip() else "")
        return [Insertion(len(self.text), (gap + tables).replace("\n", newline))]

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
