"""Only what is listed can be read, whatever Python offers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from jinja2.filters import FILTERS
from jinja2.utils import Namespace

from mdmem.template import allowed


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        ("text", "upper"),
        ({"a": 1}, "items"),
        ([1], "index"),
        (datetime(2026, 1, 2, tzinfo=UTC), "year"),
        (Namespace(), "anything"),
    ],
)
def test_what_is_listed_can_be_read(owner: Any, attribute: str) -> None:
    assert allowed.is_readable(owner, attribute)


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        ("text", "format"),
        ("text", "encode"),
        ("text", "zfill"),
        ({}, "update"),
        ([], "append"),
        (1, "to_bytes"),
        (1.0, "hex"),
        ({}.keys(), "mapping"),
        (range(3), "count"),
        (datetime(2026, 1, 2, tzinfo=UTC), "tzinfo"),
        (str, "join"),
        (type, "mro"),
    ],
)
def test_nothing_else_can(owner: Any, attribute: str) -> None:
    assert not allowed.is_readable(owner, attribute)


def test_every_allowed_filter_is_one_of_jinjas() -> None:
    assert FILTERS.keys() >= allowed.FILTERS
