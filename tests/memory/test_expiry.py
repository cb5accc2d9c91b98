"""When a memory expires: read leniently, written exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from mdmem.errors import Usage
from mdmem.memory.expiry import Life, has_passed, life, living, written
from mdmem.text.document import parse_text

NOON = datetime(2025, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expires", "passed"),
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
    assert written(parse_text("x.md", text)) is None


def test_the_field_is_read_from_frontmatter_and_from_json() -> None:
    assert written(parse_text("x.md", "---\nexpires: 2025-01-31\n---\n")) == "2025-01-31"
    assert written(parse_text("x.json", '{"expires": "2025-01-31"}')) == "2025-01-31"
    assert written(parse_text("x.json", '["expires"]')) is None


def test_a_life_ends_so_many_seconds_from_now() -> None:
    assert life(60, 0, NOON) == Life("2025-01-31T12:01:00Z", given=True)
    assert life(None, 60, NOON) == Life("2025-01-31T12:01:00Z", given=False)
    assert life(0, 60, NOON) == Life(None, given=True)
    assert life(None, 0, NOON) == Life(None, given=False)
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert life(60, 0, there) == life(60, 0, NOON)


@pytest.mark.parametrize("ttl", [-1, 1.5, True, "60", 10**12, 10**400])
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
        ("x.md", "body\n", "---\nexpires: 2025-01-31T12:01:00Z\n---\n\nbody\n"),
        ("x.md", "---\na: 1 # c\n---\nbody", "---\na: 1 # c\nexpires: 2025-01-31T12:01:00Z\n---\nbody"),
        (
            "x.md",
            "---\nexpires: 2024-01-01 # c\nb: 2\n---\n",
            "---\nexpires: 2025-01-31T12:01:00Z # c\nb: 2\n---\n",
        ),
        ("x.json", '{"a":1}', '{"a":1,"expires":"2025-01-31T12:01:00Z"}'),
    ],
)
def test_only_the_field_is_written(path: str, before: str, after: str) -> None:
    document = living(parse_text(path, before), life(60, 0, NOON))

    assert document.text == after
    assert "expires" not in living(document, life(0, 0, NOON)).fields


def test_a_json_value_without_fields_lives_for_ever() -> None:
    array = parse_text("x.json", "[1]")

    assert living(array, life(0, 0, NOON)).text == "[1]"
    with pytest.raises(Usage, match="no place for `expires`"):
        living(array, life(60, 0, NOON))
