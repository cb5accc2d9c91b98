"""Histories in facts: what came and went between any two commits is named once, and who said it is right.

One is of notes that grow as those of people and agents do, one of documentation whose files move, and one
is this repository's own. What is named is held against counts of facts and of lines, which know no pairs.
"""

from __future__ import annotations

import io
import random
import re
import subprocess
import tarfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import mdmem
from mdmem.document.document import parse
from mdmem.document.merging.facts import facts
from tests import speed
from tests.git.conftest import set_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mdmem.facade.memory import Memory
    from mdmem.review.review import MemoryChange

ROOT = Path(__file__).parents[2]
WORDS = [
    *("agent", "answer", "backup", "branch", "build", "cache", "client", "commit", "config", "database"),
    *("default", "deploy", "design", "editor", "error", "file", "folder", "format", "index", "journal"),
    *("key", "language", "limit", "link", "lock", "log", "merge", "model", "network", "note", "option"),
    *("parser", "path", "pattern", "plan", "query", "queue", "record", "release", "request", "result"),
    *("review", "rule", "schema", "scope", "server", "session", "snapshot", "storage", "style", "table"),
]
DAY = 86_400
COUNT = 70 if speed.is_all else 21  # of commits in a history


class Commit(NamedTuple):
    """A commit that is to be made: files with their content, None for one that goes."""

    message: str
    files: dict[str, str | None]


