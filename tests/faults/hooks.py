"""The inboxes of the runs: handlers of each kind, for both kinds of engine, whose writes `books` reads."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, Reject
from tests.faults.books import ADD, SAVE, SOURCE, WRITE
from tests.outcomes import inbox_of_shop
from tests.ways import WAYS, Way

FAILS_ONCE, REJECTED = "fails-once", "rejected"
"""Types of events, which fail after they have written."""

_ENTRY = text(
    "INSERT INTO public.entries (handler, event_id, resource, attempt) VALUES (:handler, :event, :resource, :attempt)"
)


def _enter(handler: str, delivery: Delivery, tx: Connection) -> None:
    values = {"event": delivery.event_id, "resource": delivery.resource, "attempt": delivery.attempt}
    tx.execute(_ENTRY, {"handler": handler, **values})


def write(delivery: Delivery, tx: Connection) -> None:
    """Write a row, unless the type of the event has it fail."""
    _enter(WRITE, delivery, tx)
    if delivery.event_type == FAILS_ONCE and delivery.attempt == 1:
        raise ValueError("not at the first attempt")
    if delivery.event_type == REJECTED:
        raise Reject("not this one")


def add(_: Delivery, __: Connection) -> dict[str, int]:
    """Have 1 added to the state of the resource."""
    return {"n": 1}


def save(delivery: Delivery, tx: Connection) -> dict[str, str]:
    """Write a row, and have the event kept as the state of the resource."""
    _enter(SAVE, delivery, tx)
    return {"event": delivery.event_id}


def inbox_of(way: Way, **retry: Any) -> Inbox:
    """The inbox with handlers of one kind, and a retry policy of the given values."""
    inbox = inbox_of_shop(**retry)
    inbox.accumulate(SOURCE, name=WRITE)(way.handler(write))
    inbox.accumulate(SOURCE, name=ADD)(way.handler(add))
    inbox.snapshot(SOURCE, name=SAVE)(way.handler(save))
    return inbox


# So few attempts that outages which charge anybody each time make a dead letter. One that lasts for longer than the 5
# seconds of a claim may cost an attempt, where another worker is back sooner than the one that had claimed.
sync = inbox_of(WAYS[0], max_attempts=5, first_delay=0.2)
asynchronous = inbox_of(WAYS[2], max_attempts=5, first_delay=0.2)
