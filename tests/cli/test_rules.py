"""The commands of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


@pytest.fixture
def ruled(files: Files) -> Files:
    files.write("rules/style.md", b"---\npriority: 5\n---\n# Style\n\nShort words.\n")
    files.write("rules/python.md", b"---\nglobs: ['*.py', 'src/**']\n---\n# Python\n\nType everything.\n")
    files.write("rules/off.md", b"---\nenabled: false\n---\n# Off\n\nNever mind.\n")
    files.write("users/alice/rules/mine.md", b"# Mine\n\nNo emoji.\n")
    return files


@pytest.mark.usefixtures("ruled")
def test_rules_are_listed_by_importance(cli: Cli) -> None:
    lines = cli.ok("rules", "list").out.splitlines()
    assert lines == ["   5  global   style  Style", "   0  global   python  Python  *.py, src/**"]
    assert "(disabled)" in cli.ok("rules", "list", "--disabled").out
    rules = cli.ok("--user", "alice", "rules", "list", "--json").json
    assert [(rule["name"], rule["scope"]) for rule in rules] == [
        ("style", "global"),
        ("python", "global"),
        ("mine", "user"),
    ]


@pytest.mark.usefixtures("ruled")
def test_rules_are_chosen_by_the_file_that_they_are_about(cli: Cli) -> None:
    assert "python" in cli.ok("rules", "list", "--for", "src/app.py").out
    assert "python" not in cli.ok("rules", "list", "--for", "README.txt").out


@pytest.mark.usefixtures("ruled")
def test_the_text_is_what_a_model_is_given(cli: Cli) -> None:
    text = cli.ok("rules", "text", "--for", "a.py").out
    assert text == "# Style\n\nShort words.\n\n# Python\n\nType everything.\n"
    assert cli.ok("rules", "text", "--for", "a.py", "--json").json == {"text": text.rstrip("\n")}
    assert "rules left out" in cli.ok("rules", "text", "--max-chars", "30").out
    assert cli("rules", "text", "--max-chars", "-1").code == 2


def test_no_rules_are_no_error(cli: Cli) -> None:
    assert cli.ok("rules", "list").out == ""
    assert cli.ok("rules", "text").out == "\n"
