"""Consolidation: what is proposed of memories that say the same, by rules and by a model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import mdmem
from mdmem import Document, Memory
from mdmem.conversations.observe.consolidation import MemoryGroup
from mdmem.errors import Conflict, Usage
from mdmem.memory.duplicates import ComparedMemories
from mdmem.memory.upkeep import ProposalDraft
from tests.tables import cases

LOCKS = """\
# Locks

The write lock of a vault is an flock on one file, held for milliseconds and never while git runs.

- A crash gives the lock back at once, so that no lease and no clean-up is needed.
- Eight writers of one file lost nothing in four hundred edits when we tried it in March.

## Where it fails

Network file systems that lie about flock are refused with a word about what to do.
"""
MORE = "\n".join(f"\nPart {n} keeps its own file, of which number {n * 7} is the limit.\n" for n in range(5))

OTHERS = "\n".join(f"\nLog {n} is swept at {n} o'clock by whoever opens the vault first.\n" for n in range(5))

ADDED = LOCKS.replace("- A crash", "Only the old one tells of leases.\n\n- A crash")


def new_memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return new_memory(tmp_path)


def write(memory: Memory, **texts: str) -> None:
    for day, (name, text) in enumerate(texts.items(), 1):
        memory.write(f"notes/{name}.md", f"---\ncreated: 2026-01-{day:02}\n---\n{text}")


def proposed(memory: Memory) -> list[tuple[str, ...]]:
    return [
        (each.verb, *(str(each.arguments[name]) for name in ("old", "by", "into") if name in each.arguments))
        for each in memory.inbox.list()
    ]


class Model:
    """A model that always gives the same answer, and keeps what it was asked."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer, self.asked = answer, list[str]()

    def __call__(self, prompt: str, *_: float) -> str:
        self.asked.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def verdict(said: str, first: str, second: str) -> Model:
    return Model(json.dumps({"verdict": said, "first": first, "second": second}))


# -- redundant: what the seed calls ShouldConsolidate and Consolidate ---------------------------------------


@cases(
    "older, newer, expected",
    [
        (LOCKS, LOCKS, [("supersede", "notes/a.md", "notes/b.md")]),
        (LOCKS, LOCKS + MORE, [("supersede", "notes/a.md", "notes/b.md")]),
        (LOCKS + MORE, LOCKS, [("supersede", "notes/b.md", "notes/a.md")]),
        (ADDED, LOCKS + MORE, [("merge", "notes/b.md")]),
        (LOCKS + "\nOnly a says it.\n", LOCKS + MORE, []),
        (ADDED.replace("# Locks", "# Locks\n\n## Leases", 1), LOCKS + MORE, []),
        (LOCKS * 2 + OTHERS, LOCKS * 2 + MORE, []),
        (LOCKS, "# Backups\n\nThey run at night, and are kept for a month.\n", []),
    ],
)
def test_the_older_one_is_superseded_or_both_are_merged(
    tmp_path: Path, older: str, newer: str, expected: list[tuple[str, ...]]
) -> None:
    memory = new_memory(tmp_path)
    write(memory, a=older, b=newer)
    memory.consolidate()
    assert proposed(memory) == expected


def test_the_reason_names_the_lines_that_stand_only_in_the_old_memory(memory: Memory) -> None:
    write(memory, a=LOCKS.replace("in March", "in May"), b=LOCKS + MORE)
    memory.consolidate()
    (waiting,) = memory.inbox.list()
    assert "only in the old one: - Eight writers" in waiting.reason
    assert "May" in waiting.reason


def test_the_older_of_two_that_differ_in_a_value_is_superseded_and_what_it_alone_says_is_told_whole(
    memory: Memory,
) -> None:
    long = f"- Eight writers of one file lost nothing in four hundred edits, {'as we tried, ' * 20}in May."
    write(memory, a=LOCKS.replace("in March", "in May").replace("- Eight", f"{long}\n- Eight"), b=LOCKS)
    memory.consolidate()
    (waiting,) = memory.inbox.list()
    assert (waiting.arguments["old"], waiting.arguments["by"]) == ("notes/a.md", "notes/b.md")
    assert "holds every block" not in waiting.reason
    assert long in waiting.reason


