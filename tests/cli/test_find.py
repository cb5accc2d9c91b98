"""The commands that read: exactly what is there, in the order in which it stands, and what is left out."""

from __future__ import annotations

import json
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
