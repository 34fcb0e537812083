"""Holding rows of pending: what is locked here is worked on by nobody else until our transaction ends (D9)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hookledger.ledger.failure import sqlstate
from hookledger.ledger.repository import Repository

PATIENCE = "1s"
"""How long to wait for another worker's claim that looks at our rows; it commits at once unless it hangs."""

LOCK_NOT_AVAILABLE = "55P03"


def hold(connection: Connection, repository: Repository, ours: Sequence[tuple[int, int]]) -> set[int]:
    """Lock the rows that are still ours, and wait a moment for those that somebody looks at.

    Args:
        connection: in a transaction.
        repository: of the ledger.
        ours: (delivery id, attempts), the number that our claim wrote.

    Returns:
        The ids that are held. A row that somebody keeps locked for longer is left out, as if it were theirs.
    """
    held = repository.hold(connection, ours)
    rest = [row for row in ours if row[0] not in held]
    if not rest:
        return held
    try:
        with connection.begin_nested() as savepoint:
            before = connection.exec_driver_sql(
                "SELECT current_setting('lock_timeout'), set_config('lock_timeout', %(patience)s, true)",
                {"patience": PATIENCE},
            ).scalar_one()
            waited = repository.hold(connection, rest, wait=True)
            overtaken = len(waited) < len(rest)
            if overtaken:
                # What changed while we waited for it was locked nevertheless: whoever has claimed it would find it
                # locked for as long as our handlers take.
                savepoint.rollback()
            else:
                connection.exec_driver_sql("SELECT set_config('lock_timeout', %(before)s, true)", {"before": before})
    except DBAPIError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        # One row that stays locked must not cost the others.
        waited = repository.hold(connection, rest)
    else:
        if overtaken:
            waited = repository.hold(connection, [row for row in rest if row[0] in waited])
    return held | waited
