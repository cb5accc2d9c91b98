"""The tree of a Markdown memory: sections, lists, items, tables, rows and other blocks, in whole lines.

Each line of the body belongs to one node, or is a blank line above one. Sections are flat, one behind the
other; their level is a property. Quotes, footnotes and code hold no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mdmem.document.document import Document
from mdmem.document.markdown import blocks
from mdmem.document.text.lines import whole_lines, with_newline
from mdmem.document.text.regex import regex
from mdmem.errors import TooManyParts

TreeNodeKind = Literal[
    "root",
    "section",
    "list",
    "item",
    "table",
    "row",
    "paragraph",
    "code",
    "quote",
    "html",
    "rule",
    "footnote",
    "definition",
]
_LEAVES: dict[str, TreeNodeKind] = {
    blocks.PARAGRAPH: "paragraph",
    blocks.HEADING: "paragraph",  # in an item
    blocks.CODE_BLOCK: "code",
    blocks.QUOTE: "quote",
    blocks.RULE: "rule",
    "HtmlBlock": "html",
    "FootnoteDefinition": "footnote",
}
MARKER = regex(rf"([ \t]*){blocks.LIST_MARKER}(?:[ \t]+|(?=[\r\n]|\Z))")
"""What stands before the words of an item; its group is the indentation."""
_LABEL = regex(r"[ \t]*\[((?:[^\[\]\\]|\\.)+)\]:")
_BARS = regex(r" ?(?<!\\)\| ?")
_BLANKS = regex(r"[ \t]+")
_ID = regex(r"(?:[ \t]|(?<=\n)|\A)\^[A-Za-z0-9-]+[ \t]*(?=[\r\n]|\Z)")


class Margin(NamedTuple):
    """The indentation of an item: what stands before its marker, and how wide the marker is."""

    indent: str = ""
    width: int = 0

    def shifted(self, text: str, new: Margin) -> str:
        """Lines that stand in this item, indented as in another one."""
        if self == new:
            return text
        deep = (f"{self.indent}{' ' * self.width}", f"{self.indent}\t" if self.width else self.indent)

        def shift(line: str) -> str:
            inside = next((each for each in deep if line.startswith(each)), None)
            if not line.strip(" \t\r\n") or inside is None:
                return line
            return f"{new.indent}{' ' * new.width}{line[len(inside) :]}"

        return "".join(map(shift, whole_lines(text)))


def margin_of(head: str) -> Margin:
    """Return the indentation inside of an item that begins with this text; none for other text."""
    found = MARKER.match(head)
    return Margin(found[1], len(found[0]) - len(found[1])) if found else Margin()


@dataclass(slots=True, eq=False)
class TreeNode:
    """A part of a document.

    Attributes:
        kind: what it is; a "list", the "root" and what stands above the first heading have no own lines.
        line, last: the numbers of its first and last own line, 1-based.
        lead: the blank lines above; a list has those of its first item.
        head: its own lines, as they are written. Of an item, all blocks that begin in its first line; of a
            table, the header and the line under it.
        marker: of an item, its bullet or number with the blanks around; of a section, its level in `#`.
        words: its lines without marker, indentation and block id; of a row its cells; of a section its title.
        margin: the indentation of the item that it stands in.
        label: of a footnote or a link definition, what refers to it.
        path: of a section, the titles from the outermost heading down to its own.
        above: of a section, the one that it is under; that without heading where no other is.
        is_code: whether spaces in it count.
    """

    kind: TreeNodeKind
    line: int = 0
    last: int = 0
    lead: str = ""
    head: str = ""
    marker: str = ""
    words: str = ""
    margin: Margin = field(default_factory=Margin)
    id: str = ""
    label: str = ""
    path: tuple[str, ...] = ()
    above: TreeNode | None = None
    is_code: bool = False
    parent: TreeNode | None = None
    children: list[TreeNode] = field(default_factory=list)
    limit: int = 0  # the last line that it may have

    @property
    def level(self) -> int:
        """Of a section, that of its heading; 0 for what stands above the first one."""
        return len(self.marker) if self.kind == "section" else 0

    @property
    def inner(self) -> Margin:
        """The indentation inside of an item."""
        return margin_of(self.head) if self.kind == "item" else self.margin

    def walk(self) -> Iterator[TreeNode]:
        """Yield the node and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def source(self) -> str:
        """The node and all below it as they are written, without the blank lines above."""
        return self.head + "".join(child.lead + child.source for child in self.children)


