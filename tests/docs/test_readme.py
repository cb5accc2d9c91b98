"""The README: what it shows runs and prints what it says, and each of its claims has a test that shows it.

A test that shows a claim quotes how the sentence begins, in a comment: `# README: Line ends, a byte-order …`.
What only a fresh checkout can show is shown by `.ci/run`, which quotes it as well.
"""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
sys.path.append(str(CHECKOUT / "bench"))

import examples  # noqa: E402 - it is where programs that measure are

README = (CHECKOUT / "README.md").read_text()
TESTS = CHECKOUT / "tests"

# Each command that the README shows under "Use it", and what it prints.
TRANSCRIPT = {
    "init": ["made the vault", "memories"],
    'notes append db "The database is one file." --title SQLite': ["created notes/db.md"],
    "grep sqlite notes/": ["notes/db.md", "1:## SQLite"],
    'search "which database"': ["notes/db.md", "The database is one file."],
    'replace notes/db.md "one file" "a single file"': ["changed notes/db.md"],
    "set notes/db.md tags='[db, decision]'": ["changed notes/db.md"],
    'section notes/db.md SQLite "Backed up." --append': ["changed notes/db.md"],
    'new decision notes/sqlite.md --var title="Use SQLite"': ["created notes/sqlite.md"],
    "replace --in notes --all SQLite DuckDB --dry-run": ["-## SQLite", "+## DuckDB", "+title: Use DuckDB"],
    "mv notes/sqlite.md notes/decisions/": ["moved notes/sqlite.md → notes/decisions/sqlite.md"],
    "refs --stale": [],
    "check": [],
    "diff notes/db.md": ["+Backed up."],
    "undo": ["created notes/sqlite.md", "deleted notes/decisions/sqlite.md"],
}
# Sentences that claim nothing that a test could show: they say where to look, or why a package was chosen.
NO_CLAIMS = (
    *("It is a Python library and a program.", "To install it for yourself:", "In a repository of yours:"),
    *("See [AGENTS.md]", "Changes are in [CHANGELOG.md]", "The licence is"),
    *("How a log is written, and what each line says, is in", "How observations are made, and all that"),
)


def block(heading: str, language: str) -> str:
    """The first block of code of a language below a heading."""
    return README.partition(f"{heading}\n")[2].partition(f"```{language}\n")[2].partition("```")[0]


def prose() -> Iterator[str]:
    """The sentences of the README, without code, tables and headings."""
    text = re.sub(r"(?ms)^```.*?^```$|^    .*?$|^\|.*?$|^#+ .*?$", "", README)
    for line in text.splitlines():
        yield from re.split(r"(?<=[.!?:])\s+(?=[A-Z`*(])", line.strip().removeprefix("- "))


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    table = README.partition(f"{heading}\n")[2].partition("\n|")[2].partition("\n\n")[0]
    return [re.split(r"\s*\|\s*", row.strip("| ")) for row in table.splitlines()[2:]]


@cache
def quoted() -> dict[str, str]:
    """What comments of tests quote of the README, and in which file."""
    found = {}
    for file in (CHECKOUT / ".ci/run", *sorted(TESTS.rglob("*.py"))):
        for quote in re.findall(r"(?m)^ *# README: (.*?)(?: ?…)?$", file.read_text()):
            found[quote] = file.name
    return found


def test_every_claim_is_shown_by_a_test() -> None:
    claims = [each for each in prose() if each and not each.startswith(NO_CLAIMS)]
    bare = [each for each in claims if not any(map(each.startswith, quoted()))]
    assert len(claims) > 60
    assert bare == []


def test_what_tests_quote_stands_in_the_readme() -> None:
    sentences = list(prose())
    assert [quote for quote in quoted() if not any(each.startswith(quote) for each in sentences)] == []


@pytest.fixture
def place(tmp_path: Path) -> examples.Place:
    return examples.Place(tmp_path / "ada")


# README: mdmem keeps an agent's memory as plain Markdown and JSON files …
# README: It finds things, changes them exactly, checks them against schemas …
def test_the_commands_print_what_is_said(place: examples.Place) -> None:
    commands = [line.partition("  #")[0].strip() for line in block("## Use it", "sh").splitlines()]
    assert [command.removeprefix("mdmem ") for command in commands] == [*TRANSCRIPT]
    for command, expected in TRANSCRIPT.items():
        printed = place.run(f"mdmem --no-pager {command}")
        assert place.code == 0, (command, printed)
        assert [text for text in expected if text not in printed] == [], (command, printed)
        assert bool(expected) == bool(printed)


