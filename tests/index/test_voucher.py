"""Which kind of file system a folder is on.

Vouching for other processes: only one of the same user that lives and answers in time is believed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.index.database import SOCKET
from mdmem.index.voucher import Voucher, ask, mount_of, mounts_in, remote_kind
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


TABLE = [
    *("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw", "30 22 0:25 / /proc rw - proc proc rw"),
    "31 22 0:44 / /mnt/share rw - nfs4 server:/x rw,vers=4.2",
    "32 31 0:45 / /mnt/share/local\\040disk rw - ext4 /dev/sdb1 rw",
    "33 22 0:46 / /mnt/cloud rw,nosuid shared:9 master:2 - fuse.sshfs me@host:/ rw",
    *("34 22 0:47 / /mnt/twice rw - cifs //host/x rw", "35 22 0:48 / /mnt/twice rw - tmpfs tmpfs rw"),
]


@cases(
    "path, kind",
    [
        ("/home/me/memories", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/deep/memories", "nfs4"),
        ("/mnt/shared/memories", "ext4"),
        ("/mnt/share/local disk/memories", "ext4"),
        ("/mnt/cloud/memories", "fuse.sshfs"),
        ("/mnt/twice/memories", "tmpfs"),
    ],
)
def test_the_nearest_mount_that_is_on_top_counts(path: str, kind: str) -> None:
    mount = mount_of(mounts_in(TABLE), path)
    assert (mount.kind if mount else "") == kind


def test_a_folder_on_a_local_disk_is_not_remote(tmp_path: Path) -> None:
    assert remote_kind(str(tmp_path)) == ""


CLAIM = b"what both must see"
HOLDER = """
import sys
from mdmem.index.voucher import Voucher
voucher = Voucher(sys.argv[1], lambda claim: claim == sys.argv[2].encode())
print("ready", flush=True)
for _ in voucher.serve():
    pass
"""


def asked(folder: Path, claim: bytes = CLAIM) -> bool:
    return ask(str(folder), sockets(folder), claim)


def sockets(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(SOCKET)]


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that answers yes to CLAIM."""
    command = [sys.executable, "-c", HOLDER, str(folder), CLAIM.decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


@contextmanager
def answering(folder: Path, *, yes: bool = True) -> Iterator[Voucher]:
    """A thread that answers."""
    voucher = Voucher(str(folder), lambda _: yes)
    thread = threading.Thread(target=lambda: [*voucher.serve()])
    thread.start()
    try:
        yield voucher
    finally:
        voucher.close()
        thread.join(20)
        assert not thread.is_alive()


def test_it_answers_for_what_it_sees_itself_and_for_nothing_else(tmp_path: Path) -> None:
    assert not asked(tmp_path)
    with holder(tmp_path):
        assert asked(tmp_path)
        assert not asked(tmp_path, b"another database")
        assert asked(tmp_path)


def test_one_that_was_killed_leaves_nothing_that_is_believed(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.kill()
        process.wait()
        assert not asked(tmp_path)
        (left,) = sockets(tmp_path)
        os.utime(tmp_path / left, (0, 0))
        assert not asked(tmp_path)
        assert os.listdir(tmp_path) == []


def test_one_that_is_stopped_is_not_waited_for_and_another_is_heard(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0] == "T")
        assert not asked(tmp_path)
        with answering(tmp_path):
            assert asked(tmp_path)
        process.send_signal(signal.SIGCONT)
        until(lambda: asked(tmp_path))


def test_one_no_does_not_outweigh_a_yes(tmp_path: Path) -> None:
    with answering(tmp_path, yes=False):
        assert not asked(tmp_path)
        with answering(tmp_path):
            assert asked(tmp_path)
        assert not asked(tmp_path)
    assert os.listdir(tmp_path) == []


def test_who_connects_and_says_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    with answering(tmp_path):
        (name,) = sockets(tmp_path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(str(tmp_path / name))
            until(lambda: asked(tmp_path))
            assert silent.recv(64) == b""


def test_a_folder_may_have_a_path_that_is_longer_than_an_address(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120) / "y"
    folder.mkdir(parents=True)
    with answering(folder):
        assert asked(folder)


def test_another_user_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holder(tmp_path):
        me = os.geteuid()
        monkeypatch.setattr("os.geteuid", lambda: me + 1)
        assert not asked(tmp_path)


def test_another_user_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(tmp_path), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        me = os.geteuid()
        monkeypatch.setattr("os.geteuid", lambda: me + 1)
        other.connect(str(tmp_path / sockets(tmp_path)[0]))
        assert other.recv(64) == b"n"


@cases("thing", ["file", "fifo", "link", "folder"])
def test_what_is_no_socket_is_passed_over(tmp_path: Path, thing: str) -> None:
    path = tmp_path / f"{SOCKET}planted"
    match thing:
        case "file":
            path.write_bytes(b"y")
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    assert not asked(tmp_path)
    with answering(tmp_path):
        assert asked(tmp_path)
