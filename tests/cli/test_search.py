"""The commands that find lines: where they look, what they print, and what they say was left out.

The oracle of what grep prints into a pipe is ripgrep itself.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.cli.main import main
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


# ----------------------------------------------------------------------------------------------------- grep


A = b"---\ncreated: 2024-01-31\n---\n# A\n\none file\ntwo\n\n## B\n\nFILE three\nfour\nfile five\n"
BELOW = """\
notes/a.md  2024-01-31
# A
5-
6:one file
7-two
--
# A > B
10-
11:FILE three
12-four
13:file five

notes/b.md
1:file
"""
LINES = """\
notes/a.md-5-
notes/a.md:6:one file
notes/a.md-7-two
--
notes/a.md-10-
notes/a.md:11:FILE three
notes/a.md-12-four
notes/a.md:13:file five
--
notes/b.md:1:file
"""


@pytest.fixture
def ab(files: Files) -> Files:
    files.write("notes/a.md", A)
    files.write("notes/b.md", b"file\n")
    return files


def test_grep_looks_into_a_file_that_is_too_large_only_where_it_is_named(ab: Files, cli: Cli) -> None:
    ab.write("notes/large.md", b"file\n")
    os.truncate(ab.root / "notes/large.md", 64 * 2**20 + 1)  # sparse
    assert "large" not in cli.ok("grep", "file", "-l").out
    assert cli.ok("grep", "file", "-l", "notes/large.md").out == "notes/large.md\n"
    assert "notes/large.md:1:1: too-large" in cli("check").out


@pytest.mark.usefixtures("ab")
def test_grep_prints_a_line_each_into_a_pipe_and_hits_below_their_memory_on_a_terminal(cli: Cli) -> None:
    assert cli.ok("grep", "file", "-C1") == (0, LINES.encode(), "")
    assert cli.ok("grep", "file", "-C1", "--heading") == (0, BELOW.encode(), "")
    code, seen = cli.on_terminal("grep", "file", "-C1")
    assert (code, re.sub(r"\x1b\[\d+m", "", seen)) == (0, BELOW)
    assert "6\x1b[0m:one \x1b[31mfile\x1b[0m\n" in seen
    code, seen = cli.on_terminal("grep", "file", "-C1", "--no-heading")
    assert re.sub(r"\x1b\[\d+m", "", seen) == LINES


@pytest.mark.usefixtures("ab")
def test_search_prints_hits_as_grep_does(cli: Cli) -> None:
    found = cli.ok("search", "three", "--context", "1")
    assert found.out == "notes/a.md-10-\nnotes/a.md:11:FILE three\nnotes/a.md-12-four\n"
    found = cli.ok("search", "three", "--context", "1", "--heading")
    assert found.out == "notes/a.md  2024-01-31\n# A > B\n10-\n11:FILE three\n12-four\n"


def test_grep_says_which_memories_do_not_count(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\nexpires: 2020-01-01\n---\ntea\n")
    files.write("b.md", b"---\nsuperseded_by: c.md\n---\ntea\ntea\n")
    files.write("c.md", b"tea\n")
    ended = cli.ok("grep", "tea")
    assert ended.out == "a.md:4:tea\nb.md:4:tea\nb.md:5:tea\nc.md:1:tea\n"
    assert ended.errors == "note: a.md does not count: expired\nnote: b.md does not count: superseded\n"
    assert "note: a.md does not count: expired\n" in cli.ok("search", "tea", "--any-state").errors
    ended = cli.ok("grep", "tea", "--heading")
    assert (ended.out.splitlines()[0], ended.errors) == ("a.md  expired", "")


def test_grep_says_how_much_it_left_out(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n" * 5)
    ended = cli.ok("grep", "x", "--limit", "2")
    assert ended.out == "a.md:1:x\na.md:2:x\n"
    assert ended.errors.startswith("3 more left out")
    files.write("b.md", b"x\n")
    files.write("c.md", b"x\n" * 3)
    for option, out in (("-l", "a.md\n"), ("-c", "a.md:5\n")):
        ended = cli.ok("grep", option, "x", "--limit", "1")
        assert ended.out == out
        assert ended.errors.startswith("2 more memories left out: raise --limit")
    assert cli.ok("grep", "-c", "x").out == "a.md:5\nb.md:1\nc.md:3\n"
    assert [json.loads(line) for line in cli.ok("grep", "-c", "x", "--json").out.splitlines()] == [
        {"path": "a.md", "lines": 5},
        {"path": "b.md", "lines": 1},
        {"path": "c.md", "lines": 3},
    ]


def test_grep_as_json_prints_an_object_a_line(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# T\n\nx y x\nx\n")
    hits = [json.loads(line) for line in cli.ok("grep", "x", "--json").out.splitlines()]
    assert [(hit["path"], hit["line"], hit["heading"]) for hit in hits] == [
        ("a.md", 3, ["T"]),
        ("a.md", 4, ["T"]),
    ]
    none = cli("grep", "nothing", "--json")
    assert (none.code, none.out) == (1, "")


@cases(
    "arguments, lines",
    [
        (["one"], 2),
        (["ONE", "--case", "exact"], 0),
        (["One", "--case", "smart"], 1),
        (["o.e"], 0),
        (["o.e", "--regex"], 2),
        (["one", "--in", "notes"], 1),
        (["one", "notes"], 1),
        (["one", "notes/", "a.md"], 2),
        (["one", "./memories/notes/b.md", "notes"], 1),
        (["one", "."], 2),
        (["one", "a.md", "-g", "b*"], 0),
        (["one", "a.md", "notes", "-g", "b*"], 1),
        (["one", "--glob", "*.md"], 2),
        (["one", "--glob", "!notes/**"], 1),
        (["one", "-s"], 1),
        (["one", "-s", "-i"], 2),
        (["One", "-S"], 1),
        (["ne"], 2),
        (["ne", "-w"], 0),
        (["-E", "o.e"], 2),
        (["-P", "-w", "o.e"], 2),
        (["-F", "o.e"], 0),
        (["-rnHi", "one"], 2),
        (["one", "-t", "decision"], 1),
        (["one", "-t", "Decision", "-t", "note"], 1),
        (["one", "-t", "note"], 0),
        (["one", "-t", "md"], 2),
        (["one", "-t", "json"], 0),
        (["one", "-t", "json", "-t", "md"], 2),
        (["one", "-t", "md", "-t", "decision", "a.md"], 0),
        (["--", "-one"], 1),
        (["-e", "-one"], 1),
        (["-e", "one", "notes"], 1),
    ],
)
def test_grep_looks_where_and_for_what_it_is_told(
    cli: Cli, files: Files, arguments: list[str], lines: int
) -> None:
    files.write("a.md", b"-one\n")
    files.write("notes/b.md", b"---\ntype: decision\n---\nOne\n")
    ended = cli("grep", *arguments, "--json") if "--" not in arguments else cli("grep", "--json", *arguments)
    assert ended.code == (0 if lines else 1)
    assert len(ended.out.splitlines()) == lines


def test_grep_refuses_a_bad_pattern(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    ended = cli("grep", "(", "--regex")
    assert ended.code == 2
    assert ended.errors.startswith("mdmem: bad pattern '('")


@cases(
    "arguments, hint",
    [
        (["-v", "x"], "grep -v"),
        (["-rv", "x"], "grep -v"),
        (["--invert-match", "x"], "grep -v"),
        (["-L", "x"], "mdmem ls"),
        (["-m", "3", "x"], "--limit"),
        (["--hidden", "x"], "hidden files"),
        (["--include=*.md", "x"], "-g GLOB"),
        (["--color=always", "x"], "NO_COLOR"),
        (["--nonsense", "x"], "No such option"),
        (["-F", "--regex", "x"], "exclude each other"),
        (["x", "notes", "--in", "notes"], "exclude each other"),
        ([], "PATTERN"),
        (["x", "none.md"], "no such folder or memory"),
        (["x", "none"], "no such folder or memory"),
        (["x", "/etc"], "not below"),
    ],
)
def test_what_grep_does_not_have_it_answers(cli: Cli, files: Files, arguments: list[str], hint: str) -> None:
    files.write("notes/a.md", b"x\n")
    ended = cli("grep", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert hint in ended.errors


def test_the_exit_code_says_what_was_found(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    assert cli("grep", "x").code == 0
    assert cli("grep", "-q", "x") == (0, b"", "")
    assert cli("grep", "y").code == cli("grep", "-q", "y").code == 1
    for option in ("-l", "-c", "-o"):
        assert cli("grep", option, "y") == (1, b"", "no matches\n")


def test_matches_alone_are_printed_one_a_line(cli: Cli, files: Files) -> None:
    files.write("a.md", "größe x größe\n".encode())
    assert cli.ok("grep", "-o", "größe").out == "a.md:1:größe\na.md:1:größe\n"
    assert cli.ok("grep", "-o", "--regex", "x?", "--heading").out == "a.md\n1:x\n"
    files.write("a.md", b"x " * 5_000)
    cut = cli.ok("grep", "-o", "x")
    assert 0 < cut.out.count(":x\n") < 5_000
    assert "only matches near the first one" in cut.errors


def test_the_time_of_a_file_is_not_the_day_of_a_memory(cli: Cli, files: Files) -> None:
    files.write("a.md", b"needle\n")
    for command in ("grep", "search"):
        assert cli.ok(command, "needle", "--heading").out.startswith("a.md\n")
        assert cli.ok(command, "needle", "--json").json["date"] == ""


def test_a_link_is_not_searched_when_it_is_named(cli: Cli, files: Files, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("needle\n")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/x.md").write_text("needle\n")
    files.write("a.md", b"needle\n")
    (files.root / "link.md").symlink_to(tmp_path / "secret.md")
    (files.root / "links").symlink_to(tmp_path / "secrets")
    for path in ("link.md", "links", "links/x.md"):
        assert (cli("grep", "needle", path).code, cli("grep", "needle", path).out) == (2, "")


def test_names_in_another_unicode_spelling_are_searched(cli: Cli, files: Files) -> None:
    files.write("notes/gro\u0308ße.md", b"---\ntype: note\n---\nneedle\n")
    for arguments in (["notes/gr\u00f6ße.md"], ["notes"], ["-t", "note"]):
        assert cli.ok("grep", "needle", *arguments).out.endswith(":4:needle\n")


@pytest.mark.parametrize("place", ["/", "/notes", "/notes/"])
def test_a_slash_before_a_place_is_the_root_of_the_namespace(cli: Cli, files: Files, place: str) -> None:
    files.write("notes/a.md", b"needle\n")
    for verb in ("search", "grep"):
        assert cli.ok(verb, "needle", "--in", place).out == "notes/a.md:1:needle\n"
    assert mdmem.open(files.root).search("needle", within=place).hits
    assert cli("search", "needle", "--in", "/nowhere").code == 2


def test_a_name_is_not_taken_for_another_one_in_another_unicode_spelling(cli: Cli, files: Files) -> None:
    for name in ("caf\u00e9.md", "cafe\u0301.md"):
        files.write(f"notes/{name}", b"needle\n")
    for verb in (["show"], ["rm"], ["grep", "needle"]):
        ended = cli(*verb, "notes/cafe\u0301.md")
        assert (ended.code, ended.out) == (2, "")
        assert r"notes/cafe\\u0301.md" in ended.errors
    assert cli.ok("show", "notes/caf\u00e9.md").out == "needle\n"


TEXTS = st.lists(st.sampled_from(["one", "One two", "x", "", "tone one", "# one", "öne one ö"]), max_size=9)
OPTIONS = st.lists(
    st.sampled_from(["-A1", "-B2", "-C1", "-w", "-s", "-S", "-o", "-c", "-l", "-g*.md", "-g!a.md", "-n"]),
    max_size=4,
    unique=True,
)
PATHS = st.lists(st.sampled_from(["notes", "a.md", "notes/b.md", "notes/deep", "z.json"]), max_size=3)


@settings(max_examples=examples(30))
@given(
    st.dictionaries(st.sampled_from(["a.md", "notes/b.md", "notes/deep/c.md", "z.json"]), TEXTS, min_size=1),
    OPTIONS,
    PATHS,
    st.sampled_from(["one", "one two", "ö", "n"]),
)
def test_what_is_piped_is_what_ripgrep_prints(
    texts: dict[str, list[str]], options: list[str], paths: list[str], pattern: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = mdmem.init(f"{folder}/memories").root
        for path, lines in texts.items():
            file = Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in lines))
        # What is named twice is searched once; a file that is named is still one that the globs let in.
        paths = [path for path in sorted(set(paths)) if Path(root, path).exists()]
        paths = [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]
        if any(option.startswith("-g") for option in options):
            paths = [path for path in paths if Path(root, path).is_dir()]
        shown = [option for option in options if option in {"-o", "-c", "-l"}]
        options = [option for option in options if option not in shown[1:]]
        if "-o" in options:  # with which ripgrep prints context, and grep none
            options = [option for option in options if option[:2] not in {"-A", "-B", "-C"}]
        by_case = ["-i"] if not {"-s", "-S"} & set(options) else []
        rg = Path(sys.executable).with_name("rg")
        command = [str(rg), "--no-config", "-nF", "--no-heading", "--sort=path", "-H", *by_case, *options]
        expected = subprocess.run(
            [*command, "--", pattern, *paths],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            ended = main(["--vault", root, "grep", *options, "--", pattern, *paths])
        # Where the globs let nothing in, ripgrep takes that for an error.
        code = 1 if "No files were searched" in expected.stderr else expected.returncode
        assert (printed.getvalue(), ended) == (expected.stdout, code)


# --------------------------------------------------------------------------------------------------- search


DB = b"""---
created: 2026-01-05
type: decision
tags: [storage]
---
# Database

