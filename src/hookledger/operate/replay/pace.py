"""How many deliveries a rate allows now. Pure: the time is passed in."""

from __future__ import annotations

BURST = 0.25
"""Seconds' worth of deliveries that may come at once."""


class Pace:
    """Keeps to a rate.

    Args:
        rate: deliveries a second; None for any.
        now: seconds of a monotonic clock.
    """

    def __init__(self, rate: float | None, now: float) -> None:
        self._rate = rate
        self._at = now
        self._credit = 1.0

    def allowed(self, now: float, most: int) -> int:
        """How many may be queued now, `most` at the most."""
        if self._rate is None:
            return most
        self._credit = min(self._credit + (now - self._at) * self._rate, max(1.0, self._rate * BURST))
        self._at = now
        return min(most, int(self._credit))

    def took(self, count: int) -> None:
        """So many were."""
        if self._rate is not None:
            self._credit -= count

    def pause(self) -> float:
        """Seconds until the next one is allowed."""
        return 0.0 if self._rate is None else max(0.0, (1.0 - self._credit) / self._rate)
