"""YAML as a tree of values with their places, read from libyaml's events.

Events rather than composed nodes: they alone say where an alias stands, they need no recursion, and an
alias can be weighed before anything is expanded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from mdmem.diagnostic import Span
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.document.tree import PLACEHOLDER, Flaw, Member, Node, Parsed, Style, TooDeep, dotted, resolve
from mdmem.errors import Usage

_UNPRINTABLE = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CORE_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(("!", f"{_CORE_TAG}str"))
_VALUE_TAGS = frozenset(_CORE_TAG + name for name in ("null", "bool", "int", "float"))
_COLLECTION_TAGS = frozenset(("!", f"{_CORE_TAG}seq", f"{_CORE_TAG}map"))
# These end a line in YAML 1.1, which libyaml speaks, and are characters like any other in YAML 1.2.
_BREAKS_OF_1_1 = "\x85\u2028\u2029"
_WIKILINK = regex(r"\[\[[^\[\],\n]+\]\]")
_IN_ONE_LINE = ("plain", "single", "double", "flow")
# What libyaml says since PyYAML 6.0.4, which scans ahead of the events that are counted here.
_NESTED_TOO_DEEPLY = "exceeded maximum nesting depth"
_PRIVATE_USE = range(0x100000, 0x10FFFE)
_STYLES: dict[str | None, Style] = {"'": "single", '"': "double", "|": "literal", ">": "folded"}


def parse(
    text: str, offset: int = 0, *, max_depth: int, max_values: int, keeps_digits: bool = False
) -> Parsed:
    """Parse one YAML document.

    Args:
        offset: where it starts in the whole text, in code points; it is added to every span.
        max_values: how many values and keys there may be, counting what an alias repeats.
        keeps_digits: whether a number that is written otherwise than mdmem writes it, as `007`, is a text.

    Returns:
        The tree, and as flaws: invalid YAML (then there is no tree), duplicate keys, keys that are not
        scalars, unknown tags.

    Raises:
        TooDeep: a limit is passed, or an alias contains itself.
    """

    def build(braces: str = "") -> Parsed:
        guarded, restore = _replace_misread(text, braces)
        return _build_tree(_Builder(text, offset, max_depth, max_values, restore, keeps_digits), guarded)

    if "{{" in text and PLACEHOLDER.search(text):
        braced = build("{}")
        if braced.node or not braced.flaws:
            return braced
        plain = build()
        return braced if plain.flaws else plain
    return build()


def _build_tree(builder: _Builder, guarded: str) -> Parsed:
    try:
        for event in yaml.parse(guarded, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.YAMLError as error:
        if getattr(error, "problem", None) == _NESTED_TOO_DEEPLY:
            raise TooDeep("values are nested too deeply", builder.max_depth, builder.offset) from None
        flaw = _describe_error(builder.text, builder.offset, error)
        return Parsed(None, (*sorted(builder.flaws), flaw))
    return Parsed(builder.root, tuple(sorted(builder.flaws)))


def read_value(text: str) -> Any:
    """Return a value given in one line, as on a command line: as YAML has it, else the text itself.

    `5`, `null`, `"5"`, `[a, b]` and `{a: 1}` are YAML. `SQLite: one file`, `C # and D`, `- x` and
    `[[a link]]` are texts, which YAML would take apart. So are `007`, `+49170`, `3.10` and `1e3`, which would
    lose something as numbers.

    Raises:
        Usage: it holds half a character, or is nested too deeply.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Usage(problem=f"{text!r} is not UTF-8") from None
    try:
        node, flaws = parse(text, max_depth=32, max_values=10_000, keeps_digits=True)
    except TooDeep as error:
        raise Usage(problem=f"the value is too large: {error}") from None
    is_link = _WIKILINK.fullmatch(text.strip())
    if node is None or flaws or node.anchored or node.style not in _IN_ONE_LINE or is_link:
        return text or None
    is_whole = text[slice(*node.span)] == text.strip()
    is_text = node.style == "plain" and isinstance(node.value, str)
    return node.value if is_whole and not is_text else text


def _replace_misread(text: str, braces: str = "") -> tuple[str, dict[int, str]]:
    """Return `text` for libyaml, and the table that undoes the replacements.

    It replaces line ends of YAML 1.1 alone and, with `braces`, the braces around a placeholder of a template.
    """
    breaks = [character for character in _BREAKS_OF_1_1 if character in text]
    if not breaks and not braces:
        return text, {}
    unused = (number for number in _PRIVATE_USE if chr(number) not in text)
    restore = dict(zip(unused, (*breaks, *braces), strict=False))
    table = {ord(character): number for number, character in restore.items()}
    if braces:
        text = PLACEHOLDER.sub(lambda found: found[0].translate(table), text)
    return text.translate({ord(character): table[ord(character)] for character in breaks}), restore


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


@dataclass(slots=True)
class _Open:
    """A collection that has not ended; the value of a mapping comes next for `key`."""

    event: yaml.CollectionStartEvent
    start: int
    members: list[Member] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    key: tuple[str, Span] | None = None
    skips_value: bool = False

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.event, yaml.MappingStartEvent)


