"""Deliveries that are not settled: what retention must not touch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Select, exists, or_, select, union_all
from sqlalchemy.sql.elements import ColumnElement

from hookledger.ledger.schema import Tables


def unsettled_payloads(t: Tables, *, before_id: int, start: datetime | None, end: datetime | None) -> Select[Any]:
    """The payloads (received_at, payload_id) of pending and dead deliveries that were received in a span of time.

    Args:
        t: the tables.
        before_id: from `first_id_since` of the end: only imported deliveries with this id or a higher one can be of
            that time. It keeps a long queue of new deliveries from being looked through.
        start, end: the span; None for no bound.
    """
    open_ids = union_all(select(t.pending.c.delivery_id), select(t.dead_letters.c.delivery_id)).subquery("unsettled")
    d, id = t.deliveries.c, open_ids.c.delivery_id
    bounds = [d.received_at >= start] if start is not None else []
    bounds += [d.received_at < end] if end is not None else []
    imported = exists().where(t.imported.c.delivery_id == id)
    return (
        select(d.received_at, d.payload_id)
        .join_from(open_ids, t.deliveries, d.id == id)
        .where(or_(id < before_id, imported), *bounds)
        .distinct()
    )


def is_settled(t: Tables, delivery_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a delivery is neither pending nor dead."""
    return ~exists().where(t.pending.c.delivery_id == delivery_id) & ~exists().where(
        t.dead_letters.c.delivery_id == delivery_id
    )
