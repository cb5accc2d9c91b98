"""What has happened to memories between two looks at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mdmem.vault.paths import is_under

Progress = Callable[[int, int], None]
"""Is told how many of how many files are done."""


class Synced(NamedTuple):
    """What a sync found: paths of memories, in order.

    `moved` are pairs of old and new path, told by a unique id or by equal content; those paths are in neither
    `created` nor `removed`.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def under(self, base: str) -> Synced:
        """What of it is under the namespace `base`, by the paths that it has there.

        A memory that moved over that wall is created or removed.
        """
        skip = len(base) + 1 if base else 0
        moved = [pair for pair in self.moved if all(is_under(path, base) for path in pair)]
        came = [new for old, new in self.moved if is_under(new, base) and not is_under(old, base)]
        left = [old for old, new in self.moved if is_under(old, base) and not is_under(new, base)]
        created, changed, removed = (
            tuple(sorted(path[skip:] for path in paths if is_under(path, base)))
            for paths in ((*self.created, *came), self.changed, (*self.removed, *left))
        )
        return Synced(created, changed, removed, tuple((old[skip:], new[skip:]) for old, new in moved))


def moves(gone: Mapping[str, tuple[str, str]], created: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Which memories that are gone have become which new ones: old path to new path.

    Args:
        gone, created: id (may be empty) and hash of each, by path. A pair is told by its id, else by its
            content, and only where no other memory has the same.
    """
    found: dict[str, str] = {}
    for part in (0, 1):
        old = _unique({path: told[part] for path, told in gone.items() if path not in found})
        new = _unique({path: told[part] for path, told in created.items() if path not in found.values()})
        found |= {old[mark]: new[mark] for mark in old.keys() & new.keys()}
    return found


def _unique(marks: Mapping[str, str]) -> dict[str, str]:
    """The paths by their marks, without empty marks and those that two paths have."""
    count = Counter(marks.values())
    return {mark: path for path, mark in marks.items() if mark and count[mark] == 1}
