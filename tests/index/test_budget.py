"""Budgets keep whole passages, in order, and count what they leave out."""

from __future__ import annotations

from hypothesis import given, strategies as st

from mdmem.index.budget import tokens_of, within_budget
from mdmem.index.hit import Hit
from mdmem.index.search import Results

HITS = st.lists(
    st.builds(
        Hit,
        path=st.just("notes/a.md"),
        line=st.integers(1, 99),
        heading=st.just(("One",)),
        text=st.text(max_size=80),
        before=st.lists(st.text(max_size=40), max_size=3).map(tuple),
    ),
    max_size=8,
).map(tuple)


@given(hits=HITS, left_out=st.integers(0, 5), tokens=st.integers(0, 200))
def test_a_budget_is_never_passed_and_nothing_is_left_out_in_silence(
    hits: tuple[Hit, ...], left_out: int, tokens: int
) -> None:
    kept = within_budget(Results(hits=hits, left_out=left_out), tokens)
    assert sum(map(tokens_of, kept.hits)) <= tokens
    assert kept.left_out == left_out + len(hits) - len(kept.hits)
    assert kept.left_out_tokens + sum(map(tokens_of, kept.hits)) == sum(map(tokens_of, hits))
    if kept.hits:
        assert kept.hits[-1].left_out == kept.left_out


@given(hits=HITS)
def test_a_budget_that_is_large_enough_changes_nothing(hits: tuple[Hit, ...]) -> None:
    assert within_budget(Results(hits=hits), sum(map(tokens_of, hits))).hits == hits


def test_a_passage_that_does_not_fit_leaves_its_room_to_a_later_one() -> None:
    long = Hit(path="a.md", line=1, heading=(), text="word " * 200)
    short = Hit(path="b.md", line=1, heading=(), text="word")
    kept = within_budget(Results(hits=(long, short)), tokens_of(short))
    assert [hit.path for hit in kept.hits] == ["b.md"]
    assert kept.left_out_tokens == tokens_of(long)
