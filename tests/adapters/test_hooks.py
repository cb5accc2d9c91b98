"""Work beside: what another process finds, and what happens when it cannot."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from mdmem.adapters.hooks import Beside


def test_the_result_comes_from_another_process() -> None:
    number, text = Beside(lambda: (os.getpid(), "ü" * 1_000_000)).result()
    assert number != os.getpid()
    assert text == "ü" * 1_000_000


def test_both_processes_work_at_the_same_time() -> None:
    reader, writer = os.pipe()
    found = Beside(lambda: os.read(reader, 1))  # ends only when this process goes on
    os.write(writer, b"x")
    assert found.result() == b"x"
    os.close(reader)
    os.close(writer)


def test_what_fails_there_is_done_here_and_raised() -> None:
    here = os.getpid()

    def work() -> int:
        if os.getpid() != here:
            raise ValueError("there")
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        Beside(work).result()


def test_when_the_process_is_killed_the_work_is_done_here() -> None:
    here = os.getpid()

    def work() -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    assert Beside(work).result() == here


def test_an_alarm_ends_both_processes() -> None:
    def ring(_number: int, _frame: object) -> None:
        raise TimeoutError("rung")

    before = signal.signal(signal.SIGALRM, ring)
    reader, writer = os.pipe()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        found = Beside(lambda: os.read(reader, 1))  # nobody writes
        with pytest.raises(TimeoutError, match="rung"):
            found.result()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert os.waitstatus_to_exitcode(os.waitpid(found._process, 0)[1]) == 0
    os.close(reader)
    os.close(writer)


def test_what_the_parent_has_still_to_print_is_printed_once(capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("once")
    assert Beside(lambda: 1).result() == 1
    assert capfd.readouterr().out == "once"


def test_no_process_and_no_pipe_is_left() -> None:
    before = set(os.listdir("/dev/fd"))
    Beside(lambda: 1).result()
    assert set(os.listdir("/dev/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