## Why

Other engines need a server.
SQLite keeps everything in one file.
It is fast enough.

## Backups

Copied every night.
"""
OTHER = b"---\ncreated: 2025-03-04\ntype: note\n---\n# Lunch\n\nWe keep a file of menus.\n"


@pytest.fixture
def vault(files: Files) -> Files:
    files.write("notes/db.md", DB)
    files.write("other/lunch.md", OTHER)
    return files


@pytest.mark.usefixtures("vault")
def test_a_hit_has_its_place_heading_date_and_best_lines(cli: Cli) -> None:
    ended = cli.ok("search", "sqlite", "file", "--limit", "1", "-C", "1", "--heading")
    assert ended.out == (
        "notes/db.md  2026-01-05\n"
        "# Database > Why\n"
        "10-Other engines need a server.\n"
        "11:SQLite keeps everything in one file.\n"
        "12-It is fast enough.\n"
    )
    assert ended.errors == "1 more fit: raise --limit, or narrow with --in, --type or --tag\n"


@pytest.mark.usefixtures("vault")
@cases(
    "arguments, paths",
    [
        (["file"], {"notes/db.md", "other/lunch.md"}),
        (["file", "--in", "notes"], {"notes/db.md"}),
        (["file", "--type", "note"], {"other/lunch.md"}),
        (["file", "--type", "note", "--type", "decision"], {"notes/db.md", "other/lunch.md"}),
        (["file", "--tag", "storage"], {"notes/db.md"}),
        (["file", "--since", "2026"], {"notes/db.md"}),
        (["file", "--before", "2026-01"], {"other/lunch.md"}),
        (['"one file"'], {"notes/db.md"}),
        (["file -sqlite"], {"other/lunch.md"}),
        (["file", "--", "-sqlite"], {"other/lunch.md"}),
        (["file type:note"], {"other/lunch.md"}),
        (["nothing of that"], set()),
    ],
)
def test_a_search_looks_where_and_for_what_it_is_told(
    cli: Cli, arguments: list[str], paths: set[str]
) -> None:
    ended = cli("search", "--json", *arguments)
    assert {hit["path"] for hit in ended.objects} == paths
    assert ended.code == (0 if paths else 1)


@pytest.mark.usefixtures("vault")
def test_passages_are_ranked_each_for_itself(cli: Cli) -> None:
    words = ["every", "night", "everything"]
    assert [hit["path"] for hit in cli.ok("search", *words, "--json").objects] == ["notes/db.md"]
    hits = cli.ok("search", *words, "--json", "--passages").objects
    assert {tuple(hit["heading"]) for hit in hits} == {("Database", "Why"), ("Database", "Backups")}


@pytest.mark.usefixtures("vault")
def test_a_score_is_explained_on_request(cli: Cli) -> None:
    plain = cli.ok("search", "sqlite", "--json").objects[0]
    assert "parts" not in plain
    explained = cli.ok("search", "sqlite", "--json", "--explain").objects[0]
    assert explained["parts"]
    assert sum(part["value"] for part in explained["parts"]) == pytest.approx(explained["score"], rel=0.01)
    assert re.search(r"^ +\d+\.\d{3}  \w+", cli.ok("search", "sqlite", "--explain").out, re.MULTILINE)


@pytest.mark.usefixtures("vault")
def test_a_budget_leaves_out_whole_passages_and_says_how_much(cli: Cli) -> None:
    whole = cli.ok("search", "file")
    assert whole.errors == ""
    cut = cli.ok("search", "file", "--budget", "60")
    assert cut.out
    assert cut.out in whole.out
    assert len(cut.out) < len(whole.out)
    assert re.fullmatch(r"1 more fit, about \d+ tokens of it beyond the budget: raise --budget\n", cut.errors)
    told = cli.ok("search", "file", "--budget", "60", "--json")
    assert told.objects[-1]["left_out"] == 1
    assert told.errors == cut.errors


@pytest.mark.usefixtures("vault")
def test_what_is_not_used_of_a_query_is_said(cli: Cli) -> None:
    ended = cli("search", "the of")
    assert ended.code in {0, 1}
    ended = cli("search", "-")
    assert (ended.code, ended.out) == (1, "")
    assert ended.errors.startswith("note: ")


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    "arguments",
    [["--since", "soon", "file"], ["--limit", "0", "file"], ["--in", "..", "file"], []],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, arguments: list[str]) -> None:
    ended = cli("search", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.errors


@pytest.mark.usefixtures("vault")
@cases("words", ['"', "(", "a AND OR", "tag:", "\udcff", "*", "x" * 20_000, "^~\\", "date:[1 TO"], ids=ascii)
def test_no_words_are_a_syntax_error(cli: Cli, words: str) -> None:
    ended = cli("search", words)
    assert ended.code in {0, 1}
    assert "Traceback" not in ended.errors


def test_a_search_is_current_whoever_writes(cli: Cli, vault: Files) -> None:
    assert cli("search", "walrus").code == 1
    vault.write("new.md", b"A walrus.\n")
    assert cli.ok("search", "walrus").out.startswith("new.md:1:")
    vault.write("new.md", b"A seal.\n")
    assert cli("search", "walrus").code == 1


def test_a_search_that_finds_nothing_says_so_once(cli: Cli) -> None:
    assert cli("search", "quaga") == (1, b"", "note: nothing was found\n")
    only = "note: only users/ann/ was searched; --shared searches what everybody shares\n"
    assert cli("--user", "ann", "search", "quaga")[2] == f"note: nothing was found\n{only}"
    assert cli("--user", "ann", "--project", "x", "search", "quaga")[2] == "note: nothing was found\n"
    assert cli("search", "quaga", "--json") == (1, b"", "note: nothing was found\n")
