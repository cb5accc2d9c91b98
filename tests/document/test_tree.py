"""Paths into values, and JSON as a tree: what `json` reads, with places, and findings for the rest."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mdmem.document.tree import Node, Parsed, TooDeep, dotted, parse_json, undotted
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = '{"a": {"b.c": [10, {"d": 1}]}, "x": 1, "x": 2, "0": "zero"}'


def tree() -> Node:
    node = parse_json(TEXT, max_depth=8).node
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


def read_json(text: str, offset: int = 0, max_depth: int = 32) -> Parsed:
    return parse_json(text, offset, max_depth=max_depth)


def parts(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts:
        yield from parts(part)


class _NotJsonError(Exception):
    pass


def reference(text: str) -> Any:
    """What `json` reads, without the constants that are no JSON."""

    def refuse(constant: str) -> Any:
        raise _NotJsonError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise _NotJsonError from error


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=12),
        st.text('\x00\x1f\x7f\x85\u2028\ufeff"\\/😀\t\n', max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 2, "\t"]), st.sampled_from(["", " ", "\r\n\t"]))
def test_values_that_json_writes_are_read_alike_and_every_span_holds_its_value(
    data: Any, ascii_only: bool, indent: int | str | None, around: str
) -> None:
    text = around + json.dumps(data, ensure_ascii=ascii_only, indent=indent) + around
    node, flaws = read_json(text)
    assert flaws == ()
    assert node is not None
    assert node.value == data
    assert text[slice(*node.span)] == text.strip(" \r\n\t")
    for part in parts(node):
        assert json.loads(text[slice(*part.span)]) == part.value
        inner = part.parts
        assert all(before.span.end < after.span.start for before, after in pairwise(inner))
        assert all(part.span.start < i.span.start and i.span.end < part.span.end for i in inner)
    for _, member in node.walk():
        assert json.loads(text[slice(*member.key_span)]) == member.key


JSONISH = st.lists(
    st.sampled_from(
        [
            *'{}[],:" \t\n\\x0123-+.eE',
            *("true", "false", "null", "NaN", "Infinity", "-Infinity", '"a"', '"b":', "//", "'a'"),
            *("\\u00e9", "\\ud800", "\\udc00", "\x00", "\x0c", "\x85", "\u2028", "\ufeff", "\u0661", "😀"),
        ]
    ),
    max_size=14,
).map("".join)


@given(st.one_of(JSONISH, st.text(max_size=20)))
@example('"\\ud83d\\ude00"')
@example("1.")
@example("-")
@example("01")
@example("[1,]")
@example('{"a":1,}')
@example('{"a" 1}')
@example('"\t"')
@settings(max_examples=examples(750))
def test_a_text_is_accepted_where_json_accepts_it(text: str) -> None:
    node, flaws = read_json(text)
    for flaw in flaws:
        assert 0 <= flaw.span.start <= flaw.span.end <= len(text)
    try:
        expected = reference(text)
    except _NotJsonError:
        assert node is None
        assert [flaw.code for flaw in flaws] == ["invalid-json"]
    else:
        assert node is not None
        assert {flaw.code for flaw in flaws} <= {"duplicate-key", "lone-surrogate"}
        if "lone-surrogate" not in {flaw.code for flaw in flaws}:
            assert node.value == expected


@cases("text", ["NaN", "Infinity", "-Infinity", "[NaN]", '{"a": Infinity}', "nan", "True"])
def test_constants_that_are_no_json_are_refused(text: str) -> None:
    node, (flaw,) = read_json(text)
    assert node is None
    assert flaw.message in ("not a JSON value", "a comma is missing")


@cases(
    "text, at, message",
    [
        *(("", 0, "a value is missing"), (" \n", 2, "a value is missing")),
        *(("[1 2]", 3, "a comma is missing"), ("[1,", 3, "a value is missing")),
        *(("[1", 2, "] is missing at the end"), ('{"a": 1', 7, "} is missing at the end")),
        *(("[1,]", 3, "not a JSON value"), ("{a: 1}", 1, 'a key in "quotes" is missing')),
        ('{"a": 1,}', 8, 'a key in "quotes" is missing'),
        *(('{"a" 1}', 5, "a colon is missing behind the key"), ('{"a": }', 6, "not a JSON value")),
        *(("1 2", 2, "text behind the value"), ("01", 1, "text behind the value")),
        *(("\ufeff1", 0, "not a JSON value"), ('["é😀", "a', 7, "unterminated string")),
        *(('"a\tb"', 2, "invalid control character"), ('"a\\x"', 2, "invalid \\escape")),
        *(('"\\u12g4"', 2, "invalid \\uXXXX escape"), ("-", 0, "not a JSON value")),
        ("[1, // one\n2]", 4, "not a JSON value"),
    ],
)
def test_what_is_not_json_is_a_flaw_where_it_stands(text: str, at: int, message: str) -> None:
    node, (flaw,) = read_json(text)
    assert node is None
    assert flaw.code == "invalid-json"
    assert (flaw.span.start, flaw.message) == (at, message)


def test_an_offset_leaves_a_byte_order_mark_out_and_spans_count_it() -> None:
    text = '\ufeff{"a": 1}'
    node = read_json(text, 1).node
    assert node is not None
    assert text[slice(*node.span)] == '{"a": 1}'
    assert text[slice(*node.members[0].key_span)] == '"a"'


def test_duplicate_keys_are_flaws_at_the_second_key_and_the_last_value_counts() -> None:
    text = '{"a": {"b.c": 1, "b.c": 2}, "\\u0061": 3}'
    node, flaws = read_json(text)
    assert node is not None
    assert node.value == json.loads(text)
    assert [(f.code, text[slice(*f.span)], f.rule) for f in flaws] == [
        ("duplicate-key", '"b.c"', r"a.b\.c"),
        ("duplicate-key", '"\\u0061"', "a"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"\\ud800"', "\ufffd"),
        ('["a\\udc00b"]', ["a\ufffdb"]),
        ('{"\\ud800": 1}', {"\ufffd": 1}),
        ('"\\udc00\\ud83d\\ude00"', "\ufffd😀"),
    ],
)
def test_a_lone_surrogate_is_a_flaw_and_its_value_can_still_be_written_as_utf8(
    text: str, expected: Any
) -> None:
    node, flaws = read_json(text)
    assert [flaw.code for flaw in flaws] == ["lone-surrogate"]
    assert "\\u" in text[slice(*flaws[0].span)]
    assert node is not None
    assert node.value == expected


def test_a_number_that_python_could_not_read_is_a_flaw() -> None:
    assert read_json("9" * 4000).flaws == ()
    node, (flaw,) = read_json("[" + "9" * 4001 + "]")
    assert node is None
    assert (flaw.span.start, flaw.message) == (1, "a number of more than 4000 digits")


@cases("unit", ["[", '{"a":', '[{"a":', "[1,"])
@pytest.mark.parametrize("times", [33, 10_000, 300_000])
def test_nesting_is_refused_at_the_limit_however_deep_it_goes(unit: str, times: int) -> None:
    with pytest.raises(TooDeep) as caught:
        read_json(unit * times)
    assert caught.value.limit == 32
    opened = (unit * 33)[: caught.value.offset + 1]
    assert opened.count("[") + opened.count("{") == 33


@pytest.mark.parametrize("inner", ["", "1", '"a"'])
def test_as_many_collections_may_be_nested_as_the_limit_says(inner: str) -> None:
    text = "[" * 32 + inner + "]" * 32
    assert read_json(text).flaws == ()
    with pytest.raises(TooDeep) as caught:
        read_json(f"[{text}]")
    assert caught.value.offset == 32
