"""The memories as resources: their URIs, how they are listed and read, and who is told that one has changed.

A URI is `mdmem:///` and the path, percent-encoded.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from anyio import from_thread, to_thread
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)

from mdmem import check_memory
from mdmem.errors import PathRefused
from mdmem.mcp.answer import short_hash

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.abc import TaskGroup
    from mcp.server.context import ServerRequestContext

    from mdmem import Event, Watch
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
_AGAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


def list_resources(memory: Memory, cursor: str = "") -> types.ListResourcesResult:
    """Return a page of the memories in the order of their paths.

    Args:
        memory: the memories.
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


class Feed:
    """The streams of all clients that listen, as a context; the watcher begins with the first one."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._ready = anyio.Event()
        self._watch: Watch | None = None
        self._tasks: TaskGroup | None = None
        self._is_begun = self._is_closed = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self._is_closed = True
        if self._watch:
            self._watch.close()
        if self._tasks:
            await self._tasks.__aexit__(kind, error, trace)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of what happens from now on, as soon as nothing is missed any more."""
        if self._tasks and not self._is_begun:
            self._is_begun = True
            self._tasks.start_soon(to_thread.run_sync, self._follow_events)
        await self._ready.wait()
        return await self._listening(ctx, params)

    def _follow_events(self) -> None:
        """Publish what the watcher sees until it is closed, in a thread."""
        while not self._has_ended():
            try:
                with self._memory.watch() as self._watch:
                    if self._has_ended():
                        return
                    for event in self._watch:
                        from_thread.run(self._publish_event, event)
            except Exception as error:  # noqa: BLE001 - what watching meets ends no server
                _log.warning("watching starts again: %s", error)
                from_thread.run(anyio.sleep, _AGAIN_SECONDS)

    def _has_ended(self) -> bool:
        """Return whether the server has ended, which may have been while the watcher began."""
        return self._is_closed

    async def _publish_event(self, event: Event) -> None:
        if event.kind == "ready":
            if self._ready.is_set():
                # Something may have been missed: who listens is sent away to look and listen again.
                self._listening.close()
            self._ready.set()
        if event.kind in {"changed", "created", "deleted", "moved"}:
            for path in filter(None, (event.old, event.path)):
                await self._bus.publish(ResourceUpdated(uri=uri_of(path)))
        if event.kind in {"created", "deleted", "moved"}:
            await self._bus.publish(ResourcesListChanged())
