"""Real merges by git: what two branches made of the same memories, with the driver and without mdmem.

Each memory holds words that occur nowhere else. What a side did is written down as the words that it brought
and took away: that is what the result is held to, whatever merges it.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

import mdmem
from mdmem.cli.main import main
from tests.git.conftest import SETTINGS, set_up
from tests.speed import is_all, soak_most

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKER = Path(__file__).with_name("merge_worker.py")
BIN = Path(sys.executable).parent
MARKS = re.compile(r"^(?:<{7} .+|={7}|>{7} .+)$", re.MULTILINE)
MARKED = re.compile(r"^(?:([<|>])\1{6} (.+))$", re.MULTILINE)
GIT = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
# Only since 2.44, git tells a driver what to call the versions.
OURS = "HEAD" if tuple(map(int, re.findall(r"\d+", GIT)[:2])) >= (2, 44) else "ours"
SECTIONS = ("Facts", "Decisions", "Log")
PAIRS, FEW = (150, 3) if is_all else (8, 1)


class Edited(NamedTuple):
    """A text, and the words that an edit brought and took away."""

    text: str
    added: frozenset[str]
    removed: frozenset[str]


class Author:
    """Writes memories and edits them; no word is used twice."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.count = 0

    def word(self, side: str) -> str:
        self.count += 1
        return f"{side}word{self.count:06}"

    def memory(self) -> str:
        fields = [f"title: {self.word('b')}", "type: note", f"status: {self.word('b')}"]
        style = self.random.choice(["flow", "block"])
        tags = [self.word("b") for _ in range(self.random.randint(1, 3))]
        fields += (
            [f"tags: [{', '.join(tags)}]"] if style == "flow" else ["tags:", *(f"  - {tag}" for tag in tags)]
        )
        body = [f"# {self.word('b')}", ""]
        for title in SECTIONS:
            body += [f"## {title}", ""]
            for _ in range(self.random.randint(2, 6)):
                word = self.word("b")
                mark = f" ^{word}id" if self.random.random() < 0.3 else ""
                body.append(f"- {word} is what is known{mark}")
            body.append("")
        return "\n".join(["---", *fields, "---", "", *body[:-1]]) + "\n"

    def edit(self, text: str, side: str) -> Edited:
        """One to three edits of a session: most append, some change what is there."""
        added: set[str] = set()
        removed: set[str] = set()
        kinds = [self.append, self.append, self.in_section, self.reword, self.key, self.tag, self.section]
        kinds += [self.new_key, self.remove, self.move]
        for _ in range(self.random.randint(1, 2)):
            change = self.random.choice(kinds)(text, side)
            text = change.text
            added |= change.added
            removed |= change.removed
        # What one edit brought, the next one may have taken away.
        return Edited(text, frozenset(added - removed), frozenset(removed))

    def append(self, text: str, side: str) -> Edited:
        word = self.word(side)
        return Edited(f"{text}- {word} was learnt\n", frozenset({word}), frozenset())

    def in_section(self, text: str, side: str) -> Edited:
        word, title = self.word(side), self.random.choice(SECTIONS[:-1])
        at = text.index("\n\n## ", text.index(f"## {title}"))
        return Edited(f"{text[:at]}\n- {word} was learnt{text[at:]}", frozenset({word}), frozenset())

    def bullet(self, text: str) -> re.Match[str]:
        return self.random.choice(list(re.finditer(r"^- (\w+) .*\n", text, re.MULTILINE)))

    def reword(self, text: str, side: str) -> Edited:
        word, found = self.word(side), self.bullet(text)
        line = found[0].replace(f"- {found[1]} ", f"- {word} ", 1)
        changed = text[: found.start()] + line + text[found.end() :]
        return Edited(changed, frozenset({word}), frozenset({found[1]}))

    def remove(self, text: str, side: str) -> Edited:
        del side
        found = self.bullet(text)
        return Edited(text[: found.start()] + text[found.end() :], frozenset(), frozenset({found[1]}))

    def move(self, text: str, side: str) -> Edited:
        named = list(re.finditer(r"^- (\w+) .* \^\w+\n", text, re.MULTILINE))
        if not named:
            return self.append(text, side)
        found = self.random.choice(named)
        return Edited(text[: found.start()] + text[found.end() :] + found[0], frozenset(), frozenset())

    def key(self, text: str, side: str) -> Edited:
        word, name = self.word(side), self.random.choice(["title", "status"])
        found = re.search(rf"^{name}: (\w+)$", text, re.MULTILINE)
        assert found
        changed = text[: found.start()] + f"{name}: {word}" + text[found.end() :]
        return Edited(changed, frozenset({word}), frozenset({found[1]}))

    def new_key(self, text: str, side: str) -> Edited:
        word = self.word(side)
        at = text.index("\n---\n", 4)
        return Edited(f"{text[:at]}\n{word}key: {word}{text[at:]}", frozenset({word}), frozenset())

    def tag(self, text: str, side: str) -> Edited:
        word = self.word(side)
        flow = re.search(r"^tags: \[.*(?=\]$)", text, re.MULTILINE)
        if flow:
            changed = f"{text[: flow.end()]}, {word}{text[flow.end() :]}"
        else:
            block = re.search(r"^tags:\n(?:  - \w+\n)+", text, re.MULTILINE)
            assert block
            changed = f"{text[: block.end()]}  - {word}\n{text[block.end() :]}"
        return Edited(changed, frozenset({word}), frozenset())

    def section(self, text: str, side: str) -> Edited:
        word = self.word(side)
        return Edited(f"{text}\n## {word}\n\n- more of {word}\n", frozenset({word}), frozenset())


