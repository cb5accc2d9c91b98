"""Parsed values with the place of every part: what YAML and JSON have in common, and JSON itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import JSONEncoder
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, Literal, NamedTuple

from mdmem.diagnostic import Severity, Span
from mdmem.document.text.lines import MOST_PARTS
from mdmem.document.text.regex import regex
from mdmem.errors import TooManyParts

Kind = Literal["scalar", "list", "mapping", "alias"]
Style = Literal["plain", "single", "double", "literal", "folded", "flow", "block", "json"]
Key = str | int
KeyPath = tuple[Key, ...]
INDEX = regex(r"0|[1-9][0-9]{0,8}")

LINEAGE = ("superseded_by", "derived_from", "contradicted_by")
"""The fields that name other memories: as links, or plainly by a path or an id."""


PLACEHOLDER = regex(r"\{\{[^{}\r\n]*+\}\}|<%[^<\r\n]*?%>")
"""What a template has where a value will be: `{{date}}`, `<% date %>`."""


class Flaw(NamedTuple):
    """Something wrong in a text, before it is known which memory the text belongs to."""

    span: Span
    code: str
    message: str
    hint: str = ""
    rule: str = ""
    severity: Severity = "error"


class Parsed(NamedTuple):
    """A parsed text: `node` is None where there is no value, or none that can be read."""

    node: Node | None
    flaws: tuple[Flaw, ...] = ()


class TooDeep(Exception):
    """Values nested too deeply, or too many once aliases are followed, at `offset`."""

    def __init__(self, what: str, limit: int, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.limit = limit
        self.offset = offset


class Member(NamedTuple):
    """A key and its value in a mapping. `key_span` covers the key as written, quotes included."""

    key: str
    key_span: Span
    node: Node


class Node(NamedTuple):
    """A value and where it is written.

    Attributes:
        span: the value as written; empty where nothing is written (`key:`).
        kind: an alias is written `*name`; its value stands elsewhere.
        members: of a mapping, in order, duplicates included.
        anchored: whether an anchor or tag is part of the span.
    """

    value: Any
    span: Span
    kind: Kind
    style: Style
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()
    anchored: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        """The values in a list or mapping, in order."""
        return tuple(member.node for member in self.members) if self.kind == "mapping" else self.items

    @property
    def starts(self) -> list[int]:
        """Where each of them begins: the key of a member, or the item."""
        if self.kind == "mapping":
            return [member.key_span.start for member in self.members]
        return [item.span.start for item in self.items]

    def child(self, key: Key) -> Node | None:
        """Return the value under `key`: a mapping's last member, or a list's item (`0` or `"0"`)."""
        if self.kind == "mapping":
            found = self.member(str(key))
            return found.node if found else None
        if self.kind == "list" and INDEX.fullmatch(str(key)) and int(key) < len(self.items):
            return self.items[int(key)]
        return None

    def member(self, key: str) -> Member | None:
        """Return the last member named `key`, the one that counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)

    def find(self, path: Sequence[Key]) -> Node | None:
        """Return the value at `path`, or None."""
        node: Node | None = self
        for key in path:
            node = node.child(key) if node else None
        return node

    def nearest(self, path: Sequence[Key]) -> Node:
        """Return the deepest value on the way to `path` that is written down."""
        node = self
        for key in path:
            below = node.child(key)
            if below is None:
                return node
            node = below
        return node

    def nodes(self) -> Iterator[Node]:
        """Yield the value itself and every value in it, in the order of the text."""
        yield self
        for part in self.parts:
            yield from part.nodes()

    def walk(self, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Member]]:
        """Yield every member at any depth, with its path."""
        for member in self.members:
            here = (*path, member.key)
            yield here, member
            yield from member.node.walk(here)
        for number, item in enumerate(self.items):
            yield from item.walk((*path, number))


def dotted(path: Sequence[Key]) -> str:
    r"""Return a path as people write it: `source.ids.0`; a dot inside a key is written `\.`."""
    return ".".join(str(key).replace("\\", "\\\\").replace(".", "\\.") for key in path)


def undotted(text: str) -> tuple[str, ...]:
    """Return the keys of a dotted path; the inverse of `dotted`."""
    keys, current, escaped = [], "", False
    for character in text:
        if escaped or character not in "\\.":
            current, escaped = current + character, False
        elif character == "\\":
            escaped = True
        else:
            keys.append(current)
            current = ""
    return (*keys, current + ("\\" if escaped else ""))


def same(one: Any, other: Any) -> bool:
    """Compare JSON values by value and type: `1`, `1.0` and `True` differ, NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(part, other[name]) for name, part in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN
    kinds = (bool, int, float, str, dict, list)
    return [isinstance(one, k) for k in kinds] == [isinstance(other, k) for k in kinds] and bool(one == other)


_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float("inf") for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
# Python refuses to write down an integer of more than 4300 decimal digits: such a scalar stays text.
_NUMBER = regex(
    r"([-+]?[0-9]{1,3500})|(0o[0-7]{1,3500}|0x[0-9a-fA-F]{1,3500})"
    r"|[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)"
)
_INTEGER, _BASED_INTEGER = 1, 2
_NUMBERS_BEGIN = frozenset("0123456789+-.")


def resolve(text: str) -> Any:
    """Resolve a plain scalar by YAML's core schema: `no` and `12:30` are strings, dates stay text.

    https://yaml.org/spec/1.2.2/#1032-tag-resolution
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBERS_BEGIN:
        return text
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    shape = number.lastindex
    return int(text) if shape == _INTEGER else int(text, base=0) if shape == _BASED_INTEGER else float(text)


