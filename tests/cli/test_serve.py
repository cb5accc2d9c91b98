"""The commands that keep the index: what they count, what they say on the side, and how a watch ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli, Files

DATABASE = ".mdmem/local/index/*/database.sqlite*"


# ---------------------------------------------------------------------------------------------------- index


def test_index_counts_what_has_happened_since(cli: Cli, files: Files) -> None:
    for name in ("a", "b", "c"):
        files.write(f"notes/{name}.md", f"# {name}\n".encode())
    assert cli.ok("index") == (
        0,
        b"3 created, 0 changed, 0 moved, 0 removed; 3 memories\n",
        "",
    )
    assert cli.ok("index").out == "0 created, 0 changed, 0 moved, 0 removed; 3 memories\n"
    files.write("notes/a.md", b"# A, changed\n")
    (files.root / "notes/b.md").rename(files.root / "notes/moved.md")
    (files.root / "notes/c.md").unlink()
    assert cli.ok("index", "--json").json == {
        "created": [],
        "changed": ["notes/a.md"],
        "removed": ["notes/c.md"],
        "moved": [["notes/b.md", "notes/moved.md"]],
        "memories": 2,
    }


def test_index_can_be_made_anew(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    cli.ok("index")
    assert cli.ok("index", "--rebuild").out == "1 created, 0 changed, 0 moved, 0 removed; 1 memory\n"


def test_index_is_about_the_namespace(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    files.write("users/alice/b.md", b"x\n")
    assert cli.ok("--user", "alice", "index").out.startswith("1 created")


def test_a_damaged_index_is_made_anew_and_that_is_said_behind_the_output(cli: Cli, files: Files) -> None:
    files.write("a.md", b"#tag\n")
    expected = cli.ok("tags").out
    for path in files.root.glob(DATABASE):
        path.write_bytes(b"no database at all, but long enough to look like one" * 100)
    ended = cli.ok("tags")
    assert ended.out == expected
    assert ended.errors.startswith("note: the index was rebuilt: ")
    assert ended.errors.count("\n") == 1
    assert cli.ok("tags").errors == ""


def test_what_was_not_asked_of_the_index_says_nothing_of_it(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    cli.ok("ls")
    cli.ok("grep", "x")
    assert not (files.root / ".mdmem/local/index").exists()


# ---------------------------------------------------------------------------------------------------- watch


class Watching:
    """A running `mdmem watch`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._seen = b""

    def line(self) -> str:
        """The next line, as soon as it is there."""
        assert self.process.stdout
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._seen:
            assert select.select([descriptor], [], [], 60)[0], self._seen
            part = os.read(descriptor, 65536)
            assert part, self._seen
            self._seen += part
        line, _, self._seen = self._seen.partition(b"\n")
        return line.decode()

    def stop(self, number: int) -> tuple[int, bytes]:
        """Send a signal; the exit code, and what stands on standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@contextmanager
def watching(*options: str) -> Iterator[Watching]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mdmem", "watch", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield Watching(process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_watch_prints_events_at_once_and_ends_when_it_is_told_to(
    files: Files, number: signal.Signals, code: int
) -> None:
    files.write("a.md", b"# A\n")
    with watching() as watch:
        assert watch.line() == "ready"
        files.write("b.md", b"[[nowhere]]\n")
        assert watch.line() == "created  b.md"
        assert watch.line().startswith("dangling  b.md:1  nowhere  dangling  ")
        files.write("nowhere.md", b"# Here\n")
        assert watch.line() == "created  nowhere.md"
        assert watch.line().startswith("healed  b.md:1  ")
        (files.root / "a.md").rename(files.root / "c.md")
        assert watch.line() == "moved  a.md → c.md"
        assert watch.stop(number) == (code, b"")


def test_watch_prints_an_object_a_line(files: Files) -> None:
    with watching("--json", "--poll-seconds", "0.5") as watch:
        assert json.loads(watch.line()) == {"kind": "ready"}
        files.write("ä.md", b"x\n")
        assert json.loads(watch.line()) == {"kind": "created", "path": "ä.md"}


def test_watch_ends_when_nobody_reads_any_more(files: Files) -> None:
    with watching() as watch:
        assert watch.line() == "ready"
        assert watch.process.stdout
        watch.process.stdout.close()
        watch.process.stdout = None
        files.write("a.md", b"x\n")
        assert watch.process.wait(60) == 0


def test_watch_refuses_to_poll_all_the_time(cli: Cli, files: Files) -> None:
    assert Path(files.root).exists()
    assert cli("watch", "--poll-seconds", "0").code == 2
