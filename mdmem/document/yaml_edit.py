"""Exact edits of the values in a text: block style YAML, and brackets, which are JSON and flow style YAML.

A new value takes its style and indentation from its siblings. A text is written plain only where every reader
agrees that it is a text: readers of YAML 1.1 take `no`, `12:30` and `0b1` for something else
(https://yaml.org/type/), so these are quoted, although YAML 1.2 needs no quotes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from mdmem.document.document import Document
from mdmem.document.edit import TextEdit
from mdmem.document.frontmatter import BOM
from mdmem.document.moment import read_date
from mdmem.document.text.lines import LINE_END
from mdmem.document.text.regex import regex
from mdmem.document.tree import Node, Style, resolve
from mdmem.errors import EditRefused


class Layout:
    """The lines of one document, around the values in it. Offsets are code points of its text."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.lines = document.lines

    def line_start(self, at: int) -> int:
        """Return the beginning of the line that `at` stands in."""
        return self.lines.around(at).start

    def content_end(self, at: int) -> int:
        """Return the end of the line that `at` stands in, before its line end."""
        return self.lines.content_end(self.lines.number(at))

    def following_line(self, at: int) -> int:
        """Return the beginning of the line behind the one that `at` stands in."""
        return self.lines.around(at).end

    def column(self, at: int) -> int:
        """Return how many characters stand before `at` in its line."""
        return at - self.line_start(at)

    def indent(self, at: int) -> str:
        """Return the blanks at the beginning of the line that `at` stands in."""
        line = self.text[self.line_start(at) : self.content_end(at)].removeprefix(BOM)
        return line[: len(line) - len(line.lstrip(" \t"))]

    def begins_line(self, at: int) -> bool:
        """Return whether only blanks stand before `at` in its line."""
        return not self.text[self.line_start(at) : at].removeprefix(BOM).strip(" \t")

    def unsupported(self, at: int, what: str, remedy: str) -> EditRefused:
        """Return the error about YAML at `at` that has no certain places."""
        reason = f"line {self.lines.number(at)}: {what} cannot be edited exactly"
        return self.document.refused(reason, remedy)


_STEP = 2  # how much deeper a nested mapping is indented

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


class PlainText(str):
    """A text that is never a date: it is quoted where other readers would take it for one."""

    __slots__ = ()


def scalar(value: str | float | None, style: Style = "plain", *, flow: bool = False) -> str:
    """Return a text, number, boolean or None, or a key, in one line.

    Args:
        style: how the value that it replaces is written; a text keeps its quotes where they can hold it.
        flow: whether it stands inside `[]` or `{}`.
    """
    if isinstance(value, str):
        return _quote_text(value, style, flow=flow)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _format_float(value)


def inline(value: Any) -> str:
    """Any value in one line: lists and mappings in flow style."""
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar(k, flow=True)}: {inline(v)}' for k, v in value.items())}}}"
    return scalar(value, flow=True)


def block(value: Any, dash_offset: int) -> list[str]:
    """Return the lines of a value in block style, the first one at column 0, without line ends.

    `dash_offset` is how many columns a list's dashes stand to the right of the key that holds the list.
    """
    if isinstance(value, dict) and value:
        return [line for name, part in value.items() for line in _member_lines(name, part, dash_offset)]
    if isinstance(value, list) and value:
        items = [block(part, dash_offset) for part in value]
        return [f"{'  ' if number else '- '}{line}" for lines in items for number, line in enumerate(lines)]
    return [inline(value) if isinstance(value, dict | list) else scalar(value)]


def _member_lines(name: str, value: Any, dash_offset: int) -> list[str]:
    lines = block(value, dash_offset)
    if not _takes_lines(value):
        return [f"{scalar(name)}: {lines[0]}"]
    indent = " " * (dash_offset if isinstance(value, list) else _STEP)
    return [f"{scalar(name)}:", *(indent + line for line in lines)]


