"""What an import brings: memories as they would be written, and what of the source was left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mdmem.diagnostic import Diagnostic
from mdmem.errors import DocumentRefused, EditRefused, StorageFailed, Usage
from mdmem.index.synced import Progress
from mdmem.text.document import Document, Limits, parse, parse_text
from mdmem.text.edit import splice
from mdmem.vault.walk import fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Memories on their way into a vault.

    Attributes:
        documents: with paths below the folder that they go to.
        left_out: what of the source is no memory, or could not be read, each with the reason.
        warnings: what was found in the documents.
    """

    documents: tuple[Document, ...]
    left_out: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


def read(path: str) -> bytes:
    """The bytes of a file of the source; opening it cannot hang, as on a pipe that nobody writes to.

    Raises:
        Usage: there is no such file.
        StorageFailed: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            reason = fault(os.fstat(descriptor))
            if reason:
                raise StorageFailed(path=path, action="read it", reason=reason)
            return file.read()
    except FileNotFoundError:
        raise Usage(problem=f"{path}: there is no such file") from None
    except OSError as error:
        raise StorageFailed(path=path, action="read it", reason=error.strerror or str(error)) from None


def folder(
    root: str, limits: Limits, convert: Callable[[Document], Document], progress: Progress | None = None
) -> Batch:
    """Every Markdown file below a folder, converted; hidden folders and links are not entered.

    Raises:
        Usage: there is no such folder.
    """
    if not os.path.isdir(root):
        raise Usage(problem=f"{root}: there is no such folder")
    paths = sorted(_files(root))
    documents, left_out = [], []
    for number, path in enumerate(paths, 1):
        try:
            if not path.endswith(".md"):
                left_out.append(f"{path}: no Markdown")
            elif os.path.islink(os.path.join(root, path)):
                left_out.append(f"{path}: a link")
            else:
                documents.append(convert(parse(path, read(os.path.join(root, path)), limits)))
        except (DocumentRefused, StorageFailed) as error:
            left_out.append(error.message)
        if progress:
            progress(number, len(paths))
    return Batch(documents=tuple(documents), left_out=tuple(left_out))


def _files(root: str) -> Iterator[str]:
    for above, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(above, name), root).replace(os.sep, "/")


def stem(path: str) -> str:
    """The name of a memory without its folder and suffix."""
    return path.rpartition("/")[2].removesuffix(".md")


def also_called(document: Document, names: Sequence[str]) -> Document:
    """A memory with more aliases: those of `names` that do not name it yet."""
    given = document.fields.get("aliases") or []
    known = [given] if isinstance(given, str) else given
    if not isinstance(known, list):
        return document
    path = document.path.removesuffix(".md").casefold()
    taken = {str(alias).casefold() for alias in known}
    new = [
        name
        for name in names
        if name.casefold() not in taken and not f"/{path}".endswith(f"/{name.casefold()}")
    ]
    return with_field(document, "aliases", [*known, *dict.fromkeys(new)]) if new else document


def with_field(document: Document, name: str, value: Any) -> Document:
    """A memory with a field set; as it is where its frontmatter cannot be edited."""
    from mdmem.text import field  # noqa: PLC0415 - start-up: it loads yaml

    try:
        edits = field.set_field(document, name, value)
    except EditRefused:
        return document
    return parse_text(document.path, splice(document.text, edits, document.path), document.limits)
