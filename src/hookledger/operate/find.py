"""Deliveries that a filter lets through, the newest first, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, false, func, select, true

from hookledger.ledger.schema import Tables, tables
from hookledger.operate.filters import Filter, State
from hookledger.operate.masking import scrub, secret_values

PAGE = 50
LARGEST_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """One delivery, as a row of a list.

    Args:
        id: the ledger's number.
        source: name of the source.
        event_id: the sender's id of the event.
        event_type: the sender's name of its kind.
        resource: what it is about.
        received_at: when its request was committed.
        state: pending, dead or settled.
        attempts: so far, of one that is pending or dead; None of a settled one.
        due_at: when a pending one is tried next.
        parked: whether it waits because something is paused.
        reason: why it is dead.
        error: of the last failed attempt, without what the secret headers of the request held.
        fingerprint: of that error, where it is dead.
        outcomes: by handler; "-" where none matched.
        settled_at: when the last of them was written.
    """

    id: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    received_at: datetime
    state: State
    attempts: int | None
    due_at: datetime | None
    parked: bool
    reason: str | None
    error: str | None
    fingerprint: str | None
    outcomes: dict[str, str]
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of deliveries.

    Args:
        deliveries: the newest first.
        before: what to give for the next page; None if this is the last.
    """

    deliveries: tuple[Found, ...]
    before: int | None


def find(
    connection: Connection, schema: str, wanted: Filter | None = None, *, before: int | None = None, limit: int = PAGE
) -> Page:
    """One page of the deliveries that the filter lets through, the newest first.

    A page begins at an id and not at a number of rows, so what arrives meanwhile shifts nothing.

    Args:
        connection: to the ledger's database.
        schema: of the ledger.
        wanted: which ones; None for all.
        before: only ids below this one, as the page before says.
        limit: deliveries on a page, up to 10,000.
    """
    t = tables(schema)
    limit = max(1, min(limit, LARGEST_PAGE))
    rows = [_found(row) for row in connection.execute(page(t, wanted or Filter(), before, limit + 1))]
    shown = tuple(rows[:limit])
    return Page(shown, shown[-1].id if len(rows) > limit else None)


def find_ids(
    connection: Connection, schema: str, wanted: Filter | None = None, *, before: int | None = None, limit: int = PAGE
) -> list[int]:
    """As `find`, but the ids alone."""
    chosen = ids_of(tables(schema), wanted or Filter(), before, max(1, limit))
    return list(connection.execute(chosen).scalars())


def find_all(
    connection: Connection, schema: str, wanted: Filter, *, before: int | None = None, limit: int | None = None
) -> Iterator[Found]:
    """All of them, read page by page; `limit` of them at the most."""
    left = limit
    while left is None or left > 0:
        read = find(connection, schema, wanted, before=before, limit=1000 if left is None else min(1000, left))
        yield from read.deliveries
        if left is not None:
            left -= len(read.deliveries)
        if read.before is None:
            return
        before = read.before


def ids_of(t: Tables, wanted: Filter, before: int | None, limit: int) -> Select[int]:
    """The ids of a page."""
    id_ = t.deliveries.c.id
    statement = select(id_).where(*wanted.conditions(t))
    if before is not None:
        statement = statement.where(id_ < before)
    return statement.order_by(id_.desc()).limit(limit)


def page(t: Tables, wanted: Filter, before: int | None, limit: int) -> Select[Any]:
    """The rows of a page: first its ids, then what belongs to them, so that a join never reads more than the page."""
    chosen = ids_of(t, wanted, before, limit).cte("chosen").prefix_with("MATERIALIZED")
    d, p, dead, e, payload = t.deliveries.c, t.pending.c, t.dead_letters.c, t.effects.c, t.payloads.c
    error = func.coalesce(dead.error, p.last_error)
    effects = (
        select(
            func.json_object_agg(e.handler, e.outcome).label("outcomes"),
            func.max(e.applied_at).label("settled_at"),
        )
        .where(e.source == d.source, e.event_id == d.event_id)
        .lateral("found_effects")
    )
    return (
        select(
            *(d.id, d.source, d.event_id, d.event_type, d.resource, d.received_at),
            p.delivery_id.label("is_pending"),
            func.coalesce(p.attempts, dead.attempts).label("attempts"),
            *(p.due_at, func.coalesce(p.parked, false()).label("parked"), dead.reason),
            error.label("error"),
            payload.headers,
            *(dead.fingerprint, effects.c.outcomes, effects.c.settled_at),
        )
        .select_from(chosen)
        .join(t.deliveries, d.id == chosen.c.id)
        .outerjoin(t.pending, p.delivery_id == d.id)
        .outerjoin(t.dead_letters, dead.delivery_id == d.id)
        .outerjoin(
            t.payloads, (payload.received_at == d.received_at) & (payload.id == d.payload_id) & error.is_not(None)
        )
        .outerjoin(effects, true())
        .order_by(d.id.desc())
    )


def _found(row: Row[Any]) -> Found:
    state = State.PENDING if row.is_pending is not None else State.DEAD if row.reason is not None else State.SETTLED
    return Found(
        id=row.id,
        source=row.source,
        event_id=row.event_id,
        event_type=row.event_type,
        resource=row.resource,
        received_at=row.received_at,
        state=state,
        attempts=row.attempts,
        due_at=row.due_at,
        parked=row.parked,
        reason=row.reason,
        error=None if row.error is None else scrub(row.error, secret_values(row.headers or ())),
        fingerprint=row.fingerprint,
        outcomes=dict(sorted((row.outcomes or {}).items())),
        settled_at=row.settled_at,
    )
