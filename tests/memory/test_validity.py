"""What counts now, or counted at a moment, and the verbs that say so."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem import Memory
from mdmem.errors import MdmemError, MemoryNotFound, Usage
from mdmem.memory import validity
from tests.memory.forking import run_at_once

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/old.md", "# Old\n\nWe use Postgres.\n")
    memory.write("notes/new.md", "# New\n\nWe use SQLite.\n")
    memory.write("notes/third.md", "# Third\n\nWe use files.\n")
    return memory


def states(memory: Memory, moment: datetime = NOW, *, is_past: bool = False) -> dict[str, str]:
    return dict(validity.find_states(memory._current_view(), moment, is_past=is_past))


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"valid_to": "2026-05-04T12:00:00Z"}, "over"),
        ({"valid_to": "2026-05-04T12:00:01Z"}, None),
        ({"valid_to": "2026-05-04"}, "over"),
        ({"valid_to": "2026-05-05"}, None),
        ({"valid_from": "2026-05-04T12:00:01Z"}, "not yet"),
        ({"valid_from": "2026-05-04T12:00:00Z"}, None),
        ({"expires": "2026-05-04T14:00:00+02:00"}, "expired"),
        ({"expires": "2026-05-04T14:00:01+02:00"}, None),
        ({"valid_from": "2027-01-01", "expires": "2026-01-01"}, "expired"),
        ({"superseded_by": "notes/new.md"}, "superseded"),
        ({"superseded_by": "[[new]]", "valid_to": "2020-01-01"}, "superseded"),
        ({"superseded_by": "notes/gone.md"}, None),
        ({"superseded_by": "notes/old.md"}, None),
        ({"superseded_by": "https://example.com"}, None),
    ],
)
def test_a_memory_has_the_state_that_its_fields_say(
    memory: Memory, fields: dict[str, str], state: str | None
) -> None:
    memory.set("notes/old.md", fields)
    assert states(memory).get("notes/old.md") == state
    said = memory.show("notes/old.md").fields
    assert validity.judge(said, "notes/old.md", NOW, memory.exists) == (state or "live")


def test_grep_says_what_does_not_count_and_asks_no_index(memory: Memory) -> None:
    memory.set("notes/old.md", {"superseded_by": "notes/new.md"})
    memory.set("notes/third.md", {"expires": "2020-01-01"})
    index = memory.index.folder
    shutil.rmtree(index)
    hits = {hit.path: hit.state for hit in memory.grep("we use")}
    assert hits == {"notes/new.md": "", "notes/old.md": "superseded", "notes/third.md": "expired"}
    assert not os.path.exists(index)


def test_a_date_that_cannot_be_read_hides_nothing(memory: Memory) -> None:
    Path(memory.root, "notes/old.md").write_text("---\nexpires: soon\nvalid_to: never\nvalid_from: 1\n---\n")
    assert states(memory) == {}


def test_an_ambiguous_successor_and_a_circle_hide_nothing(memory: Memory) -> None:
    memory.write("a/same.md", "a\n")
    memory.write("b/same.md", "b\n")
    memory.set("notes/old.md", {"superseded_by": "same"})
    memory.set("notes/new.md", {"superseded_by": "third"})
    memory.set("notes/third.md", {"superseded_by": "new"})
    memory.write("notes/before.md", "---\nsuperseded_by: new\n---\n")
    assert states(memory) == {}


def test_what_was_at_a_moment_does_not_know_what_came_later(memory: Memory) -> None:
    memory.supersede("notes/old.md", "notes/new.md", at=NOW)
    assert states(memory, NOW) == {"notes/old.md": "superseded"}
    assert states(memory, NOW - timedelta(seconds=1), is_past=True) == {}
    assert states(memory, NOW, is_past=True) == {"notes/old.md": "over"}


def test_a_successor_closes_an_open_end_alone(memory: Memory) -> None:
    memory.set("notes/third.md", {"valid_to": "2030-01-01"})
    memory.supersede("notes/old.md", "notes/new.md", at="2026-05-04")
    memory.supersede("notes/third.md", "notes/new.md", at="2026-05-04")
    assert memory.show("notes/old.md").fields == {
        "superseded_by": "notes/new.md",
        "valid_to": "2026-05-04T00:00:00Z",
    }
    assert memory.show("notes/third.md").fields["valid_to"] == "2030-01-01"


def test_a_second_successor_is_refused_with_the_first_one(memory: Memory) -> None:
    memory.supersede("notes/old.md", "notes/new.md")
    before = memory.show("notes/old.md").data
    memory.supersede("notes/old.md", "notes/new.md")
    with pytest.raises(Usage, match=r"superseded by notes/new\.md already"):
        memory.supersede("notes/old.md", "notes/third.md")
    assert memory.show("notes/old.md").data == before


def test_a_successor_must_be_there_another_and_no_circle(memory: Memory) -> None:
    memory.supersede("notes/old.md", "notes/new.md")
    memory.supersede("notes/new.md", "notes/third.md")
    for old, by, problem in (
        ("notes/third.md", "notes/old.md", "superseded by notes/third.md"),
        ("notes/third.md", "notes/third.md", "names itself"),
    ):
        with pytest.raises(Usage, match=problem):
            memory.supersede(old, by)
    for old, by in (("notes/third.md", "notes/gone.md"), ("notes/gone.md", "notes/third.md")):
        with pytest.raises(MemoryNotFound, match=r"gone\.md"):
            memory.supersede(old, by)
    with pytest.raises(Usage, match="'yesterday' is no moment"):
        memory.supersede("notes/third.md", "notes/new.md", at="yesterday")
    assert memory.show("notes/third.md").fields == {}


def test_contradictions_add_up_and_are_taken_back_together(memory: Memory) -> None:
    original = memory.show("notes/old.md").text
    memory.contradict("notes/old.md", "notes/new.md", at=NOW)
    memory.contradict("notes/old.md", "notes/third.md")
    memory.contradict("notes/old.md", "notes/third.md")
    assert memory.show("notes/old.md").fields == {
        "contradicted_by": ["notes/new.md", "notes/third.md"],
        "valid_to": "2026-05-04T12:00:00Z",
    }
    assert states(memory, NOW)["notes/old.md"] == "contradicted"
    assert states(memory, NOW, is_past=True)["notes/old.md"] == "over"
    memory.supersede("notes/old.md", "notes/new.md")
    assert states(memory, NOW)["notes/old.md"] == "superseded"
    memory.reinstate("notes/old.md")
    assert states(memory, NOW) == {}
    assert memory.show("notes/old.md").body.strip() == original.strip()


@pytest.mark.parametrize("name", ["notes/crlf.md", "notes/bom.md", "notes/bare.md", "notes/data.json"])
def test_what_takes_its_place_changes_no_other_byte_and_goes_without_a_trace(
    memory: Memory, name: str
) -> None:
    text = {
        "notes/crlf.md": "---\r\ntitle: a # b\r\n---\r\nText\r\n\r\nmore",
        "notes/bom.md": "\ufeff---\ntitle: 'x'\n---\nText\n",
        "notes/bare.md": "# Bare\n",
        "notes/data.json": '{\n\t"b": 1.0,  "a": [1,2]\n}\n',
    }[name]
    file = Path(memory.root, name)
    file.write_bytes(text.encode())
    memory.supersede(name, "notes/new.md", at=NOW)
    assert states(memory, NOW) == {name: "superseded"}
    memory.reinstate(name)
    left = file.read_bytes().decode()
    assert left == text


def test_what_was_confirmed_names_when_and_by_what(memory: Memory) -> None:
    memory.set("notes/old.md", {"source": {"type": "user", "ids": ["sessions/t1#3"]}})
    memory.confirm("notes/old.md", source="sessions/t2#1")
    memory.confirm("notes/old.md", source="sessions/t2#1")
    memory.confirm("notes/new.md")
    fields = memory.show("notes/old.md").fields
    assert fields["source"]["ids"] == ["sessions/t1#3", "sessions/t2#1"]
    assert fields["confirmed"].endswith("Z")
    assert "source" not in memory.show("notes/new.md").fields
    memory.set("notes/third.md", {"source": "https://example.com"})
    with pytest.raises(Usage, match="a second source cannot be added"):
        memory.confirm("notes/third.md", source="sessions/t2#1")


def test_a_tier_says_when_a_memory_expires(memory: Memory) -> None:
    memory.retier("notes/old.md", "working")
    fields = memory.show("notes/old.md").fields
    life = datetime.fromisoformat(fields["expires"]) - datetime.now(UTC)
    assert timedelta(hours=71, minutes=59) < life <= timedelta(hours=72)
    memory.retier("notes/old.md", "semantic")
    assert memory.show("notes/old.md").fields == {"tier": "semantic"}
    memory.retier("notes/old.md", "semantic", expires="2031-01-01")
    assert memory.show("notes/old.md").fields["expires"] == "2031-01-01T00:00:00Z"
    with pytest.raises(Usage, match=r"no tier 'eternal'\na tier is working, episodic"):
        memory.retier("notes/old.md", "eternal")


def test_reinforcing_moves_an_end_and_never_back(memory: Memory) -> None:
    memory.set("notes/old.md", {"expires": "2030-01-01T00:00:00Z", "tier": "working"})
    memory.set("notes/new.md", {"expires": "2026-01-01T00:00:00Z", "ttl_seconds": 3600})
    memory.reinforce(["notes/old.md", "notes/new.md", "notes/third.md"])
    assert memory.show("notes/old.md").fields["expires"] == "2030-01-01T00:00:00Z"
    assert datetime.fromisoformat(memory.show("notes/new.md").fields["expires"]) > datetime.now(UTC)
    assert memory.show("notes/third.md").fields == {}
    memory.reinforce("notes/old.md", until="2031-01-01")
    assert memory.show("notes/old.md").fields["expires"] == "2031-01-01T00:00:00Z"


def test_what_expired_and_is_short_lived_is_swept_and_the_rest_named(memory: Memory) -> None:
    fields_of: dict[str, dict[str, Any]] = {
        "notes/old.md": {"tier": "episodic"},
        "notes/new.md": {"ttl_seconds": 60},
        "notes/third.md": {},
    }
    for path, fields in fields_of.items():
        memory.set(path, {"expires": "2020-01-01T00:00:00Z", **fields})
    memory.write("notes/live.md", "---\ntier: working\nexpires: 2999-01-01\n---\n")
    plan = memory.plan.sweep()
    assert plan.left_out == (
        "notes/third.md: expired at 2020-01-01T00:00:00Z, without a tier or ttl_seconds",
    )
    memory.sweep("notes")
    assert [each.path for each in memory.ls()] == ["notes/live.md", "notes/third.md"]


def test_what_is_reinforced_between_look_and_sweep_is_kept(memory: Memory) -> None:
    memory.set("notes/old.md", {"expires": "2020-01-01T00:00:00Z", "tier": "working"})
    plan = memory.plan.sweep()
    memory.reinforce("notes/old.md")
    with pytest.raises(mdmem.Conflict):
        memory.apply(plan)
    memory.sweep()
    assert memory.exists("notes/old.md")


# -- what a search gives ------------------------------------------------------------------------------------


def paths(memory: Memory, query: str = "use", **options: object) -> list[str]:
    return [hit.path for hit in memory.search(query, **options).hits]  # type: ignore[arg-type]


def test_a_search_gives_what_counts_and_names_what_does_not(memory: Memory) -> None:
    memory.supersede("notes/old.md", "notes/new.md")
    memory.set("notes/third.md", {"expires": "2020-01-01"})
    found = memory.search("use")
    assert [hit.path for hit in found.hits] == ["notes/new.md"]
    assert found.left_out == 0
    (note,) = found.notes
    assert "notes/old.md (superseded)" in note
    assert "notes/third.md (expired)" in note


def test_a_search_gives_all_with_their_states(memory: Memory) -> None:
    memory.supersede("notes/old.md", "notes/new.md")
    hits = {hit.path: hit.state for hit in memory.search("use", any_state=True).hits}
    assert hits == {"notes/old.md": "superseded", "notes/new.md": "", "notes/third.md": ""}


def test_what_is_hidden_leaves_its_place_to_others(memory: Memory) -> None:
    best = paths(memory)[0]
    memory.retier(best, "working", expires="2020-01-01")
    found = memory.search("use", limit=1)
    assert [hit.path for hit in found.hits] == [path for path in paths(memory) if path != best][:1]
    assert found.left_out == 1
    assert f"{best} (expired)" in found.notes[0]


def test_where_nothing_fits_that_counts_it_is_said_what_does(memory: Memory) -> None:
    memory.supersede("notes/old.md", "notes/new.md")
    found = memory.search("Postgres")
    assert found.hits == ()
    (note,) = found.notes
    assert note == "left out, as it does not count: notes/old.md (superseded); ask for any state to get it"


def test_a_search_as_of_a_moment_gives_what_counted_then(memory: Memory) -> None:
    memory.set("notes/new.md", {"valid_from": "2026-03-01"})
    memory.supersede("notes/old.md", "notes/new.md", at="2026-03-01")
    memory.set("notes/third.md", {"expires": "2026-02-01"})
    assert sorted(paths(memory, as_of="2026-01-15")) == ["notes/old.md", "notes/third.md"]
    assert sorted(paths(memory, as_of="2026-02-15")) == ["notes/old.md"]
    assert sorted(paths(memory, as_of="2026-03-01T00:00:00Z")) == ["notes/new.md"]
    with pytest.raises(Usage, match="is no moment"):
        memory.search("use", as_of="yesterday")


def test_conditions_count_before_the_limit(memory: Memory) -> None:
    memory.set("notes/old.md", {"source": {"type": "user"}, "confirmed": "2020-01-01T00:00:00Z"})
    memory.set("notes/new.md", {"source": {"type": "bootstrapped"}})
    assert paths(memory, where=["source.type=user"], limit=1) == ["notes/old.md"]
    assert paths(memory, where=["confidence>0.9"], limit=1) == ["notes/new.md"]
    assert paths(memory, where=["confidence<0.1"], limit=1) == ["notes/old.md"]
    memory.supersede("notes/old.md", "notes/new.md")
    assert paths(memory, where=["state=superseded"], any_state=True) == ["notes/old.md"]
    assert [each.path for each in memory.ls(where=["state=superseded"])] == ["notes/old.md"]
    assert sorted(each.path for each in memory.ls(where=["state=live"])) == ["notes/new.md", "notes/third.md"]


def test_what_is_shared_counts_by_its_own_fields(tmp_path: Path) -> None:
    root = mdmem.init(tmp_path / "memories").root
    shared = mdmem.open(root, mdmem.Scope(shared=True))
    shared.write("notes/db.md", "We use Postgres.\n")
    shared.write("notes/new.md", "We use SQLite.\n")
    own = mdmem.open(root, mdmem.Scope(user="alice", project="demo"))
    own.write("notes/mine.md", "We use files.\n")
    assert sorted(paths(own)) == ["notes/mine.md", "shared:notes/db.md", "shared:notes/new.md"]
    shared.supersede("notes/db.md", "notes/new.md")
    own.supersede("notes/mine.md", "shared:notes/new.md")
    assert paths(own) == ["shared:notes/new.md"]


def test_a_context_holds_what_counts(memory: Memory) -> None:
    memory.preferences.set("ui", "theme", "dark")
    memory.set("notes/old.md", {"tier": "pinned"})
    assert {"Postgres", "dark"} <= set(memory.context("use").text.replace(".", " ").replace('"', " ").split())
    memory.supersede("notes/old.md", "notes/new.md")
    memory.set("preferences/ui/theme.md", {"expires": "2020-01-01"})
    text = memory.context("use").text
    assert "SQLite" in text
    assert "Postgres" not in text
    assert "dark" not in text


def test_a_new_memory_supersedes_an_old_one_in_one_change(memory: Memory) -> None:
    memory.write("notes/first.md", "first\n")
    memory.write("notes/second.md", "second\n", supersedes="notes/first.md")

    assert memory.states()["notes/first.md"] == "superseded"
    memory.undo()
    assert not memory.exists("notes/second.md")
    assert memory.show("notes/first.md").text == "first\n"


@pytest.mark.parametrize("old", ["notes/second.md", "notes/nowhere.md"])
def test_what_a_new_memory_cannot_supersede_is_refused_and_nothing_is_written(
    memory: Memory, old: str
) -> None:
    with pytest.raises((Usage, MemoryNotFound)):
        memory.write("notes/second.md", "second\n", supersedes=old)
    assert not memory.exists("notes/second.md")


def test_check_finds_what_ends_before_it_begins_and_a_tier_that_nobody_knows(memory: Memory) -> None:
    memory.write("notes/a.md", "---\nvalid_from: 2026-02-01\nvalid_to: 2026-01-01\ntier: hot\n---\n")
    memory.write("notes/b.md", "---\nvalid_from: 2026-01-01\nvalid_to: 2026-02-01\ntier: pinned\n---\n")

    findings = memory.check(["notes/a.md", "notes/b.md"])
    found = [(each.path, each.code, each.severity, each.position[0]) for each in findings]
    assert found == [
        ("notes/a.md", "ends-before-it-begins", "warning", 3),
        ("notes/a.md", "unknown-tier", "warning", 4),
    ]


def supersede(root: str, name: str) -> None:
    mdmem.open(root).supersede("notes/one.md", f"notes/{name}.md")


def test_of_two_processes_that_supersede_one_memory_one_wins(memory: Memory) -> None:
    for name in ("one", "x", "y"):
        memory.write(f"notes/{name}.md", f"{name}\n")
    codes = run_at_once(*(partial(supersede, memory.root, name) for name in "xy"))

    assert sorted(codes) == [0, 1]
    assert memory.show("notes/one.md").fields["superseded_by"] == f"notes/{'xy'[codes.index(0)]}.md"


@pytest.mark.parametrize("is_after", [False, True])
def test_what_is_superseded_meanwhile_is_refused(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, *, is_after: bool
) -> None:
    for name in ("one", "x", "y"):
        memory.write(f"notes/{name}.md", f"{name}\n")
    look, left = memory._view, ["x"]

    def look_while_another_writes() -> Any:
        seen = look() if is_after else None
        while left:
            supersede(memory.vault.root, left.pop())
        return seen or look()

    monkeypatch.setattr(memory, "_view", look_while_another_writes)
    with pytest.raises(MdmemError):
        memory.supersede("notes/one.md", "notes/y.md")
    assert memory.show("notes/one.md").fields["superseded_by"] == "notes/x.md"
