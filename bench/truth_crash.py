"""kill -9 at random instants, while memories are superseded, swept, revoked, or deleted with descendants.

A vault is made with the memories of many rounds. A process makes four changes in each round, one after the
other, and reports each that is done. After the kill every change must be as before it or as after it, and
those that were reported must be done.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import vaults
from table import Row
from workers import kill_after

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from setting import Setting

_KILLS = 1000
_ROUNDS = 25
_LONGEST = 0.5  # seconds until a kill: the first change needs most of them, and some more follow
_CHANGES = ("supersede", "cascade", "sweep", "revoke")
_STAGING = ".mdmem/local/staging"


class _Vault:
    """A vault with the memories of each round, and how many changes were found done in it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.done = 0
        vaults.empty(root)
        for number in range(_ROUNDS):
            self._write(f"{number}/old", "valid_from: 2020-01-01")
            self._write(f"{number}/top", "")
            for name, parent in (("a", "top"), ("b", "top"), ("c", "a")):
                self._write(f"{number}/{name}", f"derived_from: notes/{number}/{parent}.md")
                self._write(f"{number}/short/{name}", "tier: working\nexpires: 2020-01-01")
                ids = f"[sessions/s{number}#1, other]"
                self._write(f"{number}/said {name}", f"source:\n  type: user\n  ids: {ids}")
            self._write(f"{number}/only", f"source:\n  type: user\n  ids: [sessions/s{number}#2]")
        Memory(root).sync()

    def _write(self, name: str, fields: str) -> None:
        path = os.path.join(self.root, "notes", f"{name}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        vaults.write(path, f"---\n{fields}\n---\nWhat {name} says.\n" if fields else f"What {name} says.\n")

    def go_on(self, pipe: Connection) -> None:
        """Make one change after the other: the work of the process that is killed."""
        memory = Memory(self.root)
        for step in range(self.done, _ROUNDS * len(_CHANGES)):
            number, change = divmod(step, len(_CHANGES))
            folder = f"notes/{number}"
            if _CHANGES[change] == "supersede":
                memory.write(f"{folder}/new.md", "What is new.\n", supersedes=f"{folder}/old.md")
            elif _CHANGES[change] == "cascade":
                memory.rm(f"{folder}/top.md", cascade=True)
            elif _CHANGES[change] == "sweep":
                memory.sweep(f"{folder}/short")
            else:
                memory.revoke(f"sessions/s{number}")
            pipe.send(step + 1)

    def look(self, reported: int) -> Counter[str]:
        """Count what is wrong in what a new process finds after the kill, and note how far it is done."""
        amid = bool(os.listdir(os.path.join(self.root, _STAGING)))
        memory = Memory(self.root)
        memory.sync()
        proposed = {str(proposal.arguments["path"]) for proposal in memory.inbox.list()}
        seen = Counter(amid=amid)
        first, last = max(0, self.done - 1), min(reported + 2, _ROUNDS * len(_CHANGES))
        for step in range(first, last):
            states = self._find_states(memory, step, proposed)
            seen["between"] += len(states) > 1
            seen["lost"] += step < reported and states != {True}
        is_next_done = reported < _ROUNDS * len(_CHANGES) and True in self._find_states(
            memory, reported, proposed
        )
        self.done = reported + is_next_done
        seen["findings"] += sum(each.severity == "error" for each in memory.check())
        return seen

    def _find_states(self, memory: Memory, step: int, proposed: set[str]) -> set[bool]:
        """Return whether each part of a change is done; one value where it is whole."""
        number, change = divmod(step, len(_CHANGES))
        folder = f"notes/{number}"
        if _CHANGES[change] == "supersede":
            old = memory.show(f"{folder}/old.md").fields
            return {memory.exists(f"{folder}/new.md"), "superseded_by" in old, "valid_to" in old}
        if _CHANGES[change] == "cascade":
            return {not memory.exists(f"{folder}/{name}.md") for name in ("top", "a", "b", "c")}
        if _CHANGES[change] == "sweep":
            return {not memory.exists(f"{folder}/short/{name}.md") for name in "abc"}
        texts = [memory.show(f"{folder}/said {name}.md").text for name in "abc"]
        return {*("sessions/" not in text for text in texts), f"{folder}/only.md" in proposed}


def measure(setting: Setting) -> list[Row]:
    chance, count = setting.chance("truth-crash"), setting.count(_KILLS)
    root, seen = setting.path("truth-crash"), Counter[str]()
    vault = _Vault(root)
    changes = 0
    for _ in range(count):
        before = vault.done
        seen += vault.look(kill_after(vault.go_on, chance.uniform(0, _LONGEST), vault.done))
        changes += vault.done - before
        if vault.done == _ROUNDS * len(_CHANGES):
            vault = _Vault(root)
    wrong = [seen[name] for name in ("between", "lost", "findings")]
    return [
        Row(
            what=f"kill -9 in supersede, cascade, sweep and revoke, {count:,} times",
            ours=f"{wrong[0]} changes in between, {wrong[1]} lost, {wrong[2]} findings",
            beside=f"{changes:,} changes; {seen['amid']} kills came amid one",
            budget="0, 0, 0",
            kept=not any(wrong),
        )
    ]
