"""Give deliveries back: due at once, or later while something is paused."""

from __future__ import annotations

from sqlalchemy import cast, extract, func, select, true, update
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Text

from hookledger.ledger.arrays import rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of, seconds


def give_back(t: Tables) -> ClauseElement:
    """Make deliveries due at once, with the attempt refunded and the error they had before the claim."""
    new = rows("back", delivery_id="bigint", attempts="integer", refund="integer", error="text")
    p = t.pending
    return (
        update(p)
        # One time for all, so that they stay in their order.
        .values(attempts=p.c.attempts - new.c.refund, last_error=new.c.error, due_at=func.statement_timestamp())
        .where(is_one_of(p.c.delivery_id, "back_delivery_id"))
        .where(p.c.delivery_id == new.c.delivery_id, p.c.attempts == new.c.attempts)
    )


def park(t: Tables) -> ClauseElement:
    """Give deliveries back whose source or handler is paused: with the attempt refunded, and due later."""
    new = rows("parked", delivery_id="bigint", attempts="integer", refund="integer", error="text", seconds="float")
    p = t.pending
    return (
        update(p)
        .values(
            attempts=p.c.attempts - new.c.refund,
            last_error=new.c.error,
            due_at=func.clock_timestamp() + seconds(new.c.seconds),
            parked=true(),
        )
        .where(is_one_of(p.c.delivery_id, "parked_delivery_id"))
        .where(p.c.delivery_id == new.c.delivery_id, p.c.attempts == new.c.attempts)
    )


def hold_pauses(t: Tables) -> ClauseElement:
    """Lock what is paused, so that nobody resumes it before what is parked for it is committed."""
    locked = select(t.pauses).with_for_update(read=True).cte("locked").prefix_with("MATERIALIZED")
    age = extract("epoch", func.now() - locked.c.since)
    return select(cast(func.json_agg(func.json_build_array(locked.c.kind, locked.c.name, age)), Text))
