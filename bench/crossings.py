"""Count the calls between modules of mdmem that a replace, a search and a compact take.

A crossing is a call whose caller and callee are in different modules of mdmem; code of libraries in between
counts for nobody. Each verb is called once before, so that imports and what is remembered are not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import mdmem

NOTES, MESSAGES = 20, 300


class Walk(NamedTuple):
    """The modules and functions of mdmem that a verb enters, and its calls from one module into another."""

    modules: int
    functions: int
    crossings: Counter[tuple[str, str]]


def walk(verb: Callable[[], object]) -> Walk:
    """Call a verb and count what it enters."""
    folder = os.path.dirname(mdmem.__file__) + os.sep
    entered: set[tuple[str, str]] = set()
    crossings: Counter[tuple[str, str]] = Counter()

    def module_of(frame: FrameType | None) -> str:
        name = frame.f_code.co_filename if frame else ""
        return name.removeprefix(folder) if name.startswith(folder) else ""

    def count(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and (module := module_of(frame)):
            entered.add((module, frame.f_code.co_qualname))
            caller = module_of(frame.f_back)
            if caller and caller != module:
                crossings[caller, module] += 1

    sys.setprofile(count)
    try:
        verb()
    finally:
        sys.setprofile(None)
    return Walk(len({module for module, _ in entered}), len(entered), crossings)


def make_vault(folder: str) -> mdmem.Memory:
    """Make a small vault with a session of 300 messages."""
    os.mkdir(os.path.join(folder, ".mdmem"))
    with open(os.path.join(folder, ".mdmem", "config.toml"), "wb"):
        pass
    memory = mdmem.open(folder)
    for number in range(NOTES):
        text = f"# Note {number}\n\nThe database of note {number} is Postgres.\n"
        memory.write(f"notes/note-{number}.md", text)
    add_messages(memory, "t1")
    add_messages(memory, "t2")
    return memory


def add_messages(memory: mdmem.Memory, key: str) -> None:
    """Add 300 messages to a session, one by one, as a host does."""
    for number in range(MESSAGES // 2):
        memory.sessions.add(key, "user", f"Question {number}: which database does part {number} use?")
        memory.sessions.add(key, "assistant", f"Part {number} uses SQLite, because it is one file. " * 8)


def main() -> None:
    """Print a row for each verb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=0, help="print the n busiest pairs of modules of each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = make_vault(folder)
        memory.replace("notes/note-1.md", "Postgres", "MySQL")
        memory.search("database")
        memory.sessions.compact("t2")
        verbs: dict[str, Callable[[], object]] = {
            "search, 3 hits": lambda: memory.search("which database", limit=3),
            "search, 10 hits": lambda: memory.search("which database"),
            "replace": lambda: memory.replace("notes/note-2.md", "Postgres", "SQLite"),
            "sessions.compact": lambda: memory.sessions.compact("t1"),
        }
        print(f"{'verb':<18}{'modules':>8}{'functions':>11}{'crossings':>11}")
        for name, verb in verbs.items():
            found = walk(verb)
            print(f"{name:<18}{found.modules:>8}{found.functions:>11}{found.crossings.total():>11}")
            for (caller, module), count in found.crossings.most_common(arguments.pairs):
                print(f"    {count:>6}  {caller} -> {module}")


if __name__ == "__main__":
    main()
