"""Two users of one vault at random: nothing is answered or changed beyond what is shared at that moment."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.diagnostic import as_json
from mdmem.errors import MdmemError
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.tools import Toolbox
from tests.end_to_end import test_wall as wall
from tests.speed import soak_most

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

CONFIG = "[sharing]\nenabled = true\n"
USERS = ("bob", "carol", "everyone")
LEVELS = ("read", "write", "full")
NAMES = (
    "notes/a.md",
    "notes/b.md",
    "notes/deep/c.md",
    "d.md",
    "projects/demo/notes/e.md",
    "preferences/ui/f.md",
)
# Never shared, whatever they say.
HELD = ("sessions/g.md", "inbox/h.md", "working/threads/i.md")
ENDS = ("", "2999-01-01", "2020-01-01", "soon")
WORDS = ("lamp", "river", "stone", "cloud", "violin", "harbour")


@dataclass
class Note:
    """What the oracle knows of a memory of alice: a word that no other has, its text, and who may use it."""

    mark: str
    body: str
    levels: dict[str, str] = field(default_factory=dict)
    until: str = ""
    broken: bool = False

    def level(self, user: str) -> str:
        if self.broken or self.until in {"2020-01-01", "soon"}:
            return ""
        own = [self.levels[each] for each in (user, "everyone") if each in self.levels]
        return max(own, key=LEVELS.index, default="")

    def text(self) -> str:
        lines = [f"  {level}: [{', '.join(who)}]" for level in LEVELS if (who := self._at(level))]
        lines += [f"  until: {self.until}"] if self.until else []
        access = ["access:", *lines] if lines else []
        front = [f"id: id{self.mark}", *access, *(["tags: [x"] if self.broken else [])]
        return "\n".join(("---", *front, "---", "", f"# Title {self.mark}", "", self.body, ""))

    def _at(self, level: str) -> list[str]:
        return [user for user, of in self.levels.items() if of == level]


class World:
    """The vault, what the oracle knows of it, and who asks."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.draw = root, random.Random(seed)
        mdmem.init(root)
        (root / ".mdmem/config.toml").write_text(CONFIG)
        self.notes: dict[str, Note] = {}
        self.made = 0
        self.wrong: list[str] = []
        for path in (*NAMES, *HELD):
            self.make(path)
        self.put("users/bob/notes/own.md", "lamp river of bob\n")
        self.bob = mdmem.open(root, mdmem.Scope(user="bob"))
        self.box = Toolbox(Bound(memory=self.bob))
        self.shared = self.bob.shared("alice")
        self.alice = mdmem.open(root, mdmem.Scope(user="alice"))

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def make(self, path: str) -> None:
        self.made += 1
        words = " ".join(self.draw.choices(WORDS, k=self.draw.randrange(3, 30)))
        self.notes[path] = Note(f"mark{self.made}x", f"{words} mark{self.made}x [[a]] #tag{self.made}")
        self.save(path)

    def save(self, path: str) -> None:
        self.put(f"users/alice/{path}", self.notes[path].text())

    def level(self, path: str) -> str:
        return self.notes[path].level("bob") if path in self.notes and path not in HELD else ""

    def granted(self) -> set[str]:
        return {path for path in self.notes if self.level(path)}

    # -- what happens ---------------------------------------------------------------------------------------

    def turn(self) -> None:
        """One call of alice or bob, and what the oracle says to it."""
        draw = self.draw
        path = draw.choice([*self.notes])
        if draw.random() < 0.25:
            self.change(path)
        elif draw.random() < 0.3:
            self.write(path)
        else:
            self.ask(path)

    def change(self, path: str) -> None:
        """Alice shares, takes back, rewrites by hand, removes or makes."""
        draw, note = self.draw, self.notes[path]
        act = draw.choice(("share", "unshare", "hand", "hand", "remove"))
        user, level = draw.choice(USERS), draw.choice(LEVELS)
        if act == "share":
            done = self.tried(lambda: self.alice.share(path, user, level))
            if done is not None:
                ended = note.until == "2020-01-01"
                note.levels, note.until = ({} if ended else note.levels), ("" if ended else note.until)
                note.levels = {each: of for each, of in note.levels.items() if each != user} | {user: level}
        elif act == "unshare":
            if self.tried(lambda: self.alice.unshare(path, user)) is not None:
                note.levels.pop(user)
                note.until = note.until if note.levels else ""
        elif act == "hand":
            note.levels = {draw.choice(USERS): draw.choice(LEVELS) for _ in range(draw.randrange(3))}
            note.until, note.broken = draw.choice(ENDS), draw.random() < 0.1
            self.save(path)
        else:
            (self.root / "users/alice" / path).unlink()
            del self.notes[path]
            self.make(draw.choice([each for each in (*NAMES, *HELD) if each not in self.notes]))

    def write(self, path: str) -> None:
        """Bob changes a memory of alice, as a level lets him or not."""
        draw, level = self.draw, self.level(path)
        self.made += 1
        added = f"added{self.made}x"
        act = draw.choice(("append", "append", "replace", "set", "rm", "mv", "own"))
        file = self.root / "users/alice" / path
        before = file.read_text()
        changes: dict[str, Any] = {
            "append": lambda: self.shared.append(path, added),
            "replace": lambda: self.shared.replace(path, " [[a]]", f" {added} [[a]]"),
            "set": lambda: self.shared.set(path, {"note": added}),
            "rm": lambda: self.shared.rm(path),
            "mv": lambda: self.shared.mv(path, f"{path.removesuffix('.md')}-{self.made}.md"),
            "own": lambda: self.shared.set(path, {draw.choice(("id", "expires", "valid_to")): "2999-01-01"}),
        }
        done = self.tried(changes[act]) is not None
        needed = {"rm": "full", "mv": "full", "own": "full"}.get(act, "write")
        may = bool(level) and LEVELS.index(level) >= LEVELS.index(needed)
        if act == "mv" and not done:  # the links of others follow, where bob may change all that he can read
            may = may and "read" not in {self.level(other) for other in self.notes}
        if done != may:
            self.wrong.append(f"{act} {path} with {level!r}: {done}")
        if not done:
            if file.read_text() != before:
                self.wrong.append(f"{act} {path} was refused and changed it")
            return
        if act == "rm":
            del self.notes[path]
            self.make(path)
        elif act == "mv":
            self.notes.pop(path)
            (self.root / "users/alice" / f"{path.removesuffix('.md')}-{self.made}.md").unlink()
            self.make(path)
        else:
            self.save(path)  # back to what the oracle knows

    def ask(self, path: str) -> None:
        """Bob asks; what comes back names no mark of what is not granted, and all of what is."""
        draw, word = self.draw, self.draw.choice((*WORDS, self.notes[path].mark, "Title", "tag:tag3"))
        layer = draw.choice(("from-alice:", f"from-alice:{path}", f"from-alice:{path.rpartition('/')[0]}"))
        call, given = draw.choice(
            (
                ("show", {"path": f"from-alice:{path}"}),
                ("show", {"path": f"from-alice:{path}"}),
                ("ls", {"within": layer}),
                ("ls", {"within": layer, "where": ["id"]}),
                ("grep", {"pattern": word, "within": layer}),
                ("search", {"query": word, "within": layer}),
                ("search", {"query": word}),
                ("grep", {"pattern": word}),
                ("ls", {}),
                ("ls", {"target": f"from-alice:{path}"}),
                ("context", {"query": word}),
                ("show", {"path": path}),
            )
        )
        answer = self.box.call(call, given)
        told = [str(answer.texts) + str(answer.data)]
        if call in {"ls", "grep", "search"} and "target" not in given:
            told.append(self.answer(self.shared, call, given))
        allowed = self.granted() if any("from-alice" in str(value) for value in given.values()) else set()
        asked = str(given)
        for text in told:
            if "'bug'" in text:
                self.wrong.append(f"{call} {given}: {text}")
        for other, note in self.notes.items():
            known = other in allowed or note.mark in asked
            if not known and any(re.search(rf"{note.mark}|id{note.mark}", text) for text in told[:1]):
                self.wrong.append(f"{call} {given} told of {other}")
            if (
                other not in self.granted()
                and any(note.mark in text for text in told[1:])
                and note.mark not in asked
            ):
                self.wrong.append(f"shared {call} {given} told of {other}")
        is_whole = given.get("within") == "from-alice:" and (call == "ls" or word == self.notes[path].mark)
        if is_whole and (f"from-alice:{path}" in told[0]) != bool(self.level(path)):
            self.wrong.append(f"{call} {given} with {self.level(path)!r}: {told[0]}")
        if is_whole and path in self.granted() and f"'{path}'" not in told[1]:
            self.wrong.append(f"shared {call} {given} lacks {path}: {told[1]}")
        if call == "show" and "from-" in given["path"] and answer.is_error == bool(self.level(path)):
            self.wrong.append(f"{call} {path} with {self.level(path)!r}: {answer.texts}")

    def answer(self, shared: Any, call: str, given: dict[str, Any]) -> str:
        """What is answered in Python by the memories that alice shares."""
        given = {**given, "within": given.get("within", "").removeprefix("from-alice:")}
        found = self.tried(lambda: getattr(shared, call)(**given))
        return repr([as_json(each) for each in found] if call == "grep" and found is not None else found)

    def tried(self, call: Any) -> Any:
        try:
            return call()
        except MdmemError:
            return None

    # -- with and without what is not granted ---------------------------------------------------------------

    def compare(self, folder: Path) -> None:
        """Ask a vault in which all is gone that is not granted: what is answered has to be the same."""
        shutil.copytree(self.root / "users", folder / "users")
        shutil.copytree(self.root / ".mdmem", folder / ".mdmem", ignore=lambda *_: ["local"])
        for path in self.notes:
            if not self.level(path):
                (folder / "users/alice" / path).unlink()
        twin = mdmem.open(folder, mdmem.Scope(user="bob"))
        if (own := self.answers(self.bob)) != self.answers(twin):
            differing = [f"{a} != {b}" for a, b in zip(own, self.answers(twin), strict=True) if a != b]
            self.wrong.append("\n".join(differing))
        twin.index.close()
        shutil.rmtree(folder)

    def answers(self, memory: Memory) -> list[str]:
        box, found = Toolbox(Bound(memory=memory)), []
        for within in ("", "from-alice:", "from-alice:notes", "from-alice:notes/a.md"):
            for word in ("lamp river", "violin", "lampp", "title", "tag:tag1", "-lamp", "nothing"):
                results = self.tried(lambda: memory.search(word, within=within, limit=3, explain=True))  # noqa: B023
                found.append(f"{within} {word}: {results!r}")
                found.append(str(box.call("grep", {"pattern": word, "within": within, "limit": 2})))
            found.append(str(box.call("ls", {"within": within, "sort": "-size"})))
            found.append(str(box.call("ls", {"within": within, "where": ["taggs"]})))
            found.append(str(box.call("search", {"within": within, "query": "lamp", "where": ["acces"]})))
        found += [
            str(box.call("show", {"path": f"from-alice:{path}"})) for path in (*NAMES, *HELD, "notes/nope.md")
        ]
        found += [repr(memory.shared.list()), memory.context("lamp", estimated=True).text]
        return [each.replace(str(self.root.parent), "") for each in found]


# 20,000 calls in all.
@pytest.mark.parametrize(("seed", "calls"), soak_most([(1, 250), *((seed, 1_000) for seed in range(2, 10))]))
def test_random_calls_of_two_users_go_beyond_no_grant(tmp_path: Path, seed: int, calls: int) -> None:
    world = World(tmp_path / "memories", seed)
    for number in range(calls):
        world.turn()
        if number % 125 == 124:
            world.compare(tmp_path / "twin")
        assert not world.wrong, f"call {number} of seed {seed}: {world.wrong[0]}"


def test_with_sharing_on_and_nothing_shared_the_wall_answers_as_before(tmp_path: Path) -> None:
    told = []
    for name in ("off", "on"):
        root = wall.made(tmp_path / name, wall.LOUD)
        if name == "on":
            (root / ".mdmem/config.toml").write_text(CONFIG)
        told.append([wall.told(root, scope) for scope in wall.SCOPES])
    assert told[0] == told[1]
