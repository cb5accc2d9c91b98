"""Eight processes that change one file at once; beside eight that know no lock; and with one such in between.

Every change leaves a mark `[writer:number]`: an append adds it on a line of its own, a find-and-replace
turns `<writer:number>` into it.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Literal, NamedTuple

import vaults
from table import Row, seconds
from timing import spread
from workers import Worker

from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from random import Random

    from setting import Setting

_WRITERS = tuple(map(str, range(8)))
_EACH = 50
_ROUNDS = 5
_NOTE = "notes/shared.md"
_MARK = re.compile(r"\[[a-z0-9]+:[0-9]+\]")
_PLAIN = "plain"
_LONGEST_PAUSE = 0.04  # seconds; spreads the plain writer's changes over the time that the others take

How = Literal["append", "replace"]
_HOWS: tuple[How, ...] = ("append", "replace")
_NAMES = {"append": "appends", "replace": "find-and-replaces"}
# What a writer does: given the vault, how often, and where to report the code of a change that was refused.
Work = Callable[[str, int, Connection], None]


class _Round(NamedTuple):
    """How many seconds a round took, with which codes changes were refused, and which marks are where."""

    seconds: float
    refused: tuple[str, ...]
    in_file: frozenset[str]
    in_trash: frozenset[str]

    def kept(self, writers: Sequence[str], each: int) -> int:
        """How many of the marks of these writers are in the file."""
        return len(self.in_file & _marks(writers, each))

    def found(self, writers: Sequence[str], each: int) -> int:
        """How many of them are in the file or in the trash."""
        return len((self.in_file | self.in_trash) & _marks(writers, each))


def measure(setting: Setting) -> list[Row]:
    return [row(setting, how) for how in _HOWS for row in (_beside_unlocked, _with_plain)]


def _beside_unlocked(setting: Setting, how: How) -> Row:
    """Our writers, and writers without a lock, in turn."""
    each, wanted = setting.count(_EACH), len(_WRITERS) * setting.count(_EACH)
    ours, others = [], []
    for number in range(setting.count(_ROUNDS)):
        root = setting.path(f"writers {how} {number}")
        ours.append(_round(f"{root} ours", each, [partial(_locked, how, name) for name in _WRITERS]))
        others.append(_round(f"{root} others", each, [partial(_unlocked, how, name) for name in _WRITERS]))
    kept = min(found.kept(_WRITERS, each) for found in ours)
    lost = spread(found.kept(_WRITERS, each) for found in others)
    return Row(
        what=f"{len(_WRITERS)} processes, {each} {_NAMES[how]} each, of one file",
        ours=f"{kept} of {wanted} kept, {_duration(ours)}",
        beside=f"the same without a lock: {lost.text(str)} of {wanted} kept, {_duration(others)}",
        budget=f"{wanted} of {wanted}",
        kept=kept == wanted,
    )


def _with_plain(setting: Setting, how: How) -> Row:
    """Our writers, with one in between that knows no lock."""
    each, wanted = setting.count(_EACH), len(_WRITERS) * setting.count(_EACH)
    chance = setting.chance(f"plain {how}")
    ours = [partial(_locked, how, name) for name in _WRITERS]
    rounds = [
        _round(setting.path(f"mixed {how} {number}"), each, [*ours, partial(_plain, chance)])
        for number in range(setting.count(_ROUNDS))
    ]
    found, kept = (min(getattr(r, what)((_PLAIN,), each) for r in rounds) for what in ("found", "kept"))
    mine = spread(r.kept(_WRITERS, each) for r in rounds)
    return Row(
        what=f"the same {_NAMES[how]}, and {each} saves by a program that knows no lock",
        ours=f"of its saves {found} in the file or in the trash, {kept} in the file; {_duration(rounds)}",
        beside=f"ours that it left in the file: {mine.text(str)} of {wanted}; "
        f"refused: {_counted([code for r in rounds for code in r.refused])}",
        budget=f"{each} of {each}",
        kept=found == each,
    )


def _counted(codes: Sequence[str]) -> str:
    return ", ".join(f"{count} {code}" for code, count in Counter(codes).items()) or "none"


def _duration(rounds: Sequence[_Round]) -> str:
    return spread(found.seconds for found in rounds).text(seconds)


def _marks(writers: Sequence[str], each: int) -> set[str]:
    return {_mark(name, number) for name in writers for number in range(each)}


def _mark(writer: str, number: int) -> str:
    return f"[{writer}:{number}]"


def _open_mark(writer: str, number: int) -> str:
    return f"<{writer}:{number}>"


def _round(root: str, each: int, works: Sequence[Work]) -> _Round:
    """Let writers loose on the note of a fresh vault, all at one moment."""
    os.makedirs(os.path.join(vaults.empty(root), "notes"))
    with open(os.path.join(root, _NOTE), "w", encoding="utf-8") as file:
        file.writelines(f"{_open_mark(name, number)}\n" for name in _WRITERS for number in range(each))
    workers = [Worker(partial(work, root, each)) for work in works]
    start = time.perf_counter()
    for worker in workers:
        worker.go()
    refused = tuple(str(code) for worker in workers for code in worker.wait())
    duration = time.perf_counter() - start
    trash = os.path.join(root, ".mdmem/local/trash")
    kept = [os.path.join(trash, name) for name in os.listdir(trash)] if os.path.isdir(trash) else []
    return _Round(duration, refused, _marks_in([os.path.join(root, _NOTE)]), _marks_in(kept))


def _marks_in(paths: Sequence[str]) -> frozenset[str]:
    found: set[str] = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found.update(_MARK.findall(file.read()))
    return frozenset(found)


def _locked(how: How, writer: str, root: str, each: int, pipe: Connection) -> None:
    """Change the note through mdmem."""
    memory = Memory(root)
    for number in range(each):
        mark = _mark(writer, number)
        try:
            if how == "append":
                memory.append(_NOTE, mark)
            else:
                memory.replace(_NOTE, _open_mark(writer, number), mark)
        except MdmemError as error:
            pipe.send(error.code)


def _unlocked(how: How, writer: str, root: str, each: int, _: Connection) -> None:
    """Change the note as a careful program without a lock does: it writes aside, and renames."""
    path = os.path.join(root, _NOTE)
    for number in range(each):
        mark = _mark(writer, number)
        text = _read(path)
        text = f"{text}{mark}\n" if how == "append" else text.replace(_open_mark(writer, number), mark)
        _write_aside(path, text, writer)


def _plain(chance: Random, root: str, each: int, _: Connection) -> None:
    """Add lines to the note as editors save: in place, or written aside and renamed."""
    path = os.path.join(root, _NOTE)
    for number in range(each):
        time.sleep(chance.uniform(0, _LONGEST_PAUSE))
        text = f"{_read(path)}{_mark(_PLAIN, number)}\n"
        if number % 2:
            _write_aside(path, text, _PLAIN)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write_aside(path: str, text: str, writer: str) -> None:
    with open(f"{path}.{writer}", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.{writer}", path)
