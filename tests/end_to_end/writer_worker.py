"""One of many processes that write the same memories. Run as `writer_worker.py VAULT HOW NAME COUNT`.

HOW is `append` (a line `NAME-n` at the end), `replace` (the mark `<NAME:n>` becomes `<NAME:n+1>`), or `plain`
(a program that knows no locks: reads the file, adds its line, and saves it in one of the usual ways).
Prints one line for each write that was done, and ends with an error if one of ours is refused.
"""

from __future__ import annotations

import os
import sys

from mdmem.memory.memory import Memory

PATH = "notes/shared.md"


def append(memory: Memory, name: str, number: int) -> None:
    memory.append(PATH, f"{name}-{number}")


def replace(memory: Memory, name: str, number: int) -> None:
    memory.replace(PATH, f"<{name}:{number}>", f"<{name}:{number + 1}>")


def plain(root: str, name: str, number: int) -> None:
    file = os.path.join(root, PATH)
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


def main(root: str, how: str, name: str, count: int) -> None:
    memory = Memory(root)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        if how == "plain":
            plain(root, name, number)
        elif how == "append":
            append(memory, name, number)
        else:
            replace(memory, name, number)
        print(f"{name}-{number}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
