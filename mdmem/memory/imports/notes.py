"""Convert folders of Markdown notes: of Obsidian, Claude Code's own memory of a repository, basic-memory.

An Obsidian vault is imported as it is. Claude Code has `MEMORY.md` and a file for each topic. The frontmatter
of such a file has a name and a type; some releases put the type below `metadata`. In basic-memory a link
names a note by its title or its permalink; both become aliases.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mdmem.document.document import Document
from mdmem.memory.imports.batch import Batch, also_called, folder, with_field
from mdmem.vault.config import Config

if TYPE_CHECKING:
    from mdmem.index.sync import Progress


def convert_obsidian(source: str, config: Config, progress: Progress | None = None) -> Batch:
    """Return the notes of an Obsidian vault, as they are."""
    return folder(source, config, lambda document: document, progress)


def convert_claude_code(source: str, config: Config, progress: Progress | None = None) -> Batch:
    """Return the memories of a folder `~/.claude/projects/<repository>`, or of the folder `memory` in it."""
    inner = os.path.join(source, "memory")
    return folder(inner if os.path.isdir(inner) else source, config, _name_document, progress)


def _name_document(document: Document) -> Document:
    name, metadata = document.fields.get("name"), document.fields.get("metadata")
    kind = metadata.get("type") if isinstance(metadata, dict) else None
    if isinstance(kind, str) and "type" not in document.fields:
        document = with_field(document, "type", kind)
    if not isinstance(name, str) or not name.strip():
        return document
    if "title" not in document.fields:
        document = with_field(document, "title", name.strip())
    return also_called(document, [name.strip()])


def convert_basic_memory(source: str, config: Config, progress: Progress | None = None) -> Batch:
    """Return the notes of a folder."""
    return folder(source, config, _add_aliases, progress)


def _add_aliases(document: Document) -> Document:
    fields = document.fields
    names = [fields.get(name) for name in ("title", "permalink")]
    return also_called(document, [name.strip() for name in names if isinstance(name, str) and name.strip()])
