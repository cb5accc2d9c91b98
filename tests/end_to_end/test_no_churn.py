"""Reading leaves no trace in git, and says the same without what is kept beside the memories."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem import Memory
from mdmem.diagnostic import as_json
from tests import speed

QUERIES = ("database", "port", "sessions", "nothing at all", "old")


def git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    ended = subprocess.run(
        ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return ended.stdout


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """A vault in git, with memories that count and memories that do not."""
    git(tmp_path, "init", "--quiet")
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    for number in range(20):
        source = f"source: {{type: user, ids: [sessions/t{number}#1, m1]}}"
        head = f"---\n{source}\nupdated: 2026-01-{number + 1:02}\n---\n"
        memory.write(f"notes/{number}.md", f"{head}# Part {number}\n\nIts database has port {number}.\n")
    memory.supersede("notes/0.md", "notes/1.md", at="2026-02-01")
    memory.contradict("notes/2.md", "notes/3.md", at="2026-02-01")
    memory.write("notes/old.md", "---\nexpires: 2026-01-01\n---\nThe old port.\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "memories")
    return memory


def ask(memory: Memory) -> list[Any]:
    """What each question says, without what depends on the moment."""
    found = [as_json(memory.search(query, any_state=True)) for query in QUERIES]
    found += [as_json(memory.search(query, as_of="2026-01-15")) for query in QUERIES]
    found += [memory.context(query).text for query in QUERIES]
    found += [as_json(memory.why(f"notes/{number}.md"))["terms"] for number in range(20)]
    return [*found, sorted(memory.states().items()), [each.path for each in memory.ls(where=["state!=live"])]]


def test_many_questions_leave_git_without_a_change(memory: Memory, tmp_path: Path) -> None:
    share = 1 if speed.is_all else 20
    for number in range(500 // share):
        memory.search(QUERIES[number % 5])
    for number in range(400 // share):
        memory.context(QUERIES[number % 5])
    for number in range(100 // share):
        memory.why(f"notes/{number % 20}.md")

    assert git(tmp_path, "status", "--porcelain") == ""


def test_without_the_local_folder_every_answer_is_the_same(memory: Memory) -> None:
    before = ask(memory)
    shutil.rmtree(Path(memory.root, ".mdmem/local"))

    assert ask(mdmem.open(memory.root)) == before


def test_a_clone_answers_the_same(memory: Memory, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(tmp_path), str(tmp_path / "clone"))

    assert ask(mdmem.open(tmp_path / "clone/memories")) == ask(memory)


def test_a_past_that_only_the_local_log_knew_is_said_to_be_unknown_without_it(memory: Memory) -> None:
    memory.append("notes/5.md", "More.")
    memory.append("notes/5.md", "And more.")
    between = memory.history()[1].time
    assert memory.state_at("notes/5.md", between).certainty == "exact"
    shutil.rmtree(Path(memory.root, ".mdmem/local"))

    assert mdmem.open(memory.root).state_at("notes/5.md", between).certainty == "git"
