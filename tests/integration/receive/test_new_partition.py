"""A partition that is attached while a payload of its time is on its way (D1)."""

from __future__ import annotations

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from hookledger.operate.retention.partitions import make_partitions
from tests.ledger import Ledger
from tests.processes import wait_until
from tests.receiving import Receiving, event

WAITERS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'payloads_default'::regclass"


def test_what_was_on_its_way_to_the_default_partition_goes_to_the_new_one(
    receiving: Receiving, ledger: Ledger, database_url: str
) -> None:
    """PostgreSQL refuses it, for it had been told its place before there was a better one."""
    engine = create_engine(database_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE hookledger.payloads_default IN ACCESS EXCLUSIVE MODE"))
        under_way = receiving.start(event("e1"))
        wait_until(lambda: ledger.run(WAITERS)[0][0])
        week = connection.execute(text("SELECT date_trunc('week', now(), 'UTC')::text")).scalar_one()
        connection.execute(text("CREATE TABLE hookledger.payloads_new (LIKE hookledger.payloads INCLUDING DEFAULTS)"))
        connection.execute(
            text(
                "ALTER TABLE hookledger.payloads ATTACH PARTITION hookledger.payloads_new"
                f" FOR VALUES FROM ('{week}') TO ('infinity')"
            )
        )
    assert under_way.result().status == 200
    assert ledger.run("SELECT tableoid::regclass::text FROM payloads") == [("payloads_new",)]
    assert receiving.post(event("e2")).status == 200
    assert ledger.consistent()
    assert make_partitions(engine, "hookledger").there == 3
