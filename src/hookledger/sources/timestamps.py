"""Timestamps that senders sign: how they are written, and how old they may be."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal

from hookledger.errors import Cause, NotVerified, UncomparableVersion
from hookledger.version import read_version

TimestampUnit = Literal["seconds", "milliseconds", "iso8601"]

UNITS = ("seconds", "milliseconds", "iso8601")
DEFAULT_TOLERANCE = 300.0  # seconds
LONGEST_TIMESTAMP = 20  # digits
_ZONE = re.compile(rb"([Zz]|[+-][0-9]{2}:?[0-9]{2})\Z")


def read_timestamp(timestamp: bytes, unit: TimestampUnit) -> float | None:
    """Unix time in seconds, or None if the bytes are no such timestamp."""
    if unit == "iso8601":
        try:
            version = read_version(timestamp.decode("ascii"))
        except (UncomparableVersion, UnicodeDecodeError):
            return None
        return None if version is None else float(version[0])
    # bytes.isdigit knows ASCII digits only; whole numbers only, so that no part of the message can be
    # taken for a fraction of the timestamp.
    if not timestamp.isdigit() or len(timestamp) > LONGEST_TIMESTAMP:
        return None
    return int(timestamp) / (1000 if unit == "milliseconds" else 1)


def is_whole(timestamp: bytes, unit: TimestampUnit) -> bool:
    """Whether a time is written so that nothing could have been taken off its end: with all digits of a time between
    2001 and 2286, or with its zone."""
    if unit == "iso8601":
        return _ZONE.search(timestamp) is not None
    return len(timestamp) == (13 if unit == "milliseconds" else 10)


def write_timestamp(now: float, unit: TimestampUnit) -> str:
    """A Unix time in seconds as a sender would write it."""
    if unit == "iso8601":
        return datetime.fromtimestamp(now, UTC).isoformat()
    return str(int(now * 1000) if unit == "milliseconds" else int(now))


def check_age(
    seconds: float, now: float, *, past: float | None, future: float | None, what: str = "the timestamp"
) -> None:
    """Refuse a time that was signed too long ago, or lies ahead of our clock.

    Args:
        seconds: the time that was signed, in Unix time.
        now: Unix time in seconds.
        past, future: how far it may be off, in seconds; None for any.
        what: bears the time, for the message.

    Raises:
        NotVerified: with the number of seconds.
    """
    age = now - seconds
    if past is not None and age > past:
        said = f"{what} is {age:.0f} seconds old, {past:g} are allowed"
        raise NotVerified(said, Cause.CLOCK, clock_offset=age, tolerance=past)
    if future is not None and -age > future:
        said = f"{what} is {-age:.0f} seconds in the future, {future:g} are allowed"
        raise NotVerified(said, Cause.CLOCK, clock_offset=age, tolerance=future)
