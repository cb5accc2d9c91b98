"""JSON merge patch: the cases of RFC 7396, and that no other byte changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.errors import Usage
from mdmem.memory.json_merge import merged, patched, refuse_no_object
from mdmem.text.document import parse_text
from mdmem.text.field import same


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_cases_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    before = json.dumps(target)

    assert merged(target, patch) == result
    assert json.dumps(target) == before
    if isinstance(target, dict) and isinstance(patch, dict):
        assert patched(parse_text("x.json", before), patch).fields == result


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ('{"a":1,  "b" : 2.50}\n', {"a": 3}, '{"a":3,  "b" : 2.50}\n'),
        (
            '{\r\n\t"a": {"x": 1e3,"y": [1,2]}\r\n}',
            {"a": {"z": 0}},
            '{\r\n\t"a": {"x": 1e3,"y": [1,2],"z": 0}\r\n}',
        ),
        ('{\n    "a": 1,\n    "b": "\\u00e9"\n}\n', {"a": None}, '{\n    "b": "\\u00e9"\n}\n'),
        ('{\n  "b": [\n    1\n  ]\n}\n', {"c": {"d": None}}, '{\n  "b": [\n    1\n  ],\n  "c": {}\n}\n'),
        ('{"a": 1}', {"a": 1, "no": None}, '{"a": 1}'),
        ('{"": 1, "a.b": {"0": 1}}', {"": 2, "a.b": {"0": 2}}, '{"": 2, "a.b": {"0": 2}}'),
    ],
)
def test_only_the_members_that_change_are_written(before: str, patch: dict[str, Any], after: str) -> None:
    assert patched(parse_text("x.json", before), patch).text == after


_LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='a"\\é\n', max_size=3)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=4)


@given(target=_OBJECTS, patch=_OBJECTS, indent=st.sampled_from([None, 2, "\t"]))
@settings(max_examples=200)
def test_the_text_says_what_the_standard_says(
    target: dict[str, Any], patch: dict[str, Any], indent: Any
) -> None:
    document = parse_text("x.json", json.dumps(target, indent=indent))

    result = patched(document, patch)

    assert same(json.loads(result.text), merged(target, patch))
    assert patched(result, patch).text == result.text
    assert patched(document, {}).text == document.text


@pytest.mark.parametrize("text", ["[1]", '"a"', "null"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(Usage, match="no object"):
        refuse_no_object(parse_text("x.json", text))


def test_markdown_is_refused() -> None:
    with pytest.raises(Usage, match="Markdown"):
        refuse_no_object(parse_text("x.md", "---\na: 1\n---\n"))
