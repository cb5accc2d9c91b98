"""Kills, or fails, a process at every step of applying a plan, and reports what the vault looked like after.

For each line on standard input, `[FOLDER, WHAT, HOW, STRIDE, INNER]` as JSON, it prints one JSON object. Each
trial runs in a fork of this process, which has one thread and everything imported, so that a trial takes
milliseconds.

WHAT is the plan: `change`, `make`, `move` or `delete` a memory, `attach` (move an attachment with one that
points at it), `mounted` (change the one that is mounted), `sweep` (change one where the trash is full, and
its log has old entries), or `many`, which is all of these at once, but for the sweep, and changes of 7 more.

HOW is one of these, where a call is one of the system's file functions, and a step a call that finds other
files than the one before it did. Nothing but files is left of who was killed, so a kill before any other call
or line leaves behind what one before the last step leaves.

    kill          SIGKILL before the n-th step
    kill+kill     the same, and the process that recovers is killed before its m-th step
    ENOSPC        (or another errno) the n-th call fails; of several, `ENOSPC,EIO`, each in turn
    ENOSPC*       every call from the n-th on fails
    ENOSPC+kill   the n-th call fails, and SIGKILL comes before the m-th step after that

`n` goes through all steps or calls, STRIDE apart, and `m` INNER apart. `:plain` behind HOW tries it as on a
file system that cannot exchange two files.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import shutil
import signal
import sys
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory
from mdmem.vault import files, local_store
from mdmem.vault.mark import signed
from mdmem.vault.plan import AttachmentChange, Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CALLS = (
    *("open", "read", "write", "fsync", "fstat", "stat", "listdir"),
    *("rename", "mkdir", "rmdir", "unlink", "link", "fchmod", "fchown"),
)
NOTES, MOUNTED, MADE = 10, 100, 99
ATTACHED = b"1,2\n"
MOST_CALLS = 100_000
DOCTOR_EVERY = 20  # it makes an index, which takes longer than the trial
AGAIN_EVERY = 10
MOST_WRONG = 5  # reported; one says enough

State = dict[str, str]
_report = os.write  # what is made to fail is the vault's calls
local_store._TICK_NS = 0  # else how often the config is read depends on how fast the machine is


# ------------------------------------------------------------------------------------------ what is changed


def content(number: int, generation: int) -> bytes:
    return f"---\ntitle: File {number}\n---\n\nGeneration {generation} of file {number}.\n".encode()


def fill(root: str) -> None:
    """A trash with more in it than the config allows, and a log with an entry of long ago."""
    trash = f"{root}/.mdmem/local/trash"
    os.makedirs(trash)
    with open(f"{root}/.mdmem/config.toml", "a", encoding="utf-8") as file:
        file.write("[trash]\nmax_bytes = 200\n")
    with open(f"{trash}/log.jsonl", "wb") as log:
        for number in range(6):
            digest = sha256(content(number, 7)).hexdigest()
            with open(f"{trash}/{digest}", "wb") as kept:
                kept.write(content(number, 7))
            changed = {"path": f"old/{number}.md", "before": digest, "after": None}
            time = "2020-01-01T00:00:00.000Z" if number < 3 else "2999-01-01T00:00:00.000Z"
            entry = {"id": str(number), "time": time, "actor": "", "message": "", "files": [changed]}
            log.write(signed(entry) + b"\n")


def prepare(workspace: str, what: str = "") -> str:
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
    with open(f"{root}/notes/data.csv", "wb") as attachment:
        attachment.write(ATTACHED)
    if what == "sweep":
        fill(root)
    return root


def plan(memory: Memory, what: str) -> EditPlan:
    """The plan WHAT, made from what is there now."""
    mounted = memory.show("AGENTS.md")
    *changed, moved, deleted = [memory.show(f"notes/{number}.md") for number in range(NOTES)]
    changes = [Change(path=d.path, before=d, content=content(n, 1)) for n, d in enumerate(changed)]
    single = {
        "change": changes[0],
        "sweep": changes[0],
        "mounted": Change(path="AGENTS.md", before=mounted, content=content(MOUNTED, 1)),
        "make": Change(path="new/deep/one.md", before=None, content=content(MADE, 1)),
        "move": Change(path=moved.path, before=moved, move_to="moved/it.md"),
        "delete": Change(path=deleted.path, before=deleted, delete=True),
    }
    attached = (AttachmentChange("notes/data.csv", "moved/data.csv", sha256(ATTACHED).hexdigest()),)
    if what == "attach":
        return EditPlan(changes=(single["change"],), attachments=attached)
    if what == "many":
        some = (*changes[1:], *(c for name, c in single.items() if name != "sweep"))
        return EditPlan(changes=some, attachments=attached)
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


class Calls(ABC):
    """What comes before each call of the system's file functions, from `start` on."""

    def __init__(self) -> None:
        self.seen = 0

    def start(self) -> None:
        for name in CALLS:
            setattr(os, name, self._wrapped(getattr(os, name)))
        program = files._rename_program()
        if program:
            exchanging = program[0], self._exchange(program[1])
            files._rename_program = cache(lambda: exchanging)

    @abstractmethod
    def before(self) -> int:
        """What the call fails with; 0 when it is made."""

    def _comes(self) -> int:
        self.seen += 1
        return self.before()

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            number = self._comes()
            if number:
                raise OSError(number, os.strerror(number))
            return function(*arguments, **named)

        return call

    def _exchange(self, function: Any) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            number = self._comes()
            if number:
                ctypes.set_errno(number)
                return -1
            return int(function(*arguments))

        return call


