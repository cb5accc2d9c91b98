"""Exact edits of block style YAML: `key: value` lines and `- item` lines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from mdmem.errors import EditRefused
from mdmem.text import yaml_write
from mdmem.text.edit import TextEdit
from mdmem.text.layout import Layout, parts
from mdmem.text.regex import regex
from mdmem.text.tree import Node

_COLON = regex(r"[ \t]*:")
_COMMENT = regex(r"(?<![ \t])[ \t]++#")
_DASH = regex(r"[\r\n] *-")
_KEEPS_BLANKS = regex(r"[|>][0-9]?\+")
_DEFAULT_DASH_OFFSET = 2


class _Written(NamedTuple):
    """How a value is written: `head` where the old one began, `tail` in lines of their own below."""

    head: str
    tail: list[str]


class BlockEdit(Layout):
    """Computes edits of one document's block collections; style and indentation follow the siblings."""

    def replace(self, container: Node, index: int, value: Any) -> list[TextEdit]:
        """Write `value` in place of the value at `index` of `container`; a comment in its line stays."""
        node = parts(container)[index]
        owner = self._owner_end(container, index)
        apart = self.line_start(node.span.start) > owner
        if node.style == "block" and not node.anchored:
            return self._replace_block(container, index, value, apart=apart)
        head_end, tail = self._head_end(node), self._tail(node)
        written = self._written(container, index, value, apart=apart)
        below = "".join(self.lines.newline + line for line in written.tail)
        if not written.head:
            head = TextEdit(owner, head_end, "")
        elif node.span.start == node.span.end:
            head = TextEdit(owner, owner, " " + written.head)
        else:
            head = TextEdit(node.span.start, head_end, written.head)
        return [head, TextEdit(*tail, below)]

    def insert(self, container: Node, after: int, new: Sequence[tuple[str, Any]]) -> list[TextEdit]:
        """Write new members, or items (whose names do not count), behind the one at index `after`.

        Args:
            container: the list or mapping; it is not empty.
            after: the index; -1 is the beginning. A comment in the last line of that value stays there.
            new: names and values.
        """
        first = self._start(container, 0)
        indent = " " * self.column(first)
        lines = [
            indent + line
            for name, value in new
            for line in (
                yaml_write.item(value, self.dash_offset)
                if container.kind == "list"
                else yaml_write.member(name, value, self.dash_offset)
            )
        ]
        newline = self.lines.newline
        if after < 0:
            return [TextEdit(first, first, newline.join(lines).removeprefix(indent) + newline + indent)]
        at = self.content_end(self.end(parts(container)[after]))
        return [TextEdit(at, at, "".join(newline + line for line in lines))]

    def remove(self, container: Node, first: int, last: int) -> list[TextEdit]:
        """Take away the members or items from index `first` to `last`, with the comments in their lines.

        Comments in lines of their own stay. At least one other member stays, unless this is the root.
        """
        nodes = parts(container)
        edits = []
        for index in range(first, last + 1):
            start = self._start(container, index)
            line_end = self.content_end(self.end(nodes[index]))
            if self.begins_line(start):
                following = self.following_line(line_end)
                if index and self._keeps_blanks(nodes[index - 1]):
                    following = self._behind_blanks(following)
                edits.append(TextEdit(self.line_start(start), following, ""))
            elif index or len(nodes) == 1:
                raise self._unsupported(start)
            elif last > index or "#" in self.text[line_end : self._start(container, index + 1)]:
                # The first one behind an outer dash, which has to stay.
                outer = self.text[self.line_start(start) : start].rstrip(" ")
                edits.append(TextEdit(self.line_start(start) + len(outer), line_end, ""))
            else:
                edits.append(TextEdit(start, self._start(container, index + 1), ""))
        return edits

    def same_line_comment(self, node: Node) -> TextEdit:
        """The edit that takes away the comment behind the last line of a block collection."""
        end = self.end(node)
        return TextEdit(end, self.content_end(end), "")

    def end(self, node: Node) -> int:
        """Where the last line of a value's text ends; `Node.span` does not count trailing blanks."""
        node = _last(node)
        if node.style not in ("literal", "folded"):
            return node.span.end
        end = self.content_end(node.span.end)
        if self._keeps_blanks(node):
            end = self.content_end(self._behind_blanks(self.following_line(end)) - 1)
        return end

    # ------------------------------------------------------------------------------------------ writing

    def _replace_block(self, container: Node, index: int, value: Any, *, apart: bool) -> list[TextEdit]:
        node = parts(container)[index]
        start, end = node.span.start, self.end(node)
        if yaml_write.is_block(value):
            column = self.column(start)
            if isinstance(value, dict) and container.kind == "mapping":
                column = max(column, self.column(self._start(container, index)) + yaml_write.STEP)
            lines = [" " * column + line for line in yaml_write.block(value, self.dash_offset)]
            written = self.lines.newline.join(lines)
            if apart:
                return [TextEdit(self.line_start(start), end, written)]
            return [TextEdit(start, end, written.removeprefix(" " * column))]
        written = yaml_write.block(value, self.dash_offset)[0]
        if not apart:
            return [TextEdit(start, end, written)]
        owner = self._owner_end(container, index)
        above = self.content_end(self.lines.span(self.lines.number(start) - 1).start)
        return [TextEdit(owner, owner, " " + written), TextEdit(above, end, "")]

    def _written(self, container: Node, index: int, value: Any, *, apart: bool) -> _Written:
        node = parts(container)[index]
        if isinstance(value, str) and node.style in ("literal", "folded"):
            found = yaml_write.literal(value, node.style)
            if found:
                indent = self._content_indent(container, index)
                return _Written(found[0], [indent + line if line else "" for line in found[1]])
        if node.style == "flow" and isinstance(value, dict | list):
            return _Written(yaml_write.inline(value), [])
        lines = yaml_write.block(value, self.dash_offset)
        if not yaml_write.is_block(value):
            return _Written(yaml_write.scalar(value, node.style) if isinstance(value, str) else lines[0], [])
        if apart:
            column = self.column(node.span.start)
        else:
            column = self.column(self._start(container, index))
            step = (
                self.dash_offset
                if isinstance(value, list) and container.kind == "mapping"
                else yaml_write.STEP
            )
            column += step
        lines = [" " * column + line for line in lines]
        if container.kind == "mapping" and not apart:
            return _Written("", lines)
        return _Written(lines[0].lstrip(" "), lines[1:])

    def _content_indent(self, container: Node, index: int) -> str:
        node = parts(container)[index]
        number = self.lines.number(node.span.start) + 1
        for line in range(number, self.lines.number(node.span.end) + 1):
            content = self.lines.content(line)
            if content.strip():
                return content[: len(content) - len(content.lstrip(" "))]
        return " " * (self.column(self._start(container, index)) + yaml_write.STEP)

    def _keeps_blanks(self, node: Node) -> bool:
        """Whether the blank lines behind a value are part of it, as with `|+`."""
        node = _last(node)
        header = self.text[node.span.start : self._head_end(node)]
        return node.style in ("literal", "folded") and bool(_KEEPS_BLANKS.search(header))

    def _behind_blanks(self, at: int) -> int:
        """The beginning of the first line from the one at `at` on that is not blank."""
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

    def _start(self, container: Node, index: int) -> int:
        """Where a member's key or an item's dash stands."""
        if container.kind == "mapping":
            return container.members[index].key_span.start
        first = self._first_dash(container)
        if not index:
            return first
        # The dash may stand above its value, with comments between the two.
        dash = " " * self.column(first) + "-"
        number = self.lines.number(container.items[index].span.start)
        while not self.lines.content(number).startswith(dash):
            number -= 1
            if self.lines.span(number).start <= first:
                raise self._unsupported(container.items[index].span.start)
        return self.lines.span(number).start + len(dash) - 1

    def _first_dash(self, container: Node) -> int:
        if not container.anchored:
            return container.span.start
        # The anchor stands behind the key, and the list begins in a line below.
        dash = _DASH.search(self.text, container.span.start)
        return dash.end() - 1 if dash else container.span.start

    def _owner_end(self, container: Node, index: int) -> int:
        """The end of what a value belongs to: the colon behind a key, or an item's dash."""
        if container.kind == "list":
            return self._start(container, index) + 1
        colon = _COLON.match(self.text, container.members[index].key_span.end)
        if not colon:
            raise self._unsupported(container.members[index].key_span.start)
        return colon.end()

    def _head_end(self, node: Node) -> int:
        """Where the part of a value in its first line ends, for a block scalar: the end of its header."""
        if node.style not in ("literal", "folded"):
            return node.span.end
        line_end = self.content_end(node.span.start)
        comment = _COMMENT.search(self.text, node.span.start, line_end)
        header = self.text[node.span.start : comment.start() if comment else line_end]
        return node.span.start + len(header.rstrip(" \t"))

    def _tail(self, node: Node) -> tuple[int, int]:
        """The lines of a block scalar below its header; else an empty span at the end of the value's line."""
        if node.style in ("literal", "folded"):
            start = self.content_end(node.span.start)
            return start, max(start, self.end(node))
        end = self.content_end(node.span.end)
        return end, end

    def _unsupported(self, at: int) -> EditRefused:
        reason = f"line {self.lines.number(at)}: this form of YAML cannot be edited exactly"
        return EditRefused(
            path=self.document.path, reason=reason, remedy="write it as `key: value` or `- item`"
        )


def _last(node: Node) -> Node:
    """The value that ends where a block collection ends."""
    below = parts(node) if node.style == "block" else []
    return _last(below[-1]) if below else node
