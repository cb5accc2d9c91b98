"""Kills, or fails, a process at every step of applying a plan, and reports what the vault looked like after.

Run as `crash_worker.py FOLDER FILES MODE STRIDE`; prints one JSON object. Each trial runs in a fork of this
process, which has one thread and everything imported, so that a trial takes milliseconds.

MODE is `kill` (SIGKILL before the n-th line of the vault's code that runs), or the name of an errno, which
the n-th call of the system's file functions fails with.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from mdmem.errors import MdmemError
from mdmem.memory.memory import Memory
from mdmem.vault import files, journal, lock, trash, vault
from mdmem.vault.plan import Change, EditPlan

TRACED = {module.__file__ for module in (files, journal, lock, trash, vault)}
FAILING = ("open", "write", "fsync", "rename", "mkdir", "unlink", "link", "fchmod")
MOST_STEPS = 100_000
DOCTOR_EVERY = 30  # it compiles every schema, which takes longer than the trial


def content(number: int, generation: int) -> bytes:
    return f"---\ntitle: File {number}\n---\n\nGeneration {generation} of file {number}.\n".encode()


def prepare(root: str, count: int) -> None:
    """A fresh vault with `count` memories of generation 0; one more is to be made, and one deleted."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(f"{root}/.mdmem")
    os.makedirs(f"{root}/notes")
    with open(f"{root}/.mdmem/config.toml", "w", encoding="utf-8"):
        pass
    for number in range(count):
        with open(f"{root}/notes/{number}.md", "wb") as file:
            file.write(content(number, 0))


def plan(memory: Memory, count: int) -> EditPlan:
    """One file: replace it. More: also make one in a new folder, move one, and delete one."""
    documents = [memory.show(f"notes/{number}.md") for number in range(count)]
    if count == 1:
        return EditPlan(changes=(Change(path="notes/0.md", before=documents[0], content=content(0, 1)),))
    *changed, moved, deleted = documents
    return EditPlan(
        changes=(
            *(Change(path=d.path, before=d, content=content(n, 1)) for n, d in enumerate(changed)),
            Change(path="new/one.md", before=None, content=content(99, 1)),
            Change(path=moved.path, before=moved, move_to="moved/it.md"),
            Change(path=deleted.path, before=deleted, delete=True),
        )
    )


def state(root: str) -> dict[str, str]:
    """Every file of the vault but its own bookkeeping, by path."""
    found = {}
    for folder, names, names_of_files in os.walk(root):
        names[:] = [name for name in names if not (folder == root and name == ".mdmem")]
        for name in names_of_files:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def killing(step: int) -> Callable[[], None]:
    """Arrange that the process is killed before the line `step` of the vault's code."""
    seen = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return lambda: sys.settrace(trace)


def failing(step: int, number: int) -> Callable[[], None]:
    """Arrange that the call `step` of the system's file functions fails with errno `number`, once."""
    seen = 0

    def start() -> None:
        for name in FAILING:
            setattr(os, name, wrapped(getattr(os, name)))

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == step:
                raise OSError(number, os.strerror(number))
            return function(*arguments, **named)

        return call

    return start


def trial(root: str, count: int, arrange: Callable[[], None]) -> tuple[str, str]:
    """Apply the plan in a fork; how it ended (`done`, `killed`, or an error's code), and what was said."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        said = "done"
        try:
            memory = Memory(root)
            made = plan(memory, count)
            arrange()
            memory.apply(made)
        except MdmemError as error:
            said = error.code
        except BaseException as error:  # noqa: BLE001 - the report names whatever came out
            said = f"bug: {error!r}"
        sys.settrace(None)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return ("killed" if os.WIFSIGNALED(status) else "ended"), said


def main(folder: str, count: int, mode: str, stride: int) -> None:
    root = os.path.join(folder, "memories")
    prepare(root, count)
    before = state(root)
    Memory(root).apply(plan(Memory(root), count))
    after = state(root)
    report: dict[str, Any] = {"trials": 0, "before": 0, "after": 0, "said": {}, "wrong": []}
    for step in range(1, MOST_STEPS, stride):
        prepare(root, count)
        arrange = killing(step) if mode == "kill" else failing(step, getattr(errno, mode))
        ended, said = trial(root, count, arrange)
        memory = Memory(root)
        memory.ls()
        findings = [str(f) for f in memory.doctor().findings] if step % DOCTOR_EVERY == 1 else []
        now = state(root)
        report["trials"] += 1
        report["said"][said] = report["said"].get(said, 0) + 1
        staging = f"{root}/.mdmem/local/staging"
        left = os.listdir(staging) if os.path.isdir(staging) else []
        if now not in (before, after) or left or findings or "bug" in said:
            report["wrong"].append({"step": step, "said": said, "left": left, "findings": findings, "state": now})
        elif said == "done" and now != after:
            report["wrong"].append({"step": step, "said": said, "state": "done, but as before"})
        report["before"] += now == before
        report["after"] += now == after
        if ended == "ended" and said == "done" and mode == "kill":
            break
        if mode != "kill" and said == "done" and step > report.get("last_failed", 0) + 40:
            break
        if said != "done":
            report["last_failed"] = step
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
