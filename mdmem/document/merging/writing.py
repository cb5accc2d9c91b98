"""The text of a joined tree: the lines of each node, and conflicts around those that cannot be decided."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import Document
from mdmem.document.merging.conflict import Conflicts, MergeConflict
from mdmem.document.merging.joining import SIDES, Joined, Trio, list_marker
from mdmem.document.merging.likeness import PlacedFact, find_alike
from mdmem.document.merging.line_merge import Piece, join_lines, merge_loose_lines
from mdmem.document.merging.matching import section_of
from mdmem.document.outline import MARKER, Margin, Tree, TreeNode, margin_of
from mdmem.document.relink import repointed
from mdmem.document.text.diff import Versions
from mdmem.document.text.lines import whole_lines
from mdmem.document.text.regex import regex, shortened

_HASHES = regex(r" {0,3}#{1,6}[ \t]+")
_GLUED = frozenset(["item", "row", "section"])
_LEAVES = frozenset(["code", "quote", "html", "footnote"])  # in which no line stands on its own
_BOX = regex(r"\[[^\[\]]\][ \t]+")
_NUMBER = regex(r"[0-9]+")
_MATH_OR_TERM = regex(r"[ \t]*(?:\$\$|:[ \t])")


class Written(NamedTuple):
    """A node of the result: its kind, its words where they are those of a side, and its parent's place."""

    kind: str
    words: str | None
    parent: int


class _Chunk(NamedTuple):
    """A piece of the result: plain text in `text`, or a conflict about `node`."""

    text: str
    conflict: MergeConflict | None = None


