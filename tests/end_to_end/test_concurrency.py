"""Several processes that write the same memories at once: every write is kept, exactly once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import pytest

from mdmem.facade.memory import Memory
from tests.speed import is_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKER = Path(__file__).with_name("writer_worker.py")
SHARED = "notes/shared.md"
FILES = 20
# How often each of some processes writes, and of fewer; and for how long others look at it.
MANY, SOME, EDITED, GENERATIONS, KILLS = (50, 25, 150, 25, 6) if is_all else (8, 5, 24, 5, 2)


class Job(NamedTuple):
    """What a process is to do, and how often; see `writer_worker.py`."""

    how: str
    name: str
    times: int


class Ended(NamedTuple):
    """How a process ended: exit code, last line that it said, and standard error."""

    code: int
    last: str
    errors: str


@pytest.fixture
def vault_root(swift: Path) -> Path:
    """A vault where a flush takes no time: the processes meet more often, and wait for each other only."""
    write(swift, "memories/.mdmem/config.toml", "")
    return swift / "memories"


def each(how: str, processes: int, times: int) -> list[Job]:
    return [Job(how, f"w{number}", times) for number in range(processes)]


class Process:
    """One that does a job: a fork of the worker."""

    def __init__(self) -> None:
        (stdin, into), (out, stdout), (errors, stderr) = os.pipe(), os.pipe(), os.pipe()
        self.theirs = stdin, stdout, stderr
        self.stdin, self.stdout, self.stderr = os.fdopen(into, "w"), os.fdopen(out), os.fdopen(errors)
        self.pid = 0

    def running(self) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 0)
            return True
        return False

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        for end in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):
                end.close()


class Processes(NamedTuple):
    """Some processes, and what says how each has ended."""

    every: Sequence[Process]
    codes: IO[str]

    def ended(self) -> list[Ended]:
        """How they ended, once they have."""
        said = [(process.stdout.read(), process.stderr.read()) for process in self.every]
        codes = dict(json.loads(self.codes.readline()) for _ in self.every)
        return [
            Ended(codes[process.pid], (out.split() or [""])[-1], errors)
            for process, (out, errors) in zip(self.every, said, strict=True)
        ]


class Launcher:
    """A process whose forks do jobs."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, str(WORKER), str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    @contextmanager
    def started(self, root: Path, jobs: Sequence[Job]) -> Iterator[Processes]:
        """The processes, all ready, and none at work before the `with` block begins."""
        with ExitStack() as stack:
            processes = [Process() for _ in jobs]
            for process in processes:
                stack.callback(process.close)
            told, telling = os.pipe()
            codes = stack.enter_context(os.fdopen(told))
            theirs = [*(descriptor for process in processes for descriptor in process.theirs), telling]
            socket.send_fds(self._orders, [json.dumps([str(root), jobs]).encode()], theirs)
            for descriptor in theirs:
                os.close(descriptor)
            for process, pid in zip(processes, json.loads(codes.readline()), strict=True):
                process.pid = pid
                stack.callback(process.kill)
            for process in processes:
                assert process.stdout.readline() == "ready\n"
            for process in processes:
                process.stdin.write("\n")
                process.stdin.flush()
            yield Processes(processes, codes)

    def run(self, root: Path, jobs: Sequence[Job]) -> None:
        """Let the processes do their jobs; none may be refused."""
        with self.started(root, jobs) as processes:
            found = processes.ended()
        assert "\n".join(process.errors for process in found if process.code) == ""
        assert [process.last for process in found] == [str(job.times - 1) for job in jobs]

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with closing(Launcher()) as made:
        yield made


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def lines(root: Path) -> Counter[str]:
    return Counter((root / SHARED).read_text(encoding="utf-8").splitlines())


def kept(memory: Memory) -> str:
    """Everything that the shared memory ever held, as far as its history can bring it back."""
    digests = {d for entry in memory.history(SHARED) for f in entry.files for d in (f.before, f.after) if d}
    contents = filter(None, map(memory.vault.content, digests))
    return b"\n".join(contents).decode()


def assert_clean(root: Path) -> None:
    staging = root / ".mdmem" / "local" / "staging"
    assert list(staging.iterdir()) == []
    assert Memory(str(root)).doctor().findings == ()


