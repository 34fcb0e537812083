"""The receiver's door for requests that did not just come: imported ones, and those let in from quarantine.

The same verifier, the same reading, the same key: only the clock is that of the time at which the request came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, insert

from hookledger.errors import Cause, NotVerified
from hookledger.http import Request, Response
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import EarlierRequest, NewEvent
from hookledger.ledger.schema import tables
from hookledger.operate.retention.brief import end_if_silent
from hookledger.receive.accept import Accepted, Genuine, read, to_record, verify
from hookledger.sources.source import Source

MEBIBYTE = 1024 * 1024
LARGEST = 256 * MEBIBYTE
"""Bytes that a compressed body may have once inflated."""


class Earlier(NamedTuple):
    """A request to let in, with the events that it was read to carry.

    Args:
        accepted: as the receiver would record it.
        received_at: when it came; not after now.
        origin: where it is from, for those who ask later.
    """

    accepted: Accepted
    received_at: datetime
    origin: str


@dataclass(frozen=True, slots=True)
class Let:
    """What became of the events of one request.

    Args:
        new: ids of the deliveries that are now recorded and pending, or dead as unreadable.
        known: ids of those that the ledger had already; nothing of them is changed.
        differing: those of the known that came with other bytes.
    """

    new: tuple[int, ...] = ()
    known: tuple[int, ...] = ()
    differing: tuple[int, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """All of them."""
        return self.new + self.known


def accept_earlier(source: Source, request: Request, at: datetime, *, any_age: bool = False) -> Accepted | Response:
    """Verify a request as of the time at which it came, and read its events.

    Args:
        source: it claims to be from; any of its secrets may have signed.
        request: with the exact bytes.
        at: when it came.
        any_age: take what is signed however long it was under way, as a captured request may have an imprecise time.

    Returns:
        What is to be recorded, or the answer to a handshake, which carries no event.

    Raises:
        Refused: if it does not verify.
    """
    now = at.timestamp()
    try:
        genuine = verify(source, request, now, LARGEST)
    except NotVerified as error:
        offset = error.details.get("clock_offset")
        # The age is looked at after the signature: what is refused for it was signed with one of the secrets.
        if not any_age or error.cause is not Cause.CLOCK or not isinstance(offset, int | float):
            raise
        genuine = verify(source, request, now - offset, LARGEST)
    return _read(genuine)


def accept_unverified(source: Source, request: Request) -> Accepted | Response:
    """Read a request that nobody has verified."""
    return _read(Genuine(source, request, request, None))


def let_in(connection: Connection, schema: str, requests: Sequence[Earlier]) -> list[Let]:
    """Record requests with their own times, marked as imported; what is known already is left as it is.

    A copy of a known event is no redelivery, as no sender sent it: letting in the same again changes nothing.

    Args:
        connection: in a transaction; committing is left to the caller.
        schema: of the ledger.
        requests: in the order of their arrival, as the later one wins where versions are equal.
    """
    # Receivers of the same events wait for our keys.
    end_if_silent(connection)
    repository, t = Repository.of(schema), tables(schema)
    payloads = [EarlierRequest(each.accepted.headers, each.accepted.body, each.received_at) for each in requests]
    events: list[NewEvent] = []
    belongs_to: list[int] = []
    for number, each in enumerate(requests):
        events += [event._replace(request=number + 1) for event in each.accepted.events]
        belongs_to += [number] * len(each.accepted.events)
    if not events:
        return [Let() for _ in requests]
    new = repository.record_earlier(connection, payloads, events)
    if new:
        rows = [{"delivery_id": id, "origin": requests[belongs_to[index]].origin} for index, id in new.items()]
        connection.execute(insert(t.imported), rows)
    missing = [(event.source, event.event_id) for index, event in enumerate(events) if index not in new]
    known = repository.known(connection, missing) if missing else {}
    return [_let(number, events, belongs_to, new, known) for number in range(len(requests))]


def _let(
    number: int,
    events: Sequence[NewEvent],
    belongs_to: Sequence[int],
    new: dict[int, int],
    known: dict[tuple[str, str], tuple[int, bytes]],
) -> Let:
    mine = [index for index, owner in enumerate(belongs_to) if owner == number]
    found = [(events[index], known[events[index].source, events[index].event_id]) for index in mine if index not in new]
    return Let(
        tuple([new[index] for index in mine if index in new]),
        tuple([id for _, (id, _) in found]),
        tuple([id for event, (id, digest) in found if digest != event.digest]),
    )


def _read(genuine: Genuine) -> Accepted | Response:
    readable = read(genuine, LARGEST)
    return readable if isinstance(readable, Response) else to_record(readable)
