"""Forgetting what a handler did, so that it runs again: a separate act, with a record of its own (D11).

The watermarks stay. So, of a snapshot handler, only the delivery that set a watermark runs again, and all older ones
end stale: whatever is forgotten, a resource never moves back. An accumulate handler runs again for each delivery, and
what it adds is added a second time.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select

from hookledger.errors import SetupError
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of


def require_forgetting(connection: Connection, t: Tables) -> None:
    """See, before a replay is recorded, that the role may delete effects.

    Raises:
        SetupError: if not; the role that receives and works may not.
    """
    place = connection.dialect.identifier_preparer.format_table(t.effects)
    if not connection.scalar(select(func.has_table_privilege(place, "DELETE"))):
        raise SetupError(f"this role has no right to remove rows of {place}: forget effects as the owner of the tables")


def forget_effects(connection: Connection, t: Tables, handler: str, ids: Sequence[int]) -> int:
    """Remove the effects of a handler for deliveries that this transaction has just made pending, so that nobody works
    on them.

    Needs the right to delete effects, which the role that receives and works does not have.

    Returns:
        How many effects were removed.
    """
    d, effect = t.deliveries.c, t.effects.c
    statement = delete(t.effects).where(
        is_one_of(d.id, "ids"),
        effect.source == d.source,
        effect.event_id == d.event_id,
        effect.handler == handler,
    )
    return connection.execute(statement, {"ids": list(ids)}).rowcount
