"""The README: each of its claims has a test that shows it.

A test that shows a claim quotes how the sentence begins, in a comment: `# README: Delete the index …`.
What only a fresh checkout can show is shown by `.ci/run`, which quotes it as well. Its examples are run with
those of the pages; see `test_examples.py`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.vault.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
sys.path.append(str(CHECKOUT / "bench"))

import examples  # noqa: E402 - it is where programs that measure are

README = (CHECKOUT / "README.md").read_text()
TESTS = CHECKOUT / "tests"
MOST_LINES = 150
# Lines that claim nothing that a test could show: they say what to do, where to look, or what is intended.
NO_CLAIMS = (
    *(
        "![",
        "mdmem is not released yet",
        "It is tested on Linux;",
        "Then start the agent",
        "**[What stays](docs/stable.md)**",
    ),
    *("| ---", "| what |", "| | ", "[The first five minutes]", "[bench/README.md]"),
)
PEERS = ("| `CLAUDE.md`", "| [basic-memory]", "| [Obsidian]", "| [qmd]", "| mdmem |")
MEASURED = r"\d[\d.,]* (?:s|of [\d,]+|tokens)"
# What a session begins with, what a prompt brings, and what only a search finds, each by a word of it.
KEPT = (
    "mdmem project append Conventions 'Indent with tabs.'",
    "mdmem rules add commits 'A commit has one purpose.'",
    "mdmem --user ada preferences set ui theme dark",
    "mdmem --user bob preferences set ui theme light",
    "mdmem --user ada notes append db 'The database is one file.'",
    "mdmem notes append port 'It listens on 8080.' && mdmem set notes/port.md tier=pinned",
    "mdmem --user ada working set 'The tests are red.' --thread t1",
    "mdmem sessions append t1 user 'Ask Grace about the certificate.'",
)
SPY = """
import os, sys
def note(event, _):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.sendto"}:
        os.close(os.open(os.environ["ASKED"], os.O_CREAT))
sys.addaudithook(note)
"""


def prose() -> Iterator[str]:
    """The sentences of the README, without code and headings."""
    text = re.sub(r"(?ms)^(````?)\w*$.*?^\1$|^#+ .*?$", "", README)
    for line in text.splitlines():
        yield from re.split(r"(?<=[.!?:])\s+(?=[A-Z`*(])", line.strip().removeprefix("- "))


@cache
def quoted() -> dict[str, str]:
    """What comments of tests quote of the README, and in which file."""
    found = {}
    for file in (CHECKOUT / ".ci/run", *sorted(TESTS.rglob("*.py"))):
        for quote in re.findall(r"(?m)^ *# README: (.*?)(?: ?…)?$", file.read_text()):
            found[quote] = file.name
    return found


def test_it_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) <= MOST_LINES


# README: mdmem keeps what an agent knows in plain Markdown and JSON files …
# README: In a repository of yours, three commands make a vault …
def test_every_claim_is_shown_by_a_test() -> None:
    claims = [each for each in prose() if each and not each.startswith((*NO_CLAIMS, *PEERS))]
    assert len(claims) > 10
    assert [each for each in claims if not any(map(each.startswith, quoted()))] == []


def test_what_tests_quote_stands_in_the_readme() -> None:
    sentences = list(prose())
    assert [quote for quote in quoted() if not any(each.startswith(quote) for each in sentences)] == []


# README: It needs Python 3.11 or newer, and git.
def test_the_version_of_python_is_the_one_that_is_asked_for() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"


def test_the_files_that_it_points_at_are_there() -> None:
    named = re.findall(r"\]\((?!https:)([^)#]+)(?:#[^)]*)?\)", README)
    assert {"docs/index.md", "CHANGELOG.md", "LICENSE", "bench/README.md"} <= set(named)
    assert [name for name in named if not (CHECKOUT / name).is_file()] == []


# README: It is given rules, preferences, project memory and the task at hand at the start, …
# README: | `AGENTS.md`: …
# README: | `rules/`: …
# README: | `preferences/`: …
# README: | `notes/`: …
# README: | `working/`: …
# README: | `sessions/`: …
def test_each_kind_is_given_to_whom_the_table_says(tmp_path: Path) -> None:
    place = examples.Place(tmp_path / "ada")
    place.run("git init --quiet && mdmem init && mdmem --user ada --project app install claude-code --yes")
    for command in KEPT:
        place.run(command)
        assert place.code == 0, command
    agent = f"{sys.executable} {CHECKOUT}/bench/agent.py"
    given = place.run(f"{agent} SessionStart")
    words = ("tabs", "one purpose", "dark", "light", "8080", "red", "one file", "Grace")
    assert [word for word in words if word in given] == ["tabs", "one purpose", "dark", "8080", "red"]
    assert "one file" in place.run(f"{agent} UserPromptSubmit 'Which file is the database?'")
    assert "Grace" in place.run("mdmem sessions search certificate --all")
    place.run("git check-ignore memories/users/ada/working/threads/t1.md memories/sessions/t1.jsonl")
    assert place.code == 0


# README: Index and search are whole processes over 1,000 notes, on a busy machine; …
# README: When another is better is from its documentation, in November 2026.
def test_what_is_said_of_others_was_measured() -> None:
    rows = [line for line in README.splitlines() if line.startswith(PEERS)]
    assert len(rows) == len(PEERS)
    measured = (CHECKOUT / "bench/README.md").read_text().partition("\n## Peers\n")[2].partition("\n## ")[0]
    figures = re.findall(MEASURED, "\n".join(rows))
    assert len(figures) > 8
    assert [figure for figure in figures if figure not in measured] == []
    assert "November 2026" in measured


# README: **Limits**: 4 MB for one memory; …
def test_the_limits_are_those_of_the_config_and_of_what_was_measured() -> None:
    assert Config().limits.max_bytes == 4 << 20
    assert "\n## 100,000 notes\n" in (CHECKOUT / "bench/README.md").read_text()


@pytest.mark.soak
# README: **What runs**: the server and the hooks that a host starts; …
# README: Nothing leaves the machine unless you name a model or a database.
def test_its_commands_ask_no_network(tmp_path: Path) -> None:
    place = examples.Place(tmp_path / "ada")
    (tmp_path / "sitecustomize.py").write_text(SPY)
    asked = tmp_path / "asked"
    spied = f"export PYTHONPATH={tmp_path} ASKED={asked};"
    for block in examples.Page(CHECKOUT / "README.md").blocks():
        for command, _ in block.commands() if block.language == "console" else ():
            place.run(f"{spied} {command.removeprefix('$ ')}")
            assert place.code == 0, command
    assert not asked.exists()
    place.run(f"{spied} {sys.executable} -c 'import socket; socket.create_server((str(), 0)).getsockname()'")
    place.run(f"{spied} {sys.executable} -c 'import socket; socket.getaddrinfo(str(), 9)'")
    assert asked.exists()
