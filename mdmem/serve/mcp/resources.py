"""The memories as resources: their URIs, and how they are listed and read.

A URI is `mdmem:///` and the path, percent-encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import mcp_types as types

from mdmem import check_memory
from mdmem.errors import PathRefused
from mdmem.serve.mcp.answer import short_hash

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory


ROOT = "mdmem:///"


def uri_of(path: str) -> str:
    """Return the URI of the memory at `path`."""
    return ROOT + quote(path)


def path_of(uri: str) -> str:
    """Return the path that a URI means.

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


PAGE = 500


def list_resources(memory: Memory, cursor: str = "") -> types.ListResourcesResult:
    """Return a page of the memories in the order of their paths.

    Args:
        cursor: the last path of the page before; it need not be there any more.
    """
    behind = cursor.split("/")
    found = [
        each for each in memory.ls() if not each.problem and (not cursor or each.path.split("/") > behind)
    ]
    resources = [
        types.Resource(
            uri=uri_of(each.path),
            name=each.path,
            mime_type=_mime_type(each.path),
            size=each.size,
            annotations=types.Annotations(last_modified=each.modified),
        )
        for each in found[:PAGE]
    ]
    following = resources[-1].name if len(found) > PAGE else None
    return types.ListResourcesResult(resources=resources, next_cursor=following)


def read_resource(memory: Memory, uri: str) -> types.ReadResourceResult:
    """Return the memory that a URI means, whole, with its hash.

    Raises:
        PathRefused, MemoryNotFound: it means none.
        DocumentRefused, StorageFailed: it cannot be read.
    """
    document = memory.show(path_of(uri))
    content = types.TextResourceContents(
        uri=uri_of(document.path),
        mime_type=_mime_type(document.path),
        text=document.text,
        _meta={"hash": short_hash(document.hash)},
    )
    return types.ReadResourceResult(contents=[content])


def _mime_type(path: str) -> str:
    return "application/json" if path.endswith(".json") else "text/markdown"