class Strict(yaml.SafeLoader):
    """Reads YAML, and refuses a key that stands twice, which others let pass."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


class Branches(NamedTuple):
    """A repository with two branches, and what both did to each memory."""

    root: Path
    base: dict[str, str]
    ours: dict[str, Edited]
    theirs: dict[str, Edited]

    def git(self, *arguments: str, path: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **SETTINGS, "PATH": path or f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        line = ["git", *arguments]
        return subprocess.run(line, cwd=self.root, env=environ, capture_output=True, text=True, check=check)

    def conflicts(self) -> set[str]:
        """The memories that git has left to a person."""
        return set(filter(None, self.git("diff", "--name-only", "--diff-filter=U", "-z").stdout.split("\0")))


def branches(root: Path, seed: int, count: int) -> Branches:
    author = Author(random.Random(seed))
    base = {f"memories/notes/n{number:03}.md": author.memory() for number in range(count)}
    ours = {path: author.edit(text, "o") for path, text in base.items()}
    theirs = {path: author.edit(text, "t") for path, text in base.items()}
    return diverged(root, base, ours, theirs)


def diverged(
    root: Path, base: dict[str, str], ours: dict[str, Edited], theirs: dict[str, Edited]
) -> Branches:
    made = Branches(root, base, ours, theirs)
    root.mkdir()
    made.git("init", "--quiet", "--initial-branch=main")
    mdmem.init(root / "memories")
    written(made, base)
    made.git("checkout", "--quiet", "-b", "theirs")
    written(made, {path: edited.text for path, edited in theirs.items()})
    made.git("checkout", "--quiet", "main")
    written(made, {path: edited.text for path, edited in ours.items()})
    return made


def written(made: Branches, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        file = made.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "m")


def install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    set_up(monkeypatch)
    assert main(["git", "install", "--yes"]) == 0


@contextmanager
def answering(root: Path, folder: Path) -> Iterator[str]:
    """A PATH on which `mdmem` is one that need not start anew each time; see `merge_worker.py`."""
    folder.mkdir()
    command = [sys.executable, str(WORKER), str(folder)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield f"{folder}{os.pathsep}{os.environ['PATH']}"
        process.kill()


def words(text: str) -> list[str]:
    return re.findall(r"\b[bot]word\d{6}\b", text)


def held(made: Branches, path: str, *, clean: bool) -> None:
    """Hold the merge of one memory to what both sides did."""
    text, base = (made.root / path).read_text(), made.base[path]
    ours, theirs = made.ours[path], made.theirs[path]
    present = set(words(text))
    assert ours.added | theirs.added <= present, path
    kept = set(words(base)) - ours.removed - theirs.removed
    assert kept <= present, path
    if not clean:
        assert MARKS.findall(text), path
        return
    assert not MARKS.findall(text), path
    assert not present & (ours.removed | theirs.removed), path
    _, front, body = text.split("---\n", 2)
    fields = yaml.load(front, Strict)
    assert isinstance(fields["tags"], list)
    assert len(fields["tags"]) == len(set(fields["tags"]))
    ids = re.findall(r" \^(\w+)$", body, re.MULTILINE)
    assert len(ids) == len(set(ids)), path
    lines = [line for line in body.splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines)), path


@pytest.mark.timeout(600)
def test_concurrent_edits_merge_without_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What both sides changed, each in its own way, is a conflict, and nothing else is."""
    made = branches(tmp_path / "work", seed=0, count=PAIRS)
    install(made.root, monkeypatch)
    with answering(made.root, tmp_path / "bin") as path:
        made.git("merge", "--quiet", "--no-edit", "theirs", path=path, check=False)
    conflicts = made.conflicts()
    for path in made.base:
        held(made, path, clean=path not in conflicts)
    assert conflicts <= {path for path in made.base if made.ours[path].removed & made.theirs[path].removed}
    assert len(conflicts) <= 0.02 * PAIRS


