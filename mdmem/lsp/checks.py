"""The checks of open documents: which is due, and what was told of each."""

from __future__ import annotations

import logging
import time
from threading import Condition, Thread
from typing import TYPE_CHECKING

from lsprotocol import types

from mdmem.lsp.positions import Positions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mdmem import Diagnostic
    from mdmem.facade.editing import Editing, TakenOver
    from mdmem.lsp.documents import Documents, OpenDocument

    Publish = Callable[[types.PublishDiagnosticsParams], None]

QUIET_SECONDS = 0.15  # after the last change of a document, before it is checked
MOVED_ON = "changed-on-disk"
_SOURCE = "mdmem"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_NAMED = 5  # lines of conflicts
_logger = logging.getLogger(__name__)


class Checks:
    """Checks documents in one thread, each after its changes have come to rest, and tells what is new.

    At most one check of a document is waiting; what is told of it never goes back to an older version.

    Args:
        documents: what is open.
        positions: in the encoding that was agreed on.
        publish: tells the client.
        has_related: whether the client shows related places.
    """

    def __init__(
        self, documents: Documents, positions: Positions, publish: Publish, *, has_related: bool
    ) -> None:
        self._documents = documents
        self._positions = positions
        self._publish = publish
        self._has_related = has_related
        self._due: dict[str, float] = {}
        self._told: dict[str, list[types.Diagnostic]] = {}
        self._changed = Condition()
        self._is_stopped = False
        self._thread = Thread(target=self._run, name="checks", daemon=True)
        self._thread.start()

    def request(self, uri: str, *, quiet: float = 0.0) -> None:
        """Check a document; with `quiet`, after so many seconds without a further change."""
        with self._changed:
            self._due[uri] = time.monotonic() + quiet
            self._changed.notify()

    def close(self, uri: str) -> None:
        """Take back what was told of a document."""
        with self._changed:
            self._due.pop(uri, None)
            if self._told.pop(uri, None):
                self._publish(types.PublishDiagnosticsParams(uri, []))

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        self._thread.join(1.0)

    def _run(self) -> None:
        while (uri := self._take_next()) is not None:
            try:
                self._check(uri)
            except Exception:  # a bug in one check must not end the others
                _logger.exception("%s was not checked", uri)

    def _take_next(self) -> str | None:
        """Wait for the document whose check is due next; None when it is all over."""
        with self._changed:
            while not self._is_stopped:
                uri = min(self._due, key=self._due.__getitem__, default=None)
                left = self._due[uri] - time.monotonic() if uri is not None else None
                if uri is not None and left is not None and left <= 0:
                    del self._due[uri]
                    return uri
                self._changed.wait(left)
        return None

    def _check(self, uri: str) -> None:
        document = self._documents.find(uri)
        if document is None:
            return
        editing = document.vault.editing.frozen()
        if editing.text(document.path) is not document.text:  # it has just changed, and is checked again
            self.request(uri)
            return
        found = [self._describe(document, editing, each) for each in editing.check(document.path)]
        moved_on = editing.merge(document.path)
        if moved_on:
            found.insert(0, self.describe_moved_on(moved_on))
        with self._changed:
            now = self._documents.find(uri)
            if now is not None and now.version == document.version and self._told.get(uri, []) != found:
                self._told[uri] = found
                self._publish(types.PublishDiagnosticsParams(uri, found, document.version))
        for path in document.vault.editing.changed():
            other = self._documents.at(document.vault.root, path)
            if other and other.uri != uri:
                self.request(other.uri)

    def _describe(self, document: OpenDocument, editing: Editing, found: Diagnostic) -> types.Diagnostic:
        lines = editing.lines(document.path)
        message = f"{found.message}\n{found.hint}" if found.hint else found.message
        related = (
            list(self._describe_related(editing, found)) if self._has_related and found.related else None
        )
        return types.Diagnostic(
            range=self._positions.range(lines, found.span),
            message=message,
            severity=_SEVERITIES[found.severity],
            code=found.code,
            source=_SOURCE,
            related_information=related or None,
        )

    def _describe_related(
        self, editing: Editing, found: Diagnostic
    ) -> Iterator[types.DiagnosticRelatedInformation]:
        for path, span, message in found.related:
            if document := editing.document(path):
                is_open = editing.is_open(path)
                place = self._positions.range(document.lines, span, is_open=is_open)
                uri = self._documents.uri(editing.file(path))
                yield types.DiagnosticRelatedInformation(types.Location(uri, place), message)

    @staticmethod
    def describe_moved_on(taken: TakenOver) -> types.Diagnostic:
        """Return what is told of a document when another program has written its file meanwhile."""
        message = "the file has changed on disk since it was opened or saved last"
        if taken.edits is None:
            lines = ", ".join(str(conflict.line) for conflict in taken.conflicts[:_NAMED])
            message += f"; both sides changed line {lines}\nmake these lines agree, then save"
        else:
            message += "\ntake over what is on disk, or save: both are kept"
        start = types.Position(0, 0)
        return types.Diagnostic(
            types.Range(start, start), message, types.DiagnosticSeverity.Warning, MOVED_ON, source=_SOURCE
        )
