"""YAML as a tree of values with their places, read from libyaml's events.

Events rather than composed nodes: they alone say where an alias stands, they need no recursion, and an
alias can be weighed before anything is expanded. Scalars follow the core schema of YAML 1.2.2, section
10.3.2 (https://yaml.org/spec/1.2.2/#1032-tag-resolution): `no` and `12:30` are strings, dates stay text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from mdmem.diagnostic import Span
from mdmem.text.parsed import Flaw, Parsed, TooDeep
from mdmem.text.tree import Key, Member, Node, Style, dotted

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_OCTAL = re.compile(r"0o[0-7]{1,4000}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,4000}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NOT_A_NUMBER = frozenset((".nan", ".NaN", ".NAN"))
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CORE_TAG = "tag:yaml.org,2002:"
_STYLES: dict[str | None, Style] = {"'": "single", '"': "double", "|": "literal", ">": "folded"}


def resolve(text: str) -> Any:
    """The value of a plain scalar under the YAML 1.2 core schema."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if _HEXADECIMAL.fullmatch(text):
        return int(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in _NOT_A_NUMBER else text


def parse(text: str, offset: int = 0, *, max_depth: int, max_values: int) -> Parsed:
    """Parse one YAML document.

    Args:
        text: the YAML; `offset` is where it starts in the whole text, in code points, and is added to
            every span.
        max_depth: how deeply values may be nested.
        max_values: how many values there may be, counting what an alias repeats.

    Returns:
        The tree, and as flaws: invalid YAML (then there is no tree), duplicate keys, keys that are not
        scalars, unknown tags.

    Raises:
        TooDeep: a limit is passed, or an alias contains itself.
    """
    builder = _Builder(text, offset, max_depth, max_values)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.YAMLError as error:
        return Parsed(None, (*builder.flaws, _invalid(text, offset, error)))
    return Parsed(builder.root, tuple(builder.flaws))


def _invalid(text: str, offset: int, error: yaml.YAMLError) -> Flaw:
    message = "; ".join(filter(None, (getattr(error, name, None) for name in ("context", "problem"))))
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = mark.index if mark else 0
    if isinstance(error, yaml.reader.ReaderError):
        # libyaml counts bytes here, so the character is looked up instead.
        found = _UNPRINTABLE.search(text)
        at, message = (found.start() if found else 0), "a control character is not allowed in YAML"
    at = min(at, len(text))
    hint = "quote the value, or mend the indentation"
    return Flaw(Span(offset + at, offset + at), "invalid-yaml", message or "not YAML", hint, "yaml")


@dataclass(slots=True)
class _Frame:
    """A collection whose end has not come yet."""

    mapping: bool
    start: int
    flow: bool
    anchor: str | None
    anchored: bool
    path: tuple[Key, ...]
    members: list[Member] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    key: tuple[str, Span] | None = None
    skipping: bool = False
    weight: int = 1


@dataclass(slots=True)
class _Builder:
    text: str
    offset: int
    max_depth: int
    max_values: int
    root: Node | None = None
    flaws: list[Flaw] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)
    _anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    _weight: int = 0
    _documents: int = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._flaw(self._span(event), "invalid-yaml", "more than one YAML document", "keep one")

    def _span(self, event: yaml.Event) -> Span:
        return Span(self.offset + event.start_mark.index, self.offset + event.end_mark.index)

    def _flaw(self, span: Span, code: str, message: str, hint: str, rule: str = "") -> None:
        self.flaws.append(Flaw(span, code, message, hint, rule or code))

    def _path(self) -> tuple[Key, ...]:
        if not self._frames:
            return ()
        frame = self._frames[-1]
        if frame.mapping:
            return (*frame.path, frame.key[0] if frame.key else "")
        return (*frame.path, len(frame.items))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        plain = event.style is None or event.style == ""
        value = resolve(event.value) if plain else event.value
        if event.tag and not (event.tag == "!" or event.tag.startswith(_CORE_TAG)):
            hint = "plain values need no tag"
            self._flaw(self._span(event), "unknown-tag", f"unknown YAML tag {event.tag}", hint, event.tag)
        if event.tag in ("!", f"{_CORE_TAG}str"):
            value = event.value
        span = self._span(event)
        if event.style in ("|", ">"):
            written = self.text[span.start - self.offset : span.end - self.offset].rstrip()
            span = Span(span.start, span.start + len(written))
        anchored = event.anchor is not None or event.tag is not None
        style = _STYLES.get(event.style, "plain")
        node = Node(value=value, span=span, kind="scalar", style=style, anchored=anchored)
        self._add(node, event.anchor, 1, str(event.value))

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise TooDeep("an alias contains itself", self.max_depth, self._span(event).start)
        value, weight = self._anchors[event.anchor]
        self._add(Node(value=value, span=self._span(event), kind="alias", style="plain"), None, weight, None)

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._frames) >= self.max_depth:
            raise TooDeep("values are nested too deeply", self.max_depth, self._span(event).start)
        anchored = event.anchor is not None or event.tag is not None
        mapping = isinstance(event, yaml.MappingStartEvent)
        start = self._span(event).start
        self._frames.append(_Frame(mapping, start, bool(event.flow_style), event.anchor, anchored, self._path()))

    def _close(self, event: yaml.CollectionEndEvent) -> None:
        frame = self._frames.pop()
        parts = [m.node for m in frame.members] if frame.mapping else frame.items
        # A block collection's end event stands at the next token, behind comments that belong to no value.
        end = self._span(event).end if frame.flow else (parts[-1].span.end if parts else frame.start)
        value: Any = {m.key: m.node.value for m in frame.members} if frame.mapping else [n.value for n in parts]
        node = Node(
            value=value,
            span=Span(frame.start, max(end, frame.start)),
            kind="mapping" if frame.mapping else "list",
            style="flow" if frame.flow else "block",
            members=tuple(frame.members),
            items=tuple(frame.items),
            anchored=frame.anchored,
        )
        self._add(node, frame.anchor, frame.weight, None)

    def _add(self, node: Node, anchor: str | None, weight: int, as_key: str | None) -> None:
        """Put a finished value where it belongs: the root, a list, or a mapping's next key or value."""
        self._weight += weight
        if self._weight > self.max_values:
            raise TooDeep("too many values once aliases are followed", self.max_values, node.span.start)
        if anchor is not None:
            self._anchors[anchor] = (node.value, weight)
        if not self._frames:
            self.root = self.root or node
            return
        frame = self._frames[-1]
        frame.weight += weight
        if not frame.mapping:
            frame.items.append(node)
        elif frame.skipping:
            frame.skipping = False
        elif frame.key is not None:
            self._member(frame, node)
        elif as_key is None:
            self._flaw(node.span, "complex-key", "a key must be a plain text", "name the key by a text")
            frame.skipping = True
        else:
            frame.key = (as_key, node.span)

    def _member(self, frame: _Frame, node: Node) -> None:
        key, span = frame.key or ("", node.span)
        frame.key = None
        if any(m.key == key for m in frame.members):
            name = dotted((*frame.path, key))
            self._flaw(span, "duplicate-key", f"the key {name!r} stands twice", "keep one of them", name)
        frame.members.append(Member(key=key, key_span=span, node=node))
