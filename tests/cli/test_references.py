"""The commands of references: what they print, how they end, and what they change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tables import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Files

CODE = "import os\n\n\ndef total(prices):\n    # what everything costs in sum\n    return sum(prices)\n"
DB = b"# Database\n\nSee [[new#Why|the new one]], [[nowhere]] and `src/app.py#L4-L6`. #db #Storage\n"
NEW = b"---\nsuperseded_by: '[[db]]'\n---\n# New\n\n## Why\n\nhttps://example.org/x #db\n"


@pytest.fixture
def linked(files: Files, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Two memories that point at each other and at code, all of it committed."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    Path("src").mkdir()
    Path("src/app.py").write_bytes(CODE.encode())
    files.write("notes/db.md", DB)
    files.write("notes/new.md", NEW)
    user = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*user, "commit", "-qm", "m"]):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    return files


def moved() -> None:
    """The cited code moves two lines down."""
    Path("src/app.py").write_bytes(f"import sys\n\n{CODE}".encode())


# ----------------------------------------------------------------------------------------------------- refs


@pytest.mark.usefixtures("linked")
def test_refs_prints_a_line_for_each_place(cli: Cli) -> None:
    assert cli.ok("refs").out.splitlines() == [
        "notes/new.md:2  ok  note notes/db.md",
        "notes/db.md:3  dangling  note nowhere  there is no memory 'nowhere'",
        *("notes/db.md:3  ok  heading notes/new.md#Why", "notes/db.md:3  ok  tag #Storage"),
        *("notes/db.md:3  ok  tag #db", "notes/new.md:8  ok  tag #db"),
        "notes/new.md:8  ok  url https://example.org/x",
        "notes/db.md:3  unchanged  line_range src/app.py#L4-L6",
    ]


@pytest.mark.usefixtures("linked")
@cases(
    "arguments, code, lines",
    [
        (["db"], 0, 3),
        (["nobody"], 1, 0),
        (["--kind", "note", "--kind", "url"], 0, 3),
        (["--kind", "class"], 1, 0),
        (["--state", "dangling"], 0, 1),
        (["--in", "notes/new.md"], 0, 3),
        (["--in", "notes/new.md", "--in", "notes/"], 0, 8),
        (["src/app.py", "--in", "notes/new.md"], 1, 0),
        (["--stale"], 0, 0),
        (["src/app.py", "--stale"], 0, 0),
        (["--kind", "nota"], 2, 0),
        (["--state", "bad"], 2, 0),
        (["--in", "nowhere"], 1, 0),
        (["--stats", "db"], 2, 0),
        (["--accept"], 2, 0),
        (["--dry-run"], 2, 0),
        (["--pin", "--fix"], 2, 0),
        (["--pin", "--stale"], 2, 0),
        (["--fix", "src/app.py"], 2, 0),
        (["--fix", "--kind", "note"], 2, 0),
        (["--fix", "--accept"], 2, 0),
    ],
)
def test_refs_ends_as_what_was_asked_deserves(cli: Cli, arguments: list[str], code: int, lines: int) -> None:
    ended = cli("refs", *arguments)
    assert (ended.code, len(ended.out.splitlines())) == (code, lines), ended.errors
    if code == 2:
        assert ended.errors


@pytest.mark.usefixtures("linked")
def test_stale_code_is_a_finding_that_says_where_it_is_now(cli: Cli) -> None:
    moved()
    ended = cli("refs", "--stale")
    assert (ended.code, ended.out) == (
        1,
        "notes/db.md:3  moved  line_range src/app.py#L4-L6  moved to src/app.py#L6-L8\n",
    )
    assert cli("refs", "app.py", "--stale").code == 1
    assert cli("refs", "--stale", "--in", "notes/new.md") == (0, b"", "no stale citations\n")
    assert cli("refs", "--state", "moved").code == 0


@pytest.mark.usefixtures("linked")
def test_refs_as_json_are_objects_with_their_places(cli: Cli) -> None:
    (found,) = cli.ok("refs", "nowhere", "--json").objects
    assert (found["type"], found["target"], found["state"], found["count"]) == (
        "note",
        "nowhere",
        "dangling",
        1,
    )
    assert found["places"] == [
        {
            "path": "notes/db.md",
            "line": 3,
            "state": "dangling",
            "detail": "there is no memory 'nowhere'",
        }
    ]
    none = cli("refs", "nobody", "--json")
    assert (none.code, none.objects) == (1, [])


@pytest.mark.usefixtures("linked")
def test_numbers_are_printed_instead_of_places(cli: Cli) -> None:
    assert cli.ok("refs", "--stats").out == (
        "7 references in 8 places\n"
        "by type: heading 1, line_range 1, note 2, tag 2, url 1\n"
        "by state: dangling 1, ok 5, unchanged 1\n"
        "    2  #db\n    1  #Storage\n    1  https://example.org/x\n    1  notes/db.md\n"
        "    1  notes/new.md#Why\n    1  nowhere\n    1  src/app.py#L4-L6\n"
    )
    assert cli.ok("refs", "--stats", "--kind", "tag", "--json").json["total"] == 2


def test_refs_fix_shows_and_makes_the_change_and_undo_takes_it_back(cli: Cli, linked: Files) -> None:
    moved()
    before = linked.everything()
    shown = cli.ok("refs", "--fix", "--dry-run")
    assert "-See [[new#Why|the new one]], [[nowhere]] and `src/app.py#L4-L6`. #db #Storage\n" in shown.out
    assert linked.everything() == before
    assert cli.ok("refs", "--fix", "--in", "notes/new.md").out.startswith("nothing to change")
    assert cli.ok("refs", "--fix").out.startswith("changed notes/db.md  ")
    assert linked.read("notes/db.md") == DB.replace(b"#L4-L6", b"#L6-L8")
    assert cli.ok("refs", "--fix", "--json").json["files"] == []
    cli.ok("undo")
    assert linked.everything() == before


def test_refs_pin_and_accept(cli: Cli, linked: Files) -> None:
    assert cli.ok("refs", "--pin", "--dry-run").out.count("<!-- pin ") == 1
    assert linked.read("notes/db.md") == DB
    cli.ok("refs", "--pin")
    pinned = linked.read("notes/db.md")
    assert pinned.count(b"`<!-- pin ") == 1
    Path("src/app.py").write_bytes(CODE.replace("everything", "all of it").encode())
    assert "  changed  " in cli("refs", "--stale").out
    assert cli.ok("refs", "--pin").out.startswith("nothing to change")
    assert cli.ok("refs", "--pin", "--accept", "--json").json["files"][0]["path"] == "notes/db.md"
    assert linked.read("notes/db.md") != pinned
    assert cli("refs", "--stale") == (0, b"", "no stale citations\n")


# ------------------------------------------------------------------------------------------- backlinks, tags


@pytest.mark.usefixtures("linked")
def test_backlinks_say_where_and_how_a_memory_is_linked_to(cli: Cli, files: Files) -> None:
    assert cli.ok("backlinks", "notes/new.md").out == "notes/db.md:3  #Why  the new one\n"
    assert cli.ok("backlinks", "notes/db.md").out == "notes/new.md:2\n"
    assert cli.ok("backlinks", "notes/new.md", "--json").objects == [
        {
            "path": "notes/db.md",
            "line": 3,
            "kind": "wikilink",
            "anchor": "Why",
            "alias": "the new one",
            "ambiguous": False,
        }
    ]
    files.write("other/new.md", b"# Another\n")
    files.write("to.md", b"[[new]]\n")
    ambiguous = "to.md:1  (ambiguous: it may mean another memory)"
    assert ambiguous in cli.ok("backlinks", "other/new.md").out


@pytest.mark.usefixtures("linked")
def test_backlinks_of_what_nobody_links_to_and_of_nothing(cli: Cli, files: Files) -> None:
    files.write("alone.md", b"x\n")
    assert cli("backlinks", "alone.md") == (1, b"", "no links to alone.md\n")
    assert cli("backlinks", "alone.md", "--json").objects == []
    missing = cli("backlinks", "nowhere.md")
    assert (missing.code, missing.out) == (1, "")
    assert "no such memory" in missing.errors
    assert cli("backlinks", "../x.md").code == 2


@pytest.mark.usefixtures("linked")
def test_tags_are_counted(cli: Cli) -> None:
    assert cli.ok("tags").out == "    2  #db\n    1  #Storage\n"
    assert cli.ok("tags", "--json").objects == [
        {"name": "db", "memories": 2},
        {"name": "Storage", "memories": 1},
    ]


def test_an_empty_vault_has_no_references(cli: Cli) -> None:
    for command, what in (("refs", "references"), ("tags", "tags")):
        assert cli.ok(command) == (0, b"", f"no {what}\n")
    assert cli.ok("refs", "--stats").out.startswith("0 references in 0 places\n")
    assert cli.ok("graph", "--json").objects == []


# ---------------------------------------------------------------------------------------------------- graph


@pytest.mark.usefixtures("linked")
def test_a_graph_has_every_form(cli: Cli) -> None:
    assert cli.ok("graph", "--format", "mermaid", "--in", "notes").out == (
        "flowchart LR\n"
        '  n0["notes/db.md"]\n  n1["src/app.py"]\n  n2["notes/new.md"]\n  n3["nowhere"]\n'
        '  n4["#35;Storage"]\n  n5["#35;db"]\n'
        '  n0 -->|"cites"| n1\n  n0 -->|"links to"| n2\n  n0 -->|"links to"| n3\n'
        '  n0 -->|"tagged"| n4\n  n0 -->|"tagged"| n5\n'
        '  n2 -->|"superseded_by"| n0\n  n2 -->|"tagged"| n5\n'
    )
    assert '  n2 -> n0 [label="superseded_by"];\n' in cli.ok("graph").out
    triples = cli.ok("graph", "--json").objects
    assert triples == cli.ok("graph", "--format", "json").objects
    assert {"subject": "notes/new.md", "predicate": "superseded_by", "object": "notes/db.md"} in triples
    assert len(triples) == 7
    assert cli("graph", "--in", "nowhere").code == 1
