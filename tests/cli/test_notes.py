"""The commands of notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


def test_a_note_grows_by_sections(cli: Cli, files: Files) -> None:
    assert cli.ok("notes", "append", "db", "One file.", "--title", "SQLite").out.startswith(
        "created notes/db.md  "
    )
    cli.ok("notes", "append", "notes/db.md", "--title", "Why", stdin=b"Small.\n")
    assert files.read("notes/db.md") == b"## SQLite\n\nOne file.\n\n## Why\n\nSmall.\n"


def test_a_note_can_be_made_one_section(cli: Cli, files: Files) -> None:
    files.write("notes/db.md", b"---\ntags: [db] # kept\n---\n\n## Old\n\ntext\n")
    seen = cli.ok("show", "notes/db.md", "--hash").out.strip()
    assert cli("notes", "overwrite", "db", "New.", "--base", "00000000").code == 2
    assert "-## Old" in cli.ok("notes", "overwrite", "db", "New.", "--title", "T", "--dry-run").out
    cli.ok("notes", "overwrite", "db", "New.", "--title", "T", "--base", seen)
    assert files.read("notes/db.md") == b"---\ntags: [db] # kept\n---\n\n## T\n\nNew.\n"


def test_a_note_is_read_exactly(cli: Cli, files: Files) -> None:
    files.write("notes/deep/db.md", b"\xef\xbb\xbf# DB\r\n")
    ended = cli.ok("notes", "read", "deep/db")
    assert ended.data == b"\xef\xbb\xbf# DB\r\n"
    assert ended.errors.startswith("notes/deep/db.md  ")
    assert cli.ok("notes", "read", "deep/db", "--json").json["text"] == "\ufeff# DB\r\n"
    assert cli("notes", "read", "none").code == 1


def test_notes_are_listed_with_their_titles(cli: Cli, files: Files) -> None:
    files.write("notes/a.md", b"# First\n")
    files.write("notes/deep/b.md", b"---\ntitle: Second\n---\n")
    files.write("other.md", b"# Other\n")
    assert cli.ok("notes", "list").out == "notes/a.md\tFirst\nnotes/deep/b.md\tSecond\n"
    assert [note["title"] for note in cli.ok("notes", "list", "deep", "--json").json] == ["Second"]
    assert cli("notes", "list", "none").code == 1


def test_notes_of_a_user_are_their_own(cli: Cli, files: Files) -> None:
    cli.ok("--user", "alice", "notes", "append", "a", "text", "--title", "T")
    assert list(files.everything()) == ["users/alice/notes/a.md"]
    assert cli.ok("--user", "bob", "notes", "list").out == ""
