"""The index and ranked search in a vault of 100,000 notes: some minutes, and 3 GB of disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import index
import protocol
import ranked
import serving
import vaults

if TYPE_CHECKING:
    from setting import Setting
    from table import Row

_NOTES = 100_000


def measure(setting: Setting) -> list[Row]:
    notes = setting.count(_NOTES)
    root = setting.path("large")
    vaults.make(root, notes, setting.seed)
    rows = index.rows_of(setting, root, notes)
    rows += ranked.rows_of(setting, root, notes, ranked.MOST_P95[_NOTES])
    rows += protocol.rows_of(setting, root, notes)
    return rows + serving.rows_of(setting, root, notes)