# What takes the place of mdmem on PATH.
BROKEN = {
    "missing": None,
    "raises": "#!/bin/sh\necho 'Traceback (most recent call last):' >&2\nexit 1\n",
    "other": "#!/bin/sh\nexit 0\n",
    "talks": "#!/bin/sh\necho conflict\nexit 2\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "unreadable": "#!/nowhere/python\n",
}


@pytest.mark.parametrize("name", soak_most(BROKEN, quick=(0, 3)))
def test_without_a_sound_mdmem_git_marks_conflicts_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = branches(tmp_path / "work", seed=1, count=20)
    install(made.root, monkeypatch)
    monkeypatch.setenv("said", "conflict")  # a name of the driver's own, too
    folder = tmp_path / "bin"
    folder.mkdir()
    program = BROKEN[name]
    if program:
        (folder / "mdmem").write_text(program)
        (folder / "mdmem").chmod(0o755)
    others = [each for each in os.environ["PATH"].split(os.pathsep) if not Path(each, "mdmem").exists()]
    path = os.pathsep.join([str(folder), *others])
    made.git("merge", "--quiet", "--no-edit", "theirs", path=path, check=False)
    conflicts = made.conflicts()
    assert conflicts
    for each in made.base:
        text = (made.root / each).read_text()
        assert set(words(text)) >= made.ours[each].added | made.theirs[each].added
        assert bool(MARKS.search(text)) == (each in conflicts)


NAMES = ["-x.md", "it's.md", "$(touch x).md", "é.md", "deep/er/;ls.md"]
NAMES += ["a b.md", 'q"q.md', "%A %O.md", "*.md"] if is_all else []


def test_any_name_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {f"memories/notes/{name}": f"# A\n\n- base of {name}\n" for name in NAMES}
    ours = {path: Edited(text + "- oword000001\n", frozenset(), frozenset()) for path, text in base.items()}
    theirs = {path: Edited(text + "- tword000002\n", frozenset(), frozenset()) for path, text in base.items()}
    made = diverged(tmp_path / "work", base, ours, theirs)
    install(made.root, monkeypatch)
    made.git("merge", "--quiet", "--no-edit", "theirs")
    for path, text in base.items():
        assert (made.root / path).read_text() == f"{text}- tword000002\n- oword000001\n"
    assert made.git("status", "--porcelain").stdout == "?? .gitattributes\n"


def test_a_conflict_has_markers_of_the_size_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = {"memories/notes/a.md": "---\ntags: [a]\n---\n# A\n- b\n"}
    ours, theirs = (
        {
            path: Edited(
                text.replace("- b", f"- {side}").replace("[a]", f"[a, {side}]"), frozenset(), frozenset()
            )
        }
        for side in "ot"
        for path, text in base.items()
    )
    made = diverged(tmp_path / "work", base, ours, theirs)
    install(made.root, monkeypatch)
    with (made.root / ".gitattributes").open("a") as file:
        file.write("*.md conflict-marker-size=12\n")
    merged = made.git("merge", "--quiet", "--no-edit", "theirs", check=False)
    assert merged.returncode == 1
    assert (made.root / "memories/notes/a.md").read_text() == (
        f"---\ntags: [a, t, o]\n---\n# A\n<<<<<<<<<<<< {OURS}\n- o\n============\n- t\n>>>>>>>>>>>> theirs\n"
    )


@pytest.mark.parametrize("has_mdmem", [True, False])
def test_markers_say_what_git_says_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_mdmem: bool
) -> None:
    """Beside a memory, a file that is none: a git that names no versions to a driver leaves plain words."""
    paths = ("memories/notes/a.md", "a.txt")
    base, ours, theirs = (dict.fromkeys(paths, f"- {side}\n") for side in "bot")
    sides = ({k: Edited(v, frozenset(), frozenset()) for k, v in each.items()} for each in (ours, theirs))
    made = diverged(tmp_path / "work", base, *sides)
    install(made.root, monkeypatch)
    made.git("config", "merge.conflictStyle", "diff3")
    others = [each for each in os.environ["PATH"].split(os.pathsep) if not Path(each, "mdmem").exists()]
    made.git("rebase", "theirs", check=False, path="" if has_mdmem else os.pathsep.join(others))
    memory, other = (MARKED.findall((made.root / path).read_text()) for path in paths)
    assert memory == (other if OURS == "HEAD" else [("<", "ours"), ("|", "base"), (">", "theirs")])
    assert other[2][1].endswith(" (m)")