@dataclass(slots=True, eq=False)
class Tree:
    """A body as a tree: the root, all nodes in order, and the blank lines at the end."""

    root: TreeNode
    nodes: list[TreeNode]
    tail: str

    @property
    def source(self) -> str:
        """The body, as it is written."""
        return self.root.source + self.tail


def without_marker(line: str) -> str:
    """Return a line without the marker of an item and the blanks around that."""
    found = MARKER.match(line)
    return line[found.end() :] if found else line


def read_tree(document: Document) -> Tree:
    """Return the tree of the body of a Markdown memory.

    Raises:
        TooManyParts: the memory has more headings, items or the like than its limit.
    """
    return _Reading(document).tree()


class _Reading:
    def __init__(self, document: Document) -> None:
        self._document = document
        start = document.body_span.start
        self._lines = whole_lines(document.text, start)
        self._number = document.lines.number
        self._first = self._number(start) if self._lines else len(document.lines) + 1
        self._most = document.limits.max_parts * 3
        self._ids = {block.line: block.id for block in reversed(document.blocks)}
        self._sections = {each.heading.line: each for each in document.sections}
        self._items: list[TreeNode] = []  # open ones; one in the line of another is the same node
        self._root = TreeNode("root")
        self._nodes = [self._root]
        self._section = self._add_node("section", self._root, 0)
        self._lists: list[TreeNode | None] = []
        self._table: TreeNode | None = None
        self._hidden = 0  # blocks that are open and no nodes
        self._last = self._section  # the last node with lines
        self._taken = self._first - 1  # the last line that surely belongs to it
        self._lead = ""

    def tree(self) -> Tree:
        text, start = self._document.text, self._document.body_span.start
        for name, opens, closes, first, end in blocks.events(text, start, self._document.limits.max_parts):
            if opens:
                self._open_container(name, self._number(first), self._number(max(first, end - 1)))
            if closes:
                self._close_container(name)
        self._reach_line(self._first + len(self._lines))
        tail = self._lead
        for each in self._nodes:
            if each.kind == "list":
                each.lead, each.children[0].lead = each.children[0].lead, ""
        return Tree(self._root, list(self._root.walk()), tail)

    def _open_container(self, name: str, first: int, last: int) -> None:
        if self._hidden:
            self._hidden += 1
        elif name == blocks.LIST:
            self._lists.append(None)
        elif first <= self._taken:  # what begins in a line of another node is a part of it
            if name == blocks.ITEM:
                self._items.append(self._items[-1])
            else:
                self._last.is_code |= name == blocks.CODE_BLOCK
                self._last.limit = max(self._last.limit, last)
                self._hidden = 1
        elif name == blocks.ITEM:
            parent = self._innermost_node()
            if self._lists[-1] is None:
                self._reach_line(first)
                self._lists[-1] = self._add_node("list", parent, first)
            self._items.append(self._begin_node("item", self._lists[-1] or parent, first, last))
        elif name == blocks.TABLE:
            self._table = self._begin_node("table", self._innermost_node(), first, first + 1)
            self._taken = first + 1
        else:
            self._hidden = 1
            self._add_block(name, first, last)

    def _add_block(self, name: str, first: int, last: int) -> None:
        if name == blocks.HEADING and first in self._sections:
            section, above = self._sections[first], self._section
            while above.above and above.level >= section.heading.level:
                above = above.above
            self._section = self._begin_node("section", self._root, first, last)
            self._section.marker = "#" * section.heading.level
            self._section.path, self._section.above = section.path, above
        elif name == blocks.ROW and self._table:
            self._begin_node("row", self._table, first, first)
        elif name != blocks.HEAD:
            self._add_leaf(name, first, last)

    def _close_container(self, name: str) -> None:
        if self._hidden:
            self._hidden -= 1
        elif name == blocks.ITEM:
            item = self._items[-1]
            if self._items.count(item) == 1:
                self._reach_line(item.limit + 1)
            self._items.pop()
        elif name == blocks.LIST:
            self._lists.pop()
        elif name == blocks.TABLE:
            self._table = None

    def _innermost_node(self) -> TreeNode:
        return self._items[-1] if self._items else self._section

    def _add_leaf(self, name: str, first: int, last: int) -> None:
        kind = _LEAVES[name]
        if kind == "paragraph":
            while last > first and not self._line_text(last).strip(" \t\r\n"):
                last -= 1
            for line in range(first, last):  # a line that ends in an id ends a fact
                if line in self._ids:
                    self._begin_node(kind, self._innermost_node(), first, line)
                    first = line + 1
        node = self._begin_node(kind, self._innermost_node(), first, last)
        node.is_code = kind == "code"

    def _begin_node(self, kind: TreeNodeKind, parent: TreeNode, first: int, last: int) -> TreeNode:
        """Begin a node; the lines above belong to the nodes that stand there."""
        self._reach_line(first)
        node = self._add_node(kind, parent, first)
        node.lead, self._lead = self._lead, ""
        node.limit = last
        self._last = node
        self._taken = first if kind == "item" else last
        return node

    def _add_node(self, kind: TreeNodeKind, parent: TreeNode, line: int) -> TreeNode:
        node = TreeNode(kind, line=line, parent=parent)
        if self._items:
            node.margin = self._items[-1].inner
        parent.children.append(node)
        self._nodes.append(node)
        if len(self._nodes) > self._most:
            raise TooManyParts(path="", limit=self._most, what="items and blocks")
        return node

    def _reach_line(self, line: int) -> None:
        """Give the lines above `line` to their nodes; those in no block are definitions."""
        self._finish_last(min(self._last.limit, line - 1))
        while (at := self._taken + 1) < line:
            self._taken = at
            if not self._line_text(at).strip(" \t\r\n"):
                self._lead += self._line_text(at)
                continue
            node = self._add_node("definition", self._innermost_node(), at)
            node.lead, self._lead = self._lead, ""
            node.limit = at
            self._last = node
            self._finish_last(at)

    def _finish_last(self, last: int) -> None:
        node = self._last
        if node.head or not node.line:
            return
        while last > node.line and not self._line_text(last).strip(" \t\r\n"):
            last -= 1
        node.last = last
        node.head = "".join(self._lines[node.line - self._first : last + 1 - self._first])
        node.id = next((self._ids[line] for line in range(node.line, last + 1) if line in self._ids), "")
        self._taken = last
        if node.kind == "item":
            found = MARKER.match(node.head)
            node.marker = found[0] if found else ""
        elif node.kind in {"footnote", "definition"}:
            label = _LABEL.match(node.head)
            node.label = " ".join(label[1].casefold().split()) if label else ""
        if node.kind == "section":
            title = self._sections[node.line].heading.title
            node.words = _ID.sub("", title) if node.id else title
        else:
            node.words = _read_words(node)

    def _line_text(self, number: int) -> str:
        return self._lines[number - self._first]


def _read_words(node: TreeNode) -> str:
    """Return the words of a node, without what lays them out."""
    text = node.head
    if node.id:
        text = _ID.sub("", text, count=1)
    text = text[len(node.marker) :]
    if not (node.is_code or node.kind in {"table", "row"}):
        return "\n".join([line.strip(" \t\r\n") for line in whole_lines(text)]).strip("\n")
    text = with_newline(text, "\n").strip("\n")
    first, _, below = text.partition("\n")
    if not node.is_code:
        first = _BLANKS.sub(" ", first).strip(" ")
        return _BARS.sub(" | ", first.removeprefix("|").removesuffix("|")).strip(" ")
    from textwrap import dedent  # noqa: PLC0415 - code in lists is rare, and start-up

    if node.kind == "item":  # its first line has the marker for indentation
        return "\n".join((first.strip(" \t"), dedent(below).rstrip(" \t\n")))
    return dedent(text).rstrip(" \t\n")
