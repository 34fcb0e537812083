"""The run of a rebuild: the worker's own batches, over the stored deliveries in the order of their arrival."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sqlalchemy import (
    BigInteger,
    Engine,
    Text,
    bindparam,
    case,
    cast,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from hookledger.errors import HandlerError
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import ClaimedRow
from hookledger.ledger.schema import Tables, tables
from hookledger.ledger.statements.claim import LARGEST_COMMON
from hookledger.operate.filters import Filter
from hookledger.operate.rebuild.shadow import Shadow
from hookledger.worker.batch import Batch, Conflict, Tools
from hookledger.worker.call import Caller
from hookledger.worker.connector import Connector
from hookledger.worker.received import Received, large_bodies
from hookledger.worker.slot import Slot
from hookledger.worker.transaction import HandlerConnection

BATCH = 200
TRIES = 5

# Counts of this transaction; https://www.postgresql.org/docs/current/monitoring-stats.html
_ELSEWHERE = text(
    """
    SELECT format('%I.%I', schemaname, relname) FROM pg_catalog.pg_stat_xact_user_tables
    WHERE schemaname <> :schema AND n_tup_ins + n_tup_upd + n_tup_del > 0 ORDER BY 1
    """
)


@dataclass(slots=True)
class Rebuilt:
    """What a rebuild did.

    Args:
        deliveries: that were run through.
        failed: of them, those that the handler failed for; the ledger in the shadow holds their errors.
        gone: deliveries whose bytes retention or an erasure has taken.
        until_id: the last delivery that it is about.
    """

    deliveries: int = 0
    failed: int = 0
    gone: int = 0
    until_id: int = 0


async def rebuild(
    engine: Engine | AsyncEngine,
    shadow: Shadow,
    *,
    progress: Callable[[int], None] = lambda done: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Rebuilt:
    """Run all stored deliveries of the handler, up to those that were there when the shadow was made.

    What the handler does outside the database is done again.

    Args:
        engine: of the ledger's database; an asynchronous one for an asynchronous handler.
        shadow: as `prepare` made it.
        progress: told how many deliveries were run.
        stopping: asked before each batch; once it is true the rebuild ends, unfinished.

    Raises:
        HandlerError: if the handler wrote to a table outside of the shadow. That batch was taken back.
        DBAPIError: if a statement failed, or the connection is gone.
    """
    done = Rebuilt(until_id=shadow.until_id)
    cycles: list[_Cycle] = []

    def make(caller: Caller, connector: Connector) -> Any:
        cycles.append(_Cycle(shadow, caller, connector, done))
        return cycles[-1]

    slot = Slot(0, engine, make)
    try:
        while not stopping() and await slot.run():
            progress(done.deliveries)
    finally:
        await slot.disconnect()
    return done


@dataclass
class _Cycle:
    """One batch after the other, on the slot's connection."""

    shadow: Shadow
    caller: Caller
    connector: Connector
    done: Rebuilt
    after: int = 0
    random: Random = field(default_factory=Random)

    def run(self) -> int:
        """The next batch; how many deliveries it looked at."""
        for turn in range(TRIES):
            try:
                return self._transaction()
            except Conflict:
                if turn == TRIES - 1:
                    raise
            finally:
                self.connector.clean()
        return 0

    def _transaction(self) -> int:
        shadow, connection = self.shadow, self.connector.connection()
        with connection.begin():
            connection.exec_driver_sql(
                "SELECT set_config('search_path', quote_ident(%(schema)s), true)", {"schema": shadow.schema}
            )
            rows = self._read(connection)
            there = [row for row in rows if row.size is not None]
            failed = self._work(connection, there) if there else 0
            elsewhere = connection.execute(_ELSEWHERE, {"schema": shadow.schema}).scalars().all()
            if elsewhere:
                raise HandlerError(
                    f"the handler {shadow.handler.name!r} wrote to {', '.join(elsewhere)}, which is not in the shadow "
                    f"{shadow.schema!r}: name its tables without a schema. That batch was taken back"
                )
        if rows:
            self.after = rows[-1].id
        self.done.deliveries += len(there)
        self.done.gone += len(rows) - len(there)
        self.done.failed += failed
        return len(rows)

    def _work(self, connection: HandlerConnection, rows: list[ClaimedRow]) -> int:
        shadow = self.shadow
        t, live = tables(shadow.schema), Repository.of(shadow.live)
        wanted = large_bodies(rows)
        received = Received(shadow.inbox, rows, live.read_bodies(connection, wanted) if wanted else {})
        connection.execute(insert(t.pending), [{"delivery_id": row.id, "attempts": 1} for row in received.rows])
        tools = Tools(
            inbox=shadow.inbox,
            repository=Repository.of(shadow.schema),
            caller=self.caller,
            time_budget=float("inf"),
            stopping=lambda: False,
            random=self.random,
        )
        batch = Batch(tools, connection, [received.claimed(row) for row in received.rows])
        batch.work()
        # Too large to be read together: those come in the next batch.
        for row in received.unread:
            rows.remove(row)
        return len(batch.failures)

    def _read(self, connection: HandlerConnection) -> list[ClaimedRow]:
        t = tables(self.shadow.live)
        rows = connection.execute(_stored(t, self.shadow), {"after": self.after, "until": self.shadow.until_id})
        found = [ClaimedRow(*row) for row in rows]
        total = 0
        for position, row in enumerate(found):
            total += row.size or 0
            if position and total > LARGEST_COMMON * BATCH:
                return found[:position]
        return found


def _stored(t: Tables, shadow: Shadow) -> Any:
    """The next stored deliveries of the handler, in the form of a claim."""
    d, p = t.deliveries.c, t.payloads.c
    size = func.octet_length(p.body)
    kept = case((~exists().where(t.erased.c.delivery_id == d.id), size))
    typed = [Filter(event_type=pattern).conditions(t)[0] for pattern in shadow.handler.event_types]
    return (
        select(
            *(d.id, d.source, d.event_id, d.event_type, d.resource, cast(d.version, Text)),
            *(d.received_at, d.position, d.payload_id),
            *(cast(p.headers, Text), kept, case((size <= LARGEST_COMMON, p.body))),
            *(literal_column("1"), null(), literal_column("false"), true(), d.received_at, literal_column("''")),
        )
        .select_from(t.deliveries)
        .outerjoin(t.payloads, (p.received_at == d.received_at) & (p.id == d.payload_id))
        .where(
            d.id > bindparam("after", type_=BigInteger),
            d.id <= bindparam("until", type_=BigInteger),
            d.source == shadow.handler.source,
            or_(*typed),
        )
        .order_by(d.id)
        .limit(BATCH)
    )
