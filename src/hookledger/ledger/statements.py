"""Every statement of the receiver and the worker, each built by a function named after what it does.

They are compiled to text once a schema and run through `Connection.exec_driver_sql`: looking up a compiled
form at every batch cost more than some of the statements themselves. All names are qualified with the
schema, so that any search_path and any pooler will do, and every statement touches one schema only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    Float,
    Interval,
    Numeric,
    Select,
    any_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    extract,
    false,
    func,
    insert,
    literal_column,
    null,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_or_skip
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Text

from hookledger.handlers import NO_HANDLER
from hookledger.ledger.arrays import TYPES, rows
from hookledger.ledger.schema import Tables, tables

VERSION = ARRAY(Numeric)
BIGINTS = ARRAY(TYPES["bigint"])
DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]

SHORTEST_CLAIM = 5  # seconds between a claim and the next one of the same delivery
LARGEST_COMMON = 64 * 1024  # bytes; a larger body is not read by the claim itself


def _next(schema: str, sequence: str) -> Any:
    # Quoted by hand: the preparer doubles percent signs, and the compiler doubles those of a literal again.
    quoted = '"' + schema.replace('"', '""') + '"'
    name = f"{quoted}.{sequence}".replace("'", "''")
    return func.nextval(literal_column(f"'{name}'::regclass"))


def _seconds(value: Any) -> Any:
    return cast(value, Float) * cast(literal_column("'1 second'"), Interval)


def _text(value: str) -> Any:
    return cast(literal_column(f"'{value}'"), Text)


def record(t: Tables, *, earlier: bool = False) -> ClauseElement:
    """Insert payloads, their deliveries, and for each a pending row or a dead letter, unless it is known.

    Numbers are drawn in the order of arrival, so that of two equal versions the later arrival wins; rows are
    inserted in the order of their key, so that two receivers cannot wait for each other in a circle.
    Returns (number, delivery id) of the new ones; `number` counts the given deliveries from 1.

    Args:
        t: the tables.
        earlier: each request is given with the time at which it came; else that is now.
    """
    given_at = {"received_at": "moment"} if earlier else {}
    requests = rows("request", number="number", headers="text", body="bytes", **given_at)
    incoming = (
        select(
            _next(t.schema, "payloads_id_seq").label("id"),
            requests.c.number,
            requests.c.headers,
            requests.c.body,
            *([requests.c.received_at] if earlier else []),
        )
        .cte("incoming")
        .prefix_with("MATERIALIZED")
    )
    received_at = incoming.c.received_at if earlier else func.now()
    given = rows(
        "event",
        number="number",
        request="integer",
        source="text",
        event_id="text",
        event_type="text",
        resource="text",
        version="text",
        position="integer",
        digest="bytes",
        unreadable="text",
    )
    events = (
        select(_next(t.schema, "deliveries_id_seq").label("id"), *given.c).cte("events").prefix_with("MATERIALIZED")
    )
    recorded = (
        insert_or_skip(t.deliveries)
        .from_select(
            [
                "id",
                "source",
                "event_id",
                "event_type",
                "resource",
                "version",
                "payload_id",
                "received_at",
                "position",
                "body_digest",
            ],
            select(
                events.c.id,
                events.c.source,
                events.c.event_id,
                events.c.event_type,
                events.c.resource,
                cast(events.c.version, VERSION),
                incoming.c.id,
                received_at,
                events.c.position,
                events.c.digest,
            )
            .join_from(events, incoming, incoming.c.number == events.c.request)
            .order_by(events.c.source, events.c.event_id, events.c.number),
        )
        .on_conflict_do_nothing(index_elements=["source", "event_id"])
        .returning(t.deliveries.c.id, t.deliveries.c.payload_id)
        .cte("recorded")
    )
    stored = (
        insert(t.payloads)
        .from_select(
            ["id", "received_at", "headers", "body"],
            select(incoming.c.id, received_at, cast(incoming.c.headers, JSONB), incoming.c.body).where(
                incoming.c.id.in_(select(recorded.c.payload_id))
            ),
        )
        .cte("stored")
    )
    new = select(events.c.number, recorded.c.id, events.c.unreadable).join_from(
        recorded, events, events.c.id == recorded.c.id
    )
    fresh = new.cte("fresh")
    queued = (
        insert(t.pending)
        .from_select(["delivery_id"], select(fresh.c.id).where(fresh.c.unreadable.is_(None)))
        .cte("queued")
    )
    died = (
        insert(t.dead_letters)
        .from_select(
            ["delivery_id", "attempts", "reason", "error", "fingerprint"],
            select(fresh.c.id, literal_column("0"), _text("unreadable"), fresh.c.unreadable, _text("unreadable")).where(
                fresh.c.unreadable.is_not(None)
            ),
        )
        .cte("died")
    )
    return select(fresh.c.number, fresh.c.id).add_cte(stored, queued, died)


def record_earlier(t: Tables) -> ClauseElement:
    """As `record`, for requests that came at a time that is given with each."""
    return record(t, earlier=True)


def known(t: Tables) -> ClauseElement:
    """The deliveries of events: (source, event_id, id, body_digest) of those that the ledger has."""
    events = rows("event", source="text", event_id="text")
    d = t.deliveries.c
    return select(d.source, d.event_id, d.id, d.body_digest).join_from(
        events, t.deliveries, (d.source == events.c.source) & (d.event_id == events.c.event_id)
    )


def record_again(t: Tables) -> ClauseElement:
    """Record that events came again; a copy of a dead delivery revives it, a differing one is kept apart.

    Returns (delivery id, differs, revived) for each copy.
    """
    requests = rows("again", number="number", headers="text", body="bytes")
    copies = rows("copy", number="number", again="integer", source="text", event_id="text", digest="bytes")
    known = (
        select(
            t.deliveries.c.id.label("delivery_id"),
            (t.deliveries.c.body_digest != copies.c.digest).label("differs"),
            copies.c.number,
            copies.c.again,
        )
        .join_from(
            copies,
            t.deliveries,
            (t.deliveries.c.source == copies.c.source) & (t.deliveries.c.event_id == copies.c.event_id),
        )
        .cte("known")
        .prefix_with("MATERIALIZED")
    )
    apart = (
        select(
            _next(t.schema, "payloads_id_seq").label("id"),
            requests.c.number,
            requests.c.headers,
            requests.c.body,
        )
        .where(requests.c.number.in_(select(known.c.again).where(known.c.differs)))
        .cte("apart")
        .prefix_with("MATERIALIZED")
    )
    kept = (
        insert(t.payloads)
        .from_select(
            ["id", "received_at", "headers", "body"],
            select(apart.c.id, func.now(), cast(apart.c.headers, JSONB), apart.c.body),
        )
        .cte("kept")
    )
    repeated = (
        insert(t.redeliveries)
        .from_select(
            ["delivery_id", "received_at", "headers", "differs", "payload_id"],
            select(
                known.c.delivery_id,
                func.now(),
                cast(requests.c.headers, JSONB),
                known.c.differs,
                apart.c.id,
            )
            .join_from(known, requests, requests.c.number == known.c.again)
            .join(apart, known.c.differs & (apart.c.number == known.c.again), isouter=True)
            .order_by(known.c.number),
        )
        .cte("repeated")
    )
    # Locked in the order of their ids, so that two receivers cannot wait for each other in a circle.
    dead = (
        select(t.dead_letters.c.delivery_id)
        .where(
            t.dead_letters.c.delivery_id.in_(select(known.c.delivery_id).where(~known.c.differs)),
            t.dead_letters.c.reason != _text("unreadable"),
        )
        .order_by(t.dead_letters.c.delivery_id)
        .with_for_update()
        .cte("dead")
        .prefix_with("MATERIALIZED")
    )
    revived = (
        delete(t.dead_letters)
        .where(t.dead_letters.c.delivery_id.in_(select(dead.c.delivery_id)))
        .returning(t.dead_letters.c.delivery_id)
        .cte("revived")
    )
    queued = (
        insert_or_skip(t.pending)
        .from_select(["delivery_id", "revisited"], select(revived.c.delivery_id, true()))
        .on_conflict_do_nothing()
        .cte("queued")
    )
    return (
        select(known.c.delivery_id, known.c.differs, revived.c.delivery_id.is_not(None).label("revived"))
        .join_from(known, revived, revived.c.delivery_id == known.c.delivery_id, isouter=True)
        .order_by(known.c.number)
        .add_cte(kept, repeated, queued)
    )


def _next_retry(t: Tables, attempts: Any) -> Any:
    """When a delivery is due if this worker dies: RetryPolicy.delay, computed by the server.

    Not before SHORTEST_CLAIM: whoever claims a delivery that another is only about to hold takes it for crashed.
    """
    grown = bindparam("first_delay", type_=Float) * func.power(
        bindparam("factor", type_=Float), func.least(attempts, literal_column("64"))
    )
    spread: Any = literal_column("1") + bindparam("jitter", type_=Float) * func.random()
    delay = func.least(bindparam("longest_delay", type_=Float), grown) * spread
    return func.clock_timestamp() + _seconds(func.greatest(literal_column(str(SHORTEST_CLAIM)), delay))


def _with_payloads(t: Tables, claimed: Any) -> ClauseElement:
    """The claimed deliveries with their payloads, but no body larger than LARGEST_COMMON."""
    d, p = t.deliveries.c, t.payloads.c
    size = func.octet_length(p.body)
    return select(
        *(d.id, d.source, d.event_id, d.event_type, d.resource, cast(d.version, Text).label("version")),
        *(d.received_at, d.position, d.payload_id),
        *(cast(p.headers, Text).label("headers"), size.label("size")),
        case((size <= literal_column(str(LARGEST_COMMON)), p.body)).label("body"),
        *(claimed.c.attempts, claimed.c.last_error, claimed.c.crashed, claimed.c.revisited, claimed.c.due_at),
        # Losing a claim is harmless, so its commit waits for no disk; said here, it costs no statement of its own.
        select(func.set_config(_text("synchronous_commit"), _text("off"), true())).scalar_subquery(),
        # Read with each claim: a pause holds from the moment that it is written, for every worker, and costs nothing.
        cast(select(func.json_agg(_pause(t))).scalar_subquery(), Text).label("pauses"),
    ).select_from(
        claimed.join(t.deliveries, d.id == claimed.c.delivery_id).outerjoin(
            t.payloads, (p.received_at == d.received_at) & (p.id == d.payload_id)
        )
    )


def _pause(t: Tables) -> Any:
    p = t.pauses.c
    return func.json_build_array(p.kind, p.name, extract("epoch", func.now() - p.since))


def claim(t: Tables, batch: int) -> ClauseElement:
    """Take up to `batch` due deliveries that nobody holds, and write when each is due if we die now.

    The inner select is a MATERIALIZED CTE: as a plain subquery the planner may run it more than once and
    claim more than `batch`. A row whose last attempt ended in a crash (attempts, but no error) is not charged
    here: it will run alone, and `claim_one` charges it then. Large bodies are left out: a batch of them, or the
    same one with each of its deliveries, would fill the memory; `read_bodies` gives as many as there is room for.
    `since` leaves out the beginning of the index, where the entries of settled deliveries wait for vacuum.
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
        .where(t.pending.c.due_at <= func.now(), t.pending.c.due_at >= bindparam("since", type_=TYPES["moment"]))
        .order_by(t.pending.c.due_at, t.pending.c.delivery_id)
        # A constant: with a parameter a cached plan would reckon with a tenth of the table.
        .limit(literal_column(str(int(batch))))
        .with_for_update(skip_locked=True)
        .cte("due")
        .prefix_with("MATERIALIZED")
    )
    crashed = (due.c.attempts > literal_column("0")) & due.c.last_error.is_(None)
    claimed = (
        update(t.pending)
        .values(
            attempts=case((crashed, due.c.attempts), else_=due.c.attempts + literal_column("1")),
            due_at=_next_retry(t, due.c.attempts),
            last_error=null(),
            revisited=true(),
            parked=false(),
        )
        .where(t.pending.c.delivery_id == due.c.delivery_id)
        .returning(
            t.pending.c.delivery_id,
            t.pending.c.attempts,
            due.c.last_error,
            crashed.label("crashed"),
            due.c.revisited,
            due.c.due_at,
        )
        .cte("claimed")
    )
    return _with_payloads(t, claimed)


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


