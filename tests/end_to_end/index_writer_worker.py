"""A process that writes memories and asks the index, beside others that do the same.

    index_writer_worker.py VAULT NAME STEPS WATCH

It prints "ready" and waits for a line; writes so many times, its own files and shared ones, as mdmem
does and as other programs do, and asks for its own ones after each; prints "done" and waits for a line, by
which all others are done as well; and prints one JSON object. WATCH is 1 to keep a watcher meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import Counter
from pathlib import Path

from mdmem.errors import AlreadyExists, Conflict, FileBusy, MdmemError, MemoryNotFound
from mdmem.facade.memory import Memory

# What may happen to one who moves, and to two who write the same file.
EXPECTED = (AlreadyExists, Conflict, FileBusy, MemoryNotFound)


class Writer:
    """One that writes, and what it met."""

    def __init__(self, root: str, name: str) -> None:
        self.memory = Memory(root)
        self.folder = Path(root, "notes", name)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.chance = random.Random(name)
        self.errors: list[str] = []
        self.wrong: list[str] = []
        self.events: Counter[str] = Counter()
        self.steps = 0

    def watch(self, ready: threading.Event) -> None:
        """Follow what happens until the end; only a process that ends stops it."""
        try:
            with self.memory.watch() as watch:
                for event in watch:
                    self.events[event.kind] += 1
                    ready.set()
        except MdmemError as error:
            self.errors.append(f"watch: {error.code}: {error.message}")
            ready.set()

    def step(self) -> None:
        """Write something, and ask for it."""
        self.steps += 1
        chance, memory = self.chance, self.memory
        number = chance.randrange(40)
        path, file = f"notes/{self.name}/{number}.md", self.folder / f"{number}.md"
        how = chance.randrange(7)
        text = f"# {self.name} {self.steps}\n\n[[{chance.randrange(40)}]] #tag{chance.randrange(5)}\n"
        if how == 0:
            memory.write(path, text, overwrite=True)
        elif how == 1:
            memory.append(path, text)
        elif how == 2:
            file.write_text(text)
        elif how == 3:
            aside = file.with_name(f".{number}")
            aside.write_text(text)
            aside.replace(file)
        elif how == 4:
            memory.append("notes/shared.md", f"{self.name}-{self.steps}")
        elif how == 5 and file.exists():
            memory.mv(path, f"notes/{self.name}/{number}-{chance.randrange(3)}.md")
        else:
            file.unlink(missing_ok=True)
        self.ask(path, file)

    def ask(self, path: str, file: Path) -> None:
        """Nobody else writes to this file: what is said of it has to be so."""
        self.memory.sync()
        said = bool(self.memory.index.rows("SELECT 1 FROM documents WHERE path = ?", (path,)))
        searched = path in self.memory.index.text(lambda index: index.paths())
        if {said, searched} != {file.exists()}:
            self.wrong.append(f"step {self.steps}: {path} {file.exists()}: {said}, {searched}")

    def run(self, steps: int) -> None:
        for _ in range(steps):
            try:
                self.step()
            except EXPECTED:
                pass
            except MdmemError as error:
                self.errors.append(f"{error.code}: {error.message}")

    def report(self) -> str:
        self.memory.sync()
        index = self.memory.index
        return json.dumps(
            {
                "documents": dict(index.rows("SELECT path, hash FROM documents")),
                "texts": index.text(lambda text: text.paths()),
                "errors": self.errors,
                "wrong": self.wrong,
                "notes": index.notes,
                "steps": self.steps,
                "events": self.events,
            }
        )


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    vault, who, length, is_watching = sys.argv[1:]
    writer = Writer(vault, who)
    if int(is_watching):
        watching = threading.Event()
        threading.Thread(target=writer.watch, args=(watching,), daemon=True).start()
        watching.wait()
    say("ready")
    sys.stdin.readline()
    writer.run(int(length))
    say("done")
    sys.stdin.readline()
    say(writer.report())
    # The thread that watches has no end of its own.
    os._exit(0)
