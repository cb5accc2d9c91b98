"""What the page is answered, and what becomes of its decisions; every answer has a bound and says so."""

from __future__ import annotations

import json
import os
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mdmem
from mdmem.facade.memory import init_store
from mdmem.web.answers import QUESTIONS
from tests.speed import examples, soak_most
from tests.web.conftest import Page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.git.conftest import VaultTree
    from tests.vault.postgres_server import Server


def names(memory: dict[str, Any]) -> list[str]:
    return [row["row"] for row in memory["rows"]]


def test_a_review_has_each_row_with_its_words_and_who_made_it(page: Page) -> None:
    found = page.get("review")
    assert [(each["path"], each["kind"]) for each in found["memories"]] == [
        ("notes/a.md", "changed"),
        ("notes/gone.md", "removed"),
        ("notes/new.md", "new"),
    ]
    assert (found["rows"], found["left"], found["needs"]) == (4, 0, None)
    rows = found["memories"][0]["rows"]
    assert [row["words"] for row in rows] == [[["", "two"], ["+", " now"]], [["+", "three"]]]
    assert {row["by"] for row in rows} == {"claude"}
    assert rows[0]["heading"] == ["A"]
    assert found["memories"][1]["rows"][0]["words"] == [["-", "# Gone\n"]]
    assert [each["path"] for each in page.get("review", after="notes/a.md")["memories"]] == [
        "notes/gone.md",
        "notes/new.md",
    ]
    assert page.get("review", limit=1)["left"] == 2
    assert [each["path"] for each in page.get("review", path="notes/new.md")["memories"]] == ["notes/new.md"]
    assert page.get("review", path="notes/b.md")["memories"] == []
    assert page.get("review", path="none.md")["memories"] == []


def test_decisions_end_in_the_files_and_the_commit_that_they_say(page: Page, tree: VaultTree) -> None:
    a, gone, new = page.get("review")["memories"]
    rejected = page.post("reject", path="notes/a.md", rows=names(a)[:1])
    assert names(rejected["memory"]) == names(a)[1:]
    assert "- two\n- three\n" in (tree.root / "memories/notes/a.md").read_text()
    again = page.post("reject", 409, path="notes/a.md", rows=names(a)[:1])
    assert again["error"]["code"] == "revert-refused"
    assert names(again["memory"]) == names(a)[1:]
    back = page.post("undo", id=rejected["id"])
    assert names(back["memories"][0]) == names(a)
    assert page.post("reject", path="notes/gone.md", rows=names(gone))["memory"] is None
    assert (tree.root / "memories/notes/gone.md").read_text() == "# Gone\n"
    done = page.post(
        "commit", message="Decided", accepted={"notes/a.md": names(a)[:1], "notes/new.md": names(new)}
    )
    assert done["left_out"] == ["notes/a.md: not accepted: 1 of 2 changes"]
    assert tree.git("log", "-1", "--format=%s") == "Decided"
    assert tree.git("show", "--name-only", "--format=") == "memories/notes/new.md"


def test_a_memory_is_shown_with_what_is_known_of_it_and_edited_by_its_hash(
    page: Page, tree: VaultTree
) -> None:
    shown = page.get("memory", path="notes/a.md")
    assert [(each["path"], each["line"]) for each in shown["links"]] == [("notes/b.md", 1)]
    assert [shown["text"][each["start"] : each["end"]] for each in shown["links"]] == ["b"]
    assert [(each["by"], each["undoable"]) for each in shown["history"]] == [("claude", True)]
    there = page.get("memory", path="notes/b.md")
    assert there["backlinks"] == [{"path": "notes/a.md", "line": 7, "text": "See [[b]]."}]
    text = f"{shown['text']}More.\n"
    written = page.post("memory", path="notes/a.md", text=text, base=shown["hash"])
    assert (tree.root / "memories/notes/a.md").read_text() == text
    assert written["hash"] == page.get("memory", path="notes/a.md")["hash"]
    late = page.post("memory", 409, path="notes/a.md", text="x", base=shown["hash"])
    assert late["error"]["code"] == "conflict"
    assert page.get("memory", 404, path="notes/none.md")["error"]["code"] == "memory-not-found"


