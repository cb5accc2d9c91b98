"""A log as anybody may have left it: what of it counts is the same from its start and from its end."""

from __future__ import annotations

import contextlib
import json
import os
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from mdmem.conversations.log import state as state_module
from mdmem.conversations.log.conversation import Conversation, faults
from mdmem.conversations.log.record import (
    LAST_NUMBER,
    LogHeader,
    LogRecord,
    Ranges,
    RunSummary,
    write_header,
    write_record,
)
from mdmem.errors import LimitReached, SessionConflict
from mdmem.facade.memory import Memory
from tests import speed
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mdmem.conversations.sessions import Sessions

HEADER = write_header(LogHeader("abc", "s"))


def message(seq: int, text: str = "") -> bytes:
    return write_record(LogRecord(seq=seq, messages=({"role": "user", "content": text or f"{seq}"},)))


def lines_to(last: int) -> list[bytes]:
    return [HEADER, *map(message, range(1, last + 1))]


def new_folder(tmp_path: Path) -> Path:
    """Where the logs of a new vault are."""
    (tmp_path / ".mdmem").mkdir()
    (tmp_path / ".mdmem/config.toml").touch()
    return tmp_path / "sessions"


def write(folder: Path, lines: Sequence[bytes], torn: bytes = b"") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "s.jsonl").write_bytes(b"".join(line + b"\n" for line in lines) + torn)


def seqs(folder: Path) -> list[int]:
    """What a new reader reads, whichever way it reads."""
    sessions = Memory(str(folder.parent)).sessions
    found = [each.seq for each in sessions.history("s")]
    assert [each.seq for each in sessions.history("s", limit=1_000)] == found
    with sessions.logs.opened("s") as opened:
        assert [each.record.seq for block in opened.blocks_back() for each in reversed(block)] == [
            record.seq for record in opened.records()
        ][::-1]
        for number in found:
            (told,) = opened.messages(number, number)
            assert opened.message(number) == told
        assert opened.state.live == len(found)
    return found


def goes_on(folder: Path) -> None:
    """Whatever stands there: the next message is read, with a number above all."""
    sessions = Memory(str(folder.parent)).sessions
    before = [each.seq for each in sessions.history("s")]
    number = sessions.add("s", "user", "goes on")
    assert seqs(folder) == [*before, number]
    assert Memory(str(folder.parent)).sessions.history("s", limit=1)[0].text == "goes on"


SUMMARY = b'{"seq":%d,"depth":1,"first":1,"last":%d,"messages":3%s'
JUNK: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"hello",
    "NUL bytes": b"\0" * 100,
    "invalid UTF-8": b'{"seq":4,"at":"","messages":[{"role":"\xff"}]}',
    "NaN": b'{"seq":4,"at":"","messages":[{"role":"user","content":NaN}]}',
    "an infinity": b'{"seq":4,"at":"","messages":[{"role":"user","content":1e999}]}',
    "thousands of digits": b'{"seq":4,"at":"","messages":[{"role":"user","content":' + b"9" * 5_000 + b"}]}",
    "deep nesting": b'{"seq":4,"at":"","messages":[{"role":"user","content":' + b"[" * 100_000,
    "a list": b'[{"seq":4}]',
    "a number that is none": b'{"seq":"4","at":""}',
    "a number twice": b'{"seq":4,"at":"","seq":5}',
    "a number too large": b'{"seq":%d,"at":""}' % (LAST_NUMBER + 1),
    "a number below": b'{"seq":2,"at":"","messages":[{"role":"user","content":"again"}]}',
    "a second header": write_header(LogHeader("other", "s", 1, 0)),
    "a header of another key": write_header(LogHeader("other", "t", 1, 0)),
    "messages that are none": b'{"seq":4,"at":"","messages":["user"]}',
    "messages as an object": b'{"seq":4,"at":"","messages":{"role":"user"}}',
    "no time": b'{"seq":4,"at":5,"messages":[{"role":"user","content":"x"}]}',
    "drop of no ranges": b'{"seq":4,"at":"","drop":[1,2],"live":1}',
    "drop of texts": b'{"seq":4,"at":"","drop":[["1","2"]],"live":1}',
    "drop backwards": b'{"seq":4,"at":"","drop":[[3,1]],"live":1}',
    "drop with fewer than none": b'{"seq":4,"at":"","drop":[[1,3]],"live":-4}',
    "a summary of itself": b'{"seq":4,"at":"","summary":%s' % SUMMARY % (4, 3, b',"of":[4]}}'),
    "a summary of what comes": b'{"seq":4,"at":"","summary":%s' % SUMMARY % (4, 9, b"}}"),
    "a summary of another line": b'{"seq":4,"at":"","summary":%s' % SUMMARY % (9, 3, b"}}"),
    "an amendment of a text": b'{"seq":4,"at":"","amend":{"1":"x"}}',
    "an amendment of no number": b'{"seq":4,"at":"","amend":{"x":{}}}',
    "an alias of a list": b'{"seq":4,"at":"","alias_of":["t"]}',
    "cursors of a list": b'{"seq":4,"at":"","cursors":[1]}',
    "a text of a number": b'{"seq":4,"at":"","text":5}',
    "values nested too deeply": b'{"seq":4,"at":"","messages":[{"a":%s}]}' % (b"[" * 900 + b"]" * 900),
    "a snapshot of a text": b'{"seq":4,"at":"","snapshot":"x"}',
    "a snapshot of a list": b'{"seq":4,"at":"","snapshot":[]}',
    "a snapshot of texts": b'{"seq":4,"at":"","snapshot":{"live":"3"}}',
    "a snapshot of odd ranges": b'{"seq":4,"at":"","snapshot":{"live":3,"dropped":[[1]]}}',
    "a snapshot of odd summaries": b'{"seq":4,"at":"","snapshot":{"live":3,"context":[{"seq":1}]}}',
    "a snapshot of odd amendments": b'{"seq":4,"at":"","snapshot":{"live":3,"amended":{"1":2}}}',
}


