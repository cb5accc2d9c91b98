"""The wheel: what is in it, and that it works in an empty environment, far from the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mdmem

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKOUT = Path(__file__).parents[2]
KINDS = ("schemas", "templates", "docs")


def succeed(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None, given: str = "") -> str:
    """What a command prints; outside the checkout, without what points into it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MDMEM_", "PYTHONPATH"))}
    ended = subprocess.run(
        command, cwd=cwd, env=own | dict(env or {}), input=given, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def built(folder: Path) -> Path:
    isolation = ["--no-isolation"] if find_spec("hatch_fancy_pypi_readme") else []
    succeed(sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", folder, CHECKOUT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """The programs of a new environment that holds the wheel and what it depends on."""
    succeed(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    # To unpack a pip of its own takes longer than all the rest: ours puts things there as well.
    pip = folder / "bin/pip"
    pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip --python "{folder}" "$@"\n')
    pip.chmod(0o755)
    succeed(pip, "install", "--quiet", "--no-compile", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_is_made_of_all_that_the_program_reads() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["mdmem"]
    assert wheel["force-include"] == {kind: f"mdmem/{kind}" for kind in KINDS}
    assert project["project"]["scripts"] == {"mdmem": "mdmem.cli:program"}


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_wheel_works_far_from_the_checkout(tmp_path: Path) -> None:
    """One test, because building and installing takes seconds."""
    for name in ("wheel", "program", "library", "start"):
        (tmp_path / name).mkdir()
    wheel = built(tmp_path / "wheel")
    holds_what_it_needs_and_nothing_else(wheel)
    programs = installed(wheel, tmp_path / "environment")
    assert succeed(programs / "mdmem", "--version", cwd=tmp_path) == f"mdmem {mdmem.__version__}\n"
    the_program_works(programs, tmp_path / "program")
    the_library_works(programs, tmp_path / "library")
    the_quick_start_works(programs, tmp_path / "start", wheel)


def holds_what_it_needs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"mdmem-{mdmem.__version__}.dist-info/METADATA").decode()
        programs = archive.read(f"mdmem-{mdmem.__version__}.dist-info/entry_points.txt").decode()
    for kind in KINDS:
        assert {f"mdmem/{kind}/{file.name}" for file in (CHECKOUT / kind).iterdir()} <= names
    modules = {file.relative_to(CHECKOUT).as_posix() for file in (CHECKOUT / "mdmem").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert "mdmem/py.typed" in names
    assert {"mdmem/conversations/observe/cues.toml", "mdmem/conversations/observe/events.toml"} <= names
    assert {name.partition("/")[0] for name in names} == {"mdmem", f"mdmem-{mdmem.__version__}.dist-info"}
    topics = "mdmem/cli/topics"
    assert {f"{topics}/{file.name}" for file in (CHECKOUT / topics).iterdir()} <= names
    assert not [name for name in names if "test" in name or name.endswith(".pyc")]
    assert Parser().parsestr(metadata)["Version"] == mdmem.__version__
    assert "mdmem = mdmem.cli:program" in programs


def the_program_works(programs: Path, folder: Path) -> None:
    program = programs / "mdmem"
    succeed(program, "init", cwd=folder)
    succeed(program, "new", "decision", "notes/sqlite.md", "--var", "title=Use SQLite", cwd=folder)
    assert succeed(program, "check", cwd=folder) == ""
    found = succeed(program, "grep", "use sqlite", cwd=folder)
    assert found.startswith("notes/sqlite.md:3:")
    listed = succeed(program, "schema", "list", cwd=folder)
    assert [line.split()[0] for line in listed.splitlines()] == sorted(
        file.stem for file in (CHECKOUT / "schemas").iterdir()
    )
    doctor = succeed(program, "doctor", cwd=folder)
    assert f"ripgrep: {programs / 'rg'}" in doctor
    assert doctor.endswith("clean\n")


def the_library_works(programs: Path, folder: Path) -> None:
    code = """
import mdmem
mdmem.init("memories")
memory = mdmem.open("memories", scope=mdmem.Scope(user="alice"))
memory.notes.append("db", "SQLite: one file.", title="Decision")
print(mdmem.__file__)
print([(hit.path, hit.line) for hit in memory.grep("one file")], memory.check(), memory.doctor().findings)
"""
    where, found = succeed(programs / "python", "-c", code, cwd=folder).splitlines()
    assert where.startswith(str(programs.parent))
    assert found == "[('notes/db.md', 3)] [] ()"


def the_quick_start_works(programs: Path, folder: Path, wheel: Path) -> None:
    """What the README says to an agent's user, as it is written there; the wheel is not published yet."""
    section = (CHECKOUT / "README.md").read_text().partition("\n## For your agent\n")[2]
    block = section.partition("```console\n")[2].partition("```")[0]
    script = "\n".join(re.findall(r"(?m)^\$ (.*)$", block))
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_NO_COMPILE": "1",
        "PIP_QUIET": "1",
    }
    (folder / "home").mkdir()
    succeed(programs / "pip", "install", f"mdmem[mcp] @ {wheel.as_uri()}", cwd=folder, env=env)
    succeed("sh", "-eu", "-c", script, cwd=folder, env=env)
    assert (folder / "memories/notes/db.md").read_text() == (
        "## SQLite\n\nThe database is one file, without a server.\n"
    )
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["mdmem"]
    assert Path(server["command"]).name == "mdmem"
    hooks = json.loads((folder / ".claude/settings.json").read_text())["hooks"]
    started = hooks["SessionStart"][0]["hooks"][0]["command"]
    succeed(programs / "mdmem", "--shared", "preferences", "set", "ui", "theme", "dark", cwd=folder, env=env)
    told = succeed("sh", "-c", started, cwd=folder, env=env | {"CLAUDE_PROJECT_DIR": str(folder)}, given="{}")
    assert "ui/theme: dark" in json.loads(told)["hookSpecificOutput"]["additionalContext"]
