"""Arguments that begin with a dash: list items and frontmatter are texts, everything else is an option."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


@pytest.mark.parametrize(
    "text",
    [
        "- one more",
        "-\tone",
        "---\ntype: note\n---\n\n# T\n",
        "---",
        "--- a",
        "- help me -h --help",
        "- a=b",
        "-- ",
        "* starred",
        "-",
    ],
)
def test_a_text_may_begin_with_a_dash(cli: Cli, files: Files, text: str) -> None:
    cli.ok("write", "a.md", text, "--json", stdin=b"-")
    assert files.read("a.md").decode() == text
    cli.ok("write", "--overwrite", "--", "a.md", text, stdin=b"-")
    assert files.read("a.md").decode() == text


def test_several_arguments_may(cli: Cli, files: Files) -> None:
    files.write("a.md", b"- [ ] todo\n")
    cli.ok("replace", "a.md", "- [ ] todo", "- [x] todo")
    assert files.read("a.md") == b"- [x] todo\n"
    assert cli.ok("grep", "- [x]").code == 0
    cli.ok("notes", "append", "n", "- one", "--title", "- T")
    assert files.read("notes/n.md") == b"## - T\n\n- one\n"


@pytest.mark.parametrize("word", ["--dry-rnu", "-x", "--dry-rnu=a b", "-xyz", "--"])
def test_what_may_be_an_option_is_one(cli: Cli, files: Files, word: str) -> None:
    ended = cli("append", word, "a.md", stdin=b"text")
    assert (ended.code == 2) == (word != "--")
    assert list(files.everything()) == ([] if ended.code else ["a.md"])


def test_an_option_keeps_a_value_with_blanks(cli: Cli, files: Files) -> None:
    cli.ok("notes", "append", "n", "text", "--title=A title = this")
    assert files.read("notes/n.md") == b"## A title = this\n\ntext\n"
