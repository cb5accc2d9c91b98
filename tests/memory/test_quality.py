"""Quality: what each dimension says of a memory, and what is not known of it."""

from __future__ import annotations

from typing import Any

import pytest

import mdmem
from mdmem import Memory
from mdmem.errors import ConfigInvalid, Usage
from mdmem.memory.quality import DIMENSIONS, Evidence, judge_memory
from mdmem.vault.config import QualitySettings, parse
from tests.tables import cases

WEIGHTS = QualitySettings()._asdict()
TRUE = {"source": {"type": "user"}}


def values(**known: Any) -> dict[str, float | None]:
    judged = judge_memory(Evidence(path="notes/a.md", **{"fields": {}, **known}), WEIGHTS)
    return {each.name: each.value for each in judged.dimensions}


def test_the_weights_are_those_of_all_dimensions() -> None:
    assert tuple(WEIGHTS) == tuple(DIMENSIONS)
    assert sum(WEIGHTS.values()) == 100


@cases(
    "known, dimension, expected",
    [
        ({}, "accuracy", None),
        ({"confidence": 0.7}, "accuracy", 0.7),
        ({"title": "A", "day": "2026-01-01", "fields": TRUE}, "completeness", 1.0),
        ({"title": "A"}, "completeness", 1 / 3),
        ({"title": "A", "day": "2026-01-01", "fields": TRUE, "links": [False] * 4}, "completeness", 3 / 4),
        ({}, "consistency", 1.0),
        ({"repeats": ["notes/b.md"]}, "consistency", 0.5),
        ({"against": ["notes/b.md"]}, "consistency", 0.0),
        ({}, "timeliness", None),
        ({"state": "expired"}, "timeliness", 0.0),
        ({"fields": {"valid_to": "2999-01-01"}}, "timeliness", 1.0),
        ({"citations": [True, True, True, False]}, "timeliness", 0.75),
        ({"day": "1999-01-01"}, "timeliness", None),
        ({}, "relevance", None),
        ({"uses": 0}, "relevance", 0.0),
        ({"uses": 3}, "relevance", 0.75),
    ],
)
def test_a_dimension_says_what_is_known(
    known: dict[str, Any], dimension: str, expected: float | None
) -> None:
    assert values(**known)[dimension] == (expected if expected is None else pytest.approx(expected))


def test_what_is_not_known_stays_out_of_the_mean() -> None:
    judged = judge_memory(
        Evidence(path="a", fields=TRUE, title="A", day="2026-01-01", confidence=0.9), WEIGHTS
    )
    assert judged.score == pytest.approx((0.9 * 30 + 20 + 20) / 70)
    assert all(each.terms for each in judged.dimensions if each.value is not None)


def test_weights_of_nothing_but_zero_give_no_score() -> None:
    assert judge_memory(Evidence(path="a", fields={}), dict.fromkeys(DIMENSIONS, 0)).score == 0


@pytest.fixture
def memory(tmp_path: Any) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


def test_a_true_note_is_good_however_short_and_in_whatever_language(memory: Memory) -> None:
    head = "---\ncreated: 2020-01-01\nsource: {type: bootstrapped}\n---\n"
    memory.write("notes/short.md", f"{head}# Port\n\nIt is 5432.\n")
    memory.write("notes/chinese.md", f"{head}# 端口\n\n端口是 5432。\n")
    memory.write("notes/long.md", f"{head}# Ports\n\n{'One port after the other is told here. ' * 200}\n")
    scores = {round(each.score, 6) for each in memory.quality()}
    assert len(scores) == 1
    assert scores.pop() > 0.9


def test_the_worst_come_first_and_a_bound_leaves_out_what_is_good(memory: Memory) -> None:
    memory.write("notes/good.md", "---\ncreated: 2026-01-01\nsource: {type: bootstrapped}\n---\n# Good\n")
    memory.write("notes/bad.md", "It links to [[nothing]].\n")
    assert [each.path for each in memory.quality()] == ["notes/bad.md", "notes/good.md"]
    assert [each.path for each in memory.quality(below=0.7)] == ["notes/bad.md"]
    assert [each.path for each in memory.quality(["notes/good.md"])] == ["notes/good.md"]


@cases("below", [-0.1, 1.1, float("nan")])
def test_a_bound_that_is_no_score_is_refused(memory: Memory, below: float) -> None:
    with pytest.raises(Usage, match="from 0 to 1"):
        memory.quality(below=below)


@cases("line", ["accuracy = -1", "accuracy = 101"])
def test_a_weight_that_cannot_be_is_refused(line: str) -> None:
    with pytest.raises(ConfigInvalid, match="quality"):
        parse(f"[quality]\n{line}\n")
