"""Running the real worker until it has nothing left to do, and what it did."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection, Engine, text
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.engine import create
from hookledger.inbox import Inbox
from hookledger.testing.databases import LedgerDatabase
from hookledger.testing.loop import LoopThread
from hookledger.worker import Settled, Worker, WorkerSettings
from hookledger.worker.raised import without_place

TIMEOUT = 30.0
SPARE_CONNECTIONS = 2
LEAVE_SECONDS = 2.0
MOST_SHOWN = 5

_PENDING = """
    SELECT d.source, d.event_id, d.event_type, p.attempts, p.last_error
    FROM {schema}.pending AS p JOIN {schema}.deliveries AS d ON d.id = p.delivery_id ORDER BY d.id
"""
_DEAD = """
    SELECT d.source, d.event_id, d.event_type, l.reason, l.error
    FROM {schema}.dead_letters AS l JOIN {schema}.deliveries AS d ON d.id = l.delivery_id ORDER BY d.id
"""
_MAKE_DUE = "UPDATE {schema}.pending SET due_at = now() WHERE due_at > now()"


class StillPending(NamedTuple):
    """A delivery that waits for its next attempt."""

    source: str
    event_id: str
    event_type: str
    attempts: int
    last_error: str | None


class DeadLetter(NamedTuple):
    """A delivery that was given up."""

    source: str
    event_id: str
    event_type: str
    reason: str
    error: str


@dataclass(frozen=True)
class WorkReport:
    """What a worker did.

    Args:
        settled: what each handler did with each delivery, in the order of the commits; a failed attempt is one too.
        pending: what waits for its next attempt.
        dead_letters: all that are in the ledger now.
    """

    settled: Sequence[Settled] = ()
    pending: Sequence[StillPending] = ()
    dead_letters: Sequence[DeadLetter] = ()
    outcomes: Counter[str] = field(default_factory=Counter)
    """How often each: applied, stale, superseded, ignored, failed, dead (reason)."""

    @property
    def failures(self) -> list[Settled]:
        """The attempts that failed, with their errors."""
        return [one for one in self.settled if one.error is not None]

    def outcome(self, event_id: str, handler: str | None = None) -> str | None:
        """The last outcome of an event, for one handler or for whichever was last; None if it was not worked on."""
        found = [one for one in self.settled if one.event_id == event_id and handler in (None, one.handler)]
        return found[-1].outcome if found else None


def run_worker_until_idle(
    database: LedgerDatabase,
    inbox: Inbox,
    *,
    now: bool = False,
    slots: int = 1,
    batch: int = 200,
    asynchronous: bool | None = None,
    timeout: float = TIMEOUT,
) -> WorkReport:
    """Run the worker until nothing is due any more.

    Args:
        database: with the ledger.
        inbox: the handlers.
        now: do not wait for the next attempt of what failed: it is made at once, again and again, until everything is
            settled or a dead letter. If False, what failed is pending at the end.
        slots, batch: see `WorkerSettings`.
        asynchronous: whether to work on an AsyncEngine; if not given, only if a handler is asynchronous.
        timeout: seconds until it is given up.

    Raises:
        TimeoutError: if the worker was not idle by then; it says what is pending.
        SetupError: if the worker cannot work with this inbox or database.
    """
    settled: list[Settled] = []
    if asynchronous is None:
        asynchronous = any(handler.is_async for handler in inbox.handlers.values())
    size = slots + SPARE_CONNECTIONS
    engine: Engine | AsyncEngine
    if asynchronous:
        engine = create(database.url, asynchronous=True, pool_size=size, application_name="hookledger testing worker")
    else:
        engine = create(database.url, pool_size=size, application_name="hookledger testing worker")
    settings = WorkerSettings(slots=slots, batch=batch, grace=0, listen=False)
    worker = Worker(inbox, engine, settings, observe=settled.append)

    async def run() -> None:
        running = asyncio.create_task(_until_idle(worker, database, now=now))
        try:
            done, _ = await asyncio.wait([running], timeout=timeout)
            if done:
                running.result()
                return
            worker.stop(now=True)
            with contextlib.suppress(Exception):
                await asyncio.wait([running], timeout=LEAVE_SECONDS)
            raise TimeoutError
        finally:
            running.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    disposed = engine.dispose()
                    if inspect.isawaitable(disposed):
                        await disposed

    try:
        with LoopThread() as loop:
            loop.run(run(), timeout + 3 * LEAVE_SECONDS)
    except TimeoutError:
        raise TimeoutError(_told(database, timeout)) from None
    with database.engine.connect() as connection:
        pending, dead = read_pending(connection, database.schema), read_dead(connection, database.schema)
    return WorkReport(settled, pending, dead, Counter(one.outcome for one in settled))


async def _until_idle(worker: Worker, database: LedgerDatabase, *, now: bool) -> None:
    while True:
        await worker.run_until_idle()
        if not now or not await asyncio.get_running_loop().run_in_executor(None, _make_due, database):
            return


def _make_due(database: LedgerDatabase) -> int:
    with database.engine.begin() as connection:
        return make_due(connection, database.schema)


def make_due(connection: Connection, schema: str, condition: str = "") -> int:
    """Let what waits for its next attempt be due, as if its time had come. Returns how many did."""
    return int(connection.execute(text(_in(schema, _MAKE_DUE + condition))).rowcount)


def read_pending(connection: Connection, schema: str) -> list[StillPending]:
    """What is pending, in the order of arrival."""
    return [
        StillPending(*row)._replace(last_error=row.last_error and without_place(row.last_error))
        for row in connection.execute(text(_in(schema, _PENDING)))
    ]


def read_dead(connection: Connection, schema: str) -> list[DeadLetter]:
    """The dead letters, in the order of arrival."""
    return [
        DeadLetter(*row)._replace(error=without_place(row.error))
        for row in connection.execute(text(_in(schema, _DEAD)))
    ]


def _in(schema: str, statement: str) -> str:
    quoted = '"' + schema.replace('"', '""').replace(":", r"\:") + '"'
    return statement.format(schema=quoted)


def _told(database: LedgerDatabase, seconds: float) -> str:
    with database.engine.connect() as connection:
        pending = read_pending(connection, database.schema)
    shown = [
        f"{one.source} {one.event_type} {one.event_id} (attempt {one.attempts}"
        + (f": {one.last_error})" if one.last_error else ")")
        for one in pending[:MOST_SHOWN]
    ]
    more = f" and {len(pending) - MOST_SHOWN} more" if len(pending) > MOST_SHOWN else ""
    return (
        f"the worker was not idle after {seconds:g} s, pending are: {'; '.join(shown) or 'none'}{more}. Most likely a "
        "handler waits for something that does not come; give timeout= if it just takes longer"
    )
