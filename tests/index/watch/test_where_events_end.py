"""Lost events, exhausted limits, folders that go: each ends in a correct look, and a word about it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from watchdog.observers.api import BaseObserver

from mdmem.index.watch import inotify, watcher
from mdmem.index.watch.hints import GatheredHints, Hints

if TYPE_CHECKING:
    from tests.index.watch.conftest import Follow, Following


def codes(looks: list[Hints]) -> list[str]:
    return [notice.code for look in looks for notice in look.notices]


def test_an_overflowed_queue_ends_in_a_look_at_everything(kernel: Following, root: Path) -> None:
    """Nobody reads while more happens than the queue holds; new folders are watched all the same."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for n in range(most + 100):
        os.chmod(root / ("notes/a.md", "notes/b.md")[n % 2], 0o600)
    (root / "lost/deep").mkdir(parents=True)
    os.rename(root / "notes", root / "lost/notes")
    (root / "lost/deep/a.md").write_text("nobody was told")
    assert not kernel.watcher.vouches()
    looks = kernel.until_true()
    assert codes(looks) == ["events-lost"]
    (root / "lost/deep/a.md").write_text("told")
    (root / "lost/notes/deep/er/c.md").write_text("told, too")
    looks = kernel.until_true()
    assert looks[0].paths == {"lost/deep/a.md", "lost/notes/deep/er/c.md"}


def test_an_interrupt_in_the_middle_loses_nothing(kernel: Following, root: Path) -> None:
    (root / "notes/a.md").write_text("read from the queue, and never handled")
    events = kernel.watcher._events
    assert isinstance(events, inotify.Watched)
    with pytest.raises(KeyboardInterrupt):
        events.drain(Interrupting())
    looks = kernel.until_true()
    assert looks[0].everything
    assert kernel.watcher.vouches()


class Interrupting(GatheredHints):
    def came(self) -> None:
        raise KeyboardInterrupt


def test_the_vault_is_moved_away_and_back(following: Following, root: Path) -> None:
    os.rename(root, root.parent / "away")
    assert codes(following.until_true()) == ["vault-gone"]
    assert not following.copy.known
    (root.parent / "away/top.md").write_text("changed while away")
    os.rename(root.parent / "away", root)
    assert codes(following.until_true()) == ["vault-back"]
    (root / "notes/deep/er/c.md").write_text("watched again")
    following.until_true()


def test_the_workspace_is_moved_away_and_back(kernel: Following, root: Path) -> None:
    os.rename(root.parent, root.parent.parent / "away")
    assert not kernel.watcher.vouches()
    assert codes(kernel.until_true()) == ["vault-gone"]
    os.rename(root.parent.parent / "away", root.parent)
    assert codes(kernel.until_true()) == ["vault-back"]
    (root / "top.md").write_text("watched again")
    assert kernel.until_true()[0].paths == {"top.md"}
    assert kernel.watcher.vouches()


def test_another_folder_takes_the_place_of_the_vault(kernel: Following, root: Path) -> None:
    shutil.copytree(root, root.parent / "other")
    (root.parent / "other/new.md").write_text("new")
    os.rename(root, root.parent / "old")
    os.rename(root.parent / "other", root)
    assert not kernel.watcher.vouches()
    kernel.until_true()
    (root.parent / "old/top.md").write_text("no longer the vault's")
    kernel.rest()
    (root / "top.md").write_text("the vault's")
    assert kernel.until_true()[0].paths == {"top.md"}


def test_a_vault_that_is_deleted_and_made_anew(kernel: Following, root: Path) -> None:
    """The file system may give the new folder the number of the old one."""
    shutil.rmtree(root)
    root.mkdir()
    kernel.until_true()
    (root / "new.md").write_text("new")
    assert kernel.until_true()[0].paths == {"new.md"}


