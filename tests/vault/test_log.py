from __future__ import annotations

import os
import stat
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from mdmem.errors import LimitReached, PathRefused, StorageFailed, SystemFailing
from mdmem.vault import files, log
from mdmem.vault.local_store import LocalStore
from mdmem.vault.log import LogLine, find_start_near, lines, lines_back, whole_size
from tests.tables import cases

from .memory_store import MemoryStore
from .store_conformance import append

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mdmem.vault.log import Log
    from mdmem.vault.store import Store

PATH = "n/a.jsonl"
CHUNK = 16
# Lines of a length about a chunk, several and none, and an end that a crash tore.
LINES = st.lists(st.binary(max_size=3 * CHUNK).map(lambda line: line.replace(b"\n", b" ")), max_size=12)
TORN = st.binary(max_size=2 * CHUNK).map(lambda line: line.replace(b"\n", b" "))


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "CHUNK", CHUNK)
        yield


def log_of(data: bytes) -> Log:
    store = MemoryStore()
    store.put(PATH, data)
    with store.log(PATH) as opened:
        return opened


def written(found: list[bytes], torn: bytes = b"") -> bytes:
    return b"".join(line + b"\n" for line in found) + torn


def expected(found: list[bytes], most: int | None = None) -> list[LogLine]:
    told, start = [], 0
    for line in found:
        end = start + len(line) + 1
        told.append(LogLine(start, end, line if most is None or len(line) <= most else None))
        start = end
    return told


# -- reading ----------------------------------------------------------------------------------------------


@given(LINES, TORN, st.none() | st.integers(0, 3 * CHUNK))
def test_whole_lines_are_read_from_both_ends(found: list[bytes], torn: bytes, most: int | None) -> None:
    opened = log_of(written(found, torn))
    assert list(lines(opened, most=most)) == expected(found, most)
    assert list(lines_back(opened, most)) == expected(found, most)[::-1]
    assert whole_size(opened) == len(written(found))


@given(LINES, TORN, st.data())
def test_lines_are_read_from_where_one_begins(found: list[bytes], torn: bytes, data: st.DataObject) -> None:
    opened, told = log_of(written(found, torn)), expected(found)
    first = data.draw(st.integers(0, len(told)))
    start = told[first].start if first < len(told) else len(written(found))
    assert list(lines(opened, start)) == told[first:]


@given(st.lists(st.integers(1, 9) | st.none(), max_size=60), st.integers(0, 300))
def test_the_line_of_a_number_is_not_far_behind_where_it_is_looked_for(
    steps: list[int | None], number: int
) -> None:
    """A step is from one number to the next one; without one the line has no number."""
    found, numbers, last = [], [], 0
    for step in steps:
        last += step or 0
        numbers.append(last if step else None)
        found.append(b"%d|%s" % (last, b"x" * (last % 20)) if step else b"?" * 7)
    opened = log_of(written(found))

    def number_of(beginning: bytes) -> int | None:
        told, bar, _ = beginning.partition(b"|")
        return int(told) if bar and told.isdigit() else None

    start = find_start_near(opened, number, number_of, within=8)
    told = expected(found)
    assert start in {0, *(line.start for line in told)}
    before = [each for line, each in zip(told, numbers, strict=True) if line.start < start and each]
    assert all(each < number for each in before)


def test_a_log_that_became_shorter_while_it_is_read_ends_where_it_does(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"x" * CHUNK] * 10)
    with store.log(PATH) as opened:
        found = lines(opened)
        next(found)
        os.truncate(tmp_path / PATH, 0)
        assert len(list(found)) < 9
        assert len(list(lines_back(opened))) < 10


# -- what stands in the place of a log --------------------------------------------------------------------


def add(store: Store) -> None:
    append(store, PATH, [b"two"])


def set_aside(store: Store) -> None:
    with store.appending(PATH) as (opened,):
        opened.put_aside("n/.archive/a/1", [b"2"])


