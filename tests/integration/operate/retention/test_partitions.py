"""Partitions of the payloads are made before their time, and hold up nobody."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from hookledger import SetupError
from hookledger.operate.retention.brief import Busy, Patience
from hookledger.operate.retention.partitions import WEEK, make_partitions, week_of
from hookledger.worker import Worker, WorkerSettings
from tests.aged import holds, partitions_of
from tests.outcomes import Ledger, document, inbox_of_shop
from tests.processes import wait_until

SHORT = Patience(lock=0.05, tries=2, pause=0.01)


def weeks(ledger: Ledger) -> list[datetime | None]:
    return [each.start for each in partitions_of(ledger) if not each.is_default]


def test_this_week_and_the_next_two_are_made_once(ledger: Ledger) -> None:
    made = make_partitions(ledger.engine, "hookledger")
    again = make_partitions(ledger.engine, "hookledger")

    this = week_of(ledger.now())
    assert weeks(ledger) == [this, this + WEEK, this + 2 * WEEK]
    assert len(made.made) == 3
    assert (again.made, again.there) == ([], 3)


def test_bounds_are_in_utc_whatever_the_time_zone_of_the_session(ledger: Ledger, database_url: str) -> None:
    zoned = create_engine(database_url, connect_args={"options": "-c timezone=Pacific/Auckland -c datestyle=SQL,DMY"})
    make_partitions(zoned, "hookledger")
    again = make_partitions(zoned, "hookledger")
    zoned.dispose()

    starts = weeks(ledger)
    assert again.there == 3
    assert all(start is not None and start.astimezone(UTC).weekday() == 0 for start in starts)
    assert all(start is not None and start.astimezone(UTC).hour == 0 for start in starts)


def test_what_is_received_then_lies_in_the_partition_of_its_week(ledger: Ledger) -> None:
    (name, *_) = make_partitions(ledger.engine, "hookledger").made

    ledger.record(document("e1"))

    assert holds(ledger, name) == ["e1"]
    assert holds(ledger, "payloads_default") == []


def test_who_cannot_go_on_lets_go_of_the_locks(ledger: Ledger) -> None:
    """As in a process whose event loop waits for the lock that only the loop could give up."""

    def lock_and_wait() -> None:
        with Patience(idle=0.1).transaction(ledger.engine) as connection:
            connection.execute(text("LOCK TABLE hookledger.payloads_default IN ACCESS EXCLUSIVE MODE"))
            ledger.record(document("e1"))
            connection.execute(text("SELECT 1"))

    with pytest.raises(DBAPIError):
        lock_and_wait()
    assert holds(ledger, "payloads_default") == ["e1"]


def test_a_week_of_which_the_default_partition_has_payloads_is_left_to_it(ledger: Ledger) -> None:
    ledger.record(document("e1"))

    made = make_partitions(ledger.engine, "hookledger")

    assert made.left_out == [week_of(ledger.now())]
    assert len(made.made) == 2
    assert holds(ledger, "payloads_default") == ["e1"]


def test_many_at_once_make_each_of_them_once(ledger: Ledger) -> None:
    errors: list[BaseException] = []

    def make() -> None:
        try:
            make_partitions(ledger.engine, "hookledger")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    make_partitions(ledger.engine, "hookledger")

    assert errors == []
    assert len(weeks(ledger)) == 3


def test_a_receiver_commits_while_a_partition_waits_for_its_lock(ledger: Ledger) -> None:
    make_partitions(ledger.engine, "hookledger", ahead=0)
    with ledger.transaction() as reader:
        # A long look at all payloads keeps the default partition from being locked.
        reader.execute(text("SELECT count(*) FROM hookledger.payloads"))
        with pytest.raises(Busy, match="try again later"):
            make_partitions(ledger.engine, "hookledger", patience=SHORT)
        ledger.record(document("e1"))

    assert list(ledger.pending()) == ["e1"]
    assert len(make_partitions(ledger.engine, "hookledger").made) == 2


def test_a_role_that_does_not_own_the_tables_is_told_who_has_to(ledger: Ledger, database_url: str) -> None:
    role = f"worker_{datetime.now(UTC).timestamp():.6f}".replace(".", "_")
    ledger.execute(f'CREATE ROLE "{role}"')
    ledger.execute(f'GRANT USAGE ON SCHEMA hookledger TO "{role}"')
    engine = create_engine(database_url, connect_args={"options": f"-c role={role}"})
    try:
        with pytest.raises(SetupError, match="db partitions` as the owner"):
            make_partitions(engine, "hookledger")
    finally:
        engine.dispose()
        ledger.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')
    assert weeks(ledger) == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_worker_makes_them_beside_its_work(ledger: Ledger, database_url: str, asynchronous: bool) -> None:
    engine = create_async_engine(database_url) if asynchronous else create_engine(database_url)
    inbox = inbox_of_shop()
    inbox.accumulate("shop", name="count")(lambda delivery, tx: None)
    worker = Worker(inbox, engine, WorkerSettings(slots=1))

    async def run() -> None:
        working = asyncio.create_task(worker.run())
        await asyncio.to_thread(wait_until, lambda: len(weeks(ledger)) == 3)
        worker.stop()
        await working
        if asynchronous:
            await engine.dispose()  # type: ignore[misc]

    asyncio.run(run())
    if not asynchronous:
        engine.dispose()  # type: ignore[unused-coroutine]

    assert weeks(ledger)[0] == week_of(ledger.now())


def test_the_week_of_a_time_begins_on_monday_in_utc() -> None:
    late = datetime.fromisoformat("2026-11-29T23:59:59-01:00")

    assert week_of(late) == datetime(2026, 11, 30, tzinfo=UTC)
    assert week_of(late - timedelta(hours=1)) == datetime(2026, 11, 23, tzinfo=UTC)
