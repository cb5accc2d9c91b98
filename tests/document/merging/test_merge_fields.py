"""Frontmatter and JSON are merged key by key, and nothing that stands in them or between them is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st

from mdmem.document.document import Limits, parse_text
from mdmem.document.merging.conflict import value_conflict
from mdmem.document.merging.merge import MergeConflict, Merged, merge
from mdmem.document.merging.merge_fields import Brackets
from mdmem.document.text.diff import Versions
from tests.speed import examples
from tests.tables import cases


def brackets(text: str) -> Brackets[object]:
    tree = parse_text("list.json", text).tree
    assert tree
    return Brackets(text, tree, {item.value: item.span for item in tree.items})


@cases(
    "text, other, parts, expected",
    [
        *(("[1, 2,  3]", "[]", [1, 2, 3], "[1, 2,  3]"), ("[1, 2,  3]", "[]", [1, 3], "[1,  3]")),
        *(("[1,2]", "[3, 4]", [1, 2, 4], "[1,2,4]"), ("[\n  1\n]", "[1, 2]", [1, 2], "[\n  1, 2\n]")),
        *(("[\n  1\n]", "[2]", [1, 2], "[\n  1,\n  2\n]"), ("[]", "[ 1,2 ]", [1, 2], "[ 1,2 ]")),
        *(("[ 1 ]", "[]", [], "[]"), ("[]", "[]", [1, 2], "[1, 2]")),
    ],
)
def test_parts_are_joined_as_they_were(text: str, other: str, parts: list[int], expected: str) -> None:
    assert brackets(text).join_parts(brackets(other), {part: str(part) for part in parts}) == expected


@given(st.lists(st.integers(0, 20), unique=True), st.sampled_from([None, 0, 2]))
def test_all_parts_joined_are_the_text(values: list[int], indent: int | None) -> None:
    text = json.dumps(values, indent=indent)
    layout = brackets(text)
    assert layout.join_parts(layout, {value: str(value) for value in values}) == text


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


@cases(
    "base, ours, theirs, expected",
    [
        ("[a]", "[]", "[a, b]", "[b]"),
        ("[]", "[a]", "[b]", "[b, a]"),
        ("[a]", "[a, b]", "[a, c, ]", "[a, c, b, ]"),
        ("[a, b]", "[b]", "[a]", "[]"),
        ("[1]", "[1, '1']", "[1, 1.0]", "[1, 1.0, '1']"),
        ("", "[a]", "[b]", "[b, a]"),
        ("[a]", "\n- a\n- b, c", "\n- a\n- d", "\n- a\n- d\n- b, c"),
        ("[a]", "[a, b]", "\n  - a\n  - c # c", "\n  - a\n  - c # c\n  - b"),
        ("[a]", "\n- a\n- b, c", "[a, d]", "\n- a\n- b, c\n- d"),  # brackets would part it
    ],
)
def test_lists_are_sets(base: str, ours: str, theirs: str, expected: str) -> None:
    base, ours, theirs, expected = (
        f"---\nnames: {text}\n---\n".replace(" \n", "\n") for text in (base, ours, theirs, expected)
    )
    assert merged(base, ours, theirs).text == expected


@cases(
    "base, ours, theirs",
    [
        ("[a]", "[a, {b: 1}]", "[a, c]"),
        *(("[a, a]", "[a, a, b]", "[a, a, c]"), ("[a]", "[a, &x b]", "[a, c]")),
        *(("[a]", "[a, b] # said", "[a, c] # otherwise"), ("[a]", "[a, # said\n b]", "[a, c]")),
        *(("\n- a\n- b", "\n- a # said\n- b\n- c", "\n- b\n- d"), ("\n- a\n- b", "\n- a", "\n- b")),
        *(("[a, b, c]", "[b, a, c, o]", "[a, c, b, t]"), ("\n- a", "\n- a # said\n- b", "[a, c]")),
        ("[a]", "[a, # said\n b]", "\n- a\n- c"),
    ],
    ids=[
        *("object", "twins", "anchor", "comment", "comment inside", "comment of a removed item"),
        *("emptied", "order", "comment that brackets cannot hold", "comment of brackets that are gone"),
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


@settings(max_examples=examples(100))
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


MERGE_JSON_ABSENT = object()


def merge_json_merged(base: str, ours: str, theirs: str, limits: Limits | None = None) -> Merged:
    return merge(*(parse_text("note.json", text, limits or Limits()) for text in (base, ours, theirs)))


@cases(
    "base, ours, theirs, expected",
    [
        ('{"a": 1}', '{"a": 1, "o": 2}', '{"t": 3, "a": 1}', '{"t": 3, "a": 1, "o": 2}'),
        ("{}", '{"o": 1}', '{"t": 2}', '{"t": 2, "o": 1}'),
        ('{"a": 1}', "{}", '{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"a": 1, "b": 2}', '{"b": 2}', '{"a": 1}', "{}"),
        ('{"a": 1}', '{"a":1.5e3}', '{\n  "a" : 1,\n  "b": [ ]\n}', '{\n  "a" : 1.5e3,\n  "b": [ ]\n}'),
        ('{"a": 1}', '{"a": 1, "x": {\n"y":1}}', "[1]", None),
        ('{"b": 1, "a": 1}', '{"a": 1, "b": 1}', '{"b": 1, "a": 2}', '{"b": 1, "a": 2}'),
    ],
    ids=["added", "filled", "removed", "emptied", "source text", "other kind", "moved"],
)
def test_the_changes_of_ours_stand_in_the_layout_of_theirs(
    base: str, ours: str, theirs: str, expected: str | None
) -> None:
    assert merge_json_merged(base, ours, theirs).text == expected


def test_what_says_the_same_in_other_words_gives_way() -> None:
    assert merge_json_merged('{"a": "\\u00e9", "b": 1}', '{"a": "é", "b": 1}', '{"a": "x", "b": 2}').text == (
        '{"a": "x", "b": 2}'
    )
    assert merge_json_merged('{"a": 1}', '{"a": 1.0}', '{"a": true}').conflicts


def test_a_conflict_names_the_key_and_carries_the_three_values() -> None:
    result = merge_json_merged('{"a": {"b.c": 1}}', '{"a": {}}', '{"a":\n{"b.c": [2]}}')
    conflict = MergeConflict(kind="json", where=r"a.b\.c", line=2, base="1", ours="", theirs="[2]")
    assert result == Merged(text=None, conflicts=(conflict,))


def test_json_with_a_key_twice_is_merged_as_lines() -> None:
    base = '{"a": 1,\n"a": 2,\n"b": 3,\n"c": 4}\n'
    assert merge_json_merged(base, base.replace("1", "5"), base.replace("4", "6")).text == (
        '{"a": 5,\n"a": 2,\n"b": 3,\n"c": 6}\n'
    )


def test_deep_json_is_merged_as_lines() -> None:
    base = '{"a":\n[[[1]]],\n"b":\n2\n}'
    result = merge_json_merged(base, base.replace("1", "3"), base.replace("2", "4"), Limits(max_depth=2))
    assert result.text == '{"a":\n[[[3]]],\n"b":\n4\n}'


VALUES = st.recursive(
    st.one_of(st.integers(0, 2), st.booleans(), st.none(), st.sampled_from(["x", "1", 'q"\\'])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc.é"), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
MERGE_JSON_ABSENT = object()


def expected(base: Any, ours: Any, theirs: Any) -> tuple[Any, bool]:
    """The value that a merge by key must come to, and whether there is a conflict: written the plain way."""
    plain = [
        MERGE_JSON_ABSENT if value is MERGE_JSON_ABSENT else json.dumps(value, sort_keys=True)
        for value in (base, ours, theirs)
    ]
    if plain[1] in (plain[0], plain[2]):
        return theirs, False
    if plain[2] == plain[0]:
        return ours, False
    lists = ([] if base is MERGE_JSON_ABSENT else base, ours, theirs)
    if all(isinstance(each, list) for each in lists):
        sets = [{json.dumps(item) for item in each} for each in lists]
        scalars = not any(isinstance(item, dict | list) for each in lists for item in each)
        if scalars and list(map(len, sets)) == list(map(len, lists)):
            before, mine, yours = sets
            return list(map(json.loads, (mine & yours) | (mine - before) | (yours - before))), False
    if not (
        isinstance(ours, dict)
        and isinstance(theirs, dict)
        and (base is MERGE_JSON_ABSENT or isinstance(base, dict))
    ):
        return MERGE_JSON_ABSENT, True
    base = {} if base is MERGE_JSON_ABSENT else base
    result, conflict = {}, False
    for key in base.keys() | ours.keys() | theirs.keys():
        value, wrong = expected(*(side.get(key, MERGE_JSON_ABSENT) for side in (base, ours, theirs)))
        conflict = conflict or wrong
        if value is not MERGE_JSON_ABSENT:
            result[key] = value
    return result, conflict


@settings(max_examples=examples(150))
@given(OBJECTS, OBJECTS, OBJECTS, st.data())
def test_json_is_merged_by_key(base: Any, ours: Any, theirs: Any, data: st.DataObject) -> None:
    layouts: Any = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    ours, theirs = {**base, **ours}, {**base, **theirs}
    texts = [json.dumps(value, **data.draw(layouts)) + "\n" for value in (base, ours, theirs)]
    result = merge_json_merged(texts[0], texts[1], texts[2])
    value, conflict = expected(base, ours, theirs)
    assert bool(result.conflicts) == conflict
    if result.text is not None:
        assert json.dumps(in_order(json.loads(result.text))) == json.dumps(in_order(value))


def in_order(value: Any) -> Any:
    """A value with the items of its lists in one order: those of scalars are merged as sets."""
    if isinstance(value, dict):
        return {key: in_order(each) for key, each in sorted(value.items())}
    return sorted((in_order(each) for each in value), key=json.dumps) if isinstance(value, list) else value


CONFLICTING = "---\na: 1\nb:\n  c.d: 2\n---\nbody\n"


@cases(
    "path, where, line",
    [
        (("a",), "a", 2),
        (("b", "c.d"), r"b.c\.d", 4),
        (("b", "gone"), "b.gone", 4),
        (("x", "y"), "x.y", 2),
        ((), "", 2),
    ],
    ids=["field", "inside", "gone", "nowhere", "all"],
)
def test_a_conflict_names_the_value_and_the_line_of_what_is_nearest(
    path: tuple[str, ...], where: str, line: int
) -> None:
    conflict = value_conflict("field", path, parse_text("a.md", CONFLICTING), Versions("1", None, "2"))
    assert conflict == MergeConflict(kind="field", where=where, line=line, base="1", ours="", theirs="2")


def test_without_values_a_conflict_stands_in_the_first_line() -> None:
    assert value_conflict("field", ("a",), parse_text("a.md", "body\n"), Versions("1", "2", None)).line == 1


EARLY, LATE = "2026-01-01T10:00:00Z", "2026-01-01T12:00:00+01:00"


@cases(
    "base, ours, theirs, expected",
    [
        (
            f"updated: {EARLY}",
            f"updated: {LATE}",
            "updated: 2026-01-01T12:00:00Z",
            "updated: 2026-01-01T12:00:00Z",
        ),
        ("", f"updated: {LATE}", f"updated: {EARLY}", f"updated: {LATE}"),
        ("", f"created: {LATE}", f"created: {EARLY}", f"created: {EARLY}"),
        *(
            (
                "",
                f"superseded_by: '[[b]]'\nvalid_to: {one}",
                f"superseded_by: '[[b]]'\nvalid_to: {other}",
                f"superseded_by: '[[b]]'\nvalid_to: {EARLY}",
            )
            for one, other in ((EARLY, LATE), (LATE, EARLY))
        ),
        # What a person may mean is asked.
        (f"created: {EARLY}", f"created: {LATE}", "created: 2026-01-01T12:00:00Z", None),
        ("", "created: 2026-01-01", "created: 2026-01-02", None),
        ("", f"valid_to: {EARLY}", f"valid_to: {LATE}", None),
        (
            "",
            f"superseded_by: '[[b]]'\nvalid_to: {EARLY}",
            f"superseded_by: '[[c]]'\nvalid_to: {LATE}",
            None,
        ),
        (f"updated: {EARLY}", "updated: soon", f"updated: {LATE}", None),
        ("", f"at:\n  updated: {EARLY}", f"at:\n  updated: {LATE}", None),
    ],
)
def test_times_that_mdmem_writes_are_no_conflict_where_both_sides_did_the_same(
    base: str, ours: str, theirs: str, expected: str | None
) -> None:
    texts = (f"---\ntype: x\n{fields}{chr(10) * bool(fields)}---\nText.\n" for fields in (base, ours, theirs))
    merged = merge(*(parse_text("a.md", text) for text in texts))
    assert merged.text == (None if expected is None else f"---\ntype: x\n{expected}\n---\nText.\n")
