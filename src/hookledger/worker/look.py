"""From where in the index of due times the next claim looks.

What was claimed leaves entries behind in the index until vacuum removes them; a transaction that stays open anywhere
keeps vacuum from it, and every claim would then read through all of them. So a claim begins where the last one found
something, and now and then at the beginning.
https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-SPACE-RECOVERY
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from hookledger.ledger.rows import ClaimedRow, Position

SECONDS_BETWEEN_FULL_LOOKS = 5.0
"""The longest that a delivery with an older due time, as after a slow commit or a rolled back claim, is passed over by
a worker; unless looking takes so long that it would do little else."""
SHARE_OF_FULL_LOOKS = 0.05
"""Of the time, at the most, for a worker's looks from the beginning, where one follows the other."""


class FullLooks:
    """When the slots of a worker look from the beginning: one of them does for all.

    Args:
        rare: whether they are kept rare where they take long. A worker that ends when nothing is due has to be sure.
    """

    def __init__(self, *, rare: bool = True) -> None:
        self._rare = rare
        self._lock = threading.Lock()
        self._at = -math.inf
        self._took = 0.0

    def turn(self, now: float, *, wanted: bool = False) -> bool:
        """Whether a slot is to look from the beginning now; it then does.

        Args:
            now: a clock that only goes forward, in seconds.
            wanted: it has nothing else to do.
        """
        with self._lock:
            pause = self._took / SHARE_OF_FULL_LOOKS if self._rare else 0.0
            if now - self._at < (pause if wanted else max(pause, SECONDS_BETWEEN_FULL_LOOKS)):
                return False
            self._at = now
            return True

    def begun(self, now: float) -> None:
        """Note that a slot looks from the beginning."""
        self._at = now

    def took(self, seconds: float) -> None:
        """Note how long one took."""
        self._took = seconds


class Look:
    """Where one slot looks.

    Args:
        full: of its worker.
    """

    def __init__(self, full: FullLooks) -> None:
        self._full = full
        self._since: Position | None = None
        self._begun_at = 0.0

    def since(self, now: float) -> Position | None:
        """Where to begin; None for the beginning.

        Args:
            now: a clock that only goes forward, in seconds.
        """
        if self._since is None:
            self._full.begun(now)
        elif self._full.turn(now):
            self._since = None
        self._begun_at = now
        return self._since

    def again(self, now: float) -> bool:
        """Whether to look once more, from the beginning, after having found nothing elsewhere."""
        if self._since is None or not self._full.turn(now, wanted=True):
            return False
        self._since = None
        return True

    def found(self, rows: Sequence[ClaimedRow], now: float, *, all_taken: bool) -> None:
        """Note what a claim found.

        Args:
            rows: of the claim.
            now: when it has ended.
            all_taken: whether there was less than it would have taken.
        """
        if self._since is None:
            self._full.took(now - self._begun_at)
        if rows:
            # Of those that were due together another slot may have had some, which it gives back.
            places = [(row.look_from, row.id) for row in rows]
            self._since = max(places) if all_taken else min(places)
