"""What becomes of a delivery after a failed attempt: another one later, or a dead letter."""

from __future__ import annotations

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.sql import ClauseElement

from hookledger.ledger.arrays import rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of, seconds


def write_failures(t: Tables) -> ClauseElement:
    """Record failed attempts, one row a handler."""
    new = rows("failure", delivery_id="bigint", attempt="integer", handler="text", error="text", fingerprint="text")
    columns = ["delivery_id", "attempt", "handler", "error", "fingerprint"]
    return insert(t.failures).from_select(columns, select(*[new.c[name] for name in columns]))


def postpone(t: Tables) -> ClauseElement:
    """Write the error of a failed attempt, and when the next one is due."""
    new = rows("late", delivery_id="bigint", attempts="integer", seconds="float", error="text")
    p = t.pending
    return (
        update(p)
        .values(last_error=new.c.error, due_at=func.clock_timestamp() + seconds(new.c.seconds))
        .where(is_one_of(p.c.delivery_id, "late_delivery_id"))
        .where(p.c.delivery_id == new.c.delivery_id, p.c.attempts == new.c.attempts)
    )


def bury(t: Tables) -> ClauseElement:
    """Move deliveries from pending to the dead letters."""
    new = rows("dead", delivery_id="bigint", attempts="integer", reason="text", error="text", fingerprint="text")
    gone = (
        delete(t.pending)
        .where(is_one_of(t.pending.c.delivery_id, "dead_delivery_id"))
        .where(t.pending.c.delivery_id == new.c.delivery_id)
        .returning(t.pending.c.delivery_id, new.c.attempts, new.c.reason, new.c.error, new.c.fingerprint)
        .cte("gone")
    )
    columns = ["delivery_id", "attempts", "reason", "error", "fingerprint"]
    return insert(t.dead_letters).from_select(columns, select(*[gone.c[name] for name in columns]))
