"""Where single deliveries stand, so that whoever names one is told what a replay does with it, or why nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from hookledger.ledger.schema import tables
from hookledger.ledger.statements.expressions import is_one_of
from hookledger.operate.filters import State

BIGINTS = ARRAY(BigInteger)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a delivery stands.

    Args:
        id: as it was asked for.
        state: pending, dead or settled; None if there is no delivery of that id.
        attempts: so far, of a pending or dead one.
        in_progress: whether a worker has claimed it; else a pending one is scheduled.
        due_at: when a scheduled one is tried next.
        replay_id: the newest replay that has made it pending.
    """

    id: int
    state: State | None
    attempts: int = 0
    in_progress: bool = False
    due_at: datetime | None = None
    replay_id: int | None = None

    def as_document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "id": self.id,
            "state": self.state and self.state.value,
            "attempts": self.attempts,
            "in_progress": self.in_progress,
            "due_at": self.due_at and self.due_at.isoformat(),
            "replay_id": self.replay_id,
        }


def standings(connection: Connection, schema: str, ids: Sequence[int]) -> list[Standing]:
    """Where the deliveries stand, in the order in which they were asked for."""
    t = tables(schema)
    d, p, dead = t.deliveries.c, t.pending.c, t.dead_letters.c
    newest = (
        select(func.max(t.replayed.c.replay_id)).where(t.replayed.c.delivery_id == d.id).correlate(t.deliveries)
    ).scalar_subquery()
    statement = (
        select(
            *(d.id, p.delivery_id.is_not(None).label("pending"), dead.delivery_id.is_not(None).label("dead")),
            *(func.coalesce(p.attempts, dead.attempts, 0).label("attempts"), p.last_error, p.due_at),
            newest.label("replay_id"),
        )
        .select_from(t.deliveries)
        .outerjoin(t.pending, p.delivery_id == d.id)
        .outerjoin(t.dead_letters, dead.delivery_id == d.id)
        .where(is_one_of(d.id, "ids"))
    )
    found: dict[int, Standing] = {}
    for row in connection.execute(statement, {"ids": list(ids)}):
        state = State.PENDING if row.pending else State.DEAD if row.dead else State.SETTLED
        claimed = bool(row.pending and row.attempts and row.last_error is None)
        found[row.id] = Standing(row.id, state, row.attempts, claimed, row.due_at, row.replay_id)
    return [found.get(id_, Standing(id_, None)) for id_ in dict.fromkeys(ids)]
