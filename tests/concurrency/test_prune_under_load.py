"""Pruning beside receivers and workers loses nothing and never touches what is pending."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from hookledger import Inbox
from hookledger import engine as engines
from hookledger.operate.door import Earlier, accept_earlier, let_in
from hookledger.operate.retention import Retention
from hookledger.operate.retention.prune import Pruned, prune
from hookledger.receive.accept import Accepted
from hookledger.worker import Worker, WorkerSettings
from tests.aged import days_ago, make_old_partition, partitions_of
from tests.outcomes import Ledger, inbox_of_shop, shop
from tests.processes import wait_until
from tests.receiving import Receiving, signed

ROUNDS, EACH = 12, 25
DAYS = (80, 60, 45)


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    ledger = Ledger(database_url)
    ledger.execute("CREATE TABLE written (event_id text, note text)")
    yield ledger
    ledger.engine.dispose()


class Working:
    """A worker in a thread."""

    def __init__(self, inbox: Inbox, url: str) -> None:
        self._engine = engines.create(url, pool_size=6)
        self.worker = Worker(inbox, self._engine, WorkerSettings(slots=3, batch=20))
        self._thread = threading.Thread(target=lambda: asyncio.run(self.worker.run()))
        self._thread.start()

    def close(self) -> None:
        self.worker.stop()
        self._thread.join()
        self._engine.dispose()


def test_nothing_is_lost_and_nothing_pending_is_touched(ledger: Ledger, database_url: str) -> None:
    insert = text("INSERT INTO written VALUES (:event_id, :note)")
    inbox = inbox_of_shop()

    @inbox.accumulate("shop", name="write")
    def write(delivery: Any, tx: Any) -> None:
        tx.execute(insert, {"event_id": delivery.event_id, "note": delivery.data["note"]})

    for days in DAYS:
        make_old_partition(ledger, days)
    stop = threading.Event()
    results: list[Pruned] = []
    errors: list[BaseException] = []

    def keep_pruning() -> None:
        try:
            while not stop.is_set():
                results.append(prune(ledger.engine, "hookledger", Retention(payloads=timedelta(days=30))))
        except BaseException as error:
            errors.append(error)

    pruners = [threading.Thread(target=keep_pruning) for _ in range(2)]
    working = Working(inbox, database_url)
    statuses: list[int] = []
    try:
        with Receiving("threads", database_url, inbox=Inbox(shop())) as receiving:
            for number in range(ROUNDS):
                _import(ledger, number)
                if number == 1:
                    for pruner in pruners:
                        pruner.start()
                sent = [
                    signed(shop(), {"id": f"live-{number}-{each}", "type": "t", "note": f"live-{number}-{each}"})
                    for each in range(EACH)
                ]
                statuses += [answer.status for answer in receiving.post_all(sent)]
        wait_until(lambda: ledger.value("SELECT count(*) FROM hookledger.pending") == 0)
        wait_until(lambda: len(partitions_of(ledger)) - _current(ledger) <= 1 or errors)
    finally:
        stop.set()
        for pruner in pruners:
            if pruner.ident is not None:
                pruner.join()
        working.close()

    assert errors == []
    assert set(statuses) == {200}
    assert ledger.dead() == {}
    written = ledger.execute("SELECT event_id, note FROM written")
    assert len(written) == 2 * ROUNDS * EACH
    assert all(row.event_id == row.note for row in written)
    prune(ledger.engine, "hookledger", Retention(payloads=timedelta(days=30)))
    left = ledger.value("SELECT count(*) FROM hookledger.payloads WHERE received_at < now() - interval '30 days'")
    assert left == 0
    assert ledger.value("SELECT count(*) FROM hookledger.payloads") == ROUNDS * EACH
    dropped = {drop.partition.name for pruned in results for drop in pruned.drops if drop.kept is None}
    assert len(dropped) == len(DAYS)


def _current(ledger: Ledger) -> int:
    """How many partitions are of this week and those to come."""
    young = days_ago(14)
    return sum(1 for each in partitions_of(ledger) if each.start is not None and each.start > young)


def _import(ledger: Ledger, number: int) -> None:
    """Let in what came long ago, into a partition that is about to go."""
    earlier: list[Earlier] = []
    for each in range(EACH):
        at = days_ago(DAYS[each % len(DAYS)])
        name = f"old-{number}-{each}"
        body = json.dumps({"id": name, "type": "t", "note": name}).encode()
        accepted = accept_earlier(shop(), shop().signed(body, at.timestamp()), at)
        assert isinstance(accepted, Accepted)
        earlier.append(Earlier(accepted, at, "test"))
    with ledger.engine.begin() as connection:
        let_in(connection, "hookledger", earlier)
