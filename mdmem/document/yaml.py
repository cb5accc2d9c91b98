"""YAML as a tree of values with their places, read from libyaml's events.

Events rather than composed nodes: they alone say where an alias stands, they need no recursion, and an
alias can be weighed before anything is expanded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import yaml

from mdmem.diagnostic import Span
from mdmem.document.tree import Flaw, Key, Member, Node, Parsed, Style, TooDeep, dotted, resolve
from mdmem.errors import Usage
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex

_UNPRINTABLE = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CORE_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(("!", f"{_CORE_TAG}str"))
_VALUE_TAGS = frozenset(_CORE_TAG + name for name in ("null", "bool", "int", "float"))
_COLLECTION_TAGS = frozenset(("!", f"{_CORE_TAG}seq", f"{_CORE_TAG}map"))
# These end a line in YAML 1.1, which libyaml speaks, and are characters like any other in YAML 1.2.
_BREAKS_OF_1_1 = "\x85\u2028\u2029"
_IN_ONE_LINE = ("plain", "single", "double", "flow")
# What libyaml says since PyYAML 6.0.4, which scans ahead of the events that are counted here.
_NESTED_TOO_DEEPLY = "exceeded maximum nesting depth"
_PRIVATE_USE = range(0x100000, 0x10FFFE)
_STYLES: dict[str | None, Style] = {"'": "single", '"': "double", "|": "literal", ">": "folded"}


def parse(text: str, offset: int = 0, *, max_depth: int, max_values: int) -> Parsed:
    """Parse one YAML document.

    Args:
        text: the YAML.
        offset: where it starts in the whole text, in code points; it is added to every span.
        max_depth: how deeply values may be nested.
        max_values: how many values and keys there may be, counting what an alias repeats.

    Returns:
        The tree, and as flaws: invalid YAML (then there is no tree), duplicate keys, keys that are not
        scalars, unknown tags.

    Raises:
        TooDeep: a limit is passed, or an alias contains itself.
    """
    guarded, restore = _replace_line_ends(text)
    builder = _Builder(text, offset, max_depth, max_values, restore)
    try:
        for event in yaml.parse(guarded, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.YAMLError as error:
        if getattr(error, "problem", None) == _NESTED_TOO_DEEPLY:
            raise TooDeep("values are nested too deeply", max_depth, offset) from None
        return Parsed(None, (*builder.flaws, _describe_error(text, offset, error)))
    return Parsed(builder.root, tuple(builder.flaws))


def read_value(text: str) -> Any:
    """Return a value given in one line, as on a command line: as YAML has it, else the text itself.

    `5`, `null`, `"5"`, `[a, b]` and `{a: 1}` are YAML. `SQLite: one file`, `C # and D` and `- x` are texts,
    which YAML would take apart.

    Raises:
        Usage: it holds half a character, or is nested too deeply.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Usage(problem=f"{text!r} is not UTF-8") from None
    try:
        node, flaws = parse(text, max_depth=32, max_values=10_000)
    except TooDeep as error:
        raise Usage(problem=f"the value is too large: {error}") from None
    if node is None or flaws or node.anchored or node.style not in _IN_ONE_LINE:
        return text or None
    is_whole = text[slice(*node.span)] == text.strip()
    is_text = node.style == "plain" and isinstance(node.value, str)
    return node.value if is_whole and not is_text else text


def _replace_line_ends(text: str) -> tuple[str, dict[int, str]]:
    """`text` for libyaml, with what is no line end in YAML 1.2 replaced; and the table that undoes it."""
    breaks = [character for character in _BREAKS_OF_1_1 if character in text]
    if not breaks:
        return text, {}
    unused = (number for number in _PRIVATE_USE if chr(number) not in text)
    restore = dict(zip(unused, breaks, strict=False))
    return text.translate({ord(character): number for number, character in restore.items()}), restore


def _describe_error(text: str, offset: int, error: yaml.YAMLError) -> Flaw:
    message = "; ".join(filter(None, (getattr(error, name, None) for name in ("context", "problem"))))
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = mark.index if mark else 0
    if isinstance(error, yaml.reader.ReaderError):
        # libyaml counts bytes here, so the character is looked up instead.
        found = _UNPRINTABLE.search(text)
        at, message = (found.start() if found else 0), "a control character is not allowed in YAML"
    at = min(at, len(text))
    hint = "quote the value, or fix the indentation"
    return Flaw(Span(offset + at, offset + at), "invalid-yaml", message or "not YAML", hint, "yaml")


class _NoAnchor(yaml.YAMLError):
    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.problem_mark = mark


class _Size(NamedTuple):
    """How many values a value holds, itself included, and how many levels of collections."""

    values: int
    levels: int


_SCALAR = _Size(values=1, levels=0)
_EMPTY_COLLECTION = _Size(values=1, levels=1)


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
    names: set[str] = field(default_factory=set)
    key: tuple[str, Span] | None = None
    skipping: bool = False
    size: _Size = _EMPTY_COLLECTION


