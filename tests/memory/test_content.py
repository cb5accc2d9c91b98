"""JSON merge patch: the cases of RFC 7396, and that no other byte changes.

When a memory expires: read leniently, written exactly.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.document import parse_text
from mdmem.document.tree import same
from mdmem.errors import Usage
from mdmem.memory.content import (
    Life,
    expiry_of,
    has_passed,
    is_working,
    life,
    merged,
    patched,
    refuse_no_object,
    renewed,
    ttl_of,
    with_life,
)
from tests.speed import examples
from tests.tables import cases


@cases(
    "target, patch, result",
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


@cases(
    "before, patch, after",
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
@settings(max_examples=examples(100))
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
    with pytest.raises(Usage, match="not an object"):
        refuse_no_object(parse_text("x.json", text))


def test_markdown_is_refused() -> None:
    with pytest.raises(Usage, match="Markdown"):
        refuse_no_object(parse_text("x.md", "---\na: 1\n---\n"))


NOON = datetime(2025, 1, 31, 12, tzinfo=UTC)


@cases(
    "expires, passed",
    [
        ("2025-01-31T12:00:00Z", True),
        ("2025-01-31T12:00:01Z", False),
        ("2025-01-31T12:00Z", True),
        ("2025-01-31 11:59:59", True),
        ("2025-01-31T13:00:00+01:00", True),
        ("2025-01-31T12:00:00-00:01", False),
        ("2025-01-31T12:00:00.5Z", False),
        ("2025-01-31", True),
        ("2025-02-01", False),
        ("tomorrow", False),
        ("2025-13-01", False),
        ("", False),
        (None, False),
    ],
)
def test_a_moment_is_read_in_many_forms(expires: str | None, passed: bool) -> None:
    assert has_passed(expires, NOON) is passed


@pytest.mark.parametrize(
    "text", ["---\nexpires: soon\n---\n", "---\nexpires: 7\n---\n", "---\nexpires:\n---\n", "x"]
)
def test_what_says_no_moment_counts_as_none(text: str) -> None:
    assert expiry_of(parse_text("x.md", text)) is None


def test_the_field_is_read_from_frontmatter_and_from_json() -> None:
    assert expiry_of(parse_text("x.md", "---\nexpires: 2025-01-31\n---\n")) == "2025-01-31"
    assert expiry_of(parse_text("x.json", '{"expires": "2025-01-31"}')) == "2025-01-31"
    assert expiry_of(parse_text("x.json", '["expires"]')) is None


def test_a_life_ends_so_many_seconds_from_now() -> None:
    assert life(60, 0, NOON) == Life("2025-01-31T12:01:00Z", 60)
    assert life(None, 60, NOON) == Life("2025-01-31T12:01:00Z")
    assert life(0, 60, NOON) == Life(None, 0)
    assert life(0, 0, NOON) == life(None, 0, NOON) == Life(None)
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert life(60, 0, there) == life(60, 0, NOON)


@cases("ttl", [-1, 1.5, True, "60", 10**12, 10**400])
def test_a_life_of_no_sense_is_refused(ttl: int) -> None:
    with pytest.raises(Usage):
        life(ttl, 0, NOON)


@given(ttl=st.integers(1, 10**9), micro=st.integers(0, 999_999))
def test_nothing_lives_too_short_nor_a_second_too_long(ttl: int, micro: int) -> None:
    now = NOON.replace(microsecond=micro)
    until = life(ttl, 0, now).until

    assert not has_passed(until, now + timedelta(seconds=ttl, microseconds=-1))
    assert has_passed(until, now + timedelta(seconds=ttl + 1))


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("x.md", "body\n", "---\nexpires: 2025-01-31T12:01:00Z\nttl_seconds: 60\n---\n\nbody\n"),
        (
            "x.md",
            "---\na: 1 # c\n---\nbody",
            "---\na: 1 # c\nexpires: 2025-01-31T12:01:00Z\nttl_seconds: 60\n---\nbody",
        ),
        (
            "x.md",
            "---\nexpires: 2024-01-01 # c\nb: 2\n---\n",
            "---\nexpires: 2025-01-31T12:01:00Z # c\nb: 2\nttl_seconds: 60\n---\n",
        ),
        ("x.json", '{"a":1}', '{"a":1,"expires":"2025-01-31T12:01:00Z","ttl_seconds":60}'),
    ],
)
def test_only_the_field_is_written(path: str, before: str, after: str) -> None:
    document = with_life(parse_text(path, before), life(60, 0, NOON))

    assert document.text == after
    assert not {"expires", "ttl_seconds"} & set(with_life(document, life(0, 0, NOON)).fields)


@cases(
    "before, after",
    [
        ("---\nexpires: 2099-01-01\nttl_seconds: 60\n---\n\nbody\n", "body\n"),
        ("---\nexpires: 2099-01-01\n---\nbody\n", "body\n"),
        ("\ufeff---\r\nexpires: 2099-01-01\r\n---\r\n\r\n\r\nbody", "\ufeff\r\nbody"),
        ("---\nexpires: 2099-01-01\n# mine\n---\nbody\n", "---\n# mine\n---\nbody\n"),
        ("---\n---\n\nbody\n", "---\n---\n\nbody\n"),
        ("---\nexpires: 2099-01-01\n---\n---\na: 1\n---\n", "---\n---\n---\na: 1\n---\n"),
    ],
)
def test_no_empty_frontmatter_is_left_behind(before: str, after: str) -> None:
    assert with_life(parse_text("x.md", before), life(0, 0, NOON)).text == after


def test_a_json_value_without_fields_lives_for_ever() -> None:
    array = parse_text("x.json", "[1]")

    assert with_life(array, life(0, 0, NOON)).text == "[1]"
    with pytest.raises(Usage, match="no place for `expires`"):
        with_life(array, life(60, 0, NOON))


@cases(
    "value, ttl",
    [
        ("60", 60),
        ("0", 0),
        *((bad, None) for bad in ("-1", "1.5", ".nan", "true", "'60'", "1000000000000", "")),
    ],
)
def test_a_ttl_that_makes_no_sense_counts_as_none(value: str, ttl: int | None) -> None:
    document = parse_text("x.md", f"---\nexpires: 2025-01-31\nttl_seconds: {value}\n---\n")

    assert ttl_of(document) == ttl
    if ttl is None:
        assert renewed(document, document, 0, NOON) is document


LIVES, FIXED, NONE = "expires: 2099-01-01\nttl_seconds: 60\n", "expires: 2099-01-01\n", "a: 1\n"
SOON, LATER = "2025-01-31T12:01:00Z", "2025-01-31T12:02:00Z"


@cases(
    "before, after, default, expires",
    [
        (LIVES, LIVES, 0, SOON),
        (LIVES, LIVES, 7, SOON),
        (FIXED, FIXED, 0, "2099-01-01"),
        (FIXED, FIXED, 120, LATER),
        (NONE, NONE, 0, None),
        (NONE, NONE, 120, LATER),
        (LIVES, LIVES.replace("2099", "2098"), 0, "2098-01-01"),
        (LIVES, LIVES.replace("60", "120"), 0, LATER),
        (LIVES, LIVES.replace("60", "0"), 120, None),
        (LIVES, "ttl_seconds: 60\n", 0, None),
        ("ttl_seconds: 60\n", "ttl_seconds: 60\na: 1\n", 0, None),
        ("ttl_seconds: 0\n", "ttl_seconds: 0\na: 1\n", 120, None),
        (None, "ttl_seconds: 60\n", 0, SOON),
        (None, LIVES, 0, "2099-01-01"),
        (None, NONE, 0, None),
    ],
)
def test_a_change_begins_the_life_anew_unless_it_says_when_it_ends(
    before: str | None, after: str, default: int, expires: str | None
) -> None:
    old, new = (
        None if fields is None else parse_text("x.md", f"---\n{fields}---\n") for fields in (before, after)
    )
    assert new is not None

    assert renewed(new, old, default, NOON).fields.get("expires") == expires


@cases(
    "path, is_one",
    [
        ("working/threads/a.md", True),
        ("users/a/projects/b/resources/c/d/working/resources/e.json", True),
        ("users/a/working/threads/b.md", True),
        ("notes/working/threads/a.md", False),
        ("working/threads/a/b.md", False),
        ("working/a.md", False),
    ],
)
def test_working_memory_is_known_by_its_place(path: str, is_one: bool) -> None:
    assert is_working(path) is is_one
