"""Which nodes of two versions of a document are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.document import Limits, parse_text
from mdmem.document.merging.matching import Matching, holds, section_of
from mdmem.document.outline import read_tree
from tests.speed import examples, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from mdmem.document.outline import TreeNode

LINES = st.sampled_from(
    [
        *(
            "- a",
            "- b",
            "  - a",
            "\t- c",
            "- the first of all",
            "- the second of all",
            "",
            "# A",
            "# B",
            "## A",
        ),
        *(
            "text",
            "more text",
            "- x ^x",
            "- y ^x",
            "z ^z",
            "- see [[a]]",
            "- see [[b]]",
            "***",
            "| a |",
            "|---|",
        ),
        *("```", "> q", "[r]: a.md", "[r]: b.md", "[^1]: foot", "1. one", "- 漢字", "<!-- c -->", "  more"),
    ]
)
TEXTS = st.lists(LINES, max_size=16).map("\n".join)


def match(before: str, after: str) -> Matching:
    limits = Limits(max_bytes=64 << 20)
    return Matching(*(read_tree(parse_text("a.md", text, limits)) for text in (before, after)))


def pairs(before: str, after: str) -> list[tuple[str, str]]:
    """The words of the leaves that are the same, and differ; those whose partner is weak have a `?`."""
    found = match(before, after)
    named = [(node, found.partner(node)) for node in found.old.nodes]
    return [
        (node.words, other.words + "?" * (node in found.weak))
        for node, other in named
        if other and node.words != other.words
    ]


def place(found: Matching, words: str) -> tuple[str, ...]:
    """Where what says some words stood, and where its partner stands: the words of the parents."""
    (node,) = [node for node in found.old.nodes if node.words == words]
    other = found.partner(node)
    assert other
    return tuple(each.parent.words or section_of(each).words for each in (node, other) if each.parent)


@cases(
    "before, after, same",
    [
        ("- old words ^a\n", "# B\n\nquite other ones ^a\n", [("old words", "quite other ones")]),
        ("[^1]: one thing\n", "x\n\n[^1]: quite another\n", [("[^1]: one thing", "[^1]: quite another")]),
        ("[r]: a.md\n[s]: b.md\n", "[s]: c.md\n[r]: a.md\n", [("[s]: b.md", "[s]: c.md")]),
        ("# Index\n\n- a\n- b\n", "# Search\n\n- a\n- b\n", [("Index", "Search")]),
        ("# Foo\n\n## A\n\nx\n", "# Bar\n\n## A\n\nx\n", [("Foo", "Bar")]),
        ("- We use x here.\n- k\n", "- k\n- We use y here.\n", [("We use x here.", "We use y here.")]),
        ("- [[Old name|it]]\n- k\n", "- [[Another|it]]\n- k\n", [("[[Old name|it]]", "[[Another|it]]")]),
        ("| a |\n|---|\n| 1 |\n", "| b |\n|---|\n| 1 |\n", [("a", "b")]),
        ("> a b c d e f\n> g\n", "a b c d e f\ng\n", [("> a b c d e f\n> g", "a b c d e f\ng")]),
        ("- yes\n", "- The deploy is manual.\n", [("yes", "The deploy is manual.?")]),
        ("- b\n- k\n", "- Some words of b.\n- k\n", [("b", "Some words of b.")]),
    ],
)
def test_the_same_nodes_say_something_else(before: str, after: str, same: list[tuple[str, str]]) -> None:
    assert pairs(before, after) == same


def test_an_id_that_stands_twice_names_no_node() -> None:
    assert pairs("- one thing ^a\n- more ^a\n", "# B\n\n- quite another ^a\n") == []


def test_of_two_headings_with_one_title_that_of_the_same_level_is_the_same() -> None:
    found = match("# A\n\n# B\n\n### T\n", "# A\n\n### T\n\n# T\n")
    other = found.partner(found.old.nodes[-1])
    assert other
    assert (other.words, other.level) == ("T", 3)


def test_words_that_stand_once_are_known_wherever_they_are() -> None:
    found = match("# A\n\n- only one\n- k\n\n# B\n\n- j\n", "# A\n\n- k\n\n# B\n\n- j\n  - only one\n")
    assert place(found, "only one") == ("A", "B")


def test_words_that_stand_several_times_are_known_when_they_say_enough() -> None:
    twice = "- We run the tests at night.\n"
    found = match(f"# A\n\n{twice}{twice}\n# B\n\n- j\n", f"# A\n\n{twice}\n# B\n\n- j\n{twice}")
    others = [found.partner(node) for node in found.old.nodes if node.words.startswith("We run")]
    assert [section_of(other).words for other in others if other] == ["A", "B"]


def test_a_pair_is_unsure_where_another_one_is_about_as_similar() -> None:
    two = "- k\n- The build runs on Linux at noon.\n- The build runs on Linux at dawn.\n"
    found = match("- The build runs on Linux at night.\n- k\n", two)
    assert [node.words for node in found.unsure] == ["The build runs on Linux at night."]
    assert not match("- The build runs on Linux at night.\n- k\n", "- The build runs on Linux.\n- k\n").unsure


def test_equal_nodes_have_equal_ones_below() -> None:
    found = match("- a\n  - b\n- c\n  - d\n", "- a\n  - b\n- c\n  - e\n")
    assert {node.words: found.is_equal(node) for node in found.old.nodes if node.kind == "item"} == {
        "a": True,
        "b": True,
        "c": False,
        "d": False,
    }


def test_one_text_holds_another_by_whole_words() -> None:
    assert holds("We deploy by hand", "On Fridays we deploy, by hand.")
    assert holds("数据", "数据库")
    assert not holds("a", "the first of all")
    assert not holds("", "a")


@settings(max_examples=examples(400))
@given(TEXTS, TEXTS)
def test_nodes_are_the_same_one_by_one(before: str, after: str) -> None:
    found = match(before, after)
    partners = [other for node in found.old.nodes if (other := found.partner(node))]
    assert len(set(partners)) == len(partners)
    assert set(partners) <= set(found.new.nodes)
    assert all(found.partner(other) for other in partners)
    assert found.partner(found.old.root) is found.new.root
    assert all(found.partner(node) for node in (*found.weak, *found.unsure))


@settings(max_examples=examples(300))
@given(TEXTS)
def test_each_node_of_equal_versions_is_its_like(text: str) -> None:
    found = match(text, text)
    others = [found.partner(node) for node in found.old.nodes]
    assert others == found.new.nodes
    assert all(map(found.is_equal, found.old.nodes))
    assert not found.weak | found.unsure


@settings(max_examples=examples(300))
@given(TEXTS, TEXTS)
def test_lists_are_the_same_as_lists_only(before: str, after: str) -> None:
    found = match(before, after)
    containers = {"root", "section", "list", "table"}

    def is_fine(node: TreeNode, other: TreeNode) -> bool:
        return bool(node.id) or node.kind == other.kind or not {node.kind, other.kind} & containers

    assert all(is_fine(node, other) for node in found.old.nodes if (other := found.partner(node)))


MANY = 10_000


@pytest.mark.parametrize(
    ("before", "after"),
    soak_most(
        [
            ("- same\n" * MANY, "- same\n" * (MANY - 1)),
            ("- a\n\n1. b\n\n" * MANY, "1. c\n\n- d\n\n" * MANY),
            ("para one\n\n" * MANY, "> quote two\n\n" * MANY),
            ("# A\n\n## B\n\n" * (MANY // 2), "# C\n\n## B\n\n" * (MANY // 2)),
            ("- " + "word " * 400 + "\n" * MANY, "- " + "words " * 400 + "\n" * MANY),
        ],
        quick=(2, 4),
    ),
    ids=["equal", "lists", "kinds", "titles", "blanks"],
)
def test_hostile_trees_are_matched_in_bounded_time(before: str, after: str) -> None:
    """A cost that is quadratic in nodes would not end here."""
    found = match(before, after)
    assert found.partner(found.old.root)