def hold(t: Tables) -> ClauseElement:
    """Lock the rows that are still ours: those whose attempts is what our claim wrote, and that have no error.

    The attempts alone would not do: what was claimed, given back, claimed again and has failed since has the same
    number as we wrote. A claim clears the error, and a failure writes one.
    """
    ours = rows("ours", delivery_id="bigint", attempts="integer")
    return (
        select(t.pending.c.delivery_id)
        .join_from(
            ours,
            t.pending,
            (t.pending.c.delivery_id == ours.c.delivery_id)
            & (t.pending.c.attempts == ours.c.attempts)
            & t.pending.c.last_error.is_(None),
        )
        .with_for_update(of=t.pending, skip_locked=True)
    )


def hold_alike(t: Tables) -> ClauseElement:
    """As `hold`, for rows to which our claim wrote the same number of attempts: as most have."""
    p = t.pending.c
    return (
        select(p.delivery_id)
        .where(
            p.delivery_id == any_(bindparam("ids", type_=BIGINTS)),
            p.attempts == bindparam("attempts", type_=TYPES["integer"]),
            p.last_error.is_(None),
        )
        .with_for_update(skip_locked=True)
    )


def hold_waiting(t: Tables) -> ClauseElement:
    """As `hold`, but wait for a claim that looks at the row for a moment; in the order of the ids."""
    ours = rows("ours", delivery_id="bigint", attempts="integer")
    return (
        select(t.pending.c.delivery_id)
        .join_from(
            ours,
            t.pending,
            (t.pending.c.delivery_id == ours.c.delivery_id)
            & (t.pending.c.attempts == ours.c.attempts)
            & t.pending.c.last_error.is_(None),
        )
        .order_by(t.pending.c.delivery_id)
        .with_for_update(of=t.pending)
    )


