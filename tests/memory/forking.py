"""Several processes that begin from what this one has imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def run_at_once(*works: Callable[[], object]) -> list[int]:
    """Run each in a process of its own, all at once; the exit codes, of which 1 is an error."""
    children = [_start(work) for work in works]
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _start(work: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)
