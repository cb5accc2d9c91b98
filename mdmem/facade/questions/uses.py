"""Uses: how often memories were used, and when last, by the namespace that asked.

They stand in a table of the store: no memory changes by being read, and a clone begins without any. Nothing
but what tells of use depends on them. A scope sees the uses by namespaces inside of its own: what others read
of what it shares is behind their wall.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document.moment import stamp_of
from mdmem.vault.paths import relative

if TYPE_CHECKING:
    from mdmem.vault.uses import UseCount, UseTable
    from mdmem.vault.vault import Vault


class Use(NamedTuple):
    """How often a memory was used, and when last, in milliseconds since the epoch; 0 for never."""

    times: int = 0
    last: int = 0

    @property
    def time(self) -> str:
        """When it was last, as files have times; empty for never."""
        return stamp_of(self.last * 1_000_000) if self.last else ""


class Uses:
    """The counts of the memories of a scope, which is that of the `vault`."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def add(self, paths: Iterable[str], *, namespace: str | None = None, at: int | None = None) -> None:
        """Count that memories were used.

        Args:
            namespace: the folder of the scope that asked, else the scope as a whole.
            at: in milliseconds since the epoch, else now.

        Raises:
            PathRefused: the scope does not hold the namespace, or cannot see a memory.
            StorageFailed, DatabaseFailed: it cannot be written down.
        """
        asking = self._vault.folder(namespace or "")
        moment = time.time_ns() // 1_000_000 if at is None else at
        self._table.add(asking, dict.fromkeys(map(self._name_path, paths)), moment)

    def of(self, path: str, namespace: str | None = None) -> Use:
        """Return the uses of a memory by a folder of the scope, or by the whole scope; raises as `add`."""
        asking = None if namespace is None else self._vault.folder(namespace)
        found = [each for each in self._list_seen(self._name_path(path)) if asking in {None, each.namespace}]
        return Use(sum(each.times for each in found), max((each.last for each in found), default=0))

    def count_all(self) -> dict[str, int]:
        """Count the uses of each memory of the scope that was ever used; raises as `add`."""
        wall, counts = self._vault.wall, Counter[str]()
        for each in self._list_seen():
            if wall.holds(each.path):
                counts[relative(each.path, wall.folder)] += each.times
        return dict(counts)

    def forget(self, path: str) -> None:
        """Forget the uses of a memory that is gone; raises as `add`."""
        self._table.forget(self._name_path(path))

    def _list_seen(self, path: str | None = None) -> list[UseCount]:
        return [each for each in self._table.list_counts(path) if self._vault.wall.holds(each.namespace)]

    @property
    def _table(self) -> UseTable:
        return self._vault.disk.uses

    def _name_path(self, path: str) -> str:
        vault, name = self._vault.locate_layer(path)
        return vault.folder(name)
