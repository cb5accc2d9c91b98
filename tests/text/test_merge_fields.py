"""Frontmatter is merged key by key, and nothing that stands in it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.text.document import Limits, parse_text
from mdmem.text.merge import Merged, merge

ABSENT = object()


def merged(base: str, ours: str, theirs: str, limits: Limits | None = None) -> Merged:
    return merge(*(parse_text("note.md", text, limits or Limits()) for text in (base, ours, theirs)))


def framed(text: str) -> str:
    return f"---\n{text}\n---\n"


def fields(base: str, ours: str, theirs: str) -> Merged:
    return merged(framed(base), framed(ours), framed(theirs))


def conflicts(base: str, ours: str, theirs: str) -> list[tuple[str, str, int]]:
    return [(c.kind, c.where, c.line) for c in fields(base, ours, theirs).conflicts]


def test_each_side_changes_its_own_fields_and_the_rest_stays_as_written() -> None:
    base = "a: 'x'   # why\n\n# about b\nb: {c: 1}\nd: [ ]"
    ours, theirs = base.replace("'x'", '"o"'), base.replace("{c: 1}", "{c: 2}")
    expected = base.replace("'x'", '"o"').replace("{c: 1}", "{c: 2}")
    assert fields(base, ours, theirs).text == framed(expected)


def test_a_comment_above_a_field_and_its_value_can_both_change() -> None:
    result = fields("# one\na: 1", "# two\na: 1", "# one\na: 2")
    assert result.text == framed("# two\na: 2")


def test_two_comments_for_one_place_conflict() -> None:
    assert conflicts("a: 1", "# o\na: 1", "# t\na: 1") == [("field", "a", 3)]
    assert conflicts("a: 1", "a: 1\n# o", "a: 1\n# t") == [("field", "", 2)]


def test_mappings_are_merged_inside() -> None:
    base = "s:\n  a: 1\n  t:\n    b: 1\n    c: 1"
    result = fields(base, base.replace("b: 1", "b: 2"), base.replace("c: 1", "c: 3\n    d: 4"))
    assert result.text == framed("s:\n  a: 1\n  t:\n    b: 2\n    c: 3\n    d: 4")
    assert conflicts(base, base.replace("b: 1", "b: 2"), base.replace("b: 1", "b: 3")) == [
        ("field", "s.t.b", 5)
    ]


def test_fields_added_at_one_place_stand_in_the_order_of_each_side() -> None:
    result = fields("a: 1\nz: 1", "a: 1\no: 1\np: 1\nz: 1", "a: 1\nt: 1\nz: 1")
    assert result.text == framed("a: 1\nt: 1\no: 1\np: 1\nz: 1")


def test_fields_that_one_side_moved_stay_moved() -> None:
    result = fields("a: 1\nb: 1\nc: 1", "c: 1\na: 1\nb: 1", "a: 1\nb: 2\nc: 1")
    assert result.text == framed("c: 1\na: 1\nb: 2")


def test_fields_stay_between_dashes_when_the_other_side_removed_all_others() -> None:
    result = merged("---\na: 1\n---\nbody\n", "body\n", "---\na: 1\nb: 2\n---\nbody\n")
    assert result.text == "---\nb: 2\n---\nbody\n"


def test_frontmatter_past_a_limit_is_merged_as_lines() -> None:
    base = "---\na: [[[1]]]\nb: 2\nc: 3\n---\nbody\n"
    result = merged(base, base.replace("3", "4"), base + "more\n", limits=Limits(max_depth=2))
    assert result.text is None or result.text == base.replace("3", "4") + "more\n"
    assert merged(
        base, base.replace("3", "4"), base.replace("body", "Body"), limits=Limits(max_depth=2)
    ).text == ("---\na: [[[1]]]\nb: 2\nc: 4\n---\nBody\n")


def test_a_result_past_a_limit_is_a_conflict() -> None:
    limits = Limits(max_values=9)
    result = merged(
        "---\na: 1\n---\n", "---\na: 1\nb: 2\nc: 3\n---\n", "---\na: 1\nd: 4\ne: 5\n---\n", limits=limits
    )
    assert [conflict.kind for conflict in result.conflicts] == ["field"]


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("[a]", "[]", "[a, b]", "[b]"),
        ("[]", "[a]", "[b]", "[b, a]"),
        ("[a]", "[a, b]", "[a, c, ]", "[a, c, b, ]"),
        ("[a, b]", "[b]", "[a]", "[]"),
        ("[1]", "[1, '1']", "[1, 1.0]", "[1, 1.0, '1']"),
        ("", "[a]", "[b]", "[b, a]"),
        ("[a]", "\n- a\n- b, c", "\n- a\n- d", "\n- a\n- d\n- b, c"),
        ("[a]", "[a, b]", "\n  - a\n  - c # c", "\n  - a\n  - c # c\n  - b"),
    ],
)
def test_lists_are_sets(base: str, ours: str, theirs: str, expected: str) -> None:
    base, ours, theirs, expected = (
        f"---\ntags: {text}\n---\n".replace(" \n", "\n") for text in (base, ours, theirs, expected)
    )
    assert merged(base, ours, theirs).text == expected


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("[a]", "[a, {b: 1}]", "[a, c]"),
        ("[a]", "\n- a\n- b, c", "[a, d]"),
        ("[a, a]", "[a, a, b]", "[a, a, c]"),
        ("[a]", "[a, &x b]", "[a, c]"),
        ("[a]", "[a, b] # said", "[a, c] # otherwise"),
        ("[a]", "[a, # said\n b]", "[a, c]"),
        ("\n- a\n- b", "\n- a # said\n- b\n- c", "\n- b\n- d"),
        ("\n- a\n- b", "\n- a", "\n- b"),
        ("[a, b, c]", "[b, a, c, o]", "[a, c, b, t]"),
        ("\n- a", "\n- a # said\n- b", "[a, c]"),
        ("[a]", "[a, # said\n b]", "\n- a\n- c"),
    ],
    ids=[
        "object",
        "comma",
        "twins",
        "anchor",
        "comment",
        "comment inside",
        "comment of a removed item",
        "emptied",
        "order",
        "comment that brackets cannot hold",
        "comment of brackets that are gone",
    ],
)
def test_lists_that_cannot_be_merged_exactly_conflict(base: str, ours: str, theirs: str) -> None:
    base, ours, theirs = (f"---\ntags: {text}\n---\n" for text in (base, ours, theirs))
    (conflict,) = merged(base, ours, theirs).conflicts
    assert conflict.kind == "field"
    assert conflict.where in ("tags", "")


SCALARS = st.sampled_from(
    ["1", "x", "'1'", "[p, q]", "[p, r]", "[]", "{p: 1}", "|\n  p\n  q", "\n  - p\n  - s", "\n  p: 1\n  q: 2"]
)


@st.composite
def frontmatters(draw: st.DrawFn) -> dict[str, str]:
    return draw(st.dictionaries(st.sampled_from("abcdef"), SCALARS, max_size=5))


@settings(max_examples=200)
@given(frontmatters(), frontmatters(), frontmatters())
def test_each_field_is_merged_for_itself(
    base: dict[str, str], ours: dict[str, str], theirs: dict[str, str]
) -> None:
    ours, theirs = {**base, **ours}, {**base, **theirs}
    texts = [
        "".join(["---\n", *(f"# about {key}\n{key}: {value}\n" for key, value in side.items()), "---\n"])
        for side in (base, ours, theirs)
    ]
    result = merged(texts[0], texts[1], texts[2])
    fields = [parse_text("note.md", text).fields for text in texts]
    disputed = set()
    for key in base.keys() | ours.keys() | theirs.keys():
        before, mine, yours = (side.get(key, ABSENT) for side in fields)
        if mine not in (before, yours) and yours != before:
            disputed.add(key)
        elif result.text is not None:
            assert parse_text("note.md", result.text).fields[key] == (yours if mine == before else mine)
    assert {conflict.where.split(".")[0] for conflict in result.conflicts} <= disputed
