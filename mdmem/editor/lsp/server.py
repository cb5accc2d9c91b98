"""The server: what a client says and asks, in the order in which it does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter
from pygls.protocol.json_rpc import JsonRPCNotification

from mdmem import __version__
from mdmem.editor.lsp.answers import APPLY, Answers
from mdmem.editor.lsp.checks import MOVED_ON, Checks, describe_moved_on
from mdmem.editor.lsp.documents import Asked, Documents
from mdmem.editor.lsp.edits import convert_edits
from mdmem.editor.lsp.positions import choose_encoding
from mdmem.editor.lsp.vaults import ServedVault, Vaults, file_of
from mdmem.errors import Conflict, MdmemError

if TYPE_CHECKING:
    from mdmem import Scope

    Place = (
        types.CompletionParams
        | types.DefinitionParams
        | types.HoverParams
        | types.PrepareRenameParams
        | types.ReferenceParams
        | types.RenameParams
    )

T = TypeVar("T")

_WORKERS = 4  # questions that are worked on at once; others wait
_SAVE_SECONDS = 1.0  # clients give up soon after
_TRIES = 3  # to answer before something that is open changes
_MOST_SYMBOLS = 200
_LONGEST_NOTE = 500  # characters of a note in the client's log
_VS_CODE = ("Visual Studio Code", "code-server", "VSCodium", "Code - OSS")
_TAKE_OVER = "Take over what is on disk"
_FILES = types.FileOperationRegistrationOptions(
    [types.FileOperationFilter(types.FileOperationPattern("**/*"), scheme="file")]
)
_COMPLETION = types.CompletionOptions(trigger_characters=["[", "(", "#", "^", "/", ":", " "])
_ACTIONS = types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorExtract])
_NOTEBOOKS = (
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
_UNREADABLE = "$/unreadable"
_logger = logging.getLogger(__name__)


class _Protocol(LanguageServerProtocol):
    """The protocol, which answers what comes too early, too late, or cannot be read, as well."""

    is_begun = is_over = False

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return a message as a value; of one that cannot be read, something that is ignored."""
        if "method" in data:
            params = data.setdefault("params", None)
            # The SDK takes a command that is given no arguments for one that has none.
            if data["method"] == types.WORKSPACE_EXECUTE_COMMAND and isinstance(params, dict):
                params["arguments"] = params.get("arguments") or []
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            self._server.report_server_error(error, JsonRpcException)
            return JsonRPCNotification(method=_UNREADABLE, jsonrpc=self.VERSION, params=None)

    def handle_message(self, message: Any) -> None:
        """Answer a message, or say why it is none that can be answered now."""
        method, number = _read_member(message, "method"), _read_member(message, "id")
        refused = self._refuse(message, method, number)
        if refused is None:
            super().handle_message(message)
        elif number is not None and method:
            self._send_response(number, error=refused.to_response_error())

    def _refuse(self, message: Any, method: str | None, number: Any) -> JsonRpcException | None:
        """Return why a message is not answered; None where it is."""
        if getattr(message, "jsonrpc", None) != self.VERSION:
            return _fail(types.ErrorCodes.InvalidRequest, "this is no message of JSON-RPC 2.0")
        if method == types.EXIT or not method:
            return None
        if self.is_over or (self.is_begun and method == types.INITIALIZE):
            return _fail(types.ErrorCodes.InvalidRequest, f"{method} comes too late")
        if not self.is_begun and method != types.INITIALIZE:
            return _fail(types.ErrorCodes.ServerNotInitialized, f"{method} comes before {types.INITIALIZE}")
        is_question = number is not None or asyncio.iscoroutinefunction(self.fm.features.get(method))
        if is_question and not isinstance(number, int | str):
            return _fail(types.ErrorCodes.InvalidRequest, "a question has an id, a number or a text")
        self.is_begun = True
        self.is_over = method == types.SHUTDOWN
        return None


def _read_member(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)


def _fail(code: int, message: str) -> JsonRpcException:
    return JsonRpcException(message=message, code=code)


def _describe(error: MdmemError) -> str:
    return f"{error.message}\n{error.hint}" if error.hint else error.message


def _as_answer(error: MdmemError) -> JsonRpcException:
    codes = types.LSPErrorCodes
    code = codes.ContentModified if isinstance(error, Conflict) else codes.RequestFailed
    return _fail(code, _describe(error))


