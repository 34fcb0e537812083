"""Time: slow handlers, stopping, and what blocks whom (D10, D12)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection

from hookledger import Delivery, Inbox
from hookledger.ledger.cancel import cancel
from hookledger.worker import Worker
from hookledger.worker.sever import sever
from tests.integration.worker.writing import write, written
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import WAYS, Way

Work = Callable[..., None]

ASYNCHRONOUS = WAYS[2]
EVENTS = [f"e{number}" for number in range(12)]


class Gate:
    """Holds handlers until it is opened, and tells how many came."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.opened = threading.Event()

    def pass_through(self) -> None:
        """Called by a blocking handler."""
        self.reached.release()
        assert self.opened.wait(60)

    async def pass_through_asynchronously(self) -> None:
        """Called by a coroutine."""
        self.reached.release()
        # Not in a thread, which the end of the loop would wait for.
        while not self.opened.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def wait_for(self, count: int = 1) -> None:
        """Until so many handlers more have come."""
        for _ in range(count):
            assert await asyncio.to_thread(self.reached.acquire, timeout=60)


def gated(way: Way, gate: Gate, *, only: str | None = None) -> Inbox:
    """An inbox whose handler `write` passes through the gate, for one event or for all."""
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        if only is None or delivery.event_id == only:
            gate.pass_through()

    async def handle(delivery: Delivery, tx: AsyncConnection) -> None:
        await tx.run_sync(lambda connection: write(delivery, connection))
        if only is None or delivery.event_id == only:
            await gate.pass_through_asynchronously()

    inbox.accumulate(SHOP, name="write")(handle if way.async_handlers else way.handler(body))
    return inbox


def test_a_batch_over_its_time_budget_is_committed_and_the_rest_given_back(
    way: Way, work: Work, ledger: Ledger
) -> None:
    inbox = inbox_of_shop()
    attempts: list[int] = []
    committed: list[int] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        committed.append(len(written(ledger)))
        attempts.append(delivery.attempt)
        write(delivery, tx)

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(event) for event in EVENTS])
    work(inbox, time_budget=1e-9, slots=1)
    assert attempts == [1] * len(EVENTS)
    assert committed == list(range(len(EVENTS)))
    assert written(ledger) == dict.fromkeys(EVENTS, 1)
    assert ledger.failures() == []


def test_what_is_given_back_is_due_at_once_and_was_not_charged(way: Way, database_url: str, ledger: Ledger) -> None:
    gate = Gate()

    async def stop_when_reached(worker: Worker) -> None:
        await gate.wait_for()
        worker.stop()
        gate.opened.set()

    ledger.record(*[document(event) for event in EVENTS])
    ledger.execute("UPDATE hookledger.pending SET attempts = 3, last_error = 'before' WHERE delivery_id = 5")
    way.work(database_url, gated(way, gate), while_working=stop_when_reached, slots=1)
    assert written(ledger) == {"e0": 1}
    pending = ledger.pending()
    assert sorted(pending) == sorted(EVENTS[1:])
    assert all(row.due_in <= 0 for row in pending.values())
    assert pending.pop("e4")[::2] == (3, "before")
    assert {row[::2] for row in pending.values()} == {(0, None)}
    ledger.check()


def test_stopping_waits_for_what_runs(way: Way, database_url: str, ledger: Ledger) -> None:
    gate = Gate()

    async def stop_before_it_ends(worker: Worker) -> None:
        await gate.wait_for(2)
        worker.stop()
        assert written(ledger) == {}
        gate.opened.set()

    ledger.record(document("e1"))
    inbox = gated(way, gate)
    ledger.record(document("e2"))
    way.work(database_url, inbox, while_working=stop_before_it_ends, slots=2, batch=1)
    assert written(ledger) == {"e1": 1, "e2": 1}
    assert ledger.pending() == {}


@pytest.mark.parametrize("now", [True, False])
def test_a_handler_that_does_not_end_is_given_up_and_not_charged(
    way: Way, database_url: str, ledger: Ledger, now: bool
) -> None:
    gate = Gate()

    async def stop(worker: Worker) -> None:
        await gate.wait_for()
        worker.stop(now=now)

    ledger.record(*[document(event) for event in EVENTS])
    try:
        way.work(database_url, gated(way, gate, only="e3"), while_working=stop, slots=1, grace=0.2 if not now else 60)
        assert written(ledger) == {}
        assert {row[::2] for row in ledger.pending().values()} == {(0, None)}
        assert ledger.failures() == []
        assert all(row.due_in <= 0 for row in ledger.pending().values())
    finally:
        gate.opened.set()
    # Whoever comes next does it all, once.
    way.work(database_url, gated(way, gate))
    assert written(ledger) == dict.fromkeys(EVENTS, 1)


def test_a_statement_that_does_not_end_is_cancelled(way: Way, database_url: str, ledger: Ledger) -> None:
    inbox = inbox_of_shop()
    reached = Gate()

    def body(delivery: Delivery, tx: Connection) -> None:
        write(delivery, tx)
        reached.reached.release()
        tx.execute(text("SELECT pg_sleep(600)"))

    inbox.accumulate(SHOP, name="write")(way.handler(body))

    async def stop(worker: Worker) -> None:
        await reached.wait_for()
        worker.stop(now=True)

    ledger.record(document("e1"))
    way.work(database_url, inbox, while_working=stop, slots=1)
    assert ledger.pending()["e1"][::2] == (0, None)
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND state = 'active'"
    assert ledger.value(sleeping) == 0


