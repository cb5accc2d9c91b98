"""The documents that a client has open, in the order of what it says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import MdmemError
from mdmem.lsp.vaults import file_of, uri_of

if TYPE_CHECKING:
    from mdmem.facade.editing import Editing
    from mdmem.lsp.vaults import ServedVault, Vaults


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
        uri: of the document.
        editing: the memories with the open texts of then.
        path: the memory.
        version: of the document; None where it is not open.
    """

    uri: str
    editing: Editing
    path: str
    version: int | None


class Documents:
    """What is open; it is changed by one thread, and asked by any."""

    def __init__(self, vaults: Vaults) -> None:
        self._vaults = vaults
        self._open: dict[str, OpenDocument] = {}
        self._uris: dict[tuple[str, str], str] = {}

    def open(self, uri: str, version: int, text: str) -> OpenDocument | None:
        """Take a document that was opened; None for one that is no memory."""
        file = file_of(uri)
        found = self._vaults.find(file) if file else None
        if found is None:
            return None
        vault, path = found
        return self._take(OpenDocument(uri, vault, path, version, text))

    def change(self, uri: str, version: int, text: str) -> OpenDocument | None:
        """Take all of the text of a document that has changed; None for one that is no memory.

        Raises:
            ValueError: the version goes back; or the document is a memory, and not open.
        """
        document = self._open.get(uri)
        if document is None:
            if self.asked(uri):
                raise ValueError(f"{uri} was changed before it was opened")
            return None
        if version < document.version:
            raise ValueError(f"the version of {uri} went from {document.version} to {version}")
        return self._take(document._replace(version=version, text=text))

    def _take(self, document: OpenDocument) -> OpenDocument | None:
        try:
            document.vault.editing.open(document.path, document.text)
        except MdmemError:
            return None
        self._open[document.uri] = document
        self._uris[document.vault.root, document.path] = document.uri
        return document

    def close(self, uri: str) -> OpenDocument | None:
        """Forget a document; None for one that is not open."""
        document = self._open.pop(uri, None)
        if document and self._uris.get((document.vault.root, document.path)) == uri:
            del self._uris[document.vault.root, document.path]
            document.vault.editing.close(document.path)
        return document

    def find(self, uri: str) -> OpenDocument | None:
        """Return an open document."""
        return self._open.get(uri)

    def at(self, root: str, path: str) -> OpenDocument | None:
        """Return the open document of a memory."""
        return self._open.get(self._uris.get((root, path), ""))

    def uri(self, file: str) -> str:
        """Return the URI of a file; of an open one, as the client writes it."""
        found = self._vaults.find(file)
        document = self.at(found[0].root, found[1]) if found else None
        return document.uri if document else uri_of(file)

    def asked_of(self, vault: ServedVault) -> Asked:
        """Return what a question about no document is about, as it is now."""
        return Asked("", vault.editing.frozen(), "", None)

    def asked(self, uri: str) -> Asked | None:
        """Return what a question about a document is about, as it is now; None for one that is no memory."""
        document = self._open.get(uri)
        if document:
            return Asked(uri, document.vault.editing.frozen(), document.path, document.version)
        file = file_of(uri)
        found = self._vaults.find(file) if file else None
        return Asked(uri, found[0].editing.frozen(), found[1], None) if found else None
