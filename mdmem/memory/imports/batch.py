"""What an import brings: memories as they would be written, and what of the source was left out."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.document import field as text_field
from mdmem.document.document import Document, Limits, parse_any, parse_text, without_suffix
from mdmem.document.text.tokens import first_of
from mdmem.document.yaml_edit import inline, scalar
from mdmem.errors import DocumentRefused, EditRefused, NamedNotFound, StorageFailed, Usage, show_name
from mdmem.index.links.dialect import list_tools
from mdmem.vault.config import Config
from mdmem.vault.files import failure, open_regular
from mdmem.vault.store import MOST_ATTACHED_BYTES
from mdmem.vault.walk import tree

if TYPE_CHECKING:
    from mdmem.index.sync import Progress


PASSED_OVER = "passed over: "
HIDDEN = f"{PASSED_OVER}hidden"
_NAMED = 5  # the most files left out that an error names, if nothing else is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Memories and attachments by their paths in the target folder, and paths left out, by the reason.

    `tools`: folders in it, and the tools that they are written for.
    """

    files: Mapping[str, Document | bytes]
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tools: Sequence[tuple[str, str]] = ()


def read(path: str, most: int = sys.maxsize) -> bytes:
    """Read a file of the source; opening it cannot hang, not even on a pipe."""
    try:
        with open(open_regular(os.path.realpath(path)), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > most else file.read()
    except FileNotFoundError:
        raise Usage(problem=f"{path}: there is no such file") from None
    except OSError as error:
        raise failure(error, path, "read it") from None
    if size > most:
        raise StorageFailed(path=path, action="read it", reason=f"it has more than {most:,} bytes")
    return data


def folder(
    root: str, config: Config, convert: Callable[[Document], Document], progress: Progress | None = None
) -> Batch:
    """Return every file below a folder, memories converted; hidden folders and links are not entered.

    A memory is what `config`, that of the vault which it goes to, takes for one by its name.
    """
    if not os.path.isdir(root):
        raise Usage(problem=f"{root}: there is no such folder")
    files: dict[str, Document | bytes] = {}
    left_out: dict[str, list[str]] = defaultdict(list)
    paths = sorted(_list_files(root, left_out))
    for number, path in enumerate(paths, 1):
        try:
            data = files[path] = read(os.path.join(root, path), MOST_ATTACHED_BYTES)
            if path.endswith(config.suffixes):
                document = files[path] = parse_any(path, data, config.limits)
                with suppress(DocumentRefused):  # what passes a limit stays as it is
                    files[path] = convert(document)
        except (StorageFailed, Usage) as error:
            left_out[getattr(error, "reason", "it is gone")].append(show_name(path))
        if progress:
            progress(number, len(paths))
    if not any(isinstance(file, Document) for file in files.values()):
        looked = f"looked for files that end in {' or '.join(config.suffixes)}, in it and below, not hidden"
        raise nothing_found("note", root, looked, left_out)
    return Batch(files=files, left_out=left_out, tools=list_tools(os.path.realpath(root), files))


def nothing_found(what: str, source: str, hint: str, left_out: Mapping[str, Sequence[str]]) -> NamedNotFound:
    """Return the error of a source with nothing to import: what was looked for, and what was left out."""
    lines = sorted(f"  {path}: {why}" for why, paths in left_out.items() for path in paths)
    remedy = first_of([hint, *lines], _NAMED + 1, "\n")
    return NamedNotFound(kind=f"{what} in", name=source, remedy=remedy)


def _list_files(root: str, left_out: dict[str, list[str]]) -> Iterator[str]:
    def name_in(folder: str, name: str = "") -> str:
        return os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")

    def refused(error: OSError) -> None:
        found = failure(error, str(error.filename), "list it")
        if not isinstance(found, StorageFailed):
            raise found
        left_out[f"it cannot be listed: {found.reason}"].append(show_name(name_in(error.filename)))

    for above, folders, names in tree(root, refused):
        for name, end in (*((name, "/") for name in folders), *((name, "") for name in names)):
            path = name_in(above, name) + end
            if name.startswith("."):
                left_out[HIDDEN].append(show_name(path))
            elif os.path.islink(os.path.join(above, name)):
                left_out["it is a link"].append(show_name(path))
            elif not end:
                yield path
        folders[:] = [name for name in folders if not name.startswith(".")]


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
    """Return a new Markdown memory."""
    lines = ["---", *(f"{scalar(name)}: {inline(value)}" for name, value in fields.items()), "---"]
    text = "\n".join([*lines, "", body] if body else lines)
    return parse_text(path, text.removesuffix("\n") + "\n", limits)


def with_field(document: Document, name: str, value: Any) -> Document:
    """Return a memory with a field set; as it is where its frontmatter cannot be edited."""
    try:
        return text_field.with_field(document, name, value)
    except EditRefused:
        return document