@dataclass(slots=True)
class _Builder:
    text: str
    offset: int
    max_depth: int
    max_values: int
    restore: dict[int, str]
    root: Node | None = None
    flaws: list[Flaw] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)
    _anchors: dict[str, tuple[Any, _Size]] = field(default_factory=dict)
    _values: int = 0
    _documents: int = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._add_scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._add_alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open_collection(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close_collection(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._add_flaw(
                    self._span_of(event), "invalid-yaml", "more than one YAML document", "keep one"
                )

    def _span_of(self, event: yaml.Event) -> Span:
        start, end = cast("tuple[yaml.Mark, yaml.Mark]", (event.start_mark, event.end_mark))
        return Span(self.offset + start.index, self.offset + end.index)

    def _add_flaw(self, span: Span, code: str, message: str, hint: str, rule: str = "") -> None:
        self.flaws.append(Flaw(span, code, message, hint, rule or code))

    def _current_path(self) -> tuple[Key, ...]:
        if not self._frames:
            return ()
        frame = self._frames[-1]
        if frame.mapping:
            return (*frame.path, frame.key[0] if frame.key else "")
        return (*frame.path, len(frame.items))

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        text = event.value.translate(self.restore) if self.restore else event.value
        resolved = event.tag in _VALUE_TAGS or (event.tag is None and not event.style)
        value = resolve(text) if resolved else text
        span = self._span_of(event)
        self._known_tag(event.tag, span, _VALUE_TAGS | _TEXT_TAGS)
        if event.style in ("|", ">"):
            span = self._without_blank_lines(span)
        anchored = event.anchor is not None or event.tag is not None
        style = _STYLES.get(event.style, "plain")
        node = Node(value=value, span=span, kind="scalar", style=style, anchored=anchored)
        self._count_values(1, span)
        self._add_node(node, event.anchor, _SCALAR, text)

    def _known_tag(self, tag: str | None, span: Span, known: frozenset[str]) -> None:
        if tag is not None and tag not in known:
            written = tag.replace(_CORE_TAG, "!!")
            hint = "plain values need no tag"
            self._add_flaw(span, "unknown-tag", f"unknown YAML tag {written}", hint, written)

    def _without_blank_lines(self, span: Span) -> Span:
        """Return the span of a block scalar up to the end of its last line that is not blank."""
        written = self.text[span.start - self.offset : span.end - self.offset]
        line_end = LINE_END.search(written, len(written.rstrip(" \t\r\n")))
        return Span(span.start, span.start + (line_end.start() if line_end else len(written)))

    def _add_alias(self, event: yaml.AliasEvent) -> None:
        span = self._span_of(event)
        if any(frame.anchor == event.anchor for frame in self._frames):
            raise TooDeep("an alias contains itself", self.max_depth, span.start)
        if event.anchor not in self._anchors:
            problem = f"the alias *{event.anchor} stands for nothing: there is no &{event.anchor} before it"
            raise _NoAnchor(problem, event.start_mark)
        value, size = self._anchors[event.anchor]
        self._count_values(size.values, span)
        self._check_depth(size.levels, span)
        self._add_node(Node(value=value, span=span, kind="alias", style="plain"), None, size, None)

    def _count_values(self, values: int, span: Span) -> None:
        self._values += values
        if self._values > self.max_values:
            raise TooDeep("too many values once aliases are followed", self.max_values, span.start)

    def _check_depth(self, levels: int, span: Span) -> None:
        if len(self._frames) + levels > self.max_depth:
            raise TooDeep("values are nested too deeply", self.max_depth, span.start)

    def _open_collection(self, event: yaml.CollectionStartEvent) -> None:
        span = self._span_of(event)
        self._check_depth(1, span)
        self._count_values(1, span)
        self._known_tag(event.tag, span, _COLLECTION_TAGS)
        anchored = event.anchor is not None or event.tag is not None
        mapping = isinstance(event, yaml.MappingStartEvent)
        flow = bool(event.flow_style)
        self._frames.append(_Frame(mapping, span.start, flow, event.anchor, anchored, self._current_path()))

    def _close_collection(self, event: yaml.CollectionEndEvent) -> None:
        frame = self._frames.pop()
        parts = [m.node for m in frame.members] if frame.mapping else frame.items
        # A block collection's end event stands at the next token, behind comments that belong to no value.
        end = self._span_of(event).end if frame.flow else (parts[-1].span.end if parts else frame.start)
        values = [part.value for part in parts]
        value: Any = (
            dict(zip((m.key for m in frame.members), values, strict=True)) if frame.mapping else values
        )
        node = Node(
            value=value,
            span=Span(frame.start, max(end, frame.start)),
            kind="mapping" if frame.mapping else "list",
            style="flow" if frame.flow else "block",
            members=tuple(frame.members),
            items=tuple(frame.items),
            anchored=frame.anchored,
        )
        self._add_node(node, frame.anchor, frame.size, None)

    def _add_node(self, node: Node, anchor: str | None, size: _Size, as_key: str | None) -> None:
        """Put a finished value where it belongs: the root, a list, or a mapping's next key or value."""
        if anchor is not None:
            self._anchors[anchor] = (node.value, size)
        if not self._frames:
            self.root = self.root or node
            return
        frame = self._frames[-1]
        frame.size = _Size(frame.size.values + size.values, max(frame.size.levels, size.levels + 1))
        if not frame.mapping:
            frame.items.append(node)
        elif frame.skipping:
            frame.skipping = False
        elif frame.key is not None:
            self._add_member(frame, node)
        elif as_key is None:
            self._add_flaw(node.span, "complex-key", "a key must be a plain text", "name the key by a text")
            frame.skipping = True
        else:
            frame.key = (as_key, node.span)

    def _add_member(self, frame: _Frame, node: Node) -> None:
        key, span = frame.key or ("", node.span)
        frame.key = None
        if key in frame.names:
            name = dotted((*frame.path, key))
            self._add_flaw(span, "duplicate-key", f"the key {name!r} stands twice", "keep one of them", name)
        frame.names.add(key)
        frame.members.append(Member(key=key, key_span=span, node=node))
