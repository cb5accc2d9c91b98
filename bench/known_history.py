"""Makes a history whose truth is known, and asks mdmem for it; then takes real changes back.

`python bench/known_history.py --commits 320 --seed S` makes a repository of memories, each commit with one
operation on one of them, and holds `git diff`, `git blame` and `git revert` to what was done. With `--actors`
three actors edit, move, undo, redo and revert, with direct edits between, and commit now and then: the names
that `git blame` and the trailers of each commit tell, and what each revert leaves, are held to it. With
`--trees GIT_DIRECTORY…` it takes real changes of Markdown files back later, beside `git merge-file`; with
`--show N` it prints the first N: what was changed, and what took it back.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from difflib import unified_diff
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple

from merge_edits import Editor
from merge_oracle import Line, Version
from merging import by_lines

import mdmem
from mdmem.document.document import parse_text
from mdmem.document.merging.reverting import take_back
from mdmem.errors import MdmemError

OPERATIONS = {
    "add_item": 3,
    "add_last_item": 4,
    "add_child": 2,
    "reword": 6,
    "remove": 2,
    "move_item": 3,
    "indent_item": 1,
    "rename_heading": 1,
    "move_section": 1,
    "add_row": 2,
    "change_row": 2,
    "renumber": 1,
    "add_paragraph": 2,
    "add_section": 1,
    "put_below_heading": 1,
}
WORDS = """agent answer backup branch build cache client commit config database default deploy design editor
error folder format index journal language limit network option parser pattern query queue record release
request review rule schema server session snapshot storage style table token vault watcher worker""".split()  # noqa: SIM905


class Commit(NamedTuple):
    """A memory before and after one operation."""

    path: str
    operation: str
    before: Version
    after: Version

    def facts(self, version: Version) -> dict[int, str]:
        """The words of each fact, all but headings, by its first line."""
        found: dict[int, list[str]] = {}
        for number, said in version.keys.items():
            place = version.places[number]
            if place.kind != "heading" and words(said):
                found.setdefault(place.block if place.kind == "text" else number, []).append(words(said))
        return {number: " ".join(said) for number, said in found.items()}


class History:
    """Memories as people and agents write them, and what was done to them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.numbers = count(1)
        self.now = {f"notes/topic-{number}.md": self.note(number) for number in range(12)}
        self.commits: list[Commit] = []

    def sentence(self) -> str:
        words = " ".join(self.chance.choices(WORDS, k=self.chance.randint(4, 12)))
        return f"{words.capitalize()} base{next(self.numbers)}."

    def note(self, number: int) -> Version:
        texts = [
            "---",
            f"title: Topic {number}",
            "tags: [a]",
            "---",
            f"# Topic {number}",
            "",
            self.sentence(),
            "",
        ]
        for title in ("Facts", "Steps", "Open questions"):
            texts += [f"## {title} of {number}", ""]
            for at in range(self.chance.randint(3, 7)):
                marker = f"{at + 1}." if title == "Steps" else "-"
                texts.append(f"{marker} {self.sentence()}")
                texts += [f"  - {self.sentence()}"] * (marker == "-" and self.chance.random() < 0.3)
            texts += [""]
        texts += [
            "| what | why |",
            "| --- | --- |",
            *(f"| {self.sentence()} | {self.sentence()} |" for _ in range(3)),
        ]
        return Version([Line(next(self.numbers), text) for text in texts])

    def step(self) -> None:
        names = [name for name, often in OPERATIONS.items() for _ in range(often)]
        path, operation = self.chance.choice([*self.now]), self.chance.choice(names)
        before = Version(self.now[path].lines)
        editor = Editor(before, "word", self.chance, None)
        editor.numbers = self.numbers
        editor.edit(1, [operation])
        if editor.version.text != before.text:
            self.commits.append(Commit(path, operation, before, editor.version))
            self.now[path] = editor.version


def words(text: str) -> str:
    """The words of a text; a number alone may be a marker, and one that goes on a paragraph is none."""
    return " ".join(re.findall(r"\b(?!\d+\b)\w+", text))


def git(folder: str, *arguments: str) -> str:
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    settings |= {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **settings}, capture_output=True, check=True
    )
    return done.stdout.decode("utf-8", "replace").rstrip("\n")


# ---------------------------------------------------------------------------------------- what mdmem says


