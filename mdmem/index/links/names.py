"""Names: what links may call the memories and files of a namespace, now or after a change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Protocol

from mdmem.index.database import Name
from mdmem.vault.paths import MemoryLayout

_BY_PATH = frozenset(("stem", "file"))


class Names(Protocol):
    """What there is to link to in the base namespace; all paths are relative to that."""

    @property
    def layout(self) -> MemoryLayout:
        """Where the memories stand on disk."""
        ...

    def named(self, kind: str, key: str) -> Sequence[str]:
        """Return the memories that a link can call `key`, or the attachments.

        `kind` is "stem" (`key` as `stem_keys`), "id" (exactly), "address" (`key` as `address_key`), "alias",
        or what some tools know, "page", "post", "numbered", "dashed" and "block" (`key` as `alias_key`); and
        of attachments "file" (`key` as `key_of`).
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or folder stands at `path`, be it a memory or not."""
        ...


class ChangedNames:
    """Names as they are after a change; without one, as they are. Each is looked up once.

    Args:
        gone: paths that lose every name.
        moved: old path to new; names that are not made of the path follow.
        lost, added: the paths that lose a name, or get one.
        places: further paths where something stands then.
    """

    def __init__(
        self,
        names: Names,
        *,
        gone: Collection[str] = (),
        moved: Mapping[str, str] = MappingProxyType({}),
        lost: Mapping[Name, Collection[str]] = MappingProxyType({}),
        added: Mapping[Name, Sequence[str]] = MappingProxyType({}),
        places: Collection[str] = (),
    ) -> None:
        self.layout = names.layout
        self.named = cache(self._find_named)
        self.exists = cache(self._is_there)
        self._names = names
        self._gone = gone
        self._moved = moved
        self._lost = lost
        self._added = added
        self._places = places

    def _find_named(self, kind: str, key: str) -> Sequence[str]:
        lost = self._lost.get((kind, key), ())
        stay = [path for path in self._names.named(kind, key) if path not in self._gone and path not in lost]
        if kind in _BY_PATH:
            stay = [path for path in stay if path not in self._moved]
        return [*(self._moved.get(path, path) for path in stay), *self._added.get((kind, key), ())]

    def _is_there(self, path: str) -> bool:
        if path in self._places:
            return True
        return path not in self._gone and path not in self._moved and self._names.exists(path)
