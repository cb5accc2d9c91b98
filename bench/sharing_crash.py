"""kill -9 at random instants, while an owner shares and takes back, and a guest writes.

Each step is numbered, and begins with what the one before it left. After the kill every memory must be as a
whole step leaves it: the text whole, the grant of one step, nothing lost that was reported.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import vaults
from table import Row
from workers import kill_after

from mdmem.facade.memory import Memory
from mdmem.memory.sharing import Access
from mdmem.vault.paths import Scope

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from setting import Setting

_KILLS = 200
_LONGEST = 0.4  # seconds until a kill: several steps
_PATH = "notes/shared.md"
_STAGING = ".mdmem/local/staging"
# What step `n % 4` leaves of the grants: one to write, the same when the guest has written, two, none.
_GRANTS: tuple[dict[str, str], ...] = (
    {"bob": "write"},
    {"bob": "write"},
    {"carol": "read", "bob": "write"},
    {},
)


class _Pair:
    """An owner and a guest of a fresh vault."""

    def __init__(self, root: str) -> None:
        self.root = root
        vaults.empty(root, "[sharing]\nenabled = true\n")
        Memory(root, Scope(user="alice")).write(_PATH, "---\ntitle: Shared\n---\nBegun.\n")
        self.done = 0

    def go_on(self, pipe: Connection) -> None:
        """What the process does that is killed."""
        owner, guest = Memory(self.root, Scope(user="alice")), Memory(self.root, Scope(user="bob"))
        shared, step = guest.shared("alice"), self.done
        while True:
            if step % 4 == 0:
                owner.share(_PATH, "bob", "write")
            elif step % 4 == 1:
                shared.append(_PATH, f"Line {step}.")
            elif step % 4 == 2:
                owner.share(_PATH, "carol", "read")
            else:
                owner.unshare(_PATH)
            step += 1
            pipe.send(step)

    def look(self, reported: int) -> Counter[str]:
        """Count what is wrong in what a new process finds after the kill, and note how far it is done."""
        amid = bool(os.listdir(os.path.join(self.root, _STAGING)))
        owner = Memory(self.root, Scope(user="alice"))
        document, access = owner.show(_PATH), owner.access(_PATH)
        lines = [int(line.split()[1].rstrip(".")) for line in document.body.split("\n") if line[:4] == "Line"]
        fitting = [step for step in (reported, reported + 1) if self._is_after(step, access, lines)]
        seen = Counter(
            between=not fitting,
            findings=sum(f.severity == "error" for f in owner.check([_PATH], links=False)),
        )
        seen["amid"] = amid
        seen["left"] = len(os.listdir(os.path.join(self.root, _STAGING)))
        self.done = fitting[-1] if fitting else reported
        return seen

    def _is_after(self, step: int, access: Access, lines: list[int]) -> bool:
        """Return whether the memory is as so many steps leave it."""
        grants = _GRANTS[(step - 1) % 4] if step else {}
        return access == Access(grants) and lines == [n for n in range(step) if n % 4 == 1]


def measure(setting: Setting) -> list[Row]:
    chance, count = setting.chance("sharing-crash"), setting.count(_KILLS)
    pair, seen = _Pair(setting.path("sharing-crash")), Counter[str]()
    for _ in range(count):
        seen += pair.look(kill_after(pair.go_on, chance.uniform(0, _LONGEST), pair.done))
    wrong = [seen[name] for name in ("between", "left", "findings")]
    return [
        Row(
            what=f"kill -9 in share, unshare and a guest's write, {count:,} times",
            ours=f"{wrong[0]} in between, {wrong[1]} files left, {wrong[2]} findings",
            beside=f"{pair.done:,} steps; {seen['amid']} kills came amid one",
            budget="0, 0, 0",
            kept=not any(wrong),
        )
    ]
