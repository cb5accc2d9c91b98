"""Which file system a folder is on, and whether it tells what other machines change."""

from __future__ import annotations

import os
import re

# File systems whose files other machines (or a host, or a daemon) change behind the kernel's back.
_REMOTE = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse", "gfs2", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb3", "smbfs",
    "vboxsf", "virtiofs", "vmhgfs",
})  # fmt: skip


def remote_kind(path: str) -> str:
    """The kind of file system at `path` where its events do not tell everything; empty where they do.

    Told from the kernel's table of mounts (proc_pid_mountinfo(5)); empty where there is none.
    """
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
            lines = table.read().splitlines()
    except OSError:
        return ""
    kind = kind_in(lines, os.path.realpath(path))
    return kind if kind in _REMOTE or kind.startswith("fuse.") else ""


def kind_in(lines: list[str], path: str) -> str:
    """The kind of file system at `path` (absolute, without links) by the lines of a table of mounts."""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        # Of several mounts on one point, the last one is on top.
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, after.split(" ")[0]
    return kind
