"""Moments as people write them: absolute, in UTC unless a zone is given, or as a span before now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hookledger.errors import SetupError

_SPAN = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def read_moment(written: str, now: datetime) -> datetime:
    """The moment that is meant, in UTC.

    Args:
        written: "3h" (before now; s, m, h, d or w), "2031-05-04", "2031-05-04T13:58" or "2031-05-04 13:58:02+02:00".
        now: with zone.

    Raises:
        SetupError: if it is none of them, or before the year 1.
    """
    text = written.strip()
    try:
        if span := _SPAN.fullmatch(text):
            return (now - timedelta(seconds=float(span[1]) * _SECONDS[span[2]])).astimezone(UTC)
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise SetupError(
            f"{written!r} is no time: write 3h, 2d, or 2031-05-04T13:58 (UTC unless it names another zone)"
        ) from None


def shown_moment(moment: datetime | None) -> str:
    """A moment for people: to the second, in UTC, and labelled so."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
