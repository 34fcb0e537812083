"""The waiting line between requests and shared commits: bounded in requests and in bytes (D1).

While one commit is under way the next requests gather here and then go together; idle, a request waits for
nobody. The line is shared by threads, so each of its methods is one short critical section.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from hookledger.errors import Unavailable
from hookledger.receive.accept import Accepted
from hookledger.receive.waiter import Waiter

BYTES_AN_EVENT = 400
"""About what an event takes in memory beside its bytes, so that a body of many tiny ones counts for what it is."""


class Entry:
    """A verified request that waits to be committed.

    Args:
        accepted: what is to be recorded.
        waiter: is told the outcome or the error.
    """

    __slots__ = ("accepted", "size", "waiter")

    def __init__(self, accepted: Accepted, waiter: Waiter) -> None:
        self.accepted = accepted
        self.waiter = waiter
        self.size = len(accepted.body) + len(accepted.headers) + 500 + BYTES_AN_EVENT * len(accepted.events)

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.waiter.gone


class Line:
    """Entries in the order of their arrival.

    Args:
        longest: how many entries may wait or be in a commit.
        largest: how many bytes they may hold together; one entry is let in however large it is.
    """

    def __init__(self, longest: int, largest: int) -> None:
        self.longest = longest
        self.largest = largest
        self._waiting: deque[Entry] = deque()
        self._entries = 0
        self._bytes = 0
        self._lock = threading.Lock()
        self.gathered = threading.Condition(self._lock)

    def __len__(self) -> int:
        """How many entries wait for a commit to take them."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether a further entry would be refused."""
        return self._entries >= self.longest or self._bytes >= self.largest

    def join(self, entries: Sequence[Entry]) -> list[tuple[Entry, Unavailable]]:
        """Put entries at the end. Returns those for which there is no room: their senders are told to come again."""
        refused: list[tuple[Entry, Unavailable]] = []
        with self._lock:
            for entry in entries:
                if self.full:
                    refused.append((entry, self._full()))
                    continue
                self._waiting.append(entry)
                self._entries += 1
                self._bytes += entry.size
            self.gathered.notify()
        return refused

    def take(self, most: int, most_bytes: int) -> list[Entry]:
        """The next entries for one commit, at least one if any waits; abandoned ones are passed over."""
        with self._lock:
            return self._take(most, most_bytes)

    def take_or_wait(self, most: int, most_bytes: int, patience: float) -> list[Entry]:
        """As `take`, waiting up to `patience` seconds for the first entry."""
        with self._lock:
            if not self._waiting:
                self.gathered.wait(patience)
            return self._take(most, most_bytes)

    def wake(self) -> None:
        """Have all who wait look again."""
        with self._lock:
            self.gathered.notify_all()

    def release(self, entries: list[Entry]) -> None:
        """Take finished entries off the count."""
        with self._lock:
            self._entries -= len(entries)
            self._bytes -= sum([entry.size for entry in entries])

    def _take(self, most: int, most_bytes: int) -> list[Entry]:
        taken: list[Entry] = []
        size = 0
        while self._waiting and len(taken) < most and (not taken or size + self._waiting[0].size <= most_bytes):
            entry = self._waiting.popleft()
            if entry.abandoned:
                self._entries -= 1
                self._bytes -= entry.size
                continue
            taken.append(entry)
            size += entry.size
        return taken

    def _full(self) -> Unavailable:
        return Unavailable(
            f"the waiting line is full ({self._entries} requests, {self._bytes} bytes): "
            "events come faster than the database commits them"
        )
