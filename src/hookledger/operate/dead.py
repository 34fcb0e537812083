"""Dead letters in groups: what they died of, how many, since when, and one of each to look at.

The groups are found by going through the index from one to the next, so that a ledger with a million dead letters of
three errors is read three times and not a million times. https://wiki.postgresql.org/wiki/Loose_indexscan
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, literal, select, true, tuple_

from hookledger.ledger.schema import Tables, tables
from hookledger.operate.filters import Filter, State
from hookledger.operate.find import ids_of
from hookledger.operate.masking import scrub, secret_values

COUNTED = 10_000
"""Dead letters of a group that are counted; of more it is said that there are more."""
MOST_GROUPS = 10_000
SHOWN_GROUPS = 100


@dataclass(frozen=True, slots=True)
class Group:
    """Dead letters with one reason and one fingerprint.

    Args:
        reason: crashed, failed, rejected or unreadable.
        fingerprint: of the error.
        count: how many, up to 10,000.
        is_bounded: whether there may be more than that.
        first_at: when the first of them died.
        last_at: when the last of them died.
        example: the delivery that died last.
        source: of the example.
        event_type: of the example.
        error: of the example, without what its secret headers held.
    """

    reason: str
    fingerprint: str
    count: int
    is_bounded: bool
    first_at: datetime
    last_at: datetime
    example: int
    source: str
    event_type: str
    error: str


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups, the one that grew last first.

    Args:
        groups: as many as were asked for.
        in_all: how many there are.
        is_bounded: whether there are more groups, or more dead letters, than were looked at.
    """

    groups: tuple[Group, ...]
    in_all: int
    is_bounded: bool


def read_groups(
    connection: Connection, schema: str, wanted: Filter | None = None, *, limit: int = SHOWN_GROUPS
) -> Groups:
    """The dead letters in groups.

    Args:
        connection: to the ledger's database.
        schema: of the ledger.
        wanted: only dead letters that this lets through; then the newest 10,000 of them are looked at.
        limit: groups that are given.
    """
    t = tables(schema)
    if wanted is None or wanted.is_empty or wanted == Filter(state=State.DEAD):
        rows = connection.execute(groups(t)).all()
        is_bounded, all_bounded = len(rows) > MOST_GROUPS, False
    else:
        rows = connection.execute(groups_among(t, wanted)).all()
        is_bounded = all_bounded = sum(row.number for row in rows) > COUNTED
    shown = sorted(rows, key=lambda row: (row.last_at, row.example), reverse=True)[: max(0, limit)]
    examples = {row.id: row for row in connection.execute(_examples(t, [row.example for row in shown]))}
    found = tuple(
        [
            Group(
                *(row.reason, row.fingerprint, min(row.number, COUNTED)),
                is_bounded=row.number > COUNTED or all_bounded,
                first_at=row.first_at,
                last_at=row.last_at,
                example=row.example,
                source=example.source,
                event_type=example.event_type,
                error=scrub(example.error, secret_values(example.headers or ())),
            )
            for row in shown
            if (example := examples.get(row.example)) is not None
        ]
    )
    return Groups(found, min(len(rows), MOST_GROUPS), is_bounded)


def groups(t: Tables) -> Select[Any]:
    """Every group with its count up to the bound, its ends, and its newest delivery; from the index alone."""
    dead = t.dead_letters
    key = (dead.c.reason, dead.c.fingerprint)
    first = select(*key).order_by(*key).limit(1).subquery("first_group")
    walk = select(first.c.reason, first.c.fingerprint).cte("walk", recursive=True)
    following = (
        select(*key)
        .where(tuple_(*key) > tuple_(walk.c.reason, walk.c.fingerprint))
        .order_by(*key)
        .limit(1)
        .lateral("following")
    )
    walk = walk.union_all(select(following.c.reason, following.c.fingerprint).select_from(walk.join(following, true())))
    group = select(walk).limit(MOST_GROUPS + 1).subquery("found_group")
    same = (dead.c.reason == group.c.reason, dead.c.fingerprint == group.c.fingerprint)
    ends = (dead.c.died_at, dead.c.delivery_id)
    oldest = select(dead.c.died_at).where(*same).order_by(*ends).limit(1).lateral("oldest")
    newest = select(*ends).where(*same).order_by(*[end.desc() for end in ends]).limit(1).lateral("newest")
    # In the order of the index, else the planner would rather read the table where it expects many.
    bounded = select(literal(1)).select_from(dead).where(*same).order_by(*ends).limit(COUNTED + 1).scalar_subquery()
    number = func.cardinality(func.array(bounded)).label("number")
    return select(
        *(group.c.reason, group.c.fingerprint, number),
        *(oldest.c.died_at.label("first_at"), newest.c.died_at.label("last_at"), newest.c.delivery_id.label("example")),
    ).select_from(group.join(oldest, true()).join(newest, true()))


def groups_among(t: Tables, wanted: Filter) -> Select[Any]:
    """The groups of the newest dead letters that a filter lets through."""
    among = t.dead_letters.c.delivery_id == t.deliveries.c.id
    chosen = ids_of(t, wanted, None, COUNTED + 1).where(select(literal(1)).where(among).exists())
    ids = chosen.cte("chosen").prefix_with("MATERIALIZED")
    dead = t.dead_letters.c
    return (
        select(
            *(dead.reason, dead.fingerprint, func.count().label("number")),
            *(func.min(dead.died_at).label("first_at"), func.max(dead.died_at).label("last_at")),
            func.max(dead.delivery_id).label("example"),
        )
        .join_from(ids, t.dead_letters, dead.delivery_id == ids.c.id)
        .group_by(dead.reason, dead.fingerprint)
    )


def _examples(t: Tables, ids: Sequence[int]) -> Select[Any]:
    d, p, dead = t.deliveries.c, t.payloads.c, t.dead_letters.c
    return (
        select(d.id, d.source, d.event_type, dead.error, p.headers)
        .select_from(t.dead_letters)
        .join(t.deliveries, d.id == dead.delivery_id)
        .outerjoin(t.payloads, (p.received_at == d.received_at) & (p.id == d.payload_id))
        .where(dead.delivery_id.in_(ids))
    )
