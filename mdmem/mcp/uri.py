"""URIs of memories as resources: `mdmem:///` and the path, percent-encoded."""

from __future__ import annotations

from urllib.parse import quote, unquote

from mdmem.errors import PathRefused
from mdmem.vault.paths import check_memory

ROOT = "mdmem:///"


def uri_of(path: str) -> str:
    """The URI of the memory at `path`."""
    return ROOT + quote(path)


def path_of(uri: str) -> str:
    """The path that a URI means.

    Raises:
        PathRefused: it is no URI of ours, or means no memory of the namespace.
    """
    remedy = f"a memory is named as in {ROOT}notes/db.md"
    if not uri.startswith(ROOT):
        raise PathRefused(path=uri, reason="this names no memory", remedy=remedy)
    try:
        return check_memory(unquote(uri.removeprefix(ROOT), errors="strict"))
    except UnicodeDecodeError:
        raise PathRefused(path=uri, reason="its escapes are no UTF-8", remedy=remedy) from None