def _takes_lines(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def literal(text: str, style: Style) -> tuple[str, list[str]] | None:
    """Return the header and lines of a text as a block scalar, or None where quotes are the safer way.

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


def _quote_text(text: str, style: Style, *, flow: bool) -> str:
    if style == "single" and not _ESCAPED.search(text):
        return "'" + text.replace("'", "''") + "'"
    if style != "double" and _is_plain(text, flow=flow):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    # A lone surrogate stays as it is: YAML has no escape for it, and the document refuses it by name.
    return _ESCAPED.sub(lambda m: m[0] if "\ud800" <= m[0] <= "\udfff" else f"\\u{ord(m[0]):04x}", quoted)


def _is_plain(text: str, *, flow: bool) -> bool:
    if not text or text != text.strip() or _ESCAPED.search(text) or (flow and _FLOW_INDICATORS.search(text)):
        return False
    if text.startswith((*_INDICATORS, "...")) or text.endswith(":") or ": " in text or " #" in text:
        return False
    if not isinstance(resolve(text), str) or _OLD_YAML.fullmatch(text):
        return False
    if _ISO_DATE.fullmatch(text) and not isinstance(text, PlainText):
        return read_date(text) is not None  # a reader of YAML 1.1 makes a date of it, and knows no 13th month
    return _old_tag()(text) == _TEXT_TAG


@cache
def _old_tag() -> Callable[[str], str]:
    """Return a function that gives the tag of a plain scalar in YAML 1.1."""
    import yaml  # noqa: PLC0415 - start-up

    resolve_tag = yaml.resolver.Resolver().resolve
    return lambda text: resolve_tag(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]


def _format_float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits, exponent, power = repr(value).partition("e")
    # YAML 1.1 readers want a point in a float.
    return (digits if "." in digits else f"{digits}.0") + exponent + power


_COLON = regex(r"[ \t]*:")
_COMMENT = regex(r"(?<![ \t])[ \t]++#")
_DASH = regex(r"[\r\n] *-")
_KEEPS_BLANKS = regex(r"[|>][0-9]?\+")
_DEFAULT_DASH_OFFSET = 2
_THIS_FORM = "this form of YAML", "write it as `key: value` or `- item`"


class _Written(NamedTuple):
    """How a value is written: `head` where the old one began, `tail` in lines of their own below."""

    head: str
    tail: list[str]


class BlockEdit(Layout):
    """Computes edits of one document's block collections; style and indentation follow the siblings."""

    def replace(self, container: Node, index: int, value: Any) -> list[TextEdit]:
        """Write `value` instead of the value at `index` of `container`; a comment in its line stays."""
        node = container.parts[index]
        owner = self._owner_end(container, index)
        apart = self.line_start(node.span.start) > owner
        if node.style == "block" and not node.anchored:
            return self._replace_block(container, index, value, apart=apart)
        head_end, tail = self._head_end(node), self._tail_of(node)
        written = self._write_member(container, index, value, apart=apart)
        below = "".join(self.lines.newline + line for line in written.tail)
        if not written.head:
            head = TextEdit(owner, head_end, "")
        elif node.span.start == node.span.end:
            head = TextEdit(owner, owner, " " + written.head)
        else:
            head = TextEdit(node.span.start, head_end, written.head)
        return [head, TextEdit(*tail, below)]

    def insert(self, container: Node, after: int, new: Sequence[tuple[str, Any]]) -> list[TextEdit]:
        """Write new members, or items without names, behind the one at index `after`.

        An index of -1 is the beginning. A comment in the last line of the value at the index stays there.
        """
        first = self._member_start(container, 0)
        indent, is_list = " " * self.column(first), container.kind == "list"
        written = block([value for _, value in new] if is_list else dict(new), self.dash_offset)
        lines = [indent + line for line in written]
        newline = self.lines.newline
        if after < 0:
            return [TextEdit(first, first, newline.join(lines).removeprefix(indent) + newline + indent)]
        at = self.content_end(self.end(container.parts[after]))
        return [TextEdit(at, at, "".join(newline + line for line in lines))]

    def remove(self, container: Node, first: int, last: int) -> list[TextEdit]:
        """Take away the members or items from index `first` to `last`, with the comments in their lines.

        Comments in lines of their own stay. At least one other member stays, unless this is the root.
        """
        nodes = container.parts
        edits = []
        for index in range(first, last + 1):
            start = self._member_start(container, index)
            line_end = self.content_end(self.end(nodes[index]))
            if self.begins_line(start):
                following = self.following_line(line_end)
                if index and self._keeps_blanks(nodes[index - 1]):
                    following = self._behind_blanks(following)
                edits.append(TextEdit(self.line_start(start), following, ""))
            elif index or len(nodes) == 1:
                raise self.unsupported(start, *_THIS_FORM)
            elif last > index or "#" in self.text[line_end : self._member_start(container, index + 1)]:
                # The first one behind an outer dash, which has to stay.
                outer = self.text[self.line_start(start) : start].rstrip(" ")
                edits.append(TextEdit(self.line_start(start) + len(outer), line_end, ""))
            else:
                edits.append(TextEdit(start, self._member_start(container, index + 1), ""))
        return edits

    def without_comment(self, node: Node) -> TextEdit:
        """Return the edit that takes away the comment in the last line of a block collection."""
        end = self.end(node)
        return TextEdit(end, self.content_end(end), "")

    def end(self, node: Node) -> int:
        """Return where the last line of a value's text ends; `Node.span` does not count trailing blanks."""
        node = _last_node(node)
        if node.style not in ("literal", "folded"):
            return node.span.end
        end = self.content_end(node.span.end)
        if self._keeps_blanks(node):
            end = self.content_end(self._behind_blanks(self.following_line(end)) - 1)
        return end

    # ------------------------------------------------------------------------------------------ writing

    def _replace_block(self, container: Node, index: int, value: Any, *, apart: bool) -> list[TextEdit]:
        node = container.parts[index]
        start, end = node.span.start, self.end(node)
        if _takes_lines(value):
            column = self.column(start)
            if isinstance(value, dict) and container.kind == "mapping":
                column = max(column, self.column(self._member_start(container, index)) + _STEP)
            written = self.lines.newline.join(" " * column + line for line in block(value, self.dash_offset))
            if apart:
                return [TextEdit(self.line_start(start), end, written)]
            return [TextEdit(start, end, written.removeprefix(" " * column))]
        written = block(value, self.dash_offset)[0]
        if not apart:
            return [TextEdit(start, end, written)]
        owner = self._owner_end(container, index)
        above = self.content_end(self.lines.span(self.lines.number(start) - 1).start)
        return [TextEdit(owner, owner, " " + written), TextEdit(above, end, "")]

    def _write_member(self, container: Node, index: int, value: Any, *, apart: bool) -> _Written:
        node = container.parts[index]
        if isinstance(value, str) and node.style in ("literal", "folded"):
            found = literal(value, node.style)
            if found:
                indent = self._content_indent(container, index)
                return _Written(found[0], [indent + line if line else "" for line in found[1]])
        if node.style == "flow" and isinstance(value, dict | list):
            return _Written(inline(value), [])
        lines = block(value, self.dash_offset)
        if not _takes_lines(value):
            return _Written(scalar(value, node.style) if isinstance(value, str) else lines[0], [])
        if apart:
            column = self.column(node.span.start)
        else:
            step = self.dash_offset if isinstance(value, list) and container.kind == "mapping" else _STEP
            column = self.column(self._member_start(container, index)) + step
        lines = [" " * column + line for line in lines]
        if container.kind == "mapping" and not apart:
            return _Written("", lines)
        return _Written(lines[0].lstrip(" "), lines[1:])

    def _content_indent(self, container: Node, index: int) -> str:
        node = container.parts[index]
        number = self.lines.number(node.span.start) + 1
        for line in range(number, self.lines.number(node.span.end) + 1):
            content = self.lines.content(line)
            if content.strip():
                return content[: len(content) - len(content.lstrip(" "))]
        return " " * (self.column(self._member_start(container, index)) + _STEP)

    def _keeps_blanks(self, node: Node) -> bool:
        """Return whether the blank lines behind a value are part of it, as with `|+`."""
        node = _last_node(node)
        header = self.text[node.span.start : self._head_end(node)]
        return node.style in ("literal", "folded") and bool(_KEEPS_BLANKS.search(header))

    def _behind_blanks(self, at: int) -> int:
        number = self.lines.number(at)
        while number < len(self.lines) and not self.lines.content(number).strip(" "):
            number += 1
        return self.lines.span(number).start

    @cached_property
    def dash_offset(self) -> int:
        """How far this document's list dashes stand to the right of the key above them."""
        tree = self.document.tree
        for _, member in tree.walk() if tree else ():
            node = member.node
            if node.kind == "list" and node.style == "block" and not node.anchored:
                return max(0, self.column(node.span.start) - self.column(member.key_span.start))
        return _DEFAULT_DASH_OFFSET

    # --------------------------------------------------------------------------------------- what stands

    def _member_start(self, container: Node, index: int) -> int:
        """Return where a member's key or an item's dash stands."""
        if container.kind == "mapping":
            return container.members[index].key_span.start
        first = container.span.start
        if container.anchored:  # the anchor stands behind the key, and the list begins in a line below
            dash = _DASH.search(self.text, first)
            first = dash.end() - 1 if dash else first
        if not index:
            return first
        # The dash may stand above its value, with comments between the two.
        margin = " " * self.column(first) + "-"
        number = self.lines.number(container.items[index].span.start)
        while not self.lines.content(number).startswith(margin):
            number -= 1
            if self.lines.span(number).start <= first:
                raise self.unsupported(container.items[index].span.start, *_THIS_FORM)
        return self.lines.span(number).start + len(margin) - 1

    def _owner_end(self, container: Node, index: int) -> int:
        """Return the end of the colon behind a key, or of an item's dash."""
        start = self._member_start(container, index)
        if container.kind == "list":
            return start + 1
        colon = _COLON.match(self.text, container.members[index].key_span.end)
        if not colon:
            raise self.unsupported(start, *_THIS_FORM)
        return colon.end()

    def _head_end(self, node: Node) -> int:
        """Return where a value ends in its first line; a block scalar has its header there."""
        if node.style not in ("literal", "folded"):
            return node.span.end
        line_end = self.content_end(node.span.start)
        comment = _COMMENT.search(self.text, node.span.start, line_end)
        header = self.text[node.span.start : comment.start() if comment else line_end]
        return node.span.start + len(header.rstrip(" \t"))

    def _tail_of(self, node: Node) -> tuple[int, int]:
        """Return the lines of a block scalar below its header, else the end of the line."""
        if node.style in ("literal", "folded"):
            start = self.content_end(node.span.start)
            return start, max(start, self.end(node))
        end = self.content_end(node.span.end)
        return end, end


def _last_node(node: Node) -> Node:
    below = node.parts if node.style == "block" else []
    return _last_node(below[-1]) if below else node


_COMMA = regex(r"(?:[ \t\r\n]|#[^\r\n]*+)*+,")
_COMMENT_AHEAD = regex(r"[ \t]+#")


class FlowEdit(Layout):
    """Computes edits of one document's bracketed collections; style and indentation follow the siblings."""

    def replace(self, container: Node, index: int, value: Any) -> list[TextEdit]:
        """Write `value` instead of the value at `index` of `container`."""
        node = container.parts[index]
        start, end = node.span
        if start < end:
            alone = self.begins_line(container.starts[index])
            return [TextEdit(start, end, self._write_replacement(node, value, alone=alone))]
        key_end = container.members[index].key_span.end
        colon = _COLON.match(self.text, key_end)
        at, mark = (colon.end(), " ") if colon else (key_end, ": ")
        return [TextEdit(at, at, mark + inline(value))]

    def insert(self, container: Node, after: int, new: Sequence[tuple[str, Any]]) -> list[TextEdit]:
        """See `BlockEdit.insert`; the container may be empty."""
        opening, closing = self._find_brackets(container)
        if not container.parts:
            return self._fill_empty(container, opening, closing, new)
        start = container.starts[max(after, 0)]
        alone, base = self.begins_line(start), self.indent(start)
        gap = self.lines.newline + base if alone else self._comma_style[1:]
        written = [self._write_part(container, *part, alone=alone, base=base) for part in new]
        if after < 0:
            return [TextEdit(start, start, "".join(f"{part},{gap}" for part in written))]
        at = container.parts[after].span.end
        if after + 1 < len(container.parts):
            return [TextEdit(at, at, "".join(f",{gap}{part}" for part in written))]
        return self._insert_at_end(at, gap, alone=alone, written=written)

    def remove(self, container: Node, first: int, last: int) -> list[TextEdit]:
        """Take away the members or items from index `first` to `last`; comments between them stay."""
        opening, closing = self._find_brackets(container)
        starts, ends = container.starts, [node.span.end for node in container.parts]
        before = ends[first - 1] if first else opening + 1
        behind = starts[last + 1] if last + 1 < len(starts) else closing
        if self._has_comment(container, before, behind, first, last):
            return [
                edit
                for index in range(first, last + 1)
                for edit in self._remove_beside_comment(container, index)
            ]
        if last + 1 < len(starts):
            return [TextEdit(starts[first], behind, "")]
        return [TextEdit(before, closing if not first else ends[last], "")]

    # ------------------------------------------------------------------------------------------ writing

    def _write_replacement(self, node: Node, value: Any, *, alone: bool) -> str:
        if not self.document.is_json:
            is_text = isinstance(value, str) and node.kind == "scalar"
            return scalar(value, node.style, flow=True) if is_text else inline(value)
        spread = not self._in_line(node) if node.parts else alone
        return self._write_json(value, spread=spread, base=self.indent(node.span.start))

    def _write_part(self, container: Node, name: str, value: Any, *, alone: bool, base: str) -> str:
        listed = container.kind == "list"
        if self.document.is_json:
            # Lists and objects beside it that stand in one line each are followed.
            in_line = any(type(n.value) is type(value) and self._in_line(n) for n in container.parts)
            written = self._write_json(value, spread=alone and not in_line, base=base)
            return written if listed else json.dumps(name, ensure_ascii=False) + self._colon_style + written
        written = inline(value)
        return written if listed else f"{scalar(name, flow=True)}: {written}"

    def _write_json(self, value: Any, *, spread: bool, base: str) -> str:
        if not spread or not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False, separators=(self._comma_style, self._colon_style))
        text = json.dumps(
            value, ensure_ascii=False, indent=self._indent_unit, separators=(",", self._colon_style)
        )
        return text.replace("\n", self.lines.newline + base)

    def _fill_empty(
        self, container: Node, opening: int, closing: int, new: Sequence[tuple[str, Any]]
    ) -> list[TextEdit]:
        base = self.indent(opening)
        spread = self.document.is_json and (container is self.document.tree or self._is_spread)
        inner = base + self._indent_unit
        written = [self._write_part(container, *part, alone=spread, base=inner) for part in new]
        if not spread:
            return [TextEdit(opening + 1, opening + 1, self._comma_style.join(written))]
        newline = self.lines.newline
        lines = f",{newline}{inner}".join(written)
        return [TextEdit(opening + 1, closing, f"{newline}{inner}{lines}{newline}{base}")]

    def _insert_at_end(self, at: int, gap: str, *, alone: bool, written: list[str]) -> list[TextEdit]:
        comma = None if self.document.is_json else _COMMA.match(self.text, at)
        after_comma = comma.end() if comma else at
        place = after_comma
        if alone and _COMMENT_AHEAD.match(self.text, after_comma):
            place = self.content_end(after_comma)
        if comma:
            return [TextEdit(place, place, "".join(f"{gap}{part}," for part in written))]
        if place == at:
            return [TextEdit(at, at, "".join(f",{gap}{part}" for part in written))]
        # The comment behind the last value stays with it: the comma goes before it, the rest behind.
        return [TextEdit(at, at, ","), TextEdit(place, place, gap + f",{gap}".join(written))]

    # ----------------------------------------------------------------------------------------- removing

    def _has_comment(self, container: Node, before: int, behind: int, first: int, last: int) -> bool:
        if self.document.is_json:
            return False
        gone = slice(first, last + 1)
        ends = [before, *(node.span.end for node in container.parts[gone])]
        starts = [*container.starts[gone], behind]
        return any("#" in self.text[end:start] for end, start in zip(ends, starts, strict=True))

    def _remove_beside_comment(self, container: Node, index: int) -> list[TextEdit]:
        start, end = container.starts[index], container.parts[index].span.end
        comma = _COMMA.match(self.text, end)
        gone = [TextEdit(start, end, "")]
        if comma:
            gone.append(TextEdit(comma.end() - 1, comma.end(), ""))
        reached = gone[-1].end
        if self.begins_line(start) and (not comma or comma.end() == end + 1):
            line_end = self.content_end(reached)
            rest = self.text[reached:line_end].strip(" \t")
            if not rest or rest.startswith("#"):
                following = self.following_line(reached)
                return [TextEdit(self.line_start(start), following, "")]
        return gone

    # --------------------------------------------------------------------------------------- what stands

    def _find_brackets(self, container: Node) -> tuple[int, int]:
        pair = "[]" if container.kind == "list" else "{}"
        start, end = container.span
        opening = self.text.find(pair[0], start, end) if container.anchored else start
        if opening < 0 or self.text[opening] != pair[0] or self.text[end - 1] != pair[1]:
            raise self.unsupported(start, "a pair without braces in a list", "write it as {key: value}")
        return opening, end - 1

    def _in_line(self, node: Node) -> bool:
        return bool(node.parts) and not LINE_END.search(self.text, *node.span)

    @cached_property
    def _colon_style(self) -> str:
        tree = self.document.tree if self.document.is_json else None
        first = next((member for _, member in tree.walk()), None) if tree else None
        written = self.text[first.key_span.end : first.node.span.start] if first else ": "
        return written if not LINE_END.search(written) else ": "

    @cached_property
    def _comma_style(self) -> str:
        if not self.document.is_json:
            return ", "
        for container in _find_containers(self.document.tree):
            starts = container.starts
            if len(starts) > 1 and not self.begins_line(starts[1]):
                gap = self.text[container.parts[0].span.end : starts[1]]
                return gap if gap.startswith(",") and not LINE_END.search(gap) else ", "
        return "," if self._colon_style.endswith(":") else ", "

    @cached_property
    def _is_spread(self) -> bool:
        """Whether the JSON is written with a line for each member."""
        return any(self.begins_line(c.starts[0]) for c in _find_containers(self.document.tree) if c.parts)

    @cached_property
    def _indent_unit(self) -> str:
        """What one level of the JSON's indentation is."""
        for container in _find_containers(self.document.tree):
            if container.parts and self.begins_line(container.starts[0]):
                outer, inner = self.indent(container.span.start), self.indent(container.starts[0])
                if inner.startswith(outer) and inner != outer:
                    return inner.removeprefix(outer)
        return "  "


def _find_containers(tree: Node | None) -> Iterator[Node]:
    return (node for node in tree.nodes() if node.kind in ("mapping", "list")) if tree else iter(())
