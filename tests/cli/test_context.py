"""The command of what an agent is given of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


@pytest.fixture
def filled(files: Files) -> Files:
    files.write("AGENTS.md", b"# Demo\n\nUse SQLite.\n")
    files.write("rules/python.md", b"---\nglobs: ['*.py']\n---\nType everything.\n")
    files.write("notes/db.md", b"# Database\n\nOne file.\n")
    files.write("working/threads/t1.md", b"# Goal\n\nShip it.\n")
    return files


@pytest.mark.usefixtures("filled")
def test_the_text_is_printed_alone_and_its_cost_on_standard_error(cli: Cli) -> None:
    ended = cli.ok("context", "one", "file", "--for", "src/a.py", "--thread", "t1")
    titles = [line for line in ended.out.splitlines() if line.startswith("## ")]
    assert titles == ["## Rules", "## Project memory", "## Working memory", "## Found"]
    assert ended.errors.endswith(" tokens\n")


@pytest.mark.usefixtures("filled")
def test_only_rules_for_the_files_are_printed(cli: Cli) -> None:
    assert "Type everything." in cli.ok("context").out
    assert "Type everything." not in cli.ok("context", "--for", "a.md", "--for", "b.md").out


@pytest.mark.usefixtures("filled")
def test_what_was_left_out_is_told_in_the_text_and_on_standard_error(cli: Cli) -> None:
    ended = cli.ok("context", "file", "--budget", "90", "--estimated")
    assert "## Left out" in ended.out
    assert "left out: raise --budget" in ended.errors


@pytest.mark.usefixtures("filled")
def test_json_has_the_text_the_parts_and_what_was_left_out(cli: Cli) -> None:
    found = cli.ok("context", "--budget", "90", "--estimated", "--json").json
    assert found["text"] == cli.ok("context", "--budget", "90", "--estimated").out
    assert found["tokens"] <= 90
    kept = [place for part in found["parts"] for place in part["places"]]
    assert {*kept, *(left["place"] for left in found["left_out"])} == {
        "rules/python.md#L4",
        "AGENTS.md#L1-L3",
    }
    assert all(left["tokens"] > 0 for left in found["left_out"])


def test_an_empty_vault_prints_nothing(cli: Cli) -> None:
    assert cli.ok("context", "anything").out == ""


@pytest.mark.parametrize("budget", ["0", "-1", "many"])
def test_a_budget_that_is_none_is_refused(cli: Cli, budget: str) -> None:
    assert cli("context", "--budget", budget).code == 2
