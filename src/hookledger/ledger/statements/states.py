"""The resource states: their watermarks, and what handlers gave."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Numeric,
    Select,
    Update,
    case,
    cast,
    func,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_or_skip
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import Text, UserDefinedType

from hookledger.ledger.arrays import VERSION, rows
from hookledger.ledger.schema import Tables
from hookledger.ledger.statements.expressions import literal_text

NEW = {"version": "text", "delivery_id": "bigint", "deleted": "boolean", "replaces": "boolean", "state": "text"}


class TID(UserDefinedType[str]):
    """The place of a row in its table."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The name of the type."""
        return "tid"


def insert_states(t: Tables) -> ClauseElement:
    """Make the missing resource states, in the order of their key."""
    states = rows("state", handler="text", source="text", resource="text")
    keys = ["handler", "source", "resource"]
    return (
        insert_or_skip(t.resource_state)
        .from_select(keys, select(*[states.c[key] for key in keys]).order_by(*[states.c[key] for key in keys]))
        .on_conflict_do_nothing()
    )


def read_states(t: Tables) -> ClauseElement:
    """The watermarks of resource states."""
    keys = _keys()
    found = _newest(t, keys).lateral("found")
    return select(*found.c).select_from(keys.join(found, true()))


def lock_states(t: Tables) -> ClauseElement:
    """Lock the resource states in the order of the given keys, and read the watermarks and where the rows are."""
    keys = _keys()
    place = cast(literal_column("ctid"), Text).label("place")
    found = _newest(t, keys).add_columns(place).with_for_update().lateral("found")
    return select(*found.c).select_from(keys.join(found, true()))


def _keys() -> TableValuedAlias:
    return rows("state", handler="text", source="text", resource="text")


def _newest(t: Tables, keys: TableValuedAlias) -> Select[Any]:
    """The row of one key, looked for from the end of its entries in the index.

    While a transaction that is open elsewhere keeps vacuum away, each move of a watermark leaves an entry behind, and
    the newest is the last of them. Said by equality alone, all of them would be read.
    """
    r = t.resource_state.c
    return (
        select(r.handler, r.source, r.resource, cast(r.version, Text).label("version"), r.delivery_id)
        .where(
            r.handler == keys.c.handler,
            r.source == keys.c.source,
            r.resource >= keys.c.resource,
            r.resource <= keys.c.resource,
        )
        .order_by(r.handler.desc(), r.source.desc(), r.resource.desc())
        .limit(literal_column("1"))
    )


def save_states(t: Tables) -> ClauseElement:
    """Move the watermarks of snapshots that were applied, and replace the state where the handler gave one."""
    new = rows("state", handler="text", source="text", resource="text", **NEW)
    r = t.resource_state.c
    return _saved(t, new).where(r.handler == new.c.handler, r.source == new.c.source, r.resource == new.c.resource)


def save_locked_states(t: Tables) -> ClauseElement:
    """As `save_states`, for rows that this transaction has locked, without looking for them again.

    https://www.postgresql.org/docs/current/ddl-system-columns.html
    """
    new = rows("state", place="text", **NEW)
    return _saved(t, new).where(literal_column("ctid") == cast(new.c.place, TID))


def _saved(t: Tables, new: TableValuedAlias) -> Update:
    r = t.resource_state
    return update(r).values(
        version=cast(new.c.version, VERSION),
        delivery_id=new.c.delivery_id,
        deleted=new.c.deleted,
        state=case((new.c.replaces, cast(new.c.state, JSONB)), else_=r.c.state),
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
