"""The real program on a terminal that has a size, controlled by whoever types there."""

from __future__ import annotations

import os
import pty
import sys
import termios
from typing import TYPE_CHECKING, NamedTuple

from tests.terminals import read_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence


class Seen(NamedTuple):
    """How a program ended, and all that was to be seen."""

    code: int
    text: str


def on_screen(
    *arguments: str,
    env: dict[str, str] | None = None,
    typed: Sequence[tuple[str, str]] = (),
    rows: int = 10,
) -> Seen:
    """Run the program until it ends.

    Args:
        arguments: of the program.
        env: of it, beside what is there.
        typed: what is waited for, and what is typed when it is seen, in order.
        rows: of the terminal.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            termios.tcsetwinsize(0, (rows, 80))
            environ = {**os.environ, "TERM": "xterm", **(env or {})}
            os.execve(sys.executable, [sys.executable, "-m", "mdmem", *arguments], environ)
        finally:
            os._exit(127)
    seen, from_here, to_come = "", 0, list(typed)
    for part in read_terminal(terminal):
        seen += part.decode("utf-8", "replace").replace("\r\n", "\n")
        if to_come and to_come[0][0] in seen[from_here:]:
            from_here = len(seen)
            os.write(terminal, to_come.pop(0)[1].encode())
    os.close(terminal)
    return Seen(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen)
