"""What one shared commit writes: the events of several requests, and copies of known ones (D4, D5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Copy, NewEvent, NewRequest, Repeated
from hookledger.receive.line import Entry
from hookledger.receive.waiter import Outcome


class Vanished(Exception):
    """An event is neither new nor known: somebody has deleted it meanwhile. Trying again records it."""


class Batch(NamedTuple):
    """The events of several requests, as the ledger is given them.

    Args:
        entries: the requests.
        requests: their headers and bodies.
        events: of all of them.
        belongs_to: the index of the request of each event.
    """

    entries: Sequence[Entry]
    requests: list[NewRequest]
    events: list[NewEvent]
    belongs_to: list[int]

    def record(self, connection: Connection, repository: Repository) -> dict[int, int]:
        """Record what is new. Returns the delivery ids by the index of the event."""
        return repository.record(connection, self.requests, self.events) if self.events else {}

    def outcomes(self, new: Mapping[int, int]) -> list[Outcome]:
        """Whether each request brought anything new."""
        if len(new) == len(self.events):
            return ["recorded"] * len(self.entries)
        outcomes: list[Outcome] = ["repeated"] * len(self.entries)
        for index in new:
            outcomes[self.belongs_to[index]] = "recorded"
        return outcomes

    def copies(self, new: Mapping[int, int]) -> list[Copy]:
        """What was known already."""
        if len(new) == len(self.events):
            return []
        copies: list[Copy] = []
        for index, event in enumerate(self.events):
            if index not in new:
                accepted = self.entries[self.belongs_to[index]].accepted
                copies.append(Copy(event.source, event.event_id, event.digest, accepted.headers, accepted.body))
        return copies

    @property
    def is_plain(self) -> bool:
        """Whether no request has more than one event."""
        return len(self.events) <= len(self.entries)


def gathered(entries: Sequence[Entry]) -> Batch:
    """The batch of these entries."""
    batch = Batch(entries, [], [], [])
    for index, entry in enumerate(entries):
        accepted = entry.accepted
        batch.requests.append(NewRequest(accepted.headers, accepted.body))
        for event in accepted.events:
            batch.events.append(event if index == 0 else event._replace(request=index + 1))
            batch.belongs_to.append(index)
    return batch


def again(connection: Connection, repository: Repository, copies: list[Copy]) -> list[Repeated]:
    """Record copies of known events within an open transaction. Returns what became of them.

    Raises:
        Vanished: if the ledger neither took an event nor has it.
    """
    if not copies:
        return []
    repeated = repository.record_again(connection, copies)
    if len(repeated) != len(copies):
        raise Vanished(f"{len(copies) - len(repeated)} events were deleted while their copies came")
    return repeated
