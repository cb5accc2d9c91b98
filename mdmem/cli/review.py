"""`mdmem git review`: one row after the other is shown, and one key decides it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import termios
import tty
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from mdmem.cli import options, render
from mdmem.cli.git import git_command, print_committed, print_reviewed, print_row
from mdmem.cli.main import Target
from mdmem.errors import MdmemError, MemoryNotFound
from mdmem.facade.paths import PAST_ANY

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.review.decisions import Reviewed, ReviewedRow

_KEYS = """\
a, x  accept or reject the row
A, X  accept or reject the remaining rows of the memory
p     ask about each fact and field of a new memory
e     open the memory in your editor
s, u  skip the row; undo the last decision
c     commit the memories whose rows are all accepted
q, ?  end; print this list"""
_SEQUENCE = re.compile(r"\x1b(?:[\[O][0-9;]*.?|.?)")  # what a key sends that is no letter


@git_command.command("review", epilog="Example: mdmem git review notes")
@options.path_argument("paths", role=PAST_ANY, nargs=-1, metavar="[PATH]…")
@options.json_option
@click.pass_obj
def git_review(target: Target, /, paths: tuple[str, ...]) -> None:
    """Decide row by row, with one key for each, what differs from the last commit.

    PATHs are memories and folders. The keys: a accepts the row, x takes it back, A and X do so with the rest
    of the memory, p asks about each fact and field of a new memory, e opens the memory in your editor, u
    undoes, s skips the row, c commits the memories in which every row is accepted, q ends. What was accepted
    and not committed is asked again. Without a terminal the rows are only printed.
    """
    asked = _Asked(memory := target.open(), options.resolve_paths(memory, {"paths": paths})["paths"])
    render.print_remarks([f"note: {asked.memories.settings}"] if asked.memories.settings else [])
    is_watched = sys.stdin.isatty() and sys.stdout.isatty() and not render.is_set("as_json")
    if is_watched and asked.memories:
        asked.decide_all()
    else:
        render.print_found(asked.memories, print_reviewed, "changes since the last commit")


class _Asked:
    """The rows that are asked about, and what takes back each decision."""

    def __init__(self, memory: Memory, paths: Sequence[str]) -> None:
        self._memory, self._paths, self._done = memory, paths, list["Callable[[], object]"]()
        self._accepted, self._skipped, self._split = set[str](), set[str](), list[str]()
        self.memories = memory.git.review(paths)

    def decide_all(self) -> None:
        with contextlib.closing(_read_keys(self._show_next)) as keys:
            for key in keys:
                try:
                    self._obey(key, *self._find_open())
                except MdmemError as error:
                    render.print_error(error, as_json=False)

    def _find_open(self) -> tuple[Reviewed | None, list[ReviewedRow]]:
        decided = self._accepted | self._skipped
        rows = ((each, [row for row in each.rows if row.row not in decided]) for each in self.memories)
        return next((found for found in rows if found[1]), (None, []))

    def _show_next(self) -> bool:
        memory, rows = self._find_open()
        count = sum(row.row in self._accepted for each in self.memories for row in each.rows)
        if memory:
            print_row(memory, rows[0])
            keys = "a,x,A,X,p,e,u,s,c,q,?" if _is_whole(memory) else "a,x,A,X,e,u,s,c,q,?"
            print(f"{len(rows)} left here, {count} accepted [{keys}] ", end="", flush=True)
        elif count or self._done:
            print(f"that was all, {count} accepted [c,u,q,?] ", end="", flush=True)
        return bool(memory or count or self._done)

    def _obey(self, key: str, memory: Reviewed | None, rows: list[ReviewedRow]) -> None:
        names, applied = {row.row for row in (rows if key in "AX" else rows[:1])}, None
        if key in "aAs" and memory:
            decided = self._skipped if key == "s" else self._accepted
            decided |= names
            self._done.append(lambda: decided.difference_update(names))
        elif key in "xX" and memory:
            applied = self._memory.git.reject(memory.path, [*names])
        elif key == "e" and memory:
            from mdmem.cli.editor import edit_memory

            applied = edit_memory(self._memory, memory.path, rows[0].line or 1)
        elif key == "p" and memory and _is_whole(memory):
            self._split.append(memory.path)
            self._look_again([memory.path])
        elif key == "u" and self._done:
            self._done.pop()()
        elif key == "c":
            some = {m.path: [r.row for r in m.rows if r.row in self._accepted] for m in self.memories}
            print_committed(
                self._memory.git.commit(accepted={m: given for m, given in some.items() if given})
            )
            self.memories, self._done = self._memory.git.review(self._paths, split=self._split), []
            self._accepted &= {row.row for each in self.memories for row in each.rows}
        else:
            print(_KEYS)
        if applied:
            self._done.append(lambda: self._look_again(self._memory.undo(applied.id).plan.paths))
            self._look_again(applied.plan.paths)

    def _look_again(self, touched: Iterable[str]) -> None:
        for path in touched:
            self.memories[:] = [m for m in self.memories if path not in {m.path, m.old_path}]
            with contextlib.suppress(MemoryNotFound):
                self.memories.extend(self._memory.git.review([path], split=self._split))
        self.memories.sort(key=lambda each: each.path.split("/"))


def _is_whole(memory: Reviewed) -> bool:
    """Tell whether a new memory is one row, which can be split."""
    return memory.kind == "new" and len(memory.rows) == 1 and memory.rows[0].change == "memory-added"


def _read_keys(ask: Callable[[], bool]) -> Generator[str]:
    """Yield the keys that are typed, until one ends it, or `ask` has no question any more."""
    before, typed = termios.tcgetattr(sys.stdin), ""
    try:
        while ask():
            while not typed:
                tty.setcbreak(sys.stdin, termios.TCSADRAIN)  # an editor may have changed it
                typed = _SEQUENCE.sub("", os.read(sys.stdin.fileno(), 1024).decode("utf-8", "replace") or "q")
            key, typed = typed[0], typed[1:]
            print(key if key.isprintable() else "")
            if key in "q\x04\0":  # an end that was typed ahead is read as a zero
                return
            yield key
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
