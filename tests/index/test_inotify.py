"""The kernel's queue of file events."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from mdmem.index.inotify import Event, Mask, Queue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def queue() -> Iterator[Queue]:
    queue = Queue()
    yield queue
    queue.close()


def test_an_event_is_there_when_the_call_that_made_it_returns(queue: Queue, tmp_path: Path) -> None:
    watch = queue.add(str(tmp_path), Mask.IN_CREATE)
    for name in ("a", "ü", "x" * 255):
        (tmp_path / name).mkdir()
        assert queue.read() == [Event(watch, Mask.IN_CREATE | Mask.IN_ISDIR, name)]
    assert queue.read() == []


def test_a_name_that_is_not_utf_8_is_kept(queue: Queue, tmp_path: Path) -> None:
    queue.add(str(tmp_path), Mask.IN_CREATE)
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    assert [os.fsencode(event.name) for event in queue.read()] == [b"\xff"]


def test_many_events_are_read_at_once(queue: Queue, tmp_path: Path) -> None:
    queue.add(str(tmp_path), Mask.IN_MOVED_FROM | Mask.IN_MOVED_TO)
    names = [letter * 200 for letter in "ab"]
    (tmp_path / names[0]).touch()
    for n in range(3000):
        os.rename(tmp_path / names[n % 2], tmp_path / names[1 - n % 2])
    assert [event.name for event in queue.read()] == [*names, *names[::-1]] * 1500


def test_watches_of_one_folder_are_one_and_add_up(queue: Queue, tmp_path: Path) -> None:
    watch = queue.add(str(tmp_path), Mask.IN_CREATE)
    assert queue.add(str(tmp_path), Mask.IN_DELETE) == watch
    (tmp_path / "a").touch()
    (tmp_path / "a").unlink()
    assert [event.bits for event in queue.read()] == [Mask.IN_CREATE, Mask.IN_DELETE]


def test_what_is_not_there_cannot_be_watched(queue: Queue, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        queue.add(str(tmp_path / "nothing"), Mask.IN_CREATE)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=os.strerror(errno.ENOTDIR)):
        queue.add(str(tmp_path / "file"), Mask.IN_CREATE | Mask.IN_ONLYDIR)


def test_a_removed_watch_is_silent(queue: Queue, tmp_path: Path) -> None:
    watch = queue.add(str(tmp_path), Mask.IN_CREATE)
    queue.remove(watch)
    queue.remove(watch)
    (tmp_path / "a").touch()
    assert [event.bits for event in queue.read()] == [Mask.IN_IGNORED]


def test_a_child_process_does_not_inherit_it(queue: Queue) -> None:
    assert not os.get_inheritable(queue.fileno())