def test_a_statement_that_is_sent_while_the_connection_is_cut_is_cancelled_too(
    database_url: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel_too_early(pgconn: Any, seconds: float) -> bool:
        delivered = cancel(pgconn, seconds)
        pgconn.send_query(b"SELECT pg_sleep(600)")
        return delivered

    monkeypatch.setattr("hookledger.worker.sever.cancel", cancel_too_early)
    engine = create_engine(database_url)
    with engine.connect() as connection:
        driver_connection: Any = connection.connection.driver_connection
        pid = driver_connection.info.backend_pid
        sever(driver_connection, 5)
        connection.invalidate()
        wait_until(lambda: not ledger.value(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"))


def test_a_worker_that_was_stopped_can_run_again(way: Way, database_url: str, ledger: Ledger) -> None:
    async def run_twice() -> None:
        engine = way.engine(database_url)
        gate = Gate()
        gate.opened.set()
        worker = Worker(gated(way, gate), engine)
        for event in ("e1", "e2"):
            ledger.record(document(event))
            running = asyncio.create_task(worker.run())
            await gate.wait_for()
            worker.stop()
            await running
        disposed = engine.dispose()
        if disposed is not None:
            await disposed

    asyncio.run(run_twice())
    assert written(ledger) == {"e1": 1, "e2": 1}


def test_a_worker_stopped_before_it_runs_does_nothing(way: Way, database_url: str, ledger: Ledger) -> None:
    async def run() -> None:
        engine = way.engine(database_url)
        gate = Gate()
        gate.opened.set()
        worker = Worker(gated(way, gate), engine)
        worker.stop()
        await worker.run()
        disposed = engine.dispose()
        if disposed is not None:
            await disposed

    ledger.record(document("e1"))
    asyncio.run(run())
    assert list(ledger.pending()) == ["e1"]


def test_blocking_handlers_do_not_stop_the_loop(way: Way, database_url: str, ledger: Ledger) -> None:
    """While every slot is blocked, the loop goes round, and it is what lets the handlers go on."""
    gate = Gate()

    async def open_from_the_loop(_: Worker) -> None:
        await gate.wait_for(4)
        for _ in range(100):
            await asyncio.sleep(0)
        gate.opened.set()
        await gate.wait_for(len(EVENTS) - 4)

    ledger.record(*[document(event) for event in EVENTS])
    way.work(database_url, gated(way, gate), while_working=open_from_the_loop, slots=4, batch=1)
    assert written(ledger) == dict.fromkeys(EVENTS, 1)


def test_asynchronous_handlers_of_several_slots_run_side_by_side(database_url: str, ledger: Ledger) -> None:
    """Each waits until all are there, with a statement of its own under way."""
    inbox = inbox_of_shop()
    together = asyncio.Barrier(4)

    async def handle(delivery: Delivery, tx: AsyncConnection) -> None:
        await tx.execute(text("SELECT 1"))
        async with asyncio.timeout(60):
            await together.wait()
        await tx.run_sync(lambda connection: write(delivery, connection))

    inbox.accumulate(SHOP, name="write")(handle)
    ledger.record(*[document(event) for event in EVENTS])
    ASYNCHRONOUS.work(database_url, inbox, slots=4, batch=1)
    assert written(ledger) == dict.fromkeys(EVENTS, 1)


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


@pytest.mark.parametrize("way", WAYS[:2], ids=lambda way: way.name)
def test_what_a_blocking_handler_sets_in_its_context_is_not_there_for_the_next(
    way: Way, database_url: str, ledger: Ledger
) -> None:
    inbox = inbox_of_shop()
    found: list[str] = []

    def body(delivery: Delivery, tx: Connection) -> None:
        found.append(VARIABLE.get())
        VARIABLE.set(delivery.event_id)
        tx.execute(text("SELECT 1"))
        assert VARIABLE.get() == delivery.event_id

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    ledger.record(*[document(event) for event in EVENTS])
    way.work(database_url, inbox, slots=1)
    assert found == ["unset"] * len(EVENTS)


def test_a_hint_wakes_an_idle_worker(way: Way, database_url: str, ledger: Ledger) -> None:
    """With polling at an hour, nothing else could."""
    gate = Gate()
    gate.opened.set()

    async def record_and_hint(worker: Worker) -> None:
        channel = "SELECT pg_notify('hookledger_hookledger', '')"
        # The first hint may come before the worker listens, and no second one is due to it.
        for number in range(3):
            ledger.record(document(f"e{number}"))
            while not gate.reached.acquire(blocking=False):
                ledger.execute(channel)
                await asyncio.sleep(0.01)

    inbox = gated(way, gate)
    way.work(database_url, inbox, while_working=record_and_hint, shortest_poll=3600, longest_poll=3600)
    assert written(ledger) == {"e0": 1, "e1": 1, "e2": 1}


def test_polling_alone_finds_what_comes(way: Way, database_url: str, ledger: Ledger) -> None:
    gate = Gate()
    gate.opened.set()

    async def record(_: Worker) -> None:
        for number in range(3):
            ledger.record(document(f"e{number}"))
            await gate.wait_for()

    way.work(database_url, gated(way, gate), while_working=record, listen=False, shortest_poll=0.01, longest_poll=0.02)
    assert written(ledger) == {"e0": 1, "e1": 1, "e2": 1}


def test_a_worker_leaves_no_connection_checked_out(way: Way, database_url: str, ledger: Ledger) -> None:
    async def run() -> Any:
        engine = way.engine(database_url)
        gate = Gate()
        gate.opened.set()
        worker = Worker(gated(way, gate), engine)
        running = asyncio.create_task(worker.run())
        await gate.wait_for(len(EVENTS))
        worker.stop()
        await running
        checked_out = engine.pool.checkedout()  # type: ignore[attr-defined]
        disposed = engine.dispose()
        if disposed is not None:
            await disposed
        return checked_out

    ledger.record(*[document(event) for event in EVENTS])
    assert asyncio.run(run()) == 0
