"""Forgetting row by row: payloads of the default partition, deliveries with all that is theirs, effects, quarantine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Engine,
    LargeBinary,
    Text,
    and_,
    bindparam,
    column,
    delete,
    exists,
    func,
    literal,
    select,
    table,
    tuple_,
)
from sqlalchemy.sql import Select

from hookledger.ledger.schema import tables
from hookledger.operate.retention.brief import Another, Patience, is_first, keep_unsettled
from hookledger.operate.retention.horizons import Retention
from hookledger.operate.retention.ids import first_id_since
from hookledger.operate.retention.partitions import read_partitions
from hookledger.operate.retention.unsettled import is_settled, unsettled_payloads

BATCH = 1_000
"""Rows that one step looks at."""
BOUND = 10_000
"""Rows of a kind that a dry run counts."""


class Forgetting:
    """Removes rows that are over their horizon.

    Args:
        engine: of a role that owns the tables.
        schema: of the ledger.
        retention: the horizons.
        at: the time they count from.
        patience: how long a step may hold up others.
    """

    def __init__(self, engine: Engine, schema: str, retention: Retention, at: datetime, patience: Patience) -> None:
        self._engine = engine
        self._t = tables(schema)
        self._retention = retention
        self._at = at
        self._patience = patience

    def steps(self) -> Iterator[tuple[str, int]]:
        """Do it, a batch a step: what was removed, and how many.

        Raises:
            Another: if somebody else is at it.
            Busy, Stopped: as `Patience.step`.
        """
        kept = self._retention
        if kept.payloads is not None:
            yield from self._payloads(self._at - kept.payloads)
        if kept.deliveries is not None:
            yield from self._deliveries(self._at - kept.deliveries)
        if kept.effects is not None:
            yield from self._effects(self._at - kept.effects)
        if kept.quarantine is not None:
            yield from self._quarantine(self._at - kept.quarantine)

    def count(self, connection: Connection) -> tuple[dict[str, int], bool]:
        """How many rows there are to remove, as far as the bound, and whether it ends one of the counts."""
        kept, t, wanted = self._retention, self._t, {}
        if kept.payloads is not None and (default := self._default(connection)) is not None:
            horizon = self._at - kept.payloads
            wanted["payloads"] = select(default.c.id).where(
                default.c.received_at < horizon,
                ~self._is_needed(default, horizon, first_id_since(connection, t, horizon)),
            )
        if kept.deliveries is not None:
            horizon = self._at - kept.deliveries
            wanted["deliveries"] = select(t.deliveries.c.id).where(
                t.deliveries.c.id < first_id_since(connection, t, horizon),
                t.deliveries.c.received_at < horizon,
                is_settled(t, t.deliveries.c.id),
            )
        if kept.effects is not None:
            horizon = self._at - kept.effects
            wanted["effects"] = select(t.effects.c.delivery_id).where(t.effects.c.applied_at < horizon)
        if kept.quarantine is not None:
            wanted["quarantine"] = select(t.quarantine.c.id).where(t.quarantine.c.at < self._at - kept.quarantine)
        counts = {what: _counted(connection, query) for what, query in wanted.items()}
        return counts, any(count >= BOUND for count in counts.values())

    def _payloads(self, horizon: datetime) -> Iterator[tuple[str, int]]:
        """Those of the default partition: there were no partitions then, or they were moved or imported."""
        after: tuple[Any, int] = ("-infinity", 0)
        before_id = self._first_id(horizon)
        while True:

            def work(connection: Connection, after: tuple[Any, int] = after) -> tuple[tuple[Any, int] | None, int]:
                self._alone(connection)
                default = self._default(connection)
                if default is None:
                    return None, 0
                looked = (
                    select(default.c.received_at, default.c.id)
                    .where(
                        default.c.received_at < horizon,
                        tuple_(default.c.received_at, default.c.id)
                        > tuple_(bindparam("since", after[0], DateTime(timezone=True)), literal(after[1], BigInteger)),
                    )
                    .order_by(default.c.received_at, default.c.id)
                    .limit(BATCH)
                )
                rows = connection.execute(looked).all()
                if not rows:
                    return None, 0
                last = (rows[-1].received_at, rows[-1].id)
                keep_unsettled(connection, self._t.schema)
                gone = connection.execute(
                    delete(default).where(
                        tuple_(default.c.received_at, default.c.id).in_([tuple(row) for row in rows]),
                        ~self._is_needed(default, horizon, before_id),
                    )
                )
                return last, gone.rowcount

            last, count = self._step(work, "payloads")
            if last is None:
                return
            after = last
            yield "payloads", count

    def _deliveries(self, horizon: datetime) -> Iterator[tuple[str, int]]:
        t, after = self._t, 0
        end = self._first_id(horizon)
        while True:

            def work(connection: Connection, after: int = after) -> tuple[int | None, int]:
                self._alone(connection)
                d = t.deliveries.c
                ids = select(d.id).where(d.id > after, d.id < end).order_by(d.id).limit(BATCH).subquery()
                last = connection.scalar(select(func.max(ids.c.id)))
                if last is None:
                    return None, 0
                keep_unsettled(connection, t.schema)
                gone = (
                    delete(t.deliveries)
                    .where(d.id > after, d.id <= last, d.received_at < horizon, is_settled(t, d.id))
                    .returning(d.id)
                    .cte("gone")
                )
                with_it = [
                    delete(of).where(of.c.delivery_id.in_(select(gone.c.id))).cte(f"gone_{of.name}")
                    for of in (t.redeliveries, t.failures, t.imported, t.erased, t.replayed)
                ]
                counted = select(func.count()).select_from(gone).add_cte(*with_it)
                return last, int(connection.execute(counted).scalar_one())

            last, count = self._step(work, "deliveries")
            if last is None:
                return
            after = last
            if count:
                yield "deliveries", count

    def _effects(self, horizon: datetime) -> Iterator[tuple[str, int]]:
        """In the order of their key, of which each batch goes on where the last one ended."""
        t = self._t
        e, key = t.effects.c, tuple_(t.effects.c.source, t.effects.c.event_id, t.effects.c.handler)
        after = ("", "", "")
        while True:

            def work(connection: Connection, after: tuple[str, str, str] = after) -> tuple[Any, int]:
                self._alone(connection)
                since = tuple_(*[literal(part, Text) for part in after])
                looked = (
                    select(e.source, e.event_id, e.handler)
                    .where(key > since)
                    .order_by(e.source, e.event_id, e.handler)
                    .limit(BATCH)
                )
                rows = connection.execute(looked).all()
                if not rows:
                    return None, 0
                last = tuple(rows[-1])
                # By the key: an event that came again after its delivery was pruned is another delivery, with the
                # effects of the first one. A replay of it must find them.
                d = t.deliveries.c
                is_delivery = exists().where(d.source == e.source, d.event_id == e.event_id)
                gone = connection.execute(
                    delete(t.effects).where(
                        and_(key > since, key <= tuple_(*[literal(part, Text) for part in last])),
                        e.applied_at < horizon,
                        ~is_delivery,
                    )
                )
                return last, gone.rowcount

            last, count = self._step(work, "effects")
            if last is None:
                return
            after = last
            if count:
                yield "effects", count

    def _quarantine(self, horizon: datetime) -> Iterator[tuple[str, int]]:
        q = self._t.quarantine
        old = select(q.c.id).where(q.c.at < horizon).order_by(q.c.at).limit(BATCH).scalar_subquery()

        def work(connection: Connection) -> tuple[Any, int]:
            return None, connection.execute(delete(q).where(q.c.id.in_(old))).rowcount

        while True:
            _, count = self._step(work, "quarantine")
            if not count:
                return
            yield "quarantine", count

    def _step(self, work: Any, what: str) -> Any:
        return self._patience.step(self._engine, work, f"old {what} were not removed")

    def _alone(self, connection: Connection) -> None:
        if not is_first(connection, self._t.schema, "prune"):
            raise Another

    def _default(self, connection: Connection) -> Any:
        for each in read_partitions(connection, self._t.schema):
            if each.is_default:
                return table(
                    each.name,
                    column("id", BigInteger),
                    column("received_at", DateTime(timezone=True)),
                    column("body", LargeBinary),
                    schema=self._t.schema,
                )
        return None

    def _first_id(self, horizon: datetime) -> int:
        found: int = self._step(lambda connection: first_id_since(connection, self._t, horizon), "rows")
        return found

    def _is_needed(self, payloads: Any, horizon: datetime, before_id: int) -> Any:
        needed = unsettled_payloads(self._t, before_id=before_id, start=None, end=horizon).subquery("needed")
        return exists().where(needed.c.received_at == payloads.c.received_at, needed.c.payload_id == payloads.c.id)


def _counted(connection: Connection, query: Select[Any]) -> int:
    return int(connection.execute(select(func.count()).select_from(query.limit(BOUND).subquery())).scalar_one())
