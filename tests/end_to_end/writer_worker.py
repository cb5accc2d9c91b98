"""Many processes that write the same memories. Run as `writer_worker.py SOCKET`, a descriptor.

Each message on the socket is a JSON list of a vault and of jobs, `[HOW, NAME, COUNT]`, with three descriptors
for each job, its standard input, output and error, and one to tell of all jobs. Each job is done by a fork of
this process, which has everything imported. Told is, as JSON, a list of the ids of these processes, and as
each ends, a list of its id and its exit code.

A process says `ready`, waits for a line on standard input, writes COUNT times, and says which number it has
written each time. It ends with exit code 1, and the code of the error, when it is refused. HOW is one of
`WAYS`.
"""

from __future__ import annotations

import contextlib
import ctypes  # noqa: F401 - as some more below: what each fork would import anew
import hmac  # noqa: F401
import json
import os
import socket
import sys
import traceback
from typing import TYPE_CHECKING

import yaml  # noqa: F401

import mdmem.document.merging.merge
import mdmem.facade.service
import mdmem.index.links.move
import mdmem.index.sync
import mdmem.memory.preferences
import mdmem.memory.working
import mdmem.vault.schema.validator
import mdmem.vault.transaction  # noqa: F401
from mdmem.errors import FileBusy, MdmemError
from mdmem.facade.memory import Memory
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "notes/shared.md"
FILES = 20
MOST_BUSY = 100
MOST_DESCRIPTORS = 256
SPINS = 5_000  # some milliseconds


def append(memory: Memory, name: str, number: int) -> None:
    """Add the line `NAME-n`."""
    memory.append(PATH, f"{name}-{number}")


def replace(memory: Memory, name: str, number: int) -> None:
    """Make the mark `<NAME:n>` into `<NAME:n+1>`."""
    memory.replace(PATH, f"<{name}:{number}>", f"<{name}:{number + 1}>")


def mark(memory: Memory, name: str, number: int) -> None:
    """Make the mark of NAME, whatever its number is, into `<NAME:n+1>`."""
    memory.replace(PATH, rf"<{name}:\d+>", f"<{name}:{number + 1}>", regex=True)


def plain(memory: Memory, name: str, number: int) -> None:
    """Add the line `NAME-n` as a program that knows no locks: read, then save in one of the usual ways.

    It does so right after somebody else's write, where there is one soon: as often as the others write.
    """
    file = os.path.join(memory.vault.root, PATH)
    saved = os.stat(file)
    for _ in range(SPINS):
        if not os.path.samestat(saved, os.stat(file)):
            break
    with open(file, encoding="utf-8") as source:
        text = source.read()
    text += f"{name}-{number}\n"
    if number % 2:
        with open(file, "w", encoding="utf-8") as target:
            target.write(text)
        return
    with open(f"{file}.{name}", "w", encoding="utf-8") as target:
        target.write(text)
    os.replace(f"{file}.{name}", file)


def merge(memory: Memory, name: str, number: int) -> None:
    """Add a member to a JSON memory, and change one that only this process changes."""
    memory.working.merge({f"{name}-{number}": number, name: {"last": number}}, resource="shared")


def prefer(memory: Memory, name: str, number: int) -> None:
    """Set a preference of its own."""
    memory.preferences.set("ui", f"{name}-{number}", number)


def confirm(memory: Memory, name: str, number: int) -> None:
    """Say once more what is preferred, with a reason of its own."""
    memory.preferences.set("ui", "theme", "dark", why=f"{name}-{number}")


def contradict(memory: Memory, name: str, number: int) -> None:
    """Prefer another value under the same key."""
    memory.preferences.set("ui", "theme", f"{name}-{number}")


def move(memory: Memory, name: str, _number: int) -> None:
    """Move the memory that all want to move."""
    memory.mv(PATH, f"notes/{name}.md")


def make(memory: Memory, name: str, number: int) -> None:
    """Make the memory that all want to make."""
    memory.write(f"notes/new-{number}.md", f"By {name}.\n")


def many(memory: Memory, name: str, number: int) -> None:
    """Bring all files of a set to the next generation, together."""
    documents = [memory.show(f"set/{n}.md") for n in range(FILES)]
    text = json.dumps({"generation": number + 1, "by": name}) + "\n"
    content = (text * 200).encode()
    memory.apply(EditPlan(changes=tuple(Change(path=d.path, before=d, content=content) for d in documents)))


def hold(memory: Memory, _name: str, number: int) -> None:
    """Hold the lock until the end of standard input."""
    with memory.vault.disk.locked(10):
        say(number)
        sys.stdin.read()


WAYS: dict[str, Callable[[Memory, str, int], None]] = {
    way.__name__: way
    for way in (append, replace, mark, plain, merge, prefer, confirm, contradict, move, make, many, hold)
}


def persist(memory: Memory, how: str, name: str, number: int) -> None:
    """Write, and again when a program without locks saves so often that nobody gets in between."""
    for _ in range(MOST_BUSY):
        with contextlib.suppress(FileBusy):
            return WAYS[how](memory, name, number)
    return WAYS[how](memory, name, number)


def say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main(root: str, how: str, name: str, count: int) -> int:
    memory = Memory(root)
    say("ready")
    sys.stdin.readline()
    try:
        for number in range(count):
            persist(memory, how, name, number)
            say(number)
    except MdmemError as error:
        say(error.code)
        sys.stderr.write(str(error))
        return 1
    return 0


def forked(root: str, how: str, name: str, count: int, descriptors: list[int]) -> int:
    """Do a job in a fork of this process; its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(len(descriptors), MOST_DESCRIPTORS)
        code = main(root, how, name, count)
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def launch(root: str, jobs: list[tuple[str, str, int]], descriptors: list[int]) -> None:
    *theirs, told = descriptors
    children = [forked(root, *job, theirs[3 * at : 3 * at + 3]) for at, job in enumerate(jobs)]
    for descriptor in theirs:
        os.close(descriptor)
    os.dup2(told, 1)
    say(json.dumps(children))
    for _ in children:
        child, status = os.wait()
        say(json.dumps([child, os.waitstatus_to_exitcode(status)]))


def serve(orders: socket.socket) -> None:
    """Launch jobs as they come, each time in a fork, for the jobs before may still run."""
    while True:
        order, descriptors, *_ = socket.recv_fds(orders, 1 << 16, MOST_DESCRIPTORS)
        if not order:
            break
        if os.fork() == 0:
            root, jobs = json.loads(order)
            launch(root, jobs, descriptors)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
