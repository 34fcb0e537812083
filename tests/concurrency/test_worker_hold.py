"""What the model of claim and hold has found (D9, D10): locks of what was overtaken, and a charge whose commit is not
heard of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.pool import NullPool

from hookledger import RetryPolicy
from hookledger.ledger.repository import Repository
from hookledger.worker.hold import hold
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop
from tests.processes import wait_until
from tests.ways import WAYS

REPOSITORY = Repository.of("hookledger")
LATER = RetryPolicy(first_delay=3600)
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = :pid"


def test_a_row_that_changed_while_a_hold_waited_for_it_is_not_kept_locked(database_url: str) -> None:
    ledger = Ledger(database_url)
    ids = ledger.record(document("kept"), document("overtaken"))
    with ledger.transaction() as ours, ledger.transaction() as other, ThreadPoolExecutor() as threads:
        assert len(REPOSITORY.claim(ours, 10, LATER)) == 2
        ours.commit()
        assert REPOSITORY.claim_one(other, ids[1], 1, LATER) == 2
        pid = ours.execute(text("SELECT pg_backend_pid()")).scalar_one()
        holding = threads.submit(hold, ours, REPOSITORY, [(id, 1) for id in ids])
        wait_until(lambda: ledger.value(WAITS, pid=pid))
        other.commit()
        assert holding.result() == {ids[0]}
        # Whoever has charged it can hold it, for as long as our handlers take.
        assert REPOSITORY.hold(other, [(ids[1], 2)]) == {ids[1]}


def test_a_charge_whose_commit_is_not_heard_of_is_refunded(database_url: str) -> None:
    ledger = Ledger(database_url)
    ledger.record(document("near", type="thing"))
    # As after a crash in company.
    ledger.execute("UPDATE hookledger.pending SET attempts = 1, revisited = true")
    struck: list[int] = []
    engine = create_engine(database_url, poolclass=NullPool)

    @event.listens_for(engine, "commit")
    def cut_after_the_commit(connection: Connection) -> None:
        cursor: Any = connection.connection.cursor()
        cursor.execute("SELECT pg_backend_pid(), (SELECT max(attempts) FROM hookledger.pending)")
        pid, attempts = cursor.fetchone()
        if attempts == 2 and not struck:
            struck.append(pid)
            cursor.execute("COMMIT")
            ledger.execute("SELECT pg_terminate_backend(:pid)", pid=pid)
            wait_until(lambda: not ledger.value("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid", pid=pid))
            # What the driver would say to a COMMIT.
            cursor.execute("SELECT 1")

    inbox = inbox_of_shop(max_attempts=2, first_delay=3600)
    attempts: list[int] = []
    inbox.accumulate(SHOP, name="note")(lambda delivery, _: attempts.append(delivery.attempt))
    WAYS[0].work(database_url, inbox, engine=lambda: engine, slots=1)
    assert struck
    assert ledger.outcomes() == {("near", "note"): "applied"}
    assert attempts == [2]
