"""The three-way merge of JSON by key: the changes of ours are spliced into the text of theirs."""

from __future__ import annotations

from dataclasses import dataclass

from mdmem.diagnostic import Span
from mdmem.errors import DocumentRefused
from mdmem.text.brackets import Brackets
from mdmem.text.document import Document
from mdmem.text.merge_conflict import MergeConflict, value_conflict
from mdmem.text.three import Three, complete, merged_order, placed
from mdmem.text.tree import KeyPath, Member, Node
from mdmem.text.tree_edit import same

_ABSENT = object()


def merged_json(documents: Three[Document], conflicts: list[MergeConflict]) -> str | None:
    """The merged text; None when one of the documents is not sound JSON.

    Args:
        documents: the three versions.
        conflicts: takes what is found; with any, the text means nothing.
    """
    roots = complete(documents.map(_root))
    if not roots:
        return None
    text = _JsonMerge(documents, conflicts).value((), Three(*roots))
    start, end = roots.theirs.span
    return f"{documents.theirs.text[:start]}{text}{documents.theirs.text[end:]}"


def _root(document: Document) -> Node | None:
    try:
        return document.tree if document.is_json and not document.findings else None
    except DocumentRefused:
        return None


@dataclass(slots=True)
class _JsonMerge:
    documents: Three[Document]
    conflicts: list[MergeConflict]

    def value(self, path: KeyPath, nodes: Three[Node | None]) -> str | None:
        """The text of a value; None when it is gone."""
        texts = self.documents.paired(nodes, _written)
        agreed = texts.agreed()
        if agreed:
            return agreed[0]
        # What says the same in other words gives way.
        values = nodes.map(lambda node: node.value if node else _ABSENT)
        if same(values.ours, values.base) or same(values.ours, values.theirs):
            return texts.theirs
        if same(values.theirs, values.base):
            return texts.ours
        if nodes.ours and nodes.theirs and all(node is None or node.kind == "mapping" for node in nodes):
            return self._object(path, nodes.base, nodes.ours, nodes.theirs)
        self.conflicts.append(value_conflict("json", path, self.documents.theirs, texts))
        return None

    def _object(self, path: KeyPath, base: Node | None, ours: Node, theirs: Node) -> str:
        members = Three(base, ours, theirs).map(_members)
        names = {
            member.key: document.text[member.key_span.start : member.node.span.start]
            for document, side in zip(self.documents[1:], members[1:], strict=True)
            for member in side.values()
        }
        keys = members.map(list)
        parts: dict[str, str] = {}
        for key in merged_order(keys) or placed(keys.theirs, keys.ours):
            nodes = Three(*(side[key].node if key in side else None for side in members))
            value = self.value((*path, key), nodes)
            if value is not None:
                parts[key] = names[key] + value
        layout, other = (
            Brackets(
                document.text, node, {m.key: Span(m.key_span.start, m.node.span.end) for m in node.members}
            )
            for document, node in ((self.documents.theirs, theirs), (self.documents.ours, ours))
        )
        return layout.joined(other, parts)


def _members(node: Node | None) -> dict[str, Member]:
    return {member.key: member for member in node.members} if node else {}


def _written(document: Document, node: Node | None) -> str | None:
    return document.text[slice(*node.span)] if node else None
