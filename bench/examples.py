"""Run the examples of pages, and compare what they print with what the pages show.

    bench/examples.py docs/find.md            puts in what is printed now
    bench/examples.py --check docs/*.md       says what differs, and ends with 1

Each page has a folder of its own, from top to bottom. In a block of `console`, `$` begins a command, and what
it prints follows, as on a terminal; a command that fails is followed by `$ echo $?`. A block of `python` is
executed, and a block of `text` right after it is what it prints. `…` stands for anything. Others are not run.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import importlib
import io
import os
import pkgutil
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import traceback
import tty
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mdmem
from mdmem.cli.main import program
from tests.terminals import read_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT = Path(__file__).parents[1]

# What differs from run to run: it is compared as its kind.
UNSTABLE = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"\b\d{8}T\d{12}-[0-9a-f]{4}\b", "<change>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| ?[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b\d{4}-\d\d-\d\d\b", "<date>"),
        (r"\b\d\d:\d\d(:\d\d)?\b", "<clock>"),
        (r"\b[0-9a-f]{13,64}\b", "<hash>"),
        (r"\b[0-9a-f]{9,12}\b", "<12 digits>"),
        (r"\b[0-9a-f]{7,8}\b", "<8 digits>"),
        (r"\b\d+(\.\d+)? m?s\b", "<while>"),
    )
]
ANYTHING = "…"
WIDTH = 100
HOME = "/home/ada"
SETTINGS = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"


@dataclass(slots=True)
class Place:
    """A home folder with a project, in which examples run one after the other."""

    home: Path
    folder: Path = field(init=False)
    code: int = 0
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    has_python: bool = False

    def __post_init__(self) -> None:
        self.folder = self.home / "demo"
        self.folder.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(SETTINGS)

    @property
    def environ(self) -> dict[str, str]:
        own = ("MDMEM_", "GIT_", "XDG_", "PYTHON", "LC_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        path = os.pathsep.join((str(Path(sys.executable).parent), kept["PATH"]))
        return kept | {
            "HOME": str(self.home),
            "PATH": path,
            "PWD": str(self.folder),
            "PYTHONPATH": str(CHECKOUT),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PAGER": "cat",
            "EDITOR": "true",
            "COLUMNS": str(WIDTH),
        }

    def run(self, command: str, keys: str = "") -> str:
        """Run a command of a shell, type keys, keep its exit code, and return what a terminal would show."""
        if command == "echo $?":
            told, self.code = f"{self.code}\n", 0
            return told
        if command.startswith("cd "):
            self.folder = (self.folder / command.removeprefix("cd ")).resolve()
            self.code = 0 if self.folder.is_dir() else 1
            return ""
        words = find_words(command)
        if words[:1] == ["mdmem"] and not self.has_python:
            return self._show(lambda: run_program(words), keys)
        shell = ["bash", "--noprofile", "--norc", "-o", "pipefail", "-c", command]
        return self._show(lambda: os.execvpe(shell[0], shell, os.environ), keys)

    def _show(self, begin: Callable[[], object], keys: str) -> str:
        """Run something in a process of its own, whose output is a terminal; with keys, its input is, too."""
        sys.stdout.flush()
        reads, writes = os.openpty()
        fcntl.ioctl(writes, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        tty.setcbreak(writes)  # keys that are typed before they are read are not shown by the terminal itself
        os.write(reads, keys.encode())
        environ = self.environ
        process = os.fork()
        if not process:
            try:
                os.chdir(self.folder)
                os.environ.clear()
                os.environ.update(environ)
                os.dup2(writes if keys else os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(writes, 1)
                os.dup2(writes, 2)
                os.closerange(3, 256)
                begin()
            finally:
                os._exit(70)
        os.close(writes)
        told = b"".join(read_terminal(reads))
        os.close(reads)
        self.code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return told.decode().replace("\r\n", "\n")

    def execute(self, code: str, name: str) -> str:
        """Execute a block of Python with the names of the blocks before it, and return what it prints."""
        told = io.StringIO()
        before, environ, ours = os.getcwd(), dict(os.environ), self.environ
        os.environ.clear()
        os.environ.update(ours)
        os.chdir(self.folder)
        self.has_python = True
        try:
            with contextlib.redirect_stdout(told):
                exec(compile(code, name, "exec"), self.names)
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environ)
        return told.getvalue()


def find_words(command: str) -> list[str]:
    """Return the words of a command that needs no shell, else none."""
    if re.search(r"[|<>$;&*?~`()\\#\n]", re.sub(r"'[^']*'", "", command)):
        return []
    return shlex.split(command)


def preload() -> None:
    """Import what commands import, once for all of them: a process that is forked off has it."""
    with contextlib.suppress(ImportError):  # an extra that is not installed
        for found in pkgutil.walk_packages(mdmem.__path__, "mdmem."):
            if found.name.split(".")[1] not in {"__main__", "adapters", "lsp", "mcp"}:
                importlib.import_module(found.name)
    for name in ("frontmatter", "jsonschema", "jinja2", "sqlite3", "tantivy", "yaml"):
        importlib.import_module(name)


def run_program(words: list[str]) -> None:
    """Be `mdmem`, as a process of its own is; its files stay open until the end."""
    sys.argv = words
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        file = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
        setattr(sys, name, file)
    program()


@dataclass(slots=True, kw_only=True)
class Block:
    """A fenced block: its language, and the lines between the fences, which begin at a line of the page."""

    language: str
    line: int
    lines: list[str]

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """The commands, each with what is shown below it."""
        at = 0
        while at < len(self.lines):
            shown = [self.lines[at]]
            end = at + 1
            while end < len(self.lines) and not self.lines[end].startswith("$ "):
                end += 1
            rest = self.lines[at + 1 : end]
            if "<<" in shown[0] or shown[0].endswith("\\") or shown[0].count("'") % 2:
                while rest and rest[0].startswith(">"):
                    shown.append(rest.pop(0))
            yield "\n".join(shown), rest
            at = end


@dataclass(slots=True)
class Page:
    """A page of Markdown."""

    path: Path
    problems: list[str] = field(default_factory=list)

    def blocks(self) -> list[Block]:
        """The blocks of the page, in order."""
        found: list[Block] = []
        lines = self.path.read_text().split("\n")
        fence = ""
        for number, line in enumerate(lines):
            opened = re.match(r"(`{3,})(\w*)\s*$", line)
            if not fence and opened:
                fence = opened[1]
                found.append(Block(language=opened[2], line=number + 1, lines=[]))
            elif fence and line == fence:
                fence = ""
            elif fence:
                found[-1].lines.append(line)
        return found

    def code(self) -> str:
        """All Python of the page, each line where it is in the page."""
        lines = [""] * len(self.path.read_text().split("\n"))
        for block in self.blocks():
            if block.language == "python":
                lines[block.line : block.line + len(block.lines)] = block.lines
        return "\n".join(lines)

    def run(self, home: Path) -> str:
        """Run all examples, note what is wrong, and return the page with what they print."""
        place = Place(home)
        lines = self.path.read_text().split("\n")
        blocks = self.blocks()
        new: list[tuple[Block, list[str]]] = []
        for number, block in enumerate(blocks):
            if block.language == "console":
                new.append((block, [*self._run_commands(place, block)]))
            elif block.language == "python":
                code = "\n" * block.line + "\n".join(block.lines)
                try:
                    told = place.execute(code, str(self.path)).replace(str(home), HOME)
                except Exception:  # noqa: BLE001 - whatever it is belongs to the page
                    told = ""
                    self.problems.append(f"{self.path}: ended with {traceback.format_exc()}")
                after = blocks[number + 1] if number + 1 < len(blocks) else None
                if (
                    after
                    and after.language == "text"
                    and not any(lines[block.line + len(block.lines) + 1 : after.line - 1])
                ):
                    new.append((after, self._compare(after.lines, told, after.line)))
        for block, changed in reversed(new):
            lines[block.line : block.line + len(block.lines)] = changed
        return "\n".join(lines)

    def _run_commands(self, place: Place, block: Block) -> Iterator[str]:
        commands = [*block.commands()]
        for number, (shown, expected) in enumerate(commands):
            line = block.line + 1 + sum(1 + part.count("\n") + len(rest) for part, rest in commands[:number])
            first, *more = shown.removeprefix("$ ").split("\n")
            command = "\n".join((first, *(each.removeprefix(">").removeprefix(" ") for each in more)))
            told = place.run(command).replace(str(place.home), HOME)
            yield from shown.split("\n")
            yield from self._compare(expected, told, line)
            follows = commands[number + 1][0] if number + 1 < len(commands) else ""
            if place.code and follows != "$ echo $?":
                self.problems.append(f"{self.path}:{line}: ended with {place.code}: {command}\n{told}")

    def _compare(self, expected: list[str], told: str, line: int) -> list[str]:
        """Return what is expected where it is what was told, else what was told."""
        lines = [each.rstrip() for each in told.removesuffix("\n").split("\n")] if told else []
        if matches(expected, lines):
            return expected
        diff = difflib.unified_diff(expected, lines, "the page", "printed", lineterm="")
        self.problems.append(f"{self.path}:{line}:\n" + "\n".join(diff))
        return lines


def matches(expected: list[str], told: list[str]) -> bool:
    """Say whether lines are what is expected, but for what differs from run to run."""

    def normal(lines: list[str]) -> str:
        text = "\n".join(each.rstrip() for each in lines)
        for pattern, kind in UNSTABLE:
            text = pattern.sub(kind, text)
        return text

    pattern = ".*".join(map(re.escape, normal(expected).split(ANYTHING)))
    return re.fullmatch(pattern, normal(told), re.DOTALL) is not None


def check_types(pages: list[Page], folder: Path) -> str:
    """Check the types of all Python of pages, and return what is wrong."""
    files = []
    for page in pages:
        if code := page.code().strip("\n") and page.code():
            name = page.path.stem.replace("-", "_").lower()
            files.append(folder / f"page_{name}.py")
            files[-1].write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, files)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False).stdout


def run_page(name: str, *, is_check: bool) -> int:
    """Run a page in a process of its own, and return its exit code: 1 where something is wrong."""
    sys.stdout.flush()
    if process := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 70
    try:
        with tempfile.TemporaryDirectory(prefix="examples-") as folder:
            page = Page(Path(name))
            text = page.run(Path(folder) / "ada")
        wrong = page.problems if is_check else [each for each in page.problems if ": ended with " in each]
        print(*wrong, sep="\n", end="\n" if wrong else "")
        if not is_check and not wrong and text != page.path.read_text():
            page.path.write_text(text)
            print(f"{name}: {len(page.problems)} outputs are new")
        code = bool(wrong)
    except Exception:  # noqa: BLE001 - a process that was forked off ends here
        traceback.print_exc(file=sys.stdout)
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(arguments: list[str]) -> int:
    is_check = arguments[:1] == ["--check"]
    preload()
    return max([run_page(name, is_check=is_check) for name in arguments[is_check:]], default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