class Writer:
    """Writes the body of a merge.

    Attributes:
        written: the nodes that stand in the text, from the root on.
        misplaced: the title of a section that came below another than on either side; empty without.
        composed: the lines of nodes with parts from both sides.
    """

    def __init__(
        self, documents: Versions[Document], trees: Versions[Tree], joined: Joined, last: int = 1
    ) -> None:
        self._last = last
        self.written: list[Written] = []
        self.composed: set[str] = set()
        self._documents, self._trees, self._joined = documents, trees, joined
        self._above: Trio | None = None
        self.misplaced = ""
        self._open: list[tuple[int, Trio]] = []  # the sections around, by level
        self._line = 1  # of theirs, that was written last
        self._chunks: list[_Chunk] = []
        self._numbers: dict[Trio, int] = {}
        self._tops = [_find_above(tree, joined.trios) for tree in trees]
        self._newline = documents.theirs.lines.newline

    def write(self, conflicts: Conflicts) -> str:
        """Return the text; with conflicts between markers, if there are any."""
        self._write_node(self._joined.root, Margin(), -1)
        tails = Versions(*(tree.tail for tree in self._trees))
        self._chunks.append(_Chunk((tails.agreed() or (max(tails.ours, tails.theirs),))[0]))
        return join_lines(
            conflicts.take(chunk.conflict, self._newline) if chunk.conflict else chunk.text
            for chunk in _join_neighbours(self._chunks)
        )

    def _write_node(self, trio: Trio, margin: Margin, parent: int) -> None:
        if trio.state == "conflict":
            sources = (node and node.lead + node.source for node in trio.nodes)
            self._add_conflict(trio, Versions(*(source or "" for source in sources)), trio.why)
        else:
            place = len(self.written)
            margin = self._write_own(trio, margin, parent)
            if trio.node.kind == "list":
                self._number_items(trio)
            for child in trio.children:
                self._write_node(child, margin, place)

    def _number_items(self, trio: Trio) -> None:
        """Number on the items of a list if both sides added or removed some, and all versions count."""
        items = trio.nodes.map(lambda node: node.children if node else [])
        base, *sides = items.map(lambda nodes: [self._joined.trios[item] for item in nodes])
        markers = items.map(lambda nodes: [_NUMBER.search(item.marker) for item in nodes])
        numbers = [[int(each[0]) for each in found if each] for found in markers if found]
        if base in sides or sides[0] == sides[1] or not all(sides) or not all(numbers):
            return
        if all(each == list(range(each[0], each[0] + len(each))) for each in numbers):
            self._numbers.update((child, numbers[0][0] + at) for at, child in enumerate(trio.children))
            heads = (item.head for item in chain(*items))
            self._note_composed(*heads)

    def _note_composed(self, *texts: str) -> None:
        self.composed.update(line.strip(" \t\r\n") for text in texts for line in whole_lines(text))

    def _renumber(self, head: str, number: int) -> str:
        found = MARKER.match(head)
        marker = _NUMBER.sub(str(number), found[0]) if found else ""
        changed = _replace_marker(head, marker)
        self._note_composed(changed)
        return changed

    def _write_own(self, trio: Trio, margin: Margin, parent: int) -> Margin:
        """Write the lines of a node without its children; return the indentation of the children."""
        node = trio.node
        self._chunks.append(_Chunk(self._merged_lead(trio)))
        self.written.append(Written(node.kind, node.words, parent))
        if node.kind == "section":
            self._check_outline(trio)
        if not node.head:
            return margin
        heads = Versions(*(each.margin.shifted(each.head, margin) if each else "" for each in trio.nodes))
        if node.kind == "item" and not trio.nodes.base and len(trio.sides) == 1:
            heads = heads.map(lambda head: self._with_bullet(trio, head))
        pieces, words = self._merged_head(trio, heads)
        if trio in self._numbers and len(pieces) == 1 and pieces[0].text:
            pieces = [Piece(self._renumber(pieces[0].text, self._numbers[trio]))]
        self.written[-1] = Written(self._agreed_kind(trio), words, parent)
        for piece in pieces:
            if piece.sides is None:
                self._chunks.append(_Chunk(piece.text))
            else:
                self._add_conflict(trio, piece.sides, "changed by both sides", piece.line)
        self._reach_node(trio)
        if node.kind != "item":
            return margin
        return margin_of(next((piece.text for piece in pieces if piece.text), heads[trio.sides[-1]]))

    def _with_bullet(self, trio: Trio, head: str) -> str:
        """Return an added item with the bullet that the other side gave its list, indented as there."""
        (side,), found = trio.sides, MARKER.match(head)
        own, around = trio.on(side).parent, trio.parent
        other = around.nodes[3 - side] if around else None
        if not (own and around and other and other.children and found):
            return head
        marker, indent = found[0], margin_of(other.children[0].head).indent
        before, old, new = (list_marker(each) for each in (around.nodes.base or own, own, other))
        if before == old != new and {old, new} <= {*"-+*"}:
            marker = marker.replace(old, new)
        if own is not around.nodes[side]:
            marker = indent + marker.lstrip(" \t")
        changed = _replace_marker(head, marker)
        if changed != head:
            self._note_composed(head, changed)
        return changed

    def _check_outline(self, trio: Trio) -> None:
        """Note a section that is not below the section that it is below on a side."""
        levels = Versions(*(each.level if each else None for each in trio.nodes))
        level = (levels.agreed() or (levels.theirs,))[0] or trio.node.level
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        around = self._open[-1][1] if self._open else None
        if level:
            self._open.append((level, trio))
        over = [trio.on(side).above for side in trio.sides]
        known = [self._joined.trios[each] if each and each.level else None for each in over]
        if around not in known and all(each is None or each.state == "stands" for each in known):
            self.misplaced = self.misplaced or trio.node.words

    def _agreed_kind(self, trio: Trio) -> str:
        kinds = Versions(*(node.kind if node else None for node in trio.nodes))
        return str(next(kind for kind in (*(kinds.agreed() or ()), *reversed(kinds)) if kind))

    def _reach_node(self, trio: Trio) -> None:
        self._above = trio
        if trio.nodes.theirs:
            self._line = trio.nodes.theirs.last

    # -- the lines of a node ------------------------------------------------------------------------------

    def _merged_head(self, trio: Trio, heads: Versions[str]) -> tuple[list[Piece], str | None]:
        """Return the lines of a node, and its words if they are those of a side."""
        base, ours, theirs = trio.nodes
        if not ours or not theirs:
            return [Piece(heads[trio.sides[0]])], trio.on(trio.sides[0]).words
        agreed = heads.agreed() if base or heads.ours == heads.theirs else None
        if agreed or (not base and ours.words == theirs.words):
            text = agreed[0] if agreed else heads.theirs
            is_ours = text == heads.ours and (text != heads.theirs or trio.node is ours)
            return [Piece(text)], (ours if is_ours else theirs).words
        whole = [Piece("", heads)]
        if not base:
            return whole, None
        nodes = Versions(base, ours, theirs)
        composed = _with_merged_marker(nodes, heads, is_replaced=trio.is_replaced)
        if composed is None and base.kind == ours.kind == theirs.kind:
            composed = repointed(self._documents, self._documents.paired(nodes, _node_span))
            lines = heads.map(whole_lines)
            kept = trio.is_replaced and [set(lines.base).intersection(side) for side in lines[1:]]
            if composed is None and max(map(len, lines)) > 1 and (not kept or all(kept)):
                return self._merge_lines(trio, lines), None
        if composed is None:
            return whole, None
        self._note_composed(*heads)
        return [Piece(composed)], None

    def _merge_lines(self, trio: Trio, lines: Versions[list[str]]) -> list[Piece]:
        is_leaf = trio.node.kind in _LEAVES or trio.node.is_code
        if is_leaf or any(map(_MATH_OR_TERM.match, chain(*lines))):
            return merge_loose_lines(lines)
        base, *_ = lines.map(_read_additions)

        def may_join(ours: str, theirs: str) -> bool:
            return not any(
                find_alike(_read_additions(whole_lines(ours)), _read_additions(whole_lines(theirs)), base)
            )

        return merge_loose_lines(lines, may_join, self._last)

    # -- blank lines --------------------------------------------------------------------------------------

    def _merged_lead(self, trio: Trio) -> str:
        """Return the blank lines above a node, from a side with the same node above."""
        tops = [top.get(trio) for top in self._tops]
        same = [top is not None and top[0] is self._above for top in tops]
        leads = Versions(*(top[1] if top else "" for top in tops))
        if same[1] and same[2]:
            agreed = leads.agreed() if same[0] else None
            return agreed[0] if agreed else max(leads.theirs, leads.ours, key=lambda lead: (len(lead), lead))
        if same[1] or same[2]:
            return leads.theirs if same[2] else leads.ours
        own = min((top[1] for top in tops if top and top[1]), key=len, default="")
        was_first = tops[trio.sides[-1]] in (None, (None, trio.node.lead))
        may_touch = trio.node.kind in _GLUED and not (trio.node.kind == "section" and was_first)
        may_touch |= self._above is not None and (self._above.node.kind, trio.node.kind) == ("item", "list")
        if own or self._above is None or may_touch or not trio.node.head + _first_child_head(trio.node):
            return own
        is_definition = trio.node.kind == self._above.node.kind in {"definition", "footnote"}
        return (
            own if is_definition or (self._above.node.id and trio.node.kind == "paragraph") else self._newline
        )

    # -- conflicts ----------------------------------------------------------------------------------------

    def _add_conflict(self, trio: Trio, texts: Versions[str], why: str, offset: int = 0) -> None:
        node, theirs = trio.node, trio.nodes.theirs
        line = theirs.line + offset if theirs else self._line
        found = MergeConflict(
            kind="section" if node.kind == "section" else "lines",
            where=" > ".join(section_of(node).path),
            line=max(1, min(line, len(self._documents.theirs.lines))),
            base=texts.base,
            ours=texts.ours,
            theirs=texts.theirs,
            what=f"the {node.kind} {_quote_node(node)}: {why}",
        )
        self._chunks.append(_Chunk("", found))
        self._reach_node(trio)