def obstacle(kind: str, path: Path, outside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "linked folder":
        path.parent.rmdir()
        path.parent.symlink_to(outside.parent)


@cases("kind", ["link", "folder", "pipe", "linked folder"])
@pytest.mark.parametrize("place", ["n/a.jsonl", ".mdmem/local/logs/x", "n/.archive/a/1"])
def test_nothing_that_is_no_file_is_followed(tmp_path: Path, kind: str, place: str) -> None:
    """In the place of a log, of the folder of locks, and of what was put aside."""
    store, outside = LocalStore(str(tmp_path / "v")), tmp_path / "out" / "profile"
    outside.parent.mkdir()
    outside.write_bytes(b"theirs")
    (tmp_path / "v").mkdir()
    if place != "n/a.jsonl":
        append(store, PATH, [b"one"])
    if place.startswith(".mdmem"):
        if kind in {"folder", "pipe", "link"}:  # the lock of a log has a name that a vault can come with
            (lock,) = (tmp_path / "v/.mdmem/local/logs").iterdir()
            lock.unlink()
            place = f".mdmem/local/logs/{lock.name}"
        else:
            (tmp_path / "v/.mdmem/local/logs").rename(tmp_path / "v/.mdmem/local/kept")
            (tmp_path / "v/.mdmem/local/logs").mkdir()
    obstacle(kind, tmp_path / "v" / place, outside)
    if kind == "pipe" and place.startswith(".mdmem"):
        append(store, PATH, [b"two"])  # a lock is a lock, whatever holds it
        return
    change = set_aside if place.startswith("n/.archive") else add
    with pytest.raises((PathRefused, StorageFailed)):
        change(store)
    assert outside.read_bytes() == b"theirs"
    assert sorted(each.name for each in outside.parent.iterdir()) == ["profile"]
    if place.startswith("n/.archive"):
        assert (tmp_path / "v" / PATH).read_bytes() == b"one\n"
        assert [each.name for each in (tmp_path / "v/n").iterdir() if each.suffix == ".new"] == []


def test_what_another_name_of_the_same_file_holds_is_not_written_to(tmp_path: Path) -> None:
    """A crash while a log is put aside leaves two names, and so does whoever makes a hard link."""
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"one"])
    (tmp_path / PATH).chmod(0o640)
    os.link(tmp_path / PATH, tmp_path / "other")
    append(store, PATH, [b"two"])
    assert (tmp_path / "other").read_bytes() == b"one\n"
    assert (tmp_path / PATH).read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE((tmp_path / PATH).stat().st_mode) == 0o640
    assert [each.name for each in (tmp_path / "n").iterdir()] == ["a.jsonl"]


# -- writing ----------------------------------------------------------------------------------------------


def fails(number: int, call: object = None, *, at: int = 1) -> object:
    """A call of the system that refuses the `at`-th time; the others go through."""
    count = iter(range(1, 1_000))

    def refuse(*arguments: object, **named: object) -> object:
        if next(count) == at:
            raise OSError(number, os.strerror(number))
        return call(*arguments, **named)  # type: ignore[operator]

    return refuse


REFUSALS = [
    (call, number, at)
    for call in ("write", "fsync", "open", "link", "rename", "unlink")
    for number, at in ((28, 1), (13, 2), (5, 3))  # no space, permission denied, input/output error
]


@cases("call, number, at", REFUSALS)
def test_a_call_that_the_system_refuses_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, at: int
) -> None:
    """An append raises and has done nothing, or has done it all; a log put aside is in one place or both."""
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"one"])
    for change in (add, set_aside):
        before = (tmp_path / PATH).read_bytes()
        monkeypatch.setattr(os, call, fails(number, getattr(os, call), at=at))
        try:
            change(store)
        except (PathRefused, StorageFailed, SystemFailing):
            monkeypatch.undo()
            held, aside = (tmp_path / PATH).read_bytes(), tmp_path / "n/.archive/a/1"
            assert held == before or (aside.exists() and aside.read_bytes() == before)
        monkeypatch.undo()
        assert [each.name for each in (tmp_path / "n").iterdir() if each.suffix == ".new"] == []


def test_what_another_program_wrote_meanwhile_is_not_cut_off_with_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"one"])

    def refuse(_: int) -> None:
        with open(tmp_path / PATH, "ab") as file:
            file.write(b"theirs\n")
        raise OSError(5, os.strerror(5))

    with store.appending(PATH) as (opened,):
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(SystemFailing):
            opened.append([b"two"])
        monkeypatch.undo()
    assert (tmp_path / PATH).read_bytes() == b"one\ntwo\ntheirs\n"


