"""What does not count wakes nobody; what counts a little is told apart."""

from __future__ import annotations

import os
import select
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.watch.conftest import Follow, Following


def is_silent(following: Following) -> bool:
    """Whether not one event has reached the queue: nothing has to wake up."""
    assert following.watcher._events is not None
    poll = select.poll()
    poll.register(following.watcher._events.fileno(), select.POLLIN)  # type: ignore[union-attr]
    return not poll.poll(0) and following.watcher.vouches()


def test_writes_of_the_own_index_and_reads_reach_nobody(kernel: Following, root: Path) -> None:
    for n in range(50):
        (root / f".mdmem/local/index/{n}").write_text("row")
        (root / ".mdmem/local/lock").touch()
        os.replace(root / f".mdmem/local/index/{n}", root / ".mdmem/local/index/segment")
    assert kernel.copy.truth() == kernel.copy.known
    assert list(os.walk(root))
    assert is_silent(kernel)


def test_what_is_no_memory_is_not_hinted_at(kernel: Following, root: Path) -> None:
    (root / "notes/a.txt").write_text("x")
    (root / "notes/.a.md.swp").write_text("x")
    (root / "notes/a.md~").write_text("x")
    (root / ".git").mkdir()
    (root / ".git/x.md").write_text("x")
    assert kernel.watcher.vouches()
    assert kernel.watcher.hints(0) is None


def test_a_change_of_mode_only_is_a_hint_and_changes_nothing(kernel: Following, root: Path) -> None:
    before = dict(kernel.copy.known)
    (root / "notes/a.md").chmod(0o600)
    assert kernel.take().paths == {"notes/a.md"}
    assert kernel.copy.known == before


def test_a_linked_folder_is_never_followed(follow: Follow, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    os.symlink(outside, root / "notes/link")
    with follow(root) as following:
        (outside / "secret.md").write_text("x")
        os.symlink(outside, root / "data/link")
        (outside / "secret.md").write_text("y")
        assert following.watcher.vouches()
        assert following.watcher.hints(0) is None


def test_a_folder_that_was_moved_out_is_watched_no_longer(kernel: Following, root: Path) -> None:
    os.rename(root / "notes", root.parent / "notes")
    kernel.until_true()
    (root.parent / "notes/deep/er/c.md").write_text("nobody's")
    assert is_silent(kernel)


def test_a_link_in_the_place_of_a_memory_is_hinted_at(kernel: Following, root: Path) -> None:
    os.symlink(root / "top.md", root / "notes/link.md")
    assert kernel.take().paths == {"notes/link.md"}


def test_settings_are_told_apart(kernel: Following, root: Path) -> None:
    for path in ("config.toml", "schemas/note.json", "templates/deep/a.md"):
        (root / ".mdmem" / path).parent.mkdir(exist_ok=True)
        (root / ".mdmem" / path).write_text("x")
        hints = kernel.take()
        assert hints.settings
        assert not hints.paths


def test_a_new_settings_folder_is_watched(kernel: Following, root: Path) -> None:
    shutil.rmtree(root / ".mdmem/schemas")
    (root / ".mdmem/schemas").mkdir()
    kernel.rest()
    (root / ".mdmem/schemas/x.json").write_text("{}")
    assert kernel.take().settings
