"""The commands that read: exactly what is there, in the order in which it stands, and what is left out.

The command of ranked search: what it prints, what it says was left out, and that no words break it.

The command of what an agent is given of its memory.
"""

from __future__ import annotations

import os
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
    assert cli.ok("show", "a.md", "--only-hash").out.startswith(digest)
    assert len(digest) == 8


def test_the_real_program_prints_exactly_the_bytes(cli: Cli, files: Files) -> None:
    files.write("a.md", b"\xef\xbb\xbfone\r\n\xe2\x82\xactwo")
    assert cli.program("show", "a.md").data == b"\xef\xbb\xbfone\r\n\xe2\x82\xactwo"


def test_show_can_number_lines_and_take_one_section(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# A\r\n\r\n## B\r\none\r\n## C\r\n")
    assert (
        cli.ok("show", "a.md", "--number").out
        == "     1\t# A\n     2\t\n     3\t## B\n     4\tone\n     5\t## C\n"
    )
    assert cli.ok("show", "a.md", "--section", "A > B").data == b"## B\r\none\r\n"
    assert cli.ok("show", "a.md", "--section", "B", "--number").out == "     3\t## B\n     4\tone\n"
    assert cli("show", "a.md", "--section", "D").code == 1


def test_show_as_json_has_the_fields(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\ntitle: T\ncreated: 2024-01-31\n---\nbody\r\n")
    shown = cli.ok("show", "a.md", "--json").json
    assert shown["fields"] == {"title": "T", "created": "2024-01-31"}
    assert shown["text"] == "---\ntitle: T\ncreated: 2024-01-31\n---\nbody\r\n"
    assert f"{shown['hash']}\n" == cli.ok("show", "a.md", "--only-hash").out
    assert cli.ok("show", "a.md", "--only-hash", "--json").json == {"path": "a.md", "hash": shown["hash"]}


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
    ],
)
def test_ls_lists_memories_in_order(cli: Cli, several: Files, arguments: list[str], paths: list[str]) -> None:
    assert cli.ok("ls", *arguments).out.splitlines() == paths
    listed = cli.ok("ls", *arguments, "--json").objects
    assert [entry["path"] for entry in listed] == paths
    assert all(entry["size"] == len(several.read(entry["path"])) for entry in listed)


def test_ls_lists_what_changed_last_first_with_its_time(cli: Cli, files: Files) -> None:
    for number, name in enumerate(("b.md", "notes/a.md", "c.md")):
        files.write(name, b"---\ntype: Note\n---\n" if name != "c.md" else b"x\n")
        os.utime(files.root / name, ns=(0, 1_700_000_000_000_000_000 + number))
    paths = [line.rpartition("  ")[2] for line in cli.ok("ls", "-t").out.splitlines()]
    assert paths == ["c.md", "notes/a.md", "b.md"]
    assert re.fullmatch(r"2023-11-1\d \d\d:\d\d  c\.md", cli.ok("ls", "-t").out.splitlines()[0])
    assert cli.ok("ls", "--type", "note", "-t", "--json").objects[0]["path"] == "notes/a.md"
    assert cli.ok("ls", "--type", "note", "--type", "x", "notes").out == "notes/a.md\n"
    assert cli("ls", "-t", "--where", "modified<2020").code == 1


@pytest.mark.usefixtures("several")
def test_ls_of_what_no_memory_fits_is_no_match(cli: Cli) -> None:
    for arguments in (["--glob", "nothing"], ["--where", "size>100000"], ["--glob", "nothing", "--json"]):
        assert cli("ls", *arguments) == (1, b"", "no memories\n")


@pytest.mark.usefixtures("several")
def test_ls_of_a_folder_that_is_not_there_is_not_found(cli: Cli) -> None:
    assert cli("ls", "nowhere").code == 1
    assert cli("ls", "..").code == 2