class Kill(Calls):
    """SIGKILL before the call `step`; never, when that is 0."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def before(self) -> int:
        if self.seen == self.step:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


class Watch(Calls):
    """No fault, but a look for them: `steps` are the calls that find other files than the one before did."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder
        self.steps: list[int] = []
        self._found: object = None

    def before(self) -> int:
        found = sorted(_statuses(self.folder))
        if found != self._found:
            self._found = found
            self.steps.append(self.seen)
        return 0


def _statuses(folder: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every file and folder, and what the system says of it but for when it was read."""
    for entry in os.scandir(folder):
        at = entry.stat(follow_symlinks=False)
        yield entry.path, (at.st_ino, at.st_mode, at.st_nlink, at.st_size, at.st_mtime_ns, at.st_ctime_ns)
        if entry.is_dir(follow_symlinks=False):
            yield from _statuses(entry.path)


class Fail(Calls):
    """The call `step` fails with errno `number`; with `go_on`, all later too. `then` starts at that call."""

    def __init__(self, step: int, number: int, *, go_on: bool = False, then: Calls | None = None) -> None:
        super().__init__()
        self.step = step
        self.number = number
        self.go_on = go_on
        self.then = then

    def before(self) -> int:
        if self.seen == self.step and self.then:
            self.then.start()
        return self.number if self.seen == self.step or (self.go_on and self.seen > self.step) else 0


class Ended(NamedTuple):
    """How a process ended: `done`, `killed`, the code of an error, or `bug: …`; whether its call failed.

    `steps` are those that a `Watch` found.
    """

    said: str
    failed: bool
    steps: Sequence[int] = ()


def in_fork(work: Callable[[], object], fault: Calls) -> Ended:
    """Do `work` in a fork of this process, with a fault."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "done"
        fault.start()
        try:
            work()
        except MdmemError as error:
            said = error.code
        except BaseException as error:  # noqa: BLE001 - the report names whatever came out
            said = f"bug: {error!r}"
        failed = isinstance(fault, Fail) and fault.seen >= fault.step
        watch = fault.then if isinstance(fault, Fail) else fault
        steps = watch.steps if isinstance(watch, Watch) else ()
        _report(writer, json.dumps(Ended(said, failed, steps)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        sent = pipe.read()
    _, status = os.waitpid(child, 0)
    return Ended("killed", failed=True) if os.WIFSIGNALED(status) else Ended(*json.loads(sent))


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
        root = prepare(workspace, what)
        self.before = state(workspace)
        # The forks inherit the schemas that it has compiled, and apply the same plan: the files are the same.
        self.memory = Memory(root)
        self.plan = plan(self.memory, what)
        self.memory.apply(self.plan)
        self.after = state(workspace)

    def apply(self, fault: Calls) -> Ended:
        """Make a fresh vault, and apply the plan to it in a process with a fault."""
        prepare(self.workspace, self.what)
        return in_fork(lambda: self.memory.apply(self.plan), fault)

    def recover(self, fault: Calls) -> Ended:
        """Read the vault, which recovers it, in a process with a fault."""

        def work() -> None:
            Memory(f"{self.workspace}/memories").vault.recover()

        return in_fork(work, fault)

    def watch(self) -> Watch:
        return Watch(self.workspace)

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
            "the doctor is unhappy": report.trials % DOCTOR_EVERY or _is_sound(memory),
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


def _is_sound(memory: Memory) -> bool:
    """Whether the doctor finds nothing; asked in a fork, for what its index takes would burden all others."""

    def work() -> None:
        assert memory.doctor().findings == ()

    return in_fork(work, Kill(0)).said == "done"


def _left(root: str) -> list[str]:
    """Temporary files that nobody will clear away."""
    local = f"{root}/.mdmem/local"
    found = [os.path.join(folder, name) for folder, _, names in os.walk(local) for name in names]
    return [path for path in found if "/staging/" in path or path.endswith((".part", "~"))]


def killed(trials: Trials, stride: int) -> None:
    whole = trials.apply(trials.watch())
    trials.judge(whole.said, strict=True, step=(0, 0))
    for step in whole.steps[::stride]:
        trials.judge(trials.apply(Kill(step)).said, strict=True, step=(step, 0))


def killed_twice(trials: Trials, stride: int, inner: int) -> None:
    for step in trials.apply(trials.watch()).steps[::stride]:
        trials.apply(Kill(step))
        for again in trials.recover(trials.watch()).steps[::inner]:
            trials.apply(Kill(step))
            trials.recover(Kill(again))
            trials.judge("killed", strict=True, step=(step, again))


def failed(trials: Trials, numbers: Sequence[int], stride: int, *, go_on: bool) -> None:
    for step, number in zip(range(1, MOST_CALLS, stride), cycle(numbers), strict=False):
        ended = trials.apply(Fail(step, number, go_on=go_on))
        # Where not even the undoing can be done, the next command does what is left, whatever that is.
        trials.judge(ended.said, strict=not go_on, step=(step, 0))
        if not ended.failed:
            return


def failed_and_killed(trials: Trials, number: int, stride: int, inner: int) -> None:
    for step in range(1, MOST_CALLS, stride):
        whole = trials.apply(Fail(step, number, then=trials.watch()))
        trials.judge(whole.said, strict=True, step=(step, 0))
        if not whole.failed:
            return
        for again in whole.steps[::inner]:
            ended = trials.apply(Fail(step, number, then=Kill(again)))
            trials.judge(ended.said, strict=True, step=(step, again))


def tried(folder: str, what: str, how: str, stride: int, inner: int) -> Report:
    how, _, plain = how.partition(":")
    program = files._rename_program
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
        numbers = [getattr(errno, name) for name in how.removesuffix("*").split(",")]
        failed(trials, numbers, stride, go_on=how.endswith("*"))
    files._rename_program = program
    return trials.report


def serve() -> None:
    gc.freeze()  # a collection would copy the memory that the forks share
    for line in sys.stdin:
        sys.stdout.write(json.dumps(vars(tried(*json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