def look_up(t: Tables) -> ClauseElement:
    """Outcomes that deliveries have already: (handler, source, event_id)."""
    events = rows("event", source="text", event_id="text")
    return select(t.effects.c.handler, t.effects.c.source, t.effects.c.event_id).join_from(
        events,
        t.effects,
        (t.effects.c.source == events.c.source) & (t.effects.c.event_id == events.c.event_id),
    )


def insert_states(t: Tables) -> ClauseElement:
    """Make the missing resource states, in the order of their key."""
    states = rows("state", handler="text", source="text", resource="text")
    keys = ["handler", "source", "resource"]
    return (
        insert_or_skip(t.resource_state)
        .from_select(keys, select(*[states.c[key] for key in keys]).order_by(*[states.c[key] for key in keys]))
        .on_conflict_do_nothing()
    )


def read_states(t: Tables) -> Select[Any]:
    """The watermarks of resource states, in the order of their key."""
    states = rows("state", handler="text", source="text", resource="text")
    r = t.resource_state
    return (
        select(r.c.handler, r.c.source, r.c.resource, cast(r.c.version, Text), r.c.delivery_id)
        .join_from(
            states,
            r,
            (r.c.handler == states.c.handler) & (r.c.source == states.c.source) & (r.c.resource == states.c.resource),
        )
        .order_by(r.c.handler, r.c.source, r.c.resource)
    )


