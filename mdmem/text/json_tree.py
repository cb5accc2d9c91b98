"""JSON as a tree of values with their places (RFC 8259)."""

from __future__ import annotations

from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

from mdmem.diagnostic import Span
from mdmem.errors import TooManyParts
from mdmem.text.parsed import MOST_PARTS, Flaw, Parsed, TooDeep
from mdmem.text.regex import regex
from mdmem.text.tree import Key, Member, Node, dotted

_BLANK = regex(r"[ \t\n\r]*")
_NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SURROGATE = regex("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}
_MOST_DIGITS = 4000  # Python refuses to read longer integers


class _NotJson(Exception):
    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def parse(text: str, offset: int = 0, *, max_depth: int, max_values: int = MOST_PARTS) -> Parsed:
    """Parse one JSON value.

    Args:
        text: the whole text; spans count from its beginning, in code points.
        offset: where the value starts: 1 behind a byte-order mark.
        max_depth: how deeply values may be nested.
        max_values: how many there may be.

    Returns:
        The tree, and as flaws: invalid JSON (then there is no tree), duplicate keys, lone surrogates
        (U+FFFD stands in the value for each).

    Raises:
        TooDeep: the values are nested more deeply than `max_depth`.
        TooManyParts: there are more than `max_values`.
    """
    reader = _Reader(text, max_depth, max_values)
    try:
        node = reader.whole(offset)
    except _NotJson as error:
        span = Span(min(error.offset, len(text)), min(error.offset, len(text)))
        return Parsed(None, (Flaw(span, "invalid-json", error.message, "mend the JSON", "json"),))
    return Parsed(node, tuple(reader.flaws))


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


class _Reader:
    def __init__(self, text: str, max_depth: int, max_values: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self.max_values = self.left = max_values
        self.flaws: list[Flaw] = []

    def whole(self, at: int) -> Node:
        node, end = self.value(_skip(self.text, at), ())
        end = _skip(self.text, end)
        if end < len(self.text):
            raise _NotJson(end, "text behind the value")
        return node

    def value(self, at: int, path: tuple[Key, ...]) -> tuple[Node, int]:
        self.left -= 1
        if self.left < 0:
            raise TooManyParts(path="", limit=self.max_values, what="values")
        first = self.text[at : at + 1]
        if first and first in "{[":
            if len(path) >= self.max_depth:
                raise TooDeep("values are nested too deeply", self.max_depth, at)
            return self._mapping(at, path) if first == "{" else self._list(at, path)
        if first == '"':
            value, end = self._string(at)
            return _scalar(value, at, end), end
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, at):
                return _scalar(meaning, at, at + len(word)), at + len(word)
        return self._number(at)

    def _number(self, at: int) -> tuple[Node, int]:
        found = _NUMBER.match(self.text, at)
        if not found:
            raise _NotJson(at, "a value is missing" if at >= len(self.text) else "not a JSON value")
        written = found.group()
        if len(written) > _MOST_DIGITS:
            raise _NotJson(at, f"a number of more than {_MOST_DIGITS} digits")
        value = float(written) if found.group(1) or found.group(2) else int(written)
        return _scalar(value, at, found.end()), found.end()

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self.text, at + 1, True)  # noqa: FBT003 - its third argument has no name
        except JSONDecodeError as error:
            problem = error.msg.removesuffix(" starting at").removesuffix(" at").rstrip(": ")
            raise _NotJson(error.pos, problem[:1].lower() + problem[1:]) from None
        if _SURROGATE.search(value):
            message = "an escaped lone surrogate is no character"
            hint = "write the character itself"
            self.flaws.append(Flaw(Span(at, end), "lone-surrogate", message, hint, str(at)))
            # No file and no database could take it.
            value = _SURROGATE.sub("\ufffd", value)
        return value, end

    def _mapping(self, at: int, path: tuple[Key, ...]) -> tuple[Node, int]:
        members: list[Member] = []
        seen: dict[str, Any] = {}
        end = _skip(self.text, at + 1)
        while not self._ends("}", end):
            end = self._separator(end, first=not members)
            if not self.text.startswith('"', end):
                raise _NotJson(end, 'a key in "quotes" is missing')
            key, key_end = self._string(end)
            key_span = Span(end, key_end)
            end = _skip(self.text, key_end)
            if not self.text.startswith(":", end):
                raise _NotJson(end, "a colon is missing behind the key")
            node, end = self.value(_skip(self.text, end + 1), (*path, key))
            if key in seen:
                name = dotted((*path, key))
                message = f"the key {name!r} stands twice"
                self.flaws.append(Flaw(key_span, "duplicate-key", message, "keep one of them", name))
            seen[key] = node.value
            members.append(Member(key=key, key_span=key_span, node=node))
            end = _skip(self.text, end)
        span = Span(at, end + 1)
        return Node(value=seen, span=span, kind="mapping", style="json", members=tuple(members)), span.end

    def _list(self, at: int, path: tuple[Key, ...]) -> tuple[Node, int]:
        items: list[Node] = []
        end = _skip(self.text, at + 1)
        while not self._ends("]", end):
            end = self._separator(end, first=not items)
            node, end = self.value(end, (*path, len(items)))
            items.append(node)
            end = _skip(self.text, end)
        values, span = [n.value for n in items], Span(at, end + 1)
        return Node(value=values, span=span, kind="list", style="json", items=tuple(items)), span.end

    def _ends(self, bracket: str, at: int) -> bool:
        if at >= len(self.text):
            raise _NotJson(at, f"{bracket} is missing at the end")
        return self.text.startswith(bracket, at)

    def _separator(self, at: int, *, first: bool) -> int:
        if first:
            return at
        if not self.text.startswith(",", at):
            raise _NotJson(at, "a comma is missing")
        return _skip(self.text, at + 1)


def _scalar(value: Any, start: int, end: int) -> Node:
    return Node(value=value, span=Span(start, end), kind="scalar", style="json")
