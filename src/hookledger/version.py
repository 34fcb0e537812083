"""Versions: what orders the snapshots of one resource (D7).

A version is kept as a tuple of numbers and compared as numbers, never as text. Times are seconds since 1970
with six decimals, so that a Unix time and an ISO 8601 time of one sender compare rightly with each other.
PostgreSQL holds it as numeric[], which it orders as Python orders the tuple.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from hookledger.errors import UncomparableVersion

Version = tuple[int | Decimal, ...]

LONGEST_NUMBER = 120  # digits; PostgreSQL's numeric holds far more, but no sender's version does
MICROSECOND = Decimal("0.000001")
_NUMBER = re.compile(r"[+-]?\d{1,120}(\.\d{1,120})?", re.ASCII)
# RFC 3339 allows t and z, too: https://www.rfc-editor.org/rfc/rfc3339#section-5.6
_SPACED_ZONE = re.compile(r"^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)? ?(UTC|Z|z|[+-]\d\d:?\d\d)?$", re.ASCII)


def time_version(moment: datetime) -> Decimal:
    """Seconds since 1970 with six decimals. A time without a zone is read as UTC."""
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds
    # Built from its digits: arithmetic would round to the precision of the thread's decimal context.
    return Decimal((int(micros < 0), tuple(map(int, str(abs(micros)))), -6))


def _number_or_time(text: str) -> int | Decimal:
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return Decimal(stripped) if "." in stripped else int(stripped)
    matched = _SPACED_ZONE.match(stripped)
    if matched:
        day, clock, fraction, zone = matched.groups()
        # Beyond microseconds the digits are cut, as datetime cannot hold them.
        fraction = (fraction or "")[:7]
        zone = "+00:00" if zone in (None, "UTC", "Z", "z") else zone
        stripped = f"{day}T{clock}{fraction}{zone}"
    try:
        return time_version(datetime.fromisoformat(stripped))
    except (ValueError, OverflowError):
        raise UncomparableVersion(
            f"the version {text[:60]!r} is neither a number nor an ISO 8601 time; give the handler a version= function"
        ) from None


def _one(value: Any) -> int | Decimal:
    if isinstance(value, bool):
        raise UncomparableVersion(f"the version {value!r} is a truth value, not a number")
    if isinstance(value, int):
        if abs(value) >= 10**LONGEST_NUMBER:
            raise UncomparableVersion("the version has more digits than any counter or clock")
        return int(value)
    if isinstance(value, float):
        value = Decimal(repr(float(value)))
    if isinstance(value, Decimal):
        usable = value.is_finite() and abs(value.adjusted()) <= LONGEST_NUMBER
        if not usable or len(value.as_tuple().digits) > 2 * LONGEST_NUMBER:
            raise UncomparableVersion(f"the version {str(value)[:60]} is not a finite number of usable size")
        return value
    if isinstance(value, datetime):
        return time_version(value)
    if isinstance(value, date):
        return time_version(datetime.combine(value, time(), UTC))
    if isinstance(value, str):
        try:
            return _number_or_time(value)
        except InvalidOperation:
            raise UncomparableVersion(f"the version {value[:60]!r} is not a number") from None
    raise UncomparableVersion(f"a version must be a number, a time, or a tuple of them, not {type(value).__name__}")


def read_version(value: Any) -> Version | None:
    """The comparable form of what a source or a handler's `version=` gave.

    Args:
        value: an int, Decimal, finite float, datetime, numeric or ISO 8601 string, or a tuple or list of
            them; None means that the delivery carries no version.

    Raises:
        UncomparableVersion: for anything else; the delivery then fails, and is never taken for stale.
    """
    if value is None:
        return None
    if isinstance(value, tuple | list):
        if not value:
            raise UncomparableVersion("an empty tuple orders nothing; return None where there is no version")
        return tuple([_one(item) for item in value])
    return (_one(value),)


def comparable(left: Iterable[Any], right: Iterable[Any]) -> bool:
    """Whether two versions have the same shape: tuples of different length order nothing."""
    return len(tuple(left)) == len(tuple(right))


def seconds_ahead(version: Version, now: datetime) -> float:
    """How far the version, if its first part is a time, lies after `now`, in seconds; 0 for counters.

    Only times carry six decimals or more (see `time_version`); a counter does not tell how new it is.
    """
    first = version[0]
    if isinstance(first, Decimal) and first.as_tuple().exponent == -6:
        return max(0.0, float(first - time_version(now)))
    return 0.0


def in_words(version: Version | None) -> str:
    """The version as a person reads it: times in UTC, counters as they are."""
    if version is None:
        return "none"
    parts = []
    for part in version:
        if isinstance(part, Decimal) and part.as_tuple().exponent == -6 and 0 <= part < 253_402_300_800:
            numerator, denominator = part.as_integer_ratio()
            seconds, micros = divmod(numerator * 1_000_000 // denominator, 1_000_000)
            parts.append(datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat())
        else:
            parts.append(str(part))
    return ", ".join(parts)