def test_what_was_rejected_stays_away_when_the_other_memory_has_become_the_newer_one(memory: Memory) -> None:
    files = [Path(memory.root, f"notes/{name}.md") for name in "ab"]
    for name in "ab":
        memory.write(f"notes/{name}.md", LOCKS)
    found = []
    for older, newer in (files, files[::-1]):
        os.utime(older, (10**9, 10**9))
        os.utime(newer, (10**9 + 10**6, 10**9 + 10**6))
        memory.consolidate()
        found += [each.arguments["old"] for each in memory.inbox.list()]
        for each in memory.inbox.list():
            memory.inbox.reject(each.id)
    assert found == ["notes/a.md"]


def test_accepting_supersedes_and_undo_gives_every_byte_back(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS + MORE)
    before = {path: memory.show(path).data for path in ("notes/a.md", "notes/b.md")}
    memory.consolidate()
    (waiting,) = memory.inbox.list()
    memory.inbox.accept(waiting.id)
    assert memory.states() == {"notes/a.md": "superseded"}
    memory.undo()
    assert {path: memory.show(path).data for path in before} == before


def test_a_second_run_proposes_nothing_new_and_what_was_rejected_stays_away(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS)
    memory.consolidate()
    assert memory.consolidate().files == ()
    memory.inbox.reject(memory.inbox.list()[0].id)
    assert memory.consolidate().files == ()
    assert memory.inbox.list() == []


def test_a_source_that_changed_refuses_the_proposal_and_a_new_one_is_made(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS)
    memory.consolidate()
    (waiting,) = memory.inbox.list()
    memory.append("notes/b.md", "It says more by now.")
    with pytest.raises(Conflict):
        memory.inbox.accept(waiting.id)
    assert memory.states() == {}
    memory.inbox.reject(waiting.id)
    memory.consolidate()
    assert len(memory.inbox.list()) == 1


def test_the_limit_is_of_what_is_new_and_the_rest_is_counted(memory: Memory) -> None:
    for n in range(3):
        text = " ".join(f"{word}{n}" if word.isalpha() else word for word in LOCKS.split(" "))
        write(memory, **{f"a{n}": text, f"b{n}": text})
    applied = memory.consolidate(limit=2)
    assert len(memory.inbox.list()) == 2
    assert applied.plan.left_out == ("1 more: accept or reject these, and consolidate again",)
    assert memory.consolidate(limit=2).plan.left_out == ()
    assert len(memory.inbox.list()) == 3


def test_of_several_copies_all_but_the_newest_are_proposed_for_it(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS, c=LOCKS)
    memory.consolidate()
    assert sorted(proposed(memory)) == [("supersede", f"notes/{n}.md", "notes/c.md") for n in "ab"]


def test_what_is_the_same_may_be_accepted_at_once_and_one_undo_takes_it_back(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS + "\n- [[a]]\n", c=LOCKS.replace("\n\n", "\n\n\n"))
    memory.write("other/d.md", LOCKS.replace("March", "May"))
    before = {each.path: memory.show(each.path).data for each in memory.ls()}
    memory.consolidate(accept="same")
    assert memory.states() == {"notes/a.md": "superseded", "notes/b.md": "superseded"}
    memory.undo()
    assert {each.path: memory.show(each.path).data for each in memory.ls()} == before


@cases(
    "asked",
    [
        {"strategies": ["nothing"]},
        {"strategies": ["conflict"]},
        {"strategies": ["summary"]},
        {"limit": 0},
        {"limit": -1},
        {"accept": "all"},
    ],
)
def test_an_argument_that_means_nothing_is_refused(tmp_path: Path, asked: dict[str, object]) -> None:
    memory = new_memory(tmp_path)
    with pytest.raises(Usage):
        memory.consolidate(**asked)  # type: ignore[arg-type]


