"""Spans of time as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

from hookledger.errors import SetupError

NEVER = "never"
LONGEST = timedelta(days=36_525)
"""So long before now there still are dates, in Python and in PostgreSQL."""
_SPAN = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_span(written: str) -> timedelta | None:
    """The span that is meant; None for `never`.

    Args:
        written: "12h", "30d" (s, m, h, d or w), or "never".

    Raises:
        SetupError: if it is neither, or so long that never is meant.
    """
    text = written.strip().lower()
    if text == NEVER:
        return None
    found = _SPAN.fullmatch(text)
    if found is None:
        raise SetupError(f"{written!r} is no span of time: write 12h or 30d (s, m, h, d or w), or never")
    span = timedelta(**{_UNITS[found[2]]: float(found[1])})
    if span > LONGEST:
        raise SetupError(f"{written!r} is longer than a hundred years: write never")
    return span