def test_a_field_that_no_memory_has_is_said_with_the_nearest_names(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\ncreated: 2026-01-01\n---\nSQLite\n")
    said = "note: no memory has a field 'creatd'; nearest names: created\n"
    nothing = cli("ls", "--where", "creatd>=2026")
    assert (nothing.code, nothing.out, nothing.errors) == (1, "", f"{said}no memories\n")
    sorted_by = cli.ok("ls", "--sort", "-creatd")
    assert (sorted_by.out, sorted_by.errors) == ("a.md\n", said)
    assert cli("ls", "--where", "creatd", "--json").errors == f"{said}no memories\n"
    for arguments in (["grep", "sqlite"], ["search", "sqlite"]):
        ended = cli(*arguments, "--where", "creatd")
        assert (ended.code, ended.out) == (1, "")
        assert said in ended.errors
    for known in ("modified", "size", "path", "title", "date", "tag", "state", "confidence"):
        assert "no memory has" not in cli("ls", "--sort", known, "--where", f"!{known}").errors


def test_ls_lists_what_meets_conditions_in_the_order_of_a_field(cli: Cli, files: Files) -> None:
    files.write("a.md", b"---\ntype: decision\ncreated: 2026-01-02\n---\n")
    files.write("notes/b.md", b"---\ntype: decision\ncreated: 2026-03-04\n---\n#db\n")
    files.write("notes/c.md", b"---\ntype: note\ncreated: 2025-03-04\n---\n")
    both = ["--where", "type=decision", "--where", "created>=2026-01-01"]
    assert cli.ok("ls", *both, "--sort", "-created").out == "notes/b.md\na.md\n"
    assert cli.ok("ls", "--sort", "created").out == "notes/c.md\na.md\nnotes/b.md\n"
    assert cli.ok("ls", "notes", *both).out == "notes/b.md\n"
    assert [entry["path"] for entry in cli.ok("ls", "--where", "tag=db", "--json").objects] == ["notes/b.md"]
    nothing = cli("ls", "--where", "type=nothing")
    assert (nothing.code, nothing.out, nothing.errors) == (1, "", "no memories\n")
    refused = cli("ls", "--where", "type decision")
    assert (refused.code, refused.out) == (2, "")
    assert "FIELD=VALUE" in refused.errors


def test_an_empty_vault_lists_nothing(cli: Cli) -> None:
    assert cli.ok("ls") == (0, b"", "no memories\n")


@pytest.fixture
def various(files: Files) -> Files:
    files.write("AGENTS.md", b"# Demo\n")
    files.write("notes/a b.md", b"---\ntype: decision\ncreated: 2024-01-31\ntitle: Use it\n---\n")
    files.write("notes/deep/er/c.md", b"x" * 1234)
    files.write("notes/deep/2025-02-03.md", b"\xff")
    return files


@pytest.mark.usefixtures("various")
def test_a_long_listing_has_columns(cli: Cli) -> None:
    found = cli.ok("ls", "-l").out
    assert re.sub(r"20(?!24)\d\d-\d\d-\d\d(?!\.md)", "DAY", found) == (
        "   7  DAY  -         AGENTS.md  Demo\n"
        "  57  2024-01-31  decision  notes/a b.md  Use it\n"
        "   1  -           -         notes/deep/2025-02-03.md\n"
        "1234  DAY  -         notes/deep/er/c.md\n"
    )
    (line,) = cli.ok("ls", "-l", "--where", "type=decision").out.splitlines()
    assert line == "57  2024-01-31  decision  notes/a b.md  Use it"


@pytest.mark.usefixtures("various")
def test_a_listing_is_a_tree(cli: Cli) -> None:
    assert cli("ls", "--tree", env={"LC_ALL": "C.UTF-8"}).out == (
        ".\n├── AGENTS.md\n└── notes/\n    ├── a b.md\n    └── deep/\n"
        "        ├── 2025-02-03.md\n        └── er/\n            └── c.md\n"
    )
    assert cli("ls", "--tree", "notes/deep/", env={"LC_ALL": "C"}).out == (
        "notes/deep\n├── 2025-02-03.md\n└── er/\n    └── c.md\n"
    )


def test_a_tree_of_nothing_is_its_root(cli: Cli) -> None:
    assert cli.ok("ls", "--tree").out == ".\n"
    assert cli.ok("ls", "-l").out == ""


def test_a_tree_is_as_deep_as_a_path_may_be(cli: Cli, files: Files) -> None:
    files.write("/".join(["d"] * 500) + "/a.md", b"x\n")
    assert cli.ok("ls", "--tree").out.endswith("└── a.md\n")


# ---------------------------------------------------------------------------------------------------- check


def test_check_of_sound_memories_says_nothing(cli: Cli, files: Files) -> None:
    files.write("a.md", b"# fine\n")
    assert cli.ok("check") == (0, b"", "")
    assert cli.ok("check", "--json").objects == []
    assert cli.ok("check", "a.md", "--format", "github").out == ""


def test_check_says_what_is_passed_over(cli: Cli, files: Files) -> None:
    for name in ("a.md", "pages/b.mdx", "pages/c.mdx", "pages/d.markdown", "picture.png"):
        files.write(name, b"# A\n")
    note = "note: 3 files passed over: 2 .mdx, 1 .markdown; a memory ends in .md or .json: rename what is to"
    ended = cli.ok("check")
    assert ended.out == ""
    assert ended.errors.startswith(note)
    assert cli.ok("check", "--json").objects == []
    assert cli.ok("check", "a.md").errors == ""


def test_check_tells_place_code_and_what_to_do(cli: Cli, files: Files) -> None:
    files.write("notes/bad.md", b"---\ntitle: T\ntags: {a: 5}\n---\n")
    ended = cli("check")
    assert ended.code == 1
    (line,) = ended.out.splitlines()
    assert line.startswith("notes/bad.md:3:7: ")
    assert ended.errors.endswith("1 error in 1 file; `mdmem help schema-type` explains what to do\n")
    (finding,) = cli("check", "--json").objects
    assert (finding["path"], finding["line"], finding["column"]) == ("notes/bad.md", 3, 7)
    assert finding["severity"] == "error"
    assert cli("check", "--format", "json").objects == [finding]


def test_check_looks_at_what_it_is_given(cli: Cli, files: Files) -> None:
    files.write("notes/bad.md", b"---\ntags: {a: 5}\n---\n")
    files.write("other/good.md", b"x\n")
    assert cli("check", "other").code == 0
    assert cli("check", "other/good.md").code == 0
    assert cli("check", "other", "notes/bad.md").code == 1
    assert "1 file skipped, as no memory here: nowhere" in cli.ok("check", "nowhere").errors
    typo = cli("check", "othr/")
    assert (typo.code, "othr/: no such folder" in typo.errors) == (1, True)


def test_a_link_without_its_suffix_is_told_of_the_json_memory_of_that_name(cli: Cli, files: Files) -> None:
    files.write("notes/data.json", b"{}\n")
    files.write("notes/a.md", b"See [[data]].\n")
    assert "notes/data.json has this name" in cli.ok("check").errors


def test_annotations_escape_what_would_end_them(cli: Cli, files: Files) -> None:
    files.write(".mdmem/schemas/s.json", b'{"properties": {"state": {"enum": ["a%0Ab"]}}}')
    files.write("notes/100%, a.md", b"---\n$schema: s\nstate: 5%25\n---\n")
    ended = cli("check", "--format", "github")
    assert ended.code == 1
    assert ended.out.startswith(f"::error file={files.root.name}/notes/100%25%2C a.md,line=3,col=8,title=")
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
    assert cli("check", "--format", "github").out.startswith(f"::warning file={files.root.name}/link.md")


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
    files.write(".mdmem/config.toml", b"# Ours.\n[limits\n")
    ended = cli("doctor")
    assert ended.code == 1
    assert ".mdmem/config.toml:2:8: config-invalid" in ended.out
    assert ended.errors.endswith("1 error in 1 file; `mdmem help config-invalid` explains what to do\n")
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
    found = cli.ok("doctor")
    assert "b.md:1:5: dangling-link" in found.out
    assert "it has moved to deep/a.md: `mdmem doctor --fix`" in found.errors
    assert cli.ok("doctor", "--fix").out.endswith("clean\n")
    assert files.read("b.md") == b"[a](deep/a.md)\n"
    assert cli.ok("doctor", "--fix", "--json").json["findings"] == []


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


def test_a_budget_is_not_named_where_it_is_not_the_reason(cli: Cli, files: Files) -> None:
    (files.root / "zeros.md").write_bytes(b"\0")
    assert cli.ok("context", "file").errors.endswith(" tokens, 1 left out\n")


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


@pytest.mark.parametrize("seconds", [15_032_385_535, 1 << 40, -(1 << 40)])
def test_a_file_of_no_time_at_all_is_found_and_listed(cli: Cli, files: Files, seconds: int) -> None:
    files.write("a.md", b"# One\n")
    os.utime(files.root / "a.md", ns=(seconds * 10**9,) * 2)
    for arguments in (["grep", "one"], ["search", "one"], ["ls"], ["ls", "--long"], ["check"], ["doctor"]):
        assert cli.ok(*arguments).out or arguments == ["check"]
    assert cli.ok("ls", "--json").json["path"] == "a.md"
