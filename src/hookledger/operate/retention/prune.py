"""Pruning: payloads by whole partitions, deliveries and effects in bounded batches, and nothing that is not settled.

Each step is a transaction of its own that holds up receivers and workers for a moment at the most; whatever ends it,
what was done stands and the next run goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import DDL, Connection, Engine, MetaData, func, insert, literal, select, tuple_
from sqlalchemy.sql import Select

from hookledger.errors import SetupError
from hookledger.ledger.revision import command
from hookledger.ledger.rights import quoted
from hookledger.ledger.schema import Tables, tables
from hookledger.operate.retention.brief import Another, Busy, Patience, is_first, keep_unsettled
from hookledger.operate.retention.forget import Forgetting
from hookledger.operate.retention.horizons import Retention
from hookledger.operate.retention.ids import first_id_since
from hookledger.operate.retention.partitions import Partition, may_make, read_partitions
from hookledger.operate.retention.unsettled import unsettled_payloads

PATIENCE = Patience()
LOOKING = Patience(statement=30.0)
"""For what only reads, which holds up nobody."""
MOST_MOVED = 1_000
MOST_MOVED_BYTES = 32 * 1024 * 1024
"""Payloads of unsettled deliveries that are moved out of a partition before it is dropped; with more, it stays."""

Progress = Callable[[str, int], None]
"""Told what has just been done: what, and how many."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A partition that is over its horizon.

    Args:
        partition: it.
        unsettled: payloads in it of deliveries that are pending or dead; these are moved first.
        kept: why it is not dropped now; None if it is.
    """

    partition: Partition
    unsettled: int
    kept: str | None = None


@dataclass(slots=True)
class Pruned:
    """What a run has done, or with `dry_run` would do.

    Args:
        at: the time that horizons count from, by the database's clock.
        drops: partitions over the horizon.
        moved: payloads that were moved to the default partition, as their deliveries are not settled.
        counts: rows that were removed, by what they are.
        by_another: whether somebody else was pruning, so that this run ended.
        put_off: why it ended before its end, if tables were in use all the time.
        is_bounded: whether the counts of a dry run end at a bound.
    """

    at: datetime
    drops: list[Drop] = field(default_factory=list)
    moved: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    by_another: bool = False
    put_off: str | None = None
    is_bounded: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all that is over its horizon is gone."""
        return not self.by_another and self.put_off is None and all(drop.kept is None for drop in self.drops)


def require_owner(engine: Engine, schema: str, patience: Patience = PATIENCE, *, to_run: str = "prune") -> None:
    """See that the role may prune, or erase, which the owner has to run otherwise.

    Raises:
        SetupError: if it may not, with what to do.
    """
    with patience.transaction(engine) as connection:
        if not may_make(connection, schema):
            raise SetupError(
                "this role may not remove what the ledger has recorded, which is as it should be for a worker: run "
                f"{command(to_run, schema)} as the owner of the tables"
            )


def plan_prune(engine: Engine, schema: str, retention: Retention, *, patience: Patience = LOOKING) -> Pruned:
    """What `prune` would do now: counts are exact up to 10,000 of a kind. Nothing is changed.

    Args, errors: as of `prune`.
    """
    require_owner(engine, schema, patience)
    t = tables(schema)
    with patience.transaction(engine) as connection:
        at = connection.execute(select(func.now())).scalar_one()
        planned = Pruned(at)
        horizon = None if retention.payloads is None else at - retention.payloads
        if horizon is not None:
            before_id = first_id_since(connection, t, horizon)
            for partition in _over(connection, schema, horizon):
                found = _unsettled(connection, t, partition, before_id)
                planned.drops.append(Drop(partition, found, _too_many(found)))
        forgetting = Forgetting(connection.engine, schema, retention, at, patience)
        planned.counts, planned.is_bounded = forgetting.count(connection)
    return planned


