"""Deliveries that were received some time ago, and partitions of weeks gone by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from hookledger.operate.retention.partitions import Partition, read_partitions, week_of
from tests.outcomes import Ledger

DAY = timedelta(days=1)


def days_ago(days: float) -> datetime:
    """The time so many days before now."""
    return datetime.now(UTC) - timedelta(days=days)


def make_old_partition(ledger: Ledger, days: float) -> str:
    """Make the partition of the week of that time, as a worker did then; its name."""
    start = week_of(days_ago(days))
    name = f"payloads_{start:%Y%m%d}"
    ledger.execute(
        f"CREATE TABLE hookledger.{name} PARTITION OF hookledger.payloads FOR VALUES"
        f" FROM ('{start:%Y-%m-%d} 00:00:00+00') TO ('{start + 7 * DAY:%Y-%m-%d} 00:00:00+00')"
    )
    return name


def make_older(ledger: Ledger, days: float, *event_ids: str) -> None:
    """Let deliveries have been received so many days ago, with their payloads and outcomes."""
    at = days_ago(days)
    given = {"at": at, "ids": list(event_ids)}
    mine = "SELECT payload_id FROM hookledger.deliveries WHERE event_id = ANY(:ids)"
    ledger.execute(f"UPDATE hookledger.payloads SET received_at = :at WHERE id IN ({mine})", **given)
    ledger.execute("UPDATE hookledger.deliveries SET received_at = :at WHERE event_id = ANY(:ids)", **given)
    ledger.execute("UPDATE hookledger.effects SET applied_at = :at WHERE event_id = ANY(:ids)", **given)


def settle(ledger: Ledger, *event_ids: str) -> None:
    """Make pending deliveries settled, as a worker does that has applied them."""
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending USING hookledger.deliveries AS d"
        " WHERE d.id = delivery_id AND event_id = ANY(:ids) RETURNING d.id, source, event_id)"
        " INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome)"
        " SELECT source, event_id, 'handler', id, 'applied' FROM gone",
        ids=list(event_ids),
    )


def bury(ledger: Ledger, *event_ids: str) -> None:
    """Make pending deliveries dead letters, as a worker does that gives up."""
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending USING hookledger.deliveries AS d"
        " WHERE d.id = delivery_id AND event_id = ANY(:ids) RETURNING d.id)"
        " INSERT INTO hookledger.dead_letters (delivery_id, attempts, reason, error, fingerprint)"
        " SELECT id, 12, 'failed', 'it never worked for jane@example.com', 'f' FROM gone",
        ids=list(event_ids),
    )


def partitions_of(ledger: Ledger) -> list[Partition]:
    """The partitions of the payloads, as the server has them."""
    with ledger.engine.connect() as connection, connection.begin():
        connection.execute(text("SET LOCAL TimeZone TO 'UTC'"))
        return read_partitions(connection, ledger.schema)


def holds(ledger: Ledger, partition: str) -> list[str]:
    """The events whose payloads lie in a partition."""
    rows = ledger.execute(
        "SELECT event_id FROM hookledger.payloads p JOIN hookledger.deliveries d"
        " ON d.payload_id = p.id AND d.received_at = p.received_at"
        " WHERE p.tableoid = CAST(:name AS regclass) ORDER BY d.id",
        name=f"hookledger.{partition}",
    )
    return [row.event_id for row in rows]
