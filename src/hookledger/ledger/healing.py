"""What is asked of the ledger to close dead letters that a newer snapshot has made needless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, case, cast, delete, func, insert, literal_column, select
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Text

from hookledger.ledger.arrays import TYPES, VERSION, array, bound, rows
from hookledger.ledger.rows import NewEffect
from hookledger.ledger.schema import Tables, tables
from hookledger.ledger.statements.claim import LARGEST_COMMON
from hookledger.ledger.statements.compiled import DIALECT
from hookledger.ledger.statements.expressions import is_one_of
from hookledger.ledger.statements.settle import given_effects

UNREADABLE = "unreadable"


class DeadRow(NamedTuple):
    """A dead letter with its delivery, in the order of the columns of `dead_after`."""

    id: int
    source: str
    event_id: str
    event_type: str
    resource: str | None
    version: str | None
    received_at: datetime
    position: int
    payload_id: int
    attempts: int


class PayloadRow(NamedTuple):
    """A payload that is not large."""

    id: int
    headers: str
    body: bytes


def dead_after(t: Tables) -> ClauseElement:
    """The next dead letters in the order of their ids; those that cannot be read have no version to compare."""
    d, dead = t.deliveries.c, t.dead_letters.c
    return (
        select(
            *(d.id, d.source, d.event_id, d.event_type, d.resource, cast(d.version, Text)),
            *(d.received_at, d.position, d.payload_id, dead.attempts),
        )
        .join_from(t.dead_letters, t.deliveries, d.id == dead.delivery_id)
        .where(
            dead.delivery_id > bindparam("after", type_=TYPES["bigint"]),
            dead.reason != literal_column(f"'{UNREADABLE}'"),
        )
        .order_by(dead.delivery_id)
        .limit(bindparam("most", type_=TYPES["integer"]))
    )


def common_payloads(t: Tables) -> ClauseElement:
    """Headers and bodies of payloads that are not large."""
    wanted = rows("payload", received_at="moment", id="bigint")
    p = t.payloads.c
    fits = func.octet_length(p.body) <= literal_column(str(LARGEST_COMMON))
    return (
        select(p.id, cast(p.headers, Text), case((fits, p.body)))
        .join_from(wanted, t.payloads, (p.received_at == wanted.c.received_at) & (p.id == wanted.c.id))
        .where(fits)
    )


def supersede(t: Tables) -> ClauseElement:
    """Close dead letters with the outcomes that their handlers lack; those that somebody revives now are left out."""
    dead = t.dead_letters
    held = (
        select(dead.c.delivery_id)
        .where(is_one_of(dead.c.delivery_id, "ids"))
        .order_by(dead.c.delivery_id)
        .with_for_update(skip_locked=True)
        .cte("held")
        .prefix_with("MATERIALIZED")
    )
    gone = (
        delete(dead).where(dead.c.delivery_id.in_(select(held.c.delivery_id))).returning(dead.c.delivery_id).cte("gone")
    )
    new = given_effects()
    return (
        insert(t.effects)
        .from_select(
            list(NewEffect._fields),
            select(*[new.c[name] for name in NewEffect._fields[:-1]], cast(new.c.version, VERSION))
            .join_from(new, gone, gone.c.delivery_id == new.c.delivery_id)
            .order_by(new.c.source, new.c.event_id, new.c.handler),
        )
        .returning(t.effects.c.delivery_id)
    )


@dataclass(frozen=True)
class Healing:
    """The statements of one schema; none of these functions commits."""

    _dead_after: str
    _common_payloads: str
    _supersede: str

    def dead_after(self, connection: Connection, after: int, most: int) -> list[DeadRow]:
        """Up to `most` dead letters with ids above `after`."""
        found = connection.exec_driver_sql(self._dead_after, {"after": after, "most": most})
        return [DeadRow._make(row) for row in found]

    def common_payloads(self, connection: Connection, wanted: Sequence[tuple[datetime, int]]) -> dict[int, PayloadRow]:
        """The payloads (received_at, id) that are there and not large, by id."""
        found = connection.exec_driver_sql(self._common_payloads, bound("payload", ("received_at", "id"), wanted))
        return {row[0]: PayloadRow._make(row) for row in found}

    def supersede(self, connection: Connection, effects: Sequence[NewEffect]) -> set[int]:
        """Write the outcomes, and remove their deliveries from the dead letters; the ids of those that were."""
        parameters = bound("effect", NewEffect._fields, effects)
        parameters["ids"] = array(sorted({effect.delivery_id for effect in effects}))
        return set(connection.exec_driver_sql(self._supersede, parameters).scalars())


def _text_of(element: ClauseElement) -> str:
    return str(element.compile(dialect=DIALECT))


@cache
def healing(schema: str) -> Healing:
    """The statements of the ledger in the given schema, built once."""
    t = tables(schema)
    return Healing(_text_of(dead_after(t)), _text_of(common_payloads(t)), _text_of(supersede(t)))
