"""How often memories were used: by the namespace that asked, in no file of a memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mdmem import Memory, Scope
from mdmem.errors import PathRefused, StorageFailed

NOTE, NOW = "notes/a.md", 1_700_000_000_000


def test_uses_add_up_and_the_last_one_is_the_latest(memory: Memory) -> None:
    memory.uses.add([NOTE, NOTE, "notes/b.md"], at=NOW)
    memory.uses.add([NOTE], at=NOW - 1)

    assert memory.uses.of(NOTE) == (2, NOW)
    assert memory.uses.of(NOTE).time == "2023-11-14T22:13:20Z"
    assert memory.uses.of("notes/c.md") == (0, 0)
    assert memory.uses.of("notes/c.md").time == ""


def test_uses_are_those_of_the_namespace_that_asked(memory: Memory) -> None:
    alice = Memory(memory.root, Scope(user="alice"))
    alice.uses.add([NOTE])
    Memory(memory.root, Scope(user="alice", project="p")).uses.add(["shared:notes/b.md"])
    memory.uses.add(["users/alice/notes/a.md"], namespace="another")

    assert alice.uses.of(NOTE) == alice.uses.of(NOTE, "")
    assert alice.uses.of(NOTE).times == 1
    assert memory.uses.of("users/alice/notes/a.md").times == 2
    assert memory.uses.of("users/alice/notes/a.md", "another").times == 1
    assert memory.uses.of("notes/b.md").times == 1
    assert memory.uses.of(NOTE).times == 0
    with pytest.raises(PathRefused):
        alice.uses.of("../bob/notes/a.md")
    with pytest.raises(PathRefused):
        alice.uses.of(NOTE, "../bob")


def test_a_scope_learns_no_use_by_others_of_what_it_shares(memory: Memory) -> None:
    for path in (NOTE, "projects/p/notes/a.md"):
        memory.write(path, "# A\n\nShared.\n")
    shared = Memory(memory.root, Scope(shared=True))
    project = Memory(memory.root, Scope(project="p", shared=True))
    bob = Memory(memory.root, Scope(user="bob", project="p"))
    untold = [(each.why(NOTE), each.quality(), each.report()) for each in (shared, project)]
    alice = Memory(memory.root, Scope(user="alice", project="p"))
    alice.uses.add([f"shared:{NOTE}", f"project:{NOTE}"])

    assert alice.uses.of(f"project:{NOTE}").times == 1
    assert bob.uses.of(f"project:{NOTE}").times == bob.uses.of(f"shared:{NOTE}").times == 0
    assert memory.uses.of("projects/p/notes/a.md").times == 1
    assert [(each.why(NOTE), each.quality(), each.report()) for each in (shared, project)] == untold


WORK = """
import sys
from mdmem import Memory
for _ in range(50):
    Memory(sys.argv[1]).uses.add(["notes/a.md"])
"""


def test_processes_lose_no_use(memory: Memory) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", WORK, memory.root]) for _ in range(3)]

    assert [worker.wait(timeout=60) for worker in workers] == [0] * 3
    assert memory.uses.of(NOTE).times == 150


def test_a_damaged_table_stops_counting_and_nothing_else(memory: Memory) -> None:
    memory.write(NOTE, "x\n")
    memory.uses.add([NOTE])
    (file,) = Path(memory.root, ".mdmem/local/uses").rglob("*.sqlite")
    file.write_bytes(b"no database " * 1000)

    with pytest.raises(StorageFailed, match="count uses"):
        memory.uses.of(NOTE)
    assert memory.why(NOTE).uses is None


def test_a_table_that_came_with_the_vault_is_not_opened(memory: Memory) -> None:
    memory.uses.add([NOTE])
    (file,) = Path(memory.root, ".mdmem/local/uses").rglob("*.sqlite")
    stranger = file.parent.with_name("0" * len(file.parent.name))
    file.parent.rename(stranger)

    assert memory.uses.of(NOTE).times == 0
