"""The commands that read: exactly what is there, in the order in which it stands, and what is left out.

The command of ranked search: what it prints, what it says was left out, and that no words break it.

The command of what an agent is given of its memory.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files


# ----------------------------------------------------------------------------------------------------- show


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no end of line",
        b"\xef\xbb\xbfwith a mark\r\n",
        b"mixed\r\nline\rends\n\n\n",
        b"---\r\na: 1   # comment\r\n---\r\n\r\n# T\r\n",
        "größer \u2028 数据库 🙂\x0b\n".encode(),
    ],
)
def test_show_prints_exactly_the_bytes(cli: Cli, files: Files, data: bytes) -> None:
    files.write("a.md", data)
    shown = cli.ok("show", "a.md")
    assert shown.data == data
    path, digest = shown.errors.split()
    assert path == "a.md"
    assert cli.ok("show", "a.md", "--hash").out == f"{digest}\n"


def test_the_real_program_prints_exactly_the_bytes(cli: Cli, files: Files) -> None:
    files.write("a.md", b"\xef\xbb\xbfone\r\n\xe2\x82\xactwo")
    assert cli.program("show", "a.md").data == b"\xef\xbb\xbfone\r\n\xe2\x82\xactwo"


def test_show_can_number_lines_and_take_one_section(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# A\r\n\r\n## B\r\none\r\n## C\r\n")
    assert (
        cli.ok("show", "a.md", "-n").out == "     1\t# A\n     2\t\n     3\t## B\n     4\tone\n     5\t## C\n"
    )
    assert cli.ok("show", "a.md", "--section", "A > B").data == b"## B\r\none\r\n"
    assert cli.ok("show", "a.md", "--section", "B", "--number").out == "     3\t## B\n     4\tone\n"
    assert cli("show", "a.md", "--section", "D").code == 1


def test_show_as_json_has_the_fields(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\ntitle: T\ncreated: 2024-01-31\n---\nbody\r\n")
    shown = cli.ok("show", "a.md", "--json").json
    assert shown["fields"] == {"title": "T", "created": "2024-01-31"}
    assert shown["text"] == "---\ntitle: T\ncreated: 2024-01-31\n---\nbody\r\n"
    assert shown["hash"] == cli.ok("show", "a.md", "--hash").out.strip()


@pytest.mark.parametrize(
    ("data", "code"), [(b"a\xff", "not-utf8"), (b"a\0", "binary"), (b"x" * 5_000_000, "too-large")]
)
def test_show_refuses_what_is_no_memory(cli: Cli, files: Files, data: bytes, code: str) -> None:
    files.write("a.md", data)
    ended = cli("show", "a.md", "--json")
    assert (ended.code, ended.json["error"]["code"]) == (2, code)


# ------------------------------------------------------------------------------------------------------- ls


@pytest.fixture
def several(files: Files) -> Files:
    for path in (
        "b.json",
        "a.md",
        "notes/2026-01.md",
        "notes/deep/x.md",
        "notes-2/y.md",
        "no.txt",
        ".hidden.md",
    ):
        files.write(path, b"{}" if path.endswith(".json") else b"text\n")
    return files


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ([], ["a.md", "b.json", "notes/2026-01.md", "notes/deep/x.md", "notes-2/y.md"]),
        (["notes"], ["notes/2026-01.md", "notes/deep/x.md"]),
        (["notes/"], ["notes/2026-01.md", "notes/deep/x.md"]),
        (["--glob", "*.json"], ["b.json"]),
        (["notes", "--glob", "2026-*"], ["notes/2026-01.md"]),
        (["--glob", "*.md", "--glob", "!x.md"], ["a.md", "notes/2026-01.md", "notes-2/y.md"]),
        (["--glob", "nothing"], []),
    ],
)
def test_ls_lists_memories_in_order(cli: Cli, several: Files, arguments: list[str], paths: list[str]) -> None:
    assert cli.ok("ls", *arguments).out.splitlines() == paths
    listed = cli.ok("ls", *arguments, "--json").json
    assert [entry["path"] for entry in listed] == paths
    assert all(entry["size"] == len(several.read(entry["path"])) for entry in listed)


@pytest.mark.usefixtures("several")
def test_ls_of_a_folder_that_is_not_there_is_not_found(cli: Cli) -> None:
    assert cli("ls", "nowhere").code == 1
    assert cli("ls", "..").code == 2


# README: `ls --where 'type=decision' …
def test_ls_lists_what_meets_conditions_in_the_order_of_a_field(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\ntype: decision\ncreated: 2026-01-02\n---\n")
    files.write("notes/b.md", b"---\ntype: decision\ncreated: 2026-03-04\n---\n#db\n")
    files.write("notes/c.md", b"---\ntype: note\ncreated: 2025-03-04\n---\n")
    both = ["--where", "type=decision", "--where", "created>=2026-01-01"]
    assert cli.ok("ls", *both, "--sort", "-created").out == "notes/b.md\na.md\n"
    assert cli.ok("ls", "--sort", "created").out == "notes/c.md\na.md\nnotes/b.md\n"
    assert cli.ok("ls", "notes", *both).out == "notes/b.md\n"
    assert [entry["path"] for entry in cli.ok("ls", "--where", "tag=db", "--json").json] == ["notes/b.md"]
    assert cli.ok("ls", "--where", "type=nothing").out == ""
    refused = cli("ls", "--where", "type decision")
    assert (refused.code, refused.out) == (2, "")
    assert "FIELD=VALUE" in refused.errors


def test_an_empty_vault_lists_nothing(cli: Cli) -> None:
    assert cli.ok("ls") == (0, b"", "")


# ----------------------------------------------------------------------------------------------------- grep


def test_grep_prints_hits_below_their_memory_heading_and_date(cli: Cli, files: Files) -> None:
    files.write("notes/a.md", b"---\ncreated: 2024-01-31\n---\n# A\n\none file\ntwo\n\n## B\n\nFILE three\n")
    ended = cli.ok("grep", "file", "--context", "1")
    assert ended.out == (
        "notes/a.md  2024-01-31  # A\n"
        "5-\n6:one file\n7-two\n"
        "\nnotes/a.md  2024-01-31  # A > B\n"
        "10-\n11:FILE three\n"
    )
    assert ended.errors == ""


def test_grep_says_how_much_it_left_out(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n" * 5)
    ended = cli.ok("grep", "x", "--limit", "2")
    assert ended.out.count(":x") == 2
    assert ended.errors.startswith("3 more left out")


def test_grep_as_json_prints_an_object_a_line(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# T\n\nx y x\nx\n")
    hits = [json.loads(line) for line in cli.ok("grep", "x", "--json").out.splitlines()]
    assert [(hit["path"], hit["line"], hit["heading"]) for hit in hits] == [
        ("a.md", 3, ["T"]),
        ("a.md", 4, ["T"]),
    ]
    none = cli("grep", "nothing", "--json")
    assert (none.code, none.out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["one"], 2),
        (["ONE", "--case", "exact"], 0),
        (["One", "--case", "smart"], 1),
        (["o.e"], 0),
        (["o.e", "--regex"], 2),
        (["one", "--in", "notes"], 1),
        (["one", "--glob", "*.md"], 2),
        (["one", "--glob", "!notes/**"], 1),
        (["--", "-one"], 1),
    ],
)
def test_grep_looks_where_and_for_what_it_is_told(
    cli: Cli, files: Files, arguments: list[str], lines: int
) -> None:
    files.write("a.md", b"-one\n")
    files.write("notes/b.md", b"One\n")
    ended = cli("grep", *arguments, "--json") if "--" not in arguments else cli("grep", "--json", *arguments)
    assert ended.code == (0 if lines else 1)
    assert len(ended.out.splitlines()) == lines


def test_grep_refuses_a_bad_pattern(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    ended = cli("grep", "(", "--regex")
    assert ended.code == 2
    assert ended.errors.startswith("mdmem: bad pattern '('")


# ---------------------------------------------------------------------------------------------------- check


def test_check_of_sound_memories_says_nothing(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# fine\n")
    assert cli.ok("check") == (0, b"", "")
    assert cli.ok("check", "--json").json == []
    assert cli.ok("check", "a.md", "--format", "github").out == ""


def test_check_tells_place_code_and_what_to_do(cli: Cli, files: Files) -> None:
    files.write("notes/bad.md", b"---\ntitle: T\ntags: 5\n---\n")
    ended = cli("check")
    assert ended.code == 1
    first, *rest = ended.out.splitlines()
    assert first.startswith("notes/bad.md:3:7: ")
    assert all(line.startswith("    ") for line in rest)
    (finding,) = cli("check", "--json").json
    assert (finding["path"], finding["line"], finding["column"]) == ("notes/bad.md", 3, 7)
    assert finding["severity"] == "error"
    assert cli("check", "--format", "json").json == [finding]


def test_check_looks_at_what_it_is_given(cli: Cli, files: Files) -> None:
    files.write("notes/bad.md", b"---\ntags: 5\n---\n")
    files.write("other/good.md", b"x\n")
    assert cli("check", "other").code == 0
    assert cli("check", "other/good.md").code == 0
    assert cli("check", "other", "notes/bad.md").code == 1
    assert cli("check", "nowhere").code == 1
    assert "no such memory" in cli("check", "nowhere.md").errors


def test_annotations_escape_what_would_end_them(cli: Cli, files: Files) -> None:
    files.write(".mdmem/schemas/s.json", b'{"properties": {"state": {"enum": ["a%0Ab"]}}}')
    files.write("notes/100%, a.md", b"---\n$schema: s\nstate: 5%25\n---\n")
    ended = cli("check", "--format", "github")
    assert ended.code == 1
    assert ended.out.startswith("::error file=notes/100%25%2C a.md,line=3,col=8,title=")
    message = ended.out.partition("::")[2].partition("::")[2]
    assert "5%2525" in message
    assert "a%250Ab" in message
    assert ended.out.count("\n") == 1


def test_a_warning_is_no_failure(cli: Cli, files: Files) -> None:
    files.write("aux.md", b"x\n")
    (files.root / "link.md").symlink_to("aux.md")
    ended = cli("check")
    assert ended.code == 0
    assert "(warning)" in ended.out
    assert cli("check", "--format", "github").out.startswith("::warning file=link.md")


# --------------------------------------------------------------------------------------------------- doctor


def test_doctor_tells_facts_and_that_all_is_well(cli: Cli, files: Files) -> None:
    files.write("a.md", b"x\n")
    ended = cli.ok("doctor")
    assert f"vault: {files.root}\n" in ended.out
    assert "memories: 1\n" in ended.out
    assert ended.out.endswith("clean\n")
    report = cli.ok("doctor", "--json").json
    assert report["facts"]["memories"] == 1
    assert report["findings"] == []


def test_doctor_lists_a_broken_config_as_a_finding(cli: Cli, files: Files) -> None:
    files.write(".mdmem/config.toml", b"[limits\n")
    ended = cli("doctor")
    assert (ended.code, ended.errors) == (1, "")
    assert ".mdmem/config.toml:1:1: config-invalid" in ended.out
    assert ended.out.endswith("1 finding\n")
    report = cli("doctor", "--json")
    assert report.code == 1
    assert [finding["code"] for finding in report.json["findings"]] == ["config-invalid"]
    assert cli("ls").code == 2


def test_doctor_mends_links_to_what_other_programs_moved(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# A\n")
    files.write("b.md", b"[a](a.md)\n")
    cli.ok("index")
    (files.root / "deep").mkdir()
    (files.root / "a.md").rename(files.root / "deep/a.md")
    found = cli.ok("doctor").out
    assert "b.md:1:1: dangling-link" in found
    assert "it has moved to deep/a.md: mdmem doctor --fix" in found
    assert cli.ok("doctor", "--fix").out.endswith("clean\n")
    assert files.read("b.md") == b"[a](deep/a.md)\n"
    assert cli.ok("doctor", "--fix", "--json").json["findings"] == []


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
    ended = cli.ok("search", "sqlite", "file", "--limit", "1", "-C", "1")
    assert ended.out == (
        "notes/db.md:11  [Database > Why]  2026-01-05\n"
        "10-Other engines need a server.\n"
        "11:SQLite keeps everything in one file.\n"
        "12-It is fast enough.\n"
    )
    assert ended.errors == "1 more fit: raise --limit, or narrow with --in, --type or --tag\n"


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("arguments", "paths"),
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
    assert {hit["path"] for hit in ended.json["hits"]} == paths
    assert ended.code == (0 if paths else 1)


@pytest.mark.usefixtures("vault")
def test_passages_are_ranked_each_for_itself(cli: Cli) -> None:
    words = ["every", "night", "everything"]
    assert [hit["path"] for hit in cli.ok("search", *words, "--json").json["hits"]] == ["notes/db.md"]
    hits = cli.ok("search", *words, "--json", "--passages").json["hits"]
    assert {tuple(hit["heading"]) for hit in hits} == {("Database", "Why"), ("Database", "Backups")}


@pytest.mark.usefixtures("vault")
def test_a_score_is_explained_on_request(cli: Cli) -> None:
    plain = cli.ok("search", "sqlite", "--json").json["hits"][0]
    assert "parts" not in plain
    explained = cli.ok("search", "sqlite", "--json", "--explain").json["hits"][0]
    assert explained["parts"]
    assert sum(part["value"] for part in explained["parts"]) == pytest.approx(explained["score"], rel=0.01)
    assert re.search(r"^ +\d+\.\d{3}  \w+", cli.ok("search", "sqlite", "--explain").out, re.MULTILINE)


@pytest.mark.usefixtures("vault")
# README: `--budget 1500` prints whole passages …
def test_a_budget_leaves_out_whole_passages_and_says_how_much(cli: Cli) -> None:
    whole = cli.ok("search", "file")
    assert whole.errors == ""
    cut = cli.ok("search", "file", "--budget", "30")
    assert cut.out
    assert cut.out in whole.out
    assert len(cut.out) < len(whole.out)
    assert re.fullmatch(r"1 more fit, about \d+ tokens of it beyond the budget: raise --budget\n", cut.errors)
    assert cli.ok("search", "file", "--budget", "30", "--json").json["left_out_tokens"] > 0


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
@pytest.mark.parametrize(
    "words", ['"', "(", "a AND OR", "tag:", "\udcff", "*", "x" * 20_000, "^~\\", "date:[1 TO"]
)
def test_no_words_are_a_syntax_error(cli: Cli, words: str) -> None:
    ended = cli("search", words)
    assert ended.code in {0, 1}
    assert "Traceback" not in ended.errors


def test_a_search_is_current_whoever_writes(cli: Cli, vault: Files) -> None:
    assert cli("search", "walrus").code == 1
    vault.write("new.md", b"A walrus.\n")
    assert cli.ok("search", "walrus").out.startswith("new.md:1  ")
    vault.write("new.md", b"A seal.\n")
    assert cli("search", "walrus").code == 1


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
