"""Make ignored deliveries pending again, once there is a handler for them."""

from __future__ import annotations

from sqlalchemy import Float, bindparam, delete, exists, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import insert as insert_or_skip
from sqlalchemy.sql import ClauseElement

from hookledger.handlers import NO_HANDLER
from hookledger.ledger.arrays import TYPES
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of, seconds


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
    recent = page.c.applied_at >= func.now() - seconds(bindparam("within", type_=Float))
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
                is_one_of(d.id, "ids"),
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
    return delete(t.dead_letters).where(is_one_of(t.dead_letters.c.delivery_id, "ids"))
