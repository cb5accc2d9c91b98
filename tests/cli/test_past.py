"""The commands that go back: what was done, by whom, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


@pytest.fixture
def changed(cli: Cli, files: Files) -> Files:
    """A memory that was written by alice, and changed by bob."""
    cli.ok("--actor", "alice", "write", "a.md", "one\n")
    cli.ok("--actor", "bob", "replace", "a.md", "one", "two")
    return files


@pytest.mark.usefixtures("changed")
def test_the_history_names_changes_newest_first(cli: Cli) -> None:
    lines = cli.ok("history").out.splitlines()
    assert [line.split("  ")[2:] for line in lines[::2]] == [
        ["bob", "replace in a.md"],
        ["alice", "write a.md"],
    ]
    assert lines[3].startswith("    a.md  absent → ")
    newest, oldest = cli.ok("history", "--json").json
    assert newest["files"][0]["before"] == oldest["files"][0]["after"]
    assert newest["files"][0]["after"] == cli.ok("show", "a.md", "--hash").out.strip()


@pytest.mark.usefixtures("changed")
def test_the_history_of_one_memory(cli: Cli) -> None:
    cli.ok("write", "b.md", "other")
    assert len(cli.ok("history", "a.md", "--json").json) == 2
    assert len(cli.ok("history", "b.md", "--json").json) == 1
    assert cli.ok("history", "c.md", "--json").json == []


@pytest.mark.usefixtures("changed")
def test_the_history_says_what_it_left_out(cli: Cli) -> None:
    ended = cli.ok("history", "--limit", "1")
    assert "bob" in ended.out
    assert "alice" not in ended.out
    assert ended.errors == "1 older change left out: raise --limit\n"
    ended = cli.ok("history", "--limit", "1", "--json")
    assert len(ended.json) == 1
    assert ended.errors == "1 older change left out: raise --limit\n"
    assert cli.ok("history", "--limit", "2").errors == ""


def test_restore_brings_back_what_stood_there_before(cli: Cli, changed: Files) -> None:
    cli.ok("restore", "a.md")
    assert changed.read("a.md") == b"one\n"
    cli.ok("rm", "a.md")
    cli.ok("restore", "a.md")
    assert changed.read("a.md") == b"one\n"


def test_restore_takes_a_hash_of_the_history(cli: Cli, changed: Files) -> None:
    cli.ok("append", "a.md", "three")
    oldest = cli.ok("history", "--json").json[-1]["files"][0]["after"]
    assert cli.ok("restore", "a.md", "--hash", oldest[:8], "--dry-run").out
    assert changed.read("a.md") == b"two\nthree\n"
    cli.ok("restore", "a.md", "--hash", oldest[:8])
    assert changed.read("a.md") == b"one\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["none.md"], 1), (["a.md", "--hash", "00000000"], 1), (["a.md", "--hash", "00"], 2)],
)
def test_restore_of_what_is_not_kept_is_refused(
    cli: Cli, changed: Files, arguments: list[str], code: int
) -> None:
    assert cli("restore", *arguments).code == code
    assert changed.read("a.md") == b"two\n"


def test_undo_takes_back_the_last_change_and_can_be_undone(cli: Cli, changed: Files) -> None:
    assert "-two\n+one\n" in cli.ok("undo", "--dry-run").out
    cli.ok("undo")
    assert changed.read("a.md") == b"one\n"
    cli.ok("undo")
    assert changed.read("a.md") == b"two\n"


def test_undo_takes_back_an_older_change_and_keeps_later_ones(cli: Cli, changed: Files) -> None:
    cli.ok("write", "b.md", "# B\n\nold\n\n# C\n\nc\n")
    cli.ok("replace", "b.md", "old", "new")
    change = cli.ok("history", "b.md", "--json").json[0]["id"]
    cli.ok("section", "b.md", "C", "changed")
    cli.ok("undo", change)
    assert changed.read("b.md") == b"# B\n\nold\n\n# C\n\nchanged\n"


def test_undo_without_a_change_to_undo(cli: Cli) -> None:
    for arguments in (["undo"], ["undo", "nope"]):
        ended = cli(*arguments)
        assert (ended.code, ended.out) == (1, "")
        assert "there is no change at all" in ended.errors


def test_undo_of_a_change_that_there_is_not_names_the_last_ones(cli: Cli, changed: Files) -> None:
    ids = [entry["id"] for entry in cli.ok("history", "--json").json]
    ended = cli("undo", "nope")
    assert ended.code == 1
    assert ended.errors == f"mdmem: no change 'nope'\nthere is: {', '.join(ids[:3])}\n"
    assert changed.read("a.md") == b"two\n"


def test_every_user_undoes_only_their_own(cli: Cli, files: Files) -> None:
    cli.ok("--user", "alice", "write", "a.md", "alice")
    cli.ok("--user", "bob", "write", "a.md", "bob")
    cli.ok("--user", "alice", "undo")
    assert list(files.everything()) == ["users/bob/a.md"]
