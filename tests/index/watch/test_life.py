"""The life of a watcher: start, wait, interrupt, fork, close."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from mdmem.errors import Usage
from mdmem.index.watch.watcher import Watcher

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.index.watch.hints import Hints

LIMIT = 20.0


def test_closing_ends_a_call_that_waits(root: Path) -> None:
    watcher = Watcher(str(root)).start()
    assert watcher.hints(LIMIT) is not None
    taken: list[Hints | None] = []
    thread = threading.Thread(target=lambda: taken.append(watcher.hints()))
    thread.start()
    watcher.close()
    thread.join(LIMIT)
    assert not thread.is_alive()
    assert taken == [None]
    assert not watcher.vouches()
    assert watcher.hints(0) is None


def test_a_loop_over_a_watcher_ends_when_it_is_closed(root: Path) -> None:
    with Watcher(str(root)) as watcher:
        for hints in watcher:
            assert hints.everything
            watcher.close()
        assert watcher.hints(0) is None


def test_descriptors_are_given_back(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with Watcher(str(root)) as watcher:
            watcher.hints(LIMIT)
            watcher.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_interrupt_ends_the_wait(root: Path) -> None:
    with Watcher(str(root)) as watcher:
        watcher.hints(LIMIT)
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            watcher.hints()
        timer.join()
        (root / "top.md").write_text("it still works")
        hints = watcher.hints(LIMIT)
        assert hints is not None
        assert hints.paths == {"top.md"}


def test_a_watcher_belongs_to_the_process_that_started_it(root: Path) -> None:
    code = (
        "import os, sys\n"
        "from mdmem.errors import Usage\n"
        "from mdmem.index.watch.watcher import Watcher\n"
        "watcher = Watcher(sys.argv[1]).start(); watcher.hints(9); watcher.hints(0)\n"
        "assert watcher.vouches()\n"
        "if os.fork() == 0:\n"
        "    assert not watcher.vouches()\n"
        "    try: watcher.hints(0)\n"
        "    except Usage: watcher.close(); os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 7\n"
        "assert watcher.vouches(); watcher.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(root)], check=True, timeout=60)


def test_a_watcher_that_was_not_started_says_so(root: Path) -> None:
    watcher = Watcher(str(root))
    assert not watcher.vouches()
    with pytest.raises(Usage, match="not started"):
        watcher.hints(0)
    watcher.close()