def _join_neighbours(chunks: list[_Chunk]) -> list[_Chunk]:
    """Join conflicts that have at most blank lines between them."""
    found: list[_Chunk] = []
    blank = ""
    for chunk in chunks:
        last = found[-1].conflict if found else None
        if last and chunk.conflict:
            found[-1] = _Chunk("", _join_conflicts(last, blank, chunk.conflict))
            blank = ""
        elif last and not chunk.text.strip(" \t\r\n"):
            blank += chunk.text
        else:
            found += [_Chunk(blank), chunk]
            blank = ""
    return [_settle_chunk(chunk) for chunk in (*found, _Chunk(blank))]


def _join_conflicts(above: MergeConflict, blank: str, below: MergeConflict) -> MergeConflict:
    def join(one: str, other: str) -> str:
        return f"{one}{blank}{other}" if other else one

    return replace(
        above,
        base=join(above.base, below.base),
        ours=join(above.ours, below.ours),
        theirs=join(above.theirs, below.theirs),
    )


def _settle_chunk(chunk: _Chunk) -> _Chunk:
    """Return plain text for a conflict with two equal sides."""
    conflict = chunk.conflict
    return _Chunk(conflict.ours) if conflict and conflict.ours == conflict.theirs else chunk


def _quote_node(node: TreeNode) -> str:
    """Quote the words of a node, or of the first item of a list, for a message."""
    words = next((each.words for each in node.walk() if each.words), "").partition("\n")[0]
    return repr(shortened(words))


