"""A parsed value with the place of every part of it: what YAML and JSON have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from mdmem.diagnostic import Span
from mdmem.text.regex import regex

Kind = Literal["scalar", "list", "mapping", "alias"]
Style = Literal["plain", "single", "double", "literal", "folded", "flow", "block", "json"]
Key = str | int
KeyPath = tuple[Key, ...]
_INDEX = regex(r"0|[1-9][0-9]{0,8}")


class Member(NamedTuple):
    """A key and its value in a mapping. `key_span` covers the key as written, quotes included."""

    key: str
    key_span: Span
    node: Node


class Node(NamedTuple):
    """A value and where it is written.

    Attributes:
        value: the plain Python value.
        span: the value as written; empty where nothing is written (`key:`).
        kind: scalar, list, mapping, or alias (written `*name`, its value stands elsewhere).
        style: how it is written.
        members: of a mapping, in order, duplicates included.
        items: of a list.
        anchored: whether an anchor or tag is part of the span.
    """

    value: Any
    span: Span
    kind: Kind
    style: Style
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()
    anchored: bool = False

    def child(self, key: Key) -> Node | None:
        """The value under `key`: a mapping's last member of that name, or a list's item (`0` or `"0"`)."""
        if self.kind == "mapping":
            found = self.member(str(key))
            return found.node if found else None
        if self.kind == "list" and _INDEX.fullmatch(str(key)) and int(key) < len(self.items):
            return self.items[int(key)]
        return None

    def member(self, key: str) -> Member | None:
        """The last member named `key`: the one whose value counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)

    def find(self, path: Sequence[Key]) -> Node | None:
        """The value at `path`, or None."""
        node: Node | None = self
        for key in path:
            node = node.child(key) if node else None
        return node

    def nearest(self, path: Sequence[Key]) -> Node:
        """The deepest value on the way to `path` that is written down."""
        node = self
        for key in path:
            below = node.child(key)
            if below is None:
                return node
            node = below
        return node

    def walk(self, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Member]]:
        """Every member at any depth, with its path."""
        for member in self.members:
            here = (*path, member.key)
            yield here, member
            yield from member.node.walk(here)
        for number, item in enumerate(self.items):
            yield from item.walk((*path, number))


def dotted(path: Sequence[Key]) -> str:
    r"""A path as people write it: `source.ids.0`; a dot inside a key is written `\.`."""
    return ".".join(str(key).replace("\\", "\\\\").replace(".", "\\.") for key in path)


def undotted(text: str) -> tuple[str, ...]:
    """The keys of a dotted path; the inverse of `dotted`."""
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