# README: **Nothing is lost**: eight processes that edit one file keep all of their edits …
def test_appends_to_one_file_are_all_kept(vault_root: Path, launcher: Launcher) -> None:
    jobs = each("append", 8, MANY)
    launcher.run(vault_root, jobs)
    assert lines(vault_root) == Counter(f"{job.name}-{n}" for job in jobs for n in range(MANY))
    assert len(Memory(str(vault_root)).history(SHARED)) == 8 * MANY
    assert_clean(vault_root)


def test_replacements_in_one_line_are_all_made(vault_root: Path, launcher: Launcher) -> None:
    jobs = each("replace", 8, MANY)
    write(vault_root, SHARED, " ".join(f"<{job.name}:0>" for job in jobs) + "\n")
    launcher.run(vault_root, jobs)
    assert lines(vault_root) == Counter([" ".join(f"<{job.name}:{MANY}>" for job in jobs)])
    assert len(Memory(str(vault_root)).history(SHARED)) == 8 * MANY
    assert_clean(vault_root)


def test_what_a_program_without_locks_appends_is_kept(vault_root: Path, launcher: Launcher) -> None:
    write(vault_root, SHARED, "")
    ours, plain = each("append", 7, MANY), Job("plain", "editor", EDITED)
    launcher.run(vault_root, [*ours, plain])
    found, history = lines(vault_root), kept(Memory(str(vault_root)))
    theirs = [f"editor-{n}" for n in range(EDITED)]
    assert [name for name in theirs if not found[name] and f"{name}\n" not in history] == []
    assert set(found) <= {*theirs, *(f"{job.name}-{n}" for job in ours for n in range(MANY))}
    assert_once(found)
    assert_clean(vault_root)


def test_a_program_without_locks_meets_replacements_in_one_line(vault_root: Path, launcher: Launcher) -> None:
    ours, plain = each("mark", 7, MANY), Job("plain", "editor", EDITED)
    write(vault_root, SHARED, " ".join(f"<{job.name}:0>" for job in ours) + "\n")
    launcher.run(vault_root, [*ours, plain])
    found, history = lines(vault_root), kept(Memory(str(vault_root)))
    theirs = [f"editor-{n}" for n in range(EDITED)]
    assert [name for name in theirs if not found[name] and f"{name}\n" not in history] == []
    (marks,) = [line for line in found if line not in theirs]
    assert re.fullmatch(" ".join(rf"<{job.name}:\d+>" for job in ours), marks)
    assert_once(found)
    assert_clean(vault_root)


def assert_once(found: Counter[str]) -> None:
    """Each line stands once.

    But the other program may read ours in the instant before it is taken back, because that program had saved
    a moment earlier, and save again later. Then ours, which is written anew, stands twice: nobody can tell.
    """
    assert sum(found.values()) - len(found) <= 1


def test_merges_into_one_json_memory_are_all_made(vault_root: Path, launcher: Launcher) -> None:
    jobs = each("merge", 4, SOME)
    launcher.run(vault_root, jobs)
    content = json.loads(Memory(str(vault_root)).working.get(resource="shared"))
    wanted = {f"{job.name}-{n}": n for job in jobs for n in range(SOME)}
    assert content == wanted | {job.name: {"last": SOME - 1} for job in jobs}
    assert_clean(vault_root)


def test_preferences_of_different_keys_are_all_set(vault_root: Path, launcher: Launcher) -> None:
    jobs = each("prefer", 4, SOME)
    launcher.run(vault_root, jobs)
    found = {p.name: p.value for p in Memory(str(vault_root)).preferences.list()}
    assert found == {f"ui/{job.name}-{n}": n for job in jobs for n in range(SOME)}
    assert_clean(vault_root)


def test_each_confirmation_of_one_preference_counts(vault_root: Path, launcher: Launcher) -> None:
    launcher.run(vault_root, each("confirm", 4, SOME))
    memory = Memory(str(vault_root))
    assert [(p.name, p.value) for p in memory.preferences.list()] == [("ui/theme", "dark")]
    assert memory.preferences.get("ui", "theme").strength == pytest.approx(1, abs=0.001)
    assert len(memory.history("preferences/ui/theme.md")) == 4 * SOME
    assert_clean(vault_root)