@cases("place, junk", product(["middle", "end"], JUNK))
def test_a_line_that_is_no_record_is_passed_over(tmp_path: Path, junk: str, place: str) -> None:
    folder = new_folder(tmp_path)
    at = 3 if place == "middle" else 4
    lines = lines_to(3)
    write(folder, [*lines[:at], JUNK[junk], *lines[at:]])
    assert seqs(folder) == [1, 2, 3]
    sessions = Memory(str(folder.parent)).sessions
    assert [(each.code, each.position.line) for each in sessions.check("s")] == [("not-a-record", at + 1)]
    goes_on(folder)


def test_what_is_deeply_nested_and_is_read_can_be_written_again(folder: Path) -> None:
    """Lists within lists, as others may have written: a vacuum writes them as they stand."""
    deep = b'{"seq":2,"at":"","messages":[{"role":"user","content":' + b"[" * 99 + b"]" * 99 + b"}]}"
    write(folder, [*lines_to(1), deep, message(3)])
    sessions = Memory(str(folder.parent)).sessions
    sessions.truncate("s", 2)
    sessions.vacuum("s")
    assert seqs(folder) == [2, 3]


@pytest.mark.parametrize("torn", [b"", b"{", HEADER[:20], HEADER, b"\0" * 5_000])
def test_what_a_crash_left_of_a_first_line_is_no_session(folder: Path, torn: bytes) -> None:
    write(folder, [], torn)
    assert seqs(folder) == []
    assert not Memory(str(folder.parent)).sessions.delete("s")
    goes_on(folder)


@pytest.mark.parametrize(
    "first",
    [
        b'{"role":"user","content":"of another program"}',
        b"[]",
        write_header(LogHeader("abc", "t")),
        write_header(LogHeader("../../x", "s")),  # a file is named after it
        HEADER.replace(b'"version":1', b'"version":"1"'),
        HEADER.replace(b'"vacuumed":0', b'"vacuumed":-1'),
        message(1),
    ],
)
def test_a_file_of_something_else_is_neither_read_nor_written(folder: Path, first: bytes) -> None:
    write(folder, [first, message(1)])
    sessions, before = Memory(str(folder.parent)).sessions, (folder / "s.jsonl").read_bytes()
    for verb in (sessions.history, sessions.clear, sessions.delete, sessions.pop, sessions.vacuum):
        with pytest.raises(SessionConflict):
            verb("s")
    with pytest.raises(SessionConflict):
        sessions.add("s", "user", "x")
    assert (folder / "s.jsonl").read_bytes() == before
    assert "session-conflict" in {each.code for each in sessions.check()}


def test_lines_of_junk_without_end_are_no_session(folder: Path) -> None:
    write(folder, [b"junk"] * 1_000)
    with pytest.raises(SessionConflict):
        Memory(str(folder.parent)).sessions.add("s", "user", "x")


