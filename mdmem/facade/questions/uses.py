"""Uses: how often memories were used, and when last, by the namespace that asked.

They stand in a table of the store: no memory changes by being read, and a clone begins without any. Nothing
but what tells of use depends on them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document.moment import stamp_of
from mdmem.vault.paths import relative

if TYPE_CHECKING:
    from mdmem.vault.uses import UseTable
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
            namespace: that asked, else the scope's own.
            at: in milliseconds since the epoch, else now.

        Raises:
            StorageFailed, DatabaseFailed: it cannot be written down.
        """
        asking = self._vault.namespace if namespace is None else namespace
        moment = time.time_ns() // 1_000_000 if at is None else at
        self._table.add(asking, dict.fromkeys(map(self._name_path, paths)), moment)

    def of(self, path: str, namespace: str | None = None) -> Use:
        """Return the uses of a memory by a namespace, or by all; raises as `add`."""
        return Use(*self._table.total(self._name_path(path), namespace))

    def count_all(self) -> dict[str, int]:
        """Count the uses of each memory of the scope that was ever used; raises as `add`."""
        wall = self._vault.wall
        counts = self._table.totals().items()
        return {relative(path, wall.folder): count for path, count in counts if wall.holds(path)}

    def forget(self, path: str) -> None:
        """Forget the uses of a memory that is gone; raises as `add`."""
        self._table.forget(self._name_path(path))

    @property
    def _table(self) -> UseTable:
        return self._vault.disk.uses

    def _name_path(self, path: str) -> str:
        vault, name = self._vault.locate_layer(path)
        return vault.folder(name)