def _with_merged_marker(nodes: Versions[TreeNode], heads: Versions[str], *, is_replaced: bool) -> str | None:
    """Return a node if the sides changed different parts of it: marker, box, layout, or the rest."""
    parts = nodes.paired(heads, _split_marker)
    markers, boxes, rests = (parts.map(itemgetter(place)) for place in range(3))
    said = nodes.paired(
        parts,
        lambda node, part: (node.kind, node.words.removeprefix(part[1]), node.id, part[0] or node.level),
    )
    marker = markers.agreed() or ((markers.theirs,) if nodes.theirs.kind == "item" else None)
    box = None if is_replaced and len(set(boxes)) > 1 else boxes.agreed()
    agreed = rests.agreed() or (
        said.agreed() and ((rests.theirs,) if said.ours == said.base else (rests.ours,))
    )
    if not marker or not box or not agreed:
        return None
    at = SIDES[0] if rests.ours == agreed[0] else SIDES[1]
    return _replace_marker(f"{markers[at]}{box[0]}{agreed[0]}", marker[0])


def _split_marker(node: TreeNode, head: str) -> tuple[str, str, str]:
    """Split the lines of an item or a heading into marker, box of a task, and rest."""
    found = {"item": MARKER, "section": _HASHES}[node.kind].match(head) if node.marker else None
    marker = found[0] if found else ""
    box = _BOX.match(head, len(marker)) if node.kind == "item" else None
    return marker, box[0] if box else "", head[len(marker) + len(box[0] if box else "") :]


def _replace_marker(head: str, marker: str) -> str:
    """Return an item or a heading with another marker, its lines indented as that needs."""
    found = MARKER.match(head) or _HASHES.match(head)
    old = found[0] if found else ""
    first, *others = whole_lines(head[len(old) :]) or [""]
    return marker + first + margin_of(old).shifted("".join(others), margin_of(marker))


def _read_additions(lines: list[str]) -> list[PlacedFact]:
    return [PlacedFact("line", line.strip(" \t\r\n")) for line in lines]


def _node_span(document: Document, node: TreeNode) -> Span:
    start = document.lines.span(node.line).start
    return Span(max(start, document.body_span.start), document.lines.span(node.last).end)


def _first_child_head(node: TreeNode) -> str:
    return node.children[0].head if node.children else ""


def _find_above(tree: Tree, trios: dict[TreeNode, Trio]) -> dict[Trio, tuple[Trio | None, str]]:
    """Return for each node the nearest node above that has lines, and the blank lines between.

    A node that is gone leaves the blank lines below it to the node above it.
    """
    found: dict[Trio, tuple[Trio | None, str]] = {}
    above: Trio | None = None
    standing: Trio | None = None
    for node in tree.nodes:
        trio = trios[node]
        is_first = above is not None and standing is None
        found[trio] = standing if node.lead else above, "" if is_first else node.lead
        if node.head:
            above = trio
            standing = standing if trio.state == "gone" else trio
    return found