def test_a_log_with_the_line_ends_of_windows_is_read(folder: Path) -> None:
    write(folder, [line + b"\r" for line in lines_to(3)])
    assert seqs(folder) == [1, 2, 3]
    goes_on(folder)
    write(folder, [b"\xef\xbb\xbf" + HEADER, *lines_to(3)[1:]])  # and with the mark that editors put there
    assert seqs(folder) == [1, 2, 3]


def test_a_log_that_was_added_to_itself_says_what_it_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cat log >> log` leaves it, or a merge that takes both sides; with and without snapshots."""
    for few in (1 << 20, 400):
        monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", few)
        (folder / "s.jsonl").unlink(missing_ok=True)
        sessions = Memory(str(folder.parent)).sessions
        for number in range(12):
            sessions.add("s", "user", f"{number}")
        sessions.truncate("s", 5)
        said, data = seqs(folder), (folder / "s.jsonl").read_bytes()
        for part in (
            data,
            data[: len(data) // 2].rpartition(b"\n")[0] + b"\n",
            data[-100:].partition(b"\n")[2],
        ):
            (folder / "s.jsonl").write_bytes(data + part)
            assert seqs(folder) == said
            goes_on(folder)


def test_numbers_that_are_missing_harm_nothing_else(folder: Path) -> None:
    """Somebody took lines out by hand."""
    lines = lines_to(9)
    write(folder, [*lines[:3], *lines[5:]])
    assert seqs(folder) == [1, 2, 5, 6, 7, 8, 9]
    sessions = Memory(str(folder.parent)).sessions
    assert [(each.code, each.position.line) for each in sessions.check()] == [("session-gap", 4)]
    goes_on(folder)


def test_a_snapshot_that_the_lines_contradict_is_reported(folder: Path) -> None:
    start = sum(len(line) + 1 for line in lines_to(3))
    said = b'{"seq":4,"at":"","snapshot":{"start":%d,"live":2,"text":"x"}}' % start
    write(folder, [*lines_to(3), said, message(5)])
    (finding,) = Memory(str(folder.parent)).sessions.check()
    assert (finding.code, finding.position.line, finding.severity) == ("snapshot-differs", 5, "error")
    assert "live, text" in finding.message


def test_a_snapshot_counts_only_where_it_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody takes a line out by hand: the lines that are left say what is there."""
    monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", 400)
    sessions = Memory(str(folder.parent)).sessions
    for number in range(12):
        sessions.add("s", "user", f"{number}")
    lines = (folder / "s.jsonl").read_bytes().splitlines()
    write(folder, [line for line in lines if b'"content":"2"' not in line])
    found = seqs(folder)
    assert len(found) == 11
    assert {"session-gap", "snapshot-differs"} == {
        each.code for each in Memory(str(folder.parent)).sessions.check()
    }
    goes_on(folder)


def test_a_line_that_is_too_long_is_refused_and_passed_over(folder: Path) -> None:
    config = folder.parent / ".mdmem/config.toml"
    Memory(str(folder.parent)).sessions.extend("s", [{"role": "user", "content": "x" * 900}] * 2)
    config.write_text("[sessions]\nmax_line_bytes = 500\n")
    assert seqs(folder) == []
    sessions = Memory(str(folder.parent)).sessions
    sessions.add("s", "user", "short")
    assert [each.text for each in sessions.history("s")] == ["short"]
    (finding,) = [each for each in sessions.check("s") if each.code == "not-a-record"]
    assert "500" in finding.message


def test_a_hole_in_a_file_is_a_line_that_is_passed_over(folder: Path) -> None:
    write(folder, lines_to(2))
    os.truncate(folder / "s.jsonl", 64 << 20)
    assert seqs(folder) == [1, 2]
    goes_on(folder)


def test_a_later_version_is_read_and_not_written(folder: Path) -> None:
    write(
        folder,
        [write_header(LogHeader("abc", "s", 2)), b'{"seq":1,"at":"","new":[1],"messages":[{"role":"u"}]}'],
    )
    sessions, before = Memory(str(folder.parent)).sessions, (folder / "s.jsonl").read_bytes()
    assert seqs(folder) == [1]
    sessions.alias("t", "s")
    changes: list[tuple[str, ...]] = [
        ("add", "s", "user", "x"),
        ("clear", "s"),
        ("alias", "s", "u"),
        ("add", "t", "user", "x"),
    ]
    for verb, *arguments in changes:
        with pytest.raises(SessionConflict, match="version 2"):
            getattr(sessions, verb)(*arguments)
    assert (folder / "s.jsonl").read_bytes() == before


def test_unknown_fields_are_passed_over_and_stay_through_a_vacuum(folder: Path) -> None:
    odd = b'{"seq":2,"at":"","later":{"a":1},"messages":[{"role":"user","content":"b"}]}'
    write(folder, [*lines_to(1), odd])
    sessions = Memory(str(folder.parent)).sessions
    sessions.truncate("s", 1)
    sessions.vacuum("s")
    assert odd in (folder / "s.jsonl").read_bytes()


def test_a_vacuum_takes_what_was_amended_with_its_message(sessions: Sessions, folder: Path) -> None:
    sessions.extend("s", [{"role": "user", "content": letter} for letter in "ab"])
    amended = {number: {"model_name": f"m{number}"} for number in (1, 2)}
    sessions.logs.commit("s", lambda _: (LogRecord(seq=0, amend=amended), None))
    sessions.truncate("s", 1)
    sessions.vacuum("s")
    cold = Memory(str(folder.parent)).sessions
    assert [cold.message("s", number).data["model_name"] for number in (1, 2)] == ["m1", "m2"]
    with cold.logs.opened("s") as opened:
        assert opened.state.amended == {2: {"model_name": "m2"}}


def condensed(seq: int, of: Sequence[int], last: int) -> bytes:
    summary = RunSummary(seq, len(of), 1, last, last, of=tuple(of), text="in short")
    return write_record(LogRecord(seq=seq, summary=summary))


def test_summaries_of_summaries_without_end_are_followed_once(folder: Path) -> None:
    """Each condenses both before it: followed one by one that were a number of 60 digits."""
    lines = [*lines_to(2), condensed(3, (), 2), condensed(4, (3,), 2)]
    lines += [condensed(seq, (seq - 2, seq - 1), 2) for seq in range(5, 300 if speed.is_all else 60)]
    write(folder, lines)
    sessions = Memory(str(folder.parent)).sessions
    sessions.add("s", "user", "x")
    sessions.pop("s")
    assert sessions.vacuum("s")
    assert sessions.list()[0].summaries == 1
    sessions.truncate("s", 1)
    assert sessions.list()[0].summaries == 0


def summarised(summary: RunSummary, _: Conversation) -> tuple[LogRecord, None]:
    return LogRecord(seq=0, summary=summary), None


def test_a_summary_is_in_the_context_while_all_its_messages_are_in_the_history(sessions: Sessions) -> None:
    """Where one of them goes, those that it condenses take its place."""
    sessions.extend("s", [{"role": "user", "content": each} for each in "abcdef"])
    made: list[tuple[int, int, int, tuple[int, ...]]] = [(7, 1, 2, ()), (8, 3, 4, ()), (9, 1, 4, (7, 8))]
    for seq, first, last, of in made:
        count = last - first + 1
        summary = RunSummary(seq, len(of), first, last, count, of=of, text=f"of {first} to {last}")
        sessions.logs.commit("s", partial(summarised, summary))

    def context() -> list[int]:
        with sessions.logs.reading("s") as opened:
            return [each.seq for each in opened.state.context]

    assert context() == [9]
    sessions.truncate("s", 5)
    assert context() == [8]
    sessions.vacuum("s")
    assert context() == [8]
    with sessions.logs.reading("s") as opened:
        found = opened.summary(8)
        assert found
        assert found.text == "of 3 to 4"
    sessions.truncate("s", 3)
    assert context() == []


def test_a_large_log_is_not_read_whole(
    sessions: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state, the last messages, and any one by its number, cost what they cost in a small one."""
    monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", 20_000)
    count = 20_000 if speed.is_all else 12_000
    said = [{"role": "user", "content": "one message of a long conversation " * 10}] * 500
    for _ in range(count // 500):
        sessions.extend("s", said)
    size = (folder / "s.jsonl").stat().st_size
    read: list[int] = []
    pread = os.pread

    def counted(descriptor: int, count: int, at: int) -> bytes:
        data = pread(descriptor, count, at)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    looks: list[Any] = [
        lambda cold: cold.history("s", limit=50),
        lambda cold: cold.message("s", count // 3),
        lambda cold: cold.history("s", after=count - 10),
        lambda cold: cold.summary("s"),
    ]
    for look in looks:
        read.clear()
        look(Memory(str(folder.parent)).sessions)
        assert sum(read) < size / 4
    read.clear()
    sessions.add_message("s", {"role": "user", "content": "x", "id": "1"})
    read.clear()
    sessions.add_message("s", {"role": "user", "content": "y", "id": "2"})  # what is known is not read again
    assert sum(read) < 300_000


def test_a_long_part_that_left_the_history_is_not_read_on_the_way_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = 6_000
    drop = LogRecord(seq=last + 1, drop=Ranges([(6, last - 5)]), live=10)
    said = [message(each, "x" * 500) for each in range(1, last + 1)]
    write(folder, [HEADER, *said, write_record(drop), *(message(last + each) for each in (2, 3))])
    whole, read = os.path.getsize(folder / "s.jsonl"), list[int]()
    pread = os.pread

    def counted(descriptor: int, count: int, at: int) -> bytes:
        data = pread(descriptor, count, at)
        read.append(len(data))
        return data

    sessions = Memory(str(folder.parent)).sessions
    with sessions.logs.reading("s") as conversation:
        monkeypatch.setattr(os, "pread", counted)
        back = [each.seq for each in conversation.messages_back()]
    assert back == [last + 3, last + 2, *range(last, last - 5, -1), 5, 4, 3, 2, 1]
    assert sum(read) < whole / 4


def test_faults_name_lines_from_one(folder: Path) -> None:
    write(folder, lines_to(2), b'{"seq":3')
    sessions = Memory(str(folder.parent)).sessions
    with sessions.logs.vault.store.log("sessions/s.jsonl") as log:
        assert [(each.position.line, each.code) for each in faults(log, 1_000)] == [(4, "not-a-record")]
    assert json.loads(HEADER)["key"] == "s"


# A log that came with a stranger's files: each of these took minutes, or gigabytes.


def test_a_log_that_drops_again_and_again_is_read_at_once(folder: Path) -> None:
    last = 20_000 if speed.is_all else 6_000
    drops = (f'{{"seq":{number},"drop":[[{number * 2},{number * 2}]],"live":3}}' for number in range(4, last))
    write(folder, [*lines_to(3), *(line.encode() for line in drops)])
    assert seqs(folder) == [1, 2, 3]


def test_a_context_of_thousands_of_summaries_is_assembled_within_the_budget(folder: Path) -> None:
    count = 6_000 if speed.is_all else 2_000
    summaries = (
        LogRecord(seq=count + at, summary=RunSummary(count + at, 0, at, at, 1, tokens=2, text=f"{at}"))
        for at in range(1, count)
    )
    write(folder, [*lines_to(count), *map(write_record, summaries)])
    found = Memory(str(folder.parent)).sessions.assemble("s", 500)
    assert found.tokens <= 500
    assert [each.seq for each in found.messages][-1] == count


def test_a_line_of_too_many_values_is_passed_over_and_never_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.conversations.log.record.MOST_VALUES", 1_000)
    said = {"role": "user", "content": ',[{"\\' * 1_000}  # a text may hold as many signs as it likes
    drop = b'{"seq":3,"drop":[%s]}' % b",".join([b"[1,1]"] * 1_000)
    write(folder, [*lines_to(2), drop, write_record(LogRecord(seq=3, messages=(said,)))])
    assert seqs(folder) == [1, 2, 3]
    sessions = Memory(str(folder.parent)).sessions
    assert [finding.position.line for finding in sessions.check("s")] == [4]
    assert [hit.seq for hit in sessions.grep("^[12]$", "s", regex=True).hits] == [2, 1]
    with pytest.raises(LimitReached, match="values"):
        sessions.add_message("s", {"role": "user", "content": "x", "data": [0] * 1_000})
    assert seqs(folder) == [1, 2, 3]


# -- wrong numbers, copied lines ----------------------------------------------------------------------------


def texts(folder: Path) -> list[str]:
    return [each.text for each in Memory(str(folder.parent)).sessions.history("s")]


WRONG = [*product([1, 4, 5, 8, 9], [1, 2, 6, 7, 9, 10, 99, 10**6, 10**9, LAST_NUMBER])]


@cases("place, wrong", WRONG[:: 1 if speed.is_all else 3])
def test_a_wrong_number_hides_no_other_line_and_is_mended(tmp_path: Path, place: int, wrong: int) -> None:
    folder = new_folder(tmp_path)
    lines = lines_to(9)
    lines[place] = message(wrong, f"{place}")
    write(folder, lines)
    others = [f"{number}" for number in range(1, 10) if number != place]
    assert [each for each in texts(folder) if each != f"{place}"] == others
    seqs(folder)
    sessions = Memory(str(folder.parent)).sessions
    sessions.check(fix=True)
    assert [each for each in texts(folder) if each != f"{place}"] == others
    assert f"{place}" in texts(folder)
    assert [finding for finding in sessions.check() if finding.code != "session-gap"] == []
    (kept,) = (folder / ".archive/s").glob("*") if wrong != place else [folder / "s.jsonl"]
    assert wrong == place or kept.read_bytes().splitlines() == lines
    goes_on(folder)


@pytest.mark.parametrize("wrong", [10**9, LAST_NUMBER])
def test_behind_a_number_that_is_far_too_large_others_go_on(folder: Path, wrong: int) -> None:
    write(folder, [*lines_to(2), message(wrong, "far")])
    sessions = Memory(str(folder.parent)).sessions
    assert sessions.add("s", "user", "3") == 3
    assert seqs(folder) == [1, 2, 3]
    assert [(each.code, each.position.line) for each in sessions.check()] == [("not-a-record", 4)]


def test_a_line_that_stands_twice_counts_once_and_is_mended(folder: Path) -> None:
    lines = lines_to(6)
    write(folder, [*lines[:4], lines[2], *lines[4:], *lines[3:]])
    assert seqs(folder) == [1, 2, 3, 4, 5, 6]
    sessions = Memory(str(folder.parent)).sessions
    assert {each.code for each in sessions.check()} == {"not-a-record"}
    assert sessions.check("s", fix=True) == []
    assert seqs(folder) == [1, 2, 3, 4, 5, 6]
    goes_on(folder)


def test_of_two_sides_that_were_joined_both_are_mended(folder: Path) -> None:
    """As a merge of two copies that went on leaves it: the same numbers say something else."""
    write(folder, [*lines_to(3), message(4, "a"), message(5, "b"), message(4, "c"), message(5, "d")])
    for last in (None, 10):
        found = Memory(str(folder.parent)).sessions.history("s", limit=last)
        assert [each.text for each in found] == ["1", "2", "3", "a", "b"]
    assert Memory(str(folder.parent)).sessions.message("s", 5).text == "b"
    assert Memory(str(folder.parent)).sessions.check(fix=True) == []
    assert texts(folder) == ["1", "2", "3", "a", "b", "c", "d"]


def test_what_is_mended_keeps_what_a_session_says(
    sessions: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_BYTES", 600)
    sessions.extend("s", [{"role": "user", "content": each} for each in "abcdefgh"])
    sessions.truncate("s", 6)
    sessions.set_summary("s", "in short")
    sessions.set_metadata("s", title="T", metadata={"a": [1]})
    sessions.logs.commit("s", lambda _: (LogRecord(seq=0, amend={4: {"model": "m"}}), None))
    summary = RunSummary(0, 0, 3, 4, 2, text="of c and d")
    number = sessions.logs.commit("s", lambda c: (LogRecord(seq=0, summary=summary), c.state.seq + 1))
    with open(folder / "s.jsonl", "ab") as file:
        file.write(b"junk\n")
    before, info = sessions.history("s"), sessions.info("s")
    assert sessions.check(fix=True) == []
    cold = Memory(str(folder.parent)).sessions
    assert cold.history("s") == before
    assert cold.expand("s", [number]).messages == tuple(before[:2])
    assert cold.message("s", 1).text == "a"
    after = cold.info("s")
    assert (after.title, after.metadata, after.summaries, after.messages) == ("T", {"a": [1]}, 1, 6)
    assert (after.created, cold.summary("s")) == (info.created, "in short")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.integers(1, 3)),
        st.tuples(st.just("truncate"), st.integers(0, 9)),
        st.tuples(st.just("number"), st.integers(1, 30) | st.sampled_from((99, 10**7, LAST_NUMBER))),
        st.tuples(st.just("two"), st.integers(1, 30)),
        st.tuples(st.just("copy"), st.integers(0, 40)),
        st.tuples(st.sampled_from(("itself", "junk", "torn", "vacuum")), st.just(0)),
    ),
    max_size=12 if speed.is_all else 6,
)


def damage(sessions: Sessions, log: Path, step: str, count: int) -> None:
    """Do what a program does, or somebody who writes into its log."""
    if step == "extend":
        sessions.extend("s", [{"role": "user", "content": f"{log.stat().st_size} {n}"} for n in range(count)])
    elif step in {"truncate", "vacuum"}:
        getattr(sessions, step)("s", *[count][: step == "truncate"])
    else:
        data = log.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        said = tuple(
            {"role": "user", "content": f"{step} {len(data)} {n}"} for n in range(1 + (step == "two"))
        )
        lines = whole.splitlines(keepends=True)
        added = {
            "copy": lines[count % len(lines)],
            "itself": whole,
            "junk": b'["\xff"]\n',
            "torn": b'{"seq":9,"at":"2026',
        }.get(step, write_record(LogRecord(seq=count, messages=said)) + b"\n")
        log.write_bytes(data + added)


def told(sessions: Sessions) -> tuple[Any, ...]:
    """What a reader sees of a session, whichever way it reads."""
    found = sessions.history("s")
    assert sessions.history("s", limit=10**6) == found
    assert sessions.history("s", limit=2) == found[-2:]
    for each in found:
        assert sessions.message("s", each.seq) == each
    with sessions.logs.opened("s") as opened:
        return found, opened.state.snapshot, opened.state.seq, opened.state.live


@settings(
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
@example([("number", 9), ("number", 3), ("extend", 2)])
@example([("extend", 3), ("itself", 0), ("number", 4), ("copy", 2)])
def test_property_two_readers_agree_on_any_log(vault_root: Path, steps: list[tuple[str, int]]) -> None:
    """One that read at each step, one that reads from a snapshot, and one that reads from the start."""
    log = vault_root / "sessions/s.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_module, "SNAPSHOT_BYTES", 400)
        patch.setattr(state_module, "_TIMES_THE_LAST", 1)
        warm = Memory(str(vault_root)).sessions
        warm.delete("s")
        warm.add("s", "user", "first")
        for step, count in steps:
            with contextlib.suppress(SessionConflict):  # there is no larger number
                damage(warm, log, step, count)
            seen = told(warm)
            assert told(Memory(str(vault_root)).sessions) == seen
            with pytest.MonkeyPatch.context() as other:
                other.setattr(Conversation, "_find_base", lambda *_, **__: 0)
                assert told(Memory(str(vault_root)).sessions) == seen
        said = [each.text for each in warm.history("s")]
        warm.check(fix=True)
        after = [each.text for each in warm.history("s")]
        assert [each for each in after if each in said] == said
        assert {each.code for each in warm.check()} <= {"session-gap"}
        assert told(Memory(str(vault_root)).sessions) == told(warm)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40), st.integers(1, 60) | st.sampled_from((10**7, LAST_NUMBER)))
def test_property_a_number_that_was_changed_hides_no_other_message(
    vault_root: Path, place: int, wrong: int
) -> None:
    """In a log with snapshots, whichever line it is: all others are read, and are the same to all readers."""
    log = vault_root / "sessions/s.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_module, "SNAPSHOT_BYTES", 400)
        patch.setattr(state_module, "_TIMES_THE_LAST", 1)
        sessions = Memory(str(vault_root)).sessions
        sessions.delete("s")
        for number in range(30):
            sessions.add("s", "user", f"{number}")
        lines = log.read_bytes().splitlines(keepends=True)
        place = min(place, len(lines) - 1)
        number = json.loads(lines[place])["seq"]
        lines[place] = lines[place].replace(b'{"seq":%d,' % number, b'{"seq":%d,' % wrong)
        log.write_bytes(b"".join(lines))
        others = [
            each["messages"][0]["content"] for line in lines if "messages" in (each := json.loads(line))
        ]
        own = json.loads(lines[place]).get("messages", [{"content": ""}])[0]["content"]
        cold = Memory(str(vault_root)).sessions
        found = [each.text for each in cold.history("s")]
        assert [each for each in found if each != own] == [each for each in others if each != own]
        assert [each.text for each in cold.history("s", limit=100)] == found
        cold.check(fix=True)
        mended = [each.text for each in cold.history("s")]
        assert [each for each in mended if each != own] == [each for each in others if each != own]
        assert sorted(mended, key=int) == [f"{number}" for number in range(30)]