def prune(
    engine: Engine,
    schema: str,
    retention: Retention,
    *,
    patience: Patience = PATIENCE,
    progress: Progress = lambda what, count: None,
) -> Pruned:
    """Remove what is settled and over its horizon.

    Args:
        engine: synchronous, or the synchronous side of an asynchronous one; its role owns the tables.
        schema: of the ledger.
        retention: the horizons; `Retention.require` says whether they are long enough for the senders.
        patience: how long a step may hold up others.
        progress: is told of each step.

    Raises:
        SetupError: if the role may not.
        Stopped: when told to; what was done stands.
    """
    require_owner(engine, schema, patience)
    with patience.transaction(engine) as connection:
        at = connection.execute(select(func.now())).scalar_one()
    pruned = Pruned(at)
    try:
        if retention.payloads is not None:
            _drop_partitions(engine, schema, at - retention.payloads, patience, progress, pruned)
        for what, count in Forgetting(engine, schema, retention, at, patience).steps():
            pruned.counts[what] = pruned.counts.get(what, 0) + count
            progress(what, count)
    except Another:
        pruned.by_another = True
    except Busy as error:
        pruned.put_off = str(error)
    return pruned


def _over(connection: Connection, schema: str, horizon: datetime) -> list[Partition]:
    return [each for each in read_partitions(connection, schema) if each.end is not None and each.end <= horizon]


def _drop_partitions(
    engine: Engine, schema: str, horizon: datetime, patience: Patience, progress: Progress, pruned: Pruned
) -> None:
    t = tables(schema)

    def look(connection: Connection) -> tuple[list[Partition], int]:
        over = _over(connection, schema, horizon)
        return over, first_id_since(connection, t, horizon) if over else 0

    over, before_id = patience.step(engine, look, "old partitions were not dropped")
    for partition in over:

        def work(connection: Connection, partition: Partition = partition) -> Drop | None:
            return _drop(connection, t, partition, before_id)

        try:
            drop = patience.step(engine, work, f"the partition {partition.name} was not dropped")
        except Busy as error:
            drop = Drop(partition, 0, str(error))
        if drop is None:
            continue
        pruned.drops.append(drop)
        if drop.kept is None:
            pruned.moved += drop.unsettled
            progress("partitions", 1)


def _drop(connection: Connection, t: Tables, partition: Partition, before_id: int) -> Drop | None:
    """Drop a partition, with the payloads that are still needed moved to the default one. None if it is gone already.

    Dropping and detaching lock all payloads against everybody, which is why there are few rows to move and a limit on
    the time. https://www.postgresql.org/docs/current/sql-altertable.html#SQL-ALTERTABLE-DETACH-PARTITION
    """
    if not is_first(connection, t.schema, "prune"):
        raise Another
    if partition.name not in {each.name for each in read_partitions(connection, t.schema)}:
        return None
    keep_unsettled(connection, t.schema)
    unsettled = _unsettled(connection, t, partition, before_id)
    kept = _too_many(unsettled)
    if kept is not None:
        return Drop(partition, unsettled, kept)
    place = quoted(t.schema)
    names = {"payloads": f"{place}.payloads", "old": f"{place}.{quoted(partition.name)}"}
    if unsettled:
        old = t.payloads.to_metadata(MetaData(), name=partition.name)
        needed = unsettled_payloads(t, before_id=before_id, start=partition.start, end=partition.end).subquery()
        wanted = tuple_(old.c.received_at, old.c.id).in_(select(needed.c.received_at, needed.c.payload_id))
        size = connection.scalar(select(func.sum(func.octet_length(old.c.body))).where(wanted)) or 0
        if size > MOST_MOVED_BYTES:
            return Drop(partition, unsettled, f"{unsettled:,} of its payloads are of deliveries that are not settled")
        connection.execute(
            DDL("ALTER TABLE %(payloads)s DETACH PARTITION %(old)s", context=names)  # type: ignore[no-untyped-call]
        )
        columns = ["id", "received_at", "headers", "body"]
        rows = select(*[old.c[name] for name in columns]).where(wanted)
        connection.execute(insert(t.payloads).from_select(columns, rows))
    connection.execute(DDL("DROP TABLE %(old)s", context=names))  # type: ignore[no-untyped-call]
    return Drop(partition, unsettled)


def _unsettled(connection: Connection, t: Tables, partition: Partition, before_id: int) -> int:
    found: Select[tuple[int]] = unsettled_payloads(
        t, before_id=before_id, start=partition.start, end=partition.end
    ).limit(MOST_MOVED + 1)
    return int(connection.execute(select(func.count(literal(1))).select_from(found.subquery())).scalar_one())


def _too_many(unsettled: int) -> str | None:
    if unsettled <= MOST_MOVED:
        return None
    return f"more than {MOST_MOVED:,} of its payloads are of deliveries that are not settled"
