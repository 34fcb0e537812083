"""Hold what was claimed, while the handlers run."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.sql import ClauseElement

from hookledger.ledger.arrays import TYPES, rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of


def hold(t: Tables) -> ClauseElement:
    """Lock the rows that are still ours: those whose attempts is what our claim wrote, and that have no error.

    The attempts alone would not do: what was claimed, given back, claimed again and has failed since has the same
    number as we wrote. A claim clears the error, and a failure writes one.
    """
    return _ours(t).with_for_update(of=t.pending, skip_locked=True)


def hold_alike(t: Tables) -> ClauseElement:
    """As `hold`, for rows to which our claim wrote the same number of attempts: as most have."""
    p = t.pending.c
    return (
        select(p.delivery_id)
        .where(
            is_one_of(p.delivery_id, "ids"),
            p.attempts == bindparam("attempts", type_=TYPES["integer"]),
            p.last_error.is_(None),
        )
        .with_for_update(skip_locked=True)
    )


def hold_waiting(t: Tables) -> ClauseElement:
    """As `hold`, but wait for a claim that looks at the row for a moment; in the order of the ids."""
    return _ours(t).order_by(t.pending.c.delivery_id).with_for_update(of=t.pending)


def _ours(t: Tables) -> Select[Any]:
    p, ours = t.pending.c, rows("ours", delivery_id="bigint", attempts="integer")
    same = (p.delivery_id == ours.c.delivery_id) & (p.attempts == ours.c.attempts) & p.last_error.is_(None)
    return select(p.delivery_id).join_from(ours, t.pending, same).where(is_one_of(p.delivery_id, "ours_delivery_id"))
