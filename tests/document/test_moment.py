from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from mdmem.document.moment import moment_of, read_date, stamp, stamp_of


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2024-01-31", datetime(2024, 1, 31, tzinfo=UTC)),
        ("2024-01-31T12:30", datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
        ("2024-01-31T12:30:00Z", datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
        ("2024-01-31 12:30:00+02:00", datetime(2024, 1, 31, 10, 30, tzinfo=UTC)),
        ("2024-13-01", None),
        ("soon", None),
        ("", None),
        (None, None),
        (20240131, None),
        (["2024-01-31"], None),
        ("0001-01-01T00:00:00Z", None),  # what Go writes for "not set"
        ("9999-12-31T23:59:59-12:00", None),
    ],
)
def test_a_moment_is_in_utc_or_none(written: object, moment: datetime | None) -> None:
    found = moment_of(written)
    assert found == moment
    assert found is None or found.tzinfo is UTC


def test_a_date_keeps_the_zone_that_it_names() -> None:
    assert read_date("2024-01-31T12:30") == datetime(2024, 1, 31, 12, 30)  # noqa: DTZ001 - it names none
    assert read_date("2024-01-31T12:30+02:00") == datetime(
        2024, 1, 31, 12, 30, tzinfo=timezone(timedelta(hours=2))
    )


def test_a_stamp_is_in_utc_to_the_second_or_as_asked() -> None:
    moment = datetime(2024, 1, 31, 12, 30, 0, 123_456, tzinfo=timezone(timedelta(hours=2)))
    assert stamp(moment) == "2024-01-31T10:30:00Z"
    assert stamp(moment, "milliseconds") == "2024-01-31T10:30:00.123Z"


def test_a_time_of_change_that_is_no_date_has_no_stamp() -> None:
    assert stamp_of(1_706_704_200_000_000_000) == "2024-01-31T12:30:00Z"
    assert stamp_of(10**30) == ""
