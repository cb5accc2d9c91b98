"""Paths into a parsed value."""

from __future__ import annotations

from hypothesis import given, strategies as st

from mdmem.text import json_tree
from mdmem.text.tree import Node, dotted, undotted

TEXT = '{"a": {"b.c": [10, {"d": 1}]}, "x": 1, "x": 2, "0": "zero"}'


def tree() -> Node:
    node = json_tree.parse(TEXT, max_depth=8).node
    assert node is not None
    return node


def test_find_follows_keys_and_indices() -> None:
    found = tree().find(("a", "b.c", 1, "d"))
    assert found is not None
    assert found.value == 1
    assert tree().find(()) == tree()


def test_a_dotted_path_finds_items_of_lists_and_keys_of_digits() -> None:
    found = tree().find(undotted(r"a.b\.c.1.d"))
    assert found is not None
    assert found.value == 1
    key = tree().find(undotted("0"))
    assert key is not None
    assert key.value == "zero"


def test_find_says_none_where_nothing_is() -> None:
    for path in (("a", "no"), ("a", "b.c", 2), ("a", "b.c", -1), ("a", "b.c", "01"), ("x", "y"), ("x", 0)):
        assert tree().find(path) is None, path


def test_of_twin_members_the_last_one_counts() -> None:
    found = tree().child("x")
    assert found is not None
    assert found.value == 2
    assert tree().value["x"] == 2
    member = tree().member("x")
    assert member is not None
    assert TEXT[slice(*member.node.span)] == "2"


def test_nearest_is_the_deepest_value_that_is_written_down() -> None:
    node = tree()
    assert node.nearest(("a", "b.c", 7, "d")).kind == "list"
    assert node.nearest(("a", "no", "more")) == node.child("a")
    assert node.nearest(("nothing",)) == node
    assert node.nearest(("a", "b.c", 0)).value == 10


def test_walk_names_every_member_at_any_depth_in_order() -> None:
    paths = [path for path, _ in tree().walk()]
    assert paths == [("a",), ("a", "b.c"), ("a", "b.c", 1, "d"), ("x",), ("x",), ("0",)]


@given(st.lists(st.text(st.sampled_from("a.\\0 é"), max_size=5), min_size=1, max_size=5))
def test_undotted_is_the_inverse_of_dotted(keys: list[str]) -> None:
    assert undotted(dotted(keys)) == tuple(keys)


def test_dotted_writes_indices_as_numbers() -> None:
    assert dotted(("source", "ids", 0)) == "source.ids.0"