def test_lines_of_a_program_without_a_lock_are_counted_in_the_size(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    with store.appending(PATH) as (opened,):
        opened.append([b"one"])
        with open(tmp_path / PATH, "ab") as file:
            file.write(b"theirs\n")
        opened.append([b"two"])
        assert [line.data for line in lines(opened)] == [b"one", b"theirs", b"two"]


def test_a_line_that_is_written_while_a_log_is_put_aside_is_in_either_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step it comes before: a program that takes no lock has the log open all the time."""
    store, steps = LocalStore(str(tmp_path)), ("write", "fsync", "link", "rename")
    append(store, PATH, [b"one"])
    for number, step in enumerate(steps):
        line = b"foreign %d" % number
        with open(tmp_path / PATH, "ab", buffering=0) as foreign:

            def meanwhile(call: object, line: bytes, *arguments: object, **named: object) -> object:
                with pytest.MonkeyPatch.context() as once:
                    once.setattr(os, "write", WRITE)
                    thread = threading.Thread(target=foreign.write, args=(line + b"\n",))
                    thread.start()
                    thread.join()
                monkeypatch.undo()
                return call(*arguments, **named)  # type: ignore[operator]

            with store.appending(PATH) as (opened,):
                monkeypatch.setattr(os, step, partial(meanwhile, getattr(os, step), line))
                opened.put_aside(f"n/.old/{number}", [b"new"])
                monkeypatch.undo()
        kept = (tmp_path / PATH).read_bytes() + (tmp_path / f"n/.old/{number}").read_bytes()
        assert line in kept


WRITE = os.write


def test_a_log_comes_back_over_an_empty_file(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"one"])
    with store.appending(PATH) as (opened,):
        opened.put_aside("n/.old/1")
    (tmp_path / PATH).touch()
    with store.appending(PATH) as (opened,):
        opened.bring_back("n/.old/1")
    assert (tmp_path / PATH).read_bytes() == b"one\n"
    assert files.is_folder(str(tmp_path / "n/.old"))


# -- holes ------------------------------------------------------------------------------------------------

HUGE = 40 << 30  # bytes, of which a disk holds next to nothing


@pytest.mark.parametrize("behind", [[], [b"three"], [b"three", b"four"]])
def test_a_hole_is_a_line_without_data_and_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: list[bytes]
) -> None:
    monkeypatch.setattr(log, "CHUNK", 1 << 16)
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"one", b"two"])
    os.truncate(tmp_path / PATH, HUGE)
    append(store, PATH, behind)
    with store.log(PATH) as opened:
        told = list(lines(opened, most=10))
        assert list(lines_back(opened, 10)) == told[::-1]
        assert [line.data for line in told] == [b"one", b"two", *[None][: len(behind)], *behind]
        assert whole_size(opened) == (opened.size if behind else len(b"one\ntwo\n"))
        start = find_start_near(opened, 2, lambda line: 1 if line.startswith(b"one") else None, within=8)
        assert start < HUGE


def test_a_log_without_line_end_is_searched_for_one_in_a_bounded_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MOST_BACK", 10 * CHUNK)
    store = LocalStore(str(tmp_path))
    append(store, PATH, [b"one"])
    with open(tmp_path / PATH, "ab") as file:
        file.write(b"\0" * 20 * CHUNK)
    with store.log(PATH) as opened, pytest.raises(LimitReached, match="n/a"):
        whole_size(opened)
    append(store, PATH, [b"two"])
    with store.log(PATH) as opened, pytest.raises(LimitReached, match="n/a"):
        list(lines_back(opened, within=10 * CHUNK))


def test_lines_become_a_log_that_is_not_there(tmp_path: Path) -> None:
    for store in (LocalStore(str(tmp_path)), MemoryStore()):
        with store.appending(PATH) as (opened,):
            opened.put_aside("n/.old/1", [b"one", b"two"])
        with store.log(PATH) as found:
            assert [line.data for line in lines(found)] == [b"one", b"two"]
        assert store.names("n/.old") == []