@pytest.mark.parametrize(
    "exact", ["# Ä\r\n\r\n- x\r\n- y\r\n", "\ufeff# B\r\rx\n- y", "- a\u202eb\n- c\u200bd\r\n- e\n"]
)
def test_an_edit_of_what_is_shown_changes_no_other_byte(page: Page, tree: VaultTree, exact: str) -> None:
    tree.note("notes/b.md", exact)
    shown = page.get("memory", path="notes/b.md")
    assert shown["text"] == mdmem.visible(exact.removeprefix("\ufeff"))
    lines = shown["text"].splitlines(keepends=True)
    lines[-1] = lines[-1].replace("y", "ye\n").replace("e\n", "eh\n")
    page.post("memory", path="notes/b.md", text="".join(lines), base=shown["hash"][:12])
    kept = (tree.root / "memories/notes/b.md").read_bytes().decode()
    assert kept.startswith(exact[: exact.rindex("- ")])
    assert kept != exact


def test_a_name_that_cannot_be_seen_is_spelled_out_and_still_decided(page: Page, tree: VaultTree) -> None:
    name = unicodedata.normalize("NFC", "notes/a\u202eb.md")
    tree.note(name, "# Turned\n")
    (memory,) = [each for each in page.get("review")["memories"] if "U+202E" in each["path"]]
    assert memory["path"] == "notes/a<U+202E>b.md"
    assert page.get("memory", path=memory["path"])["text"] == "# Turned\n"
    assert page.get("review", path=memory["path"])["memories"] == [memory]
    page.post("reject", path=memory["path"], rows=names(memory))
    assert not (tree.root / "memories" / name).exists()


def test_text_that_cannot_be_seen_reaches_no_page(page: Page, tree: VaultTree) -> None:
    tree.note("notes/b.md", "# B\u202e\n\n- bee\x1b[31m \u200b [[a\u202e]] `x\u2028y`\n")
    for answer in (
        page.get("review"),
        page.get("memory", path="notes/b.md"),
        page.get("search", query="bee"),
        page.get("overview"),
    ):
        text = json.dumps(answer, ensure_ascii=False)
        assert not set("\u202e\x1b\u200b\u2028") & set(text)


