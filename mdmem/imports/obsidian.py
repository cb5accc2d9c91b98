"""An Obsidian vault: its notes as they are, and a warning for each link that does not lead to one of them."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from mdmem.diagnostic import Diagnostic
from mdmem.errors import DocumentRefused
from mdmem.imports.batch import Batch, folder
from mdmem.index.record import record
from mdmem.index.resolve import resolve_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.index.synced import Progress
    from mdmem.text.document import Document, Limits
    from mdmem.text.inline import Link


def convert(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """The notes of a vault, and what their links mean among them.

    Raises:
        Usage: there is no such folder.
    """
    batch = folder(source, limits, lambda document: document, progress)
    names = _Names(source, batch.documents)
    warnings = [finding for document in batch.documents for finding in _unclear(document, names)]
    return replace(batch, warnings=tuple(warnings))


class _Names:
    """What there is to link to in the source."""

    def __init__(self, root: str, documents: Sequence[Document]) -> None:
        self._root = root
        self._paths: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for document in documents:
            # What cannot be read is left out of the import for that.
            with contextlib.suppress(DocumentRefused):
                for name in record(document, 0).names:
                    self._paths[name].append(document.path)

    def named(self, kind: str, key: str) -> Sequence[str]:
        """As `mdmem.index.resolve.Names`."""
        return self._paths.get((kind, key), ())

    def exists(self, path: str) -> bool:
        """As `mdmem.index.resolve.Names`."""
        return os.path.exists(os.path.join(self._root, path))


def _unclear(document: Document, names: _Names) -> Iterator[Diagnostic]:
    try:
        links = document.links
    except DocumentRefused:
        return
    for link in links:
        found = resolve_link(names, link, document.path)
        if found.path is None:
            yield _finding(document, link, "dangling-link", f"{link.target!r} is nowhere")
        elif found.ambiguous:
            others = ", ".join(found.candidates)
            yield _finding(document, link, "ambiguous-link", f"{link.target!r} may mean {others}")


def _finding(document: Document, link: Link, code: str, message: str) -> Diagnostic:
    return Diagnostic(
        path=document.path,
        span=link.span,
        position=document.lines.position(link.span.start),
        code=code,
        message=message,
        hint="once it is imported, `mdmem refs --state dangling --state ambiguous` lists such links",
        severity="warning",
    )
