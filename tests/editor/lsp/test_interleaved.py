"""An editor, an agent and renames in the same files, in orders by chance: no line is lost, no answer is old.

Each line that a side writes has a word of its own. The lines and links that must be there are read by
regular expressions, with nothing of ours.
"""

from __future__ import annotations

import difflib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import speed
from tests.editor.lsp.client import UTF16, Client, Refused, uri
from tests.editor.lsp.conftest import make_desk
from tests.editor.lsp.editor import BOM, CONTENT_MODIFIED, Editor, file_of, position_of, span_of
from tests.speed import soak_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.editor.lsp.editor import Buffer

ORDERS = 500
PARTS = 10  # so that several processes share the orders
TOGETHER = 5  # orders that follow each other in the same files
STEPS = 3
ASKED = 0.3  # of the steps, with a question behind them
WORKER = Path(__file__).with_name("agent_worker.py")
TOKEN = re.compile(r"(?<!#)\b[eao][0-9]+x[0-9]+\b")  # behind `#` is only what a link names
LINK = re.compile(r"\[\[([^\]#|]+)(?:#([^\]|]+))?\]\]|\[x\]\(([^)]+)\)")
HEADING = re.compile(r"^#+ (.*?)\r?$", re.MULTILINE)
NAMED_LINE = re.compile(r"cannot be merged: see line ([0-9, ]+)")
MOVED_ON = "changed-on-disk"


class PatientEditor(Editor):
    """An editor in whose files nobody writes until the server has said what it finds in a new buffer."""

    def ask(self, name: str, file: Path, offset: int | None = None, **more: Any) -> Any:
        if name == "willSaveWaitUntil":
            self.client.told["window/showMessage"].clear()
            self.sides = self.sides_of(file)
        return super().ask(name, file, offset, **more)

    def sides_of(self, file: Path) -> tuple[str, str, str]:
        """What a buffer was made from, what stands in it, and what is on disk."""
        buffer = self.buffers[file]
        disk = file.read_bytes() if file.exists() else buffer.seen or b""
        return (buffer.seen or b"").decode(), buffer.text, disk.decode()

    def show(self, file: Path) -> None:
        told = self.client.diagnostics[uri(file)]
        before = len(told)
        super().show(file)
        self.client.wait(lambda: any(each.get("version") is not None for each in told[before:]))


