"""The inboxes of the worker processes that the tests start: the same handlers for each kind of engine.

What is done for an event depends on its type alone.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from hookledger import Delivery, Inbox, RetryPolicy
from tests.outcomes import SHOP, inbox_of_shop
from tests.ways import WAYS, Way

GATE = 815
"""The advisory lock that events of the type `wait` wait for."""

EXIT_STATUS = 137
MAX_ATTEMPTS = 3
"""Of events of the types `exit`, `sleep` and `stay`."""

RELEASE = Path(os.environ.get("TEST_RELEASE", "/nonexistent/release"))
"""The file that events of the type `block` wait for."""

TABLES = (
    "CREATE TABLE totals (resource text PRIMARY KEY, total bigint NOT NULL)",
    "CREATE TABLE applied (event_id text NOT NULL, handler text NOT NULL, attempt integer NOT NULL)",
    "CREATE TABLE kept (resource text PRIMARY KEY, event_id text NOT NULL)",
    "CREATE SEQUENCE runs",
    "CREATE TABLE released ()",
)

_ADD = text("UPDATE totals SET total = total + 1 WHERE resource = :resource")
_APPLIED = text("INSERT INTO applied (event_id, handler, attempt) VALUES (:event, :handler, :attempt)")
_KEEP = text(
    "INSERT INTO kept (resource, event_id) VALUES (:resource, :event)"
    " ON CONFLICT (resource) DO UPDATE SET event_id = excluded.event_id"
)
# A sequence goes on when the transaction is taken back: it counts the runs of a handler, also those without effect.
_RUN = text("SELECT nextval('runs')")
_SLEEP = text("SELECT pg_sleep(600) WHERE NOT EXISTS (SELECT FROM released)")
_WAIT = text(f"SELECT pg_advisory_xact_lock_shared({GATE})")


def add(delivery: Delivery, tx: Connection) -> None:
    """Add 1 to the row of the resource."""
    assert tx.execute(_ADD, {"resource": delivery.resource}).rowcount == 1


def note(delivery: Delivery, tx: Connection) -> None:
    """Write a row."""
    tx.execute(_APPLIED, {"event": delivery.event_id, "handler": "note", "attempt": delivery.attempt})


def wait(delivery: Delivery, tx: Connection) -> None:
    """Stay in a statement until the test opens the gate."""
    tx.execute(_RUN)
    tx.execute(_WAIT)
    note(delivery, tx)


def sleep(delivery: Delivery, tx: Connection) -> None:
    """Stay in a statement for ten minutes, unless the test has put a row into `released` before."""
    tx.execute(_RUN)
    tx.execute(_SLEEP)
    note(delivery, tx)


def stay(delivery: Delivery, tx: Connection) -> None:
    """Stay outside of the database until the test answers the file of this run by another."""
    tx.execute(_RUN)
    here = RELEASE.parent / f"run-{time.time_ns()}"
    here.touch()
    while not here.with_suffix(".go").exists():
        time.sleep(0.01)
    note(delivery, tx)


def leave(delivery: Delivery, tx: Connection) -> None:
    """End the process."""
    tx.execute(_RUN)
    os._exit(EXIT_STATUS)


def block(delivery: Delivery, tx: Connection) -> None:
    """Stay outside of the database until the test makes a file."""
    tx.execute(_RUN)
    while not RELEASE.exists():
        time.sleep(0.01)
    note(delivery, tx)


async def block_asynchronously(delivery: Delivery, tx: AsyncConnection) -> None:
    """As `block`, and let others go on meanwhile."""
    await tx.execute(_RUN)
    while not RELEASE.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.01)
    await tx.run_sync(lambda connection: note(delivery, connection))


def keep(delivery: Delivery, tx: Connection) -> dict[str, str]:
    """Write who was the last, and note it."""
    tx.execute(_KEEP, {"resource": delivery.resource, "event": delivery.event_id})
    tx.execute(_APPLIED, {"event": delivery.event_id, "handler": "keep", "attempt": delivery.attempt})
    return {"event": delivery.event_id}


def cross(delivery: Delivery, tx: Connection) -> None:
    """Add 1 to the row of an account, which has nothing to do with the resource."""
    assert tx.execute(_ADD, {"resource": delivery.data["account"]}).rowcount == 1
    tx.execute(_APPLIED, {"event": delivery.event_id, "handler": "cross", "attempt": delivery.attempt})


def inbox_of(way: Way) -> Inbox:
    """The inbox with handlers of one kind."""
    inbox = inbox_of_shop(first_delay=0.2)
    few = RetryPolicy(MAX_ATTEMPTS, 0.2)
    inbox.accumulate(SHOP, "add", name="add")(way.handler(add))
    inbox.accumulate(SHOP, "note", name="note")(way.handler(note))
    inbox.accumulate(SHOP, "wait", name="wait")(way.handler(wait))
    inbox.accumulate(SHOP, "exit", name="exit", retry=few)(way.handler(leave))
    inbox.accumulate(SHOP, "sleep", name="sleep", retry=few)(way.handler(sleep))
    inbox.accumulate(SHOP, "stay", name="stay", retry=few)(way.handler(stay))
    inbox.accumulate(SHOP, "block", name="block")(block_asynchronously if way.async_handlers else block)
    inbox.snapshot(SHOP, "hot", name="keep")(way.handler(keep))
    inbox.accumulate(SHOP, "hot", name="cross")(way.handler(cross))
    return inbox


sync = inbox_of(WAYS[0])
asynchronous = inbox_of(WAYS[2])
