"""The receiver's statements: record what is new, and that something came again."""

from __future__ import annotations

from sqlalchemy import cast, delete, func, insert, literal_column, select, true
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_or_skip
from sqlalchemy.sql import ClauseElement

from hookledger.ledger.arrays import VERSION, rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import literal_text, next_id


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
            next_id(t.schema, "payloads_id_seq").label("id"),
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
        select(next_id(t.schema, "deliveries_id_seq").label("id"), *given.c).cte("events").prefix_with("MATERIALIZED")
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
            select(
                fresh.c.id,
                literal_column("0"),
                literal_text("unreadable"),
                fresh.c.unreadable,
                literal_text("unreadable"),
            ).where(fresh.c.unreadable.is_not(None)),
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
            next_id(t.schema, "payloads_id_seq").label("id"),
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
            t.dead_letters.c.reason != literal_text("unreadable"),
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
