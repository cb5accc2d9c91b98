"""Upkeep: what is proposed for deletion, and what a revoked source leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import mdmem
from mdmem import Memory
from mdmem.errors import Usage
from tests.tables import cases


def new_memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return new_memory(tmp_path)


def proposed(memory: Memory) -> list[tuple[str, str]]:
    return [(each.verb, str(each.arguments["path"])) for each in memory.inbox.list()]


OLD = "updated: 2001-01-01\n"


@cases(
    "fields, expected",
    [
        (f"source: {{type: agent}}\n{OLD}", True),
        (f"source: {{type: user, explicit: true}}\n{OLD}", True),
        (f"source: {{type: bootstrapped}}\n{OLD}", False),
        (f"source: {{type: agent}}\ntier: pinned\n{OLD}", False),
        ("source: {type: agent}\nupdated: 2999-01-01\n", False),
        (f"confidence: 0.1\n{OLD}", False),
        (f"source: {{type: agent}}\nconfirmed: 2999-01-01\n{OLD}", False),
    ],
)
def test_what_is_hardly_sure_and_names_a_type_of_source_is_proposed_for_deletion(
    tmp_path: Path, fields: str, expected: bool
) -> None:
    memory = new_memory(tmp_path)
    memory.write("notes/a.md", f"---\n{fields}---\nThe port is 1.\n")
    memory.prune()

    assert proposed(memory) == ([("rm", "notes/a.md")] if expected else [])
    assert memory.exists("notes/a.md")


def test_what_something_links_to_is_not_proposed(memory: Memory) -> None:
    memory.write("notes/a.md", f"---\nsource: {{type: agent}}\n{OLD}---\nThe port is 1.\n")
    memory.write("notes/b.md", "See [[a]].\n")
    memory.prune()

    assert proposed(memory) == []


def test_a_deletion_waits_until_it_is_accepted_and_is_proposed_once(memory: Memory) -> None:
    memory.write("notes/a.md", f"---\nsource: {{type: agent}}\n{OLD}---\nThe port is 1.\n")
    memory.prune()
    assert memory.prune().files == ()
    (waiting,) = memory.inbox.list()
    assert "0.0" in waiting.reason
    memory.inbox.accept(waiting.id)

    assert not memory.exists("notes/a.md")


def test_what_was_rejected_is_not_proposed_again(memory: Memory) -> None:
    memory.write("notes/a.md", f"---\nsource: {{type: agent}}\n{OLD}---\nThe port is 1.\n")
    memory.prune()
    memory.inbox.reject(memory.inbox.list()[0].id)
    memory.prune()

    assert proposed(memory) == []


def test_what_the_inbox_has_no_room_for_is_named(memory: Memory) -> None:
    Path(memory.root, ".mdmem/config.toml").write_text("[capture]\nmax_open = 2\n")
    memory = mdmem.open(memory.root)
    for name in "abc":
        memory.write(f"notes/{name}.md", f"---\nsource: {{type: agent}}\n{OLD}---\nThe port is 1.\n")
    applied = memory.prune()

    assert len(memory.inbox.list()) == 2
    assert [each.split(":")[0] for each in applied.plan.left_out[:1]] == ["notes/c.md"]


def test_a_source_is_taken_out_of_fifty_bullets_and_proposals_take_the_rest(memory: Memory) -> None:
    further = ["" if n % 3 else " sessions/t9#1" for n in range(50)]
    bullets = [f"- Part {n} uses port {n}. (sessions/t{n % 2}#{n}{further[n]})" for n in range(50)]
    text = "---\n# kept\ntitle: Ports\n---\r\n# Ports\r\n\r\n" + "\r\n".join(bullets) + "\r\n"
    memory.write("notes/ports.md", text)
    memory.revoke("sessions/t1")

    left = memory.show("notes/ports.md").text
    shared = [line for n, line in enumerate(bullets) if n % 2 and n % 3 == 0]
    expected = text
    for line in shared:
        expected = expected.replace(line, line.partition("(")[0] + "(sessions/t9#1)")
    assert left == expected
    alone = [line for n, line in enumerate(bullets) if n % 2 and n % 3]
    assert len(memory.inbox.list()) == len(alone)
    for each in memory.inbox.list():
        memory.inbox.accept(each.id)
    for line in alone:
        expected = expected.replace(f"\r\n{line}", "", 1)
    assert memory.show("notes/ports.md").text == expected


@cases(
    "fields, source, left",
    [
        ("source: {type: user, ids: [m1, m2]}", "m1", "source: {type: user, ids: [m2]}"),
        ("source: {type: user, ids: [m1]}", "m1", None),
        ("source: {type: user, ids: [sessions/t1#1, sessions/t10#1]}", "sessions/t1", "[sessions/t10#1]"),
        ("source: {type: user, ids: [sessions/t1#1, sessions/t1#2]}", "sessions/t1#2", "[sessions/t1#1]"),
        ("source: https://a.example/x", "https://a.example/x", None),
        ("derived_from: [notes/z.md, notes/y.md]", "notes/z.md", "derived_from: [notes/y.md]"),
        ('derived_from: ["[[z]]", "[[y]]"]', "notes/z.md", 'derived_from: ["[[y]]"]'),
        ("derived_from: notes/z.md", "notes/z.md", None),
    ],
)
def test_a_field_loses_a_source_if_it_has_others_and_else_the_memory_is_proposed_for_deletion(
    tmp_path: Path, fields: str, source: str, left: str | None
) -> None:
    memory = new_memory(tmp_path)
    memory.write("notes/y.md", "y\n")
    memory.write("notes/z.md", "z\n")
    text = f"---\n{fields}\n---\nThe port is 1.\n"
    memory.write("notes/a.md", text)
    memory.revoke(source)

    after = memory.show("notes/a.md").text
    if left is None:
        assert after == text
        assert proposed(memory) == [("rm", "notes/a.md")]
    else:
        assert left in after
        assert proposed(memory) == []


def test_a_memory_whose_bullets_have_other_sources_only_loses_the_field(memory: Memory) -> None:
    memory.write("notes/a.md", "---\nsource: {type: user, ids: [m1]}\n---\n- It is so. (sessions/t1#1)\n")
    memory.revoke("m1")

    assert "m1" not in memory.show("notes/a.md").text
    assert proposed(memory) == []


def test_a_url_at_the_end_of_a_bullet_is_a_source(memory: Memory) -> None:
    memory.write(
        "notes/a.md", "- It is so. (https://a.example/x sessions/t1#1)\n- Or so. (https://a.example/x)\n"
    )
    memory.revoke("https://a.example/x")

    assert memory.show("notes/a.md").text.startswith("- It is so. (sessions/t1#1)\n- Or so.")
    assert proposed(memory) == [("replace", "notes/a.md")]


@pytest.mark.parametrize("source", ["", "sessions/t", "m", "notes/nowhere.md"])
def test_a_source_that_nothing_names_is_refused_and_nothing_is_written(memory: Memory, source: str) -> None:
    memory.write("notes/a.md", "---\nsource: {type: user, ids: [m1, sessions/t1#1]}\n---\nx sessions/t m\n")
    with pytest.raises(Usage, match="no memory names the source"):
        memory.revoke(source)
    assert proposed(memory) == []


def test_revoking_is_one_change_that_undo_takes_back(memory: Memory) -> None:
    text = "- It is so. (sessions/t1#1)\n- Or so. (sessions/t1#1 sessions/t2#1)\n"
    memory.write("notes/a.md", text)
    memory.revoke("sessions/t1")
    memory.undo()

    assert memory.show("notes/a.md").text == text
    assert proposed(memory) == []