def test_an_observer_that_cannot_be_started_is_tried_again(
    follow: Follow, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "HAS_INOTIFY", False)
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)
    with follow(root) as following:
        with monkeypatch.context() as patched:
            patched.setattr(BaseObserver, "start", refused)
            os.rename(root, root.parent / "away")
            following.until_true()
            os.rename(root.parent / "away", root)
            while "not-watched" not in codes(following.copy.looks):
                following.take()
            following.take()
        while "watched" not in codes(following.copy.looks):
            following.take()
        (root / "new.md").write_text("new")
        following.until_true()
        assert "new.md" in following.copy.known


def refused(_: object) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_vault_that_is_not_there_yet(follow: Follow, root: Path) -> None:
    os.rename(root, root.parent / "away")
    with follow(root) as following:
        assert not following.copy.known
        os.rename(root.parent / "away", root)
        assert codes(following.until_true()) == ["vault-back"]


def test_polling_sees_what_no_event_tells(follow: Follow, root: Path) -> None:
    """Another name is made elsewhere after the start: the kernel tells nobody what is written through it."""
    with follow(root, poll_seconds=0.05) as following:
        os.link(root / "notes/a.md", root.parent.parent / "elsewhere.md")
        (root.parent.parent / "elsewhere.md").write_text("unseen")
        while following.copy.known != following.copy.truth():
            hints = following.take()
            assert hints.everything or hints.paths == {"notes/a.md"}  # from when a look has met its two names
        assert not following.watcher.vouches()


def test_a_file_system_without_events_is_polled_with_a_word_about_it(
    follow: Follow, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "remote_kind", lambda _: "nfs4")
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)
    with follow(root) as following:
        assert codes(following.copy.looks[:1]) == ["polling"]
        assert "nfs4" in following.copy.looks[0].notices[0].message
        assert not following.watcher.vouches()
        for _ in range(3):
            following.take()
        assert codes(following.copy.looks[1:]) == []
        assert all(look.everything for look in following.copy.looks)


def test_nobody_vouches_there_even_where_polling_is_turned_off(
    follow: Follow, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "remote_kind", lambda _: "nfs4")
    with follow(root, poll_seconds=0) as following:
        assert following.watcher.hints(0) is None
        assert not following.watcher.vouches()


LIMITED = """
import os, sys
from pathlib import Path
open("/proc/sys/user/max_inotify_" + sys.argv[2], "w").write(sys.argv[3])
from mdmem.index.watch import watcher as module
module.POLL_SECONDS = 0.05
root = Path(sys.argv[1])
codes = []
def seen(watcher, what):
    for hints in watcher:
        codes.extend(notice.code for notice in hints.notices)
        if hints.everything or what in hints.paths:
            return hints.everything
with module.Watcher(str(root)) as watcher:
    seen(watcher, "")
    (root / "notes/deep/er/c.md").write_text("x")
    assert seen(watcher, "notes/deep/er/c.md")
    assert not watcher.vouches()
    (root / "new/folder").mkdir(parents=True)
    (root / "new/folder/a.md").write_text("x")
    assert seen(watcher, "new/folder/a.md")
    open("/proc/sys/user/max_inotify_" + sys.argv[2], "w").write("100000")
    while "watched" not in codes:
        seen(watcher, "")
    watcher.hints(0)
    while not watcher.vouches():
        seen(watcher, "")
        watcher.hints(0)
    (root / "new/folder/a.md").write_text("y")
    while seen(watcher, "new/folder/a.md"):
        pass
    print(*codes)
"""


@pytest.mark.parametrize(("what", "limit"), [("watches", "3"), ("instances", "0")])
def test_an_exhausted_limit_is_said_and_outlived(root: Path, what: str, limit: str) -> None:
    """In a user namespace of its own, a process may have fewer watches, or none at all."""
    alone = ["unshare", "--user", "--map-root-user"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this system has no user namespaces for everyone")
    command = [*alone, sys.executable, "-c", LIMITED, str(root), what, limit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["not-watched", "watched"]
