"""Kills, or fails, a process at every step of applying a plan, and reports what the vault looked like after.

Run as `crash_worker.py FOLDER WHAT HOW STRIDE [INNER]`; prints one JSON object. Each trial runs in a fork of
this process, which has one thread and everything imported, so that a trial takes milliseconds.

WHAT is the plan: `change`, `make`, `move` or `delete` a memory, `mounted` (change the one that is mounted),
or `many`, which is all of these at once and changes of 17 more.

HOW is one of these, where a step is a line of the vault's code, and a call one of the system's file
functions:

    kill          SIGKILL before the n-th step
    kill+kill     the same, and the process that recovers is killed before its m-th step
    ENOSPC        (or another errno) the n-th call fails
    ENOSPC*       every call from the n-th on fails
    ENOSPC+kill   the n-th call fails, and SIGKILL comes before the m-th step after that

`n` goes through all steps, STRIDE apart, and `m` INNER apart. `:plain` behind HOW tries it as on a file
system that cannot exchange two files.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from types import FrameType
from typing import Any, NamedTuple

from mdmem.errors import MdmemError
from mdmem.memory.memory import Memory
from mdmem.vault import files, journal, lock, transaction, trash, vault
from mdmem.vault.plan import Change, EditPlan

TRACED = {module.__file__ for module in (files, journal, lock, transaction, trash, vault)}
FAILING = (
    *("open", "read", "write", "fsync", "fstat", "stat", "listdir"),
    *("rename", "mkdir", "rmdir", "unlink", "link", "fchmod", "fchown"),
)
NOTES, MOUNTED, MADE = 20, 100, 99
MOST_STEPS = 100_000
DOCTOR_EVERY = 30  # it compiles every schema, which takes longer than the trial
AGAIN_EVERY = 10
MOST_WRONG = 5  # reported; one says enough

State = dict[str, str]
_report = os.write  # what is made to fail is the vault's calls


# ------------------------------------------------------------------------------------------ what is changed


def content(number: int, generation: int) -> bytes:
    return f"---\ntitle: File {number}\n---\n\nGeneration {generation} of file {number}.\n".encode()


def prepare(workspace: str) -> str:
    """A repository with a vault of memories of generation 0, and one that is mounted; the vault."""
    root = f"{workspace}/memories"
    os.makedirs(f"{workspace}/.git", exist_ok=True)
    os.makedirs(root, exist_ok=True)
    for entry in os.scandir(root):  # the folder itself may be a mount point
        shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
    for name in os.listdir(workspace):
        if name not in {".git", "memories"}:
            os.unlink(f"{workspace}/{name}")
    os.mkdir(f"{root}/.mdmem")
    os.mkdir(f"{root}/notes")
    with open(f"{root}/.mdmem/config.toml", "w", encoding="utf-8") as file:
        file.write('[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    with open(f"{workspace}/AGENTS.md", "wb") as mounted:
        mounted.write(content(MOUNTED, 0))
    for number in range(NOTES):
        with open(f"{root}/notes/{number}.md", "wb") as note:
            note.write(content(number, 0))
        os.chmod(f"{root}/notes/{number}.md", 0o600 if number % 2 else 0o664)
    return root


def plan(memory: Memory, what: str) -> EditPlan:
    """The plan WHAT, made from what is there now."""
    mounted = memory.show("AGENTS.md")
    *changed, moved, deleted = [memory.show(f"notes/{number}.md") for number in range(NOTES)]
    changes = [Change(path=d.path, before=d, content=content(n, 1)) for n, d in enumerate(changed)]
    single = {
        "change": changes[0],
        "mounted": Change(path="AGENTS.md", before=mounted, content=content(MOUNTED, 1)),
        "make": Change(path="new/deep/one.md", before=None, content=content(MADE, 1)),
        "move": Change(path=moved.path, before=moved, move_to="moved/it.md"),
        "delete": Change(path=deleted.path, before=deleted, delete=True),
    }
    if what == "many":
        return EditPlan(changes=(*changes[1:], *single.values()))
    return EditPlan(changes=(single[what],))


def state(workspace: str) -> State:
    """Every folder and file of the repository but the vault's bookkeeping: mode and text, by path."""
    found: State = {}
    for folder, names, names_of_files in os.walk(workspace):
        names[:] = [name for name in names if name not in {".mdmem", ".git"}]
        found |= {os.path.relpath(os.path.join(folder, name), workspace) + "/": "" for name in names}
        for name in names_of_files:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found[os.path.relpath(path, workspace)] = f"{os.stat(path).st_mode:o} {file.read()}"
    return found


