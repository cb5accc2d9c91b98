"""Which kind of file system a folder is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.index.mounts import mount_of, mounts_in, remote_kind
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

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
