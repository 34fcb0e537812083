"""What is paused: deliveries of a paused source, and those left to paused handlers, are parked without a charge.

A parked delivery is pending, with its attempt refunded and a later due time, at which it is looked at again. Should the
one who resumes be killed half way, it is late, never lost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hookledger.handlers import Handler
from hookledger.ledger.rows import ClaimedRow, Parked

SHORTEST, LONGEST = 10.0, 3600.0
"""Seconds until a parked delivery is looked at again. They grow with the age of the pause: each look at a delivery
costs as much as a claim of it, and there may be a million."""
SUSPECT = 60.0
"""The longest for one whose last attempt ended in a crash."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """What is paused, as a claim read it.

    Args:
        sources: their names, and for how many seconds each has been paused.
        handlers: the same of handlers.
    """

    sources: dict[str, float]
    handlers: dict[str, float]

    def __bool__(self) -> bool:
        return bool(self.sources or self.handlers)

    def stops(self, source: str, handlers: Collection[Handler]) -> bool:
        """Whether no handler of these may run for a delivery of the source."""
        if source in self.sources:
            return True
        return bool(handlers) and all(self.of(handler) for handler in handlers)

    def of(self, handler: Handler) -> list[str]:
        """The names under which a handler is paused: its own, and those that it had before, as the ledger knows it."""
        return [name for name in (handler.name, *handler.aliases) if name in self.handlers]

    def seconds(self, source: str, handlers: Collection[str], chance: float) -> float:
        """How long a delivery is parked.

        Args:
            source: its own.
            handlers: names of those that match it, or were paused.
            chance: from 0 to 1, so that not all come back at once.
        """
        ages = [age for name, age in self.handlers.items() if name in handlers]
        if source in self.sources:
            ages.append(self.sources[source])
        return min(LONGEST, max(SHORTEST, min(ages, default=0.0))) * (1.0 + chance / 2)


NOTHING = Pauses({}, {})


@lru_cache(maxsize=8)
def read_pauses(text: str | None) -> Pauses:
    """What the text says that a claim gives along with each row."""
    found = NOTHING if text is None else Pauses({}, {})
    for kind, name, age in json.loads(text or "[]"):
        (found.sources if kind == "source" else found.handlers)[name] = float(age)
    return found


def park(row: ClaimedRow, pauses: Pauses, handlers: Collection[Handler], chance: float) -> Parked:
    """A claimed row, given back before anything was run."""
    names = [name for handler in handlers for name in pauses.of(handler)]
    seconds = pauses.seconds(row.source, names, chance)
    if row.crashed:
        # The claim has not charged it, and the mark of the crash stays.
        return Parked(row.id, row.attempts, 0, None, min(seconds, SUSPECT))
    return Parked(row.id, row.attempts, 1, row.last_error, seconds)


def pauses_of(rows: Sequence[ClaimedRow]) -> Pauses:
    """What was paused when the rows were claimed."""
    return read_pauses(rows[0].pauses) if rows else NOTHING
