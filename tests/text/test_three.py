"""Three versions of a thing, and the order of what stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.text.three import Three, complete, merged_order, placed

KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@pytest.mark.parametrize(
    ("versions", "agreed"),
    [("aaa", "a"), ("aba", "b"), ("aab", "b"), ("abb", "b"), ("abc", None)],
)
def test_what_at_most_one_side_changed_or_both_did_equally_is_agreed(
    versions: str, agreed: str | None
) -> None:
    assert Three(*versions).agreed() == (agreed and (agreed,))


def test_that_both_agree_on_nothing_is_an_agreement() -> None:
    assert Three("a", None, None).agreed() == (None,)


def test_each_is_taken_alone_or_with_its_partner() -> None:
    three = Three(1, 2, 3)
    assert three.map(str) == Three("1", "2", "3")
    assert three.paired(Three("a", "b", "c"), lambda number, text: text * number) == Three("a", "bb", "ccc")


def test_three_are_complete_when_none_is_missing() -> None:
    assert complete(Three(0, "", ())) == (0, "", ())
    assert complete(Three(1, None, 1)) is None


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "order"),
    [
        ("ab", "axb", "ayb", "ayxb"),
        ("ab", "abx", "yab", "yabx"),
        ("abc", "cab", "abyc", "caby"),
        ("abc", "cab", "abc", "cab"),
        ("abc", "cab", "acb", None),
        ("abc", "a", "c", "ca"),
    ],
)
def test_a_side_that_moved_keys_gives_the_order(base: str, ours: str, theirs: str, order: str | None) -> None:
    found = merged_order(Three(list(base), list(ours), list(theirs)))
    assert (found and "".join(found)) == order


@settings(max_examples=200)
@given(KEYS, KEYS, KEYS)
def test_every_key_of_both_sides_is_there_once(base: list[str], ours: list[str], theirs: list[str]) -> None:
    order = merged_order(Three(base, ours, theirs))
    if order is not None:
        assert sorted(order) == sorted({*ours, *theirs})
    assert sorted(placed(theirs, ours)) == sorted({*ours, *theirs})
    assert [key for key in placed(theirs, ours) if key in theirs] == theirs
