"""Writes by others: how long until a search finds them, through the watcher, for every way of saving."""

from __future__ import annotations

import os
import subprocess
import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import floors
import vaults
from machine import environment
from percentiles import clock, percentiles
from saving import WAYS, Save, Saved, Way, folder_moved
from table import Row, milliseconds
from watcher import Watching

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from setting import Setting

_MOST = 0.150
_FEW = 100
_MOST_COLD = 0.5  # beyond a few: of what the index from nothing takes for a note
_LONGEST = 10.0  # seconds after which a write counts as never seen
_NOTES = 10_000
_ROUNDS = 40
_FOLDERS = 10
_CHECKOUTS = 10
_CHECKED_OUT = 2_000
_STASHED = 50
_AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0")


def measure(setting: Setting) -> list[Row]:
    root, notes = os.path.join(setting.path("watching"), "vault"), setting.count(_NOTES)
    vaults.make(root, notes, setting.seed)
    memory = Memory(root)
    cold = clock(memory.sync) / notes
    with Watching(memory) as watching:
        watched = _Watched(memory, watching)
        rows = []
        for block, (what, way) in enumerate(WAYS.items()):
            rounds = setting.count(_ROUNDS)
            numbers = range(block * rounds, (block + 1) * rounds)
            rows.append(_row(what, [_saved(setting, watched, way, number, notes) for number in numbers]))
        last = range(notes - 1, 0, -vaults.PER_FOLDER)[: setting.count(_FOLDERS)]
        moves = [_saved(setting, watched, folder_moved, number, notes) for number in last]
        rows.append(_row(f"folder of {vaults.PER_FOLDER} notes moved", moves))
        return [*rows, *_gits(setting, watched, cold)]


class _Watched(NamedTuple):
    """A vault that is watched."""

    memory: Memory
    watching: Watching

    def seconds(self, saved: Saved) -> float | None:
        """How long, after a save, until what it left is found, and what it took is not; None: not in time."""
        start = time.perf_counter()
        left = _LONGEST
        while left > 0:
            if self.watching.wait((saved.there or saved.gone).keys(), left) and self._is_known(saved):
                return time.perf_counter() - start
            left = start + _LONGEST - time.perf_counter()
        return None

    def _is_known(self, saved: Saved) -> bool:
        """Asked of two of each: when 2,000 were saved, 2,000 searches would be measured instead."""
        there = islice(((path, word) for path, word in saved.there.items() if word), 2)
        gone = islice(saved.gone.items(), 2)
        return all(path in self._found(word) for path, word in there) and not any(
            path in self._found(word) for path, word in gone
        )

    def _found(self, word: str) -> list[str]:
        return [hit.path for hit in self.memory.search(word, limit=floors.LIMIT).hits]


def _saved(setting: Setting, watched: _Watched, way: Way, number: int, notes: int) -> float | None:
    """Save one note in a way, once the watcher has seen it with a word of its own."""
    root, path = watched.memory.vault.root, vaults.path(number)
    before, after = _word("before", number), _word("after", number)
    watched.watching.forget()
    vaults.write(os.path.join(root, path), vaults.note(setting.seed, number, notes, [before]))
    if watched.seconds(Saved({path: before}, {})) is None:
        return None
    text = vaults.note(setting.seed, number, notes, [after])
    watched.watching.forget()
    return watched.seconds(way(Save(root, path, text, before, after)))


def _word(kind: str, number: int) -> str:
    """A word that no other note holds, as long as every other one."""
    letters = "".join("qwxvjyzkfh"[int(digit)] for digit in f"{number:06}")
    return f"{'zq' if kind == 'before' else 'zx'}{letters}"


def _row(what: str, found: Sequence[float | None], most: float = _MOST) -> Row:
    durations = [duration for duration in found if duration is not None]
    never = len(found) - len(durations)
    quoted = percentiles(durations) if durations else None
    seen = f"{len(durations)} of {len(found)} seen"
    return Row(
        what=f"{what} → known to a search",
        ours=f"{quoted.text()}; {seen}" if quoted else seen,
        budget=f"p95 ≤ {milliseconds(most)}, all seen",
        kept=quoted is not None and not never and quoted.p95 <= most,
    )


# -- git --------------------------------------------------------------------------------------------------


class _Git(NamedTuple):
    folder: str

    def __call__(self, *arguments: str) -> None:
        command = ["git", *_AUTHOR, *arguments]
        subprocess.run(command, cwd=self.folder, env=environment(), check=True, capture_output=True)

    def commit(self, message: str) -> None:
        self("add", "--all")
        self("commit", "--quiet", "--message", message)


def _gits(setting: Setting, watched: _Watched, cold: float) -> Iterator[Row]:
    """A checkout that changes 2,000 notes, there and back again, and a stash of 50, and its return.

    `cold` is how many seconds a note takes in the index from nothing.
    """
    root, rounds = watched.memory.vault.root, setting.count(_CHECKOUTS)
    git = _Git(root)
    git("init", "--quiet", "--initial-branch", "main")
    vaults.write(os.path.join(root, ".gitignore"), ".mdmem/local/\n*~\n")
    git.commit("All notes")
    paths = sorted(os.path.relpath(path, root) for path, _ in floors.files(root))
    many = _words(paths[: setting.count(_CHECKED_OUT)], "before")
    git("checkout", "--quiet", "-b", "other")
    _append(root, many)
    git.commit("Many notes")
    watched.watching.wait(many.keys(), _LONGEST)

    checkouts = []
    for _ in range(rounds):
        checkouts.append(_told(watched, git, ["checkout", "--quiet", "main"], Saved({}, many)))
        checkouts.append(_told(watched, git, ["checkout", "--quiet", "other"], Saved(many, {})))
    most = _MOST if len(many) <= _FEW else _MOST_COLD * cold * len(many)
    yield _row(f"`git checkout` that changes {len(many):,} notes", checkouts, most)

    few, stashes = _words(paths[-setting.count(_STASHED) :], "after"), []
    for _ in range(rounds):
        watched.watching.forget()
        _append(root, few)
        watched.watching.wait(few.keys(), _LONGEST)
        stashes.append(_told(watched, git, ["stash", "--quiet"], Saved({}, few)))
        stashes.append(_told(watched, git, ["stash", "pop", "--quiet"], Saved(few, {})))
        _told(watched, git, ["checkout", "--quiet", "--", "."], Saved({}, few))
    yield _row(f"`git stash` of {len(few)} notes, and its return", stashes)


def _told(watched: _Watched, git: _Git, arguments: Sequence[str], saved: Saved) -> float | None:
    watched.watching.forget()
    git(*arguments)
    return watched.seconds(saved)


def _words(paths: Sequence[str], kind: str) -> dict[str, str]:
    return {path: _word(kind, number) for number, path in enumerate(paths, start=_NOTES)}


def _append(root: str, words: dict[str, str]) -> None:
    for path, word in words.items():
        with open(os.path.join(root, path), "a", encoding="utf-8") as file:
            file.write(f"\nAnd {word}.\n")
