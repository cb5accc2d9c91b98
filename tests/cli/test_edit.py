"""The commands that change any memory: what they write, refuse, propose and ask.

The commands that go back: what was done, by whom, and taking it back.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.tables import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


DB = b"---\ntitle: DB # kept\n---\n# Database\n\nOne file.\n\n## Why\n\nSmall.\n\n### Really\n\nYes.\n"


@pytest.fixture
def db(files: Files) -> Files:
    files.write("notes/db.md", DB)
    return files


# ------------------------------------------------------------------------------------------------ each verb


@cases(
    "arguments, before, after",
    [
        (["append", "PATH", "new"], b"a\r\nb\r\n", b"a\r\nb\r\nnew\r\n"),
        (["append", "PATH", "new"], b"a", b"a\nnew\n"),
        (["append", "PATH", "new"], b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfa\nnew\n"),
        (["prepend", "PATH", "new"], b"---\na: 1\n---\nb\n", b"---\na: 1\n---\nnew\nb\n"),
        (["insert", "PATH", "0", "new"], b"a\nb\n", b"new\na\nb\n"),
        (["insert", "PATH", "1", "new"], b"a\nb\n", b"a\nnew\nb\n"),
        (["delete-lines", "PATH", "2"], b"a\nb\nc\n", b"a\nc\n"),
        (["delete-lines", "PATH", "2", "3"], b"a\nb\nc\n", b"a\n"),
        (["set", "PATH", "a=2"], b"---\na: 1 # one\n---\n", b"---\na: 2 # one\n---\n"),
        (["set", "PATH", "a=[1, x]", "b=no"], b"---\na: 1\n---\n", b'---\na:\n  - 1\n  - x\nb: "no"\n---\n'),
        (["set", "PATH", 'a={"b": null}', "--json-value"], b"---\na: 1\n---\n", b"---\na:\n  b: null\n---\n"),
        (["set", "PATH", "a.b=2"], b"---\na:\n  b: 1\n---\n", b"---\na:\n  b: 2\n---\n"),
        (["set", "PATH", "a=SQLite: one"], b"---\na: 1\n---\n", b'---\na: "SQLite: one"\n---\n'),
        (["unset", "PATH", "a"], b"---\na: 1\nb: 2\n---\n", b"---\nb: 2\n---\n"),
        (["replace", "PATH", "a", "b"], b"xax\n", b"xbx\n"),
        (["replace", "PATH", "a", "b", "--count", "2"], b"xaxa\n", b"xbxb\n"),
        (["replace", "PATH", "a", "b", "--all"], b"aaaa\n", b"bbbb\n"),
        (["replace", "PATH", "(.)a", r"a\1", "--regex"], b"xa\n", b"ax\n"),
        (["section", "PATH", "B", "new"], b"# A\n\n## B\n\nold\n", b"# A\n\n## B\n\nnew\n"),
        (
            ["section", "PATH", "B", "new", "--append"],
            b"# A\n\n## B\n\nold\n",
            b"# A\n\n## B\n\nold\n\nnew\n",
        ),
        (["section", "PATH", "A > B", "new", "--insert-before"], b"# A\n\n## B\n", b"# A\n\nnew\n\n## B\n"),
        (["section", "PATH", "B", "new", "--insert-after"], b"# A\n\n## B\n", b"# A\n\n## B\n\nnew\n"),
        (
            ["section", "PATH", "A", "new", "--keep-subsections"],
            b"# A\n\nold\n\n## B\n\nb\n",
            b"# A\n\nnew\n\n## B\n\nb\n",
        ),
        (["write", "PATH", "new", "--overwrite"], b"old\n", b"new"),
    ],
)
def test_a_verb_changes_exactly_what_it_says(
    cli: Cli, files: Files, arguments: list[str], before: bytes, after: bytes
) -> None:
    files.write("a/x.md", before)
    ended = cli.ok(*["a/x.md" if argument == "PATH" else argument for argument in arguments])
    assert files.everything() == {"a/x.md": after}
    assert ended.out.startswith("changed a/x.md  ")
    assert ended.errors == ""


def test_a_new_memory_is_written_and_told_with_its_hash(cli: Cli, files: Files) -> None:
    ended = cli.ok("write", "notes/new.md", "# New\r\n")
    assert files.everything() == {"notes/new.md": b"# New\r\n"}
    digest = cli.ok("show", "notes/new.md", "--only-hash").out.strip()
    assert ended.out == f"created notes/new.md  {digest[:8]}\n"


@pytest.mark.usefixtures("db")
def test_json_tells_what_was_done(cli: Cli) -> None:
    done = cli.ok("append", "notes/db.md", "more", "--json").json
    assert [file["path"] for file in done["files"]] == ["notes/db.md"]
    assert cli.ok("show", "notes/db.md", "--only-hash", "--json").json["hash"] == done["files"][0]["after"]


@pytest.mark.usefixtures("db")
def test_a_folder_that_is_moved_into_a_new_one_is_told(cli: Cli) -> None:
    made = "note: the folder old/ was not there, and was made\n"
    assert cli.ok("mv", "notes", "old/").errors.endswith(made)
    assert "was made" not in cli.ok("mv", "old/notes", "new").errors


def test_a_memory_is_moved_with_its_name_into_a_folder(cli: Cli, db: Files) -> None:
    cli.ok("mv", "notes/db.md", "storage/")
    cli.ok("mv", "storage/db.md", "storage/sqlite.md")
    assert db.everything() == {"storage/sqlite.md": DB}
    cli.ok("mv", "storage", "archive")
    assert db.everything() == {"archive/sqlite.md": DB}


def test_links_follow_what_is_moved(cli: Cli, db: Files) -> None:
    db.write("notes/to.md", b"[[db]] [b](db.md#why) ![[notes/db|it]]\r\n")
    ended = cli.ok("mv", "notes/db.md", "storage/sqlite.md")
    assert db.read("notes/to.md") == b"[[sqlite]] [b](../storage/sqlite.md#why) ![[storage/sqlite|it]]\r\n"
    assert "changed notes/to.md  " in ended.out
    cli.ok("undo")
    assert db.everything().keys() == {"notes/db.md", "notes/to.md"}
    assert db.read("notes/to.md") == b"[[db]] [b](db.md#why) ![[notes/db|it]]\r\n"


@pytest.mark.parametrize(
    ("arguments", "before", "after"),
    [
        (
            ["--what", "heading", "a.md", "Old", "New one"],
            b"[[b]] [[a#Old]] [x](a.md#old)",
            b"[[b]] [[a#New one]] [x](a.md#new-one)",
        ),
        (["--what", "block", "a.md", "one", "two"], b"[[a#^one]]", b"[[a#^two]]"),
        (["--what", "id", "a.md", "m2"], b"[[m1]] [[a]]", b"[[m2]] [[a]]"),
        (["--what", "tag", "db", "store"], b"#db #db/x #dbs", b"#store #store/x #dbs"),
    ],
)
def test_a_rename_takes_everything_along_that_names_it(
    cli: Cli, files: Files, arguments: list[str], before: bytes, after: bytes
) -> None:
    files.write("a.md", b"---\nid: m1\n---\n# Old\n\ntext ^one\n")
    files.write("b.md", before)
    everything = files.everything()
    assert cli.ok("mv", *arguments, "--dry-run").out.startswith("--- ")
    assert files.everything() == everything
    cli.ok("mv", *arguments)
    assert files.read("b.md") == after
    cli.ok("undo")
    assert files.everything() == everything


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["notes/db.md"], 2),
        (["notes/db.md", "a.md", "b.md"], 2),
        (["--what", "heading", "notes/db.md", "Why"], 2),
        (["--what", "tag", "a", "b", "c"], 2),
        (["--what", "id", "notes/db.md"], 2),
        (["--what", "tag", "a", "b", "--base", "12345678"], 2),
        (["--what", "heading", "notes/db.md", "Nowhere", "New"], 1),
        (["--what", "tag", "nobody", "b"], 1),
        (["--what", "id", "notes/none.md", "b"], 1),
    ],
)
def test_a_rename_says_what_it_has_to_be_given(cli: Cli, arguments: list[str], code: int) -> None:
    ended = cli("mv", *arguments)
    assert ended.code == code
    assert ended.errors


def test_a_folder_is_deleted_whole_and_comes_back(cli: Cli, db: Files) -> None:
    db.write("notes/deep/b.md", b"b\n")
    before = db.everything()
    refused = cli("rm", "notes")
    assert refused.code == 2
    assert "notes is a folder with 2 memories\ndelete all of it with recursive (-r)" in refused.errors
    assert "a folder with 1 memory\n" in cli("rm", "notes/deep/").errors
    assert db.everything() == before
    ended = cli.ok("rm", "-r", "notes")
    assert ended.out == "deleted notes/db.md\ndeleted notes/deep/b.md\n"
    assert not db.everything()
    cli.ok("undo")
    assert db.everything() == before


def test_several_are_deleted_as_one_change_or_none_is(cli: Cli, db: Files) -> None:
    for name in "abc":
        db.write(f"{name}.md", b"x\n")
    before = db.everything()
    assert cli("rm", "a.md", "none.md", "b.md").code == 1
    assert cli("rm", "a.md", "notes").code == 2
    assert cli("rm", "a.md", "b.md", "--base", "0" * 64).code == 2
    assert db.everything() == before
    # A memory that is named twice is deleted once.
    assert cli.ok("rm", "-r", "a.md", "notes", "./memories/b.md", "notes/db.md").out.count("deleted") == 3
    assert db.everything().keys() == {"c.md"}
    cli.ok("undo")
    assert db.everything() == before
    cli.ok("rm", "a.md")
    cli.ok("rm", "b.md")
    assert "a.md" in cli.ok("history", "a.md", "b.md").out
    assert cli("restore", "a.md", "none.md").code == 1
    assert cli.ok("restore", "a.md", "b.md").out.count("created") == 2
    assert db.everything() == before
    assert cli("restore", "a.md", "b.md", "--hash", "0" * 8).code == 2
    assert cli("restore").code == cli("rm").code == 2


# ------------------------------------------------------------------------------------------- many at once


@pytest.fixture
def eleven(files: Files) -> Files:
    for number in range(11):
        files.write(f"notes/{number:02}.md", b"MySQL\n")
    files.write("links.md", b"[[notes/03]]\n")
    return files


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rm", "-r", "notes"], "changed 11 memories (-v names each)\n"),
        (["mv", "notes", "old"], "changed 12 memories, 1 link rewritten (-v names each)\n"),
        (
            ["replace", "--in", "notes", "--all", "MySQL", "SQLite", "--yes"],
            "changed 11 memories (-v names each)\n",
        ),
    ],
)
def test_many_are_told_in_numbers_and_named_with_v(
    cli: Cli, eleven: Files, arguments: list[str], told: str
) -> None:
    before = eleven.everything()
    ended = cli.ok(*arguments)
    assert ended.out.endswith(told)
    assert not re.search(r"^(?:created|deleted|changed) notes/", ended.out, re.MULTILINE)
    assert cli.ok("undo").out.endswith("memories (-v names each)\n")
    assert eleven.everything() == before
    named = cli.ok(*arguments, "-v").out
    assert all(re.search(rf"^\w+ notes/{number:02}\.md", named, re.MULTILINE) for number in range(11))
    assert cli.ok("undo", "--verbose").out.count("notes/") == 11
    assert len(cli.ok(*arguments, *(["--json"])).json["files"]) >= 11


def test_ten_are_named(cli: Cli, eleven: Files) -> None:
    (eleven.root / "notes/10.md").unlink()
    assert cli.ok("rm", "-r", "notes").out.count("deleted notes/") == 10


def test_beyond_ten_a_terminal_is_asked(cli: Cli, eleven: Files) -> None:
    before = eleven.everything()
    code, seen = cli.on_terminal("rm", "-r", "notes", question="delete 11 memories?", answer="n\n")
    assert (code, eleven.everything()) == (1, before)
    assert "nothing was changed" in seen
    code, _ = cli.on_terminal("rm", "-r", "notes", question="delete 11 memories?", answer="y\n")
    assert (code, list(eleven.everything())) == (0, ["links.md"])
    cli.ok("undo")
    code, seen = cli.on_terminal("rm", "-r", "notes", "--yes")
    assert (code, "?" in seen) == (0, False)
    cli.ok("undo")
    code, seen = cli.on_terminal("rm", "notes/01.md", "notes/02.md")
    assert (code, "?" in seen) == (0, False)


def test_nothing_to_change_is_no_error(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\na: 1\n---\n")
    assert cli.ok("set", "a.md", "a=1").out.startswith("nothing to change")


# ----------------------------------------------------------------------------------------- where text is from


@pytest.mark.parametrize("arguments", [["append", "a.md"], ["append", "a.md", "-"], ["write", "a.md"]])
def test_a_text_can_come_from_standard_input(cli: Cli, files: Files, arguments: list[str]) -> None:
    cli.ok(*arguments, stdin="größer\r\n".encode())
    assert files.read("a.md") == "größer\r\n".encode()


def test_the_real_program_reads_standard_input(cli: Cli, files: Files) -> None:
    assert cli.program("write", "a.md", stdin=b"\xef\xbb\xbfone\r\ntwo").code == 0
    assert files.read("a.md") == b"\xef\xbb\xbfone\r\ntwo"


def test_standard_input_that_is_not_utf8_is_refused(cli: Cli, files: Files) -> None:
    ended = cli("append", "a.md", stdin=b"abc\xff")
    assert ended.code == 2
    assert "mdmem: standard input is not UTF-8 (byte 3)" in ended.errors
    assert not files.everything()


@pytest.mark.parametrize("given", [b"", b"\n", b" \r\n"])
@cases(
    "arguments",
    [
        ["write", "a.md", "--overwrite"],
        ["write", "new.md"],
        ["section", "a.md", "A"],
        ["working", "find-and-replace", "state", "--thread", "t"],
        ["section", "a.md", "A", "-"],
        ["append", "a.md"],
        ["prepend", "a.md"],
        ["insert", "a.md", "0"],
        ["notes", "append", "n"],
        ["project", "append", "Decisions"],
        ["working", "set", "--thread", "t"],
    ],
)
def test_an_empty_standard_input_is_no_text(
    cli: Cli, files: Files, arguments: list[str], given: bytes
) -> None:
    files.write("a.md", b"# A\n\ntext\n")
    files.write("working/threads/t.md", b"a state\n")
    before = files.everything()
    ended = cli(*arguments, stdin=given)
    assert (ended.code, ended.out, files.everything()) == (2, "", before)
    assert "standard input is empty, and there is no other text: give " in ended.errors


def test_a_text_that_is_given_as_an_argument_may_be_empty(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# A\n\ntext\n")
    cli.ok("section", "a.md", "A", "")
    assert files.read("a.md") == b"# A\n"


# ------------------------------------------------------------------------------------------------ refusals


@cases(
    "arguments, code, error",
    [
        (["write", "notes/db.md", "x"], 2, "already-exists"),
        (["write", "notes/db.md", "x", "--base", "00000000"], 2, "conflict"),
        (["write", "notes/none.md", "x", "--base", "00000000"], 1, "memory-not-found"),
        (["append", "notes/db.md", "x", "--base", "00000000"], 2, "conflict"),
        (["append", "notes/db.md", "x", "--base", "00"], 2, "usage"),
        (["write", "db", "x"], 1, "memory-not-found"),
        (["append", "../db.md", "x"], 2, "path-refused"),
        (["append", ".mdmem/x.md", "x"], 2, "path-refused"),
        (["prepend", "notes/none.md", "x"], 1, "memory-not-found"),
        (["insert", "notes/db.md", "99", "x"], 2, "edit-refused"),
        (["insert", "notes/db.md", "x", "x"], 2, "usage"),
        (["delete-lines", "notes/db.md", "9", "99"], 2, "edit-refused"),
        (["set", "notes/db.md", "tags={a: 5}"], 2, "invalid"),
        (["set", "notes/db.md", "=5"], 2, "usage"),
        (["set", "notes/db.md", "a={", "--json-value"], 2, "usage"),
        (["unset", "notes/db.md", "nothing"], 1, "field-not-found"),
        (["section", "notes/db.md", "Nothing", "x"], 1, "section-not-found"),
        (["mv", "notes/db.md", "notes/db.txt"], 2, "path-refused"),
        (["mv", "notes/none.md", "notes/x.md"], 1, "memory-not-found"),
        (["rm", "notes/none.md"], 1, "memory-not-found"),
        (["rm", "none"], 1, "memory-not-found"),
        (["rm", ""], 2, "usage"),
        (["replace", "notes/db.md", "file", "x", "--count", "2"], 2, "text-ambiguous"),
        (["replace", "notes/db.md", "nothing", "x"], 1, "text-not-found"),
        (["replace", "notes/db.md", "(", "x", "--regex"], 2, "pattern-invalid"),
        (["replace", "notes/db.md", "x"], 2, "usage"),
        (["replace", "--in", "notes", "a", "b", "c"], 2, "usage"),
        (["replace", "notes/db.md", "a", "b", "--count", "1", "--all"], 2, "usage"),
        (["replace", "--in", "notes", "--all", "a", "b", "--count", "1"], 2, "usage"),
        (["replace", "--in", "notes", "l", "b"], 2, "text-ambiguous"),
        (["replace", "--in", "notes", "file", "b", "--count", "2"], 2, "text-ambiguous"),
        (["replace", "--in", "nowhere", "l", "b", "--all"], 1, "memory-not-found"),
        (["replace", "--in", "notes", "a", "b", "--base", "00000000"], 2, "usage"),
        (["replace", "--in", "notes", "nothing", "b"], 1, "text-not-found"),
    ],
)
def test_what_is_refused_changes_nothing(
    cli: Cli, db: Files, arguments: list[str], code: int, error: str
) -> None:
    ended = cli(*arguments, "--json")
    assert (ended.code, ended.json["error"]["code"]) == (code, error)
    assert ended.errors
    assert db.everything() == {"notes/db.md": DB}


def test_a_base_that_was_seen_is_taken_and_a_stale_one_shows_the_difference(cli: Cli, db: Files) -> None:
    seen = cli.ok("show", "notes/db.md", "--only-hash").out.strip()
    cli.ok("append", "notes/db.md", "first", "--base", seen[:8])
    ended = cli("append", "notes/db.md", "second", "--base", seen)
    assert ended.code == 2
    assert "changed since it was read" in ended.errors
    assert "+first" in ended.errors
    assert db.read("notes/db.md") == DB + b"first\n"


# ------------------------------------------------------------------------------------------------- dry runs


@pytest.mark.parametrize(
    "arguments",
    [
        ["write", "notes/new.md", "x"],
        ["write", "notes/db.md", "x", "--overwrite"],
        ["append", "notes/db.md", "x"],
        ["prepend", "notes/db.md", "x"],
        ["insert", "notes/db.md", "4", "x"],
        ["delete-lines", "notes/db.md", "5"],
        ["set", "notes/db.md", "a=1"],
        ["unset", "notes/db.md", "title"],
        ["section", "notes/db.md", "Why", "x"],
        ["mv", "notes/db.md", "notes/x.md"],
        ["rm", "notes/db.md"],
        ["replace", "notes/db.md", "One", "x"],
        ["replace", "--in", "notes", "One", "x"],
        ["replace", "--glob", "*.md", "One", "x"],
    ],
)
def test_a_dry_run_prints_the_diff_and_writes_nothing(cli: Cli, db: Files, arguments: list[str]) -> None:
    ended = cli.ok(*arguments, "--dry-run")
    assert db.everything() == {"notes/db.md": DB}
    local = db.root / ".mdmem/local"
    if arguments[0] in {"mv", "rm"}:  # which ask the index
        assert not [*local.glob("trash/*"), *local.glob("staging/*")]
    else:
        assert not local.exists()
    assert "notes/" in ended.out
    shape = cli.ok(*arguments, "--dry-run", "--json").json
    assert shape["diff"] == ended.out
    assert (shape["applied"], shape["id"], len(shape["files"])) == (False, "", 2 if "mv" in arguments else 1)
    # The same command without it makes that change, and says the same of it.
    done = cli.ok(*arguments, "--json").json
    assert {**done, "applied": False, "id": ""} == shape
    assert done["applied"]
    assert done["id"]
    assert db.everything() != {"notes/db.md": DB}


@pytest.mark.usefixtures("db")
def test_a_dry_run_of_what_would_be_refused_is_refused(cli: Cli) -> None:
    ended = cli("set", "notes/db.md", "tags={a: 5}", "--dry-run")
    assert ended.code == 2
    assert ended.out == ""
    assert "tags" in ended.errors


# --------------------------------------------------------------------------------- replacing in many memories


@pytest.fixture
def many(files: Files) -> Files:
    files.write("notes/a.md", b"MySQL, MySQL\n")
    files.write("notes/deep/b.md", b"MySQL\r\n")
    files.write("other/c.md", b"MySQL\n")
    return files


def test_replacing_across_memories_shows_the_diff_and_changes_all(cli: Cli, many: Files) -> None:
    ended = cli.ok("replace", "--in", "notes", "--all", "MySQL", "SQLite")
    assert "-MySQL, MySQL\n+SQLite, SQLite\n" in ended.out
    assert "changed notes/a.md  " in ended.out
    assert many.everything() == {
        "notes/a.md": b"SQLite, SQLite\n",
        "notes/deep/b.md": b"SQLite\r\n",
        "other/c.md": b"MySQL\n",
    }
    cli.ok("undo")
    assert many.read("notes/a.md") == b"MySQL, MySQL\n"


@pytest.mark.parametrize("shown", [[], ["--dry-run"], ["--json"]])
def test_what_a_replacement_left_out_is_said_once(cli: Cli, many: Files, shown: list[str]) -> None:
    many.write("notes/bad.md", b"MySQL \xff\n")
    ended = cli.ok("replace", "--in", "notes", "--all", "MySQL", "SQLite", *shown)
    assert (ended.out + ended.errors).count("notes/bad.md") == 1


def test_replacing_across_memories_is_all_or_nothing(cli: Cli, many: Files) -> None:
    many.write("notes/z.md", b"---\ntags: [MySQL]\n---\n")
    before = many.everything()
    ended = cli("replace", "--in", "notes", "--all", "[MySQL]|MySQL", "}", "--regex")
    assert ended.code == 2
    assert many.everything() == before


def test_replacing_across_memories_wants_a_word_for_more_than_one(cli: Cli, many: Files) -> None:
    before = many.everything()
    for options in ([], ["--dry-run"], ["--yes"], ["--count", "2"]):
        ended = cli("replace", "--in", "notes", "MySQL", "SQLite", *options)
        assert (ended.code, ended.out) == (2, "")
        assert "'MySQL' occurs 3 times, in 2 memories: notes/a.md (2), notes/deep/b.md (1)" in ended.errors
        assert "--all" in ended.errors
    assert many.everything() == before
    assert cli.ok("replace", "--in", "notes", "MySQL", "SQLite", "--count", "3").errors == (
        "replace 3 occurrences in 2 memories\n"
    )
    assert many.read("notes/deep/b.md") == b"SQLite\r\n"


def test_globs_choose_where_to_replace(cli: Cli, many: Files) -> None:
    cli.ok("replace", "--glob", "a.md", "--glob", "c.md", "--all", "MySQL", "SQLite", "--json")
    assert many.read("notes/deep/b.md") == b"MySQL\r\n"
    assert many.read("notes/a.md") == b"SQLite, SQLite\n"
    assert many.read("other/c.md") == b"SQLite\n"


def test_what_cannot_be_looked_into_is_told(cli: Cli, many: Files) -> None:
    many.write("notes/broken.md", b"MySQL \xff\n")
    ended = cli.ok("replace", "--in", "notes", "--all", "MySQL", "SQLite")
    assert "left out: notes/broken.md:1: not UTF-8" in ended.errors
    assert many.read("notes/broken.md") == b"MySQL \xff\n"


@pytest.mark.parametrize(
    ("answer", "code", "after"),
    [("y\n", 0, b"SQLite, SQLite\n"), ("n\n", 1, b"MySQL, MySQL\n"), ("\n", 1, b"MySQL, MySQL\n")],
)
def test_on_a_terminal_replacing_across_memories_asks(
    cli: Cli, many: Files, answer: str, code: int, after: bytes
) -> None:
    question = "change 2 memories? [y/N]: "
    ended, seen = cli.on_terminal(
        "replace", "--in", "notes", "--all", "MySQL", "SQLite", question=question, answer=answer
    )
    assert ended == code
    assert "replace 3 occurrences in 2 memories" in seen.partition("MySQL, MySQL")[0]
    assert question in seen
    assert ("nothing was changed" in seen) == bool(code)
    assert many.read("notes/a.md") == after


def test_on_a_terminal_yes_answers_beforehand(cli: Cli, many: Files) -> None:
    code, seen = cli.on_terminal("replace", "--in", "notes", "--all", "MySQL", "SQLite", "--yes")
    assert code == 0
    assert "change 2 memories?" not in seen
    assert many.read("notes/a.md") == b"SQLite, SQLite\n"


def test_leaving_at_the_question_changes_nothing(cli: Cli, many: Files) -> None:
    end_of_file = "\x04"
    code, _ = cli.on_terminal(
        *("replace", "--in", "notes", "--all", "MySQL", "SQLite"), question="[y/N]: ", answer=end_of_file
    )
    assert code == 130
    assert many.read("notes/a.md") == b"MySQL, MySQL\n"


# -------------------------------------------------------------------------------------------------- the wall


@pytest.mark.parametrize("verb", ["append", "write"])
def test_a_link_is_never_written_through(cli: Cli, files: Files, verb: str) -> None:
    files.write("real.md", b"text\n")
    os.symlink("real.md", files.root / "link.md")
    ended = cli(verb, "link.md", "x")
    assert ended.code == 2
    assert files.read("real.md") == b"text\n"


@pytest.fixture
def changed(cli: Cli, files: Files) -> Files:
    """A memory that was written by alice, and changed by bob."""
    cli.ok("--actor", "alice", "write", "a.md", "one\n")
    cli.ok("--actor", "bob", "replace", "a.md", "one", "two")
    return files


@pytest.fixture
def changed_twice(cli: Cli, files: Files) -> Files:
    """A memory that was written and changed by one actor."""
    cli.ok("write", "a.md", "one\n")
    cli.ok("replace", "a.md", "one", "two")
    return files


@pytest.mark.usefixtures("changed")
def test_the_history_names_changes_newest_first(cli: Cli) -> None:
    lines = cli.ok("history").out.splitlines()
    assert [line.split("  ")[2:] for line in lines[::2]] == [
        ["bob", "replace in a.md"],
        ["alice", "write a.md"],
    ]
    assert lines[3].startswith("    a.md  absent → ")
    newest, oldest = cli.ok("history", "--json").objects
    assert newest["files"][0]["before"] == oldest["files"][0]["after"]
    assert newest["files"][0]["after"] == cli.ok("show", "a.md", "--only-hash", "--json").json["hash"]


@pytest.mark.usefixtures("changed")
def test_the_history_of_one_memory(cli: Cli) -> None:
    cli.ok("write", "b.md", "other")
    assert len(cli.ok("history", "a.md", "--json").objects) == 2
    assert len(cli.ok("history", "b.md", "--json").objects) == 1
    assert cli("history", "c.md", "--json") == (1, b"", "no changes of c.md\n")


@pytest.mark.usefixtures("changed")
def test_the_history_says_what_it_left_out(cli: Cli) -> None:
    ended = cli.ok("history", "--limit", "1")
    assert "bob" in ended.out
    assert "alice" not in ended.out
    assert ended.errors == "1 older change left out: raise --limit\n"
    ended = cli.ok("history", "--limit", "1", "--json")
    assert len(ended.objects) == 1
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
    oldest = cli.ok("history", "--json").objects[-1]["files"][0]["after"]
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


@pytest.mark.usefixtures("changed")
def test_undo_takes_the_last_change_of_the_actor_and_else_says_whose_it_is(cli: Cli) -> None:
    bobs, _ = [entry["id"] for entry in cli.ok("history", "--json").objects]
    ended = cli("undo")
    assert ended.code == 1
    assert f"the last one is by bob ({bobs}): replace in a.md; `mdmem undo {bobs}` takes it" in ended.errors
    blocked = cli("--actor", "alice", "undo")
    assert blocked.code == 2
    assert f"a.md: changed since by bob ({bobs}), and the change made it" in blocked.errors
    assert "-one\n+two" in blocked.errors
    assert f"undo {bobs}" in cli.ok("--actor", "bob", "undo").errors
    cli.ok("--actor", "bob", "write", "b.md", "b")
    undone = cli.ok("--actor", "alice", "undo").errors
    assert re.match(r"note: undo \S+: write a\.md, made 20\S+Z\nnote: 1 newer change by bob stays; ", undone)


def test_undo_goes_further_back_and_redo_comes_again(cli: Cli, changed_twice: Files) -> None:
    changed = changed_twice
    changes = [entry["id"] for entry in cli.ok("history", "--json").objects]
    assert "-two\n+one\n" in cli.ok("undo", "--dry-run").out
    assert cli.ok("undo").errors.startswith(f"note: undo {changes[0]}: ")
    assert changed.read("a.md") == b"one\n"
    assert cli.ok("undo").errors.startswith(f"note: undo {changes[1]}: ")
    assert cli.ok("redo").errors.startswith(f"note: redo {changes[1]}: ")
    assert "-one\n+two\n" in cli.ok("redo", "--dry-run").out
    cli.ok("redo")
    assert changed.read("a.md") == b"two\n"
    ended = cli("redo")
    assert (ended.code, ended.out) == (1, "")
    assert ended.errors.startswith("mdmem: no undo to put back")


def test_undo_of_several_names_each_and_says_when_there_are_no_more(cli: Cli, changed_twice: Files) -> None:
    changed = changed_twice
    count = len(cli.ok("history", "--json").objects)
    shown = cli.ok("undo", "-n", "2", "--dry-run")
    assert shown.errors.count("note: undo ") == 2
    ended = cli.ok("undo", "--limit", "99")
    assert ended.errors.count("note: undo ") == count
    assert ended.errors.endswith(f"note: {count} of 99: there are no more\n")
    assert not changed.everything()
    assert "`mdmem redo`" in cli("undo").errors
    cli.ok("redo", "-n", "99")
    assert changed.read("a.md") == b"two\n"


def test_undo_takes_back_an_older_change_and_keeps_later_ones(cli: Cli, changed: Files) -> None:
    cli.ok("write", "b.md", "# B\n\nold\n\n# C\n\nc\n")
    cli.ok("replace", "b.md", "old", "new")
    change = cli.ok("history", "b.md", "--json").objects[0]["id"]
    cli.ok("section", "b.md", "C", "changed")
    cli.ok("undo", change)
    assert changed.read("b.md") == b"# B\n\nold\n\n# C\n\nchanged\n"


def test_undo_without_a_change_to_undo(cli: Cli) -> None:
    for arguments in (["undo"], ["undo", "nope"]):
        ended = cli(*arguments)
        assert (ended.code, ended.out) == (1, "")
        assert ended.errors.startswith("mdmem: no change")


def test_undo_of_a_change_that_there_is_not_names_the_last_ones(cli: Cli, changed: Files) -> None:
    ids = [entry["id"] for entry in cli.ok("history", "--json").objects]
    ended = cli("undo", "nope")
    assert ended.code == 1
    assert ended.errors == f"mdmem: no change 'nope'\nthere is: {', '.join(ids[:3])}\n"
    assert changed.read("a.md") == b"two\n"


def test_every_user_undoes_only_their_own(cli: Cli, files: Files) -> None:
    cli.ok("--user", "alice", "write", "a.md", "alice")
    cli.ok("--user", "bob", "write", "a.md", "bob")
    cli.ok("--user", "alice", "undo")
    assert list(files.everything()) == ["users/bob/a.md"]
