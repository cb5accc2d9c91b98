"""What is said to have become of the facts and fields of a memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.document import Document, Limits, parse
from mdmem.document.merging.comparison import (
    Comparison,
    FactChange,
    compare,
    follow_facts,
    moved_across,
    pair_facts,
)
from mdmem.document.merging.facts import facts
from mdmem.document.merging.matching import TELLING
from tests.speed import examples, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterable


def document(text: str, path: str = "a.md") -> Document:
    return parse(path, text.encode(), Limits(max_bytes=64 << 20))


def between(before: str, after: str) -> Comparison:
    return compare(document(before), document(after))


def words(changes: Iterable[FactChange]) -> list[tuple[str, str, str]]:
    return [
        (each.kind, each.before.text if each.before else "", each.after.text if each.after else "")
        for each in changes
    ]


def told(before: str, after: str) -> list[tuple[str, str, str]]:
    return words(between(before, after).facts)


def test_added_and_removed_facts_are_named() -> None:
    assert told("- a\n- b\n", "- b\n- c\n") == [("removed", "a", ""), ("added", "", "c")]


def test_a_memory_that_was_not_there_has_all_facts_and_fields_added() -> None:
    found = compare(None, document("---\na: 1\n---\n- x\n"))
    assert words(found.facts) == [("added", "", "x")]
    assert [(field.kind, field.key) for field in found.fields] == [("added", ("a",))]
    gone = compare(document("---\na: 1\n---\n- x\n"), None)
    assert words(gone.facts) == [("removed", "x", "")]
    assert [(field.kind, field.key) for field in gone.fields] == [("removed", ("a",))]


def test_a_block_id_tells_a_fact_whatever_its_words_are() -> None:
    found = between("- the old words ^a\n", "# Elsewhere\n\n- something else altogether ^a\n")
    change = found.facts[1]
    assert (change.kind, change.sure, change.moved) == ("reworded", True, True)


def test_a_block_id_that_stands_twice_tells_nothing() -> None:
    found = between("- one ^a\n- two ^a\n", "- three ^a\n")
    assert [change.kind for change in found.facts] == ["removed", "removed", "added"]


def test_similar_words_in_the_same_place_are_a_fact_that_was_reworded() -> None:
    (change,) = between("- We use SQLite for storage.\n", "- We use Postgres for storage.\n").facts
    assert (change.kind, change.sure, change.moved) == ("reworded", True, False)


def test_a_pair_is_a_guess_where_another_fact_is_about_as_similar() -> None:
    found = between(
        "- The build runs on Linux at night.\n- Other words.\n",
        "- Other words.\n- The build runs on Linux at noon.\n- The build runs on Linux at dawn.\n",
    )
    assert [(change.kind, change.sure) for change in found.facts] == [("reworded", False), ("added", True)]


def test_a_fact_that_grew_is_reworded() -> None:
    assert told("- A namespace is a wall.\n", "- A namespace is a wall: nothing leaves it, and so on.\n") == [
        ("reworded", "A namespace is a wall.", "A namespace is a wall: nothing leaves it, and so on.")
    ]


def test_other_words_are_another_fact() -> None:
    assert told("- Tests run in CI.\n", "- Coffee is at nine.\n") == [
        ("removed", "Tests run in CI.", ""),
        ("added", "", "Coffee is at nine."),
    ]


def test_similar_words_in_chinese_are_a_fact_that_was_reworded() -> None:
    assert told("- 数据库使用SQLite存储\n", "- 数据库使用Postgres存储\n")[0][0] == "reworded"


def test_the_most_similar_facts_are_paired() -> None:
    before = "- The build runs on Linux machines.\n- The build runs on Linux machines at night.\n"
    after = "- The build runs on Linux machines at noon.\n"
    assert told(before, after) == [
        ("removed", "The build runs on Linux machines.", ""),
        (
            "reworded",
            "The build runs on Linux machines at night.",
            "The build runs on Linux machines at noon.",
        ),
    ]


def test_a_fact_under_another_heading_is_moved() -> None:
    (change,) = between("# A\n\n- x y z\n- k\n\n# B\n", "# A\n\n- k\n\n# B\n\n- x y z\n").facts
    assert (change.kind, change.sure, change.moved) == ("moved", True, True)
    assert change.before
    assert change.after
    assert (change.before.path, change.after.path) == (("A",), ("B",))


def test_a_fact_in_another_item_is_moved() -> None:
    assert told("- a\n  - x\n- b\n", "- a\n- b\n  - x\n") == [("moved", "x", "x")]


def test_what_stood_in_an_item_that_is_gone_is_moved() -> None:
    assert told("- parent\n  - child of it\n- k\n", "- child of it\n- k\n") == [
        ("removed", "parent", ""),
        ("moved", "child of it", "child of it"),
    ]


def test_facts_under_a_heading_that_is_reworded_are_not_moved() -> None:
    assert told("# Index\n\n- a\n- b\n", "# Search\n\n- a\n- b\n") == [("reworded", "# Index", "# Search")]


def test_items_in_an_item_that_is_reworded_are_not_moved() -> None:
    assert told("- the list of all\n  - a\n", "- the list of them all\n  - a\n") == [
        ("reworded", "the list of all", "the list of them all")
    ]


def test_a_link_that_leads_elsewhere_is_repointed() -> None:
    changes = between(
        "- See [[old|it]].\n- a [b](c.md#d)\n- x https://a.example\n- [[A name of words|it]]\n",
        "- See [[new|it]].\n- a [b](e.md)\n- x https://b.example\n- [[Quite others here|it]]\n",
    ).facts
    assert [change.kind for change in changes] == ["repointed"] * 4
    assert all(change.sure for change in changes)


def test_a_definition_that_leads_elsewhere_is_repointed() -> None:
    assert told("[x][r]\n\n[r]: a.md\n", "[x][r]\n\n[r]: b.md\n") == [("repointed", "[r]: a.md", "[r]: b.md")]


def test_a_link_with_other_words_is_reworded() -> None:
    assert told("- For more see [[old]] now.\n", "- For more see [[new]] then.\n")[0][0] == "reworded"


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nb\n", "a b\n"), ("- a\n", "* a\n"), ("a", "a\n"), ("> a\n", "> a\n\n")],
)
def test_layout_is_no_change_of_facts(before: str, after: str) -> None:
    assert between(before, after) == Comparison(layout=True)


def test_steps_in_another_order_are_reordered() -> None:
    before, after = (
        "1. Stop it.\n2. Back it up.\n3. Upgrade it.\n",
        "1. Back it up.\n2. Upgrade it.\n3. Stop it.\n",
    )
    assert told(before, after) == [("reordered", "Stop it.", "Stop it.")]


def test_rows_and_paragraphs_in_another_order_are_reordered() -> None:
    head = "| a |\n|---|\n"
    assert told(head + "| 1 |\n| 2 |\n| 3 |\n", head + "| 3 |\n| 1 |\n| 2 |\n") == [("reordered", "3", "3")]
    assert told("one\n\ntwo\n\nthree\n", "two\n\nthree\n\none\n") == [("reordered", "one", "one")]


def test_a_section_in_another_place_is_told_once() -> None:
    """And not each fact in it, nor the sections under it."""
    first, second = "## A\n\n- x y z\n- k\n\n### A1\n\nw\n\n", "## B\n\nb\n\n"
    third = "## C\n\nc\n\n"
    assert told(f"# T\n\n{first}{second}{third}", f"# T\n\n{second}{third}{first}") == [
        ("reordered", "## A", "## A")
    ]


def test_a_section_that_comes_under_another_heading_is_moved_once() -> None:
    section = "## S\n\n- x y z\n- k\n\n"
    (change,) = between(f"# A\n\n{section}# B\n\nb\n", f"# A\n\n# B\n\nb\n\n{section}").facts
    assert (change.kind, change.fact.text) == ("moved", "## S")
    assert change.into
    assert change.into.text == "# B"


def test_an_item_that_is_made_a_child_is_moved_into_its_parent() -> None:
    (change,) = between("- Deploys go through Ann.\n- b\n", "- Deploys go through Ann.\n  - b\n").facts
    assert (change.kind, change.fact.text) == ("moved", "b")
    assert change.into
    assert change.into.text == "Deploys go through Ann."


def test_other_words_in_the_same_place_leave_what_is_below_in_its_place() -> None:
    assert told("- one thing\n  - kept as it is\n", "- quite another\n  - kept as it is\n") == [
        ("removed", "one thing", ""),
        ("added", "", "quite another"),
    ]


def test_a_heading_is_known_by_the_sections_under_it() -> None:
    below = "## A\n\nx y\n\n## B\n\nz\n"
    assert told(f"# Foo\n\n{below}", f"# Bar\n\n{below}") == [("reworded", "# Foo", "# Bar")]


def test_children_that_are_indented_by_tabs_are_told_one_by_one() -> None:
    assert told("- a\n\t- b\n\t- c d e f\n", "- a\n\t- b\n\t- c d e g\n") == [
        ("reworded", "c d e f", "c d e g")
    ]


def test_equal_versions_do_not_differ() -> None:
    assert between("- a\n", "- a\n") == Comparison()


@cases(
    "before, after, fields",
    [
        ("a: 1", "a: 2", [("changed", ("a",), 1, 2)]),
        ("a: 1", "a: true", [("changed", ("a",), 1, True)]),
        ("a: 1", "b: 1", [("removed", ("a",), 1, None), ("added", ("b",), None, 1)]),
        ("a: {b: 1, c: 2}", "a: {b: 2, c: 2}", [("changed", ("a", "b"), 1, 2)]),
        ("a: [x]", "a: [x, y]", [("changed", ("a",), ["x"], ["x", "y"])]),
        ("a: null", "b: 1", [("removed", ("a",), None, None), ("added", ("b",), None, 1)]),
        ("a: 'x'", "a: x", []),
    ],
)
def test_fields_are_told_by_key(
    before: str, after: str, fields: list[tuple[str, tuple[str, ...], Any, Any]]
) -> None:
    found = between(f"---\n{before}\n---\nx\n", f"---\n{after}\n---\nx\n")
    assert [tuple(field) for field in found.fields] == fields
    assert found.facts == ()
    assert found.layout == (not fields)


def test_values_of_json_are_fields() -> None:
    found = compare(document('{"a": {"b": [1]}}', "a.json"), document('{"a": {"b": [2]}}', "a.json"))
    assert [tuple(field) for field in found.fields] == [("changed", ("a", "b"), [1], [2])]
    root = compare(document("[1]", "a.json"), document("[1, 2]", "a.json"))
    assert [tuple(field) for field in root.fields] == [("changed", (), [1], [1, 2])]
    assert compare(None, document("[]", "a.json")).fields[0].kind == "added"
    assert compare(document("[]", "a.json"), None).fields[0].kind == "removed"


@pytest.mark.parametrize(
    ("path", "sound", "broken"),
    [
        ("a.md", "---\na: 1\n---\n", "---\na: [1\n---\n"),
        ("a.md", "---\na: 1\nb: c: d\n---\n", "---\na: 2\nb: c: d\n---\n"),
        ("a.md", "+++\nx = 1\n+++\n", "+++\nx = 2\n+++\n"),
        ("a.md", '{"x": 1}\n', '{"x": 2}\n'),
        ("a.json", '{"a": 1}\n', '{"a": \n'),
    ],
)
def test_what_cannot_be_read_is_compared_as_it_stands(path: str, sound: str, broken: str) -> None:
    for before, after in ((sound, broken), (broken, sound)):
        found = compare(document(before, path), document(after, path))
        assert words(found.facts) == [("reworded", before.strip(), after.strip())]
        assert found.facts[0].sure
        assert found.fields == ()


def test_partners_are_the_same_facts_of_another_version() -> None:
    found = pair_facts(document("- a\n- we use x here\n"), document("- we use y here\n- b\n- a\n"))
    assert [(fact.text, before.text if before else None) for fact, before in found] == [
        ("we use y here", "we use x here"),
        ("b", None),
        ("a", "a"),
    ]


# ------------------------------------------------------------------------------------- several memories


def test_a_fact_that_goes_to_another_memory_is_moved() -> None:
    fact = "- SQLite is a single file.\n"
    found = moved_across({"a.md": between(fact + "- k\n", "- k\n"), "b.md": between("- j\n", "- j\n" + fact)})
    assert found["a.md"].facts == ()
    (change,) = found["b.md"].facts
    assert (change.kind, change.source, change.moved) == ("moved", "a.md", True)


def test_an_item_that_becomes_a_paragraph_elsewhere_is_moved() -> None:
    fact = "SQLite is a single file."
    found = moved_across({"a.md": between(f"- {fact}\n- k\n", f"- k\n\n# B\n\n{fact}\n")})
    assert words(found["a.md"].facts) == [("added", "", "# B"), ("moved", fact, fact)]
    assert not found["a.md"].facts[1].source


def test_words_that_say_little_or_stand_twice_do_not_tell_a_move() -> None:
    for fact in ("- yes\n", "- a b c\n- a b c\n", "# A b c\n"):
        comparisons = {"a.md": between(fact, ""), "b.md": between("", fact)}
        assert moved_across(comparisons) == comparisons


# ----------------------------------------------------------------------------------------- every fact once

LINES = st.sampled_from(
    [
        *("- a", "- b", "  - a", "- the first of all", "- the second of all", "- the third of all", ""),
        *("# A", "# B", "## A", "text", "more text", "- x ^x", "- y ^x", "- see [[a]]", "- see [[b]]", "***"),
        *("| a |", "|---|", "```", "> q", "[r]: a.md", "[r]: b.md", "1. one", "- 漢字"),
    ]
)
TEXTS = st.lists(LINES, max_size=16).map("\n".join)


@settings(max_examples=examples(250))
@given(TEXTS, TEXTS)
@example("# A\n\n- a", "# B\n\n- a")
def test_each_fact_that_comes_or_goes_is_named_once(before: str, after: str) -> None:
    """By counting what either version says: that knows nothing of pairs."""
    found = between(before, after)
    olds, news = facts(document(before)), facts(document(after))
    for versions, named in (
        (olds, [change.before for change in found.facts if change.before]),
        (news, [change.after for change in found.facts if change.after]),
    ):
        assert len(set(named)) == len(named), "named twice"
        assert set(named) <= set(versions)
    gone = Counter((c.before.text, c.before.id) for c in found.facts if c.before)
    come = Counter((c.after.text, c.after.id) for c in found.facts if c.after)
    was, now = (Counter((fact.text, fact.id) for fact in version) for version in (olds, news))
    assert was - gone == now - come, "what is not named is the same in both"
    assert not (was - now) - gone
    assert not (now - was) - come
    if not any(fact.id for fact in (*olds, *news)):
        stays = {"moved", "reordered"}
        lost = Counter(c.before.text for c in found.facts if c.before and c.kind not in stays)
        won = Counter(c.after.text for c in found.facts if c.after and c.kind not in stays)
        twice = {text for text in lost & won if len(text.split()) >= TELLING}
        assert not twice, "what is in both, and says enough to be known, is at most moved"
    assert found.layout == (before != after and not found.facts)


# ------------------------------------------------------------------------------------------------- bounds

MANY = 10_000


@pytest.mark.parametrize(
    ("before", "after"),
    soak_most(
        [
            ("- same\n" * MANY, "- same\n" * (MANY - 1)),
            (
                "".join(f"- fact {n} is a\n" for n in range(MANY)),
                "".join(f"- fact {n} is b\n" for n in range(MANY)),
            ),
            ("- the of and\n" * MANY, "- the of but\n" * MANY),
            ("word " * 300_000, "other " * 200_000),
            ("- [[a]] x\n" * MANY, "- [[b]] x\n" * MANY),
            ("# A\n" * MANY, "# B\n" * MANY),
            ("- a\n\n1. b\n\n" * (MANY // 4), "1. c\n\n- d\n\n" * (MANY // 4)),
            (
                "".join(f"# a{n}\n\n## A\n\n- x {n}\n\n" for n in range(MANY // 4)),
                "".join(f"# b{n}\n\n## A\n\n- y {n}\n\n" for n in range(MANY // 4)),
            ),
            (
                "".join(f"# h {n}\n\n- x\n\n" for n in range(MANY // 4)),
                "".join(f"# h {n}\n\n- x\n\n" for n in reversed(range(MANY // 4))),
            ),
            (
                "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * MANY,
                "| b | a |\n|---|---|\n" + "| 2 | 1 |\n" * MANY,
            ),
        ],
        quick=(1,),
    ),
    ids=[
        *("equal", "numbered", "common-words", "one-line", "links", "headings", "lists"),
        *("sections-of-one-title", "sections-reversed", "table-turned"),
    ],
)
def test_hostile_versions_end(before: str, after: str) -> None:
    """A cost that is quadratic in facts or words would not end here."""
    found = between(before, after)
    assert found.facts


def test_what_was_not_compared_is_counted() -> None:
    numbers = range(2_000)
    before = "".join(f"- the a{n} of b{n} and c{n} before\n" for n in numbers)
    after = "".join(f"- the a{n} of b{n} and c{n} after\n" for n in reversed(numbers))
    found = between(before, after)
    removed = len([change for change in found.facts if change.kind == "removed"])
    assert 0 < found.unmatched <= removed


@cases("meant, moved", [(("a is one",), "a is one"), (("b is two",), "b is two")])
def test_of_facts_that_passed_each_other_those_that_are_meant_have_moved(
    meant: tuple[str, ...], moved: str
) -> None:
    before, after = "- a is one\n- b is two\n- c is three\n", "- b is two\n- a is one\n- c is three\n"
    old, new = (parse("a.md", text.encode()) for text in (before, after))
    changes, earlier = follow_facts(old, new, [fact for fact in facts(new) if fact.text in meant])
    assert [(each.kind, each.fact.text) for each in changes.facts] == [("reordered", moved)]
    assert tuple(fact.text for fact in earlier) == meant


def test_a_fact_that_others_alone_have_passed_has_not_moved() -> None:
    before, after = "- a is one\n- b is two\n- c is three\n", "- c is three\n- a is one\n- b is two\n"
    old, new = (parse("a.md", text.encode()) for text in (before, after))
    changes, _ = follow_facts(old, new, [fact for fact in facts(new) if fact.text == "a is one"])
    assert [(each.kind, each.fact.text) for each in changes.facts] == [("reordered", "c is three")]