class History:
    """A history that git is told at once."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self.files: dict[str, list[str]] = {}
        self.commits: list[Commit] = []

    def commit(self, *changed: str, message: str = "") -> None:
        number = len(self.commits)
        trailers = f"Mdmem-Op: edit {number}\nMdmem-Agent: agent-{number % 3}"
        files = {path: "\n".join(self.files[path]) + "\n" if path in self.files else None for path in changed}
        self.commits.append(Commit(f"{message or f'commit {number}'}\n\n{trailers}\n", files))

    def sentence(self) -> str:
        """Words that no other sentence has, with the number of the commit that they are in."""
        words = " ".join(self.chance.choices(WORDS, k=self.chance.randint(4, 14)))
        return f"{words.capitalize()} {self.chance.randrange(10**6)} c{len(self.commits)}."

    def stream(self) -> bytes:
        parts: list[bytes] = []
        for number, (message, files) in enumerate(self.commits):
            when = f"A <a@example.org> {1_700_000_000 + number * DAY} +0000"
            parts.append(f"commit refs/heads/main\nauthor {when}\ncommitter {when}\n".encode())
            parts.append(data(message))
            for path, text in files.items():
                parts.append(f"D {path}\n".encode() if text is None else f"M 100644 inline {path}\n".encode())
                parts += [] if text is None else [data(text)]
        return b"".join(parts)


def data(text: str) -> bytes:
    return b"data %d\n%s\n" % (len(text.encode()), text.encode())


def notes(count: int) -> History:
    """Notes that grow: facts are added, reworded, taken away, moved to other sections, given other fields."""
    made = History("notes")
    chance = made.chance
    for number in range(12):
        path = f"memories/notes/topic-{number}.md"
        made.files[path] = [
            *("---", f"title: Topic {number}", "tags: [a]", "---", f"# Topic {number}", ""),
            *(
                "## Facts",
                "",
                f"- {made.sentence()}",
                f"- {made.sentence()}",
                "",
                "## Open",
                "",
                made.sentence(),
            ),
        ]
    made.commit(*made.files)
    while len(made.commits) < count:
        path = chance.choice([*made.files])
        lines = made.files[path]
        items = [at for at, line in enumerate(lines) if line.startswith("- ")]
        what = chance.randrange(9)
        if what <= 2 or not items:
            lines.insert(lines.index("## Facts") + 2, f"- {made.sentence()}")
        elif what == 3:
            at = chance.choice(items)
            lines[at] = re.sub(
                r" (\S+) (\S+) c[0-9]+\.", rf" reworded \1 \2 c{len(made.commits)}.", lines[at]
            )
        elif what == 4:
            del lines[chance.choice(items)]
        elif what == 5:
            lines.append(lines.pop(chance.choice(items)))
        elif what == 6:
            lines[2] = f"tags: [{', '.join(chance.sample(WORDS, 2))}]"
        elif what == 7:
            lines += ["", made.sentence(), "", f"### {made.sentence()}", "", f"1. {made.sentence()}"]
        else:
            renamed = f"memories/notes/renamed-{len(made.commits)}.md"
            made.files[renamed] = made.files.pop(path)
            made.commit(path, renamed)
            continue
        made.commit(path)
    return made


def documentation(count: int) -> History:
    """Pages with tables, code and links: folders move and links follow, lines are wrapped, pages split."""
    made = History("docs")
    chance = made.chance
    for number in range(10):
        other = chance.randrange(10)
        made.files[f"memories/guide/page-{number}.md"] = [
            *(f"# Page {number}", "", made.sentence(), made.sentence(), "", "## Options", ""),
            *("| name | meaning |", "|---|---|", f"| a{number} | {made.sentence()} |", ""),
            *(f"See [the other page](page-{other}.md) before {made.sentence()}", ""),
            *(
                "```py",
                f"x = {number}",
                "```",
                "",
                "## Steps",
                "",
                f"1. {made.sentence()}",
                f"2. {made.sentence()}",
            ),
        ]
    made.commit(*made.files)
    while len(made.commits) < count:
        path = chance.choice([*made.files])
        lines = made.files[path]
        what = chance.randrange(6)
        if what == 0:
            folder = f"memories/{chance.choice(WORDS)}-{len(made.commits)}"
            moved = {old: f"{folder}/{Path(old).name}" for old in chance.sample([*made.files], 3)}
            for old, new in moved.items():
                made.files[new] = [line.replace("(page-", "(../guide/page-") for line in made.files.pop(old)]
            made.commit(*moved, *moved.values())
            continue
        if what == 1:
            at = lines.index("|---|---|")
            lines.insert(at + 1, f"| b{len(made.commits)} | {made.sentence()} |")
        elif what == 2:
            lines[2:4] = [*f"{lines[2]} {lines[3]}".rsplit(" ", 3)[:1], " ".join(lines[3].split()[-3:])]
        elif what == 3:
            lines[lines.index("```py") + 1] = f"x = {chance.randrange(10**6)}"
        elif what == 4 and "## Steps" in lines and len(lines) > 25:
            at = lines.index("## Steps")
            page = f"memories/guide/steps-{len(made.commits)}.md"
            made.files[page] = [
                "# Steps",
                "",
                *lines[at + 2 :],
                "",
                "## Options",
                "",
                "|---|---|",
                "```py",
                "x",
                "```",
            ]
            del lines[at:]
            made.commit(path, page)
            continue
        else:
            lines.append(f"{chance.randrange(9) + 1}. {made.sentence()}")
        made.commit(path)
    return made


def imported(made: History, folder: Path) -> Memory:
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=folder, check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=made.stream(), check=True)
    subprocess.run(["git", "reset", "--quiet", "--hard"], cwd=folder, check=True)
    mdmem.init(folder / "memories")
    return mdmem.open(folder / "memories")


@pytest.fixture(params=[notes, documentation])
def history(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    set_up(monkeypatch)
    return imported(request.param(COUNT), tmp_path / "work")


# ------------------------------------------------------------------------------------------------ oracles


def run_git(memory: Memory, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=memory.workspace, check=True, capture_output=True).stdout


def versions(memory: Memory, commit: str) -> dict[str, str]:
    """The text of every memory in a commit, by path."""
    prefix = Path(memory.root).relative_to(memory.workspace).as_posix() + "/"
    found = {}
    with tarfile.open(fileobj=io.BytesIO(run_git(memory, "archive", commit))) as archive:
        for member in archive:
            path = member.name.removeprefix(prefix)
            is_memory = member.name.startswith(prefix) or path == "AGENTS.md"
            if (
                is_memory
                and path.endswith(".md")
                and path[0] != "."
                and (file := archive.extractfile(member))
            ):
                found[path] = file.read().decode()
    return found


def check_named_once(before: dict[str, str], after: dict[str, str], changes: Sequence[MemoryChange]) -> None:
    """Every fact that is in one state more often than in the other is named, and none is named twice."""
    rows = [change for change in changes if change.kind]
    gone = [(row.old_path or row.path, row.old_line or row.line) for row in rows if row.before is not None]
    renamed = {change.path: change.old_path for change in changes if change.change == "memory-renamed"}
    gone = [(renamed.get(path, path), line) for path, line in gone]
    come = [(row.path, row.line) for row in rows if row.after is not None]
    assert len(set(gone)) == len(gone)
    assert len(set(come)) == len(come)
    olds, news = (
        Counter(fact.said for path, text in state.items() for fact in facts(parse(path, text.encode())))
        for state in (before, after)
    )
    lost, won = Counter(row.before for row in rows), Counter(row.after for row in rows)
    del lost[None], won[None]
    assert olds - lost == news - won
    assert not (olds - news) - lost
    assert not (news - olds) - won
    check_lines(before, after, lost)
    check_lines(after, before, won)


def check_lines(these: dict[str, str], others: dict[str, str], named: Iterable[str]) -> None:
    """Every line of a body that one state alone has is a part of what is named."""
    known = Counter(line for text in others.values() for line in body(text))
    told = " | ".join(" ".join(re.findall(r"\w+", text)) for text in named)
    for line, count in (Counter(line for text in these.values() for line in body(text)) - known).items():
        words = " ".join(re.findall(r"\w+", re.sub(r"^\s*(?:[-*+]|[0-9]+[.)])\s", "", line)))
        # A paragraph that is only wrapped otherwise says the same.
        again = any(words in " ".join(re.findall(r"\w+", text)) for text in others.values())
        assert words in told or again, (line, count)


def body(text: str) -> list[str]:
    return parse("a.md", text.encode()).body.splitlines()


def commits(memory: Memory) -> list[str]:
    return run_git(memory, "rev-list", "--reverse", "HEAD").decode().split()


def test_each_fact_between_neighbouring_commits_is_named_once(history: Memory) -> None:
    ids = commits(history)
    states = [versions(history, each) for each in ids]
    for number in range(1, len(ids)):
        changes = history.git.diff(f"{ids[number - 1]}..{ids[number]}")
        check_named_once(states[number - 1], states[number], changes)
        assert bool(changes) == (states[number - 1] != states[number])


def test_each_fact_between_distant_commits_is_named_once(history: Memory) -> None:
    ids = commits(history)
    for first, last in ((0, -1), (COUNT // 7, COUNT // 7 * 4), (COUNT // 7 * 6, 5), (-1, 0)):
        changes = history.git.diff(f"{ids[first]}..{ids[last]}")
        check_named_once(versions(history, ids[first]), versions(history, ids[last]), changes)


def test_what_the_files_hold_is_compared_as_a_commit_is(history: Memory) -> None:
    ids = commits(history)
    for each in (ids[-5], ids[COUNT // 7 * 2]):
        changes = history.git.diff(each)
        check_named_once(versions(history, each), versions(history, ids[-1]), changes)


def test_who_said_a_fact_is_the_commit_that_it_tells_of(history: Memory) -> None:
    """Each sentence ends with the number of the commit that it was written, or reworded, in."""
    ids = commits(history)
    checked = 0
    for listed in history.ls():
        for said in history.git.blame(listed.path):
            number = re.search(r" c([0-9]+)\.?$", said.text)
            # What a page was split from has other lines than the page, and git follows none to another file.
            if number and "steps" not in listed.path and said.kind == "item":
                written = ids[int(number[1])]
                assert said.commit == written
                assert (said.agent, said.operations) == (
                    f"agent-{int(number[1]) % 3}",
                    (f"edit {number[1]}",),
                )
                checked += 1
    assert checked > 10


def test_the_log_of_a_memory_is_that_of_git(history: Memory) -> None:
    for listed in [*history.ls()][:6]:
        named = run_git(history, "log", "--follow", "--format=%H", "--", f"memories/{listed.path}")
        theirs = named.decode().split()
        assert [commit.commit for commit in history.git.log(listed.path)] == theirs


@pytest.mark.soak
def test_this_repository_tells_each_fact_once() -> None:
    inside: Any = subprocess.run(
        ["git", "rev-parse", "--is-inside-work-tree"], cwd=ROOT, capture_output=True, check=False
    )
    if inside.returncode:
        pytest.skip("it stands in no repository here")
    memory = mdmem.open(ROOT / "memories")
    touched = [commit.commit for commit in memory.git.log()][::-1]
    assert touched
    states = [versions(memory, each) for each in touched]
    for number in range(1, len(touched)):
        changes = memory.git.diff(f"{touched[number - 1]}..{touched[number]}")
        check_named_once(states[number - 1], states[number], changes)
    for listed in memory.ls("notes"):
        assert all(said.commit or said.note for said in memory.git.blame(listed.path))
