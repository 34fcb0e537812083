"""Deliveries whose last attempt ended in a crash: attempts, but no error (D10)."""

from __future__ import annotations

from collections.abc import Sequence

from hookledger.inbox import Inbox
from hookledger.ledger.repository import ClaimedRow

IN_WORDS = "the worker died in each of the last attempts ({attempts} in all)"

MOST_LOSSES = 3
"""How often a connection may be lost under the handler of one delivery, or what the server lacks stop it while others
succeed, before that counts as a crash."""
MOST_KNOWN = 1000


class Losses:
    """Counts what handlers meet that need not be their fault. A restart of the server is nobody's; a statement that
    brings the server down, each time, is."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._commits = 0
        self._counted_at: dict[int, int] = {}

    def committed(self) -> None:
        """Note that the handlers of a batch succeeded."""
        self._commits += 1

    def count_distress(self, delivery_id: int) -> bool:
        """Note that a handler met a full disk, say. It counts only if others succeeded since it did so last: while
        nobody does, it is the server. Returns whether it is one too many."""
        if self._counted_at.get(delivery_id) == self._commits:
            return False
        if len(self._counted_at) >= MOST_KNOWN:
            self._counted_at.clear()
        self._counted_at[delivery_id] = self._commits
        return self.count(delivery_id)

    def count(self, delivery_id: int) -> bool:
        """Note a loss. Returns whether it is one too many."""
        if len(self._times) >= MOST_KNOWN:
            self._times.clear()
        self._times[delivery_id] = self._times.get(delivery_id, 0) + 1
        return self._times[delivery_id] >= MOST_LOSSES


def in_order(rows: Sequence[ClaimedRow]) -> list[ClaimedRow]:
    """Those that crashed, the least suspect first: whoever was only near the crash has the fewer attempts."""
    return sorted([row for row in rows if row.crashed], key=lambda row: (row.attempts, row.id))


def has_crashed_enough(row: ClaimedRow, inbox: Inbox) -> bool:
    """Whether it is given up. The first crash happened in company, so it proves nothing: everybody gets one
    attempt alone."""
    handlers = inbox.handlers_for(row.source, row.event_type)
    most = max([inbox.retry_of(handler).max_attempts for handler in handlers], default=1)
    return row.attempts >= max(most, 2)
