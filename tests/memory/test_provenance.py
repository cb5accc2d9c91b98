"""How sure a memory is today, and why: the cases of aster's provenance, without its bugs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import mdmem
from mdmem import Memory
from mdmem.errors import MemoryNotFound
from mdmem.memory import provenance
from tests.tables import cases

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


def today(days: int, half_life: float = 30, path: str = "notes/a.md", **fields: Any) -> float | None:
    day = f"{NOW - timedelta(days=days):%Y-%m-%d}"
    return provenance.today(path, fields, day, NOW, half_life)


USER = {"type": "user", "ids": ["m1"]}


@cases(
    "days, fields, wanted",
    [
        (0, {"source": USER}, 0.70),
        (30, {"source": USER}, 0.35),
        (30, {"source": {"type": "bootstrapped"}}, 0.95),
        (30, {"source": USER, "tier": "pinned"}, 0.70),
        (0, {"source": {"type": "user", "ids": ["m1", "m2", "m3"]}}, 0.80),
        (0, {"source": {"type": "conversation", "ids": ["sessions/t1#1", "sessions/t1#2"]}}, 0.70),
        (60, {"source": USER, "updated": "2026-04-01"}, 0.35),
        (60, {"source": USER, "updated": "2026-01-01", "confirmed": "2026-05-01"}, 0.70),
        (60, {"source": USER, "confirmed": "2999-01-01"}, 0.70),
        (30, {"confidence": 0.5}, 0.25),
        (30, {}, None),
    ],
)
def test_confidence_fades_since_a_memory_was_confirmed(
    days: int, fields: dict[str, Any], wanted: float | None
) -> None:
    found = today(days, **fields)
    assert found == (wanted if wanted is None else pytest.approx(wanted))


def test_confidence_lasts_in_preferences_rules_and_project_memory_and_without_a_half_life() -> None:
    for path in ("preferences/ui/theme.md", "rules/python.md", "AGENTS.md", "users/a/rules/x.md"):
        assert today(90, path=path, source=USER) == 0.70
    assert today(90, half_life=0, source=USER) == 0.70


def test_why_names_each_term_and_what_a_memory_rests_on(memory: Memory) -> None:
    memory.write("base.md", "base\n")
    memory.write(
        "a.md",
        "---\nsource: {type: user, ids: [sessions/t1#1, sessions/t2#1]}\nderived_from: [base]\n"
        "created: 2020-01-01\n---\n- 2026-01-01: Use SQLite. (sessions/t1#3 sessions/t4#1)\n- Plain.\n\n"
        "# More\n\n- Other. (sessions/t9#1)\n",
    )
    memory.write("b.md", "b\n")
    memory.write("old.md", "old\n")
    memory.supersede("old.md", "a.md")
    memory.contradict("a.md", "b.md", at="2999-01-01")
    why = memory.why("a.md")
    assert [(term.of, round(term.value, 2)) for term in why.terms] == [
        ("source user", 0.7),
        ("1 further source", 0.05),
        ("1 contradiction", -0.15),
    ]
    assert why.confidence == pytest.approx(0.60)
    assert why.today is not None
    assert why.today < 0.01
    assert (why.state, why.successor, why.predecessors) == ("live", "", ("old.md",))
    assert (why.ancestors, why.contradicted_by) == (("base.md",), ("b.md",))
    assert [(each.text, each.sources) for each in why.bullets] == [
        ("Use SQLite.", ("sessions/t1#3", "sessions/t4#1")),
        ("Other.", ("sessions/t9#1",)),
    ]
    assert memory.why("old.md").successor == "a.md"
    assert memory.why("old.md").state == "superseded"
    assert memory.why("b.md").confidence is None
    with pytest.raises(MemoryNotFound):
        memory.why("nowhere.md")
