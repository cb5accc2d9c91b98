"""One of many processes that write the same memories. Run as `writer_worker.py VAULT HOW NAME COUNT`.

It says `ready`, waits for a line on standard input, writes COUNT times, and says which number it has written
each time. It ends with exit code 1, and the code of the error, when it is refused. HOW is one of `WAYS`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable

from mdmem.errors import FileBusy, MdmemError
from mdmem.memory.memory import Memory
from mdmem.vault.plan import Change, EditPlan

PATH = "notes/shared.md"
FILES = 20
MOST_BUSY = 100
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
    with memory.vault._lock():
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