def test_the_last_of_many_values_of_one_preference_stands(vault_root: Path, launcher: Launcher) -> None:
    jobs = each("contradict", 4, SOME)
    launcher.run(vault_root, jobs)
    (found,) = Memory(str(vault_root)).preferences.list()
    assert found.value in {f"{job.name}-{SOME - 1}" for job in jobs}
    assert_clean(vault_root)


def test_of_several_that_move_one_file_one_wins(vault_root: Path, launcher: Launcher) -> None:
    write(vault_root, SHARED, "Where am I?\n")
    with launcher.started(vault_root, each("move", 6, 1)) as processes:
        found = processes.ended()
    winners = [number for number, process in enumerate(found) if process.code == 0]
    assert len(winners) == 1
    losers = [process for process in found if process.code]
    assert {process.last for process in losers} <= {"memory-not-found", "conflict"}
    assert all(process.errors.startswith(SHARED) for process in losers)
    files = [path.name for path in (vault_root / "notes").iterdir()]
    assert files == [f"w{winners[0]}.md"]
    assert (vault_root / "notes" / files[0]).read_text() == "Where am I?\n"
    assert_clean(vault_root)


def test_of_several_that_make_one_file_one_wins(vault_root: Path, launcher: Launcher) -> None:
    with launcher.started(vault_root, each("make", 6, 1)) as processes:
        found = processes.ended()
    winners = [number for number, process in enumerate(found) if process.code == 0]
    assert len(winners) == 1
    assert {process.last for process in found if process.code} == {"already-exists"}
    assert (vault_root / "notes" / "new-0.md").read_text() == f"By w{winners[0]}.\n"
    assert_clean(vault_root)


def generation(text: str) -> int:
    """The generation of a file of the set; the file is whole."""
    first, *others = text.splitlines()
    assert others == [first] * 199
    number: int = json.loads(first)["generation"]
    return number


@pytest.fixture
def set_root(vault_root: Path) -> Path:
    """A vault with a set of files, all of generation 0."""
    for number in range(FILES):
        write(vault_root, f"set/{number}.md", '{"generation": 0}\n' * 200)
    return vault_root


def test_a_reader_never_sees_a_torn_or_an_older_file(set_root: Path, launcher: Launcher) -> None:
    memory = Memory(str(set_root))
    seen = [0] * FILES
    with launcher.started(set_root, [Job("many", "writer", GENERATIONS)]) as processes:
        (writer,) = processes.every
        while writer.running():
            now = [generation(memory.show(f"set/{number}.md").text) for number in range(FILES)]
            assert all(after >= before for before, after in zip(seen, now, strict=True))
            seen = now
        assert processes.ended()[0].code == 0
    assert {generation(memory.show(f"set/{number}.md").text) for number in range(FILES)} == {GENERATIONS}
    assert_clean(set_root)


def test_a_reader_sees_all_files_of_a_killed_writer_at_one_generation(
    set_root: Path, launcher: Launcher
) -> None:
    for last in range(KILLS):
        with launcher.started(set_root, [Job("many", "writer", 1_000)]) as processes:
            (writer,) = processes.every
            assert f"{last}\n" in writer.stdout  # reads up to that line
            writer.kill()
        memory = Memory(str(set_root))
        found = {generation(memory.show(f"set/{number}.md").text) for number in range(FILES)}
        assert len(found) == 1
        assert min(found) > last
    assert_clean(set_root)


def test_a_writer_that_is_killed_while_it_holds_the_lock_blocks_nobody(
    vault_root: Path, launcher: Launcher
) -> None:
    memory = Memory(str(vault_root))
    with launcher.started(vault_root, [Job("hold", "holder", 1)]) as holding:
        (holder,) = holding.every
        assert holder.stdout.readline() == "0\n"
        with launcher.started(vault_root, [Job("append", "waiting", 1)]) as waiting:
            holder.kill()
            assert waiting.ended() == [Ended(0, "0", "")]
        memory.append(SHARED, "ours")
    assert lines(vault_root) == Counter(["waiting-0", "ours"])
    assert_clean(vault_root)
