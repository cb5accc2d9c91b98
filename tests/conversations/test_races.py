"""Several writers and readers of one log at once, and what comes after something was taken away."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from mdmem.conversations.log.record import LogRecord, RunSummary, read_header
from mdmem.facade.memory import Memory
from tests import speed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem.conversations.sessions import Sessions

PROCESSES, TIMES = (8, 50) if speed.is_all else (2, 20)
WRITER = """
import sys
from mdmem.facade.memory import Memory
sessions = Memory(sys.argv[1]).sessions
for number in range(int(sys.argv[3])):
    sessions.add("s", "user", f"{sys.argv[2]} {number}")
"""
VACUUMS = """
import sys
from mdmem.facade.memory import Memory
sessions = Memory(sys.argv[1]).sessions
for number in range(40):
    sessions.extend("s", [{"role": "user", "content": f"{number} {part}"} for part in "abcd"])
    sessions.truncate("s", 2)
    sessions.vacuum("s")
print("done")
"""
ALIASES = """
import sys
from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory
sessions = Memory(sys.argv[1]).sessions
for number in range(20):
    try:
        sessions.alias(*(f"{name}{number}" for name in sys.argv[2:]))
    except MdmemError:
        pass
"""

# Says when it begins and when a model is asked, which answers when it is told to.
COMPACTS = """
import sys
from mdmem.facade.memory import Memory
def ask(*_):
    print("asked", flush=True)
    sys.stdin.readline()
    return "short"
print("begins", flush=True)
done = Memory(sys.argv[1]).sessions.compact("s", generator=ask)
print(len(done.summaries), done.discarded, flush=True)
"""


def program(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def id_of(folder: Path, key: str) -> str:
    header = read_header((folder / f"{key}.jsonl").read_bytes().splitlines()[0])
    assert header
    return header.log


def test_a_cleared_session_shows_no_summary(sessions: Sessions) -> None:
    """Neither the text that was set, nor a summary of its messages; also where another process reads it."""
    sessions.extend("s", [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    sessions.set_summary("s", "in short")
    summary = RunSummary(4, 0, 1, 2, 2, text="in short")
    sessions.logs.commit("s", lambda _: (LogRecord(seq=0, summary=summary), None))
    assert sessions.list()[0].summaries == 1
    sessions.clear("s")
    for other in (sessions, Memory(sessions.logs.vault.root).sessions):
        assert (other.history("s"), other.summary("s"), other.list()[0].summaries) == ([], "", 0)
    sessions.add("s", "user", "c")
    assert sessions.list()[0].summaries == 0


TAKEN: dict[str, Callable[[Sessions], Any]] = {
    "popped": lambda sessions: sessions.pop("s"),
    "truncated": lambda sessions: sessions.truncate("s", 0),
    "cleared": lambda sessions: sessions.clear("s"),
    "replaced": lambda sessions: sessions.set_history("s", [{"role": "user", "content": "x"}]),
    "deleted": lambda sessions: sessions.delete("s"),
    "vacuumed": lambda sessions: (sessions.pop("s"), sessions.vacuum("s")),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_a_message_that_was_taken_out_can_be_added_again_by_its_id(sessions: Sessions, taken: str) -> None:
    said = {"role": "user", "content": "a", "id": "m1"}
    sessions.add_message("s", said)
    TAKEN[taken](sessions)
    assert sessions.add_message("s", {**said, "content": "b"}) is not None
    assert sessions.history("s")[-1].text == "b"
    assert len([each for each in sessions.history("s") if each.id == "m1"]) == 1


def test_a_session_that_is_made_again_has_a_new_log_id(sessions: Sessions, folder: Path) -> None:
    sessions.add("s", "user", "a")
    old = id_of(folder, "s")
    sessions.delete("s")
    sessions.add("s", "user", "b")
    assert id_of(folder, "s") != old
    assert [each.text for each in Memory(str(folder.parent)).sessions.history("s")] == ["b"]


def test_a_session_that_another_process_made_again_is_read_from_its_start(
    sessions: Sessions, folder: Path
) -> None:
    sessions.extend("s", [{"role": "user", "content": "a"}] * 3)
    other = Memory(str(folder.parent)).sessions
    other.delete("s")
    other.add("s", "user", "b")
    assert [each.text for each in sessions.history("s")] == ["b"]
    assert sessions.add("s", "user", "c") == 2


@pytest.mark.parametrize("step", ["mdmem.vault.files.write_new", "os.link", "os.rename"])
def test_a_foreign_line_during_a_vacuum_is_in_the_log_or_the_archive(
    sessions: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It comes right before a step of the vacuum and right behind it, from a process that takes no lock."""
    sessions.extend("s", [{"role": "user", "content": "a"}] * 3)
    sessions.truncate("s", 1)
    module, _, name = step.rpartition(".")
    call = getattr(sys.modules[module], name)

    def foreign(said: str) -> None:
        subprocess.run(["sh", "-c", f"echo {said} >> {folder / 's.jsonl'}"], check=True)

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        foreign("before")
        result = call(*arguments, **named)
        foreign("behind")
        return result

    monkeypatch.setattr(step, meanwhile)
    assert sessions.vacuum("s")
    (archived,) = (folder / ".archive/s").iterdir()
    kept = (folder / "s.jsonl").read_bytes() + archived.read_bytes()
    assert b"before\n" in kept
    assert b"behind\n" in kept
    sessions.add("s", "user", "b")
    assert [each.text for each in Memory(str(folder.parent)).sessions.history("s")] == ["a", "b"]


