"""The help of every command: it says what the command does, and its example runs as it stands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pytest

import mdmem
from mdmem.cli.help import read_topic, topics
from mdmem.cli.main import app, main
from mdmem.facade.memory import open as open_memory
from tests import speed
from tests.end_to_end.shell import copy_folder, run_in_shell
from tests.git.conftest import SETTINGS
from tests.programs import needs
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START = re.compile(r"""Example: (?:eval "\$\(|MDMEM_VAULT=\S+ )?mdmem """)
_SHELL = re.compile(r"[|<>]|\$\(")
# Examples that cannot succeed everywhere.
_ENDS_WITH_ONE = {"restore": "the hash in it is of nobody's content"}
_ENDLESS = {"watch", "web"}
_NEED_A_SERVER = {f"store {name}" for name in ("init", "sweep", "copy", "put", "check", "erase")}
# Examples that find nothing in the prepared vault, commands that ask before they write, and one whose
# --dry-run goes with options that its example has not.
_FIND_NOTHING = {
    *("check", "duplicates", "quality", "refs", "results references", "schema check"),
    "sessions check",
}
_ASK = {"git install", "git uninstall", "install", "uninstall"}
_NO_PLAN = {"refs"}
_ASKS_A_MODEL = {"sessions reflect"}
_KEEP_THE_STREAMS = {"mcp"}  # which are those of the test here, unless a program runs
BUILD_LOG = "compiling src/app.py\n" * 200


def walk(group: click.Group = app, names: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*names, name)), command
        if isinstance(command, click.Group):
            yield from walk(command, (*names, name))


ALL = dict(walk())
LEAVES = {name: command for name, command in ALL.items() if not isinstance(command, click.Group)}


