"""A worker that is told to prunes beside its work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hookledger import Inbox, SetupError
from hookledger.migrate import grants
from hookledger.operate.retention import Retention
from hookledger.worker import Worker, WorkerSettings
from tests.aged import make_old_partition, make_older, partitions_of, settle
from tests.outcomes import Ledger, document, inbox_of_shop
from tests.processes import wait_until

DAY = timedelta(days=1)
MONTH = Retention(payloads=30 * DAY)


def inbox() -> Inbox:
    inbox = inbox_of_shop()
    inbox.accumulate("shop", name="count")(lambda delivery, tx: None)
    return inbox


async def work_until(worker: Worker, condition: Any) -> None:
    working = asyncio.create_task(worker.run())
    try:
        await asyncio.to_thread(wait_until, condition)
    finally:
        worker.stop()
        await working


@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_prunes_again_and_again(ledger: Ledger, database_url: str, asynchronous: bool) -> None:
    first, second = make_old_partition(ledger, 70), make_old_partition(ledger, 50)
    ledger.record(document("old"), document("older"))
    settle(ledger, "old", "older")
    make_older(ledger, 70, "old", "older")

    async def run() -> None:
        engine: Engine | AsyncEngine
        engine = create_async_engine(database_url) if asynchronous else create_engine(database_url)
        settings = WorkerSettings(slots=1, retention=MONTH, upkeep_every=0.05)
        try:
            await work_until(
                Worker(inbox(), engine, settings),
                lambda: not {first, second} & {each.name for each in partitions_of(ledger)},
            )
            make_old_partition(ledger, 60)
            await work_until(
                Worker(inbox(), engine, settings),
                lambda: all(each.is_default or each.start > min_start(ledger) for each in partitions_of(ledger)),
            )
        finally:
            if isinstance(engine, AsyncEngine):
                await engine.dispose()
            else:
                engine.dispose()

    asyncio.run(run())
    assert ledger.value("SELECT count(*) FROM hookledger.payloads") == 0


def min_start(ledger: Ledger) -> Any:
    return ledger.now() - 40 * DAY


@pytest.fixture
def run_time_engine(ledger: Ledger, database_url: str) -> Iterator[Engine]:
    """An engine of a role that may receive and work, but does not own the tables."""
    role = str(ledger.value("SELECT 'worker_' || pg_backend_pid() || '_' || current_database()"))
    ledger.execute(f'CREATE ROLE "{role}"')
    for statement in grants("hookledger", role).split(";\n"):
        if statement.strip():
            ledger.execute(statement)
    engine = create_engine(database_url, connect_args={"options": f"-c role={role}"})
    yield engine
    engine.dispose()
    ledger.execute(f'DROP OWNED BY "{role}"')
    ledger.execute(f'DROP ROLE "{role}"')


def test_a_worker_that_may_not_prune_says_so_at_the_start(run_time_engine: Engine) -> None:
    worker = Worker(inbox(), run_time_engine, WorkerSettings(retention=MONTH))

    with pytest.raises(SetupError, match="as the owner of the tables"):
        asyncio.run(worker.run())


def test_a_worker_that_may_not_make_partitions_works_all_the_same(
    run_time_engine: Engine, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "hookledger.worker.upkeep")
    ledger.record(document("e1"))
    worker = Worker(inbox(), run_time_engine, WorkerSettings(slots=1, upkeep_every=0.01))

    asyncio.run(work_until(worker, lambda: ledger.outcomes() and "db partitions" in caplog.text))

    assert caplog.text.count("db partitions") == 1
    assert ledger.pending() == {}


def test_horizons_that_are_too_short_stop_the_start(ledger: Ledger) -> None:
    ledger.record(document("e1"))
    worker = Worker(inbox(), ledger.engine, WorkerSettings(retention=Retention(payloads=DAY)))

    with pytest.raises(SetupError, match="'shop' may send an event again for 3 days"):
        asyncio.run(worker.run())
