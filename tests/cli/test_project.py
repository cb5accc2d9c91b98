"""The commands of project memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

TEXT = b"# Demo\r\n\r\nWhat it is.\r\n\r\n## Decisions\r\n\r\n- Use SQLite\r\n"


def test_it_is_printed_exactly(cli: Cli, files: Files) -> None:
    assert cli("project", "load").code == 1
    files.write("AGENTS.md", TEXT)
    assert cli.ok("project", "load").data == TEXT
    assert cli.ok("project", "load", "--json").json["path"] == "AGENTS.md"


def test_a_bullet_is_written_in_place(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", TEXT)
    cli.ok("project", "append", "Decisions", "- Use click")
    assert files.read("AGENTS.md") == TEXT + b"- Use click\r\n"


def test_steps_and_parameters_have_sections_of_their_own(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", b"# Demo\n")
    cli.ok("project", "step", "deploy", "done", "on Friday")
    cli.ok("project", "step", "deploy", "undone")
    cli.ok("project", "params", "model=large", "temperature=0.2", "stop=[a, b]", "note=a: b")
    assert files.read("AGENTS.md").decode() == (
        "# Demo\n\n## Workflow\n\n- [deploy] undone\n\n## Parameters\n\n- model: large\n- temperature: 0.2\n"
        '- stop: ["a", "b"]\n- note: a: b\n'
    )


def test_a_date_is_written_when_asked(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", TEXT)
    cli.ok("project", "append", "Decisions", "--date", stdin=b"From standard input\n")
    assert files.read("AGENTS.md").decode().splitlines()[-1].endswith(": From standard input")


def test_the_summary_is_what_was_decided(cli: Cli, files: Files) -> None:
    files.write("AGENTS.md", TEXT)
    assert cli.ok("project", "summary").out == "## Decisions\r\n\r\n- Use SQLite\n"
    assert "Decisions" in cli.ok("project", "summary", "--json").json["summary"]
    assert "left out" in cli.ok("project", "summary", "--max-chars", "5").out
    assert cli("project", "summary", "--max-chars", "-1").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["append", "Decisions", " "],
        ["append", " ", "entry"],
        ["step", "[x]", "done"],
        ["step", "x", " "],
        ["params", "novalue"],
        ["params", "a:b=c"],
        ["append", "None > Such", "entry"],
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, files: Files, arguments: list[str]) -> None:
    files.write("AGENTS.md", TEXT)
    assert cli("project", *arguments).code in {1, 2}
    assert files.read("AGENTS.md") == TEXT


def test_a_project_has_its_own(cli: Cli, files: Files) -> None:
    cli.ok("--project", "demo", "project", "append", "Decisions", "Use SQLite")
    assert list(files.everything()) == ["projects/demo/AGENTS.md"]
