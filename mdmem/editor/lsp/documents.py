"""The documents that a client has open, and what it asks of them, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from mdmem.editor.editing import Editing
from mdmem.editor.lsp.positions import TextPositions
from mdmem.editor.lsp.vaults import ServedVault, Vaults, file_of, uri_of
from mdmem.editor.places import Spot

if TYPE_CHECKING:  # a protocol that stands there alone
    from mdmem.editor.lsp.positions import TextLines


class OpenDocument(NamedTuple):
    """A memory that is open: its URI as the client writes it, its vault and path, version and text."""

    uri: str
    vault: ServedVault
    path: str
    version: int
    text: str


class Asked(NamedTuple):
    """What a question is about, as it was when the question came.

    Attributes:
        uri: of the document; empty where it is about none.
        path: the memory; empty as well.
        editing: the memories with the open texts of then.
        opened: what was open, by the file.
    """

    uri: str
    path: str
    editing: Editing
    opened: Mapping[str, OpenDocument]
    documents: Documents

    @property
    def document(self) -> OpenDocument | None:
        """The document, where it was open."""
        return self.opened.get(self.editing.file(self.path)) if self.path else None

    @property
    def text(self) -> TextPositions:
        """The positions in the document."""
        return self.positions(self.editing.file(self.path), self.editing.lines(self.path))

    def positions(self, file: str, lines: TextLines) -> TextPositions:
        """Return the positions in the text of a file."""
        return TextPositions(lines, self.documents.encoding, is_open=file in self.opened)

    def uri_of(self, file: str) -> str:
        """Return the URI of a file; of an open one, as the client writes it."""
        document = self.opened.get(file)
        return document.uri if document else uri_of(self.documents.vaults.spell(file))

    def range_in(self, spot: Spot, span: tuple[int, int] | None = None) -> types.Range:
        """Return the range of a place, or of another span in the same text."""
        if spot.lines is None:
            return types.Range(types.Position(0, 0), types.Position(0, 0))
        return self.positions(spot.file, spot.lines).range(span or spot.span)

    def locate(self, spot: Spot) -> types.Location:
        """Return where a place is."""
        return types.Location(self.uri_of(spot.file), self.range_in(spot))


class Documents:
    """What is open; it is changed by one thread, and asked by any.

    Attributes:
        encoding: of positions, as it was agreed on.
        opened: what is open, by the file; it is replaced when anything changes.
    """

    def __init__(self, vaults: Vaults) -> None:
        self.vaults = vaults
        self.encoding = types.PositionEncodingKind.Utf16
        self.opened: Mapping[str, OpenDocument] = {}
        self._files: dict[str, str] = {}
        self._lock = Lock()

    def open(self, uri: str, version: int, text: str) -> OpenDocument | None:
        """Take a document that was opened; None for one that is no memory."""
        found = self._find_memory(uri)
        if found is None:
            return None
        vault, path = found
        file = vault.editing.file(path)
        self._files = {each: real for each, real in self._files.items() if real != file}
        self._files[file_of(uri) or ""] = file
        return self._take(OpenDocument(uri, vault, path, version, text))

    def change(self, uri: str, version: int, text: str) -> OpenDocument | None:
        """Take all of the text of a document that has changed; None for one that is no memory.

        Raises:
            ValueError: the version goes back; or the document is a memory, and not open.
            MdmemError: its vault cannot be asked.
        """
        document = self.find(uri)
        if document is None:
            if self._find_memory(uri):
                raise ValueError(f"{uri} was changed before it was opened")
            return None
        if version < document.version:
            raise ValueError(f"the version of {uri} went from {document.version} to {version}")
        return self._take(document._replace(version=version, text=text))

    def _take(self, document: OpenDocument) -> OpenDocument:
        editing = document.vault.editing
        with self._lock:
            # Also where the vault cannot take it, so that nothing is answered from an older text.
            self.opened = {**self.opened, editing.file(document.path): document}
            editing.open(document.path, document.text)
        return document

    def close(self, uri: str) -> OpenDocument | None:
        """Forget a document; None for one that is not open."""
        document = self.find(uri)
        if document:
            file = self._files.pop(file_of(uri) or "")
            with self._lock:
                self.opened = {each: other for each, other in self.opened.items() if each != file}
                document.vault.editing.close(document.path)
        return document

    def find(self, uri: str) -> OpenDocument | None:
        """Return an open document."""
        file = self._files.get(file_of(uri) or "")
        return self.opened.get(file) if file else None

    def _find_memory(self, uri: str) -> tuple[ServedVault, str] | None:
        named = file_of(uri)
        return self.vaults.find(named) if named else None

    def at(self, vault: ServedVault, path: str) -> OpenDocument | None:
        """Return the open document of a memory."""
        return self.opened.get(vault.editing.file(path))

    def asked_of(self, vault: ServedVault) -> Asked:
        """Return what a question about no document is about, as it is now."""
        with self._lock:
            return Asked("", "", vault.editing.frozen(), self.opened, self)

    def asked(self, uri: str) -> Asked | None:
        """Return what a question about a document is about, as it is now; None for one that is no memory."""
        document = self.find(uri)
        found = (document.vault, document.path) if document else self._find_memory(uri)
        if found is None:
            return None
        vault, path = found
        with self._lock:
            asked = Asked(uri, path, vault.editing.frozen(), self.opened, self)
        # The vault may have refused the text that is open; nothing older is answered for it.
        return asked if asked.document is None or asked.editing.is_open(path) else None

    def is_current(self, asked: Asked) -> bool:
        """Return whether a document still is as it was when it was asked about."""
        file = asked.editing.file(asked.path)
        return self.opened.get(file) is asked.opened.get(file)
