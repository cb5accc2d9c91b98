"""Tools: what an agent does all day, its answers, and its next move where one fails."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.document.text.tokens import estimate
from mdmem.serve.mcp.tools import TOOLS
from tests.serve.mcp.conftest import Tools
from tests.tables import cases

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory

NOTE = "---\ntype: decision\n---\n# Storage\n\nSQLite: one file.\n\n## Why\n\nIt needs no server.\n"


@pytest.fixture
def note(memory: Memory) -> str:
    memory.write("notes/db.md", NOTE)
    return memory.show("notes/db.md").hash[:12]


# -- reading ----------------------------------------------------------------------------------------------


def test_show_gives_the_text_alone_and_the_hash(tools: Tools, note: str) -> None:
    answer = tools("show", path="notes/db.md")
    assert answer.texts == (f"notes/db.md  hash {note}  lines 1-10 of 10", NOTE)
    assert answer.data == {
        "path": "notes/db.md",
        "hash": note,
        "line": 1,
        "lines": 10,
        "text": NOTE,
        "left_out": 0,
    }


def test_show_gives_one_section(tools: Tools, note: str) -> None:
    answer = tools("show", path="notes/db.md", heading="Why")
    assert answer.data["text"] == "## Why\n\nIt needs no server.\n"
    assert answer.data["line"] == 8
    assert answer.data["hash"] == note


def test_a_memory_is_read_page_by_page_without_losing_a_byte(tools: Tools, memory: Memory) -> None:
    text = "".join(f"line {number} \u2028 of many\r\n" for number in range(3000))
    memory.write("notes/long.md", text)
    read, line, pages = "", 1, 0
    while line:
        answer = tools("show", path="notes/long.md", line=line)
        assert sum(map(estimate, answer.texts)) < 6_200
        read += answer.data["text"]
        line = answer.data.get("next", {}).get("line", 0)
        pages += 1
    assert read == text
    assert pages > 2


def test_a_line_that_is_too_long_is_read_in_pieces(tools: Tools, memory: Memory) -> None:
    text = json.dumps({"a": "x" * 50_000 + "文" * 20_000}, ensure_ascii=False) + "\n"
    memory.write("notes/long.json", text)
    read, following = "", {"line": 1}
    while following:
        answer = tools("show", path="notes/long.json", **following)
        read += answer.data["text"]
        following = answer.data.get("next", {})
        assert bool(following) == (len(answer.texts) == 3)
        assert estimate(answer.texts[1]) <= 6_000
    assert read == text


def test_an_empty_memory_can_be_shown(tools: Tools, vault_root: Path) -> None:
    (vault_root / "empty.md").touch()
    assert tools("show", path="empty.md").data["text"] == ""


@pytest.mark.usefixtures("note")
def test_as_many_lines_as_are_asked_for(tools: Tools) -> None:
    answer = tools("show", path="notes/db.md", line=4, limit=1)
    assert answer.data["text"] == "# Storage\n"
    assert answer.texts[2] == "[6 more lines left out: go on with line=5]"


def test_search_gives_the_lines_with_heading_date_and_hash(tools: Tools, note: str) -> None:
    (hit,) = tools("search", query="server").data["hits"]
    assert (hit["path"], hit["hash"], hit["line"]) == ("notes/db.md", note, 10)
    assert hit["heading"] == ["Storage", "Why"]
    assert hit["text"] == "It needs no server."


@pytest.mark.usefixtures("note")
def test_search_says_what_of_the_query_was_not_used(tools: Tools) -> None:
    answer = tools("search", query="sqlite before:soon")
    assert answer.data["notes"]
    assert answer.texts[-1] == f"[{answer.data['notes'][-1]}]"


def test_lists_of_hits_are_paged_to_the_end(tools: Tools, memory: Memory) -> None:
    for number in range(25):
        memory.write(f"notes/{number:02}.md", f"The database number {number}.\n")
    for name, asked in (("search", {"query": "database"}), ("grep", {"pattern": "database"})):
        seen: list[str] = []
        following: dict[str, int] = {"offset": 0}
        while following:
            answer = tools(name, limit=7, **asked, **following)
            seen += [hit["path"] for hit in answer.data["hits"]]
            assert answer.data["left_out"] == 25 - len(seen)
            following = answer.data.get("next", {})
        assert sorted(seen) == [f"notes/{number:02}.md" for number in range(25)]


def test_a_search_is_paged_however_far_behind(tools: Tools, memory: Memory) -> None:
    for number in range(155):
        memory.write(f"notes/{number:03}.md", "The database.\n")
    answer = tools("search", query="database", limit=20, offset=130)
    assert (len(answer.data["hits"]), answer.data["left_out"]) == (20, 5)
    assert len(tools("search", query="database", **answer.data["next"]).data["hits"]) == 5
    assert tools("search", query="database", offset=155).data["hits"] == []


def test_hits_stay_within_the_budget_and_say_what_is_left(memory: Memory) -> None:
    for number in range(20):
        memory.write(f"notes/{number}.md", "needle " + "x" * 5_000 + "\n")
    answer = Tools(memory, budget=1_000)("grep", pattern="needle")
    assert estimate("\n".join(answer.texts)) <= 1_000
    assert 0 < len(answer.data["hits"]) < 20
    assert answer.data["left_out"] == 20 - len(answer.data["hits"])
    assert answer.texts[-1].endswith(f"go on with offset={len(answer.data['hits'])}]")


def test_a_long_line_is_shown_around_its_match(tools: Tools, memory: Memory) -> None:
    memory.write("notes/a.md", "x" * 5_000 + " needle " + "y" * 5_000 + "\n")
    (hit,) = tools("grep", pattern="needle").data["hits"]
    assert " needle " in hit["text"]
    assert hit["text"].count("characters left out]") == 2


def test_a_hit_in_a_memory_that_has_changed_has_no_hash(memory: Memory) -> None:
    memory.write("notes/a.md", "needle\n")

    def change(_done: int, _total: int) -> None:
        (Path(memory.vault.root) / "notes/a.md").write_text("another\n")

    answer = Tools(memory).box.call("grep", {"pattern": "needle"}, change)
    assert [hit["hash"] for hit in answer.data["hits"]] == [""]


def test_grep_says_that_nothing_is_there(tools: Tools) -> None:
    assert tools("grep", pattern="nothing").texts == ("nothing found",)


def test_what_finds_nothing_says_how_little_was_searched(memory: Memory) -> None:
    memory.write("notes/db.md", "SQLite\n")
    bob = Tools(mdmem.open(memory.vault.root, mdmem.Scope(user="bob")))
    only = "only users/bob/ was searched"
    for name, word in (("search", "query"), ("grep", "pattern")):
        answer = bob(name, **{word: "SQLite"})
        assert only in answer.data["notes"]
        assert f"[{only}]" in answer.texts
    app = Tools(mdmem.open(memory.vault.root, mdmem.Scope(user="bob", project="app")))
    assert [hit["path"] for hit in app("search", query="SQLite").data["hits"]] == ["shared:notes/db.md"]
    only = "only users/bob/projects/app/ was searched"
    assert app("grep", pattern="SQLite").data["notes"] == [only]
    assert only not in app("search", query="MySQL").data["notes"]


def test_grep_and_ls_say_what_does_not_count(tools: Tools, memory: Memory) -> None:
    memory.write("notes/new.md", "held for 2\n")
    memory.write("notes/old.md", "held for 1\n")
    memory.supersede("notes/old.md", "notes/new.md")
    answer = tools("grep", pattern="held for")
    assert [(hit["path"], hit["state"]) for hit in answer.data["hits"]] == [
        ("notes/new.md", ""),
        ("notes/old.md", "superseded"),
    ]
    assert "  superseded\n" in answer.texts[0]
    answer = tools("ls", within="notes")
    assert [each.get("state") for each in answer.data["memories"]] == [None, "superseded"]
    assert answer.texts[0].endswith("bytes  superseded")
    memory.set("notes/old.md", {"superseded_by": None, "valid_to": None, "expires": "2020-01-01"})
    index = memory.index.folder
    shutil.rmtree(index)
    assert tools("grep", pattern="held for 1").data["hits"][0]["state"] == "expired"
    assert tools("ls", within="notes").data["memories"][1]["state"] == "expired"
    assert not os.path.exists(index)


def test_a_section_says_that_its_memory_does_not_count(tools: Tools, memory: Memory) -> None:
    memory.write("notes/new.md", "# A\n\nheld for 2\n")
    memory.write("notes/old.md", "# A\n\nheld for 1\n")
    memory.contradict("notes/old.md", "notes/new.md")
    answer = tools("show", path="notes/old.md", heading="A")
    assert answer.data["state"] == "contradicted"
    assert answer.texts[0].endswith("  contradicted")
    assert "state" not in tools("show", path="notes/new.md", heading="A").data


def test_search_names_its_own_argument_for_what_does_not_count(tools: Tools) -> None:
    tools("write", path="notes/old.md", content="---\nvalid_to: 2020-01-01\n---\nA lighthouse.\n")
    answer = tools("search", query="lighthouse")
    assert answer.texts[1].endswith("notes/old.md (over); ask for any state to get it]")
    assert "lighthouse" in tools("search", query="lighthouse", any_state=True).texts[0]


@pytest.mark.usefixtures("note")
def test_ls_lists_and_says_what_cannot_be_a_memory(tools: Tools, vault_root: Path, note: str) -> None:
    (vault_root / "notes/link.md").symlink_to(vault_root / "notes/db.md")
    answer = tools("ls", within="notes")
    assert [each["path"] for each in answer.data["memories"]] == ["notes/db.md"]
    assert answer.data["memories"][0]["hash"] == note
    assert answer.texts[0] == f"notes/db.md  hash {note}  {len(NOTE)} bytes"
    assert answer.texts[1].startswith("[cannot be a memory: notes/link.md")
    assert tools("ls", where="type=other").data["total"] == 0
    for _ in "again":  # a field that nobody has is said each time
        answer = tools("ls", sort="typ")
        assert answer.data["notes"] == ["no memory has a field 'typ'; nearest names: type"]
        assert answer.texts[1] == "[no memory has a field 'typ'; nearest names: type]"


@pytest.mark.usefixtures("note")
def test_references_tell_backlinks_and_what_is_gone(tools: Tools, memory: Memory) -> None:
    memory.write("notes/a.md", "See [[db]] and [[nowhere]].\n")
    (found,) = tools("ls", target="notes/db.md").data["references"]
    assert [place["path"] for place in found["places"]] == ["notes/a.md"]
    assert [each["state"] for each in tools("ls", target="nowhere").data["references"]] == ["dangling"]
    assert tools("ls", target="notes/db.md", within="notes/db.md").data["total"] == 0
    assert tools("ls", stale=True).data["total"] == 0
    for given in ({"globs": "*.md"}, {"where": "type=note"}, {"sort": "date"}):
        assert "are about memories" in tools.error("ls", target="notes/db.md", **given)["message"]


def test_context_is_what_the_facade_gives_within_both_budgets(memory: Memory) -> None:
    memory.project.append("Decisions", "Use SQLite")
    memory.working.update("Tests red.", thread="t1")
    for number in range(50):
        memory.write(f"rules/{number}.md", f"# Rule {number}\n\n" + "Mind this. " * 100)
    tools = Tools(memory, budget=800, thread="t1")
    answer = tools("context", query="SQLite", budget=5_000)
    assert answer.texts == (memory.context("SQLite", thread="t1", budget=800).text,)
    assert "Tests red." in answer.texts[0]
    assert answer.data["tokens"] <= 800
    assert answer.data["total_left_out"] >= len(answer.data["left_out"]) > 0


def test_context_of_nothing_says_so(tools: Tools) -> None:
    assert tools("context").texts == ("there is nothing to know yet",)


# -- changing ---------------------------------------------------------------------------------------------


def test_a_change_takes_the_hash_that_was_read_and_gives_the_new_one(
    tools: Tools, memory: Memory, note: str
) -> None:
    answer = tools("replace", path="notes/db.md", old="one file", new="a single file", base=note)
    (file,) = answer.data["files"]
    assert file == {
        "path": "notes/db.md",
        "did": "changed",
        "hash": memory.show("notes/db.md").hash[:12],
        "merged": False,
    }
    assert answer.texts == (f"changed notes/db.md  hash {file['hash']}\nchange {answer.data['change']}",)
    assert "a single file" in memory.show("notes/db.md").text


def test_a_change_to_what_has_moved_on_is_refused_with_the_difference(
    tools: Tools, memory: Memory, note: str
) -> None:
    memory.replace("notes/db.md", "one file", "two files")
    told = tools.error("section", path="notes/db.md", heading="Why", text="Because.", base=note)
    assert told["code"] == "conflict"
    assert told["hash"] == memory.show("notes/db.md").hash[:12]
    assert "+SQLite: two files." in told["message"]
    assert told["hint"].startswith("read it again with show")


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("write", {"path": "notes/new.md", "content": "a\n"}, {"notes/new.md": "a\n"}),
        (
            "section",
            {"path": "notes/db.md", "text": "more", "where": "append"},
            {"notes/db.md": f"{NOTE}more\n"},
        ),
        (
            "section",
            {"path": "notes/db.md", "heading": "Why", "text": "Because.", "where": "append"},
            {"notes/db.md": f"{NOTE}\nBecause.\n"},
        ),
        ("mv", {"source": "notes/db.md", "target": "notes/x/"}, {"notes/x/db.md": NOTE}),
        ("rm", {"path": "notes/db.md"}, {}),
        (
            "replace",
            {"path": "notes/db.md", "old": "no server", "new": "nothing"},
            {"notes/db.md": NOTE.replace("no server", "nothing")},
        ),
        (
            "replace",
            {"path": "notes/db.md", "old": "s", "new": "S", "count": "all"},
            {"notes/db.md": NOTE.replace("s", "S")},
        ),
    ],
)
@pytest.mark.usefixtures("note")
def test_a_change_is_made_unless_it_is_a_dry_run(
    tools: Tools, memory: Memory, name: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    before = {each.path: memory.show(each.path).text for each in memory.ls()}
    tools(name, **given, dry_run=True)
    assert {each.path: memory.show(each.path).text for each in memory.ls()} == before
    tools(name, **given)
    gone = {"notes/db.md"} if name in {"mv", "rm"} else set()
    after = {each.path: memory.show(each.path).text for each in memory.ls()}
    assert after == {path: text for path, text in before.items() if path not in gone} | expected


def test_fields_are_set_and_nothing_else_changes(tools: Tools, memory: Memory, note: str) -> None:
    written = memory.show("notes/db.md").text
    fields = {"tags": ["db", "decision"], "source.type": "chat"}
    tools("write", path="notes/db.md", fields=fields, base=note)
    assert memory.show("notes/db.md").text.endswith(written.rpartition("---\n")[2])
    assert memory.show("notes/db.md").fields["tags"] == ["db", "decision"]
    tools("write", path="notes/db.md", fields='{"tags": ["db"]}')
    assert memory.show("notes/db.md").fields["tags"] == ["db"]
    assert tools.error("write", path="notes/db.md", fields=fields, base=note)["code"] == "conflict"
    for given in ({}, {"content": "x", "fields": fields}):
        assert "either content or fields" in tools.error("write", path="notes/db.md", **given)["message"]


def test_a_change_is_taken_back_by_its_name_or_as_the_last(tools: Tools, memory: Memory, note: str) -> None:
    before = memory.show("notes/db.md").text
    change = tools("replace", path="notes/db.md", old="one file", new="two files").data["change"]
    tools("write", path="a.md", content="a\n")
    tools("undo", dry_run=True)
    assert tools("undo").texts[0].splitlines()[:2] == [memory.history()[0].message, "deleted a.md"]
    assert memory.show("notes/db.md").text != before
    tools("undo", change=change)
    assert memory.show("notes/db.md").hash[:12] == note
    assert [each.path for each in memory.ls()] == ["notes/db.md"]
    assert tools.error("undo", change="nope")["code"] == "name-not-found"
    assert tools.error("undo", change=change, count=2)["code"] == "usage"
    assert tools.error("undo", change=change, redo=True)["code"] == "usage"


def test_what_links_to_what_is_moved_or_deleted_is_told(tools: Tools, memory: Memory) -> None:
    memory.write("a.md", "[[b]]\n\n[[b]] [[b]]\n")
    memory.write("b.md", "b\n")
    moved = tools("mv", source="b.md", target="c.md")
    assert moved.texts[0].splitlines()[:2] == ["moved b.md → c.md", "3 links rewritten"]
    assert moved.data["links_rewritten"] == 3
    assert tools("rm", path="c.md", dry_run=True).data["notes"] == [
        "a.md:1 links to it",
        "a.md:3 links to it",
    ]
    for number in range(25):
        memory.write(f"links/{number:02}.md", "[[c]]\n")
    deleted = tools("rm", path="c.md").data["notes"]
    assert len(deleted) == 21
    assert deleted[-1] == "7 more links lead nowhere now"


def test_several_changes_are_taken_back_and_put_back_one_by_one(tools: Tools, memory: Memory) -> None:
    for text in ("one", "two", "three"):
        tools("section", path="a.md", text=text, where="append")
    answer = tools("undo", count=2)
    assert memory.show("a.md").text == "one\n"
    assert answer.texts[0].count("undo 2") == 2
    assert [each["did"] for each in answer.data["files"]] == ["changed"]
    assert tools("undo", redo=True).texts[0].startswith("redo ")
    assert memory.show("a.md").text == "one\ntwo\n"
    tools("undo", redo=True)
    assert memory.show("a.md").text == "one\ntwo\nthree\n"
    assert tools.error("undo", redo=True)["code"] == "name-not-found"
    tools("undo", count=9)
    assert "call" not in tools.error("undo")["hint"]
    assert "undo with redo=true" in tools.error("undo")["hint"]


@pytest.mark.usefixtures("note")
def test_a_dry_run_gives_the_difference(tools: Tools) -> None:
    answer = tools("replace", path="notes/db.md", old="one", new="1", dry_run=True)
    assert "-SQLite: one file.\n+SQLite: 1 file.\n" in answer.data["diff"]
    assert answer.data["paths"] == ["notes/db.md"]


def test_what_is_kept_goes_where_its_kind_is(tools: Tools, memory: Memory) -> None:
    tools("remember", kind="note", name="db", value="One file.", title="SQLite")
    tools("remember", kind="working", name="t1", value="State: green.", ttl=60)
    tools("remember", kind="working", resource="r1", value="State: red.")
    tools("remember", kind="preference", name="ui/theme", value="dark", why="asked for")
    tools("remember", kind="preference", name="ui/columns", value={"wide": 2})
    tools("remember", kind="project", name="Decisions", value="Use SQLite")
    tools("remember", kind="note", value="Tests are green.")
    assert "\n\nTests are green.\n" in memory.show(memory.notes.today_path).text
    assert memory.show("notes/db.md").text == "## SQLite\n\nOne file.\n"
    assert memory.working.get(thread="t1") == "State: green."
    assert memory.working.get(resource="r1") == "State: red."
    assert memory.preferences.get("ui", "theme").value == "dark"
    assert memory.preferences.get("ui", "columns").value == {"wide": 2}
    assert "- Use SQLite" in memory.project.load().text


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kind": "note", "value": "x", "title": "T"}, "the log of today has times as titles"),
        ({"kind": "note", "value": 5}, "value is a text here"),
        ({"kind": "working", "value": "x"}, "name must be given"),
        ({"kind": "note", "name": "a", "value": 5}, "value is a text here"),
        ({"kind": "note", "name": "a", "value": "x", "ttl": 5}, "ttl is for working, not for note"),
        (
            {"kind": "note", "name": "a", "value": "x", "resource": "r"},
            "resource is for working, not for note",
        ),
        ({"kind": "working", "name": "a", "value": "x", "resource": "r"}, "working memory is of a thread or"),
        ({"kind": "project", "name": "a", "value": "x", "base": "12345678"}, "a project entry is added"),
        ({"kind": "preference", "value": "x"}, "name must be given"),
        ({"kind": "preference", "name": "theme", "value": "x"}, "name is 'theme'"),
        ({"kind": "preference", "name": "ui/", "value": "x"}, "name is 'ui/'"),
        ({"kind": "idea", "value": "x"}, "nothing is remembered as 'idea'"),
    ],
)
def test_what_cannot_be_kept_says_why(tools: Tools, given: dict[str, object], problem: str) -> None:
    told = tools.error("remember", **given)
    assert told["message"].startswith(problem)
    assert given["kind"] != "preference" or "category/key" in told["hint"]


def test_a_bound_thread_is_the_one_that_is_written(memory: Memory) -> None:
    tools = Tools(memory, thread="t1")
    tools("remember", kind="working", value="a")
    assert memory.working.get(thread="t1") == "a"
    assert "bound" in tools.error("remember", kind="working", name="t2", value="b")["message"]
    assert "bound" in tools.error("context", thread="t2")["message"]


def test_only_an_append_can_do_without_a_heading(tools: Tools) -> None:
    assert tools.error("section", path="notes/a.md", text="x")["message"] == "heading must be given"
    tools("section", path="notes/a.md", text="x", where="append")


def test_a_warning_is_told_beside_what_was_done(vault_root: Path) -> None:
    (vault_root / ".mdmem/config.toml").write_text("[secrets]\npolicy = 'redact'\n")
    tools, secret = Tools(mdmem.open(vault_root)), "ghp_" + "a1B2c3D4e5F6" * 3
    for dry_run in (True, False):
        answer = tools("write", path="a.md", content=f"token: {secret}\n", dry_run=dry_run)
        assert len(answer.data["notes"]) == 1
        assert "looks like a secret" in answer.texts[-1]
        assert secret not in str(answer)


def test_what_breaks_a_schema_is_refused_with_its_place(tools: Tools, memory: Memory) -> None:
    told = tools.error("write", path="notes/a.md", content="---\ntags: {a: 5}\n---\n")
    assert told["code"] == "invalid"
    assert [(each["path"], each["line"]) for each in told["findings"]] == [("notes/a.md", 2)]
    assert not memory.ls()


# -- what the host binds ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("note")
def test_read_only_leaves_out_and_refuses_what_changes(memory: Memory) -> None:
    tools = Tools(memory, read_only=True)
    assert tools.box.tools == tuple(tool for tool in TOOLS if not tool.changes)
    for name in ("write", "replace", "section", "mv", "rm", "undo", "remember"):
        assert "read-only" in tools.error(name, path="notes/db.md")["message"]
    assert memory.show("notes/db.md").text == NOTE


def test_the_namespace_is_what_paths_are_relative_to(vault_root: Path, memory: Memory) -> None:
    memory.write("users/alice/notes/a.md", "needle\n")
    memory.write("notes/b.md", "needle\n")
    tools = Tools(mdmem.open(vault_root, mdmem.Scope(user="alice")))
    assert [hit["path"] for hit in tools("grep", pattern="needle").data["hits"]] == ["notes/a.md"]
    assert [hit["path"] for hit in tools("search", query="needle").data["hits"]] == ["notes/a.md"]
    assert tools.error("show", path="notes/b.md")["code"] == "memory-not-found"


def test_a_tool_that_is_not_there_is_no_answer(tools: Tools) -> None:
    with pytest.raises(KeyError):
        tools.box.call("forget", {})


@pytest.mark.usefixtures("note")
def test_work_ends_when_it_is_told_to(memory: Memory) -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    for name, given in (("grep", {"pattern": "SQLite"}), ("search", {"query": "SQLite"})):
        with pytest.raises(KeyboardInterrupt):
            Tools(memory).box.call(name, given, stop)
    assert Tools(memory)("search", query="SQLite").data["hits"]


def test_the_refusal_of_a_secret_does_not_teach_how_it_would_pass(tools: Tools) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    for path, content in (("a.md", f"token: {secret}\n"), (f"{secret}.md", "x\n")):
        answer = tools.box.call("write", {"path": path, "content": content})
        assert answer.is_error
        assert "looks like" in answer.texts[0]
        assert not any(way in str(answer) for way in ("allow", "config.toml", secret))


def test_what_had_to_give_in_the_vault_is_told_once(tools: Tools, memory: Memory) -> None:
    memory.write("notes/a.md", "# A\n")
    staged = Path(memory.root) / ".mdmem/local/staging/20260101T000000000000-dead"
    staged.mkdir()
    (staged / "plan.json").write_text("{}", encoding="utf-8")
    answer = tools("show", path="notes/a.md")
    (remark,) = answer.data["remarks"]
    assert "files that this vault did not write here (1) are not used" in remark
    assert answer.texts[-1] == f"[{remark}]"
    assert "remarks" not in tools("show", path="notes/a.md").data


@cases(
    "name, given, hint",
    [
        (
            "mv",
            {"source": "a.md", "target": "b.md"},
            "give another path, or move what stands there away first",
        ),
        ("rm", {"path": "notes/"}, "delete all of it with recursive=true, or name a memory"),
        ("rm", {"path": "notes"}, "delete all of it with recursive=true, or name a memory"),
        (
            "remember",
            {"kind": "rule", "value": "x"},
            "a rule is written whole: write path=rules/NAME.md",
        ),
        ("section", {"path": "a.md", "heading": "No", "text": "x"}, "with where=append and without heading"),
        ("show", {"path": "c"}, "nearest names: notes/c.md, rules/c.md"),
        ("show", {"path": "notes"}, "list it with ls within=notes"),
        ("show", {"path": "#tag"}, "ls target='#tag' lists where a tag stands"),
        ("show", {"path": "notes/*.x"}, "ls globs='notes/*.x' lists what fits a pattern"),
        ("undo", {}, "undo change="),
        ("write", {"path": "a.md", "content": "x"}, "give its hash as base"),
    ],
)
def test_what_a_hint_names_is_a_tool_or_an_argument_of_one(
    tools: Tools, vault_root: Path, name: str, given: dict[str, Any], hint: str
) -> None:
    for path in ("a.md", "b.md", "notes/c.md", "rules/c.md"):
        mdmem.open(vault_root, actor="other").write(path, "# A\n", overwrite=True)
    told = tools.error(name, **given)
    assert hint in told["hint"]
    assert "--" not in told["hint"]
    assert "mdmem" not in told["hint"]


def test_the_folder_that_rm_names_with_a_slash_is_deleted(tools: Tools, memory: Memory) -> None:
    for path in ("notes/a.md", "notes/deep/b.md", "notes.md"):
        memory.write(path, "x\n")
    done = tools("rm", path="notes/", recursive=True)
    assert [file["path"] for file in done.data["files"]] == ["notes/a.md", "notes/deep/b.md"]
    tools("undo")
    assert memory.exists("notes/deep/b.md")


def test_a_folder_with_proposals_in_it_is_neither_deleted_nor_moved(tools: Tools, memory: Memory) -> None:
    memory.write("users/bob/inbox/0123456789abcdef.md", "---\ntype: proposal\n---\nsaid\n")
    memory.write("users/bob/notes/a.md", "x\n")
    for folder in ("users", "users/bob/"):
        assert tools.error("rm", path=folder, recursive=True)["code"] == "path-refused"
    assert tools.error("mv", source="users/bob", target="users/ada/")["code"] == "path-refused"
    tools("rm", path="users/bob/notes", recursive=True)
    assert [each.path for each in memory.ls("users")] == ["users/bob/inbox/0123456789abcdef.md"]


PROPOSED = "inbox/0123456789abcdef.md"
CHANGES_OF_PROPOSALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("write", {"path": PROPOSED, "content": "---\ntype: proposal\n---\nsaid\n", "overwrite": True}),
    ("write", {"path": PROPOSED, "fields": {"reason": "said so"}}),
    ("write", {"path": "notes/new.md", "content": "x\n", "supersedes": PROPOSED}),
    ("write", {"path": "Inbox/new.md", "content": "x\n"}),
    ("replace", {"path": PROPOSED, "old": "night", "new": "noon"}),
    ("section", {"path": PROPOSED, "text": "more", "where": "append"}),
    ("mv", {"source": PROPOSED, "target": "notes/moved.md"}),
    ("mv", {"source": "notes/db.md", "target": PROPOSED}),
    ("mv", {"source": "inbox", "target": "notes/moved/"}),
    ("rm", {"path": PROPOSED}),
    ("rm", {"path": "inbox", "recursive": True}),
)


@cases("tool, given", CHANGES_OF_PROPOSALS)
def test_no_tool_makes_or_changes_a_proposal(
    tools: Tools, memory: Memory, tool: str, given: dict[str, Any]
) -> None:
    memory.write("notes/db.md", "One file.\n", overwrite=True)
    memory.write(PROPOSED, "---\ntype: proposal\n---\nBacked up at night.\n", overwrite=True)
    before = {each.path: memory.show(each.path).hash for each in memory.vault.walk()}
    assert tools.error(tool, **given)["code"] == "path-refused"
    assert {each.path: memory.show(each.path).hash for each in memory.vault.walk()} == before
