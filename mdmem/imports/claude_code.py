"""Claude Code's own memory of a repository: `MEMORY.md`, and a file for each topic.

It keeps the name and the type of a memory in its frontmatter, the type below `metadata` in some releases.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mdmem.imports.batch import Batch, also_called, folder, with_field

if TYPE_CHECKING:
    from mdmem.index.synced import Progress
    from mdmem.text.document import Document, Limits


def convert(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """The memories of a folder `~/.claude/projects/<repository>`, or of the folder `memory` in it.

    Raises:
        Usage: there is no such folder.
    """
    inner = os.path.join(source, "memory")
    return folder(inner if os.path.isdir(inner) else source, limits, _named, progress)


def _named(document: Document) -> Document:
    """A memory with its name as the title, and as what links call it."""
    name, metadata = document.fields.get("name"), document.fields.get("metadata")
    kind = metadata.get("type") if isinstance(metadata, dict) else None
    if isinstance(kind, str) and "type" not in document.fields:
        document = with_field(document, "type", kind)
    if not isinstance(name, str) or not name.strip():
        return document
    if "title" not in document.fields:
        document = with_field(document, "title", name.strip())
    return also_called(document, [name.strip()])