def wrong_diff(commit: Commit, rows: list[mdmem.MemoryChange]) -> str:
    """What of a diff by fact is not what was done; empty when all is."""
    before, after = commit.facts(commit.before), commit.facts(commit.after)
    truth = {
        "fact-added": {("", after[number]) for number in after.keys() - before.keys()},
        "fact-removed": {(before[number], "") for number in before.keys() - after.keys()},
        "fact-reworded": {
            (before[number], after[number])
            for number in before.keys() & after.keys()
            if before[number] != after[number]
        },
    }
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        if row.kind not in {"heading", "section"}:
            found[row.change].add((words(row.before or ""), words(row.after or "")))
        if not row.sure:
            return f"a guess: {row.after}"
    for pair in [pair for pair in truth["fact-reworded"] if _is_another(*pair)]:
        if pair not in found["fact-reworded"]:
            truth["fact-reworded"].discard(pair)
            truth["fact-removed"].add((pair[0], ""))
            truth["fact-added"].add(("", pair[1]))
    for change, expected in truth.items():
        if (told := found.pop(change, set())) != expected:
            return f"{change} is {told} and not {expected}"
    moved = {pair[1] for pairs in found.values() for pair in pairs}
    may = set(_stand_elsewhere(commit))
    # What stood in a fact that is told as gone has come into another.
    gone = {number for number, said in before.items() if ("", after.get(number, "")) in truth["fact-added"]}
    may |= {number for number, place in commit.after.places.items() if gone & {*commit.after.chain(place)}}
    if moved - {after[number] for number in may if number in after}:
        return f"{'/'.join(found)}: {min(moved)}"
    if commit.operation in {"move_item", "indent_item", "move_section"} and not rows:
        return "what moved is not told"
    return ""


def _is_another(before: str, after: str) -> bool:
    """Whether so little stayed of the words that both may be told as two facts."""
    one, other = Counter(before.lower().split()), Counter(after.lower().split())
    return 2 * (one & other).total() < 0.66 * (one.total() + other.total())


def _stand_elsewhere(commit: Commit) -> Iterator[int]:
    """The lines that may be told as moved: those that were, what is in them, and what they passed."""
    before, after = commit.before.places, commit.after.places
    lists = {after[n].group for n in commit.after.moved if n in after}
    for number in before.keys() & after.keys():
        was, now = before[number], after[number]
        is_elsewhere = (was.parent, was.heading) != (now.parent, now.heading)
        if (
            is_elsewhere
            or number in commit.after.moved
            or (commit.operation == "move_item" and now.group in lists)
        ):
            yield number


def blamed(history: History, ids: list[str]) -> dict[str, dict[str, set[str]]]:
    """For each fact, the commits that may be named: what wrote its words, or moved or renumbered it since."""
    found: dict[str, dict[int, set[str]]] = defaultdict(dict)
    for path in history.now:
        first = next((c.before for c in history.commits if c.path == path), history.now[path])
        found[path] = {number: {ids[0]} for number in first.keys}
    for commit, name in zip(history.commits, ids[1:], strict=True):
        lines = {line.number: line.text for line in commit.before.lines}
        for number, said in commit.after.keys.items():
            text = next(line.text for line in commit.after.lines if line.number == number)
            if commit.before.keys.get(number) != said:
                found[commit.path][number] = {name}
            elif commit.after.moved or lines[number] != text:
                # Git tells either what moved or what it passed.
                found[commit.path][number].add(name)
    return {
        path: {words(said): found[path][number] for number, said in version.keys.items()}
        for path, version in history.now.items()
    }


def reverted(history: History, commit: Commit) -> tuple[str, str] | None:
    """The one fact that a commit changed, if it is still so, and the memory's text with it taken back."""
    version, before, after = history.now[commit.path], commit.before.keys, commit.after
    changed = [number for number, said in after.keys.items() if before.get(number) != said]
    if len(changed) != 1 or commit.operation == "renumber":
        return None
    (number,) = changed
    place, said = after.places[number], after.keys[number]
    now = {line.number: line.text for line in version.lines}
    old, new = (next((t for n, t in v.lines if n == number), None) for v in (commit.before, after))
    later = history.commits[history.commits.index(commit) + 1 :]
    is_one_fact = place.kind in {"item", "row", "text"} and (place.kind != "row" or place.group != number)
    is_as_then = now.get(number) == new and not any(
        number in each.after.moved or each.after.keys.get(number) != said
        for each in later
        if each.path == commit.path
    )
    has_children = any(each.parent == number for each in version.places.values())
    # The blank line beside a paragraph is anybody's; other words may be another fact.
    is_unclear = place.kind == "text" if old is None else _is_another(words(before[number]), words(said))
    if not is_one_fact or not is_as_then or has_children or is_unclear:
        return None
    texts = ((old if number == n else text) for n, text in now.items())
    return said.strip("| ").split(" | ")[0], "".join(f"{text}\n" for text in texts if text is not None)


