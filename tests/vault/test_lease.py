"""Whether some program has a file open for writing is seen, waited for, and nobody is ever held up by it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.errors import FileBusy
from mdmem.text.edit import append
from mdmem.vault import files, journal, local_store
from mdmem.vault.files import attempts, has_writer
from mdmem.vault.plan import EditPlan, edit
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="leases are Linux's")

SAVE = """
import sys, time
print("saving", flush=True)
while True:
    with open(sys.argv[1], "w") as file:
        file.write("x" * 3000)
    time.sleep(0.0003)  # as long as a program may take between two saves
"""
HOLD = """
import os, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
print("open", flush=True)
sys.stdin.readline()
os.write(descriptor, b"late\\n")
"""


def settled(descriptor: int, seconds: float) -> bool:
    return any(not has_writer(descriptor) for _ in attempts(seconds))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.md"
    path.write_bytes(b"one\n")
    return path


@contextmanager
def reading(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the file open for writing; it writes a line and ends when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"open\n"
        yield process


def test_a_file_that_nobody_writes_is_settled_at_once(file: Path) -> None:
    with reading(file) as descriptor, reading(file):
        assert settled(descriptor, 0)


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND])
def test_a_descriptor_for_writing_is_seen_until_it_is_closed(file: Path, flags: int) -> None:
    with reading(file) as descriptor:
        held = os.open(file, flags)
        assert not settled(descriptor, 0)
        assert not settled(descriptor, 0.005)
        os.close(held)
        assert settled(descriptor, 0)


def test_another_process_is_seen_until_it_ends(file: Path) -> None:
    with reading(file) as descriptor, writer(file) as process:
        assert not settled(descriptor, 0)
        process.communicate(b"\n")
        assert settled(descriptor, 60)
    assert file.read_bytes() == b"one\nlate\n"


def test_it_waits_until_the_writer_is_done(file: Path) -> None:
    held = os.open(file, os.O_WRONLY)
    closing = threading.Timer(0.05, os.close, [held])
    with reading(file) as descriptor:
        closing.start()
        assert settled(descriptor, 60)
    closing.join()


def test_a_writer_that_comes_afterwards_is_not_held_up(file: Path) -> None:
    with reading(file) as descriptor:
        assert settled(descriptor, 0)
        # While a lease is held, O_NONBLOCK makes this fail with EWOULDBLOCK.
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
        assert not settled(descriptor, 0) or fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_UNLCK


def test_what_cannot_be_leased_counts_as_settled(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
        with reading(path) as descriptor:
            assert settled(descriptor, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_elses_file_counts_as_settled() -> None:
    with tempfile.NamedTemporaryFile() as owned, writer(Path(owned.name)):
        os.chmod(owned.name, 0o644)
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            os._exit(0 if settled(os.open(owned.name, os.O_RDONLY), 0) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_reading_what_is_settled(file: Path) -> None:
    with files.opened(str(file.parent)) as folder:
        content = files.read_settled(folder, "a.md", 0)
        assert content
        assert content.data == b"one\n"
        with open(file, "ab"):
            assert files.read_settled(folder, "a.md", 0) is None


def test_a_file_that_is_saved_in_place_again_and_again_is_never_read_half_way(file: Path) -> None:
    file.write_text("x" * 3000)
    with subprocess.Popen([sys.executable, "-c", SAVE, str(file)], stdout=subprocess.PIPE) as saver:
        assert saver.stdout
        assert saver.stdout.readline() == b"saving\n"
        try:
            with files.opened(str(file.parent)) as folder:
                read = [files.read_settled(folder, "a.md", 60) for _ in range(3000)]
        finally:
            saver.kill()
    assert {len(content.data) for content in read if content} == {3000}


# ---------------------------------------------------------------------------------------- in a vault


def appended(vault: Vault, text: str = "two") -> EditPlan:
    document = vault.read("a.md")
    return edit(document, append(document, text), "append to a.md")


def test_a_change_is_refused_while_a_program_keeps_the_file_open(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (journal, local_store):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    vault = Vault(str(file.parent))
    plan = appended(vault)
    with open(file, "ab"):
        with pytest.raises(FileBusy) as refused:
            vault.apply(plan)
        assert refused.value.path == "a.md"
        assert refused.value.seconds == 0.01
        assert file.read_bytes() == b"one\n"
    assert vault.apply(plan).files[0].path == "a.md"
    assert file.read_bytes() == b"one\ntwo\n"


def test_what_a_program_writes_before_it_closes_the_file_is_kept(file: Path) -> None:
    vault = Vault(str(file.parent))
    plan = appended(vault)
    with writer(file) as process:
        finish = threading.Timer(0.05, process.communicate, [b"\n"])
        finish.start()
        applied = vault.apply(plan)
        finish.join()
    assert sorted(file.read_bytes().splitlines()) == [b"late", b"one", b"two"]
    assert applied.merged == ("a.md",)


def test_a_file_that_is_open_for_writing_can_be_read(file: Path) -> None:
    with open(file, "ab"):
        assert Vault(str(file.parent)).read("a.md").data == b"one\n"