class _ShownProgress:
    """How far the first look at a vault is, as the client shows it, once it has agreed to."""

    def __init__(self, protocol: LanguageServerProtocol, *, is_shown: bool) -> None:
        self._protocol = protocol
        self._is_shown = is_shown
        self._token = f"mdmem-{id(self)}"
        self._created: Future[Any] | None = None
        self._percentage: int | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show how many of how many are done."""
        if not self._is_shown or not total:
            return
        percentage, progress = 100 * done // total, self._protocol.progress
        if self._created is None:
            named = types.WorkDoneProgressCreateParams(self._token)
            self._created = self._protocol.send_request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, named)
        is_agreed = self._created.done() and not self._created.cancelled() and not self._created.exception()
        if not is_agreed or percentage == self._percentage:
            return
        if self._percentage is None:
            begin = types.WorkDoneProgressBegin("Indexing memories", percentage=percentage)
            progress.begin(self._token, begin)
        else:
            progress.report(self._token, types.WorkDoneProgressReport(percentage=percentage))
        self._percentage = percentage

    def end(self) -> None:
        """Show that it is over."""
        self._is_shown = False
        if self._percentage is not None:
            self._percentage = None
            self._protocol.progress.end(self._token, types.WorkDoneProgressEnd())


class MemoryLanguageServer(LanguageServer):
    """A server for one editor, on standard input and output; what it changes, the editor writes.

    It serves one vault, or else those around the files that are opened.
    """

    protocol: _Protocol
    _answers: Answers
    _checks: Checks

    def __init__(self, vault: str | None, scope: Scope, actor: str) -> None:
        full = types.TextDocumentSyncKind.Full
        super().__init__(
            "mdmem", __version__, full, protocol_cls=_Protocol, converter_factory=default_converter
        )
        # It logs each error that a client is answered with, and where in its own code that was.
        logging.getLogger("pygls").setLevel(logging.CRITICAL)
        self._has_progress = False
        self._folders: list[str] = []
        self._pool = ThreadPoolExecutor(_WORKERS, "question")
        self._vaults = Vaults(vault, scope, actor, self._check_again, self._begin_progress)
        self._documents = Documents(self._vaults)
        self._register()

    def _register(self) -> None:
        """Name what answers each message; the SDK keeps no documents of its own."""
        told: dict[str, Callable[[Any], None]] = {
            types.TEXT_DOCUMENT_DID_OPEN: self._did_open,
            types.TEXT_DOCUMENT_DID_CHANGE: self._did_change,
            types.TEXT_DOCUMENT_DID_CLOSE: self._did_close,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._did_change_folders,
        }
        for name in _NOTEBOOKS:
            del self.protocol.fm.builtin_features[name]
        for name, handle in told.items():
            self.protocol.fm.add_builtin_feature(name, handle)
        features: dict[str, tuple[Callable[[Any], Any], Any]] = {
            types.INITIALIZE: (self._initialize, None),
            types.INITIALIZED: (self._initialized, None),
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
        self._documents.encoding = choose_encoding(general.position_encodings if general else None)
        document = client.text_document or types.TextDocumentClientCapabilities()
        published, symbol = document.publish_diagnostics, document.document_symbol
        self._answers = Answers(client)
        self._checks = Checks(
            self._documents,
            self.text_document_publish_diagnostics,
            has_related=bool(published and published.related_information),
        )
        self._has_progress = bool(client.window and client.window.work_done_progress)
        self._folders = [each.uri for each in params.workspace_folders or ()] or [params.root_uri or ""]
        # VS Code lists the headings of Markdown by itself.
        if not (params.client_info and params.client_info.name.startswith(_VS_CODE)):
            self.feature(types.WORKSPACE_SYMBOL)(partial(self._symbols))
            if symbol and symbol.hierarchical_document_symbol_support:
                self.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(partial(self._outline))

    def _initialized(self, _: types.InitializedParams) -> None:
        self._add_folders(self._folders)

    def _did_change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self._add_folders(folder.uri for folder in params.event.added)

    def _add_folders(self, uris: Iterable[str]) -> None:
        for folder in filter(None, map(file_of, uris)):
            with self._telling():
                self._vaults.add_folder(folder)

    def serve(self) -> int:
        """Serve until the client is gone; return 0, or 1 if it had begun and did not say that it is over."""
        out = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing but the protocol stands there
        with os.fdopen(out, "wb") as stream, contextlib.suppress(ValueError, BrokenPipeError):
            self.start_io(sys.stdin.buffer, stream)
        if hasattr(self, "_checks"):
            self._checks.stop()
        self._vaults.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        return 1 if self.protocol.is_begun and not self.protocol.is_over else 0

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Tell of an error which no request can be answered with; of one that is a bug, where it is."""
        if isinstance(error, JsonRpcInternalError) and error.data:
            _logger.error("%s\n%s", error, "".join(error.data["traceback"]))
        elif source is JsonRpcException and self.protocol.is_begun:
            self._log(f"a message was left out: {error.__cause__ or error}")

    def _log(self, message: str) -> None:
        note = message[:_LONGEST_NOTE]
        self.window_log_message(types.LogMessageParams(types.MessageType.Warning, note))

    def _warn(self, message: str) -> None:
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell the client what goes wrong with a message that gets no answer."""
        try:
            yield
        except ValueError as error:
            self._log(str(error))
        except MdmemError as error:
            self._warn(_describe(error))

    def _begin_progress(self) -> _ShownProgress:
        return _ShownProgress(self.protocol, is_shown=self._has_progress)

    # -- what the client tells -----------------------------------------------------------------------------

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        with self._telling():
            if self._documents.open(document.uri, document.version, document.text):
                self._checks.request(document.uri)

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        with self._telling():
            for change in params.content_changes[-1:]:
                if hasattr(change, "range"):
                    raise ValueError(f"the client sent only a part of {uri}, not its whole text")
                if document := self._documents.change(uri, version, change.text):
                    self._checks.take_change(document.uri)

    def _did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        if document := self._documents.find(params.text_document.uri):
            document.vault.editing.saved(document.path)
            self._checks.request(document.uri)

    def _did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        if document := self._documents.close(params.text_document.uri):
            self._checks.close(document)

    def _check_again(self, vault: ServedVault, paths: tuple[str, ...]) -> None:
        for path in paths:
            if document := self._documents.at(vault, path):
                self._checks.request(document.uri)

    # -- what the client asks ------------------------------------------------------------------------------

    async def _ask(self, uri: str, work: Callable[[Asked], T], seconds: float | None = None) -> T | None:
        """Let a thread answer a question about a document, as it is when the question comes.

        Returns:
            None for a file that is no memory.

        Raises:
            JsonRpcException: the document has changed meanwhile; or what an error of ours becomes.
            TimeoutError: it takes longer.
        """
        try:
            asked = self._documents.asked(uri)
            if asked is None:
                return None
            answer = await asyncio.wait_for(self._run(partial(work, asked)), seconds)
        except MdmemError as error:
            raise _as_answer(error) from None
        if not self._documents.is_current(asked):
            raise _fail(types.LSPErrorCodes.ContentModified, "the document has changed since then")
        return answer

    def _run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _ask_at(self, place: Place, work: Callable[[Asked, int], T]) -> T | None:
        """As `_ask`, about a place in the document."""
        uri = place.text_document.uri
        return await self._ask(uri, lambda asked: work(asked, asked.text.offset(place.position)))

    async def _complete(self, params: types.CompletionParams) -> types.CompletionList | None:
        return await self._ask_at(params, self._answers.completions)

    def _apply(self, edit: types.WorkspaceEdit, uri: str, digest: str) -> None:
        """Ask the client for an edit, unless its document has changed since the edit was made."""
        with self._telling():
            asked = self._documents.asked(uri)
            document = asked.editing.document(asked.path) if asked else None
            if asked is None or document is None or document.hash != digest:
                raise Conflict(path=uri, base=digest, actual=document.hash if document else None)
            self.workspace_apply_edit(types.ApplyWorkspaceEditParams(edit))

    async def _definition(self, params: types.DefinitionParams) -> Any:
        return await self._ask_at(params, self._answers.definitions)

    async def _references(self, params: types.ReferenceParams) -> list[types.Location] | None:
        over = Event()  # also where the client has cancelled it

        def work(asked: Asked, offset: int) -> list[types.Location]:
            declaration = params.context.include_declaration
            spots = asked.editing.uses(asked.path, offset, declaration=declaration, is_over=over.is_set)
            return [asked.locate(spot) for spot in spots if not over.is_set()]

        try:
            return await self._ask_at(params, work)
        finally:
            over.set()

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        return await self._ask_at(params, self._answers.hover)

    async def _document_links(self, params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
        return await self._ask(params.text_document.uri, self._answers.document_links)

    async def _outline(self, params: types.DocumentSymbolParams) -> list[Any] | None:
        return await self._ask(params.text_document.uri, self._answers.outline)

    async def _symbols(self, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        every = [self._documents.asked_of(vault) for vault in self._vaults.served]

        def work() -> list[types.SymbolInformation]:
            found: list[types.SymbolInformation] = []
            for asked in every:
                try:
                    symbols = asked.editing.symbols(params.query, _MOST_SYMBOLS)
                    found += self._answers.symbols(asked, symbols.items)
                except MdmemError as error:  # it was deleted, maybe; the others are still there
                    self._log(f"its symbols are left out: {_describe(error)}")
                    continue
                if symbols.left_out:
                    self._log(f"{symbols.left_out:,} more symbols fit {params.query!r}")
            return found

        return await self._run(work)

    async def _prepare_rename(
        self, params: types.PrepareRenameParams
    ) -> types.PrepareRenamePlaceholder | None:
        def work(asked: Asked, offset: int) -> types.PrepareRenamePlaceholder | None:
            found = asked.editing.renamable(asked.path, offset)
            return types.PrepareRenamePlaceholder(asked.text.range(found.span), found.name) if found else None

        return await self._ask_at(params, work)

    async def _rename(self, params: types.RenameParams) -> types.WorkspaceEdit | None:
        def work(asked: Asked, offset: int) -> types.WorkspaceEdit:
            plan = asked.editing.rename(asked.path, offset, params.new_name)
            return self._answers.edits.convert(asked, plan)

        return await self._ask_at(params, work)

    async def _will_rename_files(self, params: types.RenameFilesParams) -> types.WorkspaceEdit | None:
        """Say which links have to follow; a reason why they cannot must not stop the editor."""
        pairs = ((file_of(each.old_uri), file_of(each.new_uri)) for each in params.files)
        moves = {old: new for old, new in pairs if old and new}
        for file in moves:
            with self._telling():
                self._vaults.around(file)
        changes: list[Any] = []
        for _ in range(_TRIES):
            every = [self._documents.asked_of(vault) for vault in self._vaults.served]
            changes = [
                each for asked in every for each in await self._run(partial(self._follow, asked, moves))
            ]
            if not changes or every[0].opened is self._documents.opened:
                break
        return self._answers.edits.join(changes) if changes else None

    def _follow(self, asked: Asked, moves: dict[str, str]) -> list[Any]:
        """Return the changes of a vault that files of it, or of its workspace, bring about by moving."""
        try:
            return self._answers.edits.convert_changes(asked, asked.editing.move(moves))
        except MdmemError as error:
            self._warn(f"links were not changed: {_describe(error)}")
            return []

    # -- what is on disk -----------------------------------------------------------------------------------

    async def _will_save(self, params: types.WillSaveTextDocumentParams) -> list[types.TextEdit] | None:
        def work(asked: Asked) -> list[types.TextEdit] | None:
            taken = asked.editing.merge(asked.path)
            if taken is None:
                return None
            if taken.edits is None:
                self._warn(describe_moved_on(taken).message)
                return None
            return convert_edits(asked.text, taken.edits)

        try:
            return await self._ask(params.text_document.uri, work, _SAVE_SECONDS)
        except TimeoutError:
            return None

    async def _code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        return await self._ask(params.text_document.uri, lambda asked: list(self._act(asked, params)))

    def _act(self, asked: Asked, params: types.CodeActionParams) -> Iterator[types.CodeAction]:
        """Yield what can be done about what is on disk, and about what stands in a range."""
        told = params.context.diagnostics
        moved_on = [each for each in told if each.code == MOVED_ON]
        taken = asked.editing.merge(asked.path) if moved_on else None
        if taken and taken.edits is not None:
            edit = self._answers.edits.edit_document(asked, taken.edits)
            kind = types.CodeActionKind.QuickFix
            yield types.CodeAction(_TAKE_OVER, kind, moved_on, is_preferred=True, edit=edit)
        # Some editors name the place of the cursor only, and what they show of its line.
        shown = [asked.text.span(found.range) for found in told]
        fixes = asked.editing.fixes(asked.path, asked.text.span(params.range), shown)
        yield from self._answers.actions(asked, fixes, told)
