"""The outcomes of deliveries: look up those that are there, and write those that are missing."""

from __future__ import annotations

from sqlalchemy import cast, delete, insert, select
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.selectable import TableValuedAlias

from hookledger.ledger.arrays import VERSION, rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import is_one_of


def look_up(t: Tables) -> ClauseElement:
    """Outcomes that deliveries have already: (handler, source, event_id)."""
    events = rows("event", source="text", event_id="text")
    return select(t.effects.c.handler, t.effects.c.source, t.effects.c.event_id).join_from(
        events,
        t.effects,
        (t.effects.c.source == events.c.source) & (t.effects.c.event_id == events.c.event_id),
    )


def given_effects() -> TableValuedAlias:
    """The outcomes to write, as rows of `NewEffect`; a version is text."""
    return rows(
        "effect",
        source="text",
        event_id="text",
        handler="text",
        delivery_id="bigint",
        outcome="text",
        version="text",
    )


def settle(t: Tables) -> ClauseElement:
    """Write outcomes, in the order of their key, and remove from pending the deliveries that have all of theirs.

    A second effect of one event is an error, never skipped.
    """
    gone = delete(t.pending).where(is_one_of(t.pending.c.delivery_id, "settled")).cte("gone")
    new = given_effects()
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
