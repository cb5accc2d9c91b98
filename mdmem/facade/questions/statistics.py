"""Count how much memory there is: memories, bytes and tokens, by folder and by month."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from mdmem.document.moment import stamp_of
from mdmem.document.text.tokens import estimate
from mdmem.errors import CANNOT_READ
from mdmem.index.code.citations import DANGLING, GONE
from mdmem.index.links.references import CODE, LINKS, occurrences
from mdmem.index.view import View
from mdmem.kind import namespace_of
from mdmem.vault.vault import Vault

_MONTH = len("2024-01")


class Amount(NamedTuple):
    """The memories of one folder or one month: how many, their bytes, and about how many tokens they have."""

    name: str
    memories: int = 0
    bytes: int = 0
    tokens: int = 0

    def plus(self, size: int, tokens: int) -> Amount:
        """Return this amount with one more memory."""
        return Amount(self.name, self.memories + 1, self.bytes + size, self.tokens + tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStats:
    """How much memory there is. Tokens are an estimate of how many a model would read: `mdmem.estimate`.

    Attributes:
        left_out: how many files look like memories and cannot be read as one; they are in no other number.
        folders: the amount of the folder of each kind, with the namespace before it, the largest first.
            Subfolders count too; `.` stands for memories in no folder.
        months: the amount of each month, such as `2024-01`, by the day of each memory (see
            `mdmem.index.hit.day_of`), the earliest first.
    """

    memories: int
    bytes: int
    tokens: int
    left_out: int
    folders: tuple[Amount, ...]
    months: tuple[Amount, ...]


def count_memories(view: View, vault: Vault) -> MemoryStats:
    """Return how much there is in the namespace of a view; each memory is read once."""
    folders: dict[str, Amount] = {}
    months: dict[str, Amount] = {}
    left_out = len(view.problems())
    known = list(view.memories(()))
    for path, _, _, fields in vault.report_progress("counting", known):
        try:
            document = vault.read(path, recovered=True)
        except CANNOT_READ:
            left_out += 1
            continue
        size, tokens = len(document.data), estimate(document.text)
        for amounts, name in ((folders, _folder_of(path)), (months, str(fields["date"][0])[:_MONTH])):
            amounts[name] = amounts.get(name, Amount(name)).plus(size, tokens)
    return MemoryStats(
        memories=sum(each.memories for each in months.values()),
        bytes=sum(each.bytes for each in months.values()),
        tokens=sum(each.tokens for each in months.values()),
        left_out=left_out,
        folders=tuple(sorted(folders.values(), key=lambda each: (-each.bytes, each.name))),
        months=tuple(sorted(months.values())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySize:
    """How large one memory is, when its file was changed, and whether a link or citation leads nowhere."""

    path: str
    tokens: int
    changed: str
    dead: bool


def list_sizes(view: View, vault: Vault) -> list[MemorySize]:
    """List the sizes of the memories of a namespace that can be read, the largest first."""
    pointing = occurrences(view, types=(*LINKS, *CODE))
    broken = {
        each.place.path for each in pointing if each.place.state in {DANGLING, GONE} and not each.unwritten
    }
    found = []
    for path, _, mtime, _ in view.memories(()):
        with suppress(*CANNOT_READ):
            tokens = estimate(vault.read(path, recovered=True).text)
            changed = stamp_of(mtime)
            found.append(MemorySize(path=path, tokens=tokens, changed=changed, dead=path in broken))
    return sorted(found, key=lambda each: (-each.tokens, each.path))


def _folder_of(path: str) -> str:
    """Return the folder that a memory is counted in: its path up to the first folder below the namespace."""
    return "/".join(path.split("/")[:-1][: len(namespace_of(path)) + 1]) or "."