def test_every_message_of_several_processes_is_kept(sessions: Sessions, folder: Path) -> None:
    writers = [program(WRITER, folder.parent, name, TIMES) for name in range(PROCESSES)]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    found = sessions.history("s")
    assert [each.seq for each in found] == list(range(1, PROCESSES * TIMES + 1))
    assert set(Counter(each.text.split()[0] for each in found).values()) == {TIMES}
    for name in range(PROCESSES):
        own = [each.text for each in found if each.text.startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(TIMES)]
    assert sessions.check() == []


def test_a_reader_during_vacuums_sees_an_old_state_or_a_new_one(sessions: Sessions, folder: Path) -> None:
    """Warm or cold: never a part of a commit, and never less than was there."""
    writer = program(VACUUMS, folder.parent)
    allowed = {
        (),
        *(tuple(f"{n} {part}" for part in "cd") for n in range(40)),
        *((f"{n - 1} c", f"{n - 1} d", *(f"{n} {part}" for part in "abcd")) for n in range(1, 40)),
        tuple(f"0 {part}" for part in "abcd"),
    }
    looks = 0
    while writer.poll() is None or not looks:
        for reader in (sessions, Memory(str(folder.parent)).sessions):
            assert tuple(each.text for each in reader.history("s")) in allowed
            assert tuple(each.text for each in reader.history("s", limit=6)) in allowed
            looks += 1
    assert writer.communicate()[0] == b"done\n"
    assert [each.text for each in sessions.history("s")] == ["39 c", "39 d"]
    assert [each.name for each in folder.iterdir() if each.name.endswith(".new")] == []


def test_aliases_in_both_directions_wait_for_each_other_in_one_order(
    sessions: Sessions, folder: Path
) -> None:
    for number in range(20):
        sessions.add(f"a{number}", "user", "a")
    both = [program(ALIASES, folder.parent, *names) for names in ("ab", "ba")]
    for one in both:
        one.communicate()
        assert one.returncode == 0
    for number in range(20):
        ends = {sessions.resolve(f"a{number}"), sessions.resolve(f"b{number}")}
        assert len(ends) == 1  # one is the alias of the other, and it goes round in no circle
        assert [each.text for each in sessions.history(f"b{number}")] == ["a"]


def test_threads_share_what_was_read_without_seeing_half_of_a_change(sessions: Sessions) -> None:
    """One reads while others add and drop: each look is of one state."""
    done = threading.Event()
    failures: list[object] = []

    def write() -> None:
        for _ in range(40):
            sessions.extend("s", [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
            sessions.truncate("s", 2)

    def read() -> None:
        while not done.is_set():
            said = [each.text for each in sessions.history("s")]
            if said not in ([], ["a", "b"], ["a", "b"] * 2):
                failures.append(said)

    reader, writer = threading.Thread(target=read), threading.Thread(target=write)
    reader.start()
    writer.start()
    writer.join()
    done.set()
    reader.join()
    assert failures == []
    assert os.listdir(sessions.logs.vault.root + "/sessions") == ["s.jsonl"]


def compacting(sessions: Sessions) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Two programs that compact one session at once: a model was asked by the first, the second has begun."""
    sessions.extend("s", [{"role": "user", "content": f"{number} " + "x" * 400} for number in range(40)])
    found = []
    for expected in ([b"begins\n", b"asked\n"], [b"begins\n"]):
        one = program(COMPACTS, sessions.logs.vault.root)
        assert one.stdout
        assert [one.stdout.readline() for _ in expected] == expected
        found.append(one)
    return found[0], found[1]


def test_of_two_compactions_at_once_one_asks_a_model(sessions: Sessions) -> None:
    first, second = compacting(sessions)
    assert first.communicate(b"go\n")[0] == b"1 0\n"
    assert second.communicate(b"go\n")[0] == b"0 0\n"
    assert sessions.list()[0].summaries == 1


def test_a_compaction_that_is_killed_holds_up_no_other(sessions: Sessions) -> None:
    first, second = compacting(sessions)
    first.kill()
    first.communicate()
    assert second.communicate(b"go\n")[0] == b"asked\n1 0\n"
    assert sessions.list()[0].summaries == 1
