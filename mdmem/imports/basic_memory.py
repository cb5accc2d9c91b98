"""A folder of basic-memory: its notes as they are, with what links call them as aliases.

There a link names a note by its title or its permalink; here titles name nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.imports.batch import Batch, also_called, folder

if TYPE_CHECKING:
    from mdmem.index.synced import Progress
    from mdmem.text.document import Document, Limits


def convert(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """The notes of a folder.

    Raises:
        Usage: there is no such folder.
    """
    return folder(source, limits, _called_by_links, progress)


def _called_by_links(document: Document) -> Document:
    fields = document.fields
    names = [fields.get(name) for name in ("title", "permalink")]
    return also_called(document, [name.strip() for name in names if isinstance(name, str) and name.strip()])
