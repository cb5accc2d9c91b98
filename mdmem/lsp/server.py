"""The server: what a client says and asks, in the order in which it does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter
from pygls.protocol.json_rpc import JsonRPCNotification

from mdmem import __version__
from mdmem.errors import MdmemError
from mdmem.lsp.answers import APPLY, Answers
from mdmem.lsp.checks import MOVED_ON, QUIET_SECONDS, Checks
from mdmem.lsp.documents import Documents
from mdmem.lsp.edits import WorkspaceEdits
from mdmem.lsp.positions import Positions, choose_encoding
from mdmem.lsp.vaults import Vaults, file_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem import Scope
    from mdmem.lsp.documents import Asked
    from mdmem.lsp.vaults import Progress, ServedVault

T = TypeVar("T")

_WORKERS = 4  # questions that are worked on at once; others wait
_SAVE_SECONDS = 1.0  # clients give up soon after
_MOST_SYMBOLS = 200
_VS_CODE = ("Visual Studio Code", "code-server", "VSCodium", "Code - OSS")
_TAKE_OVER = "Take over what is on disk"
_FILES = types.FileOperationRegistrationOptions(
    [types.FileOperationFilter(types.FileOperationPattern("**/*"), scheme="file")]
)
_COMPLETION = types.CompletionOptions(trigger_characters=["[", "(", "#", "^", "/", ":", " "])
_ACTIONS = types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorExtract])
_logger = logging.getLogger(__name__)


class _Protocol(LanguageServerProtocol):
    """The protocol, which answers a request that it cannot read, too."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return a message as a value; of one that cannot be read, something that is ignored."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            return JsonRPCNotification(method="$/unreadable", jsonrpc=self.VERSION, params=None)


def _fail(code: int, message: str) -> JsonRpcException:
    return JsonRpcException(message=message, code=code)


