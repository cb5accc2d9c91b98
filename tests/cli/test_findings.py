"""Findings: in groups on a terminal, in lines in a pipe, and as JSON and annotations."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import jsonschema
import pytest
from hypothesis import given, strategies as st

import mdmem
from mdmem.cli.findings import count_findings, print_findings
from mdmem.diagnostic import Diagnostic, Position, Severity, Span
from tests.cli.screen import on_screen

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Files


def finding(**changes: Any) -> Diagnostic:
    fields: dict[str, Any] = {
        "path": "notes/a.md",
        "span": Span(0, 1),
        "position": Position(3, 7),
        "code": "bad-type",
        "message": "tags is not a list",
        "hint": "write [a]",
        **changes,
    }
    return Diagnostic(**fields)


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("text", "notes/a.md:3:7: bad-type tags is not a list\n"),
        ("github", "::error file=notes/a.md,line=3,col=7,title=bad-type::tags is not a list (write [a])\n"),
    ],
)
def test_a_finding(capsys: pytest.CaptureFixture[str], form: str, printed: str) -> None:
    assert print_findings([finding()], form) == 1
    assert capsys.readouterr().out == printed


def test_an_annotation_stays_in_one_line_and_one_property(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([finding(path="a,b:c%\n.md", message="one\r\ntwo: 50%", hint="")], "github")
    assert capsys.readouterr().out == (
        "::error file=a%2Cb%3Ac%25%0A.md,line=3,col=7,title=bad-type::one%0D%0Atwo: 50%25\n"
    )


# What a log of SARIF 2.1.0 needs so that code scanning takes it.
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "minItems": 1,
            "items": {
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["unicodeCodePoints", "utf16CodeUnits"]},
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {"rules": {"uniqueItems": True, "items": {"required": ["id"]}}},
                            }
                        },
                    },
                    "results": {"items": {"$ref": "#/$defs/result"}},
                },
            },
        },
    },
    "$defs": {
        "result": {
            "required": ["ruleId", "level", "message", "locations"],
            "additionalProperties": False,
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
                "locations": {
                    "minItems": 1,
                    "items": {
                        "required": ["physicalLocation"],
                        "properties": {"physicalLocation": {"$ref": "#/$defs/place"}},
                    },
                },
            },
        },
        "place": {
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {
                    "properties": {"uri": {"pattern": r"^(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+$"}},
                },
                "region": {
                    "required": ["startLine", "startColumn"],
                    "additionalProperties": {"type": "integer", "minimum": 1},
                },
            },
        },
    },
}


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1), st.sampled_from(["a", "b"]), st.integers(1, 10**6), st.text(min_size=1)
        )
    )
)
def test_sarif_has_what_code_scanning_reads(found: list[tuple[str, str, int, str]]) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        findings = [
            finding(path=path, code=code, position=Position(line, line), message=message, hint="")
            for path, code, line, message in found
        ]
        assert print_findings(findings, "sarif", lambda path: f"memories/{path}") == bool(found)
    log = json.loads(out.getvalue())
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    told = []
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        path = unquote(place["artifactLocation"]["uri"]).removeprefix("memories/")
        told.append((path, result["ruleId"], place["region"]["startLine"], result["message"]["text"]))
    assert told == found


def test_a_warning_of_sarif_has_its_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_findings([finding(severity="warning")], "sarif") == 0
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert (result["level"], result["message"]["text"]) == ("warning", "tags is not a list (write [a])")


def test_files_are_named_from_the_root_of_the_repository(cli: Cli, files: Files) -> None:
    files.write("notes/a:b.md", b"---\ntags: {a: 5}\n---\n")
    (log,) = cli("check", "--format", "sarif").objects
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "memories/notes/a%3Ab.md", "uriBaseId": "%SRCROOT%"}
    assert cli("check", "--format", "github").out.startswith("::error file=memories/notes/a%3Ab.md,")
    files.write("notes/good.md", b"x\n")
    (nothing,) = cli("check", "--format", "sarif", "notes/good.md").objects
    assert nothing["runs"][0]["results"] == []


def test_files_that_are_no_memories_are_passed_over(cli: Cli, files: Files) -> None:
    files.write("notes/bad.md", b"---\ntags: {a: 5}\n---\n")
    (files.root.parent / "notes").mkdir()
    outside = ["README.md", "notes/bad.md", "a.txt", "memories/.mdmem/config.toml", "memories/x.txt"]
    for name in outside:
        (files.root.parent / name).touch()
    ended = cli("check", *outside)
    assert (ended.code, ended.out) == (0, "")
    skipped = "5 files skipped, as no memory here: README.md, notes/bad.md, a.txt, memories/.mdmem"
    assert ended.errors == f"note: {skipped}/config.toml, memories/x.txt\n"
    ended = cli("check", "README.md", "memories/notes/bad.md")
    assert ended.code == 1
    assert ended.out.startswith("notes/bad.md:2:7: ")
    (files.root / "link.md").symlink_to("notes/bad.md")
    (files.root / "folder").symlink_to("notes")
    files.write("notes/gone.md", b"")
    (files.root / "notes/gone.md").unlink()
    names = ["nowhere.md", "memories/notes/gone.md", "link.md", "folder", "/etc", "..", "notes/bad.md/x.md"]
    ended = cli("check", *names, "memories/notes/bad.md")
    assert ended.out.startswith("notes/bad.md:2:7: ")
    assert ended.errors.startswith("note: 7 files skipped, as no memory here: nowhere.md, memories")
    assert "link.md, folder, /etc\n" in ended.errors
    assert cli.ok("check", "nowhere.md").errors.endswith(" nowhere.md\n")


def test_warnings_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_findings([finding(severity="warning", hint="")], "text") == 0
    assert capsys.readouterr().out == "notes/a.md:3:7: bad-type tags is not a list (warning)\n"
    assert print_findings([finding(severity="warning"), finding()], "json") == 1


def test_a_line_for_each_and_on_standard_error_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    found = [finding(), finding(path="notes/b.md"), finding(code="other", severity="warning", hint="")]
    assert print_findings(found) == 1
    out, errors = capsys.readouterr()
    assert out.splitlines() == [
        "notes/a.md:3:7: bad-type tags is not a list",
        "notes/b.md:3:7: bad-type tags is not a list",
        "notes/a.md:3:7: other tags is not a list (warning)",
    ]
    assert (
        errors
        == "bad-type: write [a]\n2 errors, 1 warning in 2 files; `mdmem help CODE` explains what to do\n"
    )


def test_a_name_with_a_line_end_is_no_finding_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([finding(path="a\nb.md", message="one\r\ntwo", hint="x\ny")])
    out, errors = capsys.readouterr()
    assert out == "a\\x0ab.md:3:7: bad-type one\\x0d\\x0atwo\n"
    assert errors.startswith("bad-type: x\\x0ay\n")


def test_names_with_line_ends_of_some_readers_are_one_line_in_every_list(cli: Cli, files: Files) -> None:
    """Targets, tags, ids and headings hold what the paths of memories do not."""
    text = "---\nid: i{0}d\ntags: [t{0}g]\n---\n# H{0}g\n\nword [y](<gone{0}.md>) [[w{0}k]] <https://e.org/{0}>\n"
    for number, end in enumerate("\x85\u2028\u2029"):
        files.write(f"notes/{number}.md", text.format(end).encode())
        (files.root / f"notes/n{end}.md").write_text("word\n")
    commands = "check|refs|refs --stats|refs gone|tags|ls|doctor|status|grep -c word|context"
    lists = [*map(str.split, commands.split("|")), ["check", "notes/n\u2028.md"]]
    for words in lists:
        printed = cli(*words)
        for line in (printed.out + printed.errors).split("\n"):
            assert "word [y]" in line or len(line.splitlines()) < 2, words
    assert r"# H\u2028g" in on_screen("--no-pager", "grep", "word").text


def test_nothing_is_said_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "json", "github"):
        assert print_findings([], form) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("warning", 0)])
def test_a_warning_counts_where_that_is_asked_for(severity: Severity, code: int) -> None:
    found = [finding(severity=severity)]
    assert print_findings(found, "json") == code
    assert print_findings(found, "json", strict=True) == 1
    assert print_findings([], "json", strict=True) == 0


def test_counts_are_in_words() -> None:
    assert count_findings([finding()]) == "1 error in 1 file"
    assert count_findings([finding(severity="warning")] * 2) == "2 warnings in 1 file"


def test_the_program_prints_lines(cli: Cli, files: Files) -> None:
    for number in range(12):
        files.write(f"n{number:02}.md", b"[[gone]]\n")
    printed = cli("check")
    assert (printed.code, printed.out.count("\n")) == (0, 12)
    assert printed.out.startswith("n00.md:1:3: dangling-link there is no memory 'gone' (warning)\n")
    assert printed.errors.count("make it, or remove the link") == 1
    assert cli("check", "--strict").code == 1
    assert cli("check", "--no-links", "--strict") == (0, b"", "")


def test_a_note_is_nothing_wrong(cli: Cli, files: Files) -> None:
    """Code that memories cite may change: a commit of it is not held up."""
    (files.root.parent / "app.py").write_text("total = compute(1, 2, 3)\nother = total\n")
    files.write("a.md", b"`app.py#L1` computes\n")
    cli.ok("index")
    (files.root.parent / "app.py").write_text("total = compute(4, 5, 6)\nother = total\n")
    cli.ok("index")
    checked = cli("check", "--strict")
    assert (checked.code, checked.out) == (
        0,
        "a.md:1:2: citation-changed app.py#L1: the lines are others (note)\n",
    )
    assert checked.errors.endswith("1 note in 1 file; `mdmem help citation-changed` explains what to do\n")
    assert cli.ok("check", "--format", "github").out.startswith("::notice file=memories/a.md,line=1,col=2")


@pytest.fixture
def many(files: Files) -> None:
    files.write("a.md", b"[[none]] " * 25 + b"\n")
    files.write("notes/z.md", b"[[none]]\n---\n---\n" + b"<<<<<<< a\n=======\n>>>>>>> b\n")
    files.write("notes/b.md", b"---\ntags: {a: 5}\n---\n[[none]]\n[[none]] [[none]]\n")


@pytest.mark.usefixtures("many")
def test_findings_stand_in_the_order_of_path_and_place(cli: Cli) -> None:
    found = [(each["path"], each["line"], each["column"]) for each in cli("check", "--json").objects]
    assert found == sorted(found)
    assert len(found) > 27
    lines = cli("check").out.splitlines()
    places = [(" (warning)" in each, *re.split(r"[: ]", each, maxsplit=3)[:3]) for each in lines]
    assert len(lines) == len(found)
    assert [(less, path, int(line), int(column)) for less, path, line, column in places] == sorted(
        (less, path, int(line), int(column)) for less, path, line, column in places
    )


@pytest.mark.usefixtures("many")
def test_a_terminal_gets_the_first_of_each_code_errors_before_warnings(cli: Cli) -> None:
    seen = on_screen("--no-pager", "check", rows=50).text.splitlines()
    assert seen[0].startswith("notes/b.md:2:7: ")
    assert [each for each in seen if "(warning)" in each] == cli("check").out.splitlines()[2:22]
    assert "and 9 more dangling-link: a pipe gets all, as in `mdmem check | less`" in seen
    assert seen[-1] == "2 errors, 29 warnings in 3 files; `mdmem help CODE` explains what to do"


def leave_out(root: Path, *kept: str) -> None:
    """Commit all files of a new repository, and leave all but those kept out of its work tree."""
    git = ("git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.c")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*git, "sparse-checkout", "set", "--no-cone", *kept, ".mdmem"], check=True)


def test_links_to_what_a_sparse_work_tree_leaves_out_are_sound(cli: Cli, files: Files) -> None:
    """Whoever asks: `check`, `refs`, `status`, an editor."""
    root = files.root.parent
    text = b"[x](big/x.md) [[X]] [[big/x#X|x]] ![](big/p.png) [](big/) ![[p.png]] [](/notes/big/x)\n"
    code = b"src/app.py#L1 [app](/src/app.py) [l](../../src/app.py#L1)\n[y](big/y.md) [[p.md]]\n"
    files.write("notes/a.md", text + code)
    for name in ("memories/notes/big/x.md", "memories/notes/big/p.png", "src/app.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("# X\n")
    leave_out(root, "memories/notes/a.md")
    assert not (root / "src/app.py").exists()
    wrong = [(3, "dangling-link"), (3, "dangling-link")]
    assert [(each["line"], each["code"]) for each in cli("check", "--json").objects] == wrong
    assert cli("check", "notes/a.md").out.count("\n") == 2
    listed = [cli("refs", "--state", state, "--json").objects for state in ("dangling", "gone")]
    assert [[each["target"] for each in some] for some in listed] == [["big/y.md", "p.md"], []]
    assert re.search(r"stale citations +0 .*\n *broken links +2 ", cli("status").out)
    memory = mdmem.open(files.root)
    assert [each.position.line for each in memory.editing().check("notes/a.md")] == [3, 3]


def test_what_another_scope_has_and_a_sparse_work_tree_leaves_out_stays_unseen(
    cli: Cli, files: Files
) -> None:
    files.write("users/ada/notes/a.md", b"[x](/users/bob/notes/x.md) [y](/users/bob/notes/y.md)\n[[y]]\n")
    files.write("users/bob/notes/x.md", b"x\n")
    leave_out(files.root.parent, "memories/users/ada/notes/a.md")
    assert not (files.root / "users/bob").exists()
    assert cli("--user", "ada", "check").out.count("dangling-link") == 3
    assert len(cli("--user", "ada", "refs", "--state", "dangling", "--json").objects) == 3
    assert cli("check").out.count("dangling-link") == 2


def test_a_terminal_gets_the_number_of_notes_and_each_on_demand(cli: Cli, files: Files) -> None:
    config = files.root / ".mdmem/config.toml"
    config.write_text(config.read_text("utf-8").replace("# guests = []", 'guests = ["**"]'), "utf-8")
    for number in range(30):
        files.write(f"notes/{number:02}.md", b"---\ntags: {a: 5}\n---\n[[gone]]\n")
    told = cli.ok("check").out.splitlines()
    assert len([each for each in told if each.endswith("(note)")]) == 30
    seen = on_screen("--no-pager", "check", rows=60).text.splitlines()
    assert not any("(note)" in each for each in seen)
    assert "schema-type: 30 notes: `mdmem check --notes` lists them" in seen
    assert seen[-1] == "30 warnings, 30 notes in 30 files; `mdmem help CODE` explains what to do"
    seen = on_screen("--no-pager", "check", "--notes", rows=200).text.splitlines()
    assert set(told[1:]) <= set(seen)  # a progress bar stood in the first line
