"""Deliveries whose last attempt ended in a crash: attempts, but no error (D10)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hookledger.inbox import Inbox
from hookledger.ledger.failure import ADMIN_SHUTDOWN, CRASH_SHUTDOWN
from hookledger.ledger.rows import ClaimedRow

IN_WORDS = "the worker died in each of the last attempts ({attempts} in all)"

MOST_LOSSES = 3
"""How often a connection may be lost under the handler of one delivery, or what the server lacks stop it while others
succeed, before that counts as a crash."""
MOST_KNOWN = 1000


class Losses:
    """Counts what handlers meet that need not be their fault. A restart of the server is nobody's; a statement that
    brings the server down, each time, is. So a lost connection counts unless the server said that it shuts down, and
    was started anew since; or said that another of its processes has crashed."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._commits = 0
        self._counted_at: dict[int, int] = {}
        self._last: tuple[int, str | None, datetime | None] | None = None

    def note(self, delivery_id: int, told: str | None, started_at: datetime | None) -> None:
        """Note a loss; whether it counts is known when there is a connection again.

        Args:
            delivery_id: whose handler ran.
            told: the code by which the server said why it ended the connection, if it did.
            started_at: when that server was started.
        """
        self._last = (delivery_id, told, started_at)

    def judge(self, started_at: datetime | None) -> int | None:
        """Count the loss that was noted last, if there is one and it counts.

        Args:
            started_at: when the server was started that answers now.

        Returns:
            The delivery, if that is one loss too many.
        """
        if self._last is None:
            return None
        (delivery_id, told, before), self._last = self._last, None
        if told == CRASH_SHUTDOWN or (told == ADMIN_SHUTDOWN and before != started_at):
            return None
        return delivery_id if self.count(delivery_id) else None

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
