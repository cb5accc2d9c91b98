"""Folders of Markdown notes: Obsidian, Claude Code's own memory of a repository, basic-memory.

An Obsidian vault comes as it is, with a warning for each link that does not lead to one of its notes. Claude
Code has `MEMORY.md` and a file for each topic, with a name and, in some releases below `metadata`, a type in
the frontmatter. In basic-memory a link names a note by its title or its permalink, which become aliases.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from mdmem.diagnostic import about_file
from mdmem.errors import DocumentRefused
from mdmem.imports.batch import Batch, also_called, folder, with_field
from mdmem.index.database import record
from mdmem.links.resolve import resolve_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.diagnostic import Diagnostic
    from mdmem.document.document import Document, Limits
    from mdmem.index.sync import Progress
    from mdmem.markdown.inline import Link


def convert_obsidian(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """Return the notes of a vault, and what their links mean among them.

    Raises:
        Usage: there is no such folder.
    """
    batch = folder(source, limits, lambda document: document, progress)
    names = _Names(source, batch.documents)
    warnings = [finding for document in batch.documents for finding in _find_unclear(document, names)]
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
        """Do as `mdmem.links.resolve.Names`."""
        return self._paths.get((kind, key), ())

    def exists(self, path: str) -> bool:
        """Do as `mdmem.links.resolve.Names`."""
        return os.path.exists(os.path.join(self._root, path))


def _find_unclear(document: Document, names: _Names) -> Iterator[Diagnostic]:
    try:
        links = document.links
    except DocumentRefused:
        return
    for link in links:
        found = resolve_link(names, link, document.path)
        if found.path is None:
            yield _make_finding(document, link, "dangling-link", f"{link.target!r} is nowhere")
        elif found.ambiguous:
            others = ", ".join(found.candidates)
            yield _make_finding(document, link, "ambiguous-link", f"{link.target!r} may mean {others}")


def _make_finding(document: Document, link: Link, code: str, message: str) -> Diagnostic:
    hint = "once it is imported, `mdmem refs --state dangling --state ambiguous` lists such links"
    found = about_file(document.path, code, message, hint, severity="warning")
    return replace(found, span=link.span, position=document.lines.position(link.span.start))


def convert_claude_code(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """Return the memories of a folder `~/.claude/projects/<repository>`, or of the folder `memory` in it.

    Raises:
        Usage: there is no such folder.
    """
    inner = os.path.join(source, "memory")
    return folder(inner if os.path.isdir(inner) else source, limits, _name_document, progress)


def _name_document(document: Document) -> Document:
    """Return a memory with its name as the title, and as what links call it."""
    name, metadata = document.fields.get("name"), document.fields.get("metadata")
    kind = metadata.get("type") if isinstance(metadata, dict) else None
    if isinstance(kind, str) and "type" not in document.fields:
        document = with_field(document, "type", kind)
    if not isinstance(name, str) or not name.strip():
        return document
    if "title" not in document.fields:
        document = with_field(document, "title", name.strip())
    return also_called(document, [name.strip()])


def convert_basic_memory(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """Return the notes of a folder.

    Raises:
        Usage: there is no such folder.
    """
    return folder(source, limits, _called_by_links, progress)


def _called_by_links(document: Document) -> Document:
    fields = document.fields
    names = [fields.get(name) for name in ("title", "permalink")]
    return also_called(document, [name.strip() for name in names if isinstance(name, str) and name.strip()])
