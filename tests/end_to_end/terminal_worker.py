"""Runs the program on a terminal, once for each list of arguments in the JSON on standard input.

Run as `terminal_worker.py [closed]`: with `closed`, its standard output is a pipe whose reader is gone.
Prints a JSON list of exit codes and of what was to be seen. Each run is a process of its own, forked from
this one, which has imported everything, unless they are few.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import pty
import sys

import mdmem
from mdmem.cli.main import program
from mdmem.document.text.tokens import counter
from tests.terminals import read_terminal

FEW = 6


def run(arguments: list[str]) -> tuple[int, str]:
    pid, terminal = pty.fork()
    if pid == 0:
        sys.argv = ["mdmem", *arguments]
        program()
    os.write(terminal, b"\x04")  # whoever reads standard input reads its end
    seen = b"".join(read_terminal(terminal))
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode("utf-8", "surrogateescape")


def run_closed(arguments: list[str]) -> tuple[int, str]:
    """Nothing but standard error is to be seen."""
    gone, output = os.pipe()
    os.close(gone)
    reader, errors = os.pipe()
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for stream, number in ((nothing, 0), (output, 1), (errors, 2)):
            os.dup2(stream, number)
        sys.argv = ["mdmem", *arguments]
        program()
    os.close(output)
    os.close(errors)
    with os.fdopen(reader, "rb") as file:
        seen = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode("utf-8", "surrogateescape")


def preload() -> None:
    for module in pkgutil.walk_packages(mdmem.__path__, "mdmem."):
        # The SDKs of other packages take seconds, and none of the commands here uses one.
        if not module.name.endswith("__main__") and not module.name.startswith(
            ("mdmem.serve.adapters.", "mdmem.serve.mcp.")
        ):
            importlib.import_module(module.name)
    counter()("")  # a tokenizer loads its vocabulary with the first text


commands = json.load(sys.stdin)
if len(commands) > FEW:
    preload()
way = run_closed if sys.argv[1:] == ["closed"] else run
sys.stdout.write(json.dumps([way(arguments) for arguments in commands]))
