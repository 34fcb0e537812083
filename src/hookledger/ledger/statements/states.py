"""The resource states: their watermarks, and what handlers gave."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Numeric, Select, case, cast, func, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_or_skip
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Text

from hookledger.ledger.arrays import VERSION, rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import literal_text


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
    before = func.jsonb_each_text(func.coalesce(r.c.state, cast(literal_text("{}"), JSONB))).table_valued(
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
