"""JSON is merged key by key: the changes of ours, in the text of theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.text.document import Limits, parse_text
from mdmem.text.merge import MergeConflict, Merged, merge

ABSENT = object()


def merged(base: str, ours: str, theirs: str, limits: Limits | None = None) -> Merged:
    return merge(*(parse_text("note.json", text, limits or Limits()) for text in (base, ours, theirs)))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
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
    assert merged(base, ours, theirs).text == expected


def test_what_says_the_same_in_other_words_gives_way() -> None:
    assert merged('{"a": "\\u00e9", "b": 1}', '{"a": "é", "b": 1}', '{"a": "x", "b": 2}').text == (
        '{"a": "x", "b": 2}'
    )
    assert merged('{"a": 1}', '{"a": 1.0}', '{"a": true}').conflicts


def test_a_conflict_names_the_key_and_carries_the_three_values() -> None:
    result = merged('{"a": {"b.c": 1}}', '{"a": {}}', '{"a":\n{"b.c": [2]}}')
    conflict = MergeConflict(kind="json", where=r"a.b\.c", line=2, base="1", ours="", theirs="[2]")
    assert result == Merged(text=None, conflicts=(conflict,))


def test_json_with_a_key_twice_is_merged_as_lines() -> None:
    base = '{"a": 1,\n"a": 2,\n"b": 3,\n"c": 4}\n'
    assert merged(base, base.replace("1", "5"), base.replace("4", "6")).text == (
        '{"a": 5,\n"a": 2,\n"b": 3,\n"c": 6}\n'
    )


def test_deep_json_is_merged_as_lines() -> None:
    base = '{"a":\n[[[1]]],\n"b":\n2\n}'
    result = merged(base, base.replace("1", "3"), base.replace("2", "4"), Limits(max_depth=2))
    assert result.text == '{"a":\n[[[3]]],\n"b":\n4\n}'


VALUES = st.recursive(
    st.one_of(st.integers(0, 2), st.booleans(), st.none(), st.sampled_from(["x", "1", 'q"\\'])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc.é"), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
ABSENT = object()


def expected(base: Any, ours: Any, theirs: Any) -> tuple[Any, bool]:
    """The value that a merge by key must come to, and whether there is a conflict: written the plain way."""
    plain = [
        ABSENT if value is ABSENT else json.dumps(value, sort_keys=True) for value in (base, ours, theirs)
    ]
    if plain[1] in (plain[0], plain[2]):
        return theirs, False
    if plain[2] == plain[0]:
        return ours, False
    if not (
        isinstance(ours, dict) and isinstance(theirs, dict) and (base is ABSENT or isinstance(base, dict))
    ):
        return ABSENT, True
    base = {} if base is ABSENT else base
    result, conflict = {}, False
    for key in base.keys() | ours.keys() | theirs.keys():
        value, wrong = expected(*(side.get(key, ABSENT) for side in (base, ours, theirs)))
        conflict = conflict or wrong
        if value is not ABSENT:
            result[key] = value
    return result, conflict


@settings(max_examples=300)
@given(OBJECTS, OBJECTS, OBJECTS, st.data())
def test_json_is_merged_by_key(base: Any, ours: Any, theirs: Any, data: st.DataObject) -> None:
    layouts: Any = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    ours, theirs = {**base, **ours}, {**base, **theirs}
    texts = [json.dumps(value, **data.draw(layouts)) + "\n" for value in (base, ours, theirs)]
    result = merged(texts[0], texts[1], texts[2])
    value, conflict = expected(base, ours, theirs)
    assert bool(result.conflicts) == conflict
    if result.text is not None:
        assert json.dumps(json.loads(result.text), sort_keys=True) == json.dumps(value, sort_keys=True)
