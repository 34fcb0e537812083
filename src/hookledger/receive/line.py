"""The waiting line between requests and shared commits: bounded in requests and in bytes (D1).

While one commit is under way the next requests gather here and then go together; idle, a request waits for
nobody. The line is shared by threads, so each of its methods is one short critical section.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

from hookledger.errors import Unavailable
from hookledger.receive.accept import Accepted

Outcome = Literal["recorded", "repeated"]
Finish = Callable[["Entry", Outcome | Exception], None]


BYTES_AN_EVENT = 400
"""About what an event takes in memory beside its bytes, so that a body of many tiny ones counts for what it is."""


class Entry:
    """A verified request that waits to be committed.

    Args:
        accepted: what is to be recorded.
        finish: called once, from any thread, with the outcome or the error.
    """

    __slots__ = ("abandoned", "accepted", "finish", "size")

    def __init__(self, accepted: Accepted, finish: Finish) -> None:
        self.accepted = accepted
        self.finish = finish
        self.size = len(accepted.body) + len(accepted.headers) + 500 + BYTES_AN_EVENT * len(accepted.events)
        self.abandoned = False


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

    def join(self, entry: Entry) -> None:
        """Put an entry at the end.

        Raises:
            Unavailable: if the line is full; the sender is told to come again.
        """
        with self._lock:
            if self.full:
                raise Unavailable(
                    f"the waiting line is full ({self._entries} requests, {self._bytes} bytes): "
                    "events come faster than the database commits them"
                )
            self._waiting.append(entry)
            self._entries += 1
            self._bytes += entry.size
            self.gathered.notify()

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
