"""Vouching for other processes: a process that watches a vault answers whether the index is current.

The kernel queues the events of a change before the call that made it returns. A watcher that reads the queue
before it answers has handled every earlier write: its `yes` is as good as a look at every file. It listens on
a socket in the folder of the index, which ends with its process. A stopped or busy process does not answer in
time.

There is no vouching on a file system that does not report what other machines change.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import MdmemError
from mdmem.index.database import SOCKET

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator, Sequence


TABLE = "/proc/self/mountinfo"

# File systems whose files other machines (or a host, or a daemon) change without events.
_REMOTE = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse", "gfs2", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb3", "smbfs",
    "vboxsf", "virtiofs", "vmhgfs",
})  # fmt: skip


class Mount(NamedTuple):
    """A mounted file system: the mount point, the device, the folder of it, and its kind."""

    point: str
    device: str
    folder: str
    kind: str

    @property
    def is_remote(self) -> bool:
        """Whether its events are incomplete."""
        return self.kind in _REMOTE or self.kind.startswith("fuse.")


def remote_kind(path: str) -> str:
    """Return the kind of file system at `path` where its events are incomplete; empty where they are not.

    It is read from the kernel's table of mounts (proc_pid_mountinfo(5)); empty where there is none.
    """
    mount = mount_of(_read_mounts(), os.path.realpath(path))
    return mount.kind if mount and mount.is_remote else ""


def mounted_in(folder: str) -> tuple[Mount | None, list[Mount]]:
    """Return the mount that a folder (absolute, without links) is on, and the mounts below it."""
    mounts = [*_read_mounts()]
    return mount_of(mounts, folder), [mount for mount in mounts if mount.point.startswith(folder + "/")]


def mount_of(mounts: Iterable[Mount], path: str) -> Mount | None:
    """Return the mount that a path (absolute, without links) is on."""
    best: Mount | None = None
    for mount in mounts:
        # Of several mounts on one point, the last one is on top.
        at = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if at and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def mounts_in(lines: Iterable[str]) -> Iterator[Mount]:
    """Parse the lines of a table of mounts."""
    for line in lines:
        before, _, after = line.partition(" - ")
        _, _, device, folder, point, *_ = before.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)
        yield Mount(point, device, folder, after.split(" ")[0])


def _read_mounts() -> Iterator[Mount]:
    try:
        with open(TABLE, encoding="utf-8", errors="surrogateescape") as table:
            lines = table.read().splitlines()
    except OSError:
        return iter(())
    return mounts_in(lines)


# The most to wait for an answer. To look at 20,000 files takes about as long.
_SECONDS = 0.15
# The most that a silent client may keep others waiting.
_PATIENCE_SECONDS = 0.05
_NEW_SECONDS = 1.0
_YES, _NO = b"y", b"n"
_MOST_BYTES = 64
_MOST_WAITING = 16
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def ask(folder: str, names: Sequence[str], claim: bytes) -> bool:
    """Ask watching processes whether the index is current.

    Args:
        folder: of the index.
        names: of the sockets in it; a dead one is removed.
        claim: what the process must see alike, at most 64 bytes.
    """
    deadline = time.monotonic() + _SECONDS
    with contextlib.ExitStack() as stack:
        poll, peers = select.poll(), {}
        for name in names:
            with contextlib.suppress(OSError):
                peer = stack.enter_context(_make_socket())
                peer.settimeout(0)
                try:
                    with _opening_address(folder, name) as address:
                        peer.connect(address)
                except ConnectionRefusedError:
                    dead = os.path.join(folder, name)
                    if time.time() - os.lstat(dead).st_mtime > _NEW_SECONDS:  # else it is about to listen
                        os.unlink(dead)
                    continue
                if _is_ours(peer):
                    peer.send(claim)
                    poll.register(peer, select.POLLIN)
                    peers[peer.fileno()] = peer
        while peers and (left := deadline - time.monotonic()) > 0:
            for number, _ in poll.poll(left * 1000):
                with contextlib.suppress(OSError):
                    if peers[number].recv(_MOST_BYTES) == _YES:
                        return True
                poll.unregister(peers.pop(number))
    return False


class Voucher:
    """A socket that answers other processes until it is closed.

    Args:
        folder: of the index.
        answer: returns whether the index is current for a claim.

    Raises:
        OSError: the socket cannot be made.
    """

    def __init__(self, folder: str, answer: Callable[[bytes], bool]) -> None:
        self._answer = answer
        name = f"{SOCKET}{os.urandom(8).hex()}"
        self._path = os.path.join(folder, name)
        self._socket = _make_socket()
        try:
            with _opening_address(folder, name) as address:
                self._socket.bind(address)
            self._socket.listen(_MOST_WAITING)
        except BaseException:
            self.close()
            raise

    def serve(self) -> Iterator[bool]:
        """Answer every client until it is closed; yield each answer after it was sent."""
        while True:
            try:
                other, _ = self._socket.accept()
            except OSError:  # closed, or nothing is left to answer with
                return
            with other:
                yield self._answer_one(other)

    def _answer_one(self, other: socket.socket) -> bool:
        answer = False
        with contextlib.suppress(OSError):
            other.settimeout(_PATIENCE_SECONDS)
            claim = other.recv(_MOST_BYTES) if _is_ours(other) else b""
            with contextlib.suppress(MdmemError):
                answer = bool(claim) and self._answer(claim)
            other.send(_YES if answer else _NO)
        return answer

    def close(self) -> None:
        """Stop answering."""
        import socket  # noqa: PLC0415 - start-up

        with contextlib.suppress(OSError):
            os.unlink(self._path)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # it wakes the thread that serves
        self._socket.close()


def _make_socket() -> socket.socket:
    import socket  # noqa: PLC0415 - start-up

    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@contextlib.contextmanager
def _opening_address(folder: str, name: str) -> Iterator[str]:
    """Give the address of a socket through its open folder: its path may be too long for an address."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _is_ours(other: socket.socket) -> bool:
    """Whether a process of this user is at the other end."""
    import socket  # noqa: PLC0415 - start-up

    credentials = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[1] == os.geteuid())
