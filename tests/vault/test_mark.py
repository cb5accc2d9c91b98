"""Tests of the mark of local state, and of the key that it is made with."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mdmem.errors import StorageFailed
from mdmem.vault import mark
from mdmem.vault.mark import believed, name_for, signed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPE = {"id": "x", "text": 'half a "\ud83d" and ,"mark":"', "n": [1, None]}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder, and nothing in it yet; the system's folder for temporary files beside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    forget()
    return tmp_path / "state/mdmem"


def forget() -> None:
    mark._read_key.cache_clear()


def test_what_was_signed_here_is_believed() -> None:
    assert believed(signed(SHAPE)) == SHAPE
    assert b"\n" not in signed(SHAPE)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda line: line[:-1],
        lambda line: line[:-34] + b'"}',
        lambda line: line[:-34] + b"\xff" * 32 + b'"}',
        lambda line: line + b" ",
        lambda line: line.replace(b'"x"', b'"y"'),
        lambda line: line.replace(b"null", b"1"),
        lambda line: b" " + line,
        lambda _: b'{"id":"x"}',
    ],
)
def test_a_changed_line_is_not_believed(change: Callable[[bytes], bytes]) -> None:
    assert believed(change(signed(SHAPE))) is None


def test_the_key_is_for_its_user_alone(state: Path) -> None:
    signed(SHAPE)
    assert [each.name for each in state.iterdir()] == ["key"]
    assert (state / "key").stat().st_mode & 0o777 == 0o600
    assert (state / "key").stat().st_size == 32


@pytest.mark.parametrize("fault", ["another", "torn", "gone"])
def test_with_another_key_nothing_is_believed(state: Path, fault: str) -> None:
    line = signed(SHAPE)
    if fault == "gone":
        (state / "key").unlink()
    else:
        (state / "key").write_bytes(b"k" * (32 if fault == "another" else 5))
    forget()
    assert believed(line) is None
    assert believed(signed(SHAPE)) == SHAPE
    assert (state / "key").stat().st_size == 32


@pytest.mark.parametrize("fault", ["link", "fifo", "writable by all"])
def test_a_key_that_others_may_have_made_is_not_used(state: Path, tmp_path: Path, fault: str) -> None:
    """Another one takes its place, or stands below the folder for temporary files."""
    line = signed(SHAPE)
    if fault == "writable by all":
        (state / "key").chmod(0o666)
    else:
        (state / "key").rename(tmp_path / "theirs")
        (state / "key").symlink_to(tmp_path / "theirs") if fault == "link" else os.mkfifo(state / "key")
    forget()
    assert believed(line) is None
    assert believed(signed(SHAPE)) == SHAPE


def test_without_a_home_the_key_is_kept_with_temporary_files(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox may close the home of an agent, and open it the next time: both keys are believed."""
    monkeypatch.setenv("HOME", "/proc/none")
    state.parent.write_bytes(b"")
    closed = signed(SHAPE)
    assert (tmp_path / f"tmp/mdmem-{os.geteuid()}").stat().st_mode & 0o777 == 0o700
    state.parent.unlink()
    opened = signed(SHAPE)
    assert opened != closed
    assert believed(opened) == believed(closed) == SHAPE
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    monkeypatch.setenv("TMPDIR", "/proc/none")
    with pytest.raises(StorageFailed, match="keep the key of local state"):
        signed(SHAPE)


def test_a_state_folder_seen_from_the_current_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder may be a stranger's, and hold a key that he knows."""
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    signed(SHAPE)
    assert (tmp_path / "home/.local/state/mdmem/key").is_file()
    assert not (tmp_path / "state").exists()


def test_processes_that_need_a_key_at_once_have_one(state: Path) -> None:
    program = "import sys; from mdmem.vault.mark import signed; sys.stdin.read(); print(signed({'n': 1}))"
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin
        process.stdin.close()
    lines = set()
    for process in started:
        assert process.stdout
        with process.stdout:
            lines.add(process.stdout.read())
        assert process.wait() == 0
    assert len(lines) == 1
    assert [each.name for each in state.iterdir()] == ["key"]


def test_the_name_of_a_folder_is_its_own(tmp_path: Path) -> None:
    def name(folder: str) -> str:
        descriptor = os.open(tmp_path / folder, os.O_RDONLY)
        try:
            return name_for(descriptor)
        finally:
            os.close(descriptor)

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert name("one") == name("one") != name("two")
    before = name("one")
    (tmp_path / "one").rename(tmp_path / "moved")
    assert name("moved") == before


def test_a_program_that_knows_only_the_usual_place_is_believed(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is often started with little of the environment of a shell."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with monkeypatch.context() as poor:
        poor.delenv("XDG_STATE_HOME")
        line = signed(SHAPE)
    forget()
    assert believed(line) == SHAPE
    assert believed(signed({"n": 2})) == {"n": 2}
    assert (state / "key").is_file()


def test_a_vault_may_do_what_its_user_allowed_and_nothing_else(tmp_path: Path, state: Path) -> None:
    """Not another vault, nor one that takes its place, nor a copy; and what is allowed ends with a word."""
    vault, other = tmp_path / "vault", tmp_path / "other"
    vault.mkdir()
    other.mkdir()
    assert not mark.is_allowed("capture", str(vault))
    assert not state.exists()  # asking makes nothing
    mark.allow("capture", str(vault))
    (tmp_path / "link").symlink_to(vault)
    assert mark.is_allowed("capture", str(tmp_path / "link"))
    assert not mark.is_allowed("else", str(vault))
    assert not mark.is_allowed("capture", str(other))
    vault.rename(tmp_path / "away")
    other.rename(vault)
    assert not mark.is_allowed("capture", str(vault))
    vault.rename(other)
    (tmp_path / "away").rename(vault)
    assert mark.is_allowed("capture", str(vault))
    for _ in range(2):
        mark.allow("capture", str(vault), allowed=False)
    assert not mark.is_allowed("capture", str(vault))


def test_what_cannot_be_kept_is_not_allowed(tmp_path: Path, state: Path) -> None:
    state.mkdir(parents=True)
    (state / "allowed").touch()
    with pytest.raises(StorageFailed):
        mark.allow("capture", str(tmp_path))
    assert not mark.is_allowed("capture", str(tmp_path))
