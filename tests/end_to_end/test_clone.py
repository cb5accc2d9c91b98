"""A clone of what `mdmem git commit` made is a vault, which answers as the one that it was made of."""

from __future__ import annotations

import re
import sys
from itertools import takewhile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
sys.path.append(str(CHECKOUT / "bench"))

import examples  # noqa: E402 - it is where programs that measure are

QUESTIONS = (
    *("mdmem ls", "mdmem show notes/db.md", "mdmem search database", "mdmem grep database", "mdmem check"),
    *("mdmem git log --oneline", "mdmem git diff HEAD~1..HEAD", "mdmem schema list", "mdmem git diff"),
)


class Repository(examples.Place):
    """A repository with a vault, in which each command succeeds."""

    def run(self, command: str, keys: str = "") -> str:
        printed = super().run(command, keys)
        assert self.code == 0, (command, printed)
        return printed


def begun(home: Path) -> Repository:
    """A repository and a vault as the page about git begins; nothing but `mdmem git commit` commits."""
    made = Repository(home)
    blocks = [each for each in examples.Page(CHECKOUT / "docs/git.md").blocks() if each.language == "console"]
    commands = [shown.removeprefix("$ ") for block in blocks for shown, _ in block.commands()]
    for command in takewhile(lambda each: "git install" not in each, commands):
        made.run(command)
    return made


def cloned(made: Repository, home: Path) -> Repository:
    clone = Repository(home)
    clone.run(f"git clone --quiet '{made.folder}' .")
    return clone


def test_a_clone_of_the_walkthrough_answers_the_same(tmp_path: Path) -> None:
    made = begun(tmp_path / "work")
    clone = cloned(made, tmp_path / "clone")
    for question in QUESTIONS:
        assert clone.run(question) == made.run(question), question
    assert made.run("git status --porcelain") == ""
    assert clone.run("mdmem append notes/db.md 'One more.'").startswith("changed notes/db.md")
    assert clone.run("git status --porcelain") == " M memories/notes/db.md\n"


@pytest.mark.soak
def test_schemas_and_templates_of_a_vault_hold_in_its_clone(tmp_path: Path) -> None:
    made = begun(tmp_path / "work")
    made.run("mkdir memories/.mdmem/schemas memories/.mdmem/templates")
    made.run("""echo '{"required": ["owner"]}' > memories/.mdmem/schemas/note.json""")
    made.run("echo 'By {{ who }}.' > memories/.mdmem/templates/by.md")
    told = made.run("mdmem git commit --message 'Say what a note needs'")
    assert re.findall(r"^ A (.*)$", told, re.MULTILINE) == [
        *(".mdmem/schemas/note.json", ".mdmem/templates/by.md"),
    ]
    clone = cloned(made, tmp_path / "clone")
    question = "mdmem check || test $? = 1"
    assert "owner" in made.run(question)
    assert clone.run(question) == made.run(question)
    assert clone.run("mdmem new by --print --var who=me") == "By me.\n"


def test_a_commit_says_which_settings_go_along(tmp_path: Path) -> None:
    made = Repository(tmp_path / "work")
    made.run("git init --quiet --initial-branch=main && mdmem init && mdmem append a.md 'One.'")
    for how in (" --dry-run", ""):
        told = made.run(f"mdmem git commit{how}")
        assert re.findall(r"^ A (.*)$", told, re.MULTILINE) == [".gitignore", ".mdmem/config.toml", "a.md"]
    assert made.run("mdmem git commit --json || test $? = 1").count('"settings"') == 1
