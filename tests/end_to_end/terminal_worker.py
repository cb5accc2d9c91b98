"""Runs the program on a terminal, once for each list of arguments in the JSON on standard input.

Prints a JSON list of exit codes and of what was to be seen. Each run is a process of its own, forked from
this one, which has imported everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sys

from mdmem.cli import render  # noqa: F401 - what every run needs
from mdmem.cli.main import main, program  # noqa: F401 - what every run needs


def run(arguments: list[str]) -> tuple[int, str]:
    pid, terminal = pty.fork()
    if pid == 0:
        sys.argv = ["mdmem", *arguments]
        program()
    seen = b""
    os.write(terminal, b"\x04")  # whoever reads standard input reads its end
    # Linux reports the end of a terminal as an error, other systems as the end of a file.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            seen += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode("utf-8", "surrogateescape")


commands = json.load(sys.stdin)
sys.stdout.write(json.dumps([run(arguments) for arguments in commands]))
