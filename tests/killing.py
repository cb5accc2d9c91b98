"""A process that is killed before one of its calls of the system, so that what it leaves can be looked at."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from mdmem.vault import files

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = ("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "rmdir")


def killed(work: Callable[[], int | None], stop: int, *, exchanges: bool = True) -> bool:
    """Whether a process that does `work` was killed, before its call of the system number `stop`.

    Without `exchanges` it has no call that exchanges two files.
    """
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in {0, -signal.SIGKILL}
        return code != 0
    status, count = 1, 0

    def stepped(call: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **named)

        return step

    try:
        for name in CALLS:
            setattr(os, name, stepped(getattr(os, name)))
        files._rename_with_flag = stepped(files._rename_with_flag) if exchanges else lambda *_, **__: False
        status = work() or 0
    finally:
        os._exit(status)