def example(name: str) -> str:
    return (LEAVES[name].epilog or "").removeprefix("Example: ")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every example makes sense."""
    folder = tmp_path_factory.mktemp("prepared")
    memory = open_memory(mdmem.init(folder / "memories").root)
    head = "---\nsource: {type: user, ids: [a, sessions/t1#7]}\n---\n"
    memory.write("notes/db.md", f"{head}# Database\n\nMySQL: one file.\n\n## Decision\n\nUse it.\n")
    memory.write("notes/old.md", "# Old\n\nSee [[db#Decision]] and `src/app.py#L1-L2`. #storage\n")
    memory.write("notes/2026-01.md", "SQLite\n")
    memory.write("users/alice/notes/db.md", "---\naccess:\n  write: [bob]\n---\nSQLite\n")
    config = folder / "memories/.mdmem/config.toml"
    config.write_text(config.read_text().replace("[mounts]", "[sharing]\nenabled = true\n\n[mounts]"))
    decided = "---\ntype: decision\nstatus: accepted\ncreated: 2026-02-01\n---\n"
    memory.write(
        "notes/decisions/one.md", f"{decided}# One\n\n## Context\n\nFew.\n\n## Decision\n\nIn one file.\n"
    )
    memory.write(
        "AGENTS.md", "# Demo\n\n## Decisions\n\n- Use files\n\n## Design\n\n### Index\n\n- two files\n"
    )
    memory.write("rules/python.md", "---\nglobs: ['src/**']\n---\n# Python\n\nType everything.\n")
    memory.working.update("Tests red.", thread="t1")
    memory.working.update({"step": 1}, resource="r1")
    memory.preferences.set("ui", "theme", "light")
    preference = {"Category": "ui", "Key": "font", "Value": "12", "UpdatedAt": "2024-01-21T20:30:00Z"}
    (folder / "alice.json").write_text(json.dumps([preference]))
    entity = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Likes SQLite"]}
    (folder / "memory.jsonl").write_text(json.dumps(entity))
    asked = [f"Which database, {number}? " + f"Number {number} says so. " * 60 for number in range(40)]
    said = [{"role": "user", "content": each} for each in asked]
    (folder / "messages.jsonl").write_text("".join(json.dumps(each) + "\n" for each in said))
    (folder / "chat.json").write_text(json.dumps(said[:2]))
    memory.sessions.extend("t1", said[:30])
    memory.summaries.summarize("t1")
    memory.sessions.extend("t1", said[30:])
    memory.sessions.compact("t1")
    memory.observations.observe("t1")
    memory.write("observations/t1/0123abcd-1-14.md", "---\ntype: observation\nsession: t1\n---\n\nSQLite.\n")
    memory.sessions.set_summary("t1", "SQLite was chosen.")
    memory.sessions.add("t2", "user", "Gone.")
    memory.sessions.delete("t2")
    memory.sessions.extend("t3", [{"role": "user", "content": "I prefer dark mode."}] * 3)
    memory.inbox.propose("append", {"path": "notes/db.md", "text": "One file."})
    (folder / "src").mkdir()
    (folder / "src/app.py").write_text("import os\nimport sys\n")
    (folder / "build.log").write_text(BUILD_LOG)
    for name, line in (("base", ""), ("ours", "- o\n"), ("theirs", "- t\n")):
        (folder / f"{name}.md").write_text(f"# A\n{line}")
    for words in (
        *(("init", "--quiet", "--template="), *IDENTITY),
        *(("add", "."), ("commit", "--quiet", "--message", "Begin"), ("repack", "-a", "-d", "--quiet")),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, env=os.environ | SETTINGS)
    memory.results.compress("Bash", BUILD_LOG)
    memory.append("notes/db.md", "One file.")
    memory.append("notes/db.md", "Too much.")
    memory.undo()
    return folder


IDENTITY = ("config", "user.name", "A"), ("config", "user.email", "a@b.example")


def enter(prepared: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "") -> None:
    """Make a copy of the prepared folder the current one, for the example of a command."""
    copy_folder(prepared, folder / "work")
    if name == "init":
        shutil.rmtree(folder / "work/memories")
    if name in _ASKS_A_MODEL:
        monkeypatch.setenv("MDMEM_MODEL", "head -c 40")
    monkeypatch.chdir(folder / "work")


@cache
def read_help(name: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*name.split(), "--help"]) == 0
    return out.getvalue()


def test_there_are_commands() -> None:
    assert {"show", "notes append", "schema check"} <= LEAVES.keys()


@cases("name", ["", *ALL])
def test_every_command_and_group_says_what_it_does(name: str) -> None:
    text = read_help(name)
    assert text.startswith(f"Usage: mdmem {name}".rstrip())
    first = text.split("\n\n")[1].strip()
    assert first[0].isupper()
    assert "." in first
    assert all(len(line) <= 110 for line in text.splitlines())


@cases("name", LEAVES)
def test_every_option_and_every_example_is_explained(name: str) -> None:
    for parameter in LEAVES[name].params:
        if isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Choice):
            assert parameter.help, parameter.name
    epilog = LEAVES[name].epilog or ""
    assert _START.match(epilog)
    assert f"mdmem {name}" in epilog
    assert " ".join(epilog.split()) in " ".join(read_help(name).split())


@cases("name", [n for n in LEAVES if n not in _ENDLESS | _NEED_A_SERVER and not _SHELL.search(example(n))])
def test_the_example_runs(
    name: str,
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    enter(prepared, tmp_path, monkeypatch, name)
    capfd.readouterr()
    program, *arguments = shlex.split(example(name))
    code = main(arguments)
    assert program == "mdmem"
    assert code == (1 if name in _ENDS_WITH_ONE else 0), capfd.readouterr().err


def asked_for_json(name: str) -> list[str]:
    """The example of a command, with --json behind its name."""
    words = shlex.split(example(name).partition("<<<")[0])
    start = next(n for n in range(len(words)) if words[n : n + len(name.split())] == name.split())
    end = start + len(name.split())
    return [*words[1:end], "--json", *words[end:]]


def objects(printed: str) -> list[dict[str, Any]]:
    """What is printed, which has to be one JSON object a line, strict and exact."""
    found = []
    for line in printed.splitlines():
        found.append(json.loads(line, parse_constant=pytest.fail, parse_int=exact))
        assert isinstance(found[-1], dict), line
    return found


def exact(number: str) -> int:
    assert abs(int(number)) <= 2**53, number
    return int(number)


WITH_JSON = [name for name, command in LEAVES.items() if "as_json" in {p.name for p in command.params}]
DRY = [
    name
    for name in WITH_JSON
    if "dry_run" in {p.name for p in LEAVES[name].params} and name not in _NO_PLAN | _NEED_A_SERVER
]


@cases("name", [name for name in WITH_JSON if name not in _ENDLESS | _NEED_A_SERVER])
def test_every_command_prints_objects_a_line_each(
    name: str,
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    enter(prepared, tmp_path, monkeypatch, name)
    capfd.readouterr()
    code = main(asked_for_json(name))
    out, errors = capfd.readouterr()
    found = objects(out)
    assert found or name in _FIND_NOTHING, errors
    assert ("error" in found[-1] if found else False) == (name in _ENDS_WITH_ONE)
    assert code == (1 if name in _ENDS_WITH_ONE else 0), errors


@cases("name", DRY)
def test_a_dry_run_has_the_members_of_the_change(
    name: str,
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    enter(prepared, tmp_path, monkeypatch, name)
    capfd.readouterr()
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)  # as `install` asks for
    arguments = [word for word in asked_for_json(name) if word != "--dry-run"]
    if name.endswith("uninstall"):
        host = [] if name.startswith("git") else ["claude-code"]
        main([*name.replace("uninstall", "install").split(), *host, "--yes", "--json"])
        capfd.readouterr()
    code = main([*arguments, "--dry-run"])
    dry = objects(capfd.readouterr().out)
    assert main([*arguments, *(["--yes"] if name in _ASK else [])]) == code
    done = objects(capfd.readouterr().out)
    assert [shape(each) for each in dry] == [shape(each) for each in done]
    if code == 0:
        assert {False} == set(told(dry, "applied"))
        assert {True} == set(told(done, "applied"))


def shape(value: Any) -> Any:
    """The names of all members of an object, without what they hold."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(each) for each in value if isinstance(each, dict)] if isinstance(value, list) else None


