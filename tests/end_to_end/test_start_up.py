"""Start-up is a budget: what each command may load. A line that grows longer needs a reason."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.facade.memory import open as open_memory
from tests import speed
from tests.end_to_end.shell import copy_folder
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

INSTALLED = {name for name in packages_distributions() if not name.startswith("_")}
PROGRAM = "import sys; from mdmem.cli.main import main; sys.exit(main(sys.argv[1:]))"
# Tells of each collection of garbage.
HEARD = """
import gc, sys
from mdmem.cli import program
gc.collect()
gc.callbacks.append(lambda phase, _: print(phase, file=sys.__stderr__, flush=True))
program()
"""
TOLD = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "

TEMPLATE = {"jinja2", "markupsafe"}
MARKDOWN = {"pyromark"}
INDEX = {"tantivy"} | MARKDOWN
# What the SDK of the protocol loads by itself.
SDK = {
    *("annotated_types", "anyio", "cryptography", "httpx2", "idna", "mcp", "mcp_types", "opentelemetry"),
    *("pydantic", "pydantic_core", "python_multipart", "sniffio", "sse_starlette", "starlette"),
    *("typing_extensions", "typing_inspection", "uvicorn"),
}
CONTEXT = {"context", "excerpt", "rules", "project", "preferences", "working", "content", "validity"}

# Which packages of others a command loads, and which kinds of memory. Click comes besides.
COMMANDS: list[tuple[str, set[str], set[str]]] = [
    ("show notes/bare.md", set(), set()),
    ("show notes/full.md --json", set(), set()),
    ("ls", set(), set()),
    ("ls --glob *.md", set(), set()),
    ("ls --where type=note --sort title", MARKDOWN, set()),
    ("ls --long", MARKDOWN, set()),
    ("ls --tree", set(), set()),
    ("grep Project", {"yaml"} | MARKDOWN, set()),
    ("search project", INDEX, {"validity"}),
    ("index", INDEX, set()),
    ("refs", MARKDOWN, {"references"}),
    ("backlinks notes/bare.md", MARKDOWN, {"references"}),
    ("graph", MARKDOWN, {"references"}),
    ("mv notes/bare.md notes/moved.md", MARKDOWN, set()),
    ("check notes/full.md --no-links", set(), set()),
    ("check notes/full.md", INDEX, {"references", "duplicates", "content", "validity"}),
    ("doctor", INDEX, {"doctor"}),
    ("history", set(), set()),
    ("git merge-driver base.md ours.md theirs.md 7 a.md", MARKDOWN, set()),
    ("diff notes/bare.md", set(), set()),
    ("git log", MARKDOWN, {"git", "tracked", "blame", "review"}),
    ("git diff", MARKDOWN, {"git", "tracked", "blame", "review"}),
    ("git blame notes/bare.md", MARKDOWN, {"git", "tracked", "blame", "review"}),
    ("stats", MARKDOWN, {"statistics"}),
    ("append notes/bare.md more", set(), set()),
    ("edit notes/bare.md", set(), set()),
    ("append notes/full.md more", set(), set()),
    ("replace notes/bare.md text words", set(), set()),
    ("undo", set(), set()),
    ("set notes/bare.md tier=hot", {"yaml"}, set()),
    ("today", set(), {"notes", "content"}),
    ("today text", TEMPLATE | MARKDOWN, {"notes", "content"}),
    ("notes append db text", set(), {"notes", "content"}),
    (
        "working set text --thread t1",
        set(),
        {"working", "content"},
    ),
    ("preferences list", {"yaml"}, {"preferences"}),
    ("project summary", MARKDOWN, {"instructions", "project"}),
    ("project sync --check", {"yaml"}, {"instructions", "project", "rules"}),
    ("rules list", set(), {"rules"}),
    ("import mcp-memory memory.jsonl", {"yaml"} | MARKDOWN, {"importing"}),
    ("new note --print --var title=T", {"yaml"} | TEMPLATE | MARKDOWN, {"importing"}),
    ("context project", {"yaml", "toktok"} | TEMPLATE | INDEX, CONTEXT),
    ("context --estimated", TEMPLATE | INDEX, CONTEXT),
    ("hook post-edit", set(), set()),
    ("replace --regex notes/bare.md t[aeiou]xt words", {"regex"}, set()),
    ("hook stop", set(), set()),
    ("install cursor --user --dry-run", {"platformdirs", "yaml"}, {"instructions", "project"}),
    ("mcp", SDK | {"pyromark", "tantivy"}, set()),  # it makes the index current at its start
]
# Each of them is a program that starts: these are what people and hosts run most.
QUICK = {
    *("show notes/bare.md", "ls --long", "grep Project", "search project", "append notes/bare.md more"),
    *("check notes/full.md", "set notes/bare.md tier=hot", "hook post-edit", "context --estimated"),
}
# What any command loads that opens a vault.
OPENED = {"arguments", "content", "history", "kinds", "memory", "questions", "verbs"}


def loaded(code: str, *arguments: str, cwd: Path) -> set[str]:
    """The modules that are there when some code has run."""
    ended = subprocess.run(
        [sys.executable, "-c", TOLD + code, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode <= 2, ended.stderr.splitlines()[-3:]
    return set(ended.stderr.splitlines()[-1].split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "mdmem"}


def of_others(modules: set[str]) -> set[str]:
    """The packages that come neither from us nor with Python."""
    return {name.partition(".")[0] for name in modules} & INSTALLED - {"mdmem"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("prepared")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    memory = open_memory(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/bare.md", "# Title\n\ntext\n")
    memory.write("notes/full.md", "---\ntags: [a]\n---\n# Title\n\ntext\n")
    memory.write("AGENTS.md", "# Project\n")
    memory.append("notes/bare.md", "more")
    (tmp_path / "memory.jsonl").write_text('{"type": "entity", "name": "Ada", "entityType": "person"}')
    for name in ("base", "ours", "theirs"):
        (tmp_path / f"{name}.md").write_text(f"{name}\n")
    (tmp_path / "alice.json").write_text('[{"Category": "ui", "Key": "theme", "Value": "dark"}]')
    return tmp_path


def test_the_version_needs_nothing(tmp_path: Path) -> None:
    modules = loaded(PROGRAM, "--version", cwd=tmp_path)
    assert ours(modules) == {"mdmem", "mdmem.cli", "mdmem.cli.main"}
    assert of_others(modules) == {"click"}


def test_no_garbage_is_collected_while_the_program_is_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HEARD, "--help"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("Usage: mdmem")
    assert ended.stderr == ""


@pytest.mark.parametrize("asked", speed.soak_most(["--help", "help json", "search --help", "serch"]))
def test_help_needs_no_package_of_others(tmp_path: Path, asked: str) -> None:
    assert of_others(loaded(PROGRAM, *asked.split(), cwd=tmp_path)) == {"click"}


def test_importing_the_package_loads_nothing_else(tmp_path: Path) -> None:
    modules = loaded("import mdmem", cwd=tmp_path)
    assert ours(modules) == {"mdmem"}
    assert not of_others(modules)


def test_importing_the_library_loads_no_command_line(tmp_path: Path) -> None:
    modules = loaded("import mdmem; mdmem.open, mdmem.Memory", cwd=tmp_path)
    assert not {name for name in ours(modules) if name.startswith("mdmem.cli")}
    assert not of_others(modules)


@pytest.mark.parametrize("command", ["search project text", "index", "doctor", "context --estimated"])
def test_without_an_embedder_nothing_of_a_search_by_meaning_is_loaded_or_made(
    prepared: Path, tmp_path: Path, command: str
) -> None:
    copy_folder(prepared, tmp_path / "work")
    modules = loaded(PROGRAM, *command.split(), cwd=tmp_path / "work")
    leg = {f"mdmem.index.{name}" for name in ("embedder", "meaning", "vectors", "wordpiece")}
    assert not modules & {*leg, "numpy", "onnxruntime", "tokenizers", "fastembed"}
    assert not [*(tmp_path / "work").rglob("vectors.sqlite*")]


@cases("command, others, kinds", [row for row in COMMANDS if speed.is_all or row[0] in QUICK])
def test_a_command_loads_what_it_uses(
    prepared: Path, tmp_path: Path, command: str, others: set[str], kinds: set[str]
) -> None:
    copy_folder(prepared, tmp_path / "work")
    modules = loaded(PROGRAM, *command.split(), cwd=tmp_path / "work")
    engine = {"regex"} if sys.version_info < (3, 11, 5) else set()  # see mdmem.document.text.regex
    assert of_others(modules) - {"click"} - engine <= others
    of_memory = (name for name in ours(modules) if name.startswith("mdmem.memory."))
    memory = {name.rpartition(".")[2] for name in of_memory if ".imports" not in name}
    assert memory - OPENED <= kinds
    # Each module of commands is loaded alone.
    commands = {"agents", "edit", "find", "git", "kinds", "make", "references", "search", "serve", "views"}
    assert len(commands & {name.removeprefix("mdmem.cli.") for name in ours(modules)}) == 1
