"""The checks of open documents: which is due, and what was told of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from threading import Condition, Thread
from typing import TYPE_CHECKING

from lsprotocol import types

from mdmem.editor.lsp.positions import START, TextPositions
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from mdmem import Diagnostic
    from mdmem.editor.editing import TakenOver
    from mdmem.editor.lsp.documents import Asked, Documents, OpenDocument
    from mdmem.editor.lsp.vaults import ServedVault

    Publish = Callable[[types.PublishDiagnosticsParams], None]

MOVED_ON = "changed-on-disk"
_QUIET_SECONDS = 0.15  # between two changes that are each checked at once
_SOURCE = "mdmem"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_NAMED = 5  # lines
_logger = logging.getLogger(__name__)


class Checks:
    """Checks documents in one thread, and tells what is new.

    A change is checked at once after a rest, and else when there is one. At most one check of a document is
    waiting; what is told of it never goes back to an older version, and is told once.
    """

    def __init__(self, documents: Documents, publish: Publish, *, has_related: bool) -> None:
        self._documents = documents
        self._publish = publish
        self._has_related = has_related
        self._due: dict[str | ServedVault, float] = {}
        self._changed_at: dict[str, float] = {}
        self._told: dict[str, list[types.Diagnostic]] = {}
        self._changed = Condition()
        self._is_stopped = False
        self._thread = Thread(target=self._run, name="checks", daemon=True)
        self._thread.start()

    def take_change(self, uri: str) -> None:
        """Check a document that was changed: now if it has rested until now, or else when it rests."""
        now = time.monotonic()
        with self._changed:
            rests = now - self._changed_at.get(uri, 0.0) >= _QUIET_SECONDS and uri not in self._due
            self._changed_at[uri] = now
            self._due[uri] = now if rests else now + _QUIET_SECONDS
            self._changed.notify()

    def request(self, what: str | ServedVault) -> None:
        """Check a document; or look which of the open ones in a vault are concerned by a change."""
        with self._changed:
            self._due.setdefault(what, time.monotonic())
            self._changed.notify()

    def close(self, document: OpenDocument) -> None:
        """Take back what was told of a document."""
        with self._changed:
            self._due.pop(document.uri, None)
            self._changed_at.pop(document.uri, None)
            if self._told.pop(document.uri, None) is not None:
                self._publish(types.PublishDiagnosticsParams(document.uri, []))
        self.request(document.vault)

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        self._thread.join(1.0)

    def _run(self) -> None:
        while (what := self._take_next()) is not None:
            try:
                if isinstance(what, str):
                    self._check(what)
                else:
                    self._look_around(what, "")
            except MdmemError as error:  # the vault cannot be asked; it is checked again when it can
                _logger.info("%s", error)
            except Exception:  # a bug in one check must not end the others
                _logger.exception("not checked: %s", what)

    def _take_next(self) -> str | ServedVault | None:
        """Wait for what is due, the newest first; None when it is all over."""
        with self._changed:
            while not self._is_stopped:
                now = time.monotonic()
                due = [what for what, at in self._due.items() if at <= now]
                if due:
                    what = max(due, key=self._due.__getitem__)
                    del self._due[what]
                    return what
                self._changed.wait(min(self._due.values()) - now if self._due else None)
        return None

    def _check(self, uri: str) -> None:
        asked = self._documents.asked(uri)
        document = asked.document if asked else None
        if asked is None or document is None:
            return
        # First, so that what is written meanwhile is told by the next change.
        self._look_around(document.vault, uri)
        text = asked.text
        found = [self._describe(asked, text, each) for each in asked.editing.check(asked.path)]
        if moved_on := asked.editing.merge(asked.path):
            found.insert(0, describe_moved_on(moved_on))
        with self._changed:
            is_new = self._told.get(uri) != found
            if is_new and self._documents.find(uri) is document:
                self._told[uri] = found
                self._publish(types.PublishDiagnosticsParams(uri, found, document.version))

    def _look_around(self, vault: ServedVault, uri: str) -> None:
        """Check what is concerned by a change of an open document, but for itself."""
        for path in vault.editing.changed():
            other = self._documents.at(vault, path)
            if other and other.uri != uri:
                self.request(other.uri)

    def _describe(self, asked: Asked, text: TextPositions, found: Diagnostic) -> types.Diagnostic:
        related = list(self._describe_related(asked, found)) if self._has_related else None
        return types.Diagnostic(
            range=text.range(found.span),
            message=f"{found.message}\n{found.hint}" if found.hint else found.message,
            severity=_SEVERITIES[found.severity],
            code=found.code,
            source=_SOURCE,
            related_information=related or None,
        )

    @staticmethod
    def _describe_related(asked: Asked, found: Diagnostic) -> Iterator[types.DiagnosticRelatedInformation]:
        for path, span, message in found.related:
            if document := asked.editing.document(path):
                file = asked.editing.file(path)
                place = asked.positions(file, document.lines).range(span)
                location = types.Location(asked.uri_of(file), place)
                yield types.DiagnosticRelatedInformation(location, message)


def describe_moved_on(taken: TakenOver) -> types.Diagnostic:
    """Return what is told of a document when another program has written its file meanwhile."""
    message = "the file has changed on disk since it was opened or saved last"
    if taken.edits is None:
        lines = ", ".join(map(str, taken.lines[:_NAMED]))
        message += f", and cannot be merged: see line {lines}\nmake the two agree there, then save"
    else:
        message += "\ntake over what is on disk, or save: both are kept"
    severity = types.DiagnosticSeverity.Warning
    return types.Diagnostic(types.Range(START, START), message, severity, MOVED_ON, source=_SOURCE)