# ------------------------------------------------------------------------------------------- what goes wrong


class Kill:
    """SIGKILL before the line `step` of the vault's code, counted from the call of `start`."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.seen = 0

    @property
    def reached(self) -> bool:
        return self.seen >= self.step

    def start(self) -> None:
        sys.settrace(self._trace)
        frame: FrameType | None = sys._getframe()
        while frame:  # functions that are running already
            if frame.f_code.co_filename in TRACED:
                frame.f_trace = self._trace
            frame = frame.f_back

    def _trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            self.seen += 1
            if self.seen == self.step:
                os.kill(os.getpid(), signal.SIGKILL)
        return self._trace


class Fail:
    """The call `step` of the system's file functions fails with errno `number`; with `go_on`, all later too.

    `then` starts in that moment.
    """

    def __init__(self, step: int, number: int, *, go_on: bool = False, then: Kill | None = None) -> None:
        self.step = step
        self.number = number
        self.go_on = go_on
        self.then = then
        self.seen = 0

    @property
    def reached(self) -> bool:
        return self.seen >= self.step

    def start(self) -> None:
        for name in FAILING:
            setattr(os, name, self._wrapped(getattr(os, name)))
        program = files._rename_program()
        if program:
            failing = program[0], self._exchange(program[1])
            files._rename_program = cache(lambda: failing)

    def _fails(self) -> bool:
        self.seen += 1
        if self.seen == self.step and self.then:
            self.then.start()
        return self.seen == self.step or (self.go_on and self.seen > self.step)

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._fails():
                raise OSError(self.number, os.strerror(self.number))
            return function(*arguments, **named)

        return call

    def _exchange(self, function: Any) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            if self._fails():
                ctypes.set_errno(self.number)
                return -1
            return int(function(*arguments))

        return call


class Ended(NamedTuple):
    """How a process ended: `done`, `killed`, the code of an error, or `bug: …`; whether the fault came."""

    said: str
    reached: bool


def in_fork(work: Callable[[], object], fault: Kill | Fail) -> Ended:
    """Do `work` in a fork of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "done"
        try:
            work()
        except MdmemError as error:
            said = error.code
        except BaseException as error:  # noqa: BLE001 - the report names whatever came out
            said = f"bug: {error!r}"
        sys.settrace(None)
        _report(writer, json.dumps(Ended(said, fault.reached)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        sent = pipe.read()
    _, status = os.waitpid(child, 0)
    return Ended("killed", reached=True) if os.WIFSIGNALED(status) else Ended(*json.loads(sent))


# --------------------------------------------------------------------------------------------------- trials


@dataclass
class Report:
    trials: int = 0
    before: int = 0
    after: int = 0
    said: Counter[str] = field(default_factory=Counter)
    wrong: list[dict[str, Any]] = field(default_factory=list)


class Trials:
    """Trials of one plan, each on a fresh vault."""

    def __init__(self, workspace: str, what: str) -> None:
        self.workspace = workspace
        self.what = what
        self.report = Report()
        root = prepare(workspace)
        self.before = state(workspace)
        # The forks inherit the schemas that it has compiled, and apply the same plan: the files are the same.
        self.memory = Memory(root)
        self.plan = plan(self.memory, what)
        self.memory.apply(self.plan)
        self.after = state(workspace)

    def apply(self, fault: Kill | Fail) -> Ended:
        """Make a fresh vault, and apply the plan to it in a process with a fault."""
        prepare(self.workspace)

        def work() -> None:
            fault.start()
            self.memory.apply(self.plan)

        return in_fork(work, fault)

    def recover(self, fault: Kill) -> Ended:
        """Read the vault, which recovers it, in a process with a fault."""

        def work() -> None:
            fault.start()
            Memory(f"{self.workspace}/memories").vault.recover()

        return in_fork(work, fault)

    def judge(self, said: str, *, strict: bool, step: tuple[int, int]) -> None:
        """Open the vault as the next command does, and note what is not as it must be.

        `strict`: an error means that the vault is as before.
        """
        memory = Memory(f"{self.workspace}/memories")
        memory.ls()
        now = state(self.workspace)
        report = self.report
        checks = {
            "neither before nor after": now in (self.before, self.after),
            "an error, but not as before": not strict or said in {"killed", "done"} or now == self.before,
            "done, but not as after": said != "done" or now == self.after,
            "an unexpected exception": not said.startswith("bug"),
            "something is lost": not self._lost(memory, now),
            "something is left": not _left(memory.vault.root),
            "the doctor is unhappy": report.trials % DOCTOR_EVERY or not memory.doctor().findings,
            "it cannot be done again": report.trials % AGAIN_EVERY or self._can_be_done(memory, now),
        }
        report.trials += 1
        report.before += now == self.before
        report.after += now == self.after
        report.said[said] += 1
        faults = [fault for fault, fine in checks.items() if not fine]
        if faults and len(report.wrong) < MOST_WRONG:
            paths = sorted(self.before.keys() | now.keys())
            differs = {p: (self.before.get(p), now.get(p)) for p in paths if self.before.get(p) != now.get(p)}
            report.wrong.append({"step": step, "said": said, "faults": faults, "now": differs})

    def _can_be_done(self, memory: Memory, now: State) -> bool:
        """Whether the plan, where it was not done, can be done afterwards."""
        if now == self.before:
            memory.apply(plan(memory, self.what))
        return state(self.workspace) == self.after

    def _lost(self, memory: Memory, now: State) -> list[str]:
        """The memories of before whose text is neither in a file nor to be had through the history."""
        here = {text.partition(" ")[2] for text in now.values()}
        texts = {path: text.partition(" ")[2].encode() for path, text in self.before.items() if text}
        gone = {path: text for path, text in texts.items() if text.decode() not in here}
        return [p for p, text in gone.items() if memory.vault.content(sha256(text).hexdigest()) != text]


def _left(root: str) -> list[str]:
    """Temporary files that nobody will clear away."""
    local = f"{root}/.mdmem/local"
    found = [os.path.join(folder, name) for folder, _, names in os.walk(local) for name in names]
    return [path for path in found if "/staging/" in path or path.endswith((".part", "~"))]


def steps(stride: int) -> Iterator[int]:
    return iter(range(1, MOST_STEPS, stride))


def killed(trials: Trials, stride: int) -> None:
    for step in steps(stride):
        ended = trials.apply(Kill(step))
        trials.judge(ended.said, strict=True, step=(step, 0))
        if not ended.reached:
            return


def killed_twice(trials: Trials, stride: int, inner: int) -> None:
    for step in steps(stride):
        for again in steps(inner):
            if not trials.apply(Kill(step)).reached:
                return
            ended = trials.recover(Kill(again))
            trials.judge("killed", strict=True, step=(step, again))
            if not ended.reached:
                break


def failed(trials: Trials, number: int, stride: int, *, go_on: bool) -> None:
    for step in steps(stride):
        ended = trials.apply(Fail(step, number, go_on=go_on))
        # Where not even the undoing can be done, the next command does what is left, whatever that is.
        trials.judge(ended.said, strict=not go_on, step=(step, 0))
        if not ended.reached:
            return


def failed_and_killed(trials: Trials, number: int, stride: int, inner: int) -> None:
    for step in steps(stride):
        for again in steps(inner):
            kill = Kill(again)
            ended = trials.apply(Fail(step, number, then=kill))
            if not ended.reached:
                return
            trials.judge(ended.said, strict=True, step=(step, again))
            if ended.said != "killed":
                break


def main(folder: str, what: str, how: str, stride: int, inner: int = 1) -> None:
    how, _, plain = how.partition(":")
    if plain:
        files._rename_program = cache(lambda: None)
    trials = Trials(folder, what)
    first, _, second = how.partition("+")
    if how == "kill":
        killed(trials, stride)
    elif first == "kill":
        killed_twice(trials, stride, inner)
    elif second:
        failed_and_killed(trials, getattr(errno, first), stride, inner)
    else:
        failed(trials, getattr(errno, how.removesuffix("*")), stride, go_on=how.endswith("*"))
    sys.stdout.write(json.dumps(vars(trials.report)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