@dataclass(slots=True)
class _Builder:
    text: str
    offset: int
    max_depth: int
    max_values: int
    restore: dict[int, str]
    keeps_digits: bool
    root: Node | None = None
    flaws: list[Flaw] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, Any] = field(default_factory=dict)
    _values: int = 0
    _documents: int = 0

    def take(self, event: Any) -> None:
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
                message = "more than one YAML document"
                self.flaws.append(
                    Flaw(self._span_of(event), "invalid-yaml", message, "keep one", "invalid-yaml")
                )

    def _span_of(self, event: Any) -> Span:
        return Span(self.offset + event.start_mark.index, self.offset + event.end_mark.index)

    def _check_limits(self, values: int, levels: int, at: int) -> None:
        if len(self._open) + levels > self.max_depth:
            raise TooDeep("values are nested too deeply", self.max_depth, at)
        self._values += values
        if self._values > self.max_values:
            raise TooDeep("too many values once aliases are followed", self.max_values, at)

    def _check_tag(self, tag: str | None, span: Span, known: frozenset[str]) -> None:
        if tag is not None and tag not in known:
            written = tag.replace(_CORE_TAG, "!!")
            message, hint = f"unknown YAML tag {written}", "plain values need no tag"
            self.flaws.append(Flaw(span, "unknown-tag", message, hint, written))

    def _add_scalar(self, event: Any) -> None:
        text, tag, style, span = event.value, event.tag, event.style, self._span_of(event)
        if self.restore:
            text = text.translate(self.restore)
        self._check_limits(1, 0, span.start)
        self._check_tag(tag, span, _VALUE_TAGS | _TEXT_TAGS)
        if style in ("|", ">"):  # up to the end of its last line that is not blank
            written = self.text[span.start - self.offset : span.end - self.offset]
            line_end = LINE_END.search(written, len(written.rstrip(" \t\r\n")))
            span = Span(span.start, span.start + (line_end.start() if line_end else len(written)))
        is_plain = tag in _VALUE_TAGS or (tag is None and not style)
        value = resolve(text) if is_plain else text
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.keeps_digits and tag is None and is_number and str(value) != text:
            value = text
        anchored = event.anchor is not None or tag is not None
        node = Node(value, span, "scalar", _STYLES.get(style, "plain"), anchored=anchored)
        self._add_node(node, event.anchor, text)

    def _add_alias(self, event: Any) -> None:
        span = self._span_of(event)
        if any(parent.event.anchor == event.anchor for parent in self._open):
            raise TooDeep("an alias contains itself", self.max_depth, span.start)
        if event.anchor not in self._anchors:
            problem = f"the alias *{event.anchor} stands for nothing: there is no &{event.anchor} before it"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        value = self._anchors[event.anchor]
        self._check_limits(*_measure(value), span.start)
        self._add_node(Node(value, span, "alias", "plain"), None, None)

    def _open_collection(self, event: yaml.CollectionStartEvent) -> None:
        span = self._span_of(event)
        self._check_limits(1, 1, span.start)
        self._check_tag(event.tag, span, _COLLECTION_TAGS)
        self._open.append(_Open(event, span.start))

    def _close_collection(self, event: yaml.CollectionEndEvent) -> None:
        closed = self._open.pop()
        members, items, start = closed.members, closed.items, closed.event
        parts = [member.node for member in members] if closed.is_mapping else items
        # A block collection's end event stands at the next token, behind comments that belong to no value.
        end = self._span_of(event).end if start.flow_style else (parts[-1].span.end if parts else 0)
        value: Any = (
            {member.key: member.node.value for member in members}
            if closed.is_mapping
            else [item.value for item in items]
        )
        if len(value) < len(members):
            self._add_duplicate_keys(members)
        node = Node(
            value=value,
            span=Span(closed.start, max(end, closed.start)),
            kind="mapping" if closed.is_mapping else "list",
            style="flow" if start.flow_style else "block",
            members=tuple(members),
            items=tuple(items),
            anchored=start.anchor is not None or start.tag is not None,
        )
        self._add_node(node, start.anchor, None)

    def _add_node(self, node: Node, anchor: str | None, as_key: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node.value
        if not self._open:
            self.root = self.root or node
            return
        parent = self._open[-1]
        if not parent.is_mapping:
            parent.items.append(node)
        elif parent.skips_value:
            parent.skips_value = False
        elif parent.key is not None:
            parent.members.append(Member(*parent.key, node))
            parent.key = None
        elif as_key is None:
            message, hint = "a key must be a plain text", "name the key by a text"
            self.flaws.append(Flaw(node.span, "complex-key", message, hint, "complex-key"))
            parent.skips_value = True
        else:
            parent.key = as_key, node.span

    def _add_duplicate_keys(self, members: Sequence[Member]) -> None:
        above = [parent.key[0] if parent.key else len(parent.items) for parent in self._open]
        seen = set()
        for key, span, _ in members:
            if key in seen:
                name = dotted([*above, key])
                message = f"the key {name!r} stands twice"
                self.flaws.append(Flaw(span, "duplicate-key", message, "keep one of them", name))
            seen.add(key)


def _measure(value: Any) -> tuple[int, int]:
    """Return how many values and keys a value holds, itself included, and how deeply it is nested."""
    if not isinstance(value, dict | list):
        return 1, 0
    sizes = [_measure(part) for part in (value.values() if isinstance(value, dict) else value)]
    keys = len(value) if isinstance(value, dict) else 0
    return 1 + keys + sum(size for size, _ in sizes), 1 + max((levels for _, levels in sizes), default=0)
