"""Mounts: which file system a folder is on, and whether it tells what other machines change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from mdmem.vault.paths import is_under

TABLE = "/proc/self/mountinfo"

# File systems on which other machines (or a host, or a daemon) change files without events.
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
        if is_under(path, mount.point.rstrip("/")) and (best is None or len(mount.point) >= len(best.point)):
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
    with suppress(OSError), open(TABLE, encoding="utf-8", errors="surrogateescape") as table:
        return mounts_in(table.read().splitlines())
    return iter(())
