"""From where in the index of due times the next claim looks.

What was claimed leaves entries behind, at the beginning of the index, until vacuum removes them; a transaction that
stays open anywhere keeps vacuum from it, and every claim would then read through all of them. So a claim begins a
little before where the last one found something, and now and then at the beginning.
https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-SPACE-RECOVERY
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookledger.ledger.rows import ClaimedRow

MARGIN = timedelta(seconds=2)
"""A receipt becomes visible with its commit, but is due from the beginning of its transaction."""
SECONDS_BETWEEN_FULL_LOOKS = 5.0
"""The longest that a delivery with an older due time, as after a slow commit or a rolled back claim, is passed over."""


class Look:
    """Where one slot looks."""

    def __init__(self) -> None:
        self._since: datetime | None = None
        self._full_at = 0.0

    def since(self, now: float) -> datetime | None:
        """The due time to begin with; None for the beginning.

        Args:
            now: a clock that only goes forward, in seconds.
        """
        if self._since is None or now - self._full_at >= SECONDS_BETWEEN_FULL_LOOKS:
            self._since = None
            self._full_at = now
        return self._since

    def found(self, rows: Sequence[ClaimedRow], *, all_taken: bool) -> None:
        """Note what a claim found.

        Args:
            rows: of the claim.
            all_taken: whether there was less than it would have taken: then the next one looks from the beginning.
        """
        self._since = None if all_taken else min(row.due_at for row in rows) - MARGIN