class MemoryLanguageServer(LanguageServer):
    """A server for one editor, on standard input and output; what it changes, the editor writes.

    Args:
        vault: the only vault that is served; None for those around the files that are opened.
        scope: whose memories.
        actor: who changes them.
    """

    def __init__(self, vault: str | None, scope: Scope, actor: str) -> None:
        full = types.TextDocumentSyncKind.Full
        super().__init__(
            "mdmem", __version__, full, protocol_cls=_Protocol, converter_factory=default_converter
        )
        self.is_shut_down = False
        self._pool = ThreadPoolExecutor(_WORKERS, "question")
        self._vaults = Vaults(vault, scope, actor, self._check_again, self._begin_progress)
        self._documents = Documents(self._vaults)
        self._positions = Positions(types.PositionEncodingKind.Utf16)
        self._checks: Checks | None = None
        self._register()

    def _register(self) -> None:
        """Name what answers each message; those about open documents come before all others."""
        told: dict[str, Callable[[Any], None]] = {
            types.TEXT_DOCUMENT_DID_OPEN: self._did_open,
            types.TEXT_DOCUMENT_DID_CHANGE: self._did_change,
            types.TEXT_DOCUMENT_DID_CLOSE: self._did_close,
        }
        for name, handle in told.items():
            self.protocol.fm.add_builtin_feature(name, handle)
        features: dict[str, tuple[Callable[[Any], Any], Any]] = {
            types.INITIALIZE: (self._initialize, None),
            types.INITIALIZED: (self._initialized, None),
            types.SHUTDOWN: (self._shut_down, None),
            types.TEXT_DOCUMENT_DID_SAVE: (self._did_save, types.SaveOptions()),
            types.TEXT_DOCUMENT_WILL_SAVE_WAIT_UNTIL: (self._will_save, None),
            types.TEXT_DOCUMENT_COMPLETION: (self._complete, _COMPLETION),
            types.TEXT_DOCUMENT_DEFINITION: (self._definition, None),
            types.TEXT_DOCUMENT_REFERENCES: (self._references, None),
            types.TEXT_DOCUMENT_HOVER: (self._hover, None),
            types.TEXT_DOCUMENT_DOCUMENT_LINK: (self._document_links, None),
            types.TEXT_DOCUMENT_PREPARE_RENAME: (self._prepare_rename, None),
            types.TEXT_DOCUMENT_RENAME: (self._rename, None),
            types.TEXT_DOCUMENT_CODE_ACTION: (self._code_actions, _ACTIONS),
            types.WORKSPACE_WILL_RENAME_FILES: (self._will_rename_files, _FILES),
        }
        self.command(APPLY)(partial(self._apply))
        for name, (handle, options) in features.items():
            self.feature(name, options)(partial(handle))

    # -- the beginning and the end -------------------------------------------------------------------------

    def _initialize(self, params: types.InitializeParams) -> None:
        client, general = params.capabilities, params.capabilities.general
        self._positions = Positions(choose_encoding(general.position_encodings if general else None))
        document = client.text_document
        published = document.publish_diagnostics if document else None
        definition, symbol = (document.definition, document.document_symbol) if document else (None, None)
        self._edits = WorkspaceEdits(self._documents, self._positions, client)
        self._answers = Answers(
            self._documents,
            self._positions,
            has_links=bool(definition and definition.link_support),
            has_tree=bool(symbol and symbol.hierarchical_document_symbol_support),
        )
        self._checks = Checks(
            self._documents,
            self._positions,
            self.text_document_publish_diagnostics,
            has_related=bool(published and published.related_information),
        )
        window = client.window
        self._has_progress = bool(window and window.work_done_progress)
        folders = [each.uri for each in params.workspace_folders or ()]
        self._folders = [file for uri in (*folders, params.root_uri or "") if (file := file_of(uri))]
        # VS Code lists the headings of Markdown by itself.
        if not (params.client_info and params.client_info.name.startswith(_VS_CODE)):
            self.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(partial(self._outline))
            self.feature(types.WORKSPACE_SYMBOL)(partial(self._symbols))

    def _initialized(self, _: types.InitializedParams) -> None:
        for folder in self._folders:
            self._vaults.around(f"{folder}/.")

    def _shut_down(self, _: None) -> None:
        self.is_shut_down = True

    def serve(self) -> int:
        """Serve until the client says that it is over, or is gone; return the exit code."""
        # The SDK closes what it writes to, and the program may still have something to say.
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out, contextlib.suppress(ValueError):
            self.start_io(sys.stdin.buffer, out)
        if self._checks:
            self._checks.stop()
        self._vaults.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        return 0 if self.is_shut_down else 1

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error which no request can be answered with."""
        _logger.warning("%s: %s", source, error)

    def _begin_progress(self) -> Progress | None:
        """Show how far the first look at a vault is, where the client can; called by a thread."""
        if not getattr(self, "_has_progress", False):
            return None
        token, progress = f"mdmem-{id(object())}", self.work_done_progress
        progress.create(token).result(timeout=5)
        progress.begin(token, types.WorkDoneProgressBegin("Indexing memories", percentage=0))

        def tell(done: int, total: int) -> None:
            progress.report(token, types.WorkDoneProgressReport(percentage=100 * done // max(1, total)))
            if done >= total:
                progress.end(token, types.WorkDoneProgressEnd())

        return tell

    # -- what the client tells -----------------------------------------------------------------------------

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if self._documents.open(document.uri, document.version, document.text):
            self._check(document.uri)

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        if not params.content_changes:
            return
        try:
            changed = self._documents.change(uri, version, params.content_changes[-1].text)
        except ValueError as error:
            raise JsonRpcInvalidParams(message=str(error)) from None
        if changed:
            self._check(uri, quiet=QUIET_SECONDS)

    def _did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        if document := self._documents.find(params.text_document.uri):
            document.vault.editing.saved(document.path)
            self._check(document.uri)

    def _did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        document = self._documents.close(params.text_document.uri)
        if document and self._checks:
            self._checks.close(document.uri)
            self._check_again(document.vault, ())

    def _check(self, uri: str, *, quiet: float = 0.0) -> None:
        if self._checks:
            self._checks.request(uri, quiet=quiet)

    def _check_again(self, vault: ServedVault, paths: tuple[str, ...]) -> None:
        """Check open memories again, because of what happened elsewhere."""
        for path in paths:
            if document := self._documents.at(vault.root, path):
                self._check(document.uri)

    # -- what the client asks ------------------------------------------------------------------------------

    async def _ask(self, uri: str, work: Callable[[Asked], T], seconds: float | None = None) -> T | None:
        """Let a thread answer a question about a document, as it is when the question comes.

        Returns:
            None for a file that is no memory.

        Raises:
            JsonRpcException: the document has changed meanwhile; or what an error of ours becomes.
        """
        if self._checks is None:
            raise _fail(types.ErrorCodes.ServerNotInitialized, "the server is not initialized")
        asked = self._documents.asked(uri)
        if asked is None:
            return None
        running = asyncio.get_running_loop().run_in_executor(self._pool, self._answer, work, asked)
        result = await asyncio.wait_for(running, seconds)
        document = self._documents.find(uri)
        if (document.version if document else None) != asked.version:
            raise _fail(types.LSPErrorCodes.ContentModified, "the document has changed since then")
        return result

    @staticmethod
    def _answer(work: Callable[[Asked], T], asked: Asked) -> T:
        try:
            return work(asked)
        except MdmemError as error:
            told = f"{error.message}\n{error.hint}" if error.hint else error.message
            raise _fail(types.LSPErrorCodes.RequestFailed, told) from None

    def _offset(self, asked: Asked, position: types.Position) -> int:
        return self._positions.offset(asked.editing.lines(asked.path), position)

    async def _complete(self, params: types.CompletionParams) -> types.CompletionList | None:
        def work(asked: Asked) -> types.CompletionList:
            found = asked.editing.completions(asked.path, self._offset(asked, params.position))
            return self._answers.completions(asked, found, self._edits)

        return await self._ask(params.text_document.uri, work)

    def _apply(self, edit: types.WorkspaceEdit) -> None:
        self.workspace_apply_edit(types.ApplyWorkspaceEditParams(edit))

    async def _definition(self, params: types.DefinitionParams) -> Any:
        def work(asked: Asked) -> Any:
            goals = asked.editing.targets(asked.path, self._offset(asked, params.position))
            return self._answers.definitions(asked.editing, asked.editing.lines(asked.path), goals)

        return await self._ask(params.text_document.uri, work)

    async def _references(self, params: types.ReferenceParams) -> Any:
        def work(asked: Asked) -> Any:
            offset, declaration = self._offset(asked, params.position), params.context.include_declaration
            spots = asked.editing.uses(asked.path, offset, declaration=declaration)
            return self._answers.locations(asked.editing, spots)

        return await self._ask(params.text_document.uri, work)

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        def work(asked: Asked) -> types.Hover | None:
            hover = asked.editing.hover(asked.path, self._offset(asked, params.position))
            if hover is None:
                return None
            place = self._positions.range(asked.editing.lines(asked.path), hover.span)
            return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, hover.text), place)

        return await self._ask(params.text_document.uri, work)

    async def _document_links(self, params: types.DocumentLinkParams) -> Any:
        def work(asked: Asked) -> Any:
            leads = asked.editing.links(asked.path)
            return self._answers.document_links(asked.editing, asked.editing.lines(asked.path), leads)

        return await self._ask(params.text_document.uri, work)

    async def _outline(self, params: types.DocumentSymbolParams) -> Any:
        def work(asked: Asked) -> Any:
            items = asked.editing.outline(asked.path)
            return self._answers.outline(asked.uri, asked.editing.lines(asked.path), items)

        return await self._ask(params.text_document.uri, work)

    async def _symbols(self, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        found: list[types.SymbolInformation] = []
        for vault in self._vaults.served:
            editing = vault.editing.frozen()
            ask = partial(editing.symbols, params.query, _MOST_SYMBOLS)
            symbols = await asyncio.get_running_loop().run_in_executor(self._pool, ask)
            found += self._answers.symbols(editing, symbols.items)
        return found

    async def _prepare_rename(self, params: types.PrepareRenameParams) -> Any:
        def work(asked: Asked) -> types.PrepareRenamePlaceholder | None:
            found = asked.editing.renamable(asked.path, self._offset(asked, params.position))
            if found is None:
                return None
            place = self._positions.range(asked.editing.lines(asked.path), found.span)
            return types.PrepareRenamePlaceholder(place, found.name)

        return await self._ask(params.text_document.uri, work)

    async def _rename(self, params: types.RenameParams) -> types.WorkspaceEdit | None:
        def work(asked: Asked) -> types.WorkspaceEdit:
            plan = asked.editing.rename(asked.path, self._offset(asked, params.position), params.new_name)
            return self._edits.convert(asked, plan)

        return await self._ask(params.text_document.uri, work)

    async def _will_rename_files(self, params: types.RenameFilesParams) -> types.WorkspaceEdit | None:
        """Say which links have to follow; a reason why they cannot must not stop the editor."""
        moves: dict[str, str] = {}
        for each in params.files:
            old, new = file_of(each.old_uri), file_of(each.new_uri)
            if old and new:
                moves[old] = new
        vaults = {vault.root: vault for file in moves if (vault := self._vaults.around(file))}
        vaults |= {vault.root: vault for vault in self._vaults.served}
        changes: list[Any] = []
        for vault in vaults.values():
            try:
                asked = self._documents.asked_of(vault)
                work = partial(self._move_files, asked, moves)
                edit = await asyncio.get_running_loop().run_in_executor(self._pool, work)
                changes += edit.document_changes or edit.changes or ()
            except MdmemError as error:
                self._warn(f"links were not changed: {error.message}")
        return types.WorkspaceEdit(document_changes=changes) if changes else None

    def _move_files(self, asked: Asked, moves: dict[str, str]) -> types.WorkspaceEdit:
        return self._edits.convert(asked, asked.editing.move(moves))

    # -- what is on disk -----------------------------------------------------------------------------------

    def _take_over(self, asked: Asked) -> list[types.TextEdit] | None:
        """Return the edits that take over what is on disk; None where there is nothing, or a conflict."""
        taken = asked.editing.merge(asked.path)
        if taken is None or asked.version is None:
            return None
        if taken.edits is None:
            self._warn(Checks.describe_moved_on(taken).message)
            return None
        return self._edits.text_edits(asked.editing.lines(asked.path), taken.edits)

    async def _will_save(self, params: types.WillSaveTextDocumentParams) -> list[types.TextEdit] | None:
        try:
            return await self._ask(params.text_document.uri, self._take_over, _SAVE_SECONDS)
        except TimeoutError:
            return None

    async def _code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        def work(asked: Asked) -> list[types.CodeAction]:
            return list(self._list_actions(asked, params))

        return await self._ask(params.text_document.uri, work)

    def _list_actions(self, asked: Asked, params: types.CodeActionParams) -> Any:
        moved_on = [each for each in params.context.diagnostics if each.code == MOVED_ON]
        taken = asked.editing.merge(asked.path) if moved_on else None
        if taken and taken.edits is not None and asked.version is not None:
            named = types.OptionalVersionedTextDocumentIdentifier(asked.uri, asked.version)
            edits = self._edits.text_edits(asked.editing.lines(asked.path), taken.edits)
            yield types.CodeAction(
                _TAKE_OVER,
                types.CodeActionKind.QuickFix,
                moved_on,
                is_preferred=True,
                edit=types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(named, list(edits))]),
            )

        span = self._positions.span(asked.editing.lines(asked.path), params.range)
        for fix in asked.editing.fixes(asked.path, span):
            with contextlib.suppress(MdmemError):  # what this editor cannot do is not offered
                yield types.CodeAction(
                    fix.title,
                    types.CodeActionKind(fix.kind),
                    [each for each in params.context.diagnostics if each.code == fix.code] or None,
                    is_preferred=fix.is_preferred or None,
                    edit=self._edits.convert(asked, fix.plan, is_checked=True),
                )

    def _warn(self, message: str) -> None:
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
