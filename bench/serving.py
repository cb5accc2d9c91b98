"""The memory of a process that serves a vault: it opens it, syncs, watches, and searches a hundred times.

`python bench/serving.py ROOT SEED` is that process: it prints its peak and its last memory, in bytes.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import vaults
from machine import environment
from table import Row
from timing import program
from watcher import Watching

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setting import Setting

_MOST = 150e6
_NOTES = 10_000
_SEARCHES = 100
_NOTHING = ("-c", "print(open('/proc/self/status').read())")


def measure(setting: Setting) -> list[Row]:
    notes = setting.count(_NOTES)
    root = setting.path("serving")
    vaults.make(root, notes, setting.seed)
    return rows_of(setting, root, notes)


def rows_of(setting: Setting, root: str, notes: int) -> list[Row]:
    """Twice: the first process makes the index, the second one finds it current."""
    return [_served(setting, root, notes, "no index yet"), _served(setting, root, notes, "index current")]


def _served(setting: Setting, root: str, notes: int, state: str) -> Row:
    command = [sys.executable, os.path.abspath(__file__), root, str(setting.seed)]
    peak, last = map(int, program(command, environment())(0).split())
    bare = program([sys.executable, *_NOTHING], environment())(0)
    return Row(
        what=f"memory of a process that serves {notes:,} notes, {state}",
        ours=f"peak {peak / 1e6:.0f} MB, at the end {last / 1e6:.0f} MB",
        beside=f"Python that does nothing: peak {_bytes(bare, 'VmHWM') / 1e6:.0f} MB",
        budget=f"peak ≤ {_MOST / 1e6:.0f} MB" if notes <= _NOTES else "",
        kept=peak <= _MOST if notes <= _NOTES else None,
    )


def _bytes(status: str, name: str) -> int:
    """A value of `/proc/PID/status`, which counts in KiB (proc(5))."""
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{name}:"))


def main(arguments: Sequence[str]) -> int:
    root, seed = arguments
    memory = Memory(root)
    memory.sync()
    with Watching(memory):
        for question in vaults.queries(int(seed), _SEARCHES):
            memory.search(question, limit=10)
    with open("/proc/self/status", encoding="ascii") as file:
        status = file.read()
    print(_bytes(status, "VmHWM"), _bytes(status, "VmRSS"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