class Agent:
    """Another program, that writes files as programs do: through the library, in place, or by a rename."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.root = root

    def ask(self, *call: str) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


class Table:
    """A desk with an agent beside it, for one process of tests."""

    def __init__(self, folder: Path) -> None:
        self.desk = make_desk(folder, UTF16, Client(cwd=folder))
        self.desk.editor = self.editor = PatientEditor(self.desk.client, UTF16)
        self.agent = Agent(self.desk.root)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    found = Table(tmp_path_factory.mktemp("table"))
    yield found
    found.agent.end()
    assert found.desk.client.close() == 0
    assert found.desk.client.errors == ""


def body_lines(text: str) -> list[str]:
    """The lines of a text that are not blank, without their ends."""
    return [line for line in re.split("\r\n|\n|\r", text.removeprefix(BOM)) if line.strip()]


def changes(before: list[str], after: list[str]) -> list[tuple[int, int, int, int]]:
    """Where lines differ; a heading that comes or goes changes where all stands that is below it."""
    found = []
    for kind, start, end, low, high in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            continue
        is_moved = count_headings(before[start:end]) != count_headings(after[low:high])
        found.append(
            (start, end_of_section(before, end), low, end_of_section(after, high))
            if is_moved
            else (start, end, low, high)
        )
    return found


def count_headings(lines: list[str]) -> int:
    return sum(line.startswith("#") for line in lines)


def end_of_section(lines: list[str], start: int) -> int:
    return next((at for at in range(start, len(lines)) if lines[at].startswith("#")), len(lines))


def contested(base: str, ours: str, theirs: str) -> list[tuple[int, int]]:
    """Which lines of ours, counted without blank ones, stand where both sides changed the base."""
    first, mine, other = (body_lines(text) for text in (base, ours, theirs))
    yours = changes(first, other)
    return [
        (low, high)
        for start, end, low, high in changes(first, mine)
        if any(max(start, other_start) <= min(end, other_end) for other_start, other_end, *_ in yours)
    ]


class Orders:
    """Orders of what an editor, an agent and renames do in the same files, chosen by chance."""

    def __init__(self, table: Table, number: int) -> None:
        self.chance = random.Random(f"orders {number}")
        self.number, self.count = number, 0
        self.desk, self.agent = table.desk, table.agent
        self.editor = table.editor
        self.live: set[str] = set()
        self.log: list[str] = []
        self.desk.clear()
        self.editor.pause = self.pause
        a, b, c, d = (self.token("o") for _ in "abcd")
        heads = {"a": a, "b": b, "c": c, "d": d}
        for path, newline in (("a.md", "\n"), ("b.md", "\r\n"), ("in/c.md", "\n"), ("in/d.md", "\n")):
            self.make(path, heads, newline)
        for path in self.chance.sample(("a.md", "b.md", "in/c.md"), 2):
            self.editor.open(self.desk.root / path)

    # -- texts ---------------------------------------------------------------------------------------------

    def token(self, side: str) -> str:
        self.count += 1
        token = f"{side}{self.number}x{self.count}"
        self.live.add(token)
        return token

    def make(self, path: str, heads: dict[str, str], newline: str) -> None:
        stem, choose = Path(path).stem, self.chance.choice
        other, third = (choose([each for each in heads if each != stem]) for _ in "ab")

        def new() -> str:
            return self.token("o")

        lines = ["---", f"title: {new()}", "tags: [x]", "---", ""] if self.chance.random() < 0.5 else []
        lines += [f"# {new()} 😀", "", f"{new()} 😀 [[{other}]]", "", f"- {new()}", f"- {new()}", ""]
        lines += [f"## {heads[stem]}", "", f"{new()} [[{third}#{heads[third]}]]", ""]
        if stem in "cd":
            lines += [f"{new()} [x]({'c' if stem == 'd' else 'd'}.md) [[{third}]]", ""]
        text = newline.join([*lines, f"{new()}{choose((newline, ''))}"])
        self.desk.write(path, BOM * (self.chance.random() < 0.1) + text)

    def files(self) -> list[Path]:
        found: list[Path] = []
        for folder, folders, names in os.walk(self.desk.root):
            folders[:] = [each for each in folders if each != ".mdmem"]
            found += [Path(folder, name) for name in names if name.endswith(".md")]
        return sorted({*found, *self.editor.buffers})

    def texts(self) -> dict[Path, str]:
        """What an editor shows of each memory, open or not."""
        return {file: self.editor.text(file) for file in self.files()}

    def altered(self, text: str, side: str) -> tuple[str, str, str]:
        """A text with one line changed, added or taken away; and that line before and after."""
        lines = text.splitlines(keepends=True)
        newline = "\r\n" if "\r\n" in text else "\n"
        ends = [at for at, line in enumerate(lines) if line.strip(f"{BOM}\r\n") == "---"]
        first = ends[1] + 1 if lines[0].lstrip(BOM).startswith("---") and len(ends) > 1 else 0
        known = [at for at, line in enumerate(lines) if TOKEN.search(line)]
        at, kind = self.chance.choice(known), self.chance.random()
        old = lines[at]
        if kind < 0.45:
            new = old
            for token in TOKEN.findall(old):
                self.live.discard(token)
                new = new.replace(token, self.token(side), 1)
        elif kind < 0.55 and at >= first and len(known) > 4:
            self.live -= {*TOKEN.findall(old)}
            new = ""
        else:
            token = self.token(side)
            line = self.chance.choice((f"- {token}", token, f"{token} [[b]]", f"## {token}"))
            line = f"{token}: {token[1:]}" if at < first else line
            gap = newline if at >= first and self.chance.random() < 0.6 else ""
            end = "" if old.endswith(("\n", "\r")) else newline
            new = f"{old}{end}{gap}{line}{newline}"
        return "".join((*lines[:at], new, *lines[at + 1 :])), old, new

    # -- what happens --------------------------------------------------------------------------------------

    def say(self, *what: object) -> None:
        self.log.append(" ".join(map(str, what)))

    def run(self) -> None:
        steps: tuple[tuple[Callable[[], None], int], ...] = (
            (self.type, 6),
            (self.write, 6),
            (self.save, 4),
            (self.reopen, 2),
            (self.rename, 3),
            (self.move, 2),
            (self.take_over, 1),
            (self.overtake, 1),
        )
        actions, weights = zip(*steps, strict=True)
        try:
            for _ in range(TOGETHER):
                for action in self.chance.choices(actions, weights, k=STEPS):
                    action()
                    self.look()
            for file in list(self.editor.buffers):
                self.save(file)
                self.look()
            if self.number < PARTS:
                self.write(self.chance.choice(list(self.editor.buffers) or self.files()))
                self.look_at_findings()
        except Exception as error:
            error.add_note("\n".join((f"orders {self.number}", *self.log)))
            raise

    def open_file(self) -> Path | None:
        return self.chance.choice(list(self.editor.buffers)) if self.editor.buffers else None

    def type(self) -> None:
        if file := self.open_file():
            text, old, new = self.altered(self.editor.text(file), "e")
            self.say("types", file.name, repr(old), "->", repr(new))
            self.editor.type(file, text)

    def write(self, file: Path | None = None) -> None:
        """Let the agent write a file, of those that are open more often."""
        file = file or self.chance.choice([*self.files(), *self.editor.buffers])
        if not file.exists():
            return
        live = set(self.live)
        before = file.read_bytes().decode()
        text, old, new = self.altered(before, "a")
        way = self.chance.choice(("library", "in place", "renamed"))
        self.say("agent", way, file.name, repr(old), "->", repr(new))
        if way == "library":
            if code := self.agent.ask("replace", str(file.relative_to(self.desk.root)), old, new):
                self.say("refused:", code)
                self.live = live
        elif way == "in place":
            file.write_bytes(text.encode())
        else:
            other = file.with_name(f".{file.name}.new")
            other.write_bytes(text.encode())
            other.replace(file)

    def pause(self) -> None:
        """Let the agent write what is open, between an answer and what the editor does with it."""
        if self.chance.random() < 0.2 and (file := self.open_file()):
            self.write(file)

    def save(self, file: Path | None = None) -> None:
        file = file or self.open_file()
        if file is None:
            return
        self.say("saves", file.name)
        self.editor.save(file)
        for told in self.desk.client.told["window/showMessage"]:
            self.judge(told["message"], *self.editor.sides)
            # Whoever saves now knows what is overwritten.
            self.live -= {*TOKEN.findall(self.editor.sides[2])} - {*TOKEN.findall(self.editor.text(file))}

    @staticmethod
    def judge(message: str, base: str, ours: str, theirs: str) -> None:
        """Hold a conflict that was told against what both sides did: it names a line of that."""
        places = contested(base, ours, theirs)
        assert places, ("no place was changed by both", base, ours, theirs)
        named = NAMED_LINE.search(message)
        assert named, message
        lines = re.split("\r\n|\n|\r", ours)
        above = [len(body_lines("\n".join(lines[: int(number) - 1]))) for number in named[1].split(", ")]
        assert any(low - 1 <= at <= high for low, high in places for at in above), (above, base, ours, theirs)

    def reopen(self) -> None:
        """Close a buffer, whose unsaved lines are given up; or open a file."""
        file = self.chance.choice(self.files())
        if file in self.editor.buffers:
            self.say("closes", file.name)
            given_up = self.editor.text(file)
            self.editor.close(file)
            self.live -= {*TOKEN.findall(given_up)} - self.standing()
        if file.exists() and self.chance.random() < 0.7:
            self.say("opens", file.name)
            self.editor.open(file)

    def rename(self) -> None:
        """Rename the file behind a link, or a heading, while the agent may write what is open."""
        file = self.open_file()
        if file is None:
            return
        text = self.editor.text(file)
        link = self.chance.choice([*LINK.finditer(text), None])
        heading = self.chance.choice([*HEADING.finditer(text), None])
        if link and link[1] and self.target_of(file, link):
            new = f"n{self.number}y{self.count}"
            self.count += 1
            offset = link.start(1)
        elif heading and TOKEN.fullmatch(heading[1]):
            new, offset = self.token("e"), heading.start(1)
            self.live.discard(heading[1])
        else:
            return
        self.say("renames", repr(text[offset : offset + 8]), "of", file.name, "to", new)
        place = position_of(text, offset, self.editor.encoding)
        params = {"textDocument": {"uri": uri(file)}, "position": place, "newName": new}
        answer = self.desk.client.start("textDocument/rename", params)[1]
        self.pause()
        assert self.editor.apply(answer.result(30))

    def move(self) -> None:
        """Rename a file or a folder in the explorer."""
        file = self.chance.choice([each for each in self.files() if each.exists()])
        old = file.parent if file.parent != self.desk.root and self.chance.random() < 0.5 else file
        folder = self.chance.choice((old.parent, self.desk.root / "new"))
        folder = old.parent if folder == old else folder
        new = folder / f"m{self.number}y{self.count}{old.suffix}"
        self.count += 1
        self.say("moves", old.name, "to", new.relative_to(self.desk.root))
        self.editor.move((old, new))

    def take_over(self) -> None:
        """Take over what is on disk by the action for it."""
        if file := self.open_file():
            start = {"line": 0, "character": 0}
            found = {"range": {"start": start, "end": start}, "code": MOVED_ON, "message": ""}
            disk = self.editor.sides_of(file)[2]
            given: dict[str, Any] = {"context": {"diagnostics": [found]}, "range": found["range"]}
            for action in self.editor.ask("codeAction", file, **given):
                if action["title"] == "Take over what is on disk":
                    self.say("takes over", file.name)
                    assert self.editor.apply(action["edit"])
                    self.editor.buffers[file].seen = disk.encode()

    def overtake(self) -> None:
        """Ask, and type before the answer comes: it is about the text of then, or refused."""
        if file := self.open_file():
            before = self.editor.text(file)
            wanted = self.places(file)
            asked = {"textDocument": {"uri": uri(file)}}
            future = self.desk.client.start("textDocument/documentLink", asked)[1]
            self.type()
            try:
                assert self.read_places(before, future.result(30)) == wanted
            except Refused as error:
                assert error.code == CONTENT_MODIFIED  # noqa: PT017

    # -- what must be so -----------------------------------------------------------------------------------

    def standing(self) -> set[str]:
        """Each word that stands in a buffer or on disk, where it stands once."""
        on_disk = (file.read_bytes().decode() for file in self.files() if file.exists())
        found: set[str] = set()
        for text in (*(buffer.text for buffer in self.editor.buffers.values()), *on_disk):
            tokens = TOKEN.findall(text)
            assert len(tokens) == len({*tokens}), text
            found |= {*tokens}
        return found

    def look(self) -> None:
        """Hold each line that was written, and an answer, against what there is."""
        lost = self.live - self.standing()
        assert not lost, lost
        if self.chance.random() > ASKED:
            return
        file = self.chance.choice([each for each in self.files() if each.exists()])
        self.chance.choice((self.look_at_links, self.look_at_target, self.look_at_uses, self.look_at_heads))(
            file
        )

    def target_of(self, file: Path, link: re.Match[str], files: list[Path] | None = None) -> Path | None:
        name, _, relative = link.groups()
        files = files or self.files()
        if relative:
            found = Path(os.path.normpath(file.parent / relative))
            return found if found in files else None
        ends = [each for each in files if f"/{each.with_suffix('')}".endswith(f"/{name}")]
        assert len(ends) <= 1
        return ends[0] if ends else None

    def links(self, file: Path, files: list[Path] | None = None) -> list[tuple[re.Match[str], Path]]:
        """Each link of a memory that leads somewhere, and the file."""
        files = files or self.files()
        found = LINK.finditer(self.editor.text(file))
        return [(link, target) for link in found if (target := self.target_of(file, link, files))]

    def places(self, file: Path) -> list[tuple[int, Path]]:
        return [(link.start(), target) for link, target in self.links(file)]

    def read_places(self, text: str, answer: list[dict[str, Any]] | None) -> list[tuple[int, Path]]:
        links = [link.span() for link in LINK.finditer(text)]
        found = []
        for link in answer or ():
            start, end = span_of(text, link["range"], self.editor.encoding)
            first = next(first for first, last in links if first <= start and end <= last)
            found.append((first, file_of(link["target"].partition("#")[0])))
        return found

    def look_at_links(self, file: Path) -> None:
        answer = self.editor.ask("documentLink", file)
        assert self.read_places(self.editor.text(file), answer) == self.places(file)

    def look_at_target(self, file: Path) -> None:
        """A definition is in the text of now, at the heading that the link names."""
        if not (links := list(LINK.finditer(self.editor.text(file)))):
            return
        link = self.chance.choice(links)
        target = self.target_of(file, link)
        answer = self.editor.ask("definition", file, link.start() + 4) or []
        assert {file_of(each["targetUri"]) for each in answer} == {*filter(None, [target])}
        if target and link[2]:
            there = self.editor.text(target)
            named = [each.span(1) for each in HEADING.finditer(there) if each[1] == link[2]]
            found = [span_of(there, each["targetSelectionRange"], self.editor.encoding) for each in answer]
            assert found == named or not named

    def look_at_uses(self, file: Path) -> None:
        """References of a link are in the texts of now, and are all that lead where it does."""
        if not (links := [each for each in self.links(file) if not each[0][2]]):
            return
        link, target = self.chance.choice(links)
        answer = self.editor.ask("references", file, link.start() + 4, context={"includeDeclaration": False})
        found = sorted((file_of(each["uri"]), each["range"]["start"]["line"]) for each in answer)
        files = self.files()
        wanted = [
            (other, position_of(self.editor.text(other), each.start(), self.editor.encoding)["line"])
            for other in files
            for each, its in self.links(other, files)
            if its == target
        ]
        assert found == sorted(wanted)

    def look_at_heads(self, file: Path) -> None:
        """Behind `#` the headings of now are completed."""
        if links := [each for each in self.links(file) if each[0][2]]:
            link, target = self.chance.choice(links)
            answer = self.editor.ask("completion", file, link.start(2))
            labels = {item["label"] for item in answer["items"]}
            assert labels == {each[1] for each in HEADING.finditer(self.editor.text(target))}

    def look_at_findings(self) -> None:
        """What is told of the last texts: their links that lead nowhere, and that the disk has moved on."""
        for file, buffer in self.editor.buffers.items():
            wanted = self.findings(file, buffer)

            def is_told(file: Path = file, wanted: object = wanted) -> bool:
                told = self.desk.client.diagnostics[uri(file)]
                return bool(told) and self.read_findings(told[-1]) == wanted

            self.desk.client.wait(is_told)

    def findings(self, file: Path, buffer: Buffer) -> tuple[list[int], bool]:
        lines = []
        for link in LINK.finditer(buffer.text):
            target = self.target_of(file, link)
            heads = [each[1] for each in HEADING.finditer(self.editor.text(target))] if target else []
            if target is None or (link[2] and link[2] not in heads):
                lines.append(position_of(buffer.text, link.start(), self.editor.encoding)["line"])
        base, ours, theirs = map(body_lines, self.editor.sides_of(file))
        return lines, theirs not in (base, ours)

    @staticmethod
    def read_findings(told: dict[str, Any]) -> tuple[list[int], bool]:
        found = told["diagnostics"]
        about = {"dangling-link", "dangling-anchor"}
        lines = [each["range"]["start"]["line"] for each in found if each["code"] in about]
        codes = [each["code"] for each in found]
        return sorted(lines), MOVED_ON in codes


@pytest.mark.parametrize("part", soak_most(range(PARTS)))
def test_interleaved_writes_of_an_editor_and_an_agent_are_all_kept(table: Table, part: int) -> None:
    numbers = range(part, -(-ORDERS // TOGETHER), PARTS)
    for number in numbers if speed.is_all else numbers[:5]:
        Orders(table, number).run()