# -- with a model ------------------------------------------------------------------------------------------

PORT = "# Port\n\nThe server of Walrus listens on port 5432.\n"
NEW_PORT = "# Walrus\n\nSince May the server of Walrus listens on port 6000.\n"


@cases(
    "model, expected",
    [
        (verdict("update", "port 5432", "listens on  port 6000"), 1),
        (verdict("same", "Walrus", "Walrus"), 1),
        (verdict("other", "", ""), 0),
        (verdict("unsure", "port 5432", "port 6000"), 0),
        (verdict("update", "port 5433", "port 6000"), 0),
        (verdict("update", "", "port 6000"), 0),
        (Model("I think that they differ."), 0),
        (Model(RuntimeError("no network")), 0),
    ],
)
def test_a_model_counts_only_with_words_of_both_that_show_it(
    tmp_path: Path, model: Model, expected: int
) -> None:
    memory = new_memory(tmp_path)
    write(memory, a=PORT, b=NEW_PORT)
    applied = memory.consolidate(generator=model)
    assert proposed(memory) == [("supersede", "notes/a.md", "notes/b.md")] * expected
    assert len(model.asked) == 1
    assert "5432" in model.asked[0]
    if isinstance(model.answer, Exception):
        assert "no network" in applied.plan.left_out[0]


def test_know_and_button_contradict_nothing_without_a_model(memory: Memory) -> None:
    write(
        memory,
        a="# UI\n\nUsers know that the button is blue.\n",
        b="# UI\n\nThe button is not the menu, but no.\n",
    )
    memory.consolidate()
    assert proposed(memory) == []


def test_a_model_is_asked_about_so_many_pairs_at_most(memory: Memory) -> None:
    write(memory, **{f"n{n}": f"# T{n}\n\nThe walrus{n // 2} of house {n} sleeps.\n" for n in range(6)})
    model = verdict("other", "", "")
    applied = memory.consolidate(limit=2, generator=model)
    assert len(model.asked) == 2
    assert applied.plan.left_out[0].startswith("1 more")


def test_a_model_may_write_one_text_of_two_that_each_say_much_alone(memory: Memory) -> None:
    write(memory, a=LOCKS * 2 + MORE, b=LOCKS * 2 + OTHERS)
    memory.consolidate(strategies=["redundant"])
    assert proposed(memory) == []
    memory.consolidate(strategies=["redundant"], generator=Model("# Locks\n\nAll of it."))
    (waiting,) = memory.inbox.list()
    memory.inbox.accept(waiting.id)
    assert "All of it." in memory.show(str(waiting.arguments["into"])).text


@cases("model", [None, Model("The server listens on port 6000.")])
def test_a_summary_is_of_the_folder_that_is_named(tmp_path: Path, model: Model | None) -> None:
    memory = new_memory(tmp_path)
    write(memory, a=PORT, b=NEW_PORT)
    memory.consolidate("notes", ["summary"], generator=model)
    (waiting,) = memory.inbox.list()
    memory.inbox.accept(waiting.id)
    assert memory.states() == {"notes/a.md": "superseded", "notes/b.md": "superseded"}
    assert "6000" in memory.show(str(waiting.arguments["into"])).text


class Oldest:
    """A strategy of a program: everything is superseded by the oldest memory."""

    name, asks = "oldest", False

    def groups(self, memories: ComparedMemories) -> Iterator[MemoryGroup]:
        *others, oldest = memories.paths
        yield from (MemoryGroup((each, oldest)) for each in others)

    def draft(self, documents: Sequence[Document], generator: object) -> ProposalDraft | str:
        assert generator is None
        oldest, other = documents
        return ProposalDraft("supersede", {"old": other.path, "by": oldest.path}, "it came first")


def test_a_program_may_bring_a_strategy(memory: Memory) -> None:
    write(memory, a=PORT, b=NEW_PORT)
    memory.consolidate(strategies=[Oldest()])
    assert proposed(memory) == [("supersede", "notes/b.md", "notes/a.md")]
