"""References of a vault in a real repository: what is pointed at, its state, and how that is kept true."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.diagnostic import as_json
from mdmem.errors import MemoryNotFound, PathRefused, Usage
from mdmem.index.links.graph import Triple
from tests.git.conftest import VaultTree, set_up
from tests.speed import soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory
    from mdmem.index.links.references import Reference

APP = '''"""What an order costs."""

RATE = 0.19


def total(prices):
    # sums up everything that one customer has bought
    return sum(prices)


class Cart:
    def add(self, item):
        self.items = [*self.items, item]
'''
DB = """---
title: Database
tags: [db, Storage]
aliases: [The store]
superseded_by: "[[new]]"
derived_from: [notes/load.md, nowhere]
related: see [x](load.md)
---
# Database

## Why it is one

One file. ^fact1
See [[new]], [[nothing]], ![[load]], [load](load.md#why), [[load#^none]] and [[#Database]].
`src/app.py#L6-L8`, src/app.py#total, `src/app.py#Cart`, `src/app.py#RATE`, [it](../../src/app.py#L3),
`src/app.py`, src/never.py:3, #DB #topic/sub https://example.org/x
"""
FILES = {
    "notes/db.md": DB,
    "notes/new.md": (
        "# New\n\n[[db#Database]] [b](db.md) [[db#^fact1]] <https://example.org/x>\n[[The store]]\n"
    ),
    "notes/load.md": "# Why\n\n[here](#why) [picture](plan.png) [code](../../src/app.py)\n",
}


class Workspace(VaultTree):
    """A repository with a vault in it, and code that memories cite."""

    def text(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    set_up(monkeypatch)
    work = Workspace(tmp_path)
    work.write("src/app.py", APP)
    for path, text in FILES.items():
        work.note(path, text)
    work.write("memories/notes/plan.png", "no picture")
    work.commit()
    return work


@pytest.fixture
def memory(work: Workspace) -> Memory:
    return work.memory


def told(references: tuple[Reference, ...]) -> list[tuple[str, str, str, int]]:
    return [(each.type, each.target, each.state, len(each.places)) for each in references]


def targets(references: tuple[Reference, ...]) -> list[str]:
    return [each.target for each in references]


# -------------------------------------------------------------------------------------------- what there is


def test_every_type_is_listed_with_its_state_in_order(memory: Memory) -> None:
    assert told(memory.references.list()) == [
        ("note", "notes/db.md", "ok", 2),
        ("note", "notes/load.md", "ok", 3),
        ("note", "notes/new.md", "ok", 2),
        ("note", "nothing", "dangling", 1),
        ("note", "nowhere", "dangling", 1),
        ("heading", "notes/db.md#Database", "ok", 2),
        ("heading", "notes/load.md#why", "ok", 2),
        ("block", "notes/db.md#^fact1", "ok", 1),
        ("block", "notes/load.md#^none", "dangling", 1),
        ("tag", "#DB", "ok", 2),
        ("tag", "#Storage", "ok", 1),
        ("tag", "#topic/sub", "ok", 1),
        ("url", "https://example.org/x", "ok", 2),
        ("file_path", "memories/notes/plan.png", "ok", 1),
        ("file_path", "src/app.py", "ok", 2),
        ("line_range", "src/app.py#L3", "unchanged", 1),
        ("line_range", "src/app.py#L6-L8", "unchanged", 1),
        ("line_range", "src/never.py#L3", "unknown", 1),
        ("function", "src/app.py#total", "unchanged", 1),
        ("class", "src/app.py#Cart", "unchanged", 1),
        ("variable", "src/app.py#RATE", "unchanged", 1),
    ]


def test_a_place_says_where_it_is_and_what_is_wrong(memory: Memory) -> None:
    (broken,) = memory.references.list(types=["block"], states=["dangling"])
    assert broken.places == (("notes/db.md", 14, "dangling", "notes/load.md has no block ^none"),)
    assert broken.memories == ("notes/db.md",)
    assert as_json(broken)["places"][0]["line"] == 14


def test_days_are_those_of_the_first_and_the_last_memory(work: Workspace) -> None:
    work.note("notes/2024-01-02.md", "https://example.org/y\n")
    work.note("notes/later.md", "---\ncreated: 2025-03-04\n---\nhttps://example.org/y\n")
    (found,) = work.memory.references.lookup("https://example.org/y")
    assert (found.first_seen, found.last_seen) == ("2024-01-02", "2025-03-04")


def test_types_states_and_paths_choose(memory: Memory) -> None:
    references = memory.references
    assert targets(references.list(types=["class", "variable"])) == ["src/app.py#Cart", "src/app.py#RATE"]
    assert targets(references.list(states=["dangling"])) == ["nothing", "nowhere", "notes/load.md#^none"]
    assert targets(references.list(paths=["notes/load.md"])) == [
        "notes/load.md#why",
        "memories/notes/plan.png",
        "src/app.py",
    ]
    assert references.list(paths=["notes"]) == references.list(paths=["notes/"]) == references.list()
    assert references.list(paths=[]) == ()
    assert told(references.list(types=["url"], paths=["notes/new.md"]))[0][3] == 1


@pytest.mark.parametrize("given", [{"types": ["nota"]}, {"states": ["ok", "fine"]}])
def test_a_type_or_state_that_there_is_not_is_refused(memory: Memory, given: dict[str, Any]) -> None:
    with pytest.raises(Usage, match="there is no"):
        memory.references.list(**given)
    with pytest.raises(Usage, match="there is no"):
        memory.references.lookup("db", **given)


@pytest.mark.parametrize("path", ["notes/nowhere.md", "nowhere", "note"])
def test_paths_that_name_nothing_are_not_found(memory: Memory, path: str) -> None:
    for ask in (memory.references.list, memory.plan.references.pin, memory.plan.references.fix):
        with pytest.raises(MemoryNotFound):
            ask(paths=[path])
    with pytest.raises(PathRefused):
        memory.references.list(paths=["../other"])


# ----------------------------------------------------------------------------------------------- looking up


@cases(
    "target, found",
    [
        ("notes/db.md", ["notes/db.md", "notes/db.md#Database", "notes/db.md#^fact1"]),
        ("notes/db", ["notes/db.md", "notes/db.md#Database", "notes/db.md#^fact1"]),
        ("db.md", ["notes/db.md", "notes/db.md#Database", "notes/db.md#^fact1"]),
        ("./notes/load.md", ["notes/load.md", "notes/load.md#why", "notes/load.md#^none"]),
        ("notes/db.md#database", ["notes/db.md#Database"]),
        ("db#Database", ["notes/db.md#Database"]),
        ("db#^fact1", ["notes/db.md#^fact1"]),
        ("The store", ["notes/db.md"]),
        ("nothing", ["nothing"]),
        ("#topic/sub", ["#topic/sub"]),
        ("Topic/Sub", ["#topic/sub"]),
        ("storage", ["#Storage"]),
        ("https://example.org/x", ["https://example.org/x"]),
        ("https://example.org", []),
        ("notes/plan.png", ["memories/notes/plan.png"]),
        ("total", ["src/app.py#total"]),
        ("app.py#Cart", ["src/app.py#Cart"]),
        ("src/app.py:6-8", ["src/app.py#L6-L8"]),
        ("src/app.py#l6-8", ["src/app.py#L6-L8"]),
        ("app.py:3", ["src/app.py#L3"]),
        ("pp.py", []),
        ("b", []),
        ("", []),
    ],
)
def test_a_target_is_found_by_its_whole_name_and_by_shorter_ones(
    memory: Memory, target: str, found: list[str]
) -> None:
    assert targets(memory.references.lookup(target)) == found


def test_a_file_is_found_with_all_that_is_cited_of_it(memory: Memory) -> None:
    found = targets(memory.references.lookup("src/app.py"))
    assert len(found) == 6
    assert {target.partition("#")[0] for target in found} == {"src/app.py"}
    assert targets(memory.references.lookup("src/app.py", types=["function"])) == ["src/app.py#total"]


def test_a_reference_that_is_written_in_several_ways_is_one(work: Workspace) -> None:
    work.note(
        "notes/ways.md", "src/app.py:3 and [it](../../src/app.py#L3) and `src/app.py#L3`\n#db #DB [[load]]\n"
    )
    (lines,) = work.memory.references.list(types=["line_range"], paths=["notes/ways.md"])
    (tag,) = work.memory.references.list(types=["tag"], paths=["notes/ways.md"])
    assert (lines.target, len(lines.places)) == ("src/app.py#L3", 3)
    assert (tag.target, len(tag.places)) == ("#DB", 2)


# --------------------------------------------------------------------------------- tags, numbers, backlinks


def test_tags_are_counted_by_memory_whatever_their_case(work: Workspace) -> None:
    work.note("notes/tagged.md", "#db #db #other\n")
    assert work.memory.references.tags() == (("DB", 2), ("other", 1), ("Storage", 1), ("topic/sub", 1))


def test_numbers_count_references_and_places(memory: Memory) -> None:
    stats = memory.references.stats()
    assert (stats.total, stats.places) == (21, 30)
    assert stats.by_type["line_range"] == 3
    assert stats.by_state == {"dangling": 3, "ok": 12, "unchanged": 5, "unknown": 1}
    assert stats.most_cited[0][1] == 3
    assert as_json(memory.references.stats(types=["class"])) == {
        "total": 1,
        "places": 1,
        "by_type": {"class": 1},
        "by_state": {"unchanged": 1},
        "most_cited": [{"target": "src/app.py#Cart", "count": 1}],
    }
    assert memory.references.stats(paths=[]).total == 0


def test_backlinks_come_from_links_of_every_kind(memory: Memory) -> None:
    assert [tuple(link) for link in memory.references.backlinks("notes/db.md")] == [
        ("notes/new.md", 3, "markdown", "", "b", False),
        ("notes/new.md", 3, "wikilink", "Database", "", False),
        ("notes/new.md", 3, "wikilink", "^fact1", "", False),
        ("notes/new.md", 4, "wikilink", "", "", False),
    ]
    assert [link.line for link in memory.references.backlinks("notes/new.md")] == [5, 14]
    with pytest.raises(MemoryNotFound):
        memory.references.backlinks("notes/nothing.md")


def test_an_ambiguous_link_is_a_backlink_of_all_that_it_may_mean(work: Workspace) -> None:
    work.note("a/twin.md", "# A\n")
    work.note("b/twin.md", "# B\n")
    work.note("notes/to.md", "[[twin]] [[b/twin]] [x](../b/twin.md)\n")
    references = work.memory.references
    assert [link.ambiguous for link in references.backlinks("a/twin.md")] == [True]
    assert [(link.kind, link.ambiguous) for link in references.backlinks("b/twin.md")] == [
        ("markdown", False),
        ("wikilink", False),
        ("wikilink", True),
    ]
    (place,) = references.lookup("twin", states=["ambiguous"])[0].places
    assert place.detail == "it may also mean b/twin.md"


def test_a_link_finds_its_target_when_that_appears(work: Workspace) -> None:
    assert work.memory.references.lookup("nothing")[0].state == "dangling"
    work.note("deep/nothing.md", "# There now\n")
    assert told(work.memory.references.lookup("nothing")) == [("note", "deep/nothing.md", "ok", 1)]


# ---------------------------------------------------------------------------------------- code that changes


@cases(
    "written",
    ["[[bad]]", "[[notes/bad#Part]]", "[x](bad)", "[x](/notes/bad#part)", "---\nderived_from: bad\n---\n"],
)
def test_a_link_to_a_file_that_cannot_be_read_leads_to_that_file(work: Workspace, written: str) -> None:
    work.note("notes/a.md", f"{written} [[elsewhere]]\n")
    (work.root / "memories/notes/bad.md").write_bytes(b"bad \xff\n")
    memory = work.memory
    found = memory.references.list(paths=["notes/a.md"], types=["note", "heading", "file_path"])
    assert [each[1:3] for each in told(found)] == [("elsewhere", "dangling"), ("notes/bad.md", "ok")]
    for findings in (memory.check(["notes/a.md"]), [f for f in memory.doctor().findings if "a.md" in f.path]):
        assert [each.message for each in findings] == ["there is no memory 'elsewhere'"]
    (work.root / "memories/notes/bad.md").unlink()
    assert [each.code for each in memory.check(["notes/a.md"])] == ["dangling-link"] * 2


def test_what_is_stale_says_where_it_is_now(work: Workspace) -> None:
    assert work.memory.references.stale() == ()
    work.write("src/app.py", "import os\n\n" + APP.replace("0.19", "0.2"))
    stale = {each.target: each.places[0] for each in work.memory.references.stale()}
    assert stale.keys() == {
        "src/app.py#L3",
        "src/app.py#L6-L8",
        "src/app.py#RATE",
    }
    assert (stale["src/app.py#L6-L8"].state, stale["src/app.py#L6-L8"].detail) == (
        "moved",
        "moved to src/app.py#L8-L10",
    )
    assert {stale[target].state for target in ("src/app.py#L3", "src/app.py#RATE")} == {"changed"}
    assert work.memory.references.stale(paths=["notes/load.md"]) == ()


def test_what_is_stale_is_what_was_there_and_what_changed_comes_first(work: Workspace) -> None:
    work.write("src/index.py", "# nobody but the index has seen this\n")
    names = "`src/app.py`, `src/index.py`, `render.js`, `docs/plan.py#L1-L4`, `a.py#b`"
    work.note("notes/names.md", f"{names}\n")
    work.memory.sync()
    changed = APP.replace("0.19", "0.2").replace("class Cart", "class Box")
    work.write("src/app.py", f"import os\n\n{changed}")
    (work.root / "src/index.py").unlink()
    memory = work.memory
    assert [(each.state, each.target) for each in memory.references.stale()] == [
        ("changed", "src/app.py#L3"),
        ("changed", "src/app.py#RATE"),
        ("moved", "src/app.py#L6-L8"),
        ("gone", "src/index.py"),
        ("gone", "src/app.py#Cart"),
    ]
    assert memory.references.list(stale=True) == memory.references.stale()
    assert [each.state for each in memory.references.lookup("index.py", stale=True)] == ["gone"]
    assert [found.code for found in memory.check(["notes/names.md"])] == ["citation-gone"]
    unknown = [each.target for each in memory.references.list(states=["unknown"], paths=["notes/names.md"])]
    assert unknown == ["render.js", "docs/plan.py#L1-L4", "a.py#b"]


def test_check_names_what_a_cited_file_never_had(work: Workspace) -> None:
    """Of a file that is not there it says so where only code can be meant."""
    cited = "`src/app.py#nowhere`, `src/app.py#L900`, `src/app.py#RATE`, `src/none.py#x`, `src/app.py#L0`"
    excused = "`none.py#x`, `src/none.py`, `../app/none.py#x`, `library/db:16`, `docs/none.md#L2`"
    work.note("notes/names.md", f"{cited}, `src/none.py#L2`, {excused}\n")
    found = [(each.code, each.severity, each.rule) for each in work.memory.check(["notes/names.md"])]
    unknown = ["src/app.py#nowhere", "src/app.py#L900", "src/none.py#x", "src/app.py#L0", "src/none.py#L2"]
    assert found == [("citation-unknown", "note", target) for target in unknown]
    broken = work.memory.references.broken(["notes/names.md"], [])
    assert [each.target for each in broken] == unknown


def test_of_a_guest_a_file_that_never_was_is_not_told(work: Workspace) -> None:
    work.write("memories/.mdmem/config.toml", '[check]\nguests = ["notes/guest.md"]\n')
    work.note("notes/guest.md", "`src/none.py#x`\n")
    assert work.memory.check(["notes/guest.md"]) == []
    assert work.memory.references.broken(["notes/guest.md"], []) == ()


def test_what_moved_is_cited_where_it_is_now_and_nothing_else_changes(work: Workspace) -> None:
    work.git("mv", "src", "lib")
    work.write("lib/app.py", "import os\n\n" + APP)
    work.commit()
    plan = work.memory.plan.references.fix(["notes/db.md"])
    assert plan.paths == ("notes/db.md",)
    assert work.text("memories/notes/db.md") == DB
    work.memory.references.fix()
    assert work.text("memories/notes/db.md") == DB.replace("src/app.py", "lib/app.py").replace(
        "#L6-L8", "#L8-L10"
    ).replace("app.py#L3", "app.py#L5")
    assert work.text("memories/notes/load.md") == FILES["notes/load.md"].replace("src", "lib")
    work.commit()
    assert work.memory.references.stale() == ()
    assert not work.memory.plan.references.fix().changes


def test_a_method_follows_the_class_that_was_renamed(work: Workspace) -> None:
    work.note("notes/method.md", "`src/app.py#Cart.add` adds.\n")
    work.commit()
    work.write("src/app.py", APP.replace("class Cart", "class Basket"))
    work.commit()
    (found,) = work.memory.references.lookup("src/app.py#Cart.add")
    assert found.places[0].detail == "moved to src/app.py#Basket.add"
    work.memory.references.fix(["notes/method.md"])
    assert work.text("memories/notes/method.md") == "`src/app.py#Basket.add` adds.\n"


def test_a_pin_keeps_what_was_cited_and_is_renewed_when_somebody_accepts(work: Workspace) -> None:
    work.memory.references.pin(["notes/db.md"])
    pinned = work.text("memories/notes/db.md")
    assert pinned.count("<!-- pin ") == 5
    assert not work.memory.plan.references.pin(["notes/db.md"]).changes
    work.write("src/app.py", APP.replace("return sum(prices)", "return sum(prices) * RATE"))
    work.commit()
    changed = {"src/app.py#L6-L8", "src/app.py#total"}
    assert set(targets(work.memory.references.list(states=["changed"]))) == changed
    assert not work.memory.plan.references.pin(["notes/db.md"]).changes
    work.memory.references.pin(["notes/db.md"], accept=True)
    assert work.text("memories/notes/db.md").count("<!-- pin ") == 5
    assert work.text("memories/notes/db.md") != pinned
    assert work.memory.references.list(states=["changed"]) == ()


# ---------------------------------------------------------------------------------------------------- graph


def test_the_graph_joins_memories_files_and_tags(memory: Memory) -> None:
    db, load, new = "notes/db.md", "notes/load.md", "notes/new.md"
    assert memory.references.graph() == (
        Triple(db, "cites", "src/app.py"),
        Triple(db, "cites", "src/never.py"),
        Triple(db, "derived_from", load),
        Triple(db, "derived_from", "nowhere"),
        Triple(db, "embeds", load),
        Triple(db, "links to", load),
        Triple(db, "links to", new),
        Triple(db, "links to", "nothing"),
        Triple(db, "related", load),
        Triple(db, "superseded_by", new),
        Triple(db, "tagged", "#DB"),
        Triple(db, "tagged", "#Storage"),
        Triple(db, "tagged", "#topic/sub"),
        Triple(load, "cites", "memories/notes/plan.png"),
        Triple(load, "cites", "src/app.py"),
        Triple(new, "links to", db),
    )


def test_the_graph_of_a_folder_has_its_memories_as_subjects(work: Workspace) -> None:
    work.note("other/o.md", "[[db]] #DB\n")
    work.note("other/o.json", '{"$schema": "memory", "superseded_by": "o", "text": "[[db]]"}')
    assert work.memory.references.graph("other") == (
        Triple("other/o.json", "superseded_by", "other/o.md"),
        Triple("other/o.md", "links to", "notes/db.md"),
        Triple("other/o.md", "tagged", "#DB"),
    )
    with pytest.raises(MemoryNotFound):
        work.memory.references.graph("othe")


def test_a_namespace_is_a_wall_for_references(work: Workspace) -> None:
    alice = mdmem.open(work.root / "memories", scope=mdmem.Scope(user="alice"))
    alice.write("notes/mine.md", "[[db]] [x](../../../notes/db.md) [y](../../bob/secret.md) #mine\n")
    bob = mdmem.open(work.root / "memories", scope=mdmem.Scope(user="bob"))
    bob.write("secret.md", "[[mine]] #his\n")
    assert {each.state for each in alice.references.list(types=["note", "file_path"])} == {"dangling"}
    assert alice.references.tags() == (("mine", 1),)
    assert alice.references.backlinks("notes/mine.md") == ()
    assert {triple.subject for triple in alice.references.graph()} == {"notes/mine.md"}


def test_nothing_tells_whether_a_file_of_another_namespace_is_there(work: Workspace) -> None:
    alice = mdmem.open(work.root / "memories", scope=mdmem.Scope(user="alice"))
    cited = ("memories/users/bob/x.py", "../../bob/x.py", "users/bob/x.py", "../bob/../../bob/x.py")
    lines = [f"`{path}#L1` [a]({path}#L1) [b]({path}) `{path}`" for path in cited]
    alice.write("notes/mine.md", "\n".join(lines))

    def seen() -> tuple[object, ...]:
        return alice.references.list(), alice.references.graph(), alice.references.stats()

    before = seen()
    work.write("memories/users/bob/x.py", "secret = 1\n")
    assert seen() == before
    work.commit()
    assert seen() == before
    (work.root / "memories/users/bob/x.py").unlink()
    work.commit()
    assert seen() == before


# --------------------------------------------------------------------------------------------------- lineage


@cases(
    "written, kind",
    [
        ("notes/load.md", "ok"),
        ("./load.md", "ok"),
        ("load", "ok"),
        ("[[load]]", "ok"),
        ("L-1", "ok"),
        ("no", "bad"),
    ],
)
@pytest.mark.parametrize("field", ["superseded_by", "derived_from"])
def test_lineage_is_a_link_like_any_other(work: Workspace, field: str, written: str, kind: str) -> None:
    work.note("notes/load.md", "---\nid: L-1\n---\n")
    work.note("notes/l.md", f'---\n{field}: "{written}"\n---\n')
    work.note("notes/d.json", json.dumps({field: ["", None, written]}))
    both = {"notes/l.md", "notes/d.json"} if not written.startswith("[[") else {"notes/l.md"}
    memory = work.memory

    assert {link.path for link in memory.references.backlinks("notes/load.md")} & both == (
        both if kind == "ok" else set()
    )
    found = {f.path for f in memory.check(["notes/l.md", "notes/d.json"]) if f.code == "dangling-link"}
    assert both & found == (set() if kind == "ok" else both)
    told = {f.path for f in memory.doctor().findings if f.code == "dangling-link"}
    assert both & told == (set() if kind == "ok" else both)


@pytest.mark.parametrize("count", soak_most([1, 2, 3, 60, 1000], quick=(0, 1, 3)))
@pytest.mark.parametrize("field", ["superseded_by", "derived_from"])
def test_lineage_that_goes_round_is_told_once(work: Workspace, field: str, count: int) -> None:
    for number in range(count):
        work.note(f"round/n{number:04}.md", f"---\n{field}: n{(number + 1) % count:04}\n---\n")
    work.note("round/before.md", f"---\n{field}: n0000\n---\n")
    memory = work.memory

    (found,) = (f for f in memory.check() if f.code == "lineage-circle")
    assert found in memory.doctor().findings
    assert (found.path, found.position.line, found.severity) == ("round/n0000.md", 2, "warning")
    assert len(found.message) < 200
    last = f"round/n{count - 1:04}.md"
    assert [f.path for f in memory.check([last])] == [last]
    assert memory.check(["round/before.md"]) == []


def test_lineage_may_name_a_file_of_the_workspace(work: Workspace) -> None:
    work.note(
        "notes/f.md", "---\nderived_from: [src/app.py, ../../src/app.py, 'https://a.org/b', src/no.py]\n---\n"
    )

    (found,) = work.memory.check(["notes/f.md"])

    assert (found.code, found.message) == ("dangling-link", "`derived_from`: there is no memory 'src/no.py'")


# ----------------------------------------------------------------------------------------- after a merge


def merge_move(work: Workspace) -> None:
    """Move and change a memory on a branch, change it and link to it on the other one, and merge both."""
    work.git("checkout", "--quiet", "-b", "other")
    work.git("mv", "memories/notes/load.md", "memories/notes/burden.md")
    work.commit()
    work.note("notes/burden.md", "First of all.\n\n" + FILES["notes/load.md"])
    work.commit()
    work.git("checkout", "--quiet", "-")
    work.note("notes/load.md", FILES["notes/load.md"] + "\n- one more fact\n")
    work.note("notes/more.md", "See [[load]] and [it](load.md).\n")
    work.commit()
    work.memory.sync()
    work.git("merge", "--quiet", "--no-edit", "other")


def test_links_follow_what_a_merge_moved_and_changed(work: Workspace) -> None:
    merge_move(work)
    assert "one more fact" in work.text("memories/notes/burden.md")
    found = work.memory.check(["notes/more.md"])
    assert [each.hint for each in found] == ["it has moved to notes/burden.md: `mdmem doctor --fix`"] * 2
    work.memory.doctor(fix=True)
    assert work.text("memories/notes/more.md") == "See [[burden]] and [it](burden.md).\n"


def test_links_follow_no_move_that_was_made_before_the_name_was_taken_again(work: Workspace) -> None:
    merge_move(work)
    work.note("notes/load.md", "Another one.\n")
    work.commit()
    work.memory.sync()
    (work.root / "memories/notes/load.md").unlink()
    gone = ["notes/load.md is gone: bring it back, or remove the link"] * 2
    assert [each.hint for each in work.memory.check(["notes/more.md"])] == gone
    work.commit()
    assert [each.hint for each in work.memory.check(["notes/more.md"])] == gone
