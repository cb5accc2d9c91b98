"""What a caller saw of a memory, named by its hash, and whether it is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.errors import Conflict, NotEncodable, Usage
from mdmem.vault.paths import check_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.text.document import Document
    from mdmem.vault.vault import Vault

_LEAST_HASH = 8  # hexadecimal digits by which a content can be named


def required(vault: Vault, path: str, base: str | None) -> Document:
    """The memory at `path`, which must be what `base` says, where one is given.

    Raises:
        MemoryNotFound: there is none.
        Conflict: it has moved on; with the difference, where what the caller saw is still kept.
    """
    document = vault.read(check_memory(path))
    compare(vault, document, base)
    return document


def found(vault: Vault, path: str, base: str | None) -> Document | None:
    """As `required`, with None where there is no memory and no `base` says that there should be."""
    if base is not None:
        return required(vault, path, base)
    return vault.find(check_memory(path))


def compare(vault: Vault, document: Document, base: str | None) -> None:
    """Refuse to go on where a document is not what `base` says.

    Raises:
        Conflict: as `required`.
        Usage: `base` has fewer than eight digits.
    """
    if base is None or document.hash.startswith(digits(base)):
        return
    full = next((h for h in _hashes(vault, document.path) if h.startswith(digits(base))), None)
    content = vault.content(full) if full else None
    text = content.decode("utf-8", "replace") if content is not None else None
    from mdmem.text.diff import unified  # noqa: PLC0415 - start-up

    diff = unified(text, document.text, document.path) if text is not None else ""
    raise Conflict(path=document.path, base=base, actual=document.hash, diff=diff)


def digits(hash: str) -> str:  # noqa: A002 - its name everywhere else
    """The beginning of a hash, long enough to name one content, as hashes are written.

    Raises:
        Usage: fewer than eight digits.
    """
    if len(hash) < _LEAST_HASH:
        raise Usage(problem=f"a hash is named by {_LEAST_HASH} digits or more, not {hash!r}")
    return hash.lower()


def encoded(path: str, text: str) -> bytes:
    """The UTF-8 of a text that is to become the memory at `path`.

    Raises:
        NotEncodable: it has a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotEncodable(path=path, offset=error.start) from None


def _hashes(vault: Vault, path: str) -> Iterator[str]:
    for entry in vault.history():
        for file in entry.files:
            if file.path == path:
                yield from filter(None, (file.after, file.before))