def make(history: History, folder: str) -> tuple[mdmem.Memory, list[str]]:
    """Make the repository, and give its vault and its commits."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    memory = mdmem.open(mdmem.init(Path(folder, "memories")).root)
    first = {**history.now}
    for commit in reversed(history.commits):
        first[commit.path] = commit.before
    for path, version in first.items():
        Path(memory.root, path).parent.mkdir(exist_ok=True)
        Path(memory.root, path).write_text(version.text)
    for step in [None, *history.commits]:
        if step:
            Path(memory.root, step.path).write_text(step.after.text)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", step.operation if step else "first")
    return memory, git(folder, "rev-list", "--reverse", "HEAD").split()


def problems(history: History, memory: mdmem.Memory, ids: list[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with each answer, empty where it is right, and whose answer it is."""
    for (one, other), commit in zip(pairwise(ids), history.commits, strict=True):
        problem = wrong_diff(commit, memory.git.diff(f"{one}..{other}"))
        yield "diff", problem and f"{commit.operation} {commit.path} {other[:8]}: {problem}"
    for path, truth in blamed(history, ids).items():
        for said in memory.git.blame(path):
            names = truth.get(words(said.text))
            if names:
                yield (
                    "blame",
                    "" if said.commit in names else f"{path}:{said.line}: {said.commit} {said.text}",
                )
    for commit in history.commits:
        found = reverted(history, commit)
        if found:
            file = Path(memory.root, commit.path)
            try:
                memory.git.revert(f"{commit.path}:{found[0]}")
                problem = "" if file.read_text() == found[1] else "another text"
            except MdmemError as error:
                problem = str(error)
            file.write_text(history.now[commit.path].text)
            yield "revert", problem and f"{commit.operation} {commit.path}:{found[0]}: {problem}"


def ask(history: History, folder: str) -> bool:
    """Print how much of what mdmem says of a history is right, and what is wrong."""
    found = defaultdict(list)
    for what, problem in problems(history, *make(history, folder)):
        found[what].append(problem)
    for what, each in found.items():
        print(f"{what}: {each.count('')} of {len(each)} right", *filter(None, each), sep="\n  ")
    return not any(any(each) for each in found.values())


# ---------------------------------------------------------------------------------------- three actors

ACTORS = ("claude", "codex", "ada")
DIRECT = ""
SHARES = {"edit": 50, "direct": 6, "undo": 12, "redo": 6, "revert": 12, "move": 3, "commit": 11}


class Done(NamedTuple):
    """A change that can be undone: its id in the vault, the note, its path and version before and after."""

    id: str
    note: int
    actor: str
    before: tuple[str, Version]
    after: tuple[str, Version]
    makes: bool = True


