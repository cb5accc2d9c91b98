"""Exact edits of a document's values: which parts of a value change, and who writes each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from mdmem.text.block_edit import BlockEdit
from mdmem.text.document import Document
from mdmem.text.edit import TextEdit
from mdmem.text.flow_edit import FlowEdit
from mdmem.text.layout import parts
from mdmem.text.tree import Node


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal and of equal types: `1`, `1.0` and `True` differ, NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(part, other[name]) for name, part in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN
    kinds = (bool, int, float, str, dict, list)
    return [isinstance(one, k) for k in kinds] == [isinstance(other, k) for k in kinds] and bool(one == other)


class TreeEdit:
    """Computes edits of one document's values. A value is named by its parent and its index there."""

    def __init__(self, document: Document) -> None:
        self._flow = FlowEdit(document)
        self._block = BlockEdit(document)

    def change(self, parent: Node, index: int, value: Any) -> list[TextEdit]:
        """Give a value; of a collection, only what differs is written."""
        node = parts(parent)[index]
        if same(node.value, value):
            return []
        if node.kind == "mapping" and isinstance(value, dict):
            kept = [n for n, member in enumerate(node.members) if member.key in value]
            if kept and len(node.members) == len(node.value):
                return self._change_mapping(node, kept, value)
        if node.kind == "list" and isinstance(value, list) and node.items and value:
            return self._change_list(node, value)
        return self.rewrite(parent, index, value)

    def rewrite(self, parent: Node, index: int, value: Any) -> list[TextEdit]:
        """Give a value, and write the whole of it."""
        return self._editor(parent).replace(parent, index, value)

    def add(self, container: Node, key: str, value: Any) -> list[TextEdit]:
        """Write a new member, or item, behind the last one."""
        return self._editor(container).insert(container, len(parts(container)) - 1, [(key, value)])

    def remove(self, path: Sequence[tuple[Node, int]]) -> list[TextEdit]:
        """Take away a value, named by every parent from the root on and the index in each."""
        container, index = path[-1]
        if len(parts(container)) > 1 or len(path) == 1 or container.style != "block":
            return self._editor(container).remove(container, index, index)
        # Block style cannot write an empty collection.
        edits = self.rewrite(*path[-2], [] if container.kind == "list" else {})
        return [*edits, self._block.same_line_comment(container)]

    def _change_mapping(self, node: Node, kept: Sequence[int], value: dict[str, Any]) -> list[TextEdit]:
        editor = self._editor(node)
        edits = []
        for index in kept:
            edits += self.change(node, index, value[node.members[index].key])
        for first, last in _runs(n for n in range(len(node.members)) if n not in set(kept)):
            edits += editor.remove(node, first, last)
        added = [(key, part) for key, part in value.items() if key not in node.value]
        return edits + (editor.insert(node, kept[-1], added) if added else [])

    def _change_list(self, node: Node, value: list[Any]) -> list[TextEdit]:
        editor = self._editor(node)
        old = node.value
        head = _equal_head(old, value)
        tail = _equal_head(old[head:][::-1], value[head:][::-1])
        gone, come = len(old) - tail, len(value) - tail
        edits = []
        for index in range(head, min(gone, come)):
            edits += self.change(node, index, value[index])
        reached = min(gone, come)
        if gone > reached:
            edits += editor.remove(node, reached, gone - 1)
        if come > reached:
            edits += editor.insert(node, reached - 1, [("", part) for part in value[reached:come]])
        return edits

    def _editor(self, container: Node) -> FlowEdit | BlockEdit:
        return self._block if container.style == "block" else self._flow


def merged(edits: Iterable[TextEdit]) -> list[TextEdit]:
    """The edits without those that do nothing, insertions at one place made one, in the order given."""
    insertions: dict[int, str] = {}
    others = []
    for edit in edits:
        if edit.start < edit.end:
            others.append(edit)
        elif edit.new:
            insertions[edit.start] = insertions.get(edit.start, "") + edit.new
    return sorted([*others, *(TextEdit(at, at, new) for at, new in insertions.items())])


def _equal_head(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many values at the beginning of both are the same."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if not same(left, right):
            break
        count += 1
    return count


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as runs of neighbours: the first and the last of each."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return [(run[0], run[-1]) for run in runs]
