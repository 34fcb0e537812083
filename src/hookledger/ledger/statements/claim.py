"""Claim due deliveries, with what a worker reads of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Float,
    bindparam,
    case,
    cast,
    extract,
    false,
    func,
    literal_column,
    null,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Text

from hookledger.ledger.arrays import TYPES, rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of, literal_text, seconds

MARGIN = "2"  # seconds; a receipt becomes visible with its commit, but is due from the beginning of its transaction
SHORTEST_CLAIM = 5  # seconds between a claim and the next one of the same delivery
LARGEST_COMMON = 64 * 1024  # bytes; a larger body is not read by the claim itself


def _next_retry(t: Tables, attempts: Any) -> Any:
    """When a delivery is due if this worker dies: RetryPolicy.delay, computed by the server.

    Not before SHORTEST_CLAIM: whoever claims a delivery that another is only about to hold takes it for crashed.
    """
    grown = bindparam("first_delay", type_=Float) * func.power(
        bindparam("factor", type_=Float), func.least(attempts, literal_column("64"))
    )
    spread: Any = literal_column("1") + bindparam("jitter", type_=Float) * func.random()
    delay = func.least(bindparam("longest_delay", type_=Float), grown) * spread
    return func.clock_timestamp() + seconds(func.greatest(literal_column(str(SHORTEST_CLAIM)), delay))


def _with_payloads(t: Tables, due: Any) -> ClauseElement:
    """The due deliveries with their payloads, but no body larger than LARGEST_COMMON."""
    d, p = t.deliveries.c, t.payloads.c
    size = func.octet_length(p.body)
    return select(
        *(d.id, d.source, d.event_id, d.event_type, d.resource, cast(d.version, Text).label("version")),
        *(d.received_at, d.position, d.payload_id),
        *(cast(p.headers, Text).label("headers"), size.label("size")),
        case((size <= literal_column(str(LARGEST_COMMON)), p.body)).label("body"),
        *(_charged(due.c).label("attempts"), due.c.last_error, _crashed(due.c).label("crashed"), due.c.revisited),
        # What was received just now may come to be seen in another order than it is due in.
        func.least(due.c.due_at, func.now() - seconds(literal_column(MARGIN))).label("look_from"),
        # Losing a claim is harmless, so its commit waits for no disk; said here, it costs no statement of its own.
        select(func.set_config(literal_text("synchronous_commit"), literal_text("off"), true())).scalar_subquery(),
        # Read with each claim: a pause holds from the moment that it is written, for every worker, and costs nothing.
        cast(select(func.json_agg(_pause(t))).scalar_subquery(), Text).label("pauses"),
    ).select_from(
        due.join(t.deliveries, d.id == due.c.delivery_id).outerjoin(
            t.payloads, (p.received_at == d.received_at) & (p.id == d.payload_id)
        )
    )


def _pause(t: Tables) -> Any:
    p = t.pauses.c
    return func.json_build_array(p.kind, p.name, extract("epoch", func.now() - p.since))


def claim(t: Tables, batch: int) -> ClauseElement:
    """Lock up to `batch` due deliveries that nobody holds, and read them; `take` makes them ours.

    The inner select is a MATERIALIZED CTE: as a plain subquery the planner may run it more than once and
    claim more than `batch`. A row whose last attempt ended in a crash (attempts, but no error) is not charged
    by that: it will run alone, and `claim_one` charges it then. Large bodies are left out: a batch of them, or the
    same one with each of its deliveries, would fill the memory; `read_bodies` gives as many as there is room for.
    `since` and `since_id` leave out the beginning of the index, where the entries of settled deliveries wait for
    vacuum; `look_from` is where the next claim can begin.
    https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE
    """
    due = (
        select(
            t.pending.c.delivery_id,
            t.pending.c.due_at,
            t.pending.c.attempts,
            t.pending.c.last_error,
            t.pending.c.revisited,
        )
        .where(
            t.pending.c.due_at <= func.now(),
            tuple_(t.pending.c.due_at, t.pending.c.delivery_id)
            >= tuple_(bindparam("since", type_=TYPES["moment"]), bindparam("since_id", type_=TYPES["bigint"])),
        )
        .order_by(t.pending.c.due_at, t.pending.c.delivery_id)
        # A constant: with a parameter a cached plan would reckon with a tenth of the table.
        .limit(literal_column(str(int(batch))))
        .with_for_update(skip_locked=True)
        .cte("due")
        .prefix_with("MATERIALIZED")
    )
    return _with_payloads(t, due)


def take(t: Tables) -> ClauseElement:
    """Write that the rows which `claim` has locked are ours, and when each is due if we die now.

    A statement of its own, that has the ids as a value: joined with what it claims, it goes wrong where statistics say
    that nothing is pending, as they do of most queues. PostgreSQL then reads all of the table for each row it takes.
    """
    p = t.pending.c
    return (
        update(t.pending)
        .values(
            attempts=_charged(p),
            due_at=_next_retry(t, p.attempts),
            last_error=null(),
            revisited=true(),
            parked=false(),
        )
        .where(is_one_of(p.delivery_id, "ids"))
    )


def _crashed(row: Any) -> Any:
    return (row.attempts > literal_column("0")) & row.last_error.is_(None)


def _charged(row: Any) -> Any:
    return case((_crashed(row), row.attempts), else_=row.attempts + literal_column("1"))


def read_bodies(t: Tables) -> ClauseElement:
    """The bodies of payloads."""
    wanted = rows("payload", received_at="moment", id="bigint")
    p = t.payloads.c
    return select(p.id, p.body).join_from(
        wanted, t.payloads, (p.received_at == wanted.c.received_at) & (p.id == wanted.c.id)
    )


def claim_one(t: Tables) -> ClauseElement:
    """Charge one attempt to a delivery that crashed before, if it is still as `claim` left it; to be held first."""
    return (
        update(t.pending)
        .values(attempts=t.pending.c.attempts + literal_column("1"), due_at=_next_retry(t, t.pending.c.attempts))
        .where(
            t.pending.c.delivery_id == bindparam("delivery_id", type_=TYPES["bigint"]),
            t.pending.c.attempts == bindparam("attempts", type_=TYPES["integer"]),
            t.pending.c.last_error.is_(None),
        )
        .returning(t.pending.c.attempts)
    )
