"""The help of every command: it says what the command does, and its example runs as it stands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

import mdmem
from mdmem.cli.main import app, main
from mdmem.memory.memory import open as open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START = re.compile(r'Example: (?:eval "\$\()?mdmem ')
_SHELL = re.compile(r"[|<>]|\$\(")
# Examples that cannot succeed everywhere.
_ENDS_WITH_ONE = {"restore": "the hash in it is of nobody's content"}
_ENDLESS = {"watch"}
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
    head = "---\nsource: {type: user, ids: [a]}\n---\n"
    memory.write("notes/db.md", f"{head}# Database\n\nMySQL: one file.\n\n## Decision\n\nUse it.\n")
    memory.write("notes/old.md", "# Old\n\nSee [[db#Decision]] and `src/app.py#L1-L2`. #storage\n")
    memory.write("notes/2026-01.md", "SQLite\n")
    memory.write("notes/decisions/one.md", "# One\n")
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
    return folder


@pytest.fixture
def work(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    # What is kept of tools is not believed where it was copied to.
    open_memory(str(folder / "memories")).results.compress("Bash", BUILD_LOG)
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("MDMEM_")]:
        monkeypatch.delenv(name)
    return folder


def test_there_are_commands() -> None:
    assert {"show", "notes append", "schema check"} <= LEAVES.keys()


@pytest.mark.parametrize("name", ["", *ALL])
def test_every_command_and_group_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: mdmem {name}".rstrip())
    first = text.split("\n\n")[1].strip()
    assert first[0].isupper()
    assert "." in first
    assert all(len(line) <= 110 for line in text.splitlines())


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_and_every_example_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for parameter in LEAVES[name].params:
        if isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Choice):
            assert parameter.help, parameter.name
    epilog = LEAVES[name].epilog or ""
    assert _START.match(epilog)
    assert f"mdmem {name}" in epilog
    main([*name.split(), "--help"])
    assert " ".join(epilog.split()) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", [n for n in LEAVES if n not in _ENDLESS and not _SHELL.search(example(n))])
def test_the_example_runs(name: str, work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if name == "init":
        shutil.rmtree(work / "memories")
    program, *arguments = shlex.split(example(name))
    code = main(arguments)
    assert program == "mdmem"
    assert code == (1 if name in _ENDS_WITH_ONE else 0), capfd.readouterr().err


@pytest.mark.parametrize("name", sorted(_ENDLESS & LEAVES.keys()))
@pytest.mark.usefixtures("work")
def test_the_example_of_an_endless_command_runs_until_it_is_stopped(name: str) -> None:
    command = [sys.executable, "-m", *shlex.split(example(name))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.terminate()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


@pytest.mark.parametrize("name", [name for name in LEAVES if _SHELL.search(example(name))])
@pytest.mark.usefixtures("work")
def test_the_example_for_a_shell_runs(name: str) -> None:
    shell = shutil.which("bash") or "sh"
    program = f'mdmem() {{ {shlex.quote(sys.executable)} -m mdmem "$@"; }}\n'
    ended = subprocess.run(
        [shell, "-c", program + example(name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
