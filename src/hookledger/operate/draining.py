"""Whether anything due is left to do, counted up to a bound."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, ScalarSelect, Select, func, literal, select

from hookledger import storable
from hookledger.ledger.schema import Tables, tables

COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Left:
    """What is left.

    Args:
        due: deliveries that are due, up to 10,000.
        under_way: those that a worker has claimed, or had claimed when it died; up to 10,000.
        parked: whether some wait because something is paused.
        later: whether some wait for their next attempt.
    """

    due: int
    under_way: int
    parked: bool
    later: bool

    @property
    def nothing_due(self) -> bool:
        """Whether all that could be done is done."""
        return not self.due and not self.under_way


def read_left(connection: Connection, schema: str, source: str | None = None) -> Left:
    """What is left to do, of one source or of all."""
    t = tables(schema)
    p = t.pending.c
    claimed = (p.attempts > 0) & p.last_error.is_(None) & ~p.parked
    row = connection.execute(
        select(
            _count(t, source, p.due_at <= func.now()),
            _count(t, source, p.due_at > func.now(), claimed),
            _count(t, source, p.parked, bound=1),
            _count(t, source, p.due_at > func.now(), ~claimed, ~p.parked, bound=1),
        )
    ).one()
    return Left(row[0], row[1], bool(row[2]), bool(row[3]))


def _count(t: Tables, source: str | None, *conditions: ColumnElement[bool], bound: int = COUNTED) -> ScalarSelect[int]:
    rows: Select[int] = select(literal(1)).select_from(t.pending).where(*conditions)
    if source is not None:
        d = t.deliveries.c
        rows = rows.join(t.deliveries, d.id == t.pending.c.delivery_id).where(d.source == storable.text(source))
    return select(func.count()).select_from(rows.limit(bound).subquery()).scalar_subquery()
