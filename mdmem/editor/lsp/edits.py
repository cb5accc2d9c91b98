"""Edit plans as edits of a workspace, which the client makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from mdmem.editor.lsp.positions import START, TextPositions
from mdmem.errors import Conflict, EditRefused

if TYPE_CHECKING:
    from mdmem import Change, EditPlan, TextEdit
    from mdmem.editor.lsp.documents import Asked

_NEEDED = {types.ResourceOperationKind.Create, types.ResourceOperationKind.Rename}


def convert_edits(text: TextPositions, edits: Iterable[TextEdit]) -> list[types.TextEdit]:
    """Return edits of one text, in its order."""
    return [types.TextEdit(text.range((start, end)), new) for start, end, new in sorted(edits)]


class WorkspaceEdits:
    """Makes edits of a workspace for one client."""

    def __init__(self, client: types.ClientCapabilities) -> None:
        edits = client.workspace.workspace_edit if client.workspace else None
        self._is_versioned = bool(edits and edits.document_changes)
        operations = edits.resource_operations if edits else None
        self._has_operations = self._is_versioned and _NEEDED.issubset(operations or ())

    def convert(self, asked: Asked, plan: EditPlan, *, is_checked: bool = False) -> types.WorkspaceEdit:
        """Return what a plan does, which is checked first, unless it was.

        Raises:
            MdmemError: the plan may not be done; or a file of it is not any more what it was made from.
            EditRefused: the client cannot do it.
        """
        return self.join(self.convert_changes(asked, plan, is_checked=is_checked))

    def convert_changes(self, asked: Asked, plan: EditPlan, *, is_checked: bool = False) -> list[Any]:
        """Return the changes of a plan, as `convert`, for `join`."""
        plan = plan if is_checked else asked.editing.memory.prepared(plan)
        return [each for change in plan.changes for each in self._convert_change(asked, change)]

    def edit_document(self, asked: Asked, edits: Iterable[TextEdit]) -> types.WorkspaceEdit:
        """Return edits of the document that was asked about."""
        version = asked.document.version if asked.document else None
        named = types.OptionalVersionedTextDocumentIdentifier(asked.uri, version)
        return self.join([types.TextDocumentEdit(named, [*convert_edits(asked.text, edits)])])

    def join(self, changes: Sequence[Any]) -> types.WorkspaceEdit:
        """Return changes as the client takes them."""
        if self._is_versioned:
            return types.WorkspaceEdit(document_changes=changes)
        return types.WorkspaceEdit(changes={each.text_document.uri: each.edits for each in changes})

    def _require_operations(self, change: Change) -> None:
        if not self._has_operations:
            reason = "this editor makes and renames no files for a language server"
            raise EditRefused(
                path=change.path, reason=reason, remedy="rename it on the command line, or in another editor"
            )

    def _convert_change(self, asked: Asked, change: Change) -> list[Any]:
        editing, before = asked.editing, change.before
        file = editing.file(change.path)
        document, uri = asked.opened.get(file), asked.uri_of(file)
        if before is None or change.move_to:
            self._require_operations(change)
        if before is None:
            text = (change.content or b"").decode()
            fresh = types.OptionalVersionedTextDocumentIdentifier(uri)
            insert = types.TextEdit(types.Range(START, START), text)
            return [types.CreateFile(uri), types.TextDocumentEdit(fresh, [insert])]
        # Edits of a file that is not open name no version: it must still be as the plan has it.
        now = None if document else editing.document(change.path)
        if document is None and (now is None or now.hash != before.hash):
            raise Conflict(path=change.path, base=change.base, actual=now.hash if now else None)
        named = types.OptionalVersionedTextDocumentIdentifier(uri, document.version if document else None)
        edits = convert_edits(asked.positions(file, before.lines), change.edits)
        result: list[Any] = [types.TextDocumentEdit(named, [*edits])] if edits else []
        if change.move_to:
            result.append(types.RenameFile(uri, asked.uri_of(editing.file(change.move_to))))
        return result