@pytest.mark.parametrize("size", soak_most([2_000, 10_000]))
def test_large_memories_are_cut_and_say_so(page: Page, tree: VaultTree, size: int) -> None:
    tree.note("notes/line.md", "x" * (200 * size))
    tree.note("notes/rows.md", "".join(f"- row {number}\n" for number in range(size)))
    tree.commit()
    tree.note("notes/line.md", "y" * (200 * size))
    tree.note("notes/rows.md", "".join(f"- row {number} new\n" for number in range(size)))
    tree.note("notes/wide.md", "# W\n" + "".join(f"- {number} {'w' * 400}\n" for number in range(size // 2)))
    answer = page.send("GET", "/api/review")
    assert len(answer.content) < 3_000_000
    memories = {each["path"]: each for each in answer.json()["memories"]}
    assert memories["notes/line.md"]["rows"][0]["cut"]
    rows = memories["notes/rows.md"]
    assert (len(rows["rows"]), rows["rows_left"]) == (1_000, size - 1_000)
    shown = page.get("memory", path="notes/line.md")
    assert (len(shown["text"]), shown["cut"]) == (200_000, True)
    late = page.post("memory", 413, path="notes/line.md", text=shown["text"], base=shown["hash"])
    assert late["error"]["code"] == "limit-reached"
    assert (tree.root / "memories/notes/line.md").stat().st_size == 200 * size


def test_links_are_told_by_where_they_stand_and_lead(page: Page, tree: VaultTree) -> None:
    tree.note("notes/b.md", "# B\n\u200b\n[[none]] and [[a#A]], then `src/x.py#L3` and [x](a.md)\n")
    shown = page.get("memory", path="notes/b.md")
    told = [
        (shown["text"][each["start"] : each["end"]], each.get("path"), each.get("dead"))
        for each in shown["links"]
    ]
    assert told == [("none", None, True), ("a", "notes/a.md", None), ("a.md", "notes/a.md", None)]


def test_each_figure_of_the_overview_leads_to_its_list(page: Page, tree: VaultTree) -> None:
    tree.write("src/x.py", "one\ntwo\n")
    for folder in ("one", "two"):
        tree.note(f"notes/{folder}/twin.md", "# Twin\n")
    tree.note("notes/b.md", "# B\n\nSee [[nowhere]], [[twin]] and `src/x.py#L1-L2`.\n")
    tree.commit()
    tree.write("src/x.py", "three\n")
    status = page.get("overview")["status"]
    assert (status["stale"], status["broken"], status["ambiguous"]) == (1, 1, 1)
    assert [(each["path"], each["line"]) for each in page.get("list", what="stale")["items"]] == [
        ("notes/b.md", 3)
    ]
    (broken,) = page.get("list", what="broken")["items"]
    assert broken["text"].startswith("nowhere: ")
    (ambiguous,) = page.get("list", what="ambiguous")["items"]
    assert "twin" in ambiguous["text"]
    memories = page.get("list", what="memories")
    assert (memories["items"][0]["text"], memories["left_out"]) == ("B", 0)
    assert len(memories["items"]) == status["memories"]
    assert page.get("list", 400, what="others")["error"]["code"] == "usage"


def test_a_page_that_nobody_has_written_is_listed_apart_as_in_status(page: Page, tree: VaultTree) -> None:
    (tree.root / "memories/.obsidian").mkdir()
    tree.note("notes/b.md", "# B\n\n[[nowhere]] and [x](gone.md)\n")
    status = page.get("overview")["status"]
    assert (status["broken"], status["unwritten"]) == (1, 1)
    listed = {what: page.get("list", what=what)["items"] for what in ("broken", "unwritten")}
    assert {what: [each["text"].split(":")[0] for each in items] for what, items in listed.items()} == {
        "broken": ["gone.md"],
        "unwritten": ["nowhere"],
    }


def test_an_overview_tells_what_there_is_and_a_day_what_was_done(page: Page, tree: VaultTree) -> None:
    tree.note("notes/b.md", "# B\n\nSee [[nowhere]].\n")
    for number in range(310):
        tree.note(f"logs/{number % 2}/{number}.md", "- x\n")
    found = page.get("overview")
    assert found["status"]["broken"] == 1
    (day,) = found["days"]
    assert day["by"] == {"claude": 3}
    assert len(found["boxes"]) == 300
    assert [each["path"] for each in found["boxes"] if each["dead"]] == ["notes/b.md"]
    assert sum(each["memories"] for each in found["folders"]) == found["status"]["memories"] - 300
    changes = page.get("day", day=day["day"])["changes"]
    assert [each["paths"] for each in changes] == [["notes/gone.md"], ["notes/new.md"], ["notes/a.md"]]
    assert all(each["undoable"] for each in changes)
    page.post("undo", id=changes[0]["id"])
    assert [each["undoable"] for each in page.get("day", day=day["day"])["changes"]] == [
        False,
        False,
        True,
        True,
    ]
    assert page.get("day", day="yesterday")["changes"] == []


def test_proposals_are_shown_as_what_they_would_change_and_decided(page: Page, tree: VaultTree) -> None:
    agent = tree.open("claude")
    agent.inbox.propose("append", {"path": "notes/b.md", "text": "- more"}, reason="it was said")
    agent.inbox.propose("rm", {"path": "notes/b.md"})
    first, second = sorted(page.get("proposals")["proposals"], key=lambda each: str(each["verb"]))
    assert (first["reason"], first["author"]) == ("it was said", "claude")
    assert "+- more" in first["diff"]
    assert page.post("proposals/accept", 409, id=first["id"], base="0" * 64)["error"]["code"] == "conflict"
    page.post("proposals/accept", id=first["id"], base=first["hash"])
    assert (tree.root / "memories/notes/b.md").read_text().endswith("- more\n")
    page.post("proposals/reject", id=second["id"])
    assert page.get("proposals")["proposals"] == []


def test_without_a_repository_the_review_says_what_it_needs_and_the_rest_is_there(tmp_path: Path) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/a.md", "# A\n\n- alpha\n")
    page = Page(memory)
    assert page.get("review")["needs"]["code"] == "no-repository"
    assert page.post("commit", 503, message="", accepted={})["error"]["code"] == "no-repository"
    assert page.get("memory", path="notes/a.md")["text"] == "# A\n\n- alpha\n"
    assert page.get("overview")["status"]["uncommitted"] is None
    assert [each["path"] for each in page.get("search", query="alpha")["hits"]] == ["notes/a.md"]


def test_a_vault_in_a_database_is_read_searched_and_looked_over(server: Server) -> None:
    url = server.url(f"page{os.getpid()}")
    init_store(url)
    memory = mdmem.open(url)
    memory.write("notes/a.md", "# A\n\n- alpha [[b]]\n")
    page = Page(memory)
    assert page.get("review")["needs"]["code"] == "needs-folder"
    assert page.post("reject", 400, path="notes/a.md", rows=["x"])["error"]["code"] == "needs-folder"
    assert page.get("memory", path="notes/a.md")["text"] == "# A\n\n- alpha [[b]]\n"
    assert page.get("overview")["status"]["memories"] == 1
    assert [each["path"] for each in page.get("search", query="alpha")["hits"]] == ["notes/a.md"]
    assert page.get("changes") == {"number": 0}


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["notes/a.md", "notes", "", "..", "/etc/passwd", "a\0b", "C:\\x", "shared:a.md", "x" * 3000]
    )
    | st.sampled_from(
        ["20260101", "0", "-1", "9" * 30, "AND (", '"', "tag:", "2026-01-01", "*", "<U+202E>", "<U+0000>"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = (
    "path",
    "rows",
    "id",
    "message",
    "accepted",
    "text",
    "base",
    "query",
    "limit",
    "day",
    "after",
    "more",
)
GIVEN = st.dictionaries(st.sampled_from(NAMES), ANY, max_size=4)
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "path": st.text(max_size=5)
        | st.sampled_from(["notes/a.md", "notes", "../x", "<U+D800>.md", "<U+FFFFFF>"]),
        "rows": st.lists(st.text(max_size=3), max_size=2),
        "id": st.text(max_size=9) | st.just("20260101"),
        "message": st.text(max_size=5),
        "accepted": st.dictionaries(
            st.text(max_size=5), st.lists(st.text(max_size=3), max_size=2), max_size=2
        ),
        "text": st.text(max_size=9),
        "base": st.text(max_size=9) | st.just("0" * 64),
        "query": st.text(max_size=20),
        "limit": st.integers(-(10**9), 10**9),
        "day": st.text(max_size=10),
        "after": st.text(max_size=9),
        "what": st.sampled_from(["memories", "stale", "broken", "x"]),
    },
)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asked=st.sampled_from([each for each in QUESTIONS if each[1] != "changes"]), given=LIKELY | GIVEN | ANY
)
def test_whatever_is_given_is_answered_or_refused_with_a_reason(
    page: Page, asked: tuple[str, str], given: Any
) -> None:
    method, name = asked
    if method == "GET":
        query = (
            {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {"path": given}
        )
        query = {
            key: value.encode("utf-8", "replace").decode()
            for key, value in query.items()
            if isinstance(value, str)
        }
        answer = page.send(method, f"/api/{name}", params=query)
    else:
        answer = page.send(method, f"/api/{name}", content=json.dumps(given).encode())
    assert answer.status_code in {200, 400, 404, 409, 413, 503}
    if answer.status_code != 200:
        assert answer.json()["error"]["message"]


def test_a_review_names_settings_that_differ(page: Page, tree: VaultTree) -> None:
    assert page.get("review")["settings"] == ""
    tree.write("memories/.mdmem/schemas/recipe.json", "{}\n")
    assert "settings of the vault differ: .mdmem/schemas/recipe.json" in page.get("review")["settings"]
