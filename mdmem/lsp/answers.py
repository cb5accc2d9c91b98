"""Answers of the façade as values of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from mdmem.lsp.vaults import uri_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.facade.completions import Completions
    from mdmem.facade.editing import Editing
    from mdmem.facade.places import Goal, Leads, NamedPlace, OutlineItem, Spot
    from mdmem.lsp.documents import Asked, Documents
    from mdmem.lsp.edits import WorkspaceEdits
    from mdmem.lsp.positions import Positions, TextLines

_SYMBOL_KINDS = {
    "memory": types.SymbolKind.File,
    "heading": types.SymbolKind.String,
    "tag": types.SymbolKind.Key,
}
_COMPLETION_KINDS = {
    "memory": types.CompletionItemKind.File,
    "file": types.CompletionItemKind.File,
    "heading": types.CompletionItemKind.Reference,
    "block": types.CompletionItemKind.Reference,
    "tag": types.CompletionItemKind.Keyword,
    "key": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.Value,
}
APPLY = "mdmem.applyEdit"
"""The command by which an editor asks for edits that it was given before."""
_START = types.Position(0, 0)
_NOWHERE = types.Range(_START, _START)


class Answers:
    """Makes values of the protocol for one client.

    Args:
        documents: what is open.
        positions: in the encoding that was agreed on.
        has_links: whether the client takes location links.
        has_tree: whether it takes symbols that stand below others.
    """

    def __init__(
        self, documents: Documents, positions: Positions, *, has_links: bool, has_tree: bool
    ) -> None:
        self._documents = documents
        self._positions = positions
        self._has_links = has_links
        self._has_tree = has_tree

    def _uri_of(self, spot: Spot) -> str:
        return self._documents.uri(spot.file) if spot.path else uri_of(spot.file)

    def _range(self, editing: Editing, spot: Spot, span: tuple[int, int] | None = None) -> types.Range:
        if spot.lines is None:
            return _NOWHERE
        is_open = bool(spot.path) and editing.is_open(spot.path)
        return self._positions.range(spot.lines, span or spot.span, is_open=is_open)

    def locations(self, editing: Editing, spots: Iterable[Spot]) -> list[types.Location]:
        """Return places."""
        return [types.Location(self._uri_of(spot), self._range(editing, spot)) for spot in spots]

    def definitions(self, editing: Editing, lines: TextLines, goals: list[Goal]) -> list[Any]:
        """Return where something leads that stands in the text of `lines`."""
        if not self._has_links:
            return self.locations(editing, (goal.spot for goal in goals))
        return [
            types.LocationLink(
                target_uri=self._uri_of(goal.spot),
                target_range=self._range(editing, goal.spot, goal.whole),
                target_selection_range=self._range(editing, goal.spot),
                origin_selection_range=self._positions.range(lines, goal.origin),
            )
            for goal in goals
        ]

    def completions(self, asked: Asked, found: Completions, edits: WorkspaceEdits) -> types.CompletionList:
        """Return what can stand in a document; what choosing one needs elsewhere is a command of its own."""
        lines, items = asked.editing.lines(asked.path), []
        for number, each in enumerate(found.items):
            start, end, new = each.edit
            item = types.CompletionItem(
                label=each.label,
                kind=_COMPLETION_KINDS[each.kind],
                detail=each.detail or None,
                filter_text=each.filter,
                sort_text=f"{number:05}",
                text_edit=types.TextEdit(self._positions.range(lines, (start, end)), new),
            )
            if each.documentation:
                item.documentation = types.MarkupContent(types.MarkupKind.Markdown, each.documentation)
            if each.plan and each.plan.paths == (asked.path,):
                item.additional_text_edits = edits.text_edits(lines, each.plan.changes[0].edits)
            elif each.plan:
                edit = edits.convert(asked, each.plan, is_checked=True)
                item.command = types.Command(each.plan.message, APPLY, arguments=[edit])
            items.append(item)
        return types.CompletionList(is_incomplete=found.left_out > 0, items=items)

    def document_links(
        self, editing: Editing, lines: TextLines, leads: list[Leads]
    ) -> list[types.DocumentLink]:
        """Return links as clients open them: a file, with its line behind `#L`."""
        found = []
        for span, spot in leads:
            line = self._range(editing, spot).start.line
            at = f"#L{line + 1}" if line else ""
            found.append(types.DocumentLink(self._positions.range(lines, span), self._uri_of(spot) + at))
        return found

    def outline(self, uri: str, lines: TextLines, items: list[OutlineItem]) -> list[Any]:
        """Return the headings of a document, below each other where the client takes that."""
        if self._has_tree:
            return [self._symbol(lines, item) for item in items]
        return [
            types.SymbolInformation(
                location=types.Location(uri, self._positions.range(lines, item.name_span)),
                name=item.name,
                kind=types.SymbolKind.String,
            )
            for item in _flatten(items)
        ]

    def _symbol(self, lines: TextLines, item: OutlineItem) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            name=item.name,
            kind=types.SymbolKind.String,
            range=self._positions.range(lines, item.span),
            selection_range=self._positions.range(lines, item.name_span),
            children=[self._symbol(lines, each) for each in item.children],
        )

    def symbols(self, editing: Editing, items: Iterable[NamedPlace]) -> list[types.SymbolInformation]:
        """Return what has a name."""
        return [
            types.SymbolInformation(
                location=types.Location(self._uri_of(item.spot), self._range(editing, item.spot)),
                name=item.name,
                kind=_SYMBOL_KINDS[item.kind],
                container_name=item.container,
            )
            for item in items
        ]


def _flatten(items: Iterable[OutlineItem]) -> Iterable[OutlineItem]:
    waiting = list(items)[::-1]
    while waiting:
        item = waiting.pop()
        yield item
        waiting += item.children[::-1]
