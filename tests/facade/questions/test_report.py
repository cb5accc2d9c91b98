"""The report: what is weak, and commands that fix it when they are run as printed."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import mdmem
from mdmem import Memory
from mdmem.cli.main import main
from mdmem.errors import Usage
from mdmem.facade.questions.report import KINDS
from tests.tables import cases

TEXT = """\
# Locks

The write lock of a vault is an flock on one file, held for milliseconds and never while git runs.
A crash gives the lock back at once, so that no lease and no clean-up is needed.
"""
CODE = "def one() -> int:\n    return 1\n\n\ndef two() -> int:\n    return 2\n"


def duplicate(memory: Memory) -> None:
    memory.write("notes/a.md", TEXT)
    memory.write("notes/b.md", TEXT + "\nMore of it.\n")


def ended(memory: Memory) -> None:
    memory.write("notes/old.md", "# Old\n")
    memory.write("notes/new.md", "# New\n")
    memory.write("notes/a.md", "See [[old]] and [that](old.md#old).\n")
    memory.supersede("notes/old.md", "notes/new.md")


def over(memory: Memory) -> None:
    memory.write("notes/old.md", "---\nvalid_to: 2020-01-01\n---\n# Old\n")
    memory.write("notes/a.md", "See [[old|the old one]].\n")


def broken(memory: Memory) -> None:
    memory.write("notes/a.md", "See [[nothing]].\n")


def ambiguous(memory: Memory) -> None:
    memory.write("x/db.md", "# X\n")
    memory.write("y/db.md", "# Y\n")
    memory.write("notes/a.md", "See [[db]].\n")


def dashed(memory: Memory) -> None:
    memory.write("--all.md", TEXT)
    memory.write("-b.md", TEXT + "\nMore of it.\n")


def dashed_link(memory: Memory) -> None:
    memory.write("-a.md", "See [--all](nothing.md) and [[nothing|--regex]].\n")


def stale(change: Callable[[Path], object]) -> Callable[[Memory], None]:
    def make(memory: Memory) -> None:
        file = Path(memory.workspace, "src/app.py")
        file.parent.mkdir()
        file.write_text(CODE)
        memory.write("notes/a.md", "It is `src/app.py#L5-L6`.\n")
        memory.references.pin()
        change(file)

    return make


@cases(
    "kind, make",
    [
        ("duplicate", duplicate),
        ("ended and still linked", ended),
        ("ended and still linked", over),
        ("broken", broken),
        ("ambiguous", ambiguous),
        ("duplicate", dashed),
        ("broken", dashed_link),
        ("stale", stale(lambda file: file.write_text(f"# more\n\n{CODE}"))),
        ("stale", stale(lambda file: file.write_text(CODE.replace("return 2", "return 3")))),
        ("stale", stale(Path.unlink)),
    ],
)
def test_each_command_run_as_printed_fixes_what_it_is_told_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, make: Callable[[Memory], None]
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    make(memory)
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        for weak in (each for each in memory.report().worst if each.kind == kind):
            assert main(shlex.split(weak.command)[1:]) == 0
    assert memory.report().counts[kind] == 0


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


def test_the_kinds_are_counted_and_what_has_no_command_is_explained(memory: Memory) -> None:
    memory.write("notes/a.md", "---\nsource: {type: agent}\nupdated: 2001-01-01\n---\n# A\n")
    memory.write("notes/b.md", "# B\n")
    memory.write("notes/c.md", "---\ncontradicted_by: [b]\n---\n# C\n")
    memory.uses.add(["notes/a.md"])
    report = memory.report()
    assert report.memories == 3
    counts = dict.fromkeys(KINDS, 0) | {"contradicted": 1, "doubtful": 1, "unsourced": 2, "unused": 2}
    assert report.counts == counts
    assert {each.command for each in report.worst if each.kind == "unsourced"} == {
        "mdmem why notes/b.md",
        "mdmem why notes/c.md",
    }
    assert memory.exists("notes/a.md")


def test_without_a_server_that_counts_nothing_is_unused(memory: Memory) -> None:
    memory.write("notes/a.md", "# A\n")
    assert memory.report().counts["unused"] == 0


def test_at_most_five_of_five_kinds_are_named(memory: Memory) -> None:
    for number in range(7):
        memory.write(f"notes/n{number}.md", f"See [[nothing{number}]].\n")
    report = memory.report()
    assert report.counts["unsourced"] == report.counts["broken"] == 7
    assert len(report.worst) == 10


def test_the_same_is_counted_at_an_earlier_moment(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/a.md", "See [[nothing]].\n")
    for command in ("config user.name a", "config user.email a@b", "add .", "commit -qm one"):
        subprocess.run(["git", "-C", tmp_path, *command.split()], check=True)
    memory.write("notes/b.md", "See [[nothing else]] and [[nothing]].\n")
    memory.write("notes/a.md", "# A\n", overwrite=True)
    memory.write("notes/c.md", "---\nsource: {type: user}\n---\nSee [[a]].\n")
    report = memory.report(since="HEAD")
    assert report.before is not None
    assert (report.before["broken"], report.counts["broken"]) == (1, 1)
    assert (report.before["unsourced"], report.counts["unsourced"]) == (1, 2)
    assert memory.report().before is None


@cases("since", ["yesterday-ish", "2999-13-45"])
def test_a_moment_that_is_none_is_refused(memory: Memory, since: str) -> None:
    with pytest.raises(Usage):
        memory.report(since=since)
