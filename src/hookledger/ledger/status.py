"""How a ledger stands: what is pending, dead and settled, per source.

Deliveries and effects may be millions of rows, so nothing here reads a whole table unless it is asked to:
counts are exact up to `BOUND` rows, and effects beyond that are estimated from a sample of the table's pages.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Label,
    ScalarSelect,
    Select,
    cast,
    func,
    literal,
    select,
    tablesample,
)
from sqlalchemy.dialects.postgresql import REGCLASS

from hookledger.ledger.schema import Tables, tables

BOUND = 10_000
"""Rows that are counted one by one; more are told as "at least"."""

LOOKED_AT = 100_000
"""Newest deliveries among which one is looked for that was not imported: a tenth of a second if there is none."""

SAMPLED_PAGES = 1_000
"""Pages of effects, of 8 kB each, that an estimate reads: about 3 % of error on a large table."""


class Precision(enum.Enum):
    """How far a count can be trusted."""

    EXACT = "exact"
    AT_LEAST = "at least"
    ABOUT = "about"


@dataclass(frozen=True, slots=True)
class Pending:
    """Deliveries that still have work.

    Args:
        count: all of them.
        due: those whose time has come.
        retrying: those that failed and wait for the next attempt.
        claimed: those that a worker holds, or held when it died.
        oldest_due_at: the earliest due time; in the future if all of them wait.
    """

    count: int = 0
    due: int = 0
    retrying: int = 0
    claimed: int = 0
    oldest_due_at: datetime | None = None
    precision: Precision = Precision.EXACT


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there are of each kind: dead letters by reason, or effects by outcome."""

    by_kind: Mapping[str, int] = field(default_factory=dict)
    precision: Precision = Precision.EXACT

    @property
    def count(self) -> int:
        """All kinds together."""
        total = sum(self.by_kind.values())
        return min(total, BOUND) if self.precision is Precision.AT_LEAST else total


