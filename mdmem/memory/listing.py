"""Listings: memories by path, or by what their fields say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import MemoryNotFound
from mdmem.vault.paths import is_under

if TYPE_CHECKING:  # only conditions need the index
    from collections.abc import Sequence

    from mdmem.index.view import View


class Listed(NamedTuple):
    """A memory in a listing: its path, bytes, and time of change in nanoseconds since the epoch.

    `problem` says why a file that looks like a memory cannot be one; it is empty for a memory.
    """

    path: str
    size: int
    mtime_ns: int
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        shape = {"path": self.path, "size": self.size, "mtime_ns": self.mtime_ns}
        return {**shape, "problem": self.problem} if self.problem else shape


def conditional(view: View, within: str, where: Sequence[str], sort: str) -> list[Listed]:
    """The memories below a folder that meet all conditions, in the order of a field; see `Memory.ls`.

    Raises:
        MemoryNotFound: nothing is below `within`.
        PatternInvalid: a condition that is none.
    """
    from mdmem.index import where as conditions  # noqa: PLC0415 - start-up

    wanted = [conditions.parse(text) for text in where]
    key, descending = conditions.sort_order(sort)
    met = [m for m in view.memories({key, *(c.key for c in wanted)}) if is_under(m[0], within)]
    if within and not met:
        raise MemoryNotFound(path=within)
    found = [memory for memory in met if conditions.fits(wanted, memory[3])]
    if sort:
        firsts = {path: next(iter(fields.get(key, ())), None) for path, _, _, fields in found}
        # Sorted twice, so that memories without a value are last in both directions.
        found.sort(key=lambda memory: conditions.sort_key(firsts[memory[0]]), reverse=descending)
        found.sort(key=lambda memory: firsts[memory[0]] is None)
    return [Listed(path, size, mtime_ns) for path, size, mtime_ns, _ in found]
