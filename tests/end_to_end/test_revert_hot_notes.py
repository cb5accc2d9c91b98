"""One old fact of fifty notes that a thousand commits went over is taken back: or it is said truly why not.

What a refusal says is looked up in the commits, line by line, without what reads facts. The rest of each file
keeps its bytes.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

import mdmem
from mdmem.errors import RevertRefused
from tests.speed import is_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mdmem.facade.memory import Memory

NOTES, COMMITS, REVERTED, LAST = (25, 400, 90, 30) if is_all else (8, 120, 20, 8)
HEADINGS = ("Decisions", "Facts", "Open questions")
WORDS = (
    *("sqlite", "index", "lock", "journal", "vault", "note", "agent", "merge", "link", "trash", "cache"),
    *("query", "token", "path", "log", "disk"),
)


class Edit(NamedTuple):
    """A commit's change of one note: the line that went, and the one that came; each may be none."""

    commit: int
    note: int
    gone: str
    come: str


class Hot:
    """The notes while they are written, by what agents and people do to them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.count = 0
        self.newlines = ["\r\n" if number % 7 == 3 else "\n" for number in range(NOTES)]
        self.notes = [self._first(number) for number in range(NOTES)]

    def _first(self, number: int) -> list[str]:
        head = ["---", f"title: Note {number}  # kept", f"tags: [t{number}]", "---", ""]
        body = [line for heading in HEADINGS for line in (f"## {heading}", "", self.fact(), self.fact(), "")]
        return [*(head if number % 2 else ["\ufeff" if number % 9 == 4 else "# Top", ""]), *body[:-1]]

    def fact(self) -> str:
        self.count += 1
        told = " ".join(self.chance.choice(WORDS) for _ in range(self.chance.randint(3, 9)))
        mark = f" ^f{self.count}" if self.chance.random() < 0.2 else ""
        return f"- Fact {self.count}: {told} number{self.count}{mark}"

    def text(self, number: int) -> bytes:
        newline = self.newlines[number]
        return (newline.join(self.notes[number]) + newline * (number % 5 != 2)).encode()

    def edit(self, commit: int, number: int) -> Edit:
        note, chance = self.notes[number], self.chance
        at = [index for index, line in enumerate(note) if line.startswith("- ")]
        kind = chance.random()
        if kind < 0.55 or len(at) < 4:
            come = self.fact()
            note.insert(chance.choice(at) + 1, come)
            return Edit(commit, number, "", come)
        index = chance.choice(at)
        gone = note[index]
        if kind < 0.8:
            words = gone.split(" ")
            place = chance.randrange(3, len(words) - 1 - gone.count(" ^"))
            words[place] = chance.choice(WORDS) + "s"
            note[index] = " ".join(words)
            return Edit(commit, number, gone, note[index])
        del note[index]
        return Edit(commit, number, gone, "")


class Past(NamedTuple):
    """The repository, and what each commit did."""

    root: Path
    memory: Memory
    edits: list[Edit]
    commits: list[str]


def stream(hot: Hot, edits: list[Edit]) -> Iterator[bytes]:
    """What `git fast-import` reads: every commit changes two notes."""
    for commit in range(COMMITS + 1):
        message = f"Commit {commit}"
        yield b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\n" % (1_700_000_000 + commit)
        yield b"data %d\n%s\n" % (len(message), message.encode())
        touched = range(NOTES) if commit == 0 else hot.chance.sample(range(NOTES), 2)
        for number in touched:
            if commit:
                edits.append(hot.edit(commit, number))
            text = hot.text(number)
            yield b"M 100644 inline memories/notes/n%d.md\ndata %d\n%s\n" % (number, len(text), text)
        yield b"\n"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        root = tmp_path_factory.mktemp("hot")

        def git(*words: str, given: bytes | None = None) -> str:
            done = subprocess.run(["git", *words], cwd=root, input=given, check=True, capture_output=True)
            return done.stdout.decode()

        git("init", "--quiet", "--initial-branch=main")
        edits: list[Edit] = []
        git("fast-import", "--quiet", given=b"".join(stream(Hot(16), edits)))
        git("reset", "--quiet", "--hard")
        mdmem.init(root / "memories")
        commits = git("rev-list", "--reverse", "main").split()
        yield Past(root, mdmem.open(root / "memories"), edits, commits)


def said(line: str) -> str:
    """The words of a bullet, without its mark and its id."""
    return re.sub(r" \^f\d+$", "", line.removeprefix("- "))


def lines(data: bytes) -> list[str]:
    return data.decode().replace("\r\n", "\n").split("\n")


def check_reverted(edit: Edit, before: bytes, after: bytes, newline: str) -> None:
    """The one line came or went, and every other byte is as it was."""
    old, new = lines(before), lines(after)
    assert Counter(new) - Counter(old) == (Counter([edit.gone]) if edit.gone else Counter())
    assert Counter(old) - Counter(new) == (Counter([edit.come]) if edit.come else Counter())
    kept, stays = (
        [line for line in found if line not in {edit.come, edit.gone} or not line] for found in (old, new)
    )
    assert kept == stays
    assert (b"\r\n" in after) == (newline == "\r\n")
    assert after.count(b"\n") - after.count(b"\r\n") == (0 if newline == "\r\n" else after.count(b"\n"))
    assert before.endswith(newline.encode()) == after.endswith(newline.encode())


def check_reason(edit: Edit, now: list[str], reasons: tuple[str, ...]) -> str:
    """Why it was refused, once that is found to be so."""
    (reason,) = reasons
    number = re.search(r"number(\d+)", edit.come or edit.gone)
    assert number
    standing = [line for line in now if re.search(rf"number{number[1]}\b", line)]
    if "it has changed since" in reason:
        assert edit.come not in now
        assert all(repr(line.removeprefix("- "))[1:-1] in reason for line in standing)
        return "changed since"
    if "nothing that it changed is still there" in reason:
        assert not edit.come or edit.come not in now
        return "gone"
    if "is gone since" in reason or "was removed already" in reason:
        assert standing == []
        return "gone"
    if "is there again" in reason or "was reworded back" in reason:
        assert edit.gone in now
        return "as it was"
    raise AssertionError(reason)


def test_one_old_fact_is_taken_back_or_it_is_said_truly_why_not(past: Past) -> None:
    outcomes: Counter[str] = Counter()
    newlines = Hot(16).newlines
    chosen = random.Random(5).sample(past.edits, REVERTED)
    for edit in chosen:
        path, file = f"notes/n{edit.note}.md", past.root / f"memories/notes/n{edit.note}.md"
        before = file.read_bytes()
        try:
            applied = past.memory.git.revert(past.commits[edit.commit], [path])
        except RevertRefused as error:
            assert file.read_bytes() == before
            outcomes[check_reason(edit, lines(before), error.reasons)] += 1
            continue
        check_reverted(edit, before, file.read_bytes(), newlines[edit.note])
        assert [each.path for each in applied.files] == [path]
        outcomes["taken back"] += 1
        past.memory.undo(applied.id)
        assert file.read_bytes() == before
    assert sum(outcomes.values()) == REVERTED
    assert outcomes["taken back"] > REVERTED // 2, outcomes


def test_the_last_change_of_each_fact_is_taken_back_by_its_words(past: Past) -> None:
    """The last thing that happened to a fact can always be taken back: nothing has changed it since."""
    by_fact: dict[str, Edit] = {}
    for edit in past.edits:
        number = re.search(r"number(\d+)", edit.come or edit.gone)
        assert number
        by_fact[number[1]] = edit
    newlines = Hot(16).newlines
    for edit in random.Random(6).sample(sorted(by_fact.values()), LAST):
        path, file = f"notes/n{edit.note}.md", past.root / f"memories/notes/n{edit.note}.md"
        before = file.read_bytes()
        applied = past.memory.git.revert(f"{path}:{said(edit.come or edit.gone)}")
        check_reverted(edit, before, file.read_bytes(), newlines[edit.note])
        past.memory.undo(applied.id)