def lock_states(t: Tables) -> ClauseElement:
    """Lock the resource states in the order of their key, and read the watermarks."""
    return read_states(t).with_for_update(of=t.resource_state)


def save_states(t: Tables) -> ClauseElement:
    """Move the watermarks of snapshots that were applied, and replace the state where the handler gave one."""
    new = rows(
        "state",
        handler="text",
        source="text",
        resource="text",
        version="text",
        delivery_id="bigint",
        deleted="boolean",
        replaces="boolean",
        state="text",
    )
    r = t.resource_state
    return (
        update(r)
        .values(
            version=cast(new.c.version, VERSION),
            delivery_id=new.c.delivery_id,
            deleted=new.c.deleted,
            state=case((new.c.replaces, cast(new.c.state, JSONB)), else_=r.c.state),
        )
        .where(r.c.handler == new.c.handler, r.c.source == new.c.source, r.c.resource == new.c.resource)
    )


def add_states(t: Tables) -> ClauseElement:
    """Add the numbers that accumulate handlers returned to the states, exactly (numeric), in key order."""
    numbers = rows(
        "number",
        handler="text",
        source="text",
        resource="text",
        label="text",
        value="numeric",
        delivery_id="bigint",
    )
    n = numbers.c
    sums = (
        select(
            n.handler,
            n.source,
            n.resource,
            n.label,
            func.sum(n.value).label("total"),
            func.max(n.delivery_id).label("delivery_id"),
        )
        .group_by(n.handler, n.source, n.resource, n.label)
        .cte("sums")
    )
    s = sums.c
    r = t.resource_state
    added = insert_or_skip(r).from_select(
        ["handler", "source", "resource", "delivery_id", "state"],
        select(
            s.handler,
            s.source,
            s.resource,
            func.max(s.delivery_id),
            func.jsonb_object_agg(s.label, s.total),
        )
        .group_by(s.handler, s.source, s.resource)
        .order_by(s.handler, s.source, s.resource),
    )
    before = func.jsonb_each_text(func.coalesce(r.c.state, cast(_text("{}"), JSONB))).table_valued(
        "key", "value", name="before"
    )
    given = func.jsonb_each_text(added.excluded.state).table_valued("key", "value", name="given")
    both = (
        select(before.c.key, cast(before.c.value, Numeric).label("value"))
        .union_all(select(given.c.key, cast(given.c.value, Numeric)))
        .subquery("both")
    )
    total = select(both.c.key, func.sum(both.c.value).label("value")).group_by(both.c.key).subquery("total")
    return added.on_conflict_do_update(
        index_elements=["handler", "source", "resource"],
        set_={
            "state": select(func.jsonb_object_agg(total.c.key, total.c.value)).scalar_subquery(),
            "delivery_id": func.greatest(r.c.delivery_id, added.excluded.delivery_id),
        },
    )


