"""An interrupt at any moment, from loading the program on, ends it without a word, and changes are whole."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.facade.memory import open as open_memory
from tests.speed import is_all, soak_most

if TYPE_CHECKING:
    from pathlib import Path

# Interrupts the program after so many seconds; 98 is the end of an interrupt that came before it began.
PROGRAM = """
import os, signal, sys
from mdmem.cli import program
signal.signal(signal.SIGALRM, signal.default_int_handler)
seconds = float(sys.argv.pop(1))
try:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    program()
except KeyboardInterrupt:
    os._exit(98)
"""
MOMENTS = [0.001 + 0.02 * number for number in range(12)][:: 1 if is_all else 5]
NOTES = 150


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("interrupted") / "memories"
    mdmem.init(root)
    memory = open_memory(str(root))
    for number in range(NOTES):
        (root / f"n{number}.md").write_text(
            f"# Note {number}\n\nSee [[n{number + 1}]], word, `a.py#L1`.\n" * 20
        )
    memory.sync()
    return root


COMMANDS = (
    ["--version"],
    ["--help"],
    ["ls"],
    ["grep", "word"],
    ["search", "word"],
    ["check"],
    ["index", "--rebuild"],
    ["replace", "--in", ".", "--all", "word", "term", "--json"],
)


@pytest.mark.parametrize("arguments", soak_most(COMMANDS, quick=(0, 7)), ids=lambda arguments: arguments[0])
def test_an_interrupt_at_any_moment_is_no_error(root: Path, arguments: list[str]) -> None:
    env = os.environ | {"MDMEM_VAULT": str(root)}
    ends = []
    for seconds in MOMENTS:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(seconds), *arguments],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        ends.append(ended.returncode)
        assert ended.returncode in {0, 1, 98, 130}, ended.stderr
        assert ended.stderr.count(b"Traceback") == 0, ended.stderr
        assert b"Exception ignored" not in ended.stderr
    assert {98, 130} & set(ends)
    counted = [path.read_text().count("word") for path in root.glob("n*.md")]
    assert len(counted) == NOTES
    assert len(set(counted)) == 1  # every note was changed, or none
