"""What differs between the live states of a handler and those that a rebuild has made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Text, cast, func, or_, select

from hookledger.ledger.schema import tables
from hookledger.operate.rebuild.shadow import Shadow


@dataclass(frozen=True, slots=True)
class Difference:
    """A resource whose state differs.

    Args:
        source: of the resource.
        resource: its key.
        live: the state there, with `deleted` and `version`; None if there is none.
        shadow: that of the rebuild.
    """

    source: str
    resource: str
    live: dict[str, Any] | None
    shadow: dict[str, Any] | None

    def as_document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"source": self.source, "resource": self.resource, "live": self.live, "shadow": self.shadow}


def differences(engine: Engine, shadow: Shadow, *, most: int | None = None) -> Iterator[Difference]:
    """The resources whose states differ, in the order of their keys, read as they are asked for.

    Those that the live ledger has changed since the rebuild began are left out.

    Args:
        engine: of the ledger's database.
        shadow: the rebuild.
        most: how many at the most.
    """
    live, made = tables(shadow.live).resource_state, tables(shadow.schema).resource_state
    of_handler = [select(*table.c).where(table.c.handler == shadow.handler.name).subquery() for table in (live, made)]
    one, other = of_handler[0].c, of_handler[1].c
    same = (one.source == other.source) & (one.resource == other.resource)
    differs = [one[name].is_distinct_from(other[name]) for name in ("state", "deleted", "version")]
    columns = [
        column
        for side in (one, other)
        for column in (side.handler.is_not(None), cast(side.state, Text), side.deleted, cast(side.version, Text))
    ]
    source, resource = func.coalesce(one.source, other.source), func.coalesce(one.resource, other.resource)
    statement = (
        select(source, resource, *columns)
        .select_from(of_handler[0].outerjoin(of_handler[1], same, full=True))
        .where(or_(*differs), func.coalesce(one.delivery_id, 0) <= shadow.until_id)
        .order_by(source, resource)
        .limit(most)
    )
    with engine.connect() as connection:
        for row in connection.execution_options(stream_results=True, max_row_buffer=200).execute(statement):
            yield Difference(row[0], row[1], _side(*row[2:6]), _side(*row[6:10]))


def _side(there: bool, state: str | None, deleted: bool, version: str | None) -> dict[str, Any] | None:
    if not there:
        return None
    return {"state": None if state is None else json.loads(state), "deleted": deleted, "version": version}