def settle(t: Tables) -> ClauseElement:
    """Write outcomes, in the order of their key, and remove from pending the deliveries that have all of theirs.

    A second effect of one event is an error, never skipped.
    """
    gone = delete(t.pending).where(t.pending.c.delivery_id == any_(bindparam("settled", type_=BIGINTS))).cte("gone")
    new = rows(
        "effect",
        source="text",
        event_id="text",
        handler="text",
        delivery_id="bigint",
        outcome="text",
        version="text",
    )
    written = insert(t.effects).from_select(
        ["source", "event_id", "handler", "delivery_id", "outcome", "version"],
        select(
            new.c.source,
            new.c.event_id,
            new.c.handler,
            new.c.delivery_id,
            new.c.outcome,
            cast(new.c.version, VERSION),
        ).order_by(new.c.source, new.c.event_id, new.c.handler),
    )
    return written.add_cte(gone)


def write_failures(t: Tables) -> ClauseElement:
    """Record failed attempts, one row a handler."""
    new = rows("failure", delivery_id="bigint", attempt="integer", handler="text", error="text", fingerprint="text")
    columns = ["delivery_id", "attempt", "handler", "error", "fingerprint"]
    return insert(t.failures).from_select(columns, select(*[new.c[name] for name in columns]))


def postpone(t: Tables) -> ClauseElement:
    """Write the error of a failed attempt, and when the next one is due."""
    new = rows("late", delivery_id="bigint", attempts="integer", seconds="float", error="text")
    p = t.pending
    return (
        update(p)
        .values(last_error=new.c.error, due_at=func.clock_timestamp() + _seconds(new.c.seconds))
        .where(p.c.delivery_id == new.c.delivery_id, p.c.attempts == new.c.attempts)
    )


def give_back(t: Tables) -> ClauseElement:
    """Make deliveries due at once, with the attempt refunded and the error they had before the claim."""
    new = rows("back", delivery_id="bigint", attempts="integer", refund="integer", error="text")
    p = t.pending
    return (
        update(p)
        # One time for all, so that they stay in their order.
        .values(attempts=p.c.attempts - new.c.refund, last_error=new.c.error, due_at=func.statement_timestamp())
        .where(p.c.delivery_id == new.c.delivery_id, p.c.attempts == new.c.attempts)
    )


def park(t: Tables) -> ClauseElement:
    """Give deliveries back whose source or handler is paused: with the attempt refunded, and due later."""
    new = rows("parked", delivery_id="bigint", attempts="integer", refund="integer", error="text", seconds="float")
    p = t.pending
    return (
        update(p)
        .values(
            attempts=p.c.attempts - new.c.refund,
            last_error=new.c.error,
            due_at=func.clock_timestamp() + _seconds(new.c.seconds),
            parked=true(),
        )
        .where(p.c.delivery_id == new.c.delivery_id, p.c.attempts == new.c.attempts)
    )


def hold_pauses(t: Tables) -> ClauseElement:
    """Lock what is paused, so that nobody resumes it before what is parked for it is committed."""
    locked = select(t.pauses).with_for_update(read=True).cte("locked").prefix_with("MATERIALIZED")
    age = extract("epoch", func.now() - locked.c.since)
    return select(cast(func.json_agg(func.json_build_array(locked.c.kind, locked.c.name, age)), Text))