@dataclass(frozen=True, slots=True)
class Redeliveries:
    """What senders sent again; `differing` came with other bytes under the same event id."""

    count: int = 0
    differing: int = 0
    precision: Precision = Precision.EXACT


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How the deliveries of one source, or of all, stand."""

    pending: Pending = Pending()
    dead: Counts = Counts()
    settled: Counts = Counts()
    redeliveries: Redeliveries = Redeliveries()


@dataclass(frozen=True, slots=True)
class Status:
    """How a ledger stands at one moment.

    Args:
        schema: the PostgreSQL schema of the ledger.
        read_at: the moment, by the database's clock.
        last_received_at: when the newest delivery that was not imported was received; None if there is none, or if a
            hundred thousand were imported since.
        sources: by name, those that have anything to tell.
        paused: what is paused, the longest first: source or handler, its name, and since when.
    """

    schema: str
    read_at: datetime
    last_received_at: datetime | None
    sources: Mapping[str, SourceStatus]
    paused: tuple[tuple[str, str, datetime], ...] = ()

    @property
    def total(self) -> SourceStatus:
        """All sources together."""
        every = list(self.sources.values())
        return SourceStatus(
            pending=_all_pending([source.pending for source in every]),
            dead=_all_counts([source.dead for source in every]),
            settled=_all_counts([source.settled for source in every]),
            redeliveries=_all_redeliveries([source.redeliveries for source in every]),
        )

    @property
    def seconds_overdue(self) -> float:
        """How long the oldest due delivery has been waiting for a worker; 0 if none is due."""
        oldest = self.total.pending.oldest_due_at
        return max(0.0, (self.read_at - oldest).total_seconds()) if oldest else 0.0


def pending_by_source(t: Tables, limit: int | None) -> Select[Any]:
    """Pending deliveries of each source, those that are due first being looked at first."""
    pending = t.pending
    found = (
        select(pending, _source_of(t, pending.c.delivery_id))
        .order_by(pending.c.due_at, pending.c.delivery_id)
        .limit(limit)
        .subquery()
    )
    failed = found.c.last_error.is_not(None)
    return select(
        found.c.source,
        func.count(),
        func.count().filter(found.c.due_at <= func.now()),
        func.count().filter(failed),
        func.count().filter(found.c.attempts > 0, ~failed),
        func.min(found.c.due_at),
    ).group_by(found.c.source)


def dead_by_source(t: Tables, limit: int | None) -> Select[Any]:
    """Dead letters of each source by reason, the newest being looked at first."""
    dead = t.dead_letters
    found = (
        select(dead.c.reason, _source_of(t, dead.c.delivery_id))
        .order_by(dead.c.died_at.desc(), dead.c.delivery_id.desc())
        .limit(limit)
        .subquery()
    )
    return select(found.c.source, found.c.reason, func.count()).group_by(found.c.source, found.c.reason)


def redeliveries_by_source(t: Tables, limit: int | None) -> Select[Any]:
    """Redeliveries of each source, the newest being looked at first."""
    again = t.redeliveries
    found = (
        select(again.c.differs, _source_of(t, again.c.delivery_id)).order_by(again.c.id.desc()).limit(limit).subquery()
    )
    return select(found.c.source, func.count(), func.count().filter(found.c.differs)).group_by(found.c.source)


def settled_by_source(t: Tables, *, percent: float | None = None) -> Select[Any]:
    """Effects of each source by outcome, of the whole table or of a share of its pages.

    Sampling: https://www.postgresql.org/docs/current/sql-select.html#SQL-FROM (TABLESAMPLE SYSTEM)
    """
    effects: FromClause = t.effects
    if percent is not None:
        effects = tablesample(t.effects, func.system(cast(percent, REAL)), name="effects")
    return select(effects.c.source, effects.c.outcome, func.count()).group_by(effects.c.source, effects.c.outcome)


def effects_up_to(t: Tables, limit: int) -> Select[Any]:
    """How many effects there are, counting no further than the limit."""
    return select(func.count()).select_from(select(literal(1)).select_from(t.effects).limit(limit).subquery())


def pages_of_effects(t: Tables, quoted_name: str) -> Select[Any]:
    """The size of the effects table in pages."""
    size = func.pg_relation_size(cast(quoted_name, REGCLASS), type_=BigInteger)
    return select(size / cast(func.current_setting("block_size"), Integer))


def pauses(t: Tables) -> Select[Any]:
    """What is paused, the longest first."""
    p = t.pauses.c
    return select(p.kind, p.name, p.since).order_by(p.since, p.kind, p.name)


def newest_arrival(t: Tables, limit: int | None) -> ScalarSelect[int]:
    """The id of the newest delivery that came by itself, among so many of the newest ones; read from the ends of two
    primary keys."""
    d = t.deliveries.c
    newest = select(d.id).order_by(d.id.desc()).limit(limit).subquery()
    # Not NOT EXISTS: where most were imported the planner would then read all of both tables, and hash them.
    mark = select(literal(1)).where(t.imported.c.delivery_id == newest.c.id).limit(1).scalar_subquery()
    return select(newest.c.id).where(mark.is_(None)).order_by(newest.c.id.desc()).limit(1).scalar_subquery()


def read_status(connection: Connection, schema: str, *, exact: bool = False) -> Status:
    """How the ledger stands. Reads only, and costs about the same however large the ledger is.

    Give it a connection at REPEATABLE READ to have all numbers of one moment.

    Args:
        connection: to the ledger's database.
        schema: the ledger's schema.
        exact: count every row instead, which reads the whole of effects, dead_letters and redeliveries.
    """
    t = tables(schema)
    limit = None if exact else BOUND + 1
    newest = newest_arrival(t, None if exact else LOOKED_AT)
    moment, last = connection.execute(
        select(func.now(), select(t.deliveries.c.received_at).where(t.deliveries.c.id == newest).scalar_subquery())
    ).one()
    pending = _read_pending(connection, t, limit)
    dead = _read_dead(connection, t, limit)
    settled = _read_settled(connection, t, limit)
    again = _read_redeliveries(connection, t, limit)
    names = sorted({*pending, *dead, *settled, *again})
    # A source without rows is as uncertain as its neighbours where the counting stopped at the bound.
    no_pending = Pending(precision=_common(pending.values()))
    no_dead = Counts(precision=_common(dead.values()))
    no_settled = Counts(precision=_common(settled.values()))
    no_again = Redeliveries(precision=_common(again.values()))
    return Status(
        schema,
        moment,
        last,
        {
            name: SourceStatus(
                pending.get(name, no_pending),
                dead.get(name, no_dead),
                settled.get(name, no_settled),
                again.get(name, no_again),
            )
            for name in names
        },
        tuple([(kind, name, since) for kind, name, since in connection.execute(pauses(t))]),
    )


def _source_of(t: Tables, delivery_id: ColumnElement[int]) -> Label[Any]:
    # Not a join: for a few thousand rows the planner would read all deliveries and hash them.
    looked_up = select(t.deliveries.c.source).where(t.deliveries.c.id == delivery_id).scalar_subquery()
    return looked_up.label("source")


def _bounded(counted: int, limit: int | None) -> Precision:
    return Precision.EXACT if limit is None or counted < limit else Precision.AT_LEAST


def _read_pending(connection: Connection, t: Tables, limit: int | None) -> dict[str, Pending]:
    rows = connection.execute(pending_by_source(t, limit)).all()
    precision = _bounded(sum(count for _, count, *_ in rows), limit)
    return {
        source: Pending(count, due, retrying, claimed, oldest_due_at, precision)
        for source, count, due, retrying, claimed, oldest_due_at in rows
    }


def _read_dead(connection: Connection, t: Tables, limit: int | None) -> dict[str, Counts]:
    rows = [tuple(row) for row in connection.execute(dead_by_source(t, limit))]
    return _by_source(rows, _bounded(sum(count for _, _, count in rows), limit))


def _read_redeliveries(connection: Connection, t: Tables, limit: int | None) -> dict[str, Redeliveries]:
    rows = connection.execute(redeliveries_by_source(t, limit)).all()
    precision = _bounded(sum(count for _, count, _ in rows), limit)
    return {source: Redeliveries(count, differing, precision) for source, count, differing in rows}


def _read_settled(connection: Connection, t: Tables, limit: int | None) -> dict[str, Counts]:
    share = 1.0
    if limit is not None and connection.scalar(effects_up_to(t, limit)) == limit:
        quoted = connection.dialect.identifier_preparer.format_table(t.effects)
        pages = connection.scalar(pages_of_effects(t, quoted)) or 0
        share = min(1.0, SAMPLED_PAGES / max(pages, 1))
    if share == 1.0:
        return _by_source([tuple(row) for row in connection.execute(settled_by_source(t))], Precision.EXACT)
    sampled = connection.execute(settled_by_source(t, percent=100 * share))
    scaled = [(source, outcome, round(count / share)) for source, outcome, count in sampled]
    return _by_source(scaled, Precision.ABOUT)


def _by_source(rows: Iterable[tuple[Any, ...]], precision: Precision) -> dict[str, Counts]:
    kinds: dict[str, dict[str, int]] = {}
    for source, kind, count in rows:
        kinds.setdefault(source, {})[kind] = count
    return {source: Counts(dict(sorted(found.items())), precision) for source, found in kinds.items()}


def _common(parts: Iterable[Pending | Counts | Redeliveries]) -> Precision:
    return next((part.precision for part in parts), Precision.EXACT)


def _all_pending(parts: list[Pending]) -> Pending:
    precision = _common(parts)
    count = sum(part.count for part in parts)
    return Pending(
        min(count, BOUND) if precision is Precision.AT_LEAST else count,
        sum(part.due for part in parts),
        sum(part.retrying for part in parts),
        sum(part.claimed for part in parts),
        min((part.oldest_due_at for part in parts if part.oldest_due_at), default=None),
        precision,
    )


def _all_counts(parts: list[Counts]) -> Counts:
    by_kind: dict[str, int] = {}
    for part in parts:
        for kind, count in part.by_kind.items():
            by_kind[kind] = by_kind.get(kind, 0) + count
    return Counts(dict(sorted(by_kind.items())), _common(parts))


def _all_redeliveries(parts: list[Redeliveries]) -> Redeliveries:
    precision = _common(parts)
    count = sum(part.count for part in parts)
    return Redeliveries(
        min(count, BOUND) if precision is Precision.AT_LEAST else count,
        sum(part.differing for part in parts),
        precision,
    )
