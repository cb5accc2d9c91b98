"""The facts of a memory: what a person would change, or take back, on its own.

A fact is a node of the tree that has words: a heading, an item, a row of a table, else a paragraph or another
block, also one on a later line of an item. Each line that is not blank, and no rule, is in one fact.
"""

from __future__ import annotations

from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.anchor import BLOCK_MARK
from mdmem.document.document import Document
from mdmem.document.markdown.blocks import LIST_MARKER
from mdmem.document.outline import Tree, TreeNode, read_tree
from mdmem.document.text.regex import regex

_NO_FACTS = frozenset(["root", "list", "rule"])
_MARKERS = {
    "item": regex(rf"\A[ \t]*(?:{LIST_MARKER}(?:[ \t]+|\Z))+"),
    "quote": regex(r"(?m)^[ \t]*(?:>[ \t]?)+"),
}
_BLANKS = regex(r"[ \t\r\n]+")


class Fact(NamedTuple):
    """A fact of a memory.

    Attributes:
        kind: as in `TreeNode`, or "heading", "row" (a table's first one, too), "source" (unreadable fields).
        id: its block id, without the caret; "" without.
        path: the titles of the headings that it stands under, from the outermost on.
        text: its words in one line, without marker and block id; a heading with its marks, code by line.
        span: its own lines, `line` to `last`, without the end of the last one.
        parent: the index of the item that it stands in, else of the nearest heading above; None without.
    """

    kind: str
    id: str
    path: tuple[str, ...]
    text: str
    span: Span
    line: int
    last: int
    parent: int | None

    @property
    def said(self) -> str:
        """Its words, with its block id behind them."""
        return f"{self.text} {BLOCK_MARK}{self.id}".lstrip() if self.id else self.text


def facts(document: Document) -> tuple[Fact, ...]:
    """Return the facts in the body of a Markdown memory, in order; a JSON memory has fields only."""
    return () if document.is_json else tuple(facts_by_node(document, read_tree(document)).values())


def facts_by_node(document: Document, tree: Tree) -> dict[TreeNode, Fact]:
    """Return the facts of a memory, each with its node in the memory's tree, in order."""
    found: dict[TreeNode, Fact] = {}
    numbers: dict[TreeNode | None, int] = {}
    path: tuple[str, ...] = ()
    for node in tree.nodes:
        if node.kind in _NO_FACTS or not node.line:
            continue
        parent = node.above or node.parent
        while parent and parent.kind in {"list", "table"}:
            parent = parent.parent
        kind: str = "row" if node.kind == "table" else node.kind
        text = node.words if node.is_code else in_one_line(kind, node.words)
        if node.kind == "section":
            kind, text, path = "heading", f"{node.marker} {node.words}", node.path[:-1]
        start = max(document.lines.starts[node.line - 1], document.body_span.start)
        span = Span(start, start + len(node.head.rstrip("\r\n")))
        numbers[node] = len(found)
        found[node] = Fact(kind, node.id, path, text, span, node.line, node.last, numbers.get(parent))
        path = node.path or path
    return found


def in_one_line(kind: str, text: str) -> str:
    """Return the words of a text, without markers and line ends."""
    return _BLANKS.sub(" ", _MARKERS[kind].sub("", text) if kind in _MARKERS else text).strip(" ")