def bury(t: Tables) -> ClauseElement:
    """Move deliveries from pending to the dead letters."""
    new = rows("dead", delivery_id="bigint", attempts="integer", reason="text", error="text", fingerprint="text")
    gone = (
        delete(t.pending)
        .where(t.pending.c.delivery_id == new.c.delivery_id)
        .returning(t.pending.c.delivery_id, new.c.attempts, new.c.reason, new.c.error, new.c.fingerprint)
        .cte("gone")
    )
    columns = ["delivery_id", "attempts", "reason", "error", "fingerprint"]
    return insert(t.dead_letters).from_select(columns, select(*[gone.c[name] for name in columns]))


def find_ignored(t: Tables) -> ClauseElement:
    """The newest ignored deliveries before one, and whether each was ignored lately, by the index of the outcomes."""
    e, d = t.effects.c, t.deliveries.c
    page = (
        select(e.delivery_id, e.applied_at)
        .where(
            # Not a parameter: by it the planner would not know that the index has them.
            e.outcome == literal_column("'ignored'"),
            e.delivery_id < bindparam("before", type_=TYPES["bigint"]),
        )
        .order_by(e.delivery_id.desc())
        .limit(bindparam("most", type_=TYPES["integer"]))
        .cte("page")
        .prefix_with("MATERIALIZED")
    )
    recent = page.c.applied_at >= func.now() - _seconds(bindparam("within", type_=Float))
    return (
        select(d.id, d.source, d.event_type, recent.label("recent"))
        .join_from(page, t.deliveries, d.id == page.c.delivery_id)
        .order_by(d.id.desc())
    )


def revive_ignored(t: Tables) -> ClauseElement:
    """Make deliveries pending of which nothing is known but that they were ignored, and whose payload is there, whole.

    Their `ignored` rows stay: what is in the effects is not changed. Returns their ids.
    """
    d, p, e = t.deliveries.c, t.payloads.c, t.effects.c
    other = t.effects.alias("other").c
    return (
        insert_or_skip(t.pending)
        .from_select(
            ["delivery_id", "revisited"],
            select(d.id, true())
            .where(
                d.id == any_(bindparam("ids", type_=BIGINTS)),
                exists().where(p.received_at == d.received_at, p.id == d.payload_id),
                exists().where(
                    e.source == d.source,
                    e.event_id == d.event_id,
                    e.handler == literal_column(f"'{NO_HANDLER}'"),
                    e.outcome == literal_column("'ignored'"),
                ),
                ~exists().where(
                    other.source == d.source,
                    other.event_id == d.event_id,
                    other.handler != literal_column(f"'{NO_HANDLER}'"),
                ),
                ~exists().where(t.pending.c.delivery_id == d.id),
                ~exists().where(t.dead_letters.c.delivery_id == d.id),
                ~exists().where(t.erased.c.delivery_id == d.id),
            )
            .order_by(d.id),
        )
        .on_conflict_do_nothing()
        .returning(t.pending.c.delivery_id)
    )


def leave_dead_letters(t: Tables) -> ClauseElement:
    """Remove dead letters of deliveries that this transaction has made pending."""
    return delete(t.dead_letters).where(t.dead_letters.c.delivery_id == any_(bindparam("ids", type_=BIGINTS)))


@dataclass(frozen=True)
class Statements:
    """The text of every statement for one schema, with psycopg's named placeholders."""

    record: str
    record_earlier: str
    known: str
    record_again: str
    read_bodies: str
    claim_one: str
    hold: str
    hold_alike: str
    hold_waiting: str
    look_up: str
    insert_states: str
    lock_states: str
    read_states: str
    save_states: str
    add_states: str
    settle: str
    write_failures: str
    postpone: str
    give_back: str
    park: str
    hold_pauses: str
    bury: str
    find_ignored: str
    revive_ignored: str
    leave_dead_letters: str


def _compiled(element: ClauseElement) -> str:
    # Bytes go in psycopg's binary format: as text they would be twice as many, and escaped on the way (measured for
    # a body of 25 MiB: 1 s instead of 4).
    return str(element.compile(dialect=DIALECT)).replace(")s::BYTEA[]", ")b::BYTEA[]")


@cache
def statements(schema: str) -> Statements:
    """The statements of the ledger in the given schema, built once."""
    built = tables(schema)
    return Statements(**{item.name: _compiled(globals()[item.name](built)) for item in fields(Statements)})


@lru_cache(maxsize=256)
def claim_statement(schema: str, batch: int) -> str:
    """The claim of up to `batch` deliveries, built once a size."""
    return _compiled(claim(tables(schema), batch))