def told(value: Any, name: str) -> Iterator[Any]:
    """What all members of this name hold."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from told(each, name)
    if isinstance(value, dict) and name in value:
        yield value[name]


@cases("name", sorted(_ENDLESS & LEAVES.keys()))
def test_the_example_of_an_endless_command_runs_until_it_is_stopped(
    name: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(prepared, tmp_path, monkeypatch)
    command = [sys.executable, "-m", *shlex.split(example(name))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.terminate()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


@cases(
    "name",
    [n for n in LEAVES if _SHELL.search(example(n)) and (speed.is_all or n not in _KEEP_THE_STREAMS)],
)
def test_the_example_for_a_shell_runs(
    name: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(prepared, tmp_path, monkeypatch)
    ended = run_in_shell(example(name))
    assert (ended.returncode, ended.stderr) == (0, "")


# The examples of topics: the first column of what is indented.
TOPIC_EXAMPLES = [
    pytest.param(line, id=f"{name}: {line}")
    for name in topics()
    for line in re.findall(r"^    (\S.*?)(?: {2,}.*)?$", read_topic(name)[1], re.MULTILINE)
    if line.removeprefix("CLICOLOR_FORCE=1 ").startswith("mdmem ")
]


@cases("line", TOPIC_EXAMPLES)
def test_the_example_of_a_topic_runs(
    line: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(*(program for program in ("jq", "less") if f"| {program}" in line))
    enter(prepared, tmp_path, monkeypatch)
    if "mdmem show " in line and "nothing" not in line:
        monkeypatch.chdir(tmp_path / "work/memories/notes")
    ended = run_in_shell(f"set -o pipefail; {line}")
    assert "Traceback" not in ended.stderr
    assert (ended.returncode == 0) == ("nothing" not in line), ended.stderr
    assert ended.stdout


# ------------------------------------------------------------------------- ten tasks, from the help alone


class Step(NamedTuple):
    """What to do: words with which the help describes a command, its arguments, and a part of the answer."""

    words: str
    arguments: str
    answer: str
    given: str = ""


# `{first}` stands for the first word of the answer before.
TASKS = {
    "make a vault": [Step("Make a vault", "", "made the vault")],
    "keep a decision": [
        Step(
            "Keep a text", "'SQLite keeps it in one file.' --name db --title Decision", "created notes/db.md"
        ),
        Step("Keep a text", "'As in [[db]], no server is needed.' --name plan", "created notes/plan.md"),
    ],
    "find it by other words": [Step("Find the memories that fit", "a file for keeping data", "notes/db.md")],
    "correct one word": [
        Step("Replace text", "notes/db.md 'one file' 'a single file'", "changed notes/db.md")
    ],
    "rename it with its links": [
        Step("Move or rename", "notes/db.md notes/database.md", "1 link rewritten"),
        Step("Print memories exactly", "notes/plan.md", "As in [[database]]"),
    ],
    "see who wrote a line": [
        Step("Commit memories", "-m 'Choose SQLite'", "A notes/database.md"),
        Step(
            "Show who last changed each fact",
            "notes/database.md",
            "A  3  SQLite keeps it in a single file.",
        ),
    ],
    "take the last change back": [
        Step("Add lines at the end", "notes/plan.md 'Too much.'", "changed notes/plan.md"),
        Step("Take back your last change", "", "changed notes/plan.md"),
    ],
    "give the context for a task as a hook does": [
        Step("Print what an agent should know", "which server is needed", "notes/plan.md"),
        Step("Answer a hook", "user-prompt", "no server is needed", '{"prompt": "which server is needed"}'),
    ],
    "propose something and accept it": [
        Step(
            "Propose a change", """append '{{"path": "notes/plan.md", "text": "Begin."}}'""", "created inbox/"
        ),
        Step("List the open proposals", "", "append notes/plan.md"),
        Step("Make the proposed change", "{first}", "changed notes/plan.md"),
    ],
    "review and commit what changed": [
        Step("Show what differs in memories", "", "+ Begin."),
        Step("Decide row by row", "", "+ Begin."),
        Step("Commit memories", "", "M notes/plan.md"),
    ],
}
_ROW = re.compile(r"^  ([a-z][a-z-]*)  +(\S.*(?:\n {5,}\S.*)*)", re.MULTILINE)


@cache
def read_screen(*names: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["help", *names]) == 0
    return out.getvalue()


def read_rows(text: str) -> dict[str, str]:
    return {name: " ".join(says.split()) for name, says in _ROW.findall(text)}


@cache
def read_commands() -> dict[str, str]:
    """Read what the help says of each command, from `mdmem help` and the screens that it names."""
    first, _, more = read_screen().partition("More, as in `mdmem help ")
    found = read_rows(first)
    for group in read_rows(more):
        found |= read_rows(read_screen(group))
    for name in list(found):
        text = read_screen(name)
        of_group = read_rows(text.partition("\nCommands:\n")[2])
        found |= {f"{name} {each}": says for each, says in of_group.items()}
        for named in re.findall(r"`mdmem\s+help\s+([a-z-]+)`", text):
            found.setdefault(named, read_screen(named).split("\n\n")[1].strip())
    return found


def find_command(words: str) -> str:
    """Return the one command that the help describes with these words."""
    (name,) = (name for name, says in read_commands().items() if says.startswith(words))
    return name


def without_network() -> list[str]:
    """Return what a command begins with to run without a network; nothing where the system has no way."""
    program = shutil.which("unshare")
    command = [program, "--map-root-user", "--net"] if program else []
    works = command and not subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    return command if works else []


def test_ten_tasks_are_done_from_the_help_alone_without_a_network(tmp_path: Path) -> None:
    home, folder, programs = (tmp_path / name for name in ("home", "work", "programs"))
    for each in (home, folder, programs):
        each.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "")
    environ = {**SETTINGS, "HOME": str(home), "PATH": str(programs)}
    subprocess.run(["git", "init", "--quiet", "--template="], cwd=folder, check=True, env=environ)
    prefix, said = without_network(), "none"
    for task, steps in TASKS.items():
        for step in steps:
            name = find_command(step.words)
            arguments = shlex.split(step.arguments.format(first=said.split(maxsplit=1)[0]))
            options = {each for each in arguments if each.startswith("-")}
            assert all(each in read_screen(*name.split()) for each in options), (task, name)
            ended = subprocess.run(
                [*prefix, sys.executable, "-m", "mdmem", *name.split(), *arguments],
                input=step.given,
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
            )
            said = ended.stdout
            assert (ended.returncode, step.answer in said + ended.stderr) == (0, True), (task, name, ended)
