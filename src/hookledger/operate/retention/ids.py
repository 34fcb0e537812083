"""Where in the order of their ids the deliveries of a time begin: found by halving, so that no table is read."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from hookledger.ledger.schema import Tables

MARGIN = timedelta(hours=1)
"""How much earlier than its neighbours by id a delivery may have been received: its transaction began earlier."""


def first_id_since(connection: Connection, t: Tables, moment: datetime) -> int:
    """An id from which on no delivery was received before that time, but for those that were imported with a time of
    their own: these count from when they were imported.

    Args:
        connection: in a transaction.
        t: the tables.
        moment: the time.
    """
    d = t.deliveries.c
    came = func.coalesce(t.imported.c.imported_at, d.received_at)
    after = moment + MARGIN
    lowest, highest = connection.execute(
        select(
            select(d.id).order_by(d.id).limit(1).scalar_subquery(),
            select(d.id).order_by(d.id.desc()).limit(1).scalar_subquery(),
        )
    ).one()
    if lowest is None:
        return 0
    low, high = int(lowest), int(highest) + 1
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(
            select(d.id, came)
            .select_from(t.deliveries.outerjoin(t.imported, t.imported.c.delivery_id == d.id))
            .where(d.id >= middle)
            .order_by(d.id)
            .limit(1)
        ).one()
        if row[1] >= after:
            high = middle
        else:
            low = row[0] + 1
    return high