_ENCODER = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict)


def encoded(value: Any) -> str:
    """Write a value as JSON in one line, without blanks.

    Raises:
        ValueError: it is NaN or infinite, or an integer has too many digits.
    """
    return _ENCODER.encode(value)


_BLANK = regex(r"[ \t\n\r]*")
_JSON_NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SURROGATE = regex("[\ud800-\udfff]")
_JSON_WORDS = {"true": True, "false": False, "null": None}
_MOST_DIGITS = 4000  # Python refuses to read longer integers


class _NotJson(Exception):
    """Where a text stops being JSON, as an offset, and why."""


def parse_json(text: str, offset: int = 0, *, max_depth: int, max_values: int = MOST_PARTS) -> Parsed:
    """Parse the JSON value (RFC 8259) that starts at `offset` of `text`: 1 behind a byte-order mark.

    Returns:
        The tree, and as flaws: invalid JSON (then there is no tree), duplicate keys, lone surrogates
        (U+FFFD stands in the value for each).

    Raises:
        TooDeep, TooManyParts: a limit is passed.
    """
    reader = _JsonReader(text, max_depth, max_values)
    try:
        node = reader.whole(offset)
    except _NotJson as error:
        offset, message = error.args
        at = min(offset, len(text))
        return Parsed(None, (Flaw(Span(at, at), "invalid-json", message, "fix the JSON", "json"),))
    return Parsed(node, tuple(reader.flaws))


def _skip_blanks(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


class _JsonReader:
    def __init__(self, text: str, max_depth: int, max_values: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self.max_values = self.left = max_values
        self.flaws: list[Flaw] = []

    def whole(self, at: int) -> Node:
        node, end = self.value(_skip_blanks(self.text, at), ())
        end = _skip_blanks(self.text, end)
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
            return self._read_mapping(at, path) if first == "{" else self._read_list(at, path)
        if first == '"':
            value, end = self._read_string(at)
            return _make_scalar(value, at, end), end
        for word, meaning in _JSON_WORDS.items():
            if self.text.startswith(word, at):
                return _make_scalar(meaning, at, at + len(word)), at + len(word)
        return self._read_number(at)

    def _read_number(self, at: int) -> tuple[Node, int]:
        found = _JSON_NUMBER.match(self.text, at)
        if not found:
            raise _NotJson(at, "a value is missing" if at >= len(self.text) else "not a JSON value")
        written = found.group()
        if len(written) > _MOST_DIGITS:
            raise _NotJson(at, f"a number of more than {_MOST_DIGITS} digits")
        value = float(written) if found.group(1) or found.group(2) else int(written)
        return _make_scalar(value, at, found.end()), found.end()

    def _read_string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self.text, at + 1, True)  # noqa: FBT003 - its third argument has no name
        except JSONDecodeError as error:
            problem = error.msg.removesuffix(" starting at").removesuffix(" at").rstrip(": ")
            raise _NotJson(error.pos, problem[:1].lower() + problem[1:]) from None
        if _SURROGATE.search(value):
            message = "an escaped lone surrogate is not a character"
            hint = "write the character itself"
            self.flaws.append(Flaw(Span(at, end), "lone-surrogate", message, hint, str(at)))
            # No file and no database could take it.
            value = _SURROGATE.sub("\ufffd", value)
        return value, end

    def _read_mapping(self, at: int, path: tuple[Key, ...]) -> tuple[Node, int]:
        members: list[Member] = []
        seen: dict[str, Any] = {}
        end = _skip_blanks(self.text, at + 1)
        while not self._ends_with("}", end):
            end = self._skip_separator(end, first=not members)
            if not self.text.startswith('"', end):
                raise _NotJson(end, 'a key in "quotes" is missing')
            key, key_end = self._read_string(end)
            key_span = Span(end, key_end)
            end = _skip_blanks(self.text, key_end)
            if not self.text.startswith(":", end):
                raise _NotJson(end, "a colon is missing behind the key")
            node, end = self.value(_skip_blanks(self.text, end + 1), (*path, key))
            if key in seen:
                name = dotted((*path, key))
                message = f"the key {name!r} stands twice"
                self.flaws.append(Flaw(key_span, "duplicate-key", message, "keep one of them", name))
            seen[key] = node.value
            members.append(Member(key=key, key_span=key_span, node=node))
            end = _skip_blanks(self.text, end)
        span = Span(at, end + 1)
        return Node(value=seen, span=span, kind="mapping", style="json", members=tuple(members)), span.end

    def _read_list(self, at: int, path: tuple[Key, ...]) -> tuple[Node, int]:
        items: list[Node] = []
        end = _skip_blanks(self.text, at + 1)
        while not self._ends_with("]", end):
            end = self._skip_separator(end, first=not items)
            node, end = self.value(end, (*path, len(items)))
            items.append(node)
            end = _skip_blanks(self.text, end)
        values, span = [n.value for n in items], Span(at, end + 1)
        return Node(value=values, span=span, kind="list", style="json", items=tuple(items)), span.end

    def _ends_with(self, bracket: str, at: int) -> bool:
        if at >= len(self.text):
            raise _NotJson(at, f"{bracket} is missing at the end")
        return self.text.startswith(bracket, at)

    def _skip_separator(self, at: int, *, first: bool) -> int:
        if first:
            return at
        if not self.text.startswith(",", at):
            raise _NotJson(at, "a comma is missing")
        return _skip_blanks(self.text, at + 1)


def _make_scalar(value: Any, start: int, end: int) -> Node:
    return Node(value=value, span=Span(start, end), kind="scalar", style="json")
