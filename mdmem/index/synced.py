"""What has happened to memories between two looks at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mdmem.vault.paths import Namespace, relative

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

    def under(self, wall: Namespace) -> Synced:
        """What of it is in a namespace, by the paths that it has there.

        A memory that moved over that wall is created or removed.
        """

        def inside(paths: Iterable[str]) -> tuple[str, ...]:
            return tuple(sorted(relative(path, wall.folder) for path in paths if wall.holds(path)))

        moved = [pair for pair in self.moved if all(map(wall.holds, pair))]
        crossed = [pair for pair in self.moved if pair not in moved]
        return Synced(
            created=inside((*self.created, *(new for _, new in crossed))),
            changed=inside(self.changed),
            removed=inside((*self.removed, *(old for old, _ in crossed))),
            moved=tuple((relative(old, wall.folder), relative(new, wall.folder)) for old, new in moved),
        )


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
