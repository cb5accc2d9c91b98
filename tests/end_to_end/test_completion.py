"""The completion scripts, in the shells that they are for: what stands on the command line after a tab."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shlex
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import mdmem
from tests.programs import needs

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 30.0  # seconds
# How each shell is started without anybody's settings, and what it is told before somebody types.
SHELLS = {
    "bash": (["bash", "--norc", "-i"], 'eval "$(mdmem completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(mdmem completion zsh)"'),
}
TYPED = {
    "mdmem sho": "mdmem show ",
    "mdmem show notes/db": "mdmem show notes/db.md ",
    "mdmem show memories/notes/数": "mdmem show memories/notes/数据库.md ",
    "mdmem show notes/with": "mdmem show notes/with\\ blanks.md ",
    "mdmem show 'notes/with": "mdmem show 'notes/with blanks.md' ",
    "mdmem show notes/one,": "mdmem show notes/one,two.md ",
    "mdmem git bl": "mdmem git blame ",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a vault, in which the program is found as `mdmem`."""
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    for name in ("db", "数据库", "with blanks", "one,two"):
        memory.write(f"notes/{name}.md", "x\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "mdmem"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mdmem "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_completes_the_line(shell: str) -> None:
    needs(shell)
    arguments, setup = SHELLS[shell]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(arguments[0], arguments, {**os.environ, "TERM": "dumb", "COLUMNS": "200", "PS1": "> "})
    try:
        os.write(terminal, f"{setup}; PS1='> '; echo re''ady\n".encode())
        assert "ready" in seen_until(terminal, "ready")
        for typed, completed in TYPED.items():
            os.write(terminal, f"{typed}\t".encode())
            assert completed in seen_until(terminal, completed)
            os.write(terminal, b"\x15")  # the line is taken away
    finally:
        os.write(terminal, b"\x15exit\n")
        os.close(terminal)
        os.waitpid(pid, 0)


def seen_until(terminal: int, wanted: str) -> str:
    """What is on a terminal as soon as a text is; without it, after a while."""
    seen, until = b"", time.monotonic() + PATIENCE
    with contextlib.suppress(OSError):  # the shell has ended
        while wanted not in seen.decode("utf-8", "replace"):
            if not select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
                break
            seen += os.read(terminal, 65536)
    return seen.decode("utf-8", "replace")


@pytest.mark.usefixtures("place")
def test_fish_is_told_whole_names() -> None:
    needs("fish")
    asked = "\n".join(f"complete --do-complete {shlex.quote(typed)}" for typed in TYPED)
    ended = subprocess.run(
        ["fish", "--no-config", "-c", f"mdmem completion fish | source\n{asked}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert ended.stderr == ""
    told = [line.partition("\t")[0] for line in ended.stdout.splitlines()]
    names = ["db.md", "数据库.md", "with blanks.md", "with blanks.md", "one,two.md"]
    shown = [f"{'memories/' if name == '数据库.md' else ''}notes/{name}" for name in names]
    assert told == ["show", *shown, "blame"]
