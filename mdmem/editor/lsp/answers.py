"""What the façade says of an open document, as values of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from mdmem.editor.lsp.edits import WorkspaceEdits, convert_edits
from mdmem.editor.lsp.positions import TextPositions
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem import EditPlan
    from mdmem.editor.fixes import Fix
    from mdmem.editor.lsp.documents import Asked
    from mdmem.editor.places import NamedPlace, OutlineItem

APPLY = "mdmem.applyEdit"
"""The command by which an editor asks for an edit that it was given, with a document and its hash."""
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


class Answers:
    """Answers questions about documents with values of the protocol, as one client takes them."""

    def __init__(self, client: types.ClientCapabilities) -> None:
        self.edits = WorkspaceEdits(client)
        document = client.text_document or types.TextDocumentClientCapabilities()
        self._has_links = bool(document.definition and document.definition.link_support)
        self._hover_format = _choose_format(document.hover.content_format if document.hover else None)
        item = document.completion.completion_item if document.completion else None
        self._about_format = _choose_format(item.documentation_format if item else None)

    def definitions(self, asked: Asked, offset: int) -> list[Any]:
        """Return where something in the document leads."""
        goals = asked.editing.targets(asked.path, offset)
        if not self._has_links:
            return [asked.locate(goal.spot) for goal in goals]
        text = asked.text
        return [
            types.LocationLink(
                target_uri=asked.uri_of(goal.spot.file),
                target_range=asked.range_in(goal.spot, goal.whole),
                target_selection_range=asked.range_in(goal.spot),
                origin_selection_range=text.range(goal.origin),
            )
            for goal in goals
        ]

    def hover(self, asked: Asked, offset: int) -> types.Hover | None:
        """Return what there is to say of something in the document."""
        hover = asked.editing.hover(asked.path, offset)
        if hover is None:
            return None
        return types.Hover(types.MarkupContent(self._hover_format, hover.text), asked.text.range(hover.span))

    def completions(self, asked: Asked, offset: int) -> types.CompletionList:
        """Return what can stand in a document, in its order."""
        items: list[types.CompletionItem] = []
        text, found = asked.text, asked.editing.completions(asked.path, offset)
        for each in found.items:
            start, end, new = each.edit
            item = types.CompletionItem(
                label=each.label,
                kind=_COMPLETION_KINDS[each.kind],
                detail=each.detail or None,
                filter_text=each.filter,
                sort_text=f"{len(items):05}",
                text_edit=types.TextEdit(text.range((start, end)), new),
            )
            if each.documentation:
                item.documentation = types.MarkupContent(self._about_format, each.documentation)
            if each.plan and each.plan.paths == (asked.path,):
                item.additional_text_edits = convert_edits(text, each.plan.changes[0].edits)
            elif each.plan and not self._ask_for(asked, each.plan, item):
                continue
            items.append(item)
        return types.CompletionList(is_incomplete=found.left_out > 0, items=items)

    def _ask_for(self, asked: Asked, plan: EditPlan, item: types.CompletionItem) -> bool:
        """Let choosing an item ask for the edit of another document; return whether that can be done."""
        try:
            edit = self.edits.convert(asked, plan, is_checked=True)
        except MdmemError:
            return False
        change = plan.changes[0]
        uri = asked.uri_of(asked.editing.file(change.path))
        item.command = types.Command(plan.message, APPLY, arguments=[edit, uri, change.base])
        return True

    def document_links(self, asked: Asked) -> list[types.DocumentLink]:
        """Return links as clients open them: a file, with its line behind `#L`."""
        found, text = [], asked.text
        for span, spot in asked.editing.links(asked.path):
            line = asked.range_in(spot).start.line
            at = f"#L{line + 1}" if line else ""
            found.append(types.DocumentLink(text.range(span), asked.uri_of(spot.file) + at))
        return found

    @staticmethod
    def outline(asked: Asked) -> list[types.DocumentSymbol]:
        """Return the headings of a document, each with those below it."""
        return [_describe_heading(asked.text, item) for item in asked.editing.outline(asked.path)]

    @staticmethod
    def symbols(asked: Asked, items: Iterable[NamedPlace]) -> list[types.SymbolInformation]:
        """Return what has a name."""
        return [
            types.SymbolInformation(
                location=asked.locate(item.spot),
                name=item.name,
                kind=_SYMBOL_KINDS[item.kind],
                container_name=item.container,
            )
            for item in items
        ]

    def actions(
        self, asked: Asked, fixes: Iterable[Fix], told: Sequence[types.Diagnostic]
    ) -> Iterator[types.CodeAction]:
        """Yield the actions for fixes, each with the findings that the client shows of it."""
        for fix in fixes:
            try:
                edit = self.edits.convert(asked, fix.plan, is_checked=True)
            except MdmemError:  # what this client cannot do is not offered
                continue
            about = [each for each in told if each.code == fix.code] or None
            preferred = fix.is_preferred or None
            kind = types.CodeActionKind(fix.kind)
            yield types.CodeAction(fix.title, kind, about, is_preferred=preferred, edit=edit)


def _choose_format(offered: Sequence[types.MarkupKind] | None) -> types.MarkupKind:
    markdown = types.MarkupKind.Markdown
    return markdown if offered is None or markdown in offered else types.MarkupKind.PlainText


def _describe_heading(text: TextPositions, item: OutlineItem) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=item.name,
        kind=types.SymbolKind.String,
        range=text.range(item.span),
        selection_range=text.range(item.name_span),
        children=[_describe_heading(text, each) for each in item.children],
    )