def test_json_and_mounted_memories_are_merged_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {
        "memories/data/a.json": '{"step": 1, "open": ["x"]}\n',
        "AGENTS.md": "# P\n\n## Decisions\n\n- a\n",
    }
    ours = {path: text.replace('"x"', '"x", "o"') + "- o\n" * (path[0] == "A") for path, text in base.items()}
    theirs = {path: text.replace('1, "open": [', '2, "open": ["t", ') for path, text in base.items()}
    theirs["AGENTS.md"] += "- t\n"
    sides = ({k: Edited(v, frozenset(), frozenset()) for k, v in each.items()} for each in (ours, theirs))
    made = diverged(tmp_path / "work", base, *sides)
    install(made.root, monkeypatch)
    made.git("merge", "--quiet", "--no-edit", "theirs")
    assert (made.root / "memories/data/a.json").read_text() == '{"step": 2, "open": ["t", "x", "o"]}\n'
    assert (made.root / "AGENTS.md").read_text() == "# P\n\n## Decisions\n\n- a\n- t\n- o\n"


def test_two_branches_that_both_synced_merge_and_the_next_sync_writes_the_rules_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Branches(tmp_path / "work", {}, {}, {})
    made.root.mkdir()
    made.git("init", "--quiet", "--initial-branch=main")
    written(made, {"AGENTS.md": "# P\n\nText.\n"})
    memory = mdmem.open(mdmem.init(made.root / "memories").root)
    written(made, {})
    for branch in ("theirs", "main"):
        made.git("checkout", "--quiet", *(["-b"] if branch == "theirs" else []), branch)
        memory.rules.add(branch, f"Rule of {branch}.")
        memory.project.sync(["agents"])
        memory.append("AGENTS.md", f"Line of {branch}.")
        written(made, {})
    install(made.root, monkeypatch)
    made.git("merge", "--quiet", "--no-edit", "theirs")
    (outdated,) = memory.project.sync(["agents"], check=True).differences
    assert outdated.state == "outdated"
    memory.project.sync(["agents"])
    text = (made.root / "AGENTS.md").read_text()
    for line in ("Rule of main.", "Rule of theirs.", "Line of main.", "Line of theirs."):
        assert text.count(line) == 1, text
    assert memory.project.sync(["agents"], check=True).differences == ()


def test_rebase_and_cherry_pick_merge_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for verb in (["rebase", "--quiet", "theirs"], ["cherry-pick", "theirs"]):
        made = branches(tmp_path / verb[0], seed=3, count=FEW)
        install(made.root, monkeypatch)
        made.git(*verb, check=False)
        conflicts = made.conflicts()
        assert len(conflicts) < len(made.base)
        for path in made.base:
            held(made, path, clean=path not in conflicts)


def test_what_was_stashed_is_merged_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = branches(tmp_path / "work", seed=3, count=FEW)
    install(made.root, monkeypatch)
    made.git("checkout", "--quiet", "HEAD~1")
    for path, edited in made.theirs.items():
        (made.root / path).write_text(edited.text)
    made.git("stash", "--quiet")
    made.git("checkout", "--quiet", "main")
    made.git("stash", "pop", "--quiet", check=False)
    conflicts = made.conflicts()
    assert len(conflicts) < len(made.base)
    for path in made.base:
        held(made, path, clean=path not in conflicts)


def test_what_would_break_the_schema_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side is valid, and both together are not."""
    base = {"memories/notes/a.md": "---\nlinks: [a, b]\n---\n# A\n"}
    ours = {"memories/notes/a.md": Edited("---\nlinks: [a, b, o]\n---\n# A\n", frozenset(), frozenset())}
    theirs = {"memories/notes/a.md": Edited("---\nlinks: [a, b, t]\n---\n# A\n", frozenset(), frozenset())}
    made = diverged(tmp_path / "work", base, ours, theirs)
    schemas = made.root / "memories/.mdmem/schemas"
    schemas.mkdir(exist_ok=True)
    (schemas / "note.json").write_text('{"properties": {"links": {"maxItems": 3}}}')
    install(made.root, monkeypatch)
    merged = made.git("merge", "--no-edit", "theirs", check=False)
    assert merged.returncode == 1
    assert "not valid" in merged.stderr
    assert (made.root / "memories/notes/a.md").read_text() == (
        f"---\n<<<<<<< {OURS}\nlinks: [a, b, o]\n=======\nlinks: [a, b, t]\n>>>>>>> theirs\n---\n# A\n"
    )
