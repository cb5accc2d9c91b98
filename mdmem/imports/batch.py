"""What an import brings: memories as they would be written, and what of the source was left out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.document import field as text_field
from mdmem.document.document import MARKDOWN_SUFFIXES, Document, Limits, parse, parse_text, without_suffix
from mdmem.document.yaml_edit import inline, scalar
from mdmem.errors import DocumentRefused, EditRefused, NamedNotFound, StorageFailed, Usage
from mdmem.vault.files import failure, open_regular
from mdmem.vault.walk import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mdmem.index.sync import Progress
    from mdmem.vault.config import Config


_NAMED = 5  # of what was left out, where nothing else is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Memories on their way into a vault.

    Attributes:
        documents: with paths below the folder that they go to.
        left_out: what of the source is not a memory, or could not be read, each with the reason.
    """

    documents: tuple[Document, ...]
    left_out: tuple[str, ...] = ()


def read(path: str) -> bytes:
    """Return the bytes of a file of the source; opening it cannot hang, as on a pipe that nobody writes to.

    Raises:
        Usage: there is no such file.
        StorageFailed, SystemFailing: it cannot be read.
    """
    try:
        with open(open_regular(os.path.realpath(path)), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise Usage(problem=f"{path}: there is no such file") from None
    except OSError as error:
        raise failure(error, path, "read it") from None


def folder(
    root: str, config: Config, convert: Callable[[Document], Document], progress: Progress | None = None
) -> Batch:
    """Return every Markdown file below a folder, converted; hidden folders and links are not entered.

    Markdown is what `config`, that of the vault which it goes to, takes for a memory by its name.

    Raises:
        Usage: there is no such folder.
        NamedNotFound: no Markdown file is there that can be read.
    """
    if not os.path.isdir(root):
        raise Usage(problem=f"{root}: there is no such folder")
    documents: list[Document] = []
    left_out: list[str] = []
    suffixes = tuple(suffix for suffix in MARKDOWN_SUFFIXES if suffix in config.suffixes)
    paths = sorted(_list_files(root, left_out))
    for number, path in enumerate(paths, 1):
        try:
            if not path.endswith(suffixes):
                left_out.append(f"{path}: no Markdown")
            elif os.path.islink(os.path.join(root, path)):
                left_out.append(f"{path}: a link")
            else:
                documents.append(convert(parse(path, read(os.path.join(root, path)), config.limits)))
        except (DocumentRefused, StorageFailed) as error:
            left_out.append(error.message)
        if progress:
            progress(number, len(paths))
    if not documents:
        looked = (
            f"looked for files that end in {' or '.join(suffixes)}, in it and below, but for hidden folders"
        )
        raise nothing_found("Markdown note", root, looked, left_out)
    return Batch(documents=tuple(documents), left_out=tuple(left_out))


def nothing_found(what: str, source: str, looked: str, left_out: Sequence[str]) -> NamedNotFound:
    """Return the error of a source with nothing to import: what was looked for, and what was left out."""
    others = [f"and {len(left_out) - _NAMED:,} more"] if len(left_out) > _NAMED else []
    remedy = "\n".join((looked, *(f"  {line}" for line in (*left_out[:_NAMED], *others))))
    return NamedNotFound(kind=f"{what} in", name=source, remedy=remedy)


def _list_files(root: str, left_out: list[str]) -> Iterator[str]:
    def refused(error: OSError) -> None:
        found = failure(error, str(error.filename), "list it")
        if not isinstance(found, StorageFailed):
            raise found
        left_out.append(found.message)

    for above, folders, names in tree(root, refused):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(above, name), root).replace(os.sep, "/")


def also_called(document: Document, names: Sequence[str]) -> Document:
    """Return a memory with more aliases: those of `names` that do not name it yet."""
    given = document.fields.get("aliases") or []
    known = [given] if isinstance(given, str) else given
    if not isinstance(known, list):
        return document
    path = without_suffix(document.path).casefold()
    taken = {str(alias).casefold() for alias in known}
    new = [
        name
        for name in names
        if name.casefold() not in taken and not f"/{path}".endswith(f"/{name.casefold()}")
    ]
    return with_field(document, "aliases", [*known, *dict.fromkeys(new)]) if new else document


def made(path: str, fields: Mapping[str, Any], body: str, limits: Limits) -> Document:
    """Return a new Markdown memory.

    Args:
        path: where it will be, as in `Batch`.
        fields: its frontmatter, in this order.
        body: what stands behind a blank line; nothing where it is empty.
        limits: what a memory may have.

    Raises:
        DocumentRefused: it cannot be a memory.
    """
    lines = ["---", *(f"{scalar(name)}: {inline(value)}" for name, value in fields.items()), "---"]
    text = "\n".join([*lines, "", body] if body else lines)
    return parse_text(path, text.removesuffix("\n") + "\n", limits)


def with_field(document: Document, name: str, value: Any) -> Document:
    """Return a memory with a field set; as it is where its frontmatter cannot be edited."""
    try:
        return text_field.with_field(document, name, value)
    except EditRefused:
        return document
