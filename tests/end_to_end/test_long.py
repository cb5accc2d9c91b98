"""Memories that are one long line, and folders as deep as a disk has them: every command ends, and soon."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import mdmem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = 1_000_000
SECONDS = 20.0  # a hang, where any command takes one or two
ROOM = 2 * 10**9  # bytes of addresses; ripgrep and the text index map what they do not use
FINE = {0, 1, 2}
SHAPES = {
    "words": ("a.md", "start {} needle\n", "lorem ipsum "),
    "tags": ("a.md", "start {} needle\n", " #a"),
    "a heading": ("a.md", "# {} needle\n", "a "),
    "duplicate keys": ("a.json", '{{"needle":1{}}}', ',"a":1'),
    "escapes": ("a.json", '{{"needle":"{}"}}', r"\u0041"),
    "carriage returns": ("a.md", "{}needle\n", "a\r"),
}
COMMANDS = (
    ["index"],
    ["grep", "--limit", "5", "a"],
    ["context", "needle"],
    ["check"],
    ["append", "notes/{}", "appended"],
)


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "mdmem", "--vault", str(root), *arguments],
        capture_output=True,
        check=False,
        timeout=SECONDS,
        cwd=root.parent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_every_command_ends_soon_on_a_memory_of_one_long_line(swift: Path, shape: str) -> None:
    name, frame, unit = SHAPES[shape]
    root = swift / "memories"
    mdmem.init(root)
    (root / "notes").mkdir()
    (root / "notes/other.md").write_text("# Other\n\nneedle\n")
    text = frame.format(unit * ((SIZE - len(frame)) // len(unit)))
    (root / "notes" / name).write_text(text, newline="")
    for command in COMMANDS:
        ended = run(root, *(each.format(name) for each in command))
        assert ended.returncode in FINE, (command, ended.stderr)
        assert len(ended.stdout) < 300_000, command


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A vault with folders whose path is longer than the system takes, and others that are only many."""
    root = tmp_path / "memories"
    mdmem.init(root)
    (root / "notes").mkdir()
    (root / "notes/a.md").write_text("# A\n\nneedle\n")
    for folder, name, levels in ((root / "notes", "d" * 10, 600), (root, "d", 1_500)):
        descriptor = os.open(folder, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir(name, dir_fd=descriptor)
            below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        os.close(descriptor)
    yield root
    subprocess.run(["rm", "-rf", str(root)], check=True)  # which shutil cannot, so deep


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["ls"], b"left out: notes/ddd"),
        (["search", "needle"], b""),
        (["grep", "needle"], b"File name too long"),
        (["context", "needle"], b""),
        (["check"], b"not-a-memory left out: a folder"),
        (["doctor"], b"not-a-memory a folder"),
        (["index", "--rebuild"], b"; 1 memory"),
        (["replace", "--in", "notes", "needle", "found", "--dry-run"], b"left out: notes/ddd"),
        (["rm", "notes"], b"is a folder that is left out"),
        (["project", "audit"], b""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_folders_that_are_too_deep_stop_no_command(deep: Path, command: list[str], told: bytes) -> None:
    ended = run(deep, *command)
    assert ended.returncode == (2 if command[0] == "rm" else 0), ended.stderr
    assert told in ended.stdout + ended.stderr
    assert command[0] not in {"search", "context", "grep"} or b"notes/a.md" in ended.stdout
