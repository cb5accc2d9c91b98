"""Answers for `mdmem`, as often as git asks it to merge a file, without a start of Python for each.

Run as `merge_worker.py BIN` in the top of a work tree. It puts a program `mdmem` into BIN, prints a line, and
does what that is asked to do in forks of this process, which has everything imported, until it is killed.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from pathlib import Path

import mdmem.cli.git  # noqa: F401 - as merge_files: what each fork would import anew
from mdmem import merge_files
from mdmem.cli.main import main

ASK = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/asked
{{ read -r code; cat; }} < {folder}/answer
exit "$code"
"""


def answer(folder: Path) -> None:
    """Wait for a command, and run it."""
    arguments = (folder / "asked").read_text().splitlines()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = main(arguments)
    (folder / "answer").write_text(f"{code}\n{printed.getvalue()}")
    os._exit(0)


def serve(folder: Path) -> None:
    for name in ("asked", "answer"):
        os.mkfifo(folder / name)
    program = folder / "mdmem"
    program.write_text(ASK.format(folder=folder))
    program.chmod(0o755)
    for name in "bot":
        (folder / name).write_text(f"---\ntags: [{name}]\n---\n# A\n\n- {name} ^{name}\n")
    base, ours, theirs = (str(folder / name) for name in "bot")
    merge_files(base, ours, theirs, "memories/notes/a.md")
    gc.freeze()  # a collection would copy the memory that the forks share
    print("ready", flush=True)  # noqa: T201 - whoever started this waits for it
    while True:
        answer(folder)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