# What the README shows under "Review in git", and what it prints once an agent has added a fact.
REVIEW = {
    "git diff": ["notes/db.md", "+ Backed up."],
    'git commit -m "What the agent learnt"': ["notes/db.md"],
    "git blame -v notes/db.md": ["claude", "Backed up.", "append"],
    "git revert 'notes/db.md:Backed up.' --dry-run": ["-Backed up."],
    "git install --dry-run": ["merge=mdmem"],
}


def test_the_review_shows_what_an_agent_has_learnt(place: examples.Place) -> None:
    def run(command: str) -> str:
        printed = place.run(command)
        assert place.code == 0, (command, printed)
        return printed

    run("git init --quiet")
    run("mdmem init")
    run('mdmem notes append db "The database is one file." --title SQLite')
    run("git add --all && git commit --quiet --message Begin")
    run("mdmem --actor claude append notes/db.md $'\\nBacked up.'")
    commands = [line.partition("  #")[0].strip() for line in block("## Review in git", "sh").splitlines()]
    assert [command.removeprefix("mdmem ") for command in commands] == [*REVIEW]
    for command, expected in REVIEW.items():
        printed = run(f"mdmem {command}")
        assert [text for text in expected if text not in printed] == [], (command, printed)
    run("mdmem git revert 'notes/db.md:Backed up.'")
    assert "Backed up." not in (place.folder / "memories/notes/db.md").read_text()


def test_the_python_finds_what_it_looks_for(place: examples.Place) -> None:
    printed = place.execute(block("### From Python", "python"), "README.md")
    assert "+The database is SQLite: a single file." in printed
    # grep, then search: both find the line.
    assert printed.count("a single file.") == 3, printed


def test_the_table_of_commands_is_complete() -> None:
    named: set[str] = set()
    for _, commands in rows('`eval "$(mdmem completion bash)"` completes commands and paths.'):
        named |= {command.split()[0] for command in re.findall(r"`([^`]+)`", commands)}
    preferences = {"get", "list", "top", "stats", "delete", "sweep"}
    project = {"summary", "append", "step", "params", "load"}
    known = set(app.list_commands(None))  # type: ignore[arg-type]  # it needs no context
    assert known - named == {"completion", "help", "init"}  # they are shown above it
    assert named - known <= preferences | project


def test_the_table_of_dependencies_is_complete() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = [each for given in project["optional-dependencies"].values() for each in given]
    wanted = {re.split(r"[<>=\[]", each)[0] for each in [*project["dependencies"], *extras]}
    table = " ".join(name for name, *_ in rows("## What it depends on"))
    missing = [name for name in wanted if not re.search(rf"\b{name}\b", table)]
    assert [name for name in missing if not name.startswith("tree-sitter-")] == []


# README: Put this into `.mdmem/schemas/decision.json` …
def test_the_schema_holds_as_it_is_shown(tmp_path: Path) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    schema = tmp_path / "memories/.mdmem/schemas/decision.json"
    schema.parent.mkdir(exist_ok=True)
    schema.write_text(block("## The vault", "json"))
    with pytest.raises(mdmem.Invalid) as refused:
        memory.write("notes/a.md", "---\ntype: decision\n---\n# A\n\n## Context\n")
    assert {finding.code for finding in refused.value.findings} == {"schema-required", "schema-body"}
    assert not (tmp_path / "memories/notes").exists()
    memory.write("notes/a.md", "---\ntype: decision\nstatus: accepted\n---\n## Context\n\n## Decision\n")


# README: It needs Python 3.11 or newer, and is tested on Linux …
def test_the_version_of_python_is_the_one_that_is_asked_for() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"


@pytest.mark.parametrize("name", ["AGENTS.md", "CHANGELOG.md", "LICENSE", "bench/README.md", "docs/git.md"])
# README: `make bench` measures mdmem beside …
# README: [docs/git.md](docs/git.md) has a review from beginning to end, …
def test_the_files_that_it_points_at_are_there(name: str) -> None:
    assert f"({name})" in README
    assert (CHECKOUT / name).is_file()
