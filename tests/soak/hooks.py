"""The inboxes of the soak: the handlers whose writes the books read, and events that are slow or end the process."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox
from tests.faults.books import ADD, SAVE, SOURCE, WRITE
from tests.faults.hooks import add, save, write
from tests.outcomes import inbox_of_shop
from tests.soak.plan import POISON, SLOW
from tests.ways import WAYS, Way

ENDED = 137
"""The exit status of a process that a handler has ended."""

MAX_ATTEMPTS = 6
_SLOWLY = text("SELECT pg_sleep(0.4)")


def write_or_worse(delivery: Delivery, tx: Connection) -> None:
    """Write a row, slowly or not; or end the process after that."""
    write(delivery, tx)
    if delivery.event_type == SLOW:
        tx.execute(_SLOWLY)
    if delivery.event_type == POISON:
        os._exit(ENDED)


def inbox_of(way: Way, **retry: Any) -> Inbox:
    """The inbox with handlers of one kind."""
    inbox = inbox_of_shop(**retry)
    inbox.accumulate(SOURCE, name=WRITE)(way.handler(write_or_worse))
    inbox.accumulate(SOURCE, name=ADD)(way.handler(add))
    inbox.snapshot(SOURCE, name=SAVE)(way.handler(save))
    return inbox


sync = inbox_of(WAYS[0], max_attempts=MAX_ATTEMPTS, first_delay=0.2, longest_delay=2.0)
asynchronous = inbox_of(WAYS[2], max_attempts=MAX_ATTEMPTS, first_delay=0.2, longest_delay=2.0)
