"""Edit plans as edits of a workspace, which the client makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from mdmem.errors import Conflict, EditRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mdmem import Change, EditPlan, TextEdit
    from mdmem.lsp.documents import Asked, Documents
    from mdmem.lsp.positions import Positions, TextLines

_NEEDED = {types.ResourceOperationKind.Create, types.ResourceOperationKind.Rename}


class WorkspaceEdits:
    """Makes edits of a workspace for one client.

    Args:
        documents: what is open.
        positions: in the encoding that was agreed on.
        client: what the client can do.
    """

    def __init__(self, documents: Documents, positions: Positions, client: types.ClientCapabilities) -> None:
        self._documents = documents
        self._positions = positions
        edits = client.workspace.workspace_edit if client.workspace else None
        self._is_versioned = bool(edits and edits.document_changes)
        operations = edits.resource_operations if edits else None
        self._has_operations = self._is_versioned and _NEEDED.issubset(operations or ())

    def text_edits(
        self, lines: TextLines, edits: Iterable[TextEdit], *, is_open: bool = True
    ) -> list[types.TextEdit]:
        """Return edits of one text, in its order."""
        return [
            types.TextEdit(self._positions.range(lines, (start, end), is_open=is_open), new)
            for start, end, new in sorted(edits)
        ]

    def convert(self, asked: Asked, plan: EditPlan, *, is_checked: bool = False) -> types.WorkspaceEdit:
        """Return what a plan does, which is checked first, unless it was.

        Raises:
            MdmemError: the plan may not be done; or a file of it is not any more what it was made from.
            EditRefused: the client cannot do it.
        """
        plan = plan if is_checked else asked.editing.memory.prepared(plan)
        changes: list[Any] = []
        for change in plan.changes:
            if change.before is None or change.move_to or change.delete:
                self._require_operations(change)
            changes += self._convert_change(asked, change)
        if self._is_versioned:
            return types.WorkspaceEdit(document_changes=changes)
        return types.WorkspaceEdit(changes={each.text_document.uri: each.edits for each in changes})

    def _require_operations(self, change: Change) -> None:
        if not self._has_operations:
            reason = "this editor makes and renames no files for a language server"
            raise EditRefused(path=change.path, reason=reason, remedy="use mdmem mv, or another editor")

    def _convert_change(self, asked: Asked, change: Change) -> Sequence[Any]:
        editing = asked.editing
        file = editing.file(change.path)
        uri = self._documents.uri(file)
        if change.before is None:
            text = (change.content or b"").decode()
            start = types.Position(0, 0)
            fresh = types.OptionalVersionedTextDocumentIdentifier(uri, None)
            insert = types.TextEdit(types.Range(start, start), text)
            return [types.CreateFile(uri), types.TextDocumentEdit(fresh, [insert])]
        document = self._documents.find(uri) if editing.is_open(change.path) else None
        is_open = document is not None
        now = document.text if document else _read_text(asked, change)
        if now is not change.before.text and now != change.before.text:
            raise Conflict(path=change.path, base=change.base, actual=None)
        version = document.version if document else None
        named = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        edits = self.text_edits(change.before.lines, change.edits, is_open=is_open)
        result: list[Any] = [types.TextDocumentEdit(named, list(edits))] if edits else []
        if change.move_to:
            result.append(types.RenameFile(uri, self._documents.uri(editing.file(change.move_to))))
        return result


def _read_text(asked: Asked, change: Change) -> str | None:
    now = asked.editing.document(change.path)
    return now.text if now else None
