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
from tests import speed
from tests.programs import needs
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30.0  # seconds
# How each shell is started without anybody's settings, and what it is told before somebody types.
SHELLS = {
    "bash": (["bash", "--norc", "-i"], """eval "$(mdmem completion bash)"; PS1='> '"""),
    "zsh": (
        ["zsh", "-f", "-i"],
        """autoload -Uz compinit; compinit -u -D; eval "$(mdmem completion zsh)"; PS1='> '""",
    ),
    "fish": (["fish", "--no-config", "-i"], "mdmem completion fish | source"),
}
TYPED = {
    "mdmem sho": "mdmem show ",
    "mdmem show notes/db": "mdmem show notes/db.md ",
    "mdmem show memories/notes/数": "mdmem show memories/notes/数据库.md ",
    "mdmem show notes/with": "mdmem show notes/with\\ blanks.md ",
    "mdmem show 'notes/with": "mdmem show 'notes/with blanks.md' ",
    "mdmem git bl": "mdmem git blame ",
}
# What a shell would do something else with, by the first characters that are typed.
HOSTILE = {
    "ka": "ka`run`.md",
    "kb": "kb`memories/run.sh`x.md",
    "kc": "kc$(run).md",
    "kd": "kd;run;.md",
    "ke": "ke'run.md",
    "kf": 'kf"run.md',
    "kg": "kg*.md",
    "kh": "kh run.md",
    "ki": "ki&run&.md",
    "kj": "kj|run|.md",
    "kk": "kk>made.md",
    "kl": "kl!run!!.md",
    "km": "km,run.md",
    "kn": "kn$HOME #{a,b}[c]?(d)<e^f=%.md",
    "ko": "ko'`run`'\"`run`$(run)\".md",
    "\\~r": "~root.md",
    "\\=r": "=run.md",
    "-- -k": "-k.md",
}
# Those that cannot be memories are not put in; of those that begin alike, as much as they have in common.
UNFIT = ("kx\\`run`.md", "kx\n`run`.md")
ALIKE = ("ky`run`1.md", "ky`run`2.md")
IN_QUOTES = ("ka", "kc", "ke", "kf", "kh", "kl", "km", "kn", "ko")
GIVEN = {
    **{begun: [*begun.split()[:-1], name] for begun, name in HOSTILE.items()},
    **{f"{quote}{begun}": [HOSTILE[begun]] for begun in IN_QUOTES for quote in "'\""},
    "kx": ["kx"],
    "ky": ["ky`run`"],
}
# Each of them takes a run of the program; these are for every day.
QUICK = {
    "bash": ("kl", "kn", "ko", "\\~r", "'kl", '"ko', "kx", "ky"),
    "zsh": ("kn", '"ko'),
    "fish": ("km", "ko"),
}
RUN = '#!/bin/sh\ntouch "$PLACE/has-run"\n'
PROGRAM = """#!/bin/sh
[ -z "$_MDMEM_COMPLETE" ] && [ "$1" = show ] || exec {python} -m mdmem "$@"
printf '%s\\n' "$@" > "$PLACE/new" && mv "$PLACE/new" "$PLACE/told"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a vault, in which the program is found as `mdmem`."""
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    for name in ("db", "数据库", "with blanks"):
        memory.write(f"notes/{name}.md", "x\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "mdmem"
    program.write_text(PROGRAM.format(python=shlex.quote(sys.executable)))
    program.chmod(0o755)
    monkeypatch.setenv("PLACE", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def on_terminal(shell: str) -> Iterator[int]:
    """A shell that somebody types into."""
    needs(shell)
    arguments, setup = SHELLS[shell]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(arguments[0], arguments, {**os.environ, "TERM": "dumb", "COLUMNS": "200", "PS1": "> "})
    try:
        os.write(terminal, f"{setup}; echo re''ady\n".encode())
        assert "ready" in seen_until(terminal, "ready")
        yield terminal
    finally:
        os.write(terminal, b"\x15exit\n")
        os.close(terminal)
        os.waitpid(pid, 0)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("shell", speed.soak_most(["bash", "zsh"]))
def test_a_tab_completes_the_line(shell: str) -> None:
    with on_terminal(shell) as terminal:
        for typed, completed in TYPED.items():
            os.write(terminal, f"{typed}\t".encode())
            assert completed in seen_until(terminal, completed)
            os.write(terminal, b"\x15")  # the line is taken away


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_name_is_what_the_command_is_given_and_nothing_of_it_is_run(shell: str, tmp_path: Path) -> None:
    for program in (tmp_path / "programs/run", tmp_path / "memories/run.sh"):
        program.write_text(RUN)
        program.chmod(0o755)
    for name in (*HOSTILE.values(), *UNFIT, *ALIKE):
        (tmp_path / "memories" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "memories" / name).write_text("x\n")
    there = set(os.listdir(tmp_path))
    with on_terminal(shell) as terminal:
        for begun in GIVEN if speed.is_all else QUICK[shell]:
            assert given(terminal, tmp_path, begun) == GIVEN[begun]
    assert set(os.listdir(tmp_path)) == there


def given(terminal: int, place: Path, begun: str) -> list[str]:
    """What the command is given once somebody has typed this, a tab and a line end."""
    os.write(terminal, f"mdmem show {begun}\t\r".encode())
    until((place / "told").exists)
    arguments = (place / "told").read_text().splitlines()
    (place / "told").unlink()
    return arguments[1:]


def seen_until(terminal: int, wanted: str) -> str:
    """What is on a terminal as soon as a text is; without it, after a while."""
    seen, until = b"", time.monotonic() + PATIENCE
    with contextlib.suppress(OSError):  # the shell has ended
        while wanted not in seen.decode("utf-8", "replace"):
            if not select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
                break
            seen += os.read(terminal, 65536)
    return seen.decode("utf-8", "replace")


@pytest.mark.soak
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
    names = ["db.md", "数据库.md", "with blanks.md", "with blanks.md"]
    shown = [f"{'memories/' if name == '数据库.md' else ''}notes/{name}" for name in names]
    assert told == ["show", *shown, "blame"]
