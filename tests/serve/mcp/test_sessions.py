"""Sessions through the tools: what was said is found and read, and a bound thread sees its own alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.document.text.tokens import estimate
from mdmem.serve.mcp.resources import list_resources
from tests.serve.mcp.conftest import Tools
from tests.speed import soak_most

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory


@pytest.fixture
def said(memory: Memory) -> Memory:
    for number in range(1, 31):
        memory.sessions.add("t:1", "user", f"turn {number} about SQLite")
    memory.sessions.add("other", "user", "SQLite is secret here")
    return memory


def test_the_last_messages_of_a_session_are_shown(tools: Tools, said: Memory) -> None:
    answer = tools("show", path="sessions/t:1", limit=2)
    assert [each["seq"] for each in answer.data["messages"]] == [29, 30]
    assert "turn 30 about SQLite" in answer.texts[0]
    assert len(tools("show", path="sessions/t:1").data["messages"]) == 20
    assert tools.error("show", path="sessions/none")["code"] == "usage"
    assert len(said.sessions.history("t:1")) == 30


def test_one_message_is_shown_line_by_line(tools: Tools, memory: Memory) -> None:
    text = "\n".join(f"line {number}" for number in range(5_000))
    memory.sessions.add("t", "user", text)
    read, line = [], 1
    while line:
        answer = tools("show", path="sessions/t#1", line=line)
        assert sum(map(estimate, answer.texts)) < 6_200
        read.append(answer.data["text"])
        line = answer.data.get("next", {}).get("line", 0)
    assert "\n".join(read) == text
    assert tools.error("show", path="sessions/t#2")["code"] == "name-not-found"


def test_a_message_of_one_long_line_is_shown_piece_by_piece(tools: Tools, memory: Memory) -> None:
    text = "word " * 20_000 + "\nlast"
    memory.sessions.add("t", "user", text)
    read, following = "", {"line": 1, "column": 1}
    while following:
        answer = tools("show", path="sessions/t#1", **following)
        assert sum(map(estimate, answer.texts)) < 6_200
        cut = "is cut: go on with line=1" in answer.texts[-1]
        read += answer.data["text"] if cut else answer.data["text"] + "\n"
        following = answer.data.get("next", {})
    assert read.rstrip("\n") == text


def test_a_message_that_is_too_long_for_a_list_says_how_much_is_left_out(
    tools: Tools, memory: Memory
) -> None:
    text = "word " * 20_000
    memory.sessions.add("t", "user", text)
    answer = tools("show", path="sessions/t")
    (message,) = answer.data["messages"]
    shown, _, told = message["text"].rpartition("\n")
    assert text.startswith(shown.partition("\n")[2])
    head = len(shown) - len(shown.partition("\n")[2])
    assert told == f"[{len(text) + head - len(shown):,} characters left out: show sessions/t#1]"


def test_a_summary_opens_to_its_messages(tools: Tools, said: Memory) -> None:
    for number in range(40):
        said.sessions.add("t:1", "user", f"{number} " + "x " * 500)
    (summary, *_) = said.sessions.compact("t:1", budget=3_000).summaries
    answer = tools("show", path=f"sessions/t:1#{summary.seq}")
    seqs = [each["seq"] for each in answer.data["messages"]]
    assert seqs == list(range(seqs[0], seqs[-1] + 1))
    assert summary.first <= seqs[0] <= seqs[-1] <= summary.last


@pytest.mark.parametrize(
    ("tool", "asked", "other"),
    [("grep", {"pattern": "turn 3"}, {"globs": ["*"]}), ("search", {"query": "turn"}, {"types": ["note"]})],
)
@pytest.mark.usefixtures("said")
def test_what_was_said_is_found_page_by_page(
    tools: Tools, tool: str, asked: dict[str, Any], other: dict[str, Any]
) -> None:
    answer = tools(tool, within="sessions/t:1", limit=1, **asked)
    assert answer.data["hits"][0]["key"] == "t:1"
    assert answer.data["next"] == {"offset": 1}
    following = tools(tool, within="sessions/t:1", limit=1, offset=1, **asked)
    assert following.data["hits"][0]["seq"] != answer.data["hits"][0]["seq"]
    assert "about memories" in tools.error(tool, within="sessions/t:1", **asked, **other)["message"]


def test_a_bound_thread_sees_no_other_session(said: Memory) -> None:
    tools = Tools(said, thread="t:1")
    assert tools("show", path="sessions/t:1#1").data["text"] == "turn 1 about SQLite"
    for tool, asked in (
        ("show", {"path": "sessions/other"}),
        ("show", {"path": "sessions/other#1"}),
        ("grep", {"within": "sessions/other", "pattern": "SQLite"}),
        ("search", {"within": "sessions/other", "query": "SQLite"}),
    ):
        refused = tools.error(tool, **asked)
        assert refused["code"] == "usage"
        assert "secret" not in str(refused)
    for tool, text in (("grep", "pattern"), ("search", "query")):
        assert tools(tool, **{text: "secret"}).data["hits"] == []


def test_the_memory_of_a_session_is_read_as_memories_are(tools: Tools, said: Memory) -> None:
    said.summaries.summarize("t:1")
    assert tools("show", path="sessions/t%3A1.md").data["path"] == "sessions/t%3A1.md"


SECRET = "zanzibar"
LEFT = (
    "sessions/other.md",
    "observations/other/abc-1-2.md",
    "observations/other/reflection-abc-1-1.md",
    "working/threads/other.md",
)


def leave(memory: Memory, name: str, text: str, prefix: str = "") -> None:
    """Write what a conversation leaves behind, each of which links to the others."""
    for path in LEFT:
        links = "".join(f"[[{each.replace('other', name)}]] " for each in LEFT)
        memory.write(
            prefix + path.replace("other", name), f"---\ntags: [{name}]\n---\n# {text}\n\n{text} {links}\n"
        )


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("context", {"query": SECRET}),
    ("search", {"query": SECRET}),
    ("search", {"query": "zanzibr"}),
    ("search", {"query": "plan", "tags": ["other"]}),
    ("grep", {"pattern": SECRET}),
    ("grep", {"pattern": SECRET, "within": "observations"}),
    ("grep", {"pattern": SECRET, "globs": ["observations/**", "sessions/*", "working/**"]}),
    ("ls", {}),
    ("ls", {"within": "observations"}),
    ("ls", {"where": ["tags=other"]}),
    ("ls", {"stale": True}),
    ("ls", {"target": "#other"}),
    ("ls", {"target": "sessions/other.md"}),
)


@pytest.mark.parametrize(
    ("scope", "beside"),
    soak_most(
        [
            (mdmem.Scope(), ("", "users/u/", "projects/p/", "users/u/projects/p/resources/a/b/")),
            (mdmem.Scope(shared=True), ("", "projects/p/")),
            (mdmem.Scope(user="u"), ("", "projects/p/")),
            (mdmem.Scope(user="u", project="p"), ("",)),
        ],
        quick=(0, 3),
    ),
    ids=str,
)
def test_a_bound_thread_sees_nothing_that_another_session_left_behind(
    vault_root: Path, scope: mdmem.Scope, beside: tuple[str, ...]
) -> None:
    owner, memory = mdmem.open(vault_root), mdmem.open(vault_root, scope)
    memory.write("notes/plan.md", "# Plan\n\nThe plan of all.\n")
    leave(memory, "mine", "my plan")
    for prefix in beside:
        leave(memory, "other", f"{SECRET} plan {prefix}", prefix)
    if scope.user and scope.project:
        for prefix in ("", "projects/p/", "users/u/"):  # which it reads as well
            leave(owner, "other", f"{SECRET} plan", prefix)
            leave(owner, "mine", f"{SECRET} plan, of another scope", prefix)
    assert "zanzibar" in str(Tools(memory)("search", query=SECRET).data)
    tools = Tools(memory, thread="mine")
    for name, given in CALLS:
        answer = tools.box.call(name, given)
        assert SECRET not in str((answer.texts, answer.data)).replace(str(given), ""), (name, given)
        assert "other/" not in str(answer), (name, given)
        assert "other.md" not in str(answer).replace(str(given), "").replace("sessions/other.md", "")
    mine = {each.replace("other", "mine") for each in LEFT}
    assert {each["path"] for each in tools("ls").data["memories"]} == {"notes/plan.md", *mine}
    assert {hit["path"] for hit in tools("search", query="plan").data["hits"]} == {"notes/plan.md", *mine}
    assert {hit["path"] for hit in tools("grep", pattern="plan").data["hits"]} == {"notes/plan.md", *mine}
    assert tools("ls", within="observations").data["total"] == 2
    assert {each["path"] for each in tools("ls", where=["tags=mine"]).data["memories"]} == mine


@pytest.mark.parametrize("path", [*LEFT, "sessions/none.md", "users/u/observations/other/abc-1-2.md"])
def test_a_bound_thread_reads_and_changes_nothing_of_another_session(memory: Memory, path: str) -> None:
    leave(memory, "mine", "my plan")
    leave(memory, "other", SECRET)
    leave(memory, "other", SECRET, "users/u/")
    tools = Tools(memory, thread="mine")
    messages = set()
    for name, given in (
        ("show", {"path": path}),
        ("write", {"path": path, "content": "x", "overwrite": True}),
        ("write", {"path": path, "fields": {"a": 1}}),
        ("replace", {"path": path, "old": SECRET, "new": "x"}),
        ("section", {"path": path, "text": "x", "where": "append"}),
        ("mv", {"source": path, "target": "notes/x.md"}),
        ("mv", {"source": "sessions/mine.md", "target": path}),
        ("rm", {"path": path}),
        ("undo", {"change": memory.history()[0].id}),
    ):
        refused = tools.error(name, **given)
        messages.add(refused["message"].replace(path, "PATH"))
        assert SECRET not in str(refused)
    assert len(messages) == 2
    resource = f"mdmem:///{path}"
    assert tools.error("show", path=resource)["code"] == "memory-not-found"
    assert path not in [each.name for each in list_resources(tools.box._bound.memory).resources]
    # Of its own it does all that.
    mine: tuple[tuple[str, dict[str, Any]], ...] = (
        ("show", {"path": "observations/mine/abc-1-2.md"}),
        ("section", {"path": "sessions/mine.md", "text": "x", "where": "append"}),
        ("rm", {"path": "observations/mine/abc-1-2.md"}),
        ("undo", {}),
        ("undo", {"redo": True}),
        ("context", {}),
    )
    for name, given in mine:
        tools(name, **given)


def test_a_bound_thread_that_is_another_name_of_a_session_sees_what_that_left(memory: Memory) -> None:
    leave(memory, "first", "the plan")
    memory.sessions.add("first", "user", "one")
    memory.sessions.alias("second", "first")
    tools = Tools(memory, thread="second")
    assert tools("show", path="observations/first/abc-1-2.md").data["lines"]
    assert "the plan" not in str(tools("context").texts)
    assert tools.error("show", path="working/threads/first.md")["code"] == "path-refused"


def test_a_search_that_finds_little_says_how_many_messages_fit_and_how_to_ask(
    tools: Tools, memory: Memory
) -> None:
    for key in ("one", "two"):
        memory.sessions.add(key, "user", f"the needle of {key}")
    found = tools("search", query="needle")
    assert found.texts[-1] == "[at most 2 messages of conversations fit: search within=sessions/*]"
    told = tools("search", query="needle", within="sessions/*").data["hits"]
    assert {hit["key"] for hit in told} == {"one", "two"}
    assert len(tools("grep", pattern="needle of", within="sessions/*").data["hits"]) == 2
    bound = Tools(memory, thread="one")
    assert "at most 1 messages" in bound("search", query="needle").texts[-1]
    mine = bound("search", query="needle", within="sessions/*").data["hits"]
    assert [hit["key"] for hit in mine] == ["one"]
    alone = memory.of_thread("one").sessions.search("needle", limit=1)
    assert ([hit.key for hit in alone.hits], alone.left_out) == (["one"], 0)
    assert memory.of_thread("three").sessions.search("needle").hits == ()
