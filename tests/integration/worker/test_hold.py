"""Holding: nobody else works on what a worker holds, and whoever only looks at it costs nothing (D9, B036)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from hookledger import Delivery, Inbox, RetryPolicy
from hookledger.ledger.repository import Repository
from hookledger.worker import Worker, WorkerSettings
from hookledger.worker.hold import hold
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import Way

REPOSITORY = Repository.of("hookledger")
EVENTS = [f"e{number}" for number in range(10)]

LOCK = text("SELECT FROM hookledger.pending WHERE delivery_id = ANY (:ids) FOR UPDATE")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
WRITE = text("INSERT INTO written (event_id) VALUES (:event)")


def claim(ledger: Ledger) -> list[tuple[int, int]]:
    """Claim all that is due, as a worker does; (delivery id, attempts) of each."""
    with ledger.engine.begin() as connection:
        rows = REPOSITORY.claim(connection, 100, RetryPolicy())
    return sorted((row.id, row.attempts) for row in rows)


def written(ledger: Ledger) -> list[str]:
    return sorted(row.event_id for row in ledger.execute("SELECT event_id FROM written"))


def writing(way: Way, before: Callable[[Delivery], None] = lambda _: None) -> Inbox:
    """An inbox whose handler calls `before`, then writes a row."""
    inbox = inbox_of_shop()

    def body(delivery: Delivery, tx: Connection) -> None:
        before(delivery)
        tx.execute(WRITE, {"event": delivery.event_id})

    inbox.accumulate(SHOP, name="write")(way.handler(body))
    return inbox


def test_a_claim_that_is_no_longer_ours_is_not_held(ledger: Ledger) -> None:
    """A worker that froze after its claim finds that somebody else has claimed meanwhile."""
    ledger.record(*map(document, EVENTS))
    ours = claim(ledger)
    ledger.execute("UPDATE hookledger.pending SET due_at = now(), last_error = 'theirs' WHERE delivery_id <= 4")
    theirs = claim(ledger)
    assert [attempts for _, attempts in theirs] == [2] * 4
    ledger.execute("DELETE FROM hookledger.pending WHERE delivery_id = 5")
    with ledger.engine.begin() as connection:
        assert hold(connection, REPOSITORY, ours) == {6, 7, 8, 9, 10}
    with ledger.engine.begin() as connection:
        assert hold(connection, REPOSITORY, theirs) == {1, 2, 3, 4}


def test_what_is_held_is_claimed_by_nobody(ledger: Ledger) -> None:
    ledger.record(*map(document, EVENTS))
    ours = claim(ledger)
    ledger.make_due()
    with ledger.engine.begin() as connection:
        assert len(hold(connection, REPOSITORY, ours[:6])) == 6
        assert [id for id, _ in claim(ledger)] == [7, 8, 9, 10]


def test_hold_waits_for_a_claim_that_looks_at_the_row_for_a_moment(ledger: Ledger) -> None:
    ledger.record(*map(document, EVENTS))
    ours = claim(ledger)

    def hold_all() -> set[int]:
        with ledger.engine.begin() as connection:
            return hold(connection, REPOSITORY, ours)

    with ThreadPoolExecutor() as threads, ledger.transaction() as looking:
        looking.execute(LOCK, {"ids": [2, 3]})
        held = threads.submit(hold_all)
        wait_until(lambda: ledger.value(WAITING) == 1)
        looking.rollback()
        assert held.result() == set(range(1, 11))


def test_a_claimer_that_hangs_costs_its_own_rows_only(ledger: Ledger) -> None:
    ledger.record(*map(document, EVENTS))
    ours = claim(ledger)
    with ledger.transaction() as hanging, ledger.engine.begin() as connection:
        hanging.execute(LOCK, {"ids": [2, 3]})
        connection.execute(text("SET LOCAL lock_timeout = '77s'"))
        assert hold(connection, REPOSITORY, ours) == {1, 4, 5, 6, 7, 8, 9, 10}
        # The handlers have the lock_timeout that they had.
        assert connection.execute(text("SHOW lock_timeout")).scalar() == "77s"


def test_the_lock_timeout_is_as_it_was_after_waiting(ledger: Ledger) -> None:
    ledger.record(*map(document, EVENTS))
    ours = claim(ledger)

    def hold_all() -> object:
        with ledger.engine.begin() as connection:
            hold(connection, REPOSITORY, ours)
            return connection.execute(text("SHOW lock_timeout")).scalar()

    with ThreadPoolExecutor() as threads, ledger.transaction() as looking:
        looking.execute(LOCK, {"ids": [2]})
        shown = threads.submit(hold_all)
        wait_until(lambda: ledger.value(WAITING) == 1)
        looking.rollback()
        assert shown.result() == "0"


def test_a_worker_goes_on_beside_a_claimer_that_hangs(way: Way, database_url: str, ledger: Ledger) -> None:
    """The claimer hangs exactly between our claim and our hold: its lock is on what our claim has written."""
    ledger.record(*map(document, EVENTS))
    hanging = ledger.engine.connect()
    locked = threading.Event()

    async def hang_on_two_rows(_: Worker) -> None:
        await asyncio.to_thread(wait_until, lambda: len(written(ledger)) == 8)
        await asyncio.to_thread(wait_until, lambda: sorted(ledger.pending()) == ["e1", "e2"])

    known = REPOSITORY.hold

    def hold_late(self: Repository, connection: Connection, ours: list[tuple[int, int]], **options: bool) -> set[int]:
        if not locked.is_set():
            locked.set()
            # From another thread, since this one may be the event loop's.
            thread = threading.Thread(target=lambda: hanging.execute(LOCK, {"ids": [2, 3]}))
            thread.start()
            thread.join()
        return known.__func__(self, connection, ours, **options)  # type: ignore[attr-defined,no-any-return]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "hold", hold_late)
        way.work(database_url, writing(way), while_working=hang_on_two_rows, slots=1)
    assert ledger.failures() == []
    hanging.rollback()
    hanging.close()
    ledger.make_due()
    way.work(database_url, writing(way))
    assert written(ledger) == sorted(EVENTS)
    ledger.check()


def test_b036_a_handler_that_runs_longer_than_its_due_time_is_not_run_twice(
    way: Way, database_url: str, ledger: Ledger
) -> None:
    running: list[str] = []
    reached, released = threading.Event(), threading.Event()

    def wait(delivery: Delivery) -> None:
        running.append(delivery.event_id)
        reached.set()
        assert released.wait(60)

    async def wait_asynchronously(delivery: Delivery, tx: AsyncConnection) -> None:
        await asyncio.to_thread(wait, delivery)
        await tx.execute(WRITE, {"event": delivery.event_id})

    inbox = writing(way, wait)
    if way.async_handlers:
        inbox = inbox_of_shop()
        inbox.accumulate(SHOP, name="write")(wait_asynchronously)
    ledger.record(document("slow"))

    async def work_beside(_: Worker) -> None:
        """Others look while the time at which the first would have been given up has long passed."""
        await asyncio.to_thread(reached.wait, 60)
        for _ in range(3):
            await asyncio.to_thread(way.work, database_url, writing(way), slots=2)
        ledger.record(document("other"))
        await asyncio.to_thread(way.work, database_url, writing(way), slots=2)
        assert written(ledger) == ["other"]
        released.set()

    # The row is due from the moment of its claim on: what a claim writes is put back by the trigger.
    ledger.execute(
        """
        CREATE FUNCTION due_at_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.due_at := now() - interval '1 h'; RETURN NEW;
        END $$
        """
    )
    ledger.execute(
        "CREATE TRIGGER due_at_once BEFORE UPDATE ON hookledger.pending FOR EACH ROW "
        "WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION due_at_once()"
    )
    way.work(database_url, inbox, while_working=work_beside, slots=1)
    assert running == ["slow"]
    assert written(ledger) == ["other", "slow"]
    assert ledger.outcomes_of("write") == {"slow": "applied", "other": "applied"}
    assert ledger.dead() == ledger.pending() == {}


def test_many_workers_on_few_deliveries(way: Way, database_url: str, ledger: Ledger) -> None:
    """Most claims find nothing or look at what others have just claimed."""
    events = [f"e{number}" for number in range(120)]
    ledger.record(*map(document, events))

    async def run() -> None:
        engines = [way.engine(database_url, slots=4) for _ in range(3)]
        workers = [Worker(writing(way), engine, WorkerSettings(slots=4, batch=2)) for engine in engines]
        await asyncio.gather(*(worker.run_until_idle() for worker in workers))
        for engine in engines:
            disposed = engine.dispose()
            if disposed is not None:
                await disposed

    asyncio.run(run())
    assert written(ledger) == sorted(events)
    assert ledger.failures() == []
    assert ledger.pending() == {}
