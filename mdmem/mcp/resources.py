"""The memories as resources; their URIs are `mdmem:///` and the path, percent-encoded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from mdmem import check_memory
from mdmem.errors import PathRefused
from mdmem.mcp.answer import short

if TYPE_CHECKING:
    from mdmem.memory.memory import Memory


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


PAGE = 500
_NANOSECONDS = 1_000_000_000


class Resource(NamedTuple):
    """A memory in the list of resources: its URI, path, MIME type, bytes, and time of change (ISO 8601)."""

    uri: str
    path: str
    mime_type: str
    size: int
    modified: str


class ResourceContent(NamedTuple):
    """The content of a memory: its URI, MIME type, text and hash."""

    uri: str
    mime_type: str
    text: str
    hash: str


def listed(memory: Memory, cursor: str = "") -> tuple[list[Resource], str]:
    """A page of the memories, in the order of their paths, and the cursor of the next one.

    Args:
        memory: the memories.
        cursor: the last path of the page before; it need not be there any more.
    """
    behind = cursor.split("/")
    found = [
        each for each in memory.ls() if not each.problem and (not cursor or each.path.split("/") > behind)
    ]
    resources = [
        Resource(
            uri_of(each.path),
            each.path,
            _mime_type(each.path),
            each.size,
            datetime.fromtimestamp(each.mtime_ns // _NANOSECONDS, UTC).isoformat(),
        )
        for each in found[:PAGE]
    ]
    return resources, resources[-1].path if len(found) > PAGE else ""


def read(memory: Memory, uri: str) -> ResourceContent:
    """The memory that a URI means, whole.

    Raises:
        PathRefused, MemoryNotFound: it means none.
        DocumentRefused, StorageFailed: it cannot be read.
    """
    document = memory.show(path_of(uri))
    return ResourceContent(
        uri_of(document.path), _mime_type(document.path), document.text, short(document.hash)
    )


def _mime_type(path: str) -> str:
    return "application/json" if path.endswith(".json") else "text/markdown"
