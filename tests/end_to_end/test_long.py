"""Memories that are one long line, and folders as deep as a disk has them: every command ends, and soon."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

import mdmem
from tests.end_to_end.test_storage_faults import Commands, commands
from tests.speed import is_all
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = 500_000 if is_all else 250_000
ROOM = 2_000_000  # kilobytes of addresses; ripgrep and the text index map what they do not use
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


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Ends commands that hang, and those that take more room."""
    with commands(
        tmp_path_factory.mktemp("none"), before=("sh", "-c", f'ulimit -v {ROOM} && exec "$@"', "sh")
    ) as made:
        yield made


OFTEN = SHAPES if is_all else ("tags", "escapes")


@cases("name, frame, unit", [SHAPES[shape] for shape in OFTEN], ids=[*OFTEN])
def test_every_command_ends_soon_on_a_memory_of_one_long_line(
    tmp_path: Path, worker: Commands, name: str, frame: str, unit: str
) -> None:
    root = tmp_path / "memories"
    mdmem.init(root)
    (root / "notes").mkdir()
    (root / "notes/other.md").write_text("# Other\n\nneedle\n")
    text = frame.format(unit * ((SIZE - len(frame)) // len(unit)))
    (root / "notes" / name).write_text(text, newline="")
    filled = [[each.format(name) for each in command] for command in COMMANDS]
    for command, ran in zip(filled, worker.on(root).sweep(filled), strict=True):
        assert len(ran.out.encode()) < 0.3 * SIZE, command


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A vault with folders whose path is longer than the system takes, and others that are only many."""
    root = tmp_path_factory.mktemp("deep") / "memories"
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


@cases(
    "command, told",
    [
        (["ls"], "left out: notes/ddd"),
        (["search", "needle"], ""),
        (["grep", "needle"], "File name too long"),
        (["context", "needle"], ""),
        (["check"], "not-a-memory left out: a folder"),
        (["doctor"], "not-a-memory a folder"),
        (["index", "--rebuild"], "; 1 memory"),
        (["replace", "--in", "notes", "--all", "needle", "found", "--dry-run"], "left out: notes/ddd"),
        (["rm", "-r", "notes"], ": a folder that is left out"),
    ],
)
def test_folders_that_are_too_deep_stop_no_command(
    deep: Path, worker: Commands, command: list[str], told: str
) -> None:
    ran = worker.on(deep).run(*command)
    assert ran.code == (2 if command[0] in {"grep", "rm"} else 0), ran
    assert told in ran.out + ran.errors
    assert command[0] not in {"search", "context", "grep"} or "notes/a.md" in ran.out
