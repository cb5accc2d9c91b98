"""Rest: what is not used is closed, in its time, and can be used again."""

from __future__ import annotations

import threading
import time

from mdmem.index.rest import Rest

LIMIT = 30.0


def test_it_is_closed_so_many_seconds_after_its_use_and_no_sooner() -> None:
    closed: list[float] = []
    done = threading.Event()

    def close() -> None:
        closed.append(time.monotonic())
        done.set()

    rest = Rest(close, 0.05)
    before = time.monotonic()
    rest.used()
    assert done.wait(LIMIT)
    assert closed[-1] >= before + 0.05


def test_the_next_use_waits_anew_and_nothing_waits_meanwhile() -> None:
    done = threading.Event()
    others = {*threading.enumerate()}
    rest = Rest(done.set, 0.01)
    for _ in range(3):
        rest.used()
        waiting = {*threading.enumerate()} - others
        assert done.wait(LIMIT)
        for thread in waiting:
            thread.join(LIMIT)
            assert not thread.is_alive()
        done.clear()