class Team(History):
    """Memories that three actors change, and who made each line, by its number and what it says."""

    def __init__(self, chance: random.Random, memory: mdmem.Memory) -> None:
        super().__init__(chance)
        self.vault = {actor: mdmem.open(memory.root, actor=actor) for actor in ACTORS}
        self.memory = memory
        self.state = dict(enumerate(self.now.items()))
        self.makers: dict[tuple[int, int, str], str] = {}
        self.heads: dict[int, list[tuple[str, Version]]] = defaultdict(list)
        self.standing: list[Done] = []
        self.undone: list[Done] = []
        self.since: list[Done] = []
        self.told: list[tuple[str, str]] = []
        for note, (path, version) in self.state.items():
            self.write_file(path, version)
            self.make(note, version, DIRECT)
        self.commit()

    def write_file(self, path: str, version: Version) -> None:
        file = Path(self.memory.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(version.text)

    def make(self, note: int, version: Version, actor: str) -> None:
        for number, said in version.keys.items():
            self.makers.setdefault((note, number, said), actor)

    def act(self) -> None:
        getattr(self, self.chance.choices([*SHARES], [*SHARES.values()])[0])()

    def change(self, actor: str) -> Done | None:
        note = self.chance.choice([*self.state])
        path, before = self.state[note]
        editor = Editor(Version(before.lines), "word", self.chance, None)
        editor.numbers = self.numbers
        editor.edit(1, [name for name, often in OPERATIONS.items() for _ in range(often)])
        after = editor.version
        if after.text == before.text:
            return None
        self.make(note, after, actor)
        self.state[note] = path, after
        return Done("", note, actor, (path, before), (path, after))

    def edit(self) -> None:
        actor = self.chance.choice(ACTORS)
        if done := self.change(actor):
            path, version = done.after
            applied = self.vault[actor].write(path, version.text, overwrite=True)
            self.keep(done._replace(id=applied.id))

    def keep(self, done: Done) -> None:
        self.standing.append(done)
        self.since.append(done)
        self.undone.clear()

    def direct(self) -> None:
        if done := self.change(DIRECT):
            self.write_file(*done.after)
            self.since.append(done)

    def move(self) -> None:
        actor, note = self.chance.choice(ACTORS), self.chance.choice([*self.state])
        path, version = self.state[note]
        new = f"notes/moved-{next(self.numbers)}.md"
        applied = self.vault[actor].mv(path, new)
        self.state[note] = new, version
        self.keep(Done(applied.id, note, actor, (path, version), (new, version)))

    def undo(self) -> None:
        last = [done for done in self.standing[-3:] if self.state[done.note] == done.after]
        if last:
            done = self.chance.choice(last)
            self.vault[self.chance.choice(ACTORS)].undo(done.id)
            self.state[done.note] = done.before
            self.standing.remove(done)
            self.undone.append(done)

    def redo(self) -> None:
        if self.undone and self.state[self.undone[-1].note] == self.undone[-1].before:
            done = self.undone.pop()
            self.vault[self.chance.choice(ACTORS)].redo()
            self.state[done.note] = done.after
            self.standing.append(done)
            self.since.append(done)

    def revert(self) -> None:
        """Revert a row or an item whose last change in git is plain, and nothing but its words."""
        note = self.chance.choice([*self.state])
        path, now = self.state[note]
        for number in self.chance.sample([*now.keys], len(now.keys)):
            wanted = self.find_reverted(note, number)
            if wanted is None:
                continue
            actor, said = self.chance.choice(ACTORS), now.keys[number].strip("| ").split(" | ")[0]
            try:
                applied = self.vault[actor].git.revert(f"{path}:{said}")
            except MdmemError as error:
                self.told.append(("revert", f"{path}:{said}: {error}"))
                return
            text = Path(self.memory.root, path).read_text()
            self.told.append(("revert", "" if text == wanted.text else f"{path}:{said}: another text"))
            self.write_file(path, wanted)
            self.state[note] = path, wanted
            if text == wanted.text:
                self.keep(Done(applied.id, note, actor, (path, now), (path, wanted), makes=False))
            return

    def find_reverted(self, note: int, number: int) -> Version | None:
        """The note with one line as it was before its last change in git; None where that is not plain."""
        now = self.state[note][1]
        versions = [*(version for _, version in self.heads[note]), now]
        if not _stands_alone(now, number):
            return None
        own = _text_of(now, number)
        for after, before in pairwise(reversed(versions)):
            if _has_other_order(before, after):
                return None
            old = _text_of(before, number)
            if old is None:
                return Version([line for line in now.lines if line.number != number])
            if old != own:
                was, said = before.keys[number], now.keys[number]
                is_plain = old.replace(was, said) == own and not _is_another(words(was), words(said))
                lines = [Line(n, old if n == number else text) for n, text in now.lines]
                return Version(lines) if is_plain else None
        return None

    def commit(self) -> None:
        before = {note: versions[-1] for note, versions in self.heads.items()}
        if before == self.state:
            return
        if not before:
            git(self.memory.root, "add", "--all", "..")
            git(self.memory.root, "commit", "--quiet", "--message", "first")
        else:
            committed = self.memory.git.commit(f"step {len(self.since)}")
            self.check_trailers(before, committed.message)
        for note, state in self.state.items():
            if before.get(note) != state:
                self.heads[note].append(state)
                self.check_blame(note)
        self.since.clear()

    def check_trailers(self, before: dict[int, tuple[str, Version]], message: str) -> None:
        found = {*re.findall(r"^Mdmem-Agent: (.*)$", message, re.MULTILINE)}
        must, may = set[str](), set[str]()
        for note, (path, version) in self.state.items():
            old_path, old = before[note]
            for number, said in version.keys.items():
                if old.keys.get(number) != said:
                    must.add(self.makers[note, number, said])
            if path != old_path or version.text != old.text:
                may |= {done.actor for done in self.since if done.note == note and done.makes}
        problem = f"{sorted(found)}, and not {sorted(must)}"
        is_right = must - {DIRECT} <= found <= must | may
        self.told.append(("trailers", "" if is_right else problem))

    def check_blame(self, note: int) -> None:
        path, version = self.state[note]
        truth = {words(said): self.makers[note, number, said] for number, said in version.keys.items()}
        for said in self.memory.git.blame(path):
            if (actor := truth.get(words(said.text))) is not None:
                right = said.agent == actor and said.sure
                problem = f"{path}:{said.line}: {said.agent!r}, {said.sure}, and not {actor!r}: {said.text}"
                self.told.append(("names", "" if right else problem))


def _text_of(version: Version, number: int) -> str | None:
    return next((text for each, text in version.lines if each == number), None)


def _stands_alone(version: Version, number: int) -> bool:
    """Whether a line is a row or an item in which nothing stands, and no other line says the same."""
    place = version.places.get(number)
    is_fact = place and (place.kind == "item" or (place.kind == "row" and place.group != number))
    has_children = any(each.parent == number for each in version.places.values())
    return bool(is_fact) and not has_children and [*version.keys.values()].count(version.keys[number]) == 1


def _has_other_order(before: Version, after: Version) -> bool:
    """Whether a line has passed another, or come to stand elsewhere."""
    common = before.keys.keys() & after.keys.keys()
    orders = ([line.number for line in each.lines if line.number in common] for each in (before, after))
    places = (
        {n: (p.parent, p.heading) for n, p in each.places.items() if n in common} for each in (before, after)
    )
    return len({tuple(order) for order in orders}) > 1 or len({str(sorted(p.items())) for p in places}) > 1


def ask_team(steps: int, chance: random.Random, folder: str) -> bool:
    """Let three actors do so many steps, and print how much of what mdmem says of them is right."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    team = Team(chance, mdmem.open(mdmem.init(Path(folder, "memories")).root))
    for _ in range(steps):
        team.act()
    team.commit()
    for what in ("names", "trailers", "revert"):
        problems = [problem for each, problem in team.told if each == what]
        print(f"{what}: {problems.count('')} of {len(problems)} right", *filter(None, problems), sep="\n  ")
    return not any(problem for _, problem in team.told)


# ---------------------------------------------------------------------------------------- real changes


def taken_back(trees: list[str], most: int, seed: int, shown: int) -> None:
    """Take real changes back later, count how many are clean, and print some beside what was changed."""
    chance, clean, tried = random.Random(seed), Counter[str](), 0
    for tree in trees:
        named = git(tree, "log", "--no-merges", "--format=%H", "--name-only", "--diff-filter=M", "--", "*.md")
        touched = defaultdict(list)
        commit = ""
        for line in filter(None, named.splitlines()):
            if re.fullmatch(r"[0-9a-f]{40}", line):
                commit = line
            else:
                touched[line.strip('"')].append(commit)
        old = [(path, each, commits[0]) for path, commits in touched.items() for each in commits[2:]]
        for path, each, last in chance.sample(old, min(len(old), most // len(trees))):
            try:
                texts = [git(tree, "show", f"{name}:{path}") + "\n" for name in (each, f"{each}^", last)]
            except subprocess.CalledProcessError:
                continue
            if len(set(texts)) < 3 or max(map(len, texts)) > 100_000:
                continue
            tried += 1
            after, before, now = (parse_text("a.md", text) for text in texts)
            done = take_back(before, after, now)
            clean["mdmem"] += not done.refused
            clean["git merge-file"] += by_lines(*texts).is_clean
            if not done.refused and clean["mdmem"] <= shown:
                print(f"==== {tree} {each} {path}", *done.skipped, sep="\n")
                for one, other in ((before.text, after.text), (now.text, done.text)):
                    print(*unified_diff(one.split("\n"), other.split("\n"), lineterm="", n=2), sep="\n")
    print(f"{tried} real changes taken back: " + ", ".join(f"clean with {k} {v}" for k, v in clean.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold diff, blame and revert to a history of known truth.")
    parser.add_argument("--commits", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trees", nargs="*", default=[], help="git directories of real Markdown")
    parser.add_argument("--changes", type=int, default=450, help="how many real changes are taken back")
    parser.add_argument("--show", type=int, default=0, help="how many of those that are clean are printed")
    parser.add_argument("--actors", action="store_true", help="three actors, with undos, redos and reverts")
    given = parser.parse_args()
    if given.trees:
        taken_back(given.trees, given.changes, given.seed, given.show)
        return 0
    if given.actors:
        for name in ("AUTHOR", "COMMITTER"):
            os.environ |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@example.org"}
        with tempfile.TemporaryDirectory() as folder:
            return 0 if ask_team(given.commits, random.Random(given.seed), folder) else 1
    history = History(random.Random(given.seed))
    while len(history.commits) < given.commits:
        history.step()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if ask(history, folder) else 1


if __name__ == "__main__":
    sys.exit(main())
