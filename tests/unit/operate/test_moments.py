"""Moments as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hookledger.errors import SetupError
from hookledger.operate.moments import read_moment, shown_moment

NOW = datetime(2031, 5, 4, 13, 58, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3h", NOW - timedelta(hours=3)),
        (" 1.5 h ", NOW - timedelta(minutes=90)),
        ("90s", NOW - timedelta(seconds=90)),
        ("5m", NOW - timedelta(minutes=5)),
        ("2d", NOW - timedelta(days=2)),
        ("1w", NOW - timedelta(weeks=1)),
        ("2031-05-04", datetime(2031, 5, 4, tzinfo=UTC)),
        ("2031-05-04T13:58", datetime(2031, 5, 4, 13, 58, tzinfo=UTC)),
        ("2031-05-04 13:58:02Z", NOW),
        ("2031-05-04T15:58:02+02:00", NOW),
    ],
)
def test_absolute_and_relative_moments_are_read(written: str, meant: datetime) -> None:
    assert read_moment(written, NOW) == meant
    assert read_moment(written, NOW).tzinfo is UTC


@pytest.mark.parametrize("written", ["", "yesterday", "3", "-3h", "3y", "99999999w", "2031-13-01", "0001-01-01T00+02"])
def test_anything_else_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(SetupError, match="write 3h"):
        read_moment(written, NOW)


def test_moments_are_shown_in_utc_and_labelled() -> None:
    assert shown_moment(NOW.astimezone(timezone(timedelta(hours=2)))) == "2031-05-04 13:58:02 UTC"
    assert shown_moment(None) == ""
